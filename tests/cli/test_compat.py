"""compat.dlio where DLIO leaves out files, ignores keys, and reads indices ahead. What DLIO does was seen by
tests/bench/calls_against_dlio.py."""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import load, stoker, tiny


def run(tmp, name, ranks=1, status=0, **keys):
    out = tmp / name
    base = {"compat__dlio": "true", "framework__costs": "none", "dataset__record_length_bytes": 1000,
            "train__computation_time": 0}
    done = stoker("run", *tiny(tmp / ("data-" + name), out, **{**base, **keys}), "-n", ranks, status=status)
    return load(out) if status == 0 else done.stderr


def steps(result):
    return result["training"]["epochs"][0]["steps"]


def opens(result):
    """Each is counted with its close."""
    return result["training"]["io"]["open"]["requests"] // 2


def trimming(tmp):
    """Files kept: a multiple of samples a file x batch x ranks."""
    for files, per, batch, ranks, want in ((26, 3, 4, 1, 18), (34, 4, 2, 2, 32), (13, 1, 2, 3, 2), (9, 4, 1, 2, 16)):
        result = run(tmp, f"trim-{files}-{per}", ranks, files=files, dataset__num_samples_per_file=per,
                     reader__batch_size=batch)
        assert steps(result) == want, (files, per, batch, ranks, steps(result))
    said = run(tmp, "none", status=2, files=6, dataset__num_samples_per_file=4)
    assert "DLIO leaves out all 6 files" in said, said
    # fewer samples than a batch are too few for anyone
    said = run(tmp, "few", status=2, files=1, reader__batch_size=2)
    assert "do not make one step" in said, said


def ignored_keys(tmp):
    saved = {}
    for dlio in ("true", "false"):
        folder = tmp / ("ck-" + dlio)
        run(tmp, "keys-" + dlio, model__model_size=50000, workflow__checkpoint="true", compat__dlio=dlio,
            checkpoint__checkpoint_folder=folder, checkpoint__epochs_between_checkpoints=1)
        saved[dlio] = [p.stat().st_size for p in pathlib.Path(folder).rglob("*.pt")]
    assert saved["true"] == [10987] and saved["false"][0] > 50000, saved


def indices(tmp):
    """16 files, two workers: each of them opens both companions of all."""
    for fmt, ahead, alone in (("indexed_binary", 64 + 16, 32 + 16), ("mmap_indexed_binary", 96, 48)):
        for dlio, want in (("true", ahead), ("false", alone)):
            result = run(tmp, f"{fmt}-{dlio}", fmt=fmt, files=16, reader__read_threads=2, compat__dlio=dlio,
                         reader__order="dlio")
            assert opens(result) == want, (fmt, dlio, opens(result), want)
            assert result["status"] == "complete" and steps(result) == 8
    # an index that is wrong is the failure of the first batch
    wrong = tmp / "data-indexed_binary-true" / "train" / "img_15_of_16.indexed_binary.sz.idx"
    wrong.write_bytes(b"\xff" * wrong.stat().st_size)
    said = run(tmp, "indexed_binary-true", status=1, fmt="indexed_binary", files=16, reader__read_threads=2,
               workflow__generate_data="false", reader__order="dlio", train__total_training_steps=1)
    assert "img_15_of_16.indexed_binary.sz.idx" in said and "its indices" in said, said


def audited(tmp):
    """Sentences about the length of a run do not have DLIO's count: a run that nobody touched contradicts nothing."""
    run(tmp, "short", files=6, train__computation_time=0.005, train__epochs=2)
    done = stoker("audit", tmp / "short", status=None)
    assert "steady" in done.stdout and "verdict:" not in done.stdout, done.stdout


def main():
    with tempfile.TemporaryDirectory() as folder:
        for part in (trimming, ignored_keys, indices, audited):
            part(pathlib.Path(folder))
    print("compat.dlio leaves out, ignores and reads ahead as DLIO does")


main()

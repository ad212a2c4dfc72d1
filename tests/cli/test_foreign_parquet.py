"""Parquet files that pyarrow and DuckDB wrote (tests/data/parquet) are trained from as they lie: --data names the folder, and every row
comes once."""
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from util import load, stoker  # noqa: E402

DATA = Path(__file__).resolve().parent.parent / "data" / "parquet"
# 90 rows in row groups of 40; 150 rows in one
PYARROW, DUCKDB = DATA / "pyarrow.parquet", DATA / "duckdb.parquet"
BRIEF = ["train.epochs=1", "workflow.evaluation=false", "train.computation_time=0", "reader.batch_size=8", "run.probe=false"]


def hub(folder):
    """As on the Hugging Face hub, with what Spark leaves beside such files."""
    (folder / "data").mkdir(parents=True)
    for source, name in ((PYARROW, "train-00000-of-00002-0a1b2c.parquet"), (DUCKDB, "train-00001-of-00002-3d4e5f.parquet"),
                         (PYARROW, "test-00000-of-00001-aa.parquet")):
        shutil.copyfile(source, folder / "data" / name)
    # a link that leads round in a circle gives no file twice
    (folder / "data" / "round").symlink_to("..")
    for name in ("README.md", "_SUCCESS", ".part-0.parquet.crc", "_metadata.parquet"):
        (folder / name).write_text("no rows")


def refused(tmp, folder, *words, extra=(), status=2):
    done = stoker("run", "--data", folder, *BRIEF, *extra, f"hydra.run.dir={tmp}/refused", status=None)
    assert done.returncode == status and done.stderr.count("\n") == 1, (folder, done.returncode, done.stderr)
    for word in words:
        assert word in done.stderr, (word, done.stderr)


def audited(out, samples_per_file):
    """What was made of the measures again is the same, and DLIO's counts give all samples."""
    assert json.loads((out / "summary.json").read_text())["num_samples_per_file"] == samples_per_file
    for finding in json.loads(stoker("audit", "--quick", out, "--json", status=None).stdout)["results"][0]["findings"]:
        assert finding["check"] not in ("figures", "verdict", "summary") or finding["level"] not in ("fail", "warn", "warning"), finding


def main():
    with tempfile.TemporaryDirectory() as tmp:
        folder, out = Path(tmp) / "hub", Path(tmp) / "run"
        hub(folder)
        native = ["reader.access=native"]
        for extra in ([], ["reader.decode=none", *native], ["reader.data_loader=row_groups"], [*native, "reader.queue_depth=3"],
                      ["reader.data_loader=row_groups", "reader.parquet_requests=s3dlio", "reader.read_threads=1"],
                      ["reader.sample_shuffle=off", "reader.file_shuffle=seed", "reader.parquet_requests=pyarrow_pre_buffer"],
                      ["reader.order=distributed", "-n", "2", "reader.parquet_requests=pyarrow"],
                      ["storage.storage_options.columns=[text,e]", "--fewer"]):
            if "--fewer" in extra:
                # what has not these columns is refused
                refused(tmp, folder, "has no column", extra=extra[:-1], status=1)
                continue
            done = stoker("run", "--data", folder, *BRIEF, "reader.read_threads=2", *extra, f"hydra.run.dir={out}")
            result = load(out)
            order = [v for v in result["verdicts"] if v["check"] == "order"][0]
            assert order["level"] == "pass", (extra, order)
            # a worker of a stream has files of its own, and leaves out its last short batch
            whole = "row_groups" not in str(extra)
            assert not whole or "each of the 240 samples was delivered exactly once" in str(order), (extra, order)
            assert "the workload specifies" not in str(result["verdicts"]), (extra, result["verdicts"])
            found = [v for v in result["verdicts"] if v["check"] == "dataset"][0]
            assert found["level"] == "pass" and "240 + 90 samples" in str(found), (extra, found)
            audited(out, 120)
        # the metadata that s3dlio asks for are longer than it asks for
        refused(tmp, folder, "of metadata, more than the 100 that s3dlio asks for", "footer_cap", status=1,
                extra=["reader.parquet_requests=s3dlio", "+storage.storage_options.footer_cap=100"])
        # by keys alone, and what does not go with such files
        keys = ["default", "dataset.format=parquet", "dataset.names=listed", f"dataset.data_folder={folder}", "framework=pytorch"]
        stoker("run", *keys, *BRIEF, f"hydra.run.dir={out}")
        assert load(out)["training"]["epochs"][0]["order_proved"]
        # DLIO's iterator over row groups looks into the files, too, and deals each rank as many
        done = stoker("run", *keys, *BRIEF, "compat.dlio=true", "reader.read_threads=1", f"hydra.run.dir={out}")
        assert load(out)["training"]["epochs"][0]["order_proved"], done
        for extra, words in ((["dataset.num_files_train=3"], "set dataset.num_files_train=2"),
                             (["reader.decode=verify"], "reader.decode verify"),
                             (["reader.data_loader=tensorflow"], "different numbers of samples"),
                             (["dataset.keep_files=false"], "not removed"), (["workflow.generate_data=true"], "not generated")):
            done = stoker("run", *keys, *BRIEF, *extra, f"hydra.run.dir={tmp}/refused", status=None)
            assert done.returncode == 2 and words in done.stderr, (extra, done.stderr)
        assert stoker("verify", *keys, status=None).returncode == 2
        assert all((folder / "data" / name).exists() for name in os.listdir(folder / "data")) and len(os.listdir(folder / "data")) == 4
        # evaluation files differ in the size of their samples, too
        (folder / "eval").mkdir()
        shutil.copyfile(DUCKDB, folder / "eval" / "b.parquet")
        stoker("run", "default", "--data", folder, *BRIEF[:1], *BRIEF[2:], "evaluation.eval_time=0", f"hydra.run.dir={out}")
        found = [v for v in load(out)["verdicts"] if v["check"] == "eval-bytes"][0]
        assert "the workload specifies" not in str(found), found
        audited(out, 120)
        # what cannot be used is named
        whole = PYARROW.read_bytes()
        for name, content, words in (("short", whole[:-9], "does not end as a Parquet file"), ("text", b"hello, world\n" * 9, "PAR1"),
                                     ("empty", b"", "0 bytes"), ("encrypted", whole[:-4] + b"PARE", "encrypted"),
                                     ("long", whole[:-8] + b"\xff\xff\xff\x7fPAR1", "more than the file")):
            bad = Path(tmp) / name
            bad.mkdir()
            shutil.copyfile(DUCKDB, bad / "a.parquet")
            (bad / "b.parquet").write_bytes(content)
            refused(tmp, bad, f"{bad}/b.parquet", words, status=1)


main()

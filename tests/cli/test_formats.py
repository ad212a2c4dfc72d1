"""Every format of this version: generate, verify, train and evaluate, with one and many samples a file,
one and several ranks, no and several workers, both access patterns."""
# tier: long
import json
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, load, stoker, tiny  # noqa: E402


def formats():
    return [line.split()[0] for line in stoker("show", "formats").stdout.splitlines() if line[:1].isalpha()]


def matrix(fmt, tmp):
    runs = 0
    for samples in (1, 16):
        data = tmp / f"{fmt}{samples}"
        keys = dict(fmt=fmt, files=16, dataset__num_samples_per_file=samples, dataset__num_files_eval=4,
                    dataset__record_length_bytes=1024, workflow__evaluation="true", reader__batch_size_eval=1,
                    train__computation_time=0, evaluation__eval_time=0)
        made = json.loads(stoker("generate", "--json", *tiny(data, None, **keys)).stdout)
        assert (made["files_written"], made["files_that_existed"]) == (20, 0), made
        same = json.loads(stoker("verify", "--json", *tiny(data, None, **keys)).stdout)
        assert (same["outcome"], same["files_compared"]) == ("every byte as generated", 20), same
        stoker("verify", data)
        for ranks in (1, 4):
            for workers in (0, 4):
                for access in ("framework", "native"):
                    out = tmp / "out"
                    stoker("run", "-n", ranks, *tiny(
                        data, out, workflow__generate_data="false", reader__read_threads=workers,
                        reader__access=access, reader__decode="verify", reader__sample_shuffle="seed", **keys))
                    result = load(out)
                    epoch = result["training"]["epochs"][0]
                    assert epoch["order_proved"], (fmt, samples, ranks, workers)
                    assert epoch["samples"] == 16 * samples, epoch
                    runs += 1
        shutil.rmtree(data)
    print(f"   {fmt}: {runs} runs verified")


def main():
    known = formats()
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        for fmt in known:
            if not SANITIZED or fmt == known[0]:
                matrix(fmt, tmp)


if __name__ == "__main__":
    main()

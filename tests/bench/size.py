"""Figures, not a test: start-up time and memory from ten thousand to ten million files of 100 samples.

    python3 tests/bench/size.py build/stoker

A run makes 10 steps without computation over the synthetic store and format, so that its time is that
of starting and ending. The last lines show whole epochs: the proof of the order is part of their time.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
STOKER = sys.argv[1] if len(sys.argv) > 1 else "build/stoker"
os.environ["STOKER"] = STOKER
from util import tiny  # noqa: E402

PER_FILE = 100
CASES = {
    "default": {},
    "files shuffled": dict(reader__sample_shuffle="off", reader__file_shuffle="seed"),
    "compat.dlio": dict(compat__dlio="true"),
    "drawn sizes": dict(dataset__record_length_bytes_stdev=100),
    "and generated": dict(workflow__generate_data="true"),
    "64 ranks": {},
}


def run(tmp, files, name="default", **keys):
    out = pathlib.Path(tmp, "out")
    base = dict(fmt="synthetic", dataset__num_samples_per_file=PER_FILE, storage__store="synthetic",
                workflow__generate_data="false", train__computation_time=0, train__total_training_steps=10)
    base.update(CASES[name])
    base.update(keys)
    argv = [STOKER, "run", "-n", "64" if name == "64 ranks" else "1", *map(str, tiny("/data", out, files=files, **base))]
    begin = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin, json.loads((out / "result.json").read_text())


with tempfile.TemporaryDirectory() as tmp:
    print(f"{'':16}" + "".join(f"{n:>12,} files    " for n in (10**4, 10**5, 10**6, 10**7)))
    for name in CASES:
        row = f"{name:16}"
        for files in (10**4, 10**5, 10**6, 10**7):
            seconds, r = run(tmp, files, name)
            row += f"{seconds:7.2f} s {r['memory']['peak_rss_bytes'] / 2**20:6.1f} MiB  "
        print(row)
    for files in (10**4, 10**5):
        seconds, r = run(tmp, files, reader__batch_size=100, train__total_training_steps=-1)
        epoch = r["training"]["epochs"][0]
        print(f"a whole epoch of {files * PER_FILE:,} samples: {epoch['wall_s']:.2f} s, the run {seconds:.2f} s, "
              f"{r['memory']['peak_rss_bytes'] / 2**20:.1f} MiB; {epoch['order_note']}")

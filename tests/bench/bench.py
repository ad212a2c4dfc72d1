"""Figures, not tests: start-up of a trivial run, and what a byte costs in each format (formats.py).

    python3 tests/bench/bench.py build/stoker [FORMAT...]
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
STOKER = sys.argv[1] if len(sys.argv) > 1 else "build/stoker"
os.environ["STOKER"] = STOKER
import formats  # noqa: E402
from util import tiny  # noqa: E402

RUNS = 5


def timed(argv):
    begin, cpu = time.perf_counter(), os.times()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = os.times()
    return (time.perf_counter() - begin,
            after.children_user + after.children_system - cpu.children_user - cpu.children_system)


def startup(tmp):
    data, out = tmp / "tiny", tmp / "out"
    base = dict(files=4, reader__batch_size=1, train__computation_time=0)
    timed([STOKER, "run", *map(str, tiny(data, out, **base))])
    runs = [timed([STOKER, "run", *map(str, tiny(data, out, workflow__generate_data="false", **base))])[0]
            for _ in range(RUNS)]
    both = [timed([STOKER, "run", *map(str, tiny(tmp / f"fresh{i}", out, **base))])[0] for i in range(RUNS)]
    print(f"start-up, 4 files, 1 epoch: {statistics.median(runs) * 1e3:.1f} ms (run), "
          f"{statistics.median(both) * 1e3:.1f} ms (generate and run); at most 50 ms wanted")


def main():
    with tempfile.TemporaryDirectory() as tmp:
        startup(pathlib.Path(tmp))
    formats.main(sys.argv[2:])


if __name__ == "__main__":
    main()

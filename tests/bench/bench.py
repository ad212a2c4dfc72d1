"""Figures, not tests: start-up of a trivial run, and the cost of a byte against a plain read loop.

    python3 tests/bench/bench.py build/stoker

Ratios are of both sides in one run, A B A B, medians. The folder of the data is TMPDIR (a tmpfs shows
the client's cost, a disk the disk's).
"""
import json
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




def cost(tmp, fmt, length, files):
    data = tmp / f"{fmt}{length}"
    base = dict(fmt=fmt, files=files, dataset__record_length_bytes=length, reader__batch_size=1,
                reader__read_threads=1, train__computation_time=0)
    subprocess.run([STOKER, "run", *map(str, tiny(data, tmp / "out", workflow__train="false", **base))],
                   check=True, stdout=subprocess.DEVNULL)
    names = sorted(map(str, (data / "train").glob("*")))
    total = sum(os.path.getsize(n) for n in names)
    for access, decode in (("framework", "full"), ("framework", "none"), ("native", "none")):
        ours, plain = [], []
        for i in range(RUNS):
            out = tmp / "out"
            timed([STOKER, "run", *map(str, tiny(data, out, workflow__generate_data="false",
                                                 reader__access=access, reader__decode=decode, **base))])
            epoch = json.loads((out / "result.json").read_text())["training"]["epochs"][0]
            ours.append(epoch["wall_s"])
            begin = time.perf_counter()
            for name in names:
                fd = os.open(name, os.O_RDONLY)
                while os.readv(fd, [BUFFER]):
                    pass
                os.close(fd)
            plain.append(time.perf_counter() - begin)
        ratio = statistics.median(a / b for a, b in zip(ours, plain))
        print(f"{fmt} {length} B, {access}/{decode}: {total / statistics.median(ours) / 1e9:.2f} GB/s, "
              f"plain read loop {total / statistics.median(plain) / 1e9:.2f} GB/s, time ratio {ratio:.2f}")


BUFFER = bytearray(1 << 20)


def main():
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        startup(tmp)
        for fmt in ("npy", "npz"):
            cost(tmp, fmt, 150528, 2000)
            cost(tmp, fmt, 16 << 20, 32)


if __name__ == "__main__":
    main()

"""Figures, not a test: what a newer program costs against an older one, in pairs of runs that take turns.

    python3 tests/bench/versions.py OLD NEW [ROUNDS]

Both run the same workloads: small samples from memory and from the page cache, as fast as they can and at about 100,000
reads a second. Throughput and processor time are those of the training epochs, of each the quickest tenth; medians over
pairs with their 95 % intervals. Where valgrind is installed, the instructions of the loops of rank and workers are
counted too: other programs do not change those.
"""
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from pairs import quick, told  # noqa: E402
from util import load, tiny  # noqa: E402

SMALL = dict(fmt="npy", files=2000, dataset__record_length_bytes=4096, reader__batch_size=100, reader__read_threads=1,
             train__epochs=12, train__computation_time=0, reader__decode="none")
PACKED = dict(SMALL, fmt="indexed_binary", files=4, dataset__num_samples_per_file=1000, reader__access="native")
CASES = {
    "memory, npy": dict(SMALL, storage__store="memory"),
    "page cache, npy": dict(SMALL),
    "page cache, indexed_binary": dict(PACKED),
    "page cache, npy, paced": dict(SMALL, train__computation_time=0.0068, train__epochs=6),
    "memory, npy, 2 ranks, paced": dict(SMALL, storage__store="memory", train__computation_time=0.0136, train__epochs=6),
}


def run(program, data, out, keys, under=(), ranks=1):
    argv = [*under, program, "run", *map(str, tiny(data, out, **keys)), "-n", str(ranks)]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def figures(program, data, out, keys, ranks):
    run(program, data, out, keys, ranks=ranks)
    t = load(out)["training"]
    epochs = t["epochs"][1:]
    requests = sum(k["requests"] for k in t["io"].values()) / len(t["epochs"])
    shutil.rmtree(out)
    return quick([e["wall_s"] for e in epochs]), quick([e["cpu_s"] for e in epochs]), requests


def pairs(tmp, old, new, rounds):
    for name, keys in CASES.items():
        data, ranks = tmp / "data", 2 if "2 ranks" in name else 1
        shutil.rmtree(data, ignore_errors=True)
        run(old, data, tmp / "out", dict(keys, train__epochs=1))
        wall, cpu, request, rates = [], [], [], []
        for i in range(rounds):
            pair = {}
            for program in (old, new) if i % 2 == 0 else (new, old):
                pair[program] = figures(program, data, tmp / "out", keys, ranks)
            (wall0, cpu0, _), (wall1, cpu1, requests) = pair[old], pair[new]
            wall.append(100 * (wall0 / wall1 - 1))
            cpu.append(100 * (cpu1 / cpu0 - 1))
            request.append(1e9 * (cpu1 - cpu0) / requests)
            rates.append(requests / wall1)
        print(f"{name} ({statistics.median(rates):,.0f} requests/s): throughput {told(wall, '+.2f')} %, processor time "
              f"{told(cpu, '+.2f')} %, a request {told(request, '+.0f')} ns", flush=True)


def instructions(program, data, out, keys):
    """{function: instructions with those of what it calls}"""
    counts = out.parent / "callgrind"
    run(program, data, out, keys, under=("valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}", "-q"))
    text = subprocess.run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", str(counts)], check=True,
                          capture_output=True, text=True).stdout
    found = {}
    for line in text.splitlines():
        m = re.match(r"\s*([\d,]+) \(.*?\)\s+(\S+?):(\w+)", line)
        if m:
            found.setdefault(m[3], int(m[1].replace(",", "")))
    return found


def counted(tmp, old, new):
    if not shutil.which("callgrind_annotate"):
        print("instructions: valgrind is not installed")
        return
    for name in ("memory, npy", "page cache, indexed_binary"):
        data = tmp / "data"
        shutil.rmtree(data, ignore_errors=True)
        short, long = (dict(CASES[name], train__epochs=n) for n in (1, 3))
        run(old, data, tmp / "out", short)
        each = {}
        for program in (old, new):
            # the difference of two lengths leaves out what a run takes once
            a, b = (instructions(program, data, tmp / "out", keys) for keys in (short, long))
            each[program] = {f: (b[f] - a.get(f, 0)) / 2 for f in b}
        for f in sorted(set(each[old]) & set(each[new]), key=lambda f: -each[old][f]):
            if re.fullmatch(r"rank_main|thread_main|.*worker.*|rank_.*|.*_read|io_.*|loader_.*", f) and each[old][f] > 2e4:
                print(f"  {name}: {f}: {each[old][f]:,.0f} instructions an epoch, {100 * (each[new][f] / each[old][f] - 1):+.2f} %")


def main():
    old, new = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        tmp = pathlib.Path(tmp)
        if rounds:
            pairs(tmp, old, new, rounds)
        else:
            counted(tmp, old, new)


if __name__ == "__main__":
    main()

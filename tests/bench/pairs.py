"""Runs beside each other that differ in one thing: medians over pairs, with the interval that holds the true
median of such pairs with 95 % certainty."""
import math
import os
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))


def quick(values):
    """What else runs here only makes an epoch longer: the quickest tenth tells what it takes."""
    return statistics.quantiles(values, n=10)[0]


def middle(values):
    """The median and its interval, which asks nothing of how the values are spread."""
    v, n, below = sorted(values), len(values), 0.0
    for k in range(n // 2 + 1):
        below += math.comb(n, k) / 2 ** n
        if below > 0.025:
            break
    return statistics.median(v), v[k], v[n - 1 - k]


def told(values, form):
    mid, low, high = middle(values)
    return f"{mid:{form}} [{low:{form}}, {high:{form}}]"


class Pairs:
    def __init__(self, tmp, argv):
        self.stoker = argv[1] if len(argv) > 1 else "build/stoker"
        self.rounds = int(argv[2]) if len(argv) > 2 else 16
        self.tmp = tmp
        os.environ["STOKER"] = self.stoker

    def overrides(self, keys):
        from util import tiny
        argv = list(map(str, tiny(self.tmp / "data", self.tmp / "out", **keys)))
        return argv[argv.index("-o") + 2:]

    def run(self, keys, **more):
        """Of the epochs but the first: wall s, processor s; samples and counted requests of an epoch."""
        from util import load
        out = self.tmp / "out"
        subprocess.run([self.stoker, "run", "default", "-q", "-o", out, *self.overrides(dict(keys, **more))],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        t = load(out)["training"]
        epochs = t["epochs"][1:]
        return ([e["wall_s"] for e in epochs], [e["cpu_s"] for e in epochs], epochs[-1]["samples"],
                sum(k["requests"] for k in t["io"].values()) / len(t["epochs"]))

    def generate(self, keys, **more):
        shutil.rmtree(self.tmp / "data", ignore_errors=True)
        self.run(dict(keys, workflow__generate_data="true", train__epochs=2, train__computation_time=0), **more)

    def show(self, name, keys, off, on):
        base = dict(dataset__record_length_bytes=4096, reader__read_threads=1, train__computation_time=0,
                    train__epochs=60, workflow__generate_data="false")
        base.update(keys)
        self.generate(base, **off)
        throughput, cpu, request, walls, samples, requests = [], [], [], [], 0, 0
        for i in range(self.rounds):
            pair = [None, None]
            # the order within a pair alternates, so that what drifts falls on both
            for k in (0, 1) if i % 2 == 0 else (1, 0):
                wall, used, samples, asked = self.run(base, **(off, on)[k])
                requests = max(requests, asked)
                pair[k] = quick(wall), quick(used)
            (wall0, cpu0), (wall1, cpu1) = pair
            walls.append(wall1)
            throughput.append(100 * (wall0 / wall1 - 1))
            cpu.append(100 * (cpu1 / cpu0 - 1))
            request.append(1e9 * (cpu1 - cpu0) / max(requests, 1))
        wall = statistics.median(walls)
        print(f"{name}: {samples / wall:,.0f} samples/s, {requests / wall:,.0f} requests/s\n"
              f"    throughput {told(throughput, '+.2f')} %, processor time {told(cpu, '+.2f')} %, "
              f"a request {told(request, '+.0f')} ns", flush=True)

"""What a run says would change it, against a second real run with that change: AU over the whole run
predicted and measured, on throttled stores in memory. Prints every case - a change that the program says
it cannot tell the effect of stands there with its interval, and is counted - and the median and the worst
error in points. The middle one of three base runs is asked. A case that is far off is measured again,
base and change, three or five times, and the middle one counts.

The base run tells each change itself (what_if of result.json); it is given to the program as it is written
there, and the storage in words is made so. Usage: what_if.py [parts of bases' names, between bars [part of a change]]"""
import os
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import result_facts  # noqa: E402
from util import load, stoker, tiny  # noqa: E402

DOUBTED = 4  # points
THROTTLE = ("latency", "open_latency", "bandwidth", "stream_bandwidth")


def bases():
    t = dict(storage__store="throttle+memory", reader__prefetch_size=4, reader__read_threads=2, files=200,
             dataset__record_length_bytes=65536, dataset__record_length_bytes_stdev=16000,
             train__computation_time=0.02)
    yield "latency", 1, dict(t, latency=0.008)
    yield "latency, 2 ranks", 2, dict(t, latency=0.004, reader__read_threads=3, reader__prefetch_size=6)
    yield "varying latency", 1, dict(t, reader__read_threads=4, reader__prefetch_size=8,
                                     reader__access="native", files=400,
                                     storage__throttle__latency="{type: exponential, scale: 0.012}")
    yield "shared bandwidth", 2, dict(t, bandwidth=9e6)
    yield "shared, 4 ranks", 4, dict(t, bandwidth=27e6, reader__read_threads=1, reader__prefetch_size=2)
    yield "stream bandwidth", 1, dict(t, stream_bandwidth=2e6)
    yield "latency and shared", 2, dict(t, latency=0.003, bandwidth=12e6)
    yield "latency and stream", 1, dict(t, latency=0.002, stream_bandwidth=5e6)
    yield "hdf5, latency, shared", 1, dict(t, fmt="hdf5", latency=0.002, bandwidth=20e6,
                                           dataset__record_length_bytes_stdev=0)
    yield "npz, latency", 1, dict(t, fmt="npz", latency=0.002, bandwidth=30e6)
    yield "opening", 1, dict(t, open_latency=0.02)
    yield "no workers", 1, dict(t, reader__read_threads=0, latency=0.002, bandwidth=20e6)
    yield "preprocessing", 2, dict(t, files=400, reader__preprocess_time="{type: exponential, scale: 0.02}",
                                   latency=0.001)
    yield "tf.data, latency, shared", 2, dict(t, framework="tensorflow", reader__data_loader="tensorflow",
                                              latency=0.003, bandwidth=14e6)
    yield "dali, latency, stream", 1, dict(t, reader__data_loader="dali", latency=0.002,
                                           stream_bandwidth=8e6, reader__batch_size=4)
    yield "decoding", 1, dict(t, fmt="jpeg", dataset__record_length_bytes=1600000, reader__read_threads=1,
                              dataset__record_length_bytes_stdev=0, reader__prefetch_size=2,
                              latency=0.0001, train__computation_time=0.016)
    yield "one size, in step", 2, dict(t, bandwidth=9e6, dataset__record_length_bytes_stdev=0)


def run(name, ranks, keys, out, change=""):
    keys = dict(keys)
    more = []
    if change == "change.ranks":
        ranks *= 2
    elif change == "change.latency":
        for k in ("latency", ):
            keys[k] = keys.get(k, 0) / 2
        v = keys.get("storage__throttle__latency")
        if v:
            keys["storage__throttle__latency"] = v.replace("0.012", "0.006")
    elif change == "change.bandwidth":
        for k in ("bandwidth", "stream_bandwidth"):
            keys[k] = keys.get(k, 0) * 2
    else:
        more = change.split()
    for k in THROTTLE:
        if keys.get(k):
            keys["storage__throttle__" + k] = keys[k]
        keys.pop(k, None)
    files = keys.pop("files") * ranks
    stoker("run", *tiny("/what-if", out, keys.pop("fmt", "npy"), files, **keys), *more, "-n", ranks)
    return load(out)


def told(name, ranks, keys, out):
    """What a base run says: its measured AU, and its changes by their words."""
    t = run(name, ranks, keys, out)["what_if"]
    return t["measured_whole_au_percent"], {result_facts.change_of(c): c for c in t["changes"]}


class Case:
    """One change: base runs with what they say of it, and real runs with it."""

    def __init__(self, base, change, tmp):
        self.base, self.change, self.tmp = base, change, tmp
        self.said, self.real = [], []

    def measure(self, said):
        out = os.path.join(self.tmp, "change")
        self.said.append(said)
        self.real.append(run(*self.base, out, self.change)["training"]["whole_run_au_percent"])

    def again(self):
        base, changes = told(*self.base, os.path.join(self.tmp, "again"))
        if self.change in changes:
            self.measure((base, changes[self.change]))

    def off(self):
        """Points of the middle one of the runs; None: nothing was predicted."""
        offs = [c["whole_au_percent"] - r for (_, c), r in zip(self.said, self.real) if "whole_au_percent" in c]
        return statistics.median(offs) if len(offs) * 2 > len(self.real) else None

    def line(self):
        base, c = self.said[0]
        offs, text = self.off(), f"{c['whole_au_percent']:.1f}" if "whole_au_percent" in c else "-"
        tail = "cannot say" if offs is None else f"{offs:6.1f}"
        more = f"  middle of {len(self.real)} pairs" if len(self.real) > 1 else ""
        return (f"{self.base[0]:24} {self.change:46} {base:6.1f} {text:>6} {c.get('low_percent', 0.0):6.1f} "
                f"{c.get('high_percent', 100.0):6.1f} {self.real[0]:6.1f} {tail}{more}")

    def inside(self):
        n = sum(c.get("low_percent", 0.0) <= r <= c.get("high_percent", 100.0) for (_, c), r in zip(self.said, self.real))
        return n * 2 > len(self.real)


def main():
    only = sys.argv[1].split("|") if len(sys.argv) > 1 else [""]
    change = sys.argv[2] if len(sys.argv) > 2 else ""
    cases = []
    print(f"{'base':24} {'change':46} {'base':>6} {'said':>6} {'low':>6} {'high':>6} {'real':>6} {'off':>6}")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        for base in bases():
            if not any(o in base[0] for o in only):
                continue
            au, changes = sorted((told(*base, os.path.join(tmp, "base")) for _ in range(3)), key=lambda t: t[0])[1]
            for words, said in changes.items():
                if change not in words:
                    continue
                case = Case(base, words, tmp)
                case.measure((au, said))
                # other programs disturb a run: what is far off is measured again, both sides of it
                while case.off() is not None and abs(case.off()) > DOUBTED and len(case.real) < 5:
                    case.again()
                    if len(case.real) % 2 == 0:
                        case.again()
                print(case.line(), flush=True)
                cases.append(case)
    said = [abs(c.off()) for c in cases if c.off() is not None] or [0]
    print(f"{len(said)} cases: median error {statistics.median(said):.2f} points, worst {max(said):.2f}; of "
          f"{len(cases) - len(said)} more the program says that it cannot say; {sum(c.inside() for c in cases)} "
          f"of all {len(cases)} within the interval; {sum(len(c.real) > 1 for c in cases)} measured more than once")


if __name__ == "__main__":
    main()

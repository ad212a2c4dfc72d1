"""Runs beside each other that differ in one thing: medians of the ratios of pairs."""
import os
import resource
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))


def quick(walls):
    """What else runs here only makes an epoch longer: the quickest tenth tells what it takes."""
    return statistics.quantiles(walls, n=10)[0]


class Pairs:
    def __init__(self, tmp, argv):
        self.stoker = argv[1] if len(argv) > 1 else "build/stoker"
        self.rounds = int(argv[2]) if len(argv) > 2 else 12
        self.tmp = tmp
        os.environ["STOKER"] = self.stoker

    def run(self, keys, **more):
        """Samples a second of training, requests a second, processor seconds."""
        from util import load, tiny
        out = self.tmp / "out"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([self.stoker, "run", *map(str, tiny(self.tmp / "data", out, **dict(keys, **more)))],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        t = load(out)["training"]
        return ([e["wall_s"] for e in t["epochs"][1:]], t["epochs"][-1]["samples"],
                sum(k["requests"] for k in t["io"].values()) / len(t["epochs"]),
                after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    def show(self, name, keys, off, on):
        base = dict(files=500, dataset__record_length_bytes=4096, reader__batch_size=50, reader__read_threads=1,
                    train__computation_time=0, train__epochs=60, storage__page_cache_files=0,
                    workflow__generate_data="false")
        base.update(keys)
        shutil.rmtree(self.tmp / "data", ignore_errors=True)
        if base["workflow__generate_data"] == "false":
            self.run(dict(base, workflow__generate_data="true"), **off)
        walls, cpu, ratios, samples, requests = ([], []), ([], []), [], 0, 0
        for i in range(self.rounds):
            pair = [None, None]
            # the order within a pair alternates, so that what drifts falls on both
            for k in (0, 1) if i % 2 == 0 else (1, 0):
                wall, samples, asked, used = self.run(base, **(off, on)[k])
                walls[k].extend(wall)
                cpu[k].append(used)
                requests = max(requests, asked)
                pair[k] = quick(wall)
            ratios.append(pair[0] / pair[1])
        best = [quick(w) for w in walls]
        quart = statistics.quantiles(ratios, n=4)
        print(f"{name:24}{requests / best[1]:10,.0f} requests/s{samples / best[1]:9,.0f} samples/s, throughput "
              f"{100 * (best[0] / best[1] - 1):+.2f} % (rounds {100 * (statistics.median(ratios) - 1):+.2f}, quarters "
              f"{100 * (quart[0] - 1):+.2f} to {100 * (quart[2] - 1):+.2f}), processor time "
              f"{100 * (statistics.median(cpu[1]) / statistics.median(cpu[0]) - 1):+.2f} %, a request "
              f"{1e9 * (best[1] - best[0]) / max(requests, 1):+.0f} ns", flush=True)

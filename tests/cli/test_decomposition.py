"""Where the time went: in every kind of run the parts of the decomposition are disjoint, none is
negative, and they sum to the wall time of training within 0.1 %, for the mean and the critical path."""
# tier: long
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import STOKER, load, logged, stoker, tiny, wait_for  # noqa: E402

WAITS = ["start_up", "starved", "queueing", "open_metadata", "data", "decode", "preprocess", "transport",
         "no_processor", "unknown_wait"]


def near(a, b, wall):
    return abs(a - b) <= 0.001 * wall + 1e-9


def check_one(name, d, wall, wait, barrier, compute):
    mean, critical = d["mean_over_ranks_s"], d["critical_path_s"]
    assert near(d["wall_s"], wall, wall), (name, d["wall_s"], wall)
    for part, seconds in [*mean.items(), *critical.items()]:
        assert seconds >= -1e-6 - 0.001 * wall, (name, part, seconds)
    assert near(sum(mean.values()), wall, wall), (name, mean, wall)
    longest = d["critical_path_wall_s"]
    assert near(sum(critical.values()), longest, longest), (name, critical, longest)
    # no_processor holds what the barrier and the computation were late, too
    late_barrier, late_compute = d["late_barrier_s"], d["late_compute_s"]
    assert min(late_barrier, late_compute, mean["no_processor"] - late_barrier - late_compute) >= -1e-9, (name, d)
    assert near(sum(mean[w] for w in WAITS) - late_barrier - late_compute, wait, wall), (name, mean, wait)
    assert near(mean["barrier_wait"] + mean["collective"] + late_barrier, barrier, wall), (name, mean, barrier)
    assert near(mean["compute"] + late_compute, compute, wall), (name, mean, compute)
    # what is between the steps is the end of the epoch, not a hiding place
    assert mean["other"] < 0.1 * wall + 0.02, (name, mean)
    assert critical["barrier_wait"] == 0, (name, critical)


def check(name, result):
    training = result["training"]
    sums = dict.fromkeys(("wall_s", "exposed_wait_s", "barrier_wait_s", "compute_s"), 0.0)
    for e in training["epochs"]:
        check_one(f"{name}, epoch {e['epoch']}", e["decomposition"], e["wall_s"], e["exposed_wait_s"],
                  e["barrier_wait_s"], e["compute_s"])
        # computation that was late for want of a processor is none; of several ranks, the mean of their shares
        late, walls = e["compute_late_s"], e["over_ranks"]
        assert 0 <= late <= e["decomposition"]["late_compute_s"] + 1e-9, (name, e)
        least, most = (100 * (e["compute_s"] - late) / walls[k] for k in ("wall_max_s", "wall_min_s"))
        assert least - 1e-6 <= e["whole_au_percent"] <= most + 1e-6, (name, e)
        for k in sums:
            sums[k] += e[k]
    if training["epochs"]:
        check_one(name, training["decomposition"], *sums.values())
        shares = training["decomposition"]["mean_over_ranks_percent"]
        assert abs(sum(shares.values()) - 100) < 0.1, (name, shares)
    print(f"{name}: ok")


def cases(data):
    slow = {"storage__store": "throttle+memory", "storage__throttle__latency": 0.002,
            "dataset__data_folder": "/d"}
    for loader in ("pytorch", "tensorflow", "dali", "native_dali", "synthetic"):
        for workers in (0, 1, 3):
            if workers == 0 and loader in ("tensorflow", "native_dali"):
                continue
            fmt = "tfrecord" if loader == "tensorflow" else "npy"
            yield (f"{loader}, {workers} workers", 2, dict(
                slow, fmt=fmt, files=24, reader__data_loader=loader, reader__read_threads=workers,
                reader__preprocess_time=0.001, train__epochs=2,
                framework="tensorflow" if loader == "tensorflow" else "pytorch",
                **({"reader__dont_use_mmap": "true"} if loader == "native_dali" else {})))
    yield "one rank", 1, dict(slow, files=16)
    yield "four ranks", 4, dict(slow, files=48, reader__read_threads=2)
    yield "out of order", 2, dict(slow, files=32, reader__in_order="false", reader__read_threads=3)
    yield "shared memory, pinning", 1, dict(slow, files=12, reader__transport="shared_memory",
                                            reader__pin_thread="true")
    yield "few steps of many", 2, dict(slow, files=64, train__total_training_steps=5,
                                       reader__read_threads=2)
    yield "evaluation", 1, dict(slow, files=12, dataset__num_files_eval=4, workflow__evaluation="true")
    yield "checkpoints", 2, dict(slow, files=48, workflow__checkpoint="true",
                                 checkpoint__steps_between_checkpoints=4, checkpoint__checkpoint_folder="/c")
    yield "no compute", 1, dict(slow, files=12, train__computation_time=0)
    yield "posix, npz", 2, dict(dataset__data_folder=data, files=12, reader__decode="full")


def slow_in_flight(tmp):
    """One of eight samples in flight that takes 300 ms is the slowest, by name; the mean beside it is that of
    whole samples, each of which waits with seven others, and not of their shares of the time."""
    out = os.path.join(tmp, "slow-in-flight")
    stoker("run", *tiny("/d", out, "npy", 40, storage__store="fault+throttle+memory", reader__access="native",
                        reader__queue_depth=8, reader__batch_size=8, storage__throttle__latency=0.004,
                        storage__fault__op="read", storage__fault__nth=1, storage__fault__count=0,
                        storage__fault__path="train/img_27", storage__fault__action="delay",
                        storage__fault__delay=0.3))
    slowest = load(out)["training"]["stragglers"]["slowest_samples"]
    assert slowest[0]["file"].endswith("train/img_27_of_40.npy"), slowest
    assert all(x["times_mean"] > 0 for x in slowest), slowest
    mean = slowest[0]["seconds"] / slowest[0]["times_mean"]
    assert mean > 0.004, (mean, slowest)


def slow_file(tmp):
    """One file that takes 300 ms to open is the slowest sample, by name."""
    out = os.path.join(tmp, "slow-file")
    stoker("run", *tiny("/d", out, "npy", 40, storage__store="fault+memory", storage__fault__op="open",
                        storage__fault__nth=1, storage__fault__count=0, storage__fault__path="train/img_27",
                        storage__fault__action="delay", storage__fault__delay=0.3), "-n", 2)
    s = load(out)["training"]["stragglers"]
    first = s["slowest_samples"][0]
    assert first["file"].endswith("train/img_27_of_40.npy") and first["sample"] == 27, s
    assert 0.295 < first["seconds"] < 2 and first["times_mean"] > 5, s
    times = [x["seconds"] for x in s["slowest_samples"]]
    assert times == sorted(times, reverse=True) and len(times) == 10, s
    assert s["slowest_rank"]["rank"] in (0, 1) and s["slowest_rank"]["host"], s


def interrupted(tmp):
    out = os.path.join(tmp, "interrupted")
    p = subprocess.Popen([STOKER, "run", *tiny("/d", out, "npy", 400, storage__store="throttle+memory",
                                               storage__throttle__latency=0.004, train__epochs=4,
                                               dataset__num_files_train=160)],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert wait_for(lambda: logged(out, "Starting epoch 2"), 60)
    time.sleep(0.1)
    p.send_signal(signal.SIGINT)
    p.wait(30)
    check("interrupted", load(out))


def main():
    with tempfile.TemporaryDirectory() as tmp:
        for i, (name, ranks, keys) in enumerate(cases(os.path.join(tmp, "data"))):
            out = os.path.join(tmp, str(i))
            stoker("run", *tiny(keys.pop("dataset__data_folder"), out, keys.pop("fmt", "npy"),
                                keys.pop("files"), **keys), "-n", ranks)
            check(name, load(out))
        slow_file(tmp)
        slow_in_flight(tmp)
        interrupted(tmp)


if __name__ == "__main__":
    main()

"""Accelerators over time: the emulated ones of each rank, and the real ones through a stand-in for NVIDIA's
management library that is loaded in its place."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import STOKER, load, tiny  # noqa: E402

FAKE = os.path.join(os.path.dirname(STOKER), "tests", "libfake_nvml.so")


def run(tmp, name, library=None, **keys):
    out = os.path.join(tmp, name)
    env = dict(os.environ)
    if library:
        env["LD_LIBRARY_PATH"] = library
    subprocess.run([STOKER, "run", *tiny("/d", out, "npy", 200, storage__store="throttle+memory",
                                         storage__throttle__latency=0.002, train__epochs=2,
                                         train__computation_time=0.006, reader__batch_size=2,
                                         reader__read_threads=0, run__sample_interval=0.05, **keys), "-n", "2"],
                   check=True, stdout=subprocess.DEVNULL, env=env)
    return load(out)


def emulated(result):
    use = result["series"]["accelerator_use"]
    assert len(use["ranks"]) == 2 and len(use["mean"]) == len(use["least"]) == len(use["ranks"][0]), use
    for i, mean in enumerate(use["mean"]):
        of_ranks = [row[i] for row in use["ranks"]]
        assert abs(sum(of_ranks) / 2 - mean) <= 1 and abs(min(of_ranks) - use["least"][i]) <= 1, (i, use)
    # the computation that was asked for; that a thread goes on late is none
    t = result["training"]
    computed = t["steps_per_epoch"] * t["epochs_done"] * result["need"]["computation_s"]
    shown = sum(use["mean"]) / 100 * use["interval_s"]
    assert abs(computed - shown) <= 0.05 * computed + use["interval_s"], (computed, shown)
    assert computed <= 1.01 * sum(e["compute_s"] for e in t["epochs"]), (computed, t["epochs"])


def main():
    with tempfile.TemporaryDirectory() as tmp:
        plain = run(tmp, "plain")
        emulated(plain)
        if not os.path.exists(FAKE):
            print("skipped: the stand-in library is not built here")
            sys.exit(77)
        os.mkdir(os.path.join(tmp, "lib"))
        os.symlink(FAKE, os.path.join(tmp, "lib", "libnvidia-ml.so.1"))
        with_gpus = run(tmp, "gpus", os.path.join(tmp, "lib"))
        a, b = with_gpus["series"]["gpus"]
        assert (a["name"], b["name"], a["driver"]) == ("Stand-in A", "Stand-in B", "999.1"), (a, b)
        assert abs(a["busy_percent"] - 40) < 0.1 and b["busy_percent"] == 0, (a, b)
        assert all(abs(v - 40) <= 0.2 for v in a["busy"]["values"]), a["busy"]
        assert all(abs(v - 10) <= 0.2 for v in a["memory_busy"]["values"]), a["memory_busy"]
        # a tick that comes late has less of the energy, and the next one more
        power = a["power"]["values"]
        assert 285 < sum(power) / len(power) < 315 and sum(200 < v < 400 for v in power) >= 0.8 * len(power), a["power"]
        assert not any(b["power"]["values"]), b
        assert set(a["memory_used"]["values"]) == {5 * 1024}, a["memory_used"]
        assert a["memory_bytes"] == 80 << 30, a
        off = run(tmp, "off", os.path.join(tmp, "lib"), run__sample_gpus="false")
        assert "gpus" not in off["series"], off["series"]["gpus"]


if __name__ == "__main__":
    main()

"""Stores that change while they are measured: burst credit, decay, single waits and phases are planted, seen by the
ranks or hidden by prefetching, and the verdict `steady` must tell what changed, when, and what lasts. Honest runs beside
them must stay clean. Most waits are sleeps of the throttle store, so the cases run side by side."""
# beside one
import concurrent.futures
import os
import pathlib
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import result_facts  # noqa: E402
from loop_device import LoopDevice, Unavailable, join  # noqa: E402
from told import told, verdict  # noqa: E402
from util import attempts, left_out, load, stoker, tiny  # noqa: E402

GROUP = "Storage that changes during the run"
BASE = dict(fmt="npy", reader__access="native", storage__store="throttle+memory", dataset__record_length_bytes=100000)


def throttle(**keys):
    return {f"storage__throttle__{k}": v for k, v in keys.items()}


def delayed(op, nth, count, delay, **keys):
    fault = dict(action="delay", op=op, nth=nth, count=count, delay=delay)
    return dict(storage__store="fault+throttle+memory", **{f"storage__fault__{k}": v for k, v in fault.items()},
                **throttle(**keys))


def level(before, last, **more):
    """A change of the rate from one level to another, samples/s within a fifth."""
    def check(r, s, v):
        assert v["level"] == more.get("verdict", "warn"), v
        assert s["change"] == "level" and not s["hidden"], s
        assert abs(s["before_samples_per_s"] / before - 1) < 0.2, s
        assert abs(s["lasting_samples_per_s"] / last - 1) < 0.2, s
        assert result_facts.told(v["facts"], ["change.lasting"]), v
        assert not r.get("what_if", {}).get("changes"), "a run of two halves predicts nothing"
        if "epoch" in more:
            assert s["epoch"] == more["epoch"], s
        if "cause" in more:
            assert r["limit"]["cause"] == more["cause"], r["limit"]
    return check


def trend(hidden):
    def check(r, s, v):
        assert v["level"] == "warn" and s["change"] == "trend" and s["hidden"] == hidden, (s, v)
        if hidden:
            assert s["last_batch_read_s"] > 1.5 * s["before_batch_read_s"], s
            assert any(f["reason"] == "change.keeps_up" for f in v["facts"]) and s["keeps_up_for_s"] > 0, v
        else:
            assert s["lasting_samples_per_s"] < 0.85 * s["before_samples_per_s"], s
    return check


def stall(length, waited, count=1, cause=None):
    """`waited`: at least so much of it by a rank; 0: hidden."""
    def check(r, s, v):
        assert v["level"] == "warn" and s["change"] == "none" and s["stalls"] == count, (s, v)
        longest = s["longest_stalls"][0]
        assert abs(longest["length_s"] - length) < 0.15, s
        if waited:
            assert longest["waited_s"] > waited, s
        else:
            assert longest["waited_s"] < 0.1 * length and result_facts.told(v["facts"], ["change.stall_hidden"]), s
        said = result_facts.find(v["facts"], "change.stall", "change.stall_hidden", "change.stall_process")
        assert abs(said["length"] - longest["length_s"]) < 1e-6, v
        if cause:
            assert r["limit"]["cause"] == cause and not any("workers" in name for name in result_facts.reasons(result_facts.all_of(r))), r["limit"]
            assert not r.get("what_if", {}).get("changes"), r["what_if"]
    return check


def phases(least, period):
    """The period is right, or not told."""
    def check(r, s, v):
        assert v["level"] == "warn" and s["change"] == "alternating" and s["slow_phases"] >= least, (s, v)
        assert r["limit"]["cause"] == "unsteady", r["limit"]
        assert abs(s.get("period_s", period) / period - 1) < 0.15, s
        said = result_facts.find(v["facts"], "change.alternates")
        assert (said.get("period") is not None) == ("period_s" in s), v
    return check


def without_stall(au):
    """One of two epochs has a stall: AU without it is that of a run without it."""
    def check(r, s, v):
        assert v["level"] == "warn" and s["stalls"] == 1, (s, v)
        said = result_facts.find(v["facts"], "change.without")
        assert said and said["stalls"] == 1 and abs(said["au"] - au) < 2, v
    return check


def with_its_stalls(r, s, v):
    """A rate that lasts has the stops that come again in it; so has AU."""
    assert v["level"] == "warn" and s["stalls"] >= 2, (s, v)
    assert s.get("lasting_samples_per_s", 0) < 150 and s.get("last_au_percent", 0) < 75, s
    assert not result_facts.told(v["facts"], ["change.without"]), v


def not_lasting(r, s, v):
    """What is better for the last part of a run is no rate that lasts."""
    assert s["change"] == "level" and s["last_part_percent"] < 50, s
    assert result_facts.told(v["facts"], ["change.rose"]) and not result_facts.told(v["facts"], ["change.lasting"]), v


def no_empty_sentence(r, s, v):
    assert v["level"] == "warn" and result_facts.told(v["facts"], ["steady.slow_start_rate"]), v


def not_its_phases(r, s, v):
    """Steps of parts of a millisecond: phases of the scheduler are not what limits."""
    assert s["change"] != "alternating" and r["limit"]["cause"] != "unsteady", (s, r["limit"])


def quiet(r, s, v):
    assert s["change"] == "none" and not s["stalls"], (s, v)
    assert not any(name.startswith("change.") for name in result_facts.reasons(v["facts"])), v


PLANTED = {
    "credit of 48 MB at 160 MB/s, then 16 MB/s; steps of 5 ms": (1, level(200, 20, cause="unsteady"), dict(
        files=110, dataset__record_length_bytes=800000, reader__read_threads=4, train__computation_time=0.005,
        **throttle(bandwidth=16e6, burst_bytes=48e6, burst_bandwidth=160e6))),
    "credit of 52 MB at 200 MB/s, then 20 MB/s, where 25 MB/s are needed: the target is met only by the credit": (
        1, level(99, 81, verdict="fail"), dict(
            files=236, dataset__record_length_bytes=250000, reader__read_threads=2, train__computation_time=0.02,
            **throttle(bandwidth=20e6, burst_bytes=52e6, burst_bandwidth=200e6))),
    "credit that ends in the second of two epochs, 2 ranks": (2, level(198, 76, epoch=2, cause="unsteady"), dict(
        files=200, dataset__record_length_bytes=200000, reader__read_threads=2, train__epochs=2,
        train__computation_time=0.02, **throttle(bandwidth=15e6, burst_bytes=45e6, burst_bandwidth=150e6))),
    "reads take 50 ms longer from the 190th on": (1, level(199, 40, cause="unsteady"), dict(
        files=280, reader__read_threads=2, train__computation_time=0.01,
        **delayed("read", 190, 0, 0.05, bandwidth=200e6))),
    "the first 80 of 600 reads take 40 ms longer": (1, level(50, 197), dict(
        files=600, reader__read_threads=2, train__computation_time=0.01,
        **delayed("read", 1, 80, 0.04, bandwidth=200e6))),
    "the first 80 reads take 40 ms longer, and everything stops for 0.8 s every 1.6 s": (1, with_its_stalls, dict(
        files=500, reader__read_threads=2, train__computation_time=0.01,
        **delayed("read", 1, 80, 0.04, bandwidth=200e6, stall=0.8, stall_at=2.2, stall_every=1.6))),
    "the first 120 of 300 reads take 40 ms longer": (1, not_lasting, dict(
        files=300, reader__read_threads=2, train__computation_time=0.01,
        **delayed("read", 1, 120, 0.04, bandwidth=200e6))),
    "60 MB/s that halve every 1.5 s": (1, trend(False), dict(
        files=380, dataset__record_length_bytes=200000, reader__read_threads=2, train__computation_time=0.005,
        **throttle(bandwidth=60e6, bandwidth_half_life=1.5))),
    "25 MB/s that halve every 6 s, nothing but reading": (1, trend(False), dict(
        files=420, dataset__record_length_bytes=200000, reader__read_threads=4, train__computation_time=0.001,
        **throttle(bandwidth=25e6, bandwidth_half_life=6))),
    "80 MB/s that halve every 4 s, hidden by 20 ms of computation": (1, trend(True), dict(
        files=520, dataset__record_length_bytes=200000, reader__read_threads=4, train__computation_time=0.02,
        **throttle(bandwidth=80e6, bandwidth_half_life=4))),
    "everything stops once for 0.8 s, steps of 10 ms": (1, stall(0.8, 0.6, cause="stall"), dict(
        files=300, reader__read_threads=4, train__computation_time=0.01,
        **throttle(bandwidth=100e6, stall=0.8, stall_at=0.7))),
    "one of 600 reads takes 1.7 s, steps of 10 ms": (1, stall(1.7, 1.3, cause="stall"), dict(
        files=300, reader__read_threads=2, train__computation_time=0.01,
        **delayed("read", 260, 1, 1.7, bandwidth=200e6))),
    "everything stops once for 0.6 s, nothing but reading at 15 MB/s": (1, stall(0.6, 0.4), dict(
        files=300, reader__read_threads=4, train__computation_time=0, **throttle(bandwidth=15e6, stall=0.6, stall_at=0.9))),
    "one read takes 0.7 s, hidden by 32 prefetched batches": (1, stall(0.7, 0), dict(
        files=300, reader__read_threads=8, reader__prefetch_size=32, train__computation_time=0.03,
        **delayed("read", 170, 1, 0.7, bandwidth=200e6))),
    "everything stops once for 1.4 s, 4 ranks": (4, stall(1.4, 1.1, cause="stall"), dict(
        files=400, reader__read_threads=2, train__computation_time=0.02,
        **throttle(bandwidth=100e6, stall=1.4, stall_at=0.5))),
    "everything stops for 0.5 s, twice": (1, stall(0.5, 0.3, count=2, cause="stall"), dict(
        files=520, reader__read_threads=4, train__computation_time=0.005,
        **throttle(bandwidth=100e6, stall=0.5, stall_at=0.6, stall_every=1.2))),
    "one open takes 0.9 s in a run without workers": (1, stall(0.9, 0.8, cause="stall"), dict(
        files=200, reader__read_threads=0, train__computation_time=0.01, **delayed("open", 321, 1, 0.9, bandwidth=100e6))),
    "one read takes 1.1 s between two checkpoints": (1, stall(1.1, 0.8), dict(
        files=400, reader__read_threads=2, train__computation_time=0.01, workflow__checkpoint="true",
        checkpoint__steps_between_checkpoints=50, checkpoint__model_size_bytes=2000000, checkpoint__fsync="false",
        **delayed("read", 250, 1, 1.1, bandwidth=100e6))),
    "everything stops for 0.38 s, every 2 s; the second of three times beside the end of an epoch": (1, phases(2, 2), dict(
        files=400, train__epochs=2, reader__read_threads=1, train__computation_time=0.018,
        **throttle(latency=0.005, stall=0.38, stall_every=2))),
    "everything stops once for 1.5 s in the second of two epochs; AU is 99 % without": (1, without_stall(99), dict(
        files=200, train__epochs=2, reader__read_threads=1, train__computation_time=0.02,
        **throttle(latency=0.002, stall=1.5, stall_at=3.2))),
    "computation of 0 s, workers that start in 0.8 s, 9 steps left out": (1, no_empty_sentence, dict(
        files=120, reader__read_threads=2, train__computation_time=0, train__epochs=3, reader__worker_start_time=0.4,
        output__metric__exclude_start_steps=9, **throttle(latency=0.008))),
    "4 KiB from memory, steps of 0.2 ms": (1, not_its_phases, dict(
        files=3000, dataset__record_length_bytes=4096, reader__read_threads=2, train__computation_time=0.0002,
        storage__store="memory")),
    "everything stops for 0.15 s of every 0.5 s": (1, phases(3, 0.5), dict(
        files=600, reader__read_threads=2, train__computation_time=0.005,
        **throttle(bandwidth=200e6, stall=0.15, stall_at=0.3, stall_every=0.5))),
}
HONEST = {
    "nothing but reading, 4 workers": (1, dict(files=200, reader__read_threads=4, **throttle(bandwidth=15e6))),
    "computation alone": (1, dict(files=200, reader__read_threads=2, train__computation_time=0.02,
                                  **throttle(bandwidth=100e6))),
    "exponential latencies": (1, dict(files=300, reader__read_threads=4, **throttle(
        latency="{type: exponential, scale: 0.02}"))),
    "random computation": (1, dict(files=250, reader__read_threads=4, train__computation_time="{mean: 0.02, stdev: 0.008}",
                                   **throttle(bandwidth=15e6))),
    "random sizes": (1, dict(files=300, reader__read_threads=4, dataset__record_length_bytes_stdev=50000,
                             **throttle(bandwidth=15e6))),
    "evaluations between epochs": (1, dict(
        files=120, train__epochs=3, workflow__evaluation="true", dataset__num_files_eval=40, evaluation__eval_time=0.005,
        reader__read_threads=4, **throttle(bandwidth=20e6))),
    "checkpoints every 40 steps": (1, dict(
        files=320, reader__read_threads=4, workflow__checkpoint="true", checkpoint__steps_between_checkpoints=40,
        checkpoint__model_size_bytes=4000000, checkpoint__fsync="false", train__computation_time=0.005,
        **throttle(bandwidth=20e6))),
    "a first read that takes 0.8 s": (1, dict(files=200, reader__read_threads=4, train__computation_time=0.015,
                                              **delayed("read", 1, 4, 0.8, bandwidth=100e6))),
    "hidden reads whose latency varies by half": (1, dict(
        files=300, reader__read_threads=2, train__computation_time=0.02, **throttle(latency="{type: exponential, scale: 0.007}"))),
    "hidden reads at 60 % of the bandwidth, random sizes": (1, dict(
        files=300, reader__read_threads=2, train__computation_time=0.02, dataset__record_length_bytes_stdev=50000,
        **throttle(bandwidth=17e6))),
    "4 ranks": (4, dict(files=480, reader__read_threads=2, train__computation_time=0.01,
                        **throttle(bandwidth=60e6, latency=0.001))),
}


def run(tmp, name, ranks, keys, attempt):
    tag = "".join(c for c in name if c.isalnum())[:40] + str(attempt)
    out = tmp / tag
    folder = dict(checkpoint__checkpoint_folder=tmp / f"{tag}.save") if "workflow__checkpoint" in keys else {}
    stoker("run", "-n", ranks, *tiny(f"/{tag}", out, **{**BASE, **keys, **folder}))
    r = load(out)
    return r, r["training"]["steadiness"], next(v for v in r["verdicts"] if v["check"] == "steady")


def once(tmp, name, ranks, check, keys, attempt):
    r, s, v = run(tmp, name, ranks, keys, attempt)
    try:
        check(r, s, v)
    except AssertionError as e:
        return False, (r, str(e)[:900])
    return True, (r, "")


def disk_held_back(wrong):
    """The limit of a real block device is lowered in the middle."""
    def one(attempt):
        with LoopDevice(200) as d:
            groups = d.group("blkio", blkio__throttle__read_bps_device=f"{d.number()} {60 << 20}")
            argv = tiny(d.mount + "/data", d.mount + "/out", fmt="npy", files=140, dataset__record_length_bytes=1 << 20,
                        reader__access="native", reader__read_threads=2, train__computation_time=0.01)
            stoker("generate", *tiny(d.mount + "/data", None, fmt="npy", files=140, dataset__record_length_bytes=1 << 20))
            if not groups:
                raise Unavailable("there is no control group for block devices (version 1)")
            d.cold()
            file = os.path.join(groups, "blkio.throttle.read_bps_device")

            def lower():
                time.sleep(1.2)
                pathlib.Path(file).write_text(f"{d.number()} {15 << 20}")

            t = threading.Thread(target=lower)
            t.start()
            stoker("run", *argv, "workflow.generate_data=false", preexec_fn=join([groups]))
            t.join()
            r = load(d.mount + "/out")
            s, v = r["training"]["steadiness"], verdict(r, "steady")
            good = s["change"] == "level" and s.get("lasting_samples_per_s", 0) < 25 and "fell" in v
            return good, v
    try:
        right, said = attempts("limit of a disk lowered", one)
    except Unavailable as e:
        left_out(f"the limit of a disk: {e}")
        return
    told(GROUP, "a disk of 60 MiB/s is held to 15 MiB/s after 1.2 s", said)
    print(f"{'ok' if right else 'MISSED':7}a disk held back: {said}")
    if not right:
        wrong.append("a disk held back")


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        cases = [(n, ranks, check, keys) for n, (ranks, check, keys) in PLANTED.items()]
        cases += [(n, ranks, quiet, keys) for n, (ranks, keys) in HONEST.items()]
        with concurrent.futures.ThreadPoolExecutor(4) as ex:
            first = list(ex.map(lambda c: once(tmp, *c, 0), cases))
        for case, made in zip(cases, first):
            if not made[0]:
                print(f"first attempt: {made[1][1]}")
            right, (r, why) = attempts(case[0], lambda n, c=case: once(tmp, *c, n), made)
            said = verdict(r, "steady")
            if case[2] is not quiet:
                told(GROUP, case[0], said)
                told(GROUP, case[0] + " (what limits it)", r["limit"]["text"])
            print(f"{'ok' if right else 'MISSED':7}{case[0]}: {said}\n       {r['limit']['text']}" + ("" if right else f"\n{why}"))
            if not right:
                wrong.append(case[0])
    disk_held_back(wrong)
    assert not wrong, wrong


main()

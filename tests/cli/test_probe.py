"""run.probe: what it measures on stores of known law, how cold it is, and that nothing that goes wrong in it is lost
or hangs."""
# takes 49 s
# tier: long
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, STOKER, attempts, left_out, load, stoker, tiny  # noqa: E402

MEMORY = dict(storage__store="throttle+memory", fmt="npy", files=64, run__probe="true", run__probe_time=1.6)
SLOWER = 4  # all times of a repeated attempt: a pause of the machine takes less of a point


def probe(tmp, status=0, **keys):
    out = os.path.join(tmp, "out")
    done = stoker("run", "-v", *tiny(os.path.join(tmp, "data"), out, keys.pop("fmt", "npy"), keys.pop("files", 64), **keys),
                  status=status)
    result = load(out)
    assert result["status"] == "complete", (result["status"], done.stderr)
    return result, result["probe"], done.stdout


def rates(points, what="samples_per_s"):
    return {p["readers"]: p[what] for p in points}


def slowness(n):
    return SLOWER if n else 1


def judged(case, once):
    """Measures times, as `attempts` does; under a sanitizer, which spoils them, the paths are run once."""
    if SANITIZED:
        once(0)
        left_out(f"the times of {case}: a sanitizer spoils them")
        return
    right, told = attempts(case, once)
    assert right, (case, told)


def near(a, b, part=0.12):
    return abs(a - b) <= part * b


def independent_readers(tmp, n):
    t = slowness(n)
    _, p, text = probe(tmp, **{**MEMORY, "run__probe_time": 1.6 * t}, storage__throttle__open_latency=0.012 * t)
    r = rates(p["points"])
    assert p["done"] and p["cold"] and "why" not in p or p["why"] is None, p
    assert list(r) == [1, 2, 4, 8] and p["run_readers"] == 1, p
    assert " samples/s with 1 reader, " in text and "(the run had 1)" in text, text
    for at in p["points"]:
        assert at["samples"] <= at["opens"] <= at["samples"] + at["readers"], at
        assert at["bytes"] >= 4096 * at["samples"] and at["requests"] >= at["samples"], at
    # a point of 0.4 s has some 33 opens a reader, the last of which may be waited for
    return all(near(r[k], k * r[1]) and near(r[k], k / (0.012 * t)) for k in r), r


def one_queue(tmp, n):
    t = 0.006 * slowness(n)
    _, p, _ = probe(tmp, **{**MEMORY, "run__probe_time": 1.6 * slowness(n)}, storage__throttle__open_latency=t,
                    storage__throttle__open_concurrency=2)
    r, each = rates(p["points"]), {q["readers"]: q["open_s"] / q["opens"] for q in p["points"]}
    return (near(r[1], 1 / t) and all(near(r[k], 2 / t) for k in (2, 4, 8)) and near(each[1], t) and
            near(each[8], 4 * t)), (r, each)


def shared_bandwidth(tmp, n):
    t = slowness(n)
    # seven points share the time
    _, p, _ = probe(tmp, **{**MEMORY, "run__probe_time": 2.8 * t}, storage__throttle__bandwidth=8e6 / t,
                    storage__throttle__stream_bandwidth=2e6 / t,
                    dataset__record_length_bytes=16384, reader__read_threads=3, reader__access="native")
    r = rates(p["points"], "bytes_per_s")
    assert list(r) == [1, 2, 4, 8, 16] and p["run_readers"] == 3, p
    sized = p["sized"]
    assert [q["readers"] for q in sized] == [1, 16] and all(q["samples"] == 0 for q in sized), sized
    # 4 KiB in place of 16 and a header: the same bytes in smaller requests
    for q in sized:
        assert q["bytes"] == 4096 * q["requests"] and q["requests"] <= 8 * q["opens"], q
    return (near(r[1], 2e6 / t) and near(r[2], 4e6 / t) and all(near(r[k], 8e6 / t) for k in (4, 8, 16)) and
            near(sized[0]["bytes_per_s"], 2e6 / t) and near(sized[1]["bytes_per_s"], 8e6 / t)), (r, sized)


def requests_a_second(tmp, n):
    t = slowness(n)
    _, p, _ = probe(tmp, **{**MEMORY, "run__probe_time": 1.6 * t}, storage__throttle__iops=250 / t, reader__access="native",
                    dataset__record_length_bytes=65536)
    r = rates(p["points"] + p["sized"][1:], "requests_per_s")
    big, small = p["points"][-1], p["sized"][1]
    assert small["bytes"] / small["requests"] < big["bytes"] / big["requests"] / 3, (big, small)
    return all(near(r[k], 250 / t) for k in r) and near(small["requests_per_s"], 250 / t), (r, small)


def all_ways_to_read(tmp):
    """Every format and way of reading comes to an end, with samples."""
    ways = [dict(fmt=f) for f in ("npz", "hdf5", "tfrecord", "png", "jpeg", "csv", "indexed_binary")]
    ways += [dict(fmt="tfrecord", framework="tensorflow", reader__data_loader="tensorflow",
                  dataset__num_samples_per_file=5),
             dict(fmt="npy", reader__data_loader="native_dali", reader__dont_use_mmap="true"),
             dict(fmt="npz", reader__read_type="memory", dataset__num_samples_per_file=3),
             dict(fmt="npy", reader__access="native", reader__queue_depth=4, reader__read_threads=2),
             dict(fmt="mmap_indexed_binary", storage__store="posix"),
             dict(fmt="npy", run__measure="none")]
    for way in ways:
        # a point of 40 ms may pass before its threads have a processor; one of 0.4 s may not
        for seconds in (0.2, 2):
            keys = dict(MEMORY, storage__store="memory", run__probe_time=seconds, files=16) | way
            _, p, _ = probe(tmp, **keys)
            assert p["done"], (way, p)
            if all(q["samples"] > 0 for q in p["points"]):
                break
        assert all(q["samples"] > 0 for q in p["points"]), (way, p)
        assert p["points"][-1]["readers"] >= 4 * p["run_readers"], (way, p)
        if way.get("reader__queue_depth"):
            assert p["run_readers"] == 8, p


def page_cache(tmp):
    """Cold where the run was cold, and no probe of the page cache in place of the storage."""
    keys = dict(files=40, dataset__record_length_bytes=262144, run__probe="true", run__probe_time=0.4)
    if subprocess.run(["stat", "-f", "-c", "%T", tmp], capture_output=True, text=True).stdout.strip() == "tmpfs":
        left_out(f"the page cache: '{tmp}' lies in memory")
        return
    _, p, _ = probe(tmp, **keys, storage__page_cache="cold_epochs")
    assert p["done"] and p["cold"] and p["evict_s"] > 0, p
    # 40 files are soon read: then the point ends, so that no sample is read from the page cache
    assert all(q["samples"] <= 40 for q in p["points"]), p
    _, p, _ = probe(tmp, **keys, storage__page_cache="keep", workflow__generate_data="false")
    assert p["done"] and not p["cold"] and p["evict_s"] == 0, p
    # evicted by hand: the run reads from the disk, and leaves everything in the page cache
    for f in os.scandir(os.path.join(tmp, "data", "train")):
        fd = os.open(f.path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
    _, p, text = probe(tmp, **keys, storage__page_cache="keep", workflow__generate_data="false")
    assert not p["done"] and "set it to cold" in p["why"] and p["points"] == [], p
    assert "not done; training read" in " ".join(text.split()), text


def nothing_is_lost(tmp):
    _, p, _ = probe(tmp, fmt="synthetic", run__probe="true")
    assert not p["done"] and "reads nothing" in p["why"], p
    _, p, _ = probe(tmp, workflow__train="false", workflow__checkpoint="true", run__probe="true",
                    workflow__generate_data="false", checkpoint__num_checkpoints_write=1,
                    checkpoint__num_checkpoints_read=0, model__model_size_bytes=4096,
                    checkpoint__checkpoint_folder=os.path.join(tmp, "checkpoints"))
    assert not p["done"] and "workflow.train" in p["why"], p
    done = stoker("run", *tiny(os.path.join(tmp, "data"), os.path.join(tmp, "out"), "npy", 16, storage__store="memory"))
    assert "probe" not in load(os.path.join(tmp, "out")) and "probe" not in done.stdout, done.stdout
    # what fails after the training of 64 samples: 64 opens and those of the check
    keys = dict(MEMORY, storage__store="fault+memory", run__probe_time=0.2, storage__fault__op="open",
                storage__fault__nth=400)
    _, p, _ = probe(tmp, **keys)
    assert not p["done"] and "Input/output error" in p["why"], p


def a_request_that_hangs(tmp):
    begin = time.monotonic()
    keys = dict(MEMORY, storage__store="fault+memory", run__probe_time=0.4, storage__fault__op="open",
                storage__fault__nth=400, storage__fault__action="delay", storage__fault__delay=60)
    _, p, _ = probe(tmp, **keys)
    took = time.monotonic() - begin
    assert not p["done"] and "did not return" in p["why"], p
    assert took < 20, took


def stripped(keys, **more):
    return {k: v for k, v in keys.items() if k not in ("fmt", "files")} | more


def stopped_by_a_signal(tmp):
    out, progress = os.path.join(tmp, "out"), os.path.join(tmp, "progress")
    open(progress, "w").close()
    with open(os.path.join(tmp, "lines"), "w") as err:
        run = subprocess.Popen(
            [STOKER, "run", *tiny(os.path.join(tmp, "data"), out, "npy", 64,
                                  **stripped(MEMORY, run__probe_time=60, storage__throttle__latency=0.001)),
             "--progress", "json", "--progress-file", progress, "--progress-interval", "0.1"],
            stdout=subprocess.DEVNULL, stderr=err)
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with open(progress) as f:
            if '"phase":"probe"' in f.read().replace(" ", ""):
                break
        time.sleep(0.1)
    time.sleep(0.3)
    run.send_signal(signal.SIGINT)
    begin = time.monotonic()
    run.wait(20)
    assert time.monotonic() - begin < 8
    result = load(out)
    assert result["status"] == "complete" and not result["probe"]["done"], result["probe"]
    assert "stopped" in result["probe"]["why"], result["probe"]


def by_itself(tmp):
    """A run that cannot tell what more workers would do probes, unless it is short, told not to, or one of many; where what
    was read cold is to stay in the page cache, it says which keys would tell."""
    keys = dict(storage__store="throttle+memory", storage__throttle__latency=0.004, fmt="npy", files=200)

    def run(name, **more):
        out = os.path.join(tmp, name)
        keys_of = dict(keys, **more)
        done = stoker("run", *[a for a in tiny(os.path.join(tmp, "data"), out, keys_of.pop("fmt"), keys_of.pop("files"), **keys_of)
                               if a != "-q"])
        return load(out), done.stdout

    def own(n):
        result, text = run("own")
        p = result.get("probe", {"points": []})
        if p["points"]:
            assert p["own"] and " (run.probe=false: none)" in text and "run.probe=true" not in result["limit"]["text"], (p, text)
            assert result["training"]["decomposition"]["wall_s"] > 1, result["training"]["decomposition"]
            assert sum(q["seconds"] for q in p["points"] + p["sized"]) < 6, p
        told = text.partition("to change it")[2].partition("\n")[0]
        return [q["readers"] for q in p["points"]] == [1, 2, 4, 8] and p["done"] and "reader.read_threads" in told, text

    judged("by_itself", own)
    audited = stoker("audit", "--json", os.path.join(tmp, "own"))
    assert '"check": "figures"' not in audited.stdout, audited.stdout

    for name, more in (("never", dict(run__probe="false")), ("short", dict(files=40))):
        result, _ = run(name, **more)
        assert "probe" not in result, result["probe"]
    many = os.path.join(tmp, "many")
    stoker("run", "--repeat", 2, *tiny(os.path.join(tmp, "data"), many, **keys))
    assert all("probe" not in load(os.path.join(many, k)) for k in ("1", "2"))
    # all but computing is a few percent: what more workers would do is not asked
    judged("keeps_up", lambda n: (lambda p: (p is None, p))(
        run("told", storage__throttle__latency=0, train__computation_time=0.02)[0].get("probe")))

    if subprocess.run(["stat", "-f", "-c", "%T", tmp], capture_output=True, text=True).stdout.strip() == "tmpfs":
        left_out(f"the page cache: '{tmp}' lies in memory")
        return
    files = dict(storage__store="throttle+posix")
    shutil.rmtree(os.path.join(tmp, "data"), ignore_errors=True)
    run("made", **files, workflow__train="false")
    for f in os.scandir(os.path.join(tmp, "data", "train")):
        fd = os.open(f.path, os.O_RDONLY)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
    result, _ = run("kept", **files, workflow__generate_data="false")
    assert "probe" not in result, result["probe"]
    said = result["limit"]["text"]
    assert "run.probe=true" not in said or "run.probe=true storage.page_cache=cold_epochs can tell" in said, said
    judged("cold", lambda n: (lambda p: (bool(p and p["own"] and p["cold"]), p))(
        run("cold", **files, workflow__generate_data="false", storage__page_cache="cold")[0].get("probe")))


def main():
    with tempfile.TemporaryDirectory() as tmp:
        all_ways_to_read(tmp)
    for case in (by_itself, page_cache, nothing_is_lost, a_request_that_hangs, stopped_by_a_signal):
        with tempfile.TemporaryDirectory() as tmp:
            case(tmp)
    for case in (independent_readers, one_queue, shared_bandwidth, requests_a_second):
        with tempfile.TemporaryDirectory() as tmp:
            judged(case.__name__, lambda n: case(tmp, n))


if __name__ == "__main__":
    main()

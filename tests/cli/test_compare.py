"""The comparison of results, on real runs: what the sides did not measure alike is said before any number, copies of a
run are no repetitions, and there is no test from fewer than three independent runs on each side."""
# tier: long
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "truth"))
from told import told  # noqa: E402
from util import SOURCE, STOKER, attempts, left_out, load, stoker, tiny  # noqa: E402

STUDY = SOURCE / "tests/data/seed-study/results"
BASE = dict(files=48, fmt="npy", dataset__record_length_bytes=40000, reader__batch_size=1, train__computation_time=0.003)
SLOW = dict(storage__store="throttle+memory", storage__throttle__bandwidth="40e6")


def run(tmp, name, *more, program=None, **keys):
    out = tmp / name
    arguments = ["run", *map(str, tiny(tmp / "data", out, **{**BASE, **keys})), *more]
    if program:
        subprocess.run([program, *arguments], check=True, capture_output=True)
    else:
        stoker(*arguments)
    return out


def compare(a, b, *flags, status=0):
    return json.loads(stoker("compare", "--json", *flags, a, b, status=status).stdout)


def tested(c):
    return [m["measure"] for m in c["measures"] if "p" in m]


def no_test(c, words, situation, where="not_comparable"):
    """No p, no interval; a sentence with all the words, and in the text it is there before the first number."""
    assert not tested(c) and "p =" not in c["text"], c
    assert all(m["verdict"] == "unknown" and m["no_test"] for m in c["measures"]), c
    said_first(c, words, situation, where)


def said_first(c, words, situation, where="warnings"):
    hits = [s for s in c[where] if all(w in s for w in words)]
    assert hits, (words, c[where], c["not_comparable"], c["warnings"])
    text = " ".join(c["text"].split())  # lines are wrapped
    number = text.find("AU, whole run (%)")
    assert 0 <= text.find(" ".join(hits[0].split())) < number or number < 0, c["text"]
    told("compare", situation, hits[0])


def both(a, b):
    c = compare(a, b)
    c["text"] = stoker("compare", a, b).stdout
    assert "significant" not in c["text"], c["text"]
    return c


def side(tmp, name, *results):
    """A folder of results, each a copy of what is there."""
    folder = tmp / name
    folder.mkdir()
    for i, r in enumerate(results):
        shutil.copytree(r, folder / f"{i}")
    return folder


def copies(tmp, a, b, others):
    """One run, however often and by whatever name it is there."""
    same = "Both sides are the same run"
    no_test(both(a, a), [same], "a run compared with itself")
    stoker("compare", "--check", a, a, status=3)
    copy = tmp / "copy"
    shutil.copytree(a, copy)
    no_test(both(a, copy), [same], "a run compared with a copy of its folder")
    link = tmp / "link"
    link.symlink_to(a)
    no_test(both(link, a), [same], "a run compared with a link to it")
    edited = tmp / "edited"
    shutil.copytree(a, edited)
    for name in os.listdir(edited):  # as one who hides it would
        if name.endswith(".json"):
            text = (edited / name).read_text().replace(load(a)["run_id"], "0" * 32).replace(load(a)["start"][:19], "2026-01-01T00:00:00")
            (edited / name).write_text(text)
    no_test(both(a, edited), [same], "a copy of a run with another number and another date written into it")
    dlio = next((STUDY / "6").rglob("summary.json")).parent
    shutil.copytree(dlio, tmp / "dlio")
    no_test(both(dlio, tmp / "dlio"), [same], "a result of DLIO compared with a copy of it")

    three = side(tmp, "three", a, a, a)
    others = side(tmp, "others", *others[1:])
    c = both(three, others)
    assert c["runs"] == [1, 2] and c["copies_not_counted"] == [2, 0]
    no_test(c, ["first side has 3 results of 1 run"], "three copies of one run against two runs", "warnings")
    assert "at least 3 independent runs on each side; there are 1 and 2" in c["text"]
    inside = side(tmp, "inside", a)
    (inside / "again").symlink_to(a)  # links below a folder are not followed
    assert both(inside, b)["runs"] == [1, 1]
    (tmp / "way").symlink_to(inside)
    assert both(tmp / "way" / "0", inside)["not_comparable"][0].startswith(same)
    mixed = side(tmp, "mixed", a, b)
    no_test(both(mixed, b), ["1 run, or copies of it, is on both sides"], "one run on both sides, a second on one of them")

    # repetitions of a report
    stoker("report", three, others, "-o", tmp / "r.html")
    text = stoker("report", three, b, "-o", tmp / "r.html").stdout
    assert "2 results are each a copy of another one" in text, text
    told("compare", "a report over three copies of one run and another run", [s for s in text.splitlines() if "copy" in s][0])
    assert "copy of another" not in stoker("report", others, "-o", tmp / "r.html").stdout


def tests(tmp, fast, slow):
    c = both(side(tmp, "fast", *fast), side(tmp, "slow", *slow))
    m = {x["measure"]: x for x in c["measures"]}
    assert c["runs"] == [3, 3] and not c["not_comparable"], c
    assert m["AU, whole run"]["verdict"] == "worse" and m["AU, whole run"]["p"] < 0.05, m
    assert m["wall time of an epoch"]["verdict"] == "worse" and m["AU, whole run"]["values_are"] == "runs"
    stoker("compare", "--check", tmp / "fast", tmp / "slow", status=3)
    stoker("compare", "--check", tmp / "slow", tmp / "fast")
    checks(tmp, fast, slow)
    told("compare", "three runs against three with an eighth of the bandwidth", [s for s in c["text"].splitlines() if "worse" in s][0])
    c = both(side(tmp, "two", *fast[:2]), side(tmp, "two-slow", *slow[:2]))
    assert not tested(c) and "needs at least 3 independent runs on each side; there are 2 and 2" in c["text"]
    told("compare", "two runs a side", c["measures"][0]["no_test"])
    e = stoker("compare", "--check", tmp / "two", tmp / "two-slow", status=3).stderr
    assert "cannot be told: a test needs at least 3" in e and "exit status 3" in e, e
    c = both(fast[0], slow[0])
    assert not tested(c) and c["measures"][0]["values_are"] == "epochs"
    for of, out in (("first", fast[0]), ("second", slow[0])):  # the number of the run's own result, not the mean of its epochs
        whole = load(out)["training"]["whole_run_au_percent"]
        assert c["measures"][0]["measure"] == "AU, whole run" and abs(c["measures"][0][of]["mean"] - whole) < 1e-6, (whole, c["measures"][0])
    told("compare", "two single runs of three epochs each", c["measures"][0]["no_test"])


def checks(tmp, fast, slow):
    """The check goes by the whole run, and says which measure, by how much, and what it cannot exclude."""
    c = compare(tmp / "fast", tmp / "slow", "--check", status=3)
    whole = [m for m in c["measures"] if m["measure"] == "AU, whole run"][0]
    loss = 100 * (1 - whole["second"]["mean"] / whole["first"]["mean"])
    assert c["check"]["told"] and not c["check"]["passed"] and loss > 10, c["check"]
    assert c["check"]["why"].startswith(f"AU, whole run is worse by {loss:.3g} %"), (loss, c["check"])
    e = stoker("compare", "--check", tmp / "fast", tmp / "slow", status=3).stderr
    assert f"worse by {loss:.3g} %" in e and "the tolerance is 2 %" in e and e.endswith("exit status 3\n"), e
    told("compare --check", "three runs against three with an eighth of the bandwidth", e.strip().split("': ")[-1])
    # what is allowed: more than either measure lost
    wall = [m for m in c["measures"] if m["measure"] == "wall time of an epoch"][0]
    lost = max(loss, 100 * (wall["second"]["mean"] / wall["first"]["mean"] - 1))
    room = max(-100 * whole["change_low_95"] / whole["first"]["mean"], 100 * wall["change_high_95"] / wall["first"]["mean"])
    assert room > lost, (room, lost)
    stoker("compare", "--check", "--tolerance", f"{room + 1:.0f}%", tmp / "fast", tmp / "slow")
    # allowed is what was lost, but the intervals leave room for more
    c = compare(tmp / "fast", tmp / "slow", "--check", "--tolerance", f"{(lost + room) / 2}", status=3)
    assert not c["check"]["told"] and not c["check"]["passed"] and "leave room for a loss of" in c["check"]["why"], c["check"]
    told("compare --check", "a loss below the tolerance, whose interval ends above it", c["check"]["why"])
    stoker("compare", "--check", "--tolerance", f"{loss / 2:.2f}", tmp / "fast", tmp / "slow", status=3)
    # half against half of the same kind
    said = stoker("compare", "--check", "--tolerance", "1000", side(tmp, "a-half", *fast), side(tmp, "other-half", *slow)).stdout
    assert "Check passed: no measure of the whole run is worse by more than 1000 %" in said, said
    assert "leave room for a loss of" in said, said
    for words, message in ((["--tolerance", "3"], "add --check"), (["--check", "--tolerance", "-1"], "'-1' is not a number from 0 to 10000"),
                           (["--check", "--tolerance", "much"], "'much' is not a number")):
        assert message in stoker("compare", *words, tmp / "fast", tmp / "slow", status=2).stderr, words


def interrupted(tmp):
    out = tmp / "interrupted"
    arguments = [STOKER, "run", *map(str, tiny(tmp / "data", out, **{**BASE, "train__epochs": 200}))]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    log, end = out / "dlio.log", time.monotonic() + 20
    while not (log.exists() and "Starting epoch 3" in log.read_text()) and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.wait(20)
    return out


def other_build(tmp):
    version = stoker("--version").stdout.split()[1]
    other = version[:-2] + ("00" if not version.endswith("00") else "11")
    (tmp / "stoker").write_bytes(pathlib.Path(STOKER).read_bytes().replace(version.encode(), other.encode()))
    (tmp / "stoker").chmod(0o755)
    return tmp / "stoker", version, other


def unlike(tmp, a):
    """Each pair differs in one thing, that is said first, with both values."""
    b = run(tmp, "window", "output.metric.exclude_end_steps=20")
    no_test(both(a, b), ["different steps", "output.metric.exclude_end_steps: 0 | 20"], "20 of 48 steps left out on the second side")
    b = run(tmp, "dlio-way", "compat.dlio=true")
    no_test(both(a, b), ["different steps", "compat.dlio: false | true"], "compat.dlio on the second side")
    b = run(tmp, "in-memory", storage__store="memory")
    no_test(both(a, b), ["different places", "second from a dataset in memory"], "a disk against a dataset in memory")
    b = interrupted(tmp)
    no_test(both(a, b), ["1 of 1 run of the second side ended early"], "a run that was interrupted in its third epoch of 200")
    folder = side(tmp, "no-repetitions", a, run(tmp, "threads", reader__read_threads=3))
    no_test(both(folder, a), ["first side are not repetitions", "reader.read_threads: 1 | 3"], "runs with 1 and 3 workers on one side")

    b = run(tmp, "bytes", dataset__data_folder=tmp / "data-bytes", dataset__record_length_bytes=90000)
    said_first(both(a, b), ["different data", "dataset.record_length_bytes: 40000 | 90000"], "samples of 40,000 and of 90,000 bytes")
    b = run(tmp, "format", dataset__data_folder=tmp / "data-format", fmt="npz")
    said_first(both(a, b), ["different data", "dataset.format: npy | npz"], "npy against npz")
    b = run(tmp, "none", "run.measure=none")
    said_first(both(a, b), ["measured in different ways", "run.measure: all | none"], "run.measure=none on the second side")
    b = run(tmp, "ranks", "-n", "3")
    c = both(a, b)
    said_first(c, ["1 rank on 1 host | 3 ranks on 1 host"], "1 and 3 ranks")
    each = [m for m in c["measures"] if m["measure"] == "throughput of one accelerator, whole run"]
    assert each and abs(each[0]["second"]["mean"] - load(b)["training"]["whole_run_samples_per_s"] / 3) < 1e-6, each
    b = run(tmp, "epochs", train__epochs=2)
    said_first(both(a, b), ["number of epochs", "1 | 2"], "one epoch against two")
    program, version, other = other_build(tmp)
    b = run(tmp, "version", program=program)
    said_first(both(a, b), ["different versions", version, other], "the second side measured by another build")
    b = run(tmp, "queue", "reader.prefetch_size=64", "reader.read_threads=2", train__computation_time=0.01)
    if [v for v in load(b)["verdicts"] if v["check"] == "steady"][0]["level"] in ("warn", "fail"):
        said_first(both(a, b), ["1 of 1 run of the second side was not steady"], "the second side's steps were all read ahead")
    said_first(both(a, next((STUDY / "6").rglob("summary.json")).parent), ["One side was made by DLIO"], "Stoker against DLIO")


def lines(a, b):
    """Each difference is a line of its own."""
    text = stoker("compare", a, b, status=None).stdout
    assert "\nDifferences (first | second):\n  " in text and "\\n" not in text, text


def configurations(tmp):
    """All keys that took effect, also those of stores and of shims; other work is no better storage."""
    memory = dict(storage__store="throttle+memory", storage__throttle__latency="0.002", train__computation_time=0.006, files=16,
                  train__epochs=2)
    first = [run(tmp, f"l{i}", **memory) for i in range(3)]
    c = both(first[0], first[1])
    assert c["configurations_complete"] and not c["differences"] and "configurations are identical" in c["text"], c
    told("compare", "two runs of one configuration with a throttle of 2 ms", "The configurations are identical.")

    def only(b, *differences):
        c = both(first[0], b)
        assert c["differences"] == list(differences) and "identical" not in c["text"], (c["differences"], differences)
        told("compare", f"two runs that differ in {differences[0].split(':')[0]} alone", c["differences"][0])

    only(run(tmp, "l3", **{**memory, "storage__throttle__latency": "0.003"}), "storage.throttle.latency: 0.002 | 0.003")
    only(run(tmp, "iops", "storage.throttle.iops=900", **memory), "storage.throttle.iops: 0 | 900")
    other = {**memory, "storage__store": "fault+throttle+memory", "storage__fault__op": "read", "storage__fault__action": "delay",
             "storage__fault__delay": "0.001"}
    faulty = run(tmp, "fault1", **other)
    c = both(faulty, run(tmp, "fault2", **{**other, "storage__fault__delay": "0.002"}))
    assert c["differences"] == ["storage.fault.delay: 0.001 | 0.002"], c["differences"]
    told("compare", "two runs whose injected delays differ", c["differences"][0])
    c = both(first[0], faulty)
    assert "storage.fault.delay: not set | 0.001" in c["differences"], c["differences"]
    folder = side(tmp, "no-repetition-of-store", first[0], tmp / "l3")
    no_test(both(folder, first[1]), ["first side are not repetitions", "storage.throttle.latency: 0.002 | 0.003"],
            "latencies of 2 and 3 ms on one side")

    # without .hydra, result.json still has all; without its options of stores, they are not known
    bare = tmp / "bare"
    shutil.copytree(first[1], bare)
    shutil.rmtree(bare / ".hydra")
    assert both(first[0], bare)["configurations_complete"]
    result = load(bare)
    result["configuration"] = {k: v for k, v in result["configuration"].items() if not k.startswith("storage.throttle.")}
    (bare / "result.json").write_text(json.dumps(result))
    c = both(first[0], bare)
    assert not c["configurations_complete"] and "identical" not in c["text"] and "not known in full" in c["text"], c["text"]
    told("compare", "a result without .hydra, whose options of the store are not recorded", "The configuration of at least one side is not known in full")

    for name, words, situation, keys in (
            ("accelerator", ["accelerator is another one", "train.computation_time: 0.006 | 0.012"], "steps of 6 and of 12 ms",
             dict(train__computation_time=0.012)),
            ("batch", ["work of a step is another one", "reader.batch_size: 1 | 2"], "batches of 1 and of 2 samples",
             dict(reader__batch_size=2)),
            ("preprocess", ["work of a step is another one", "reader.preprocess_time: {} | 0.006"], "6 ms of preprocessing on the second side",
             dict(reader__preprocess_time=0.006))):
        def once(n):
            """What is shown of six runs depends on how much they vary."""
            one = first if n == 0 else [run(tmp, f"{name}-l{n}{i}", **memory) for i in range(3)]
            two = [run(tmp, f"{name}{n}{i}", **{**memory, **keys}) for i in range(3)]
            sides = side(tmp, f"first-{name}{n}", *one), side(tmp, f"second-{name}{n}", *two)
            c = both(*sides)
            said_first(c, words, f"three runs against three, {situation}")
            verdicts = {m["verdict"] for m in c["measures"] if "p" in m}
            assert not verdicts & {"better", "worse"}, c["measures"]
            checked = stoker("compare", "--check", *sides, status=None).returncode
            return "different" in verdicts and checked == 3, (c["measures"], checked)

        right, seen = attempts(f"three runs against three, {situation}", once)
        assert right, seen


def claims(tmp, a, others):
    """What a result says itself that it measured counts, also where no byte was counted."""
    def says(name, storage, text, taken, a=a, instead=None):
        folder = tmp / name
        shutil.copytree(a, folder)
        for path in folder.glob("*.json"):  # another run
            path.write_text(path.read_text().replace(load(a)["run_id"], name.encode().hex().ljust(32, "0")[:32]))
        result = load(folder)
        result["measured"] = dict(storage=storage, text=text, taken=taken, **({"instead": instead} if instead else {}))
        result["start"] = "2026-01-01T00:00:00.000000"
        (folder / "result.json").write_text(json.dumps(result))
        return folder

    yes = says("yes", "yes", "the storage.", [])
    memory = says("device", "no", "not the storage: memory (cache).", ["storage"], instead="instead.memory")
    cache = says("cache", "no", "not the storage: the page cache (cache, bytes).", ["storage"], instead="instead.page_cache")
    unseen = says("unseen", "unknown", "unknown whether it was the storage or the page cache.", [])
    holes = says("holes", "yes", "the storage; not the samples of the workload (dataset).", ["content"])
    words = ["sides did not measure the same"]
    for x, y, more, situation in ((yes, memory, [": the storage. |", "not the storage: memory"], "storage against a device in memory"),
                                  (memory, cache, ["memory (cache)", "the page cache (cache"], "a device in memory against the page cache"),
                                  (unseen, memory, ["unknown whether"], "a source that is not known against a device in memory")):
        c = both(x, y)
        said_first(c, words + more, situation, "not_comparable")
    said_first(both(yes, holes), ["second side did not read the samples"], "samples against holes", "not_comparable")
    mixed = side(tmp, "two-claims", says("yes3", "yes", "the storage.", [], others[0]),
                 says("device3", "no", "not the storage: memory (cache).", ["storage"], others[1]))
    said_first(both(mixed, others[2]), ["runs of the first side did not measure the same"],
               "storage and memory on one side", "not_comparable")
    assert not [s for s in both(yes, says("yes2", "yes", "the storage.", []))["not_comparable"] if "did not measure" in s]


def cached(tmp, a):
    """The disk of this machine: cold against warm."""
    result = load(a)
    if "page_cache" not in result["training"]["epochs"][0] or result["storage_path"]["file_system"] in ("tmpfs", "ramfs"):
        left_out("cold against warm: the temporary folder lies in memory, or its page cache is not known")
        return
    big = dict(dataset__data_folder=tmp / "data-big", dataset__record_length_bytes=1000000, files=24)
    run(tmp, "fill", **big)
    cold = run(tmp, "cold", storage__page_cache="cold", **big)
    warm = run(tmp, "warm", **big)
    fetched = [e["process_io"]["device_read_bytes"] for e in load(cold)["training"]["epochs"]]
    if sum(fetched) < 20e6:
        left_out("cold against warm: this file system does not count what it fetches")
        return
    no_test(both(cold, warm), ["different places", "first side read from the storage", "second from the page cache"],
            "24 MB, evicted from the page cache on the first side and in it on the second")
    folder = side(tmp, "cold-and-warm", cold, warm)
    no_test(both(folder, cold), ["different places", "from run to run"], "a cold and a warm run as repetitions of one side")


def main():
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        a = run(tmp, "a")

        def once(n):
            """Three runs against three; a read of the slow ones takes longer than a step."""
            eighth = dict(SLOW, storage__throttle__bandwidth="5e6")
            fast = [run(tmp, f"fast{n}{i}", train__epochs=3, **SLOW) for i in range(3)]
            slow = [run(tmp, f"slow{n}{i}", train__epochs=3, **eighth) for i in range(3)]
            m = compare(side(tmp, f"fast{n}", *fast), side(tmp, f"slow{n}", *slow))["measures"]
            verdicts = {x["measure"]: x["verdict"] for x in m}
            return verdicts["AU, whole run"] == verdicts["wall time of an epoch"] == "worse", (fast, slow, m)

        right, (fast, slow, seen) = attempts("three runs against three", once)
        assert right, seen
        copies(tmp, fast[0], fast[1], fast)
        tests(tmp, fast, slow)
        unlike(tmp, a)
        configurations(tmp)
        lines(fast[0], slow[0])
        claims(tmp, a, fast)
        cached(tmp, a)


if __name__ == "__main__":
    main()

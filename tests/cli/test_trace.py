"""Traces against the system calls of the same run, read by nothing of this program: every line of a .pfw by
itself, as DFAnalyzer does, and trace.json whole. Spans of a thread nest or are apart; what did not fit is
counted; without tracing there is nothing."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, STOKER, left_out, load, stoker, tiny  # noqa: E402

CALLS = {"open64": "openat", "pread64": "pread64", "close": "close"}
KEYS = dict(storage__page_cache_files=0, dataset__verify_samples=0, train__epochs=2, reader__batch_size=2)


def read_pfw(path):
    """Events, and names of files by their hash. Each line is an object of its own."""
    lines = path.read_text().splitlines()
    assert lines[0] == "[" and lines[-1] == "]", path
    events, files, ids = [], {}, set()
    for line in lines[1:-1]:
        ev = json.loads(line)
        assert list(ev)[:5] == ["id", "name", "cat", "pid", "tid"], line
        assert ev["id"] not in ids, line
        ids.add(ev["id"])
        if ev["ph"] == "M":
            if ev["name"] == "FH":
                name, value = ev["args"]["name"], ev["args"]["value"]
                digits = hashlib.md5(name.encode()).hexdigest()[::2]
                assert value == digits, (name, value, digits)
                files[value] = name
        else:
            assert ev["ph"] == "X" and isinstance(ev["ts"], int) and isinstance(ev["dur"], int), line
            assert ev["dur"] >= 0 and not set("[]") & set(line), line
            events.append(ev)
    assert events[0]["name"] == "start" and events[-1]["name"] == "end", path
    return events, files


def read_chrome(path):
    """Complete events with begin and end in ns; those that may overlap by their ids."""
    doc = json.loads(path.read_text())
    ns = lambda us: round(us * 1000)  # noqa: E731
    spans, flying = [], {}
    for ev in doc["traceEvents"]:
        if ev["ph"] == "X":
            spans.append(dict(ev, begin=ns(ev["ts"]), end=ns(ev["ts"]) + ns(ev["dur"])))
        elif ev["ph"] in "be":
            flying.setdefault((ev["cat"], ev["id"], ev["name"]), []).append((ev["ph"], ns(ev["ts"])))
        else:
            assert ev["ph"] == "M", ev
    for key, ends in flying.items():
        assert [p for p, _ in ends] == ["b", "e"] and ends[0][1] <= ends[1][1], (key, ends)
    return doc, spans, flying


def check_nesting(spans, unit):
    """On one thread a span lies in another or beside it."""
    threads = {}
    for s in spans:
        threads.setdefault((s["pid"], s["tid"]), []).append(s)
    for key, own in threads.items():
        open_ends = []
        for s in sorted(own, key=lambda s: (s["begin"], -s["end"])):
            while open_ends and open_ends[-1] <= s["begin"]:
                open_ends.pop()
            assert not open_ends or s["end"] <= open_ends[-1], (key, unit, s)
            open_ends.append(s["end"])


def names(events):
    count = {}
    for ev in events:
        count[ev["cat"], ev["name"]] = count.get((ev["cat"], ev["name"]), 0) + 1
    return count


def straced(command, where):
    """Calls a file of the dataset, by the path that it was opened under; and by call, the seconds between their stops."""
    subprocess.run(["strace", "-f", "-T", "-s", "0", "-e", "trace=openat,pread64,close", "-o", where, *command],
                   check=True, capture_output=True, timeout=100)
    fds, calls, cut, seconds = {}, {}, {}, {}

    def took(name, line):
        seconds[name] = seconds.get(name, 0) + float(re.search(r"<([\d.]+)>$", line).group(1))

    for line in where.read_text().splitlines():
        thread, call = line.split(None, 1)
        # a descriptor may be given out again before its close is seen to return
        if "<unfinished" in call and call.startswith("openat"):
            cut[thread] = call.split(" <unfinished")[0]
            continue
        m = re.match(r"<\.\.\. (\w+) resumed>(.*)", call)
        if m and m.group(1) != "openat":
            if cut.pop(thread, None):
                took(m.group(1), call)
            continue
        if m:
            call = cut.pop(thread) + m.group(2)
        m = re.match(r'openat\(AT_FDCWD, "([^"]*/(?:train|valid)/[^"]*)", O_RDONLY[^)]*\)\s*= (\d+)', call)
        n = m or re.match(r"(pread64|close)\((\d+)", call)
        if m:
            fds[m.group(2)] = m.group(1)
            calls[m.group(1), "openat"] = calls.get((m.group(1), "openat"), 0) + 1
            took("openat", call)
        elif n and n.group(2) in fds:
            key = fds[n.group(2)], n.group(1)
            calls[key] = calls.get(key, 0) + 1
            if n.group(1) == "close":
                del fds[n.group(2)]
            if "<unfinished" in call:
                cut[thread] = n.group(1)
            else:
                took(n.group(1), call)
    return calls, seconds


def against_strace(tmp, fmt, **keys):
    data, out = tmp / fmt, tmp / "out"
    base = dict(KEYS, fmt=fmt, files=4, dataset__num_samples_per_file=1 if fmt in ("jpeg", "npz") else 3)
    base.update(keys)
    # not through a pipe: -s 0 cuts no path
    stoker("run", *tiny(data, out, **dict(base, workflow__train="false")))
    options = dict(base, workflow__generate_data="false", run__trace="both")
    calls, seconds = straced([STOKER, "run", *map(str, tiny(data, out, **options))], tmp / "strace")
    assert sum(n for (_, call), n in calls.items() if call == "openat") >= 8, calls
    mine = {}
    for path in out.glob("trace-*.pfw"):
        events, files = read_pfw(path)
        for ev in events:
            if ev["name"] in CALLS:
                key = files[ev["args"]["fhash"]], CALLS[ev["name"]]
                mine[key] = mine.get(key, 0) + 1
    # the check of the dataset reads none of these files through a worker
    assert mine == calls, (fmt, {k: (mine.get(k), calls.get(k)) for k in set(mine) | set(calls)
                                 if mine.get(k) != calls.get(k)})
    doc, spans, _ = read_chrome(out / "trace.json")
    check_nesting(spans, "ns")
    of = {"open": "openat", "read": "pread64", "close": "close"}
    again, took = {}, {}
    for s in spans:
        if s["cat"] == "store" and s["name"] in of:
            key = s["args"]["file"], of[s["name"]]
            again[key] = again.get(key, 0) + 1
            took[key[1]] = took.get(key[1], 0) + s["end"] - s["begin"]
    assert again == calls, fmt
    # strace stops a call after it began for us and lets it go before it ends for us: its time, cut to microseconds,
    # lies within ours; and ours is no more than what all readers had
    wall = max(s["end"] - s["begin"] for s in spans if s["name"] == "run")
    threads = len({(s["pid"], s["tid"]) for s in spans})
    assert set(took) == set(seconds)
    for call, ns in took.items():
        n = sum(v for (_, c), v in calls.items() if c == call)
        assert ns + 1000 * n >= seconds[call] * 1e9 > 0, (fmt, call, ns, seconds[call])
        assert ns <= wall * threads, (fmt, call, ns, wall)
    if "-v" in sys.argv:
        print(fmt, {c: f"{v / seconds[c] / 1e9:.2f} of strace's" for c, v in took.items()})


def against_result(tmp):
    """Counts of DLIO's events, and bytes, against result.json; two ranks, with evaluation."""
    data, out = tmp / "counts", tmp / "out2"
    keys = dict(KEYS, files=8, dataset__num_files_eval=4, reader__batch_size_eval=2, workflow__evaluation="true",
                reader__read_threads=2, reader__preprocess_time=0.0005)
    stoker("run", "-n", "2", *tiny(data, out, run__trace="both", **keys))
    result = load(out)
    steps, eval_steps, epochs, ranks = 2, 1, 2, 2
    assert result["training"]["steps_per_epoch"] == steps
    requests = {k: 0 for k in ("open", "metadata", "data")}
    for kind in requests:
        requests[kind] = sum(result[p]["io"][kind]["requests"] for p in ("training", "evaluation"))
    posix = payload = 0
    for rank in range(ranks):
        events, _ = read_pfw(out / f"trace-{rank}-of-2.pfw")
        count = names(events)
        want = {("ai_root", "ai_root"): 1, ("pipeline", "epoch.block"): epochs, ("pipeline", "train"): epochs,
                ("pipeline", "evaluate"): epochs, ("dataloader", "fetch.iter"): epochs * (steps + eval_steps),
                ("dataloader", "fetch.block"): epochs * (steps + eval_steps),
                ("compute", "compute"): epochs * (steps + eval_steps), ("comm", "barrier"): epochs * steps,
                ("data", "item"): epochs * 2 * (steps + eval_steps),
                ("data", "preprocess"): epochs * 2 * (steps + eval_steps),
                ("reader", "NPZReader.read_index"): epochs * 2 * (steps + eval_steps)}
        assert {k: count.get(k) for k in want} == want, count
        assert {ev["pid"] for ev in events} == {rank + 1}
        posix += sum(n for (cat, _), n in count.items() if cat == "POSIX")
        payload += sum(int(ev["args"]["image_size"]) for ev in events if ev["name"] == "item")
        check_nesting([dict(ev, begin=ev["ts"], end=ev["ts"] + ev["dur"]) for ev in events], "us")
        steps_seen = {(ev["args"]["epoch"], ev["args"]["step"]) for ev in events if ev["name"] == "fetch.iter"}
        assert steps_seen == {(str(e), str(s)) for e in (1, 2) for s in (1, 2)}, steps_seen
    assert posix == sum(requests.values()), (posix, requests)
    assert payload == 4096 * epochs * (8 + 4)
    assert result["trace"]["spans_dropped"] == 0 and result["trace"]["spans"] > posix
    _, spans, _ = read_chrome(out / "trace.json")
    check_nesting(spans, "ns")

    assert len({(s["pid"], s["tid"]) for s in spans}) == ranks * (1 + 2 + 1), "one batch an evaluation"


def checkpoints(tmp, fmt, asynchronous):
    """Requests of checkpoints, call by call and file by file, against strace: alone and beside training."""
    out, saved, data, log = (tmp / f"ckpt-{what}-{fmt}{int(asynchronous)}"
                             for what in ("out", "saved", "data", "calls"))
    keys = dict(run__trace="both", workflow__checkpoint="true", checkpoint__checkpoint_folder=saved,
                checkpoint__format=fmt, checkpoint__fsync="true", model__type="transformer", model__num_layers=2,
                model__transformer__hidden_size=64, model__transformer__ffn_hidden_size=128,
                model__transformer__vocab_size=500, model__parallelism__zero_stage=1)
    if asynchronous:
        keys.update(files=8, checkpoint__async="true", checkpoint__steps_between_checkpoints=1)
    else:
        keys.update(workflow__train="false", workflow__generate_data="false", checkpoint__num_checkpoints_write=2,
                    checkpoint__num_checkpoints_read=2)
    calls = {"openat": "open64", "fstat": "__xstat64", "newfstatat": "__xstat64", "rename": "rename",
             "fsync": "fsync", "close": "close", "pwrite64": "pwrite64", "pwritev": "pwritev", "pread64": "pread64", "preadv": "preadv"}
    subprocess.run(["strace", "-f", "-y", "-s", "0", "-e", "trace=" + ",".join(calls), "-o", log, STOKER, "run", "-n",
                    "2", *map(str, tiny(data, out, **keys))], check=True, capture_output=True, timeout=100)
    want, mine, again = {}, {}, {}

    def add(count, call, path):
        # the folder's own sync opens and closes it, which is one request here
        if call == "fsync" or not os.path.isdir(path):
            count[call, path] = count.get((call, path), 0) + 1

    for line in log.read_text().splitlines():
        m = re.match(rf'\d+\s+(\w+)\([^"<]*(?:<[^>]*>, )?["<]({re.escape(str(saved))}[^">]*)[">]', line)
        if m and (m.group(1) != "newfstatat" or ', "", ' in line):
            add(want, calls[m.group(1)], m.group(2))
    for path in out.glob("trace-*.pfw"):
        events, files = read_pfw(path)
        for ev in events:
            name = files.get(ev["args"].get("fhash", ""), "")
            if name.startswith(str(saved)):
                add(mine, ev["name"], name)
    assert {call for call, _ in want} >= {"open64", "rename", "fsync", "close"}, want
    assert mine == want, {k: (mine.get(k), want.get(k)) for k in set(mine) | set(want) if mine.get(k) != want.get(k)}
    result, (_, spans, _) = load(out)["checkpoint"], read_chrome(out / "trace.json")
    check_nesting(spans, "ns")
    for s in spans:
        if s["cat"] == "store" and s["args"].get("file", "").startswith(str(saved)):
            again[s["name"]] = again.get(s["name"], 0) + 1
    names = {"open": "open64", "write": "pwrite", "read": "pread", "sync": "fsync", "rename": "rename"}
    for name, call in names.items():
        assert again.get(name, 0) == sum(n for (c, _), n in want.items() if c.startswith(call)), (name, again)
    assert sum(again.values()) == sum(k["requests"] for p in ("save", "load") for k in result[p]["io"].values())
    assert again["write"] > 0 and (asynchronous or again["read"] > 0), again


def dropped(tmp):
    """A tiny ring: what is kept and what is not is all there was."""
    data, out = tmp / "counts", tmp / "small"
    keys = dict(KEYS, files=8, workflow__generate_data="false", reader__read_threads=2)
    stoker("run", *tiny(data, out, run__trace="both", **keys))
    whole = load(out)["trace"]
    assert whole["spans_dropped"] == 0
    told = stoker("run", *tiny(data, out, run__trace="both", run__trace_events=20, **keys))
    small = load(out)["trace"]
    assert small["spans"] == 2 * 20 and small["spans"] + small["spans_dropped"] == whole["spans"], (small, whole)
    log = (out / "dlio.log").read_text() + told.stderr
    assert f"{small['spans_dropped']} later ones were dropped" in log, log
    doc, _, _ = read_chrome(out / "trace.json")
    assert doc["otherData"]["spans_dropped"] == small["spans_dropped"]
    events, _ = read_pfw(out / "trace-0-of-1.pfw")
    assert events[-1]["args"]["spans_dropped"] == small["spans_dropped"]


def loaders(tmp):
    """Every loader leaves a trace; requests in flight do not break it."""
    data = tmp / "counts"
    shared = dict(reader__transport="shared_memory", reader__read_threads=2)
    cases = [shared, dict(shared, reader__pin_thread="true"), dict(reader__data_loader="tensorflow", framework="tensorflow"), dict(reader__data_loader="dali"),
             dict(reader__read_threads=0), dict(reader__access="native", reader__queue_depth=8)]
    for i, case in enumerate(cases):
        out = tmp / f"loader{i}"
        stoker("run", *tiny(data, out, run__trace="both", **dict(KEYS, files=8, workflow__generate_data="false",
                                                                 **case)))
        result, (_, spans, flying) = load(out), read_chrome(out / "trace.json")
        check_nesting(spans, "ns")
        seen = sum(1 for s in spans if s["cat"] == "store") + sum(1 for cat, _, _ in flying if cat == "store")
        counted = sum(k["requests"] for k in result["training"]["io"].values())
        assert seen == counted > 0, (case, seen, counted)
        parcels = [sum(1 for s in spans if s["name"] == name) for name in ("transport", "unpack", "pin")]
        sent = 8 if "reader__transport" in case else 0
        assert parcels == [sent, sent, 8 if "reader__pin_thread" in case else 0], (case, parcels)
        items = sum(1 for s in spans if s["name"] == "item") + sum(1 for _, _, n in flying if n == "item")
        assert items == 16, (case, items)
        read_pfw(out / "trace-0-of-1.pfw")
    assert flying, "requests in flight"


def switches(tmp):
    """No trace unless asked for; DFTRACER_ENABLE asks for DLIO's; files of an earlier run go."""
    data, out = tmp / "counts", tmp / "switch"
    keys = dict(KEYS, files=8, workflow__generate_data="false")

    def left(env="", **more):
        stoker("run", *tiny(data, out, **keys, **more), env=dict(os.environ, DFTRACER_ENABLE=env))
        return sorted(p.name for p in out.iterdir() if p.name.startswith("trace"))

    assert left(run__trace="both") == ["trace-0-of-1.pfw", "trace.json"]
    assert left() == [] and "trace" not in load(out)
    assert left(env="1") == ["trace-0-of-1.pfw"]
    assert left(env="1", run__trace="none") == []
    assert left(run__trace="chrome") == ["trace.json"]


def unmeasured(tmp):
    """With run.measure=none nothing is counted, and no thread and no file of the kernel is there for it."""
    data, out, calls = tmp / "counts", tmp / "unmeasured", tmp / "calls"
    keys = dict(KEYS, files=8, workflow__generate_data="false", train__computation_time=0.02,
                storage__page_cache_files=8)

    def kernel(measure):
        """Threads by name, and how often files that only measuring needs were opened or asked for."""
        command = [STOKER, "run", *map(str, tiny(data, out, **keys, run__measure=measure, run__sample_interval=0.01))]
        done = subprocess.run(["strace", "-f", "-qq", "-o", str(calls), *command], capture_output=True, text=True,
                              timeout=120)
        assert done.returncode == 0, done.stderr
        text = calls.read_text()
        names = set(re.findall(r'PR_SET_NAME, "([^"]*)"', text))
        asked = re.findall(r'"(/proc/self/io|/proc/stat|/sys/dev/block/[^"]*stat)"|(cachestat\(|0x1c3\(|mincore\()', text)
        return names, len(asked)

    if shutil.which("strace") and not SANITIZED:
        names, asked = kernel("all")
        assert "series" in names and asked > 0, (names, asked)
        names, asked = kernel("none")
        assert "series" not in names and asked == 0, (names, asked)
    else:
        stoker("run", *tiny(data, out, **keys, run__measure="none"))
    result = load(out)
    assert sum(k["requests"] for k in result["training"]["io"].values()) == 0
    assert "series" not in result and result["training"]["epochs"][0]["process_io"] is None
    assert any(v["check"] == "bytes" and v["level"] == "unknown" for v in result["verdicts"]), result["verdicts"]


def sizes(tmp):
    """Latencies by size: all requests of a kind that ask for bytes are in some class, up to its largest."""
    data, out = tmp / "sizes", tmp / "sizes-out"
    for length in (2048, 50000, 500000, 3000000):
        shutil.rmtree(data, ignore_errors=True)
        stoker("run", *tiny(data, out, fmt="npy", files=4, dataset__record_length_bytes=length,
                            reader__access="native"))
        data_reads = load(out)["training"]["io"]["data"]
        by_size = data_reads["latency_by_size"]
        want = {2048: "to_4_kib", 50000: "to_64_kib", 500000: "to_1_mib", 3000000: "above_1_mib"}[length]
        assert want in by_size, (length, list(by_size))
        assert sum(c["count"] for c in by_size.values()) == data_reads["requests"]
        for c in by_size.values():
            q = [c[k] for k in ("p50_ns", "p90_ns", "p99_ns", "p99_9_ns", "p99_99_ns", "max_ns")]
            assert q == sorted(q) and sum(n for _, n in c["buckets"]) == c["count"], c
        assert max(c["max_ns"] for c in by_size.values()) == data_reads["latency"]["max_ns"]
        assert "latency_by_size" not in load(out)["training"]["io"]["open"]


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        tmp = pathlib.Path(name)
        against_result(tmp)
        dropped(tmp)
        loaders(tmp)
        switches(tmp)
        unmeasured(tmp)
        sizes(tmp)
        if shutil.which("strace") and not SANITIZED:
            for fmt in ("npz", "npy", "hdf5", "jpeg", "tfrecord"):
                more = dict(framework="tensorflow", reader__data_loader="tensorflow") if fmt == "tfrecord" else {}
                against_strace(tmp, fmt, reader__read_threads=2, **more)
            against_strace(tmp, "npz", reader__read_threads=0)
            for fmt, asynchronous in (("torch", False), ("distcp", False), ("distcp", True)):
                checkpoints(tmp, fmt, asynchronous)
        else:
            left_out("comparing with the system calls: strace is not installed")


main()

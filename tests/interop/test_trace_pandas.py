"""The .pfw of a run as DFAnalyzer loads it - line by line, those with a bracket left out, the rest a table of pandas -
against trace.json and result.json: calls, bytes, files, times, and the I/O that no computing hides. And what a run that
is killed outright leaves."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import STOKER, load, skip, stoker, tiny  # noqa: E402

try:
    import pandas as pd
except ImportError:
    skip("pandas is not installed for /usr/bin/python3")

EPOCHS, FILES, RANKS = 2, 16, 2


def lines_of(path):
    """Objects of a file, each line by itself; a last line that was cut is left out."""
    out, lines = [], path.read_text().split("\n")
    for i, line in enumerate(lines):
        if not line or line in "[]":
            continue
        try:
            out.append(json.loads(line))
        except ValueError:
            assert i == len(lines) - 1, f"{path}, line {i + 1}: {line[:100]}"
    return out


def table(paths):
    """Complete events with what the analyser takes of their arguments, names of files and hosts in place of hashes."""
    rows, names, hosts = [], {}, {}
    for path in paths:
        for ev in lines_of(path):
            a = ev.get("args", {})
            if ev["name"] == "FH":
                names[a["value"]] = a["name"]
            elif ev["name"] == "HH":
                hosts[a["value"]] = a["name"]
            elif ev.get("ph") == "X" and ev["cat"] != "dftracer":
                size = a["ret"] if "ret" in a and ("read" in ev["name"] or "write" in ev["name"]) else a.get("image_size")
                rows.append(dict(name=ev["name"], cat=ev["cat"], pid=ev["pid"], tid=ev["tid"], ts=ev["ts"], dur=ev["dur"],
                                 fhash=a.get("fhash"), hhash=a["hhash"], size=size, offset=a.get("offset"),
                                 epoch=a.get("epoch"), step=a.get("step")))
    t = pd.DataFrame(rows)
    t["filename"] = t["fhash"].map(names)
    t["hostname"] = t["hhash"].map(hosts)
    t["size"] = pd.to_numeric(t["size"])
    t["te"] = t["ts"] + t["dur"]
    return t


def union(spans):
    """Length of what any of the spans covers."""
    total, end = 0, 0
    for a, b in sorted(spans):
        total += max(0, b - max(a, end))
        end = max(end, b)
    return total


def whole(tmp):
    out = tmp / "out"
    stoker("run", "-n", RANKS, *tiny(tmp / "data", out, files=FILES, reader__read_threads=2, train__epochs=EPOCHS,
                                     dataset__record_length_bytes=65536, train__computation_time=0.002,
                                     storage__page_cache_files=0, dataset__verify_samples=0, run__trace="both"))
    result = load(out)
    t = table(sorted(out.glob("trace-*.pfw")))
    posix = t[t["cat"] == "POSIX"]
    assert posix["filename"].notna().all() and t["hostname"].notna().all() and t["hostname"].nunique() == 1
    assert posix["filename"].nunique() == FILES and all(pathlib.Path(p).exists() for p in posix["filename"].unique())
    io = result["training"]["io"]
    reads = posix[posix["name"] == "pread64"]
    assert len(posix) == sum(k["requests"] for k in io.values())
    assert reads["size"].sum() == io["data"]["returned_bytes"] + io["metadata"]["returned_bytes"]
    assert (posix["name"] == "open64").sum() == EPOCHS * FILES
    items = t[t["name"] == "item"]
    assert len(items) == EPOCHS * FILES and items["size"].sum() == EPOCHS * FILES * 65536
    steps = FILES // 2 // RANKS
    for (cat, name), n in {("dataloader", "fetch.iter"): steps, ("dataloader", "fetch.block"): steps,
                           ("compute", "compute"): steps, ("pipeline", "epoch.block"): 1, ("pipeline", "train"): 1}.items():
        assert ((t["cat"] == cat) & (t["name"] == name)).sum() == n * EPOCHS * RANKS, (cat, name)
    # the same spans in trace.json, its times cut to microseconds since 1970
    doc = json.loads((out / "trace.json").read_text(), parse_float=str)
    ns = lambda us: int(us.split(".")[0]) * 1000 + int(us.split(".")[1])  # noqa: E731
    zero, other = int(doc["otherData"]["begin_unix_ns"]), []
    of = {"open": "open64", "close": "close", "read": "pread64", "compute": "compute", "wait": "fetch.iter",
          "step": "fetch.block", "item": "item", "barrier": "barrier", "batch": "batch"}
    for ev in doc["traceEvents"]:
        if ev["ph"] == "X" and ev["name"] in of:
            begin = zero + ns(ev["ts"])
            end = begin + ns(ev["dur"])
            other.append((ev["pid"], ev["tid"], of[ev["name"]], begin // 1000, end // 1000 - begin // 1000))
    mine = t[t["name"].isin(of.values())][["pid", "tid", "name", "ts", "dur"]]
    assert sorted(map(tuple, mine.itertuples(index=False))) == sorted(other)
    # what DFAnalyzer prints first: I/O, computing, and each without the other
    spans = {k: [(a - zero // 1000, b - zero // 1000) for a, b in zip(g["ts"], g["te"])] for k, g in t.groupby("cat")}
    both = union(spans["POSIX"] + spans["compute"])
    unoverlapped = both - union(spans["compute"])
    assert 0 < unoverlapped <= union(spans["POSIX"]) and union(spans["compute"]) < both
    # the first batch of an epoch is read before anything is computed
    assert unoverlapped > 0.01 * union(spans["POSIX"])


def killed(tmp):
    """No half of a trace under its name; what was being written is whole lines, and is drawn."""
    args = tiny(tmp / "long", tmp / "killed", fmt="npy", files=512, dataset__num_samples_per_file=32, reader__batch_size=64,
                reader__read_threads=2, train__computation_time=0, dataset__record_length_bytes=64, run__trace="both",
                reader__access="native", storage__page_cache_files=0)
    stoker("run", *args, "workflow.train=false")
    args.append("workflow.generate_data=false")
    out, half = tmp / "killed", None
    for when in (0.05, None, None, None):
        for p in out.glob("trace*"):
            p.unlink()
        run = subprocess.Popen([STOKER, "run", *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        begun = time.monotonic()
        while run.poll() is None and not (when and time.monotonic() - begun > when):
            half = next((p for p in out.glob(".trace*.pfw.*.tmp") if p.stat().st_size > 1000000), None)
            if half:
                break
        run.send_signal(signal.SIGKILL)
        run.wait()
        for p in out.glob("trace*"):
            if p.suffix == ".pfw":
                assert p.read_text().endswith("\n]\n") and len(lines_of(p)) > 100, p
            elif p.name == "trace.json":
                json.loads(p.read_text())
        if when:
            assert not list(out.glob("trace*")), "spans lie in memory while a run trains"
        if half:
            break
    assert half and not half.read_text().endswith("]\n"), "the trace was written too fast to be killed at it"
    got = table([half])
    assert len(got) > 300, (len(got), half.stat().st_size)
    assert got["filename"].notna().any() and (got["dur"] >= 0).all(), got.tail()
    # whole again: the report reads the piece too, and says where it ends
    left, half = half, half.rename(tmp / "half.pfw")
    left.write_text("[")
    stoker("run", *args, "run.trace=none")
    assert not left.exists(), "what a killed run was writing is left"
    page = tmp / "page.html"
    stoker("report", out, "-o", page, "--trace", half)
    lines = half.read_bytes().count(b"\n") + 1
    assert f"ends unexpectedly in line {lines}" in page.read_text(), lines


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        tmp = pathlib.Path(name)
        whole(tmp)
        killed(tmp)


if __name__ == "__main__":
    main()

"""trace.json in the engine of Chrome's performance panel: threads, spans, their times and how they lie in each other, as
they were written; and what it finds left of a sample between its requests is the decoding of our own page."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import load, skip, stoker, tiny  # noqa: E402

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
ENGINE = CACHE / "stoker/trace_engine-0.0.65"
# what a span lies in, directly
PARENTS = {"epoch": {"run"}, "train": {"epoch"}, "evaluate": {"epoch"}, "wait": {"train", "evaluate"},
           "step": {"train", "evaluate"}, "compute": {"step"}, "barrier": {"step"}, "batch": {""}, "item": {"batch"},
           "sample": {"item"}, "preprocess": {"item"}, "transport": {""}, "unpack": {"wait"},
           "run": {""}}


def written(path):
    """Spans of each thread, and names of threads, with times in ns, by a reader of JSON alone."""
    ns = lambda us: int(us.split(".")[0]) * 1000 + int(us.split(".")[1])  # noqa: E731
    spans, names = {}, {}
    for ev in json.loads(path.read_text(), parse_float=str)["traceEvents"]:
        key = ev["pid"], ev["tid"]
        if ev["ph"] == "X":
            spans.setdefault(key, []).append((ev["cat"], ev["name"], ns(ev["ts"]), ns(ev["dur"])))
        elif ev["name"] == "thread_name":
            names[key] = ev["args"]["name"]
    return spans, names


def sums(spans):
    out = {}
    for cat, name, _, dur, *_ in spans:
        n, total = out.get((cat, name), (0, 0))
        out[cat, name] = n + 1, total + dur
    return out


def check(tmp, node, **keys):
    out = tmp / "out"
    shutil.rmtree(out, ignore_errors=True)
    stoker("run", "-n", "2", *tiny(tmp / "data", out, files=16, dataset__num_files_eval=8, workflow__evaluation="true",
                                   reader__batch_size=2, reader__batch_size_eval=2, reader__read_threads=2,
                                   reader__preprocess_time=0.0002, reader__transport="shared_memory", train__epochs=2,
                                   evaluation__eval_time=0.001, storage__page_cache_files=0, run__trace="chrome", **keys))
    done = subprocess.run([node, pathlib.Path(__file__).with_name("trace_engine.mjs"), ENGINE, out / "trace.json"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-800:]
    seen = json.loads(done.stdout)
    spans, names = written(out / "trace.json")
    assert seen["generic"] is True
    assert {(t["pid"], t["tid"]): t["name"] for t in seen["threads"]} == {k: names[k] for k in spans}
    result, requests, samples = load(out), 0, {}
    for t in seen["threads"]:
        own = [(c, n, round(ts * 1000), round(dur * 1000), self_us * 1000, parent, depth)
               for c, n, ts, dur, self_us, parent, depth in t["spans"]]
        want = spans[t["pid"], t["tid"]]
        assert sums(own) == sums(want), (t["name"], sums(own), sums(want))
        assert sorted(s[:4] for s in own) == sorted(want), t["name"]
        requests += sum(1 for s in own if s[0] == "store")
        ends = [b + d for _, _, b, d in want]
        # doubles of microseconds do not add up: it takes some that end with, or begin at the end of, another to the ns
        # for overlapping, and gives them no place
        lost = [(begin, begin + dur) for _, _, begin, dur, _, _, depth in own if depth < 0]
        for begin, end in lost:
            assert ends.count(end) > 1 or begin in ends, (t["name"], begin, end)
        assert len(lost) < len(own) / 2, (len(lost), len(own))
        for cat, name, begin, dur, self_ns, parent, depth in own:
            if depth < 0 or any(b <= begin and begin + dur <= e for b, e in lost):
                continue
            assert parent in (PARENTS[name] if cat != "store" else {"sample"}), (name, parent)
            if name == "sample" and not any(begin <= b and e <= begin + dur for b, e in lost):
                samples[t["pid"] - 1, begin] = self_ns
    counted = sum(k["requests"] for p in ("training", "evaluation") for k in result[p]["io"].values())
    assert requests == counted > 100, (requests, counted)
    assert len(samples) >= 2 * (16 + 8) / 2, len(samples)
    # the page's decoding
    page = tmp / "page.html"
    stoker("report", out, "-o", page, "--epoch=1", "--steps=1-4")
    trace = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.S).group(1))["runs"][0]["trace"]
    w = trace["windows"][0]
    s, zero = w["spans"], int(w["begin_ns"]) - int(json.loads((out / "trace.json").read_text())["otherData"]["begin_unix_ns"])
    compared = 0
    for i, kind in enumerate(s["kind"]):
        if trace["kinds"][kind] != "sample" or s["begin"][i] < 0 or s["begin"][i] + s["dur"][i] > w["length"]:
            continue
        left = sum(s["dur"][k] for k in range(len(s["kind"])) if trace["kinds"][s["kind"][k]] == "decode" and
                   s["lane"][k] == s["lane"][i] and s["begin"][i] <= s["begin"][k] < s["begin"][i] + s["dur"][i])
        self_ns = samples.get((trace["lanes"][s["lane"][i]]["rank"], s["begin"][i] + zero))
        if self_ns is None:
            continue
        assert abs(left - self_ns) < 2, (left, self_ns)
        compared += 1
    assert compared >= 4, compared


def main():
    node = shutil.which("node")
    if not node:
        skip("no node to run the engine of Chrome's performance panel")
    if not (ENGINE / "node_modules/@paulirish/trace_engine/models/trace/trace.js").exists():
        skip(f"no @paulirish/trace_engine in {ENGINE}: tools/setup.sh heavy fetches it")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        tmp = pathlib.Path(name)
        check(tmp, node)
        check(tmp, node, dataset__format="hdf5")


if __name__ == "__main__":
    main()

"""The timeline of a report: the spans on the page against those of the trace, from each of its files, whole and
broken; and drawn by a browser, zoomed, moved and asked with a real mouse and keys."""
# tier: long
import gzip
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from browser import BROWSER, Page  # noqa: E402
from util import SANITIZED, STOKER, left_out, stoker, tiny  # noqa: E402

ROWS = ("lane", "kind", "name", "begin", "dur", "epoch", "step", "sample", "file", "offset", "asked", "moved", "failed")
CAP = 6000
BIG = 90000


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(),
                                re.S).group(1))


def report(tmp, folder, *options):
    page = tmp / "page.html"
    stoker("report", folder, "-o", page, *options)
    return data_of(page)["runs"][0].get("trace")


def rows(trace, window=0):
    """Spans of a window, in words; begin in ns since 1970."""
    w = trace["windows"][window]
    zero = int(w["begin_ns"])
    out = []
    for v in zip(*(w["spans"][c] for c in ROWS)):
        s = dict(zip(ROWS, v))
        s.update(lane=(trace["lanes"][s["lane"]]["rank"], trace["lanes"][s["lane"]]["name"]),
                 kind=trace["kinds"][s["kind"]], name=trace["names"][s["name"]], begin=s["begin"] + zero,
                 file=trace["folder"] + trace["files"][s["file"]] if s["file"] >= 0 else None)
        out.append(s)
    return out


def truth(folder):
    """Spans of trace.json in the same words, but for those that hold steps."""
    doc = json.loads((folder / "trace.json").read_text(), parse_float=str)
    zero, lane, out = int(doc["otherData"]["begin_unix_ns"]), {}, []
    ns = lambda us: int(us.split(".")[0]) * 1000 + int(us.split(".")[1])  # noqa: E731
    for ev in doc["traceEvents"]:
        if ev["ph"] == "M" and ev["name"] == "thread_name":
            lane[ev["pid"], ev["tid"]] = ev["pid"] - 1, ev["args"]["name"]
        elif ev["ph"] == "X" and ev["name"] not in ("run", "epoch", "train", "evaluate"):
            a = ev["args"]
            out.append(dict(lane=lane[ev["pid"], ev["tid"]], name=ev["name"], begin=zero + ns(ev["ts"]), dur=ns(ev["dur"]),
                            epoch=a.get("epoch", -1), step=a.get("step", -1), sample=a.get("sample", -1),
                            file=a.get("file"), offset=a.get("offset", -1), asked=a.get("asked_bytes", -1),
                            moved=a.get("bytes", -1)))
    return out


def window_of(spans, epoch, first, last, ranks):
    """From asking for the first batch to the end of the last barrier; steps of training come first."""
    seen, ends = set(), []
    for s in sorted(spans, key=lambda s: s["begin"]):
        rank, name = s["lane"]
        if name != f"rank {rank}" or rank not in ranks or s["epoch"] != epoch or not first <= s["step"] <= last:
            continue
        key = rank, s["step"], s["name"]
        if key not in seen and s["name"] in ("wait", "step"):
            seen.add(key)
            ends += [s["begin"], s["begin"] + s["dur"]]
    return min(ends), max(ends)


def plain(spans):
    keys = ("lane", "name", "begin", "dur", "epoch", "step", "sample", "file", "offset", "asked", "moved")
    return sorted(tuple(str(s[k]) for k in keys) for s in spans)


def same(trace, spans, window, epoch, first, last, ranks):
    w = trace["windows"][window]
    begin, end = window_of(spans, epoch, first, last, ranks)
    assert (int(w["begin_ns"]), w["length"]) == (begin, end - begin), (w["begin_ns"], w["length"], begin, end - begin)
    assert (w["epoch"], w["first"], w["last"]) == (epoch, first, last)
    want = [s for s in spans if s["lane"][0] in ranks and s["begin"] < end and s["begin"] + s["dur"] > begin]
    shown = [s for s in rows(trace, window) if s["kind"] != "decode"]
    assert plain(shown) == plain(want), (len(shown), len(want))
    assert w["seen"] == len(w["spans"]["lane"]) and sum(w["count"]) == w["seen"]
    steps = [s for s in shown if s["name"] == "step" and begin <= s["begin"] < end]
    assert len(steps) >= (last - first + 1) * len(ranks), steps
    # what is left of each sample between its requests
    for s in shown:
        if s["kind"] != "sample":
            continue
        inside = [x for x in shown if x["lane"] == s["lane"] and x is not s and x["begin"] >= s["begin"] and
                  x["begin"] + x["dur"] <= s["begin"] + s["dur"]]
        left = [x["dur"] for x in rows(trace, window) if x["kind"] == "decode" and x["lane"] == s["lane"] and
                s["begin"] <= x["begin"] < s["begin"] + s["dur"]]
        if s["begin"] >= begin and s["begin"] + s["dur"] <= end:
            assert sum(left) + sum(x["dur"] for x in inside) == s["dur"], (s, left)


def slowest(spans):
    """Beyond the first three: (epoch, step, rank, ns)."""
    wait, best = {}, (0,)
    for s in sorted(spans, key=lambda s: (s["lane"], s["begin"])):
        rank, name = s["lane"]
        key = rank, s["epoch"], s["step"]
        if name != f"rank {rank}" or s["name"] not in ("wait", "step") or (s["name"], key) in wait:
            continue
        wait[s["name"], key] = s
        if s["name"] == "step" and (s["epoch"], s["step"]) > (1, 3):
            took = s["begin"] + s["dur"] - wait["wait", key]["begin"]
            best = max(best, (took, s["epoch"], s["step"], rank))
    return best


def on_page(tmp, folder):
    spans, trace = truth(folder), report(tmp, folder)
    assert trace["ranks"] == 2 and not trace["ranks_left_out"] and not trace["dropped"] and not trace["note"]
    took, epoch, step, rank = slowest(spans)
    slow = trace["windows"][-1]["slowest"]
    assert (slow["ns"], slow["step"], slow["rank"]) == (took, step, rank), (slow, took, step, rank)
    if epoch == 2 or step > 5:
        assert len(trace["windows"]) == 2
        same(trace, spans, 0, 1, 1, 3, (0, 1))
        same(trace, spans, 1, epoch, max(step - 1, 1), min(step + 1, 8), (0, 1))
    chosen = report(tmp, folder, "--epoch=2", "--steps=4-5", "--ranks=1")
    assert len(chosen["windows"]) == 1 and {lane["rank"] for lane in chosen["lanes"]} == {1}
    same(chosen, spans, 0, 2, 4, 5, (1,))
    same(report(tmp, folder, "--steps=2"), spans, 0, 1, 2, 2, (0, 1))
    # the other files of the trace: to the microsecond, without the marks of metadata
    pfw = sorted(folder.glob("trace-*.pfw"))
    again = report(tmp, folder, "--steps=2", *(x for p in pfw for x in ("--trace", p)))
    assert abs(again["windows"][0]["length"] - report(tmp, folder, "--steps=2")["windows"][0]["length"]) < 2000
    first = {k: v for k, v in zip(again["kinds"], again["windows"][0]["count"])}
    assert first["read"] and first["open, close"] and first["decode"] and first["compute"] >= 2, first
    gz = [tmp / (p.name + ".gz") for p in pfw]
    for p, z in zip(pfw, gz):
        z.write_bytes(gzip.compress(p.read_bytes()))
    assert report(tmp, folder, "--steps=2", *(x for p in gz for x in ("--trace", p))) == again
    assert trace["windows"][0]["count"][trace["kinds"].index("transport")], "batches handed over"


def told(tmp, folder, name, content, status, *words):
    """One sentence that names the file and the line; of a trace that ends unexpectedly also on the page."""
    bad = tmp / name
    bad.write_bytes(content)
    done = stoker("report", folder, "-o", tmp / "bad.html", "--trace", bad, status=status)
    text = done.stderr
    if status == 0:
        text = data_of(tmp / "bad.html")["runs"][0]["trace"]["note"]
        # the same on the terminal, as one of the program's sentences
        said = [line for line in done.stderr.splitlines() if line.startswith("stoker: ")]
        assert said == ([f"stoker: t{text[1:-1]}"] if text else []), (text, done.stderr)
    for word in (*words, str(bad)) if words else ():
        assert word in text, (content[:80], text)
    assert status == 0 or len(done.stderr.strip().splitlines()) == 1, done.stderr
    return text


def hostile(tmp, folder):
    good = (folder / "trace.json").read_bytes()
    head = b'{"traceEvents":[\n'
    ev = b'{"ph":"X","name":"read","cat":"store","pid":1,"tid":3,"ts":%s,"dur":%s}'
    for content, word in (
            (b"", "line 1: the file is empty"), (b"\n\nhello", "line 3: expected '[' or '{'"), (b"{}", "array 'traceEvents' is missing"),
            (b'{"traceEvents":7}', "is not an array"), (head + b"17]}", "line 2: expected an event"),
            (head + ev % (b'"x"', b"1") + b"]}", "line 2: 'ts' is not a time"), (head + ev % (b"1", b"-4") + b"]}", "'dur' is not a duration"),
            (head + ev % (b"9" * 40, b"1") + b"]}", "'ts' is not a time"),
            (head + b'{"ph":"X","name":"a"}]}', "an event has no 'ts'"), (head + b'{"ph" "X"}]}', "colon"),
            (head + b'{"ph":"X" "name":"a"}]}', "comma"), (head + b'{ph:1}]}', "key"), (head + b'{"a\nb":1}]}', "not terminated"),
            (head + b'{"a":"\\x"}]}', "escape"), (head + b'{"a":"\\u12g4"}]}', "hexadecimal"), (head + b'{"a":}]}', "a JSON value"),
            (head + b'{"a":' + b"[" * 70 + b"]" * 70 + b"}]}", "64 levels deep"), (head + b'{"a":[1}]}', "bracket"),
            (b'{"otherData":{"begin_unix_ns":"-5"},"traceEvents":[]}', "begin_unix_ns"),
            (b"[\n" + b"\0" * 1000, "line 2: expected an event"), (random.Random(1).randbytes(5000), "line 1:")):
        told(tmp, folder, "bad.json", content, 1, word)
    # nothing drawn, nothing wrong
    for content in (b"[]", b"[\n]", b'{"traceEvents":[]}', b"["):
        told(tmp, folder, "none.json", content, 0)
    cuts = sorted({*range(200, len(good) - 3, max(1, len(good) // 12)), len(good) - 5})
    for at in cuts:
        line = good[:at].count(b"\n") + 1
        told(tmp, folder, "cut.json", good[:at], 0, f"ends unexpectedly in line {line}")
    packed = gzip.compress(good)
    told(tmp, folder, "cut.json.gz", packed[:len(packed) // 2], 0, "ends unexpectedly in line")
    # in the folder of a run it does not take the report with it
    shutil.copytree(folder, tmp / "broken")
    (tmp / "broken/trace.json").write_text('{"traceEvents":[\n{"ph":"X","ts":"now"}]}')
    done = stoker("report", tmp / "broken", "-o", tmp / "b.html", status=1)
    assert "'trace.json' was cut or changed after the run" in done.stderr, done.stderr
    assert "line 2: 'ts' is not a time" in done.stderr and "timeline is left out" in done.stderr, done.stderr
    assert "'ts' is not a time" in data_of(tmp / "b.html")["runs"][0]["trace"]["note"]
    for options, word in ((("--steps=9-8",), "--steps: '9-8'"), (("--steps=0",), "--steps: '0'"), (("--ranks=9",), "ranks 0 to 1"),
                          (("--epoch=7",), "no training steps"), (("--steps=500",), "with up to 8 steps"),
                          (("--trace", tmp / "absent"), "absent")):
        done = stoker("report", folder, "-o", tmp / "b.html", *options, status=None)
        assert done.returncode in (1, 2) and word in done.stderr, (options, done.stderr)
    # a page without traces has none of it
    (tmp / "broken/trace.json").unlink()
    for p in (tmp / "broken").glob("trace-*"):
        p.unlink()
    assert report(tmp, tmp / "broken") is None  # they may be deleted
    stoker("report", tmp / "broken", "--steps=1", "-o", tmp / "b.html", status=2)


def several(tmp, folder):
    """A file a process, each from its own beginning; and more runs than are drawn."""
    lines = (folder / "trace.json").read_text().splitlines()
    zero = int(json.loads((folder / "trace.json").read_text())["otherData"]["begin_unix_ns"])
    apart = tmp / "runs/0"
    shutil.copytree(folder, apart)
    for p in apart.glob("trace*"):
        p.unlink()
    later = [re.sub(r'"ts":(\d+)', lambda m: f'"ts":{int(m.group(1)) + 7000}', x) for x in lines]
    for rank, source, begin in ((0, lines, zero), (1, later, zero - 7000000)):
        own = [x.rstrip(",") for x in source if f'"pid":{rank + 1},' in x]
        (apart / f"trace-{rank}.json").write_text(
            f'{{"otherData":{{"program":"stoker x","begin_unix_ns":"{begin}"}},"traceEvents":[\n' + ",\n".join(own) + "]}")
    assert report(tmp, apart)["windows"] == report(tmp, folder)["windows"]
    for i in range(1, 5):
        shutil.copytree(folder, tmp / f"runs/{i}")
    done = stoker("report", tmp / "runs", "-o", tmp / "runs.html")
    assert "only 4 timelines are drawn, but 1 more" in done.stderr, done.stderr
    assert [("trace" in r) for r in data_of(tmp / "runs.html")["runs"]].count(True) == 4
    stoker("report", tmp / "runs", "-o", tmp / "runs.html", "--trace", folder / "trace.json", status=2)


def foreign(tmp, folder):
    """A file as DFTracer 1.0 leaves it: by the ends of events, hashes as numbers, arguments as texts, names of its
    processes last, two blanks before the first line."""
    path, zero = tmp / "trace-0-of-1.pfw", 1744611915606017
    lines = ['{"id":1,"name":"FH","cat":"dftracer","pid":71,"tid":71,"ph":"M","args":{"hhash":9,"name":"/data/img_1.npz",'
             '"value":9509357668201227806}}']

    def put(name, cat, tid, ts, dur, args):
        lines.append(f'{{"id":{len(lines) + 1},"name":"{name}","cat":"{cat}","pid":71,"tid":{tid},"ts":{zero + ts},'
                     f'"dur":{dur},"ph":"X","args":{{"hhash":9,{args}}}}}')
    for step in range(1, 9):
        at = step * 1000
        put("open64", "POSIX", 80, at - 300, 20, '"level":10,"fhash":9509357668201227806,"ret":5')
        put("read", "POSIX", 80, at - 250, 60, '"level":10,"fhash":9509357668201227806,"count":4096,"ret":4096')
        put("__fxstat64", "POSIX", 80, at - 180, 10, '"level":10,"fhash":9509357668201227806,"ret":0')
        put("NPZReader.open", "reader", 80, at - 320, 200, f'"epoch":"1","step":"{step}","image_idx":"0"')
        took = 900 if step == 6 else 500
        put("compute", "compute", 71, at, took - 20, f'"epoch":"1","step":"{step}"')
        put("fetch.block", "dataloader", 71, at, took, f'"count":"{step}","epoch":"1","step":"{step}"')
        put("fetch.iter", "dataloader", 71, at - 100, 100, f'"count":"{step}","epoch":"1","step":"{step}"')
    lines.append('{"id":99,"name":"process_name","cat":"dftracer","pid":71,"tid":71,"ph":"M","args":{"hhash":9,"name":"Rank 3",'
                 '"value":"process_name"}}')
    path.write_text("  [\n" + "\n".join(lines) + "\n]")
    trace = report(tmp, folder, "--trace", path)
    first, slow = trace["windows"]
    assert (first["first"], first["last"], slow["first"], slow["last"]) == (1, 3, 5, 7)
    assert (slow["slowest"]["step"], slow["slowest"]["rank"], slow["slowest"]["ns"]) == (6, 3, 900000)
    assert int(first["begin_ns"]) == (zero + 1000) * 1000 and first["length"] == 2500000
    seen = rows(trace)
    # from the first block to the last: what was read for it is before
    assert sum(s["kind"] == "compute" for s in seen) == 3 and sum(s["kind"] == "step" for s in seen) == 3
    read = [s for s in seen if s["kind"] == "read"]
    assert len(read) == 2 and read[0]["file"] == "/data/img_1.npz" and (read[0]["asked"], read[0]["moved"]) == (4096, 4096)
    assert sum(s["kind"] == "metadata" for s in seen) == 2 and {lane["rank"] for lane in trace["lanes"]} == {3}
    assert report(tmp, folder, "--trace", path, "--ranks=3")["windows"] == trace["windows"]
    assert not any(s["kind"] == "decode" for s in seen), "its order does not say what lies in a sample"


def big(tmp, folder):
    """More spans than a page takes, in more ranks: how many were left out, in a small page and in small memory."""
    path, spans, ranks = tmp / "big.json", 0, 40
    with path.open("w") as f:
        f.write('{"traceEvents":[\n{"ph":"M","name":"process_name","pid":1,"tid":1,"args":{"name":"rank 0"}}')
        for pid in range(1, ranks + 1):
            f.write(f',\n{{"ph":"M","name":"process_name","pid":{pid},"tid":{pid},"args":{{"name":"rank {pid - 1}"}}}}')
            f.write(f',\n{{"ph":"X","name":"step","cat":"rank","pid":{pid},"tid":{pid},"ts":0,"dur":{BIG},'
                    '"args":{"epoch":1,"step":1}}')
        for i in range(BIG):
            f.write(f',\n{{"ph":"X","name":"read","cat":"store","pid":1,"tid":99,"ts":{i},"dur":0.{i % 997 + 1:03},'
                    f'"args":{{"file":"/d/{i}","offset":{i},"asked_bytes":4096}}}}')
            spans += 1
        f.write("]}")
    page = tmp / "big.html"
    with subprocess.Popen([STOKER, "report", str(folder), "-o", str(page), "--trace", str(path)],
                          stdout=subprocess.DEVNULL) as p:
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    assert status == 0
    assert SANITIZED or used.ru_maxrss < 64 << 10, f"{used.ru_maxrss} KiB for a trace of {path.stat().st_size >> 10} KiB"
    assert page.stat().st_size < 1.5e6, page.stat().st_size
    trace = data_of(page)["runs"][0]["trace"]
    w = trace["windows"][0]
    assert trace["ranks"] == ranks and trace["ranks_left_out"] == ranks - 16, trace["ranks_left_out"]
    assert w["seen"] == spans + 16 and len(w["spans"]["lane"]) == CAP, (w["seen"], spans)
    kept = [s["dur"] for s in rows(trace) if s["kind"] == "read"]
    durations = sorted((i % 997 + 1 for i in range(BIG)), reverse=True)
    assert sorted(kept, reverse=True) == durations[:CAP - 16], "the longest"
    assert w["count"][trace["kinds"].index("read")] == BIG
    assert w["time"][trace["kinds"].index("read")] == sum(durations)


def drawn(tmp, page, spans):
    """What a person sees and does."""
    with Page(tmp / "profile", f"file://{page}") as p:
        p.until('document.getElementById("tl").hasAttribute("data-to")')
        p.value('document.getElementById("steps").scrollIntoView()')
        p.frame()
        at = lambda name: float(p.value(f'document.getElementById("tl").getAttribute("data-{name}")'))  # noqa: E731
        view = lambda: (at("from"), at("to"))  # noqa: E731
        box = p.value('(r => [r.left, r.top, r.width, r.height])(document.getElementById("tl").getBoundingClientRect())')
        trace = data_of(page)["runs"][0]["trace"]
        whole = (0, trace["windows"][0]["length"])
        assert view() == whole and at("drawn") == len(trace["windows"][0]["spans"]["lane"]), (view(), at("drawn"))
        colours = p.value("""(c => { var d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, s = {};
            for (var i = 0; i < d.length; i += 4) if (d[i + 3] === 255) s[d[i] + "," + d[i + 1] + "," + d[i + 2]] =
              (s[d[i] + "," + d[i + 1] + "," + d[i + 2]] || 0) + 1; return s; })(document.getElementById("tl"))""")
        # computing, and waiting or its steps, cover more than a line
        assert colours.get("63,163,91", 0) > 1000 and colours.get("140,150,163", 0) > 1000, colours
        legend = p.value('Array.from(document.querySelectorAll("#tl-legend button")).map(b => b.dataset.kind)')
        assert {"compute", "wait", "barrier", "read", "decode", "open, close", "metadata", "preprocess", "transport",
                "batch"} <= set(legend), legend

        def place(s):
            """The middle of the span on the screen, in the row of its lane's rank: 0 for steps."""
            a, b = view()
            begin = s["begin"] - int(trace["windows"][0]["begin_ns"])
            return box[0] + 132 + (begin + s["dur"] / 2 - a) / (b - a) * (box[2] - 132)

        zero = int(trace["windows"][0]["begin_ns"])
        known = next(s for s in spans if s["name"] == "compute" and s["lane"] == (0, "rank 0") and s["step"] == 2 and
                     s["epoch"] == 1)
        y = box[1] + 24 + 13 + 5
        p.mouse("mouseMoved", place(known), y)
        p.frame()
        tip = p.value('(t => t.hidden ? "" : t.textContent)(document.getElementById("tl-tip"))')
        assert "compute: " in tip and "rank 0" in tip and "epoch 1, step 2" in tip, tip
        shown = float(re.search(r"compute: ([\d.]+) ms", tip).group(1)) * 1e6
        assert abs(shown - known["dur"]) <= known["dur"] * 1e-5, (shown, known["dur"])
        begins = re.search(r"from ([\d.]+) (ms|µs|s) to", tip)
        ns = float(begins.group(1)) * {"s": 1e9, "ms": 1e6, "µs": 1e3}[begins.group(2)]
        assert abs(ns - (known["begin"] - zero)) <= 1e-5 * ns, (ns, known["begin"] - zero)
        # the wheel zooms where the mouse is
        x = place(known)
        middle = known["begin"] + known["dur"] / 2 - zero
        for _ in range(3):
            p.mouse("mouseWheel", x, y, deltaX=0, deltaY=-240)
            p.frame()
        a, b = view()
        assert 0 <= a < middle < b <= whole[1] and b - a < 0.2 * whole[1], (a, middle, b)
        assert at("drawn") < len(trace["windows"][0]["spans"]["lane"])
        # dragging moves, by as much as the mouse did
        p.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        p.mouse("mouseMoved", x - 100, y, button="left", buttons=1)
        p.mouse("mouseReleased", x - 100, y, button="left", clickCount=1)
        p.frame()
        moved = view()
        assert abs((moved[0] - a) - 100 / (box[2] - 132) * (b - a)) < (b - a) * 0.02, (a, b, moved)
        # keys, and buttons
        p.value('document.getElementById("tl").focus()')
        p.key("0", text="0")
        p.frame()
        assert view() == whole
        p.key("+", text="+")
        p.frame()
        near = view()
        assert near[1] - near[0] < 0.7 * whole[1]
        p.key("ArrowRight")
        p.frame()
        assert view()[0] > near[0]
        for button, check in (("all", lambda v: v == whole), ("in", lambda v: v[1] - v[0] < whole[1]),
                              ("right", lambda v: v[0] > 0.2 * whole[1]), ("out", lambda v: v[1] - v[0] > 0.9 * whole[1])):
            p.value(f'document.getElementById("tl-{button}").click()')
            p.frame()
            assert check(view()), (button, view())
        # a request of a worker, with its file and bytes
        read = max((s for s in spans if s["name"] == "read" and s["epoch"] == 1 and s["step"] == 1 and
                    s["lane"] == (0, "train worker 0")), key=lambda s: s["dur"])
        p.value('document.getElementById("tl-all").click()')
        p.frame()
        found = None
        for y in range(int(box[1]) + 30, int(box[1] + min(box[3], 400)), 13):
            p.mouse("mouseMoved", place(read), y)
            p.frame()
            tip = p.value('(t => t.hidden ? "" : t.textContent)(document.getElementById("tl-tip"))')
            if "train worker 0" in tip and "read" in tip.splitlines()[0]:
                found = tip
        assert found and "offset" in found and read["file"].rsplit("/", 1)[0] in found, found
        # a kind is hidden and shown
        before = at("drawn")
        p.value('document.querySelector("#tl-legend [data-kind=decode]").click()')
        p.frame()
        assert at("drawn") < before
        # other steps
        if len(trace["windows"]) > 1:
            p.value('(s => { s.value = "1"; s.dispatchEvent(new Event("change")); })(document.getElementById("window"))')
            p.frame()
            assert view() == (0, trace["windows"][1]["length"])
        assert p.value("document.documentElement.scrollWidth - window.innerWidth") <= 0
        assert not p.problems, p.problems


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        tmp = pathlib.Path(name)
        folder = tmp / "out"
        stoker("run", "-n", "2", *tiny(tmp / "data", folder, files=32, dataset__num_files_eval=8, workflow__evaluation="true",
                                       reader__batch_size=2, reader__batch_size_eval=2, reader__read_threads=2,
                                       reader__preprocess_time=0.0003, reader__transport="shared_memory", train__epochs=2,
                                       train__computation_time=0.003, dataset__record_length_bytes=65536,
                                       storage__page_cache_files=0, run__trace="both"))
        on_page(tmp, folder)
        hostile(tmp, folder)
        several(tmp, folder)
        foreign(tmp, folder)
        big(tmp, folder)
        if BROWSER:
            stoker("report", folder, "-o", tmp / "page.html")
            drawn(tmp, tmp / "page.html", truth(folder))
        else:
            left_out("drawing: chromium is not installed")


if __name__ == "__main__":
    main()

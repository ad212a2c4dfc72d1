"""The report: the page drawn by a real browser, from a study of ours and from DLIO's folders; table and plots."""
# takes 47 s
# tier: long
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "truth"))
from browser import BROWSER, Page  # noqa: E402
from told import told  # noqa: E402
from util import SOURCE, left_out, stoker, tiny, undisturbed  # noqa: E402

# What a person would do and see.
PROBE = """(function () {
  function all(s) { return Array.from(document.querySelectorAll(s)); }
  function order(i) { return all("#table tbody tr").map(r => r.children[i].textContent); }
  function head(i) { return all("#table th")[i]; }
  function shown(s) { return all(s).filter(e => e.checkVisibility()).length; }
  var main = document.querySelector("main"), out = { ready: document.documentElement.getAttribute("data-ready"),
    folded: all(".fold").filter(f => !f.hidden && !f.open).length, light: document.getElementById("trust-light").textContent,
    lead: all("#tiles .lead")[0].textContent, limit: document.getElementById("limit").textContent,
    facts: document.getElementById("facts").textContent, title: document.getElementById("title").textContent,
    first: document.getElementById("summary").getBoundingClientRect().bottom,
    hero: all("#chart figcaption, #chart svg text").map(e => e.textContent) };
  all("details").forEach(d => { d.open = true; });
  if (head(4)) {
    out.before = order(4); head(4).querySelector("button").click(); out.down = order(4); head(4).click(); out.up = order(4);
    out.sort = head(4).getAttribute("aria-sort");
  }
  out.charts = all(".chart svg").length;
  out.empty = all(".chart > svg").filter(s => !s.querySelector("polyline, rect, .point")).length;
  out.unnamed = all(".chart > svg").filter(s => !s.getAttribute("aria-label")).length;
  out.captions = all("figcaption").map(e => e.textContent);
  out.bars = all(".error").map(e => e.querySelectorAll("line").length);
  out.points = shown(".chart > svg .point");
  out.ledgers = all("#details .ledger").map(t => Array.from(t.querySelectorAll("tr:not(.why) td:first-child")).map(c => c.textContent));
  out.nan = /NaN|undefined|Infinity|\\[object/.test(main.innerHTML);
  out.text = main.textContent.replace(/\\s+/g, " ");
  out.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  out.cut = all("main *").filter(e => e.checkVisibility() && e.clientWidth > 0 && !e.closest("svg, .unseen, select") &&
    getComputedStyle(e).display !== "inline" && (e.scrollWidth > e.clientWidth + 1 ||
    e.getBoundingClientRect().right > innerWidth + 1)).map(e => e.tagName + "#" + e.id + "." + e.className);
  out.findings = all("#findings li").length;
  out.verdicts = all("#verdicts .verdict").length;
  out.runs = all("#run option").length;
  out.rows = shown("#runs tbody tr"); out.configurations = shown("#table tbody tr"); out.results = shown("#details > details");
  out.strips = all("#runs .strip").map(s => Array.from(s.children).reduce((a, c) => a + parseFloat(c.style.width), 0));
  out.foreign = all("main b, main script, main img").length;
  out.elsewhere = performance.getEntriesByType("resource").length;
  return out;
})()"""


def browse(tmp, *flags):
    return subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                           f"--user-data-dir={tmp}/profile", "--virtual-time-budget=3000", *flags],
                          capture_output=True, text=True, timeout=120)


def look(tmp, page, width=1300, more=None):
    with Page(tmp / f"profile-{width}", f"file://{page}", width=width, height=900) as p:
        p.frame()
        seen = p.value(PROBE)
        p.frame()
        if more:
            more(p)
        assert not p.problems, p.problems
    assert seen["ready"] == "yes" and not seen["nan"] and seen["empty"] == 0 and seen["unnamed"] == 0, seen
    assert seen["wide"] <= 0 and not seen["cut"], (width, seen["wide"], seen["cut"])
    assert seen["elsewhere"] == 0 and seen["foreign"] == 0, seen
    return seen


def number(s):
    return float(s.replace(",", "").split()[0]) if s else -1


def limits(folder):
    """What result.json says limited each run."""
    found = [json.loads(p.read_text()).get("limit", {}).get("text") for p in sorted(folder.rglob("result.json"))]
    return [re.sub(r"\s+", " ", t) for t in found if t]


def check(seen, runs):
    assert seen["charts"] >= 6 and seen["findings"] >= 2 and seen["verdicts"] >= 1 and seen["runs"] == runs, seen
    values = [number(x) for x in seen["before"]]
    assert [number(x) for x in seen["down"]] == sorted(values, reverse=True), seen
    up = [v for v in map(number, seen["up"]) if v >= 0]
    assert up == sorted(up) and seen["sort"] == "ascending", seen
    assert seen["folded"] >= 5 and "100" in seen["hero"] and "AU (%)" in seen["hero"], seen["hero"]
    assert all(n == 3 for n in seen["bars"]), "an error bar has two caps"
    assert not any("eported" in c for c in seen["captions"]), seen["captions"]
    assert all(99 < s < 101 for s in seen["strips"]) and len(seen["strips"]) == runs, seen["strips"]


def own_study(tmp):
    (tmp / "small.yaml").write_text(
        "model: {name: small}\nframework: pytorch\nworkflow: {train: True, evaluation: True}\n"
        "dataset: {data_folder: d, format: npz, num_files_train: 48, num_files_eval: 4, record_length_bytes: 4096}\n"
        "reader: {data_loader: pytorch, batch_size: 2, read_threads: 1}\nmetric: {au: 0.9}\n"
        "train: {epochs: 3, computation_time: 0.004}\nevaluation: {eval_time: 0.002}\n")
    (tmp / "d.csv").write_text("model,processes,overrides\nsmall.yaml,1,\nsmall.yaml,2,\n"
                               "small.yaml,2,++workload.reader.batch_size=4\n"
                               "small.yaml,2,++workload.model.name='</script><b>&\"x'\n")
    stoker("study", "run", "d.csv", "-q", cwd=tmp)
    stoker("study", "report", "d.csv", "-o", "s.html", cwd=tmp)
    assert "Key findings" in (tmp / "s.html").read_text()
    done = stoker("report", "results", "-o", "r.html", "--csv", "benchmark_results.csv", cwd=tmp)
    assert f"report: {tmp}/r.html" in done.stdout
    rows = list(csv.DictReader((tmp / "benchmark_results.csv").open()))
    assert len(rows) == 4 and {r["parameter"] for r in rows} == {"", "batch_size", "name"}, rows
    row = next(r for r in rows if r["parameter"] == "batch_size")
    summary = json.loads((pathlib.Path(tmp, row["folder"]) / "summary.json").read_text())["metric"]
    assert row["value"] == "4" and row["processes"] == "2"
    assert abs(float(row["au_mean_percent"]) - summary["train_au_mean_percentage"]) < 1e-6
    return tmp / "r.html"


def ranking(tmp):
    """A run from the page cache is not the best one, and samples of other sizes are not ranked by samples/s."""
    base = dict(storage__store="throttle+memory", files=16, fmt="npy", train__epochs=2, train__computation_time=0.006,
                reader__batch_size=1, dataset__record_length_bytes=40000)

    def run(name, **keys):
        def once(_):
            shutil.rmtree(tmp / "rank" / name, ignore_errors=True)
            stoker("run", *map(str, tiny(tmp / "rank-data", tmp / "rank" / name, **{**base, **keys})))
            return tmp / "rank" / name
        undisturbed(once)

    def best(situation, *words, absent=()):
        text = stoker("report", "rank", "-o", "rank.html", cwd=tmp).stdout
        said = [s for s in text.splitlines() if "highest with" in s or "can be ranked" in s]
        assert len(said) == 1 and all(w in said[0] for w in words) and not any(w in said[0] for w in absent), text
        told("report", situation, said[0].strip().lstrip("-* "))

    cached = "throttle+posix"  # over files that were just written
    run("slow", storage__throttle__latency="0.012")
    run("slower", storage__throttle__latency="0.016")
    run("warm", storage__throttle__latency="0.001", storage__store=cached)
    best("two runs from storage of 12 and 16 ms, and a fast one from the page cache",
         "storage.throttle.latency=0.012", "1 configuration is not ranked: the page cache or memory", absent=["latency=0.001"])
    shutil.rmtree(tmp / "rank/slower")
    best("one run from storage and a fast one from the page cache", "only one configuration can be ranked", "latency=0.012")
    shutil.rmtree(tmp / "rank/slow")
    run("slow", storage__throttle__latency="0.012", storage__store=cached)
    best("all runs from memory or the page cache", "not figures of the storage")
    shutil.rmtree(tmp / "rank/warm")
    shutil.rmtree(tmp / "rank/slow")
    run("slow", storage__throttle__latency="0.012")
    run("large", storage__throttle__latency="0.008", dataset__record_length_bytes=160000)
    best("samples of 40,000 bytes and of 160,000 bytes", "40000 to 160000 bytes", "is not ranked",
         absent=["samples/s, at", "throughput is highest"])
    shutil.rmtree(tmp / "rank/large")
    run("accelerator", storage__throttle__latency="0.012", train__computation_time=0.02)
    best("accelerators of 6 and 20 ms a step", "The accelerators differ", "0.006 to 0.02 s")


def pages_of(tmp, page):
    """Pages of the print."""
    browse(tmp, f"--print-to-pdf={tmp}/r.pdf", "--no-pdf-header-footer", f"file://{page}")
    pdf = (tmp / "r.pdf").read_bytes()
    assert pdf.startswith(b"%PDF") and len(pdf) > 10000
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


def one_result(tmp):
    """One run alone: a name though the workload has none, the whole-run AU first, its time budget, no factors."""
    (tmp / "jobs").mkdir()
    (tmp / "jobs/mine.yaml").write_text("framework: pytorch\nworkflow: {train: True}\nreader: {data_loader: pytorch}\n")
    keys = tiny(tmp / "one-data", tmp / "one", storage__store="throttle+memory", storage__throttle__latency=0.004, files=24,
                fmt="npy", train__epochs=2, train__computation_time=0.004, reader__batch_size=2, run__trace="chrome")
    stoker("run", tmp / "jobs/mine.yaml", "-n", 2, *keys[1:])
    stoker("report", "one", "-o", "one.html", cwd=tmp)
    result = json.loads((tmp / "one/result.json").read_text())
    whole, dlio = (result["training"][k] for k in ("whole_run_au_percent", "au_mean_percent"))
    seen = look(tmp, tmp / "one.html")
    assert seen["first"] < 900, f"the first screen ends at {seen['first']}"
    assert seen["title"] == "mine, 2 accelerators" and "jobs/mine.yaml" in seen["facts"], (seen["title"], seen["facts"])
    assert re.match(rf"Accelerator utilization, whole run{whole:.1f} %", seen["lead"]), seen["lead"]
    assert f"{dlio:.1f} % by DLIO\u2019s definition" in seen["lead"], seen["lead"]
    assert limits(tmp / "one")[0] in re.sub(r"\s+", " ", seen["limit"]), seen["limit"]
    assert seen["hero"][0] == "Where the time went", seen["hero"]
    assert f"One mine needs {result['need']['text']}." in seen["text"], result["need"]
    parts = result["training"]["decomposition"]["mean_over_ranks_percent"]
    assert f"accelerators computing{parts['compute']:.1f} %" in seen["text"], parts
    for word in ("Host", "Storage", "Workload", "Date", "Measured with"):
        assert word in seen["facts"], seen["facts"]
    setup = seen["text"].split("Configuration")[-1].split("Machines")[0]
    assert "storage.throttle.latency" in setup and "run.trace" not in setup, setup
    assert not any("baseline" in c or "run.trace" in c for c in seen["captions"]), seen["captions"]
    look(tmp, tmp / "one.html", 500)
    assert pages_of(tmp, tmp / "one.html") in (2, 3), "the summary and the verdicts, which print unfolds; nothing else"
    for phase, words in (("evaluation", "in evaluation"), ("checkpoint", "Checkpoints written")):
        keys = dict(workflow__train="false", files=8, fmt="npy")
        keys.update(dict(workflow__evaluation="true", dataset__num_files_eval=8) if phase == "evaluation" else
                    dict(workflow__checkpoint="true", checkpoint__checkpoint_folder=tmp / "ckpt", checkpoint__num_checkpoints_write=1, model__model_size_bytes=1 << 16))
        stoker("run", *map(str, tiny(tmp / f"{phase}-data", tmp / phase, **keys)))
        stoker("report", phase, "-o", "other.html", cwd=tmp)
        assert words in look(tmp, tmp / "other.html")["lead"]


def hostile(tmp):
    """Names of others are text, whatever they hold."""
    names = ["<!--<script", "</script><b>&\"x'", "<!--</script>-->", "]]>\u2028\\u003c", "%MARK@DATA@", "__proto__", "constructor"]
    for n, name in enumerate(names):
        shutil.copytree(tmp / "one", tmp / "hostile" / f"{n}<!--<script>")
        path = tmp / "hostile" / f"{n}<!--<script>" / "result.json"
        result = json.loads(path.read_text())
        result["workload"] = result["limit"]["text"] = result["environment"]["hostname"] = name
        result["limit"].update(facts=[{"reason": "limit.latency", "texts": {"place": name}}] if n % 2 else [], effects=[])
        result["run_id"] = f"{n}"
        path.write_text(json.dumps(result))
    stoker("report", "hostile", "-o", "hostile.html", "--title", names[0] + names[1] + names[4], cwd=tmp)
    for width in (1300, 500):
        seen = look(tmp, tmp / "hostile.html", width)
        assert seen["title"] == names[0] + names[1] + names[4], seen["title"]
        assert all(n.replace("\u2028", "\\u2028") in seen["text"] for n in names), seen["text"][:2000]
    data = re.search(r'id="data">(.*?)</script>', (tmp / "hostile.html").read_text(), re.S).group(1)
    assert "<" not in data and len(json.loads(data)["runs"]) == len(names)


def malformed(tmp):
    """A result of other types than expected: the page says so and shows the rest."""
    wrong = {"ledger": [None, 5, {"title": {}}], "series": {"curves": {"x": 5}, "accelerator_use": {"ranks": [1, 2]}},
             "what_if": {"known": True, "changes": [None, 3]}, "need": [1], "verdicts": [1, None], "measured": {"text": 5},
             "limit": "x", "system": [1], "training": {"epochs": {"a": 1}}}
    good = json.loads((tmp / "one/result.json").read_text())
    for key, value in {**wrong, "all": None}.items():
        shutil.copytree(tmp / "one", tmp / "malformed" / key)
        bad = {**good, **wrong} if key == "all" else {**good, key: value}
        (tmp / "malformed" / key / "result.json").write_text(json.dumps(bad))
    stoker("report", "malformed/all", "-o", "bad.html", cwd=tmp)
    assert "Accelerator utilization, whole run" in look(tmp, tmp / "bad.html")["lead"]
    stoker("report", "malformed", "-o", "bad.html", cwd=tmp)
    seen = look(tmp, tmp / "bad.html")
    assert seen["runs"] == 10 and seen["results"] == 10 and "cannot be drawn" in seen["text"], seen


def many(tmp):
    base = SOURCE / "tests/data/seed-study/results/6/2025-11-30-18-34-59"
    for i in range(600):
        shutil.copytree(base, tmp / f"many/{i}/run")
    stoker("report", "many", "-o", "many.html", cwd=tmp)
    size = (tmp / "many.html").stat().st_size
    assert size < 10e6, f"600 runs make {size} bytes"

    def all_of_them(p):
        p.value('document.querySelector("#runs .more button").click()')
        p.value('document.querySelector("#results .more button").click()')
        p.frame()
        seen = p.value('["#runs tbody tr", "#details > details"].map(s => Array.from(document.querySelectorAll(s))'
                       '.filter(e => e.checkVisibility()).length)')
        assert seen == [600, 600], seen

    seen = look(tmp, tmp / "many.html", more=all_of_them)
    assert seen["runs"] == 600 and seen["rows"] == 20 and seen["results"] == 20 and seen["first"] < 900, seen


def main():
    with tempfile.TemporaryDirectory() as tmp:
        ranking(pathlib.Path(tmp))
    if not BROWSER:
        left_out("no chromium to draw the page")
        return
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        page = own_study(tmp)
        text = page.read_text()
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "") and "https://" not in text
        for width in (1300, 500):
            seen = look(tmp, page, width)
            check(seen, 4)
            said = limits(tmp / "results")
            assert len(said) == 4 and all(t in seen["text"] for t in said), (said, seen["text"])
        assert len(seen["ledgers"]) == 4, seen["ledgers"]
        assert all(t[:3] == ["sample data delivered (decoded)", "bytes in files, requested",
                            "bytes in files, returned"]
                   for t in seen["ledgers"]), seen["ledgers"]
        assert 1 <= pages_of(tmp, page) <= 3
        stoker("report", SOURCE / "tests/data/seed-study/results", "-o", "dlio.html", cwd=tmp)
        seen = look(tmp, tmp / "dlio.html")
        check(seen, 5)
        assert "not valid" in seen["light"] and seen["text"].count("DLIO's files do not say what limited the run") == 10, seen["light"]
        one_result(tmp)
        hostile(tmp)
        malformed(tmp)
        many(tmp)
        if shutil.which("gnuplot"):
            stoker("report", SOURCE / "tests/data/seed-study/results", "-o", "p.html", "--plots", "plots", cwd=tmp)
            made = {p.name for p in (tmp / "plots").iterdir()}
            for name in ("whole_au", "au", "throughput"):
                assert {f"{name}.png", f"{name}.svg", f"{name}.pdf"} <= made, made
            assert (tmp / "plots/au.png").read_bytes().startswith(b"\x89PNG")


if __name__ == "__main__":
    main()

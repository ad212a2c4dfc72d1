"""The report: the page drawn by a real browser, from a study of ours and from DLIO's folders; table and plots."""
# tier: long
import csv
import hashlib
import html
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
from told import told  # noqa: E402
from util import SOURCE, left_out, stoker, tiny  # noqa: E402

BROWSER = next((b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None)

# Runs after the page's own script: what a person would do and see, written where the dump shows it.
PROBE = """<script>
(function () {
  function order(i) { return Array.prototype.map.call(document.querySelectorAll("#table tbody tr"), function (r) {
    return r.children[i].textContent; }); }
  var out = { ready: document.documentElement.getAttribute("data-ready"), before: order(4) };
  document.querySelectorAll("#table th")[4].click(); out.down = order(4);
  document.querySelectorAll("#table th")[4].click(); out.up = order(4);
  out.sort = document.querySelectorAll("#table th")[4].getAttribute("aria-sort");
  out.charts = document.querySelectorAll(".chart svg").length;
  out.empty = Array.prototype.filter.call(document.querySelectorAll(".chart svg"), function (s) {
    return !s.querySelector("polyline, rect"); }).length;
  document.querySelectorAll("#details details").forEach(function (d) { d.open = true; });
  out.ledgers = Array.prototype.map.call(document.querySelectorAll("#details .ledger"), function (t) {
    return Array.prototype.map.call(t.querySelectorAll("td:first-child"), function (c) { return c.textContent; }); });
  out.nan = /NaN|undefined|Infinity/.test(document.querySelector("main").innerHTML);
  out.wide = document.documentElement.scrollWidth - window.innerWidth;
  out.findings = document.querySelectorAll("#findings li").length;
  out.verdicts = document.querySelectorAll("#verdicts .verdict").length;
  out.runs = document.querySelectorAll("#run option").length;
  var e = document.createElement("pre"); e.id = "probe"; e.textContent = JSON.stringify(out);
  document.body.appendChild(e);
})();
</script></body>"""


def browse(tmp, *flags):
    return subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                           f"--user-data-dir={tmp}/profile", "--virtual-time-budget=3000", *flags],
                          capture_output=True, text=True, timeout=120)


def look(tmp, page, width=1200):
    probed = tmp / "probed.html"
    probed.write_text(page.read_text().replace("</body>", PROBE))
    # a viewport narrower than a browser's least window: the page in a frame of that width
    done = browse(tmp, f"--window-size={width},900", "--enable-logging=stderr", "--dump-dom", f"file://{probed}")
    errors = [x for x in done.stderr.splitlines() if "CONSOLE" in x]
    assert not errors, errors
    found = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.S)
    assert found, done.stderr[-500:]
    return json.loads(html.unescape(found.group(1)))


def number(s):
    return float(s.replace(",", "")) if s else -1


def check(seen, runs):
    assert seen["ready"] == "yes" and not seen["nan"] and seen["empty"] == 0, seen
    assert seen["charts"] >= 6 and seen["findings"] >= 3 and seen["verdicts"] >= 1 and seen["runs"] == runs, seen
    values = [number(x) for x in seen["before"]]
    assert [number(x) for x in seen["down"]] == sorted(values, reverse=True), seen
    up = [v for v in map(number, seen["up"]) if v >= 0]
    assert up == sorted(up) and seen["sort"] == "ascending", seen
    assert seen["wide"] <= 0, f"the page is {seen['wide']} pixels too wide"


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
        stoker("run", *map(str, tiny(tmp / "rank-data", tmp / "rank" / name, **{**base, **keys})))

    def says(name, storage, text, taken):
        path = tmp / "rank" / name / "result.json"
        result = json.loads(path.read_text())
        result["measured"] = dict(storage=storage, text=text, taken=taken)
        result["integrity"]["result_json_sha256"] = ""
        digest = hashlib.sha256(json.dumps(result, indent=1, ensure_ascii=False).encode()).hexdigest()
        result["integrity"]["result_json_sha256"] = digest
        path.write_text(json.dumps(result, indent=1, ensure_ascii=False))

    def best(situation, *words, absent=()):
        text = stoker("report", "rank", "-o", "rank.html", cwd=tmp).stdout
        said = [s for s in text.splitlines() if "highest with" in s or "can be ranked" in s]
        assert len(said) == 1 and all(w in said[0] for w in words) and not any(w in said[0] for w in absent), text
        told("report", situation, said[0].strip().lstrip("-* "))

    run("slow", storage__throttle__latency="0.012")
    run("slower", storage__throttle__latency="0.016")
    run("warm", storage__throttle__latency="0.001")
    says("slow", "yes", "the storage.", [])
    says("slower", "yes", "the storage.", [])
    says("warm", "no", "not the storage: the page cache (cache).", ["storage"])
    best("two runs from storage of 12 and 16 ms, and a fast one from the page cache",
         "storage.throttle.latency=0.012", "1 configuration is not ranked: the page cache or memory", absent=["latency=0.001"])
    shutil.rmtree(tmp / "rank/slower")
    best("one run from storage and a fast one from the page cache", "only one configuration can be ranked", "latency=0.012")
    says("slow", "no", "not the storage: memory (cache).", ["storage"])
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


def many(tmp):
    base = SOURCE / "tests/data/seed-study/results/6/2025-11-30-18-34-59"
    for i in range(500):
        shutil.copytree(base, tmp / f"many/{i}/run")
    stoker("report", "many", "-o", "many.html", cwd=tmp)
    size = (tmp / "many.html").stat().st_size
    assert size < 10e6, f"500 runs make {size} bytes"
    assert look(tmp, tmp / "many.html")["runs"] == 500


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
        seen = look(tmp, page)
        check(seen, 4)
        assert len(seen["ledgers"]) == 4, seen["ledgers"]
        assert all(t[:3] == ["sample data delivered", "requested from the store", "returned by the store"]
                   for t in seen["ledgers"]), seen["ledgers"]
        check(look(tmp, page, 500), 4)
        browse(tmp, f"--print-to-pdf={tmp}/r.pdf", f"file://{page}")
        assert (tmp / "r.pdf").read_bytes().startswith(b"%PDF") and (tmp / "r.pdf").stat().st_size > 20000
        stoker("report", SOURCE / "tests/data/seed-study/results", "-o", "dlio.html", cwd=tmp)
        check(look(tmp, tmp / "dlio.html"), 5)
        many(tmp)
        if shutil.which("gnuplot"):
            stoker("report", SOURCE / "tests/data/seed-study/results", "-o", "p.html", "--plots", "plots", cwd=tmp)
            made = {p.name for p in (tmp / "plots").iterdir()}
            for name in ("au", "throughput"):
                assert {f"{name}.png", f"{name}.svg", f"{name}.pdf"} <= made, made
            assert (tmp / "plots/au.png").read_bytes().startswith(b"\x89PNG")


if __name__ == "__main__":
    main()

"""The report: the page drawn by a real browser, from a study of ours and from DLIO's folders; table and plots."""
# tier: long
import csv
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
from util import SOURCE, skip, stoker  # noqa: E402

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


def many(tmp):
    base = SOURCE / "tests/data/seed-study/results/6/2025-11-30-18-34-59"
    for i in range(500):
        shutil.copytree(base, tmp / f"many/{i}/run")
    stoker("report", "many", "-o", "many.html", cwd=tmp)
    size = (tmp / "many.html").stat().st_size
    assert size < 10e6, f"500 runs make {size} bytes"
    assert look(tmp, tmp / "many.html")["runs"] == 500


def main():
    if not BROWSER:
        skip("no chromium to draw the page")
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

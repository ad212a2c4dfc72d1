"""The example notebook runs over a study that it finds by itself: its cells, in order, with the real pandas and
matplotlib. Its means and error bars are those of the page, its colors those of the program."""
import json
import os
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SOURCE, skip, stoker  # noqa: E402

try:
    import matplotlib
    import pandas
except ImportError as e:
    skip(f"{e.name} is not installed")

CELLS = [("".join(c["source"]), c["cell_type"]) for c in json.loads((SOURCE / "examples/study.ipynb").read_text())["cells"]]


def study(tmp):
    (tmp / "d.csv").write_text("model,processes,overrides,repeat\nsmall_unet3d,1,,3\nsmall_unet3d,2,,1\n"
                               "small_unet3d,2,++workload.reader.read_threads=1,2\n"
                               "small_unet3d,2,++workload.output.metric.exclude_start_steps=14,1\n")
    stoker("study", "run", "d.csv", "-q", "--config-dir", SOURCE / "examples", "dataset.num_files_train=64",
           "dataset.record_length_bytes=4096", "dataset.record_length_bytes_stdev=0", "train.computation_time=0.005",
           "train.epochs=3", cwd=tmp)
    stoker("report", "results", "-o", "r.html", "--csv", "benchmark_results.csv", cwd=tmp)


def run_cells():
    names = {}
    for source, kind in CELLS:
        if kind == "code":
            exec(source, names)  # noqa: S102 (our own file)
    return names


def same_as_page(tmp, groups):
    page = json.loads(re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', (tmp / "r.html").read_text(), re.S)[1])["groups"]
    assert len(page) == len(groups) == 4, (page, groups)
    bars = 0
    for g in page:
        row, = groups[(groups["factors"] == g["factors"]) & (groups["processes"] == g["ranks"])].itertuples()
        assert abs(row.whole_run_au_percent - g["whole_au"]["mean"]) < 1e-4, (row, g)
        assert row.counts == (not g["unsound"]), (row, g)
        assert pandas.isna(row.error_bar) == ("stdev" not in g["whole_au"]), (row, g)
        if "stdev" in g["whole_au"]:
            assert abs(row.error_bar - g["whole_au"]["stdev"]) < 1e-4, (row, g)
            bars += 1
    assert bars, page  # of 3 runs, and of 3 epochs of single runs; not of 2 runs


def main():
    matplotlib.use("Agg")
    first = next(s for s, kind in CELLS if kind == "code")
    assert "pip install pandas matplotlib" in CELLS[0][0] and "apt install python3-pandas" in first, "packages"
    os.environ.pop("STUDY", None)
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp).resolve()
        study(tmp)
        (tmp / "notes").mkdir()
        for place in (tmp, tmp / "notes", tmp.parent):  # beside the table, below it, above it
            os.chdir(place)
            names = {}
            if place == tmp.parent:
                os.environ["STUDY"] = str(tmp)
            exec(first, names)  # noqa: S102
            assert names["STUDY"] == tmp, (place, names["STUDY"])
        names = run_cells()
        for name in ("au_notebook.png", "factor_notebook.png", "steps_notebook.png"):
            assert (tmp / name).read_bytes().startswith(b"\x89PNG") and (tmp / name).stat().st_size > 5000, name
        assert len(names["runs"]) == 7
        same_as_page(tmp, names["groups"])
        palette = (SOURCE / "src/readback/groups.c").read_text()
        assert names["COLORS"] == re.findall(r'\{"(#\w+)", "#\w+"\}', palette), "the program has other colors"
        os.chdir(tmp.parent)
        os.environ["STUDY"] = str(tmp / "notes")
        try:
            run_cells()
        except SystemExit as e:
            assert "make demo" in str(e), e
        else:
            raise AssertionError("a study that is not there was found")


if __name__ == "__main__":
    main()

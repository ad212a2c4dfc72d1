"""The example notebook runs over a study: its cells, in order, with the real pandas and matplotlib."""
import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SOURCE, skip, stoker  # noqa: E402

try:
    import matplotlib
    import pandas  # noqa: F401
except ImportError as e:
    skip(f"{e.name} is not installed")


def main():
    matplotlib.use("Agg")
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        (tmp / "d.csv").write_text("model,processes,overrides\nsmall_unet3d,1,\nsmall_unet3d,2,\n"
                                   "small_unet3d,2,++workload.reader.read_threads=1\n")
        stoker("study", "run", "d.csv", "-q", "--config-dir", SOURCE / "examples", "dataset.num_files_train=32",
               "dataset.record_length_bytes=4096", "dataset.record_length_bytes_stdev=0", "train.computation_time=0.005",
               cwd=tmp)
        stoker("report", "results", "--csv", "benchmark_results.csv", cwd=tmp)
        os.environ["STUDY"] = str(tmp)
        names = {}
        for cell in json.loads((SOURCE / "examples/study.ipynb").read_text())["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)  # noqa: S102 (our own file)
        for name in ("au_notebook.png", "steps_notebook.png"):
            assert (tmp / name).read_bytes().startswith(b"\x89PNG") and (tmp / name).stat().st_size > 5000, name
        assert len(names["runs"]) == 3 and len(names["base"]) == 2


if __name__ == "__main__":
    main()

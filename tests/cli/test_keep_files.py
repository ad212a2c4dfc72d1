"""dataset.keep_files: false removes what was generated, and nothing else."""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import stoker, tiny  # noqa: E402

with tempfile.TemporaryDirectory() as tmp:
    data = pathlib.Path(tmp, "data")
    for fmt in ("npz", "indexed_binary"):
        stoker("run", *tiny(data, pathlib.Path(tmp, "out"), fmt, dataset__keep_files="false",
                            dataset__num_subfolders_train=2))
        assert not data.exists(), list(data.rglob("*"))
    (data / "train").mkdir(parents=True)
    (data / "train/notes.txt").write_text("mine")
    stoker("run", *tiny(data, pathlib.Path(tmp, "out"), dataset__keep_files="false"))
    assert [p.name for p in data.rglob("*") if p.is_file()] == ["notes.txt"]

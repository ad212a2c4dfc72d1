"""stoker explain: switches that exclude each other, files that would be lost, recordings that cannot be read."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import STOKER  # noqa: E402

LOG = pathlib.Path(__file__).resolve().parents[2] / "examples" / "job.strace.gz"


def explain(*args, status=2):
    done = subprocess.run([STOKER, "explain", *map(str, args)], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, (args, done)
    return done.stderr


with tempfile.TemporaryDirectory() as folder:
    tmp = pathlib.Path(folder)
    page = tmp / "page.html"
    for args, named in ((("--fidelity", LOG, "--confirm", tmp), "--confirm"), (("--counters", "--confirm", tmp), "--counters"),
                        (("--fidelity", LOG, "-o", page), "-o"), (("--confirm", tmp, "-o", page), "-o"),
                        (("--counters", "-o", page), "-o"), (("--counters", "--json"), "--json"),
                        (("--confirm", tmp, "--json"), "--json")):
        said = explain(LOG, *args)
        assert named in said and len(said.splitlines()) == 1, (args, said)
        assert not page.exists()
    # the log has the name of one of the two files of a workload
    for name in "job.yaml", "job.yaml.recorded":
        shutil.copy(LOG, tmp / name)
        assert "would be lost" in explain(tmp / name, "-o", tmp / "job.yaml")
        assert (tmp / name).read_bytes() == LOG.read_bytes(), name
        (tmp / name).unlink()
    # what says that it is a recording, and is none of this program's
    rec = tmp / "rec"
    rec.mkdir()
    (rec / "stoker-recording").write_text("stoker recording 4\njob none\n")
    assert "of version 4" in explain(rec, status=1)
    (rec / "stoker-recording").write_text("something else\n")
    assert "not that of a recording" in explain(rec, status=1)
    if os.geteuid() == 0:
        (rec / "stoker-recording").unlink()
        (rec / "stoker-recording").mkdir()
    else:
        (rec / "stoker-recording").chmod(0)
    said = explain(rec, status=1)
    assert str(rec / "stoker-recording") in said, said

"""A log file that does not hold all lines of the run is reported: status 1 and one sentence that names it, with the
results written."""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import left_out, load, stoker, tiny  # noqa: E402


def reported(data, out, log, **keys):
    done = stoker("run", *tiny(data, out, **keys), status=1)
    sentences = [line for line in done.stderr.splitlines() if line.startswith("stoker: ")]
    assert len(sentences) == 1 and str(log) in sentences[0], done.stderr
    assert "incomplete" in sentences[0] and "No space left on device" in sentences[0], sentences
    r = load(out)
    assert r["status"] == "complete" and r["training"]["epochs"], r["status"]
    for name in ("summary.json", "0_output.json", ".hydra/config.yaml"):
        assert (out / name).stat().st_size > 0, name
    print("  ", sentences[0])


def links(tmp):
    out = tmp / "full"
    out.mkdir()
    (out / "dlio.log").symlink_to("/dev/full")
    reported(tmp / "data", out, out / "dlio.log")
    assert (out / "dlio.log").is_symlink()
    (out / "dlio.log").unlink()
    stoker("run", *tiny(tmp / "data", out))
    assert "[METRIC]" in (out / "dlio.log").read_text()


def full_disk(tmp):
    """A file system of one page: the log's beginning fits."""
    out, logs = tmp / "small", tmp / "logs"
    out.mkdir()
    logs.mkdir()
    (out / "dlio.log").symlink_to(logs / "dlio.log")
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", logs],
                                           capture_output=True).returncode != 0:
        left_out("a full disk under the log file: no tmpfs can be mounted")
        return
    try:
        reported(tmp / "data", out, out / "dlio.log", train__epochs=12)
        assert 0 < (logs / "dlio.log").stat().st_size <= 4096, "not a part of the log"
    finally:
        subprocess.run(["umount", logs], check=True)


with tempfile.TemporaryDirectory() as folder:
    tmp = pathlib.Path(folder)
    links(tmp)
    full_disk(tmp)

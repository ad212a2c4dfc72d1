"""A log file that does not hold all lines of the run is reported: status 1 and one sentence that names it, with the
results written."""
import os
import pathlib
import stat
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, left_out, load, stoker, tiny  # noqa: E402

LIBRARY = pathlib.Path(os.environ.get("STOKER_TOOLS", "build/tests"), "libfull_disk.so")


def reported(data, out, log, env):
    done = stoker("run", *tiny(data, out), status=1, env=env)
    sentences = [line for line in done.stderr.splitlines() if line.startswith("stoker: ")]
    assert len(sentences) == 1 and str(log) in sentences[0], done.stderr
    assert "incomplete" in sentences[0] and "No space left on device" in sentences[0], sentences
    r = load(out)
    assert r["status"] == "complete" and r["training"]["epochs"], r["status"]
    for name in ("summary.json", "0_output.json", ".hydra/config.yaml"):
        assert (out / name).stat().st_size > 0, name
    print("  ", sentences[0])


def replaced(tmp):
    """What somebody put in the place of the log is not written to."""
    out, victim = tmp / "out", tmp / "victim"
    out.mkdir()
    victim.write_text("mine")
    log = out / "dlio.log"
    for prepare in (lambda: log.symlink_to(victim), lambda: os.link(victim, log), lambda: os.mkfifo(log)):
        prepare()
        stoker("run", *tiny(tmp / "data", out))
        assert victim.read_text() == "mine" and stat.S_ISREG(log.lstat().st_mode), log
        assert "[METRIC]" in log.read_text()
        log.unlink()
    log.mkdir()
    done = stoker("run", *tiny(tmp / "data", out), status=1)
    assert f"'{log}'" in done.stderr and "folder" in done.stderr, done.stderr


def full_disk(tmp):
    """The log file alone is on a full disk: a library lets all writes to it fail, or those behind its first line."""
    if SANITIZED or not LIBRARY.exists():
        left_out(f"a full disk under the log file: {LIBRARY} is not built, or cannot be loaded under sanitizers")
        return
    for at in (0, 100):
        out = tmp / f"full{at}"
        env = {**os.environ, "LD_PRELOAD": str(LIBRARY), "FULL_DISK": f"write:{at}:/dlio.log", "FULL_DISK_TOLD": str(tmp / "told")}
        reported(tmp / "data", out, out / "dlio.log", env)
        assert (out / "dlio.log").stat().st_size == at, "not the part of the log that had room"


with tempfile.TemporaryDirectory() as folder:
    tmp = pathlib.Path(folder)
    replaced(tmp)
    full_disk(tmp)

"""Signals that ask for the end keep what was measured, however many come; so do closed pipes."""
# mostly waits
# tier: long
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from hung_store import result_in  # noqa: E402
from util import PATIENCE, SOURCE, STOKER, logged, stoker, tiny, wait_for  # noqa: E402

INT, TERM, QUIT, USR1 = signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1
ENDS = [INT, TERM, signal.SIGHUP, QUIT, USR1, signal.SIGUSR2, signal.SIGXCPU]
ENDLESS = dict(fmt="npy", train__epochs=100000, train__computation_time=0.02)


def started(tmp, *arguments, **kw):
    return subprocess.Popen([STOKER, *map(str, arguments)], stdout=kw.get("stdout", subprocess.DEVNULL),
                            stderr=subprocess.PIPE, text=True, cwd=tmp)


def signalled(name, signals, again_after=0):
    """A run that gets these; again_after seconds lie between them."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        out = pathlib.Path(tmp, "out")
        run = started(tmp, "run", *tiny(pathlib.Path(tmp, "data"), out, **ENDLESS), "-n", 2)
        assert wait_for(lambda: logged(out, "Starting epoch 3"), 30), name
        for sig in signals:
            run.send_signal(sig)
            time.sleep(again_after)
        said = run.communicate(timeout=20 * PATIENCE)[1]
        assert run.returncode == 1 and said.splitlines() == ["stoker: stopped by a signal"], (name, run.returncode, said)
        result = result_in(out)
        assert result and result["status"] == "interrupted" and result["training"]["epochs_done"] >= 2, (name, result)
        stoker("audit", out, status=None)


def warned_then_limited():
    """Slurm's warning, repeated, is no impatience; a run in its emulated computation ends at once."""
    signalled("warnings", [USR1] * 5, 0.01)
    signalled("a warning and the limit", [USR1, TERM], 0.6)


def generated():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        for sig in (USR1, QUIT):
            data = pathlib.Path(tmp, sig.name)
            keys = tiny(data, None, fmt="npy", files=200000)
            run = started(tmp, "generate", *keys)
            assert wait_for(lambda: (data / "train").exists() and len(os.listdir(data / "train")) > 50, 30)
            run.send_signal(sig)
            said = run.communicate(timeout=30 * PATIENCE)[1]
            assert run.returncode == 1 and "stopped" in said, (run.returncode, said)
            whole = [p for p in (data / "train").iterdir() if not p.name.startswith(".")]
            assert len({p.stat().st_size for p in whole}) == 1, "a file under its name is not whole"


def studied():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        design = pathlib.Path(tmp, "design.csv")
        rows = "model,epochs,processes,overrides,run\ndefault,100000,1,,N\ndefault,1,2,,N\n"
        design.write_text(rows)
        keys = [a for a in tiny("unused", None, fmt="npy") if "=" in a and "data_folder" not in a and
                not a.startswith(("train.epochs", "workflow.generate"))]
        run = started(tmp, "study", "run", design, *keys, "train.computation_time=0.05")
        assert wait_for(lambda: any(logged(p.parent, "Starting epoch 2") for p in pathlib.Path(tmp).rglob("dlio.log")), 30), (
            run.poll(), run.stderr.read() if run.poll() is not None else "")
        run.send_signal(USR1)
        said = run.communicate(timeout=40 * PATIENCE)[1]
        assert run.returncode == 1 and "run the same command to continue" in said, said
        assert design.read_text() == rows, design.read_text()


def piped():
    """The reader of stdout and stderr goes away: the run ends as planned, with all its results."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        for name, both in (("stdout", False), ("both", True)):
            out = pathlib.Path(tmp, name)
            keys = tiny(pathlib.Path(tmp, "data"), out, fmt="npy", train__epochs=5, train__computation_time=0.02)
            keys.remove("-q")
            run = subprocess.Popen([STOKER, "run", "-v", *map(str, keys)], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT if both else subprocess.DEVNULL)
            run.stdout.close()
            assert run.wait(timeout=30 * PATIENCE) == 1, run.returncode
            result = result_in(out)
            assert result and result["status"] == "complete" and result["training"]["epochs_done"] == 5, result


FLOODS = {"before it answers": "yes", "once it has": "printf '%s' '{mark}'; exec yes", "with errors": "exec yes >&2"}


def flooded():
    """A host that says more than can be heard, and one that ignores signals, hold nobody up."""
    header = pathlib.Path(SOURCE, "src/launch/hosts.h").read_text()
    mark = re.search(r'HOSTS_MARK "(.*?)"', header)[1].replace("\\n", "\n")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        for name, says in FLOODS.items():
            ssh, begun = pathlib.Path(tmp, "ssh"), pathlib.Path(tmp, f"begun {name}")
            ssh.write_text(f"#!/bin/sh\ntrap '' TERM INT\n: >'{begun}'\n{says.format(mark=mark)}\n")
            ssh.chmod(0o755)
            run = started(tmp, "run", "--hosts", "node1,node2", "--ssh", ssh, *tiny(pathlib.Path(tmp, "data"), "out"),
                          stdout=subprocess.PIPE)
            assert wait_for(begun.exists, 30), name
            time.sleep(0.7)
            for _ in range(1 if name.startswith("before") else 3):
                if run.poll() is None:
                    run.send_signal(INT)
                    time.sleep(0.7)
            # nobody has read what it printed
            assert wait_for(lambda: run.poll() is not None, 5), name
            said = run.communicate()[1]
            # a host that has not answered has nothing to end
            assert run.returncode in ((1,) if name.startswith("before") else (1, 128 + INT)), (name, run.returncode, said)
            assert re.search(r"^stoker: (stopped by|ended at once by|host .* sent an invalid)", said, re.M) and "killed" not in said, (name, said)


POINT = ("--point", "hosts=1,accelerators=8,samples_per_s=160,au=93.1", "--model", "unet3d_h100", "--accelerators", "8")


def wait_idle(run):
    """It has begun, and a second has passed in which it used no processor."""
    used = []

    def idle():
        time.sleep(0.1)
        with open(f"/proc/{run.pid}/stat") as f:
            used.append(f.read().rpartition(")")[2].split()[11:13])
        return len(used) > 20 and len({tuple(u) for u in used[-10:]}) == 1

    assert wait_for(idle, 30), used[-10:]


def waiting():
    """What waits for the reader of a FIFO ends: with the first signal, where nothing is kept, or with the second."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        fifo = os.path.join(tmp, "fifo.html")
        os.mkfifo(fifo)
        log = os.path.join(SOURCE, "examples/job.strace.gz")
        for signals, command in ((1, ("plan", *POINT, "-o", "fifo.html")), (2, ("replay", log, "--no-think", "--data", "image", "-o", fifo))):
            run = started(tmp, *command)
            wait_idle(run)
            for _ in range(signals):
                assert run.poll() is None, run.stderr.read()
                run.send_signal(INT)
                time.sleep(0.7)
            said = run.communicate(timeout=10 * PATIENCE)[1]
            assert run.returncode in (-INT, 128 + INT) and "signal" in said, (command, run.returncode, said)
            assert not [p for p in pathlib.Path(tmp).rglob(".*") if p.name.endswith((".lock", ".tmp"))], command


def made():
    """A temporary file goes with the command that made it, at whichever moment it is ended."""
    log = os.path.join(SOURCE, "examples/job.strace.gz")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        begin = time.monotonic()
        stoker("explain", log, "-o", os.path.join(tmp, "page.html"))
        took = time.monotonic() - begin
        for i in range(24):
            run = started(tmp, "explain", log, "-o", "page.html")
            time.sleep(took * (0.3 + 0.03 * i))
            run.send_signal(INT)
            run.communicate(timeout=10 * PATIENCE)
            assert os.listdir(tmp) == ["page.html"], (i, os.listdir(tmp))


if __name__ == "__main__":
    cases = [(signalled, sig.name, [sig]) for sig in ENDS]
    cases += [(signalled, f"{a.name}, then {b.name} {s} s later", [a, b], s)
              for a, b in ((INT, INT), (USR1, INT), (TERM, QUIT)) for s in (0.001, 0.05)]
    cases += [(warned_then_limited,), (generated,), (studied,), (piped,), (flooded,), (waiting,), (made,)]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for case in [pool.submit(*c) for c in cases]:
            case.result()

"""What the script tests share: running the program, small workloads, skipping."""
import json
import os
import pathlib
import subprocess
import sys
import time

STOKER = os.environ.get("STOKER", "build/stoker")
SOURCE = pathlib.Path(os.environ.get("STOKER_SOURCE", pathlib.Path(__file__).resolve().parent.parent))
SANITIZED = os.environ.get("STOKER_SANITIZE", "") != ""
PATIENCE = 4 if SANITIZED else 1  # by which a program under a sanitizer is slower


# the last two beside Debian's PyTorch
LIBRARIES, LIBRARIES_OF_CHUNKS, LIBRARIES_OF_S3TORCH = "libraries-2", "libraries-chunks-1", "libraries-s3torch-1"
LIBRARIES_OF_ARROW = "libraries-arrow-1"


PARQUET_READERS = "parquet-1"  # of npm


def fetched(what):
    """Where tools/setup.sh puts what it fetches."""
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "stoker", what)


def libraries(which=LIBRARIES):
    """The Python with the libraries that tools/setup.sh fetches, or the one that runs the tests."""
    own = fetched(f"{which}/bin/python")
    return own if os.path.exists(own) else sys.executable


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def left_out(what):
    """Says that a part of a test cannot run here; the runner counts these lines."""
    print(f"left out: {what}", flush=True)


ATTEMPTS, RIGHT = 4, 3
BUSY, WAIT_S, WAITS_S = 0.2, 5, 20  # the share of the processors; seconds before an attempt, and in all
waited_s = 0.0


def processors_busy():
    """(seconds that processors ran something or were taken by the hypervisor, seconds of all processors)."""
    ticks = [int(x) for x in open("/proc/stat").readline().split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def wait_quiet():
    """Waits a while for other work on this machine to pass."""
    global waited_s
    end = time.monotonic() + (0 if SANITIZED else min(WAIT_S, WAITS_S - waited_s))
    while (now := time.monotonic()) < end:
        before = processors_busy()
        time.sleep(0.4)
        after = processors_busy()
        waited_s += time.monotonic() - now
        if after[0] - before[0] <= BUSY * max(1, after[1] - before[1]):
            return


def attempts(case, once, first=None):
    """A case that measures times: once(n) makes attempt n = 0, 1, ... and returns (whether it was right, anything).

    Other work on the machine may spoil an attempt. A case that is not right at once must be right in 3 of 4 attempts:
    what is wrong half of the time fails. Later attempts wait for other work to end, as long as that is worth it, and may be
    slower, so that late timers weigh less. `first` is the result of attempt 0 where it was made before. Returns the result of the last attempt, with whether the case is right.
    The line printed for each repeated case is counted by the runner.
    """
    right, value = once(0) if first is None else first
    if right:
        return True, value
    good = made = 0
    while RIGHT - good <= ATTEMPTS - 1 - made:
        made += 1
        wait_quiet()
        right, value = once(made)
        good += right
        if good == RIGHT:
            break
    print(f"attempts: {case}: right in {good} of {made + 1}", flush=True)
    return good == RIGHT, value


def undisturbed(make, tries=4):
    """A run that others are made of: make(n) carries it out and returns its folder. It is made again while it says itself
    that other programs took its processors; what it then says is the last one's."""
    for n in range(tries):
        out = make(n)
        client = next(v for v in load(out)["verdicts"] if v["check"] == "client")
        if client["level"] == "pass":
            break
        print(f"attempts: {os.path.basename(out)}: made {n + 1} times: {client['text'][:200]}", flush=True)
    return out


def stoker(*args, status=0, timeout=120, **kw):
    """Runs the program and checks its exit status; returns the CompletedProcess."""
    done = subprocess.run([STOKER, *map(str, args)], capture_output=True, text=True, timeout=timeout, **kw)
    assert status is None or done.returncode == status, (
        f"{args}: status {done.returncode}, not {status}\nstdout: {done.stdout}\nstderr: {done.stderr}")
    return done


def wait_for(what, seconds):
    """What it returns once that is true; None: it was not within so many seconds."""
    end = time.monotonic() + seconds * PATIENCE
    while not (found := what()):
        if time.monotonic() > end:
            return None
        time.sleep(0.02)
    return found


def logged(out, text):
    """Whether the log of a run has this text by now."""
    log = pathlib.Path(out, "dlio.log")
    return log.exists() and text in log.read_text(errors="replace")


def tiny(data, out, fmt="npz", files=8, **keys):
    """Arguments of a run over a tiny dataset (out None: of a command without results); keyword a__b=c is the
    override a.b=c."""
    base = {
        "dataset.data_folder": data, "dataset.format": fmt, "dataset.num_files_train": files,
        "dataset.num_files_eval": 0, "dataset.num_subfolders_train": 0, "dataset.num_subfolders_eval": 0,
        "dataset.record_length_bytes": 4096, "reader.batch_size": 2, "reader.read_threads": 1,
        "train.epochs": 1, "train.computation_time": 0.001, "workflow.evaluation": "false",
        "workflow.generate_data": "true",
    }
    base.update({k.replace("__", "."): v for k, v in keys.items()})
    return ["default", "-q", *(["-o", str(out)] if out else []), *[f"{k}={v}" for k, v in base.items()]]


def load(folder, name="result.json"):
    with open(os.path.join(folder, name)) as f:
        return json.load(f)

"""What is seen of a run while it lasts: the panel on a terminal of a small interpreter's own, resized and
killed; plain lines in a log file; the stream of JSON objects."""
# tier: long
# mostly waits
# takes 29 s
import concurrent.futures
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import util

CONTROL = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]")
FIGURES = {
    "step": r"(training|evaluation|checkpoint|train|eval|ckpt)\b.* \d+/\d+",
    "AU": r"^AU +\d+\.\d %", "throughput": r"^Throughput +\d.*samples/s, .*B/s", "wait": r"^Wait +\d+\.\d %",
    "device": r"^Device +\S", "slowest": r"^Slowest +(rank \d|no step)", "left": r"^Left +(\d|not known)",
}


class Screen:
    """As much of a terminal as the panel needs. Lines are broken anew when the width changes, as tmux, VTE and
    most others do, or cut (reflow=False), as xterm does. Rows that leave at the top are kept, and come back."""

    def __init__(self, columns, rows, reflow=True):
        self.columns, self.rows, self.reflow = columns, rows, reflow
        self.line = [["", False]]  # all rows ever: text, and whether the next continues it
        self.top = 0
        self.y = self.x = 0  # y counts from the first row ever
        self.visible, self.wrapped, self.frames = True, 0, 0
        self.rest = b""

    def shown(self):
        return [text for text, _ in self.line[self.top:self.top + self.rows]]

    def down(self):
        self.y += 1
        if self.y == len(self.line):
            self.line.append(["", False])
        self.top = max(self.top, self.y - self.rows + 1)

    def put(self, char):
        if self.x == self.columns:
            self.wrapped += 1
            self.line[self.y][1] = True
            self.x = 0
            self.down()
        text = self.line[self.y][0].ljust(self.x)
        self.line[self.y][0] = text[:self.x] + char + text[self.x + 1:]
        self.x += 1

    def csi(self, args, final):
        if final == "m":
            return
        if final in "hl":
            assert args == "?25", args
            self.visible = final == "h"
            self.frames += final == "h"
        elif final == "A":
            self.y = max(self.top, self.y - int(args or 1))
        elif final == "K" and not args:
            # a row that is not erased from its first column keeps the mark that it goes on
            self.line[self.y] = [self.line[self.y][0][:self.x], self.x > 0 and self.line[self.y][1]]
        else:
            raise AssertionError(f"an unexpected sequence: {args!r} {final!r}")

    def feed(self, data):
        data = self.rest + data
        text = data.decode("utf-8", "ignore")
        cut = text.rfind("\033")
        if cut >= 0 and not re.match(r"\033\[[0-9?;]*[A-Za-z]", text[cut:]):
            text, self.rest = text[:cut], text[cut:].encode()
        else:
            self.rest = b""
        for m in re.finditer(r"\033\[([0-9?;]*)([A-Za-z])|(.)", text, re.S):
            if m.group(2):
                self.csi(m.group(1), m.group(2))
            elif m.group(3) == "\r":
                self.x = 0
            elif m.group(3) == "\n":
                self.down()
            else:
                assert m.group(3) >= " ", repr(m.group(3))
                self.put(m.group(3))

    def resize(self, columns, rows):
        if self.reflow and columns != self.columns:
            whole, at = [], None
            for y, (text, on) in enumerate(self.line):
                if y == 0 or not self.line[y - 1][1]:
                    whole.append("")
                if y == self.y:
                    at = len(whole) - 1, len(whole[-1]) + self.x
                whole[-1] += text
            self.line = []
            for i, text in enumerate(whole):
                parts = [text[k:k + columns] for k in range(0, max(len(text), 1), columns)]
                if at[0] == i:
                    self.y, self.x = len(self.line) + min(at[1] // columns, len(parts) - 1), at[1] % columns
                self.line += [[p, p is not parts[-1]] for p in parts]
        elif columns != self.columns:
            self.line = [[text[:columns], False] for text, _ in self.line]
            self.x = min(self.x, columns)
        self.columns, self.rows = columns, rows
        self.top = max(0, self.y - rows + 1)


class Terminal:
    """The program with stderr and stdout on a pseudo-terminal."""

    def __init__(self, args, columns, rows, reflow=True, env=()):
        self.screen = Screen(columns, rows, reflow)
        self.raw = b""
        self.master, slave = pty.openpty()
        self.size(columns, rows)
        environment = {"TERM": "xterm-256color", "LANG": "C.UTF-8", **dict(env)}
        environment = {**{k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "LC_ALL", "XTERM_VERSION")},
                       **environment}
        if not reflow:
            environment["XTERM_VERSION"] = "XTerm(379)"
            environment.pop("TMUX", None)

        def own_session():
            os.setsid()
            fcntl.ioctl(1, termios.TIOCSCTTY, 0)

        self.child = subprocess.Popen([util.STOKER, *map(str, args), "--progress-interval", "0.1"],
                                      stdin=slave, stdout=slave, stderr=slave,
                                      env=environment, preexec_fn=own_session)
        os.close(slave)

    def size(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns, rows):
        """What was written before the new size is seen is read first, as a terminal does."""
        while self.read(0):
            pass
        self.size(columns, rows)
        self.screen.resize(columns, rows)
        self.screen.wrapped = 0

    def read(self, patience):
        if not select.select([self.master], [], [], patience)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.raw += data
        self.screen.feed(data)
        return len(data) > 0

    def until(self, what, seconds=60):
        end = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < end, "\n".join(self.screen.shown())
            if not self.read(0.5) and self.child.poll() is not None:
                while self.read(0.1):
                    pass
                assert what(), "\n".join(self.screen.shown())

    def frames(self, n):
        """n more whole frames with figures in them; returns the screen."""
        goal = self.screen.frames + n
        self.until(lambda: self.screen.frames >= goal and self.screen.visible and not self.screen.rest)
        return self.screen.shown()

    def end(self):
        self.until(lambda: self.child.poll() is not None)
        while self.read(0.2):
            pass
        os.close(self.master)
        return self.child.returncode


def workload(tmp, name, **keys):
    base = {"reader__batch_size": 1, "train__epochs": 2, "files": 120, "dataset__num_files_eval": 16,
            "reader__batch_size_eval": 1, "workflow__evaluation": "true", "train__computation_time": 0.02,
            "dataset__record_length_bytes": 20000, "storage__store": "throttle+posix", "workflow__train": "true",
            "+storage__throttle__bandwidth": "2e6", "run__sample_interval": 0.1,
            "evaluation__eval_time": 0.1}
    base.update(keys)
    return [a for a in util.tiny(tmp / "data", tmp / name, **base) if a != "-q"]


def panel_of(lines, columns):
    """The panel's rows on the screen, from its first to its last."""
    first = [i for i, text in enumerate(lines) if text.startswith("Workload ")]
    assert len(first) == 1, "the panel is there more or less than once:\n" + "\n".join(lines)
    rows = lines[first[0]:]
    assert all(len(text) < columns for text in rows), (columns, rows)
    return rows


def check_figures(lines, columns, without=()):
    rows = panel_of(lines, columns)
    for what, pattern in FIGURES.items():
        if what not in without:
            assert any(re.search(pattern, row) for row in rows), (what, columns, "\n".join(rows))
    return rows


def training(t):
    t.until(lambda: any(re.search(r"^AU +\d", line) for line in t.screen.shown()))
    return t.frames(1)


def on_a_terminal(tmp, reflow):
    t = Terminal(["run", *workload(tmp, "out"), "-n", "4"], 80, 24, reflow)
    rows = check_figures(training(t), 80)
    assert len(rows) <= 17, "a small panel on a small terminal"
    assert sum(bool(re.match(r" +\d+ \[", r)) for r in rows) == 2, rows  # four ranks, two in a row
    t.resize(200, 50)
    rows = check_figures(t.frames(2), 200)
    assert len(re.findall(r" \d \[", " ".join(rows))) == 4
    assert any(r.startswith("Reading ") for r in rows) and any(len(r) > 80 for r in rows), rows
    for columns, height in (60, 20), (40, 12), (80, 24), (41, 24), (100, 14), (79, 24):
        t.resize(columns, height)
        os.kill(t.child.pid, signal.SIGWINCH)
        lines = t.frames(2)
        if reflow:
            rows = check_figures(lines, columns, () if columns >= 60 else ("throughput",))
        assert len([r for r in t.screen.shown() if r]) <= height
        assert t.screen.wrapped == 0 and t.screen.visible
    t.resize(200, 60)  # what a low screen pushed out is back, and is taken away
    lines = t.frames(2)
    if reflow:
        check_figures(lines, 200)
    assert t.end() == 0, t.screen.shown()
    assert t.screen.visible
    everything = "\n".join(text for text, _ in t.screen.line)
    assert re.search(r"^Trained 60 of 60 steps, epoch 2 of 2, in .*: AU so far \d", everything, re.M), everything
    assert not re.search(r"^(Workload|Left|Slowest) ", everything, re.M) or not reflow, everything
    assert "\033[1m" in t.raw.decode() and "results" in everything


def tiny_terminals(tmp):
    t = Terminal(["run", *workload(tmp, "out"), "-n", "2"], 30, 8, env={"NO_COLOR": "1"})
    training(t)
    for columns, height in (20, 4), (10, 3), (3, 2), (1, 1), (30, 8):
        t.resize(columns, height)
        t.frames(2)
        assert t.screen.wrapped == 0, (columns, height, t.screen.shown())
    lines = t.frames(1)
    assert any(re.match(r"(\[[#.]+\])? +\d+ % (train|eval) ", x) for x in lines), lines
    assert any(re.match(FIGURES["AU"], x) for x in lines) and any(re.match(FIGURES["left"], x) for x in lines), lines
    t.child.send_signal(signal.SIGTERM)
    assert t.end() == 1
    assert t.screen.visible and not re.search(rb"\033\[[0-9;]*m", t.raw), "NO_COLOR"


def ended_early(tmp):
    for sig, status in (signal.SIGINT, 1), (signal.SIGKILL, -9):
        t = Terminal(["run", *workload(tmp, "out"), "-n", "2"], 80, 24)
        training(t)
        if sig == signal.SIGINT:
            os.write(t.master, b"\x03")
        else:
            t.child.send_signal(sig)
        assert t.end() == status, t.screen.shown()
        assert t.screen.visible and t.screen.x == 0
        if sig == signal.SIGINT:
            everything = "\n".join(text for text, _ in t.screen.line)
            assert re.search(r"^Trained \d+ of 120 steps", everything, re.M), everything
            assert "stopped by a signal" in everything and "Slowest" not in everything
        else:
            assert t.screen.line[t.screen.y][0] == "", "the shell's prompt is below the panel"
    hangs = {"storage__store": "fault+posix", "+storage__fault__op": "read", "+storage__fault__action": "delay",
             "+storage__fault__delay": 3600, "+storage__fault__nth": 100, "+storage__fault__count": 0,
             "+storage__fault__path": "img_", "run__watchdog": 1}
    t = Terminal(["run", *(a for a in workload(tmp, "out", **hangs) if "throttle" not in a), "-n", "2"], 80, 24)
    assert t.end() == 1
    everything = "\n".join(text for text, _ in t.screen.line)
    assert t.screen.visible and "no rank made progress" in everything, everything


def messages(tmp):
    """Lines of the log stand above the panel, whole and in order, and the panel once."""
    t = Terminal(["run", *workload(tmp, "out", train__epochs=3, files=24), "-n", "2", "-v"], 100, 30)
    t.until(lambda: any("Starting epoch 2" in line for line in t.screen.shown()))
    lines = t.frames(1)
    panel_of(lines, 100)
    above = [i for i, line in enumerate(lines) if line.startswith("[OUTPUT]")]
    assert above and max(above) < [i for i, x in enumerate(lines) if x.startswith("Workload")][0], lines
    assert t.end() == 0, t.screen.shown()


def dumb(tmp):
    t = Terminal(["run", *workload(tmp, "out", files=24, train__epochs=1)], 80, 24,
                 env={"TERM": "dumb"})
    assert t.end() == 0, t.screen.shown()
    assert b"\033" not in t.raw.split(b"Result")[0].replace(b"\r\n", b"\n"), t.raw[:300]
    assert b"Training, epoch 1/1" in t.raw
    util.stoker("run", *workload(tmp, "out"), "--progress", "panel", status=2)


def log_file(tmp):
    for args in ["-v"], ["--progress", "lines"]:
        with open(tmp / "log", "wb") as log:
            subprocess.run([util.STOKER, "run", *workload(tmp, "out", files=30), "-n", "2", *args,
                            "--progress-interval", "0.2"], stdout=log, stderr=log, check=True, timeout=120,
                           env={**os.environ, "TERM": "xterm-256color"})
        data = (tmp / "log").read_bytes()
        found = CONTROL.search(data)
        assert not found, (args, data[max(0, found.start() - 80):found.end() + 20])
        lines = [x for x in data.decode().splitlines() if x.startswith(("Training,", "Evaluating,"))]
        assert len(lines) >= 3, data.decode()
        for what in ("AU so far ", "samples/s", "exposed wait ", " left", "step "):
            assert any(what in x for x in lines), (what, lines)
        assert max(map(len, lines)) <= 100, lines


def objects(text):
    found = [json.loads(x) for x in text.splitlines() if x.startswith("{")]
    assert found and all(o["schema"] == 1 for o in found)
    assert [o["event"] for o in found] == ["progress"] * (len(found) - 1) + ["end"], found
    return found


def stream(tmp):
    done = util.stoker("run", *workload(tmp, "out"), "-n", "4", "--progress", "json", "--progress-interval", "0.1",
                       "workflow.generate_data=true", env={**os.environ, "TERM": "dumb"})
    found = objects(done.stderr)
    end = found[-1]
    steps = [o for o in found if o["phase"] in ("training", "evaluation")]
    assert end["status"] == "complete" and end["done"] == end["total"] == 60 and end["eval_done"] == 8
    assert [o["done"] for o in steps] == sorted(o["done"] for o in steps) and steps[0]["done"] < 30
    assert {o["phase"] for o in found} >= {"training", "evaluation", "finishing"}
    # an evaluation does not dilute what training had, and nothing is counted that is not over
    during = {epoch: {o["au_percent"] for o in steps if o["phase"] == "evaluation" and o["epoch"] == epoch
                      and o["done"] == 30 * epoch and o["epoch_done"] > 0} for epoch in (1, 2)}
    assert all(len(values) <= 1 for values in during.values()) and (any(during.values()) or util.SANITIZED), during
    whole = [e["whole_au_percent"] for e in util.load(tmp / "out")["training"]["epochs"]]
    assert min(whole) - 0.1 <= end["au_percent"] <= max(whole) + 0.1, (whole, end)
    assert end["samples"] == 4 * (60 + 8)
    running = [o for o in steps if o["phase"] == "training" and o["done"] > 5]
    for o in running:
        assert o["left_s"] >= 0 and "step" in o["left_from"] and 0 < o["exposed_wait_percent"] < 100
        assert o["samples_per_s"] > 0 and o["bytes_per_s"] > 0 and 0 <= o["slowest"]["rank"] < 4
        assert o["slowest"]["behind_s"] >= 0
    assert any(o["device"]["source"] in ("disk", "read_calls") and o["device"]["read_bytes_per_s"] is not None
               for o in running)
    assert any(o["samples_recent_per_s"] for o in running) and any(o["au_recent_percent"] for o in running)
    documented = set(re.findall(r"`([a-z_.]+)`", (util.SOURCE / "docs" / "metrics.md").read_text()))

    def keys(o, before=""):
        for k, v in o.items():
            yield before + k
            if isinstance(v, dict):
                yield from keys(v, before + k + ".")

    for o in found:
        assert set(keys(o)) <= documented, set(keys(o)) - documented


def streams_elsewhere(tmp):
    args = ["run", *workload(tmp, "out", files=20), "-n", "2", "--progress-interval", "0.1"]
    # beside plain lines
    done = util.stoker(*args, "--progress", "lines", "--progress-file", tmp / "stream")
    assert "Training, epoch" in done.stderr and "{" not in done.stderr
    assert objects((tmp / "stream").read_text())[-1]["done"] == 20
    # quiet, and to a descriptor whose reader goes after the first line: the run does not
    r, w = os.pipe()
    child = subprocess.Popen([util.STOKER, *args, "-q", "--progress-file", f"/dev/fd/{w}"], pass_fds=[w],
                             stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    os.close(w)
    assert os.read(r, 1)
    os.close(r)
    assert child.wait(timeout=60) == 0, child.stderr.read()
    child.stderr.close()
    # one who does not read holds nobody up, and loses whole objects only
    r, w = os.pipe()
    fcntl.fcntl(w, fcntl.F_SETPIPE_SZ, 4096)
    child = subprocess.Popen([util.STOKER, *args, "--progress", "none", "--progress-file", f"/dev/fd/{w}"],
                             pass_fds=[w], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(w)
    assert child.wait(timeout=60) == 0
    with os.fdopen(r) as f:
        kept = [json.loads(x) for x in f]
    assert kept and all(o["event"] == "progress" for o in kept)
    # stderr itself closed by its reader
    child = subprocess.Popen([util.STOKER, *args, "--progress", "json"], stderr=subprocess.PIPE,
                             stdout=subprocess.DEVNULL)
    assert child.stderr.readline()
    child.stderr.close()
    assert child.wait(timeout=60) == 0
    os.mkfifo(tmp / "fifo")
    assert "has no reader" in util.stoker(*args, "--progress-file", tmp / "fifo", status=1).stderr
    for wrong in (["--progress", "bar"], ["--progress-interval", "0"], ["--progress-interval", "x"]):
        assert wrong[0] in util.stoker(*args, *wrong, status=2).stderr


def other_commands(tmp):
    data = f"dataset.data_folder={tmp}/other"
    size = ["dataset.num_files_train=300", "dataset.record_length_bytes=100000", "dataset.num_files_eval=0", data]
    done = util.stoker("generate", "default", *size, "--progress", "json", "--progress-interval", "0.1")
    end = objects(done.stderr)[-1]
    assert (end["phase"], end["unit"], end["done"], end["total"]) == ("generation", "files", 300, 300), end
    assert end["bytes"] > 300 * 99000 and end["status"] == "complete"
    done = util.stoker("verify", tmp / "other", "--progress", "json", "--progress-interval", "0.1")
    end = objects(done.stderr)[-1]
    assert (end["phase"], end["unit"]) == ("verification", "bytes") and end["done"] == end["total"] > 0, end
    done = util.stoker("run", "default", "-o", tmp / "ckpt", "workflow.train=false", "workflow.evaluation=false",
                       "workflow.generate_data=false", "workflow.checkpoint=true", "model.model_size=1000000",
                       "checkpoint.num_checkpoints_write=3", "checkpoint.num_checkpoints_read=2",
                       f"checkpoint.checkpoint_folder={tmp}/saved", "checkpoint.time_between_checkpoints=0.1",
                       "--progress", "json", "--progress-interval", "0.1")
    end = objects(done.stderr)[-1]
    assert (end["unit"], end["done"], end["total"]) == ("checkpoints", 5, 5), end
    assert end["checkpoints_written"] == 3 and end["checkpoints_read"] == 2 and end["bytes"] > 0


def first_batches(tmp):
    """Of 8 samples of 0.15 s the first batch needs 4: until then, what the worker read is seen."""
    for loader, framework, fmt in (("tensorflow", "tensorflow", "tfrecord"), ("dali", "pytorch", "npz"),
                                   ("native_dali", "pytorch", "npy"), ("pytorch", "pytorch", "npz")):
        size = ["dataset.num_files_train=8", "dataset.record_length_bytes=4096", "dataset.num_files_eval=0", f"dataset.format={fmt}",
                "reader.batch_size=4", "reader.read_threads=1", "train.computation_time=0.01", "workflow.evaluation=false",
                "train.epochs=1", f"dataset.data_folder=/{loader}", "storage.store=throttle+memory", "workflow.generate_data=true",
                f"reader.data_loader={loader}", f"framework={framework}", "reader.dont_use_mmap=true",
                "dataset.verify_samples=0", "storage.throttle.open_latency=0.15"]
        done = util.stoker("run", "default", "-o", tmp / loader, *size, "--progress", "json", "--progress-interval", "0.1")
        early = [o for o in objects(done.stderr) if o["phase"] == "training" and o["samples"] == 0]
        seen = [o["read_samples"] for o in early]
        moved = [o["read_bytes"] for o in early]
        assert seen == sorted(seen) and moved == sorted(moved) and len(set(moved)) >= (3 if loader == "pytorch" else 2), (loader, seen, moved)
        # DALI's own reader reads a batch before it makes samples of it
        between = len(set(seen) & set(range(1, 4)))
        assert between >= {"pytorch": 2, "native_dali": 0}.get(loader, 1), (loader, seen)
        assert all(o["samples_per_s"] is None for o in early) and {o["done"] for o in early} == {0}, (loader, early)
        for some in early:
            assert some["read_samples"] * 3900 <= some["read_bytes"] < 8 * 14000, (loader, some)
        end = objects(done.stderr)[-1]
        assert end["read_samples"] == 8 and end["read_bytes"] >= end["bytes"], (loader, end)
    done = util.stoker("run", "default", "-o", tmp / "lines", *size, "--progress", "lines", "--progress-interval", "0.1")
    assert re.search(r"step 0/2, no step yet: workers read [1-4] samples, \d", done.stderr), done.stderr


def run_part(name, folder):
    begin = time.monotonic()
    tmp = pathlib.Path(folder, name)
    tmp.mkdir()
    PARTS[name](tmp)
    return f"{time.monotonic() - begin:5.1f} s  {name}"


PARTS = {"reflow": lambda tmp: on_a_terminal(tmp, True), "crop": lambda tmp: on_a_terminal(tmp, False),
         "tiny": tiny_terminals, "early": ended_early, "messages": messages, "dumb": dumb, "log": log_file,
         "stream": stream, "elsewhere": streams_elsewhere, "commands": other_commands, "filling": first_batches}

if __name__ == "__main__":
    # they mostly wait for a slow store
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, \
            concurrent.futures.ProcessPoolExecutor(4) as pool:
        for done in [pool.submit(run_part, name, folder) for name in PARTS]:
            print(done.result())

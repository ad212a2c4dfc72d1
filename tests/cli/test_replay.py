"""stoker replay: the requests of a log, made again over files of the same names and sizes below a folder, in their order.
What is asked of the system is read from strace of the replay, not from what it says of itself."""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, STOKER, left_out  # noqa: E402


class Log:
    """strace's lines; each call takes 20 us and comes 10 us after the one before it in any process."""

    def __init__(self):
        self.lines, self.now = [], 1000.0

    def call(self, pid, text, pause=0.0, takes=20e-6):
        self.now += pause + 10e-6
        self.lines.append(f"{pid} {self.now:.6f} {text} <{takes:.6f}>")
        self.now += takes

    def wait(self, pid, text, until):
        """A call that lasts over those that `until` makes."""
        name = text.split("(")[0]
        self.now += 10e-6
        begin = self.now
        self.lines.append(f"{pid} {begin:.6f} {text.split(') = ')[0]} <unfinished ...>")
        until()
        self.now += 10e-6
        self.lines.append(f"{pid} {self.now:.6f} <... {name} resumed>) = {text.split(') = ')[1]} <{self.now - begin:.6f}>")

    def write(self, path):
        path.write_text("\n".join(self.lines) + "\n")
        return path


def job(think=0.05):
    """A trainer asks a worker for samples over a pipe, thinks, and writes a checkpoint that the worker reads at last."""
    g = Log()
    g.call(10, 'newfstatat(AT_FDCWD, "/job/data", {st_mode=S_IFDIR|0755, st_size=4096, ...}, 0) = 0')
    g.call(10, 'newfstatat(AT_FDCWD, "/job/missing", 0x7ffe, 0) = -1 ENOENT (No such file or directory)')
    g.call(10, "clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f) = 11", takes=300e-6)
    for i in range(6):
        def ask():
            g.call(10, 'write(4<pipe:[1]>, ""..., 4) = 4')
        g.wait(11, 'read(5<pipe:[1]>, ""..., 4) = 4', ask)

        def load():
            name = f"/job/data/s{i}.npy"
            g.call(11, f'openat(AT_FDCWD, "{name}", O_RDONLY|O_CLOEXEC) = 7<{name}>')
            g.call(11, f'newfstatat(7<{name}>, "", {{st_mode=S_IFREG|0644, st_size={70000 + i}, ...}}, AT_EMPTY_PATH) = 0')
            g.call(11, f'read(7<{name}>, ""..., 4096) = 4096')
            g.call(11, f'read(7<{name}>, ""..., 131072) = {70000 + i - 4096}')
            g.call(11, f'read(7<{name}>, "", 131072) = 0')
            g.call(11, f"close(7<{name}>) = 0")
            g.call(11, 'write(8<pipe:[2]>, ""..., 4) = 4')
        g.wait(10, 'read(6<pipe:[2]>, ""..., 4) = 4', load)
        g.now += think
    ckpt = "/job/out/model.pt"
    g.call(10, 'mkdir("/job/out", 0777) = 0')
    g.call(10, f'openat(AT_FDCWD, "{ckpt}.tmp", O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0666) = 9<{ckpt}.tmp>')
    g.call(10, f'write(9<{ckpt}.tmp>, ""..., 50000) = 50000')
    g.call(10, f"fsync(9<{ckpt}.tmp>) = 0")
    g.call(10, f"close(9<{ckpt}.tmp>) = 0")
    g.call(10, f'rename("{ckpt}.tmp", "{ckpt}") = 0')
    g.call(11, f'openat(AT_FDCWD, "{ckpt}", O_RDONLY|O_CLOEXEC) = 7<{ckpt}>', pause=0.001)
    g.call(11, f'pread64(7<{ckpt}>, ""..., 50000, 0) = 50000')
    g.lines += [f"11 {g.now + 0.001:.6f} +++ exited with 0 +++", f"10 {g.now + 0.002:.6f} +++ exited with 0 +++"]
    return g


def replay(tmp, *args, under=(), status=0):
    done = subprocess.run([*under, STOKER, "replay", *map(str, args)], capture_output=True, text=True, timeout=60, cwd=tmp)
    assert done.returncode == status, (args, done.returncode, done.stdout, done.stderr)
    return done.stdout if status == 0 else done.stderr


def requests(trace, folder):
    """(call, file below the folder, bytes) of what the replay asked, in the order of the threads together."""
    got, names = [], {}
    for line in trace.read_text().splitlines():
        m = re.match(r"(\d+) +(\w+)\((.*)$", line)
        if not m:
            assert "<unfinished" not in line or True
            continue
        pid, call, rest = m.groups()
        # names are given by their folder, which is open
        rest = re.sub(r'<([^>]*)>, "([^"]+)"', r'<\1/\2>', rest)
        call = {"openat2": "openat", "renameat": "rename", "mkdirat": "mkdir"}.get(call, call)
        file = re.search(r'[<"]' + re.escape(str(folder)) + r'/([^">]*)[">]', rest)
        result = re.search(r"= (-?\d+)", rest)
        if file and result and ".stoker" not in file[1]:
            got.append((call.replace("64", ""), file[1], int(result[1])))
    return got


def check_requests(tmp):
    log, data, trace = job().write(tmp / "log"), tmp / "data", tmp / "trace"
    replay(tmp, log, "--data", data, "--only-files")
    sizes = {f.name: f.stat().st_size for f in (data / "job/data").iterdir()}
    assert sizes == {f"s{i}.npy": 70000 + i for i in range(6)}, sizes
    kept = (data / "job/data/s0.npy").stat().st_mtime_ns
    assert len(set((data / "job/data/s0.npy").read_bytes())) == 256
    assert not (data / "job/out").exists() and not (data / "job/missing").exists()
    if not shutil.which("strace") or SANITIZED:
        return left_out("what the system is asked: strace is missing, or this is a sanitizer build")
    # twice: what the first one made is gone before the second
    for _ in range(2):
        replay(tmp, log, "--data", data, "--no-think", under=("strace", "-f", "-y", "-s", "0", "-e",
               "trace=openat,openat2,pread64,read,pwrite64,write,fsync,rename,renameat,mkdirat,close", "-o", trace))
        got = requests(trace, data)
        for i in range(6):
            reads = [n for call, file, n in got if file == f"job/data/s{i}.npy" and call in ("read", "pread")]
            assert reads == [4096, 65904 + i, 0], (i, reads)
        calls = [(call, n) for call, file, n in got if "model.pt" in file and call not in ("openat", "close")]
        assert calls == [("pwrite", 50000), ("fsync", 0), ("rename", 0), ("pread", 50000)], calls
        order = [file for call, file, _ in got if call == "openat" and "/s" in file]
        assert order == [f"job/data/s{i}.npy" for i in range(6)], order
    assert (data / "job/data/s0.npy").stat().st_mtime_ns == kept
    print("   the same reads, writes and order, by strace; files are used again")


def check_loop(tmp):
    """Thinking is kept, and not the waiting for somebody: with a worker whose files take 0 s, all that is left of the run
    is the trainer's thinking."""
    log, data = job(think=0.1).write(tmp / "think"), tmp / "data"
    took = {}
    for name, *args in ("as it was",), ("half", "--think-scale", "0.5"), ("none", "--no-think"):
        out = tmp / "out.json"
        said = replay(tmp, log, "--data", data, "-o", out, *args).splitlines()[-1]
        f = json.loads(out.read_text())
        assert re.fullmatch(r"Your job takes (as long here: |\S+ m?s here instead of )\S+ m?s\." if name == "as it was" else
                            r"The requests take \S+ m?s here; the job took \S+ m?s with its own thinking\.", said), (name, said)
        took[name] = f["run_s"]["here"]
        assert f["requests_equal"] == 1 and f["other_requests_equal"] == 1 and f["order_tau"] == 1, f
        assert f["bytes_read"]["log"] == f["bytes_read"]["here"] == 6 * 70000 + 15 + 50000, f
    # what a request was late the next thinking makes up: a little less than 0.6 and 0.3 s
    assert took["as it was"] >= 0.57 and 0.27 <= took["half"] < took["as it was"] and took["none"] < took["half"], took
    print("   run time by thinking: " + ", ".join(f"{k} {v:.3f} s" for k, v in took.items()))


def check_waiting(tmp):
    """The time of a read that another thread waits for is not thinking: a log of slow reads replays fast."""
    g = Log()
    g.call(10, "clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f) = 11")
    for i in range(5):
        def slow():
            g.call(11, f'openat(AT_FDCWD, "/job/x{i}", O_RDONLY) = 7</job/x{i}>')
            g.call(11, f'pread64(7</job/x{i}>, ""..., 1000, 0) = 1000', takes=2.0)
            g.call(11, f"close(7</job/x{i}>) = 0")
            g.call(11, 'write(8<pipe:[2]>, ""..., 100) = 100')
        g.wait(10, 'read(6<pipe:[2]>, ""..., 100) = 100', slow)
    out = tmp / "out.json"
    replay(tmp, g.write(tmp / "slow"), "--data", tmp / "slowdata", "-o", out)
    f = json.loads(out.read_text())["run_s"]
    assert f["log"] > 9 and f["here"] < 2, f
    print(f"   reads that took the job {f['log']:.1f} s: {f['here']:.3f} s here")


def check_names(tmp):
    """Nothing is made outside of the folder, whatever names a log has."""
    names = ["/../../../escape", "../up", "relative/x", "/a//b/./c", "/" + "n" * 255 + "/f", "/d/" + "/".join(["p" * 200] * 19),
             "/job/..", "/con\\nnl", "/x" * 200, "/.stoker-image"]
    g = Log()
    g.call(10, 'newfstatat(AT_FDCWD, "/", {st_mode=S_IFDIR|0755, st_size=4096, ...}, 0) = 0')
    for n in names:
        g.call(10, f'openat(AT_FDCWD, "{n}", O_RDONLY) = 3<{n}>')
        g.call(10, f'pread64(3<{n}>, ""..., 10, 0) = 10')
        g.call(10, f"close(3<{n}>) = 0")
    # a file without a name
    g.call(10, 'openat(AT_FDCWD, "/scratch", O_RDWR|O_EXCL|O_CLOEXEC|O_TMPFILE, 0600) = 3</scratch/#77 (deleted)>')
    g.call(10, 'write(3</scratch/#77 (deleted)>, ""..., 10) = 10')
    g.call(10, "close(3</scratch/#77 (deleted)>) = 0")
    deep = tmp / "deep/er/folder"
    deep.parent.mkdir(parents=True)
    before = {p for p in tmp.rglob("*")}
    replay(tmp, g.write(tmp / "names"), "--data", deep)
    outside = {p for p in tmp.rglob("*") if not p.is_relative_to(deep)} - before
    assert outside == {tmp / "names"}, outside
    files = [p for p in deep.rglob("*") if p.is_file() and p.name != ".stoker-image"]
    assert len(files) >= len(names) - 1 and all(p.stat().st_size == 10 for p in files), files
    # a folder of somebody
    mine = tmp / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("x")
    said = replay(tmp, tmp / "names", "--data", mine, status=2)
    assert "holds other things" in said and sorted(os.listdir(mine)) == ["thesis.tex"], said
    # a folder of the image that leads elsewhere
    shutil.rmtree(deep / "a")
    (deep / "a").symlink_to(mine)
    said = replay(tmp, tmp / "names", "--data", deep, status=2)
    assert "is a symbolic link" in said and sorted(os.listdir(mine)) == ["thesis.tex"], said


def check_hostile(tmp):
    text = (tmp / "log").read_text()
    r = random.Random(5)
    for n in range(12):
        cut = text[:r.randrange(len(text))] if n % 2 else text
        damaged = "".join(c if r.random() > 0.003 else r.choice("0189-<>=()\"x,\n") for c in cut)
        (tmp / "damaged").write_text(damaged)
        done = subprocess.run([STOKER, "replay", tmp / "damaged", "--data", tmp / "hostile", "--no-think", "--sparse"],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, 1, 2), (n, done.returncode, done.stderr)
        assert len(done.stderr.strip().splitlines()) <= 1, done.stderr
    # folders in folders in folders: names do not grow without end
    g = Log()
    g.call(10, 'openat(AT_FDCWD, "/d", O_RDONLY|O_DIRECTORY) = 3')
    for n in range(4000):
        g.call(10, f'openat(3, "{n:0200d}", O_RDONLY) = 3')
    least = () if SANITIZED else ("prlimit", f"--as={1 << 30}")
    done = subprocess.run([*least, STOKER, "explain", g.write(tmp / "deep_log"), "--json"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    # more than the disk has
    g = Log()
    g.call(10, 'openat(AT_FDCWD, "/big", O_RDONLY) = 3</big>')
    g.call(10, 'newfstatat(3</big>, "", {st_mode=S_IFREG|0644, st_size=4000000000000000, ...}, AT_EMPTY_PATH) = 0')
    g.call(10, 'pread64(3</big>, ""..., 10, 3000000000000000) = 10')
    said = replay(tmp, g.write(tmp / "big"), "--data", tmp / "bigdata", status=1)
    assert "are free" in said, said


def check_strange(tmp):
    """What others put into the folder is neither written through, nor waited for: a sentence, at once."""
    log, data, outside = job(think=0).write(tmp / "log"), tmp / "strange", tmp / "outside"
    at, out = data / "job/data/s3.npy", data / "job/out"
    link = (outside.write_bytes, b"precious")

    def reset():
        shutil.rmtree(data, ignore_errors=True)
        link[0](link[1])
        replay(tmp, log, "--data", data, "--only-files")

    for name, put, says in (
            ("a FIFO", lambda: (at.unlink(), os.mkfifo(at)), "is a FIFO"),
            ("a hard link", lambda: (at.unlink(), os.link(outside, at)), "has other names"),
            ("a link", lambda: (at.unlink(), at.symlink_to(outside)), "is a symbolic link"),
            ("a folder", lambda: (at.unlink(), at.mkdir()), "the job has a file of that name"),
            ("no folder", lambda: (shutil.rmtree(data / "job/data"), os.mkfifo(data / "job/data")), "has a folder of that name"),
            ("a link to a folder", lambda: out.symlink_to(tmp), "is a symbolic link"),
            ("the marker a hard link", lambda: ((data / ".stoker-image").unlink(), os.link(outside, data / ".stoker-image")), None),
            ("a hard link to be replaced", lambda: (out.mkdir(), os.link(outside, out / "model.pt.tmp")), None)):
        reset()
        put()
        for args in ("--cold",), ("--sparse",):
            said = replay(tmp, log, "--data", data, "--no-think", *args, status=2 if says else 0)
            assert not says or says in said, (name, said)
            assert outside.read_bytes() == b"precious" and not (tmp / "model.pt").exists(), name
    # a sparse image has its sizes, but not its bytes: room is needed for them
    if not SANITIZED and os.geteuid() == 0:
        small = tmp / "small"
        small.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "none", small], capture_output=True).returncode:
            return left_out("a small disk: no mount")
        try:
            replay(tmp, log, "--data", small / "image", "--only-files", "--sparse")
            said = replay(tmp, log, "--data", small / "image", "--only-files", status=1)
            assert "are free" in said and not any(f.stat().st_blocks for f in (small / "image/job/data").iterdir()), said
        finally:
            subprocess.run(["umount", small], check=True)


REAL = r"""
import fcntl, os, socket, time
def child(f, *a):
    pid = os.fork()
    if pid == 0:
        f(*a)
        os._exit(0)
    return pid
def tries(f, *a):
    try: return f(*a)
    except OSError: return None
def put(name, text, how="w"):
    with open(name, how) as f: f.write(text)
# what fails must not succeed: a folder in use, a file in the way, a name that is nowhere
os.mkdir("full"); put("full/in", "1"); tries(os.rmdir, "full"); tries(os.mkdir, "full"); tries(os.rename, "none", "any")
tries(os.open, "kept", os.O_DIRECTORY); tries(os.open, "kept", os.O_CREAT | os.O_EXCL | os.O_WRONLY); tries(os.mkdir, "none/below")
put("none", "now"); open("none").read()
# a file that was there grows, and is read between
put("kept", "x" * 1000, "a"); print(len(open("kept").read()))
# names change hands: each process removes what the other one made
def locker(k):
    for i in range(10):
        while True:
            fd = tries(os.open, "lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            if fd is not None: break
            time.sleep(0.002)
        put(f"l{k}.{i}", "1"); os.close(fd); os.unlink("lock")
for pid in [child(locker, k) for k in range(2)]: os.waitpid(pid, 0)
# what children made their parent reads and removes, and a folder with another name
def fill(k):
    time.sleep(0.01 * k); os.mkdir(f"d{k}"); put(f"d{k}/f", "x" * k)
for pid in [child(fill, k) for k in range(1, 5)]: os.waitpid(pid, 0)
for k in range(1, 5): os.rename(f"d{k}", f"e{k}"); open(f"e{k}/f").read(); os.unlink(f"e{k}/f"); os.rmdir(f"e{k}")
# hard links, a socket in a new folder, a listing with questions between
put("one", "1" * 50); os.link("one", "two"); os.unlink("one"); open("two").read(); os.unlink("two")
os.mkdir("s"); s = socket.socket(socket.AF_UNIX); s.bind("s/sock"); os.unlink("s/sock"); os.rmdir("s")
print(sum(e.stat().st_size for e in os.scandir("many")))
fd = os.open("new", os.O_RDWR | os.O_CREAT)
os.posix_fallocate(fd, 0, 5000); print(len(os.pread(fd, 9000, 0)))
"""


def check_real(tmp):
    """A real job, recorded: each of its requests has the same answer in the replay, each time."""
    if SANITIZED:
        return left_out("a job recorded: its interpreter has no sanitizer")
    work = tmp / "work"
    (work / "many").mkdir(parents=True)
    for i in range(1500):
        (work / "many" / f"{i:05}").write_text("x" * (i % 7))
    (work / "kept").write_text("before")
    done = subprocess.run([STOKER, "record", "-o", tmp / "real", "--", sys.executable, "-c", REAL], cwd=work, timeout=60,
                          capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split() == ["1006", str(sum(i % 7 for i in range(1500))), "5000"], done
    for args in (), ("--no-think",), ("--think-scale", "0.1"):
        out = tmp / "real.json"
        said = replay(tmp, tmp / "real", "--data", tmp / "image", "-o", out, *args)
        f = json.loads(out.read_text())
        assert f["requests_equal"] == 1 and f["other_requests_equal"] == 1 and f["order_tau"] == 1, f
        # a lock is asked for while it is held, which is a matter of time
        other = re.search(r"(\d+) requests? had another result.*of '(.*)'", said)
        assert not other or other[2].endswith("/lock"), said
    # files are listed as often as the job did, not once an entry
    assert f["run_s"]["here"] < 5, f


def check_many_processes(tmp):
    """Threads and files of processes that have ended are gone: a shell script of thousands is replayed, too."""
    g = Log()
    for k in range(200):
        g.call(10, f"clone(child_stack=NULL, flags=SIGCHLD) = {100 + k}")
        g.call(100 + k, f'openat(AT_FDCWD, "/job/x{k % 9}", O_WRONLY|O_CREAT, 0644) = 3</job/x{k % 9}>')
        g.call(100 + k, f'write(3</job/x{k % 9}>, "", 10) = 10')
        g.call(100 + k, "exit_group(0) = ?")
        g.lines.append(f"{100 + k} {g.now + 5e-6:.6f} +++ exited with 0 +++")
        g.call(10, f"wait4(-1, [{{WIFEXITED(s) && WEXITSTATUS(s) == 0}}], 0, NULL) = {100 + k}")
    out = tmp / "out.json"
    replay(tmp, g.write(tmp / "forks"), "--data", tmp / "forks_data", "-o", out, under=("prlimit", "--nofile=64"))
    f = json.loads(out.read_text())
    assert f["requests_equal"] == 1 and f["writes"] == {"log": 200, "here": 200}, f


def check_lock(tmp):
    """One replay at a time in a folder; the other one is told who has it."""
    log, data = job(think=0.3).write(tmp / "slowly"), tmp / "locked"
    first = subprocess.Popen([STOKER, "replay", log, "--data", data], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    lock = data / ".stoker_replay.lock"
    while not lock.exists() or not lock.read_text():
        assert first.poll() is None
        time.sleep(0.01)
    said = replay(tmp, log, "--data", data, status=1)
    assert f"process {first.pid} on host" in said and "--data" in said, said
    # stopped in the middle, then killed: the next one begins anew
    first.send_signal(signal.SIGINT)
    assert first.wait(timeout=60) == 1, first.returncode
    assert not lock.exists()
    killed = subprocess.Popen([STOKER, "replay", log, "--data", data], stdout=subprocess.DEVNULL)
    while not (data / "job/data/s0.npy").exists() or not lock.exists():
        assert killed.poll() is None
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    replay(tmp, log, "--data", data, "--no-think")
    assert not lock.exists()
    # what marks the folder as ours is a file: anything else is not opened
    (data / ".stoker-image").unlink()
    os.mkfifo(data / ".stoker-image")
    assert "holds other things" in replay(tmp, log, "--data", data, "--no-think", status=2)


def main():
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        check_requests(tmp)
        check_loop(tmp)
        check_waiting(tmp)
        check_names(tmp)
        check_hostile(tmp)
        check_strange(tmp)
        check_real(tmp)
        check_many_processes(tmp)
        check_lock(tmp)


main()

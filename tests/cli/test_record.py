"""stoker record: what many ways of reading leave in a recording, and what it says of what it cannot see."""
import concurrent.futures
import ctypes.util
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import STOKER, left_out  # noqa: E402

TOOLS = pathlib.Path(os.environ["STOKER_TOOLS"])
JOB, STATIC, EVENTS, ODD = TOOLS / "recorded", TOOLS / "recorded_static", TOOLS / "job_events", TOOLS / "recorded_odd"
KIB64 = 65536


class Recording:
    """A command under the recorder, and the events that are read back."""

    def __init__(self, tmp, name, command, options=(), status=0, env=None, stdin=None, cwd=None):
        self.folder = tmp / name
        done = subprocess.run([STOKER, "record", "-o", self.folder, *options, "--", *map(str, command)], capture_output=True, cwd=cwd or tmp,
                              env=env, stdin=stdin, timeout=120)
        assert done.returncode == status, (name, done)
        self.out, self.report = done.stdout, done.stderr.decode()
        self.read_back()

    def read_back(self):
        done = subprocess.run([EVENTS, self.folder], capture_output=True, timeout=60)
        assert done.returncode == 0 or b"no request of the recording can be read" in done.stderr, done
        lines = done.stdout.decode().splitlines()
        self.events = [line.split(" ", 6)[1:] for line in lines if line.startswith("event ")]
        self.processes = [line.split(" ", 9)[1:] for line in lines if line.startswith("process ")]
        self.notes = [line[5:] for line in lines if line.startswith("note ")]
        if done.returncode:  # of a recording of which nothing is left, the reason says what a note would
            self.notes = ["damaged: " + done.stderr.decode().split("can be read: ", 1)[1]]
        self.deleted = [line[8:] for line in lines if line.startswith("deleted ")]

    def of(self, kind, name=""):
        """(offset, asked, result) of the events of a kind on files whose name ends so."""
        return [tuple(e[2:5]) for e in self.events if e[1] == kind and e[5].endswith(name)]

    def figure(self, line):
        """Bytes read in a line of the report, as printed."""
        return re.search(rf"^  {line} +(.*?) read", self.report, re.M)[1]


def variants(tmp, file):
    r = Recording(tmp, "variants", [JOB, "variants", file])
    reads = [("0", "101", "101"), ("101", "111", "111"), ("7", "103", "103"), ("9000", "111", "111"), ("9500", "100", "100"),
             ("212", "100", "100"), ("312", "104", "104"), ("8", "105", "105"), ("416", "106", "106"), ("522", "107", "107"),
             ("629", "108", "108"), ("5000", "109", "109"), ("65530", "1000", "6"), ("5109", "0", "0"), ("300", "203", "203"),
             ("1000", "204", "204"), ("0", "4096", "4096"), ("16384", "4096", "4096")]
    assert r.of("read", "/data") == reads, r.of("read", "/data")
    writes = [("0", "201", "201"), ("201", "111", "111"), ("400", "202", "202"), ("700", "111", "111"), ("312", "203", "203"),
              ("515", "204", "204"), ("2000", "205", "205"), ("0", "411", "411")]
    assert r.of("write", ".out") == writes, r.of("write", ".out")
    assert [x[1:] for x in r.of("read", "]")] == [("600", "501"), ("700", "502")]
    assert [x[1:] for x in r.of("write", "]")] == [("501", "501"), ("502", "502")]
    assert len(r.of("stat", "/data")) == 4 and r.of("stat", "/data")[0][2] == str(KIB64) and len(r.of("sync", ".out")) == 2
    bad = Recording(tmp, "bad_pointers", [JOB, "bad_pointers", file])
    assert bad.of("read", "/data")[-1] == ("0", "77", "77") and [x for x in bad.of("open") if x[2] == "-14"], bad.events
    assert len(r.of("rename", ".out")) == 1 and any(d.endswith(".out.new") for d in r.deleted)
    assert r.of("read", "-") == [("0", "1", "-9")]
    pid, parent, rank, status, kernel, seen, kernel_written, written, command = r.processes[0]
    assert (kernel, kernel_written) == (seen, written) and status == "0", r.processes  # every byte that the kernel counts was recorded
    assert r.figure("unseen") == "0 B", r.report


def processes(tmp, file):
    r = Recording(tmp, "forks", [JOB, "forks", file, 64])
    assert len(r.processes) == 65 and len(r.of("fork")) == 64 and len(r.of("open", "/data")) == 1
    # one position, which all share
    assert sorted(int(x[0]) for x in r.of("read", "/data")) == [16 * i for i in range(65)], r.of("read", "/data")
    assert {p[1] for p in r.processes[1:]} == {r.processes[0][0]} and [p[3] for p in r.processes[1:]] == [str(i % 5) for i in range(64)]
    assert r.figure("unseen") == "0 B", r.report
    r = Recording(tmp, "crowd", [JOB, "crowd", file, 64])
    assert len(r.processes) == 65 and len(r.of("read", "/data")) == 64 * 50 and all(p[4] == p[5] for p in r.processes), r.processes
    r = Recording(tmp, "threads", [JOB, "threads", file, 80])
    assert len(r.of("read", "/data")) == 8000 and len(r.of("open", "/data")) == 80
    r = Recording(tmp, "interrupted", [JOB, "interrupted", file, 20000])
    sizes = [x[1] for x in r.of("read", "/data")]
    assert sizes.count("512") == 20000 and r.processes[0][4] == r.processes[0][5], (len(sizes), r.processes)


def children(tmp, file):
    """vfork, posix_spawn and exec, with empty environments."""
    r = Recording(tmp, "children", [JOB, "children", file])
    assert [p[8].split()[0] for p in r.processes[1:]] == ["cat"] * 3, r.processes
    assert len(r.of("read", "/data")) >= 9 and len(r.of("exec", "/cat")) == 3
    assert r.events[-1][1] in ("close", "exit", "read"), r.events[-5:]
    r = Recording(tmp, "shell", ["sh", "-c", f"cat '{file}' | tail -c +1 | wc -c; exit 3"], status=3)
    assert len(r.processes) == 4 and r.out == b"65536\n", r.processes
    moved = {kind: sum(int(x[2]) for x in r.of(kind, "]") if int(x[2]) > 0) for kind in ("read", "write")}
    assert moved["read"] == 2 * KIB64 and moved["write"] == 2 * KIB64 + len(r.out), moved


def ends(tmp, file):
    r = Recording(tmp, "killed", [JOB, "killed", file, 1000], status=128 + 9)
    assert len(r.of("read", "/data")) == 1000 and r.processes[0][3] == "-9" and "1 process without a recorded end" in r.report
    r = Recording(tmp, "killed_child", ["sh", "-c", f"'{JOB}' killed '{file}' 500; echo $?"])
    assert r.out.split() == [b"137"] and len(r.of("read", "/data")) == 500
    with subprocess.Popen([STOKER, "record", "-o", tmp / "passed", "--", JOB, "waits", file], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        assert p.stdout.readline() == b"ready\n"
        p.send_signal(signal.SIGTERM)
        assert p.wait(60) == 42, p.returncode
    for command, status, text in ((["/no/such"], 127, "cannot be executed"), (["/etc/passwd"], 126, "Permission denied"), ([tmp], 126, ""),
                                  (["no_such_program"], 127, "No such file")):
        done = subprocess.run([STOKER, "record", "-o", tmp / "none", "--", *map(str, command)], capture_output=True, text=True)
        assert done.returncode == status and text in done.stderr and len(done.stderr.splitlines()) == 1, done
        assert not (tmp / "none").exists()


def unseen(tmp, file):
    static = [STATIC, "loop", file, 3000]
    if b"\x7fELF" == STATIC.read_bytes()[:4] and b"ld-linux" not in STATIC.read_bytes()[:4096]:
        r = Recording(tmp, "static", static)
        assert "the command is statically linked" in r.report and "1.47 MiB read" in r.report and not r.processes, r.report
        r = Recording(tmp, "static_child", ["sh", "-c", " ".join(f"'{w}'" for w in static) + "; true"])
        assert "recorded_static is statically linked" in r.report and r.figure("unseen") == "1.47 MiB", r.report
    else:
        left_out("a static program: libc.a is not installed")
    r = Recording(tmp, "mapped", [JOB, "mapped", file])
    assert "1 mapping of 64 KiB: page faults are unseen" in r.report and len(r.of("map", "/data")) == len(r.of("unmap", "/data")) == 1
    aio = ctypes.util.find_library("aio")
    if aio:
        r = Recording(tmp, "libaio", [JOB, "libaio", file, 40], env={**os.environ, "LD_PRELOAD": aio})
        assert r.of("read", "/data") == [(str(512 * i), "512", "512") for i in range(40)], r.of("read", "/data")
    else:
        left_out("libaio: it is not installed")
    # a job that was killed: a workload of what the log has
    program = ("import os, random, signal, time\n"
               "for epoch in range(3):\n"
               "    for n, i in enumerate(random.sample(range(2, 14), 12)):\n"
               "        open(f'part{i}.bin', 'rb').read(); time.sleep(n % 3 // 2 * .05)\n"
               "os.kill(os.getpid(), signal.SIGKILL)\n")
    for i in range(2, 14):
        (tmp / f"part{i}.bin").write_bytes(bytes(50000))
    r = Recording(tmp, "cut_short", [sys.executable, "-c", program], status=137)
    done = subprocess.run([STOKER, "explain", r.folder, "-o", tmp / "cut_short.yaml"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "random, anew in each epoch" in done.stdout, done
    made = (tmp / "cut_short.yaml").read_text()
    assert re.search(r"num_files_train: 12 +# seen in the log, which is incomplete", made) and re.search(r"epochs: 3 +# seen in", made), made
    # data in memory is data; what the job makes there is not
    with tempfile.TemporaryDirectory(dir="/dev/shm") as shared:
        for i in range(12):
            (pathlib.Path(shared) / f"part{i}.bin").write_bytes(bytes(50000))
        r = Recording(tmp, "in_memory", [sys.executable, "-c", f"import os\nos.chdir('{shared}')\nopen('made', 'wb').write(bytes(10**5))\n"
                                         "for epoch in range(3):\n    open('made', 'rb').read()\n"
                                         "    for i in range(12): open(f'part{i}.bin', 'rb').read()\n"])
    done = subprocess.run([STOKER, "explain", r.folder], capture_output=True, text=True, timeout=60)
    assert re.search(r"^ +12 +input .*bin$", done.stdout, re.M), done.stdout
    # the limit: what exceeds it is counted, and the job goes on
    r = Recording(tmp, "limited", [JOB, "loop", file, 100000], options=["--limit", "100000"])
    kept = len(r.of("read", "/data"))
    missing = int(re.search(r"missing +(\d+) requests: the limit was reached", r.report)[1])
    assert 0 < kept < 100000 and abs(kept + missing - 100000) < 10, (kept, missing)
    assert sum(f.stat().st_size for f in r.folder.iterdir()) < 110000 and r.figure("unseen") == "0 B", r.report


def names(tmp, file):
    folder = tmp / "names"
    folder.mkdir()
    odd = [b"line\nbreak", b"\x1b[31mred", b"not \xff utf-8", b"quote'\"$`", b" blank "]
    for name in odd:
        (pathlib.Path(os.fsdecode(bytes(folder) + b"/" + name))).write_bytes(b"x" * 10)
    deep = "/".join(["d" * 250] * 15)
    (folder / deep).mkdir(parents=True)
    longest = f"{folder}/{deep}/"
    longest += "e" * (4095 - len(longest))
    program = ("import os, sys\n"
               "for name in os.listdir(b'names'):\n"
               "    path = b'names/' + name\n"
               "    if os.path.isfile(path): open(path, 'rb').read()\n"
               f"os.chdir('names/{deep[:1000]}')\n".replace(deep[:1000], "/".join(["d" * 250] * 4)) +
               "os.open('../' + os.path.basename(os.getcwd()) + '/./here', os.O_CREAT | os.O_WRONLY)\n"
               "try: open(sys.argv[1])\n"
               "except OSError as e: print(e.errno)\n")
    r = Recording(tmp, "of_names", [sys.executable, "-c", program, longest])
    assert r.out.split() in ([b"2"], [b"36"]), r.out
    shown = {e[5] for e in r.events}
    for part in ("line\\nbreak", "\\x1b[31mred", "not \\xff utf-8", "quote'\"$`", "/ blank "):
        assert any(name.endswith(part) for name in shown), (part, sorted(shown)[-20:])
    assert longest in shown and len(longest) == 4095
    assert f"{folder}/" + "/".join(["d" * 250] * 4) + "/here" in shown
    # the report names the folder as a shell takes it
    r = Recording(tmp, "od\nd it's", ["true"])
    assert "next: stoker explain $'" in r.report, r.report
    r = Recording(tmp, "deleted", [JOB, "deleted", file])
    assert r.out == bytes(600) and [x for x in r.of("read", ".gone") if x[2] == "600"] == [("0", r.of("read", ".gone")[0][1], "600")]
    assert any(d.endswith(".gone") for d in r.deleted), r.deleted
    # O_TMPFILE names the folder of the file
    r = Recording(tmp, "unnamed", [JOB, "unnamed", tmp])
    assert [x for x in r.of("write") if x[2] == "700"] and [x for x in r.of("read") if x[2] == "300"], r.events
    done = subprocess.run([STOKER, "replay", r.folder, "--data", tmp / "image", "--no-think"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "bytes written                   700 B          700 B  equal" in done.stdout, done


def folders(tmp, file):
    """Folders that are not ours, or cannot be written."""
    def refused(folder, text, status):
        done = subprocess.run([STOKER, "record", "-o", folder, "--", "true"], capture_output=True, text=True)
        assert done.returncode == status and text in done.stderr and len(done.stderr.splitlines()) == 1, done

    theirs = tmp / "theirs"
    theirs.mkdir()
    (theirs / "thesis.tex").write_text("x")
    refused(theirs, "holds something that is no recording", 2)
    assert [p.name for p in theirs.iterdir()] == ["thesis.tex"]
    (tmp / "empty").mkdir()
    Recording(tmp, "empty", ["true"])
    refused(tmp / "empty", "holds the recording of another job", 2)
    refused(file, "", 1)
    refused("/proc/x", "/proc/x", 1)
    free = tmp / "free"
    free.mkdir()
    for name in ("recording", "recording-2"):
        assert subprocess.run([STOKER, "record", "--", "true"], cwd=free, capture_output=True).returncode == 0
        assert (free / name).is_dir(), list(free.iterdir())
    if os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0:
        # a file system of 200 KiB: the job goes on when it is full
        full = tmp / "full"
        full.mkdir()
        done = subprocess.run(["unshare", "-m", "sh", "-c", f"mount -t tmpfs -o size=200k none '{full}' && '{STOKER}' record -o '{full}/r' -- "
                               f"'{JOB}' loop '{file}' 100000; s=$?; '{EVENTS}' '{full}/r' | grep -c '^event .* read'; exit $s"],
                              capture_output=True, text=True)
        assert done.returncode == 0 and "no room" in done.stderr and 1000 < int(done.stdout) < 100000, done
        # one that is full from the beginning: no job, no folder
        done = subprocess.run(["unshare", "-m", "sh", "-c", f"mount -t tmpfs -o size=40k none '{full}' && '{STOKER}' record -o '{full}/r' -- "
                               f"echo ran; s=$?; ls '{full}'; exit $s"], capture_output=True, text=True)
        assert done.returncode == 1 and done.stdout == "" and "/r: no room for a recording: 40 KiB are free" in done.stderr, done
    else:
        left_out("a full file system: needs root")


HUSH = """
import ctypes, mmap, os, socket, sys, tempfile, threading
os.makedirs('hush_folder', exist_ok=True)
rank = os.environ['RANK']
name = f'hush_folder/hush_{rank}.dat'
with open(name, 'wb') as f: f.write(bytes(100))
os.symlink(os.path.abspath(name), f'hush_link{rank}')
os.link(name, f'hush_hard{rank}')
open(f'hush_link{rank}', 'rb').read()
for path in ('hush_missing', '/proc/self/fd/0', '/dev/shm/hush_none'):
    try: open(path, 'rb').close()
    except OSError: pass
memory = os.memfd_create('hush_memory')
os.write(memory, bytes(10))
unnamed = os.open('hush_folder', os.O_TMPFILE | os.O_RDWR)
ctypes.CDLL(None).linkat(-100, b'/proc/self/fd/%d' % unnamed, -100, b'hush_named', 0x400)
server = socket.socket(socket.AF_UNIX)
server.bind('\\0hush_socket' + rank)
server.listen()
client = socket.socket(socket.AF_UNIX)
client.connect('\\0hush_socket' + rank)
client.send(b'hush_message')
thread = threading.Thread(target=os.listdir, args=('hush_folder',), name='hush_thread')
thread.start(); thread.join()
ctypes.CDLL(None).prctl(15, b'hush_process')
with open(name, 'rb') as f: mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)[0]
tempfile.NamedTemporaryFile(prefix='hush_temporary', dir='hush_folder').close()
os.rename(f'hush_hard{rank}', f'hush_moved{rank}')
os.statvfs('.'); os.stat('hush_folder'); os.access('hush_folder', os.R_OK); os.readlink(f'hush_link{rank}')
fd = os.open(name, os.O_RDONLY)
os.set_inheritable(fd, True)
os.unlink(name)
os.lseek(fd, 0, 0)
os.chdir('hush_folder')
if os.fork() == 0: os.execlp(sys.executable, 'hush_argv0', '-c', f'import os; os.read({fd}, 33)', 'hush_more')
os.wait()
os.execlp('expr', 'expr', '1', '+', '1')
"""


def told(word, data):
    """Whether bytes hold a word. Digests and times hold any three letters, and now and then four: a short one counts where
    it stands alone, as names and arguments do."""
    return re.search((rb"(?<![^\0/ '\"=:]){}(?![^\0/ '\"=:.])" if len(word) < 5 else b"{}")
                     .replace(b"{}", re.escape(word.encode())), data)


def without_names(tmp, file):
    secret = tmp / "Secret_Project" / "patient-4711"
    secret.mkdir(parents=True)
    (tmp / "concatenate").symlink_to(shutil.which("cat"))
    cat = f"'{tmp}/concatenate'"
    for i in range(3):
        shutil.copy(file, secret / f"scan_{i}.npz")
    env = dict(os.environ, USER="agent_smith", HOME=str(tmp / "Secret_Project"), TOKEN="hunter2")
    program = (f"cd '{secret}' && {cat} scan_0.npz scan_1.npz ./../patient-4711/scan_2.npz '{secret}/scan_0.npz' missing_thing >/dev/null; "
               f"'{JOB}' children '{secret}/scan_1.npz'; mv scan_0.npz new_name.npz; ls | wc -l")
    r = Recording(tmp, "hashed", ["sh", "-c", program, "marker_word"], options=["--anonymize"], env=env)
    opened = {e[5] for e in r.events if e[1] == "read" and e[5].endswith(".npz")}
    assert len(opened) == 3 and {len(p.split("/")) for p in opened} == {len((secret / "x").parts)}, opened
    # a job of two ranks, with names of every other kind
    (secret / "train_hush.py").write_text(HUSH)
    silent = Recording(tmp, "silent", ["sh", "-c", f"RANK=1 '{sys.executable}' train_hush.py hush_argument & RANK=0 '{sys.executable}' "
                                                   f"'{secret}/train_hush.py' hush_argument | {cat}; wait; cd ..; true"],
                       options=["--anonymize", "--all"], env=dict(env, HUSH_VARIABLE="hush_value", PWD=str(secret)), cwd=secret)
    assert silent.out == b"2\n2\n" and sorted({p[2] for p in silent.processes}) == ["-1", "0", "1"], (silent.out, silent.report)
    gone = {e[5] for e in silent.events if e[1] == "read" and e[4] == "33"}
    assert len(gone) == 2 and gone <= set(silent.deleted), (gone, silent.deleted)  # known under one name before and after it was removed
    words = {w for p in (secret, tmp, TOOLS) for w in p.parts[1:]} - {"tmp"}
    words |= {"Secret", "patient", "-4711", "scan_", "new_name", "missing_thing", "agent_smith", "hunter2", "marker_word", os.uname().nodename,
              "children", "recorded ", "/bin", "concatenate"}
    words = {w for w in words if w not in "stoker recording anonymous"}  # what each recording says of itself
    words |= {"hush_", "_hush", "HUSH_", sys.executable.split("/")[-1], "python", "site-packages", "encodings"}
    for path in (*r.folder.iterdir(), *silent.folder.iterdir()):
        data = path.read_bytes()
        for word in words:
            assert len(word) < 3 or not told(word, data), (path, word)
            assert word not in path.name
    again = Recording(tmp, "hashed2", ["sh", "-c", program], options=["--anonymize"], env=env)
    assert not opened & {e[5] for e in again.events}, "the key is another one each time"
    key = [p for p in r.folder.iterdir() if p.name.startswith(".")]
    assert not key and sum(int(e[4]) for e in r.events if e[1] == "read" and e[5] in opened) >= 7 * KIB64


def damaged(tmp, file):
    """Rings that are cut anywhere, or hold anything."""
    r = Recording(tmp, "to_cut", [JOB, "variants", file])
    said = dict(x.split(" ", 1) for x in (r.folder / "stoker-recording").read_text().splitlines())
    assert 0 < float(said["processors"]) <= os.cpu_count(), said
    for part in (*r.folder.glob("*.ring"), r.folder / "stoker-recording"):
        done = subprocess.run([STOKER, "explain", part], capture_output=True, text=True)
        assert done.returncode == 2 and f"{part} is one file of a recording" in done.stderr and f"name its folder, {r.folder}\n" in done.stderr, done
    ring = max(r.folder.glob("*.ring"), key=lambda p: p.stat().st_size)
    data = ring.read_bytes()
    whole = len(r.events)
    for at in sorted({0, 7, 100, 4095, 4096, 4160, 4200, *range(4300, len(data), 61)}):
        ring.write_bytes(data[:at])
        r.read_back()
        assert len(r.events) <= whole and (at > 4095 or not r.events)
    for at in range(4096, len(data), 97):
        ring.write_bytes(data[:at] + bytes([data[at] ^ 0xff]) + data[at + 1:])
        r.read_back()
        block = next((n for n in r.notes if n.startswith(f"damaged: {ring.name} at byte ")), None)
        assert block and len(r.events) < whole or data[at:] == bytes(len(data) - at), (at, r.notes)


def odd(tmp, file):
    """Pointers that lead nowhere, filters of calls, small stacks: as without the recorder."""
    for options in ((), ("--anonymize",)):
        recorded = {mode: Recording(tmp, mode + "".join(options), [ODD, mode, file], options)
                    for mode in ("pointers", "filtered", "filtered_exec", "strict", "small_stacks", "own_bus", "depths")}
        r = recorded["filtered"]
        assert re.search(r"filtered calls +2 processes.*\n +not recorded +1 process forked behind such a filter", r.report), r.report
        assert re.search(r"missing +\d+ requests", r.report) and any("filter of calls (seccomp)" in n for n in r.notes), r.report
        assert "without a recorded end" not in r.report, r.report
        assert recorded["filtered_exec"].out == b"behind\n" and "is behind a filter of calls" in recorded["filtered_exec"].report
        plain = subprocess.run([ODD, "depths", file], capture_output=True, check=True, timeout=60).stdout.split()
        more = [int(a) - int(b) for a, b in zip(recorded["depths"].out.split(), plain)]
        assert len(more) == 12 and max(more) < 2048, more


def unreadable(tmp, file):
    """What cannot be read is told from what is no log."""
    r = Recording(tmp, "whole", ["cat", file])
    nobody = dict(user=65534, group=65534, extra_groups=[]) if os.getuid() == 0 else {}
    reach = [p for p in (*tmp.parents[:-2], tmp)] if nobody else []
    for path in reach:
        path.chmod(path.stat().st_mode | 0o055)
    for name, lock, said in (("folder", ".", "this folder cannot be read: Permission denied"),
                             ("job", "stoker-recording", "Permission denied"), ("rings", "*.ring", "no request of the recording can be read: ")):
        copy = shutil.copytree(r.folder, tmp / name)
        for path in (copy, *copy.iterdir()):
            path.chmod(0o755)
        for path in copy.glob(lock) if lock != "." else [copy]:
            path.chmod(0)
        done = subprocess.run([STOKER, "explain", copy], capture_output=True, text=True, cwd="/", **nobody)
        assert done.returncode != 0 and said in done.stderr and "Permission denied" in done.stderr, done
        copy.chmod(0o755)
    r = Recording(tmp, "two", ["sh", "-c", f"cat {file}; cat {file} >/dev/null"])
    for part in ("*.ring", "*.end", "control-*"):
        path = next(r.folder.glob(part))
        path.chmod(0)
        r.folder.chmod(0o755)
        for other in r.folder.iterdir():
            other.chmod(0o755 if other != path else 0)
        done = subprocess.run([STOKER, "explain", r.folder], capture_output=True, text=True, cwd="/", **nobody)
        assert done.returncode == 0 and f"{path.name} at byte 0: Permission denied" in " ".join(done.stdout.split()), done
    done = subprocess.run([STOKER, "explain", "/proc/self/mem"], capture_output=True, text=True)
    assert done.returncode != 0 and "cannot be read: Input/output error" in done.stderr, done
    done = subprocess.run([STOKER, "explain", tmp], capture_output=True, text=True)
    assert done.returncode != 0 and "no log of a job that is known here" in done.stderr, done


def headline(tmp, file):
    """A job is not said to have done nothing, or only so much, where its recording lacks something."""
    r = Recording(tmp, "few", ["sh", "-c", f"cat {file}; cat {file} >{tmp}/copied"])
    whole = subprocess.run([STOKER, "explain", r.folder], capture_output=True, text=True).stdout
    assert whole.startswith("The job read ") and "at least" not in whole.splitlines()[0], whole
    for ring in sorted(r.folder.glob("*.ring")):
        copy = shutil.copytree(r.folder, tmp / f"less {ring.name}")
        (copy / ring.name).unlink()
        told = " ".join(subprocess.run([STOKER, "explain", copy], capture_output=True, text=True).stdout.split())
        assert re.match("The job read (at least|no data that the log has)", told), told
    without = shutil.copytree(r.folder, tmp / "no_end")
    for end in without.glob("*.end"):
        end.unlink()
    for command in (["explain"], ["replay", "--only-files", "--data", tmp / "image"]):
        for folder, said in (r.folder, False), (without, True):
            told = " ".join(subprocess.run([STOKER, *command, folder], capture_output=True, text=True, check=True).stdout.split())
            assert ("the recording has no end" in told) == said, told
    for ring in r.folder.glob("*.ring"):
        ring.unlink()
    done = subprocess.run([STOKER, "explain", r.folder], capture_output=True, text=True)
    assert done.returncode == 1 and not done.stdout and "were removed" in done.stderr, done


def cut_by_others(tmp, file):
    """Files of the recording that others cut or remove while the job runs: it goes on, and what is missing is told."""
    for mode, parts in (("cut", 2), ("own_bus", 4)):
        r = Recording(tmp, mode, [ODD, mode, file, tmp / mode])
        assert re.search(rf"damaged +{parts} parts of the recording\n    [^\n]* at byte 0: ", r.report), r.report
        done = subprocess.run([STOKER, "explain", r.folder], capture_output=True, text=True)
        if mode == "cut":  # its last child came later
            assert done.returncode == 0 and f"{parts} parts of the recording are cut or damaged" in done.stdout + done.stderr, done
        else:
            assert done.returncode == 1 and "no request of the recording can be read: " in done.stderr, done
    for name, command, told in (("shell", "truncate -s 0", "cut +the files of 1 process, "), ("removed", "rm", "removed +the files of 1 process, ")):
        r = Recording(tmp, name, ["sh", "-c", f"{command} '{tmp / name}'/*.ring; cat '{file}' >/dev/null; cat '{file}' | wc -c"])
        assert r.out == b"65536\n" and re.search(told, r.report) and any("file" in n and told.split()[0] in n for n in r.notes), (r.report, r.notes)


def main():
    cases = [variants, processes, children, ends, unseen, names, folders, without_names, damaged, odd, unreadable, headline,
             cut_by_others]
    with tempfile.TemporaryDirectory() as tmp, concurrent.futures.ThreadPoolExecutor(4) as pool:
        waiting = []
        for case in cases:
            own = pathlib.Path(tmp).resolve() / case.__name__
            own.mkdir()
            (own / "data").write_bytes(bytes(KIB64))
            waiting.append((case, pool.submit(case, own, own / "data")))
        for case, future in waiting:
            future.result()
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()

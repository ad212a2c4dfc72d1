"""Requests that a command makes to one file, from strace: a list of (what, offset, asked, returned).

what is "open" or "read"; seeks, stats and duplicated descriptors are followed, not listed.
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

CALLS = "openat,read,pread64,lseek,close,dup,dup2,dup3,fcntl,readv,preadv,mmap,newfstatat,fstat"
LINE = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\)\s+= (-?\d+)")


def skip(sentence):
    print(f"skipped: {sentence}")
    sys.exit(77)


def poke(path, block):
    """strace's option that makes fstat say a preferred request size."""
    st = os.stat(path)
    head = struct.pack("<QQQIIIIQqq", st.st_dev, st.st_ino, st.st_nlink, st.st_mode, 0, 0, 0, 0,
                       st.st_size, block)
    return "--inject=newfstatat:poke_exit=@arg3=" + head.hex()


class Warm:
    """A Python that has imported what its programs do, and forks for each of them: importing NumPy or
    pandas under strace takes a hundred times as long as the load that is looked at."""

    SERVER = """
import ast, json, os, sys
imported = set()
for line in iter(sys.stdin.readline, ""):
    job = json.loads(line)
    if job["code"] not in imported:
        imported.add(job["code"])
        top = [n for n in ast.parse(job["code"]).body if isinstance(n, (ast.Import, ast.ImportFrom))]
        exec(compile(ast.Module(top, []), "-c", "exec"), {})
    wait, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        null, out = os.open(os.devnull, os.O_RDONLY), os.open(job["out"], os.O_WRONLY)
        os.dup2(null, 0), os.dup2(out, 1)
        os.close(null), os.close(out)
        os.read(wait, 1)
        os.close(wait)
        sys.argv = ["-c"] + job["argv"]
        exec(compile(job["code"], "-c", "exec"), {"__name__": "__main__"})
        sys.exit(0)
    os.close(wait)
    print(child, flush=True)
    sys.stdin.readline()
    os.close(go)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
    running = {}

    def __init__(self, python):
        self.process = subprocess.Popen([python, "-c", self.SERVER], stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    @classmethod
    def trace(cls, command, options, log):
        """As strace would; None where a process may not be attached to, or the program fails."""
        warm = cls.running.get(command[0]) or cls.running.setdefault(command[0], cls(command[0]))
        with tempfile.NamedTemporaryFile("r") as out:
            warm.tell(json.dumps({"code": command[2], "argv": command[3:], "out": out.name}))
            child = warm.process.stdout.readline().strip()
            if not child:
                del cls.running[command[0]]
                return None
            strace = subprocess.Popen(["strace", *options, "-o", log, "-p", child], text=True,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            attached = "attached" in strace.stderr.readline()
            warm.tell("go")
            status = warm.process.stdout.readline().strip()
            strace.communicate()
            return out.read() if attached and status == "0" else None


def traced(command, path, options):
    """A command under strace with these options: what strace wrote of the file, and the command's output."""
    # leaks cannot be looked for under ptrace
    if not shutil.which("strace"):
        skip("strace is not installed")
    options = ["-f", "-s", "0", "-P", path, *options]
    with tempfile.NamedTemporaryFile("r") as log:
        said = Warm.trace(command, options, log.name) if command[1] == "-c" else None
        if said is not None:
            return log.read(), said
        run = subprocess.run(["strace", "--seccomp-bpf", *options, "-o", log.name, "--"] + command,
                             env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0"),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        text = log.read()
    if "ptrace" in run.stderr and not text:
        skip("strace cannot trace here: " + run.stderr.strip())
    if run.returncode != 0:
        raise SystemExit("%s failed: %s" % (command, run.stderr))
    return text, run.stdout


def requests(command, path, block=None):
    text, said = traced(command, path, ["-e", "trace=" + CALLS] + ([poke(path, block)] if block else []))
    return parse(text), said


def parse(text):
    result = []
    place = {}  # descriptor -> a shared [offset]
    for line in text.splitlines():
        m = LINE.match(line)
        if not m:
            continue
        call, args, ret = m.group(1), m.group(2), int(m.group(3))
        first = args.split(",")[0]
        fd = int(first) if first.lstrip("-").isdigit() else None
        if call == "openat":
            place[ret] = [0]
            result.append(("open", 0, 0, 0))
        elif call in ("dup", "dup2", "dup3") or call == "fcntl" and "F_DUPFD" in args:
            place[ret] = place[fd]
        elif call == "close":
            place.pop(fd, None)
        elif call == "lseek":
            place[fd][0] = ret
        elif call == "read":
            asked = int(args.rsplit(",", 1)[1])
            result.append(("read", place[fd][0], asked, ret))
            place[fd][0] += max(ret, 0)
        elif call == "pread64":
            asked, offset = (int(x) for x in args.rsplit(",", 2)[1:])
            result.append(("read", offset, asked, ret))
        elif call in ("readv", "preadv", "mmap") and ret >= 0 and fd in place:
            result.append((call, 0, 0, ret))
    return result


def python_with_numpy():
    for candidate in (sys.executable, "/usr/bin/python3"):
        run = subprocess.run([candidate, "-c", "import sys, numpy; print(sys.version_info[1], "
                              "numpy.__version__)"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
        if run.returncode == 0:
            minor, version = run.stdout.split()
            once = [int(x) for x in version.split(".")[:2]] >= [2, 3]
            return candidate, ("314" if int(minor) >= 14 else "311") + (",once" if once else ""), version
    skip("NumPy is not installed for any Python 3 here")


def explain(name, real, ours):
    print("%s: the requests differ" % name)
    for i in range(max(len(real), len(ours))):
        a = real[i] if i < len(real) else None
        b = ours[i] if i < len(ours) else None
        print("  %s %3d  real %-40s ours %s" % (" " if a == b else "*", i, a, b))

"""Requests that a command makes to one file, from strace: a list of (what, offset, asked, returned).

what is "open" or "read"; seeks, stats and duplicated descriptors are followed, not listed.
"""
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
    print(sentence)
    sys.exit(77)


def poke(path, block):
    """strace's option that makes fstat say a preferred request size."""
    st = os.stat(path)
    head = struct.pack("<QQQIIIIQqq", st.st_dev, st.st_ino, st.st_nlink, st.st_mode, 0, 0, 0, 0,
                       st.st_size, block)
    return "--inject=newfstatat:poke_exit=@arg3=" + head.hex()


def requests(command, path, block=None):
    # leaks cannot be looked for under ptrace
    if not shutil.which("strace"):
        skip("strace is not installed")
    with tempfile.NamedTemporaryFile("r") as out:
        options = [poke(path, block)] if block else []
        run = subprocess.run(["strace", "-f", "--seccomp-bpf", "-s", "0", "-o", out.name, "-P", path, "-e",
                              "trace=" + CALLS] + options + ["--"] + command,
                             env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0"),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        text = out.read()
        if "ptrace" in run.stderr and not text:
            skip("strace cannot trace here: " + run.stderr.strip())
    if run.returncode != 0:
        raise SystemExit("%s failed: %s" % (command, run.stderr))
    return parse(text), run.stdout


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
            return candidate, "314" if int(minor) >= 14 else "311", version
    skip("NumPy is not installed for any Python 3 here")


def explain(name, real, ours):
    print("%s: the requests differ" % name)
    for i in range(max(len(real), len(ours))):
        a = real[i] if i < len(real) else None
        b = ours[i] if i < len(ours) else None
        print("  %s %3d  real %-40s ours %s" % (" " if a == b else "*", i, a, b))

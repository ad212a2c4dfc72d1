"""Darshan logs: every counter and request as Darshan's own tools print them, in all versions, both byte orders and all
ways of packing; sentences for what is no log or a damaged one."""
import glob
import gzip
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import darshan_compare as compare
from darshan_log import MADE_UP, Log, made_up, made_up_log

STOKER = os.environ["STOKER"]
DATA = os.path.join(os.environ["STOKER_SOURCE"], "tests", "data", "darshan")
failed = []


def check(ok, what):
    if not ok:
        failed.append(what)
        print("FAILED:", what)


def same_as_tools(folder, log, base):
    ours = compare.ours_of(STOKER, log)
    theirs = compare.text_of(base + ".parser.txt.gz")
    n, pardoned, wrong = compare.counters(log, ours, theirs)
    sums, more = compare.totals(log, ours, theirs)
    wrong += more + compare.perf(log, ours, theirs)[1]
    asked = 0
    if os.path.exists(base + ".dxt.txt.gz"):
        asked, more = compare.requests(log, ours, compare.text_of(base + ".dxt.txt.gz"))
        wrong += more
    check(n > 0 and not wrong, f"{os.path.basename(log)}: {len(wrong)} differences: {wrong[:3]}")
    return n, pardoned, asked, sums


def compare_all(folder):
    sums = [0, 0, 0, 0]
    logs = 0
    for base in sorted(b[:-14] for b in glob.glob(DATA + "/**/*.parser.txt.gz", recursive=True)):
        log = base + ".darshan"
        if not os.path.exists(log):
            name, order = os.path.basename(base).split("-")
            log = os.path.join(folder, os.path.basename(log))
            with open(log, "wb") as f:
                f.write(made_up_log(name, "<" if order == "le" else ">").write())
        sums = [a + b for a, b in zip(sums, same_as_tools(folder, log, base))]
        logs += 1
    print(f"{logs} logs: {sums[0]} counters equal but for {sums[1]} that the tool has wrong, {sums[2]} requests, {sums[3]} sums")
    check(sums[0] > 29000 and sums[2] > 2500 and sums[1] < 60, f"too little was compared: {sums}")


def records(text):
    return [l for l in text.split("\n") if l[:1] != "#"]


def orders_are_equal(folder):
    """Each version made up in both orders says the same."""
    for name in MADE_UP:
        texts = []
        for order in "<>":
            path = os.path.join(folder, "order.darshan")
            with open(path, "wb") as f:
                f.write(made_up_log(name, order).write())
            texts.append(compare.ours_of(STOKER, path))
        check(texts[0] == texts[1], f"{name}: the byte order matters")


def packing_is_nothing(folder):
    some = [f for f in glob.glob(DATA + "/*/**/*.darshan", recursive=True) if "3.1.3" in f or "ior_hdf5" in f or "25207" in f]
    check(len(some) == 3, "three logs to pack")
    for path in some:
        log, want = Log.read(path), records(compare.ours_of(STOKER, path))
        for method, piece in ((0, 700), (1, None), (1, 5000), (2, None)):
            packed = os.path.join(folder, "packed.darshan")
            with open(packed, "wb") as f:
                f.write(log.write(method, piece))
            text = compare.ours_of(STOKER, packed)
            check(records(text) == want and "# note" not in text, f"{path} packed by {method} in pieces of {piece}")


def said(folder, data, *what, counters=True):
    """What `explain` says of these bytes: one sentence on stderr, or notes."""
    path = os.path.join(folder, "x.darshan")
    with open(path, "wb") as f:
        f.write(data)
    done = subprocess.run([STOKER, "explain"] + ["--counters"] * counters + [path], capture_output=True, text=True, timeout=60)
    text = " ".join((done.stderr + done.stdout).split())
    check(done.returncode in (0, 1), f"status {done.returncode}: {done.stderr}")
    for w in what:
        check(w in text, f"{w!r} is not in {text[-400:]!r}")
    return done.returncode


def sentences(folder):
    good = made_up_log("newest", "<")
    whole = good.write()
    check(said(folder, whole[:1000], "cut in its header: 1000 of 1328 bytes") == 1, "a cut header is an error")
    check(said(folder, whole[:1328], "no region of it is within its 1328 bytes") == 1, "a header alone is an error")
    check(said(folder, gzip.compress(whole), "packed by gzip as a whole") == 1, "gzip")
    check(said(folder, whole[:16] + b"\7" + whole[17:], "compression method 7 is unknown") == 1, "method 7")
    for version in (b"2.06", b"4.00", b"3.30", b"3.5\0"):
        check(said(folder, version + whole[4:], "is not read here: 3.00, 3.10, 3.20, 3.21, 3.41 and later") == 1, version)
    check(said(folder, b"3.50" + whole[4:], "log version 3.50 is later than 3.41", "POSIX_OPENS") == 0, "a later minor")
    check(said(folder, whole[:-10], "the region DAOS ends at byte", "DFS_OPENS") == 0, "the last region is cut")
    version, region = good.module[1]
    good.module[1] = (9, region)
    check(said(folder, good.write(), "version 9 of POSIX is not known") == 0, "a version to come")
    good.module[1] = (version, region[:-4])
    good.module[44] = (1, b"what is to come")
    check(said(folder, good.write(), "region POSIX is damaged: its last record is cut. What came before is used (3 records)",
               "module 44 is not read here", "total_POSIX_OPENS") == 0, "a cut record")
    good.module[1] = (version, region[:8] + b"\x63" + region[9:])
    check(said(folder, good.write(), "1 records of POSIX have a rank that the job does not have") == 0, "a strange rank")
    good = made_up_log("newest", ">")
    good.flags = 1 << 1 | 1 << 10
    check(said(folder, good.write(), "POSIX is incomplete", "DXT_POSIX is incomplete") == 0, "partial flags are swapped")
    early = made_up_log("newest", "<")
    job = early.job
    early.job = job[:16] + job[24:32] + job[40:56] + job[56:]  # as before the job had nanoseconds
    check(said(folder, early.write(), "# nprocs: 4 #", "# exe: a job --of two", "# run time: 4.0000", "lib_ver = 3.5.0") == 0,
          "a build of Darshan between two releases")
    many = Log(41, "<")
    many.set_job(ranks=1 << 40)
    many.add("POSIX", 4, b"".join(made_up("POSIX", 4, "<", [(7, rank)], random.Random(1)) for rank in (9, 1 << 39, 1 << 38)))
    check(said(folder, many.write(), "slowest_rank: 9 ", counters=True) == 0, "ranks of a large job")
    empty = Log(41, "<")
    empty.set_job()
    for counters in (True, False):
        check(said(folder, empty.write(), counters=counters) == 0, "an empty log is a log")
    bomb = Log(41, "<", 1)
    bomb.set_job()
    bomb.add("POSIX", 4, bytes(20 << 20))
    check(said(folder, bomb.write(), "unpacks to more than a log can have", counters=False) == 0, "a bomb")


EVIL = "\x1b[31m\x07\x7f\x85\u202e\u2028\nFORGED\t<script>".encode() + b"\xff\xfe"
MISLEADS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def hostile_names(folder):
    """Names, command, host, hints and mounts of a log command no terminal, and forge no line."""
    log = Log.read(glob.glob(DATA + "/torch/torch-npz-w2/*24808-24808*.darshan")[0])
    log.names = log.names.replace(b"ckpt.pt", b"a" * 6000 + EVIL).replace(b"train_small.py", EVIL)
    log.job = log.job[:56] + (b"h=" + EVIL + b"\nlib_ver=x").ljust(1024, b"\0") + EVIL + log.job[1080:] + b"\n" + EVIL[:8] + b"\t" + EVIL[:8]
    log.module[10] = (2, log.module[10][1].replace(b"vm" + bytes(62), EVIL[:30].ljust(64, b"\0")))
    path = os.path.join(folder, "hostile\n.darshan")
    with open(path, "wb") as f:
        f.write(log.write())
    page = os.path.join(folder, "page.html")
    for args in (["--counters"], [], ["-v"], ["--json"], ["-o", page]):
        done = subprocess.run([STOKER, "explain", *args, path], capture_output=True, timeout=60)
        check(done.returncode == 0, f"explain {args} of hostile names: {done.stderr[:300]}")
        text = (done.stdout + done.stderr).decode()
        check(not MISLEADS.search(text), f"explain {args} prints {MISLEADS.search(text)}")
        check(not re.search("^FORGED", text, re.M), f"explain {args}: a line is forged")
    with open(page) as f:
        check("FORGED\t<script>" not in f.read(), "the page holds a tag of the log")


with tempfile.TemporaryDirectory() as folder:
    compare_all(folder)
    orders_are_equal(folder)
    packing_is_nothing(folder)
    sentences(folder)
    hostile_names(folder)
sys.exit(1 if failed else 0)

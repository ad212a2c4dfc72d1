"""Many results: audit, report and compare open each file of each result a fixed number of times, and keep a few KiB of
it; a page of very many results stays small, says of all of them what a page of few says, and unpacks a result when it
is asked for. Counts, not seconds: processor time only in proportion, of the same command over four times as many.
takes 25 s
"""
# beside others
# tier: long
import base64
import gzip
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from many_results import Original, make, originals  # noqa: E402
from util import SANITIZED, STOKER, attempts, skip  # noqa: E402

if SANITIZED:
    skip("a sanitizer multiplies the memory and the time that are measured here")
FEW, MANY, KIB = 280, 1120, 1024


def measured(*args):
    """Peak memory in bytes, processor seconds, and what the command printed."""
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen([STOKER, *map(str, args)], stdout=out, stderr=subprocess.STDOUT)
        peak, done = 0, 0
        while not done:
            # that of rusage would be this interpreter's, from before the program took its place
            status = pathlib.Path(f"/proc/{child.pid}/status").read_text()
            peak = max([peak, *(int(x) * KIB for x in re.findall(r"VmHWM:\s+(\d+) kB", status))])
            time.sleep(0.005)
            done, status, used = os.wait4(child.pid, os.WNOHANG)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    assert child.returncode == 0, (args, text[-2000:])
    return peak, used.ru_utime + used.ru_stime, text


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.S)[1])


def unpacked(text):
    return json.loads(gzip.decompress(base64.b64decode(text)))


def main(tmp):
    of = [Original(o) for o in originals(tmp)]
    make(tmp / "few", FEW, of, values=FEW)
    make(tmp / "many", MANY, of, values=MANY)
    few, many, page = tmp / "few", tmp / "many", tmp / "page.html"
    # bytes that may stay of a result, and the command
    commands = {
        "audit": (20 * KIB, lambda folder: ("audit", folder)),
        "audit --json": (32 * KIB, lambda folder: ("audit", "--json", folder)),
        "compare": (20 * KIB, lambda folder: ("compare", folder, folder)),
        "report": (64 * KIB, lambda folder: ("report", folder, "-o", page, "--csv", tmp / "runs.csv")),
    }
    for name, (room, command) in commands.items():
        def once(_):
            a, s, _text = measured(*command(few))
            b, t, _text = measured(*command(many))
            return t <= 6 * s, (a, s, b, t)

        right, (a, s, b, t) = attempts(f"{name}: time grows with the results", once)
        each = (b - a) / (MANY - FEW)
        print(f"   {name}: {FEW} results {s:.2f} s, {MANY} {t:.2f} s; {each / KIB:.1f} KiB a result")
        assert right, (name, s, t)
        assert each <= room, (name, each)

    # every copy is taken for a run of its own, and is whole
    text = measured("audit", many)[2]
    assert text.startswith(f"{MANY:d} results ({MANY:d} of Stoker, 0 of DLIO)") and "digest" not in text, text[:500]
    # one twice is a copy: found by a key, however many there are
    make(tmp / "twice", 1, of, values=MANY, first=7)
    text = measured("compare", tmp / "twice", many)[2]
    assert "1 run, or copies of it, is on both sides" in text, text[:800]

    whole = data_of(page)
    assert whole["runs"] == MANY and page.stat().st_size < MANY * KIB, page.stat().st_size
    data = unpacked(whole["packed"])
    rest = [r for b in whole["blocks"] for r in unpacked(b)]
    assert len(data["runs"]) == len(rest) == MANY
    # what a page of one of them says of it
    i = 777
    one = tmp / "one.html"
    folder = data["runs"][i]["folder"]
    measured("report", folder, "-o", one)
    alone = data_of(one)["runs"][0]
    assert alone["folder"] == folder
    brief = {k: v for k, v in data["runs"][i].items() if k not in ("findings", "factors")} | rest[i]
    for key, value in brief.items():
        assert alone[key] == value, (key, alone[key], value)
    levels = [(f["level"], f["check"]) for f in alone["findings"]]
    assert [(f["level"], f["check"]) for f in data["runs"][i]["findings"]] == levels


with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main(pathlib.Path(folder))

"""stoker record: the requests of many calls are those that the program says it made, by file, offset and bytes."""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import STOKER  # noqa: E402

TOOLS = pathlib.Path(os.environ["STOKER_TOOLS"])
CALLS = TOOLS / "recorded_calls"
SOURCE = pathlib.Path(__file__).parent.parent / "rigs/recorded_calls.c"
BETWEEN = "64"  # bytes of requests that nobody counts
# the kernel counts reads whose result the program never had, and what the loader reads of a library; and whether a daemon's
# counts are its parent's depends on which of them ends first
UNEQUAL = ("recorded_calls jumped", "recorded_calls cancelled", "recorded_calls daemons")


def truth(text):
    """({file: requests}, [(read or write, file, begin, end)])"""
    told, covers = collections.defaultdict(collections.Counter), []
    for line in text.splitlines():
        kind, name, a, b = line.split()
        if kind in ("cover", "filled"):
            covers.append(("read" if kind == "cover" else "write", name, int(a), int(b)))
        else:
            told[name][kind, a, b] += 1
    return told, covers


def covered(requests, kind, begin, end):
    """Whether requests of a kind have all bytes of [begin, end)."""
    at = begin
    for a, b in sorted((int(at), int(at) + int(n)) for (k, at, n) in requests if k == kind and at != "?"):
        if a <= at:
            at = max(at, b)
    return at >= end


def main():
    cases = re.findall(r'^\t\{"(\w+)", \w+\}', SOURCE.read_text(), re.M)
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp).resolve()
        (tmp / "files").mkdir()
        for case in cases:
            (tmp / "files" / f"{case}.in").write_text("".join(f"{i:015}\n" for i in range(4096)))
        done = subprocess.run([STOKER, "record", "-o", tmp / "r", "--", CALLS, "all", tmp / "files"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done
        told, covers = truth(done.stdout)
        lines = subprocess.run([TOOLS / "job_events", tmp / "r"], capture_output=True, text=True, check=True).stdout.splitlines()
    seen, problems = collections.defaultdict(collections.Counter), []
    for line in lines:
        words = line.split(" ", 6)
        if words[0] == "event" and words[2] in ("read", "write") and "/" in words[6] and int(words[5]) >= 0 and words[4] != BETWEEN:
            seen[words[6].split("/")[-1].replace(" ", "_")][words[2], words[3], words[5]] += 1
    loose = {name for _, name, _, _ in covers}
    for name in sorted(set(told) | {n for n in seen if n.endswith((".in", ".out"))} - loose):
        if name not in loose and told[name] != seen[name]:
            problems.append(f"{name}: not recorded {dict(told[name] - seen[name])}, recorded and not made {dict(seen[name] - told[name])}")
    problems += [f"{c}: {sorted(seen[c[1]])}" for c in covers if not covered(seen[c[1]], *c[0:1], *c[2:])]
    for line in lines:
        if line.startswith("process "):
            words = line.split(" ", 9)
            if not any(name in words[9] for name in UNEQUAL) and (words[5] != words[6] or words[7] != words[8]):
                problems.append(f"not what the kernel counts: {line}")
    if "without a recorded end" in done.stderr or "missing" in done.stderr or not re.search(r"unseen +.* read, 0 B written", done.stderr):
        problems.append(done.stderr)
    print(f"{len(cases)} cases, {sum(sum(v.values()) for v in told.values())} requests")
    assert not problems, "\n".join(problems)


if __name__ == "__main__":
    main()

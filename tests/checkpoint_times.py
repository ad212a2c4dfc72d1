"""Checkpoints by time against the clock: what the trace of a run says of its steps and checkpoints."""
import json
import os
import pathlib
import re

from util import load


def steps_of(folder):
    return sorted(os.listdir(folder), key=lambda n: [int(x) for x in re.findall(r"\d+", n)])


def read(path, rank):
    """When training began; of each step its epoch, number, and the barrier's begin and end; begins of checkpoints."""
    mine = [ev for ev in json.loads(pathlib.Path(path).read_text())["traceEvents"] if ev["pid"] == rank + 1]
    ns = lambda us: round(us * 1000)  # noqa: E731
    begin = min(ns(ev["ts"]) for ev in mine if ev["name"] == "epoch")
    steps = [(ev["args"]["epoch"], ev["args"]["step"], ns(ev["ts"]), ns(ev["ts"]) + ns(ev["dur"]))
             for ev in mine if ev["name"] == "barrier"]
    saves = [ns(ev["ts"]) for ev in mine if ev["name"] == "checkpoint" and ev["ph"] == "b"]
    return begin, sorted(steps), sorted(saves)


def check_by_time(out, saved, ranks, seconds, trace="trace.json"):
    """Each checkpoint follows the first step to end that long after the last began, on all ranks; how many there
    were. Nothing is removed in such a run."""
    begin, steps, saves = read(pathlib.Path(out, trace), 0)
    after = [tuple(map(int, re.findall(r"\d+", name))) for name in steps_of(saved)]
    assert len(after) == len(saves), (after, saves)
    due, made = begin + seconds * 10**9, 0
    for epoch, step, entered, left in steps:
        if made < len(after) and after[made] == (epoch, step):
            # all had arrived when the time was looked at, and rank 0 left later than that
            assert left >= due and saves[made] >= due, (epoch, step, left, due)
            due = saves[made] + seconds * 10**9
            made += 1
        else:
            assert entered < due, (epoch, step, entered, due)
    assert made == len(after), (made, after)
    result = load(out)
    assert result["checkpoint"]["save"]["count"] == made
    assert made <= (steps[-1][3] - begin) / (seconds * 10**9), (made, steps[-1])
    each = result["checkpoint"]["save"]["each"]
    assert len(each) == made and all(c["whole"] for c in each), each
    # the other ranks' blocks end at the same steps
    keys = [load(out, f"{rank}_output.json") for rank in range(ranks)]
    blocks = [{e: [len(v) for v in k[e]["load"].values()] for e in k if e.isdigit()} for k in keys]
    assert all(b == blocks[0] for b in blocks), blocks
    return made

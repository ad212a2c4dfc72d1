"""Remedies that a run promises, applied: a sample of tests/bench/remedies.py. On stores of known law, under 1 to 4 ranks,
what is said of more and fewer workers, batches, ranks and a faster storage is compared with a second run: inside of the
stated interval, no promise broken by more than 3 points, and what could not be told can be told after a probe."""
# tier: long
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "bench"))
sys.path.insert(0, os.path.dirname(__file__))
from remedies import STORAGE, bases, can_apply, carry_out, summary, workers  # noqa: E402
from told import told  # noqa: E402

BATCH = ("reader.batch_size=1", "reader.batch_size=2")
NATIVE = "reader.access=native"
# kinds of requests that the cause names
KINDS = {"odd: npz, the first read takes 15 ms, 1 rank": {"limit.first_reads"},
         "odd: npz, closes of 15 ms, 1 rank": {"limit.closing", "limit.closes"}}


def wanted(base):
    """Each base has a few of its changes made."""
    def want(change):
        threads = base.keys["reader__read_threads"]
        if base.kind == "compute":
            return change in BATCH
        if base.kind == "odd":
            return change == NATIVE or change.startswith(f"reader.read_threads={2 * threads} ")
        if base.keys["fmt"] == "hdf5":
            return change == NATIVE
        return (change.startswith((f"reader.read_threads={2 * threads} ", "sentence: ", "change.")) or
                (change in BATCH and base.kind in ("latency", "queue", "opens")))
    return want


def planned(base):
    """The changes of `wanted`, by the base alone, whatever a run finds out: the rows of the table are always the same."""
    k = base.keys
    changes = [workers(base, 2 * k["reader__read_threads"], k["reader__read_threads"], k["reader__prefetch_size"]),
               *BATCH, *STORAGE, "change.ranks", NATIVE]
    return [c for c in changes if base.wanted(c) and (c not in STORAGE or can_apply(base, c)) and
            c != f"reader.batch_size={k['reader__batch_size']}"]


def stated(row):
    figure = "no figure" if row["said"] is None else f"{row['said']:.1f} %"
    return f"{figure} ({row['low']:.1f} to {row['high']:.1f} %)"


def said(rows):
    """Of one change: what the run says, what it says after a probe, and what applying it gives."""
    words = [f"after a probe {stated(r)}" if r["how"] == "probe" else stated(r) for r in rows]
    return f"said: {', '.join(words)}; measured: {rows[-1]['real']:.1f} %" if rows else "said: nothing"


def tell(base, rows):
    rows = [r for r in rows if r["base"] == base.name and r["how"] != "cause"]
    now = f"AU {rows[0]['base_au']:.0f} %; " if rows else ""
    for change in planned(base):
        told("remedies", f"{base.name}: {change}", now + said([r for r in rows if r["change"] == change]))
    if base.kind != "compute":
        sentences = [f"{r['change'].removeprefix('sentence: ')} {said([r])}" for r in rows if r["change"].startswith("sentence")]
        told("remedies", f"{base.name}: the workers of its sentence", now + ("; ".join(sentences) or "said: nothing"))


def main():
    rows = []
    chosen = [b for b in bases() if b.quick]
    for base in chosen:
        base.wanted = wanted(base)
    rows = carry_out(chosen, jobs=4)
    t = summary(rows)
    for base in chosen:
        tell(base, rows)
    wrong = [f"{r['base']}, {r['how']}, {r['change']}: {said([r])}; {r['text']}" for r in rows
             if r["how"] != "cause" and not r["inside"]]
    unnamed = [(r["base"], r["reasons"]) for r in rows if r["how"] == "run" and r["base"] in KINDS and
               not KINDS[r["base"]] & set(r["reasons"])]
    assert not unnamed, unnamed
    assert t["applied"] >= 20, t
    assert t["broken"] == 0, (t, wrong)
    assert t["stated"] - t["inside"] <= 0.05 * t["stated"], (t, wrong)
    assert not t["narrow"] or t["narrow_median"] <= 1, t
    assert t["probe_tells"] >= math.floor(0.9 * t["probed"]), (t, [r for r in rows if r["how"] == "probe"])
    assert t["probed"] == 0 or t["probe_right"] >= 0.95 * t["probe_tells"], (t, wrong)


if __name__ == "__main__":
    main()

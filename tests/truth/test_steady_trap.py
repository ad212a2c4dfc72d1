"""The trap of short epochs: 4 steps an epoch, 8 batches prefetched, a slow store. DLIO's AU is high
because the first, excluded step pays for everything; the verdict must say so and whole-run AU must tell
the truth."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from told import told, verdict  # noqa: E402
from util import load, stoker, tiny  # noqa: E402

with tempfile.TemporaryDirectory() as tmp:
    out = os.path.join(tmp, "out")
    stoker("run", *tiny("/trap", out, files=16, fmt="npy", storage__store="throttle+memory",
                        storage__throttle__latency=0.1, reader__batch_size=4, reader__read_threads=4,
                        reader__prefetch_size=8, train__epochs=2, train__computation_time=0.05,
                        reader__access="native"))
    result, summary = load(out), load(out, "summary.json")
    dlio = summary["metric"]["train_au_mean_percentage"]
    whole = result["training"]["whole_run_au_percent"]
    steady = [v for v in result["verdicts"] if v["check"] == "steady"]
    print(f"AU by DLIO's definition {dlio:.1f} %, whole-run AU {whole:.1f} %; {steady}")
    told("Short epochs", "4 steps an epoch, 8 batches prefetched, every request takes 100 ms: AU excludes the first step",
         verdict(result, "steady"))
    # 4 workers read the 4 batches at once: 0.4 s; 4 steps compute 0.2 s of about 0.6 s
    assert dlio > 90, dlio
    assert 25 < whole < 40, whole
    assert len(steady) == 1 and steady[0]["level"] == "fail", steady
    assert "steady" in steady[0]["text"].lower()

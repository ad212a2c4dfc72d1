"""What readers asked for and were given, epoch by epoch: each epoch and evaluation has its own, they add up to what the
run counted in all, and each pass over the same files asks for the same."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import load, stoker, tiny  # noqa: E402

EPOCHS = 3


def phases(r, part):
    return [(e["asked_bytes"], e["returned_bytes"]) for e in r[part]["epochs"]]


def whole(tmp, name, fmt, epochs=EPOCHS, ranks=2, **keys):
    out = f"{tmp}/{name}"
    base = dict(files=16, fmt=fmt, train__epochs=EPOCHS, workflow__evaluation="true", dataset__num_files_eval=4,
                dataset__record_length_bytes=20000, reader__batch_size_eval=1, evaluation__eval_time=0.001,
                train__computation_time=0.002, reader__read_threads=2)
    base.update(keys)
    stoker("run", *tiny(f"{tmp}/data-{fmt}", out, **base), "-n", ranks)
    r = load(out)
    assert r["status"] == "complete", r["reason"]
    lines = {line["key"]: line for line in r["ledger"]}
    for part in ("training", "evaluation"):
        got = phases(r, part)
        print(name, part, got)
        assert len(got) == epochs and all(a >= b > 0 for a, b in got), got
        assert [sum(v) for v in zip(*got)] == [r[part]["asked_bytes"], r[part]["returned_bytes"]], (name, part, got)
        assert len(set(got)) == (1 if epochs == EPOCHS or part == "evaluation" else epochs), got
        key = "epoch_bytes" if part == "training" else "evaluation_bytes"
        assert lines["asked"][key] == [a for a, _ in got] and lines["returned"][key] == [b for _, b in got], lines
    for line in r["ledger"]:
        assert sum(line["epoch_bytes"]) == line["bytes"], line
    return r


def own_looks(tmp):
    """However many short epochs there are, what the program reads to look at the machine is in none of them."""
    stoker("run", *tiny(f"{tmp}/data-short", f"{tmp}/short", files=4, train__epochs=200, train__computation_time=0,
                        run__sample_interval=0))
    lines = {line["key"]: line for line in load(f"{tmp}/short")["ledger"]}
    calls, returned = lines["process_calls"], lines["returned"]
    print("short epochs", calls, returned["bytes"])
    assert 0.9 * returned["bytes"] < calls["bytes"] < 1.1 * returned["bytes"], (calls, returned)
    assert calls["state"] == "agrees", calls


def main():
    with tempfile.TemporaryDirectory() as tmp:
        own_looks(tmp)
        whole(tmp, "pytorch", "npz")
        whole(tmp, "inline", "npz", ranks=1, reader__read_threads=0)
        whole(tmp, "tensorflow", "tfrecord", framework="tensorflow", reader__data_loader="tensorflow")
        whole(tmp, "dali", "npy", reader__data_loader="dali")
        whole(tmp, "native-dali", "npy", reader__data_loader="native_dali")
        # the last epoch ends early
        whole(tmp, "few", "npz", epochs=2, train__total_training_steps=6)
        # nothing is counted, and nothing is said
        stoker("run", *tiny(f"{tmp}/data-npz", f"{tmp}/none", files=16, run__measure="none"))
        r = load(f"{tmp}/none")
        assert "asked_bytes" not in r["training"]["epochs"][0], r["training"]["epochs"]
        assert [line["key"] for line in r["ledger"]] == ["wanted"], r["ledger"]


if __name__ == "__main__":
    main()

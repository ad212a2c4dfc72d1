"""The framework's own code (framework.costs) with laws large enough that everything follows from arithmetic: how much
processor time is spent and by whom, what AU is left, where the time is counted, that own work is taken off, and that a
run ends although a law lasts. Processor times are compared; of wall times, what a processor was missing is taken off."""
# tier: long
import math
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import result_facts  # noqa: E402
from util import STOKER, attempts, load, stoker, tiny  # noqa: E402

LOAD, HAND, START, STEP, COMPUTE = 0.005, 0.010, 0.040, 0.004, 0.020
FILES, BATCH = 32, 2
STEPS = FILES // BATCH


def profile(tmp, name, of="pytorch", **laws):
    path = os.path.join(tmp, name + ".yaml")
    with open(path, "w") as f:
        f.write(f"name: {name}\nframework: {of}\nlaws:\n")
        f.writelines(f"  {row}: {{{law}}}\n" for row, law in laws.items())
    return path


def run(tmp, name, costs, fmt="npz", **keys):
    out = os.path.join(tmp, name)
    keys = {"storage__store": "memory", "train__computation_time": COMPUTE, "reader__batch_size": BATCH,
            "compat__dlio": "true", **keys}
    stoker("run", *tiny("/d", out, fmt, FILES, framework__costs=costs, **keys))
    return load(out), out


def spent(result):
    return sum(r["framework_s"] for r in result["ranks"])


def near(value, expected, case):
    """Of processor time: hardly more, and less by little work of this program alone."""
    assert expected * 0.96 <= value <= expected * 1.08 + 0.01, (case, value, expected)


def sums(result, case):
    for e in result["training"]["epochs"]:
        d = e["decomposition"]
        mean, wall = d["mean_over_ranks_s"], e["wall_s"]
        assert abs(sum(mean.values()) - wall) < 0.001 * wall, (case, mean, wall)
        assert min(mean.values()) > -1e-6, (case, mean)
        waits = sum(mean[p] for p in ("start_up", "starved", "queueing", "open_metadata", "data", "decode", "preprocess",
                                      "transport", "framework", "no_processor", "unknown_wait"))
        # the loop's own code is beside the waits, as what the barrier and computation were late is
        beside = d["framework_loop_s"] + d["late_framework_s"] + d["late_compute_s"] + d["late_barrier_s"]
        assert abs(waits - beside - e["exposed_wait_s"]) < 0.001 * wall, (case, d, e["exposed_wait_s"])
        assert mean["framework"] >= d["framework_loop_s"] - 1e-9, (case, d)


def in_parts(d, least):
    """The part has what the rank could not hide; where it had no processor at the time, the border is not exact."""
    mean = d["mean_over_ranks_s"]
    assert mean["framework"] >= 0.8 * least and mean["framework"] + mean["no_processor"] >= 0.97 * least, (d, least)


def without_others(epoch):
    """The wall time, less what threads had no processor."""
    return epoch["wall_s"] - epoch["decomposition"]["mean_over_ranks_s"]["no_processor"]


def no_law(tmp):
    """A profile without a law for the format of the files."""
    for law, said in (({"step": "fixed: 0.001"}, True), ({"load_npz": "per_sample: 0.001"}, False)):
        result, _ = run(tmp, "law" if said else "laws", profile(tmp, "few", **law))
        assert any("has no law load_npz" in n for n in result["notes"]) == said, result["notes"]
        # what a complete profile also has is named
        lacks = [n for n in result["warnings"] if "has no law for" in n]
        assert len(lacks) == 1 and "collate" in lacks[0], lacks
    result, _ = run(tmp, "complete", "torch-1.13")
    assert not any("has no law" in n for n in result["warnings"] + result["notes"]), result


def inline(tmp, costs):
    """Without workers a step takes what two samples, the loop and the computation do."""
    def once(n):
        result, out = run(tmp, f"inline{n}", costs, reader__read_threads=0)
        near(spent(result), FILES * LOAD + STEPS * STEP, "inline")
        sums(result, "inline")
        epoch = result["training"]["epochs"][0]
        most = 100 * COMPUTE / (BATCH * LOAD + STEP + COMPUTE)
        assert epoch["whole_au_percent"] <= most + 0.5, epoch
        d = epoch["decomposition"]
        in_parts(d, FILES * LOAD + STEPS * STEP)
        near(d["framework_loop_s"], STEPS * STEP, "the loop")
        step = result_facts.find(result["limit"]["facts"], "limit.framework_rank")
        assert not step or step["step"] > 0, result["limit"]
        return 100 * STEPS * COMPUTE / without_others(epoch) > most - 6, (result, out)
    return attempts("inline", once)


def workers(tmp, costs):
    """Two workers hide loading behind computation; starting them, one after another, and taking batches over is not
    hidden. The second epoch starts no workers."""
    def once(n):
        result, out = run(tmp, f"workers{n}", costs, reader__read_threads=2, train__epochs=2)
        near(spent(result), 2 * (FILES * LOAD + STEPS * (HAND + STEP)) + 2 * START, "workers")
        sums(result, "workers")
        first, second = (load(out, "0_output.json")[e]["load"]["block1"] for e in ("1", "2"))
        assert first[0] >= 2 * START + BATCH * LOAD + HAND - 1e-4, first
        # a batch that comes before its turn is taken over then
        assert sum(first) >= 2 * START + STEPS * HAND and sum(second) >= STEPS * HAND, (first, second)
        most = 100 * COMPUTE / (HAND + STEP + COMPUTE)
        epochs = result["training"]["epochs"]
        assert all(e["whole_au_percent"] <= most + 0.5 for e in epochs), epochs
        waits = [e["decomposition"]["mean_over_ranks_s"]["framework"] for e in epochs]
        in_parts(epochs[0]["decomposition"], 2 * START + STEPS * (HAND + STEP))
        # the arithmetic is that of a machine with free processors
        au = [100 * STEPS * COMPUTE / without_others(e) for e in epochs]
        named = result["limit"]["cause"] in ("framework", "other_programs")
        return au[1] > most - 10 and waits[0] - waits[1] > START and named, (result, out)
    return attempts("workers", once)


def loop(tmp):
    """Behind a step's computation, at the beginning of a block and behind the last batch: in no wait for a batch, and all
    of it in the time that DLIO's AU is of, but for the first step."""
    costs = profile(tmp, "loop", step_end="fixed: 0.004", block="fixed: 0.03", loop_end="fixed: 0.05")
    result, out = run(tmp, "loop", costs, "npy", reader__read_threads=1, train__epochs=2, workflow__evaluation="true",
                      dataset__num_files_eval=4)
    phases = (FILES // BATCH, 4)
    near(spent(result), 2 * sum(0.08 + 0.004 * n for n in phases), "loop")
    sums(result, "loop")
    for n, e in zip(("1", "2"), result["training"]["epochs"]):
        near(e["decomposition"]["framework_loop_s"], 0.08 + 0.004 * STEPS, "loop")
        detail = load(out, "0_output.json")[n]
        assert detail["load"]["block1"][0] < 0.03, detail["load"]
        compute, proc = detail["compute"]["block1"], detail["proc"]["block1"]
        window = 100 * sum(compute[1:]) / detail["au"]["block1"]
        assert window >= sum(proc[1:]) + 0.08 + 0.004 * STEPS - 1e-3, (window, proc)
    assert "FAIL    figures" not in (said := stoker("audit", out).stdout), said


def evaluation(tmp):
    """An evaluation has workers of its own, and without persistent workers each epoch starts them."""
    costs = profile(tmp, "starts", start_worker="fixed: 0.03", end_worker="fixed: 0.02")
    result, _ = run(tmp, "evaluation", costs, "npy", reader__read_threads=1, train__epochs=2,
                    reader__persistent_workers="false", workflow__evaluation="true", dataset__num_files_eval=4)
    near(spent(result), 4 * 0.05, "evaluation")
    sums(result, "evaluation")
    for e in result["training"]["epochs"] + result["evaluation"]["epochs"]:
        near(e["framework_cpu_s"], 0.05, "epoch")
    # ending workers is in no wait
    for e in result["training"]["epochs"]:
        near(e["decomposition"]["framework_loop_s"], 0.02, "end")


def own_work(tmp):
    """Decoding here is a part of the law: both are what the law says. A law that is less is exceeded, and says by how
    much."""
    keys = {"fmt": "jpeg", "reader__read_threads": 1, "reader__decode": "full", "dataset__record_length_bytes": 262144}
    plain, _ = run(tmp, "plain", "none", **keys)
    own = plain["training"]["decomposition"]["workers_s"]["decode"]
    assert own > 0.01 and "framework_s" not in plain["ranks"][0], plain["ranks"]
    assert all("framework_cpu_s" not in e for e in plain["training"]["epochs"])
    assert plain["training"]["decomposition"]["mean_over_ranks_s"]["framework"] == 0
    # of each law something is left, whatever the machine takes
    each = 4 * own / FILES
    result, _ = run(tmp, "rest", profile(tmp, "rest", load_jpeg=f"per_sample: {each}"), **keys)
    # reading by the clock is no less than what this program computed in it
    busy = result["ranks"][0]["worker_busy_s"]
    total = FILES * each
    assert 0.3 * total < spent(result) < total - 0.4 * own, (spent(result), total, own)
    assert busy + spent(result) >= 0.97 * total, (busy, spent(result), total)
    assert result["ranks"][0]["framework_beyond_s"] < 0.2 * own, result["ranks"]
    result, _ = run(tmp, "beyond", profile(tmp, "less", load_jpeg=f"per_sample: {own / FILES / 50}"), **keys)
    assert result["ranks"][0]["framework_s"] < 0.01 * own, result["ranks"]
    assert result["ranks"][0]["framework_beyond_s"] > 0.2 * own, result["ranks"]


def waits(tmp):
    """Each request that a sample waits for counts, but for the longest, and none that is answered at once."""
    each = 0.008
    costs = profile(tmp, "waits", load_npz=f"after_each_wait: {each}")
    result, _ = run(tmp, "waits", costs, storage__store="throttle+memory", storage__throttle__latency=0.012,
                    reader__read_threads=1)
    # of each file's one asks for its size, which this store tells at once
    requests = sum(result["training"]["io"][k]["requests"] for k in ("metadata", "data")) - FILES
    assert requests >= 3 * FILES, requests
    least = (requests - FILES) * each * (1 - math.exp(-1))
    # the first sample comes after a wait; requests may take longer than the store says
    assert 0.96 * least < spent(result) < 1.3 * least + each, (spent(result), least, requests)
    result, _ = run(tmp, "at once", costs, reader__read_threads=1)
    assert spent(result) < 0.1 * least, (spent(result), least)


def between(tmp):
    """Where in a sample its law is spent: the trace has times of the code before, between and behind the requests."""
    before, after, per_sample = 0.010, 0.008, 0.040
    costs = profile(tmp, "between", load_npz=f"per_sample: {per_sample}, before_data: {before}, after_data: {after}")
    result, out = run(tmp, "between", costs, reader__read_threads=1, dataset__record_length_bytes=1 << 20,
                      run__trace="chrome", dataset__num_files_train=8, train__computation_time=0.001)
    near(spent(result), 8 * per_sample, "between")
    spans = [e for e in load(out, "trace.json")["traceEvents"] if e["ph"] == "X"]
    code = [(e["ts"], e["dur"]) for e in spans if e["name"] == "framework"]
    # nothing is spent before the small ones that follow it, which fill up the reader's buffer
    data = sorted((e["ts"], e["dur"]) for e in spans if e["name"] == "read" and e["args"]["asked_bytes"] >= 20000)
    each = len(data) // 8
    assert each >= 4 and len(data) == 8 * each, data

    def took(begin, end):
        return sum(d for t, d in code if begin <= t < end) / 1e6

    # all of it is as much as was spent; by the clock no part is less than its own
    for i in range(0, len(data), each):
        first, last, behind = data[i][0], data[i + each - 1], data[i + each][0] if i + each < len(data) else math.inf
        assert took(data[i - 1][0] if i else 0, first) >= 0.96 * (before + (after if i else 0)), (i, data, code)
        assert took(first, last[0]) >= 0.96 * (per_sample - before - after) * (each - 1) / each, (i, data, code)
        assert took(last[0], behind) >= 0.96 * after, (i, data, code)


def tf_data(tmp):
    """Of tf.data: an iterator for each epoch, what a map and interleave add to it, files, records, parsing, taking. What the
    pipeline does not have is not spent, nor PyTorch's laws."""
    laws = dict(load_tfrecord="per_sample: 0.003", iterator="fixed: 0.04, first: 0.02", iterator_map="fixed: 0.01",
                iterator_interleave="fixed: 0.03", iterator_end="fixed: 0.02", interleave="fixed: 0.005",
                parse="fixed: 0.006", hand_over="fixed: 0.008")
    costs = profile(tmp, "tf", "tensorflow", **laws)
    keys = {"fmt": "tfrecord", "framework": "tensorflow", "reader__data_loader": "tensorflow", "compat__dlio": "false", "dataset__num_files_train": 8,
            "dataset__num_samples_per_file": 4, "reader__batch_size": 4, "reader__read_threads": 2, "train__epochs": 2}
    calls = dict(keys, reader__interleave="calls", reader__computation_threads=2, reader__prefetch_size=2)
    one = dict(keys, reader__interleave="one", reader__computation_threads=0, reader__prefetch_size=0)
    reads = dict(keys, reader__computation_threads=1, reader__prefetch_size=1)
    epoch = 32 * 0.003 + 8 * 0.008 + 0.06
    for name, pipeline, more in (("calls", calls, 0.04 + 8 * (0.005 + 0.006)), ("one", one, 0.03 + 8 * 0.005),
                                 ("reads", reads, 0.01 + 8 * 0.006)):
        result, out = run(tmp, name, costs, **pipeline)
        near(spent(result), 2 * (epoch + more) + 0.02, name)
        sums(result, name)
        assert not any("framework.costs" in w for w in result["warnings"]), result["warnings"]
        first, second = (load(out, "0_output.json")[e]["load"]["block1"] for e in ("1", "2"))
        begins = 0.04 + (0.04 if name == "calls" else 0.03 if name == "one" else 0.01)
        assert first[0] >= begins + 0.02 and second[0] >= begins and min(first + second) >= 0.008 * 0.9, (name, first, second)
        # the end is in no wait
        assert all(e["decomposition"]["framework_loop_s"] >= 0.0199 for e in result["training"]["epochs"]), result["training"]
    assert "FAIL    figures" not in (said := stoker("audit", out).stdout), said
    torch = profile(tmp, "torch", load_tfrecord="per_sample: 0.003", hand_over="fixed: 0.008", start_worker="fixed: 0.04")
    result, _ = run(tmp, "torch's", torch, **reads)
    near(spent(result), 2 * 32 * 0.003, "PyTorch's")
    assert any("only the laws of loading" in w for w in result["warnings"]), result["warnings"]
    # DLIO's map is another one, and one batch more is taken than an epoch has
    result, _ = run(tmp, "dlio's", costs, **dict(reads, compat__dlio="true", dataset__num_files_train=32, dataset__num_samples_per_file=1))
    assert 0 <= spent(result) - 2 * (epoch + 0.01) - 0.02 < 2 * 40 * 0.003 + 0.05, spent(result)
    assert any("has no law for" in w and "step" in w and "parse" not in w for w in result["warnings"]), result["warnings"]


def ends(tmp):
    """INT ends a run in a law that lasts for a minute, of a worker and of the rank."""
    began = []
    for row in ("load_npy", "step", "start_worker"):
        law = "per_sample: 60" if row == "load_npy" else "fixed: 60"
        out = os.path.join(tmp, row)
        began.append((row, out, subprocess.Popen(
            [STOKER, "run", *tiny("/d", out, "npy", 8, storage__store="memory", compat__dlio="true",
                                  framework__costs=profile(tmp, row, **{row: law}))],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)))
    end = time.monotonic() + 60
    for row, out, p in began:
        log = os.path.join(out, "dlio.log")
        while not (os.path.exists(log) and "Starting block 1" in open(log).read()) and time.monotonic() < end:
            time.sleep(0.02)
    time.sleep(0.2)
    for row, out, p in began:
        p.send_signal(signal.SIGINT)
    at = time.monotonic()
    for row, out, p in began:
        p.wait(30)
        assert time.monotonic() - at < 10, row
        assert load(out)["status"] == "interrupted", (row, load(out)["status"])
        assert p.returncode != 0, (row, p.returncode)


def main():
    with tempfile.TemporaryDirectory() as tmp:
        costs = profile(tmp, "big", load_npz=f"per_sample: {LOAD}", hand_over=f"fixed: {HAND}",
                        start_worker=f"fixed: {START}", step=f"fixed: {STEP}")
        right, (result, one) = inline(tmp, costs)
        assert right, result["training"]["epochs"]
        right, (result, two) = workers(tmp, costs)
        assert right, (result["training"]["epochs"], result["limit"])
        loop(tmp)
        evaluation(tmp)
        own_work(tmp)
        waits(tmp)
        between(tmp)
        tf_data(tmp)
        ends(tmp)
        no_law(tmp)
        stoker("audit", one, two)


if __name__ == "__main__":
    main()

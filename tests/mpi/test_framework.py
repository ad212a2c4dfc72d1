"""The framework's own code in two processes: what each spent is in one result, as in one process of two ranks."""
import os
import tempfile

from launchers import LIBRARIES, STOKER, audited, load, mpirun, need_mpi, run, tiny

need_mpi()
STEPS, HAND, START = 6, 0.004, 0.02

with tempfile.TemporaryDirectory() as tmp:
    costs = os.path.join(tmp, "costs.yaml")
    with open(costs, "w") as f:
        f.write(f"name: two\nframework: pytorch\nlaws:\n  hand_over: {{fixed: {HAND}}}\n"
                f"  start_worker: {{fixed: {START}}}\n  load_npy: {{per_sample: 0.002}}\n")
    for name, command in (("one", [os.path.abspath(STOKER), "run"]), ("two", mpirun(LIBRARIES[0], 2))):
        out = os.path.join(tmp, name)
        run([*command, *tiny("/d", out, "npy", 4 * STEPS, storage__store="memory", reader__read_threads=1,
                             train__computation_time=0.02, framework__costs=costs), "-n", 2])
        r = load(out)
        each = STEPS * HAND + START + 2 * STEPS * 0.002
        assert len(r["ranks"]) == 2 and len(r.get("hosts", [])) <= 1, r["ranks"]
        for rank in r["ranks"]:
            assert 0.96 * each <= rank["framework_s"] <= 1.1 * each + 0.01, (name, rank, each)
        epoch = r["training"]["epochs"][0]
        assert abs(epoch["framework_cpu_s"] - sum(k["framework_s"] for k in r["ranks"])) < 1e-6, (name, epoch)
        mean = epoch["decomposition"]["mean_over_ranks_s"]
        assert abs(sum(mean.values()) - epoch["wall_s"]) < 0.001 * epoch["wall_s"], (name, mean)
        # starting and the first batches' loading are never hidden, nor is taking over
        least = START + STEPS * HAND
        assert mean["framework"] > 0.8 * least, (name, mean)
        assert mean["framework"] + mean["no_processor"] > 0.97 * least, (name, mean)
        audited(out)

"""run.probe in several processes: its readers are divided among them and read at the same time."""
# tier: long
import os
import tempfile

from launchers import ENV, LIBRARIES, attempts, load, mpirun, need_mpi, run, tiny


def once(library, tmp):
    out = os.path.join(tmp, "out")
    keys = dict(storage__store="throttle+memory", storage__throttle__open_latency=0.01,
                storage__throttle__open_concurrency=2, run__probe="true", run__probe_time=1.5)
    run([*mpirun(library, 2), *tiny(os.path.join(tmp, "data"), out, "npy", 64, **keys)], env=ENV)
    result = load(out)
    p = result["probe"]
    assert result["status"] == "complete" and p["done"] and p["run_readers"] == 2, p
    rates = {q["readers"]: q["samples_per_s"] for q in p["points"]}
    # each process has a store of its own, with two opens at once
    return all(abs(rates[k] - min(k, 4) / 0.01) <= 0.12 * min(k, 4) / 0.01 for k in (1, 2, 4, 8)), rates


def main():
    need_mpi()
    for library in LIBRARIES:
        with tempfile.TemporaryDirectory() as tmp:
            right, got = attempts(f"a probe under {library}", lambda n: once(library, tmp))
            assert right, got


if __name__ == "__main__":
    main()

"""With many processes, barriers and exchanges go over a tree of connections: the results are those of a run in which all
are connected to process 0, and a process in the middle of the tree that is lost is told of as any other."""
# beside others
# mostly waits
import os
import tempfile

from launchers import ENV, LIBRARIES, audited, load, lose_rank, mpirun, need_mpi, run, tiny

need_mpi()
PROCESSES = 14  # of one host: 0 above 1, 5, 8 and 11, and these above the others
TREE = dict(ENV, STOKER_TREE_FROM="2")


def facts(out):
    """What does not depend on time."""
    r = load(out)
    audited(out)
    assert r["status"] == "complete" and all(e["order_proved"] for e in r["training"]["epochs"]), r["reason"]
    return [(k["rank"], k["samples"], k["payload_bytes"]) for k in r["ranks"]], r["training"]["epochs_done"]


with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
    library = LIBRARIES[-1]
    run([*mpirun(library, PROCESSES), *tiny(f"{tmp}/data", f"{tmp}/star", files=56, train__epochs=2)])
    run([*mpirun(library, PROCESSES), *tiny(f"{tmp}/data", f"{tmp}/tree", files=56, train__epochs=2)], env=TREE)
    assert facts(f"{tmp}/star") == facts(f"{tmp}/tree"), (facts(f"{tmp}/star"), facts(f"{tmp}/tree"))
    done = run([*mpirun(library, 2), *tiny(f"{tmp}/data", f"{tmp}/not")], status=None, env=dict(ENV, STOKER_TREE_FROM="1"))
    assert done.returncode and "STOKER_TREE_FROM is '1'" in done.stderr, done.stderr

    os.environ.update(TREE)
    ENV.update(TREE)
    r, _, took, out = lose_rank(lambda out: [*mpirun(library, PROCESSES), *tiny(f"{tmp}/data", out, files=56, train__epochs=2000,
                                                                                  train__computation_time=0.01, reader__batch_size=1)],
                                f"{tmp}/lost", 5)
    # what the processes below the lost one measured is there
    assert r["training"]["epochs_done"] >= 1 and os.path.exists(f"{out}/6_output.json")
print(f"{PROCESSES} processes as a tree; one in its middle lost: {took:.1f} s")

"""comm.barrier: the barrier of each step over the launcher's MPI library, with both libraries. The results are those over
sockets; a process that is lost while others wait in MPI_Ibarrier ends the run with the same sentence, as soon."""
import tempfile

from launchers import LIBRARIES, audited, load, lose_rank, mpirun, need_mpi, run, sentences, stoker, tiny

need_mpi()


def facts(out, over):
    r = load(out)
    audited(out)
    assert r["status"] == "complete" and all(e["order_proved"] for e in r["training"]["epochs"]), r["reason"]
    assert over in (None, r["barrier"]["over"]), r["barrier"]
    return [(k["rank"], k["samples"], k["payload_bytes"]) for k in r["ranks"]], r["training"]["epochs_done"], r["barrier"]


def arguments(tmp, out, barrier, **keys):
    keys = {"train__epochs": 2, **keys}
    return [*tiny(f"{tmp}/data", out, files=24, reader__batch_size=1, **keys), f"comm.barrier={barrier}"]


with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
    for library in LIBRARIES:
        found = {}
        for barrier, over in (("sockets", "sockets"), ("mpi", "mpi"), ("auto", None)):
            out = f"{tmp}/{library}-{barrier}"
            done = run([*mpirun(library, 3), *arguments(tmp, out, barrier)])
            assert not sentences(done.stderr), done.stderr
            found[barrier] = facts(out, over)
        assert found["sockets"][:2] == found["mpi"][:2] == found["auto"][:2], found
        b = found["auto"][2]
        assert b["over"] == ("mpi" if b["mpi_s"] < b["sockets_s"] else "sockets"), b
        assert found["mpi"][2]["messages"] == 0 and "library" in b and "library" not in found["sockets"][2], found

        _, _, took, _ = lose_rank(lambda out, library=library: [*mpirun(library, 3), *arguments(tmp, out, "mpi", train__epochs=2000,
                                                                                                 train__computation_time=0.02)],
                                  f"{tmp}/{library}-lost", 2)
        print(f"{library}: sockets {1e6 * b['sockets_s']:.0f} us, mpi {1e6 * b['mpi_s']:.0f} us; lost: {took:.1f} s")
    # no launcher, no library: nothing to ask for in one process; a sentence in several
    stoker("run", *arguments(tmp, f"{tmp}/alone", "mpi"))
print("the barrier of steps over", ", ".join(LIBRARIES))

"""Ranks on several hosts, which are network namespaces with their own names: the result knows which rank was
where, and a dataset that one host does not see is found before anything is timed."""
# beside others
# mostly waits
# takes 13 s
import os
import pathlib
import shutil
import tempfile

from launchers import ENV, LIBRARIES, audited, contents, hosts, load, mpirun, need_hosts, need_mpi, on_hosts, run, sentences, stoker, tiny

need_mpi()
need_hosts()


def check(out, each):
    r = load(out)
    assert r["status"] == "complete", r["reason"]
    audited(out)
    assert all(e["order_proved"] for e in r["training"]["epochs"])
    assert [h["hostname"] for h in r["hosts"]] == ["node1", "node2"], r["hosts"]
    ranks = [k for h in r["hosts"] for p in h["processes"] for k in range(p["first_rank"], p["first_rank"] + p["ranks"])]
    assert ranks == list(range(2 * each)), ranks
    for h in r["hosts"]:
        for p in h["processes"]:
            # one kernel, one clock: the difference found is none, and how well that is known is said
            assert p["clock_offset_s"] == 0 and (p["process"] == 0 or 0 < p["clock_offset_error_s"] < 1), p
    summary = load(out, "summary.json")
    assert summary["num_hosts"] == 2 and len(summary["host_cpu_count"]) == len(summary["host_memory_GB"]) == 2
    for rank in range(2 * each):
        assert load(out, f"{rank}_output.json")["hostname"] == f"node{1 + rank // each}"
    return r


with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
    os.chmod(tmp, 0o755)
    data = f"{tmp}/data"
    stoker("run", *tiny(data, f"{tmp}/single", files=32, train__epochs=2), "-n", 4)
    expected = contents(data)
    with hosts(2):
        for library in LIBRARIES:
            out, mine = f"{tmp}/{library}", f"{tmp}/data-{library}"
            run([*mpirun(library, 4, *on_hosts(library, 2, 2)), *tiny(mine, out, files=32, train__epochs=2)])
            r = check(out, 2)
            assert contents(mine) == expected
            assert "All 2 hosts see the same files" in r["dataset"]["note"], r["dataset"]

            # a folder that is another one on the second host
            env = dict(ENV, STOKER_HOST_DATA=f"{tmp}/host")
            here = pathlib.Path(tmp, "host", "here")
            shutil.rmtree(here.parent, ignore_errors=True)
            here.mkdir(parents=True)
            (here.parent / "node2").mkdir()
            extra = ["-x", "STOKER_HOST_DATA"] if library == "openmpi" else []
            for present, word in ((False, "host 'node2': '"), (True, "on 'node2' it differs from the one on host 'node1'")):
                if present:
                    shutil.rmtree(here)
                    shutil.copytree(data, here)
                arguments = tiny(here, f"{tmp}/apart", files=32, workflow__generate_data=str(not present).lower())
                done = run([*mpirun(library, 2, *on_hosts(library, 2, 1), *extra), *arguments], status=None, env=env)
                said = sentences(done.stderr)
                assert done.returncode == 1 and len(said) == 1 and word in said[0], (done.returncode, done.stderr)
                assert "folder that all hosts share" in said[0], said
            # the same copy on both is one dataset
            shutil.copytree(data, here.parent / "node2", dirs_exist_ok=True)
            os.utime(next((here / "train").rglob("*.npz")))
            arguments = tiny(here, f"{tmp}/copies-{library}", files=32, workflow__generate_data="false", train__epochs=2)
            run([*mpirun(library, 2, *on_hosts(library, 2, 1), *extra), *arguments], env=env)
            assert "a copy of its own" in check(f"{tmp}/copies-{library}", 1)["dataset"]["note"]
            # content that differs on the second host alone
            for path in (here.parent / "node2" / "train").rglob("*.npz"):
                with open(path, "r+b") as f:
                    f.seek(1000)
                    f.write(bytes(1000))
            arguments = tiny(here, f"{tmp}/differs-{library}", files=32, workflow__generate_data="false",
                             reader__access="native", reader__decode="none")
            run([*mpirun(library, 2, *on_hosts(library, 2, 1), *extra), *arguments], env=env)
            r = load(f"{tmp}/differs-{library}")
            content = r["dataset"]["content"]
            assert content["files_as_generated"] == content["files_with_other_content"] == 8, content
            assert [v["level"] for v in r["verdicts"] if v["check"] == "dataset"] == ["fail"], r["verdicts"]
print("ranks on two hosts under", ", ".join(LIBRARIES))

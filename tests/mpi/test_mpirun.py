"""One run, however many processes carry it out: under Open MPI's and MPICH's mpirun with 1, 2 and 4
processes of 1 and 2 ranks, the dataset has the same bytes, every rank reads what the rank of that number
reads in a single process, every sample is read exactly once, and the files of the result are all there."""
# beside others
# takes 16 s
import os
import pathlib
import re
import tempfile

from launchers import LIBRARIES, contents, load, mpirun, need_mpi, run, sentences, stoker, tiny

need_mpi()

# sizes differ from file to file, so that a rank's bytes tell which files it read
SHAPE = dict(files=48, dataset__record_length_bytes_stdev=2000, dataset__num_subfolders_train=3, reader__batch_size=2,
             train__epochs=2, dataset__num_files_eval=16, workflow__evaluation="true", reader__batch_size_eval=1,
             evaluation__eval_time=0.001)


def facts(out):
    r = load(out)
    assert r["status"] == "complete", r["reason"]
    assert [e["order_proved"] for e in r["training"]["epochs"]] == [True, True]
    return {
        "ranks": [(k["rank"], k["samples"], k["payload_bytes"], k["requests"]) for k in r["ranks"]],
        "payload": r["training"]["payload_bytes"], "asked": r["training"]["asked_bytes"],
        "eval": [e["payload_bytes"] for e in r["evaluation"]["epochs"]],
        "opens": r["training"]["io"]["open"]["requests"], "counted": r["training"]["io"]["data"]["latency"]["count"],
        "steps": [e["steps"] for e in r["training"]["epochs"]],
    }


def check_files(out, ranks, processes):
    names = set(os.listdir(out))
    for k in range(ranks):
        assert {f"{k}_output.json", f"{k}_per_epoch_stats.json"} <= names, (k, names)
        steps = load(out, f"{k}_output.json")["1"]["load"]["block1"]
        assert len(steps) == 48 // 2 // ranks
    assert f"{ranks}_output.json" not in names
    summary = load(out, "summary.json")
    assert summary["num_accelerators"] == ranks and summary["num_hosts"] == 1
    r = load(out)
    if processes > 1:
        assert len(r["hosts"]) == 1 and len(r["hosts"][0]["processes"]) == processes
        assert [p["first_rank"] for p in r["hosts"][0]["processes"]] == [p * ranks // processes for p in range(processes)]
    else:
        assert "hosts" not in r


with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
    expected, bytes_of = {}, None
    for ranks in (1, 2, 4, 8):
        out = f"{tmp}/single{ranks}"
        stoker("run", *tiny(f"{tmp}/data", out, **SHAPE), "-n", ranks)
        expected[ranks] = facts(out)
    bytes_of = contents(f"{tmp}/data")
    assert len(bytes_of) == 64

    for library in LIBRARIES:
        for processes in (1, 2, 4):
            for each in (1, 2):
                ranks = processes * each
                name = f"{library}-{processes}x{each}"
                data, out = f"{tmp}/data-{name}", f"{tmp}/{name}"
                how = ["-n", ranks] if each == 2 and processes == 2 else ["--accelerators-per-process", each]
                done = run([*mpirun(library, processes), *tiny(data, out, **SHAPE), *how])
                assert len(re.findall(r"^\S+: \d+ accelerator", done.stdout, re.M)) == 1, f"{name}: not one report\n{done.stdout}"
                assert contents(data) == bytes_of, f"{name}: other bytes"
                assert facts(out) == expected[ranks], f"{name}: {facts(out)}\n{expected[ranks]}"
                assert load(out)["generation"]["files_written"] == 64
                check_files(out, ranks, processes)

    # what is there is left alone, and a random order is still one order
    out = f"{tmp}/again"
    run([*mpirun(LIBRARIES[0], 4), *tiny(f"{tmp}/data", out, **SHAPE), "reader.sample_shuffle=random"])
    r = load(out)
    assert r["generation"]["files_written"] == 0 and r["generation"]["files_kept"] == 64
    assert all(e["order_proved"] for e in r["training"]["epochs"])

    # a store in each process's memory: everybody has the whole dataset for itself
    out = f"{tmp}/memory"
    run([*mpirun(LIBRARIES[0], 2), *tiny("/data", out, **SHAPE), "storage.store=memory"])
    assert facts(out)["ranks"] == expected[2]["ranks"]

    # one process compares for all; what is only printed is printed once
    broken = f"{tmp}/data-{LIBRARIES[0]}-1x1"
    with open(next(p for p in pathlib.Path(broken).rglob("img_*")), "r+b") as f:
        f.seek(-1, os.SEEK_END)
        last = f.read(1)
        f.seek(-1, os.SEEK_END)
        f.write(bytes([last[0] ^ 1]))
    for library in LIBRARIES:
        command = mpirun(library, 2)[:-1]
        done = run([*command, "verify", f"{tmp}/data"])
        assert done.stdout.count("every byte as generated") == 1, done.stdout
        done = run([*command, "verify", broken], status=1)
        assert done.stdout.count("1 file differs") == 1 and len(sentences(done.stderr)) == 1, (done.stdout, done.stderr)
        assert run([*command, "show", "formats"]).stdout.count("synthetic") == 1

    # what cannot be is said once, by one process, and nobody hangs
    wrong = tiny(f"{tmp}/nothing", f"{tmp}/wrong", workflow__generate_data="false")
    for arguments, code, word in ((wrong, 1, "not enough training files"), ([*wrong, "reader.batch_size=none"], 2, "batch_size"),
                                  ([*wrong, "-n", "3"], 2, "same number of ranks"),
                                  ([*wrong, "dataset.num_files_train=1", "workflow.generate_data=true"], 2, "batch")):
        for library in LIBRARIES:
            done = run([*mpirun(library, 2), *arguments], status=None)
            said = sentences(done.stderr)
            assert done.returncode == code and len(said) == 1 and word in said[0], (done.returncode, done.stderr)

    # a launcher whose library is not the one that is loaded would make runs of one process each
    if len(LIBRARIES) == 2:
        for library, other in (LIBRARIES, LIBRARIES[::-1]):
            command = ["env", f"STOKER_MPI={other}"]
            line = mpirun(library, 2)
            done = run([*command, *line, *wrong], status=None)
            said = sentences(done.stderr)
            assert done.returncode not in (0, 124) and len(said) == 1, done.stderr
            assert "started 2 processes" in said[0] and "found 1" in said[0] and "do not match" in said[0], said
    done = run(["env", "STOKER_MPI=nosuch", *mpirun(LIBRARIES[0], 2), *wrong], status=None)
    assert len(sentences(done.stderr)) == 1 and "STOKER_MPI is 'nosuch'" in done.stderr, done.stderr
    done = run([os.environ["STOKER"], "run", *wrong], status=1,
               env=dict(os.environ, SLURM_STEP_NUM_TASKS="4", SLURM_PROCID="0"))
    assert "--mpi=pmix" in done.stderr
print("same bytes, same order, same files under", ", ".join(LIBRARIES))

"""A Slurm cluster of four hosts on this machine: srun with PMIx and with PMI-2, sbatch with mpirun inside, a
killed rank, and srun without a process management interface, on several hosts and on one."""
# beside others
# mostly waits
# takes 37 s
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

from launchers import (ENV, LIBRARIES, RIGS, SOURCE, STOKER, hosts_to_oneself, load, need, need_hosts, need_mpi, run, sentences, started, tiny,
                       wait_epoch, wait_for, worker_pid)
import recipes  # beside util.py, whose folder launchers.py adds to the path

need_mpi()
need_hosts()
need([(shutil.which(name), f"{name} is not installed") for name in ("srun", "sbatch", "slurmctld", "slurmd", "munged")])

MPI = {"openmpi": "pmix", "mpich": "pmi2"}
PROGRAM = os.path.abspath(STOKER)


def srun(mpi, nodes, tasks):
    # srun waits for ever for nodes that do not come
    return ["timeout", "-k", "5", "120", "srun", f"--mpi={mpi}", f"-N{nodes}", f"-n{tasks}", PROGRAM, "run"]


def check(out, names, ranks):
    r = load(out)
    assert r["status"] == "complete", r["reason"]
    assert [h["hostname"] for h in r["hosts"]] == names, r["hosts"]
    assert r["accelerators"] == ranks and all(e["order_proved"] for e in r["training"]["epochs"])
    return r


def howto(folder):
    """The commands of docs/howto.md for Slurm, as printed."""
    recipes.bench(folder, PROGRAM, SOURCE)
    ran = []
    for _, what, name, _, text in recipes.blocks(SOURCE / "docs" / "howto.md"):
        if what == "writes":
            (folder / name).write_text(text)
        for command in recipes.commands(text) if (what, name) == ("with", "slurm") else ():
            done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=120,
                                  env={**os.environ, **ENV})
            assert done.returncode == 0, (command, done.stdout, done.stderr)
            ran.append(command)
    assert len(ran) == 2, ran
    wait_for(lambda: (folder / "slurm.csv").read_text().count(",Y") == 2, 180,
             "\n".join(p.read_text()[-2000:] for p in folder.glob("slurm-*.out")))


def record(tmp):
    """Ranks of two hosts in one recording: srun on the outside, on the inside, and without the variables."""
    (tmp / "bytes").write_bytes(bytes(65536))
    tools = pathlib.Path(os.environ["STOKER_TOOLS"]).resolve()
    job = [tools / "recorded", "loop", tmp / "bytes", 500]
    launch, recorder = ["srun", "-N2", "-n4"], ["timeout", "-k", "5", "60", PROGRAM, "record", "-o"]
    done = run([*launch, *recorder, tmp / "r-in", "--", *job])
    assert done.stderr.count("recorded: 4 processes, 1 file") == 1 and done.stderr.count("recorded: ") == 1, done.stderr
    done = run([*recorder, tmp / "r-out", "--", *launch, *job])
    for name in ("r-in", "r-out"):
        lines = [line.split(" ") for line in run([tools / "job_events", tmp / name]).stdout.splitlines()]
        ranks = {w[1]: w[3] for w in lines if w[0] == "process" and w[3] != "-1"}
        assert sorted(ranks.values()) == ["0", "1", "2", "3"], (name, ranks)
        reads = [ranks[w[1]] for w in lines if w[:1] == ["event"] and w[2] == "read" and w[6].endswith("/bytes")]
        assert sorted(reads) == sorted(500 * list("0123")), (name, len(reads))
    done = run([*recorder, tmp / "r-none", "--", *launch, "--export=NONE", *job])
    assert "none was recorded: let 'srun' pass LD_PRELOAD" in done.stderr, done.stderr


with hosts_to_oneself(), tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
    os.chmod(tmp, 0o755)
    cluster = f"{tmp}/slurm"
    subprocess.run([RIGS / "slurm.sh", "down", cluster], capture_output=True)
    try:
        pathlib.Path(cluster, "mnt", "fs").mkdir(parents=True)
        up = subprocess.run([RIGS / "slurm.sh", "up", cluster], capture_output=True, text=True, timeout=120)
        if up.returncode:
            logs = "".join(p.read_text()[-300:] for p in pathlib.Path(cluster, "log").glob("*.out"))
            need([(False, f"Slurm does not start here: {(up.stderr + logs).strip()[-400:]!r}")])
        # the hosts share one kernel: Open MPI's shared memory between them would be taken for one host's
        ENV.update(SLURM_CONF=f"{cluster}/slurm.conf", OMPI_MCA_pml="ob1", OMPI_MCA_btl="tcp,self",
                   OMPI_MCA_btl_tcp_if_include="10.78.0.0/24")
        for library in LIBRARIES:
            out = f"{tmp}/{library}"
            done = run([*srun(MPI[library], 4, 4), *tiny(f"{tmp}/data", out, files=16, train__epochs=2),
                        "--accelerators-per-process", "2"])
            assert len(re.findall(r"^\S+: \d+ accelerator", done.stdout, re.M)) == 1
            check(out, ["node1", "node2", "node3", "node4"], 8)

            script = pathlib.Path(tmp, f"{library}.sh")
            # MPICH's own launcher would need the hosts' names to be known to a name service
            launcher = "mpirun.openmpi -np 4"
            if library == "mpich":
                launcher = "srun --mpi=pmi2 -n 4"
            line = " ".join([PROGRAM, "run", *tiny(f"{tmp}/data", f"{out}-batch", files=16)])
            script.write_text(f"#!/bin/bash\n{launcher} {line}\n")
            done = run(["timeout", "-k", "5", "120", "sbatch", "-W", "-N2", "--ntasks-per-node=2", "-o",
                        f"{tmp}/{library}.log", script], status=None)
            assert done.returncode == 0, done.stderr + pathlib.Path(tmp, f"{library}.log").read_text()
            check(f"{out}-batch", ["node1", "node2"], 4)

        # a study as a batch job, twice: the second finds nothing left to do
        pathlib.Path(tmp, "small.yaml").write_text(
            "model: {name: small}\nframework: pytorch\nworkflow: {train: True}\n"
            "dataset: {data_folder: x, format: npz, num_files_train: 16, record_length_bytes: 4096}\n"
            "reader: {data_loader: pytorch, batch_size: 2, read_threads: 1}\n"
            "train: {epochs: 2, computation_time: 0.005}\n")
        design = pathlib.Path(tmp, "design.csv")
        design.write_text(f"model,processes,run\n{tmp}/small.yaml,1,N\n{tmp}/small.yaml,2,N\n")
        modules = pathlib.Path(tmp, "bin")
        modules.mkdir()
        (modules / "module").write_text(f"#!/bin/sh\necho \"$@\" >> {tmp}/loaded\n")
        (modules / "module").chmod(0o755)
        ENV["PATH"] = f"{modules}:{ENV.get('PATH', os.environ['PATH'])}"
        run([PROGRAM, "study", "sbatch", design, "--results", f"{tmp}/results", "--scratch", f"{tmp}/scratch", "--nodes",
             "1", "--tasks", "2", "--module", "gcc/12", f"--launcher-arg=--mpi={MPI[LIBRARIES[0]]}", "-o",
             f"{tmp}/study.sh"])
        for _ in range(2):
            done = run(["timeout", "-k", "5", "150", "sbatch", "-W", "-o", f"{tmp}/study.log", f"{tmp}/study.sh"], status=None)
            assert done.returncode == 0, done.stderr + pathlib.Path(tmp, "study.log").read_text()
            assert design.read_text().count(",Y") == 2, design.read_text()
        for n in (1, 2):
            r = load(f"{tmp}/results/small.yaml/{n}/run-1")
            assert r["accelerators"] == n and r["status"] == "complete", r["reason"]
        assert pathlib.Path(tmp, "loaded").read_text() == "load gcc/12\n" * 4
        assert not os.path.exists(f"{tmp}/scratch")

        if "openmpi" in LIBRARIES:
            howto(pathlib.Path(tmp, "howto"))

        record(pathlib.Path(tmp))

        library = LIBRARIES[-1]
        out = f"{tmp}/killed"
        with started([*srun(MPI[library], 3, 3), *tiny(f"{tmp}/data", out, files=12, train__epochs=2000,
                                                      train__computation_time=0.03, reader__batch_size=1)]) as job:
            wait_epoch(out, 3)
            begin = time.monotonic()
            os.kill(worker_pid(1, out)[0], signal.SIGKILL)
            text = job.communicate(timeout=120)[0]
            took = time.monotonic() - begin
        wait_for(lambda: os.path.exists(f"{out}/result.json"), 10, f"no result\n{text}")
        said, r = sentences(text), load(out)
        assert took < 10, took
        # Slurm may have closed the output by the time it is said; the result has it in any case
        assert re.search(r"rank 1 on host 'node[1-4]' ended unexpectedly", r["reason"]), r["reason"]
        assert said in ([], [f"stoker: {r['reason']}"]), text
        assert r["status"] == "failed" and [k["rank"] for k in r["ranks"] if k.get("lost")] == [1]
        print(f"killed under srun: {took:.1f} s, {r['reason']}")

        done = run([*srun("none", 2, 2), *tiny(f"{tmp}/data", f"{tmp}/none")], status=None)
        said = sentences(done.stderr)
        assert done.returncode == 1 and len(said) == 1 and "--mpi=pmix" in said[0], done.stderr
        # on one host they meet without any, and without an MPI library
        steps = []
        for i, mpi in enumerate(("none", "none", "pmix")):
            keys = dict(workflow__generate_data="false", files=12, reader__batch_size=1)
            steps.append(subprocess.Popen([*srun(mpi, 1, 2), *map(str, tiny(f"{tmp}/data", f"{tmp}/one-host{i}", **keys))], env=dict(
                ENV, STOKER_MPI="none"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        for i, step in enumerate(steps):
            text = step.communicate(timeout=120)[0]
            assert step.returncode == 0, text
            r = load(f"{tmp}/one-host{i}")
            assert r["status"] == "complete" and r["accelerators"] == 2 and len(r["hosts"]) == 1, r["reason"]
    finally:
        subprocess.run([RIGS / "slurm.sh", "down", cluster], capture_output=True, timeout=120)
print("srun and sbatch with", ", ".join(f"{k} ({MPI[k]})" for k in LIBRARIES))

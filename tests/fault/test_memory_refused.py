"""Memory and threads that the system really refuses: limits of address space, data and processes, from the start and from
the middle of training, of a whole run and of one rank of two; and a control group that is out of memory.

A command ends with a sentence and status 1, or is whole with status 0. A run that had begun to train leaves its results,
with the reason in them.
"""
# takes 8 s
import concurrent.futures
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "mpi"))
from launchers import (ENV, LIBRARIES, SANITIZED, STOKER, audited, load, mpirun, sentences, skip, started, stoker,  # noqa: E402
                       tiny, wait_epoch, wait_for, worker_pid)
from util import left_out  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
LIMIT_S = 15
AT_START = {"run": {"AS": (9, 16, 26, 31, 34, 40, 64, 200), "DATA": (1, 4, 12, 20, 24, 27, 31, 64)},
            "audit": {"AS": (6.7, 6.9, 7, 7.1, 7.3, 7.6, 9, 20), "DATA": (0.5, 0.7, 0.9, 1.5, 2.5, 3, 4, 8)},
            "show": {"AS": (6.6, 6.7, 6.8, 6.9, 7, 7.2, 8, 20), "DATA": (0.48, 0.5, 0.52, 0.55, 0.6, 0.8, 1, 4)}}
IN_TRAINING = (-1024, -256, -64, -16, 0, 16, 256, 1024)  # KiB beside what is in use
THREADS = (1, 2, 3, 4, 5, 6, 8, 10)
LONG = dict(workflow__generate_data="false", train__epochs=12, train__computation_time=0.02)
NAMES_IT = re.compile(r"memory|cannot start thread")
counted = {}


def count(what, how):
    counted.setdefault(what, {}).setdefault(how, 0)
    counted[what][how] += 1


def limits(which, value, user=None):
    def apply():
        resource.setrlimit(which, (value, value))
        if user:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
    return apply


def judge(what, status, said, text, out=None, begun=False):
    """`said`: the program's sentences."""
    if status == 127 or (status < 0 and not text):  # before main
        count(what, "not loaded")
        return
    assert status in (0, 1), f"{what}: status {status}: {text}"
    result = load(out) if out and os.path.exists(f"{out}/result.json") else None
    assert result or not (begun or (out and status == 0)), f"{what}: status {status}, and no results: {text}"
    if status == 0:
        assert not result or result["status"] == "complete", (what, result["status"])
        count(what, "whole")
        return
    assert len(said) == 1 and NAMES_IT.search(said[0]), f"{what}: {text}"
    if result:
        assert result["status"] == "failed" and said[0] == f"stoker: {result['reason']}", (what, said, result["status"])
        audited(out)
    count(what, "ended with results" if result else "ended")


def at_start(tmp):
    arguments = {"audit": ["audit", f"{tmp}/whole"], "show": ["show", "config", "unet3d_h100", "--set"]}
    whole = {name: stoker(*argv).stdout for name, argv in arguments.items()}
    for name, kinds in AT_START.items():
        for kind, sizes in kinds.items():
            for mib in sizes:
                out = f"{tmp}/{name}-{kind}-{mib}" if name == "run" else None
                argv = arguments.get(name) or ["run", *tiny(f"{tmp}/data", out, workflow__generate_data="false")]
                done = subprocess.run([STOKER, *map(str, argv)], capture_output=True, text=True, timeout=LIMIT_S,
                                      preexec_fn=limits(getattr(resource, f"RLIMIT_{kind}"), int(mib * MIB)))
                judge(f"{name}, {kind}", done.returncode, sentences(done.stderr), done.stderr, out)
                assert done.returncode or name == "run" or done.stdout == whole[name], f"{name}, {kind} {mib}: another answer"


def in_use(pid, kind):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(rf"{dict(AS='VmSize', DATA='VmData')[kind]}:\s+(\d+)", f.read())[1]) * KIB


def in_training(tmp, kind, beside, library=None):
    """The limit is set when the third epoch has begun: of the process, or of rank 1."""
    what = f"in training, {kind}" + (f", rank 1 under {library}" if library else "")
    out = f"{tmp}/{kind}{beside}{library}"
    start = mpirun(library, 2) if library else [STOKER, "run"]
    with started([*start, *tiny(f"{tmp}/data", out, **LONG)]) as process:
        wait_epoch(out, 3)
        pid = worker_pid(1, out)[0] if library else process.pid
        limit = max(in_use(pid, kind) + beside * KIB, 0) if kind != "NPROC" else beside
        resource.prlimit(pid, getattr(resource, f"RLIMIT_{kind}"), (limit, limit))
        begun = time.monotonic()
        text = process.communicate(timeout=60)[0]
        assert time.monotonic() - begun < LIMIT_S, f"{what}: {time.monotonic() - begun:.0f} s"
    if library:  # it may end before the program
        wait_for(lambda: os.path.exists(f"{out}/result.json"), LIMIT_S, f"{what}: no results: {text}")
    judge(what, min(process.returncode, 1) if library else process.returncode, sentences(text), text, out, begun=True)


def threads(tmp):
    """As a user whom the limit binds."""
    if os.geteuid() != 0:
        left_out("limits of processes: only root can become a user that has no others")
        return
    user = 40000 + os.getpid() % 20000
    probe = subprocess.run([STOKER, "--version"], capture_output=True, preexec_fn=limits(resource.RLIMIT_NPROC, 1, user))
    if probe.returncode:
        left_out(f"limits of processes: a user of number {user} cannot run {STOKER}")
        return
    for n in THREADS:
        folder = f"{tmp}/user-{n}"
        os.mkdir(folder)
        os.chown(folder, user, user)
        argv = [STOKER, "run", *map(str, tiny(f"{tmp}/data", f"{folder}/out", workflow__generate_data="false", reader__read_threads=3))]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, cwd=folder,
                              preexec_fn=limits(resource.RLIMIT_NPROC, n, user))
        judge("threads", done.returncode, sentences(done.stderr), done.stderr, f"{folder}/out")


def one_rank(tmp, library):
    """Limits beyond which the MPI library itself comes up."""
    wrapper = f"{tmp}/limited.sh"
    with open(wrapper, "w") as f:
        f.write('#!/bin/sh\n[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] && ulimit $LIMIT\nexec "$@"\n')
    os.chmod(wrapper, 0o755)
    for limit in ("-d 22000", "-d 24000", "-d 40000"):
        out = f"{tmp}/{library}{limit.replace(' ', '')}"
        command = mpirun(library, 2)
        command[-2:-2] = [wrapper]
        begun = time.monotonic()
        done = subprocess.run([*command, *map(str, tiny(f"{tmp}/data", out, workflow__generate_data="false"))], text=True,
                              capture_output=True, env={**ENV, "LIMIT": limit})
        assert time.monotonic() - begun < LIMIT_S, f"{library} {limit}: {time.monotonic() - begun:.0f} s"
        text = done.stdout + done.stderr
        judge(f"rank 1 of 2 under {library}", min(done.returncode, 1), sentences(text), text, out)


def memory_group(limit, library):
    """A control group of version 1 or 2, or None."""
    for root, name in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max"),
                       ("/sys/fs/cgroup/unified", "memory.max")):
        group = f"{root}/stoker-refused-{os.getpid()}-{library}"
        try:
            os.mkdir(group)
        except OSError:
            continue
        try:
            with open(f"{group}/{name}", "r+") as f:
                f.write(str(limit))
            return group
        except OSError:
            os.rmdir(group)
    return None


def killed(tmp, library):
    """Two programs in the control group of rank 1 take all its memory, neither of them more than the group's limit, which
    is what rank 1 counts for: the kernel kills it first."""
    group = memory_group(64 * MIB, library)
    if not group:
        left_out("a control group that is out of memory: none can be made here")
        return
    takers = []
    out = f"{tmp}/killed-{library}"
    arguments = tiny(f"{tmp}/data", out, **{**LONG, "train__epochs": 2000})
    try:
        with started([*mpirun(library, 2), *arguments]) as process:
            wait_epoch(out, 2)
            pid = worker_pid(1, out)[0]
            for path, value in ((f"/proc/{pid}/oom_score_adj", 1000), (f"{group}/cgroup.procs", pid)):
                with open(path, "w") as f:
                    f.write(str(value))
            join = f"open('{group}/cgroup.procs', 'w').write('0')"
            takers = [subprocess.Popen([sys.executable, "-c", f"{join}; x = bytearray({44 * MIB}); input()"],
                                       stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(2)]
            text = process.communicate(timeout=30)[0]
        said = sentences(text)
        wait_for(lambda: os.path.exists(f"{out}/result.json"), LIMIT_S, f"no results: {text}")
        result = load(out)
        audited(out)
        assert process.returncode, text
        assert result["status"] == "failed" and re.match(r"rank 1 on host '.*' ended", result["reason"]), result["reason"]
        assert said in ([], [f"stoker: {result['reason']}"]), text
        assert result["training"]["epochs_done"] >= 1, result["training"]["epochs_done"]
        print(f"killed under {library}: {result['reason']}; {result['training']['epochs_done']} epochs")
    finally:
        for taker in takers:
            taker.kill()
            taker.communicate()
        for _ in range(50):
            try:
                os.rmdir(group)
                break
            except OSError:
                time.sleep(0.1)


def main():
    if SANITIZED:
        skip("a sanitizer takes the address space")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as tmp:
        os.chmod(tmp, 0o755)
        stoker("generate", *tiny(f"{tmp}/data", None))
        stoker("run", *tiny(f"{tmp}/data", f"{tmp}/whole", workflow__generate_data="false"))
        at_start(tmp)
        threads(tmp)
        if not LIBRARIES:
            left_out("one rank of several: no MPI library")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            cases = [pool.submit(in_training, tmp, "DATA", beside) for beside in IN_TRAINING]
            cases.append(pool.submit(in_training, tmp, "AS", 0))
            for library in LIBRARIES:
                cases += [pool.submit(one_rank, tmp, library), pool.submit(in_training, tmp, "DATA", -64, library),
                          pool.submit(killed, tmp, library)]
            for case in cases:
                case.result()
        for beside in range(1, 16):  # whether it allocates at all after that depends on what it has released
            if not counted["in training, DATA"].get("ended with results"):
                in_training(tmp, "DATA", -beside)
    for what, how in counted.items():
        print(what, how)
    assert counted["in training, DATA"].get("ended with results"), "memory was never refused in training"
    for what in ("run, AS", "run, DATA", "audit, DATA"):
        assert {"ended", "whole"} <= set(counted[what]), (what, counted[what])
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Processes that no MPI starts meet at the address in their launcher's variables: four hosts, each launcher that is known.
What is missing, wrong or contradicts is one sentence and status 1, never a run of one; a stranger gets no byte."""
# beside others
# mostly waits
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

from launchers import RIGS, STOKER, audited, hosts, load, need_hosts, sentences, stoker, tiny

need_hosts()
PROGRAM = os.path.abspath(STOKER)
KNOWN = ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "JOB_COMPLETION_INDEX")
CLEAN = {k: v for k, v in os.environ.items() if k not in KNOWN and not k.startswith(
    ("OMPI_", "PMI", "SLURM_", "STOKER_PROCESS", "STOKER_ADDRESS", "TORCHELASTIC_", "LWS_", "HOROVOD_"))}
FIRST = "10.78.0.1"  # node1
N = 4
LAUNCHERS = {
    "torchrun": lambda i: dict(TORCHELASTIC_RUN_ID="a7", TORCHELASTIC_USE_AGENT_STORE="True", MASTER_ADDR=FIRST, MASTER_PORT="29500",
                               RANK=i, WORLD_SIZE=N, LOCAL_WORLD_SIZE=1),
    "PyTorchJob": lambda i: dict(MASTER_ADDR=FIRST, MASTER_PORT="23456", RANK=i, WORLD_SIZE=N),
    "LeaderWorkerSet": lambda i: dict(LWS_LEADER_ADDRESS=FIRST, LWS_WORKER_INDEX=i, LWS_GROUP_SIZE=N),
    "Indexed Job": lambda i: dict(JOB_COMPLETION_INDEX=i, STOKER_PROCESSES=N, STOKER_ADDRESS=f"{FIRST}:7100"),
    "own": lambda i: dict(STOKER_PROCESS=i, STOKER_PROCESSES=N, STOKER_ADDRESS=f"{FIRST}:7200"),
}


def start(node, variables, words):
    env = dict(CLEAN, **{k: str(v) for k, v in variables.items()})
    return subprocess.Popen([RIGS / "ssh.sh", f"node{node}", shlex.join([PROGRAM, "run", *map(str, words)])], env=env,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(processes, limit_s):
    """Nobody waits for ever; how long they need, a busy machine decides."""
    begin, out = time.monotonic(), []
    for p in processes:
        try:
            stdout, stderr = p.communicate(timeout=max(1, begin + limit_s - time.monotonic()))
        finally:
            p.kill()
        out.append((p.returncode, stdout, stderr))
    return out


def one_run(tmp, name, variables, before=lambda: None):
    out = tmp / name
    words = tiny(tmp / "data", out, files=32, train__epochs=2)
    processes = [start(i + 1, variables(i), words) for i in range(N - 1, 0, -1)]
    before()
    done = ended([*processes, start(1, variables(0), words)], 240)
    assert all(status == 0 and not sentences(err) for status, _, err in done), (name, done)
    r = load(out)
    audited(out)
    assert r["status"] == "complete" and r["accelerators"] == N and all(e["order_proved"] for e in r["training"]["epochs"]), name
    assert [h["hostname"] for h in r["hosts"]] == [f"node{i + 1}" for i in range(N)], (name, r["hosts"])


def other_program(node, port):
    """Has a port of the host, as torchrun's agent has; says nothing."""
    code = f"import socket, time; s = socket.create_server(('', {port})); print('there', flush=True); time.sleep(100)"
    p = subprocess.Popen([RIGS / "ssh.sh", f"node{node}", shlex.join([sys.executable, "-c", code])], stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "there\n"
    return p


def strangers(port):
    """Connect to where process 0 will listen, and say what others would; the bytes that each got."""
    code = f"""
import socket, time
got = 0
for text in (b"", b"GET / HTTP/1.0\\r\\n\\r\\n", b"1mks\\0\\0\\0\\0" * 8, bytes(100)):
    for i in range(200):
        try:
            s = socket.create_connection(("{FIRST}", {port}), timeout=1)
            break
        except OSError:
            time.sleep(0.02)
    else:
        break
    s.sendall(text)
    s.settimeout(0.2)
    try:
        got += len(s.recv(100))
    except OSError:
        pass
print(got)
"""
    return subprocess.Popen([RIGS / "ssh.sh", "node4", shlex.join([sys.executable, "-c", code])], stdout=subprocess.PIPE, text=True)


def one_missing(tmp):
    variables = {**CLEAN, "STOKER_START_LIMIT": "3"}
    words = tiny(tmp / "data", tmp / "missing", files=32)
    for missing, words_of_it in ((2, ("missing: 2", "at 10.78.0.1")), (0, ("process 0 did not come",))):
        done = ended([start(i + 1, dict(variables, **LAUNCHERS["PyTorchJob"](i)), words) for i in range(N) if i != missing], 120)
        said = [s for _, _, err in done for s in sentences(err)]
        assert all(status == 1 for status, _, _ in done) and len(said) == N - 1, done
        assert all(all(w in s for w in words_of_it) or "gave up, and says why" in s for s in said) and words_of_it[0] in str(said), said
    assert not (tmp / "missing/result.json").exists()


def wrong(tmp):
    """Each variable in turn; nothing is started beside."""
    count = 0
    for name, variables in LAUNCHERS.items():
        good = variables(1)
        for key in good:
            if key in ("LOCAL_WORLD_SIZE", "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RUN_ID"):
                continue  # without them it is another launcher, or nothing is lost
            number = key not in ("MASTER_ADDR", "LWS_LEADER_ADDRESS", "STOKER_ADDRESS")
            for value in (None, "", *(("-1", "99999999999999999999", "x", "1.5") if number else ())):
                env = {k: str(v) for k, v in {**good, key: value}.items() if v is not None}
                done = subprocess.run([PROGRAM, "run", *map(str, tiny(tmp / "data", tmp / "wrong", files=32))],
                                      env=dict(CLEAN, STOKER_START_LIMIT="1", **env), capture_output=True, text=True, timeout=120)
                said = sentences(done.stderr)
                assert done.returncode == 1 and len(said) == 1, (name, key, value, done)
                # another row may speak: the variables that are left say that there are several processes
                assert any(k in said[0] for k in (key, *good)), (name, key, value, said)
                count += 1
    for env in (dict(RANK="4", WORLD_SIZE="4"), dict(RANK="1", WORLD_SIZE="1"), dict(HOROVOD_RANK="0", HOROVOD_SIZE="2"),
                dict(STOKER_PROCESSES="2"), dict(WORLD_SIZE="2")):
        done = subprocess.run([PROGRAM, "run", *map(str, tiny(tmp / "data", tmp / "wrong", files=32))],
                              env=dict(CLEAN, STOKER_START_LIMIT="1", **env), capture_output=True, text=True, timeout=120)
        assert done.returncode == 1 and len(sentences(done.stderr)) == 1, (env, done)
        count += 1
    assert not (tmp / "wrong").exists()
    print(f"{count} environments, each a sentence")


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        tmp = pathlib.Path(tmp)
        os.chmod(tmp, 0o755)
        stoker("generate", *tiny(tmp / "data", None, files=32))
        wrong(tmp)
        with hosts(N):
            agent = other_program(1, 29500)
            try:
                for name, variables in LAUNCHERS.items():
                    one_run(tmp, name, variables)
            finally:
                agent.kill()
            heard = []
            one_run(tmp, "beside strangers", LAUNCHERS["own"], lambda: (heard.append(strangers(7200)), time.sleep(0.5)))
            assert int(heard[0].communicate(timeout=60)[0]) == 0
            one_missing(tmp)


if __name__ == "__main__":
    main()

"""stoker run --hosts: the program starts itself over ssh, without MPI, on hosts that are network namespaces, and over a
real sshd where one is installed. A host that refuses, hangs or is lost is named in one sentence; nothing is left behind."""
# beside one
import contextlib
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from launchers import RIGS, STOKER, audited, contents, hosts, left_out, load, need_hosts, run, sentences, stoker, tiny, wait_epoch, wait_for

need_hosts()
PROGRAM = os.path.abspath(STOKER)
SSH = ["--ssh", RIGS / "ssh.sh"]
ENV = {k: v for k, v in os.environ.items() if not k.startswith("STOKER_HOSTS")}


def processes(mark):
    """Command lines of the processes whose arguments hold a text."""
    out = {}
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            words = (entry / "cmdline").read_bytes()
            if mark.encode() in words and int(entry.name) != os.getpid():
                out[int(entry.name)] = words.replace(b"\0", b" ").decode()
    return out


def hosts_run(where, arguments, *more, program=PROGRAM, ssh=SSH, **kw):
    return run([program, "run", "--hosts", where, *ssh, *more, *arguments], env=dict(ENV, **kw.pop("env", {})), **kw)


def refused(where, words, limit_s, arguments, **kw):
    begin = time.monotonic()
    done = hosts_run(where, arguments, status=None, **kw)
    took, said = time.monotonic() - begin, sentences(done.stderr)
    assert done.returncode in (1, 2) and len(said) == 1, (where, done.returncode, done.stderr)
    assert all(w in said[0] for w in words), (where, said, words)
    assert took < limit_s, (where, took, said)
    return said[0]


def check(out, names, ranks):
    r = load(out)
    audited(out)
    assert r["status"] == "complete" and all(e["order_proved"] for e in r["training"]["epochs"]), r["reason"]
    assert [h["hostname"] for h in r["hosts"]] == names and len(r["ranks"]) == ranks, r["hosts"]
    return r


def begin(out, data, where, tmp):
    arguments = tiny(data, out, files=16, train__epochs=2000, train__computation_time=0.02, reader__batch_size=1)
    begun = subprocess.Popen([PROGRAM, "run", "--hosts", where, *map(str, SSH), *arguments], env=ENV, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    wait_epoch(out, 2)
    return begun


def bad_input(tmp, arguments):
    for where, words in (("", ["--hosts needs a value"]), ("node1,,node2", ["'' is not the name"]),
                         ("-oProxyCommand=x", ["'-oProxyCommand=x' is not the name"]), ("a;b", ["'a;b' is not"]),
                         ("node1:0", ["number of processes"]), ("node1:x", ["number of processes"]),
                         ("node1:60000,node2:60000", ["are too many"]), ("x" * 300, ["is too long"])):
        refused(where, words, 5, arguments)
    # more hosts than descriptors: refused at once where the hard limit is too low, and raised where only the soft one is
    many = ",".join(f"refuses{i}" for i in range(40))
    soft = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 4096))}
    hard = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))}
    refused(many, ["40 hosts need 152 descriptors", "may have 100", "ulimit -Hn"], 5, arguments, **hard)
    refused(many, ["host 'refuses", "could not be started there with false"], 10, arguments, ssh=["--ssh", "false"], **soft)
    done = run([PROGRAM, "run", "--copy-binary", *arguments], status=2)
    assert "are for --hosts" in done.stderr
    refused("node1", ["--hosts starts the processes itself", "srun"], 5, arguments,
            env={"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"})
    script = pathlib.Path(tmp, "an ssh")
    script.write_text("#!/bin/sh\ncase $1 in refuses) echo 'connect to host: Connection refused' >&2; exit 255;;\n"
                      "hangs) exec sleep 100;; other) exit 0;; motd) echo welcome; shift; exec sh -c \"$*\";; esac\n"
                      f"exec {RIGS / 'ssh.sh'} \"$@\"\n")
    script.chmod(0o755)
    ssh = ["--ssh", script]
    print(refused("node1,refuses", ["host 'refuses'", "Connection refused", "exit status 255"], 5, arguments, ssh=ssh))
    print(refused("node1,hangs", ["host 'hangs' has not answered within 2 s"], 8, arguments, ssh=ssh,
                  env={"STOKER_START_LIMIT": "2"}))
    refused("other", ["host 'other'", "it said nothing", "exit status 0"], 5, arguments, ssh=ssh)
    refused("node1", ["host 'node1'", "no-such-ssh: No such file"], 5, arguments, ssh=["--ssh", "no-such-ssh"])
    # what a shell prints before is no part of the connection; the agent is asked for one process
    run([PROGRAM, "run", "--hosts", "motd", *ssh, *arguments], env=ENV)
    # what process 0 finds wrong is said once, by it
    refused("node1,node2", ["reader.no_such_key"], 10, [*arguments, "reader.no_such_key=1", "--strict"])


def quoting(tmp, data):
    """The path of the program, its arguments and the folder reach the other hosts as they are."""
    folder = pathlib.Path(tmp, "it's $HOME; \"a\" `b`")
    folder.mkdir()
    shutil.copy(PROGRAM, folder / "stoker")
    out = f"{folder}/out $(c)"
    hosts_run("node1,node2", tiny(data, out, files=16), program=folder / "stoker", cwd=folder)
    check(out, ["node1", "node2"], 2)
    hosts_run("node1,node2", tiny(data, "relative", files=16), "--copy-binary", program=folder / "stoker", cwd=folder,
              env={"TMPDIR": tmp})
    check(folder / "relative", ["node1", "node2"], 2)
    assert not list(pathlib.Path(tmp).glob("stoker.*")), "a copy was left behind"


def ends(tmp, data, name, how, reason, lost, names):
    out = f"{tmp}/{name}"
    begun = begin(out, data, "node1,node2:2", tmp)
    # nothing but the program and what it is told to be is to be seen
    agents = {p: words for p, words in processes("--hosts-agent").items() if f"{PROGRAM}" in words}
    assert agents and not any("secret" in words or "data_folder" in words for words in agents.values()), agents
    at = time.monotonic()
    how(begun)
    stdout, stderr = begun.communicate(timeout=40)
    wait_for(lambda: os.path.exists(f"{out}/result.json"), 12, f"{name}: no result\n{stderr}")
    took = time.monotonic() - at
    r = load(out)
    assert reason in r["reason"] and took < 12, (name, r["reason"], took)
    assert [k["rank"] for k in r["ranks"] if k.get("lost")] == lost, (name, r["ranks"])
    said = sentences(stderr)
    assert begun.returncode < 0 or (begun.returncode and said == [f"stoker: {r['reason']}"]), (name, begun.returncode, said)
    wait_for(lambda: not processes(out), 12, f"{name}: processes are left: {processes(out)}")
    audited(out)  # the other files come behind result.json
    print(f"{name}: {took:.1f} s, {r['reason']}")


def below(pid):
    children = [int(c) for c in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    return [p for c in children for p in below(c)] + children


def kill_host(begun):
    """All of the program that runs on node2, at once."""
    all_of_it = []
    for pid in processes("--hosts-agent"):
        name = subprocess.run(["nsenter", f"--uts=/proc/{pid}/ns/uts", "hostname"], capture_output=True, text=True).stdout
        all_of_it += [*below(pid), pid] if name.strip() == "node2" else []
    for sig in (signal.SIGSTOP, signal.SIGKILL):
        for pid in all_of_it:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)


def begin_search(tmp, out, ssh):
    """stoker capacity with its accelerators on two hosts: one, and two with one on each."""
    return subprocess.Popen([PROGRAM, "capacity", "default", "-q", "--hosts", "127.0.0.1,localhost", *ssh, "--max", "2", "--time", "1",
                             "train.computation_time=0.05", "reader.batch_size=1", "storage.store=throttle+memory", "-o", out],
                            env=ENV, cwd=tmp, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def end_search(begun, out):
    stdout, stderr = begun.communicate(timeout=100)
    assert begun.returncode == 0, (stdout, stderr)
    for ranks in (1, 2):
        r = load(f"{out}/{ranks}/1")
        assert len(r["ranks"]) == ranks, r["ranks"]
        assert ranks == 1 or [p["ranks"] for h in r["hosts"] for p in h["processes"]] == [1, 1], r["hosts"]
    assert load(out, "capacity.json")["complete"], stdout


def real_sshd(tmp, data):
    sshd = shutil.which("sshd") or shutil.which("/usr/sbin/sshd")
    if not sshd or not shutil.which("ssh"):
        return left_out("a real sshd: openssh-server and openssh-client are not installed")
    keys = pathlib.Path(tmp, "keys")
    keys.mkdir(mode=0o700)
    for name in ("host", "user"):
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", keys / name])
    shutil.copy(keys / "user.pub", keys / "authorized")
    port = 20000 + os.getpid() % 10000
    (keys / "config").write_text(f"Port {port}\nListenAddress 127.0.0.1\nHostKey {keys}/host\nPidFile {keys}/pid\n"
                                 f"AuthorizedKeysFile {keys}/authorized\nStrictModes no\nPermitRootLogin yes\nUsePAM no\n")
    os.makedirs("/run/sshd", exist_ok=True)
    server = subprocess.Popen([sshd, "-D", "-f", keys / "config"], stderr=subprocess.PIPE, text=True)
    try:
        options = ["-F", "none", "-p", port, "-i", keys / "user", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
                   "-o", f"UserKnownHostsFile={keys}/known", "-o", "LogLevel=ERROR"]
        words = [w for o in options for w in ("--ssh-arg", o)]
        begun = time.monotonic()
        while subprocess.run(["ssh", *map(str, options), "127.0.0.1", "true"], capture_output=True).returncode:
            if time.monotonic() - begun > 5 or server.poll() is not None:
                return left_out("a real sshd: it does not let this user in")
        search = begin_search(tmp, f"{tmp}/searched", ["--ssh", "ssh", *map(str, words)])
        out = f"{tmp}/sshd"
        hosts_run("127.0.0.1:2,localhost", tiny(data, out, files=16), "-n", 6, "--copy-binary", ssh=["--ssh", "ssh", *words])
        r = load(out)
        assert r["status"] == "complete" and len(r["ranks"]) == 6
        audited(out)
        print("over a real sshd")
        end_search(search, f"{tmp}/searched")
    finally:
        server.terminate()
        server.communicate()


def cut(tmp, data):
    """Halves of a network that take each other for dead: one has the folder, the other one says where its results are."""
    for name, first in ("with process 0", "node1"), ("without it", "node2"):
        out = f"{tmp}/cut {name}"
        begun = subprocess.Popen([PROGRAM, "run", "--hosts", "node1,node2:2", *map(str, SSH), "comm.silence=3",
                                  *tiny(data, out, files=16, train__epochs=2000, train__computation_time=0.02, reader__batch_size=1)],
                                 env=ENV, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_epoch(out, 3)
        if first == "node2":  # as where locks do not reach other hosts
            os.unlink(f"{out}/.stoker_run.lock")
            pathlib.Path(out, ".stoker-taken-over").write_text("1\n")
        run(["ip", "link", "set", "stkv2", "down"])
        said = sentences(begun.communicate(timeout=60)[1])
        run(["ip", "link", "set", "stkv2", "up"])
        assert begun.returncode == 1 and all("has not answered for 3 s" in line for line in said), said
        other = f"{out}.{'node2' if first == 'node1' else 'node1'}"
        assert len(said) == (2 if first == "node1" else 1) and sum(f"are in '{other}'" in line for line in said) == 1, said
        r = load(other)
        assert r["status"] == "failed" and f"are in '{other}'" in r["reason"] and r["training"]["epochs_done"] >= 2, r["reason"]
        lost = [k["rank"] for k in r["ranks"] if k.get("lost")]
        assert lost == ([0, 2] if first == "node1" else [1, 2]) or lost == [0, 1], lost
        if first == "node1":
            assert [k["rank"] for k in load(out)["ranks"] if k.get("lost")] == [1, 2]
            audited(out)
        audited(other)
        assert not list(pathlib.Path(tmp).glob("cut*/.stoker_run.lock")) and len(list(pathlib.Path(tmp).glob(f"cut {name}*"))) == 2
        print(f"cut off, {name}: {said}")


with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
    os.chmod(tmp, 0o755)
    data = f"{tmp}/data"
    stoker("run", *tiny(f"{tmp}/expected", f"{tmp}/single", files=16), "-n", 8)
    with hosts(2):
        hosts_run("node1:2,node2:2", tiny(data, f"{tmp}/out", files=16), "-n", 8)
        r = check(f"{tmp}/out", ["node1", "node2"], 8)
        assert contents(data) == contents(f"{tmp}/expected")
        assert [p["ranks"] for h in r["hosts"] for p in h["processes"]] == [2] * 4
        bad_input(tmp, tiny(data, f"{tmp}/bad", files=16))
        quoting(tmp, data)
        ends(tmp, data, "interrupted", lambda p: p.send_signal(signal.SIGINT), "stopped by a signal", [], [])
        ends(tmp, data, "command killed", lambda p: p.kill(), "", [], [])
        ends(tmp, data, "host lost", kill_host, "on host 'node2' ended unexpectedly", [1, 2], [])
        cut(tmp, data)
    real_sshd(tmp, data)

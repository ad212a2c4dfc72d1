"""What the tests of several processes share: launching, looking at processes, and the rigs."""
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, SOURCE, STOKER, attempts, left_out, load, skip, stoker, tiny  # noqa: E402,F401

RIGS = pathlib.Path(SOURCE, "tests", "rigs")
ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
LIBRARIES = [name for name in ("openmpi", "mpich") if shutil.which(f"mpirun.{name}")]


def need(reasons):
    """Skips with the first reason whose condition does not hold."""
    for condition, why in reasons:
        if not condition:
            skip(why)


def need_mpi():
    need([(not SANITIZED, "an MPI library is not built with the sanitizer"),
          (LIBRARIES, "neither Open MPI's nor MPICH's mpirun is installed")])


def mpirun(library, processes, *options):
    """The start of a command line; a run that hangs is ended from outside."""
    slots = ["--oversubscribe"] if library == "openmpi" else []
    return ["timeout", "-k", "5", "120", f"mpirun.{library}", *slots, "-np", str(processes), *options,
            os.path.abspath(STOKER), "run"]


def run(command, status=0, timeout=180, env=None, **kw):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=timeout, env=env or ENV, **kw)
    assert status is None or done.returncode == status, (
        f"{command}: status {done.returncode}\nstdout: {done.stdout[-2000:]}\nstderr: {done.stderr[-2000:]}")
    return done


def sentences(text):
    """What the program itself said in a failed run; launchers add their own."""
    return [line for line in text.splitlines() if line.startswith("stoker: ")]


def audited(out):
    """Nothing in a folder that nobody touched contradicts anything else there."""
    found = json.loads(stoker("audit", "--json", out).stdout)["results"][0]
    doubts = [f for f in found["findings"] if f["check"] in ("digest", "figures", "identity", "verdict")]
    assert not doubts, (out, doubts)


def contents(folder):
    """A digest of every file of a dataset but its manifest, which has the time in it."""
    out = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.is_file() and path.name != "stoker_manifest.json":
            out[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return out


def at_work(mark):
    """Whether a process has this in its command line."""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes():
                return True
        except OSError:
            pass
    return False


def worker_pid(rank, mark):
    """The process that does the work of a rank: the child of the one that the launcher started."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
            if mark.encode() not in (entry / "cmdline").read_bytes() or (entry / "comm").read_text() != "stoker\n":
                continue
            parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[1]
            named = pathlib.Path("/proc", parent, "comm").read_text() == "stoker\n"
        except (OSError, IndexError, ValueError):
            continue
        if named and any(v in environment for v in (f"OMPI_COMM_WORLD_RANK={rank}".encode(),
                                                    f"PMI_RANK={rank}".encode())):
            return int(entry.name), int(parent)
    raise AssertionError(f"no process of rank {rank} of '{mark}'")


def wait_for(what, seconds, why):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, why
        time.sleep(0.05)


def wait_epoch(out, epoch, seconds=60):
    log = pathlib.Path(out, "dlio.log")
    wait_for(lambda: log.exists() and f"Starting epoch {epoch}:" in log.read_text(), seconds,
             f"epoch {epoch} did not begin in {seconds} s")


@contextlib.contextmanager
def started(command):
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env=ENV, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()


def lose_rank(command, out, rank, tries=3):
    """Kills the process of a rank while command(out) trains; returns (result, sentence, seconds, out). A launcher may end
    the others before it has passed on what was said: it is said in one of some tries, and the result is right in all."""
    for n in range(tries):
        out_n = f"{out}{n}"
        with started(command(out_n)) as launcher:
            wait_epoch(out_n, 3)
            os.kill(worker_pid(rank, out_n)[0], signal.SIGKILL)
            begin = time.monotonic()
            text = launcher.communicate(timeout=60)[0]
            took = time.monotonic() - begin
        r = load(out_n)
        audited(out_n)
        assert f"rank {rank} on host '" in r["reason"] and "ended unexpectedly" in r["reason"] and took < 10, (r["reason"], took)
        assert [k["rank"] for k in r["ranks"] if k.get("lost")] == [rank] and launcher.returncode, (r["ranks"], launcher.returncode)
        said = sentences(text)
        assert said in ([], [f"stoker: {r['reason']}"]), text
        if said:
            return r, said[0], took, out_n
        print(f"attempts: {os.path.basename(out)}: the launcher passed on nothing {n + 1} times", flush=True)
    raise AssertionError(f"{out}: never was it said: {text}")


def need_hosts():
    need([(os.geteuid() == 0, "making hosts of network namespaces needs root"),
          (shutil.which("ip") and shutil.which("nsenter") and shutil.which("unshare"),
           "ip, nsenter and unshare are not all installed")])
    probe = subprocess.run(["unshare", "--net", "--uts", "--mount", "true"], capture_output=True)
    need([(probe.returncode == 0, "this machine does not allow network namespaces")])


@contextlib.contextmanager
def hosts_to_oneself():
    """The names and addresses of the hosts are those of this machine: one test at a time has them."""
    with open("/run/lock/stoker-hosts" if os.path.isdir("/run/lock") else "/tmp/stoker-hosts", "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def hosts(n):
    """Hosts node1..nodeN, each a network namespace; see tests/rigs/hosts.sh."""
    need_hosts()
    script = str(RIGS / "hosts.sh")
    with hosts_to_oneself():
        subprocess.run([script, "down", str(n)], check=True, capture_output=True)
        up = subprocess.run([script, "up", str(n)], capture_output=True, text=True)
        try:
            if up.returncode:
                skip(f"hosts cannot be made here: {up.stderr.strip().splitlines()[-1:]}")
            yield
        finally:
            subprocess.run([script, "down", str(n)], check=True, capture_output=True)


def on_hosts(library, n, each):
    """Options that spread processes over the hosts of the rig."""
    if library == "openmpi":
        return ["--mca", "plm_rsh_agent", RIGS / "ssh.sh", "--mca", "btl_tcp_if_include", "10.78.0.0/24",
                "--mca", "oob_tcp_if_include", "10.78.0.0/24", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
                "--host", ",".join(f"node{i + 1}:{each}" for i in range(n))]
    return ["-launcher", "ssh", "-launcher-exec", RIGS / "ssh.sh", "-iface", "stkbr0",
            "-hosts", ",".join(f"node{i + 1}:{each}" for i in range(n))]

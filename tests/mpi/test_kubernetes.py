"""The manifests of examples/kubernetes start what docs/kubernetes.md says: processes in networks of their own, with exactly
the variables, arguments and names of the manifest, form one run; so do pods reached by pod-ssh.sh, and an MPIJob's mpirun."""
# beside others
# mostly waits
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

from launchers import RIGS, SOURCE, STOKER, audited, hosts, left_out, load, need, need_hosts, on_hosts, sentences

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import recipes  # noqa: E402

try:
    import yaml
except ImportError:
    yaml = None
need_hosts()
need([(yaml, "python3-yaml is not installed")])
PROGRAM = os.path.abspath(STOKER)
EXAMPLES = SOURCE / "examples/kubernetes"
# a pod has none of them but what its manifest says
BARE = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")}
SHRUNK = ["dataset.num_files_train=32", "dataset.record_length_bytes=4096", "dataset.record_length_bytes_stdev=0",
          "dataset.record_length_bytes_resize=4096", "reader.batch_size=2", "reader.read_threads=1", "train.epochs=2", "train.computation_time=0.001",
          "storage.page_cache=keep"]


def documents(name):
    return [d for d in yaml.safe_load_all((EXAMPLES / name).read_text()) if d]


def of_kind(docs, kind):
    found = [d for d in docs if d["kind"] == kind]
    assert len(found) == 1, (kind, docs)
    return found[0]


def consistent():
    """What one manifest says of another."""
    claim = of_kind(documents("claim.yaml"), "PersistentVolumeClaim")
    docs = documents("indexed-job.yaml")
    service, job = of_kind(docs, "Service"), of_kind(docs, "Job")
    pod = job["spec"]["template"]["spec"]
    env = {v["name"]: v["value"] for v in pod["containers"][0]["env"]}
    name, n = job["metadata"]["name"], job["spec"]["completions"]
    assert job["spec"]["completionMode"] == "Indexed" and job["spec"]["parallelism"] == n == int(env["STOKER_PROCESSES"])
    # Kubernetes names the pods' hosts JOB-INDEX, below the subdomain, which is the Service that selects the pods of the Job
    assert env["STOKER_ADDRESS"] == f"{name}-0.{pod['subdomain']}" and service["metadata"]["name"] == pod["subdomain"]
    assert service["spec"]["clusterIP"] == "None" and service["spec"]["selector"] == {"job-name": name}
    assert service["spec"]["publishNotReadyAddresses"] is True
    mpi = of_kind(documents("mpijob.yaml"), "MPIJob")["spec"]["mpiReplicaSpecs"]
    waiting = of_kind(documents("pods.yaml"), "StatefulSet")
    for spec in (pod, mpi["Worker"]["template"]["spec"], waiting["spec"]["template"]["spec"]):
        assert spec["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
        limits = spec["containers"][0]["resources"]
        assert limits["limits"] == limits["requests"] and spec["containers"][0]["volumeMounts"][0]["mountPath"] == "/data"
    words = mpi["Launcher"]["template"]["spec"]["containers"][0]
    assert words["command"] == ["mpirun"] and int(words["args"][1]) == mpi["Worker"]["replicas"] and words["args"][2] == "stoker"
    # the same run in all of them
    assert [w.replace("-mpi", "") for w in words["args"][3:]] == pod["containers"][0]["args"]
    return n, env, pod["containers"][0]["args"], words["args"], waiting


def here(words, tmp):
    return [w.replace("/data", str(tmp / "data")) for w in words] + SHRUNK


def pods(tmp, n, env, args, late=False, without=(), dropped=None):
    """One process a host, as Kubernetes starts it; the names of pods are known to all once /etc/hosts has them."""
    names = tmp / "names"
    known = "127.0.0.1 localhost\n" + "".join(f"10.78.0.{i + 1} {env['STOKER_ADDRESS'].replace('-0.', f'-{i}.')}\n" for i in range(n))
    names.write_text("127.0.0.1 localhost\n" if late else known)
    begun = []
    for i in range(n):
        if i in without:
            continue
        variables = dict(BARE, JOB_COMPLETION_INDEX=str(i), KUBERNETES_SERVICE_HOST="10.96.0.1", KUBERNETES_SERVICE_PORT="443", **env)
        variables.pop(dropped, None)
        command = f"mount --bind {shlex.quote(str(names))} /etc/hosts && exec {shlex.join([PROGRAM, *args])}"
        begun.append(subprocess.Popen([RIGS / "ssh.sh", f"node{i + 1}", command], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    if late:
        time.sleep(1.5)
        names.write_text(known)
    out = []
    for p in begun:
        try:
            stdout, stderr = p.communicate(timeout=120)
        finally:
            p.kill()
        out.append((p.returncode, stdout, stderr))
    return out


def one_run(done, out, n):
    assert all(status == 0 and not sentences(err) for status, _, err in done), done
    r = load(out)
    audited(out)
    assert r["status"] == "complete" and r["accelerators"] == 4 and all(e["order_proved"] for e in r["training"]["epochs"]), r["reason"]
    assert [h["hostname"] for h in r["hosts"]] == [f"node{i + 1}" for i in range(n)], r["hosts"]
    shutil.rmtree(out)


def indexed_job(tmp, n, env, args):
    words = here(args, tmp)
    out = pathlib.Path(words[words.index("-o") + 1])
    one_run(pods(tmp, n, env, words), out, n)
    one_run(pods(tmp, n, env, words, late=True), out, n)
    # a pod that never came is named; a completion index without the rest of the manifest's variables is no run of one
    done = pods(tmp, n, dict(env, STOKER_START_LIMIT="3"), words, without=(2,))
    said = [s for _, _, err in done for s in sentences(err)]
    assert all(status == 1 for status, _, _ in done) and "missing: 2" in str(said), done
    for name in ("STOKER_PROCESSES", "STOKER_ADDRESS"):
        done = pods(tmp, 1, dict(env, STOKER_START_LIMIT="3"), words, dropped=name)
        assert done[0][0] == 1 and len(sentences(done[0][2])) == 1 and name in done[0][2], (name, done)
    assert not out.exists()


KUBECTL = """#!/usr/bin/python3
import json, os, sys
words = sys.argv[1:]
with open({told!r}, "a") as f:
    f.write(json.dumps(words) + "\\n")
assert words[0] == "exec" and words[1] == "--stdin" and words[-5:-4] != ["--"], words
pod, dashes, sh, c, command = words[-5:]
assert (dashes, sh, c) == ("--", "sh", "-c"), words
os.execv({ssh!r}, [{ssh!r}, "node%d" % (int(pod.rsplit("-", 1)[1]) + 1), command])
"""


def by_exec(tmp, waiting):
    """pod-ssh.sh with a kubectl that runs the command on a host of the rig."""
    bin_, told = tmp / "bin", tmp / "told"
    bin_.mkdir()
    (bin_ / "kubectl").write_text(KUBECTL.format(told=str(told), ssh=str(RIGS / "ssh.sh")))
    (bin_ / "kubectl").chmod(0o755)
    env = dict(BARE, PATH=f"{bin_}:{os.environ['PATH']}")
    wrapper = EXAMPLES / "pod-ssh.sh"
    text = [t for t in recipes.blocks(SOURCE / "docs/kubernetes.md") if "--hosts" in t[4]]
    assert len(text) == 1
    line = next(c for c in recipes.commands(text[0][4]) if c.startswith("stoker run"))
    words = shlex.split(line)
    names = words[words.index("--hosts") + 1].split(",")
    assert names == [f"{waiting['metadata']['name']}-{i}" for i in range(waiting["spec"]["replicas"])]
    words = [PROGRAM, *here(words[1:], tmp)]
    out = pathlib.Path(words[words.index("-o") + 1])
    done = subprocess.run(words, cwd=EXAMPLES, env=env, capture_output=True, text=True, timeout=180)
    one_run([(done.returncode, done.stdout, done.stderr)], out, len(names))
    asked = [json.loads(w) for w in told.read_text().splitlines()]
    assert sorted(w[3] for w in asked) == names and all(w[2] == "--namespace=default" for w in asked), asked
    # whatever words there are, they arrive as they are, and no other command runs
    told.write_text("")
    subprocess.run([wrapper, "-n", "a b", "--context=$(touch x)", "pod-3", "echo 'x;y' \"$HOME\""], cwd=tmp, env=env, capture_output=True, timeout=60)
    assert json.loads(told.read_text()) == ["exec", "--stdin", "-n", "a b", "--context=$(touch x)", "pod-3", "--", "sh", "-c", "echo 'x;y' \"$HOME\""]
    assert not (tmp / "x").exists()
    for words in ([], ["pod"], ["-n", "x", "--context=y", "true"], ["", "true"]):
        done = subprocess.run([wrapper, *words], env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "pod-ssh.sh" in done.stderr and not done.stdout, (words, done)
    # a pod that is not there
    (bin_ / "kubectl").write_text("#!/bin/sh\necho 'Error from server (NotFound): pods \"stoker-pods-0\" not found' >&2\nexit 1\n")
    done = subprocess.run([PROGRAM, "run", "--hosts", "stoker-pods-0", "--ssh", wrapper, *here(["unet3d_h100", "-n", "1"], tmp)], env=env, capture_output=True, text=True, timeout=60)
    said = sentences(done.stderr)
    assert done.returncode == 1 and len(said) == 1 and "stoker-pods-0" in said[0] and "NotFound" in said[0], done


def mpi_job(tmp, args):
    if not shutil.which("mpirun.mpich"):
        left_out("mpich is not installed")
        return
    # what the operator sets beside the manifest: the workers' names, and ssh
    words = here(args, tmp)
    words[words.index("stoker")] = PROGRAM
    done = subprocess.run(["timeout", "-k", "5", "120", "mpirun.mpich", *map(str, on_hosts("mpich", 4, 1)), *words], env=BARE, capture_output=True, text=True)
    one_run([(done.returncode, done.stdout, done.stderr)], pathlib.Path(words[words.index("-o") + 1]), 4)


def the_page(tmp):
    """Files that the page names are there, and its commands that need no cluster run."""
    shutil.copytree(EXAMPLES, tmp / "page/examples/kubernetes")
    for _, what, name, kind, text in recipes.blocks(SOURCE / "docs/kubernetes.md"):
        if kind == "sh":
            for file in re.findall(r"[\w./-]+\.(?:yaml|sh)\b", text):
                assert what is None or (EXAMPLES / file).exists(), file
        if kind == "sh" and what is None:
            subprocess.run(["bash", "-ec", text], cwd=tmp / "page", check=True, timeout=60)
    claim, docs = ([d for d in yaml.safe_load_all((tmp / "page/examples/kubernetes" / f).read_text())] for f in ("claim-nfs.yaml", "indexed-job-nfs.yaml"))
    assert claim[0]["metadata"]["name"] == "stoker-data-nfs" and claim[0]["spec"]["storageClassName"] == "nfs"
    assert docs[1]["spec"]["template"]["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == "stoker-data-nfs"


def main():
    n, env, args, mpi, waiting = consistent()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        tmp = pathlib.Path(tmp)
        os.chmod(tmp, 0o755)
        the_page(tmp)
        with hosts(n):
            indexed_job(tmp, n, env, args)
            by_exec(tmp, waiting)
            mpi_job(tmp, mpi)
    print("an Indexed Job, with its names early and late, without a pod and without each variable; pods by kubectl; an MPIJob")


main()

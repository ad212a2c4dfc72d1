"""The manifests of examples/kubernetes are what Kubernetes' own schemas take (npm: kubernetes-models), without a field that
these do not know; a manifest with a misspelt or wrong field is refused."""
import copy
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SOURCE, skip  # noqa: E402

try:
    import yaml
except ImportError:
    skip("python3-yaml is not installed")
if not shutil.which("node") or not shutil.which("npm"):
    skip("node and npm are not installed")

MODELS = "kubernetes-models@4.5.1"
# What the schemas check is also what they look at: a field that none of them asks for is unknown.
CHECK = """
const schema = (n) => require(__dirname + '/node_modules/kubernetes-models/_schemas/' + n + '.js').validate;
const known = {
  'v1/Service': schema('IoK8sApiCoreV1Service'), 'v1/PersistentVolumeClaim': schema('IoK8sApiCoreV1PersistentVolumeClaim'),
  'batch/v1/Job': schema('IoK8sApiBatchV1Job'), 'apps/v1/StatefulSet': schema('IoK8sApiAppsV1StatefulSet'),
};
const template = schema('IoK8sApiCoreV1PodTemplateSpec');
function watched(value, path, unseen) {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map((v, i) => watched(v, path + '/' + i, unseen));
  const inside = {};
  for (const k of Object.keys(value)) { unseen.add(path + '/' + k); inside[k] = watched(value[k], path + '/' + k, unseen); }
  return new Proxy(inside, {get(o, k) { unseen.delete(path + '/' + String(k)); return o[k]; }});
}
function problems(validate, value, path) {
  const unseen = new Set(), seen = watched(value, path, unseen);
  if (!validate(seen)) return validate.errors.map((e) => path + e.instancePath + ' ' + e.message);
  return [...unseen].map((p) => p + ' is unknown');
}
// The resource of Kubeflow's MPI operator, kubeflow.org/v2beta1: the fields of its Go types (MPIJobSpec, RunPolicy, ReplicaSpec).
function whole(v) { return Number.isInteger(v) && v >= 0; }
const one = (...all) => (v) => all.includes(v);
const object = (fields, required) => (v) => {
  if (v === null || typeof v !== 'object' || Array.isArray(v)) return [' is no object'];
  const out = required.filter((k) => !(k in v)).map((k) => '/' + k + ' is missing');
  for (const k of Object.keys(v)) {
    const r = k in fields ? fields[k](v[k]) : false;
    if (r === false) out.push('/' + k + (k in fields ? ' is not allowed' : ' is unknown'));
    else if (Array.isArray(r)) out.push(...r.map((t) => '/' + k + t));
  }
  return out;
};
const replica = object({replicas: whole, restartPolicy: one('Never', 'OnFailure', 'Always', 'ExitCode'),
                        template: (v) => problems(template, v, '')}, ['template']);
const mpi = object({
  apiVersion: one('kubeflow.org/v2beta1'), kind: one('MPIJob'), metadata: object({name: (v) => typeof v === 'string', namespace: (v) => typeof v === 'string', labels: () => true}, ['name']),
  spec: object({
    slotsPerWorker: whole, runLauncherAsWorker: (v) => typeof v === 'boolean', sshAuthMountPath: (v) => typeof v === 'string',
    launcherCreationPolicy: one('AtStartup', 'WaitForWorkersReady'), mpiImplementation: one('OpenMPI', 'Intel', 'MPICH'),
    runPolicy: object({cleanPodPolicy: one('None', 'Running', 'All'), ttlSecondsAfterFinished: whole, activeDeadlineSeconds: whole, backoffLimit: whole,
                       suspend: (v) => typeof v === 'boolean', managedBy: (v) => typeof v === 'string', schedulingPolicy: () => true}, []),
    mpiReplicaSpecs: object({Launcher: replica, Worker: replica}, ['Launcher', 'Worker']),
  }, ['mpiReplicaSpecs']),
}, ['apiVersion', 'kind', 'spec']);
const answers = JSON.parse(require('fs').readFileSync(0, 'utf8')).map((d) => {
  const kind = d.apiVersion + '/' + d.kind;
  if (kind === 'kubeflow.org/v2beta1/MPIJob') return mpi(d);
  return kind in known ? problems(known[kind], d, '') : [kind + ' is unknown'];
});
process.stdout.write(JSON.stringify(answers));
"""


def installed(folder):
    """The package below that folder, from the registry or npm's own cache."""
    done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "--fetch-retries=0", "--prefix", folder, MODELS],
                          cwd=folder, capture_output=True, text=True, timeout=240)
    if done.returncode:
        skip(f"npm cannot install {MODELS} here: {(done.stderr.strip().splitlines() or ['no reason'])[0][:200]}")


def check(folder, documents):
    done = subprocess.run(["node", "check.js"], cwd=folder, input=json.dumps(documents), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def places(node, path=()):
    """Paths of all maps of a document that have fields of Kubernetes, not names of users."""
    if isinstance(node, dict):
        if not path or path[-1] not in ("labels", "matchLabels", "selector", "limits", "requests"):
            yield path
        for k, v in node.items():
            yield from places(v, (*path, k))
    elif isinstance(node, list):
        for i, v in enumerate(node):
            yield from places(v, (*path, i))


def at(document, path):
    for step in path:
        document = document[step]
    return document


def main():
    examples = SOURCE / "examples/kubernetes"
    documents = [(f.name, d) for f in sorted(examples.glob("*.yaml")) for d in yaml.safe_load_all(f.read_text()) if d]
    assert len(documents) == 5 and {d["kind"] for _, d in documents} == {"PersistentVolumeClaim", "Service", "Job", "MPIJob", "StatefulSet"}
    wrong, what = [], []
    for name, document in documents:
        for path in places(document):
            if path and isinstance(at(document, path[:-1]), dict) and path[-1] == "selector" and document["kind"] == "Service":
                continue
            if path == ("metadata",) and document["kind"] != "Service" or "metadata" in path and path != ("metadata",):
                continue  # metadata takes what it is given; one of them is enough
            broken = copy.deepcopy(document)
            at(broken, path)["replicaz"] = 1
            wrong.append(broken)
            what.append((name, path, "an unknown field"))
    for kind, path, value in (("Job", ("spec", "completions"), "4"), ("Job", ("spec", "template", "spec", "restartPolicy"), 1),
                              ("Service", ("spec", "ports", 0, "port"), "meet"), ("StatefulSet", ("spec", "replicas"), "x"),
                              ("MPIJob", ("spec", "mpiImplementation"), "mpich"), ("MPIJob", ("spec", "mpiReplicaSpecs", "Worker", "replicas"), "4"),
                              ("MPIJob", ("spec", "mpiReplicaSpecs", "Worker", "template", "spec", "containers", 0, "args"), "-De")):
        broken = copy.deepcopy(next(d for _, d in documents if d["kind"] == kind))
        at(broken, path[:-1])[path[-1]] = value
        wrong.append(broken)
        what.append((kind, path, value))
    with tempfile.TemporaryDirectory() as folder:
        installed(folder)
        pathlib.Path(folder, "check.js").write_text(CHECK)
        found = check(folder, [d for _, d in documents])
        assert not any(found), [(name, f) for (name, _), f in zip(documents, found) if f]
        refused = check(folder, wrong)
        assert all(refused), [w for w, f in zip(what, refused) if not f]
    print(f"{len(documents)} documents, {len(wrong)} wrong ones refused")


main()

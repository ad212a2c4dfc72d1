"""MLPerf Storage's own harness drives this program as dlio_benchmark, and its report generator reads the results.

    python3 tests/bench/mlpstorage.py [--stoker BINARY] [--keep FOLDER] [v2.0] [v3]

The harness is not part of the tree: PEER (default /work/peer/mlpstorage) has v2.0/ and v3/, checkouts of the tag v2.0
and of main, and shim/, what Debian's Python lacks for them. Needs Open MPI's mpirun. Every workload is shrunk: in v2.0
with --params, in v3, whose --params stay strings and end its own sums, with a copy of its workload files.

For each version, workload and command it prints a row; for each run, the figures of results.json of the report beside
those of result.json. Exit status 1 if a command failed, a report lacks a run, a figure differs or a warning was given
about a key that the harness itself sets."""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import dlio_readers  # noqa: E402
import recipes  # noqa: E402
from util import SOURCE  # noqa: E402

PEER = pathlib.Path(os.environ.get("PEER", "/work/peer/mlpstorage"))
MODULE = {"v2.0": "mlpstorage.main", "v3": "mlpstorage_py.main"}
# files, bytes of a record, other values of the workload's file
SMALL = {
    "unet3d": ({"dataset.num_files_train": 56, "dataset.record_length_bytes": 200000,
                "dataset.record_length_bytes_stdev": 20000, "dataset.record_length_bytes_resize": 4096},
               {"train.computation_time": 0.03, "train.epochs": 3}),
    "resnet50": ({"dataset.num_files_train": 8, "dataset.record_length_bytes": 2000,
                  "dataset.record_length_bytes_resize": 1000},
                 {"train.computation_time": 0.02, "train.epochs": 3}),
    "cosmoflow": ({"dataset.num_files_train": 64, "dataset.record_length_bytes": 30000,
                   "dataset.record_length_bytes_stdev": 1000},
                  {"train.epochs": 3}),
}
# of v3 alone, which submits unet3d and retinanet; the others it runs as what-if
V3_ONLY = {
    "retinanet": ({"dataset.num_files_train": 192, "dataset.record_length_bytes": 10000},
                  {"train.computation_time": 0.02, "train.epochs": 3}),
}
SUBMITTED = ("unet3d", "retinanet")
LLAMA = {"model.num_layers": 2, "model.transformer.vocab_size": 1024, "model.transformer.hidden_size": 256,
         "model.transformer.ffn_hidden_size": 512, "checkpoint.time_between_checkpoints": 0}
# what results.json of a report has -> what result.json has
FIGURES = {
    "train_au_mean_percentage": ("training", "au_mean_percent"),
    "train_throughput_mean_samples_per_second": ("training", "throughput_mean_samples_per_s"),
    "train_io_mean_MB_per_second": ("training", "io_mean_mib_per_s"),
    "save_checkpoint_duration_mean_seconds": ("checkpoint", "save", "duration_mean_s"),
    "load_checkpoint_duration_mean_seconds": ("checkpoint", "load", "duration_mean_s"),
}
wrong = []


def check(holds, what):
    if not holds:
        wrong.append(what)
        print(f"      WRONG: {what}")
    return holds


class Harness:
    def __init__(self, version, stoker, at):
        self.version, self.at, self.stoker = version, at, stoker
        bin_folder = at / "bin"
        bin_folder.mkdir(parents=True)
        (bin_folder / "dlio_benchmark").symlink_to(stoker)
        self.tree = at / "tree"
        shutil.copytree(PEER / version, self.tree, symlinks=True)
        for model, (data, train) in {**SMALL, **V3_ONLY}.items():
            for path in (self.tree / "configs/dlio/workload").glob(f"{model}_*.yaml"):
                shrink(path, {**data, **train})
        self.env = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "HOME": str(at),
                    "PYTHONPATH": f"{PEER}/shim:{self.tree}", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TMPDIR": str(at)}
        self.results = at / "results"
        self.mpi = ["--allow-run-as-root", "--oversubscribe", "--dlio-bin-path", bin_folder]

    def run(self, *args):
        """One command of the harness; returns (status, everything it printed)."""
        done = subprocess.run(["/usr/bin/python3", "-m", MODULE[self.version], *map(str, args)], env=self.env,
                              cwd=self.at, capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout + done.stderr

    def common(self):
        return ["--results-dir", self.results, *(["--systemname", "sys1"] if self.version == "v3" else [])]

    def training(self, model, command, *more, params=()):
        p = ["--params", *params] if params else []
        if self.version == "v3":
            protocol = [] if command == "datasize" else ["file"]
            return self.run("open" if model in SUBMITTED else "whatif", "training", model, command, *protocol, *more,
                            *p, *self.common(), *([] if command == "datasize" else self.mpi[:2]))
        return self.run("training", command, "--model", model, *more, *p, *self.common(), *self.mpi)


def shrink(path, values):
    """Sets the values that a workload's file has."""
    text = path.read_text()
    for key, value in values.items():
        text = re.sub(rf"^(\s+{key.split('.')[1]}: ).*$", rf"\g<1>{value}", text, flags=re.M)
    path.write_text(text)


def said_by_us(text):
    """Warnings of this program about keys, without those about a value that the harness's workload file has."""
    return [line for line in text.splitlines() if line.startswith("[WARNING]") and "key" in line]


def leaf(harness, model, kind, command):
    """The newest folder of results of a command."""
    found = [p for p in harness.results.rglob("dlio_config")
             if model in p.parts and kind in p.parts and (kind == "checkpointing" or command in p.parts)]
    return max(found, key=lambda p: p.parent.name).parent if found else None


def value(tree, path):
    for key in path:
        tree = (tree or {}).get(key)
    return tree


def compare(harness, model, at, said):
    """Result folder and the harness's readers; returns its figures."""
    result = json.loads((at / "result.json").read_text())
    dlio_readers.folder(at, "dlio_config")
    (dlio_readers.report_v3 if harness.version == "v3" else dlio_readers.report_v2)(at)
    reported = [r for r in said if str(r["run_id"]) == str(at) or
                (result["start"] in str(r["run_id"]) and r["model"] == model)]
    if not check(reported, f"{harness.version} {model}: the report does not have {at}"):
        return
    for name, path in FIGURES.items():
        ours = value(result, path)
        theirs = value(reported[0], ("metrics", name))
        if ours is None and theirs is None:
            continue
        check(ours is not None and theirs is not None and abs(ours - theirs) <= 1e-9 * abs(ours),
              f"{harness.version} {model}: {name}")
        print(f"      {model}: {name}: {theirs} in the report, {ours} in result.json")


def row(harness, model, command, status, text):
    ok = check(status == 0, f"{harness.version} {model} {command}: status {status}: {text[-1500:]}")
    keys = said_by_us(text)
    check(not keys, f"{harness.version} {model} {command}: {keys}")
    print(f"   {harness.version:5} {model:18} {command:9} {'ok' if ok else 'FAILED'}")
    return ok


def train(harness, model, more=()):
    data, train_keys = {**SMALL, **V3_ONLY}[model]
    params = [f"{k}={v}" for k, v in {**data, **train_keys}.items()] if harness.version == "v2.0" else \
        [f"dataset.num_files_train={data['dataset.num_files_train']}"]
    of_data = [p for p in params if p.startswith("dataset.")]
    accelerator = ["--accelerator-type", "b200" if harness.version == "v3" and model in SUBMITTED else "h100"]
    hosts = ["--num-client-hosts", 1] if harness.version == "v2.0" else []  # a defect of v2.0: it cannot count them
    status, text = harness.training(model, "datasize", *accelerator, "--max-accelerators", 2,
                                    "--client-host-memory-in-gb", 1, *hosts)
    row(harness, model, "datasize", status, text)
    status, text = harness.training(model, "datagen", "--num-processes", 2, *more, "--data-dir",
                                    harness.at / f"data{''.join(more)}", params=of_data)
    row(harness, model, "datagen", status, text)
    status, text = harness.training(model, "run", *accelerator, "--num-accelerators", 2, "--client-host-memory-in-gb", 1,
                                    "--data-dir", harness.at / f"data{''.join(more)}", *more, "--allow-invalid-params",
                                    params=params)
    row(harness, f"{model}{''.join(more)}", "run", status, text)


def checkpoint(harness, counts=(2, 2)):
    params = ["--params", *[f"{k}={v}" for k, v in LLAMA.items()]]
    numbers = ["--num-checkpoints-write", counts[0], "--num-checkpoints-read", counts[1]]
    first = ["open", "checkpointing"] if harness.version == "v3" else ["checkpointing"]
    end = ["--model", "llama3-8b", "--client-host-memory-in-gb", 1, "--num-processes", 8, *harness.common()]
    folder = ["--checkpoint-folder", harness.at / "saved"]
    status, text = harness.run(*first, "datasize", *end, *(folder if harness.version == "v2.0" else []))
    # v2.0 ends with a traceback of its own (no mpi_params); nothing of this program runs
    if harness.version == "v3":
        row(harness, "llama3-8b", "datasize", status, text)
    status, text = harness.run(*first, "run", *(["file"] if harness.version == "v3" else []), *end, *folder, *numbers,
                               *params, *(harness.mpi if harness.version == "v2.0" else harness.mpi[:2]),
                               "--allow-invalid-params")
    row(harness, "llama3-8b", "run", status, text)


def recipe(harness):
    """The block of docs/howto.md for this version, as printed."""
    folder = harness.at / "howto"
    recipes.bench(folder, harness.stoker, SOURCE)
    before = recipes.own_mnt(folder)
    if before is None:
        print("   left out: docs/howto.md: this system gives no /mnt of its own (unshare)")
        return
    harness_command = folder / "build/mlpstorage"
    harness_command.write_text(f'#!/bin/sh\nexec /usr/bin/python3 -m {MODULE[harness.version]} "$@"\n')
    harness_command.chmod(0o755)
    os.environ.update({k: v for k, v in harness.env.items() if k != "PATH"})
    ran = 0
    blocks = recipes.blocks(SOURCE / "docs/howto.md")
    for line, what, name, _, text in blocks:
        if name != f"mlpstorage-{harness.version}" and "bin/dlio_benchmark" not in text:
            continue
        if what == "with" and name != f"mlpstorage-{harness.version}":
            continue
        for command in recipes.commands(text):
            done = recipes.run(command, folder, before)
            row(harness, "howto", f"line {line}", done.returncode, f"{command}: {done.stdout}{done.stderr}")
            ran += 1
    check(ran >= 6, f"{harness.version}: docs/howto.md has {ran} commands")


@contextlib.contextmanager
def room(harness):
    """v3 runs no checkpoint of a shrunk model without space for those of the whole: an empty tmpfs claims to have it."""
    saved = harness.at / "saved"
    saved.mkdir()
    mounted = harness.version == "v3" and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400g", "tmpfs", saved],
                                                         capture_output=True).returncode == 0
    try:
        yield
    finally:
        if mounted:
            subprocess.run(["umount", saved], check=True)


def report(harness):
    """The runs that the report generator lists. v3 takes metrics from its own metadata, in which 3.0.26 has none; it
    reads summary.json where there are no metadata, and what-if runs where they lie at the top of a root: copies."""
    roots = [harness.results]
    if harness.version == "v3":
        flat = harness.at / "summaries"
        status, text = harness.run("init", "org", flat)
        check(status == 0, text)
        for folder in harness.results.glob("*/org/results/sys1/*"):
            shutil.copytree(folder, flat / folder.name, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("*_metadata.json", "datasize", "datagen"))
        roots.append(flat)
    said = []
    for root in roots:
        status, text = harness.run("reports", "reportgen", "--results-dir", root,
                                   *(["--systemname", "sys1"] if harness.version == "v3" else []))
        row(harness, root.name, "reportgen", status, text)
        for bad in ("Traceback", "Failed to", "PROCESSING ERRORS", "failed with error"):
            check(bad not in text, f"{harness.version} reportgen: {bad}: {text[text.find(bad) - 300:][:900]}")
        files = list(root.rglob("results.json"))
        said = json.loads(files[0].read_text()) if check(files, f"{harness.version} {root}: no results.json") else []
    return said


def main():
    args = argparse.ArgumentParser()
    args.add_argument("versions", nargs="*")
    args.add_argument("--stoker", default=os.environ.get("STOKER", "build/stoker"))
    args.add_argument("--keep")
    o = args.parse_args()
    versions = [v for v in o.versions or MODULE if (PEER / v).is_dir()]
    if not versions or not shutil.which("mpirun"):
        print(f"skipped: there is no mlpstorage in {PEER}, or no mpirun")
        return 77
    with tempfile.TemporaryDirectory(dir=o.keep) as tmp:
        for version in versions:
            harness = Harness(version, pathlib.Path(o.stoker).resolve(), pathlib.Path(o.keep or tmp) / version)
            if version == "v3":
                status, text = harness.run("init", "org", harness.results)
                check(status == 0, text)
            models = [*SMALL, *(V3_ONLY if version == "v3" else [])]
            for model in models:
                train(harness, model)
            if version == "v3":
                train(harness, "unet3d", ("--o-direct",))
            with room(harness):
                checkpoint(harness)
            said = report(harness)
            for model, kind in (*((m, "training") for m in models), ("llama3-8b", "checkpointing")):
                at = leaf(harness, model, kind, "run")
                if check(at, f"{version} {model}: no results"):
                    compare(harness, model, at, said)
            recipe(harness)
    print(f"{len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Every command of README.md and docs/howto.md runs as printed, and does what the text says."""
# tier: long
# takes 200 s
# may take 900 s
import functools
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import recipes  # noqa: E402
from s3_server import S3Server  # noqa: E402
from util import SOURCE, STOKER, left_out  # noqa: E402

# What these name is tested elsewhere: the build by every test, the survey by cli.survey, the cluster by mpi.slurm.
ELSEWHERE = {"make demo", "make check", "make", "make check-all", "build/stoker survey /mnt/fs --checkpoint -o survey.html"}
NEEDS = {"mpirun": "mpirun", "slurm": "sbatch"}
# a status other than 0 that the text announces: "# exit status 3"
STATUS = re.compile(r"# exit status (\d)\b")
FILES = "num_files_train: 6400"  # of the example that most commands run


@functools.cache
def server():
    """An S3 server, until the end."""
    return S3Server()


def tried(document, folder, before, made):
    """Runs the commands of a document in order. Those that another one had, and that did not fail there, are in `made`: what they
    leave is there."""
    ran, own = 0, set()
    for line, what, name, kind, text in recipes.blocks(document):
        where = f"{document.name}, line {line}"
        if what == "writes":
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
            continue
        if kind != "sh":
            continue
        if what == "with":
            if name == "slurm":
                continue  # mpi.slurm runs it
            if name == "time":
                continue  # truth.experiments runs them, smaller
            if name == "hosts":
                continue  # mpi.over_ssh tests what it names
            if name.startswith("mlpstorage"):
                continue  # tests/bench/mlpstorage.py runs it
            if name == "s3":
                os.environ.update(server().env())
            elif name == "torch":
                if recipes.run("python3 -c 'import torch'", folder, []).returncode:
                    left_out(f"{where}: python3-torch is not installed")
                    continue
            elif not shutil.which(NEEDS[name]):
                left_out(f"{where}: {NEEDS[name]} is not installed")
                continue
        for command in recipes.commands(text):
            words = re.sub(r"\s+#.*", "", command)
            if words in ELSEWHERE or words in made:
                continue
            began = time.monotonic()
            done = recipes.run(command, folder, before)
            want = STATUS.search(command)
            assert done.returncode == (int(want[1]) if want else 0), (
                f"{where}: {command}: status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
            print(f"{time.monotonic() - began:6.1f} s  {command}")
            if words == "cp examples/my_job.yaml my_job.yaml":  # what the text says holds with a quarter of its files
                job = folder / "my_job.yaml"
                text = job.read_text()
                assert FILES in text, job
                job.write_text(text.replace(FILES, "num_files_train: 1600"))
            ran += 1
            own.add(words)
    made |= own
    return ran


def main():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as tmp:
        folder = pathlib.Path(tmp)
        recipes.bench(folder, STOKER, SOURCE)
        before = recipes.own_mnt(folder)
        if before is None:
            left_out("the commands of README.md and docs/howto.md: this system gives no /mnt of its own (unshare)")
            return
        documents = [SOURCE / "README.md", SOURCE / "docs" / "howto.md"]
        made = set()
        ran = sum(tried(d, folder, before, made) for d in documents)
        assert ran >= 20, f"only {ran} commands were found"


main()

"""A study from its CSV: run to the end, killed and continued, with rows that fail and rows that are hostile."""
import csv
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import small_study  # noqa: E402
from small_study import study  # noqa: E402
from util import SANITIZED, SOURCE, STOKER, stoker  # noqa: E402

WORKLOAD = small_study.workload(0.005)
DESIGN = """# a comment
model,epochs,processes,overrides,run
small,1,1,,N
small,1,2,,N
# factors

small,1,2,++workload.reader.batch_size=4,N
small,1,2,++workload.dataset.format=npy ++workload.reader.read_threads=2,N
small,1,4,++workload.reader.batch_size=4,Y
"""


def prepare(tmp, design=DESIGN):
    small_study.prepare(tmp, design, WORKLOAD)


def rows(tmp):
    lines = [x for x in (tmp / "d.csv").read_text().splitlines() if x.strip() and not x.startswith("#")]
    return list(csv.DictReader(lines))


def whole(tmp):
    prepare(tmp)
    before = sorted(tmp.rglob("*"))
    brief, text = study(tmp, "run", "--dry-run").stdout, study(tmp, "run", "--dry-run", "-v").stdout
    assert sorted(tmp.rglob("*")) == before, "a dry run wrote something"
    assert text.startswith("4 runs\n") and "generate small" in text and "-o" in text, text
    # the summary comes first, and alone without -v
    assert brief.startswith("4 runs\n") and "-v prints the commands" in brief and "generate small" not in brief, brief
    assert len(brief.splitlines()) < 18, brief
    study(tmp, "run")
    assert (tmp / "d.csv").read_text() == DESIGN.replace(",N\n", ",Y\n")
    assert not (tmp / "scratch").exists()
    folders = sorted(str(p.parent.relative_to(tmp)) for p in tmp.rglob("summary.json"))
    assert folders == ["results/small/1/run-1", "results/small/2/run-1", "results/small/2_batch_size_4/run-1",
                       "results/small/2_format_npy_read_threads_2/run-1"], folders
    mark = json.loads((tmp / folders[3] / "study_run.json").read_text())
    assert mark["overrides"] == ["++workload.dataset.format=npy", "++workload.reader.read_threads=2"]
    assert json.loads((tmp / folders[2] / "summary.json").read_text())["num_accelerators"] == 2
    assert (tmp / folders[0] / "run.log").exists()
    logs = list((tmp / "results").glob("*.generate.log"))
    assert len(logs) == 2, logs  # npz once for three rows, npy once
    text = study(tmp, "status", "--svg", "s.svg").stdout
    assert "5 runs: 5 done" in text and "batch_size=4" in text, text
    assert "<svg" in (tmp / "s.svg").read_text()

    # a row set back to N is run again, the others are not
    times = {f: (tmp / f / "summary.json").stat().st_mtime_ns for f in folders}
    (tmp / "d.csv").write_text((tmp / "d.csv").read_text().replace("small,1,1,,Y", "small,1,1,,N"))
    study(tmp, "run")
    again = [f for f in folders if (tmp / f / "summary.json").stat().st_mtime_ns != times[f]]
    assert again == folders[:1], again
    shutil.rmtree(tmp / "results")


def set_back(tmp, text):
    (tmp / "d.csv").write_text("model,epochs,processes,repeat,overrides,run\n" + text)


def made(tmp, *args):
    """Runs the study; the folders of the runs that it made, and those that it found complete."""
    before = {p: p.stat().st_mtime_ns for p in tmp.rglob("summary.json")}
    found = study(tmp, "run", *args).stderr.count("already complete, skipped")
    assert all(r["run"] == "Y" for r in rows(tmp))
    after = {p: p.stat().st_mtime_ns for p in tmp.rglob("summary.json")}
    return sorted(str(p.parent.relative_to(tmp / "results/small")) for p in after if after[p] != before.get(p)), found


def unnote(tmp):
    """As a kill between the end of a run and the saving of its row leaves it."""
    for mark in tmp.rglob("study_run.json"):
        text = json.loads(mark.read_text())
        text.pop("noted_by", None)
        mark.write_text(json.dumps(text))


def set_back_rows(tmp):
    """A row that is set back is run again, whatever was done to the rows around it; what a killed study finished is
    not, unless something about it has changed."""
    prepare(tmp)
    batch = "small,1,1,,reader.batch_size={},{}\n".format
    for state in "NY":
        set_back(tmp, batch(1, state) + batch(2, state) + batch(4, state))
        assert made(tmp) == ([f"1_batch_size_{n}/run-1" for n in (1, 2, 4)] if state == "N" else [], 0)
    set_back(tmp, batch(2, "N") + batch(4, "Y"))  # the row before it is deleted
    assert made(tmp) == (["1_batch_size_2/run-1"], 0)
    set_back(tmp, batch(4, "N") + batch(2, "N"))  # swapped
    assert made(tmp) == (["1_batch_size_2/run-1", "1_batch_size_4/run-1"], 0)
    set_back(tmp, batch(8, "N") + batch(4, "Y"))  # edited
    assert made(tmp) == (["1_batch_size_8/run-1"], 0)
    set_back(tmp, batch(2, "N") + batch(4, "Y"))  # and edited back
    assert made(tmp) == (["1_batch_size_2/run-1"], 0)
    set_back(tmp, "small,1,1,2,reader.batch_size=2,N\n")  # more often
    assert made(tmp) == (["1_batch_size_2/run-1", "1_batch_size_2/run-2"], 0)
    set_back(tmp, "small,2,1,,,N\nsmall,1,1,,,N\n")  # told apart by their lines alone
    assert made(tmp) == (["1/run-1", "1_line_3/run-1"], 0)
    set_back(tmp, "small,1,1,,,N\nsmall,2,1,,,N\n")
    runs, found = made(tmp)
    assert len(runs) == 2 and found == 0 and "1/run-1" not in runs, runs  # what has their names is another run
    shutil.rmtree(tmp / "results")

    rows_n = "small,1,1,2,reader.batch_size=2,N\n"
    set_back(tmp, rows_n)
    assert len(made(tmp)[0]) == 2
    unnote(tmp)
    set_back(tmp, "# moved\n" + batch(1, "Y") + rows_n)
    assert made(tmp) == ([], 2)
    set_back(tmp, rows_n)
    assert made(tmp) == (["1_batch_size_2/run-1", "1_batch_size_2/run-2"], 0)  # they are noted by now
    for args, workload in (((), WORKLOAD.replace("0.005", "0.004")), (("--scratch", "other"), WORKLOAD),
                           (("--warm",), WORKLOAD), (("train.computation_time=0.003",), WORKLOAD)):
        unnote(tmp)
        set_back(tmp, rows_n)
        (tmp / "config/workload/small.yaml").write_text(workload)
        runs, found = made(tmp, *args)
        assert len(runs) == 2 and found == 0 and "1_batch_size_2/run-1" not in runs, (args, runs, found)
        (tmp / "config/workload/small.yaml").write_text(WORKLOAD)
    shutil.rmtree(tmp / "results")


def repeats(tmp):
    prepare(tmp, "model,processes,repeat,overrides\nsmall,1,2,train.epochs=1\nsmall,1,,train.epochs=2\n")
    design = (tmp / "d.csv").read_text()
    for scale in ("dataset.num_files_train", "dataset.num_file_train=0.1", "small:dataset.num_files_train=-1"):
        assert "--scale: '" in study(tmp, "run", "--scale", scale, status=2).stderr
    for key in ("reader.bach_size=3", "reader.batch_size=x", "small:reader.batch_size=-1"):
        assert "command line: " in study(tmp, "run", key, status=2).stderr
    for words in (("other:reader.batch_size=1",), ("--scale", "other:dataset.num_files_train=1")):
        assert "no row of the design has that model" in study(tmp, "run", *words, status=2).stderr
    assert (tmp / "d.csv").read_text() == design, "an option that is wrong marked the rows"
    study(tmp, "run", "--repeat", "3", "--shuffle-order=7", "--scale", "small:dataset.num_files_train=0.25",
          "small:reader.read_threads=2")
    assert "nothing to run" in study(tmp, "run", "--repeat", "3", "--dry-run", "--scale", "small:dataset.num_files_train=0.25",
                                     "small:reader.read_threads=2").stdout
    runs = sorted(str(p.parent.relative_to(tmp / "results")) for p in tmp.rglob("summary.json"))
    assert runs == [f"small/1_epochs_{e}/run-{k}" for e in (1, 2) for k in (range(1, 3) if e == 1 else range(1, 4))], runs
    assert json.loads((tmp / "results" / runs[0] / "summary.json").read_text())["num_files_train"] == 8
    assert [r["run"] for r in rows(tmp)] == ["Y", "Y"]
    shutil.rmtree(tmp / "results")


def failing(tmp):
    prepare(tmp, "model,processes,overrides,run\n"
                 "small,1,++workload.reader.batch_size=64,N\n"       # no step is possible
                 "nothing,1,,N\n"
                 "../../x,1,,N\n"
                 "small,1,++workload.dataset.format='../../x',N\n"
                 "small,1,++workload.model.name='; touch pwned; $(touch pwned)',N\n"
                 "small,1,++workload.output.log_file='../../../pwned',N\n"
                 "small,1,hydra.run.dir=../../pwned,N\n"
                 "small,1,,N\n"
                 "small,1,++workload.train.epohcs=2,N\n"            # ++ would add it, and nothing would read it
                 "small,1,++storage.mmap.advise=random,N\n"         # of a store that is not used
                 "small,1,++workload.remarks_of_ours=mine,N\n")                # resembles none
    before = {p.name for p in tmp.parent.iterdir()}
    done = study(tmp, "run", status=1)
    states = [r["run"] for r in rows(tmp)]
    assert states == ["F"] * 4 + ["Y", "F", "F", "Y", "F", "F", "Y"], states
    said = [json.loads(p.read_text()) for p in tmp.glob("results/small/*/run-1/result.json")]
    added = [f["texts"]["first"] for r in said for v in r["verdicts"] for f in v["facts"] if f["reason"] == "config.added"]
    assert added == ["remarks_of_ours"], added
    assert "do not make one step of reader.batch_size 64" in done.stderr, done.stderr
    assert {p.name for p in tmp.parent.iterdir()} == before and not list(tmp.rglob("pwned"))
    state = json.loads((tmp / "results/d.csv.study.json").read_text())
    reasons = [r.get("reason", "") for r in state["runs"] if r["state"] == "failed"]
    assert all(reasons) and any("there is no workload 'nothing'" in r for r in reasons), reasons
    assert all(any(key in r for r in reasons) for key in ("train.epochs", "storage.mmap.advice")), reasons
    assert not (tmp / "scratch").exists()
    # failed rows stay failed unless they are wanted again
    study(tmp, "run", status=1)
    (tmp / "config/workload/nothing.yaml").write_text(WORKLOAD)
    study(tmp, "run", "--retry", status=1)
    assert [r["run"] for r in rows(tmp)][1] == "Y"
    # what a row says wrong is its own failure, and is seen as it was typed
    (tmp / "d.csv").write_text("model,epochs,processes,overrides,run\nsmall,two,1,,N\nsmall,1,x,,N\nsmall,1,1,,N\n"
                               "small,1,1,reader.batch_size=3 [,N\n")
    before = study(tmp, "status").stdout
    assert "batch_size=3 [" in before and "line 2 cannot run" in before and "epochs: 'two'" in before, before
    done = study(tmp, "run", status=1)
    assert [r["run"] for r in rows(tmp)] == ["F", "F", "Y", "F"] and "d.csv.study.json" in done.stderr, done.stderr
    # the reasons of earlier failures stay known
    study(tmp, "run", status=1)
    state = json.loads((tmp / "results/d.csv.study.json").read_text())
    assert [r["line"] for r in state["runs"] if "reason" in r] == [2, 3, 5], state["runs"]
    assert "results/d.csv.study.json" in study(tmp, "status").stdout
    (tmp / "d.csv").write_text("model,processes,overrides,run\nsmall,1,; rm -rf x,N\nsmall,1,a=1; rm -rf x,N\n")
    assert "';' is not an override" in study(tmp, "run", status=1).stderr
    assert [r["run"] for r in rows(tmp)] == ["F", "F"]
    shutil.rmtree(tmp / "results")


def unheard(tmp):
    """A parent that ignores the ends of its children hands that on: a run that failed is still none that is done."""
    prepare(tmp, "model,processes,overrides,run\n"
                 "small,1,storage.store=fault+posix storage.fault.op=read storage.fault.nth=1,N\n")
    study(tmp, "run", status=1, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert [r["run"] for r in rows(tmp)] == ["F"]
    shutil.rmtree(tmp / "results")


def alive(tmp):
    """Whether a process works on the study's folder."""
    for p in pathlib.Path("/proc").iterdir():
        try:
            if p.name.isdigit() and str(tmp).encode() in (p / "cmdline").read_bytes():
                return True
        except OSError:
            pass
    return False


def killed(tmp):
    prepare(tmp, "model,epochs,processes,overrides,run\n" +
            "".join(f"small,2,{n},++workload.reader.batch_size={b},N\n" for n in (1, 2) for b in (1, 2, 4)))
    rng = random.Random(5)
    argv = [STOKER, "study", "run", "d.csv", "--config-dir", "config", "-q"]
    for i in range(10):
        p = subprocess.Popen(argv, cwd=tmp, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.02, 0.8))
        p.send_signal(signal.SIGKILL if i % 5 else signal.SIGTERM)
        p.wait()
        states = [r["run"] for r in rows(tmp)]
        assert len(states) == 6 and set(states) <= {"N", "Y"}, states
        deadline = time.monotonic() + 20  # the child of a killed study ends by itself
        while alive(tmp) and time.monotonic() < deadline:
            time.sleep(0.05)
    stoker("study", "run", "d.csv", "--config-dir", "config", cwd=tmp)
    assert [r["run"] for r in rows(tmp)] == ["Y"] * 6
    assert len(list(tmp.rglob("summary.json"))) == 6
    assert not list(tmp.rglob("*.partial")) and not (tmp / "scratch").exists()
    state = json.loads((tmp / "results/d.csv.study.json").read_text())
    assert [r["state"] for r in state["runs"]] == ["done"] * 6
    shutil.rmtree(tmp / "results")


def unchanged(tmp, *words, says="", **kw):
    """The command is at fault, and no row: it ends before the design is touched."""
    before = (tmp / "d.csv").read_bytes()
    done = study(tmp, "run", *words[1:], status=None, **kw)
    assert done.returncode != 0 and words[0] in done.stderr and says in done.stderr, done.stderr
    assert (tmp / "d.csv").read_bytes() == before and not list(tmp.glob("results/*.json")), words


def bare(folder, text):
    """A folder with a program mpirun of that text."""
    other = pathlib.Path(tempfile.mkdtemp(dir=folder))
    (other / "mpirun").write_text(f"#!/bin/sh\n{text}\n")
    (other / "mpirun").chmod(0o755)
    return other


def modules(tmp):
    prepare(tmp, "model,processes\nsmall,1\n")
    fake = tmp / "bin"
    fake.mkdir()
    (fake / "module").write_text(f"#!/bin/sh\necho \"$@\" >> {tmp}/loaded\ntest \"$2\" != broken\n")
    (fake / "module").chmod(0o755)
    (fake / "mpirun").write_text(f"#!/bin/sh\necho \"$@\" >> {tmp}/launched\nwhile [ \"$1\" != {STOKER} ]; do shift; done\nexec \"$@\"\n")
    (fake / "mpirun").chmod(0o755)
    env = dict(os.environ, PATH=f"{fake}:{os.environ['PATH']}")
    study(tmp, "run", "--module", "gcc/12; touch pwned", "--module", "openmpi", "--launcher", "mpirun",
          "--launcher-arg=--oversubscribe", env=env)
    assert (tmp / "loaded").read_text() == "load gcc/12; touch pwned\nload openmpi\n" * 3
    assert (tmp / "launched").read_text().startswith("-np 1 --oversubscribe ")
    assert not list(tmp.rglob("pwned"))
    (tmp / "d.csv").write_text("model,processes\nsmall,1\n")
    shutil.rmtree(tmp / "results")
    unchanged(tmp, "launcher", "--module", "broken", env=env)
    unchanged(tmp, "launcher", "--launcher", "mpirun", "--launcher-arg=--nonsense",
              env=dict(env, PATH=f"{bare(fake, 'echo unknown option: $3 >&2; exit 9')}:{os.environ['PATH']}"),
              says="ended with status 9: unknown option: --nonsense; see results/launcher.log")
    unchanged(tmp, "launcher", "--launcher", "mpirun", env=dict(env, PATH="/nonexistent"), says="mpirun")
    # it starts the trial, but not the run: that is the row's, and its log is where the reason says
    env["PATH"] = f"{bare(fake, 'for w; do test $w = run && echo no such host: x && exit 7; done; exit 0')}:{os.environ['PATH']}"
    study(tmp, "run", "--launcher", "mpirun", env=env, status=1)
    assert rows(tmp)[0]["run"] == "F"
    reason = json.loads((tmp / "results/d.csv.study.json").read_text())["runs"][0]["reason"]
    m = re.fullmatch(r"the command ended with status 7: no such host: x; see (\S+)", reason)
    assert m and "no such host" in pathlib.Path(m[1]).read_text(), reason
    script = study(tmp, "sbatch", "--partition", "gpu", "--time", "04:00:00", "--nodes", "2", "--module", "gcc/12",
                   "++reader.batch_size=4").stdout
    for line in ("#SBATCH --partition=gpu", "#SBATCH --nodes=2", "#SBATCH --ntasks=1", "#SBATCH --time=04:00:00",
                 "--launcher srun", "--module gcc/12", "++reader.batch_size=4"):
        assert line in script, script
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    study(tmp, "sbatch", "--partition", "a\nb", status=2)
    shutil.rmtree(tmp / "results")


def launched(tmp):
    """Started by a launcher, it says so before it touches anything; an allocation is no launcher."""
    prepare(tmp, "model,processes\nsmall,1\n")
    before = (tmp / "d.csv").read_bytes()
    for mark, rank, name in (("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "mpirun (Open MPI)"),
                             ("PMI_SIZE", "PMI_RANK", "mpiexec (MPICH)"),
                             ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun")):
        done = [study(tmp, "run", env={**os.environ, mark: "2", rank: str(i)}, status=None) for i in range(2)]
        said = done[0].stderr.strip().splitlines()
        assert done[0].returncode == 2 and len(said) == 1, done[0]
        for word in (f"in 2 processes under {name};", "once, without a launcher", f"unset {mark}"):
            assert word in said[0], said
        # the others leave it to the first
        assert (done[1].returncode, done[1].stdout, done[1].stderr) == (0, "", ""), done[1]
        assert not (tmp / "results").exists() and (tmp / "d.csv").read_bytes() == before
    # inside sbatch and salloc; and the one task of an interactive step
    allocation = {**os.environ, "SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_NNODES": "2"}
    study(tmp, "run", "--dry-run", env=dict(allocation, SLURM_STEP_NUM_TASKS="1"))
    study(tmp, "run", env=allocation)
    assert rows(tmp)[0]["run"] == "Y"
    shutil.rmtree(tmp / "results")


def seed(tmp):
    for name in ("experimental_design.csv", "experimental_design_4models.csv"):
        text = (SOURCE / "tests/data/seed-study" / name).read_text()
        (tmp / "d.csv").write_text(text)
        done = stoker("study", "run", "d.csv", "--config-dir", SOURCE / "tests/data/seed-study/config", "--dry-run",
                      cwd=tmp)
        assert f"{text.count(',N')} runs" in done.stdout, done.stdout[-400:]


def main():
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp, "here")
        tmp.mkdir()
        whole(tmp)
        set_back_rows(tmp)
        repeats(tmp)
        failing(tmp)
        unheard(tmp)
        modules(tmp)
        launched(tmp)
        seed(tmp)
        if not SANITIZED:
            killed(tmp)


if __name__ == "__main__":
    main()

"""explain --confirm: the strace of a run against what the library of its format asks for; and logs of strace of
programs whose requests are known."""
# mostly waits
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import STOKER, skip  # noqa: E402

STRACE = ["strace", "-f", "--seccomp-bpf", "-y", "-ttt", "-T", "-s", "16", "-e", "signal=none",
          "-e", "trace=%file,%desc,%process,prctl"]
FORMATS = {"npz": ["dataset.num_samples_per_file=2"],
           "hdf5": ["dataset.num_samples_per_file=3", "reader.read_threads=0"],
           "tfrecord": ["framework=tensorflow", "reader.data_loader=tensorflow", "dataset.num_samples_per_file=5"],
           "indexed_binary": ["dataset.num_samples_per_file=3", "reader.sample_shuffle=seed"]}


def run(*command, **kw):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, **kw)


def traced(folder, name, more):
    keys = [f"dataset.data_folder={folder}/data-{name}", f"dataset.format={name}", "dataset.num_files_train=4",
            "dataset.num_files_eval=0", "dataset.record_length_bytes=20000", "workflow.evaluation=false",
            "train.epochs=2", "train.computation_time=0", "reader.batch_size=2", *more]
    done = run(STOKER, "generate", "default", *keys)
    assert done.returncode == 0, done.stderr
    log = folder / f"{name}.strace"
    # a traced process cannot look for leaks
    env = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
    done = run(*STRACE, "-o", log, STOKER, "run", "default", "-q", *keys, "-o", folder / name, env=env)
    if "ptrace" in done.stderr or not log.exists():
        skip(f"strace cannot trace here: {done.stderr[:200]}")
    assert done.returncode == 0, done.stderr
    return log


def confirm(folder, name, log):
    return run(STOKER, "explain", "--confirm", folder / name, log)


def test_formats(folder):
    for name, more in FORMATS.items():
        log = traced(folder, name, more)
        done = confirm(folder, name, log)
        assert done.returncode == 0 and done.stdout.startswith("Equal."), (name, done)
        assert "to 4 of 4 files" in done.stdout, done.stdout
    # one request elsewhere, one too few, one of another size: each is found with its line
    lines = (folder / "npz.strace").read_text().splitlines(keepends=True)
    reads = [i for i, line in enumerate(lines) if "pread64" in line and "/train/" in line and re.search(r", \d+\) = \d", line)]
    at = reads[len(reads) // 2]
    elsewhere = re.sub(r", (\d+)\) = ", r", 1\1) = ", lines[at])
    larger = re.sub(r", (\d+), (\d+)\) = ", r", 1\1, \2) = ", lines[at])
    for name, changed in (("elsewhere", [elsewhere]), ("missing", []), ("larger", [larger])):
        log = folder / name
        log.write_text("".join(lines[:at] + changed + lines[at + 1:]))
        done = confirm(folder, "npz", log)
        assert done.returncode == 3 and done.stdout.startswith("Differs."), (name, done)
        assert "1 visit differs" in done.stdout and ".npz: request " in done.stdout, done.stdout
        if changed:
            assert f"line {at + 1} of the log" in done.stdout, (at, done.stdout)
    # of another run
    done = confirm(folder, "hdf5", folder / "npz.strace")
    assert done.returncode == 2 and "another run" in done.stderr, done
    done = confirm(folder, "nothing", folder / "npz.strace")
    assert done.returncode == 2, done


def told(log):
    done = run(STOKER, "explain", log)
    assert done.returncode == 0, done
    m = re.search(r"(\d+) reads of (.*), (\d+) writes of (.*)\n", done.stdout)
    return int(m[1]), m[2], int(m[3]), m[4], done.stdout


def test_programs(folder):
    """dd, and a pipeline of a shell: what they read and wrote is known."""
    data = folder / "in"
    data.write_bytes(b"x" * 8192 * 100)
    log = folder / "dd"
    run(*STRACE, "-o", log, "dd", f"if={data}", f"of={folder}/out", "bs=8192")
    done = run(STOKER, "explain", log, "--json")
    assert done.returncode == 0, done
    assert '"bytes_written": 819200' in done.stdout and '"writes": 100' in done.stdout, done.stdout
    assert '"bytes_read": 819200' in done.stdout, done.stdout
    log = folder / "shell"
    run(*STRACE, "-ff", "-o", log, "sh", "-c", f"cd {folder}; cat in | dd of=two bs=4096 2>/dev/null; echo end >> two")
    logs = sorted(folder.glob("shell.*"))
    assert len(logs) >= 3, logs
    done = run(STOKER, "explain", *logs, "--json")
    assert done.returncode == 0, done
    assert '"bytes_written": 819204' in done.stdout, done.stdout


def main():
    if not shutil.which("strace"):
        skip("strace is not installed")
    with tempfile.TemporaryDirectory() as folder:
        test_formats(pathlib.Path(folder))
        test_programs(pathlib.Path(folder))
    print("done")


if __name__ == "__main__":
    main()

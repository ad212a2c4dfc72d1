"""Every --help ends with two examples, and each runs as it is printed, in a folder with the examples of the source."""
# takes 33 s
# tier: long
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SOURCE, STOKER, stoker  # noqa: E402

SUBCOMMANDS = {"show": "workloads config checkpoint formats stores loaders verdicts result system completion".split(),
               "study": "run status report sbatch".split()}


def examples(text):
    """The command lines at the end of a help text, as a shell would take them."""
    assert all(len(line) <= 80 for line in text.splitlines()), text
    last = text.split("\nexamples:\n")
    assert len(last) == 2, text
    lines = last[1].replace(" \\\n      ", " ").splitlines()
    assert len(lines) == 2 and all(line.startswith("  stoker ") for line in lines), lines
    return [line.strip() for line in lines]


def all_examples():
    """{command's words: its two}, in an order in which what one makes is there for the next."""
    listed = [line.split()[0] for line in stoker("--help").stdout.split("commands:\n")[1].split("\n\n")[0].splitlines()]
    order = ["generate", "run", "verify", "audit", "report", "compare", "plan", "show", "study", "capacity", "survey", "calibrate", "record", "explain", "replay"]
    assert sorted(listed) == sorted(order), listed
    found = {"": examples(stoker("--help").stdout)}
    for name in order:
        found[name] = examples(stoker(name, "--help").stdout)
        assert name not in SUBCOMMANDS or all(f"  {sub}" in stoker(name, "--help").stdout for sub in SUBCOMMANDS[name])
        for sub in SUBCOMMANDS.get(name, []):
            found[f"{name} {sub}"] = examples(stoker(name, sub, "--help").stdout)
    for name, lines in found.items():
        assert len(set(lines)) == 2 and (name in SUBCOMMANDS or all(f"stoker {name}" in line for line in lines)), (name, lines)
    return found


def run(lines, folder, env):
    for line in lines:
        done = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=folder, env=env, capture_output=True, text=True, timeout=300)
        allowed = (0, 3) if "--check" in line else (0,)
        # repetitions on a busy machine may differ so much that nothing is planned from them
        allowed += (2,) * any(s in done.stderr for s in ("contradict each other", "cannot be of one system"))
        assert done.returncode in allowed, (line, done.returncode, done.stdout[-2000:], done.stderr)
        assert done.stdout or " -o " in line, line


def main():
    found = all_examples()
    manual = (SOURCE / "docs/stoker.1").read_text().replace("\\-", "-").replace("\\&", "")
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        (tmp / "bin").mkdir()
        (tmp / "bin/stoker").symlink_to(pathlib.Path(STOKER).resolve())
        env = dict(os.environ, PATH=f"{tmp}/bin:{os.environ['PATH']}")
        apart = {True: [], False: []}  # a study waits most of its time
        for name, lines in found.items():
            for line in lines:
                assert line in manual, f"docs/stoker.1 lacks '{line}'"
                if line not in apart[name.startswith("study")]:
                    apart[name.startswith("study")].append(line)
        for study, folder in ((False, tmp / "a"), (True, tmp / "b")):
            folder.mkdir()
            shutil.copytree(SOURCE / "examples", folder / "examples")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for one in [pool.submit(run, apart[False], tmp / "a", env), pool.submit(run, apart[True], tmp / "b", env)]:
                one.result()
        assert (tmp / "a/report.html").stat().st_size > 10000 and (tmp / "a/runs.csv").exists() and (tmp / "b/study.html").exists()
        assert len((tmp / "a/runs.csv").read_text().splitlines()) >= 7, "a heading and 2 times 3 runs"
    print(f"{sum(map(len, found.values()))} examples of {len(found)} commands")


if __name__ == "__main__":
    main()

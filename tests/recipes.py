"""The commands of a document, as a reader would paste them.

In a Markdown file, a block fenced with ```sh holds commands; each is run as printed. A block that follows the line
<!-- with NAME --> needs what NAME stands for (slurm, mpirun, s3: a server); a block that follows <!-- writes NAME --> (no `sh`) is the text
of the file NAME, written before the commands below it run. All other blocks are not commands."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

FENCE = re.compile(r"(?:^<!-- (?P<what>with|writes) (?P<name>\S+) -->\n+)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S)


def blocks(document):
    """[(line, what, name, kind, text)] of the fenced blocks, in order."""
    text = pathlib.Path(document).read_text()
    return [(text.count("\n", 0, m.start()) + 1, m["what"], m["name"], m["kind"], m["text"]) for m in FENCE.finditer(text)]


def commands(text):
    """The commands of a block, lines that end in a backslash joined."""
    lines = text.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def bench(folder, program, source):
    """Makes `folder` what a reader has after `make`: build/stoker and the examples."""
    (folder / "build").mkdir(parents=True)
    (folder / "build" / "stoker").symlink_to(pathlib.Path(program).resolve())
    (folder / "build" / "python3").symlink_to(sys.executable)  # the one that the tests run with has the libraries
    shutil.copytree(source / "examples", folder / "examples")
    (folder / "tests").symlink_to(source / "tests")


def own_mnt(folder):
    """The words before a command that give it an empty, writable /mnt of its own in `folder`, which stays between commands;
    None where this system has no such namespaces."""
    (folder / "mnt").mkdir(exist_ok=True)
    words = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--mount", "bash", "-ec",
             f'mount --bind "{folder}/mnt" /mnt && exec "$@"', "bash"]
    try:
        return words if subprocess.run([*words, "true"], capture_output=True, timeout=20).returncode == 0 else None
    except (OSError, subprocess.TimeoutExpired):
        return None


def run(command, folder, before, timeout=600):
    """One command in a shell, in `folder`; only one that hangs takes that long. Returns the CompletedProcess."""
    path = f"{folder}/build:{os.environ['PATH']}"
    return subprocess.run([*before, "bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, "PATH": path})

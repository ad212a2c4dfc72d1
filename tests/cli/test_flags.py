"""Every command takes its own options and no other's: all pairs of a command and an option, from the help texts."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, SOURCE, STOKER, stoker, tiny  # noqa: E402

VALUES = {"N": "2", "NAME": "local", "FRAMEWORK": "pytorch", "MODE": "lines", "job": "job", "SEED": "3", "X": "2.5", "PERCENT": "3", "SECONDS": "9"}


def commands():
    """The words of every command that does something."""
    for line in stoker("--help").stdout.split("commands:")[1].split("\nexamples:")[0].splitlines():
        name = re.match(r"  (\w+) ", line)
        if not name:
            continue
        text = stoker(name[1], "--help").stdout.split("\nexamples:")[0]
        if "... --help'" in text:
            yield from ([name[1], word] for word in re.findall(r"^  (\w+) ", text, re.M))
        else:
            yield [name[1]]


def options(command):
    """{form: its value's name, or None} of a command's own help, short forms too."""
    own = {}
    for line in stoker(*command, "--help").stdout.splitlines():
        assert len(line) <= 80, line
        found = re.match(r"  (?:(-\w), )?(--[\w-]+)(?:\[=(\w+)\]| (\S+))?(?=  |$)", line)
        if found:
            own.update({form: found[3] or found[4] for form in found.group(1, 2) if form})
    return own


def accepted(command, form, value):
    """The option is read: --help after it is, too."""
    words = [form] if value is None else [form, VALUES.get(value, "x")]
    if value == "SEED":
        words = [f"{form}=3"]
    elif value and form.startswith("--"):
        assert "usage: " in stoker(*command, f"{form}={words[1]}", "--help").stdout
    assert "usage: " in stoker(*command, *words, "--help").stdout, (command, form)


def refused(command, form, owners):
    done = stoker(*command, form, "x", "--help", status=2)
    assert not done.stdout and len(done.stderr.splitlines()) == 1, done
    name = " ".join(command)
    assert f"'{name}' has no option '{form}'" in done.stderr, done.stderr
    for owner in owners:
        assert f"'{owner}'" in done.stderr.split("it is an option of")[1], (owner, done.stderr)
    assert f"stoker {name} --help" in done.stderr, done.stderr


def pairs():
    own = {tuple(c): options(c) for c in commands()}
    assert len(own) == 27 and sum(map(len, own.values())) > 90, {c: len(o) for c, o in own.items()}
    every = {form for forms in own.values() for form in forms}
    checked = 0
    for i, (command, forms) in enumerate(own.items()):
        for k, form in enumerate(sorted(every)):
            if form in forms:
                accepted(command, form, forms[form])
            elif SANITIZED and (i + k) % 8:
                continue  # what refuses is the same code for all
            else:
                refused(command, form, [" ".join(c) for c, o in own.items() if form in o])
            checked += 1
    print(f"{checked} pairs of {len(own)} commands and {len(every)} options")


def spellings():
    for words, message in (
            (["run", "--chek"], "did you mean '--check'?"),
            (["run", "-output", "x"], "did you mean '--output'?"),
            (["run", "--acc"], "did you mean '--accelerators-per-process'?"),
            (["study", "run", "--resutls", "x"], "did you mean '--results'?"),
            (["run", "--cfg", "anything"], "'anything' is not supported; the only value is 'job'"),
            (["run", "--progress", "line"], "did you mean 'lines'?"),
            (["study", "run", "--launcher", "mpirn"], "did you mean 'mpirun'?"),
            (["run", "-n"], "-n needs a value: -n N"),
            (["run", "-n", "0"], "'0' is not a whole number from 1 to"),
            (["run", "--strict=yes"], "--strict takes no value"),
            (["report", "--csv"], "--csv needs a value: --csv FILE"),
            (["show", "fomats"], "did you mean 'formats'?"),
            (["show", "formats", "x"], "unexpected argument 'x'"),
            (["study", "go", "x"], "'go' is not a subcommand of 'stoker study'"),
            (["study", "report", "d.csv", "reader.batch_size=4"], "the design is already 'd.csv'"),
            (["runn"], "did you mean 'run'?"),
            (["run", "unet3d_h10"], "(did you mean 'unet3d_h100'?); 'stoker show workloads' lists"),
            (["run", "/etc"], "'/etc' is a folder; a workload is a YAML file")):
        done = stoker(*words, status=2)
        assert message in done.stderr and len(done.stderr.splitlines()) == 1, (words, done.stderr)


def help_of_a_command():
    for name in ("run", "study", "show"):
        assert stoker("help", name).stdout == stoker(name, "--help").stdout != stoker("help").stdout, name


def forms(tmp):
    """DLIO's and Hydra's forms, attached values and the end of the options."""
    (tmp / "config/workload").mkdir(parents=True)
    (tmp / "config/workload/mine.yaml").write_text("model: {name: mine}\n")
    link = tmp / "dlio_benchmark"
    link.symlink_to(pathlib.Path(STOKER).resolve())
    for words in (["--config-dir", tmp / "config"], [f"--config-dir={tmp}/config"], ["-cd", tmp / "config"]):
        for cfg in (["--cfg", "job"], ["--cfg=job"], ["-c", "job"]):
            argv = [str(link), "workload=mine", *map(str, words), *cfg, "++workload.reader.batch_size=3",
                    f"hydra.run.dir={tmp}/hydra"]
            done = subprocess.run(argv, capture_output=True, text=True, check=True)
            assert "name: mine" in done.stdout and "batch_size: 3" in done.stdout, done.stdout
    assert not (tmp / "hydra").exists()
    for ranks in (["-n2"], ["-n", "2"], ["--ranks=2"]):
        assert "2 ranks" in stoker("show", "checkpoint", "default", *ranks, "workflow.checkpoint=true").stdout
    out = tmp / "out"
    stoker("run", *tiny(tmp / "data", out, files=4))
    stoker("report", "-opage.html", "--", out, cwd=tmp)
    assert (tmp / "page.html").exists()
    (tmp / "-odd").symlink_to(out)
    stoker("audit", "--", "-odd", cwd=tmp)
    # the man page and the help are written from the same rows
    man = (SOURCE / "docs/stoker.1").read_text().replace("\\-", "-")
    for command in commands():
        for form in options(command):
            assert form in man.split(f".SS stoker {' '.join(command)}")[1].split(".SS")[0] or form in ("-h", "--help")


def documents(tmp):
    """--json: a document, and nothing else on standard output; the exit status and standard error stay."""
    def document(*args, **kw):
        return json.loads(stoker(*args, "--json", **kw).stdout)

    run = ["run", *tiny(tmp / "jdata", tmp / "jout", files=4)]
    assert document(*run)["status"] == "complete"
    checked = stoker(*run, "--json", "--min-samples-per-s", "1e9", status=3)
    assert json.loads(checked.stdout)["training"] and "check: " in checked.stderr, checked
    page = document("report", tmp / "jout", "-o", tmp / "j.html")
    assert page["runs"][0]["processes"] == 1 and isinstance(page["runs"][0]["model"], str), page["runs"]
    stoker("report", tmp / "jout", "--json", "-o", "/dev/stdout", status=2)
    nothing = stoker("run", "default", "--cfg", "job", "--json", status=2)
    assert nothing.stdout == "" and "--cfg" in nothing.stderr, nothing
    for verb in (["status"], ["run", "--dry-run"]):
        states = document("study", *verb, SOURCE / "examples/design.csv", "--config-dir", SOURCE / "examples", cwd=tmp)
        assert states["pending"] == len(states["rows"]) > 1, states
    needs = document("show", "workloads", "unet3d_h100")["unet3d_h100"]
    assert needs["needs_bytes_per_s"] > 1e9 and needs["format"] == "npz", needs
    for topic in ("formats", "stores", "loaders", "verdicts", "system"):
        assert len(document("show", topic)) > 3, topic
    assert document("show", "config", "default", "reader.batch_size=7")["reader.batch_size"]["value"] == 7
    assert document("show", "checkpoint", "llama3_8b", "-n8")["total_bytes"] > 1e9


with tempfile.TemporaryDirectory() as tmp:
    pairs()
    documents(pathlib.Path(tmp))
    spellings()
    help_of_a_command()
    forms(pathlib.Path(tmp))

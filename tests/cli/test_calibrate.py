"""stoker calibrate: a profile from the Python that is there, and a sentence for every Python that is none."""
# tier: long
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import left_out, stoker, tiny  # noqa: E402

GOOD = '''{"about": {"version": "9.9", "python": "3.11.0", "processor": "fake"}}
{"row": "step", "law": {"fixed": 0.5, "after_wait": 0.001}, "spread": 0.25}
{"row": "pack", "law": {"fixed": 0.5}, "spread": 0.25, "law_points": [[4096, 0.125, 0], [8192, 0.25, 0.5]]}
{"missing": "h5py", "why": "no module", "rows": ["load_hdf5"]}
{"unsteady": "load_npz of 4096 bytes", "least": 1e-4, "most": 2e-4}
{"disturbed": 3}
{"done": true}
'''


def fake(folder, name, script):
    path = folder / name
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    return path


def reports(folder, name, text):
    (folder / f"{name}.txt").write_text(text)
    return fake(folder, name, f"cat '{folder}/{name}.txt' > \"$2\"\n")


def refused(tmp, python, *says, status=1, rest=()):
    out = tmp / "never.yaml"
    done = stoker("calibrate", "--python", python, "-o", out, "--only", "step", *rest, status=status)
    assert not out.exists(), f"{python}: a profile was written"
    for text in says:
        assert text in done.stderr, f"{python}: '{text}' is not in: {done.stderr}"


def ended(mark):
    """The process whose number is in the file; it may take a moment, or not be reaped."""
    stat = pathlib.Path(f"/proc/{mark.read_text().strip()}/stat")
    for _ in range(100):
        if not stat.exists() or " Z " in stat.read_text():
            return
        time.sleep(0.05)
    raise AssertionError("what Python started lives on")


def bad_pythons(tmp):
    refused(tmp, tmp / "nowhere", "need Python", "No such file")
    refused(tmp, fake(tmp, "fails", "echo oh: no >&2; exit 3\n"), "status 3", "oh: no", "is it a Python 3?")
    refused(tmp, fake(tmp, "dies", "kill -SEGV $$\n"), "signal 11")
    refused(tmp, fake(tmp, "silent", "exit 0\n"), "is it a Python 3?")
    refused(tmp, fake(tmp, "prints", "exec yes\n"), "prints without end")
    refused(tmp, reports(tmp, "garbage", "\xff{\n[1, 2\n" + '{"done": true}\n'), "nothing could be measured")
    refused(tmp, reports(tmp, "negative", GOOD.replace("0.5", "-1")), "laws.step.fixed", "0 to 60 s")
    refused(tmp, reports(tmp, "absurd", GOOD.replace("0.5", "1e300")), "laws.step.fixed", "0 to 60 s")
    refused(tmp, reports(tmp, "stranger", GOOD.replace('"step"', '"dance"')), "dance", "is none of")
    refused(tmp, reports(tmp, "unfinished", GOOD.replace('{"done": true}\n', "")), "ended before all was measured; no profile")
    left = tmp / "left"
    refused(tmp, fake(tmp, "leaves", f"sleep 96 & echo $! > '{left}'; exit 0\n"), "ended before all was measured", "Python 3?")
    ended(left)
    mark = tmp / "pid"
    begin = time.monotonic()
    refused(tmp, fake(tmp, "hangs", f"sleep 97 & echo $! > '{mark}'; sleep 98\n"), "did not finish within 1 s",
            rest=["--time-limit", "1"])
    assert time.monotonic() - begin < 30
    ended(mark)


def bad_outputs(tmp):
    python = reports(tmp, "good", GOOD)
    for out, says, status in ((tmp / "no" / "x.yaml", "No such file", 1), (tmp, "folder", 1), (python, "the same file", 2)):
        done = stoker("calibrate", "--python", python, "-o", out, status=status)
        assert says in done.stderr, done.stderr
    assert python.read_text().startswith("#!/bin/sh")
    done = stoker("calibrate", "--python", python, "-o", "/dev/full", status=1)
    assert "cannot write '/dev/full': No space left on device" in done.stderr, done.stderr
    here = tmp / "here"
    here.mkdir()
    (here / "data").write_text("mine")
    done = stoker("calibrate", "--python", python, "-o", "", status=2, cwd=here)
    assert "it is empty" in done.stderr and [p.name for p in here.iterdir()] == ["data"], done.stderr
    for words in (["--only", "load_npx"], ["--only", ""], ["--time-limit", "nan"], ["--time-limit", "-3"], ["extra"],
                  ["--name", "a b"], ["--name", "none"]):
        done = stoker("calibrate", "--python", python, "-o", tmp / "x.yaml", *words, status=2)
        assert done.stderr.count("\n") <= 2, done.stderr


def profile(tmp):
    out = tmp / "costs.yaml"
    done = stoker("calibrate", "--python", reports(tmp, "good", GOOD), "-o", out)
    assert "h5py cannot be imported (no module): not measured: load_hdf5" in done.stderr, done.stderr
    assert "load_npz of 4096 bytes did not repeat: 100 to 200 us" in done.stderr, done.stderr
    assert "did not repeat: load_npz of 4096 bytes" in " ".join(out.read_text().split()), out.read_text()
    assert "3 measurements were made while this machine was slower than at its best" in done.stderr, done.stderr
    assert "measured while the machine was slower: 3" in " ".join(out.read_text().split()), out.read_text()
    laws = json.loads(stoker("calibrate", "--python", tmp / "good", "-o", out, "--json").stdout)["laws"]
    assert laws["step"] == {"fixed": 0.5, "after_wait": 0.001, "spread": 0.25} and laws["pack"]["points"][1] == [8192, 0.25, 0.5], laws
    shown = stoker("show", "config", "default", f"framework.costs={out}").stdout
    assert "torch-9.9-local@" in shown, shown
    text = out.read_text()
    assert "points:\n    - - 4096.0\n      - 0.125\n" in text, text
    assert "processor: fake" in text and "fixed: 0.5" in text and "spread: 0.25" in text and "date:" in text, text
    # what was not measured is missing in a run, whose answer says so
    run = ["run", *tiny(tmp / "data", tmp / "run", workflow__generate_data="true", train__computation_time=0.01)]
    for costs, told in ((out, True), ("none", False), ("torch-1.13", False)):
        done = stoker(*run, f"framework.costs={costs}")
        assert ("were measured only in part" in done.stdout) == told, done.stdout


def tensorflow(tmp):
    """The framework is named, and what did not repeat is said."""
    row = '{"row": "iterator", "law": {"fixed": 0.5, "first": 0.25}, "spread": 0}\n'
    said = '{"unsteady": "iterator", "least": 7e-6, "most": 9e-6}\n{"done": true}\n'
    python = reports(tmp, "tf", GOOD.replace('{"done": true}\n', row + said))
    out = tmp / "tf.yaml"
    done = stoker("calibrate", "--framework", "tensorflow", "--python", python, "-o", out)
    assert "iterator did not repeat: 7 to 9 us. Measure it again" in done.stderr, done.stderr
    text = out.read_text()
    assert "name: tensorflow-9.9-local\nframework: tensorflow\n" in text and "first: 0.25" in text, text
    assert "tensorflow-9.9-local@" in stoker("show", "config", "default", f"framework.costs={out}").stdout
    stoker("calibrate", "--framework", "jax", "--python", python, "-o", out, status=2)


def real(tmp):
    """Of a few rows, by each Python that is here."""
    for python in ("/usr/bin/python3", "python3"):
        out = tmp / "real.yaml"
        has = subprocess.run([python, "-c", "import torch, numpy"], capture_output=True, check=False).returncode == 0
        rows = "step,load_npy,begin_dlio,start_forkserver,begin_forkserver" if has else "step,sample"
        if not has:
            left_out(f"laws of a loader: {python} has no torch and numpy")
        done = stoker("calibrate", "--python", python, "--only", rows, "-o", out, "-q", "--json", "--time-limit", "280",
                      timeout=300)
        text = out.read_text()
        for row in rows.split(","):
            assert f"  {row}:\n" in text, f"{python}: {row} is not in\n{text}"
        stoker("show", "config", "default", f"framework.costs={out}")
        if has:
            laws = json.loads(done.stdout)["laws"]
            # what looks at the stack goes through thousands of modules
            assert laws["begin_dlio"]["fixed"] > 0.02, laws
            assert laws["step"]["fixed"] < 0.002 and laws["load_npy"].get("import", 0) == 0, laws
            return


def main():
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        bad_pythons(tmp)
        bad_outputs(tmp)
        profile(tmp)
        tensorflow(tmp)
        real(tmp)


if __name__ == "__main__":
    main()

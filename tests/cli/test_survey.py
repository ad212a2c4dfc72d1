"""stoker survey: what the arithmetic says of stores of known law, a page, what is refused, and that nothing is left."""
# tier: long
# takes 60 s
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from loop_device import LoopDevice, Unavailable  # noqa: E402
from util import SANITIZED, STOKER, attempts, left_out, stoker, wait_for  # noqa: E402

NEED = {"cosmoflow_h100": 0.7 / 0.0035, "retinanet_b200": 0.85 * 24 / 0.04755}  # samples/s at the target


def memory(**keys):
    return ["storage.store=throttle+memory", *[f"storage.throttle.{k}={v}" for k, v in keys.items()]]


def survey(folder, *words, **kw):
    return stoker("survey", folder, "-q", *words, timeout=170, **kw)


def known(tmp, name, only, truth, limit, *keys):
    """`truth`: accelerators, from the pattern's own requests for a sample."""
    def once(n):
        said = json.loads(survey(tmp, "--only", only, "--json", "--time", 8 * (1 + n), *keys).stdout)
        row = next(r for r in said["workloads"] if r["workload"] == only)
        want = truth(said["patterns"][row["pattern"]])
        high = row.get("high_95", float("inf"))
        right = row["low_95"] <= want <= high or abs(row["accelerators"] / want - 1) < 0.1
        return right and row["limit"] in limit, (want, row)

    ok, (want, row) = attempts(name, once)
    assert ok, (name, want, row)
    print(f"   {name}: {row['accelerators']:.3g} ({row['low_95']:.3g} to {row.get('high_95')}), the arithmetic says {want:.3g}")


def laws(tmp):
    # requests of one size alone tell no bandwidth from requests/s
    known(tmp, "bandwidth", "cosmoflow_h100", lambda p: 400e6 / p["sample_bytes"] / NEED["cosmoflow_h100"],
          ["bandwidth", "bandwidth_or_requests"],
          *memory(bandwidth=400e6))
    known(tmp, "requests", "retinanet_b200", lambda p: 4000 / each(p) / NEED["retinanet_b200"], ["requests", "bandwidth_or_requests"], *memory(iops=4000))
    known(tmp, "opens", "retinanet_b200", lambda p: 8 / 0.01 / NEED["retinanet_b200"], ["opens"],
          *memory(open_latency=0.01, open_concurrency=8))


def each(p):
    return p["points"][0]["requests_per_s"] / p["points"][0]["measured_samples_per_s"]


def refused(tmp):
    (tmp / "file").write_text("x")
    cases = [([], "which storage"), ([tmp / "none"], "is not there"), ([tmp / "file"], "is no folder"), ([tmp, tmp], "one folder at a time"),
             ([tmp, "--only", "nobody"], "has 'nobody' in its name"), ([tmp, "reader.read_threads=none"], "read_threads")]
    if os.path.ismount("/dev/shm"):
        cases.append((["/dev/shm"], "which is memory"))
    else:
        left_out("there is no file system in memory")
    for words, why in cases:
        done = stoker("survey", *words, status=2)
        assert why in done.stderr and not done.stdout, (words, done.stderr)
    other = tmp / "theirs" / "stoker_survey"
    other.mkdir(parents=True)
    (other / "thesis.txt").write_text("x")
    done = stoker("survey", other.parent, status=2)
    assert "files that no survey made" in done.stderr and (other / "thesis.txt").exists(), done.stderr


def begun(folder):
    process = subprocess.Popen([STOKER, "survey", folder, "-q", "--only", "resnet50", "--time", "60"], stderr=subprocess.PIPE, text=True)
    own = folder / "stoker_survey"
    assert wait_for(lambda: any(own.glob("0/train/*")), 60), process.poll()
    return process


def left(tmp):
    """An interrupted survey leaves nothing; what a killed one leaves is removed by the next; one at a time."""
    for sig in (signal.SIGINT, signal.SIGTERM):
        process = begun(tmp)
        done = stoker("survey", tmp, "--only", "resnet50", status=2)
        assert "another survey" in done.stderr, done.stderr
        process.send_signal(sig)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 1 and "interrupted; nothing of it is left" in said, (process.returncode, said)
        assert not list(tmp.iterdir()), list(tmp.iterdir())
    process = begun(tmp)
    process.kill()
    process.communicate()
    assert (tmp / "stoker_survey/stoker_survey.json").exists()
    time.sleep(1)  # its run ends with it
    survey(tmp, "--only", "resnet50_h100", "--time", 5)
    assert not list(tmp.iterdir()), list(tmp.iterdir())


def page(tmp):
    out = tmp / "page.html"
    folder = tmp / "s"
    folder.mkdir()
    done = survey(folder, "--only", "resnet50", "--time", 6, "--checkpoint", "-o", out)
    first = answer_of(done)
    assert re.match(r"(NOT [^:]*: )?ResNet-50 (at least [\d.]+|[\d.]+ \([\d.]+ to [\d.]+\)) H100; a checkpoint of 8B in \d", first), done.stdout
    assert re.search(r"^  ResNet-50 +H100 .* MiB/s at 90 %  ", done.stdout, re.M), done.stdout
    assert re.search(r"^  (cold|NOT COLD|NOT STORAGE) ", done.stdout, re.M) and " 405B (5.17 TiB) " in done.stdout, done.stdout
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', out.read_text(), re.S).group(1))
    assert data["answer"] == first and len(data["patterns"][0]["runs"]) >= 1, data["answer"]
    assert {r["accelerator"] for r in data["workloads"]} == {"A100", "H100", "V100"}, data["workloads"]
    assert 0 < data["written_bytes"] < 2e9 and 0 < data["most_bytes"] <= data["written_bytes"], data
    assert all(r["low_95"] <= r["accelerators"] for r in data["workloads"])
    assert not list(folder.iterdir())


def answer_of(done):
    """The headline, which may take several lines."""
    return " ".join(done.stdout.split("\n  storage ")[0].split())


def emulated(tmp):
    """The headline of a store of this program says so; no line is longer than a terminal has columns."""
    done = survey(tmp, "--only", "dlrm", "--time", 5, *memory(bandwidth=400e6))
    assert re.match(r"emulated store: DLRM (at least )?\d.* B200$", answer_of(done)), done.stdout
    assert re.search(r"^  DLRM +MI355 .* [KMG]iB/s at \d+ % ", done.stdout, re.M), done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100, done.stdout
    done = survey(tmp, "--only", "dlrm_custom", "--time", 5, *memory(bandwidth=400e6))
    assert re.search(r"accelerators of an unnamed kind$", answer_of(done)), done.stdout


def below(tmp):
    """A loop device whose file is in the page cache of this host, or in memory: no byte came from a disk."""
    def once(backing, direct, source):
        with LoopDevice(600, backing=backing, direct=direct) as d:
            said = json.loads(survey(d.mount, "--only", "unet3d_h100", "--time", 6, "--json").stdout)
            assert said["source"] == source and said["cold"] == (source == "storage"), said
            if source != "storage":
                assert said["memory_below_percent"] > 50 and not any(p["cold"] for p in said["patterns"]), said
                assert re.match(r"NOT the storage, memory below the file system served \d+ %: 3D-UNet \d", said["answer"]), said["answer"]
                assert d.name in said["below"], said["below"]
        return True

    try:
        once("/dev/shm", False, "device_in_memory")
        if not os.path.exists(f"/sys/dev/block/{os.major(os.stat(tmp).st_dev)}:{os.minor(os.stat(tmp).st_dev)}"):
            return left_out("the folder for temporary files is on no block device")
        once(tmp, False, "cache_below")
    except Unavailable as e:
        left_out(str(e))


def full(tmp):
    """The storage is filled while it is surveyed: an error, with the bytes; what was measured is told."""
    try:
        with LoopDevice(600, backing="/dev/shm") as d:
            mount = pathlib.Path(d.mount)
            process = subprocess.Popen([STOKER, "survey", mount, "-q", "--only", "h100", "--time", "6"],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            # the second pattern begins when the first one is measured
            assert wait_for(lambda: (mount / "stoker_survey/1/train").exists() or process.poll() is not None, 60)
            subprocess.run(["dd", "if=/dev/zero", f"of={mount}/fill", "bs=1M"], capture_output=True, check=False)
            out, said = process.communicate(timeout=100)
            assert process.returncode == 1 and re.search(r"its files need \d.* MiB, and .* are free", said), (process.returncode, said, out)
            assert "not measured" in out and "3D-UNet" in out, out
            assert os.listdir(mount) == ["fill"] or set(os.listdir(mount)) == {"fill", "lost+found"}, os.listdir(mount)
    except Unavailable as e:
        left_out(str(e))


def main():
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as tmp:
        if SANITIZED:
            left_out("stores of known law: the program is slower than they are under a sanitizer")
        for case in (refused, left, page, emulated, below, full, *[laws] * (not SANITIZED)):
            folder = pathlib.Path(tmp, case.__name__)
            folder.mkdir()
            case(folder)


if __name__ == "__main__":
    main()

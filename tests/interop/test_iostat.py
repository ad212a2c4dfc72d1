"""iostat.json, as DLIO's profiler leaves it: the same names in the same order and of the same types as sysstat's own
iostat writes at the same time, figures that agree with its, and readable as DLIO's postprocessor reads it. Devices as
asked for; no file without profiling."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import STOKER, skip, stoker, tiny  # noqa: E402


def shape(v):
    """Names in their order, with the types of the values."""
    if isinstance(v, dict):
        return [(k, shape(x)) for k, x in v.items()]
    if isinstance(v, list):
        return [shape(v[0])] if v else []
    return "number" if isinstance(v, (int, float)) else type(v).__name__


def statistics(file):
    with open(file) as f:
        return json.load(f)["sysstat"]["hosts"][0]["statistics"]


def names(sample):
    return [d["disk_device"] for d in sample["disk"]]


def as_postprocessor(file):
    """The columns and conversions of DLIO's postprocessor."""
    import pandas
    rows = [[s["timestamp"], d["disk_device"], *[d[k] for k in ("r/s", "w/s", "rMB/s", "wMB/s", "r_await", "w_await",
                                                                "aqu-sz")]] for s in statistics(file) for d in s["disk"]]
    cpu = [[s["timestamp"], c["user"] + c["nice"], c["system"], c["iowait"], c["steal"], c["idle"]]
           for s in statistics(file) for c in [s["avg-cpu"]]]
    for table in (rows, cpu):
        frame = pandas.DataFrame(table)
        frame[0] = pandas.to_datetime(frame[0])
        assert len(frame) > 0 and frame.isna().sum().sum() == 0
        assert (frame.select_dtypes("number") >= 0).all().all()
    for c in cpu:
        assert abs(sum(c[1:]) - 100) < 0.1, c


def compare(tmp):
    real, out = f"{tmp}/real.json", f"{tmp}/out"
    with open(real, "w") as f:
        beside = subprocess.Popen(["iostat", "-mdxtcy", "-o", "JSON", "1"], stdout=f, stderr=subprocess.STDOUT,
                                  env={**os.environ, "LC_ALL": "C"})
        stoker("run", *tiny(f"{tmp}/data", out, workflow__profiling="true", train__computation_time=0.55))
        beside.send_signal(signal.SIGINT)
        beside.wait(timeout=10)
    with open(real) as f:
        theirs = json.load(f)
    with open(f"{out}/iostat.json") as f:
        ours = json.load(f)
    assert ours.pop("program").startswith("stoker "), "the mark of this program, beside what readers look up"
    assert shape(theirs) == shape(ours), f"{shape(theirs)}\n{shape(ours)}"
    theirs, ours = theirs["sysstat"]["hosts"][0], ours["sysstat"]["hosts"][0]
    for key in ("nodename", "sysname", "release", "machine", "number-of-cpus", "date"):
        assert theirs[key] == ours[key], (key, theirs[key], ours[key])
    assert set(names(theirs["statistics"][-1])) == set(names(ours["statistics"][-1]))
    as_postprocessor(f"{out}/iostat.json")


def devices(tmp):
    with open("/proc/partitions") as f:
        disks = [line.split()[3] for line in f.readlines()[2:]]
    if not disks:
        return
    one = disks[0]
    done = stoker("run", *tiny(f"{tmp}/data", f"{tmp}/one", workflow__profiling="true", train__computation_time=0.3,
                               workflow__generate_data="false", profiling__iostat_devices=f"[/dev/{one},nosuch]"))
    got = statistics(f"{tmp}/one/iostat.json")
    assert got and all(names(s) == [one] for s in got), [names(s) for s in got]
    log = subprocess.run(["grep", "-rl", "nosuch", f"{tmp}/one"], capture_output=True, text=True).stdout
    assert "nosuch" in done.stderr or log, "a device that is not there is told of"


def nothing(tmp):
    for name, keys in (("off", {}), ("none", dict(workflow__profiling="true", profiling__profiler="none")),
                       ("other", dict(workflow__profiling="true", profiling__profiler="darshan"))):
        stoker("run", *tiny(f"{tmp}/data", f"{tmp}/{name}", workflow__generate_data="false", **keys))
        assert not [f for f in os.listdir(f"{tmp}/{name}") if f.startswith("iostat")], name
        with open(f"{tmp}/{name}/result.json") as f:
            told = [w for w in json.load(f)["warnings"] if "profiler" in w]
        assert bool(told) == (name == "other"), told


def interrupted(tmp):
    argv = [STOKER, "run", *map(str, tiny(f"{tmp}/data", f"{tmp}/cut", workflow__profiling="true",
                                          workflow__generate_data="false", train__computation_time=30))]
    p = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        p.wait(timeout=1.3)
    except subprocess.TimeoutExpired:
        p.send_signal(signal.SIGINT)
    p.wait(timeout=20)
    assert statistics(f"{tmp}/cut/iostat.json"), "an interrupted run leaves a whole file"


def main():
    with tempfile.TemporaryDirectory() as tmp:
        stoker("run", *tiny(f"{tmp}/data", f"{tmp}/gen", workflow__train="false"))
        nothing(tmp)
        devices(tmp)
        interrupted(tmp)
        if not shutil.which("iostat"):
            skip("iostat (sysstat) is not installed to compare with")
        compare(tmp)
    return 0


if __name__ == "__main__":
    sys.exit(main())

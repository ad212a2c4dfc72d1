"""False alarms: runs as a careful user makes them, on a quiet machine, over the file systems of a real disk. Every WARN or
FAIL of a verdict, every claim that something else than the storage was measured and every cause that cannot be is
counted.

    honest.py up FOLDER                        file systems and datasets (root; FOLDER lies on a disk)
    honest.py run FOLDER [--seed S] [--first N] [--count N] [--findings FILE]
    honest.py down FOLDER

ext4 (or whatever FOLDER is on), xfs and btrfs on loop devices whose files lie in FOLDER (--direct-io, so that there is
no cache below), and an overlay. Runs are cold, as the documentation says: storage.page_cache=cold_epochs, cold with one
epoch, or O_DIRECT. Seven in ten have so much computation that the storage keeps up, so that AU and cause are known.
"""
import argparse
import json
import os
import pathlib
import random
import shlex
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import STOKER, load  # noqa: E402

FILE_SYSTEMS = ("disk", "xfs", "btrfs", "overlay")
IMAGE_MIB = 1600
# format: samples of a file, files, bytes of a sample
FORMATS = {"npz": (1, 480, 200000), "npy": (1, 480, 200000), "hdf5": (8, 60, 200000), "tfrecord": (16, 30, 200000),
           "png": (1, 480, 120000), "jpeg": (1, 480, 120000), "csv": (1, 240, 30000), "indexed_binary": (24, 20, 200000),
           "mmap_indexed_binary": (24, 20, 200000)}
LOADERS = {"pytorch": tuple(FORMATS), "tensorflow": ("tfrecord", "npz", "hdf5", "png", "jpeg", "npy"),
           "dali": ("npy", "npz", "png", "jpeg", "hdf5"), "native_dali": ("npy", "tfrecord", "jpeg", "png")}
# what may limit a run whose storage does not keep up; the rest would blame something else
OF_STORAGE = {"latency", "stream_bandwidth", "bandwidth", "storage", "metadata", "workers", "prefetch", "queue", "requests",
              "request_rate", "opens", "iops", "unknown", "not_known", "start_up", "unsteady", "unsteady_storage"}
SLOW_DECODING = {"png", "jpeg", "csv"}


def sh(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def dataset_keys(fmt):
    per_file, files, size = FORMATS[fmt]
    return {"dataset.format": fmt, "dataset.num_files_train": files, "dataset.num_samples_per_file": per_file,
            "dataset.record_length_bytes": size, "dataset.num_files_eval": 0, "dataset.num_subfolders_train": 4,
            "workflow.evaluation": "false"}


def words(keys):
    return [f"{k}={v}" for k, v in keys.items()]


def up(folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "disk").mkdir()
    for fs in ("xfs", "btrfs"):
        image, mount = folder / f"{fs}.img", folder / fs
        sh("fallocate", "-l", f"{IMAGE_MIB}M", str(image))
        device = sh("losetup", "-f", "--show", "--direct-io=on", str(image))
        sh(f"mkfs.{fs}", "-q", "-f", device)
        mount.mkdir()
        sh("mount", device, str(mount))
    for part in ("lower", "upper", "work", "overlay"):
        (folder / part).mkdir()
    for fs in FILE_SYSTEMS:
        for fmt in FORMATS:
            where = folder / ("lower" if fs == "overlay" else fs) / fmt
            subprocess.run([STOKER, "generate", "default", "-q", *words(dataset_keys(fmt)), f"dataset.data_folder={where}"],
                           check=True, stdout=subprocess.DEVNULL)
    sh("mount", "-t", "overlay", "overlay", "-o",
       f"lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work", str(folder / "overlay"))
    sh("sync")


def down(folder):
    for mount in ("overlay", "xfs", "btrfs"):
        subprocess.run(["umount", str(folder / mount)], capture_output=True)
    for fs in ("xfs", "btrfs"):
        for device in sh("losetup", "-j", str(folder / f"{fs}.img"), "-O", "NAME", "-n").split():
            sh("losetup", "-d", device)
    sh("rm", "-rf", "--one-file-system", str(folder))


def cases(seed):
    """Without end; each with what is known of it."""
    random_of = random.Random(seed)
    while True:
        fs, loader = random_of.choice(FILE_SYSTEMS), random_of.choice(("pytorch", "pytorch", "tensorflow", "dali", "native_dali"))
        fmt = random_of.choice(LOADERS[loader])
        ranks, bound = random_of.choice((1, 1, 2, 3, 4)), random_of.random() < 0.7
        per_file, files, size = FORMATS[fmt]
        if not bound:
            ranks = min(ranks, 2)
        batch = 8 if not bound else random_of.choice((2, 3, 4)) if ranks < 3 else 2
        steps = files * per_file // (batch * ranks)
        workers = random_of.choice((1, 2, 4)) if bound else random_of.choice((1, 2))
        # half of what the disk of a small machine delivers, and what two processors decode
        rate = random_of.uniform(15e6, 60e6) if fmt not in SLOW_DECODING else random_of.uniform(5e6, 12e6)
        # a step of less than some ms is not what timers of a virtual machine are made for
        compute = batch * ranks * size / rate if bound else random_of.choice((0.004, 0.005, 0.006))
        cold = random_of.choice(("cold_epochs", "cold_epochs", "cold", "direct"))
        if fmt == "mmap_indexed_binary" and cold == "direct":
            cold = "cold"
        epochs = 1 if cold == "cold" else 2
        if bound and steps * epochs * compute > 4:
            epochs = 1
        keys = dataset_keys(fmt)
        keys |= {"reader.data_loader": loader, "reader.batch_size": batch, "reader.read_threads": workers,
                 "train.computation_time": round(compute, 5), "train.epochs": epochs,
                 "storage.store" if cold == "direct" else "storage.page_cache": cold}
        yield {"fs": fs, "fmt": fmt, "ranks": ranks, "bound": bound, "keys": keys, "direct": cold == "direct"}


def busy_s():
    """Processor seconds of all programs, and the seconds that there were."""
    ticks = [int(x) for x in open("/proc/stat").readline().split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK"), sum(ticks) / os.sysconf("SC_CLK_TCK")


def disk_bytes(folder):
    """Read from the disk that the folder lies on, whoever did."""
    device = os.stat(folder).st_dev
    for line in open("/proc/diskstats"):
        f = line.split()
        if (int(f[0]), int(f[1])) == (os.major(device), os.minor(device)):
            return int(f[5]) * 512
    return 0


class Others:
    """What other programs did meanwhile: a share of the processors, and bytes read from the disk."""
    QUIET = 0.25

    def __init__(self, folder):
        self.folder, self.begin, self.children = folder, busy_s(), os.times()
        self.disk = disk_bytes(folder)

    def end(self, device_bytes):
        now, children = busy_s(), os.times()
        own = sum(children[2:4]) - sum(self.children[2:4]) + sum(children[:2]) - sum(self.children[:2])
        self.cpu = max(0, now[0] - self.begin[0] - own) / max(1e-3, now[1] - self.begin[1])
        self.read = disk_bytes(self.folder) - self.disk - device_bytes
        return self


def wait_for_quiet(folder, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        o = Others(folder)
        time.sleep(0.3)
        if o.end(0).cpu < Others.QUIET:
            return True
    return False


def alarms(case, result, others):
    """What is false: (verdict, sentence). What may be true of a machine with other users is left out: their reads of the
    same disk, and the rate of a disk that really varied."""
    out, doubtful = [], []
    on_disk = others.read > 1e6
    for v in result["verdicts"]:
        if v["level"] not in ("warn", "fail"):
            continue
        said = (f"{v['level'].upper()} {v['check']}", v["text"])
        if v["check"] == "ledger" and on_disk and "other programs" in v["text"]:
            doubtful.append(said)
        elif v["check"] == "steady" and not case["bound"]:
            doubtful.append(said)
        elif v["check"] == "whole-run" and not case["bound"]:
            doubtful.append(said)
        elif v["check"] == "compute" and not case["bound"] and case["fmt"] in SLOW_DECODING:
            doubtful.append(said)  # two processors that decode all the time do keep threads waiting
        else:
            out.append(said)
    measured = result.get("measured", {})
    if measured.get("storage") == "no":
        out.append(("measured", measured.get("text", "")))
    limit = result.get("limit")
    if limit:
        au, cause = result["training"]["whole_run_au_percent"], limit["cause"]
        allowed = OF_STORAGE | ({"decode"} if case["fmt"] in SLOW_DECODING | {"npz"} else set()) | {"transport"}
        if (au >= 95 and cause != "compute") or (au < 95 and cause not in allowed | {"barrier", "compute"}):
            out.append((f"limit {cause}", limit["text"]))
        elif au < 95 and cause in ("barrier", "compute"):
            doubtful.append((f"limit {cause}", limit["text"]))
    return out, doubtful


def run_case(folder, case):
    """None: the program refuses such a run."""
    with tempfile.TemporaryDirectory(dir=folder) as out:
        argv = [STOKER, "run", "default", "-q", "-n", str(case["ranks"]), "-o", out, *words(case["keys"]),
                f"dataset.data_folder={folder / case['fs'] / case['fmt']}"]
        others = Others(folder)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=90)
        if done.returncode == 2:
            return None
        command = shlex.join(argv).replace(out, "OUT")
        if done.returncode != 0:
            return command, {}, [("error", done.stderr.strip())], [], others.end(0)
        result = load(out)
        fetched = sum(e["process_io"]["device_read_bytes"] for e in result["training"]["epochs"])
        others.end(fetched)
        return command, result, *alarms(case, result, others), others


def run(folder, seed, first, count, findings, patience):
    made = false = spoiled = 0
    version = sh(STOKER, "--version")
    for case in cases(seed):
        if made == first + count:
            break
        if made < first:
            # whether the program takes it is found out by the check of its configuration alone
            argv = [STOKER, "run", "default", "-q", "--cfg", "job", *words(case["keys"])]
            made += subprocess.run(argv, capture_output=True).returncode != 2
            continue
        if not wait_for_quiet(folder, patience):
            print(f"{made + 1:3} the machine is not quiet: ended", flush=True)
            break
        one = run_case(folder, case)
        # a run that was disturbed is no honest one
        for _ in range(2):
            if one and one[4].cpu > Others.QUIET and wait_for_quiet(folder, patience):
                one = run_case(folder, case)
        if one is None:
            continue
        made += 1
        command, result, wrong, doubtful, others = one
        disturbed = others.cpu > Others.QUIET
        if disturbed:
            wrong, doubtful = [], [(f"disturbed: {w}", t) for w, t in wrong] + doubtful
            spoiled += 1
        false += bool(wrong)
        training = result.get("training", {})
        print(f"{made:3} {case['fs']:8}{case['fmt']:20}{case['keys']['reader.data_loader']:12}{case['ranks']} ranks, "
              f"{'compute' if case['bound'] else 'storage'}: AU {training.get('whole_run_au_percent', 0):5.1f} "
              f"{result.get('limit', {}).get('cause', '-'):18}{'FALSE' if wrong else 'disturbed' if disturbed else ''} "
              f"(others: {100 * others.cpu:.0f} % of the processors, {others.read / 1e6:.0f} MB)", flush=True)
        for what, text in wrong + [(f"doubtful {w}", t) for w, t in doubtful]:
            print(f"      {what}: {text}", flush=True)
        if findings and wrong:
            with open(findings, "a") as f:
                for what, text in wrong:
                    f.write(json.dumps({"version": version, "seed": seed, "run": made, "what": what, "said": text,
                                        "command": command}) + "\n")
    print(f"{version}: {false} of {made - first - spoiled} honest runs with a false alarm; {spoiled} more were disturbed "
          "by other programs")
    return false


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=("up", "run", "down"))
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--count", type=int, default=100)
    p.add_argument("--findings")
    p.add_argument("--patience", type=float, default=60, help="seconds to wait for a quiet machine before a run")
    a = p.parse_args()
    folder = a.folder.resolve()
    if a.what == "up":
        up(folder)
    elif a.what == "down":
        down(folder)
    else:
        return run(folder, a.seed, a.first, a.count, a.findings, a.patience) > 2 * a.count / 100
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The ledger of bytes against the truth: what a loop device says of itself, and the extents of the files. The device's
line must be right within 1 %, whatever way the bytes took: O_DIRECT, mappings, io_uring, read-ahead, a memory cgroup
too small for the dataset, a warm page cache; a partition and its disk count once. Every line that differs from the one
above it must say why."""
import os
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from loop_device import LoopDevice, Unavailable, join  # noqa: E402
from told import told  # noqa: E402
from util import STOKER, left_out, load, skip, stoker, tiny  # noqa: E402

MIB = 1 << 20
FILES, SIDE = 24, 2 * MIB
RATE = 300 * MIB
MEMORY = 40 * MIB  # less than the files, more than the program
failures = []
PLANTED = {
    "cold": "two passes over 96 MiB, evicted before each",
    "direct": "two passes over 96 MiB with O_DIRECT",
    "mapped": "two passes over 96 MiB through mappings, evicted before each",
    "io_uring": "two passes over 96 MiB with io_uring, evicted before each",
    "read-ahead": "24 steps with a few samples of files of 2 MiB, read-ahead of 512 KiB",
    "read-ahead mapped": "24 such steps through mappings",
    "small memory": "two passes over 96 MiB in a control group of 40 MiB",
    "warm": "two passes over 96 MiB that were read before the run",
    "partition": "a file system on the first of two partitions, O_DIRECT",
    "partition beside": "a file system on the first of two partitions, while another program reads the second",
    "backing file": "a loop device over a file on another disk, O_DIRECT",
}


def check(name, ok, text):
    print(f"  {'ok  ' if ok else 'FAIL'} {text}", flush=True)
    if not ok:
        failures.append(f"{name}: {text}")


def near(a, b, share=0.01):
    return abs(a - b) <= share * max(a, b)


def extents(folder):
    """Bytes that the files' blocks have on the device."""
    return sum(os.stat(f"{folder}/{f}").st_blocks * 512 for f in os.listdir(folder))


def keys(**more):
    base = dict(files=FILES, fmt="npy", dataset__record_length_bytes=SIDE, reader__read_threads=2, train__epochs=2,
                train__computation_time=0, reader__access="native", reader__decode="none")
    base.update(more)
    return base


def run(device, name, tmp, groups=(), during=None, data="data", **more):
    """Runs, and returns lines of the ledger by key, the whole result, and what the device delivered meanwhile."""
    out = f"{tmp}/{name.replace(' ', '-')}"
    argv = [STOKER, "run", *map(str, tiny(f"{device.mount}/{data}", out, workflow__generate_data="false",
                                             dataset__verify_samples=0, **keys(**more)))]
    before = device.delivered()
    beside = threading.Thread(target=during) if during else None
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         preexec_fn=join([g for g in groups if g]))
    if beside:
        beside.start()
    _, err = p.communicate(timeout=100)
    if beside:
        beside.join()
    assert p.returncode == 0, err
    truth = device.delivered() - before
    result = load(out)
    lines = {l["key"]: l for l in result["ledger"]}
    print(f"{name}: device {lines['device']['bytes'] / MIB:.2f} MiB, truth {truth / MIB:.2f} MiB", flush=True)
    said = [f"{key} {l['bytes'] / MIB:.2f} MiB: {l['state']}, {l['why']}" for key, l in lines.items()
            if l.get("state", "agrees") != "agrees"]
    print("".join(f"     {line}\n" for line in said), end="")
    told("Bytes", PLANTED[name],
         f"device {lines['device']['bytes'] / MIB:.2f} MiB, where its own counter says {truth / MIB:.2f} MiB; " + ("; ".join(said) or "all lines agree"))
    for key, l in lines.items():
        far = "compared_with" in l and not near(l["bytes"], lines[l["compared_with"]]["bytes"]) and \
            abs(l["bytes"] - lines[l["compared_with"]]["bytes"]) > 65536
        check(name, not far or l["state"] != "agrees" and l["why"], f"{key} agrees, or says why not")
    return lines, result, truth


def state(lines, key):
    return lines[key].get("state")


def whole_passes(device, tmp, limits):
    size = extents(f"{device.mount}/data/train")
    cold = dict(storage__page_cache="cold_epochs")
    for name, more in (("cold", cold), ("direct", dict(storage__store="direct")),
                       ("mapped", dict(storage__store="mmap", **cold)),
                       ("io_uring", dict(storage__store="io_uring", **cold))):
        if name == "io_uring" and "io_uring" not in stoker("show", "stores", status=None).stdout:
            continue
        device.read_ahead_kib(0 if name in ("direct", "mapped") else 128)
        lines, result, truth = run(device, name, tmp, limits, **more)
        got = lines["device"]["bytes"]
        check(name, near(got, truth), f"device within 1 % of its own counter ({100 * got / truth - 100:+.2f} %)")
        check(name, near(got, 2 * size), f"and of two passes over the extents ({50 * got / size - 100:+.2f} %)")
        check(name, near(lines["process_fetched"]["bytes"], truth), "the process is charged the same")
        check(name, lines["device"]["place"] == device.name, "the device is named")
        epochs = [e["host_io"]["device_read_bytes"] for e in result["training"]["epochs"]]
        check(name, all(near(e, size) for e in epochs), "each epoch has its own")
        if name == "mapped":
            check(name, state(lines, "process_calls") == "explained" and lines["process_calls"]["why_fact"]["reason"] == "ledger.faults",
                  "no read calls: explained by mappings")


def read_ahead(device, tmp, limits):
    # a few samples of large files: what the kernel brings in around them was not asked for
    device.read_ahead_kib(512)
    shape = dict(fmt="hdf5", dataset__num_samples_per_file=64, dataset__record_length_bytes=32768)
    stoker("run", *tiny(f"{device.mount}/many", f"{tmp}/gen-many", **keys(workflow__train="false", **shape)))
    few = dict(shape, reader__sample_shuffle="seed", train__total_training_steps=24, train__epochs=1)
    for name, store in (("read-ahead", "posix"), ("read-ahead mapped", "mmap")):
        device.cold()
        lines, _, truth = run(device, name, tmp, limits, data="many", storage__page_cache="cold",
                              storage__store=store, **few)
        check(name, near(lines["device"]["bytes"], truth), "device within 1 % of its own counter")
        fetched = lines["process_fetched"]
        check(name, fetched["percent"] > 101 and fetched["state"] == "explained" and fetched["why_fact"]["reason"] == "ledger.read_ahead",
              f"more than was asked ({fetched['percent']:.0f} %): explained by read-ahead")


def small_memory(device, tmp, limits):
    group = device.group("memory", memory__limit_in_bytes=MEMORY)
    if not group:
        left_out("small memory: there is no memory cgroup (version 1)")
        return
    device.read_ahead_kib(128)
    device.cold()
    size = extents(f"{device.mount}/data/train")
    lines, result, truth = run(device, "small memory", tmp, [*limits, group])
    got = lines["device"]["bytes"]
    check("small memory", near(got, truth), f"device within 1 % of its own counter ({100 * got / truth - 100:+.2f} %)")
    epochs = [e["host_io"]["device_read_bytes"] for e in result["training"]["epochs"]]
    # in random order some pages of the pass before are still there
    check("small memory", epochs[1] > 0.3 * size, f"the second pass is cold too ({100 * epochs[1] / size:.0f} %)")
    check("small memory", state(lines, "process_fetched") != "flagged", "what was cached explains the rest")


def warm(device, tmp, limits):
    path = f"{device.mount}/data/train"
    for name in os.listdir(path):
        with open(f"{path}/{name}", "rb") as f:
            f.read()
    lines, result, truth = run(device, "warm", tmp, limits)
    held = result["training"]["epochs"][0]["page_cache"]["cached_at_start_bytes"]
    if held < 0.99 * extents(path):
        print(f"  the page cache lost {1 - held / extents(path):.1%} of the files before the run: only the truth counts")
    check("warm", abs(lines["device"]["bytes"] - truth) <= 0.01 * 2 * extents(path), "device as its own counter")
    fetched = lines["process_fetched"]
    check("warm", fetched["state"] == "explained" and fetched["why_fact"]["reason"].startswith("ledger.cache_"), "explained by the page cache")


def partition(tmp):
    with LoopDevice(160, partitions=(100, 40)) as device:
        stoker("run", *tiny(f"{device.mount}/data", f"{tmp}/gen-p", **keys(workflow__train="false")))
        size = extents(f"{device.mount}/data/train")
        lines, result, truth = run(device, "partition", tmp, storage__store="direct")
        got = lines["device"]["bytes"]
        check("partition", near(got, truth) and near(got, 2 * size), "the disk's bytes, once")
        path = result["storage_path"]
        check("partition", path["devices"] == [device.name] and path["partitions"] == [device.name + "p1"],
              f"{path['devices']} and {path['partitions']} are told apart")

        def other():
            time.sleep(0.4)  # the middle of the first epoch
            subprocess.run(["dd", f"if={device.partition(2)}", "of=/dev/null", "bs=1M", "iflag=direct"],
                           check=True, capture_output=True)

        lines, _, truth = run(device, "partition beside", tmp, during=other, storage__store="direct",
                              train__computation_time=0.1)
        check("partition beside", near(lines["device"]["bytes"], truth), "the disk's bytes, with the other partition's")
        line = lines["device"]
        check("partition beside", line["state"] == "explained" and line["why_fact"]["figures"].get("parts"),
              "and it is explained by others: direct reads are known to the byte")


def backing_file(tmp):
    with LoopDevice(100, backing=tmp, direct=False) as device:
        stoker("run", *tiny(f"{device.mount}/data", f"{tmp}/gen-b", **keys(workflow__train="false")))
        lines, result, truth = run(device, "backing file", tmp, storage__store="direct")
        check("backing file", near(lines["device"]["bytes"], truth), "the loop device's own bytes")
        below = result["storage_path"]["disks_below"]
        check("backing file", device.name not in below, f"the disks below are others: {below}")
        if below:
            check("backing file", "disks_below" in lines, "and have a line")


def one_disk(tmp):
    with LoopDevice(200) as device:
        limit = device.group("blkio", blkio__throttle__read_bps_device=f"{device.number()} {RATE}")
        stoker("run", *tiny(f"{device.mount}/data", f"{tmp}/gen", **keys(workflow__train="false")))
        whole_passes(device, tmp, [limit])
        read_ahead(device, tmp, [limit])
        small_memory(device, tmp, [limit])
        warm(device, tmp, [limit])


def main():
    with tempfile.TemporaryDirectory() as tmp:
        try:
            one_disk(tmp)
        except Unavailable as e:
            skip(str(e))
        for part in (partition, backing_file):
            try:
                part(tmp)
            except Unavailable as e:
                left_out(f"{part.__name__}: {e}")
    for f in failures:
        print("failed:", f)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

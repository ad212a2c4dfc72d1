"""The two experiments that the examples ship, on stores whose truth is known: the size of requests from which the bandwidth is
reached is named right within one step, and so is whether compression pays."""
# beside one
# takes 210 s
# may take 900 s
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from loop_device import LoopDevice, Unavailable, join  # noqa: E402
from util import SOURCE, STOKER, attempts, left_out, stoker  # noqa: E402

EXAMPLES = SOURCE / "examples"
SIZE = {"KiB": 1 << 10, "MiB": 1 << 20}


def bytes_of(text):
    return int(text[:-3]) * SIZE[text[-3:]]


def study(folder, design, overrides, enter=None, scratch=None):
    """The findings of a study of these rows, and its table."""
    folder.mkdir()
    (folder / "d.csv").write_text("".join(design))
    done = subprocess.run([os.path.abspath(STOKER), "study", "run", "d.csv", "--config-dir", EXAMPLES, "--scratch", scratch or "scratch", "-q", *overrides],
                          cwd=folder, capture_output=True, text=True, timeout=600, preexec_fn=enter)
    assert done.returncode == 0 and " 0 failed" in done.stdout, (done.stdout[-2000:], done.stderr[-2000:])
    return json.loads(stoker("report", folder / "results", "-o", folder / "r.html", "--json").stdout)


def rows(name, most=None):
    lines = (EXAMPLES / name).read_text().splitlines(keepends=True)
    assert len(lines) > 9
    return [line for line in lines if line[0] != "#" and (not most or "transfer_size" not in line or bytes_of(re.search(r"=(\d+[KM]iB)", line)[1]) <= most)]


def reached(report):
    """The size that the sentence names, and the sentence."""
    said = [f for f in report["findings"] if "throughput" in f and " its highest (" in f and "reader.transfer_size" in f]
    assert len(said) == 1, report["findings"]
    m = re.search(r"(?:from|with) reader\.transfer_size=(\d+[KM]iB)", said[0]) or re.search(r"reader\.transfer_size, (\d+[KM]iB) to", said[0])
    return bytes_of(m[1]), said[0]


def first_reaching(bandwidth, iops):
    """The smallest power of two whose requests move 0.9 of the bandwidth."""
    size = 4096
    while size * iops < 0.9 * bandwidth:
        size *= 2
    return size


# 256 MiB in files of 4 MiB, so that the largest requests are small beside an epoch
SHRUNK = ["dataset.num_files_train=64", "dataset.num_samples_per_file=64", "dataset.record_length_bytes=65536", "train.computation_time=0.001"]


def access_sizes(tmp):
    design = rows("access-size.csv", 1 << 20)
    assert len(design) == 1 + 9
    for bandwidth, iops in ((400e6, 20000), (100e6, 1600)):
        truth = first_reaching(bandwidth, iops)
        # the second store is slower: less of it
        files = 64 if bandwidth > 200e6 else 16

        def once(n):
            report = study(tmp / f"access-{iops}-{n}", design, [*SHRUNK, f"dataset.num_files_train={files}", "storage.store=throttle+memory",
                                                                f"storage.throttle.bandwidth={bandwidth}", f"storage.throttle.iops={iops}"])
            size, said = reached(report)
            print(f"bandwidth {bandwidth / 1e6:.0f} MB/s, {iops} requests/s: {truth >> 10} KiB is right; {said}")
            return truth / 2 <= size <= truth * 2, said

        right, said = attempts(f"access size, {iops} requests/s", once)
        assert right, (truth, said)


def on_a_disk(tmp):
    """A loop device that the kernel holds to a rate and to a number of requests."""
    bandwidth, iops = 100 << 20, 800
    truth = first_reaching(bandwidth, iops)
    try:
        with LoopDevice(256) as d:
            group = d.group("blkio", blkio__throttle__read_bps_device=f"{d.number()} {bandwidth}", blkio__throttle__read_iops_device=f"{d.number()} {iops}")
            if not group:
                raise Unavailable("there is no control group for block devices")

            def once(n):
                report = study(tmp / f"disk-{n}", [line for line in rows("access-size.csv", 1 << 20) if "=4KiB" not in line and "=8KiB" not in line],
                               [*SHRUNK, "dataset.num_files_train=16", "train.computation_time=0.02"], join([group]), d.mount)
                size, said = reached(report)
                print(f"a disk of {bandwidth >> 20} MiB/s and {iops} requests/s: {truth >> 10} KiB is right; {said}")
                return truth / 2 <= size <= truth * 2, said

            right, said = attempts("access size of a disk", once)
            assert right, (truth, said)
    except Unavailable as e:
        left_out(f"a disk held to a rate: {e}")


def compression(tmp):
    """Text that gzip makes less than half as large: it pays where the store's bandwidth limits, and not where decoding does. Random
    arrays are not made smaller, so that nothing pays."""
    design = [line.replace("compression,3,2,", "compression,3,1,") for line in rows("compression.csv")]
    csv = [line for line in design if "format" not in line]
    arrays = [line for line in design if "npz" in line or line.startswith("model")]
    assert len(csv) == 1 + 2 and len(arrays) == 3, (csv, arrays)
    shrunk = ["dataset.num_files_train=64", "dataset.record_length_bytes=65536", "reader.read_threads=1", "train.computation_time=0.01"]
    for name, rows_, store, pays in (("slow", csv, ["storage.throttle.bandwidth=5e6"], True), ("fast", csv, [], False),
                                     ("random", arrays, ["storage.throttle.bandwidth=4e6"], False)):
        def once(n):
            report = study(tmp / f"{name}-{n}", rows_, [*shrunk, f"storage.store={'throttle+' if store else ''}memory", *store])
            said = [f for f in report["findings"] if "dataset.compression" in f and ("It rises" in f or "It falls" in f or "No difference" in f)]
            print(f"{name}: {said}")
            rises = any(re.search(r"It rises to [0-9.]+ % with (gzip|zip)", f) for f in said)
            return len(said) == 1 and rises == pays, report["findings"]

        right, said = attempts(f"compression, {name}", once)
        assert right, (name, said)


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        tmp = pathlib.Path(tmp)
        access_sizes(tmp)
        on_a_disk(tmp)
        compression(tmp)


main()

"""A slow host is named: of two hosts with two ranks each, the second one's copy of the dataset lies on a disk that is
held to a rate, so that both its ranks are late. Repeated when other work
hid it; it must be named in 3 of 4 attempts."""
import os
import pathlib
import shutil
import sys
import tempfile

from launchers import ENV, LIBRARIES, attempts, hosts, load, mpirun, need_hosts, need_mpi, on_hosts, run, skip, stoker, tiny
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "truth"))
from told import told  # noqa: E402
from loop_device import LoopDevice, Unavailable, join

need_mpi()
need_hosts()

# several files a batch, so that the two ranks' requests take turns and neither is always far ahead of the other
STEPS, BATCH, SIDE = 20, 4, 1 << 18
RATE = 14 << 20  # a step of both ranks is more than the kernel lets through in one of its slices of 0.1 s


def planted(device, tmp, library):
    """The result of a run whose second host reads from the device."""
    keys = dict(files=4 * STEPS * BATCH, fmt="npy", reader__batch_size=BATCH, dataset__record_length_bytes=SIDE,
                train__computation_time=0.005)
    shared = f"{tmp}/host"
    stoker("run", *tiny(f"{shared}/here", f"{tmp}/gen", workflow__train="false", **keys))
    shutil.copytree(f"{shared}/here", f"{device.mount}/data")
    os.symlink(f"{device.mount}/data", f"{shared}/node2")
    limit = device.group("blkio", blkio__throttle__read_bps_device=f"{device.number()} {RATE}")
    if not limit:
        skip("there is no blkio control group (version 1) to hold a disk to a rate")
    extra = ["-x", "STOKER_HOST_DATA"] if library == "openmpi" else []

    def once(attempt):
        device.cold()
        out = f"{tmp}/out-{attempt}"
        run([*mpirun(library, 4, *on_hosts(library, 2, 2), *extra),
             *tiny(f"{shared}/here", out, workflow__generate_data="false", **keys)],
            env=dict(ENV, STOKER_HOST_DATA=shared), preexec_fn=join([limit]))
        r = load(out)
        print(r["limit"]["text"], flush=True)
        return r["limit"]["cause"] == "slow_host", r

    return attempts("slow host", once)


with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
    os.chmod(tmp, 0o755)
    try:
        with LoopDevice(160) as device, hosts(2):
            right, r = planted(device, tmp, LIBRARIES[0])
    except Unavailable as e:
        skip(str(e))
told("Limiting cause", f"two hosts with two ranks each, the copy of the second one on a disk held to {RATE >> 20} MiB/s",
     r["limit"]["text"])
assert right, r["limit"]
slow = next(f for f in r["limit"]["facts"] if f["reason"] == "limit.slow_host")
assert slow["texts"] == {"host": "node2", "part": "data"} and slow["figures"]["ranks"] == 2, r["limit"]
assert r["training"]["stragglers"]["slowest_host"]["host"] == "node2", r["training"]["stragglers"]

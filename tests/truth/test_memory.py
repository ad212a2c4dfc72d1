"""Too little memory is named: files that are read many times in an epoch, by a program whose control group cannot
hold them, so that the device delivers them again and again. With room for them the same run is not said to lack any."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import result_facts  # noqa: E402
from loop_device import LoopDevice, Unavailable, join, memory_group  # noqa: E402
from told import told  # noqa: E402
from util import SANITIZED, STOKER, load, skip, stoker, tiny  # noqa: E402

MIB = 1 << 20
FILES, EACH, SIDE = 10, 8, MIB // 2  # NumPy reads all of an .npz file for each sample in it
MEMORY = 24 * MIB                    # less than the files, more than the program
RATE = 150 * MIB
KEYS = dict(files=FILES, fmt="npz", dataset__num_samples_per_file=EACH, dataset__record_length_bytes=SIDE,
            reader__read_threads=2, reader__sample_shuffle="seed", train__computation_time=0.005)


def refaults(group):
    """Bytes of files that the kernel read again for the group, as it counts them itself."""
    with open(f"{group}/memory.stat") as f:
        stat = dict(line.split() for line in f)
    for name in ("total_workingset_refault_file", "workingset_refault_file"):
        if name in stat:
            return int(stat[name]) * os.sysconf("SC_PAGESIZE")
    return None


def run(device, out, groups):
    device.cold()
    argv = [STOKER, "run", *map(str, tiny(f"{device.mount}/data", out, workflow__generate_data="false",
                                             dataset__verify_samples=0, **KEYS))]
    before = device.delivered()
    p = subprocess.run(argv, capture_output=True, text=True, timeout=100, preexec_fn=join(groups))
    assert p.returncode == 0, p.stderr
    r = load(out)
    print(r["limit"]["text"], flush=True)
    return r, device.delivered() - before


def main():
    if SANITIZED:
        skip("a sanitizer's memory is not that of the program")
    with tempfile.TemporaryDirectory() as tmp:
        try:
            with LoopDevice(100) as device:
                group = memory_group(device, MEMORY)
                slow = device.group("blkio", blkio__throttle__read_bps_device=f"{device.number()} {RATE}")
                device.read_ahead_kib(128)
                stoker("run", *tiny(f"{device.mount}/data", f"{tmp}/gen", workflow__train="false", **KEYS))
                slow = [slow] if slow else []
                r, delivered = run(device, f"{tmp}/little", [*slow, group])
                again = refaults(group)
                enough, _ = run(device, f"{tmp}/enough", slow)
        except Unavailable as e:
            skip(str(e))
    size = FILES * EACH * SIDE
    told("Memory", f"a control group of {MEMORY // MIB} MiB reads {size // MIB} MiB of files many times",
         r["limit"]["text"])
    told("Memory", "the same files and device, memory for all of them", enough["limit"]["text"])
    assert delivered > 2 * size, f"nothing was planted: {delivered / MIB:.0f} MiB delivered of {size / MIB:.0f}"
    assert r["limit"]["cause"] == "memory", r["limit"]
    facts = r["limit"]["facts"]
    assert result_facts.find(facts, "limit.memory")["group"] == MEMORY, r["limit"]
    assert abs(result_facts.find(facts, "limit.memory_again")["files"] - 40 * MIB) < MIB / 2, r["limit"]
    pressure = r["training"]["epochs"][0]["memory_pressure"]
    assert pressure["control_group_limit_bytes"] == MEMORY, pressure
    if again is not None:
        print(f"refaults {pressure['refault_bytes'] / MIB:.1f} MiB, by the kernel {again / MIB:.1f} MiB")
        assert 0.8 * again <= pressure["refault_bytes"] <= again, (pressure, again)
    assert enough["limit"]["cause"] != "memory", enough["limit"]
    return 0


if __name__ == "__main__":
    sys.exit(main())

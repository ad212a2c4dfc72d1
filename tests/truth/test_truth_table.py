"""The truth table over a disk whose rate is known: ext4 on a loop device, its backing file in memory, held by the blkio
controller. The rows of the storage have the share of AU that the rate allows, those of memory all of it, and the bytes
of the device are those that the device itself counted."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from loop_device import LoopDevice, Unavailable, join  # noqa: E402
from reclaimed import Watch  # noqa: E402
from told import told  # noqa: E402
from util import SANITIZED, STOKER, attempts, left_out, skip, tiny  # noqa: E402

MB = 1000000
SIDE = 1000
SIZE = SIDE * SIDE + 128


def table(device, out, group, rate, share, **keys):
    """The demand is `share` of the rate."""
    arguments = tiny(f"{device.mount}/data", out, fmt="npy", files=60, dataset__record_length_bytes=SIDE * SIDE,
                     reader__batch_size=1, reader__read_threads=2, dataset__verify_samples=0,
                     train__computation_time=share and SIZE / rate / share, **keys)
    done = subprocess.run([STOKER, "run", "--truth-table", *map(str, arguments)], capture_output=True, text=True,
                          timeout=200, preexec_fn=join([group]))
    assert done.returncode == 0, done.stderr + done.stdout
    return {r["row"]: r for r in json.loads(pathlib.Path(out, "truth_table.json").read_text())["rows"]}, done.stdout


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as tmp:
        try:
            with LoopDevice(300) as device:
                group = device.group("blkio")
                if not group:
                    skip("no cgroup v1 blkio controller to hold a device to a rate")
                device.read_ahead_kib(0)
                for rate, demand in ((16 * MB, 2.0), (12 * MB, 3.0)):
                    def once(n, nominal=rate, demand=demand):
                        rate = nominal >> min(n, 1)
                        device.group("blkio", blkio__throttle__read_bps_device=f"{device.number()} {rate}")
                        before = device.delivered()
                        out = f"{tmp}/{rate}-{demand}-{n}"
                        with Watch(device.mount, lambda at=out: os.path.exists(f"{at}/warm-up") or (
                                os.path.exists(f"{at}/warm") and not os.path.exists(f"{at}/o_direct"))) as watch:
                            rows, text = table(device, out, group, rate, demand)
                        delivered = device.delivered() - before
                        # what is gone before it is read in the warm row is fetched at the rate of the disk
                        lost, whole = watch.taken_then, rows["warm"]["returned_bytes"]
                        print(f"{watch.taken / MB:.2f} MB taken back, {lost / MB:.2f} MB before and in the warm row", flush=True)
                        expected = {"cold": 100 / demand, "warm": (100 / (1 + demand * lost / whole), 100),
                                    "O_DIRECT": 100 / demand, "memory": 100}
                        right = True
                        for row, au in expected.items():
                            r = rows[row]
                            low, high = au if isinstance(au, tuple) else (au, au)
                            right = right and r["measured"] and low - 6 <= r["whole_au_percent"] <= high + 6
                            said = (f"whole-run AU {r['whole_au_percent']:.0f} %, {r.get('device_bytes', 0) / MB:.0f} MB from the "
                                    f"device, {r.get('page_cache_percent', 0):.0f} % from the page cache, limited by {r['cause']}")
                            print(f"{rate / MB:.0f} MB/s, demand {demand}: {row:9} expected {high:.0f} %: {said}", flush=True)
                            told("truth table", f"a disk of {nominal // MB} MB/s under {demand * 100:.0f} % of its demand, row {row}: "
                                 f"{high:.0f} % expected", said)
                        right = right and rows["warm"]["device_bytes"] - lost < 0.02 * rows["cold"]["device_bytes"]
                        # what was taken back before came again when the cache was filled
                        of_device = sum(rows[r]["device_bytes"] for r in ("cold", "warm", "O_DIRECT"))
                        print(f"rows {of_device / MB:.2f} MB, device {delivered / MB:.2f} MB", flush=True)
                        return right and 0.97 <= of_device / (delivered - watch.taken) and of_device / delivered <= 1.01, None

                    ok, _ = attempts(f"{rate} {demand}", once)
                    wrong += [] if ok else [(rate, demand)]
        except Unavailable as why:
            skip(str(why))
    if wrong and SANITIZED:
        left_out("under a sanitizer the figures are only shown")
        return 0
    print("wrong:", wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

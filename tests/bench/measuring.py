"""Figures, not a test: what counting and timing requests costs, run.measure=all against none, and without
and with the samples of the machine (run.sample_interval).

    python3 tests/bench/measuring.py build/stoker [ROUNDS]

One worker reads records of 4 KiB from files in memory, without computation. The runs alternate; a round is
a pair beside each other in time. What is printed is the ratio of the quickest tenth of the epochs of all
runs of either kind, the same round by round with its quarters, which say how much of it can be believed,
and the processor time of the whole program.
"""
import pathlib
import sys
import tempfile

from pairs import Pairs

LATENCY = 8e-6

CASES = {
    # about 100,000 requests a second, because the store takes that long for a read
    "throttled memory": dict(storage__store="throttle+memory", fmt="npy", reader__access="native",
                             workflow__generate_data="true", **{"++storage__throttle__latency": LATENCY}),
    "tmpfs, 64 KiB records": dict(fmt="npy", reader__access="native", dataset__record_length_bytes=65536),
    # as many as one worker can make
    "memory, native": dict(storage__store="memory", fmt="npy", reader__access="native", workflow__generate_data="true"),
    "tmpfs, native": dict(fmt="npy", reader__access="native"),
    "tmpfs, as NumPy": dict(fmt="npz"),
    "tmpfs, 8 records a file": dict(fmt="tfrecord", framework="tensorflow", reader__data_loader="tensorflow",
                                    dataset__num_samples_per_file=8),
}


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        pairs = Pairs(pathlib.Path(tmp), sys.argv)
        for name, keys in CASES.items():
            pairs.show(name, keys, dict(run__measure="none", run__sample_interval=0), {})


main()

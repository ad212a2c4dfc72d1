"""Figures, not a test: what keeping a trace costs while it is kept, run.trace=both against none.

    python3 tests/bench/trace.py build/stoker [ROUNDS]

As measuring.py. The files of the trace are written after training: that is no part of the throughput,
but of the processor time.
"""
import pathlib
import sys
import tempfile

from pairs import Pairs

CASES = {
    "tmpfs, native": dict(fmt="npy", reader__access="native"),
    "tmpfs, as NumPy": dict(fmt="npz"),
    "tmpfs, 115 KB as NumPy": dict(fmt="npz", dataset__record_length_bytes=114660),
}


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        pairs = Pairs(pathlib.Path(tmp), sys.argv)
        for name, keys in CASES.items():
            pairs.show(name, keys, dict(run__trace="none"), dict(run__trace="both", run__trace_events=1000000))


main()

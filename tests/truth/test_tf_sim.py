"""The reference simulation of tf.data: its random numbers are Philox's, each sample comes once over the ranks,
and the vectors that the C tests read are what it makes."""
# beside others
import io
import os
import pathlib
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import tf_sim  # noqa: E402
from util import SOURCE  # noqa: E402

# kat_vectors of Random123: philox4x32, 10 rounds
KNOWN = (
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((tf_sim.M32,) * 4, (tf_sim.M32,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
)


def main():
    for counter, key, out in KNOWN:
        assert tuple(tf_sim.philox(counter, key)) == out, counter
    seen = {}
    for c in tf_sim.cases():
        order = tf_sim.run(c)["order"]
        group = tuple((k, v) for k, v in sorted(c.items()) if k != "rank")
        seen.setdefault(group, []).extend(s for s, _ in order)
    for group, samples in seen.items():
        c = dict(group)
        assert sorted(samples) == list(range(c["files"] * c["per_file"])), c
    made = io.StringIO()
    tf_sim.dump(made)
    stored = pathlib.Path(SOURCE) / "tests/data/vectors/tf-order.json"
    assert made.getvalue() == stored.read_text(), f"{stored} is not what tf_sim.py makes"


if __name__ == "__main__":
    main()

"""Random calls on a real Python file object under strace, beside the same calls on the emulated one:
the same results and the same reads."""
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from strace_requests import explain, requests

TOOL = os.path.join(os.environ["STOKER_TOOLS"], "format_tool")
GENERATION = "314" if sys.version_info >= (3, 14) else "311"

DRIVE = """
import sys
path, size = sys.argv[1], int(sys.argv[2])
f = open(path, "rb", buffering=size if size else -1)
for op in sys.argv[3:]:
    n = int(op[1:] or 0)
    data = b""
    if op[0] == "r": data = f.read(n)
    elif op[0] == "i":
        b = bytearray(n); k = f.readinto(b); data = bytes(b[:k])
    elif op[0] == "a": data = f.read()
    elif op[0] == "s": f.seek(n)
    elif op[0] == "e": f.seek(-n, 2)
    total = 0
    for c in data: total = total * 31 % 1000003 + c
    print(len(data), total, f.tell())
"""


def operations(rng, size, buffer):
    """Calls that often end exactly at the end of the buffer and often seek a little back or on."""
    ops, at = [], 0
    for _ in range(rng.randint(5, 60)):
        n = rng.choice([0, 1, buffer - 1, buffer, buffer + 1, 2 * buffer, 3 * buffer + 5, buffer // 2,
                        buffer - buffer // 2, rng.randint(0, size), rng.randint(0, buffer)])
        kind = rng.choice("rrrrriisse" + ("a" if rng.random() < 0.1 else "r"))
        if kind == "s" and rng.random() < 0.7:
            n = max(0, at + rng.randint(-buffer, buffer))
        if kind in "se":
            n = min(n, size)
        at = {"s": n, "e": size - n, "a": size}.get(kind, min(size, at + n))
        ops.append(kind if kind == "a" else kind + str(n))
    return ops


def main():
    rng = random.Random(20)
    bad = compared = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "data")
        for turn in range(40):
            size = rng.choice([0, 1, 100, 4095, 4096, 4097, 9000, 20000, 70000])
            buffer = rng.choice([0, 0, 16, 100, 512, 1000, 4096])
            with open(path, "wb") as f:
                f.write(rng.randbytes(size))
            ops = operations(rng, size, buffer or os.stat(path).st_blksize)
            real, said = requests([sys.executable, "-c", DRIVE, path, str(buffer)] + ops, path)
            mine, we_said = requests([TOOL, "python", path, GENERATION, str(buffer)] + ops, path)
            compared += len(real)
            if real != mine or said != we_said:
                explain("turn %d, %d bytes, buffer %d, %s" % (turn, size, buffer, " ".join(ops)),
                        real, mine)
                if said != we_said:
                    print("results differ:\n" + said + "\nours:\n" + we_said)
                bad += 1
    print("%d requests compared, %d turns with a difference" % (compared, bad))
    return 1 if bad or not compared else 0


sys.exit(main())

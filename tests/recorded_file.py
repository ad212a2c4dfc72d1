"""The file of recorded sizes and orders (src/workload/recorded_file.h), written by another implementation."""
import struct

TABLE = []
for i in range(256):
    for _ in range(8):
        i = (i >> 1) ^ 0x82f63b78 if i & 1 else i >> 1
    TABLE.append(i)


def crc32c(data):
    c = 0xffffffff
    for x in data:
        c = TABLE[(c ^ x) & 255] ^ (c >> 8)
    return c ^ 0xffffffff


def framed(body, version=1):
    return b"stoker recorded\n" + struct.pack("<II", version, crc32c(body)) + body


def recorded(ranks, parts, requests=None, work=None):
    """parts: (files, samples of each, sizes or None, epochs: a list of visits for each rank) of training and evaluation.
    requests: of both parts a list for each file's opening, then for each of its samples, of (offset, bytes).
    work: of both parts the microseconds beside each list."""
    body = struct.pack("<II", ranks, 0)
    for k, (files, samples, sizes, epochs) in enumerate(parts):
        body += struct.pack("<QQQQ", files, samples, sizes is not None, len(epochs))
        body += struct.pack(f"<{len(sizes or [])}Q", *(sizes or []))
        for epoch in epochs:
            for visits in epoch:
                body += struct.pack(f"<Q{len(visits)}I", len(visits), *visits)
        if requests:
            body += struct.pack("<Q", len(requests[k]))
            for one in requests[k]:
                body += struct.pack("<I", len(one)) + b"".join(struct.pack("<QI", *r) for r in one)
        if work:
            body += struct.pack(f"<{len(work[k])}I", *work[k])
    return framed(body, 3 if work else 2 if requests else 1)

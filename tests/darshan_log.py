"""Writes Darshan logs: of made-up records in any version and byte order, and real ones packed anew."""
import bz2
import random
import struct
import zlib

MAGIC = 6567223
IDS = {"POSIX": 1, "MPIIO": 2, "H5F": 3, "H5D": 4, "PNETCDF_FILE": 5, "PNETCDF_VAR": 6, "BGQ": 7, "LUSTRE": 8, "STDIO": 9,
       "DXT_POSIX": 10, "DXT_MPIIO": 11, "HEATMAP": 15, "DFS": 16, "DAOS": 17}
# numbers of a record after id and rank: ids, integers, doubles, bytes behind them
SHAPES = {
    ("POSIX", 4): (0, 69, 17, 0), ("POSIX", 3): (0, 64, 17, 0), ("POSIX", 2): (0, 64, 15, 0), ("POSIX", 1): (0, 68, 15, 0),
    ("MPIIO", 3): (0, 51, 17, 0), ("MPIIO", 2): (0, 51, 15, 0), ("MPIIO", 1): (0, 51, 15, 0),
    ("STDIO", 2): (0, 14, 15, 0), ("STDIO", 1): (0, 13, 15, 0),
    ("H5F", 3): (0, 3, 5, 0), ("H5F", 2): (0, 1, 4, 0), ("H5F", 1): (0, 1, 2, 0),
    ("H5D", 2): (1, 94, 17, 0), ("H5D", 1): (0, 94, 17, 0),
    ("PNETCDF_FILE", 3): (0, 9, 8, 0), ("PNETCDF_FILE", 2): (0, 2, 4, 0), ("PNETCDF_FILE", 1): (0, 2, 2, 0),
    ("PNETCDF_VAR", 1): (1, 120, 17, 0), ("BGQ", 2): (0, 11, 1, 0), ("BGQ", 1): (1, 11, 1, 0),
    ("DFS", 1): (0, 52, 15, 32), ("DAOS", 1): (0, 64, 15, 48),
}
PACK = {0: lambda b: zlib.compress(b, 6), 1: bz2.compress, 2: bytes}


def unpack(region, method):
    out = b""
    while region:
        if method == 2:
            return region
        d = zlib.decompressobj() if method == 0 else bz2.BZ2Decompressor()
        out += d.decompress(region)
        region = d.unused_data
    return out


def pack(region, method, piece=None):
    piece = piece or max(1, len(region))
    return b"".join(PACK[method](region[i:i + piece]) for i in range(0, max(1, len(region)), piece))


class Log:
    """Header and unpacked regions of a log; write() gives the bytes of a log."""

    def __init__(self, minor=41, order="<", method=0):
        self.minor, self.order, self.method, self.flags = minor, order, method, 0
        self.job, self.names, self.module = b"", b"", {}  # id in the header: (version, bytes)

    @property
    def slots(self):
        return 64 if self.minor >= 41 else 16

    @classmethod
    def read(cls, path):
        data = open(path, "rb").read()
        order = "<" if struct.unpack_from("<Q", data, 8)[0] == MAGIC else ">"
        log = cls(int(data[2:4]), order, data[16])
        head = 1328 if log.minor >= 41 else 360
        maps = 32 if log.minor >= 41 else 24
        log.flags = struct.unpack_from(order + ("Q" if log.minor >= 41 else "I"), data, 24 if log.minor >= 41 else 20)[0]
        at = [struct.unpack_from(order + "QQ", data, maps + 16 * i) for i in range(log.slots + 1)]
        versions = struct.unpack_from(order + "%dI" % log.slots, data, maps + 16 * (log.slots + 1))
        log.job = unpack(data[head:at[0][0]], log.method)
        log.names = unpack(data[at[0][0]:sum(at[0])], log.method)
        for i in range(log.slots):
            if at[i + 1][1]:
                log.module[i] = (versions[i], unpack(data[at[i + 1][0]:sum(at[i + 1])], log.method))
        log.bounds = sorted({head} | {b for o, n in at if n for b in (o, o + n)})
        return log

    def write(self, method=None, piece=None):
        method = self.method if method is None else method
        new = self.minor >= 41
        maps, versions = [(0, 0)] * (self.slots + 1), [0] * self.slots
        body = pack(self.job, method, piece)
        head = 1328 if new else 360
        for i, (version, region) in [(-1, (0, self.names))] + sorted(self.module.items()):
            part = pack(region, method, piece) if region else b""
            maps[i + 1] = (head + len(body), len(part))
            if i >= 0:
                versions[i] = version
            body += part
        o = self.order
        h = (b"3.%02d" % self.minor).ljust(8, b"\0") + struct.pack(o + "QB7x" if new else o + "QB3x", MAGIC, method)
        h += struct.pack(o + ("Q" if new else "I"), self.flags)
        h += b"".join(struct.pack(o + "QQ", *m) for m in maps) + struct.pack(o + "%dI" % self.slots, *versions)
        assert len(h) == head, len(h)
        return h + body

    def slot(self, name):
        """The id of a module in this log's header."""
        i = IDS[name]
        if self.minor < 41 and i > 6:
            i -= 1
        if self.minor < 20 and i > 4:
            i -= 1
        return i

    def set_job(self, ranks=4, command="a job --of two", mounts=(("ext4", "/"), ("lustre", "/scratch")), start=1700000000,
                seconds=3, job=4711, metadata=b"lib_ver=3.5.0\n"):
        o = self.order
        if self.minor >= 41:
            self.job = struct.pack(o + "7q", 0, start, 5, start + seconds, 6, ranks, job)
        else:
            self.job = struct.pack(o + "5q", 0, start, start + seconds, ranks, job)
        self.job += metadata.ljust(1024, b"\0") + command.encode() + b"".join(
            b"\n%s\t%s" % (t.encode(), p.encode()) for t, p in mounts)

    def set_names(self, names):
        o = self.order
        for i, name in names.items():
            text = name.encode()
            self.names += struct.pack(o + "Q", i)
            self.names += struct.pack(o + "I", len(text)) + text if self.minor == 0 else text + b"\0"

    def add(self, name, version, region):
        self.module[self.slot(name)] = (version, region)


def made_up(name, version, order, records, rng):
    """Records of a module with numbers that differ from each other."""
    ids, ints, doubles, tail = SHAPES[name, version]
    out = b""
    for i, rank in records:
        values = [rng.randrange(0, 1 << 33) for _ in range(ints)]
        if (name, version) == ("POSIX", 1):
            values[6:10] = [0, 7, 8, 9]  # no stdio
        out += struct.pack(order + "Qq", i, rank)
        out += struct.pack(order + "%dQ" % ids, *[rng.randrange(1, 1 << 63) for _ in range(ids)])
        out += struct.pack(order + "%dq%dd" % (ints, doubles), *values, *[rng.random() * 3 for _ in range(doubles)])
        out += bytes(rng.randrange(256) for _ in range(tail))
    return out


def trace(order, version, name, i, rank, writes, reads, host=b"node7"):
    """A record of DXT; requests are (offset, length, begin, end, thread)."""
    threads = version >= (3 if name == "DXT_MPIIO" else 2)
    out = struct.pack(order + "Qqq64sqq", i, rank, 0, host, len(writes), len(reads))
    for r in list(writes) + list(reads):
        out += struct.pack(order + ("qqddQ" if threads else "qqdd"), *(r if threads else r[:4]))
    return out


def heat(order, i, rank, bin_s, written, read):
    return struct.pack(order + "Qqdq16s", i, rank, bin_s, len(read), b"\xaa" * 16) + struct.pack(
        order + "%dq" % (2 * len(read)), *written, *read)


def every_module(minor, order, versions, seed):
    """A log with made-up records of all modules that `versions` has, in both byte orders the same."""
    rng = random.Random(seed)
    log = Log(minor, order)
    log.set_job()
    names = {101: "/scratch/a.npz", 102: "/data/b c.npz", 103: "/data/c", 104: "<STDOUT>", 105: "/scratch/d.h5:x"}
    log.set_names(names)
    records = [(101, 0), (102, 3), (103, -1), (999, 1)]
    for name, version in versions.items():
        if (name, version) in SHAPES:
            log.add(name, version, made_up(name, version, order, records if name != "BGQ" else [(7, 0)], rng))
        elif name == "LUSTRE" and version == 1:
            log.add(name, 1, b"".join(struct.pack(order + "Qq%dq" % (5 + n), 101 + n, 0, 9, 1, 2, 1 << 20, n, *range(n)) for n in (1, 3)))
        elif name == "LUSTRE":
            log.add(name, 2, struct.pack(order + "Qqqq", 101, 0, 3, 5) + struct.pack(
                order + "7q16s", 1 << 20, 2, 0, 16, 0, 1 << 30, 1, b"fast") + struct.pack(
                order + "7q16s", 4 << 20, 3, 4, 3, 1 << 30, -1, 0, b"") + struct.pack(
                order + "7q16s", -1, 0, 0, 0, 0, 0, 0, b"") + struct.pack(order + "5q", 5, 6, 7, 8, 9))
        elif name.startswith("DXT"):
            one = lambda w: [(w * 100 + k * 10, 10, 0.1 + w + k / 100, 0.105 + w + k / 100, 77 + k % 2) for k in range(4)]
            log.add(name, version, trace(order, version, name, 101, 0, one(0), one(1)) + trace(
                order, version, name, 102, 2, [], one(1)) + trace(order, version, name, 103, 3, one(0), []))
        elif name == "HEATMAP":
            log.add(name, 1, heat(order, 104, 0, 0.1, [1, 2, 3], [4, 5, 6]) + heat(order, 104, 2, 0.1, [1, 2, 3, 9], [4, 5, 6, 9]) + heat(
                order, 104, 3, 0.2, [1], [2]))
    return log


FIRST = {"POSIX": 1, "MPIIO": 1, "H5F": 1, "PNETCDF_FILE": 1, "BGQ": 1, "LUSTRE": 1, "STDIO": 1, "DXT_POSIX": 1, "DXT_MPIIO": 1}
SECOND = {"POSIX": 2, "MPIIO": 2, "H5F": 2, "H5D": 1, "PNETCDF_FILE": 2, "BGQ": 2, "LUSTRE": 1, "STDIO": 1, "DXT_POSIX": 1,
          "DXT_MPIIO": 2, "HEATMAP": 1}
THIRD = {"POSIX": 3, "MPIIO": 3, "H5F": 3, "H5D": 1, "PNETCDF_FILE": 3, "STDIO": 2, "DXT_POSIX": 2, "DXT_MPIIO": 3, "HEATMAP": 1}
NEWEST = {"POSIX": 4, "MPIIO": 3, "H5F": 3, "H5D": 2, "PNETCDF_FILE": 3, "PNETCDF_VAR": 1, "BGQ": 2, "LUSTRE": 2, "STDIO": 2,
          "DXT_POSIX": 2, "DXT_MPIIO": 3, "HEATMAP": 1, "DFS": 1, "DAOS": 1}
MADE_UP = {"first": (0, FIRST), "first_10": (10, FIRST), "second": (20, SECOND), "third": (21, THIRD), "newest": (41, NEWEST)}


def made_up_log(name, order):
    minor, versions = MADE_UP[name]
    return every_module(minor, order, versions, sum(map(ord, name)))

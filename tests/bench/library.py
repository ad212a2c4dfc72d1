"""What figures are set beside: ranges of a file that its format's library decodes, and loops over files
in Python with the real libraries."""
import io
import os
import struct
import time
import zipfile

try:
    import numpy as np
except ImportError:
    np = None
try:
    import h5py
except ImportError:
    h5py = None
try:
    import pandas
except ImportError:
    pandas = None
try:
    from PIL import Image
    Image.MAX_IMAGE_PIXELS = None
except ImportError:
    Image = None


def npz_ranges(path):
    with zipfile.ZipFile(path) as z, open(path, "rb") as f:
        x = z.getinfo("x.npy")
        f.seek(x.header_offset + 26)
        name, extra = struct.unpack("<HH", f.read(4))
    method = "crc32" if x.compress_type == zipfile.ZIP_STORED else "member"
    return method, [(x.header_offset + 30 + name + extra, x.compress_size, x.file_size)]


def hdf5_ranges(path):
    ranges = []
    with h5py.File(path) as f:
        for d in f.values():
            if d.compression is None:
                continue
            for i in range(d.id.get_num_chunks()):
                c = d.id.get_chunk_info(i)
                raw = d.dtype.itemsize
                for n in d.chunks:
                    raw *= n
                ranges.append((c.byte_offset, c.size, raw))
    return ("zlib", ranges) if ranges else ("none", [])


def tfrecord_ranges(path):
    ranges, at, end = [], 0, os.path.getsize(path)
    with open(path, "rb") as f:
        while at < end:
            f.seek(at)
            n, = struct.unpack("<Q", f.read(8))
            ranges += [(at, 8, 0), (at + 12, n, 0)]
            at += 16 + n
    return "crc32c", ranges


def png_ranges(path):
    with open(path, "rb") as f:
        f.seek(16)
        width, height = struct.unpack(">II", f.read(8))
    return "png", [(0, os.path.getsize(path), (width + 1) * height)]


def jpeg_ranges(path):
    return "jpeg", [(0, os.path.getsize(path), 0)]


RANGES = {"npz": npz_ranges, "hdf5": hdf5_ranges if h5py else None, "tfrecord": tfrecord_ranges,
          "png": png_ranges, "jpeg": jpeg_ranges}


def work_list(fmt, names):
    """Lines for `decode_tool decode`, or None when that cannot decode such files."""
    if fmt == "csv" or RANGES.get(fmt, True) is None:
        return None
    lines = []
    for name in names:
        method, ranges = RANGES[fmt](name) if fmt in RANGES else ("none", [])
        lines.append(" ".join([method, name, *(str(n) for r in ranges for n in r)]) + " ")
    return "\n".join(lines)


def read_npz(path):
    with np.load(path) as f:
        return f["x"]


def read_hdf5(path):
    with h5py.File(path) as f:
        return [d[0] for d in f.values()]


def read_csv(path):
    return pandas.read_csv(path, header=None, compression=None).to_numpy()


def tables(path):
    return np.fromfile(path + ".off.idx", np.uint64), np.fromfile(path + ".sz.idx", np.uint64)


def read_indexed(path):
    samples = []
    with open(path, "rb") as f:
        for offset, size in zip(*tables(path)):
            f.seek(int(offset))
            samples.append(np.frombuffer(f.read(int(size)), np.uint8))
    return samples


def read_mapped(path):
    """With its pages touched: a copy of each sample, as a batch is made of."""
    whole = np.memmap(path, np.uint8, "r")
    return [np.array(whole[int(o):int(o) + int(n)]) for o, n in zip(*tables(path))]


READ = {"indexed_binary": np and read_indexed, "mmap_indexed_binary": np and read_mapped,
        "npz": np and read_npz, "npy": np and (lambda path: np.load(path)), "hdf5": h5py and read_hdf5,
        "png": Image and (lambda path: np.asarray(Image.open(path))),
        "jpeg": Image and (lambda path: np.asarray(Image.open(path))), "csv": pandas and read_csv}


def loop(fmt, names):
    """Wall and CPU seconds of reading the files by the real library, or None without one."""
    read = READ.get(fmt)
    if not read:
        return None
    begin, cpu = time.perf_counter(), time.process_time()
    for name in names:
        read(name)
    return time.perf_counter() - begin, time.process_time() - cpu


def parse_csv(names):
    """Wall and CPU seconds of pandas with the files' bytes in memory, and those of reading them."""
    if not pandas:
        return None
    parse = read = (0.0, 0.0)
    for name in names:
        begin, cpu = time.perf_counter(), time.process_time()
        with open(name, "rb", buffering=0) as f:
            text = io.BytesIO(f.read())
        middle, middle_cpu = time.perf_counter(), time.process_time()
        pandas.read_csv(text, header=None)
        parse = parse[0] + time.perf_counter() - middle, parse[1] + time.process_time() - middle_cpu
        read = read[0] + middle - begin, read[1] + middle_cpu - cpu
    return read, parse

"""TFRecord files and their DALI index, read by a reader written here from the formats' descriptions:
framing, CRC-32C bit by bit from its polynomial, and the Example message; and the other way round."""
import os
import random
import struct
import subprocess
import sys
import tempfile

STOKER = os.environ["STOKER"]
TOOL = os.path.join(os.environ["STOKER_TOOLS"], "format_tool")

TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    TABLE.append(n)


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    """(offset, size with framing, payload) of each record."""
    with open(path, "rb") as f:
        data = f.read()
    at, found = 0, []
    while at < len(data):
        length, crc = struct.unpack_from("<QI", data, at)
        assert crc == masked_crc(data[at:at + 8]), "checksum of the length at %d" % at
        payload = data[at + 12:at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked_crc(payload), at
        found.append((at, length + 16, payload))
        at += length + 16
    assert at == len(data)
    return found


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            assert tag & 7 == 2, "wire type %d" % (tag & 7)
            n, at = varint(data, at)
            value = data[at:at + n]
            assert len(value) == n
            at += n
        yield tag >> 3, value


def example(payload):
    """{name: value} of an Example whose features have one value each."""
    out = {}
    for number, features in fields(payload):
        assert number == 1
        for number, entry in fields(features):
            assert number == 1
            parts = dict(fields(entry))
            (kind, values), = fields(parts[2])
            (one, value), = fields(values)
            assert one == 1
            if kind == 3:
                value, end = varint(value, 0)
            out[parts[1].decode()] = value
    return out


def fill(file_index, offset, n):
    """tests/tools/test_content.h"""
    return bytes((o * 131 + (o >> 8) * 7 + (o >> 16) * 13 + file_index * 17 + 5) & 255
                 for o in range(offset, offset + n))


def tool(*args):
    return subprocess.run([TOOL] + [str(a) for a in args], capture_output=True, text=True)


def check_ours(folder):
    for elem, size, samples, dims in (("uint8", 1, 1, (1,)), ("uint8", 1, 3, (30, 33)), ("float32", 4, 5, (7, 3, 2)),
                                      ("int16", 2, 300, (10, 11)), ("uint8", 1, 2, (500, 300)),
                                      ("uint8", 1, 0, (5,))):
        path = os.path.join(folder, "f.tfrecord")
        done = tool("write", "tfrecord", path, 3, elem, samples, *dims)
        assert done.returncode == 0, done.stderr
        n = size
        for d in dims:
            n *= d
        found = records(path)
        assert len(found) == samples
        for i, (_, _, payload) in enumerate(found):
            assert example(payload) == {"image": fill(3, i * n, n), "size": n}, (elem, dims, i)
        print("%s %s: %d records are right" % (elem, dims, samples))


def put_varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, data):
    return put_varint(number << 3 | 2) + put_varint(len(data)) + data


def record(payload):
    head = struct.pack("<Q", len(payload))
    return head + struct.pack("<I", masked_crc(head)) + payload + struct.pack("<I", masked_crc(payload))


def check_theirs(folder):
    """As TensorFlow and DLIO write them: the order of the map is any, numbers packed or not."""
    path = os.path.join(folder, "theirs.tfrecord")
    rng = random.Random(4)
    dims = (12, 25)
    with open(path, "wb") as f:
        for i in range(6):
            image = field(1, field(1, b"image") + field(2, field(1, field(1, fill(3, i * 300, 300)))))
            number = field(1, put_varint(300)) if rng.random() < .5 else b"\x08" + put_varint(300)
            size = field(1, field(1, b"size") + field(2, field(3, number)))
            parts = [image, size] if i % 2 else [size, image]
            if i == 4:
                parts.insert(1, field(1, field(1, b"more") + field(2, field(1, field(1, b"?")))))
            f.write(record(field(1, b"".join(parts))))
    for decode in ("full", "verify", "none"):
        for index in range(6):
            done = tool("read", "tfrecord", "framework", decode, 311, 0, index, path, 3, "uint8", 6, *dims)
            assert done.returncode == 0 and done.stdout == "300\n", done.stderr
    done = tool("read", "tfrecord", "native", "full", 311, 0, 5, path, 3, "uint8", 6, *dims)
    assert done.returncode != 0, "the extra feature moved record 5"
    print("records in other orders are read")


def check_dataset(folder):
    data = os.path.join(folder, "data")
    keys = ["dataset.format=tfrecord", "dataset.num_files_train=3", "dataset.num_files_eval=2",
            "dataset.num_samples_per_file=4", "dataset.record_length_bytes=9000",
            "dataset.record_length_bytes_stdev=500", "dataset.data_folder=" + data, "dataset.num_subfolders_train=2",
            "workflow.generate_data=true", "workflow.train=false"]
    workload = os.path.join(folder, "w.yaml")
    with open(workload, "w") as f:
        f.write("model: {name: m}\nframework: tensorflow\n")

    def stoker(command):
        return subprocess.run([STOKER, command, workload] + keys, capture_output=True, text=True, cwd=folder)

    done = stoker("generate")
    assert done.returncode == 0, done.stderr + done.stdout
    blobs = sorted(os.path.join(d, f) for d, _, files in os.walk(data) for f in files if f.endswith(".tfrecord"))
    assert len(blobs) == 5, blobs
    indices = sorted(os.path.join(d, f) for d, _, files in os.walk(data) for f in files if f.endswith(".idx"))
    assert len(indices) == 5, indices
    for path in blobs:
        kind = os.path.relpath(path, data).split("/")[0]
        with open(os.path.join(data, "index", kind, os.path.basename(path) + ".idx")) as f:
            index = [tuple(int(x) for x in line.split(" ")) for line in f]
        found = records(path)
        assert index == [(at, size) for at, size, _ in found] and len(index) == 4, path
        for _, _, payload in found:
            x = example(payload)
            assert len(x["image"]) == x["size"]
    assert not [f for _, _, files in os.walk(data) for f in files if f.endswith(".part")]
    done = stoker("verify")
    assert done.returncode == 0, done.stderr + done.stdout

    # an index that is lost or cut is made again, and the file beside it is not
    before = {p: os.stat(p).st_mtime_ns for p in blobs}
    os.unlink(indices[0])
    with open(indices[3], "a") as f:
        f.write("1")
    done = stoker("verify")
    assert done.returncode == 1 and indices[0] in done.stderr + done.stdout, done.stderr + done.stdout
    done = stoker("generate")
    assert done.returncode == 0, done.stderr
    assert stoker("verify").returncode == 0
    assert before == {p: os.stat(p).st_mtime_ns for p in blobs}, "a whole file was written again"
    with open(indices[2], "r+b") as f:
        f.write(b"9")
    done = stoker("verify")
    assert done.returncode == 1 and indices[2] in done.stderr + done.stdout, done.stderr
    print("5 files and their indices are right")


with tempfile.TemporaryDirectory() as tmp:
    check_ours(tmp)
    check_theirs(tmp)
    check_dataset(tmp)

"""The clients of storage.s3.client beside the libraries that they are named after (STOKER_PYTHON, or a Python that has them): for
the same objects, the tests' own server sees the same requests, as many at once, from both."""
# tier: long
# mostly waits
# takes 60 s
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from s3_server import S3Server  # noqa: E402
from util import LIBRARIES_OF_S3TORCH, left_out, libraries, skip, stoker, tiny  # noqa: E402

M = 1 << 20
OWN = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "S3_", "S3DLIO_", "DLIO_")) and not k.lower().endswith("_proxy")}
START = """
import json, os, sys
url = os.environ["AWS_ENDPOINT_URL"]
own = dict(access_key=os.environ["AWS_ACCESS_KEY_ID"], secret_key=os.environ["AWS_SECRET_ACCESS_KEY"])
for n, keys in json.loads(sys.argv[2]):
    exec(sys.argv[1])
"""
S3DLIO = """
import s3dlio
uris = ["s3://bucket/" + k for k in keys]
stream = s3dlio.PyBytesAsyncDataLoader(s3dlio.PyDataset.from_uris(uris), {"prefetch": 64, "skip_head": n < 16 << 20}).items()
while stream.collect_batch(1):
    pass
"""
S3DLIO_PUT = """
import s3dlio
for k in keys:
    if n < 16 << 20:
        s3dlio.put_bytes("s3://bucket/" + k, bytes(n))
    else:
        w = s3dlio.MultipartUploadWriter.from_uri("s3://bucket/" + k, part_size=16 << 20, max_in_flight=32, abort_on_drop=True)
        w.write(bytes(n))
        w.close()
"""
S3TORCH = """
from s3torchconnector import S3ClientConfig
from s3torchconnector._s3client import S3Client
c = S3Client("us-east-1", endpoint=url, s3client_config=S3ClientConfig(force_path_style=True))
"""
S3FS = """
import s3fs
c = s3fs.S3FileSystem(endpoint_url=url)
"""
ARROW = """
from pyarrow import fs
c = fs.S3FileSystem(endpoint_override=url[7:], scheme="http", region="us-east-1", **own)
"""
MINIO = """
import io, minio
c = minio.Minio(url[7:], secure=False, region="us-east-1", **own)
"""
# reading as DLIO's readers do it, or as programs do it that have no such reader; and writing
CLIENTS = {
    "s3dlio-0.9": ("s3dlio", S3DLIO, None),
    "s3dlio-0.10": ("s3dlio", "import s3dlio\nfor k in keys:\n    s3dlio.get('s3://bucket/' + k)",
                    S3DLIO_PUT),
    "s3torchconnector-1.5": ("s3torchconnector", S3TORCH + "for k in keys:\n    c.get_object('bucket', k).read()",
                             S3TORCH + "for k in keys:\n    w = c.put_object('bucket', k)\n    w.write(bytes(n))\n    w.close()"),
    "s3fs": ("s3fs", S3FS + "for k in keys:\n    c.cat('bucket/' + k)", S3FS + """
for k in keys:
    with c.open("bucket/" + k, "wb") as f:
        for i in range(0, n, 10 << 20):
            f.write(bytes(min(10 << 20, n - i)))
"""),
    "arrow": ("pyarrow", ARROW + "for k in keys:\n    c.open_input_file('bucket/' + k).read()",
              ARROW + "for k in keys:\n    with c.open_output_stream('bucket/' + k) as f:\n        f.write(bytes(n))"),
    "minio": ("minio", MINIO + """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(16) as pool:
    list(pool.map(lambda k: c.get_object("bucket", k).read(), keys))
""", MINIO + "for k in keys:\n    c.put_object('bucket', k, io.BytesIO(bytes(n)), n)"),
}
FIRST_ALONE = ("s3torchconnector-1.5",)
SIZES = (100 << 10, 8 * M, 9 * M, 17 * M, 33 * M, 60 * M, 150 * M)
MANY = (100 << 10, 100)  # objects


def pythons():
    """Of each library that is installed: a Python that has it."""
    found = {}
    for name in {name for name, _, _ in CLIENTS.values()}:
        for python in (os.environ.get("STOKER_PYTHON"), libraries(), libraries(LIBRARIES_OF_S3TORCH)):
            if python and subprocess.run([python, "-c", f"import {name}"], capture_output=True).returncode == 0:
                found[name] = python
                break
    return found


def real(python, code, jobs, s3):
    """Does jobs (bytes of an object, number of objects) with the library, one after another in one process."""
    s3.clear()
    done = subprocess.run([python, "-c", START, code, json.dumps([(n, keys_of(n, files)) for n, files in jobs])],
                          env={**OWN, **s3.env(), "S3DLIO_LOG": "error"}, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, (code, jobs, done.stderr)
    return s3.requests()


def ours(name, n, files, s3, tmp, **keys):
    stoker("run", *tiny(f"d{n}", tmp / "out", fmt="npy", files=files, dataset__record_length_bytes=n - 128, reader__batch_size=1,
                        reader__read_threads=1, dataset__verify_samples=0, run__probe="false", storage__storage_type="s3",
                        storage__storage_root="bucket",
                        storage__s3__client=name, storage__s3__stagger_workers="false", **keys), env={**OWN, **s3.env()})


def keys_of(n, files):
    return [f"d{n}/train/img_{i:0{len(str(files))}d}_of_{files}.npy" for i in range(files)]


def told(requests, keys, ops, ordered):
    """Of each object: the first request of these kinds (ordered: which does not wait for others), those that follow in any order,
    and HEADs; and how many were under way at once at most."""
    objects = {k: ([], []) for k in keys}
    most = 0
    for r in requests:
        if r["key"] in objects and r["op"] in ops:
            sent = r["received"] if r["op"] in ("PutObject", "UploadPart") else 0
            objects[r["key"]][0].append((r["op"], r["range"], "if-match" in r["headers"], sent))
            most = max(most, r["in_flight_op"])
        elif r["key"] in objects and r["op"] == "HeadObject":
            objects[r["key"]][1].append(r)
    return [(o[:ordered], collections.Counter(o[ordered:]), len(h)) for o, h in objects.values()], most


def compare(what, theirs, mine):
    if theirs != mine:
        print(f"{what}: the library {theirs}, here {mine}", flush=True)
    return theirs != mine


def reads(name, n, files, theirs, again, around, s3, tmp):
    """`around`: HEADs of each object that a run makes beside its reading. A machine with other work to do lets fewer requests be under
    way than a client would have, so where these differ both are made `again`: the most is what counts."""
    keys = keys_of(n, files)
    theirs, at_once = told(theirs, keys, ["GetObject"], name in FIRST_ALONE)
    here = 0
    for attempt in range(3):
        if attempt:
            at_once = max(at_once, told(again(), keys, ["GetObject"], False)[1])
        s3.clear()
        ours(name, n, files, s3, tmp, workflow__generate_data="false", reader__access="object")
        mine, own = told(s3.requests(), keys, ["GetObject"], name in FIRST_ALONE)
        here = max(here, own)
        if here == at_once:
            break
    mine = [(first, then, heads - a) for (first, then, heads), a in zip(mine, around)]
    if here > at_once:
        left_out(f"{name}: how many requests are under way at once: the library had {at_once} on this busy machine, here {here}")
    return compare(f"{name} reads {files} of {n}", theirs, mine) + (here < at_once and compare(
        f"{name} reads {files} of {n}, at once", at_once, here))


OPS = ("PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload")


def writes(python, name, code, s3, tmp):
    """How many parts are under way depends on how fast they come: not compared. HEADs look whether an object is there."""
    mine = {}
    for n in SIZES[:-1]:
        for k in s3.keys("bucket", f"d{n}/"):
            s3.buckets["bucket"].pop(k)
        s3.clear()
        ours(name, n, 1, s3, tmp, workflow__train="false")
        mine[s3.size("bucket", keys_of(n, 1)[0])] = [o[:2] for o in told(s3.requests(), keys_of(n, 1), OPS, True)[0]]
    theirs = real(python, code, [(n, 1) for n in mine], s3)
    return [compare(f"{name} writes {n}", [o[:2] for o in told(theirs, keys_of(n, 1), OPS, True)[0]], mine[n]) for n in mine]


def main():
    python = pythons()
    if not python:
        skip("no client of S3 is installed (tools/setup.sh heavy)")
    for name in sorted({name for name, _, _ in CLIENTS.values()} - set(python)):
        left_out(f"{name} is not installed (tools/setup.sh heavy)")
    jobs, compared, differences = [(n, 1) for n in SIZES] + [MANY], 0, 0
    with tempfile.TemporaryDirectory() as folder, S3Server(latency=0.05, keep="sizes") as s3:
        tmp = pathlib.Path(folder)
        around = {}
        for n, files in jobs:
            for k in keys_of(n, files):
                s3.sparse("bucket", k, n)
            s3.clear()
            ours("native", n, files, s3, tmp, workflow__generate_data="false", reader__access="object")
            around[n, files] = [h for _, _, h in told(s3.requests(), keys_of(n, files), ["GetObject"], False)[0]]
        there = {name: row for name, row in CLIENTS.items() if row[0] in python}
        for name, (library, code, _) in there.items():
            # of the others no reader of DLIO's says how many objects are under way
            mine = jobs if name in ("s3dlio-0.9", "minio", "s3torchconnector-1.5") else jobs[:-1]
            # what a process does with large objects depends in s3dlio on its first ones
            theirs = [r for some in ([j for j in mine if j[0] < 16 * M], [j for j in mine if j[0] >= 16 * M])
                      for r in real(python[library], code, some, s3)]
            for n, files in mine:
                differences += reads(name, n, files, theirs, lambda job=(n, files): real(python[library], code, [job], s3),
                                     around[n, files], s3, tmp)
                compared += 1
        for name, (library, _, code) in there.items():
            wrong = writes(python[library], name, code, s3, tmp) if code else []
            compared, differences = compared + len(wrong), differences + sum(wrong)
    print(f"{compared} jobs, {differences} differences")
    assert differences == 0


if __name__ == "__main__":
    main()

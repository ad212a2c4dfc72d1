"""storage.s3.client: the requests that the tests' own server sees are those of the client's row, read and written."""
# tier: long
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from s3_server import S3Server  # noqa: E402
from util import stoker, tiny  # noqa: E402

M = 1 << 20
OWN = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "S3_", "DLIO_")) and not k.lower().endswith("_proxy")}
CORES = os.cpu_count()
# from this size on a whole object is read in parts of such a size, at most so many at once; If-Match on later parts; HEAD of each
# object first;
# sent whole up to this size, else in such parts, at most so many at once
CLIENTS = {
    "native": (1 << 60, 0, 1, True, True, 16 * M, 16 * M, 4),
    "s3dlio-0.9": (32 * M, 4 * M, max(4, CORES), False, False, 16 * M - 1, 16 * M, 32),
    "s3dlio-0.10": (32 * M, 4 * M, max(4, CORES), False, True, 16 * M - 1, 16 * M, 32),
    "s3torchconnector-1.5": (8 * M + 1, 8 * M, 25, True, False, 0, 8 * M, 25),
    "s3fs": (50 * M + 1, 50 * M, 10, False, True, 50 * M, 50 * M, 1),
    "tfio": (1 << 60, 0, 1, False, True, 50000000, 50000000, 25),
    "arrow": (1 << 60, 0, 1, False, True, 0, 10 * M, 8),
    "minio": (1 << 60, 0, 1, False, False, 5 * M, 5 * M, 3),
}


def reads(s3, name, tmp):
    """Small objects: each is read once or twice, by requests of the client's kind."""
    matched, head = CLIENTS[name][3:5]
    s3.clear()
    keys = {"storage__storage_options__storage_library": name[:-4]} if name == "s3torchconnector-1.5" else {"storage__s3__client": name}
    stoker("run", *tiny("d", tmp / "out", files=4, workflow__generate_data="false", reader__access="native", storage__storage_type="s3",
                        storage__storage_root="bucket", **keys), env={**OWN, **s3.env()})
    for key in [k for k in s3.keys("bucket", "d/train/")]:
        mine = s3.requests(key=key)
        gets = [r for r in mine if r["op"] == "GetObject"]
        whole = s3.size("bucket", key)
        assert gets and all(r["sent"] <= whole for r in gets), (name, key, gets)
        assert all(r["range"] for r in gets), (name, gets)
        assert head or not any("if-match" in r["headers"] for r in gets), (name, gets)
        assert not head or name != "native" or all("if-match" in r["headers"] for r in gets) == matched, (name, gets)
        # two by which sizes are checked; each opening adds one
        heads = [r for r in mine if r["op"] == "HeadObject"]
        assert not head or len(heads) > 2, (name, [r["op"] for r in mine])


def objects(s3, name, tmp):
    """Whole objects of 1 and 33 MiB, ahead of their batches."""
    split, part, most, matched, head = CLIENTS[name][:5]
    for size in (M, 33 * M):
        folder, files = f"w{size}", 6
        keys = [f"{folder}/train/img_{i}_of_{files}.npy" for i in range(files)]
        for key in keys:
            s3.sparse("bucket", key, size)
        s3.clear()
        stoker("run", *tiny(folder, tmp / "out", fmt="npy", files=files, workflow__generate_data="false", reader__access="object",
                            dataset__record_length_bytes=size - 128, dataset__verify_samples=0, reader__read_threads=1, run__probe="false",
                            reader__batch_size=2, storage__storage_type="s3", storage__storage_root="bucket",
                            storage__s3__client=name), env={**OWN, **s3.env()})
        for key in keys:
            gets = [r for r in s3.requests(key=key) if r["op"] == "GetObject"]
            parts = sorted((r["sent"] for r in gets), reverse=True)
            assert sum(parts) == size, (name, key, gets)
            if name == "s3torchconnector-1.5":
                assert gets[0]["range"] == f"bytes=0-{8 * M - 1}" and "if-match" not in gets[0]["headers"], gets[0]
            elif size < split:
                assert len(gets) == 1 and (gets[0]["range"] is None) == (name not in ("tfio", "arrow")), (name, gets)
            if size >= split:
                assert parts == [part] * (size // part) + [size % part] * (size % part > 0), (name, parts)
                assert all("if-match" in r["headers"] for r in gets[1:]) == matched, (name, gets)
        at_once = max(r["in_flight_op"] for r in s3.requests(op="GetObject"))
        window = {"s3torchconnector-1.5": 1, "minio": 16, "s3fs": 1, "tfio": 1, "arrow": 1}.get(name, 64)
        assert at_once <= most * min(window, files) and (window == 1 or at_once > 1), (name, size, at_once)


def writes(s3, name, size, tmp):
    *_, put, part, most = CLIENTS[name]
    s3.clear()
    stoker("run", *tiny("x", tmp / "ck", workflow__checkpoint="true", workflow__train="false", workflow__generate_data="false",
                        checkpoint__checkpoint_folder=f"ck-{name}-{size}", checkpoint__num_checkpoints_write=1, checkpoint__num_checkpoints_read=0,
                        checkpoint__access="native", model__model_size=size, storage__storage_type="s3", storage__storage_root="bucket",
                        storage__s3__client=name), env={**OWN, **s3.env()})
    for key in s3.keys("bucket", f"ck-{name}-{size}/"):
        whole = s3.size("bucket", key)
        parts = [r["received"] for r in s3.requests(op="UploadPart", key=key)]
        if put and whole <= max(put, part):
            assert not parts and len(s3.requests(op="PutObject", key=key)) == 1, (name, key, whole, parts)
        else:
            want = [part] * (whole // part) + ([whole % part] if whole % part else [])
            assert sorted(parts, reverse=True) == want, (name, whole, parts)
            assert max(r["in_flight_op"] for r in s3.requests(op="UploadPart", key=key)) <= most, name


def main():
    with tempfile.TemporaryDirectory() as folder, S3Server(latency=0.004) as s3:
        tmp = pathlib.Path(folder)
        stoker("generate", *tiny("d", None, files=4, storage__storage_type="s3", storage__storage_root="bucket"), env={**OWN, **s3.env()})
        for name in CLIENTS:
            reads(s3, name, tmp)
            objects(s3, name, tmp)
            for size in (M, 33 * M):
                writes(s3, name, size, tmp)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""A real training job over shards, with the libraries that people use: webdataset, pyarrow, MosaicML Streaming, LitData.

usage: shards.py make JSON     writes a dataset (see DEFAULTS)
       shards.py train JSON    trains on it with torch's DataLoader and a step that sleeps

Both print one line of JSON: what they made; what the job itself saw. The libraries of tools/setup.sh lie in folders of
their own, beside Debian's PyTorch; `python(kind)` is the interpreter for a job.
"""
import io
import json
import os
import pathlib
import random
import sys
import time
import types
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from util import LIBRARIES, LIBRARIES_OF_CHUNKS, libraries  # noqa: E402

DEFAULTS = dict(
    kind="webdataset", data="", seed=1,
    # of the dataset: files and samples of each (from, to), bytes of a payload (from, to), names
    files=6, samples=(16, 24), bytes=(3000, 60000), name="{:05d}.tar", members=("jpg", "cls"), compress=False,
    rows=64, columns=2, codec="none", mapped=True,
    # of the job
    batch=4, workers=2, prefetch=2, epochs=2, shuffle=0, shard_shuffle=True, compute_ms=20.0, pipe=False, persistent=False,
    how="groups", pre_buffer=None, batched=False, select=None)


def python(kind):
    return libraries(LIBRARIES_OF_CHUNKS) if kind in ("mds", "litdata") else "/usr/bin/python3"


def site(which):
    """The folder of the packages of a virtual environment, for a Python of the same version without it."""
    found = sorted(pathlib.Path(libraries(which)).parent.parent.glob("lib/python3*/site-packages"))
    return str(found[0]) if found else ""


def find_libraries(kind):
    warnings.simplefilter("ignore")
    if kind == "parquet":
        # its NumPy and that of Debian's PyTorch differ: neither needs one here
        sys.modules["numpy"] = None
    if kind in ("parquet", "webdataset"):
        sys.path.append(site(LIBRARIES))
        return
    import torch
    for n in ("uint16", "uint32", "uint64"):  # names that Debian's PyTorch lacks
        if not hasattr(torch, n):
            setattr(torch, n, n)
    for name in ("transformers", "transformers.feature_extraction_utils", "transformers.tokenization_utils_base", "streaming.text",
                 "streaming.vision", "streaming.multimodal"):
        sys.modules[name] = m = types.ModuleType(name)
        m.BatchFeature = m.BatchEncoding = type("Unused", (dict,), {})


# ---- datasets ----

def payload(job, r):
    low, high = job["bytes"]
    return r.randbytes(r.randrange(low, high) if high > low else low)


def member(extension, data, i):
    return data if extension not in ("cls", "json", "txt") else str(i % 10).encode() if extension == "cls" else \
        json.dumps({"id": i, "caption": "c" * (i % 50)}).encode() if extension == "json" else b"a caption " * (1 + i % 7)


def make_tar(job, root, r):
    import tarfile
    n = 0
    for f in range(job["files"]):
        with tarfile.open(root / job["name"].format(f), "w:gz" if job["compress"] else "w") as t:
            for _ in range(r.randint(*job["samples"])):
                for extension in job["members"]:
                    data = member(extension, payload(job, r), n)
                    info = tarfile.TarInfo(f"sample{n:06d}.{extension}")
                    info.size = len(data)
                    t.addfile(info, io.BytesIO(data))
                n += 1
    return n


def make_parquet(job, root, r):
    import pyarrow as pa
    import pyarrow.parquet as pq
    n = 0
    for f in range(job["files"]):
        rows = r.randint(*job["samples"])
        table = pa.table({f"column{c}" if c else "image": pa.array([payload(job, r) if c == 0 else r.randbytes(8) for _ in range(rows)])
                          for c in range(job["columns"])})
        pq.write_table(table, root / job["name"].format(f), row_group_size=job["rows"], compression=job["codec"])
        n += rows
    return n


def make_mds(job, root, r):
    from streaming import MDSWriter
    n = job["files"] * job["samples"][0]
    with MDSWriter(out=str(root), columns={"data": "bytes", "label": "int"}, size_limit=job["samples"][0] * sum(job["bytes"]) // 2) as out:
        for i in range(n):
            out.write({"data": payload(job, r), "label": i % 10})
    return n


def make_litdata(job, root, r):
    from litdata.streaming.writer import BinaryWriter
    n = job["files"] * job["samples"][0]
    out = BinaryWriter(str(root), chunk_size=job["samples"][0])
    for i in range(n):
        out.add_item(i, {"data": payload(job, r), "label": i % 10})
    out.done()
    out.merge()
    return n


# ---- loaders ----

def of_webdataset(job, paths):
    import webdataset as wds
    from torch.utils.data import DataLoader
    urls = [f"pipe:cat {p}" for p in paths] if job["pipe"] else paths
    data = wds.WebDataset(urls, shardshuffle=100 if job["shard_shuffle"] else False, seed=job["seed"])
    if job["shuffle"]:
        data = data.shuffle(job["shuffle"])
    data = data.to_tuple(*job["members"]).map_tuple(*[len] * len(job["members"]))
    keys = dict(num_workers=job["workers"])
    if job["workers"]:
        keys.update(prefetch_factor=job["prefetch"], persistent_workers=job["persistent"])
    if job["batched"]:
        return wds.WebLoader(data.batched(job["batch"]), batch_size=None, **keys)
    return DataLoader(data, batch_size=job["batch"], **keys)


def of_parquet(job, paths):
    import pyarrow.dataset as pd
    import pyarrow.parquet as pq
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info

    class Rows(IterableDataset):
        epoch = 0

        def __iter__(self):
            mine, info = list(paths), get_worker_info()
            if job["shard_shuffle"]:
                random.Random(f"{job['seed']} {Rows.epoch}").shuffle(mine)
            mine = mine[info.id::info.num_workers] if info else mine
            for path in mine:
                for table in self.tables(path):
                    for value in table.column(0).to_pylist():
                        yield len(value)

        def tables(self, path):
            keys = {} if job["pre_buffer"] is None else {"pre_buffer": job["pre_buffer"]}
            if job["how"] == "dataset":
                yield from pd.dataset(path).to_batches(columns=job["select"])
            elif job["how"] == "table":
                yield pq.read_table(path, columns=job["select"], **keys)
            elif job["how"] == "batches":
                yield from pq.ParquetFile(path, **keys).iter_batches(batch_size=16, columns=job["select"])
            else:
                with pq.ParquetFile(path, **keys) as f:
                    for g in range(f.num_row_groups):
                        yield f.read_row_group(g, columns=job["select"])

    keys = dict(num_workers=job["workers"])
    if job["workers"]:
        keys.update(prefetch_factor=job["prefetch"], persistent_workers=job["persistent"])
    loader = DataLoader(Rows(), batch_size=job["batch"], **keys)

    def epochs():
        Rows.epoch += 1
        return loader
    return epochs


def of_mds(job, paths):
    from streaming import StreamingDataset
    from torch.utils.data import DataLoader
    data = StreamingDataset(local=job["data"], shuffle=bool(job["shuffle"]), shuffle_seed=job["seed"], batch_size=job["batch"])
    keys = dict(num_workers=job["workers"])
    if job["workers"]:
        keys.update(prefetch_factor=job["prefetch"], persistent_workers=job["persistent"])
    return DataLoader(data, batch_size=job["batch"], collate_fn=lambda x: [len(s["data"]) for s in x], **keys)


def of_litdata(job, paths):
    from litdata import StreamingDataLoader, StreamingDataset
    data = StreamingDataset(job["data"], shuffle=bool(job["shuffle"]), seed=job["seed"])
    keys = dict(num_workers=job["workers"])
    if job["workers"]:
        keys.update(prefetch_factor=job["prefetch"], persistent_workers=job["persistent"])
    return StreamingDataLoader(data, batch_size=job["batch"], collate_fn=lambda x: [len(s["data"]) for s in x], **keys)


def make(job):
    root = pathlib.Path(job["data"])
    root.mkdir(parents=True)
    r = random.Random(job["seed"])
    return dict(samples=globals()["make_" + {"webdataset": "tar"}.get(job["kind"], job["kind"])](job, root, r))


def train(job):
    import torch
    torch.set_num_threads(1)
    paths = sorted(str(p) for p in pathlib.Path(job["data"]).iterdir() if p.name != "index.json")
    loader = globals()["of_" + job["kind"]](job, paths)
    computes, periods, steps, samples = [], [], [], []
    for _ in range(job["epochs"]):
        n, k, last = 0, 0, None
        for x in loader() if callable(loader) else loader:
            at = time.monotonic()
            if last is not None:
                periods.append(at - last)
            last = at
            time.sleep(job["compute_ms"] / 1e3)
            computes.append(time.monotonic() - at)
            n += 1
            k += len(x[0]) if job["kind"] == "webdataset" else len(x)
        steps.append(n)
        samples.append(k)
    median = lambda v: sorted(v)[len(v) // 2] if v else None  # noqa: E731
    return dict(steps=steps, samples=samples, compute_s=median(computes), period_s=median(periods))


def main():
    job = {**DEFAULTS, **json.loads(sys.argv[2])}
    find_libraries(job["kind"])
    print(json.dumps(make(job) if sys.argv[1] == "make" else train(job)), flush=True)
    if job["kind"] == "parquet":
        os._exit(0)  # torch without NumPy, pyarrow with threads


if __name__ == "__main__":
    main()

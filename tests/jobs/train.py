#!/usr/bin/python3
"""One real training job for recording: the readers that people write over torch's DataLoader, with a model that sleeps.

usage: train.py JSON       the job as an object (see DEFAULTS)

Prints one line of JSON: what the job itself saw (its batches, steps, and how long each step computed).
"""
import itertools
import json
import os
import random
import struct
import sys
import tarfile
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset, RandomSampler, get_worker_info

DEFAULTS = dict(
    kind="npz", data="", eval_data=None, batch=4, eval_batch=None, workers=2, prefetch=2, epochs=2, shuffle=True, replacement=False,
    samples_drawn=None, drop_last=False, persistent=False, context="fork", compute_ms=25.0, eval_compute_ms=5.0, decode_ms=0.0,
    rows=16, seed=1, same_order=False, ranks=None, barrier=False, checkpoint=None,
    # what else people's programs do: a label file for each sample, a look into all files at the begin, a table of annotations,
    # a checkpoint that is read first, a log that grows, an end in the middle of an epoch, samples kept after their first read
    labels=False, scan=False, annotations=None, resume=None, log=None, max_steps=None, keep=False, buckets=False)


class Files(Dataset):
    """A sample a file, whatever the folders below are called."""

    def __init__(self, kind, root, decode_ms=0.0, labels=False, scan=False, keep=False):
        self.kind, self.decode_ms, self.labels, self.kept = kind, decode_ms, labels, {} if keep else None
        self.paths = sorted(os.path.join(d, n) for d, _, names in os.walk(root) for n in names if not n.endswith(".txt"))
        for path in self.paths if scan else []:
            with open(path, "rb") as f:
                f.read(64)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        path = self.paths[i]
        if self.kept is not None and i in self.kept:
            return self.kept[i]
        if self.labels:
            with open(os.path.splitext(path)[0] + ".txt") as f:
                int(f.read())
        if self.kind == "npz":
            with np.load(path) as z:
                x = z["x"]
        elif self.kind == "npy":
            x = np.load(path)
        elif self.kind == "mmap":
            x = np.load(path, mmap_mode="r")
            x = np.array(x[:4096])
        elif self.kind == "raw":
            x = np.fromfile(path, dtype=np.uint8)
        elif self.kind == "pt":
            x = torch.load(path).numpy()
        else:
            from PIL import Image
            with Image.open(path) as im:
                x = np.asarray(im)
        end = time.thread_time() + self.decode_ms / 1e3
        while time.thread_time() < end:  # what an augmentation costs
            pass
        x = torch.from_numpy(np.array(x)).float().mean()
        if self.kept is not None:
            self.kept[i] = x
        return x


class Rows(Dataset):
    """Several samples a file of HDF5: rows of its dataset."""

    def __init__(self, root, per):
        self.paths, self.per, self.open = sorted(os.path.join(root, n) for n in os.listdir(root)), per, {}

    def __len__(self):
        return len(self.paths) * self.per

    def __getitem__(self, i):
        import h5py
        path = self.paths[i // self.per]
        if path not in self.open:
            self.open[path] = h5py.File(path, "r")
        return torch.from_numpy(self.open[path]["records"][i % self.per]).float().mean()


class Memmap(Dataset):
    """Rows of one large file by np.memmap: no request at all."""

    def __init__(self, root, row):
        self.x = np.memmap(os.path.join(root, "all.bin"), dtype=np.uint8, mode="r").reshape(-1, row)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return torch.from_numpy(np.array(self.x[i])).float().mean()


class Indexed(Dataset):
    """Rows of one large file by pread, at fixed offsets."""

    def __init__(self, root, row):
        self.path, self.row, self.fd = os.path.join(root, "all.bin"), row, None
        self.n = os.stat(self.path).st_size // row

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if self.fd is None:
            self.fd = os.open(self.path, os.O_RDONLY)
        return torch.from_numpy(np.frombuffer(os.pread(self.fd, self.row, i * self.row), dtype=np.uint8).copy()).float().mean()


class Streams(IterableDataset):
    """Records of files read from begin to end: TFRecord framing, or members of tar archives."""

    def __init__(self, kind, root, shuffle, seed):
        self.kind, self.shuffle, self.seed, self.epoch = kind, shuffle, seed, 0
        self.paths = sorted(os.path.join(root, n) for n in os.listdir(root))

    def mine(self):
        paths, info = list(self.paths), get_worker_info()
        if self.shuffle:
            random.Random(f"{self.seed} {self.epoch}").shuffle(paths)
        return paths[info.id::info.num_workers] if info else paths

    def __iter__(self):
        for path in self.mine():
            if self.kind == "tfrecord":
                with open(path, "rb") as f:
                    while head := f.read(12):
                        n = struct.unpack("<Q", head[:8])[0]
                        yield torch.from_numpy(np.frombuffer(f.read(n), dtype=np.uint8).copy()).float().mean()
                        f.read(4)
            else:
                with open(path, "rb") as f, tarfile.open(fileobj=f, mode="r|") as t:
                    for member in t:
                        yield torch.from_numpy(np.frombuffer(t.extractfile(member).read(), dtype=np.uint8).copy()).float().mean()


def dataset(job, root, evaluation=False):
    if job["kind"] == "hdf5":
        return Rows(root, job["rows"])
    if job["kind"] == "memmap":
        return Memmap(root, job["rows"])
    if job["kind"] == "indexed":
        return Indexed(root, job["rows"])
    if job["kind"] in ("tfrecord", "tar"):
        return Streams(job["kind"], root, job["shuffle"] and not evaluation, job["seed"])
    return Files(job["kind"], root, job["decode_ms"], job["labels"], job["scan"], job["keep"])


class Buckets(torch.utils.data.Sampler):
    """Batches of 2 to 6 samples, as those that hold as many tokens as fit."""

    def __init__(self, n, seed):
        self.n, self.r = n, random.Random(seed)

    def __iter__(self):
        order = list(range(self.n))
        self.r.shuffle(order)
        while order:
            k = self.r.randrange(2, 7)
            yield order[:k]
            order = order[k:]


def loader(job, root, rank, evaluation=False):
    data, keys, sampler = dataset(job, root, evaluation), {}, None
    if job["workers"]:
        keys = dict(prefetch_factor=job["prefetch"], persistent_workers=job["persistent"], multiprocessing_context=job["context"])
    if not isinstance(data, IterableDataset) and not evaluation:
        if job["ranks"]:
            sampler = DistributedSampler(data, job["ranks"], rank, shuffle=job["shuffle"], seed=job["seed"])
        elif job["replacement"]:
            sampler = RandomSampler(data, replacement=True, num_samples=job["samples_drawn"])
        elif job["shuffle"]:
            keys["shuffle"] = True
    batch = job["eval_batch"] or job["batch"] if evaluation else job["batch"]
    g = torch.Generator()
    g.manual_seed(job["seed"])
    if job["buckets"] and not evaluation:
        return DataLoader(data, batch_sampler=Buckets(len(data), job["seed"]), num_workers=job["workers"], **{
            k: v for k, v in keys.items() if k != "shuffle"}), None, data, g
    return DataLoader(data, batch_size=batch, sampler=sampler, num_workers=job["workers"], generator=g,
                      drop_last=job["drop_last"] and not evaluation, **keys), sampler, data, g


def save(job, rank, state, step, epoch):
    c = job["checkpoint"]
    path = os.path.join(c["dir"], c.get("name", "ckpt_{step}.pt").format(step=step, epoch=epoch, rank=rank))
    part = path + ".tmp" if c.get("rename") else path
    torch.save(state, part)
    if c.get("fsync"):
        fd = os.open(part, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
    if c.get("rename"):
        os.rename(part, path)


def main():
    job = {**DEFAULTS, **json.loads(sys.argv[1])}
    torch.manual_seed(job["seed"])
    torch.set_num_threads(1)
    rank, barrier = 0, lambda: None
    if job["ranks"]:
        rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
        if job["barrier"]:
            from mpi4py import MPI
            barrier = MPI.COMM_WORLD.Barrier
    if job["annotations"]:
        with open(job["annotations"]) as f:
            json.load(f)
    if job["resume"]:
        torch.load(job["resume"])
    log = open(job["log"], "a", buffering=1) if job["log"] else None
    train, sampler, data, g = loader(job, job["data"], rank)
    test = loader(job, job["eval_data"], rank, True)[0] if job["eval_data"] else None
    c = job["checkpoint"]
    state = {"model": torch.zeros(c["bytes"] // 4) if c else None}
    sizes, computes, periods, evals, saved, per_epoch = [], [], [], 0, 0, []
    begin, step = time.monotonic(), 0
    for epoch in range(job["epochs"]):
        if job["same_order"]:
            g.manual_seed(job["seed"])
        if sampler is not None and job["ranks"]:
            sampler.set_epoch(epoch)
        if isinstance(data, Streams):
            data.epoch = epoch
        steps, last = 0, None
        for x in train:
            at = time.monotonic()
            if last is not None:
                periods.append(at - last)
            last = at
            time.sleep(job["compute_ms"] / 1e3)
            computes.append(time.monotonic() - at)
            sizes.append(len(x))
            barrier()
            steps, step = steps + 1, step + 1
            if log:
                log.write(f"step {step} loss {float(x.mean()):.4f}\n")
            if job["max_steps"] and step >= job["max_steps"]:
                break
            if c and c.get("every") and rank == 0 and step % c["every"] == 0:
                save(job, rank, state, step, epoch)
                saved += 1
                last = None
        per_epoch.append(steps)
        if c and not c.get("every") and rank == 0:
            save(job, rank, state, step, epoch)
            saved += 1
        if test is not None:
            for x in test:
                time.sleep(job["eval_compute_ms"] / 1e3)
                evals += 1
    median = lambda v: sorted(v)[len(v) // 2] if v else None
    print(json.dumps(dict(rank=rank, steps=step, steps_per_epoch=per_epoch, batches=[[n, len(list(k))] for n, k in itertools.groupby(sizes)],
                          compute_s=median(computes), period_s=median(periods), eval_steps=evals, saved=saved,
                          seconds=time.monotonic() - begin)), flush=True)


if __name__ == "__main__":
    main()

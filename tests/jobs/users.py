#!/usr/bin/python3
"""More jobs whose truth is known, as people write them: each is a program of its own, beside those of jobs.py. The rules of
`stoker explain` are not made on them.

usage: users.py list
       users.py record DIR [NAME ...] [--with strace|record|darshan] [--vary N]

DIR/NAME/truth.json has what explain may claim of the job ("expects"): a value, {"from", "to"}, {"one_of"}, or null where
nothing may be claimed. What a log cannot show for certain is not in it. `--vary` draws other sizes, batches, workers, times.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import pathlib
import queue
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
JOBS = {}


def job(f):
    JOBS[f.__name__.replace("_", "-")] = f
    return f


# ---- data ----

class Making:
    """Writes the data of a job, before it is recorded; `r` draws its parameters."""

    def __init__(self, root, seed):
        import numpy as np
        self.root, self.r, self.np = pathlib.Path(root), random.Random(seed), np.random.default_rng(sum(map(ord, str(seed))))

    def noise(self, n):
        return self.np.integers(0, 255, int(n), dtype="uint8")

    def binaries(self, folder, n, low=20000, high=60000, extension="bin"):
        at = self.root / folder
        at.mkdir(parents=True, exist_ok=True)
        for i in range(n):
            (at / f"s{i:05d}.{extension}").write_bytes(self.noise(self.r.randrange(low, high)).tobytes())

    def npz(self, folder, n, low=20000, high=60000):
        import numpy as np
        at = self.root / folder
        at.mkdir(parents=True, exist_ok=True)
        for i in range(n):
            np.savez(at / f"s{i:05d}.npz", x=self.noise(self.r.randrange(low, high)), y=np.int64(i))

    def images(self, folder, n, extension="jpg", side=(120, 260)):
        from PIL import Image
        at = self.root / folder
        at.mkdir(parents=True, exist_ok=True)
        for i in range(n):
            k = self.r.randrange(*side)
            Image.fromarray(self.noise(k * k).reshape(k, k)).save(at / f"n{i:06d}.{extension}")


# ---- programs: they run in a process of their own, and say what they did ----

class Run:
    """What a training loop does, counted."""

    def __init__(self, compute_ms=20.0):
        self.compute_ms, self.steps, self.samples, self.times, self.saved = compute_ms, 0, 0, [], 0

    def step(self, n, compute_ms=None):
        at = time.monotonic()
        time.sleep((self.compute_ms if compute_ms is None else compute_ms) / 1e3)
        self.times.append(time.monotonic() - at)
        self.steps += 1
        self.samples += n

    def compute(self):
        v = sorted(self.times)[len(self.times) // 2]
        return {"from": 0.9 * v, "to": 1.1 * v}

    def said(self, **more):
        print("TRUTH " + json.dumps({"steps": self.steps, "compute_s": self.compute(), "checkpoints": self.saved or None,
                                     "evaluations": None, "ranks": 1} | more), flush=True)


def torch_job(p):
    import torch
    torch.set_num_threads(1)
    torch.manual_seed(p.get("seed", 1))
    return torch


def dataset_of(paths, read):
    import torch

    class Files(torch.utils.data.Dataset):
        def __len__(self):
            return len(paths)

        def __getitem__(self, i):
            return read(paths[i])
    return Files()


def listed(folder, end=""):
    return sorted(os.path.join(d, n) for d, _, names in os.walk(folder) for n in names if n.endswith(end))


def mean_of(path):
    import torch
    with open(path, "rb") as f:
        x = f.read()
    return torch.tensor(float(len(x)))


def npz_mean(path):
    import numpy as np
    import torch
    with np.load(path) as z:
        return torch.from_numpy(z["x"]).float().mean()


def image(path):
    """As torchvision: open, decode, convert, crop, to a normalised tensor."""
    import numpy as np
    import torch
    from PIL import Image
    with open(path, "rb") as f:
        im = Image.open(f).convert("RGB")
    im = im.resize((96, 96)).crop((8, 8, 88, 88))
    return ((torch.from_numpy(np.array(im)).permute(2, 0, 1).float() / 255) - 0.45) / 0.22


def loader(data, p, **more):
    from torch.utils.data import DataLoader
    keys = dict(batch_size=p["batch"], num_workers=p["workers"]) | more
    if p["workers"] and "prefetch" in p:
        keys["prefetch_factor"] = p["prefetch"]
    return DataLoader(data, **keys)


def facts(p, n, order="random", **more):
    x = dict(files=n, samples=n, epochs=p["epochs"], workers=p["workers"], batch=p["batch"], order=order)
    if p["workers"]:
        x["prefetch"] = p.get("prefetch", 2) * p["workers"]
    return x | more


def plain(p, read=mean_of, n=None, order="random", more=None, **keys):
    """The usual loop over a loader of files."""
    torch_job(p)
    paths, run = listed(p["data"]), Run(p["compute_ms"])
    if order == "random":
        keys["shuffle"] = True
    d = loader(dataset_of(paths, read), p, **keys)
    for _ in range(p["epochs"]):
        for x in d:
            run.step(len(x))
    run.said(**facts(p, len(paths), order) | (more or {}))


def drawn(m, **fixed):
    r = m.r
    return dict(workers=r.choice([1, 2, 3]), batch=r.randrange(3, 9), epochs=r.choice([2, 3]), compute_ms=round(r.uniform(15, 35), 1),
                seed=r.randrange(1000)) | fixed


@job
def image_folder(m):
    for c in ("cat", "dog", "horse", "ship"):
        m.images(f"train/{c}", m.r.randrange(22, 28))
    return drawn(m, workers=3, batch=m.r.randrange(5, 9))


def run_image_folder(p):
    plain(p, image, more={"format": "jpeg"})


@job
def image_folder_pinned(m):
    m.images("train/a", 40, "png")
    m.images("train/b", 33, "png")
    return drawn(m)


def run_image_folder_pinned(p):
    torch = torch_job(p)
    import torch.utils.data._utils.pin_memory as pin
    torch.cuda.is_available, torch.cuda.current_device, torch.cuda.set_device = lambda: True, lambda: 0, lambda _: None
    pin.pin_memory = lambda data, device=None: data
    plain(p, image, pin_memory=True, more={"format": "png"})


@job
def batch_of_one(m):
    m.binaries("train", m.r.randrange(40, 60))
    return drawn(m, batch=1, compute_ms=m.r.choice([12.0, 18.0]))


def run_batch_of_one(p):
    plain(p)


@job
def batch_of_all(m):
    m.npz("train", 8)
    return drawn(m, batch=64, workers=2)


def run_batch_of_all(p):
    plain(p, npz_mean, more={"format": "npz", "batch": {"one_of": [8, 64]}, "prefetch": None})


@job
def six_workers_prefetch_one(m):
    m.binaries("train", m.r.randrange(120, 160), 4000, 9000)
    return drawn(m, workers=6, prefetch=1, batch=4)


def run_six_workers_prefetch_one(p):
    plain(p)


@job
def prefetch_eight(m):
    m.npz("train", m.r.randrange(130, 170), 4000, 9000)
    return drawn(m, workers=2, prefetch=8, batch=3, compute_ms=20)


def run_prefetch_eight(p):
    plain(p, npz_mean)


@job
def accumulation(m):
    m.binaries("train", 96)
    return drawn(m, workers=2, accumulate=4, batch=4)


def run_accumulation(p):
    torch_job(p)
    paths, run = listed(p["data"]), Run()
    d = loader(dataset_of(paths, mean_of), p, shuffle=True)
    for _ in range(p["epochs"]):
        for i, x in enumerate(d):
            run.step(len(x), 12 if (i + 1) % p["accumulate"] else 40)
    mean = sum(run.times) / len(run.times)
    run.said(**facts(p, len(paths)), compute_s={"from": 0.9 * 0.012, "to": 1.1 * mean})


@job
def validation_subset(m):
    m.images("all", m.r.randrange(60, 80))
    return drawn(m, valid=m.r.randrange(12, 18), workers=2)


def run_validation_subset(p):
    torch = torch_job(p)
    paths, run = listed(p["data"]), Run(p["compute_ms"])
    whole = dataset_of(paths, image)
    train, valid = torch.utils.data.random_split(whole, [len(paths) - p["valid"], p["valid"]])
    a, b = loader(train, p, shuffle=True), loader(valid, p)
    for _ in range(p["epochs"]):
        for x in a:
            run.step(len(x))
        for x in b:
            time.sleep(0.005)
    run.said(**facts(p, len(train)), evaluations=p["epochs"], eval_samples=p["valid"], eval_files=p["valid"], eval_batch=p["batch"])


@job
def weighted_sampler(m):
    m.binaries("train", m.r.randrange(50, 70))
    return drawn(m, workers=2, epochs=3)


def run_weighted_sampler(p):
    torch = torch_job(p)
    from torch.utils.data import WeightedRandomSampler
    paths, run = listed(p["data"]), Run(p["compute_ms"])
    weights = [1 + 4 * (i % 3 == 0) for i in range(len(paths))]
    d = loader(dataset_of(paths, mean_of), p, sampler=WeightedRandomSampler(weights, len(paths)))
    for _ in range(p["epochs"]):
        for x in d:
            run.step(len(x))
    some = {"from": 0.4 * len(paths), "to": len(paths)}
    run.said(**facts(p, some, "replacement"))


@job
def jsonl_streams(m):
    at = m.root / "train"
    at.mkdir()
    for i in range(6):
        with open(at / f"part-{i:02d}.jsonl", "w") as f:
            for k in range(m.r.randrange(30, 40)):
                f.write(json.dumps({"id": k, "text": "word " * m.r.randrange(200, 900)}) + "\n")
    return drawn(m, workers=m.r.choice([2, 3]), batch=8)


def run_jsonl_streams(p):
    torch = torch_job(p)
    from torch.utils.data import IterableDataset, get_worker_info
    paths, run = listed(p["data"]), Run(p["compute_ms"])

    class Lines(IterableDataset):
        def __iter__(self):
            info = get_worker_info()
            for path in paths[info.id::info.num_workers]:
                with open(path) as f:
                    for line in f:
                        yield torch.tensor(float(len(json.loads(line)["text"])))
    d = loader(Lines(), p)
    for _ in range(p["epochs"]):
        for x in d:
            run.step(len(x))
    run.said(files=len(paths), samples=None, batch=None, epochs=p["epochs"], workers=p["workers"], prefetch=2 * p["workers"])


@job
def curriculum(m):
    m.binaries("train", 90)
    return drawn(m, workers=2, epochs=3, batch=5)


def run_curriculum(p):
    torch = torch_job(p)
    paths, run = listed(p["data"]), Run(p["compute_ms"])
    for e in range(p["epochs"]):
        some = paths[:len(paths) * (e + 1) // p["epochs"]]
        for x in loader(dataset_of(some, mean_of), p, shuffle=True):
            run.step(len(x))
    run.said(**facts(p, len(paths)))


@job
def memmap_tokens(m):
    (m.root / "train").mkdir()
    (m.root / "train/train.bin").write_bytes(m.noise(24 << 20).tobytes())
    return drawn(m, batch=12, steps=60, compute_ms=12)


def run_memmap_tokens(p):
    """nanoGPT: batches of random places of a mapped file, no loader."""
    import numpy as np
    torch = torch_job(p)
    run = Run(p["compute_ms"])
    for i in range(p["steps"]):
        data = np.memmap(p["data"] + "/train.bin", dtype=np.uint16, mode="r")
        at = torch.randint(len(data) - 1024, (p["batch"],))
        x = torch.stack([torch.from_numpy(data[k:k + 1024].astype(np.int64)) for k in at])
        run.step(len(x))
        if i % 20 == 19:
            torch.save({"model": torch.zeros(1 << 19), "iter": i}, p["out"] + "/ckpt.pt")
            run.saved += 1
    run.said(files={"one_of": [1]}, samples=None, epochs=None, batch=None, steps=None, compute_s=None, workers={"one_of": [0]})


@job
def pread_tokens(m):
    (m.root / "train").mkdir()
    (m.root / "train/tokens.bin").write_bytes(m.noise(16 << 20).tobytes())
    return drawn(m, batch=m.r.choice([6, 8]), steps=50, compute_ms=15)


def run_pread_tokens(p):
    """Random windows of a file of tokens, read by the process that trains."""
    run, r = Run(p["compute_ms"]), random.Random(p["seed"])
    fd = os.open(p["data"] + "/tokens.bin", os.O_RDONLY)
    for _ in range(p["steps"]):
        for _ in range(p["batch"]):
            os.pread(fd, 8192, 2 * r.randrange((16 << 19) - 4096))
        run.step(p["batch"])
    run.said(files=1, epochs=None, batch=p["batch"], workers=0, samples={"from": 0, "to": p["steps"] * p["batch"]})


@job
def resumed(m):
    m.npz("train", m.r.randrange(50, 60))
    torch_save(m.root / "epoch_3.pt", 1 << 20)
    return drawn(m, workers=2)


def torch_save(path, floats):
    import torch
    torch.save({"model": torch.zeros(floats), "epoch": 3}, path)


def run_resumed(p):
    torch = torch_job(p)
    torch.load(p["root"] + "/epoch_3.pt")
    paths, run = listed(p["data"]), Run(p["compute_ms"])
    for e in range(p["epochs"]):
        for x in loader(dataset_of(paths, npz_mean), p, shuffle=True):
            run.step(len(x))
        torch.save({"model": torch.zeros(1 << 20)}, f"{p['out']}/epoch_{e + 4}.pt")
        run.saved += 1
    run.said(**facts(p, len(paths)), checkpoint_stops_training=True, format="npz")


@job
def checkpoint_by_thread(m):
    m.binaries("train", 100)
    return drawn(m, workers=2, every=m.r.choice([5, 6]), batch=5)


def run_checkpoint_by_thread(p):
    """The state is copied, and a thread writes it while training goes on."""
    torch_job(p)
    paths, run, i, writers = listed(p["data"]), Run(p["compute_ms"]), 0, []

    def write(step):
        with open(f"{p['out']}/step_{step}.ckpt.part", "wb") as f:
            for _ in range(8):
                f.write(bytes(512 << 10))
                f.flush()
                time.sleep(0.01)
            os.fsync(f.fileno())
        os.rename(f"{p['out']}/step_{step}.ckpt.part", f"{p['out']}/step_{step}.ckpt")
    for _ in range(p["epochs"]):
        for x in loader(dataset_of(paths, mean_of), p, shuffle=True):
            run.step(len(x))
            i += 1
            if i % p["every"] == 0:
                writers.append(threading.Thread(target=write, args=(i,)))
                writers[-1].start()
                run.saved += 1
    for t in writers:
        t.join()
    run.said(**facts(p, len(paths)), checkpoint_stops_training=False, checkpoint_fsync=True, checkpoint_rename=True,
             steps_between_checkpoints=p["every"], checkpoint_bytes={"from": 4 << 20, "to": (4 << 20) + 4096})


@job
def safetensors(m):
    m.images("train", 60, "png")
    return drawn(m, workers=2, batch=6)


def run_safetensors(p):
    """Two files a checkpoint: a header with the tensors behind it, and the optimizer's state."""
    torch = torch_job(p)
    paths, run = listed(p["data"]), Run(p["compute_ms"])
    for e in range(p["epochs"]):
        for x in loader(dataset_of(paths, image), p, shuffle=True):
            run.step(len(x))
        at = f"{p['out']}/checkpoint-{e}"
        os.makedirs(at)
        with open(at + "/model.safetensors", "wb") as f:
            head = json.dumps({"w": {"dtype": "F32", "shape": [1 << 18], "data_offsets": [0, 1 << 20]}}).encode()
            f.write(struct.pack("<Q", len(head)) + head)
            f.write(bytes(1 << 20))
        torch.save({"state": torch.zeros(1 << 19)}, at + "/optimizer.pt")
        with open(at + "/trainer_state.json", "w") as f:
            json.dump({"epoch": e}, f)
        run.saved += 1
    run.said(**facts(p, len(paths)), checkpoint_files={"from": 2, "to": 3}, checkpoint_bytes={"from": 3 << 20, "to": 1.02 * (3 << 20)})


@job
def advised_readahead(m):
    m.binaries("train", 60, 40000, 90000)
    return drawn(m, workers=0)


def run_advised_readahead(p):
    """The next batch's files are opened and advised, then read one step later."""
    run, paths, r = Run(p["compute_ms"]), listed(p["data"]), random.Random(p["seed"])
    for _ in range(p["epochs"]):
        r.shuffle(paths)
        batches = [paths[i:i + p["batch"]] for i in range(0, len(paths), p["batch"])]
        ahead = []
        for i in range(len(batches) + 1):
            now, ahead = ahead, []
            for path in batches[i] if i < len(batches) else []:
                fd = os.open(path, os.O_RDONLY)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_WILLNEED)
                ahead.append(fd)
            for fd in now:
                while os.read(fd, 1 << 20):
                    pass
                os.close(fd)
            if now:
                run.step(len(now))
    run.said(**facts(p, len(paths)))


@job
def copied_first(m):
    m.binaries("remote", m.r.randrange(60, 80))
    return drawn(m, workers=2)


def run_copied_first(p):
    shutil.copytree(p["root"] + "/remote", p["root"] + "/scratch")
    plain(p | {"data": p["root"] + "/scratch"})


@job
def two_trainings(m):
    m.binaries("train", 48)
    return drawn(m, workers=2, epochs=2, twice=True)


def run_two_trainings(p):
    plain(p, more={"epochs": {"one_of": [2, 4]}})


@job
def long_pause(m):
    m.binaries("train", 72)
    return drawn(m, workers=2, epochs=2)


def run_long_pause(p):
    """A notebook: the cell of the second epoch is run later, and it is interrupted once in the middle of the first."""
    torch_job(p)
    paths, run = listed(p["data"]), Run(p["compute_ms"])
    d = loader(dataset_of(paths, mean_of), p, shuffle=True)
    for e in range(p["epochs"]):
        for i, x in enumerate(d):
            run.step(len(x))
            if e == 0 and i == 5:
                time.sleep(1.5)
        time.sleep(1)
    run.said(**facts(p, len(paths)))


@job
def killed(m):
    m.npz("train", 60)
    return drawn(m, workers=2, epochs=3, batch=4, dies=True)


def run_killed(p):
    torch_job(p)
    paths, run = listed(p["data"]), Run(p["compute_ms"])
    d = loader(dataset_of(paths, npz_mean), p, shuffle=True)
    for e in range(p["epochs"]):
        for i, x in enumerate(d):
            run.step(len(x))
            if e == 2 and i == 6:
                run.said(**facts(p, len(paths)))
                sys.stdout.flush()
                os.kill(os.getpid(), signal.SIGKILL)


@job
def cached_in_memory(m):
    m.binaries("train", 64)
    return drawn(m, workers=0, epochs=3)


def run_cached_in_memory(p):
    """The first epoch reads, the others find the samples in memory."""
    torch_job(p)
    kept = {}

    def read(path):
        if path not in kept:
            kept[path] = mean_of(path)
        return kept[path]
    plain(p, read, more={"epochs": {"one_of": [1, 3]}, "steps": {"one_of": [-(-64 // p["batch"]), 3 * -(-64 // p["batch"])]}})


@job
def cached_in_persistent_workers(m):
    m.binaries("train", 64)
    return drawn(m, workers=2, epochs=4)


def run_cached_in_persistent_workers(p):
    torch_job(p)
    kept = {}

    def read(path):
        if path not in kept:
            kept[path] = mean_of(path)
        return kept[path]
    plain(p, read, persistent_workers=True)


@job
def pool_of_threads(m):
    m.images("train", m.r.randrange(60, 80))
    return drawn(m, workers=0, threads=m.r.choice([3, 4]), batch=8)


def run_pool_of_threads(p):
    """concurrent.futures: the next batch is loaded while this one trains."""
    run, paths, r = Run(p["compute_ms"]), listed(p["data"]), random.Random(p["seed"])
    from PIL import Image

    def load(path):
        with open(path, "rb") as f:
            return len(Image.open(f).convert("RGB").tobytes())
    with concurrent.futures.ThreadPoolExecutor(p["threads"]) as pool:
        for _ in range(p["epochs"]):
            r.shuffle(paths)
            batches = [paths[i:i + p["batch"]] for i in range(0, len(paths), p["batch"])]
            ahead = [pool.submit(load, x) for x in batches[0]]
            for i in range(len(batches)):
                now = [f.result() for f in ahead]
                ahead = [pool.submit(load, x) for x in batches[i + 1]] if i + 1 < len(batches) else []
                run.step(len(now))
    run.said(**facts(p, len(paths)) | {"workers": p["threads"], "format": "jpeg"})


@job
def native_threads(m):
    m.binaries("train", 96, 60000, 200000, "dat")
    return drawn(m, workers=0, threads=3, batch=6)


def run_native_threads(p):
    """One process as DALI: reader threads with shards of their own, pread of pieces, a queue of decoded samples."""
    run, paths, done = Run(p["compute_ms"]), listed(p["data"]), queue.Queue(2 * p["batch"])

    def read(k):
        r = random.Random(k)
        mine = paths[k::p["threads"]]
        for _ in range(p["epochs"]):
            r.shuffle(mine)
            for path in mine:
                fd = os.open(path, os.O_RDONLY)
                size, at = os.fstat(fd).st_size, 0
                while at < size:
                    at += len(os.pread(fd, 65536, at))
                os.close(fd)
                done.put(at)
    for k in range(p["threads"]):
        threading.Thread(target=read, args=(k,), daemon=True).start()
    for _ in range(p["epochs"] * len(paths) // p["batch"]):
        for _ in range(p["batch"]):
            done.get()
        run.step(p["batch"])
    run.said(**facts(p, len(paths)) | {"workers": p["threads"], "batch": p["batch"]})


def of_rank(p, rank, ranks, barrier=None):
    torch_job(p)
    from torch.utils.data import DistributedSampler
    paths, run = listed(p["data"]), Run(p["compute_ms"])
    data = Npz(paths)
    sampler = DistributedSampler(data, ranks, rank, shuffle=True, seed=p["seed"])
    d = loader(data, p, sampler=sampler)
    for e in range(p["epochs"]):
        sampler.set_epoch(e)
        for x in d:
            run.step(len(x))
            if barrier:
                barrier()
    if rank == 0:
        run.said(**facts(p, len(paths)), ranks=ranks)


@job
def spawned_ranks(m):
    m.npz("train", 64)
    return drawn(m, workers=m.r.choice([0, 1]))


def rank_of_spawn(rank, p):
    of_rank(p, rank, 2)


def run_spawned_ranks(p):
    import torch.multiprocessing
    torch.multiprocessing.spawn(rank_of_spawn, args=(p,), nprocs=2)


@job
def torchrun(m):
    m.npz("train", 80)
    return drawn(m, workers=2, batch=4)


def run_torchrun(p):
    import torch.distributed as dist
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo")
    of_rank(p, rank, int(os.environ["WORLD_SIZE"]), dist.barrier)


@job
def zip_archive(m):
    import zipfile
    (m.root / "train").mkdir()
    n = m.r.randrange(60, 80)
    with zipfile.ZipFile(m.root / "train/images.zip", "w") as z:
        for i in range(n):
            z.writestr(f"{i:05d}.bin", m.noise(m.r.randrange(15000, 50000)).tobytes())
    return drawn(m, workers=2, n=n)


def run_zip_archive(p):
    """Each worker opens the archive once, and reads members at random."""
    torch = torch_job(p)
    import zipfile
    run, archive = Run(p["compute_ms"]), []

    class Members(torch.utils.data.Dataset):
        def __len__(self):
            return p["n"]

        def __getitem__(self, i):
            if not archive:
                archive.append(zipfile.ZipFile(p["data"] + "/images.zip"))
            return torch.tensor(float(len(archive[0].read(f"{i:05d}.bin"))))
    d = loader(Members(), p, shuffle=True)
    for _ in range(p["epochs"]):
        for x in d:
            run.step(len(x))
    run.said(**facts(p, p["n"]) | {"files": 1})


@job
def lz4_files(m):
    import lz4.frame
    (m.root / "train").mkdir()
    for i in range(70):
        (m.root / f"train/{i:04d}.npy.lz4").write_bytes(lz4.frame.compress(m.noise(m.r.randrange(20000, 50000)).tobytes()))
    return drawn(m, workers=2)


def run_lz4_files(p):
    torch = torch_job(p)
    import lz4.frame

    def read(path):
        with lz4.frame.open(path) as f:
            return torch.tensor(float(len(f.read())))
    plain(p, read)


@job
def much_logging(m):
    m.binaries("train", 80)
    return drawn(m, workers=2, batch=4)


def run_much_logging(p):
    """Event files, a table, a run file that grows above a megabyte; no checkpoint."""
    torch_job(p)
    paths, run = listed(p["data"]), Run(p["compute_ms"])
    events = open(f"{p['out']}/events.out.tfevents.1700000000.host.1.0", "ab")
    table, wandb = open(p["out"] + "/metrics.csv", "w", buffering=1), open(p["out"] + "/run-3f2a.wandb", "wb", buffering=0)
    for _ in range(p["epochs"]):
        for x in loader(dataset_of(paths, mean_of), p, shuffle=True):
            run.step(len(x))
            events.write(bytes(40000))
            events.flush()
            table.write(f"{run.steps},{float(x.mean())}\n")
            wandb.write(bytes(50000))
    run.said(**facts(p, len(paths)))


@job
def masks(m):
    m.images("train/images", 60, "png")
    m.images("train/masks", 60, "png")
    return drawn(m, workers=2, batch=4)


def run_masks(p):
    """Segmentation: a sample is an image and its mask, two files of one name in two folders."""
    torch = torch_job(p)
    paths, run = listed(p["data"] + "/images"), Run(p["compute_ms"])
    data = dataset_of(paths, lambda path: image(path) + image(path.replace("/images/", "/masks/")))
    d = loader(data, p, shuffle=True)
    for _ in range(p["epochs"]):
        for x in d:
            run.step(len(x))
    run.said(**facts(p, len(paths)) | {"files": {"one_of": [len(paths), 2 * len(paths)]}})


@job
def array_shards(m):
    import numpy as np
    (m.root / "train").mkdir()
    for i in range(12):
        np.save(m.root / f"train/shard_{i:03d}.npy", m.noise(24 * 8192).reshape(24, 8192))
    return drawn(m, workers=2, batch=8)


def run_array_shards(p):
    """Each file is loaded whole and has 24 samples."""
    torch = torch_job(p)
    import numpy as np
    from torch.utils.data import IterableDataset, get_worker_info
    paths, run = listed(p["data"]), Run(p["compute_ms"])

    class Shards(IterableDataset):
        def __iter__(self):
            info = get_worker_info()
            for path in paths[info.id::info.num_workers]:
                yield from (torch.from_numpy(x).float().mean() for x in np.load(path))
    for _ in range(p["epochs"]):
        for x in loader(Shards(), p):
            run.step(len(x))
    run.said(files=12, samples=None, batch=None, epochs=p["epochs"], workers=p["workers"], prefetch=2 * p["workers"], format="npy")


@job
def two_datasets_in_hdf5(m):
    import h5py
    (m.root / "train").mkdir()
    with h5py.File(m.root / "train/all.h5", "w") as f:
        f.create_dataset("images", data=m.noise(80 * 24576).reshape(80, -1))
        f.create_dataset("labels", data=m.noise(80))
    return drawn(m, workers=3, batch=8)


def run_two_datasets_in_hdf5(p):
    torch = torch_job(p)
    import h5py
    run, at = Run(p["compute_ms"]), []

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return 80

        def __getitem__(self, i):
            if not at:
                at.append(h5py.File(p["data"] + "/all.h5", "r"))
            return torch.from_numpy(at[0]["images"][i]).float().mean() + float(at[0]["labels"][i])
    for _ in range(p["epochs"]):
        for x in loader(Rows(), p, shuffle=True):
            run.step(len(x))
    run.said(**facts(p, 80) | {"files": 1, "format": "hdf5"})


@job
def slow_first_step(m):
    m.binaries("train", 80)
    return drawn(m, workers=0, batch=5)


def run_slow_first_step(p):
    """The first step compiles; the process that trains reads itself."""
    torch_job(p)
    paths, run = listed(p["data"]), Run(p["compute_ms"])
    for _ in range(p["epochs"]):
        for x in loader(dataset_of(paths, mean_of), p, shuffle=True):
            run.step(len(x), 900 if run.steps == 0 else None)
    run.said(**facts(p, len(paths)))


@job
def varied_steps(m):
    m.binaries("train", 90)
    return drawn(m, workers=2)


def run_varied_steps(p):
    torch_job(p)
    paths, run, r = listed(p["data"]), Run(p["compute_ms"]), random.Random(p["seed"])
    for _ in range(p["epochs"]):
        for x in loader(dataset_of(paths, mean_of), p, shuffle=True):
            run.step(len(x), p["compute_ms"] * r.uniform(0.5, 1.6))
    mean = sum(run.times) / len(run.times)
    run.said(**facts(p, len(paths)), compute_s={"from": 0.8 * mean, "to": 1.2 * mean})


@job
def forkserver_workers(m):
    m.images("train", 60)
    return drawn(m, workers=2, epochs=1)


def run_forkserver_workers(p):
    """Workers that are started anew; they need a dataset of a module."""
    torch_job(p)
    paths, run = listed(p["data"]), Run(p["compute_ms"])
    for _ in range(p["epochs"]):
        for x in loader(Images(paths), p, shuffle=True, multiprocessing_context="forkserver"):
            run.step(len(x))
    run.said(**facts(p, len(paths)), format="jpeg")


class Images:
    read = staticmethod(image)

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return self.read(self.paths[i])


class Npz(Images):
    read = staticmethod(npz_mean)


@job
def mnist_in_memory(m):
    (m.root / "train").mkdir()
    (m.root / "train/train-images-idx3-ubyte").write_bytes(m.noise(4 << 20).tobytes())
    (m.root / "train/train-labels-idx1-ubyte").write_bytes(m.noise(6000).tobytes())
    return drawn(m, workers=2, batch=100)


def run_mnist_in_memory(p):
    """Two files are read whole before training; workers serve from memory."""
    torch = torch_job(p)
    x = torch.frombuffer(bytearray(pathlib.Path(p["data"], "train-images-idx3-ubyte").read_bytes()), dtype=torch.uint8)
    pathlib.Path(p["data"], "train-labels-idx1-ubyte").read_bytes()
    x, run = x[:4096 * 1000].reshape(-1, 1024), Run(p["compute_ms"])
    for _ in range(p["epochs"]):
        for y in loader(torch.utils.data.TensorDataset(x), p, shuffle=True):
            run.step(len(y[0]))
    run.said(samples=None, batch=None, epochs={"one_of": [p["epochs"]]}, workers={"one_of": [p["workers"]]})


@job
def two_datasets_at_once(m):
    m.images("train/pictures", 40)
    m.binaries("train/sounds", 40, 8000, 20000, "raw")
    return drawn(m, workers=1, batch=4)


def run_two_datasets_at_once(p):
    """Two loaders, one batch of each in a step."""
    torch_job(p)
    a, b, run = listed(p["data"] + "/pictures"), listed(p["data"] + "/sounds"), Run(p["compute_ms"])
    for _ in range(p["epochs"]):
        x = loader(dataset_of(a, image), p, shuffle=True)
        y = loader(dataset_of(b, mean_of), p, shuffle=True)
        for u, _ in zip(x, y):
            run.step(len(u))
    run.said(epochs=p["epochs"], batch=p["batch"], steps={"one_of": [run.steps, 2 * run.steps]}, compute_s={"from": 0, "to": 1})


@job
def evaluation_between_steps(m):
    m.npz("train/fit", 80)
    m.npz("train/val", 20)
    return drawn(m, workers=2, batch=5, epochs=2, every=8)


def run_evaluation_between_steps(p):
    torch_job(p)
    train, valid, run, evaluations = listed(p["data"] + "/fit"), listed(p["data"] + "/val"), Run(p["compute_ms"]), 0
    for _ in range(p["epochs"]):
        for i, x in enumerate(loader(dataset_of(train, npz_mean), p, shuffle=True)):
            run.step(len(x))
            if (i + 1) % p["every"] == 0:
                evaluations += 1
                for _ in loader(dataset_of(valid, npz_mean), p | {"workers": 1}):
                    time.sleep(0.004)
    run.said(epochs=p["epochs"], batch=p["batch"], samples=len(train), evaluations=evaluations, eval_samples=len(valid))


@job
def sweep(m):
    m.binaries("train", 40)
    return drawn(m, workers=2, batch=5)


def run_sweep(p):
    """Three trainings of other rates in one process: no log can tell them from more epochs."""
    torch_job(p)
    paths, run = listed(p["data"]), Run(p["compute_ms"])
    for _ in range(3):
        for _ in range(p["epochs"]):
            for x in loader(dataset_of(paths, mean_of), p, shuffle=True):
                run.step(len(x))
    run.said(**facts(p, len(paths)) | {"epochs": 3 * p["epochs"]})


@job
def segments_of_sounds(m):
    m.binaries("train", 48, 300000, 400000, "wav")
    return drawn(m, workers=2)


def run_segments_of_sounds(p):
    """A piece at a random place of each file."""
    torch = torch_job(p)
    r = random.Random(p["seed"])

    def read(path):
        with open(path, "rb", buffering=0) as f:
            f.read(44)
            f.seek(44 + 4 * r.randrange(50000))
            return torch.tensor(float(len(f.read(64000))))
    plain(p, read)


@job
def persistent_both(m):
    m.images("train/fit", 60)
    m.images("train/test", 24)
    return drawn(m, workers=2, epochs=3, batch=4)


def run_persistent_both(p):
    torch_job(p)
    train, test, run = listed(p["data"] + "/fit"), listed(p["data"] + "/test"), Run(p["compute_ms"])
    a = loader(dataset_of(train, image), p, shuffle=True, persistent_workers=True)
    b = loader(dataset_of(test, image), p | {"batch": 6}, persistent_workers=True)
    for _ in range(p["epochs"]):
        for x in a:
            run.step(len(x))
        for x in b:
            time.sleep(0.006)
    run.said(**facts(p, len(train)) | {"evaluations": p["epochs"], "eval_samples": len(test), "eval_batch": 6})


@job
def documents(m):
    (m.root / "train").mkdir()
    for i in range(50):
        (m.root / f"train/doc_{i:04d}.txt").write_text("word " * m.r.randrange(500, 4000))
    return drawn(m, workers=1, batch=5)


def run_documents(p):
    torch = torch_job(p)

    def read(path):
        with open(path) as f:
            return torch.tensor(float(len(f.read().split())))
    plain(p, read)


@job
def sharded_checkpoints(m):
    m.npz("train", 60)
    return drawn(m, workers=1, batch=5)


def run_sharded_checkpoints(p):
    """Each rank writes its part at the end of an epoch."""
    torch = torch_job(p)
    import torch.distributed as dist
    from torch.utils.data import DistributedSampler
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo")
    paths, run = listed(p["data"]), Run(p["compute_ms"])
    data = Npz(paths)
    sampler = DistributedSampler(data, 2, rank, shuffle=True, seed=p["seed"])
    d = loader(data, p, sampler=sampler)
    for e in range(p["epochs"]):
        sampler.set_epoch(e)
        for x in d:
            run.step(len(x))
            dist.barrier()
        torch.save({"part": torch.zeros(1 << 18)}, f"{p['out']}/epoch{e}_rank{rank}.pt")
        run.saved += 1
    if rank == 0:
        run.said(**facts(p, len(paths)), ranks=2, checkpoint_files=2, checkpoint_bytes={"from": 2 << 20, "to": 1.02 * (2 << 20)})


@job
def offsets_in_tar(m):
    import tarfile
    (m.root / "train").mkdir()
    with tarfile.open(m.root / "train/all.tar", "w") as t:
        at = m.root / "part.bin"
        for i in range(64):
            at.write_bytes(m.noise(m.r.randrange(20000, 60000)).tobytes())
            t.add(at, f"{i:04d}.bin")
    return drawn(m, workers=2)


def run_offsets_in_tar(p):
    """Members of an archive by an index, in any order."""
    torch = torch_job(p)
    import tarfile
    with tarfile.open(p["data"] + "/all.tar") as t:
        places = [(x.offset_data, x.size) for x in t]
    run, fd = Run(p["compute_ms"]), []

    class Members(torch.utils.data.Dataset):
        def __len__(self):
            return len(places)

        def __getitem__(self, i):
            if not fd:
                fd.append(os.open(p["data"] + "/all.tar", os.O_RDONLY))
            return torch.tensor(float(len(os.pread(fd[0], places[i][1], places[i][0]))))
    for _ in range(p["epochs"]):
        for x in loader(Members(), p, shuffle=True):
            run.step(len(x))
    run.said(files=1, epochs=p["epochs"], workers=p["workers"], prefetch=2 * p["workers"], batch=p["batch"], samples=64)


@job
def tables_inline(m):
    (m.root / "train").mkdir()
    for i in range(40):
        (m.root / f"train/t{i:03d}.csv").write_text("\n".join(",".join(f"{x:.5f}" for x in m.np.random(60)) for _ in range(20)))
    return drawn(m, workers=0, epochs=2)


def run_tables_inline(p):
    """A table is parsed by numpy as long as a step computes, in the process that trains: only the library shows a framework."""
    import numpy as np

    def read(path):
        import torch
        time.sleep(0.004)
        return torch.from_numpy(np.loadtxt(path, delimiter=",")).mean()
    plain(p, read, more=dict(format="csv", framework="PyTorch"))


@job
def own_processes(m):
    m.binaries("train", 48)
    return drawn(m, workers=2, batch=4, epochs=2)


def produce(paths, batch, put):
    for i in range(0, len(paths), batch):
        put.put([len(pathlib.Path(path).read_bytes()) for path in paths[i:i + batch]])
    put.put(None)


def run_own_processes(p):
    """Each worker sends its batches over a queue of its own, without being asked."""
    import multiprocessing
    spawn = multiprocessing.get_context("spawn")
    run, paths, order = Run(p["compute_ms"]), listed(p["data"]), random.Random(p["name"])
    for _ in range(p["epochs"]):
        order.shuffle(paths)
        queues = [spawn.Queue(2) for _ in range(2)]
        workers = [spawn.Process(target=produce, args=(paths[k::2], p["batch"], q)) for k, q in enumerate(queues)]
        for w in workers:
            w.start()
        left = list(queues)
        while left:
            for q in list(left):
                got = q.get()
                if got is None:
                    left.remove(q)
                else:
                    run.step(len(got))
        for w in workers:
            w.join()
    print("TRUTH " + json.dumps(dict(ranks=1, workers=2, epochs=p["epochs"], samples=48, files=48, order="random", checkpoints=None,
                                     evaluations=None)), flush=True)


# ---- programs that do not train ----

TRAINING = ("epochs", "batch", "compute_s", "workers", "prefetch", "checkpoints", "steps", "evaluations", "ranks", "eval_batch")


def shell(command, make):
    def build(m):
        make(m)
        return dict(command=command)
    return build


def text_tree(m):
    for d in range(4):
        (m.root / f"train/d{d}").mkdir(parents=True)
        for i in range(15):
            (m.root / f"train/d{d}/f{i}.txt").write_text("a line of words\n" * m.r.randrange(100, 3000))


def c_files(m):
    (m.root / "train").mkdir()
    for i in range(5):
        (m.root / f"train/f{i}.c").write_text(f"#include <stdio.h>\nint f{i}(void)\n{{\n\treturn printf(\"{i}\");\n}}\n")
    (m.root / "train/main.c").write_text("int f0(void);\nint main(void)\n{\n\treturn f0();\n}\n")


def tables(m):
    (m.root / "train").mkdir()
    for i in range(12):
        with open(m.root / f"train/day{i:02d}.csv", "w") as f:
            f.write("a,b,c\n")
            for k in range(3000):
                f.write(f"{k},{m.r.random()},{m.r.random()}\n")


ZOO = {
    "grep": ("grep -rc words {data} > {out}/n; grep -rl nothing {data}; true", text_tree),
    "find-and-sort": ("find {data} -name '*.txt' -print0 | xargs -0 -P 3 -n 5 sort -o /dev/null", text_tree),
    "tar-twice": ("tar cf {out}/a.tar -C {data} . && tar xf {out}/a.tar -C {out} && diff -r {data} {out} > /dev/null; true",
                  lambda m: m.binaries("train", 30, 40000, 300000)),
    "gcc": ("cd {data} && for f in *.c; do gcc -O1 -c $f -o {out}/$f.o; done; gcc {out}/*.o -o {out}/program; {out}/program > /dev/null; true",
            c_files),
    "git": ("cd {data} && git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -qm a && git clone -q . {out}/clone && "
            "git -C {out}/clone log --stat > /dev/null && git gc -q", text_tree),
    "sqlite": ("sqlite3 {out}/a.db 'create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<60000) insert into t "
               "select x, hex(randomblob(40)) from c; create index i on t(b); select count(*) from t where b > \"8\"; delete from t where a % 3 = 0; vacuum;'",
               lambda m: (m.root / "train").mkdir()),
    "pandas": (f"{PYTHON} -c \"import pandas, glob; [print(pandas.read_csv(f).describe().shape) for f in sorted(glob.glob('{{data}}/*.csv'))]\"", tables),
    "thumbnails": (f"{PYTHON} {HERE}/users.py thumbnails {{data}} {{out}}", lambda m: m.images("train", 60)),
    "thumbnails-by-pool": (f"{PYTHON} {HERE}/users.py pool {{data}} {{out}}", lambda m: m.images("train", 60)),
    "inference": (f"{PYTHON} {HERE}/users.py inference {{data}} {{out}}", lambda m: (m.images("train", 40), torch_save(m.root / "model.pt", 1 << 20))),
    "two-models": (f"{PYTHON} {HERE}/users.py models {{data}} {{out}}", lambda m: m.images("train", 48)),
    "centers": (f"{PYTHON} {HERE}/users.py centers {{data}} {{out}}", lambda m: m.npz("train", 30)),
    "words-twice": ("cat {data}/*.bin | md5sum; cat {data}/*.bin | wc -c; gzip -c {data}/*.bin > {out}/all.gz",
                    lambda m: m.binaries("train", 40)),
    "logs-followed": ("for i in 1 2 3; do awk '{{n++}} END {{print n}}' {data}/d0/*.txt {data}/d1/*.txt > {out}/n; sleep 0.2; done", text_tree),
    "backup-copy": (f"{PYTHON} -c \"import shutil; shutil.copytree('{{data}}', '{{out}}/c'); shutil.make_archive('{{out}}/z', 'zip', '{{data}}')\"",
                    lambda m: m.binaries("train", 40, 100000, 200000)),
    "torch-import": (f"{PYTHON} -c 'import torch; print(torch.ones(3).sum())'", lambda m: (m.root / "train").mkdir()),
    "make": ("cd {data} && printf 'program: $(patsubst %%.c,%%.o,$(wildcard *.c))\\n\\tgcc -o $@ $^\\n' > Makefile && make -s -j3 && touch f0.c && make -s", c_files),
    "copied-by-threads": (f"{PYTHON} {HERE}/users.py threads {{data}} {{out}}", lambda m: m.binaries("train", 60)),
    "npz-summary": (f"{PYTHON} {HERE}/users.py summary {{data}} {{out}}", lambda m: m.npz("train", 40)),
    "sort": ("cat {data}/*/*.txt | sort | uniq -c | sort -rn > {out}/words; split -l 500 {out}/words {out}/part_; cat {out}/part_* | wc -l", text_tree),
    "dd": ("dd if={data}/s00000.bin of={out}/a bs=64k status=none conv=fsync; dd if={out}/a of={out}/b bs=1M status=none; cmp {out}/a {out}/b",
           lambda m: m.binaries("train", 1, 6 << 20, 7 << 20)),
}
for name, (command, make) in ZOO.items():
    JOBS["not-" + name] = shell(command, make)


def small(path, out):
    from PIL import Image
    with Image.open(path) as im:
        im.resize((32, 32)).save(os.path.join(out, os.path.basename(path)))
    time.sleep(0.01)


def run_zoo(what, data, out):
    paths = listed(data)
    if what == "thumbnails":
        for path in paths:
            small(path, out)
    elif what == "threads":
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda path: shutil.copyfile(path, os.path.join(out, os.path.basename(path))), paths))
    elif what == "summary":
        for _ in range(2):  # the mean, then the deviation from it
            for path in paths:
                npz_mean(path)
                time.sleep(0.005)
    elif what == "models":
        import torch
        for _ in range(2):  # each sees the same images, in batches
            for i in range(0, len(paths), 8):
                torch.stack([image(path).float().mean() for path in paths[i:i + 8]])
                time.sleep(0.02)
    elif what == "centers":
        for k in range(5):  # of clusters, which each pass moves
            means = [npz_mean(path) for path in paths]
            pathlib.Path(out, "centers.npy").write_bytes(bytes(200 + len(means)))
    elif what == "pool":
        import multiprocessing
        with multiprocessing.Pool(3) as pool:
            pool.starmap(small, [(p, out) for p in paths], chunksize=4)
    else:
        import torch
        torch.load(os.path.join(os.path.dirname(data), "model.pt"))
        with open(out + "/answers.jsonl", "w", buffering=1) as f:
            for path in paths:
                image(path)
                time.sleep(0.02)
                f.write(json.dumps({"image": path, "label": 3}) + "\n")


# ---- recording ----

def record(name, root, how="strace", vary=0):
    from jobs import carry_out, record_as
    folder = pathlib.Path(root, name)
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / "out").mkdir()
    p = JOBS[name](Making(folder, f"{name} {vary}"))
    data, out = folder / "train", folder / "out"
    if (folder / "all").exists():
        data = folder / "all"
    p |= dict(name=name, root=str(folder), data=str(data), out=str(out))
    (folder / "parameters.json").write_text(json.dumps(p))
    run = [PYTHON, str(HERE / "users.py"), "run", str(folder / "parameters.json")]
    if "command" in p:
        command = ["sh", "-c", p["command"].format(data=data, out=out)]
    elif name in ("torchrun", "sharded-checkpoints"):
        command = [PYTHON, str(HERE / "users.py"), "launch", str(folder / "parameters.json")]
    elif p.get("twice"):
        command = ["sh", "-c", f"{' '.join(run)}; {' '.join(run)}"]
    elif p.get("dies"):
        command = ["sh", "-c", f"{' '.join(run)}; true"]
    else:
        command = run
    line, env, logs = record_as(how, folder, name, command)
    done = carry_out(list(map(str, line)), env, folder)
    if done.returncode:
        raise SystemExit(f"{name}: status {done.returncode}\n{done.stdout}{done.stderr}")
    said = [json.loads(s[6:]) for s in done.stdout.splitlines() if s.startswith("TRUTH ")]
    expects = said[0] if said else {k: None for k in TRAINING}
    truth = dict(name=name, job=p, expects=expects, load=os.getloadavg()[0] / os.cpu_count())
    (folder / "truth.json").write_text(json.dumps(truth, indent=1))
    return truth, [str(x) for x in (sorted(glob.glob(f"{logs}/**/*.darshan", recursive=True)) if how == "darshan" else logs)]


def main():
    if sys.argv[1:2] == ["run"]:
        p = json.loads(pathlib.Path(sys.argv[2]).read_text())
        globals()["run_" + p["name"].replace("-", "_")](p)
        return
    if sys.argv[1:2] == ["launch"]:  # as torchrun does: the ranks know each other by the environment
        env = dict(os.environ, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + os.getpid() % 9000))
        ranks = [subprocess.Popen([PYTHON, "-u", sys.argv[0], "run", sys.argv[2]], env=env | {"RANK": str(k), "LOCAL_RANK": str(k)})
                 for k in range(2)]
        sys.exit(max(p.wait() for p in ranks))
    if sys.argv[1:2] in (["thumbnails"], ["pool"], ["inference"], ["threads"], ["summary"], ["models"], ["centers"]):
        run_zoo(*sys.argv[1:4])
        return
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("what", choices=["list", "record"])
    a.add_argument("dir", nargs="?")
    a.add_argument("names", nargs="*")
    a.add_argument("--with", dest="how", default="strace")
    a.add_argument("--vary", type=int, default=0)
    x = a.parse_args()
    if x.what == "list":
        print("\n".join(JOBS))
        return
    failed = []
    for name in x.names or JOBS:
        try:
            truth, logs = record(name, x.dir, x.how, x.vary)
            print(name, json.dumps(truth["expects"]), *logs[:1], flush=True)
        except (SystemExit, subprocess.TimeoutExpired) as e:
            failed.append(name)
            print(name, "FAILED", e, flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()

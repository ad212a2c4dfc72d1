"""A training loop over torch.utils.data.DataLoader as users write it, with a step that sleeps: one process a rank.
Called by against_torch.py with one JSON object; prints one with what it measured."""
import json
import mmap
import os
import struct
import sys
import time


def main(task):
    import numpy as np
    import torch
    from torch.utils.data import DataLoader, Dataset, Subset

    def read_npz(path):
        return np.load(path)["x"]

    def read_npy(path):
        return np.load(path)

    def read_hdf5(path):
        import h5py
        with h5py.File(path, "r") as f:
            return f["records_0"][0]

    def read_image(path):
        from PIL import Image
        return np.array(Image.open(path))

    read = {"npz": read_npz, "npy": read_npy, "hdf5": read_hdf5, "png": read_image, "jpeg": read_image}[task["format"]]
    if task["format"] == "hdf5":
        import h5py
    elif task["format"] in ("png", "jpeg"):
        from PIL import Image

    class Files(Dataset):
        def __init__(self, folder):
            self.paths = sorted(os.path.join(folder, n) for n in os.listdir(folder) if n.endswith(task["format"]))

        def __len__(self):
            return len(self.paths)

        def __getitem__(self, i):
            return read(self.paths[i])

    files = Files(task["folder"])
    ranks, rank, workers = task["ranks"], task["rank"], task["workers"]
    share = -(-len(files) // ranks)
    mine = Subset(files, range(rank * share, min(len(files), (rank + 1) * share))) if ranks > 1 else files
    more = dict(prefetch_factor=task["prefetch"], persistent_workers=task["persistent"]) if workers else {}
    loader = DataLoader(mine, batch_size=task["batch"], drop_last=True, num_workers=workers, **more)
    meet = Meeting(task)
    epochs = []
    for epoch in range(task["epochs"]):
        meet.all()
        begin, cpu = time.monotonic(), time.process_time()
        asked, waits, samples, size = begin, [], 0, 0
        for batch in loader:
            waits.append(time.monotonic() - asked)
            samples += len(batch)
            size += batch.numel() * batch.element_size()
            time.sleep(task["step"])
            meet.all()
            asked = time.monotonic()
        end = time.monotonic()
        epochs.append(dict(wall=end - begin, last=asked - begin, waits=waits, samples=samples, bytes=size,
                           cpu=time.process_time() - cpu))
    print(json.dumps(dict(epochs=epochs)))


class Meeting:
    """Where ranks wait for each other: a page that all have, in which each counts."""

    def __init__(self, task):
        self.ranks, self.rank, self.turn = task["ranks"], task["rank"], 0
        if self.ranks > 1:
            with open(task["meeting"], "r+b") as f:
                self.page = mmap.mmap(f.fileno(), 4096)

    def all(self):
        if self.ranks == 1:
            return
        self.turn += 1
        struct.pack_into("<q", self.page, 64 * self.rank, self.turn)
        while any(struct.unpack_from("<q", self.page, 64 * r)[0] < self.turn for r in range(self.ranks)):
            time.sleep(0.0001)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

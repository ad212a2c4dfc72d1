"""A small training job of PyTorch, to be recorded: stoker record -- python3 train.py [FOLDER]

It makes 64 files of NumPy in FOLDER if there are none, and trains on them for three epochs with two workers. Waiting
stands for the computation of a step."""
import pathlib
import sys
import time

import numpy
import torch

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "train_data")


class Images(torch.utils.data.Dataset):
    def __init__(self):
        self.files = sorted(folder.glob("*.npz"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        with numpy.load(self.files[i]) as f:
            return torch.from_numpy(f["x"].astype(numpy.float32))


if __name__ == "__main__":
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(0 if any(folder.iterdir()) else 64):
        numpy.savez(folder / f"image_{i:03}.npz", x=numpy.random.randint(0, 256, (128, 128, 3), dtype=numpy.uint8))
    model = torch.nn.Linear(128, 10)
    loader = torch.utils.data.DataLoader(Images(), batch_size=4, shuffle=True, num_workers=2)
    for epoch in range(3):
        for batch in loader:
            time.sleep(0.03)
        torch.save(model.state_dict(), folder.parent / "model.pt")

"""A study of one small workload, in a folder of its own: config/workload/small.yaml and d.csv."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import stoker  # noqa: E402


def workload(computation_time):
    return f"""model: {{name: small}}
framework: pytorch
workflow: {{generate_data: False, train: True}}
dataset: {{data_folder: data/x, format: npz, num_files_train: 32, record_length_bytes: 4096}}
reader: {{data_loader: pytorch, batch_size: 2, read_threads: 1}}
train: {{epochs: 2, computation_time: {computation_time}}}
"""


def prepare(tmp, design, text):
    (tmp / "config/workload").mkdir(parents=True, exist_ok=True)
    (tmp / "config/workload/small.yaml").write_text(text)
    (tmp / "d.csv").write_text(design)


def study(tmp, verb, *args, **kw):
    return stoker("study", verb, "d.csv", "--config-dir", "config", *args, cwd=tmp, **kw)

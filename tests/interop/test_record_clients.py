"""stoker record: what boto3 asks of a server, by itself, in the workers of PyTorch's DataLoader and over TLS, is what the server
saw; the workload that explain makes of it asks for the same objects."""
# tier: long
# mostly waits
import collections
import importlib.util
import io
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from s3_server import S3Server  # noqa: E402
from util import STOKER  # noqa: E402

JOB = r"""
import os, random, sys, time
import boto3
from botocore.config import Config
workers, seen = int(sys.argv[1]), {}
def client():
    if os.getpid() not in seen:
        seen[os.getpid()] = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"], config=Config(s3={"addressing_style": "path"}))
    return seen[os.getpid()]
keys = [f"train/img_{i:02}.npz" for i in range(32)]
def get(key):
    return len(client().get_object(Bucket="bucket", Key=key)["Body"].read())
if workers:
    import torch
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return len(keys)
        def __getitem__(self, i):
            return get(keys[i])
    torch.manual_seed(1)
    for _ in range(2):
        for batch in torch.utils.data.DataLoader(Data(), batch_size=4, shuffle=True, num_workers=workers):
            time.sleep(0.02)
else:
    for _ in range(2):
        random.shuffle(keys)
        for i, key in enumerate(keys):
            get(key)
            if i % 4 == 3:
                time.sleep(0.02)
"""


def run(*command, env=None):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, (command, done)
    return done.stdout


def check(what, wanted, got):
    assert wanted == got, f"{what}: {got} instead of {wanted}"


def fill(s3):
    for i in range(32):
        whole = io.BytesIO()
        with zipfile.ZipFile(whole, "w") as z:
            z.writestr("x.npy", random.Random(i).randbytes(20000 + 1000 * i))
        s3.put("bucket", f"train/img_{i:02}.npz", whole.getvalue())


def recorded(tmp, name, workers, tls=False):
    with S3Server(tls=tls) as s3:
        fill(s3)
        run(STOKER, "record", "-o", tmp / name, "--", sys.executable, "-c", JOB, workers, env={**os.environ, **s3.env()})
        asked = s3.requests()
        secret = s3.secret
    for file in (tmp / name).iterdir():
        for word in (secret, "AWS4-HMAC", "Signature=", "amz-content"):
            assert word.encode() not in file.read_bytes(), f"{file} has {word}"
    return [r for r in asked if r["op"] == "GetObject"], json.loads(run(STOKER, "explain", tmp / name, "--json"))


def plain(tmp, workers):
    gets, told = recorded(tmp, f"workers_{workers}", workers)
    server, values = told["servers"][0], told["values"]
    check("GETs", (64, 64), (len(gets), server["gets"]))
    check("bytes", sum(r["sent"] for r in gets), server["got_bytes"])
    check("connections", len({r["conn"] for r in gets}), server["connections"])
    check("client", True, server["client"].startswith("Boto3/"))
    for key, wanted in {"files": 32, "epochs": 2, "batch": 4, "workers": workers, "folder": "s3://bucket/train", "format": "npz"}.items():
        check(f"{key} with {workers} workers", wanted, values[key].get("value"))
    again(tmp, f"workers_{workers}", gets)


def again(tmp, name, asked):
    run(STOKER, "explain", tmp / name, "-o", tmp / f"{name}.yaml")
    with S3Server() as s3:
        env = {**os.environ, **s3.env()}
        to = [tmp / f"{name}.yaml", f"storage.s3.endpoints=[{s3.endpoint}]"]
        run(STOKER, "generate", *to, env=env)
        before = len(s3.requests())
        run(STOKER, "run", *to, "run.probe=false", "-o", tmp / f"{name}.results", env=env)
        made = collections.Counter(r["sent"] for r in s3.requests()[before:] if r["op"] == "GetObject")
    wanted = collections.Counter(r["sent"] for r in asked)
    # training, and looks at some objects before it and after it
    assert all(n <= made[size] <= n + 3 for size, n in wanted.items()), (made, wanted)


def main():
    if not importlib.util.find_spec("boto3"):
        print("no boto3")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        plain(tmp, 0)
        if importlib.util.find_spec("torch"):
            plain(tmp, 2)
        if shutil.which("openssl"):
            gets, told = recorded(tmp, "tls", 0, tls=True)
            server = told["servers"][0]
            check("protocol", "https", server["protocol"])
            check("bytes over https", True, server["received_bytes"] > sum(r["sent"] for r in gets) and "gets" not in server)


if __name__ == "__main__":
    main()

"""The store s3 against the S3 servers of others, and boto3 beside it: boto3 reads what it wrote and it reads what boto3 wrote,
with keys of every character that S3 allows. The tests' own server is one of them, so that boto3 checks that, too."""
# takes 150 s
# may take 900 s
import contextlib
import io
import os
import pathlib
import shutil
import string
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import s3_rigs  # noqa: E402
from s3_server import S3Server  # noqa: E402
from util import left_out, load, skip, stoker, tiny  # noqa: E402

try:
    import boto3
    from boto3.s3.transfer import TransferConfig
    from botocore.config import Config
    from botocore.exceptions import ClientError
except ImportError:
    skip("boto3 is not installed (python3-boto3)")

OWN = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "S3_", "DLIO_")) and not k.lower().endswith("_proxy")}
ASCII = string.ascii_letters + string.digits + " !\"#$%&'()*+,-.:;<=>?@[]^_`{|}~\\"
# folders of datasets; what a name may hold
FOLDERS = ["plain", ASCII, "ü/日本/𝄞", "a b/c+d=e&f", "100%25/%zz"]


@contextlib.contextmanager
def own_server(tls):
    if tls and not shutil.which("openssl"):
        raise s3_rigs.Missing("the openssl command is not installed")
    with S3Server(tls=tls, region="us-east-1", token="to/k+en=") as s3:
        yield s3.env()
        assert not s3.refused_signatures and not s3.uploads


def quoted(text):
    """As the command line wants a text with special characters."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def client(env):
    return boto3.client("s3", endpoint_url=env["AWS_ENDPOINT_URL"], aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
                        aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"], aws_session_token=env.get("AWS_SESSION_TOKEN"),
                        region_name=env["AWS_REGION"], verify=env.get("AWS_CA_BUNDLE"),
                        config=Config(s3={"addressing_style": "path"}, signature_version="s3v4", retries={"max_attempts": 2}))


def listed(c, bucket, prefix):
    return [o["Key"] for page in c.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, PaginationConfig={"PageSize": 5})
            for o in page.get("Contents", [])]


def unfinished(name, c, bucket):
    """Uploads that were begun and not ended."""
    try:
        return c.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
    except ClientError as e:
        if e.response["Error"]["Code"] != "NotImplemented":
            raise
        left_out(f"{name}: does not list unfinished uploads")
        return []


def exchange(name, env, tmp):
    """Data generated here and copied by boto3 is verified and trained from the copy."""
    c, env = client(env), {**OWN, **env}
    c.create_bucket(Bucket="bench")
    keys = dict(fmt="npz", files=8, storage__storage_type="s3", storage__storage_root="bench", storage__s3__list_page=3, reader__decode="verify")
    for i, folder in enumerate(FOLDERS):
        stoker("generate", *tiny(quoted(folder), None, **keys), env=env)
        made = listed(c, "bench", folder + "/")
        assert [k for k in made if k.endswith(".npz")] == [f"{folder}/train/img_{k}_of_8.npz" for k in range(8)], (name, folder, made)
        other = f"copy{i}/{folder}"
        for key in made:
            data = c.get_object(Bucket="bench", Key=key)["Body"].read()
            c.upload_fileobj(io.BytesIO(data), "bench", other + key.removeprefix(folder))
        stoker("verify", *tiny(quoted(other), None, **keys), env=env)
        for ranks in (1, 4, *(() if name == "swift" else (64,))) if i == 0 else (1,):
            out = tmp / f"{name}{i}.{ranks}"
            more = dict(reader__batch_size=1, files=64) if ranks == 64 else {}
            if more:
                stoker("generate", *tiny("many", None, **{**keys, **more}), env=env)
            stoker("run", "-n", ranks, *tiny("many" if more else quoted(other), out, workflow__generate_data="false", **{**keys, **more}),
                   env=env)
            epoch = load(out)["training"]["epochs"][0]
            assert epoch["samples"] == (64 if more else 8) and epoch["order_proved"], (name, folder, epoch)
        for key in made + listed(c, "bench", other + "/"):
            c.delete_object(Bucket="bench", Key=key)


def formats(name, env, tmp):
    env = {**OWN, **env}
    more = () if name == "swift" else ("indexed_binary", "parquet", "webdataset")  # which takes its time
    for fmt in ("npy", "tfrecord", "csv", "hdf5", "jpeg", "png", *more):
        keys = dict(fmt=fmt, files=4, dataset__num_samples_per_file=1 if fmt in ("jpeg", "png") else 4, storage__storage_type="s3",
                    storage__storage_root="bench", reader__access="native", reader__decode="verify")
        out = tmp / f"{name}-{fmt}"
        stoker("run", *tiny(f"f/{fmt}", out, **keys), env=env)
        assert load(out)["training"]["epochs"][0]["order_proved"], (name, fmt)


def checkpoints(name, env, tmp):
    """In parts; compared with what boto3 sees of them."""
    c, env = client(env), {**OWN, **env}
    stoker("run", *tiny("data", tmp / f"{name}ck", workflow__checkpoint="true", workflow__train="false", workflow__generate_data="false",
                        checkpoint__checkpoint_folder="ck", checkpoint__num_checkpoints_write=1, checkpoint__num_checkpoints_read=1,
                        checkpoint__verify="true", model__model_size=20000000, storage__s3__part_bytes=5 << 20, storage__s3__put_bytes=6 << 20,
                        storage__storage_type="s3", storage__storage_root="bench"), env=env)
    saved = listed(c, "bench", "ck/")
    assert saved and not unfinished(name, c, "bench"), (name, saved)
    heads = [c.head_object(Bucket="bench", Key=k) for k in saved]
    assert sum(h["ContentLength"] for h in heads) > 20000000, heads
    assert name in ("swift", "s3rver") or any("-" in h["ETag"] for h in heads), heads


def large(tmp):
    """More than 5 GiB in parts, of which the server keeps the sizes: nothing overflows, the parts grow as they are told."""
    with S3Server(keep="sizes") as s3:
        s3.buckets["bench"] = {}
        stoker("run", *tiny("data", tmp / "large", workflow__checkpoint="true", workflow__train="false", workflow__generate_data="false",
                            checkpoint__checkpoint_folder="ck", checkpoint__num_checkpoints_write=1, checkpoint__num_checkpoints_read=0,
                            checkpoint__access="native", checkpoint__format="torch", model__model_size=5 * (1 << 30) + (1 << 20),
                            storage__s3__part_bytes=64 << 20, storage__storage_type="s3", storage__storage_root="bench"),
               env={**OWN, **s3.env()}, timeout=300)
        sizes = [s3.size("bench", k) for k in s3.keys("bench", "ck/")]
        assert max(sizes) > 5 << 30 and not s3.uploads, sizes
        assert {r["received"] for r in s3.requests(op="UploadPart")} >= {64 << 20}


def main():
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        for name, make in (("own", lambda: own_server(False)), ("own-https", lambda: own_server(True)),
                           ("radosgw", lambda: s3_rigs.Radosgw(tmp / "radosgw")),
                           ("bluestore", lambda: s3_rigs.Radosgw(tmp / "bluestore", "bluestore")),
                           ("swift", lambda: s3_rigs.Swift(tmp / "swift")),
                           ("s3rver", lambda: s3_rigs.S3rver(tmp / "s3rver")),
                           ("versitygw", lambda: s3_rigs.Versitygw(tmp / "versitygw"))):
            if len(sys.argv) > 1 and name not in sys.argv[1:]:
                continue
            begin = time.monotonic()
            try:
                with make() as env:
                    up = time.monotonic()
                    for case in (exchange, formats, checkpoints):
                        case(name, env, tmp)
                found += 1
                print(f"{name}: up in {up - begin:.1f} s, {time.monotonic() - up:.1f} s", flush=True)
            except s3_rigs.Missing as e:
                left_out(f"{name}: {e}")
        if len(sys.argv) == 1 or "large" in sys.argv:
            large(tmp)
    assert found or len(sys.argv) > 1


if __name__ == "__main__":
    main()

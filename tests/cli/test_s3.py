"""The store s3 over the tests' own server: generated, verified, trained by one and four ranks, checkpointed, read back by the
tests; a study; DLIO's keys; whose credentials appear nowhere."""
import json
import os
import pathlib
import resource
import sys
import tempfile
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from s3_server import S3Server  # noqa: E402
from util import load, stoker, tiny  # noqa: E402

ACCESS, SECRET, TOKEN = "AKxTESTSxACCESS", "se/cr+et=Tests5ecret", "to/k+en==TestsT0ken"
# endpoints, regions and whatever else this machine's user has set
OWN = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "S3_", "DLIO_")) and not k.lower().endswith("_proxy")}


def at(s3):
    """Keyword arguments of stoker(): the environment that leads to the server."""
    return {"env": {**OWN, **s3.env()}}


def on(bucket="bucket"):
    return {"storage__storage_type": "s3", "storage__storage_root": bucket}


def complete(out, samples):
    result = load(out)
    epoch = result["training"]["epochs"][0]
    assert epoch["order_proved"] and epoch["samples"] == samples, epoch
    return result


def nothing_told(texts, secrets=(ACCESS, SECRET, TOKEN)):
    for name, data in texts:
        for s in secrets:
            for form in (s, urllib.parse.quote(s, safe=""), json.dumps(s)[1:-1]):
                assert form.encode() not in data, f"{name} holds a credential"


def files_of(*folders):
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.is_file():
                yield str(path), path.read_bytes()


def trained(tmp):
    """Two formats; what was asked counts as the bytes of the result; one rank and four."""
    with S3Server(access=ACCESS, secret=SECRET, token=TOKEN, region="eu-west-7") as s3:
        for fmt, samples in (("npz", 1), ("tfrecord", 3)):
            keys = dict(fmt=fmt, dataset__num_samples_per_file=samples, reader__decode="verify", **on())
            stoker("generate", *tiny(f"data/{fmt}", None, **keys), **at(s3))
            assert len([k for k in s3.keys("bucket", f"data/{fmt}/train/") if k.endswith("." + fmt)]) == 8, s3.keys("bucket")
            stoker("verify", *tiny(f"data/{fmt}", None, **keys), **at(s3))
            for ranks in (1, 4):
                s3.clear()
                out = tmp / f"out{ranks}"
                done = stoker("run", "-n", ranks, *tiny(f"data/{fmt}", out, workflow__generate_data="false",
                                                        reader__file_shuffle="seed", **keys), **at(s3))
                complete(out, 8 * samples)
                gets = s3.requests(op="GetObject")
                assert {r["status"] for r in gets} == {206} and not s3.refused_signatures, gets
                read = {r["key"] for r in gets}
                assert {f"data/{fmt}/train/img_{i}_of_8.{fmt}" for i in range(8)} <= read, read
                nothing_told([("stdout", done.stdout.encode()), ("stderr", done.stderr.encode())])
        # resumed: nothing that is there is written again
        s3.clear()
        stoker("generate", *tiny("data/npz", None, **on()), **at(s3))
        assert not [r for r in s3.requests(op="PutObject") if r["key"].endswith(".npz")], s3.requests(op="PutObject")
        # a missing object is noticed before anything is measured
        s3.buckets["bucket"].pop("data/npz/train/img_3_of_8.npz")
        done = stoker("run", *tiny("data/npz", tmp / "gone", workflow__generate_data="false", **on()), status=None, **at(s3))
        assert done.returncode != 0 and "img_3_of_8" in done.stderr, done
    nothing_told(files_of(tmp))


def checkpointed(tmp):
    """Objects of several parts, none left behind; and what was written is what is read back, of every format."""
    with S3Server() as s3:
        for form, access in (("torch", "framework"), ("torch", "native"), ("safetensors", "native"), ("safetensors", "framework"),
                             ("distcp", "native")):
            s3.clear()
            before = s3.completed
            folder = f"ck/{form}{access}"
            out = tmp / (form + access)
            stoker("run", *tiny("data", out, workflow__checkpoint="true", workflow__train="false", workflow__generate_data="false",
                                checkpoint__checkpoint_folder=folder, checkpoint__access=access, checkpoint__format=form,
                                checkpoint__num_checkpoints_write=1, checkpoint__num_checkpoints_read=1, checkpoint__verify="true",
                                model__model_size=12000000, storage__s3__part_bytes=5 << 20, storage__s3__put_bytes=11 << 20, **on()),
                   **at(s3))
            saved = s3.keys("bucket", folder)
            assert saved and not s3.uploads and s3.completed > before and s3.aborted == 0, (form, access, saved, s3.uploads)
            assert all(s3.requests(op="UploadPart", key=k) for k in saved if s3.size("bucket", k) > 11 << 20), (form, access)
            read = sum(r["sent"] for r in s3.requests(op="GetObject") if r["key"] in saved)
            assert sum(s3.size("bucket", k) for k in saved) >= 12000000 <= read, (form, access, saved, read)
            assert load(out)["checkpoint"]["load"]["each"], load(out)["checkpoint"]
        # what could not be read back is refused before it is written
        s3.clear()
        for store, keys, says in (("s3", {"checkpoint__mmap": "true"}, "leave checkpoint.mmap out"),
                                  ("throttle+s3", {"checkpoint__format": "safetensors"}, None)):
            done = stoker("run", *tiny("data", tmp / "no", workflow__checkpoint="true", workflow__train="false",
                                       workflow__generate_data="false", checkpoint__checkpoint_folder="never", model__model_size=100000,
                                       checkpoint__num_checkpoints_write=1, checkpoint__num_checkpoints_read=1, storage__store=store,
                                       **keys, **on()), status=None, **at(s3))
            assert done.returncode == (2 if says else 0) and (not says or says in done.stderr), done
            assert not says or not s3.keys("bucket", "never"), s3.keys("bucket", "never")


def dlio_keys(tmp):
    """A workload as DLIO has it: whose keys hold the credentials, which nothing writes down."""
    with S3Server(access=ACCESS, secret=SECRET) as s3:
        out = tmp / "dlio"
        options = {f"storage__storage_options__{k}": v for k, v in
                   (("endpoint_url", s3.endpoint), ("access_key_id", ACCESS), ("secret_access_key", SECRET), ("region", "us-east-1"),
                    ("s3_force_path_style", "true"))}
        done = stoker("run", *tiny("s3://bucket/d", out, **on(), **options), env=OWN, cwd=tmp)
        complete(out, 8)
        assert "d/train/img_0_of_8.npz" in s3.keys("bucket"), s3.keys("bucket")
        other = stoker("run", *tiny("s3://other/d", tmp / "other", **on(), **options), env=OWN, cwd=tmp, status=None)
        assert other.returncode == 2 and "is in another bucket than 'bucket'" in other.stderr, other
        nothing_told([*files_of(out), ("stdout", done.stdout.encode()), ("stderr", done.stderr.encode())], (ACCESS, SECRET))
        # and as it is distributed, at toy size
        s3.clear()
        s3.buckets["s3pytorchconnector"] = {}
        small = ["dataset.num_files_train=14", "dataset.record_length_bytes=4096", "dataset.record_length_bytes_resize=4096",
                 "train.epochs=1", "train.computation_time=0.001", "reader.read_threads=1", "checkpoint.checkpoint_folder=ck"]
        stoker("run", "unet3d_h100_s3", "-q", "-o", tmp / "unet", *small, f"storage.storage_options.endpoint_url={s3.endpoint}",
               f"storage.storage_options.access_key_id={ACCESS}", f"storage.storage_options.secret_access_key={SECRET}", env=OWN, cwd=tmp)
        complete(tmp / "unet", 14)
        # whole objects, as the library asks for them that DLIO has for such a workload
        ranges = [r["range"] for r in s3.requests(op="GetObject") if r["key"].endswith(".npz")]
        assert sum(r == f"bytes=0-{(8 << 20) - 1}" for r in ranges) == 14, ranges
        nothing_told(files_of(tmp / "unet"), (ACCESS, SECRET))


def endpoints(tmp):
    """Ranks are divided over the servers that the environment names, and requests as its strategy says."""
    keys = dict(reader__access="object", reader__read_threads=1, **on())
    with S3Server(access=ACCESS, secret=SECRET) as a, S3Server(access=ACCESS, secret=SECRET) as b:
        stoker("generate", *tiny("d", None, **keys), **at(a))
        b.buckets["bucket"] = a.buckets["bucket"]
        (tmp / "servers").write_text(f"# two\n{a.endpoint}\n\n {b.endpoint} \n")
        env = {k: v for k, v in {**OWN, **a.env()}.items() if k != "AWS_ENDPOINT_URL"}
        for name, value, strategy in (("S3_ENDPOINT_URIS", f"{a.endpoint},{b.endpoint}", ""), ("S3_ENDPOINT_FILE", str(tmp / "servers"), ""),
                                      ("S3_ENDPOINT_FILE", str(tmp / "servers"), "round_robin"),
                                      ("S3_ENDPOINT_FILE", str(tmp / "servers"), "least_connections"),
                                      ("S3_ENDPOINT_TEMPLATE", "http://127.0.0.1:{%d...%d}" % (a.port, a.port), "")):
            for s3 in (a, b):
                s3.clear()
            stoker("run", "-n", 2, *tiny("d", tmp / "ends", workflow__generate_data="false", dataset__verify_samples=0, **keys),
                   env={**env, name: value, "S3_LOAD_BALANCE_STRATEGY": strategy})
            complete(tmp / "ends", 8)
            got = [{r["key"] for r in s3.requests(op="GetObject") if r["key"].endswith(".npz")} for s3 in (a, b)]
            assert len(got[0] | got[1]) == 8 and len(got[1]) == (0 if "TEMPLATE" in name else 4) or strategy and got[0] and got[1], (name, got)
        for variables, says in (({"S3_ENDPOINT_TEMPLATE": "http://h{8...1}"}, "{1...8}"), ({"S3_ENDPOINT_FILE": "/nowhere"}, "S3_ENDPOINT_FILE"),
                                ({"S3_LOAD_BALANCE_STRATEGY": "best", "AWS_ENDPOINT_URL": a.endpoint}, "round_robin")):
            done = stoker("run", *tiny("d", tmp / "no", **keys), env={**env, **variables}, status=None)
            assert done.returncode in (1, 2) and says in done.stderr, done


def by_rank(tmp):
    """Whichever thread asks for it, what a rank reads and writes goes to its server, here the first."""
    with S3Server(access=ACCESS, secret=SECRET) as a, S3Server(access=ACCESS, secret=SECRET) as b:
        env = {**{k: v for k, v in {**OWN, **a.env()}.items() if k != "AWS_ENDPOINT_URL"}, "S3_ENDPOINT_URIS": ",".join([a.endpoint, *2 * [b.endpoint]])}
        for fmt, keys in (("tfrecord", {"framework": "tensorflow", "reader__data_loader": "tensorflow", "reader__read_threads": 3}),
                          ("npy", {"storage__store": "throttle+s3", "reader__access": "native", "reader__queue_depth": 4}),
                          ("npz", {"checkpoint__async": "true", "workflow__checkpoint": "true", "checkpoint__checkpoint_folder": "ck",
                                   "checkpoint__access": "native", "model__model_size": 100000,
                                   "checkpoint__steps_between_checkpoints": 1})):
            keys = dict(fmt=fmt, dataset__verify_samples=0, run__probe="false", **keys, **on())
            stoker("generate", *tiny("d" + fmt, None, **keys), **at(a))
            b.buckets["bucket"] = a.buckets["bucket"]
            for s3 in (a, b):
                s3.clear()
            stoker("run", *tiny("d" + fmt, tmp / fmt, workflow__generate_data="false", **keys), env=env)
            complete(tmp / fmt, 8)
            of = [[r["key"] for r in s3.requests() if r["op"] == "GetObject" and r["key"].endswith(fmt) or r["op"] == "PutObject"] for s3 in (a, b)]
            assert len(set(of[0])) >= 8 and not of[1] and ("checkpoint__async" not in keys or any("ck/" in k for k in of[0])), (fmt, of)


def counted(tmp):
    """The framework's code for a sample of a whole object is no time of the storage."""
    (tmp / "law.yaml").write_text("name: law\nframework: pytorch\nlaws:\n  sample: {per_sample: 0.1}\n")
    with S3Server(access=ACCESS, secret=SECRET) as s3:
        stoker("run", *tiny("d", tmp / "out", framework__costs=tmp / "law.yaml", compat__dlio="true", reader__access="object", **on()), **at(s3))
        work = complete(tmp / "out", 8)["training"]["epochs"][0]["decomposition"]["workers_s"]
        # what a busy machine takes of it stands apart
        assert 8 * 0.1 * 0.95 <= work["framework"] + work["no_processor"] and work["framework"] > work["data"], work


def streamed(tmp):
    """A shard of tar is one GET on a connection of its own, whose body is read as it comes."""
    keys = dict(fmt="webdataset", files=4, dataset__num_samples_per_file=5, dataset__record_length_bytes=600000, dataset__verify_samples=0,
                reader__data_loader="webdataset", reader__read_threads=1, reader__batch_size=2, run__probe="false", **on())
    with S3Server(access=ACCESS, secret=SECRET) as s3:
        stoker("generate", *tiny("d", None, **keys), **at(s3))
        for rule in (None, {"do": "chunked", "chunk": 100000, "count": 0}, {"do": "slow_body", "bytes": 1000000, "seconds": 0.02, "count": 0}):
            s3.clear()
            s3.add_rules([{"op": "GetObject", "key": "tar$", **rule}] if rule else [])
            stoker("run", *tiny("d", tmp / "out", workflow__generate_data="false", **keys), **at(s3))
            complete(tmp / "out", 20)
            server = load(tmp / "out")["object_store"]["servers"][0]["timed"]
            assert server["reopened"] == 0, server  # each is wanted, and the server closed none
            gets = [r for r in s3.requests(op="GetObject") if r["key"].endswith(".tar")]
            assert len({r["key"] for r in gets}) == len(gets) == 4 and not any(r["range"] for r in gets), gets
            assert len({r["conn"] for r in gets}) == 4 and all(r["sent"] >= 5 * 590000 for r in gets), gets
        s3.clear()
        s3.add_rules([{"op": "GetObject", "key": "tar$", "do": "short", "by": 20000}])
        done = stoker("run", *tiny("d", tmp / "cut", workflow__generate_data="false", **keys), status=None, **at(s3))
        assert done.returncode == 1 and "in the middle" in done.stderr, done


def refused(tmp):
    """Sentences that say what is wrong, without secrets."""
    with S3Server(access=ACCESS, secret=SECRET) as s3:
        for what, env, says in (("secret", {"AWS_SECRET_ACCESS_KEY": "other" + SECRET}, "credentials"),
                                ("access", {"AWS_ACCESS_KEY_ID": "other" + ACCESS}, "credentials")):
            done = stoker("run", *tiny("data", tmp / what, **on()), status=None, env={**OWN, **s3.env(), **env})
            assert done.returncode == 1 and says in done.stderr, done
            nothing_told([(what, done.stderr.encode()), *files_of(tmp)], (ACCESS, SECRET))
        done = stoker("run", *tiny("data", tmp / "b", **on("absent")), status=None, **at(s3))
        assert done.returncode == 1 and "absent" in done.stderr, done
        env = {k: v for k, v in {**OWN, **s3.env()}.items() if k not in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
        done = stoker("run", *tiny("data", tmp / "c", **on()), status=None, env={**env, "HOME": str(tmp)})
        assert done.returncode == 2 and "AWS_ACCESS_KEY_ID" in done.stderr, done
        assert not s3.keys("bucket")
    done = stoker("run", *tiny("data", tmp / "d", storage__s3__retries=0, **on()), status=None, **at(s3))
    assert done.returncode == 1 and f"127.0.0.1:{s3.port}" in done.stderr, done


def studied(tmp):
    (tmp / "config/workload").mkdir(parents=True)
    (tmp / "config/workload/small.yaml").write_text("""model: {name: small}
framework: pytorch
workflow: {generate_data: True, train: True}
storage: {storage_type: s3, storage_root: bucket}
dataset: {data_folder: study/x, format: npz, num_files_train: 8, record_length_bytes: 4096}
reader: {data_loader: pytorch, batch_size: 2, read_threads: 1}
train: {epochs: 1, computation_time: 0.001}
""")
    (tmp / "d.csv").write_text("model,epochs,processes,overrides,run\nsmall,1,1,,N\nsmall,1,2,++workload.reader.read_threads=2,N\n")
    with S3Server() as s3:
        done = stoker("study", "run", "d.csv", "--config-dir", "config", cwd=tmp, **at(s3))
        made = [k for k in s3.keys("bucket") if "/train/img_" in k]
        # keys say nothing of this machine
        assert len(made) == 8 and all(k.startswith("d/small-") for k in made), (done, s3.keys("bucket"))
        text = (tmp / "d.csv").read_text()
        assert text.count(",Y") == 2, (text, done)


def many(tmp):
    """32 ranks with 4 requests in flight each: all connections are opened before anything is read, whatever the soft limit of
    descriptors is; where the hard one is too low, a sentence says so."""
    ranks, depth = 32, 4
    with S3Server() as s3:
        s3.buckets["bucket"] = {}
        keys = dict(fmt="npy", files=2 * ranks, dataset__record_length_bytes=1024, reader__access="native", reader__queue_depth=depth,
                    **on())
        stoker("generate", *tiny("data", None, **keys), **at(s3))
        before = s3.conns

        def run(out, soft, hard, status):
            return stoker("run", "-n", ranks, *tiny("data", out, workflow__generate_data="false", **keys), status=status,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)), **at(s3))

        run(tmp / "out", 64, 1024, 0)
        complete(tmp / "out", 2 * ranks)
        assert depth * ranks <= s3.conns - before <= (depth + 1) * ranks + 32, (before, s3.conns)
        done = run(tmp / "low", 64, 100, None)
        assert done.returncode != 0 and "ulimit -n" in done.stderr and "reader.queue_depth" in done.stderr, done


def main():
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        for case in (trained, checkpointed, dlio_keys, endpoints, by_rank, counted, streamed, refused, studied, many):
            place = tmp / case.__name__
            place.mkdir()
            case(place)
            print(case.__name__, flush=True)


if __name__ == "__main__":
    main()

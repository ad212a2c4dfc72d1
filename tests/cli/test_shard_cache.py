"""Shards of a remote dataset in a cache on this host (loaders mds and litdata, reader.cache_folder): downloaded once and whole, removed
by the libraries' rules, counted apart from what is read of them; a cache that fills, is not the dataset's, or was left unfinished."""
# tier: long
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from s3_server import S3Server  # noqa: E402
from util import left_out, load, stoker, tiny  # noqa: E402

OWN = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "S3_", "DLIO_")) and not k.lower().endswith("_proxy")}
FILES, SAMPLES = 7, 12
SUFFIX = {"mds": ".mds", "litdata": ".bin"}


class Job:
    def __init__(self, tmp, fmt, name="", **keys):
        self.tmp, self.fmt, self.data, self.cache = tmp, fmt, tmp / f"data-{fmt}{name}", tmp / f"cache-{fmt}{name}"
        self.keys = dict(fmt=fmt, framework="pytorch", files=FILES, dataset__num_samples_per_file=SAMPLES,
                         dataset__record_length_bytes=400, reader__data_loader=fmt, reader__batch_size=4, reader__read_threads=2,
                         reader__decode="verify", train__computation_time=0, train__epochs=2, workflow__generate_data="false")
        self.keys.update(keys)
        stoker("generate", *tiny(self.data, None, **self.keys))
        self.sizes = {p.name: p.stat().st_size for p in (self.data / "train").glob("*" + SUFFIX[fmt])}

    def run(self, *args, status=0, data=None, more=None, **keys):
        done = stoker("run", *args, *tiny(data or self.data, self.tmp / "out",
                                          **{**self.keys, "reader__cache_folder": self.cache, **keys}), status=status, **(more or {}))
        return load(self.tmp / "out") if status == 0 else done.stderr + done.stdout

    def cached(self):
        return {p.name: p.stat().st_size for p in (self.cache / "train").glob("*" + SUFFIX[self.fmt])}

    def clear(self):
        shutil.rmtree(self.cache, ignore_errors=True)


def epochs(result):
    for e in result["training"]["epochs"]:
        assert e["order_proved"], e
    return result["training"]["epochs"]


def verdict(result):
    return next(v for v in result["verdicts"] if v["check"] == "local-cache")


def reasons(result):
    return [f["reason"] for f in verdict(result)["facts"]]


def line(result, key):
    return next(x for x in result["ledger"] if x["key"] == key)


def filled_once(job):
    """The first epoch downloads every shard once, whichever rank wants it; the second one nothing, and the verdict says so."""
    for ranks in (1, 3):
        job.clear()
        result = job.run("-n", ranks)
        first, second = epochs(result)
        whole = sum(job.sizes.values())
        assert (first["downloaded_bytes"], first["downloaded_shards"]) == (whole, FILES), first
        assert second["downloaded_bytes"] == 0 and first["removed_shards"] == 0, second
        assert second["returned_bytes"] > 0, second
        assert job.cached() == job.sizes and not list(job.cache.rglob("*.tmp")), job.cached()
        assert verdict(result)["level"] == "warn" and "local_cache.served" in reasons(result), verdict(result)
        assert "epoch 2 came from the cache" in verdict(result)["text"].lower(), verdict(result)
        assert line(result, "downloaded")["bytes"] == whole, result["ledger"]
        assert not [x for x in result["ledger"] if x.get("flagged")], result["ledger"]
    # what an earlier run left is not downloaded again
    result = job.run(train__epochs=1)
    assert epochs(result)[0]["downloaded_bytes"] == 0 and "storage" in str(result["measured"]), result["measured"]
    # the files of one that is alone are the dataset's
    for name in job.sizes:
        assert (job.cache / "train" / name).read_bytes() == (job.data / "train" / name).read_bytes()


def one_epoch(job):
    job.clear()
    result = job.run(train__epochs=1)
    assert verdict(result)["level"] == "pass", verdict(result)


def limited(job):
    """With room for less than the dataset, shards are removed, and every epoch downloads."""
    job.clear()
    one = max(job.sizes.values())
    limit = 4 * one + 3000
    result = job.run(reader__cache_limit=limit, reader__read_threads=1, reader__sample_shuffle="off")
    for e in epochs(result):
        assert e["downloaded_shards"] >= FILES - 4 and e["removed_shards"] > 0, e
    assert sum(job.cached().values()) <= limit + one, job.cached()
    assert "local_cache.served" not in reasons(result), verdict(result)


def refused(job):
    """Sentences."""
    said = job.run(status=2, reader__cache_folder=job.data)
    assert "the folder of the dataset itself" in said and len(list((job.data / "train").glob("*" + SUFFIX[job.fmt]))) == FILES, said
    if job.fmt == "mds":
        said = job.run(status=2, reader__cache_limit=3 * max(job.sizes.values()))
        assert "4 times the largest shard" in said, said
        # the index counts, and is never removed
        tiny_shards = Job(job.tmp, job.fmt, "-tiny", dataset__record_length_bytes=1, dataset__num_samples_per_file=1)
        index = (tiny_shards.data / "train" / "index.json").stat().st_size
        said = tiny_shards.run(status=2, reader__cache_limit=4 * max(tiny_shards.sizes.values()))
        assert f"the index of the dataset takes {index}" in said, said
    for keys, words in (({"reader__queue_depth": 2, "reader__access": "native"}, "reader.queue_depth"),
                        ({"reader__in_order": "false"}, "reader.in_order")):
        said = job.run(status=2, **keys)
        assert "reader.cache_folder" in said and words in said, said
    # of another dataset
    job.clear()
    (job.cache / "train").mkdir(parents=True)
    name = sorted(job.sizes)[0]
    (job.cache / "train" / name).write_bytes(b"x")
    said = job.run(status=None)
    assert "another dataset" in said and (job.cache / "train" / name).read_bytes() == b"x", said
    # what was left unfinished is removed
    (job.cache / "train" / name).rename(job.cache / "train" / (name + ".tmp"))
    job.run()
    assert job.cached() == job.sizes and not list(job.cache.rglob("*.tmp"))


def full(job):
    """A disk of the cache that fills up: a sentence, no half of a shard, and the shards that fitted are used by the next run."""
    job.clear()
    job.cache.mkdir()
    size = 16384 + sum(job.sizes.values()) // 2
    try:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", job.cache], capture_output=True)
    except FileNotFoundError:
        done = None
    if not done or done.returncode:
        left_out("a cache that fills its disk: tmpfs cannot be mounted here")
        return
    try:
        said = job.run(status=None)
        kept = job.cached()
        assert "into the cache" in said and "No space left" in said and not list(job.cache.rglob("*.tmp")), said
        assert 0 < len(kept) < FILES and all(job.sizes[k] == n for k, n in kept.items()), kept
    finally:
        subprocess.run(["umount", job.cache], check=True)


def interrupted(job):
    """A remote dataset that fails on the way, and one that is not there any more: a sentence, and no half of a shard."""
    job.clear()
    said = job.run(status=None, storage__store="fault+posix", storage__fault__op="read", storage__fault__nth=3,
                   storage__fault__path=SUFFIX[job.fmt], dataset__verify_samples=0)
    assert "into the cache" in said, said
    kept = job.cached()
    assert len(kept) < FILES and all(job.sizes[k] == n for k, n in kept.items()) and not list(job.cache.rglob("*.tmp")), kept
    job.run()
    assert job.cached() == job.sizes


def objects(job):
    """A remote dataset of objects: HEAD, and one range of each shard."""
    with S3Server() as s3:
        env = {"env": {**OWN, **s3.env()}}
        on = dict(storage__storage_type="s3", storage__storage_root="bucket")
        stoker("generate", *tiny("data/" + job.fmt, None, **{**job.keys, **on, "workflow__generate_data": "true"}), **env)
        job.clear()
        s3.clear()
        result = job.run(data="data/" + job.fmt, more=env, dataset__verify_samples=0, **on)
        first, second = epochs(result)
        assert first["downloaded_shards"] == FILES and second["downloaded_bytes"] == 0, (first, second)
        gets = [r["key"] for r in s3.requests(op="GetObject") if r["key"].endswith(SUFFIX[job.fmt])]
        assert len(set(gets)) == FILES, gets
        assert job.cached() == job.sizes


def many(tmp):
    """Of many remote objects a list says the sizes: before the run each is asked for by itself only as the dataset is checked, or
    where the list is refused."""
    files = 40
    job = Job(tmp, "mds", "-many", files=files, train__epochs=1, train__total_training_steps=files * SAMPLES // 4)
    for refused in (False, True):
        with S3Server() as s3:
            env = {"env": {**OWN, **s3.env()}}
            on = dict(storage__storage_type="s3", storage__storage_root="bucket")
            stoker("generate", *tiny("data/many", None, **{**job.keys, **on, "workflow__generate_data": "true"}), **env)
            job.clear()
            s3.clear()
            if refused:
                s3.add_rules([{"op": "ListObjectsV2", "every": 1, "do": "status", "status": 403}])
            job.run(data="data/many", more=env, dataset__verify_samples=0, **on)
            heads = [r["key"] for r in s3.requests(op="HeadObject") if r["key"].endswith(".mds")]
            # once as the dataset is checked, once as boto3 before it downloads; and a few of the first ones more
            asked = 3 if refused else 2
            assert asked * files <= len(heads) < (asked + 0.5) * files and len(set(heads)) == files, (refused, len(heads))
            assert job.cached() == job.sizes


def main():
    with tempfile.TemporaryDirectory() as tmp:
        for fmt in ("mds", "litdata"):
            job = Job(pathlib.Path(tmp), fmt)
            for check in (filled_once, one_epoch, limited, refused, full, interrupted, objects):
                check(job)
                print(f"   {fmt}: {check.__name__}")
        many(pathlib.Path(tmp))
        print("   mds: many")


main()

"""A file system that moves fewer bytes than asked for, in the middle of files too, as FUSE and NFS may: everything that is
written through it is whole, and everything that is read through it is read to its end, by every format, store and
checkpoint format, and by the commands that read results."""
# takes 30 s
import concurrent.futures
import filecmp
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from loop_device import Unavailable  # noqa: E402
from slow_fs import SlowFs  # noqa: E402
from util import SANITIZED, load, skip, stoker, tiny  # noqa: E402

FORMATS = "npz npy hdf5 tfrecord csv png jpeg indexed_binary mmap_indexed_binary".split()
STORES = {
    "posix": {}, "direct": {}, "io_uring": {}, "io_uring direct": {"storage__io_uring__direct": "true"},
    "drop_behind+posix": {}, "posix, in flight": {"reader__queue_depth": 4, "reader__access": "native"},
    "io_uring, in flight": {"reader__queue_depth": 4, "reader__access": "native"},
}
CHECKPOINTS = ["torch", "safetensors", "distcp", "tensorflow"]


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in pathlib.Path(folder).rglob("*") if p.is_file())


def same_files(a, b):
    names = [n for n in files(a) if "stoker" not in n]
    assert names and names == [n for n in files(b) if "stoker" not in n], (a, b)
    _, differ, missing = filecmp.cmpfiles(a, b, names, shallow=False)
    assert not differ and not missing, (differ, missing)


def facts(out):
    r = load(out)
    io = r["training"]["io"]
    return {"status": r["status"], "samples": r["training"].get("samples"), "io": {k: [v[x] for x in ("requests", "asked_bytes", "returned_bytes")] for k, v in io.items() if v["requests"]},
            "dataset": [v["level"] for v in r["verdicts"] if v["check"] in ("dataset", "order")],
            "content": r["dataset"].get("content")}


def one(tmp, mount, fmt):
    """Every store reads the same through it as without it."""
    plain = tmp / "plain" / fmt
    stoker("generate", *tiny(plain, None, fmt, dataset__record_length_bytes=40000))
    stoker("generate", *tiny(f"{mount}/{fmt}", None, fmt, dataset__record_length_bytes=40000))
    same_files(plain, tmp / "back" / fmt)
    stoker("verify", f"{mount}/{fmt}")
    # a file system that keeps nothing in the page cache maps nothing
    for store, keys in STORES.items() if fmt != "mmap_indexed_binary" else ():
        if "in flight" in store and fmt in ("csv", "png", "jpeg"):
            continue
        name = store.split(",")[0].split(" ")[0]
        found = []
        for data in (plain, f"{mount}/{fmt}"):
            out = f"{mount}/out-{fmt}-{store.replace(' ', '-')}-{len(found)}"
            done = stoker("run", *tiny(data, out, fmt, workflow__generate_data="false", storage__store=name,
                                       dataset__record_length_bytes=40000, **keys), status=None)
            assert done.returncode == 0, (fmt, store, data, done.stderr)
            found.append(facts(out))
        assert found[0] == found[1], (fmt, store, found)
    return fmt


def checkpoint(tmp, mount, fmt):
    out = f"{mount}/out-{fmt}"
    saved = f"{mount}/saved-{fmt}"
    keys = dict(workflow__checkpoint="true", checkpoint__steps_between_checkpoints=2, model__model_size_bytes=300000,
                checkpoint__format=fmt, checkpoint__checkpoint_folder=saved, checkpoint__num_checkpoints_read=1, run__trace="both")
    stoker("run", *tiny(f"{mount}/data-{fmt}", out, **keys))
    assert load(out)["status"] == "complete" and files(saved)
    stoker("report", out, "-o", f"{mount}/{fmt}.html")
    stoker("audit", out, status=None)
    assert open(f"{mount}/{fmt}.html").read().endswith("</html>\n")
    return fmt


def main():
    if SANITIZED:
        skip("a sanitizer's process is too slow for a file system in user space")
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        (tmp / "back").mkdir()
        try:
            # no whole block at a time; and more than one
            for brief in (1000, 9000):
                with SlowFs(tmp / "back", brief=brief, direct=1) as mount, concurrent.futures.ThreadPoolExecutor(2) as pool:
                    formats = FORMATS if brief == 1000 else FORMATS[:3]
                    done = list(pool.map(lambda f: one(tmp, mount, f), formats))
                    done += list(pool.map(lambda f: checkpoint(tmp, mount, f), CHECKPOINTS))
                    print(f"at most {brief} bytes at a time: {', '.join(done)}", flush=True)
                for p in ("plain", "back"):
                    os.system(f"rm -rf {tmp}/{p}/*")
        except Unavailable as why:
            skip(str(why))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Every format over the stores that read files in other ways than posix: generated, verified, trained and
evaluated with each byte compared, as the library asks and with the fewest requests."""
# tier: long
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, load, skip, stoker, tiny  # noqa: E402

STORES = {
    "direct": ("direct", "throttle+direct", "drop_behind+direct"),
    "mmap": ("mmap", "fault+mmap", "drop_behind+mmap"),
}
MAPPED = ("mmap_indexed_binary", "arrow_stream")


def disk_folder():
    for root in ("/tmp", "/var/tmp", os.getcwd()):
        kind = subprocess.run(["stat", "-f", "-c", "%T", root], capture_output=True, text=True).stdout.strip()
        if os.access(root, os.W_OK) and kind not in ("tmpfs", "ramfs"):
            return root
    skip("every folder here lies in memory")


def formats():
    return [line.split()[0] for line in stoker("show", "formats").stdout.splitlines() if line[:1].isalpha()]


def train(fmt, data, out, store, access, samples, keys):
    stoker("run", *tiny(data, out, workflow__generate_data="false", reader__access=access, reader__decode="verify",
                        reader__sample_shuffle="seed", reader__read_threads=3, storage__store=store, **keys))
    result = load(out)
    epoch = result["training"]["epochs"][0]
    assert epoch["order_proved"] and epoch["samples"] == 6 * samples, epoch
    cache = epoch["page_cache"]
    if store.endswith("direct") and cache is not None:
        # the manifest's and the sizes' check read nothing of the files
        assert cache["cached_at_end_bytes"] <= cache["cached_at_start_bytes"], (fmt, store, cache)
        level = [v["level"] for v in result["verdicts"] if v["check"] == "cache"]
        assert level == ["pass"], (fmt, store, result["verdicts"])


def one(fmt, base, tmp):
    runs = 0
    for samples in (1, 5):
        data, out = tmp / f"{base}-{fmt}{samples}", tmp / "out"
        keys = dict(fmt=fmt, files=6, dataset__num_samples_per_file=samples, dataset__num_files_eval=2,
                    dataset__record_length_bytes=70000, workflow__evaluation="true", reader__batch_size_eval=1,
                    train__computation_time=0, evaluation__eval_time=0)
        stoker("generate", *tiny(data, None, storage__store=base, **keys))
        stoker("verify", *tiny(data, None, storage__store=base, **keys))
        stoker("verify", data)
        for access in ("framework", "native"):
            # maps pages of the cache itself
            if fmt in MAPPED and access == "framework" and base == "direct":
                done = stoker("run", *tiny(data, out, workflow__generate_data="false", storage__store=base, **keys),
                              status=None)
                assert done.returncode != 0 and "bypasses the page cache" in done.stderr, done
                continue
            for store in STORES[base] if samples > 1 else (base,):
                # shims other than drop_behind would not see its page faults
                if fmt in MAPPED and access == "framework" and "+" in store:
                    continue
                train(fmt, data, out, store, access, samples, keys)
                runs += 1
        shutil.rmtree(data, ignore_errors=True)
    return runs


def main():
    with tempfile.TemporaryDirectory(dir=disk_folder(), prefix="stoker-stores-") as tmp:
        tmp = pathlib.Path(tmp)
        for base in STORES:
            for fmt in formats()[:2 if SANITIZED else None]:
                print(f"   {base}, {fmt}: {one(fmt, base, tmp)} runs verified")


if __name__ == "__main__":
    main()

"""Figures, not tests: a dataset of many small files generated, trained on and verified, beside plain loops of open, write,
close and open, read, close over as many files of the same size in the same kind of folder.

    python3 tests/bench/many_files.py [--files N] [--format npy] [--bytes 256] [--pairs 3] [--folder /mnt/fs]

Commands are timed as a whole, in pairs, one after the other; each starts with everything written back, and reading with
an empty page cache, where that is allowed (root). A ratio is the median over the pairs. Nothing is removed before the
end: for some minutes ext4 does not give an inode again, and creating files is slow where many were just removed.
"""
import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
STOKER = os.environ.setdefault("STOKER", "build/stoker")
TOOLS = os.environ.get("STOKER_TOOLS", "build/tests")


def cold(everything):
    os.sync()
    if everything:
        try:
            pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
        except OSError:
            pass


def timed(argv, everything=False):
    """Seconds, and the peak resident memory in MiB."""
    cold(everything)
    begin = time.perf_counter()
    p = subprocess.Popen([str(a) for a in argv], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(p.pid, 0)
    assert status == 0, (argv, status)
    return time.perf_counter() - begin, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=20000)
    parser.add_argument("--format", default="npy")
    parser.add_argument("--bytes", type=float, default=256, help="of a record")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--folder", help="on the file system to be measured")
    parser.add_argument("--only", choices=["generate", "verify", "train"], help="only this (and generating once)")
    args = parser.parse_args()
    top = pathlib.Path(tempfile.mkdtemp(dir=args.folder))
    # each folder below in a part of the disk of its own
    subprocess.run(["chattr", "+T", top], stderr=subprocess.DEVNULL, check=False)
    n = args.files
    keys = ["-q", f"dataset.format={args.format}", f"dataset.num_files_train={n}", "dataset.num_files_eval=0",
            "dataset.num_subfolders_train=0", f"dataset.record_length_bytes={args.bytes:g}", "workflow.evaluation=false"]
    try:
        times = {}

        def pair(what, ours, plain, everything):
            if args.only not in (None, what) and times.get("generate"):
                return
            a, rss = timed(ours, everything)
            b, _ = timed(plain, everything)
            times.setdefault(what, []).append((a, b, rss))
            print(f"  {what}: {a:.2f} s, plain {b:.2f} s", flush=True)

        for i in range(args.pairs):
            data = top / f"stoker{i}"
            where = f"dataset.data_folder={data}"
            generate = [STOKER, "generate", "default", *keys, where]
            if i == 0:  # for the size of its files
                size = top / "size"
                subprocess.run([STOKER, "generate", "default", *keys, f"dataset.data_folder={size}",
                                "dataset.num_files_train=64"], check=True, stdout=subprocess.DEVNULL)
                sizes = [p.stat().st_size for p in (size / "train").iterdir() if p.is_file()]
                mean = round(statistics.mean(sizes))
            pair("generate", generate, [f"{TOOLS}/plain_files", "write", top / f"plain{i}", n, mean], False)
            one = next((data / "train").glob(f"img_{'0' * len(str(n))}_of_*")).name
            pattern = re.sub(r"^img_0+", f"img_%0{len(str(n))}lu", one)
            read = [f"{TOOLS}/plain_files", "read", data / "train", n, pattern]
            pair("verify", [STOKER, "verify", "default", *keys, where], read, True)
            pair("train", [STOKER, "run", "default", *keys, where, "workflow.generate_data=false", "train.epochs=1",
                           "train.computation_time=0", "reader.batch_size=100", "reader.read_threads=1", "-o", top / f"out{i}"],
                 [*read, "1"], True)
        print(f"{n} files of {mean} bytes ({args.format}) in {top}")
        for what, t in times.items():
            ours, plain = statistics.median(x[0] for x in t), statistics.median(x[1] for x in t)
            print(f"{what:9} {n / ours:9.0f} files/s, plain loop {n / plain:9.0f} files/s: "
                  f"{statistics.median(x[0] / x[1] for x in t):.2f} times its time; peak {max(x[2] for x in t):.0f} MiB")
    finally:
        shutil.rmtree(top)


if __name__ == "__main__":
    main()

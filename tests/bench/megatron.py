"""Figures, not a test: the workload of Megatron at its full size, 277,203,535 samples in one file of
561 GB, and the memory that the program needs for it.

    python3 tests/bench/megatron.py build/stoker [FOLDER] [RANKS[,RANKS...]]

Each number of ranks ("1,8") makes 1,000 steps together; the bound is 16 bytes a sample shared by all
ranks, and none of each rank's own: compare the program's own memory for 1 and 8 ranks.

The data file is a hole of that size; the two index files are real (2.2 GB each) and are removed at the
end. Needs 5 GB in FOLDER (or TMPDIR) on a file system that has sparse files.
"""
import array
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

STOKER = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/stoker")
RANKS = [int(n) for n in (sys.argv[3] if len(sys.argv) > 3 else "1").split(",")]
SAMPLES, BYTES, STEPS = 277203535, 45 * 45, 1000
AT_ONCE = 1 << 20
FORMATS = ("mmap_indexed_binary", "indexed_binary")


def write_index(path, first, step):
    with open(path, "wb") as f:
        for i in range(0, SAMPLES, AT_ONCE):
            n = min(AT_ONCE, SAMPLES - i)
            begin = first + i * step
            entries = array.array("Q", range(begin, begin + n * step, step)) if step else array.array("Q", [first]) * n
            f.write(entries.tobytes())


def make(train):
    train.mkdir(parents=True)
    path = train / f"img_0_of_1.{FORMATS[0]}"
    with open(path, "wb") as f:
        f.truncate(SAMPLES * BYTES)
    begin = time.perf_counter()
    write_index(f"{path}.off.idx", 0, BYTES)
    write_index(f"{path}.sz.idx", BYTES, 0)
    print(f"index files: {2 * 8 * SAMPLES / 1e9:.2f} GB written in {time.perf_counter() - begin:.0f} s")
    for end in ("", ".off.idx", ".sz.idx"):
        os.link(f"{path}{end}", train / f"img_0_of_1.{FORMATS[1]}{end}")


def watch(pid):
    """Largest anonymous and file-backed memory, and page tables, in bytes, until the process ends."""
    most = dict.fromkeys(("VmHWM", "RssAnon", "RssFile", "VmPTE"), 0)
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return most, os.waitstatus_to_exitcode(status), usage
        try:
            for line in open(f"/proc/{pid}/status"):
                key, _, value = line.partition(":")
                if key in most:
                    most[key] = max(most[key], int(value.split()[0]) * 1024)
        except (OSError, IndexError):
            pass
        time.sleep(0.02)


def run(fmt, folder, access, ranks):
    out = folder / "out"
    argv = [STOKER, "run", "megatron_deepspeed_LLNL", "-n", str(ranks), "-q", "-o", str(out),
            f"dataset.data_folder={folder / 'data'}", f"dataset.format={fmt}", "workflow.checkpoint=false",
            "train.computation_time=0", f"train.total_training_steps={max(1, STEPS // ranks)}", f"reader.access={access}"]
    begin = time.perf_counter()
    child = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    most, status, usage = watch(child.pid)
    child.returncode = status
    if status:
        raise SystemExit(f"{fmt} {access}: exit status {status}")
    result = json.loads((out / "result.json").read_text())
    epoch = result["training"]["epochs"][0]
    wall = time.perf_counter() - begin
    print(f"{fmt}, {access}, {ranks} ranks: {epoch['steps']} steps of {epoch['samples']} samples in "
          f"{epoch['wall_s']:.1f} s, start and end {wall - epoch['wall_s']:.2f} s, CPU {usage.ru_utime + usage.ru_stime:.1f} s; peak memory: "
          f"own {most['RssAnon'] / 2**20:.0f} MiB, mapped page cache {most['RssFile'] / 2**20:.0f} MiB, "
          f"page tables {most['VmPTE'] / 2**20:.0f} MiB")


def main():
    folder = pathlib.Path(tempfile.mkdtemp(dir=sys.argv[2] if len(sys.argv) > 2 else None))
    try:
        if shutil.disk_usage(folder).free < 6e9:
            raise SystemExit(f"{folder} has less than 6 GB free")
        make(folder / "data/train")
        for fmt in FORMATS:
            for access in ("framework", "native"):
                for ranks in RANKS:
                    run(fmt, folder, access, ranks)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

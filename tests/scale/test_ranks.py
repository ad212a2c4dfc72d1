"""1,024 and 4,096 ranks in one process finish a small workload; a rank costs at most 1 MiB beside its
sample buffers."""
# beside others
import os
import pathlib
import resource
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, left_out, load, skip, stoker, tiny  # noqa: E402

if SANITIZED:
    skip("a sanitizer multiplies the memory that is measured here")
MIB = 1 << 20


def peak(ranks, tmp, threads):
    out = pathlib.Path(tmp, f"out{ranks}")
    stoker("run", "-n", ranks, *tiny(pathlib.Path(tmp, "data"), out, files=8192, fmt="npy",
                                     dataset__record_length_bytes=1024, reader__batch_size=2,
                                     reader__read_threads=threads, train__computation_time=0.05,
                                     reader__access="native", storage__store="memory",
                                     train__total_training_steps=min(4, 8192 // 2 // ranks)), timeout=300)
    r = load(out)
    assert r["status"] == "complete"
    steps = r["training"]["steps_per_epoch"]
    assert steps == 8192 // 2 // ranks, steps
    return r["memory"]["peak_rss_bytes"]


with tempfile.TemporaryDirectory() as tmp:
    one, many = peak(1, tmp, 2), peak(1024, tmp, 2)
    each = (many - one) / 1023
    print(f"   1 rank {one / MIB:.1f} MiB, 1,024 ranks {many / MIB:.1f} MiB: {each / MIB:.3f} MiB a rank "
          "with two workers, sample buffers included")
    assert each <= MIB + 2 * 64 * 1024, each

    # two threads a rank, and small stacks
    room = min(int(pathlib.Path(f"/proc/sys/kernel/{n}").read_text()) for n in ("pid_max", "threads-max"))
    limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if min(room, limit if limit != resource.RLIM_INFINITY else room) < 12000:
        left_out("4,096 ranks: this system allows fewer than 12,000 threads")
    else:
        most = peak(4096, tmp, 1)
        print(f"   4,096 ranks with one worker each: {most / MIB:.1f} MiB")
        assert most <= 1 << 30, most

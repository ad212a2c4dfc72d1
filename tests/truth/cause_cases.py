"""Situations whose limiting cause is known, for test_causes.py: parameters are drawn with fixed seeds, so that a case is
the same in every run. A case that only sleeps (stores in memory that are slowed down) can run beside others."""
import random

KIB, MIB = 1 << 10, 1 << 20
REQUESTS = 5.5  # of a sample of NumPy's .npy, as the framework reads it: header in pieces, then the data
# causes that are one thing to a user: so many requests/s and no more, however many readers there are
CEILING = {"queue", "requests"}
UNKNOWN = {"storage", "unknown"}  # counts half where another cause was planted


class Case:
    """`causes`: any of them is right, if its first fact is one of `reasons`, where some are given. `quick`: part of the
    tests; the others only with --all."""

    def __init__(self, family, situation, causes, ranks, keys, quick=False, alone=False, around=None, reasons=()):
        self.family, self.situation, self.causes, self.ranks = family, situation, set(causes), ranks
        self.keys, self.quick, self.alone, self.around, self.reasons = keys, quick, alone, around, reasons


def base(**keys):
    return dict(dict(storage__store="throttle+memory", dataset__data_folder="/causes", fmt="npy",
                     dataset__record_length_bytes=64 * KIB, reader__batch_size=2), **keys)


def shape(rng, readers=(1, 2, 3, 4), ranks=(1, 1, 2, 4)):
    return rng.choice(readers), rng.choice(ranks)


def length(step_s, total_s=1.8, least=16):
    return max(least, min(90, int(total_s / step_s)))


def loaders(i):
    """Most cases emulate PyTorch, some the others."""
    return {3: dict(framework="tensorflow", reader__data_loader="tensorflow"), 4: dict(reader__data_loader="dali")}.get(i % 5, {})


def named(i):
    return {3: ", tensorflow", 4: ", dali"}.get(i % 5, "")


def ms(s):
    return f"{1e3 * s:.3g} ms"


def each_waits(name, key, per_batch, cause, low, high):
    """A time of each request or open: the batch takes per_batch of it, and a worker is needed for each compute time."""
    def make(rng, i):
        w, r = shape(rng)
        each = rng.uniform(low, high)
        service = per_batch * each
        c = service / rng.uniform(9, 15)
        steps = length(service / w)
        return Case(name, f"{key.split('.')[-1].replace('_', ' ')} of {ms(each)}, {r} x {w} workers{named(i)}",
                    {cause}, r, base(files=steps * 2 * r, reader__read_threads=w, reader__prefetch_size=2 * w,
                                     train__computation_time=round(c, 5), **{f"storage__throttle__{key}": round(each, 5)},
                                     **loaders(i)))
    return make


def shared_bandwidth(rng, i):
    w, r = shape(rng, readers=(2, 3, 4, 6))
    c = rng.uniform(0.008, 0.03)
    step = c / rng.uniform(0.2, 0.6)
    rate = r * 2 * 64 * KIB / step
    return Case("bandwidth", f"{rate / 1e6:.2g} MB/s shared by {r} x {w} workers{named(i)}", {"bandwidth"}, r,
                base(files=length(step) * 2 * r, reader__read_threads=w, reader__prefetch_size=2 * w,
                     train__computation_time=round(c, 5), storage__throttle__bandwidth=round(rate), **loaders(i)))


def stream(rng, i):
    w, r = shape(rng)
    service = rng.uniform(0.08, 0.2)
    c = service / rng.uniform(9, 15)
    rate = 2 * 64 * KIB / service
    return Case("stream", f"{rate / 1e6:.2g} MB/s for each reader, {r} x {w} workers{named(i)}", {"stream_bandwidth"}, r,
                base(files=length(service / w) * 2 * r, reader__read_threads=w, reader__prefetch_size=2 * w,
                     dataset__record_length_bytes_stdev=20000, train__computation_time=round(c, 5),
                     storage__throttle__stream_bandwidth=round(rate), **loaders(i)))


def queue(rng, i):
    k = rng.choice((1, 1, 2))
    w, r = rng.choice(((3, 1), (4, 1), (2, 2), (3, 2), (2, 4), (6, 1)))
    c = rng.uniform(0.008, 0.03)
    step = c / rng.uniform(0.2, 0.6)
    each = step * k / (r * 2 * REQUESTS)
    return Case("queue", f"requests served {k} at a time for {ms(each)}, {r} x {w} workers{named(i)}", CEILING, r,
                base(files=length(step) * 2 * r, reader__read_threads=w, reader__prefetch_size=2 * w,
                     train__computation_time=round(c, 5), storage__throttle__concurrency=k,
                     storage__throttle__latency=round(each, 6), **loaders(i)))


def queue_of_bytes(rng, i):
    w, r = rng.choice(((3, 1), (4, 1), (2, 2), (3, 2), (2, 4), (6, 1)))
    c = rng.uniform(0.008, 0.03)
    step = c / rng.uniform(0.2, 0.6)
    rate = r * 2 * 64 * KIB / step
    return Case("queue of bytes", f"one request after another at {rate / 1e6:.2g} MB/s, {r} x {w} workers{named(i)}",
                {"queue", "bandwidth"}, r,
                base(files=length(step) * 2 * r, reader__read_threads=w, reader__prefetch_size=2 * w,
                     dataset__record_length_bytes_stdev=rng.choice((0, 20000)),
                     train__computation_time=round(c, 5), storage__throttle__concurrency=1,
                     storage__throttle__bandwidth=round(rate), **loaders(i)))


def iops(rng, i):
    w, r = rng.choice(((3, 1), (4, 1), (2, 2), (3, 2), (2, 4), (6, 1)))
    c = rng.uniform(0.008, 0.03)
    step = c / rng.uniform(0.2, 0.6)
    rate = r * 2 * REQUESTS / step
    sliced = dict(storage__throttle__iops_slice=0.1) if i % 3 == 2 else {}
    return Case("iops", f"{rate:.0f} requests/s{' in slices of 0.1 s' if sliced else ''}, {r} x {w} workers{named(i)}",
                CEILING, r,
                base(files=length(step) * 2 * r, reader__read_threads=w, reader__prefetch_size=2 * w,
                     train__computation_time=round(c, 5), storage__throttle__iops=round(rate), **sliced, **loaders(i)))


def opens_queue(rng, i):
    k = rng.choice((1, 1, 2))
    w, r = rng.choice(((3, 1), (4, 1), (2, 2), (3, 2), (2, 4), (6, 1)))
    c = rng.uniform(0.008, 0.03)
    step = c / rng.uniform(0.2, 0.6)
    each = step * k / (r * 2)
    return Case("opens", f"files opened {k} at a time for {ms(each)}, {r} x {w} workers{named(i)}", {"opens"}, r,
                base(files=length(step) * 2 * r, reader__read_threads=w, reader__prefetch_size=2 * w,
                     train__computation_time=round(c, 5), storage__throttle__open_concurrency=k,
                     storage__throttle__open_latency=round(each, 6), **loaders(i)))


def preprocess(rng, i):
    w, r = shape(rng)
    each = rng.uniform(0.02, 0.06)
    c = 2 * each / rng.uniform(9, 15)
    return Case("preprocess", f"{ms(each)} of preprocessing a sample, {r} x {w} workers{named(i)}", {"preprocess"}, r,
                base(files=length(2 * each / w) * 2 * r, reader__read_threads=w, reader__prefetch_size=2 * w,
                     train__computation_time=round(c, 5), reader__preprocess_time=round(each, 5), **loaders(i)))


def few_workers(rng, i):
    w, r = rng.choice((0, 1, 1, 2)), rng.choice((1, 1, 2))
    c = rng.uniform(0.01, 0.03)
    need = rng.uniform(max(1.3 * w, 0.5), 2.8)
    # of the reads or of preprocessing
    each = need * c / 2
    slow = dict(reader__preprocess_time=round(each, 5)) if i % 2 else \
        dict(storage__throttle__latency=round(each / REQUESTS, 6))
    return Case("few workers", f"{r} x {w} workers where {need:.1f} would do ({'preprocessing' if i % 2 else 'latency'})",
                {"workers"} if i % 2 or w == 0 else {"workers", "latency"}, r,
                base(files=length(c + need * c if w == 0 else need * c / w) * 2 * r, reader__read_threads=w,
                     reader__prefetch_size=2 * w, train__computation_time=round(c, 5), **slow))


def window(rng, i):
    w = rng.choice((4, 5, 6))
    c = rng.uniform(0.008, 0.015)
    scale = w * c * rng.uniform(0.6, 0.75)
    return Case("window", f"{w} workers, {w} batches ahead, batches take {ms(scale)} +- {ms(scale)}", {"prefetch"}, 1,
                base(files=300, reader__batch_size=1, reader__read_threads=w, reader__prefetch_size=w,
                     train__computation_time=round(c, 5),
                     reader__preprocess_time=f"{{type: exponential, scale: {scale:.5f}}}"))


def slow_rank(rng, i):
    r, delay = rng.choice((2, 3, 4)), rng.uniform(0.012, 0.03)
    c = rng.uniform(0.006, 0.012)
    return Case("slow rank", f"opening takes {ms(delay)} for the files of rank 1 of {r}", {"slow_rank"}, r,
                base(files=100 * r, reader__read_threads=1, storage__store="fault+memory", reader__order="dlio",
                     reader__sample_shuffle="off", reader__file_shuffle="off", storage__fault__op="open",
                     train__computation_time=round(c, 5), storage__fault__nth=1, storage__fault__count=0,
                     storage__fault__path="img_1", storage__fault__action="delay",
                     storage__fault__delay=round(delay, 5)))


def equal_ranks(rng, i):
    """Ranks alike on one queue: somebody is served last each time, and it is nobody's fault."""
    r, w = rng.choice((2, 2, 3)), rng.choice((1, 2))
    c = rng.uniform(0.01, 0.02)
    step = c / rng.uniform(0.3, 0.5)
    each = step / (r * 2 * REQUESTS)
    return Case("equal ranks", f"one queue ({ms(each)} a request) for {r} equal ranks with {w} worker{'s' * (w > 1)}",
                CEILING, r, base(files=length(step) * 2 * r, reader__read_threads=w, reader__prefetch_size=2 * w,
                                 train__computation_time=round(c, 5), storage__throttle__concurrency=1,
                                 storage__throttle__latency=round(each, 6)))


def barrier(rng, i):
    r = rng.choice((2, 3, 4))
    c = rng.uniform(0.012, 0.03)
    if i % 2:
        text, key = f"exponential, mean {ms(c)}", dict(train__computation_time=f"{{type: exponential, scale: {c:.5f}}}")
    else:
        text = f"{ms(c)} +- {ms(c / 2)}"
        key = dict(train__computation_time=round(c, 5), train__computation_time_stdev=round(c / 2, 5))
    return Case("barrier", f"{r} ranks compute {text}", {"barrier"}, r,
                base(files=240 * r // 2, reader__read_threads=1, **key))


def checkpoint(rng, i):
    size, rate = rng.uniform(4, 12) * MIB, rng.uniform(20e6, 40e6)
    return Case("checkpoint", f"every 10 steps, {size / MIB:.0f} MiB at {rate / 1e6:.0f} MB/s", {"checkpoint"}, 1,
                base(files=80, reader__read_threads=2, workflow__checkpoint="true", train__computation_time=0.01,
                     checkpoint__steps_between_checkpoints=10, checkpoint__checkpoint_folder="/causes-checkpoints",
                     model__model_size_bytes=int(size), storage__throttle__bandwidth=round(rate),
                     storage__throttle__write="true"))


def start_up(rng, i):
    start, epochs = rng.uniform(0.1, 0.3), rng.choice((2, 3))
    key = rng.choice(("worker_init_time", "worker_start_time"))
    return Case("start", f"{epochs} epochs of 20 steps, {key.replace('_', ' ')} {ms(start)} in each", {"start_up"}, 1,
                base(files=40, reader__read_threads=2, train__computation_time=0.01, train__epochs=epochs,
                     reader__persistent_workers="false", **{f"reader__{key}": round(start, 4)}))


def compute(rng, i):
    w, r = shape(rng)
    c = rng.uniform(0.015, 0.04)
    each = w * c * rng.uniform(0.1, 0.5) / (2 * REQUESTS)
    return Case("compute", f"{r} x {w} workers need {100 * 2 * REQUESTS * each / w / c:.0f} % of the time that "
                f"computation takes{named(i)}", {"compute"}, r,
                base(files=90 * 2 * r, reader__read_threads=w, reader__prefetch_size=2 * w,
                     train__computation_time=round(c, 5), storage__throttle__latency=round(each, 6), **loaders(i)))


def burst(rng, i):
    c = rng.uniform(0.01, 0.02)
    slow = 2 * 64 * KIB / c * rng.uniform(0.15, 0.35)
    credit = rng.uniform(4, 8) * MIB
    return Case("burst", f"{credit / MIB:.0f} MiB of credit, then {slow / 1e6:.2g} MB/s", {"unsteady"}, 1,
                base(files=2 * int((credit + 1.5 * slow) / (128 * KIB)), reader__read_threads=4, reader__prefetch_size=8,
                     train__computation_time=round(c, 5), storage__throttle__bandwidth=round(slow),
                     storage__throttle__burst_bytes=round(credit), storage__throttle__burst_bandwidth=1000e6))


def stall(rng, i):
    c, long = rng.uniform(0.01, 0.02), rng.uniform(0.8, 1.6)
    return Case("stall", f"everything stops once for {long:.1f} s", {"stall"}, 1,
                base(files=200, reader__read_threads=2, train__computation_time=round(c, 5),
                     storage__throttle__latency=0.0005, storage__throttle__stall=round(long, 3),
                     storage__throttle__stall_at=0.5))


def short_stops(rng, i):
    """Three at most, far shorter than a second; with a period, they may be told as phases."""
    c, long = rng.uniform(0.01, 0.015), rng.uniform(0.14, 0.25)
    return Case("stall", f"everything stops for {ms(long)} two or three times", {"stall", "unsteady"}, 1,
                base(files=320, reader__read_threads=2, train__computation_time=round(c, 5),
                     storage__throttle__latency=0.0003, storage__throttle__stall=round(long, 3),
                     storage__throttle__stall_at=0.4, storage__throttle__stall_every=0.9))


def delayed(op, delay, path=""):
    return dict(storage__store="fault+throttle+memory", storage__fault__op=op, storage__fault__nth=1, storage__fault__count=0,
                storage__fault__path=path, storage__fault__action="delay", storage__fault__delay=round(delay, 4))


def few_slow(rng, i):
    """One file of ten, at random places of the order: its open or its close is slow, and nothing stands still."""
    c, delay, w = rng.uniform(0.004, 0.008), rng.uniform(0.13, 0.28), rng.choice((2, 3, 4))
    op = ("open", "close")[i % 2]
    return Case("few slow requests", f"one {op} in ten takes {ms(delay)}, {w} workers", {"metadata"}, 1,
                base(files=160, reader__read_threads=w, reader__prefetch_size=2 * w, train__computation_time=round(c, 5),
                     storage__throttle__latency=0.0003, **delayed(op, delay, f"{rng.randrange(10)}_of_")),
                reasons=(f"limit.slow_{op}s",))


def closes(rng, i):
    w, r = shape(rng)
    delay = rng.uniform(0.012, 0.03)
    return Case("closing", f"each close takes {ms(delay)}, {r} x {w} workers", {"metadata"}, r,
                base(files=length(2 * delay / w) * 2 * r, reader__read_threads=w, reader__prefetch_size=2 * w,
                     train__computation_time=round(2 * delay / rng.uniform(9, 15), 5), **delayed("close", delay)),
                reasons=("limit.closing",))


def slow_folder(rng, i):
    c, delay, w, n = rng.uniform(0.003, 0.006), rng.uniform(0.012, 0.025), rng.choice((4, 6)), rng.choice((4, 5))
    return Case("slow folder", f"reads take {ms(delay)} longer in one of {n} folders, {w} workers", {"slow_files"}, 1,
                base(files=240, reader__read_threads=w, reader__prefetch_size=2 * w, train__computation_time=round(c, 5),
                     dataset__num_subfolders_train=n, storage__throttle__latency=0.0004,
                     **delayed("read", delay, f"/train/{rng.randrange(n)}/")), reasons=("limit.slow_folders",))


def slow_files(rng, i):
    """Files whose number ends in one digit; several reads of each."""
    c, delay, w = rng.uniform(0.003, 0.006), rng.uniform(0.02, 0.04), rng.choice((3, 4))
    return Case("slow files", f"reads take {ms(delay)} longer in one file of ten, {w} workers", {"slow_files"}, 1,
                base(files=200, reader__read_threads=w, reader__prefetch_size=2 * w, train__computation_time=round(c, 5),
                     storage__throttle__latency=0.0004, **delayed("read", delay, f"{rng.randrange(10)}_of_")),
                reasons=("limit.slow_files",))


def slow_worker(rng, i):
    """Files whose number ends in 3, which are all of worker 3 of ten."""
    c, delay = rng.uniform(0.003, 0.006), rng.uniform(0.08, 0.15)
    return Case("slow worker", f"the batches of one of ten workers take {ms(delay)} longer", {"slow_worker"}, 1,
                base(files=300, reader__batch_size=1, reader__read_threads=10, reader__prefetch_size=20,
                     reader__sample_shuffle="off", reader__file_shuffle="off", train__computation_time=round(c, 5),
                     dataset__record_length_bytes=4 * KIB, storage__store="fault+throttle+memory",
                     storage__throttle__latency=0.0004, storage__fault__op="open", storage__fault__nth=1,
                     storage__fault__count=0, storage__fault__path="3_of_", storage__fault__action="delay",
                     storage__fault__delay=round(delay, 4)))


def decode(rng, i):
    """Computes: a slow format, decoded in full."""
    w = rng.choice((1, 2))
    fmt = "jpeg" if i % 2 else "csv"
    return Case("decode", f"{fmt} of 1 MiB decoded in full, {w} worker{'s' * (w > 1)}", {"decode"}, 1,
                dict(files=60, fmt=fmt, storage__store="memory", dataset__data_folder="/causes",
                     dataset__record_length_bytes=MIB, reader__decode="full", reader__read_threads=w, reader__batch_size=2,
                     train__computation_time=0.0002), alone=True)


def memory(rng, i):
    if i % 2:
        return Case("memory", "samples of 64 KiB from memory, 1 worker", {"page_cache", "memory_bandwidth"}, 1,
                    dict(files=6000, fmt="npy", storage__store="memory", dataset__data_folder="/causes",
                         reader__batch_size=8, dataset__record_length_bytes=64 * KIB, reader__read_threads=1,
                         reader__access="native", reader__decode="none", train__computation_time=0.000002), alone=True)
    return Case("memory", "samples of 16 MiB from memory, 2 workers", {"memory_bandwidth", "page_cache"}, 1,
                dict(files=16, fmt="npy", storage__store="memory", dataset__data_folder="/causes", reader__batch_size=1,
                     dataset__record_length_bytes=16 * MIB, dataset__record_length_bytes_stdev=0,
                     reader__read_threads=2, train__epochs=4, train__computation_time=0.0001), alone=True)


FAMILIES = (
    (each_waits("latency", "latency", 2 * REQUESTS, "latency", 0.004, 0.015), 6, 2),
    (each_waits("opening", "open_latency", 2, "metadata", 0.02, 0.06), 5, 1),
    (shared_bandwidth, 6, 2), (stream, 5, 1), (queue, 7, 2), (queue_of_bytes, 5, 1), (iops, 7, 2), (opens_queue, 6, 1),
    (preprocess, 5, 1), (few_workers, 6, 2), (window, 3, 1), (slow_rank, 4, 1), (equal_ranks, 4, 2), (barrier, 5, 2),
    (checkpoint, 2, 1), (start_up, 3, 1), (compute, 5, 1), (burst, 3, 1), (stall, 3, 1), (short_stops, 3, 1),
    (few_slow, 4, 2), (closes, 3, 1), (slow_folder, 3, 1), (slow_files, 3, 1),
    (slow_worker, 3, 1), (decode, 2, 1), (memory, 2, 2),
)


def drawn(seed=0):
    """All cases of stores in memory, those of the tests first in each family."""
    for make, count, quick in FAMILIES:
        for i in range(count):
            rng = random.Random(f"{seed} {make.__qualname__} {i}")
            case = make(rng, i)
            case.quick = i < quick and seed == 0
            yield case

"""tf.data's TFRecord pipeline as DLIO builds it, stage by stage as objects that are pulled: the reference
for the order of records, who reads them, and how far ahead. Written from the kernels' rules
(parallel_interleave_dataset_op, shuffle_dataset_op, random_distributions) and from nothing of ours; it
makes tests/data/vectors/tf-order.json:

    python3 tests/truth/tf_sim.py > tests/data/vectors/tf-order.json
"""
import collections
import json
import sys

M32 = 0xFFFFFFFF


# ---- random numbers

def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & M32, (p0 >> 32) ^ c[3] ^ k[1], p0 & M32]
        k = [(k[0] + 0x9E3779B9) & M32, (k[1] + 0xBB67AE85) & M32]
    return c


def words(seed, seed2):
    """PhiloxRandom(seed, seed2) through a SingleSampleAdapter."""
    block = 0
    while True:
        yield from philox([block & M32, block >> 32, seed2 & M32, seed2 >> 32], [seed & M32, seed >> 32])
        block += 1


def shuffle_words(seed, epoch, reshuffle):
    """The generator of iterator number `epoch` of a dataset that was given an operation's seed only."""
    if not reshuffle:
        return words(87654321, seed)
    seeds = words(87654321, seed)
    for _ in range(epoch - 1):
        next(seeds), next(seeds)
    return words(next(seeds), next(seeds))


# ---- stages: next() gives an element or raises StopIteration

class Worker:
    """A thread of the legacy interleave: reads an element, then waits for room in its buffer of two."""

    def __init__(self):
        self.file, self.left, self.outputs, self.hand, self.seen = None, collections.deque(), [], None, 0

    def give(self, file, records):
        assert not self.left and not self.outputs and self.hand is None
        self.file, self.left = file, collections.deque(records)

    def settle(self):
        """Goes on until it has to wait."""
        while True:
            if self.hand is not None and len(self.outputs) < 2:
                self.outputs.append(self.hand)
                self.hand = None
            elif self.hand is None and self.left:
                self.hand = self.left.popleft()
                self.seen += 1
            else:
                return


class Interleave:
    def __init__(self, files, records_of, k):
        self.files, self.records_of = collections.deque(files), records_of
        self.cycle, self.staging, self.turn = [], collections.deque(), 0
        self.workers = []
        self.by = None
        for i in range(3 * k):
            if not self.files:
                break
            w = Worker()
            self.give(w)
            self.workers.append(w)
            (self.cycle if i < k else self.staging).append(w)

    def give(self, w):
        file = self.files.popleft()
        w.give(file, self.records_of(file))

    def __iter__(self):
        return self

    def __next__(self):
        while True:
            for w in self.workers:
                w.settle()
            restart = False
            any_left = False
            for i in range(len(self.cycle)):
                index = (self.turn + i) % len(self.cycle)
                w = self.cycle[index]
                if w is None:
                    continue
                if w.outputs:
                    self.turn = (index + 1) % len(self.cycle)
                    self.by = self.workers.index(w)
                    out = w.outputs.pop(0)
                    w.settle()
                    return out
                self.cycle[index] = None
                if self.files:
                    self.give(w)
                    self.staging.append(w)
                if self.staging:
                    self.cycle[index] = self.staging.popleft()
                    self.turn = (index + 1) % len(self.cycle)
                    restart = True
                    break
            any_left = restart or any(w is not None for w in self.cycle)
            if not any_left:
                raise StopIteration


class Calls:
    """interleave with num_parallel_calls: elements of the cycle, and those to come, each with results of its own."""

    def __init__(self, files, records_of, cycle, block):
        self.files, self.records_of, self.block = collections.deque(files), records_of, block
        self.now, self.later, self.ahead = [self.make() for _ in range(cycle)], collections.deque(), 2 * cycle
        self.at, self.taken, self.seen, self.by = 0, 0, 0, None
        self.settle()

    def make(self):
        return dict(left=collections.deque(self.records_of(self.files.popleft())), results=[]) if self.files else None

    def settle(self):
        while self.files and len(self.later) < self.ahead:
            self.later.append(self.make())
        for e in [*self.now, *self.later]:
            while e and e["left"] and len(e["results"]) < 2 * self.block + 1:
                e["results"].append(e["left"].popleft())
                self.seen += 1

    def turn(self):
        self.at, self.taken = (self.at + 1) % len(self.now), 0

    def __iter__(self):
        return self

    def __next__(self):
        self.settle()
        while any(self.now):
            if not self.now[self.at]:
                self.turn()
                continue
            if self.now[self.at]["results"]:
                out = self.now[self.at]["results"].pop(0)
                self.settle()
                self.taken += 1
                if self.taken == self.block:
                    self.turn()
                return out
            self.now[self.at] = self.later.popleft() if self.later else self.make()
            self.settle()
            self.turn()
        raise StopIteration


class One:
    """interleave without num_parallel_calls: the files of a cycle, opened and read when their turn comes."""

    def __init__(self, files, records_of, cycle, block):
        self.files, self.records_of, self.block = iter(files), records_of, block
        self.now, self.at, self.taken, self.seen, self.by, self.over = [None] * cycle, 0, 0, 0, None, False

    def turn(self):
        self.at, self.taken = (self.at + 1) % len(self.now), 0

    def __iter__(self):
        return self

    def __next__(self):
        while not self.over or any(self.now):
            if self.now[self.at]:
                for record in self.now[self.at]:
                    self.seen += 1
                    self.taken += 1
                    if self.taken == self.block:
                        self.turn()
                    return record
                self.now[self.at] = None
                self.turn()
                continue
            file = next(self.files, None)
            if file is None:
                self.over = True
                self.turn()
            else:
                self.now[self.at] = iter(self.records_of(file))
        raise StopIteration


class FlatMap:
    def __init__(self, files, records_of):
        self.files, self.records_of, self.now, self.by, self.seen = iter(files), records_of, iter(()), 0, 0

    def __iter__(self):
        return self

    def __next__(self):
        while True:
            for r in self.now:
                self.seen += 1
                return r
            self.now = iter(self.records_of(next(self.files)))


class Shuffle:
    def __init__(self, source, size, random):
        self.source, self.size, self.random = source, size, random
        self.buffer, self.start, self.end, self.done = [None] * size, 0, 0, False
        self.by = None

    def __iter__(self):
        return self

    def __next__(self):
        while not self.done and self.end - self.start < self.size:
            try:
                element = next(self.source)
            except StopIteration:
                self.done = True
                break
            self.buffer[self.end % self.size] = (element, self.source.by)
            self.end += 1
        if self.start == self.end:
            raise StopIteration
        index = (self.start + next(self.random) % (self.end - self.start)) % self.size
        out, self.by = self.buffer[index]
        front = self.start % self.size
        self.buffer[index], self.buffer[front] = self.buffer[front], self.buffer[index]
        self.start += 1
        return out


class Shard:
    def __init__(self, source, n, i):
        self.source, self.n, self.i, self.at, self.by = source, n, i, 0, None

    def __iter__(self):
        return self

    def __next__(self):
        while True:
            element, mine = next(self.source), self.at % self.n == self.i
            self.at += 1
            if mine:
                self.by = self.source.by
                return element


def build(c):
    def records_of(file):
        return range(file * c["per_file"], (file + 1) * c["per_file"])

    files = range(c["files"])
    by_file = c["files"] >= c["ranks"]
    if by_file:
        files = [f for i, f in enumerate(files) if i % c["ranks"] == c["rank"]]
    kind = c.get("interleave", 0)
    if kind:
        source = (Calls, One)[kind - 1](files, records_of, c["threads"], c["block"])
    else:
        source = Interleave(files, records_of, c["threads"]) if c["threads"] else FlatMap(files, records_of)
    pipe = source
    if c["shuffle"]:
        pipe = Shuffle(pipe, c["shuffle"], shuffle_words(c["seed"], c["epoch"], c["reshuffle"]))
    if not by_file:
        pipe = Shard(pipe, c["ranks"], c["rank"])
    return source, pipe


def read_ahead(c, batches):
    """Records read once `batches` batches have left the batch stage and all threads wait."""
    source, pipe = build(c)
    for _ in range(batches * c["batch"]):
        next(pipe)
    if not c["threads"] or c.get("interleave"):
        return {"batches": batches, "read": source.seen}
    for w in source.workers:
        w.settle()
    return {"batches": batches, "read": sum(w.seen for w in source.workers),
            "of_workers": [w.seen for w in source.workers]}


def run(c):
    _, pipe = build(c)
    order = [[sample, pipe.by] for sample in pipe]
    steps = len(order) // c["batch"]
    return {**c, "order": order,
            "ahead": [read_ahead(c, b) for b in sorted({0, min(1, steps), min(3, steps), steps // 2, steps})]}


def cases():
    base = dict(files=7, per_file=5, ranks=1, rank=0, threads=2, shuffle=0, seed=123, epoch=1, reshuffle=True,
                batch=4)
    for change in (
        {}, dict(threads=0), dict(threads=1), dict(threads=3), dict(threads=5, files=24, per_file=3),
        dict(threads=2, files=3, per_file=1), dict(threads=4, files=2, per_file=9), dict(threads=2, per_file=1, files=40),
        dict(shuffle=1), dict(shuffle=6), dict(shuffle=6, epoch=2), dict(shuffle=6, epoch=3, reshuffle=False),
        dict(shuffle=1000), dict(shuffle=10, threads=0, seed=42), dict(shuffle=16, files=30, per_file=7, threads=4, epoch=5),
        dict(seed=4294967295, shuffle=9),
        *[dict(ranks=3, rank=r, files=10, shuffle=8) for r in range(3)],
        *[dict(ranks=4, rank=r, files=3, per_file=11, shuffle=8, batch=2) for r in range(4)],
        *[dict(ranks=2, rank=r, files=2, per_file=6, threads=2, batch=2) for r in range(2)],
        *[dict(interleave=i, block=b, **more) for i in (1, 2) for b, more in (
            (1, {}), (2, {}), (3, dict(threads=3, files=11, per_file=7)), (4, dict(threads=1)), (20, dict(threads=3)),
            (2, dict(shuffle=6, files=9, per_file=4)), (3, dict(threads=4, files=3, per_file=8)))],
        *[dict(ranks=2, rank=r, interleave=1, block=2, files=7) for r in range(2)],
    ):
        yield {**base, **change}


def vectors():
    return {"about": "made by tests/truth/tf_sim.py: the order of records of tf.data's TFRecord pipeline, each with "
                     "the interleave's thread that reads it, and how many records are read when a number of batches "
                     "has left the batch stage and all threads wait",
            "cases": [run(c) for c in cases()]}


def dump(out):
    v = vectors()
    out.write('{"about": %s,\n"cases": [\n' % json.dumps(v["about"]))
    out.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in v["cases"]))
    out.write("\n]}\n")


if __name__ == "__main__":
    dump(sys.stdout)

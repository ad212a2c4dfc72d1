"""A discrete-event simulation of PyTorch's DataLoader over a store with shared bandwidth: the reference
that measured runs are held against. Written from the algorithm alone and checked against
tests/data/vectors/loader-sim-vectors.json (python3 loader_sim.py).

Parameters: R ranks, W workers a rank, P prefetch factor, b samples a batch, nb batches a rank, c compute
seconds a step, size bytes a sample (or a list: of sample k of rank r at r*nb*b + k), meta_ops and meta_lat (seconds each), lat (seconds a read), dec
seconds a sample, collate seconds a batch, d seconds a delivery, startup seconds of a worker, B bytes/s
shared by all, b1 bytes/s one stream can get, Q reads in service at once (0: no limit), jitter the most by
which a wait ends late.
"""
import collections
import heapq
import itertools
import json
import pathlib
import random


class Sim:
    def __init__(self, R, W, P, b, nb, c, size, B=0, b1=0, lat=0.0, meta_ops=0, meta_lat=0.0, dec=0.0,
                 collate=0.0, d=0.0, startup=0.0, Q=0, jitter=0.0, seed=0):
        self.p = dict(R=R, W=W, P=P, b=b, nb=nb, c=c, size=size, B=B or 1e18, b1=b1 or 1e18, lat=lat,
                      meta=meta_ops * meta_lat, dec=dec, collate=collate, d=d, startup=startup, Q=Q or 10**9)
        # every timed wait ends late by up to `jitter`, as on a real machine
        self.late = random.Random(seed)
        self.jitter = jitter
        self.now = 0.0
        self.heap = []
        self.count = itertools.count()
        # processor sharing by virtual time
        self.v, self.v_at, self.active, self.share_token = 0.0, 0.0, [], 0
        self.in_service, self.waiting = 0, collections.deque()

    def at(self, t, fn, *args):
        heapq.heappush(self.heap, (t, next(self.count), fn, args))

    # ---- the store
    def rate(self):
        return min(self.p["b1"], self.p["B"] / len(self.active)) if self.active else 0.0

    def advance(self):
        self.v += (self.now - self.v_at) * self.rate()
        self.v_at = self.now

    def rearm(self):
        self.share_token += 1
        if self.active:
            tag = self.active[0][0]
            self.at(self.now + max(0.0, tag - self.v) / self.rate(), self.share_done, self.share_token)

    def share_done(self, token):
        if token != self.share_token:
            return
        self.advance()
        tag, _, done = heapq.heappop(self.active)
        self.v = max(self.v, tag)
        self.rearm()
        self.at(self.now + self.lateness(), self.leave, done)

    def transfer(self, size, done):
        self.advance()
        heapq.heappush(self.active, (self.v + size, next(self.count), done))
        self.rearm()

    def leave(self, done):
        self.in_service -= 1
        if self.waiting:
            self.enter(*self.waiting.popleft())
        done()

    def lateness(self):
        return self.late.uniform(0, self.jitter) if self.jitter else 0.0

    def enter(self, size, done):
        self.in_service += 1
        self.at(self.now + self.p["lat"] + self.lateness(), self.transfer, size, done)

    def read(self, size, done):
        if self.in_service < self.p["Q"]:
            self.enter(size, done)
        else:
            self.waiting.append((size, done))

    # ---- ranks
    def run(self):
        p = self.p
        self.ranks = [Rank(self, r) for r in range(p["R"])]
        self.at_barrier = 0
        for rank in self.ranks:
            rank.begin()
        while self.heap:
            self.now, _, fn, args = heapq.heappop(self.heap)
            fn(*args)
        first = max(r.load[0] for r in self.ranks)
        au = []
        for r in self.ranks:
            proc0 = r.load[0] + p["c"]
            au.append(100.0 * p["c"] * (p["nb"] - 1) / (r.end - proc0))
        wall = max(r.end for r in self.ranks)
        # AU excludes the first step whole; DLIO's leaves the first step's barrier in the window
        return {"wall": wall, "first": first, "dlio_AU": sum(au) / len(au),
                "AU": 100.0 * p["c"] * (p["nb"] - 1) / (wall - first - p["c"]),
                "whole_AU": sum(100.0 * p["c"] * p["nb"] / r.end for r in self.ranks) / p["R"]}

    def arrive(self):
        self.at_barrier += 1
        if self.at_barrier == self.p["R"]:
            self.at_barrier = 0
            for r in self.ranks:
                r.next_step()


class Rank:
    def __init__(self, sim, number):
        self.sim, self.p, self.number = sim, sim.p, number
        self.sent = self.wanted = 0
        self.ready = set()
        self.queues = [collections.deque() for _ in range(self.p["W"])]
        self.busy = [True] * self.p["W"]
        self.load, self.asked, self.waiting = [], 0.0, False
        self.end = 0.0

    def begin(self):
        for _ in range(self.p["P"] * self.p["W"]):
            self.put_index()
        for w in range(self.p["W"]):
            self.sim.at(self.p["startup"], self.worker_free, w)
        self.next_step_first()

    def next_step_first(self):
        self.asked = 0.0
        self.ask()

    def put_index(self):
        if self.sent < self.p["nb"]:
            w = self.sent % self.p["W"]
            self.queues[w].append(self.sent)
            self.sent += 1
            if not self.busy[w]:
                self.worker_free(w)

    def worker_free(self, w):
        if not self.queues[w]:
            self.busy[w] = False
            return
        self.busy[w] = True
        batch = self.queues[w].popleft()
        self.sample(batch, 0, lambda: self.batch_done(w, batch))

    def size(self, k):
        size = self.p["size"]
        return size[self.number * self.p["nb"] * self.p["b"] + k] if isinstance(size, list) else size

    def sample(self, batch, i, done):
        if i == self.p["b"]:
            self.sim.at(self.sim.now + self.p["collate"], done)
            return
        read_done = lambda: self.sim.at(self.sim.now + self.p["dec"], self.sample, batch, i + 1, done)
        self.sim.at(self.sim.now + self.p["meta"], self.sim.read, self.size(batch * self.p["b"] + i),
                    read_done)

    def batch_done(self, w, batch):
        self.ready.add(batch)
        if self.waiting and batch == self.wanted:
            self.waiting = False
            self.hand_out()
        self.worker_free(w)

    def ask(self):
        if self.p["W"] == 0:
            self.sample(self.wanted, 0, self.inline_done)
        elif self.wanted in self.ready:
            self.hand_out()
        else:
            self.waiting = True

    def inline_done(self):
        self.sim.at(self.sim.now + self.p["d"], self.got)

    def hand_out(self):
        self.put_index()
        self.sim.at(self.sim.now + self.p["d"], self.got)

    def got(self):
        self.load.append(self.sim.now - self.asked)
        self.wanted += 1
        self.sim.at(self.sim.now + self.p["c"], self.sim.arrive)

    def next_step(self):
        self.end = self.sim.now
        if self.wanted < self.p["nb"]:
            self.asked = self.sim.now
            self.ask()


def simulate(**params):
    return Sim(**params).run()


def check_vectors():
    path = pathlib.Path(__file__).resolve().parent.parent / "data/vectors/loader-sim-vectors.json"
    worst = 0.0
    for vector in json.loads(path.read_text()):
        got = simulate(**vector["params"])
        for key in ("wall", "AU", "first"):
            off = abs(got[key] - vector[key]) / vector[key]
            worst = max(worst, off)
            assert off < 1e-6, f"{vector['name']}: {key} {got[key]} is not {vector[key]}"
    return worst


if __name__ == "__main__":
    check_vectors()
    print("all vectors agree")

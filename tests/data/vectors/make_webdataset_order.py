"""Writes webdataset-order.json: the order in which the workers of WebDataset (1.0.2) deliver samples, by its own filters.

    make_webdataset_order.py OUT        (with a Python that has webdataset)
"""
import itertools
import json
import random
import sys

from webdataset import filters

KEYS = "files per ranks workers file_buffer buffer initial seed".split()
CASES = [(7, 5, 1, 1, 0, 0, 1, 1), (7, 5, 1, 1, 100, 0, 1, 1), (9, 4, 2, 2, 3, 10, 3, 42),
         (23, 11, 2, 3, 5, 20, 5, 123), (230, 3, 1, 1, 150, 64, 100, 2**33 + 5),
         (5, 40, 1, 2, 100, 1000, 100, 0), (6, 9, 1, 2, 1, 1, 1, 7), (6, 9, 1, 2, 2, 2, 2, 7)]


def order(files, per, ranks, workers, file_buffer, buffer, initial, seed):
    out = []
    for rank, worker in itertools.product(range(ranks), range(workers)):
        shards = itertools.islice(itertools.islice(range(files), rank, None, ranks), worker, None, workers)
        if file_buffer:
            shards = filters._shuffle(shards, file_buffer, 100, random.Random(seed))
        samples = (s * per + i for s in shards for i in range(per))
        if buffer:
            samples = filters._shuffle(samples, buffer, initial, random.Random(seed))
        out.append(list(samples))
    return out


with open(sys.argv[1], "w") as f:
    json.dump([dict(zip(KEYS, c), order=order(*c)) for c in CASES], f, separators=(",", ":"))

#!/usr/bin/python3
"""A job without torch: a pool of threads reads whole files and a loop takes batches, as tf.data and DALI do.

usage: threads.py JSON     data, threads, batch, epochs, compute_ms, seed, ahead
"""
import json
import os
import queue
import random
import sys
import threading
import time

job = {"seed": 1, **json.loads(sys.argv[1])}
paths = sorted(os.path.join(job["data"], n) for n in os.listdir(job["data"]))
todo, done = queue.Queue(), queue.Queue(job["ahead"])


def read():
    while (path := todo.get()) is not None:
        fd = os.open(path, os.O_RDONLY)
        n = 0
        while part := os.pread(fd, 1 << 16, n):
            n += len(part)
        os.close(fd)
        done.put(n)


crew = [threading.Thread(target=read, daemon=True) for _ in range(job["threads"])]
for t in crew:
    t.start()
r, steps = random.Random(job["seed"]), 0
for epoch in range(job["epochs"]):
    r.shuffle(paths)
    for p in paths:
        todo.put(p)
    for _ in range(len(paths) // job["batch"]):
        for _ in range(job["batch"]):
            done.get()
        time.sleep(job["compute_ms"] / 1e3)
        steps += 1
for t in crew:
    todo.put(None)
for t in crew:
    t.join()
print(json.dumps(dict(rank=0, steps=steps)))

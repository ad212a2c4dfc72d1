"""Makes deal-order.json with MosaicML Streaming 0.13.0 and LitData 0.2.64, whose folders are the arguments (site-packages,
or unpacked wheels): what each rank and worker is given, from the libraries' own functions."""
import importlib.util
import json
import pathlib
import sys
import types
from collections import namedtuple

import numpy as np

streaming, litdata = (pathlib.Path(a) for a in sys.argv[1:3])


def module(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    m = importlib.util.module_from_spec(spec)
    sys.modules[name] = m
    spec.loader.exec_module(m)
    return m


for name in ("streaming", "streaming.base", "streaming.base.shuffle", "litdata", "litdata.utilities", "litdata.streaming"):
    sys.modules[name] = types.ModuleType(name)
Interval = namedtuple("Interval", "chunk_start roi_start_idx roi_end_idx chunk_end")
loader, env, stream = (types.ModuleType(n) for n in ("litdata.streaming.item_loader", "litdata.utilities.env", "s"))
loader.Interval, env._DistributedEnv = Interval, object
sys.modules["litdata.streaming"].Cache = object
sys.modules.update({"litdata.streaming.item_loader": loader, "litdata.utilities.env": env})
orig = module("streaming.base.partition.orig", streaming / "base/partition/orig.py")
py1s = module("streaming.base.shuffle.py1s", streaming / "base/shuffle/py1s.py")
py1e = module("streaming.base.shuffle.py1e", streaming / "base/shuffle/py1e.py")
py1br = module("streaming.base.shuffle.py1br", streaming / "base/shuffle/py1br.py")
py2s = module("streaming.base.shuffle.py2s", streaming / "base/shuffle/py2s.py")
naive = module("streaming.base.shuffle.naive", streaming / "base/shuffle/naive.py")
module("litdata.utilities.shuffle", litdata / "utilities/shuffle.py")
shuffle = module("litdata.streaming.shuffle", litdata / "streaming/shuffle.py")
ALGORITHMS = {"py1e": py1e.get_shuffle_py1e, "py1s": py1s.get_shuffle_py1s, "naive": naive.get_shuffle_naive,
              "py1br": py1br.get_shuffle_py1br, "py2s": py2s.get_shuffle_py2s}


def mds(files, per, ranks, workers, batch, nodes, canonical, algorithm, block, seed, epoch):
    ids = orig.get_partitions_orig(files * per, canonical, nodes, ranks // nodes, workers, batch)
    if algorithm:
        order = ALGORITHMS[algorithm](np.full(files, per), canonical, seed, epoch - 1, block)
        ids = np.where(ids != -1, order[ids], -1)
    return ids.reshape(ranks, workers, -1).tolist()


def lit(files, per, ranks, workers, batch, shuffled, seed, epoch):
    world = namedtuple("World", "world_size num_nodes global_rank")(ranks, 1, 0)
    cache = types.SimpleNamespace(get_chunk_intervals=lambda: [Interval(i * per, i * per, i * per + per, i * per + per)
                                                               for i in range(files)])
    s = (shuffle.FullShuffle if shuffled else shuffle.NoShuffle)(cache, seed, ranks > 1)
    chunks, intervals = s.get_chunks_and_intervals_per_workers(world, workers, batch, epoch)
    found = []
    for of, parts in zip(chunks, intervals):
        found.append([])
        for i, (c, p) in enumerate(zip(of, parts)):
            found[-1] += [int(x) for x in s(np.arange(p[1], p[2]), len(of), epoch, i)]
    return [found[r * workers:(r + 1) * workers] for r in range(ranks)]


out = []
for case in ((5, 7, 1, 2, 3, 1, 1, None, 1 << 18, 9176, 1), (5, 7, 2, 2, 2, 1, 1, "py1e", 20, 9176, 1),
             (13, 9, 4, 3, 2, 2, 2, "py1e", 30, 77, 3), (13, 9, 4, 1, 5, 2, 6, "py1s", 30, 1 << 40, 2),
             (7, 30, 3, 2, 4, 1, 64, "py1s", 99, 1, 1), (4, 25, 2, 2, 3, 1, 1, "naive", 1, 5, 4),
             (6, 11, 8, 2, 3, 4, 2, None, 1, 3, 1), (6, 11, 8, 2, 3, 4, 2, "py1e", 1 << 18, 3, 2),
             (3, 200, 6, 4, 8, 3, 3, "py1e", 1 << 18, 0, 1), (11, 6, 4, 1, 2, 4, 1, "py1e", 8, 12, 2),
             (13, 9, 4, 3, 2, 2, 2, "py1br", 30, 77, 3), (13, 9, 1, 2, 5, 1, 3, "py1br", 8, 1 << 40, 2),
             (3, 200, 6, 4, 8, 3, 3, "py1br", 1 << 18, 0, 1), (13, 9, 4, 1, 5, 2, 6, "py2s", 30, 1 << 40, 2),
             (7, 30, 3, 2, 4, 1, 64, "py2s", 99, 1, 1), (5, 7, 2, 2, 2, 1, 1, "py2s", 20, 9176, 1)):
    keys = "files per ranks workers batch nodes canonical algorithm block seed epoch".split()
    out.append({"of": "mds", **dict(zip(keys, case)), "order": mds(*case)})
for case in ((5, 7, 1, 2, 3, False, 42, 1), (5, 7, 1, 2, 3, True, 42, 1), (13, 9, 2, 3, 4, True, 42, 2), (3, 20, 1, 1, 7, True, 1, 5),
             (4, 25, 3, 2, 3, False, 42, 1), (2, 50, 4, 3, 2, True, 9, 1), (9, 4, 1, 5, 6, True, 7, 2)):
    keys = "files per ranks workers batch shuffle seed epoch".split()
    out.append({"of": "litdata", **dict(zip(keys, case)), "order": lit(*case)})
with open(pathlib.Path(__file__).with_name("deal-order.json"), "w") as f:
    json.dump(out, f, separators=(",", ":"))

#!/usr/bin/env python3
"""Checkpoints against the libraries that read them: PyTorch opens every sharding and saves the same bytes
again, with the same requests; its distributed reader finds every chunk; safetensors are read by the
specification alone. Nothing that was killed or did not fit has the name of a checkpoint."""
import dataclasses
import glob
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from util import SANITIZED, left_out, skip, stoker  # noqa: E402

try:
    import numpy as np
    import torch
except ImportError as e:
    skip(f"{e.name} is not installed")

TOOL = os.path.join(os.environ.get("STOKER_TOOLS", "build/dev/tests"), "checkpoint_tool")
MASK = (1 << 64) - 1
GOLDEN = 0x9e3779b97f4a7c15
SMALL = ["framework=pytorch", "model.type=transformer", "model.num_layers=12", "model.transformer.vocab_size=1000",
         "model.transformer.hidden_size=64", "model.transformer.ffn_hidden_size=96",
         "model.transformer.num_attention_heads=4", "model.transformer.num_kv_heads=2"]
TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64,
         "int8": torch.int8, "uint8": torch.uint8}
TYPE_NUMBER = {name: i for i, name in enumerate(TYPES)}
POOL = 4194304


def tool(verb, folder, ranks, *keys, status=0, step=2, model=SMALL, extra=()):
    done = subprocess.run([*extra, TOOL, verb, "default", str(ranks), "1", str(step), *model,
                           f"checkpoint.checkpoint_folder={folder}", *keys], capture_output=True, text=True)
    assert done.returncode == status, f"{verb} {keys}: {done.returncode}\n{done.stdout}{done.stderr}"
    return json.loads(done.stdout) if status == 0 else done.stderr


# ---- the content function, from its description in src/checkpoint/stream.h ----

def mix(x):
    x &= MASK
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ x >> 27) * 0x94d049bb133111eb & MASK
    return x ^ x >> 31


def rng_word(key, i):
    return mix(key + (i + 1) * GOLDEN)


def rng_key(key, a, b):
    return mix(mix(mix(key + GOLDEN) ^ (a + 2 * GOLDEN & MASK)) + (b + 1) * GOLDEN)


def make_pool(name, seed=0, ones=False):
    if ones:
        return torch.ones(POOL // 8, dtype=TYPES[name]).numpy().tobytes() * 8
    x = np.arange(1, POOL // 8 + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    x += np.uint64(rng_key(seed, 0x636b7074, TYPE_NUMBER[name]))
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xbf58476d1ce4e5b9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94d049bb133111eb)
    x ^= x >> np.uint64(31)
    if name == "fp16":
        return ((x.view(np.uint16) >> 5).astype(np.float64) / 2048).astype(np.float16).tobytes()
    if name == "bf16":
        return torch.from_numpy((x.view(np.uint16) >> 8).astype(np.float32) / 256).bfloat16().view(
            torch.int16).numpy().tobytes()
    if name == "fp32":
        return ((x.view(np.uint32) >> 8).astype(np.float64) / 2 ** 24).astype(np.float32).tobytes()
    if name == "fp64":
        return ((x >> np.uint64(11)).astype(np.float64) / 2 ** 53).tobytes()
    return x.tobytes()


POOLS = {}


def expected_bytes(stem, index, name, place, n, epoch=1, step=2, ones=False):
    if (name, ones) not in POOLS:
        POOLS[name, ones] = 2 * make_pool(name, ones=ones)
    pool = POOLS[name, ones]
    h = 0xcbf29ce484222325
    for c in stem.encode():
        h = (h ^ c) * 0x100000001b3 & MASK
    key = rng_key(rng_key(0, epoch, step), h, 0)
    phase = rng_word(key, index) % (POOL // 4096) * 4096 + (place % 4096 & ~7)
    return pool[phase:phase + n] if n <= POOL else (pool * (n // POOL + 1))[phase:phase + n]


def as_made(x, seen=None):
    """A map that was loaded, with keys as DLIO makes them: str(n) is a new object each time, and what is
    loaded from a file has one for all "0"."""
    seen = {} if seen is None else seen
    if not isinstance(x, dict):
        return x
    if id(x) not in seen:
        seen[id(x)] = {str(int(k)) if k.isdigit() else k: as_made(v, seen) for k, v in x.items()}
    return seen[id(x)]


def raw(tensor):
    return tensor.view(torch.int16).numpy().tobytes() if tensor.dtype == torch.bfloat16 else tensor.numpy().tobytes()


def flatten(x, prefix=()):
    if isinstance(x, dict):
        for k, v in x.items():
            yield from flatten(v, prefix + (k,))
    else:
        yield ".".join(prefix), x


def names(folder):
    return sorted(os.listdir(f"{folder}/global_epoch1_step2"))


# ---- torch ----

def layer_shapes(layer, tp, shards):
    h, f, v, kv = 64, 96, 1000, 32
    if layer in (0, 13):
        return [h * v // tp // shards]
    if layer == 14:
        return [h // shards]
    return [h // shards, h * (h + 2 * kv) // tp // shards, h * h // tp // shards, h // shards,
            2 * h * f // tp // shards, h * f // tp // shards]


def expected_layers(pp, pipeline, tp, shards):
    each, more = divmod(12, pipeline)
    first = pp * each + min(pp, more) + 1
    last = first + each - 1 + (pp < more)
    layers = list(range(0 if pp == 0 else first, 15 if pp == pipeline - 1 else last + 1))
    return {f"{n}.{k}": s for n in layers for k, s in enumerate(layer_shapes(n, tp, shards))}


def check_sharding(tmp, ranks, tp, pp, zero, model="fp16", optimizer="fp32", keys=()):
    folder = f"{tmp}/shard"
    mp, dp = tp * pp, ranks // (tp * pp)
    args = [f"model.parallelism.tensor={tp}", f"model.parallelism.pipeline={pp}", f"model.parallelism.zero_stage={zero}",
            f"model.model_datatype={model}", f"model.optimizer_datatype={optimizer}", *keys]
    stat = tool("write", folder, ranks, *args)
    want = {}
    params = 2 * 64000 + 64 + 12 * sum(layer_shapes(1, 1, 1))
    for rank in range(ranks):
        m, d = rank % mp, rank // mp
        if zero == 0 and d > 0:
            continue
        layers = expected_layers(rank // tp % pp, pp, tp, dp if zero == 3 else 1)
        if zero in (0, 3):
            want[f"zero_pp_rank_{d}_mp_rank_{m}_model_states"] = layers
        elif d == 0 and pp == 1:
            want[f"model_{m}_model_states"] = layers
        elif d == 0:
            for key, shape in layers.items():
                layer, k = key.split(".")
                want.setdefault(f"layer_{layer}-model_{m}_model_states", {})[k] = shape
        share = params // (mp * (dp if zero else 1))
        want[f"zero_pp_rank_{d}_mp_rank_{m}_optim_states"] = {
            str(k): 320 if k % 2 else share for k in range(6)}
    assert names(folder) == sorted(f"{stem}.pt" for stem in want), names(folder)
    payload = 0
    for stem, tensors in want.items():
        path = f"{folder}/global_epoch1_step2/{stem}.pt"
        loaded = torch.load(path)
        got = dict(flatten(loaded))
        dtype = optimizer if stem.endswith("optim_states") else model
        assert {k: tuple(t.shape) for k, t in got.items()} == {k: (n,) for k, n in tensors.items()}, stem
        torch.save(as_made(loaded), open(f"{tmp}/again", "wb"))
        blob = pathlib.Path(path).read_bytes()
        if "checkpoint.torch=torch2" not in keys:
            assert blob == pathlib.Path(f"{tmp}/again").read_bytes(), f"{stem}: not what torch.save writes"
        places = [line.split() for line in listing(path)]
        assert [p[0] for p in places] == list(got)
        for index, (key, tensor) in enumerate(got.items()):
            place, n = int(places[index][2]), int(places[index][3])
            assert tensor.dtype == TYPES[dtype] and place % 64 == 0
            ones = "checkpoint.randomize_tensor=false" in keys
            assert raw(tensor) == expected_bytes(stem, index, dtype, place, n, ones=ones), (stem, key)
            payload += n
    assert payload == stat["payload_bytes"]
    for way in (["checkpoint.verify=true"], [], ["checkpoint.mmap=true", "checkpoint.verify=true"],
                ["checkpoint.access=native", "checkpoint.verify=true"], ["checkpoint.access=native"]):
        assert tool("read", folder, ranks, *args, *way)["payload_bytes"] == payload
    before = {n: pathlib.Path(f"{folder}/global_epoch1_step2/{n}").read_bytes() for n in names(folder)}
    tool("write", folder, ranks, *args, "checkpoint.access=native", "checkpoint.block_bytes=8192")
    assert before == {n: pathlib.Path(f"{folder}/global_epoch1_step2/{n}").read_bytes() for n in names(folder)}
    tool("remove", folder, ranks, *args)
    assert os.listdir(folder) == []


def listing(path):
    return subprocess.run([TOOL, "list", path], capture_output=True, text=True, check=True).stdout.splitlines()


def test_shardings(tmp):
    check_sharding(tmp, 2, 2, 1, 0)
    check_sharding(tmp, 4, 2, 2, 0, "bf16")
    check_sharding(tmp, 4, 2, 1, 1)
    check_sharding(tmp, 5, 1, 5, 1, "fp32", "fp64")
    check_sharding(tmp, 4, 1, 2, 2, "uint8", "bf16")
    check_sharding(tmp, 4, 2, 1, 3)
    check_sharding(tmp, 1, 1, 1, 3, keys=["checkpoint.randomize_tensor=false"])
    check_sharding(tmp, 1, 1, 1, 0, keys=["checkpoint.torch=torch2"])


def test_predefined(tmp):
    model = ["framework=pytorch", "model.type=x", "model.model_size_bytes=1000", "model.num_layers=1100",
             "model.layer_parameters=[100,0,50]", "model.optimization_groups=[9,0,300]"]
    for dlio in ("false", "true"):
        tool("write", f"{tmp}/pre", 1, f"compat.dlio={dlio}", model=model)
        base = f"{tmp}/pre/global_epoch1_step2/"
        layers = torch.load(base + "zero_pp_rank_0_mp_rank_0_model_states.pt")
        assert list(layers) == [str(n) for n in range(1, 1101)]
        assert all(list(v) == ["0", "2"] and v["0"].shape == (100,) for v in layers.values())
        shared = len({t.data_ptr() for v in layers.values() for t in v.values()}) == 2
        assert shared == (dlio == "true")
        optimizer = torch.load(base + "zero_pp_rank_0_mp_rank_0_optim_states.pt")
        assert {k: tuple(v.shape) for k, v in flatten(optimizer)} == {
            "0.a": (9,), "0.b": (9,), "2.a": (300,), "2.b": (300,), "combined": (309,)}
        assert torch.load(base + "model_states-0.pt")["a"].shape == (1000,)
        for name in os.listdir(base):
            torch.save(as_made(torch.load(base + name)), open(f"{tmp}/again", "wb"))
            assert pathlib.Path(f"{tmp}/again").read_bytes() == pathlib.Path(base + name).read_bytes(), name
        tool("read", f"{tmp}/pre", 1, f"compat.dlio={dlio}", "checkpoint.verify=true", model=model)


def test_real_files(tmp):
    """What torch.save makes of other things is listed, too."""
    net = torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.BatchNorm1d(5))
    base = torch.arange(12.0).reshape(3, 4)
    torch.save({"net": net.state_dict(), "opt": torch.optim.Adam(net.parameters()).state_dict(), "view": base.t(),
                "same": [base, base], "list": (1, "x", None, 2.5), "p": torch.nn.Parameter(base)}, f"{tmp}/real.pt")
    got = {line.split()[0]: line.split()[1:] for line in listing(f"{tmp}/real.pt")}
    assert got["net.0.weight"][0] == "FloatStorage" and got["net.0.weight"][3:] == ["5", "7"]
    assert got["net.1.num_batches_tracked"][0] == "LongStorage"
    assert got["view"][3:] == ["4", "3"] and got["same.0"][1] == got["same.1"][1] == got["p"][1]
    blob = pathlib.Path(f"{tmp}/real.pt").read_bytes()
    place = int(got["view"][1])
    assert blob[place:place + 48] == base.numpy().tobytes()


# ---- requests ----

CALL = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\)\s+= (-?\d+)")


def calls(command, path, trace):
    if not shutil.which("strace"):
        return None
    with tempfile.NamedTemporaryFile("r") as out:
        subprocess.run(["strace", "-f", "--seccomp-bpf", "-s", "0", "-o", out.name, "-P", path, "-e", "trace=" + trace,
                        "--", *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                       env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0"))
        return [(m.group(1), m.group(2), int(m.group(3))) for m in map(CALL.match, out.read().splitlines()) if m]


def reads(list_of_calls):
    result, at = [], 0
    for call, args, ret in list_of_calls:
        if call == "lseek":
            at = ret
        elif call == "read":
            result.append((at, ret))
            at += ret
        elif call in ("pread64", "preadv"):
            result.append((int(args.split(",")[-1]), ret))
    return [r for r in result if r[1] > 0]


def test_requests(tmp):
    if not shutil.which("strace"):
        print("   (no strace: requests are not compared)")
        return
    folder = f"{tmp}/req"
    keys = ["model.transformer.vocab_size=100000", "checkpoint.fsync=true"]
    command = [TOOL, "write", "default", "1", "1", "2", *SMALL, *keys, f"checkpoint.checkpoint_folder={folder}"]
    os.makedirs(f"{folder}/global_epoch1_step2")
    stem = f"{folder}/global_epoch1_step2/zero_pp_rank_0_mp_rank_0_model_states.pt"
    ours = calls(command, stem + ".tmp", "openat,write,writev,pwrite64,pwritev,fsync,rename,close")
    writes = [ret for call, _, ret in ours if "write" in call]
    copy = f"{tmp}/copy.pt"
    script = (f"import torch; x = torch.load({stem!r}); f = open({copy!r}, 'wb'); "
              "torch.save({str(int(k)): {str(int(j)): t for j, t in v.items()} for k, v in x.items()}, f); f.close()")
    theirs = calls([sys.executable, "-c", script], copy, "write,writev,pwrite64")
    assert writes == [ret for _, _, ret in theirs], "other writes than torch.save's"
    assert max(writes) == 12800000 and [c for c, _, _ in ours][-3:] == ["fsync", "close", "rename"]
    # and of reading it back
    theirs = reads(calls([sys.executable, "-c", f"import torch; f = open({stem!r}, 'rb'); torch.load(f)"], stem,
                         "read,lseek,pread64"))
    ours = reads(calls([TOOL, "read", *command[2:]], stem, "pread64,preadv"))
    assert ours == theirs, f"other reads than torch.load's:\n{ours[:12]}\n{theirs[:12]}"


# ---- the other formats ----

def read_safetensors(path):
    """By the specification alone."""
    blob = pathlib.Path(path).read_bytes()
    n, = struct.unpack_from("<Q", blob)
    text = blob[8:8 + n]
    assert text[:1] == b"{" and n % 8 == 0 and n <= 100_000_000
    header = json.loads(text, object_pairs_hook=lambda pairs: dict(pairs) if len(dict(pairs)) == len(pairs) else 1 / 0)
    assert all(isinstance(v, str) for v in header.pop("__metadata__").values())
    sizes = {"F16": 2, "BF16": 2, "F32": 4, "F64": 8, "I8": 1, "U8": 1}
    end, out = 0, {}
    for name, x in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = x["data_offsets"]
        assert begin == end and stop - begin == sizes[x["dtype"]] * int(np.prod(x["shape"])), name
        out[name] = (x["dtype"], x["shape"], 8 + n + begin, blob[8 + n + begin:8 + n + stop])
        end = stop
    assert 8 + n + end == len(blob)
    return out


def test_safetensors(tmp):
    keys = ["checkpoint.format=safetensors", "model.parallelism.tensor=2", "model.parallelism.zero_stage=1"]
    stat = tool("write", f"{tmp}/safe", 4, *keys)
    total = 0
    for rank in range(2):
        stem = f"model_{rank}_model_states"
        got = read_safetensors(f"{tmp}/safe/global_epoch1_step2/{stem}.safetensors")
        want = expected_layers(0, 1, 2, 1)
        assert {k: v[1] for k, v in got.items()} == {k: [n] for k, n in want.items()}
        assert list(got) == sorted(want)
        for index, key in enumerate(want):
            dtype, _, place, data = got[key]
            assert dtype == "F16" and data == expected_bytes(stem, index, "fp16", place, len(data)), key
    for path in glob.glob(f"{tmp}/safe/*/*.safetensors"):
        total += sum(len(v[3]) for v in read_safetensors(path).values())
    assert total == stat["payload_bytes"]
    for way in ("framework", "native"):
        assert tool("read", f"{tmp}/safe", 4, *keys, f"checkpoint.access={way}", "checkpoint.verify=true")
    path = f"{tmp}/safe/global_epoch1_step2/model_0_model_states.safetensors"
    blob = bytearray(pathlib.Path(path).read_bytes())
    blob[-1] ^= 1
    pathlib.Path(path).write_bytes(blob)
    assert "differs from what was written" in tool("read", f"{tmp}/safe", 4, *keys, "checkpoint.verify=true", status=1)
    tool("remove", f"{tmp}/safe", 4, *keys)
    assert os.listdir(f"{tmp}/safe") == []


def distributed_checkpoint():
    """PyTorch 1.13's module, which Python 3.11's dataclasses refuse for a default without a hash."""
    made = dataclasses.dataclass

    def hashable(cls=None, **kw):
        def wrap(c):
            if not kw.get("frozen") and "__hash__" not in c.__dict__:
                kw.setdefault("unsafe_hash", True)
            return made(c, **kw)
        return wrap(cls) if cls is not None else wrap
    dataclasses.dataclass = hashable
    try:
        import torch.distributed._shard.checkpoint as module
        return module
    except Exception as e:  # whatever this build of torch lacks
        print(f"   (no torch.distributed checkpoints here: {e})")
        return None
    finally:
        dataclasses.dataclass = made


def test_distcp(tmp):
    keys = ["checkpoint.format=distcp", "model.parallelism.tensor=2", "model.parallelism.zero_stage=1"]
    folder = f"{tmp}/dcp"
    stat = tool("write", folder, 4, *keys)
    assert names(folder) == [".metadata"] + sorted(f"__{r}_{i}.distcp" for r in range(4) for i in range(2 if r < 2 else 1))
    for way in ([], ["checkpoint.access=native"], ["checkpoint.mmap=true"]):
        assert tool("read", folder, 4, *keys, "checkpoint.verify=true", *way)["payload_bytes"] == stat["payload_bytes"]
    module = distributed_checkpoint()
    if module:
        reader = module.FileSystemReader(f"{folder}/global_epoch1_step2")
        about = reader.read_metadata().state_dict_metadata
        state = {k: torch.empty(v.size, dtype=v.properties.dtype) for k, v in about.items()}
        module.load_state_dict(state, reader, no_dist=True)
        assert state["model.1.1"].shape == (64 * 128,) and state["model.1.1"].dtype == torch.float16
        assert state["optimizer.0"].numel() == 4 * ((2 * 64000 + 64 + 12 * sum(layer_shapes(1, 1, 1))) // 4)
        assert sum(t.numel() * t.element_size() for t in state.values()) == stat["payload_bytes"]
        blob = pathlib.Path(f"{folder}/global_epoch1_step2/__1_0.distcp").read_bytes()
        half = raw(state["model.1.1"])[64 * 128:]
        assert blob.count(half) == 1, "the second half of a tensor lies in rank 1's file"
    os.remove(f"{folder}/global_epoch1_step2/.metadata")
    assert "is incomplete: it was never committed" in tool("read", folder, 4, *keys, status=1)
    tool("remove", folder, 4, *keys)
    assert os.listdir(folder) == []


def crc32c(data, crc=0):
    if not hasattr(crc32c, "table"):
        crc32c.table = []
        for n in range(256):
            for _ in range(8):
                n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
            crc32c.table.append(n)
    crc ^= 0xffffffff
    for b in data:
        crc = crc >> 8 ^ crc32c.table[(crc ^ b) & 255]
    return crc ^ 0xffffffff


def masked(crc):
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def varint(b, at):
    v = shift = 0
    while True:
        v |= (b[at] & 127) << shift
        shift += 7
        at += 1
        if b[at - 1] < 128:
            return v, at


def proto(b):
    """The fields of a protocol buffer: {number: [values]}."""
    out, at = {}, 0
    while at < len(b):
        tag, at = varint(b, at)
        if tag & 7 == 0:
            v, at = varint(b, at)
        elif tag & 7 == 5:
            v, at = struct.unpack_from("<I", b, at)[0], at + 4
        else:
            assert tag & 7 == 2
            n, at = varint(b, at)
            v, at = b[at:at + n], at + n
        out.setdefault(tag >> 3, []).append(v)
    return out


def read_table(b):
    """A table of LevelDB's format, by its description alone: [(key, value)]."""
    assert b[-8:] == struct.pack("<Q", 0xdb4775248b80fb57)

    def block(at, n):
        body, (kind, crc) = b[at:at + n], struct.unpack_from("<BI", b, at + n)
        assert kind == 0 and crc == masked(crc32c(b[at:at + n + 1]))
        restarts = struct.unpack_from("<I", body, n - 4)[0]
        starts = struct.unpack_from(f"<{restarts}I", body, n - 4 - 4 * restarts)
        at, end, key, seen = 0, n - 4 - 4 * restarts, b"", []
        while at < end:
            begin = at
            shared, at = varint(body, at)
            rest, at = varint(body, at)
            size, at = varint(body, at)
            assert shared == 0 or begin not in starts
            seen.append(begin)
            key = key[:shared] + body[at:at + rest]
            yield key, body[at + rest:at + rest + size]
            at += rest + size
        assert at == end and (not seen or set(starts) <= set(seen))

    footer, at, handles = b[-48:], 0, []
    for _ in range(4):
        v, at = varint(footer, at)
        handles.append(v)
    assert list(block(*handles[:2])) == []
    out = []
    for last, handle in block(*handles[2:]):
        where, at = varint(handle, 0)
        out += block(where, varint(handle, at)[0])
        assert out[-1][0] <= last
    assert [k for k, _ in out] == sorted(k for k, _ in out)
    return out


def read_bundle(prefix):
    """{path in the object graph: (type, shape, place, bytes)} of a TensorFlow checkpoint."""
    index = read_table(pathlib.Path(prefix + ".index").read_bytes())
    data = pathlib.Path(prefix + ".data-00000-of-00001").read_bytes()
    assert index[0][0] == b"" and proto(index[0][1])[1] == [1]
    entries, end = {}, 0
    for key, value in index[1:]:
        x = proto(value)
        place, n = x.get(4, [0])[0], x[5][0]
        assert place == end
        end = place + n
        shape = [proto(d).get(1, [0])[0] for d in proto(x[2][0]).get(2, [])]
        entries[key.decode()] = x[1][0], shape, place, data[place:end]
        if n < 3000 and x[1][0] != 7:
            assert x[6][0] == masked(crc32c(data[place:end])), key
    assert end == len(data)
    kind, shape, _, text = entries.pop("_CHECKPOINTABLE_OBJECT_GRAPH")
    n, at = varint(text, 0)
    assert (kind, shape, len(text)) == (7, [], at + 4 + n)
    assert struct.unpack_from("<I", text, at)[0] == masked(crc32c(struct.pack("<I", n)))
    nodes = [proto(node) for node in proto(text[at + 4:])[1]]
    found = {}

    def walk(number, path):
        for attribute in nodes[number].get(2, []):
            a = proto(attribute)
            assert a[1] == [b"VARIABLE_VALUE"]
            found[path] = entries.pop(a[3][0].decode())
        for ref in nodes[number].get(1, []):
            r = proto(ref)
            walk(r.get(1, [0])[0], path + "." * bool(path) + r[2][0].decode())
    walk(0, "")
    assert not entries, "tensors that are not in the object graph"
    assert found.pop("save_counter")[3] == struct.pack("<q", 1)
    return found


def test_tensorflow(tmp):
    keys = ["framework=tensorflow", "reader.data_loader=tensorflow", "model.parallelism.tensor=2", "model.parallelism.zero_stage=1",
            "model.optimizer_datatype=bf16", "model.model_size_bytes=70000"]
    folder = f"{tmp}/tf"
    stat = tool("write", folder, 4, *keys)
    assert len(names(folder)) == 2 * 6 + 1 and "checkpoint" in names(folder)
    for stem, kind, name in (("model_1_model_states", 19, "fp16"), ("zero_pp_rank_1_mp_rank_0_optim_states", 14, "bf16")):
        got = read_bundle(f"{folder}/global_epoch1_step2/{stem}.pb-1")
        if name == "fp16":
            assert {k: v[1] for k, v in got.items()} == {k: [n] for k, n in expected_layers(0, 1, 2, 1).items()}
        for index, (key, (dtype, _, place, data)) in enumerate(got.items()):
            assert dtype == kind and data == expected_bytes(stem, index, name, place, len(data)), (stem, key)
    for way in ("framework", "native"):
        r = tool("read", folder, 4, *keys, f"checkpoint.access={way}", "checkpoint.verify=true")
        assert r["payload_bytes"] == stat["payload_bytes"]
    path = f"{folder}/global_epoch1_step2/model_1_model_states.pb-1.index"
    blob = bytearray(pathlib.Path(path).read_bytes())
    blob[100] ^= 1
    pathlib.Path(path).write_bytes(blob)
    assert "is not the index" in tool("read", folder, 4, *keys, status=1)
    tool("remove", folder, 4, *keys)
    assert os.listdir(folder) == []
    flat = ["framework=tensorflow", "reader.data_loader=tensorflow", "model.type=x", "model.model_size_bytes=30000000"]
    tool("write", folder, 1, model=flat)
    (dtype, shape, place, data), = read_bundle(f"{folder}/global_epoch1_step2/model_states-0.pb-1").values()
    assert (dtype, shape) == (6, [30000000]) and data == expected_bytes("model_states-0", 0, "int8", place, len(data))
    tool("read", folder, 1, "checkpoint.verify=true", model=flat)


# ---- failures ----

def test_killed(tmp):
    folder = f"{tmp}/kill"
    keys = ["model.parallelism.zero_stage=3", "model.transformer.vocab_size=40000"]
    tool("write", folder, 2, *keys, step=1)
    slow = ["storage.store=throttle+posix", "storage.throttle.bandwidth=30e6", "storage.throttle.write=true"]
    for access in ("framework", "native"):
        with subprocess.Popen([TOOL, "write", "default", "2", "1", "2", *SMALL, *keys, *slow, "checkpoint.block_bytes=65536",
                               f"checkpoint.access={access}", f"checkpoint.checkpoint_folder={folder}"]) as p:
            deadline = time.monotonic() + 60
            while not any(os.path.getsize(f) > 0 for f in glob.glob(f"{folder}/*step2/*.tmp")):
                assert time.monotonic() < deadline and p.poll() is None
                time.sleep(0.01)
            p.send_signal(signal.SIGKILL)
        left = glob.glob(f"{folder}/global_epoch1_step2/*")
        assert any(f.endswith(".tmp") for f in left), left
        for f in left:
            try:
                torch.load(f)
                assert not f.endswith(".tmp"), f"{f} loads, though it was cut short"
            except (RuntimeError, EOFError, OSError, ValueError, KeyError):
                assert f.endswith(".tmp"), f"{f} has its name, though it was cut short"
        assert "cannot open" in tool("read", folder, 2, *keys, status=1)
        tool("read", folder, 2, *keys, "checkpoint.verify=true", step=1)
        tool("remove", folder, 2, *keys)
        assert os.listdir(folder) == ["global_epoch1_step1"]


def test_full_disk(tmp):
    mount = tmp / "small"
    mount.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", mount],
                                           capture_output=True).returncode:
        left_out("a full disk: no tmpfs can be mounted")
        return
    try:
        keys = ["model.parallelism.zero_stage=1"]
        written = tool("write", mount, 1, *keys, step=1)["payload_bytes"]
        assert 4 << 20 < written < 7 << 20
        for access in ("framework", "native"):
            error = tool("write", mount, 1, *keys, f"checkpoint.access={access}", status=1)
            assert "No space left" in error and "_states.pt" in error and "partial file was removed" in error, error
            assert len(names(mount)) < 2 and not glob.glob(f"{mount}/*/*.tmp"), "what did not fit was left"
            for name in names(mount):
                torch.load(f"{mount}/global_epoch1_step2/{name}")
            tool("remove", mount, 1, *keys)
            tool("read", mount, 1, *keys, "checkpoint.verify=true", step=1)
        # over itself: the old one stays until the new one is whole
        assert "No space left" in tool("write", mount, 1, *keys, status=1, step=1)
        tool("read", mount, 1, *keys, "checkpoint.verify=true", step=1)
    finally:
        subprocess.run(["umount", mount], check=True)


def test_show(tmp):
    shown = stoker("show", "checkpoint", "llama3_405b", "-n", 512).stdout
    assert "5292.248718 GiB in 1544 files of 512 ranks" in shown and "232" in shown and "8-239" in shown, shown
    assert "partial: the first 100 of the 256 ranks" in stoker("show", "checkpoint", "llama3_405b", "-n", 100).stdout


def main():
    wanted = sys.argv[1:]
    tests = [f for name, f in globals().items() if name.startswith("test_") and (not wanted or name in wanted)]
    for test in tests:
        if SANITIZED and test in (test_requests,):
            continue
        with tempfile.TemporaryDirectory() as tmp:
            start = time.monotonic()
            test(pathlib.Path(tmp))
            print(f"{test.__name__}: {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    main()

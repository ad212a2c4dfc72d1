"""Every place where a command allocates fails once: the command ends in a sentence and a nonzero status, or does without
and its results are right; it never crashes, hangs, leaks, or leaves something half written under its final name.

A place is a chain of callers within the program, libraries' allocations on its behalf included (see
tests/preload/fail_alloc.c). Each place fails at its first allocation, and at its last where it makes several; of those
that end the process at once in base/alloc.c (xmalloc and its kin) one in 8. Of a run every twelfth place is taken; of one
with checkpoints and of a study every fourth, of repeated runs every eighth, but none that a command before had; --stride 1
takes all.

    test_allocations.py [COMMAND...] [--stride N] [--ending N] [--place HASH:N]
"""
# takes 150 s
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, STOKER, skip, stoker, tiny  # noqa: E402

LIBRARY = pathlib.Path(os.environ.get("STOKER_TOOLS", "build/tests"), "libfail_alloc.so").absolute()
HANGS = 60
SLICES = 2  # processes beside each other, of a command whose allocations are refused in copies
SLICE_S = 300
ENDING = 8  # of the places whose allocation ends the process in base/alloc.c, one in so many
# facts of the machine, which figures a cause has, and what follows from a simulation: left out of a result when they cannot be had
OPTIONAL = r"(\.#)?\.(dataset\.content|what_if|fleet|limit\.(facts|cause_percent|remedy|remedy_facts|effects)|verdicts\[\]\.facts|measured\.facts|memory_copy|host_cpuinfo|host_meminfo|environment\.(cpuinfo|meminfo)|system|series\.accelerator_use|" \
    r".*\.memory_pressure|.*\.process_io)($|[.[])"
# callers of which a run has results to write, and those that it has what it needs to write them
LIMITED = 12  # of places, one in so many is where memory ends
AT_THE_END = r" (finish_run|write_results|sinks_write|judge_result|metrics_compute|render_\w+) "
REPEATED = 16  # one in so many failed commands is made again, which must complete what was begun


class Wrong(Exception):
    pass


def need(condition, why):
    if not condition:
        raise Wrong(why)


def contents(folder):
    folder = pathlib.Path(folder)
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def keys(value, path=""):
    """Paths of all keys of a document; elements of a list, and keys that are numbers, are one."""
    if isinstance(value, dict):
        for k, v in value.items():
            name = f"{path}.{'#' if re.fullmatch(r'[-+0-9.e]+', k) else k}"
            yield name
            yield from keys(v, name)
    elif isinstance(value, list):
        for v in value:
            yield from keys(v, path + "[]")


def parsed(path):
    try:
        return json.loads(pathlib.Path(path).read_text())
    except ValueError as e:
        raise Wrong(f"{path.name} is not JSON: {e}") from e


class Command:
    """A command line in a folder of its own; what whole results are comes from runs without a failure."""
    name = ""
    result = None  # what there is whatever is refused once results are due
    again = ()  # more arguments of the repetition
    stride = 1  # only every so many of its places, where they are many
    adds = False  # only its places that no command before it had

    def prepare(self, shared):
        """What the command needs; made once, read by all."""

    def argv(self, shared, folder):
        raise NotImplementedError

    def results(self, folder):
        """What the command leaves, in a form that is the same each time: {name: comparable}."""
        raise NotImplementedError

    def learn(self, folders):
        seen = [self.results(f) for f in folders]
        self.whole = {k: v for k, v in seen[0].items() if all(s.get(k) == v for s in seen)}

    def succeeded(self, folder):
        got = self.results(folder)
        for k, v in self.whole.items():
            need(k in got, f"{k} is missing")
            if isinstance(v, frozenset):
                need(v <= got[k], f"{k} lacks {sorted(v - got[k])[:5]}")
            else:
                need(got[k] == v, f"{k} is not as it is without a failure")

    def failed(self, folder):
        """After a failure nothing that has its final name may be half written."""
        for k, v in self.results(folder).items():
            need(k not in self.whole or v == self.whole[k], f"{k} is not whole")


class Generate(Command):
    name = "generate"

    def argv(self, shared, folder):
        return ["generate", *tiny(folder / "data", None, files=3)]

    def results(self, folder):
        return {k: v for k, v in contents(folder / "data").items() if "manifest" not in k and "stoker" not in k}

    def failed(self, folder):
        got = self.results(folder)
        for k, v in got.items():
            if not k.endswith(".tmp") and "/." not in k:
                need(v == self.whole.get(k), f"{k} is not whole under its final name")


class Run(Command):
    name = "run"
    result = "out/result.json"
    stride = 12

    def prepare(self, shared):
        self.data = shared / f"{self.name}-data"
        stoker("generate", *tiny(self.data, None))

    def argv(self, shared, folder):
        return ["run", *tiny(self.data, folder / "out", workflow__generate_data="false")]

    def results(self, folder):
        out = {}
        for p in sorted((folder / "out").rglob("*")):
            if p.suffix == ".json":
                out[p.name] = frozenset(k for k in keys(parsed(p)) if not re.match(OPTIONAL, k))
            elif p.is_file() and p.suffix not in (".log", ".lock"):
                out[str(p.relative_to(folder))] = p.stat().st_size > 0
        result = folder / "out/result.json"
        if result.exists():
            out["status"] = parsed(result).get("status")
        return out

    def learn(self, folders):
        seen = [self.results(f) for f in folders]
        self.whole = {k: frozenset.intersection(*[s[k] for s in seen]) if isinstance(v, frozenset) else v
                      for k, v in seen[0].items() if all(k in s for s in seen)}

    def failed(self, folder):
        """Which files there are depends on when it failed, and so does what is in a result that says that the run
        failed; all are documents."""
        got = self.results(folder)
        for k, v in got.items():
            if not isinstance(v, frozenset):
                need(k == "status" or v == self.whole.get(k), f"{k} is not whole")
            elif got.get("status") == "complete":
                need(self.whole[k] <= v, f"{k} lacks {sorted(self.whole[k] - v)[:5]}")


class Checkpoint(Run):
    name = "checkpoint"
    stride, adds = 4, True

    def argv(self, shared, folder):
        return super().argv(shared, folder) + [
            "workflow.checkpoint=true", "checkpoint.steps_between_checkpoints=2", "model.model_size_bytes=65536",
            f"checkpoint.checkpoint_folder={folder}/saved"]

    def results(self, folder):
        out = super().results(folder)
        for p in sorted((folder / "saved").rglob("*")):
            if p.is_file():
                out["saved/" + str(p.relative_to(folder / "saved"))] = p.stat().st_size
        return out


class Copied(Command):
    """A command of one thread: every allocation is refused, each in a copy of the process (`every` of fail_alloc.c), or
    with `places_only` the first, middle and last of each place that no command before it had, and the last of those that
    it has more often. Answers are compared there, byte for byte."""
    places_only = False
    arguments = ()
    tells = ()  # functions that are refused an amount which the answer names
    telling = "status 0, and another answer"
    varies = ""  # the words that begin lines that differ each time

    def argv(self, shared, folder):
        return self.arguments


class Report(Copied):
    name = "report"
    places_only = True
    tells = ("read_ranks",)  # sized by a file: the page is that of the other results, and the status is not 0
    telling = "report.html is not whole"

    def prepare(self, shared):
        self.out = [shared / f"report-{i}" for i in range(2)]
        for i, out in enumerate(self.out):
            if not out.exists():
                stoker("run", *tiny(shared / "report-data", out, reader__read_threads=i + 1, train__epochs=2))

    def argv(self, shared, folder):
        return ["report", self.out[0], "-o", "out/report.html", "--csv", "out/runs.csv"]


class ReportMany(Report):
    """What more than one result adds."""
    name = "report of two"

    def argv(self, shared, folder):
        return ["report", *self.out, "-o", "out/report.html", "--csv", "out/runs.csv"]


class Audit(Report):
    """It judges a result again: some 10^5 allocations."""
    name = "audit"

    def argv(self, shared, folder):
        return ["audit", "--quick", self.out[0]]


class AuditMany(Report):
    name = "audit of two"

    def argv(self, shared, folder):
        return ["audit", "--quick", "--json", *self.out]


class Compare(Report):
    name = "compare"

    def argv(self, shared, folder):
        return ["compare", *self.out]


class Show(Copied):
    def __init__(self, name, *arguments, places_only=False, varies=""):
        self.name, self.arguments, self.places_only, self.varies = name, arguments, places_only, varies


class Small(Copied):
    name = "small"
    places_only = True

    def argv(self, shared, folder):
        return ["run", "unet3d_h100", "--small", "--cfg", "job", f"dataset.data_folder={shared}/none"]


class Data(Copied):
    """What is made of a folder of files that no manifest describes."""
    name = "data"
    places_only = True

    def prepare(self, shared):
        self.data = shared / "data-data"
        stoker("generate", *tiny(self.data, None))
        for p in self.data.iterdir():
            if "stoker" in p.name or "manifest" in p.name:
                p.unlink()

    def argv(self, shared, folder):
        return ["run", "default", "--data", self.data, "--cfg", "job", "reader.batch_size=2"]


class Plan(Copied):
    name = "plan"
    places_only = True
    options = ()
    varies = "memory: disk:"  # what is free
    tells = ("draw_dims", "content_pool_init")  # sized by the workload: the row says why not, and the others are planned

    def prepare(self, shared):
        self.design = shared / f"{self.name}.csv"
        # datasets far from what memory has room for: near it, what is said changes with what is free
        self.design.write_text("model,epochs,processes,overrides,run\nunet3d_h100,1,1,dataset.num_files_train=42,N\n"
                               "unet3d_h100,2,2,dataset.num_files_train=42 reader.batch_size=4 reader.read_threads=8,N\n")

    def argv(self, shared, folder):
        return ["study", "run", self.design, "--results", shared / "none", "--scratch", shared, "--dry-run", *self.options]


class SmallPlan(Plan):
    name = "small plan"
    options = ("--small",)


class Study(Command):
    """Its runs are programs of their own, where nothing fails."""
    name = "study"
    stride, adds = 4, True
    again = ("--retry",)
    design = "model,epochs,processes,overrides,run\nsmall,1,1,,N\nsmall,1,1,reader.batch_size=4,N\n"

    def prepare(self, shared):
        self.config = shared / "config"
        (self.config / "workload").mkdir(parents=True)
        (self.config / "workload/small.yaml").write_text(
            "model: {name: small}\nframework: pytorch\nworkflow: {generate_data: False, train: True}\n"
            "dataset: {data_folder: data/x, format: npz, num_files_train: 4, record_length_bytes: 4096}\n"
            "reader: {data_loader: pytorch, batch_size: 2, read_threads: 1}\n"
            "train: {epochs: 1, computation_time: 0.001}\n")

    def argv(self, shared, folder):
        if not (folder / "design.csv").exists():
            (folder / "design.csv").write_text(self.design)
        return ["study", "run", folder / "design.csv", "--config-dir", self.config, "--results", folder / "results",
                "--scratch", folder / "scratch"]

    def results(self, folder):
        out = {str(p.relative_to(folder)): parsed(p)["status"] for p in (folder / "results").rglob("result.json")
               if ".partial" not in str(p)}
        return {**out, "rows": [line.split(",")[-1] for line in (folder / "design.csv").read_text().splitlines()]}

    def failed(self, folder):
        """A row that is marked as done has its result; the design has all its rows."""
        got = self.results(folder)
        rows = got.pop("rows")
        need(len(rows) == 3 and rows[0] == "run", f"the design is {rows}")
        need(rows.count("Y") <= len(got) and all(v == "complete" for v in got.values()), f"{rows} with {got}")


class Repeat(Run):
    name = "repeat"
    result = "out/1/result.json"
    stride, adds = 8, True

    def argv(self, shared, folder):
        return [*super().argv(shared, folder), "--repeat", "2"]

    def results(self, folder):
        out = super().results(folder)
        out.pop("result.json", None)  # one of each run
        for p in sorted((folder / "out").rglob("result.json")):
            out[str(p.relative_to(folder))] = frozenset(k for k in keys(parsed(p)) if not re.match(OPTIONAL, k))
        return out


COMMANDS = {c.name: c for c in (
    Report(), Audit(), Show("show workloads", "show", "workloads", places_only=True),
    *(Show(f"show {topic}", "show", topic) for topic in ("formats", "stores", "loaders", "verdicts")),
    Show("show system", "show", "system", varies="data"),  # what is free there
    Show("show config", "show", "config", "unet3d_h100", "--set"), Show("show checkpoint", "show", "checkpoint", "llama3_8b"),
    ReportMany(), AuditMany(), Compare(), Small(), Data(), Plan(), SmallPlan(), Generate(), Run(), Checkpoint(), Repeat(),
    Study())}


def execute(command, shared, folder, fail, *more):
    """Runs the command with a failure; returns (status, stderr, lines that the library told)."""
    folder.mkdir(exist_ok=True)
    told = folder / "told"
    told.unlink(missing_ok=True)
    env = {**os.environ, "LD_PRELOAD": str(LIBRARY), "FAIL_ALLOC": fail, "FAIL_ALLOC_TOLD": str(told)}
    with open(folder / "stdout", "wb") as out:
        try:
            done = subprocess.run([STOKER, *map(str, command.argv(shared, folder)), *more], stdout=out, stderr=subprocess.PIPE,
                                  stdin=subprocess.DEVNULL, env=env, timeout=HANGS)
        except subprocess.TimeoutExpired as e:
            raise Wrong(f"it hangs: {e.stderr}") from e
    return done.returncode, done.stderr.decode(errors="replace"), \
        told.read_text().splitlines() if told.exists() else []


class Symbols:
    """Names of the program's addresses."""

    def __init__(self):
        self.names = {}

    def look_up(self, addresses):
        new = sorted(set(addresses) - set(self.names))
        if not new:
            return
        # the address is that of the next instruction
        text = subprocess.run(["addr2line", "-s", "-f", "-e", STOKER], text=True, capture_output=True, check=True,
                              input="".join(f"{int(a, 16) - 1:x}\n" for a in new)).stdout.splitlines()
        for a, function, where in zip(new, text[0::2], text[1::2]):
            self.names[a] = f"{function} {where.split(' ')[0]}"

    def chain(self, addresses):
        self.look_up(addresses)
        return " < ".join(self.names[a] for a in addresses)

    def functions(self, addresses):
        """The same without lines and what a compiler makes of a function, which vary with the build."""
        return " < ".join(re.sub(r"\..*", "", self.names[a].split(" ")[0]) for a in addresses)

    def commas(self, where):
        return self.chain(where.split(",")[1:])

    def owner(self, addresses):
        """The function that allocated: the first that is not one of base/alloc.c."""
        self.look_up(addresses)
        return next((self.names[a].split(" ")[0] for a in addresses if " alloc.c:" not in self.names[a]), "")

    def choose(self, places, share):
        """One in `share` of {place: addresses}: always the same, whatever else the program does and however it was built."""
        self.look_up(a for addresses in places.values() for a in addresses)
        return {place for place, addresses in places.items() if share_of(self.functions(addresses), share)}

    def ends(self, addresses):
        """Whether it is one of the functions that end the process when there is no memory."""
        self.look_up(addresses)
        return addresses and re.match(r"(x[a-z]+|must) alloc.c:", self.names[addresses[0]]) is not None


def share_of(key, share):
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % share == 0


def confirmed(command, shared, tmp, known, fail, number, symbols):
    """A finding that keys of a result are missing is made twice more, because a run measures, and which keys its runs without
    a failure have may be chance: it stays one unless both are right. All others are findings at once."""
    found = one(command, shared, tmp, known, fail, number, symbols)
    if found and " lacks [" in found and not any([one(command, shared, tmp, known, fail, number, symbols) for _ in range(2)]):
        print(f"attempts: {command.name} {fail}: right in 2 of 3: {found[-300:]}", flush=True)
        return None
    return found


def left(told, symbols):
    return {symbols.owner(line.split()[2:]) for line in told if line.startswith("left ")}


def one(command, shared, tmp, known, fail, number, symbols):
    """Makes one allocation fail; returns a sentence on what is wrong, or None."""
    folder = tmp / f"{command.name}-{number}"
    chain = ""
    try:
        status, err, told = execute(command, shared, folder, fail)
        failed = [line.split() for line in told if line.startswith("failed ")]
        if not failed:
            return None  # threads came in another order
        chain = f"{failed[0][1]} of {failed[0][2]} bytes: {symbols.chain(failed[0][3:])}"
        need(status >= 0, f"killed by signal {-status}: {err}")
        need(status in (0, 1), f"status {status}: {err}")
        if command.result and re.search(AT_THE_END, chain):
            need((folder / command.result).exists(), f"no {command.result}: status {status}: {err}")
        if status == 0:
            command.succeeded(folder)
        else:
            need(re.search(r"memory|allocate|cannot start thread", err), f"no sentence that names memory: '{err.strip()}'")
            command.failed(folder)
        if "end" in told:
            leaked = left(told, symbols) - known - {"thread_start"}  # released by a thread when it begins
            need(not leaked, f"status {status}, leaked: {', '.join(sorted(leaked))}; {err.strip()}")
        if status and number % REPEATED == 0:
            status, err, _ = execute(command, shared, folder, "none", *command.again)
            need(status == 0, f"made again without a failure: status {status}: {err}")
            command.succeeded(folder)
        return None
    except Wrong as e:
        return f"{command.name} {fail}, {chain}\n      {e}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def once(command, folder, shared, which):
    """A command of one thread in its own folder; returns the lines that fail_alloc.c told."""
    (folder / "out").mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "LD_PRELOAD": str(LIBRARY), "FAIL_ALLOC": which, "FAIL_ALLOC_TOLD": str(folder / "told"),
           "FAIL_ALLOC_WHOLE": str(folder / "whole"), "FAIL_ALLOC_FOLDER": str(folder), "FAIL_ALLOC_CLOCK": "1",
           **({"FAIL_ALLOC_VARIES": command.varies} if command.varies else {})}
    with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
        status = subprocess.run([STOKER, *map(str, command.argv(shared, folder))], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                                stdout=out, stderr=err, timeout=SLICE_S).returncode
    assert status == 0, f"{command.name} {which}: status {status}: {(folder / 'stderr').read_text()}"
    return (folder / "told").read_text().splitlines()


def copies(command, folder, shared, which, seen):
    """What an untouched run leaves in the same folder is what copies are compared with. Returns the places, and what the
    library told of those that are not `seen`."""
    lines = once(command, folder, shared, "none")
    (folder / "whole").mkdir()
    for name in ("stdout", "told", "out"):
        (folder / name).rename(folder / "whole" / name)
    assert any((folder / "whole/out").iterdir()) or (folder / "whole/stdout").stat().st_size, f"{command.name}: nothing to compare"
    with open(folder / "whole/told", "a") as f:
        f.writelines(f"seen {place} {count}\n" for place, count in sorted(seen.items()))
    return {line.split()[1]: int(line.split()[2]) for line in lines if line.startswith("place ")}, once(command, folder, shared, which)


def sweep_copies(command, shared, tmp, args, symbols, pool):
    began = time.monotonic()
    command.prepare(shared)
    mode = "places" if command.places_only and not args.every else "every"
    seen = dict(args.seen) if mode == "places" else {}
    slices = list(pool.map(lambda i: copies(command, tmp / f"{command.name}-{i}", shared, f"{mode}:{SLICES}:{i}", seen),
                           range(1, SLICES + 1)))
    for place in set.intersection(*(set(s[0]) for s in slices)):
        args.seen[place] = max(args.seen.get(place, 0), min(s[0][place] for s in slices))
    places, told = len(slices[0][0]), [line for _, lines in slices for line in lines]
    new = sum(count > seen.get(place, 0) for place, count in slices[0][0].items())
    tried, same, ended, strays = (sum(int(line.split()[k]) for line in told if line.startswith("tried ")) for k in range(1, 5))
    said = {line.split(" ", 2)[2] for line in told if line.startswith("said ")}
    assert tried == same + ended + sum("killed" in line or "hangs" in line for line in told if line.startswith("finding "))
    assert tried >= new / 2, f"{tried} allocations refused, {new} new places: has the command a thread by then?"
    assert sum(line == "end" for line in told) == SLICES, "a slice did not end"
    wrong = collections.Counter()
    for line in told:
        word, *rest = line.split(" ", 4)
        if word == "finding" and any(f" < {name} " in symbols.commas(rest[0]) for name in command.tells):
            need(rest[3] == command.telling, rest[3])
        elif word == "finding":
            wrong[f"{rest[3]}\n      {rest[1]} of {symbols.commas(rest[0])}"] += 1
        elif word == "leak" and not re.match(r"unix_time |try_\w+ \S+ < thread_start ", symbols.commas(rest[1])):
            # the C library's time zone; what the thread of signals releases when it begins
            wrong[f"leak when refused: {symbols.commas(rest[0])}\n      left: {symbols.commas(rest[1])}"] += 1
    print(f"{command.name}: {mode} of {tried} allocations ({places} places, {new} new) refused: {ended} ended with one of {len(said)} sentences, "
          f"{same} with the whole answer; {strays} temporary files left; {len(wrong)} findings; {time.monotonic() - began:.0f} s",
          flush=True)
    if args.said:
        print(*(f"   said: {x}" for x in sorted(said)), sep="\n")
    for what, n in wrong.most_common(args.findings):
        print(f"   {n} x {what}", flush=True)
    return len(wrong)


def sweep(command, shared, tmp, args, symbols, pool):
    if isinstance(command, Copied):
        return sweep_copies(command, shared, tmp, args, symbols, pool)
    began = time.monotonic()
    command.prepare(shared)
    base = [tmp / f"{command.name}-base{i}" for i in range(3)]
    known, places, ending, chains = set(), {}, set(), {}
    for folder in base:
        status, err, told = execute(command, shared, folder, "none")
        assert status == 0, f"{command.name} fails without a failure: {err}"
        for line in told:
            if line.startswith("place "):
                _, place, count, _, *callers = line.split()
                places[place] = min(int(count), places.get(place, 1 << 30))
                chains[place] = callers
                if symbols.ends(callers):
                    ending.add(place)
        known |= left(told, symbols)
    command.learn(base)
    assert len(places) > 20 and command.whole, f"{command.name}: nothing to fail, or nothing to compare"
    stride = args.stride or command.stride
    symbols.look_up(a for callers in chains.values() for a in callers)
    functions = {p: symbols.functions(callers) for p, callers in chains.items()}
    if command.adds and not args.stride:
        chains = {p: callers for p, callers in chains.items() if functions[p] not in args.had}
    args.had.update(functions.values())
    taken = symbols.choose(chains, stride)
    # of a run also: no more memory than there was
    extra = {f"{p}:1:limit" for p in symbols.choose(chains, stride * LIMITED)} if command.result else set()
    fails = sorted({f"{p}:{n}" for p in taken - ending for n in (1, places[p])} | extra)
    fails += [f"{p}:1" for p in sorted(taken & ending & symbols.choose(chains, stride * args.ending))]
    wrong = pool.map(lambda x: confirmed(command, shared, tmp, known, x[1], x[0], symbols),
                     enumerate([args.place] if args.place else fails))
    wrong = [w for w in wrong if w]
    print(f"{command.name}: {len(places)} places, {len(chains)} looked at, {sum(places.values())} allocations, {len(ending)} places end the process; "
          f"{len(fails)} made to fail (every {stride}.), "
          f"{len(wrong)} findings; {time.monotonic() - began:.0f} s", flush=True)
    for w in wrong:
        print(f"   {w}", flush=True)
    return len(wrong)


def main():
    if SANITIZED:
        skip("a sanitizer has an allocator of its own")
    if not LIBRARY.exists():
        skip(f"{LIBRARY} was not built")
    if not shutil.which("addr2line"):
        skip("addr2line is not installed")
    parser = argparse.ArgumentParser()
    parser.add_argument("command", nargs="*")
    parser.add_argument("--stride", type=int, help="only every N-th place (default: 12 of a run, 4 of checkpoints and a study, 8 of repeated runs, else 1)")
    parser.add_argument("--ending", type=int, default=ENDING, help="only every N-th place where xmalloc ends the process")
    parser.add_argument("--place")
    parser.add_argument("--findings", type=int, default=30, help="how many are printed of a command")
    parser.add_argument("--every", action="store_true", help="every allocation of all commands of one thread")
    parser.add_argument("--said", action="store_true", help="print the sentences of commands that ended")
    args = parser.parse_args()
    args.had = set()  # chains of functions of the commands before that are not made in copies
    args.seen = {}  # places refused in a command before, and how many allocations each had
    symbols = Symbols()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as tmp, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        tmp = pathlib.Path(tmp)
        shared = tmp / "shared"
        shared.mkdir()
        wrong = sum(sweep(COMMANDS[name], shared, tmp, args, symbols, pool) for name in args.command or COMMANDS)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""A run without costs foretells AU with those of PyTorch's and DLIO's own code, which a second run with compat.dlio, which
spends them, must have, by both definitions of AU; AU with PyTorch's code alone; and says nothing where they matter
little, and of loaders that have no profile."""
import os
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from told import told  # noqa: E402
from util import SANITIZED, attempts, left_out, load, skip, stoker, tiny  # noqa: E402

GROUP = "The framework's own code"
NEAR = 3  # points
DISTURBED = 2  # percent of the time without a processor: such a run need not foretell anything, and is not compared
TRIES = 3  # of an attempt that was disturbed
MIB = 1 << 20
BASE = dict(framework="pytorch", reader__data_loader="pytorch", storage__store="throttle+memory",
            dataset__record_length_bytes=MIB)
SMALL = dict(BASE, dataset__record_length_bytes=4096)

# situation, files, seconds of a step, keys, whether something is said
CASES = [
    ("1 worker of 140 MB/s, steps of 10 ms", 80, 0.01, dict(BASE, storage__throttle__bandwidth=140e6), True),
    ("4 steps an epoch, 4 workers to start", 8, 0.05, dict(BASE, reader__read_threads=4, reader__persistent_workers="false",
                                                          train__epochs=2), True),
    ("steps of 0.5 s, 1 worker", 12, 0.5, SMALL, False),
    ("a try-out of 4 steps of 1 ms", 8, 0.001, SMALL, True),
    ("indices of 1 ms that workers read first", 96, 0.02, dict(SMALL, fmt="indexed_binary", storage__throttle__open_latency=0.001),
     True),
    ("1000 files, whose index DLIO writes for each sample", 1000, 0.005, SMALL, True),
    ("tf.data", 40, 0.01, dict(SMALL, framework="tensorflow", reader__data_loader="tensorflow"), False),
]


def run(case, out, *more):
    _, files, compute, keys, _ = case
    keys = dict(dict(reader__prefetch_size=2 * keys.get("reader__read_threads", 1), train__computation_time=compute), **keys)
    fmt = keys.pop("fmt", "npz")
    done = stoker("run", *[a for a in tiny("/costs", out, fmt, files, **keys) if a != "-q"], *more)
    return load(out), done.stdout


def taken(result):
    """Percent of the time in which others, other programs or other threads of the run, had the processors."""
    return result["training"]["decomposition"]["mean_over_ranks_percent"].get("no_processor", 0)


def aus(result):
    """Whole-run AU, and without the time in which a thread had no processor: where more workers than processors spend
    costs, that is part of what is foretold."""
    whole = result["training"]["whole_run_au_percent"]
    return whole, whole / (1 - taken(result) / 100)


def check(case, out):
    """(whether it was right, what was said); None: it could not be compared."""
    result, text = run(case, out)
    whole = result["training"]["whole_run_au_percent"]
    costs = result.get("what_if", {}).get("framework_costs")
    if not case[-1]:
        return costs is None and "  framework  " not in text, f"AU {whole:.1f} %; {costs['text'] if costs else 'nothing is said'}."
    if not costs and taken(result) > DISTURBED:
        return None, f"nothing is said: it had no processor for {taken(result):.1f} % of the time"
    said = f"  framework       {costs['text']}" if costs else ""
    if not costs or costs["spent"] or " ".join(said.split()) not in " ".join(text.split()):
        return False, f"AU {whole:.1f} %; {costs}; {text}"
    both = run(case, out + "-dlio", "compat.dlio=true")[0]
    real, most_real = aus(both)
    dlio = statistics.mean(e["au_percent"] for e in both["training"]["epochs"])
    most = min(100, dlio / (1 - taken(both) / 100))  # the first step, which this leaves out, has its part of what was taken
    loop, most_loop = aus(run(case, out + "-loop", "framework.costs=torch-1.13")[0])
    width = (costs["high_percent"] - costs["low_percent"]) / 2
    near = max(NEAR, width)
    right = (real - near <= costs["whole_au_percent"] <= most_real + near and dlio - near <= costs["dlio_au_percent"] <= most + near
             and loop - near <= costs["loop_au_percent"] <= most_loop + near)
    return right, (f"AU {whole:.1f} %; {costs['text']}. Runs with them: {real:.1f} % ({most_real:.1f} with processors), {dlio:.1f} % by "
                   f"DLIO's definition, with those of torch 1.13 alone {loop:.1f} %.")


def judge(case, tmp, first=None):
    """(whether it is right, what was said); None: there were too few attempts that could be compared. An attempt that
    was disturbed is made again, and is neither right nor wrong."""
    results = []

    def once(n):
        for again in range(TRIES):
            right, said = check(case, os.path.join(tmp, f"{CASES.index(case)}-{n}-{again}"))
            if right is not None:
                break
        results.append((right, said))
        return right is True, said

    right, said = attempts(case[0], once, first)
    outcomes = [r for r, _ in results]
    if right or None not in outcomes or outcomes.count(False) > 1:
        return right, said
    if False not in outcomes and True in outcomes:
        return results[outcomes.index(True)]
    return results[outcomes.index(None)]  # one that is wrong may be chance


def main():
    if SANITIZED:
        skip("times under a sanitizer are not those of the program")
    wrong = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp, ThreadPoolExecutor(2) as pool:
        quiet = [c for c in CASES if not c[-1]]  # they compute little: beside each other
        first = dict(zip([c[0] for c in quiet],
                         pool.map(lambda c: check(c, os.path.join(tmp, str(CASES.index(c)))), quiet)))
        for case in CASES:
            right, said = judge(case, tmp, first.get(case[0]))
            if right is None:
                left_out(f"{case[0]}: {said}")
                continue
            told(GROUP, case[0], said)
            print(f"{'ok' if right else 'WRONG'}: {case[0]}: {said}", flush=True)
            wrong += [] if right else [case[0]]
    assert not wrong, wrong


if __name__ == "__main__":
    main()

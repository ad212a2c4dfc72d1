"""The headline is never kinder than the verdicts: runs in which computation limits, and whose first line must say what
was measured. "The storage keeps up" may only be said of storage that was measured, for long enough, as a whole."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.dirname(__file__), os.path.join(os.path.dirname(__file__), "..")]
import result_facts  # noqa: E402
from told import told  # noqa: E402
from util import SANITIZED, STOKER, attempts, load, skip, tiny  # noqa: E402

FILES, EACH = 160, 65536
KEYS = dict(fmt="npy", files=FILES, dataset__record_length_bytes=EACH, train__computation_time=0.012,
            workflow__generate_data="false", reader__access="native")
KIND = {"limit.compute"}  # says that the storage keeps up


def run(data, out, **more):
    done = subprocess.run([STOKER, "run", *[str(a) for a in tiny(data, out, **dict(KEYS, **more)) if a != "-q"]],
                          capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    lines = (done.stderr + done.stdout).splitlines()
    assert len(lines) <= 14 and all(len(line) <= 100 for line in lines), done.stderr + done.stdout
    return load(out), done.stdout


def is_honest(text, m):
    """The first lines say what was measured, and a target that was met was not met by the storage."""
    lines = text.splitlines()
    said = [line.split("measured", 1)[1].strip() for line in lines[:5] if re.match(r"  (WARN |FAIL |\?    )?measured ", line)]
    if m["storage"] == "emulated":
        return not said and "from the emulated store" in lines[2]
    if m["storage"] == "yes":
        return not said and (not m["taken"] or bool(re.search(r"^  (FAIL|WARN) ", text, re.M)))
    kind = re.search(r"target [\d.]+ %: met \(", text)
    return len(said) == 1 and m["text"].startswith(said[0].split(" (")[0]) and not kind


def read_share(data, share):
    """Evicts the files and reads a share of them into the page cache."""
    paths = sorted(p for p in pathlib.Path(data).rglob("*.npy"))
    os.sync()
    for i, path in enumerate(paths):
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        if i < share * len(paths):
            while os.read(fd, 1 << 20):
                pass
        os.close(fd)


# (situation, folder, share cached before, measured.storage, what is taken, kind words allowed, keys)
CASES = (
    ("all files in the page cache", "disk", 1, "no", {"storage"}, False, {}),
    ("30 % of the files in the page cache", "disk", 0.3, "part", {"part"}, False, {}),
    ("files on tmpfs", "shm", 0, "no", {"storage"}, False, {}),
    ("4 steps, 8 batches read ahead, each request slowed by 100 ms", "disk", 0, "yes", {"lasting"}, False,
     dict(train__total_training_steps=4, storage__page_cache="cold", reader__read_threads=4, reader__prefetch_size=8,
          storage__store="throttle+posix", storage__throttle__latency=0.1)),
    ("a store in memory", "none", 0, "emulated", set(), False,
     dict(storage__store="memory", workflow__generate_data="true")),
    ("evicted before the epoch", "disk", 1, "yes", set(), True, dict(storage__page_cache="cold")),
)


def main():
    if SANITIZED:
        skip("times under a sanitizer are not those of the program")
    wrong = []
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as disk, tempfile.TemporaryDirectory(dir="/dev/shm") as shm:
        where = {"disk": f"{disk}/data", "shm": f"{shm}/data", "none": "/headline"}
        for folder in (where["disk"], where["shm"]):
            subprocess.run([STOKER, "generate", *map(str, tiny(folder, None, **dict(KEYS, workflow__generate_data="true")))],
                           check=True, capture_output=True)
        for i, (situation, at, cached, storage, taken, kind, keys) in enumerate(CASES):
            def once(n):
                if at != "none":
                    read_share(where[at], cached)
                result, text = run(where[at], f"{disk}/out-{i}-{n}", **keys)
                m, limit = result["measured"], result["limit"]["text"]
                right = m["storage"] == storage and taken <= set(m["taken"]) and (kind or not KIND & result_facts.reasons(result["limit"]["facts"])) and \
                    is_honest(text, m)
                return right, (m, limit)

            right, (m, limit) = attempts(situation, once)
            told("Headline", situation, f"Measured: {m['text']} {limit}")
            print(f"{'' if right else 'WRONG '}{situation}: {m} {limit}", flush=True)
            wrong += [] if right else [situation]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

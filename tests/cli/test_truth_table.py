"""stoker run --truth-table: four rows over a sample of the files, and the reason for each row that cannot be had."""
# tier: long
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "truth"))
from reclaimed import Watch  # noqa: E402
from sums_file import audited, edited_anywhere, row_removed, runs_gone  # noqa: E402
from told import told  # noqa: E402
from util import STOKER, attempts, left_out, load, stoker, tiny, wait_for  # noqa: E402

SIZE = 360000
KEYS = dict(files=40, fmt="npy", dataset__record_length_bytes=SIZE, reader__batch_size=1, train__computation_time=0.002)


def table(data, out, *more, status=0, **keys):
    done = stoker("run", "--truth-table", *tiny(data, out, **{**KEYS, **keys}), *more, status=status)
    path = pathlib.Path(out, "truth_table.json")
    rows = {r["row"]: r for r in json.loads(path.read_text())["rows"]} if path.exists() else {}
    assert not rows or list(rows) == ["cold", "warm", "O_DIRECT", "memory"], rows
    return rows, done


def why(rows, row, words, situation):
    r = rows[row]
    assert not r["measured"] and all(w in r["why"] for w in words), r
    told("truth table", situation, f"{row}: {r['why']}")


def near(value, expected):
    return abs(value - expected) <= 0.02 * expected + 65536


def of_storage(tmp, attempt):
    """One table over the disk of this machine: (whether each row's bytes are those of its name, the rows, the text)."""
    out = tmp / f"out{attempt}"
    with Watch(tmp / "data", lambda: (out / "warm-up").exists() or (out / "warm.partial").exists()) as watch:
        rows, done = table(tmp / "data", out, train__epochs=5)
    if rows["cold"].get("fetched_bytes", 0) < 0.5 * 40 * SIZE:
        return True, (rows, done)
    # all of a small dataset; what was generated for it is gone
    assert not (tmp / "data").exists()
    right, whole = True, 40 * SIZE
    for row, cached in (("cold", 0), ("warm", 100), ("O_DIRECT", 0)):
        r = rows[row]
        if row == "O_DIRECT" and not r["measured"]:
            continue
        assert r["measured"] and not r["note"] and near(r["returned_bytes"], whole), r
        # what the kernel took back before it was read, as some virtual machines do with idle pages, is fetched again
        lost = watch.taken_then if row == "warm" else 0
        fetched = whole * (100 - cached) / 100
        good = -5 - 100 * lost / whole <= r["page_cache_percent"] - cached <= 5 and \
            near(r["fetched_bytes"], min(max(r["fetched_bytes"], fetched), fetched + lost))
        if lost or not good:
            print(f"{row}: {lost} bytes taken back: {r}", flush=True)
        right = right and good
    return right, (rows, done)


def disk(tmp):
    """The disk of this machine: what the cache did is in the bytes. The kernel may take pages back within a row, too."""
    right, (rows, done) = attempts("the disk of this machine", lambda n: of_storage(tmp, n))
    assert right, rows
    if rows["cold"].get("fetched_bytes", 0) < 0.5 * 40 * SIZE:
        left_out(f"cold against warm: the temporary folder is in memory, or its bytes are not counted ({rows['cold']})")
        return
    for row in ("cold", "warm", "O_DIRECT"):
        r = rows[row]
        if not r["measured"]:
            left_out(f"O_DIRECT: {r['why']}")
            continue
        told("truth table", f"14.4 MB on the disk of this machine, row {row}",
             f"{r['fetched_bytes'] / 1e6:.1f} MB fetched, {r['page_cache_percent']:.0f} % from the page cache")
    m = rows["memory"]
    assert m["measured"] and "fetched_bytes" not in m and near(m["returned_bytes"], 40 * SIZE), m
    out = max(tmp.glob("out*"))
    for row, r in rows.items():
        if r["measured"]:
            of = load(out / r["folder"])
            assert of["training"]["epochs_done"] == 1 and of["training"]["whole_run_au_percent"] == r["whole_au_percent"]
            assert of["limit"]["cause"] == r["cause"] and r["cause"] in done.stdout
    assert "page cache" in done.stdout and "* " in done.stdout, done.stdout


def sample(tmp):
    """Of a dataset that is there, the first files, which stay; the workload's own evaluation and checkpoints are off."""
    data = tmp / "many"
    stoker("run", *tiny(data, tmp / "gen", workflow__train="false", **{**KEYS, "files": 300, "dataset__record_length_bytes": 4096}))
    rows, done = table(data, tmp / "sample", "-n", "2", files=300, dataset__record_length_bytes=4096,
                       workflow__generate_data="false", workflow__checkpoint="true", model__model_size_bytes=4096)
    assert "80 of 300 training files" in done.stdout and "40 steps" in done.stdout, done.stdout
    assert rows["warm"]["measured"] and load(tmp / "sample" / "warm")["accelerators"] == 2
    assert len(list(data.rglob("img_*"))) == 300
    # an evicting and an uncached workload are undone in the rows that need the cache
    for keys in (dict(storage__page_cache="drop_behind"), dict(reader__odirect="true")):
        rows, _ = table(data, tmp / f"undone{len(keys)}", files=300, dataset__record_length_bytes=4096,
                        workflow__generate_data="false", **keys)
        assert rows["warm"]["measured"] and rows["memory"]["measured"], (keys, rows)
        assert load(tmp / f"undone{len(keys)}" / "warm")["configuration"]["storage.store"]["value"] == "posix"


def absent(tmp):
    rows, _ = table("/data", tmp / "in-memory", storage__store="memory")
    why(rows, "cold", ["keeps no files"], "storage.store=memory")
    why(rows, "warm", ["keeps no files"], "storage.store=memory")
    assert rows["memory"]["measured"]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as shm:
        rows, _ = table(f"{shm}/data", tmp / "shm")
        why(rows, "cold", ["tmpfs", "no storage below"], "a dataset on tmpfs")
        why(rows, "O_DIRECT", ["tmpfs", "no storage below"], "a dataset on tmpfs")
        assert rows["warm"]["measured"] and rows["memory"]["measured"]
        assert os.listdir(shm) == []
    rows, _ = table(tmp / "maps", tmp / "mapped", fmt="mmap_indexed_binary")
    why(rows, "O_DIRECT", ["mapped files"], "mmap_indexed_binary, whose framework maps its files")
    why(rows, "memory", ["mapped"], "mmap_indexed_binary, whose framework maps its files")
    rows, done = table(tmp / "nothing", tmp / "none", status=1, workflow__generate_data="false")
    why(rows, "cold", ["not enough training files"], "no dataset")
    assert rows["cold"]["failed"] and "'cold' of the truth table failed" in done.stderr
    # one file cannot be read: the rows over the disk fail, and the status says so
    stoker("run", *tiny(tmp / "broken", tmp / "gen2", workflow__train="false", **KEYS))
    victim = sorted((tmp / "broken").rglob("img_*"))[7]
    victim.write_bytes(victim.read_bytes()[:100])
    rows, done = table(tmp / "broken", tmp / "damaged", status=1, workflow__generate_data="false")
    why(rows, "warm", [victim.name], "a file of the sample cut to 100 bytes")
    assert rows["memory"]["measured"]


def believed(tmp):
    """An audit finds nothing wrong with a table that nobody touched, and believes it as far as its runs give it."""
    out = tmp / "believed"
    # files for evaluations, which a table does not make, are not among its bytes
    rows, _ = table(tmp / "b", out, dataset__num_files_eval=5)
    found = json.loads(stoker("audit", "--quick", "--json", out, status=0).stdout)["results"]
    assert len(found) == sum(r["measured"] for r in rows.values()), found
    wrong = [f for r in found for f in r["findings"] if f["check"] in ("complete", "digest", "figures", "identity", "verdict")]
    assert not wrong, wrong
    path = out / "truth_table.json"
    assert not audited(path)[0], audited(path)
    # why a row is missing is known by the digest alone
    edited_anywhere(path, {"files_of_workload", "why", "failed"}, every=3)
    runs_gone(path, "warm")
    row_removed(path, "rows")
    # no run of a table is in a numbered folder: one that is there is another command's
    shutil.copytree(out / "memory", out / "2")
    other = out / "2/result.json"
    other.write_text(other.read_text().replace(load(out / "2")["run_id"], "another"))
    assert not audited(path)[0], audited(path)


def command(tmp):
    _, done = table(tmp / "c", tmp / "check", "--check", status=3, train__computation_time=0.0001, reader__read_threads=0,
                    metric__au=0.9999)
    assert "AU from the storage" in done.stderr, done.stderr
    e = stoker("run", "--truth-table", "nosuchworkload", status=2).stderr
    assert "nosuchworkload" in e, e
    process = subprocess.Popen([STOKER, "run", "--truth-table", *map(str, tiny(tmp / "i", tmp / "int", **{**KEYS, "train__computation_time": 0.5}))],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert wait_for(lambda: (tmp / "i" / "truth_table").exists(), 30)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, e = process.communicate(timeout=30)
    assert process.returncode == 1 and "interrupted" in e, (process.returncode, e)
    assert not (tmp / "i" / "truth_table").exists(), "generated data was left behind"


def killed(tmp):
    """A table that is killed goes on where it was; a whole one is measured anew."""
    argv = list(map(str, tiny(tmp / "k", tmp / "killed", **{**KEYS, "train__computation_time": 0.05})))
    out = tmp / "killed"

    def ids():
        return {p.parent.name: json.loads(p.read_text())["run_id"] for p in out.glob("*/result.json")
                if p.parent.name in ("cold", "warm", "o_direct", "memory")}

    process = subprocess.Popen([STOKER, "run", "--truth-table", *argv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert wait_for(lambda: ids(), 60)
    time.sleep(0.3)
    process.kill()
    process.wait()
    first = ids()
    assert first and not (out / "truth_table.json").exists()
    time.sleep(1)
    stoker("run", "--truth-table", *argv)
    whole = ids()
    assert all(whole[name] == run for name, run in first.items()) and len(whole) > len(first), (first, whole)
    assert not (tmp / "k" / "truth_table").exists(), "generated data was left behind"
    assert stoker("audit", out, status=None).stdout.count("study_run.json") == 0
    stoker("run", "--truth-table", *argv)
    assert not set(ids().values()) & set(whole.values()), "a whole table is begun anew"


def main():
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        disk(tmp)
        sample(tmp)
        absent(tmp)
        believed(tmp)
        command(tmp)
        killed(tmp)


if __name__ == "__main__":
    main()

# takes 20 s
"""Every file of a result folder, damaged in every way: audit, compare and report say what they say of the untouched one, or
name the file in a sentence with a status other than 0. A changed byte may be a finding. Never is a folder of this program
judged as one of DLIO."""
# tier: long
import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import PATIENCE, SANITIZED, SOURCE, STOKER, left_out, load, stoker, tiny  # noqa: E402

DLIO = SOURCE / "tests/data/dlio-output"
CUTS, BYTES, WORKERS = 20, 8, 2
CUTS_TRIED = range(0, CUTS, 3 if SANITIZED else 1)  # a command takes many times as long under a sanitizer
JUDGED = ("result.json", "measures.bin")  # what a result is judged again from
PROGRAM = str(pathlib.Path(STOKER).resolve())
AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []


def commands(at, quick=False):
    """Each with what it leaves beside its lines. Nothing is judged again with `quick`."""
    return {"audit": (["audit", "--json", "result", *["--quick"] * quick], None), "compare": (["compare", "--json", "other", "result"], None),
            "report": (["report", "result", "-o", "out/page.html", "--csv", "out/runs.csv"], at / "out")}


def call(at, name, prefix=(), quick=False):
    argv, left = commands(at, quick)[name]
    done = subprocess.run([*prefix, PROGRAM, *argv], cwd=at, capture_output=True, text=True, timeout=20 * PATIENCE,
                          stdin=subprocess.DEVNULL)
    text = done.stdout
    for path in sorted(left.iterdir()) if left else []:
        text += path.read_text()
        path.unlink()
    return done.returncode, text, done.stderr


# ---- the damages: each takes a file and its bytes ----

def missing(path, data):
    path.unlink()


def fifo(path, data):
    path.unlink()
    os.mkfifo(path)


def folder(path, data):
    path.unlink()
    path.mkdir()


def loop(path, data):
    path.unlink()
    path.symlink_to(path.name)


def closed(path, data):
    path.chmod(0)


def cut(i):
    def damage(path, data):
        path.write_bytes(data[:i * len(data) // CUTS])
    return damage


def changed(i):
    def damage(path, data):
        at = (2 * i + 1) * len(data) // (2 * BYTES)
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
    return damage


def huge(path, data):
    os.truncate(path, 1 << 40)


DAMAGES = {"missing": missing, "a terabyte": huge, "FIFO": fifo, "folder": folder, "loop of links": loop, "mode 000": closed,
           **{f"cut {i}/{CUTS}": cut(i) for i in CUTS_TRIED}, **{f"byte {i}": changed(i) for i in range(BYTES)}}


def restore(path, data):
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    elif os.path.lexists(path):
        path.unlink()
    path.write_bytes(data)


# ---- the matrix ----

def judged(kind, name, damage, whole, got):
    """What is wrong with the answer, or ""; and its kind."""
    status, text, err = got
    file = os.path.basename(name)
    if "DLIO" in err or '"tool": "dlio"' in text or '"tool":"DLIO"' in text:
        return "judged as DLIO's", ""
    if status not in (0, 1):
        return f"status {status}", ""
    if (status, text) == whole[:2]:
        return "", "same"
    if status == 1:
        return ("", "told") if file in err and err.startswith("stoker: ") else ("the file is not named", "")
    if damage.startswith(("byte", "a terabyte")) and re.search(rf"{re.escape(file)}' was changed|result.json (was|lists|has)", text):
        return "", "found"
    # traces are large, and may be deleted; the finding says so
    if damage == "missing" and file.startswith("trace") and f"'{file}' is listed with a digest" in text:
        return "", "found"
    return "another answer with status 0", ""


class Place:
    """A worker's own copy."""

    def __init__(self, tmp, number):
        self.at = tmp / f"worker{number}"
        shutil.copytree(tmp / "result", self.at / "result")
        shutil.copytree(tmp / "other", self.at / "other")
        (self.at / "out").mkdir()
        (self.at / "out").chmod(0o777)
        self.whole = {quick: {name: call(self.at, name, quick=quick) for name in commands(self.at)} for quick in (False, True)}
        assert all(w[0] == 0 for whole in self.whole.values() for w in whole.values()), self.whole

    def tried(self, name, damage):
        path = self.at / "result" / name
        data = path.read_bytes()
        DAMAGES[damage](path, data)
        wrong, kinds = [], []
        quick = name not in JUDGED
        try:
            for command in commands(self.at):
                got = call(self.at, command, AS_NOBODY if damage == "mode 000" else (), quick)
                why, kind = judged(command, name, damage, self.whole[quick][command], got)
                kinds.append(kind)
                if why:
                    wrong.append((name, damage, command, why, got[0], got[2][-300:]))
        finally:
            restore(path, data)
        return wrong, kinds


def matrix(tmp):
    places = [Place(tmp, k) for k in range(WORKERS)]
    names = sorted(str(p.relative_to(tmp / "result")) for p in (tmp / "result").rglob("*") if p.is_file())
    assert len(names) == 15, names
    cases = [(n, d) for n in names for d in DAMAGES]
    if AS_NOBODY and subprocess.run([*AS_NOBODY, PROGRAM, "--version"], capture_output=True).returncode != 0:
        left_out("files that cannot be read: the program cannot be run as another user")
        cases = [c for c in cases if c[1] != "mode 000"]

    def work(k):
        return [places[k].tried(*c) for c in cases[k::WORKERS]]

    with ThreadPoolExecutor(WORKERS) as pool:
        results = [r for part in pool.map(work, range(WORKERS)) for r in part]
    wrong = [w for r in results for w in r[0]]
    kinds = [k for r in results for k in r[1]]
    print(f"   {len(names)} files, {len(DAMAGES)} damages, {len(kinds)} answers: {kinds.count('told')} told with status 1, "
          f"{kinds.count('found')} found, {kinds.count('same')} the same as of the untouched result; {len(wrong)} wrong")
    for w in wrong[:40]:
        print("   wrong:", *w)
    assert not wrong
    # what nothing reads is what a page shows only if it is asked for; all else is seen
    told = 1000 * (len(DAMAGES) - BYTES) / (6 + CUTS)  # a changed byte is found instead
    assert kinds.count("told") > told and kinds.count("same") < len(kinds) / 50, (told, kinds.count("same"))


# ---- whose folder it is, whatever is left of it ----

def every_file_says_it(tmp):
    """Each file alone beside a summary.json without a mark."""
    base = tmp / "result"
    names = sorted(str(p.relative_to(base)) for p in base.rglob("*") if p.is_file())
    for name in names:
        at = tmp / "alone"
        shutil.rmtree(at, ignore_errors=True)
        (at / name).parent.mkdir(parents=True)
        shutil.copy(base / name, at / name)
        if name != "summary.json":
            summary = load(base, "summary.json")
            del summary["program"]
            (at / "summary.json").write_text(json.dumps(summary))
        done = stoker("audit", "--json", at, status=1)
        result, = json.loads(done.stdout)["results"]
        assert result["tool"] == "stoker" and (len(result["findings"]) == 1 or name == "result.json"), (name, result)
        assert name == "result.json" or "has no result.json" in done.stderr, (name, done.stderr)


def older(tmp):
    """A result as it was before the mark: whole it is read without a word; without result.json it is still ours."""
    at = tmp / "older"
    shutil.copytree(tmp / "result", at)
    (at / "measures.bin").unlink()
    for path in at.rglob("*"):
        if not path.is_file() or path.name == "result.json":
            continue
        text = path.read_text()
        text = re.sub(r'\n *"program": "stoker [^"]*",', "", text).replace('"program": "stoker ' + "", '"was": "')
        text = re.sub(r"^# Written by .*\n|^.* Written by stoker .*\n", "", text, flags=re.M)
        path.write_text(text)
    result = load(at)
    del result["integrity"], result["run_id"]
    result["schema"], result["environment"]["versions"]["build"] = 1, "of an earlier version"
    (at / "result.json").write_text(json.dumps(result, indent=4))
    done = stoker("audit", "--json", at)
    assert not [f for f in json.loads(done.stdout)["results"][0]["findings"] if f["check"] in ("complete", "digest")], done
    (at / "result.json").unlink()
    for gone in (None, ".hydra/hydra.yaml", ".hydra/config.yaml", "trace-0-of-2.pfw"):
        if gone:
            (at / gone).unlink()
        assert "has no result.json" in stoker("audit", at, status=1).stderr, gone


def foreign(tmp):
    """An object that is not what this program writes into a result.json, whole or in part, is damage."""
    at = tmp / "foreign"
    shutil.copytree(tmp / "result", at)
    whole = load(at)
    for name, what, texts in (("config.yaml", "map of keys", ("1", "- a", '"x"')), ("overrides.yaml", "list of overrides", ("1", "a: b"))):
        path = at / ".hydra" / name
        data = path.read_bytes()
        for text in texts:
            path.write_text(text)
            for command in (("audit", at), ("report", at, "-o", tmp / "f.html"), ("compare", tmp / "other", at)):
                assert f"{name}' is damaged: it is not a {what}" in stoker(*command, status=1).stderr, (name, text, command)
        path.write_bytes(data)
    always = ("schema", "version", "status", "workload", "accelerators", "start", "end", "wall_s", "configuration")
    texts = [{}, {"answer": 42}, json.loads((at / "summary.json").read_text()), json.loads((at / "0_output.json").read_text()),
             whole["configuration"], {k: whole[k] for k in ("program", "run_id", "integrity")}]
    texts += [{k: v for k, v in whole.items() if k != gone} for gone in always]
    texts += [{**whole, k: [whole[k]]} for k in always]
    for text in texts:
        (at / "result.json").write_text(json.dumps(text))
        done = stoker("audit", "--check", at, status=1)
        assert "is no whole result of this program" in done.stderr, (list(text)[:5], done)
    # so many values that they would take gigabytes
    (at / "result.json").write_text(json.dumps({**whole, "more": 1}).replace('"more": 1', '"more": [' + "{}," * 4200000 + "0]"))
    assert "more values than any file of a result" in stoker("audit", "--check", at, status=1).stderr
    (at / "result.json").write_text(json.dumps({k: v for k, v in whole.items() if k not in ("integrity", "run_id")}))
    assert "they were removed" in stoker("audit", "--check", at, status=3).stdout.replace("\n" + " " * 10, " ")


def dlios(tmp):
    """A folder of DLIO stays one, also with a result.json of another program."""
    at = tmp / "dlio"
    shutil.copytree(DLIO, at)
    whole = json.loads(stoker("audit", "--json", at).stdout)["results"][0]
    (at / "result.json").write_text('{"answer": 42}')
    again = json.loads(stoker("audit", "--json", at).stdout)["results"][0]
    assert whole["tool"] == "dlio" and again == whole, (whole, again)
    for text, why in (("", "summary.json' is empty"), ('{"start": 1', "summary.json' is damaged in line 1")):
        (at / "summary.json").write_text(text)
        assert why in stoker("audit", at, status=1).stderr, why


# ---- many ----

def several(tmp):
    """The damaged one is listed, the others are judged, the status is 1."""
    root = tmp / "several"
    for name in ("a", "b", "c"):
        shutil.copytree(tmp / "result", root / name)
    (root / "b/result.json").write_bytes((root / "b/result.json").read_bytes()[:1000])
    alone = json.loads(stoker("audit", "--json", root / "a").stdout)["results"][0]
    done = stoker("audit", "--json", root, status=1)
    found = {pathlib.Path(r["folder"]).name: r for r in json.loads(done.stdout)["results"]}
    assert [f["check"] for f in found["b"]["findings"]] == ["complete"] and "damaged in line" in done.stderr, done
    for name in ("a", "c"):  # copies of each other, which is said of both
        others = [f for f in found[name]["findings"] if f["check"] != "identity"]
        assert others == [f for f in alone["findings"] if f["check"] != "identity"], name
    done = stoker("report", root, "-o", tmp / "page.html", "--csv", tmp / "runs.csv", status=1)
    assert "result.json' is damaged in line" in done.stderr and "complete (1)" in done.stdout, done
    rows = (tmp / "runs.csv").read_text().splitlines()
    assert len(rows) == 4 and "damaged or incomplete" in [r for r in rows if "several/b" in r][0], rows
    assert "damaged in line" in (tmp / "page.html").read_text()
    # two of them: each is named
    (root / "c/summary.json").unlink()
    done = stoker("audit", root, status=1)
    assert "b/result.json" in done.stderr and "c/summary.json" in done.stderr and "2 of 3 results" in done.stderr, done.stderr


def running(tmp):
    """A folder that a run still writes is told as such, and so is one whose run did not end."""
    root = tmp / "running"
    shutil.copytree(tmp / "result", root / "done")
    (root / "now").mkdir()
    shutil.copy(tmp / "result/dlio.log", root / "now/dlio.log")
    with open(root / "now/.stoker_run.lock", "w") as lock:
        lock.write("process 1 on host 'h'\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = stoker("audit", root)
        assert "still writing" in done.stderr and "process " in done.stderr, done.stderr
        assert "still writing" in stoker("audit", root / "now", status=1).stderr
        shutil.copy(tmp / "result/0_output.json", root / "now")  # before the others
        assert "still writing" in stoker("audit", root, status=1).stderr
        (root / "now/0_output.json").unlink()
    done = stoker("audit", root)
    assert "did not end" in done.stderr and "1 of 1" not in done.stderr, done.stderr
    assert "did not end" in stoker("audit", root / "now", status=1).stderr


def unsearchable(tmp):
    if not AS_NOBODY:
        return
    root = tmp / "closed"
    shutil.copytree(tmp / "result", root / "open")
    (root / "shut").mkdir(mode=0)
    done = subprocess.run([*AS_NOBODY, PROGRAM, "audit", root], capture_output=True, text=True)
    assert done.returncode == 1 and "shut" in done.stderr and "Permission denied" in done.stderr, done


def order(tmp):
    """A run that is killed before any of its files gets its name leaves result.json, or nothing of its figures."""
    if not shutil.which("strace"):
        left_out("runs killed between two files: strace is not installed")
        return
    left = []
    for n in range(1, 9):
        out = tmp / f"order{n}"
        subprocess.run(["strace", "-f", "-o", "/dev/null", "-e", "trace=rename,renameat,renameat2", "-e",
                        f"inject=rename,renameat,renameat2:signal=KILL:when={n}", PROGRAM, "run",
                        *tiny(tmp / "order.d", out, storage__store="memory")], capture_output=True, timeout=60)
        names = {p.name for p in out.iterdir() if p.name.endswith(".json")}
        left.append(len(names))
        assert not names or "result.json" in names and load(out)["status"] == "complete", (n, names)
        done = stoker("audit", out, status=None)
        assert n == 8 or done.returncode == 1 and done.stderr.startswith("stoker: "), (n, names, done)
    assert left[:3] == [0, 1, 2] and left[-1] == 4, left


def study(tmp):
    """A finished run whose result is not whole is told; one that the design does not know yet is made again."""
    (tmp / "conf/workload").mkdir(parents=True)
    (tmp / "conf/workload/small.yaml").write_text(
        "model: {name: small}\nframework: pytorch\nworkflow: {generate_data: True, train: True}\nstorage: {store: memory}\n"
        "dataset: {data_folder: data/x, format: npz, num_files_train: 4, record_length_bytes: 4096}\n"
        "reader: {data_loader: pytorch, batch_size: 2, read_threads: 1}\ntrain: {epochs: 1, computation_time: 0.001}\n")
    design = tmp / "d.csv"
    design.write_text("model,processes,overrides,run\nsmall,1,,N\nsmall,2,,N\n")

    def call(verb, status):
        return stoker("study", verb, "d.csv", *(["-q"] if verb == "run" else []), "--config-dir", tmp / "conf", cwd=tmp,
                      status=status)

    call("run", 0)
    call("status", 0)
    row, = (tmp / "results").glob("*/1/run-1")
    ledger = tmp / "results/d.csv.study.json"
    for file, damage in ((row / "result.json", b"{"), (row / "summary.json", None), (row / "0_output.json", b""),
                         (row / "study_run.json", b"{\"key"), (row / "study_run.json", None), (ledger, b"[")):
        data = file.read_bytes()
        file.unlink() if damage is None else file.write_bytes(damage)
        for verb in ("status", "run"):
            assert file.name in call(verb, 1).stderr, (file, verb)
        if file != ledger:
            assert file.name in stoker("report", tmp / "results", "-o", tmp / "s.html", status=1).stderr, file
        file.write_bytes(data)
    call("status", 0)
    # killed after the run, before the design had it
    def unnoted():
        mark = load(row, "study_run.json")
        del mark["noted_by"]
        (row / "study_run.json").write_text(json.dumps(mark))
        design.write_text(design.read_text().replace("small,1,,Y", "small,1,,N"))
        assert "small,1,,N" in design.read_text(), design.read_text()
        return load(row)["run_id"]

    before = unnoted()
    call("run", 0)
    assert load(row)["run_id"] == before, "it is whole, and not made again"
    before = unnoted()
    (row / "0_output.json").unlink()
    assert "0_output.json" in call("status", 0).stdout
    call("run", 0)
    assert load(row)["run_id"] != before and (row / "0_output.json").exists()


def main():
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        tmp.chmod(0o755)
        for name in ("result", "other"):
            stoker("run", "-n", "2", *tiny(tmp / f"{name}.d", tmp / name, storage__store="memory", files=16,
                                           run__trace="both", workflow__profiling="true"))
        matrix(tmp)
        every_file_says_it(tmp)
        older(tmp)
        foreign(tmp)
        dlios(tmp)
        several(tmp)
        running(tmp)
        unsearchable(tmp)
        order(tmp)
        study(tmp)


if __name__ == "__main__":
    main()

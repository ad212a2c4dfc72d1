"""Text of others: every string, key and name that a command reads holds what commands a terminal, forges lines, ends an element
of a page or makes a formula; every command's output is plain text, the page works, and tables and scripts keep their shape."""
# tier: long
# takes 40 s
import concurrent.futures
import copy
import csv
import html.parser
import io
import json
import os
import pathlib
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import xml.dom.minidom

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from browser import BROWSER, Page  # noqa: E402
from util import SANITIZED, SOURCE, left_out, tiny  # noqa: E402
from util import STOKER as PROGRAM  # noqa: E402

STOKER = os.path.abspath(PROGRAM)

# What a terminal, a line, a page and a spreadsheet would take as more than text. %s: the name of the field.
TEXT = ("=%s <!--<script>window.injected=1</script><img src=x onerror=window.injected=2>\"'`$(touch injected)&amp;"
        "\x1b[31m\x1b]0;x\x07\x08\x7f\x85\x9b2J\u202e\u2066\u2028\u2029\n\rFORGED line\tend")
NAME = TEXT.replace("/", "")  # of a file
BYTES = b"%s \xff\xfe\xc3( \x1b[31m\x07\x7f\xc2\x9b\xe2\x80\xae\nFORGED"  # no UTF-8
MISLEADS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
commands = outputs = 0


def plain(what, raw, terminal=False):
    """Text for people: UTF-8, no control character but line breaks, no line that a field made up."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as e:
        raise AssertionError(f"{what}: no UTF-8 at {e.start}: {raw[max(0, e.start - 80):e.start + 40]!r}") from e
    if terminal:
        text = COLOUR.sub("", text.replace("\r\n", "\n"))
    bad = MISLEADS.search(text)
    assert not bad, f"{what}: {bad.group()!r} in {text[max(0, bad.start() - 120):bad.end() + 40]!r}"
    assert not re.search(r"^\s*FORGED", text, re.M), f"{what}: a line of a field's: {text!r}"
    return text


def say(*args, cwd=None, status=None, **kw):
    """Runs the program; both streams are plain."""
    global commands
    args = [a if isinstance(a, bytes) else str(a) for a in args]
    done = subprocess.run([STOKER, *args], capture_output=True, timeout=120, cwd=cwd, **kw)
    commands += 1
    assert done.returncode in ((0, 1, 2, 3) if status is None else (status,)), (args, done.returncode, done.stderr)
    what = f"{args}"[:300]
    return plain(what, done.stdout), plain(what, done.stderr), done.returncode


def at_terminal(*args, cwd=None):
    """The same with a terminal as both streams: colours are all that it is told beyond text."""
    global commands
    main, child = pty.openpty()
    p = subprocess.Popen([STOKER, *map(str, args)], stdin=child, stdout=child, stderr=child, cwd=cwd,
                         env=dict(os.environ, TERM="xterm", COLUMNS="100", LANG="C.UTF-8"))
    os.close(child)
    raw = b""
    while True:
        try:
            piece = os.read(main, 1 << 16)
        except OSError:
            break
        if not piece:
            break
        raw += piece
    os.close(main)
    p.wait()
    commands += 1
    return raw


def strings(value, path=()):
    """Places of strings and keys of a document: (path, whether it is a key). Of lists one element, of objects with many
    members of one kind, such as the facts of a processor, some."""
    if isinstance(value, dict):
        members = list(value.items())
        for k, v in members if len(members) <= 40 else members[::len(members) // 8]:
            yield path + (k,), True
            yield from strings(v, path + (k,))
    elif isinstance(value, list):
        for i, v in enumerate(value[:1]):
            yield from strings(v, path + (i,))
    elif isinstance(value, str):
        yield path, False


def fields(document):
    """Those that are made hostile one after another; every fourth under a sanitizer, where a command takes many times as
    long. Of documents of another length they are others."""
    places = list(strings(document))
    return places[len(places) % 4::4] if SANITIZED and len(places) > 4 else places


def changed(document, path, key):
    out = copy.deepcopy(document)
    at = out
    for p in path[:-1]:
        at = at[p]
    name = ".".join(map(str, path))
    if key:
        at[TEXT % name] = at.pop(path[-1])
    else:
        at[path[-1]] = TEXT % name
    return out


def twin(source, target):
    """A copy whose files are links; a file is replaced before it is changed."""
    target.mkdir(parents=True)
    for p in sorted(source.rglob("*")):
        to = target / p.relative_to(source)
        to.mkdir() if p.is_dir() else os.link(p, to)


def replace(path, text):
    path.unlink()
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


class Elements(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.data, self.at = [], "", False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert not any(k.startswith("on") for k, _ in attrs), attrs
        self.at = ("id", "data") in attrs

    def handle_endtag(self, tag):
        self.at = False

    def handle_data(self, data):
        self.data += data if self.at else ""


def check_markup(tmp, path):
    text = path.read_bytes().decode()
    page = Elements(text)
    assert page.tags == Elements((tmp / "clean.html").read_text()).tags, "text became elements"
    bad = MISLEADS.search(text)
    assert not bad, repr(text[max(0, bad.start() - 100):bad.end() + 20])
    assert not re.search("[<>&]", page.data), "JSON that ends its element"
    return page


def check_page(tmp, path, runs):
    page = check_markup(tmp, path)

    def no_controls(value):
        for p, key in strings(value):
            at = value
            for k in p[:-1] if key else p:
                at = at[k]
            assert not MISLEADS.search(p[-1] if key else at) and "\n" not in (p[-1] if key else at), (p, at)

    data = json.loads(page.data)
    assert len(data["runs"]) == runs, (len(data["runs"]), runs)
    no_controls(data)
    if not BROWSER or SANITIZED:
        left_out("no browser (package chromium), or the program is instrumented: the page is only parsed")
        return
    with Page(tmp / "profile", path.as_uri()) as p:
        p.until('document.documentElement.getAttribute("data-ready") === "yes"')
        assert p.value("window.injected === undefined")
        assert p.value('document.querySelectorAll("main script, main img, script").length') == 2
        p.value('document.querySelectorAll("details").forEach(d => { d.open = true; })')
        p.frame()
        assert p.value('document.getElementById("tiles").textContent.length > 0 && document.querySelectorAll(".chart svg").length > 0')
        assert not p.value("/[\\x1b\\x7f-\\x9f\\u202a-\\u202e]/.test(document.querySelector('main').textContent)")
        assert not p.problems, p.problems


def check_table(path, rows):
    text = path.read_bytes().decode()
    plain("--csv", path.read_bytes())
    table = list(csv.reader(io.StringIO(text)))
    assert len(table) == rows + 1 and len({len(r) for r in table}) == 1, (len(table), {len(r) for r in table})
    for r in table[1:]:
        for cell in r:
            assert not re.match(r"[=+@\t\r]|-(?![0-9.])", cell), cell


# ---- results ----

def results(tmp, base):
    """Of a result of ours: each string and key of each of its files, one after another, in folders of one audit."""
    made, n = tmp / "fields", 0
    for name in ("result.json", "summary.json", "0_per_epoch_stats.json", "0_output.json"):
        document = json.loads((base / name).read_text())
        for path, key in fields(document):
            folder = made / name[:-5] / f"{n}"
            twin(base, folder)
            replace(folder / name, json.dumps(changed(document, path, key), ensure_ascii=bool(n % 2)))
            n += 1
            # what ends a command hides the others
            if name == "summary.json":
                say("audit", "-v", folder, "--quick")
    # making limit and predictions of hundreds of results again takes most of the time: once
    for group in sorted(made.iterdir()):
        say("audit", "-v", group)
        say("audit", group, "--quick")
        out, _, status = say("audit", "--json", group, "--quick")
        assert status != 0 or json.loads(out)
        say("compare", group, base)
        page = tmp / "fields.html"
        say("report", group, "-o", page, "--csv", tmp / "fields.csv")
        if page.exists():
            check_markup(tmp, page)
            page.unlink()
    return n


def all_at_once(tmp, base):
    """A few results whose strings are all hostile, in folders with hostile names: the page, the table, figures, comparison."""
    made = tmp / (NAME % "folder")
    result = json.loads((base / "result.json").read_text())
    identity = ("schema", "format", "tool", "run_id", "status", "begin", "end", "level", "check", "cause", "kind", "state")
    for k in range(3):
        folder = made / (NAME % f"run {k}")
        twin(base, folder)

        def kept(value, path=()):
            """Hostile but where a word decides what is shown."""
            if isinstance(value, dict):
                return {a: kept(v, path + (a,)) for a, v in value.items()}
            if isinstance(value, list):
                return [kept(v, path) for v in value]
            keep = not isinstance(value, str) or path[-1] in identity or (k < 2 and path[0] in ("digests", "seal"))
            return value if keep else TEXT % ".".join(path)

        replace(folder / "result.json", json.dumps({**kept(result), "run_id": f"{k}"}))
    odd = os.fsencode(made) + b"/" + BYTES.replace(b"%s", b"bytes")
    shutil.copytree(os.fsencode(base), odd)
    say("audit", "-v", made)
    json.loads(say("audit", "--json", made)[0])
    raw = at_terminal("audit", "-v", made)
    plain("audit at a terminal", raw, terminal=True)
    say("compare", made, base)
    json.loads(say("compare", "--json", made, base)[0])
    say("compare", "--check", base, made)
    page = tmp / (NAME % "page" + ".html")
    out, err, status = say("report", made, "-o", page, "--csv", tmp / "all.csv", "--title", TEXT % "title")
    assert status == 0, (out, err)
    check_page(tmp, page, 4)
    check_table(tmp / "all.csv", 4)
    if shutil.which("gnuplot"):
        _, err, status = say("report", made, "-o", page, "--plots", tmp / "plots")
        assert status == 0, err
        for p in (tmp / "plots").iterdir():
            if p.suffix in (".gp", ".dat"):
                plain(p.name, p.read_bytes())
        assert not pathlib.Path("injected").exists() and not (tmp / "injected").exists()
    else:
        left_out("gnuplot is not installed: no figures")


def of_dlio(tmp):
    """A folder of DLIO's."""
    source = SOURCE / "tests/data/dlio-output"
    made = tmp / "dlio"
    n = 0
    for name in ("summary.json", "0_output.json", "0_per_epoch_stats.json"):
        document = json.loads((source / name).read_text())
        places = fields(document)
        # the facts of /proc/cpuinfo and meminfo are alike
        for path, key in [p for i, p in enumerate(places) if "info" not in str(p[0]) or i % 10 == 0]:
            shutil.copytree(source, made / f"{n}")
            (made / f"{n}" / name).write_text(json.dumps(changed(document, path, key)))
            n += 1
    keys = [("reader", "batch_size"), ("dataset", "data_folder"), ("dataset", "format"), (TEXT % "section", "x"), ("reader", TEXT % "key")]
    for i, (section, key) in enumerate(keys):
        shutil.copytree(source, made / f"h{i}")
        (made / f"h{i}" / ".hydra").mkdir(exist_ok=True)
        config = {"workload": {"model": {"name": "x"}, section: {key: TEXT % "value"}}}
        (made / f"h{i}" / ".hydra" / "config.yaml").write_text(json.dumps(config))
        (made / f"h{i}" / ".hydra" / "overrides.yaml").write_text(json.dumps([TEXT % "override", f"+workload.{section}={TEXT % 'o'}"]))
        n += 1
    for i, broken in enumerate((b"{\"a\": \"\x1b[31m\xff\n", b"\x1b]0;x\x07{", b"{\"\\u001b\": 1,}", "{\"a\u202e\": [}".encode())):
        for name in ("summary.json", ".hydra/config.yaml"):
            folder = made / f"b{i}{name[0]}"
            shutil.copytree(source, folder)
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(broken)
            n += 1
            say("audit", "-v", folder)
    say("audit", "-v", made)
    say("report", made, "-o", tmp / "dlio.html", "--csv", tmp / "dlio.csv")
    for name in ("0", "h0", "b0s", "b0."):
        say("report", made / name, "-o", tmp / "one-dlio.html")
        say("compare", made / name, made / "0")
    return n


# ---- what runs read ----

def workloads(tmp):
    """Values, keys and names of workloads, overrides, the words of the command line."""
    good = {"model": {"name": "m"}, "framework": "pytorch", "dataset": {"format": "npz", "num_files_train": 4, "file_prefix": "img"},
            "reader": {"batch_size": 1, "data_loader": "pytorch"}, "storage": {"store": "memory"}, "workflow": {"train": True},
            "train": {"computation_time": {"mean": 0.001}}, "checkpoint": {"type": "rank_zero"}, "run": {"note": "n"}}
    n = 0
    folder = tmp / "workloads"
    folder.mkdir()
    for path, key in fields(good):
        file = folder / f"{n}.yaml"
        file.write_text(json.dumps(changed(good, path, key)))
        say("show", "config", file)
        say("run", file, "-q", "-o", tmp / "w-out", "--strict")
        n += 1
    for i, raw in enumerate((b"a: \x1b[31m\nb: [", b"a: '\xff\xfe'\n", b"\"\\x1b\\u202e\": {a: [1, }\n", b"a: &x\x7f *y\n", b"!!\x07 a: b\n",
                             "reader: {batch_size: '\u202e\\n'}".encode(), b"reader: {\"\\x1b[2J\\nFORGED\": 1}", b"? [a, \"\\x1b\"]\n: 1\n",
                             b"dataset: {data_folder: \"${oc.env:X\\x1b\\nFORGED}\"}\n", b"a: ${b\x1b}\n", BYTES)):
        file = folder / f"raw{i}.yaml"
        file.write_bytes(raw)
        say("show", "config", file)
        say("run", file, "-q", "-o", tmp / "w-out")
        n += 1
    word = TEXT % "word"
    for args in (["run", word], ["run", NAME % "none" + ".yaml"], ["run", "default", word], ["run", "default", f"reader.{word}=1"],
                 ["run", "default", f"reader.batch_size={word}"], ["run", "default", f"+a={word}"], ["show", word], [word], ["run", "--" + word],
                 ["run", "default", "-n", word], ["audit", word], ["compare", word, word], ["report", word], ["verify", word],
                 ["show", "system", word], ["show", "checkpoint", word], ["generate", word], ["study", word], ["study", "run", word],
                 ["run", "default", "--config-dir", word], ["run", "default", "--data", word], ["report", "x", "--steps", word],
                 ["run", b"\xff\xfe\x1b"], ["run", "default", b"reader.batch_size=\xff\x1b"], ["audit", b"\xff\x1b\n"]):
        say(*args)
        n += 1
    os.mkdir(tmp / (NAME % "config"))
    shutil.copy(folder / "0.yaml", tmp / (NAME % "config") / "x.yaml")
    say("run", "x", "-q", "--config-dir", tmp / (NAME % "config"))
    return n


def runs(tmp):
    """Folders and a workload with hostile names: the run is made, its files can be read, its own commands name them again."""
    out, data = tmp / (NAME % "out"), tmp / (NAME % "data")
    workload = tmp / (NAME % "name" + ".yaml")
    workload.write_text(json.dumps({"model": {"name": TEXT % "model"}, "run": {"note": TEXT % "note"}}))
    keys = {"dataset.data_folder": data, "dataset.num_files_train": 4, "dataset.num_files_eval": 0, "dataset.record_length_bytes": 64,
            "reader.batch_size": 1, "reader.read_threads": 0, "workflow.generate_data": "true", "train.epochs": 1,
            "train.computation_time": 0.001, "workflow.evaluation": "false", "dataset.num_subfolders_train": 0}

    def quoted(v):
        return "'" + str(v).replace("\\", "\\\\").replace("'", "\\'") + "'" if "\x1b" in str(v) else v

    overrides = [f"{k}={quoted(v)}" for k, v in keys.items()]
    text, err, status = say("run", workload, "-v", "-o", out, *overrides)
    assert status == 0, err
    if shutil.which("bash"):
        # the command that it prints names the same folder
        line = next(x for x in text.splitlines() if "stoker report" in x)
        word = line.split("stoker report ", 1)[1].rsplit(" -o ", 1)[0]
        told = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True).stdout
        assert told == os.fsencode(out), (told, out)
    result = json.loads((out / "result.json").read_text())
    assert result["folder"].endswith(out.name), result["folder"]
    plain("dlio.log", (out / "dlio.log").read_bytes())
    say("audit", "-v", out)
    odd = os.fsencode(tmp) + b"/" + BYTES.replace(b"%s", b"run")
    os.mkdir(odd)
    _, err, status = say("run", workload, "-o", "out", *overrides, cwd=odd)
    assert status == 0, err
    result = json.loads(open(odd + b"/out/result.json", "rb").read())
    assert "1 rank" in say("audit", "-v", odd)[0]
    raw = at_terminal("run", workload, "-o", tmp / "pty", *overrides)
    rest = re.sub(rb"\x1b\[(\?25[lh]|[0-9]*A|K|[0-9;]*m)|\r", b"", raw)
    plain("run at a terminal", rest.replace(b"\r\n", b"\n"))
    for p in data.iterdir():
        if p.is_file() and p.suffix == ".json":
            manifest = json.loads(p.read_text())
            for path, key in fields(manifest):
                p.write_text(json.dumps(changed(manifest, path, key)))
                say("verify", workload, *overrides[:-5])
                say("run", workload, "-q", "-o", tmp / "again", *overrides[:6], "workflow.generate_data=false")
            p.write_bytes(b"{\"kind\": \"\x1b[31m\xff\n")
            say("verify", workload, *overrides[:-5])
    # files that are no samples
    (data / "train" / (NAME % "sample")).write_text("x")
    say("verify", workload, *overrides[:-5])
    say("run", "default", "--data", data, "-o", tmp / "own", "-q")
    say("run", "default", "--data", data / "train", "--small", "-o", tmp / "own2")


def checkpoints(tmp):
    """Texts within checkpoints: names of tensors, types, keys of pickles."""
    model = ["model.type=transformer", "model.num_layers=1", "model.transformer.vocab_size=10", "model.transformer.hidden_size=8",
             "model.transformer.ffn_hidden_size=8", "model.transformer.num_attention_heads=2", "model.transformer.num_kv_heads=1",
             "workflow.train=false", "workflow.evaluation=false", "workflow.checkpoint=true", "framework=pytorch", "checkpoint.verify=true"]
    n = 0
    for form in ("torch", "safetensors", "distcp", "tensorflow"):
        folder = tmp / f"ckpt-{form}"
        keys = [*model, f"checkpoint.format={form}", f"checkpoint.checkpoint_folder={folder}"]
        if form == "tensorflow":
            keys[-4] = keys[-4].replace("pytorch", "tensorflow")
            keys = [k.replace("framework=pytorch", "framework=tensorflow") for k in keys]
        _, err, status = say("run", "default", "-q", "-o", tmp / "ckpt-out", *keys, "checkpoint.num_checkpoints_write=1",
                             "checkpoint.num_checkpoints_read=0")
        assert status == 0, err
        files = [p for p in sorted(folder.rglob("*")) if p.is_file()]
        for p in files:
            good = p.read_bytes()
            words = sorted({m.span() for m in re.finditer(rb"[A-Za-z_.]{4,40}", good[:65536])})
            for a, b in words[::max(1, len(words) // (2 if SANITIZED else 8))]:
                evil = (b"\x1b]0\x07\xff\n\xc2\x9b\xe2\x80\xae\x7f" * 4)[:b - a]
                p.write_bytes(good[:a] + evil + good[b:])
                say("run", "default", "-q", "-o", tmp / "ckpt-out", *keys, "checkpoint.num_checkpoints_write=0", "checkpoint.num_checkpoints_read=1")
                n += 1
            p.write_bytes(good)
    return n


# ---- studies, traces ----

def studies(tmp, base):
    folder = tmp / "study"
    folder.mkdir()
    (folder / "small.yaml").write_text(json.dumps({"model": {"name": "s"}, "storage": {"store": "memory"}}))
    word = TEXT % "cell"
    cell = '"' + word.replace('"', '""') + '"'
    line = word.replace("\n", " ").replace("\r", " ").replace('"', "")
    head = "model,epochs,processes,overrides,run"
    designs = [f"{head}\n{a}\n" for a in (
        f"{cell},1,1,,N", f"small,{cell},1,,N", f"small,1,{cell},,N", f"small,1,1,{cell},N", f"small,1,1,,{cell}",
        f"{line},1,1,,N", f"small,1,1,++workload.reader.{line}=1,N", f"small,1,1,++workload.reader.batch_size={line},N",
        f"small,1,1,'{line},N", f"small,1,1,++workload.run.note='{line}',N")]
    designs += [f"{head},{cell}\nsmall,1,1,,N,x\n", f"{head},{line}\nsmall,1,1,,N,{line}\n", f"# {line}\n{head}\nsmall,1,1,,N\n"]
    designs = [d.encode() for d in designs] + [b"model,epochs\xff\x1b\n1,2\n", f"{head}\n".encode() + b"\xff\xfe\x1b,1,1,,N\n", b"\x1b[31m"]
    for i, d in enumerate(designs):
        design = folder / f"d{i}.csv"
        design.write_bytes(d)
        options = ["--config-dir", folder, "--scratch", folder / "scratch", "--results", folder / "results"]
        say("study", "run", design, *options, "--dry-run")
        say("study", "status", design, *options[:2], *options[4:], "--svg", folder / "s.svg")
        if (folder / "s.svg").exists():
            plain("status --svg", (folder / "s.svg").read_bytes())
            xml.dom.minidom.parse(str(folder / "s.svg"))
            (folder / "s.svg").unlink()
    # names, and the script of a batch job with them
    odd = folder / (NAME % "design").replace("\n", " ").replace("=", "")
    odd.write_text(f"{head}\nsmall,1,1,++workload.run.note='{line}',N\n")
    results, scratch = (folder / (NAME % k).replace("\n", " ") for k in ("results", "scratch"))
    options = ["--config-dir", folder, "--scratch", scratch, "--results", results]
    text, err, status = say("study", "sbatch", odd, *options)
    assert status == 0, err
    if shutil.which("bash"):
        words = text[text.index("\nexec ") + 6:]
        told = subprocess.run(["bash", "-c", f"printf '%s\\0' {words}"], capture_output=True, check=True).stdout.split(b"\0")
        assert os.fsencode(odd) in told and os.fsencode(results) in told and os.fsencode(scratch) in told, told
    # the ledger of a study, and the mark of a run
    small = ["dataset.num_files_train=2", "dataset.num_files_eval=0", "dataset.record_length_bytes=64", "train.computation_time=0",
             "reader.batch_size=1", "workflow.evaluation=false"]
    say("study", "run", odd, *options, *small)
    for p in [*results.glob("*.study.json"), *results.rglob("study_run.json")]:
        document = json.loads(p.read_bytes().decode())
        for path, key in fields(document):
            p.write_text(json.dumps(changed(document, path, key)))
            say("study", "status", odd, *options[:2], *options[4:])
        p.write_text(json.dumps(document))
        p.write_text(p.read_text().replace('"done"', '"failed"'))
    say("study", "run", odd, *options, *small, "--retry")
    assert not list(tmp.rglob("injected"))


def traces(tmp, base):
    trace = next(base.glob("trace*.json"))
    document = json.loads(trace.read_text())
    events = document["traceEvents"] if isinstance(document, dict) else document
    kinds = {}
    for e in events:
        kinds.setdefault((e.get("ph"), e.get("name"), e.get("cat")), e)
    for i, e in enumerate(list(kinds.values())[:12]):
        for path, key in strings(e):
            changed_events = [changed(x, path, key) if x is e else x for x in events[:400]]
            p = tmp / "t.json"
            p.write_text(json.dumps({"traceEvents": changed_events}))
            say("report", base, "--trace", p, "-o", tmp / "t.html")
            if (tmp / "t.html").exists():
                check_markup(tmp, tmp / "t.html")
            break  # one string of each kind of event; all of them below
    p.write_text(json.dumps({"traceEvents": [{k: TEXT % k if isinstance(v, str) and k != "ph" else v for k, v in e.items()} for e in events[:400]]}))
    say("report", base, "--trace", p, "-o", tmp / "t.html")
    for raw in (b"\x1b[31m", b"{\"traceEvents\": [{\"name\": \"\x1b\xff\n", b"[{\"ph\": \"X\", \"name\": \"\\u001b\\ud800\"}]", BYTES):
        p.write_bytes(raw)
        say("report", base, "--trace", p, "-o", tmp / "t.html")
    odd = os.fsencode(tmp) + b"/" + BYTES
    with open(odd, "wb") as f:
        f.write(b"{")
    say("report", base, "--trace", odd, "-o", tmp / "t.html")


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as tmp:
        tmp = pathlib.Path(tmp)
        base = tmp / "base"
        arguments = tiny(tmp / "data", base, train__epochs=2, run__trace="chrome", run__note="a note", dataset__num_files_eval=2,
                         dataset__record_length_bytes=256, workflow__evaluation="true", workflow__checkpoint="true",
                         checkpoint__checkpoint_folder=tmp / "ckpt", checkpoint__steps_between_checkpoints=2, storage__store="throttle+posix")
        say(*["run", *arguments, "-n", 2], status=0)
        say("report", base, "-o", tmp / "clean.html", status=0)
        cases = ((results, tmp, base), (checkpoints, tmp), (all_at_once, tmp, base), (of_dlio, tmp), (workloads, tmp),
                 (studies, tmp, base), (runs, tmp), (traces, tmp, base))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(f, *a) for f, *a in cases if len(sys.argv) < 2 or f.__name__ in sys.argv[1:]]
            n = sum(j.result() or 0 for j in jobs)
        assert not list(tmp.rglob("injected"))
    print(f"hostile text: {commands} commands, {n} fields and names of files, workloads and checkpoints")


if __name__ == "__main__":
    main()

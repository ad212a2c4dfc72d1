# tier: long
"""A new store, format, loader, verdict and reader of logs is one file and one line each, and a cause one function: toys
(tests/toys) are added to a copy of the tree, which is built and used. What a verdict and a cause say is a row each. A
new figure is one row: result.json, its documentation, the page, the CSV and compare have it."""
# takes 27 s
import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SANITIZED, SOURCE, STOKER, load, skip, tiny  # noqa: E402

TOYS = {"STORE": "store", "FORMAT": "format", "LOADER": "loader", "VERDICT": "judge", "TRACE_READER": "trace"}


def add_toys(tree):
    """One file and one line a toy."""
    cmake = (tree / "CMakeLists.txt").read_text()
    for kind, folder in TOYS.items():
        shutil.copy(SOURCE / "tests/toys" / f"toy_{kind.lower()}.c", tree / "src" / folder)
        at = cmake.rindex("\n", 0, cmake.rindex(f"backend({kind} ")) + 1
        end = cmake.index("\n", at) + 1
        cmake = cmake[:end] + f"backend({kind} toy src/{folder}/toy_{kind.lower()}.c)\n" + cmake[end:]
    (tree / "CMakeLists.txt").write_text(cmake)
    # what the verdict and the cause say is a row each
    with open(tree / "src/words/verdicts.def", "a") as f:
        f.write('WORDS(TOY_TRAINED, "toy.trained", "epochs ranks", "", "trained with toys",\n'
                '      "{epochs} epochs were trained with toys by {ranks} ranks.")\n'
                'WORDS(TOY_LIMIT, "toy.limit", "lost", "", "toys", "The run is limited by toys, which cost {lost:s}.")\n')
    # a cause: its name, its function, and when it is asked
    shutil.copy(SOURCE / "tests/toys/toy_limit.c", tree / "src/judge")
    for name, before, row in (("result/causes.def", "CAUSE(OTHER,", 'CAUSE(TOYS, "toys", 0)\n'),
                              ("judge/limit_view.h", "bool limit_at_stall(", "bool limit_at_toys(struct limit_view *v);\n"),
                              ("judge/limit.c", "\t{CAUSE_PAGE_CACHE, at_computation", "\t{CAUSE_TOYS, limit_at_toys, NULL},\n"),
                              # on a busy machine those are asked first
                              ("judge/limit.c", "\t{CAUSE_HYPERVISOR,", "\t{CAUSE_TOYS, limit_at_toys, NULL},\n")):
        text = (tree / "src" / name).read_text()
        assert text.count(before) == 1, (name, before)
        (tree / "src" / name).write_text(text.replace(before, row + before))
    # a figure too
    table = tree / "src/result/fields_table.h"
    rows, before = table.read_text(), 'SECTION(EPOCH, '
    table.write_text(rows.replace(before, 'SHOWN(TRAINING, TOYS, "toys", COUNT, "toys", true, 7 * r->ranks, '
                                          f'"Toys of all ranks")\n\n{before}'))


# What cmake compiles with: "SOURCE OBJECT" in the list beside it takes the object of the tested build.
LAUNCHER = """#!/bin/sh
for word; do
    [ "$before" != -o ] || out=$word
    before=$word
done
object=$(grep -F "$before " "$0.list" | cut -d ' ' -f 2)
[ -n "$object" ] || exec "$@"
: >"$out.d"
exec cp "$object" "$out"
"""


def same_objects(tree, tested):
    """[(source, object)] of the tested build: neither the source nor a header of it is changed in the tree. None of a build
    without ninja's list of headers."""
    def same(path):
        return path.exists() and (SOURCE / path.relative_to(tree)).read_bytes() == path.read_bytes()

    if not (tested / ".ninja_deps").exists() or not shutil.which("ninja"):
        return []
    changed, found, object_ = {}, [], ""
    listed = subprocess.run(["ninja", "-C", tested, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    for block in listed.split("\n\n"):
        object_, *headers = [line.strip() for line in block.splitlines()] or [""]
        object_, valid = object_.split(":")[0], object_.endswith("(VALID)")
        if "/stoker_core.dir/src/" not in object_ or not valid:
            continue
        paths = [pathlib.Path(os.path.normpath(tested / h)) for h in headers]
        ours = [tree / p.relative_to(SOURCE) for p in paths if SOURCE in p.parents and tested not in p.parents]
        if any(tested in p.parents for p in paths):  # made by the build
            continue
        for p in ours:
            changed[p] = changed[p] if p in changed else not same(p)
        if not any(changed[p] for p in ours):
            found.append((ours[0], tested / object_))
    return found


def build(tree):
    # toys keep every rule but that of the project's size, which counts what is shipped
    subprocess.run([sys.executable, tree / "tools/check_tree.py", "--no-headers", "--no-size"], check=True)
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    launcher = tree.parent / "launcher"
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)
    taken = same_objects(tree, pathlib.Path(STOKER).resolve().parent)
    pathlib.Path(f"{launcher}.list").write_text("".join(f"{source} {o}\n" for source, o in taken))
    print(f"{len(taken)} objects are those of {STOKER}")
    for command in (["cmake", "-S", tree, "-B", tree / "build", *generator, "-DBUILD_TESTING=OFF",
                     "-DSTOKER_WERROR=ON", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O0",
                     f"-DCMAKE_C_COMPILER_LAUNCHER={launcher}"],
                    ["cmake", "--build", tree / "build", "--target", "stoker", "-j", "2"]):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return tree / "build/stoker"


def lists(stoker):
    """Help, documentation and error messages name them."""
    for topic in ("stores", "formats", "loaders"):
        text = stoker("show", topic).stdout
        assert sum(line.split()[:1] == ["toy"] for line in text.splitlines()) == 1, text
    assert "storage.toy.key" in stoker("show", "stores").stdout
    docs = stoker("show", "config", "--markdown").stdout
    for key in ("storage.store", "dataset.format", "reader.data_loader"):
        row = next(line for line in docs.splitlines() if line.startswith(f"| `{key}` |"))
        assert "toy" in row.split("|")[2], row
    assert "| `storage.toy.key` | whole number, 1 to 255 | `90` |" in docs, docs
    assert ": " in next(line for line in stoker("show", "config", "--man").stdout.splitlines()
                        if line.startswith("Type: text: ") and ", toy" in line)
    shown = stoker("show", "config", "default", "storage.store=toy", "storage.toy.key=7").stdout
    assert any(line.split()[:2] == ["storage.toy.key", "7"] for line in shown.splitlines()), shown
    for wrong in ("dataset.format=toi", "reader.data_loader=toi", "storage.store=toi"):
        said = stoker("run", "default", wrong, status=2).stderr
        assert "did you mean toy?" in said or "did you mean 'toy'?" in said, said
    said = stoker("show", "config", "default", "storage.toy.key=7").stderr
    assert "storage.toy has no effect" in said, said
    said = stoker("run", "default", "dataset.format=toy", "dataset.compression=gzip", status=2).stderr
    assert "gzip is not supported for toy files" in said, said


def use(stoker, tmp):
    data, out = tmp / "data", tmp / "out"
    keys = dict(dataset__num_samples_per_file=3, dataset__record_length_bytes=5000, reader__data_loader="toy",
                reader__sample_shuffle="seed", train__epochs=2, storage__toy__key=33)
    run = tiny(data, out, "toy", storage__store="toy", reader__decode="verify", **keys)
    stoker("run", *run, "-n", "2")
    files = sorted(data.rglob("*.toys"))
    assert len(files) == 8, files
    size = 8 + 3 * 70 * 70
    assert all(f.stat().st_size == size and f.read_bytes()[:8] == bytes(c ^ 33 for c in b"TOYTOYS\n") for f in files)
    result = load(out)
    epochs = result["training"]["epochs"]
    assert len(epochs) == 2 and all(e["order_proved"] and e["payload_bytes"] == 24 * 4900 for e in epochs), epochs
    figures(stoker, out)
    toys = [v for v in result["verdicts"] if v["check"] == "toy"]
    fact = {"reason": "toy.trained", "figures": {"epochs": 2, "ranks": 2}}
    assert [(v["level"], v["facts"]) for v in toys] == [("warn", [fact])], toys
    limit = result["limit"]
    assert limit["cause"] == "toys" and limit["facts"][0]["reason"] == "toy.limit", limit
    log = tmp / "log"
    log.write_text("TOYS\n" + "".join(f"{i}000 {i}500 {i % 4}000 1000 /toys/{i // 4}\n" for i in range(64)))
    assert "a list of toys" in stoker("explain", "--help").stdout
    job = json.loads(stoker("explain", "--json", log).stdout)
    assert "toys" in json.dumps(job), job
    loud = [a for a in run if a != "-q"]
    text = stoker("run", "-v", *loud, "-n", "2", "workflow.generate_data=false").stdout
    assert "2 epochs were trained with toys by 2 ranks" in text, text
    assert "trained with toys" in stoker("audit", out).stdout
    # each byte as generated, but by no other store and with no other key
    verify = [a for a in run if a not in ("-q", "-o", str(out))]
    stoker("verify", *verify)
    for other in ("storage.toy.key=34", "storage.store=posix"):
        stoker("verify", *[a for a in verify if not a.startswith(other.partition("=")[0] + "=")], other, status=1)
    with files[3].open("r+b") as f:
        f.seek(9000)
        byte = f.read(1)[0]
        f.seek(9000)
        f.write(bytes([byte ^ 1]))
    said = stoker("verify", *verify, status=1)
    assert "9000" in said.stdout + said.stderr, (said.stdout, said.stderr)
    # and with the others: a shim over it, another loader, another format
    for more in (dict(storage__store="throttle+toy"), dict(reader__data_loader="pytorch", storage__store="toy")):
        stoker("run", *tiny(tmp / "more", out, "toy", **{**keys, **more}))
    stoker("run", *tiny(tmp / "npz", out, "npz", **{**keys, "storage__store": "toy"}))


def figures(stoker, out):
    """The row of a figure is all that result.json, its documentation, page, CSV and compare need."""
    assert load(out)["training"]["toys"] == 14
    assert "| `toys` | count | toys | Toys of all ranks |" in stoker("show", "result").stdout
    measures = json.loads(stoker("compare", "--json", out, out).stdout)["measures"]
    toys = [m for m in measures if m["measure"] == "training.toys"]
    assert [(m["unit"], m["first"]["mean"], m["second"]["mean"]) for m in toys] == [("toys", 14, 14)], measures
    page, table = out.parent / "page.html", out.parent / "runs.csv"
    stoker("report", "-o", page, "--csv", table, out)
    assert '"training.toys":14' in page.read_text()
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [row["training.toys"] for row in rows] == ["14"], rows


def main():
    if SANITIZED:
        skip("a build of its own is not sanitized")
    if not shutil.which("cmake"):
        skip("cmake is not installed")
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        tree = tmp / "tree"
        tree.mkdir()
        for part in ("src", "cmake", "workloads", "tools", "docs"):
            shutil.copytree(SOURCE / part, tree / part)
        shutil.copy(SOURCE / "CMakeLists.txt", tree)
        add_toys(tree)
        program = build(tree)

        def stoker(*args, status=0):
            done = subprocess.run([program, *map(str, args)], capture_output=True, text=True, timeout=120)
            assert done.returncode == status, f"{args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
            return done

        lists(stoker)
        use(stoker, tmp)


if __name__ == "__main__":
    main()

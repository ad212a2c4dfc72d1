#!/usr/bin/env python3
"""The tree checks itself: layers, file sizes, headers that compile alone, banned calls, backends named elsewhere,
exported functions without a caller.

A folder under src/ may include itself and anything to its right in LAYERS; folders of one group never
include each other.
--no-headers leaves out compiling each header alone, --no-size how much src/ may hold.
"""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

import backend_names

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
LAYERS = [
    {"cli"}, {"launch", "screen", "page"}, {"study", "plan"}, {"readback", "trace"}, {"run"}, {"judge"}, {"predict"}, {"result"}, {"words"}, {"loader", "checkpoint"},
    {"dataset"}, {"format"}, {"store"},
    {"metric", "workload"}, {"http"}, {"conf", "comm", "codec"}, {"os"}, {"base"}, {"recorder"},
]
RANK = {name: i for i, group in enumerate(LAYERS) for name in group}
LINES_MANY = 1000  # a warning
COLUMNS_MAX = 100
BANNED = re.compile(r"\b(strcpy|strcat|sprintf|vsprintf|strtok|gets|atoi|atol|atof|system|popen|alloca|rand|srand|"
                    r"gmtime|localtime|asctime|ctime)\s*\(")
# alloc.c: see its header; child.c: between fork and exec; signals.c: the third request
MAY_EXIT = ("src/base/alloc.c", "src/os/child.c", "src/os/signals.c")
# what people read is escaped on its way out, in one place; alloc.c: when there is no memory for that
MAY_PRINT = ("src/base/say.c", "src/base/alloc.c")
PRINTS = re.compile(r"\b(v?printf|v?dprintf|v?fprintf|f?puts|f?putc|putchar)\s*\(|\bfwrite\s*\([^;]*\bstd(out|err)\b")
# Named files are opened by base/file.h and base/file_out.h, which wait for nothing and follow nothing that others have
# prepared. Files of datasets are their store's.
OPENS = re.compile(r"(?<![\w.>])(fopen|fopen64|freopen|open|open64|openat|openat64|creat|gzopen|mkstemp|mkostemp|"
                   r"json_load_file|json_dump_file)\s*\(")
MAY_OPEN = {
    "src/store/posix.c": "the stores' files",
    "src/trace/recording/record_folder.c": "a key that ranks share under a lock, rings that are cut",
    "src/trace/replay/replay.c": "the files of a job, as it opened them", "src/trace/replay/replay_image.c": "the same files",
    "src/run/finish.c": "a new mark, O_EXCL and O_NOFOLLOW",
    "src/cli/main.c": "/dev/null", "src/launch/shepherd.c": "/dev/null", "src/launch/hosts_agent.c": "/dev/null",
    "src/comm/net_connect.c": "a file of the kernel",
    **{f"src/metric/{name}.c": "files of the kernel" for name in (
        "block_device", "fs_client", "io_limit", "iostat", "memory_pressure", "net_io", "proc_io", "processors", "series",
        "standstill")},
}
# Sentences are made at the edge: none is cut, compared or searched.
PROSE = re.compile(r"\bstr(str|cmp|ncmp|casecmp|_starts|_ends)\s*\([^;]*(->|\.)(text|sentence|reason|why|advice|note)\b")
MAY_READ_PROSE = {
    "src/plan/point.c": "a cell of a table that a user gave", "src/conf/override.c": "an override, as it was typed",
    "src/study/design.c": "names of columns that a user gave",
    "src/readback/derive_log.c": "a line of DLIO's log",
    **dict.fromkeys(("src/workload/key.c", "src/study/forecast.c"), "an equal sentence is said once"),
    **dict.fromkeys(("src/readback/finding.c", "src/run/rank.c"), "a sentence that names the folder or rank already is not given it again"),
}
# What one person can carry on, with some room. Growth is a change of these figures, and a line in the commit's body that
# says what for.
SRC_LINES, SRC_FILES = 217200, 895
EXITS = re.compile(r"\b(exit|_exit|abort)\s*\(")


def without_comments(text):
    """The same lines with comments and the insides of strings blanked out."""
    token = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.S)
    return token.sub(lambda m: '""' if m.group(0)[0] == '"' else "\n" * m.group(0).count("\n"), text)


def check_file(path, problems, warnings):
    rel = path.relative_to(ROOT)
    text = path.read_text()
    lines = text.splitlines()
    layer = path.relative_to(SRC).parts[0]
    if layer not in RANK:
        problems.append(f"{rel}: src/{layer} is not a layer of the design")
        return
    if len(lines) > LINES_MANY:
        warnings.append(f"{rel}: {len(lines)} lines: has it more than one purpose?")
    for number, (line, code) in enumerate(zip(lines, without_comments(text).split("\n")), 1):
        where = f"{rel}:{number}"
        if len(line.expandtabs(8)) > COLUMNS_MAX:
            problems.append(f"{where}: longer than {COLUMNS_MAX} columns")
        if line != line.rstrip():
            problems.append(f"{where}: trailing blank")
        if layer == "recorder":
            continue  # it defines libc's own functions, calls the kernel directly, and has no other layer to use
        if BANNED.search(code):
            problems.append(f"{where}: banned call: {BANNED.search(code).group(1)}")
        if layer not in ("cli", "launch") and EXITS.search(code) and rel.as_posix() not in MAY_EXIT:
            problems.append(f"{where}: only cli/ and launch/ end a process")
        if PROSE.search(code) and rel.as_posix() not in MAY_READ_PROSE:
            problems.append(f"{where}: reads a sentence of the program: a fact is an enum or a number (words/words.h)")
        if PRINTS.search(code) and rel.as_posix() not in MAY_PRINT:
            problems.append(f"{where}: prints without say() of base/say.h")
        if layer not in ("base", "os") and OPENS.search(code) and rel.as_posix() not in MAY_OPEN:
            problems.append(f"{where}: {OPENS.search(code).group(1)}: named files are opened by base/file.h or file_out.h")
        found = re.match(r'#include "([a-z0-9_]+)/', line)
        if not found:
            continue
        other = found.group(1)
        if other not in RANK:
            problems.append(f"{where}: includes an unknown layer '{other}'")
        elif other != layer and RANK[other] <= RANK[layer]:
            problems.append(f"{where}: {layer}/ may not include {other}/")
    # a table of macro rows is included several times
    if path.suffix == ".h" and "#pragma once" not in text and not path.name.endswith("_table.h"):
        problems.append(f"{rel}: no #pragma once")


# a declaration at the left margin of a header
DECLARED = re.compile(r"^(?!static\b|typedef\b|return\b)[A-Za-z_][\w \t*]*?\b([a-z_]\w*)\((?:[^;{}])*\)[^;{}]*;", re.M)
WORD = re.compile(r"[A-Za-z_]\w*")


# What only tests can call, as src/ has no use for it.
FOR_TESTS = {
    "jpeg_reader_beyond": "what libjpeg allocated by itself", "fact_first": "a fact among those that were given",
    "audit_run": "one result, for the fuzzer", "records_load": "one result, for the fuzzer",
    "fleet_memory": "the bound against what is allocated",
}


# Files that are no result.json and have keys of the same names.
OTHER_FILES = {
    "cli/cmd_calibrate.c": "what the framework's own code costs, as the helper in Python prints it",
    "dataset/manifest.c": "the manifest of a dataset",
    "page/job_page.c": "the page's own data",
    "page/page.c": "the plan's data",
    "page/run_data.c": "capacity.json", "readback/curves.c": "capacity.json",
    "readback/record.c": "N_output.json and N_per_epoch_stats.json of DLIO, study_run.json",
    "study/beside.c": "the progress of a run", "study/capacity_known.c": "capacity.json", "study/search_folder.c": "capacity.json", "study/repeat.c": "repeat.json", "study/truth_table.c": "truth_table.json", "study/runner.c": "study_run.json", "study/samples.c": "study_run.json",
    "study/state.c": "study.json",
}
FIGURE_ROW = re.compile(r'^(?:FIGURE|SHOWN|TOLD|ONE|MANY|NAMED|PARTS)\(\w+, \w+, "([^"]+)"', re.M)
ASKS_JSON = re.compile(r"\bjson_(?:object_get|unpack\w*)\s*\(([^;{]*)")


def check_result_keys(problems):
    """A key of result.json is named in its row alone: figure() and part() of result/fields.h read it."""
    keys = set(FIGURE_ROW.findall((SRC / "result/fields_table.h").read_text()))
    used = set()
    for path in sorted(SRC.rglob("*.[ch]")):
        name = path.relative_to(SRC).as_posix()
        if name.startswith("result/"):
            continue
        for call in ASKS_JSON.finditer(path.read_text()):
            for key in set(re.findall(r'"([^"]+)"', call.group(1))) & keys:
                if name in OTHER_FILES:
                    used.add(name)
                else:
                    problems.append(f"src/{name}: asks for '{key}' of result.json: use its row (result/fields.h)")
    for name in sorted(set(OTHER_FILES) - used):
        problems.append(f"tools/check_tree.py: src/{name} needs no exception")


def check_callers(problems):
    """An exported function has a caller in src/; if that is its own file alone, a test needs it."""
    texts = {path: without_comments(path.read_text()) for path in sorted(SRC.rglob("*.*")) if path.suffix in (".c", ".h", ".def")}
    tests = {word for path in (ROOT / "tests").rglob("*.[ch]") for word in WORD.findall(path.read_text())}
    used = collections.defaultdict(collections.Counter)
    for path, text in texts.items():
        for word in WORD.findall(text):
            used[word][path] += 1
    for header in (path for path in texts if path.suffix == ".h"):
        for name in DECLARED.findall(texts[header]):
            others = set(used[name]) - {header}
            if len(others) != 1 or used[name][header] > 1:
                continue  # its own file and another one; inline code calls it; a macro's
            home = others.pop()
            if name in FOR_TESTS or home.suffix != ".c":
                continue
            if used[name][home] == 1:
                problems.append(f"{header.relative_to(ROOT)}: {name} has no caller in src/: it goes")
            elif tests and name not in tests:
                problems.append(f"{header.relative_to(ROOT)}: {name} has no caller outside its own file: it is static")


def check_headers(problems):
    headers = sorted(SRC.rglob("*.h"))
    with tempfile.TemporaryDirectory() as tmp:
        unit = pathlib.Path(tmp, "header.c")
        for header in headers:
            unit.write_text(f'#include "{header.relative_to(SRC)}"\n')
            done = subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
                                   "-fsyntax-only", f"-I{SRC}", str(unit)], capture_output=True, text=True)
            if done.returncode:
                problems.append(f"{header.relative_to(ROOT)}: does not compile alone:\n{done.stderr}")


def main():
    problems, warnings = [], []
    names = {}
    for path in sorted(SRC.rglob("*.[ch]")):
        check_file(path, problems, warnings)
        if path.name in names and path.suffix == ".c":
            problems.append(f"{path.relative_to(ROOT)}: the name is taken by {names[path.name]}")
        names[path.name] = path.relative_to(ROOT)
    sizes = [len(path.read_text().splitlines()) for path in SRC.rglob("*.[ch]")]
    if "--no-size" not in sys.argv and (sum(sizes) > SRC_LINES or len(sizes) > SRC_FILES):
        problems.append(f"src/ has {sum(sizes)} lines in {len(sizes)} files, more than {SRC_LINES} in {SRC_FILES}: say in the "
                        "commit's body what for, and raise SRC_LINES or SRC_FILES in tools/check_tree.py")
    backend_names.check(SRC, ROOT / "CMakeLists.txt", problems)
    check_result_keys(problems)
    check_callers(problems)
    if "--no-headers" not in sys.argv:
        check_headers(problems)
    for line in [f"warning: {warning}" for warning in warnings] + problems:
        print(line)
    print(f"{len(names)} files checked, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

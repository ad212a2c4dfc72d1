"""Nothing outside a backend's own files compares its name: what is true of a backend is a column of its row.

The names and files are those of the backend() lines in CMakeLists.txt. A backend's own files are its file, those of
the same folder whose names begin with that file's, and, where the file is in a folder of its own below the layer's, all
of that folder.
"""
import bisect
import re

KINDS_OF_DATA = {"STORE", "FORMAT", "LOADER", "CHECKPOINT"}
# Of the other kinds (SINK, VERDICT, COMMAND), and of these, the names are also ordinary words ("run", "bytes", "json"):
# only comparisons are looked at, not every text.
WORDS = {"memory"}
COMPARES = re.compile(r"\b(str(?:n?(?:case)?cmp|(?:case)?str|_starts|_ends|_equal|_nearest)|memcmp|"
                      r"(?:store|format|loader|checkpoint_format|command)(?:_facts)?_find)\s*\(")
LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"')

# Texts that are a backend's name by chance, or do not compare it: (file, text, why).
ALLOWED = [
    ("src/workload/tables.c", "posix", "the default of storage.store, and a value of reader.file_access"),
    ("src/workload/tables.c", "s3", "a value of storage.storage_type"),
    ("src/workload/feature.c", "s3", "a value of storage.storage_type"),
    ("src/workload/derive.c", "s3", "a value of DLIO_STORAGE_TYPE"),
    ("src/workload/tables.c", "drop_behind", "a value of storage.page_cache"),
    ("src/workload/tables.c", "pytorch", "a value of framework"),
    ("src/workload/tables.c", "tensorflow", "a value of framework"),
    ("src/workload/tables.c", "tfrecord", "the default of dataset.format"),
    ("src/workload/derive.c", "direct", "in an error of a build without such a store"),
    ("src/store/io_uring.c", "direct", "an option of the store"),
    ("src/checkpoint/distcp.c", "torch", "a module of Python"),
    ("src/checkpoint/pickle.c", "torch", "a module of Python"),
    ("src/cli/cmd_verify.c", "posix", "a folder of files is opened with that store"),
    ("src/study/plots.c", "png", "a terminal of gnuplot"),
    ("src/workload/load.c", "hydra", "the section of Hydra in a configuration"),
    ("src/workload/compose.c", "hydra", "the section of Hydra in a configuration"),
    ("src/readback/audit_keys.c", "hydra", "the section of Hydra in a configuration"),
    ("src/cli/cmd_study.c", "report", "a verb of study"),
]


def backends(cmake):
    """(kind, name, file) of the backend() lines."""
    return re.findall(r"^\s*backend\((\w+)\s+(\w+)\s+(\S+)\)", cmake.read_text(), re.M)


def is_own(rel, file):
    folder, _, base = file.rpartition("/")
    stem = base.rpartition(".")[0]
    here, _, name = rel.rpartition("/")
    return rel == file or here == folder and (
        folder.count("/") > 1 or re.match(rf"{re.escape(stem)}(_\w+)?\.[ch]$", name) is not None)


def arguments(text, at):
    """What stands in the parentheses that open before `at`."""
    depth, end = 1, at
    while depth and end < len(text):
        token = LITERAL.match(text, end)
        depth += (text[end] == "(") - (text[end] == ")")
        end = token.end() if token else end + 1
    return text[at:end]


def without_comments(text):
    token = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.S)
    return token.sub(lambda m: m.group(0) if m.group(0)[0] == '"' else re.sub(r"[^\n]", " ", m.group(0)), text)


def check(src, cmake, problems):
    """Adds a sentence for each comparison of a backend's name in a file that is not its own."""
    files = {}
    kinds = {}
    for kind, name, file in backends(cmake):
        files.setdefault(name, []).append(file)
        kinds.setdefault(name, set()).add(kind)
    data = {name for name in kinds if kinds[name] & KINDS_OF_DATA} - WORDS
    symbols = {f"{kind.lower()}_{name}": name for name in kinds for kind in kinds[name]}
    allowed = {(file, text): False for file, text, _ in ALLOWED}
    for path in sorted(src.rglob("*.[ch]")):
        rel = path.relative_to(src.parent).as_posix()
        text = without_comments(path.read_text())
        starts = [m.start() for m in re.finditer(r"^", text, re.M)]
        found = [(m.start(), m.group(1)) for m in LITERAL.finditer(text) if m.group(1).strip("+") in data]
        for call in COMPARES.finditer(text):
            found += [(call.end(), m.group(1)) for m in LITERAL.finditer(arguments(text, call.end()))
                      if m.group(1) in kinds]
        found += [(m.start(), symbols[m.group(1)]) for m in re.finditer(r"&(\w+)", text) if m.group(1) in symbols]
        lines = {(bisect.bisect_right(starts, at), name) for at, name in found}
        for line, name in sorted(lines):
            if any(is_own(rel, file) for file in files[name.strip("+")]):
                continue
            if (rel, name) in allowed:
                allowed[(rel, name)] = True
                continue
            problems.append(f"{rel}:{line}: names the backend '{name}': what is true of it "
                            f"is a column of its row ({', '.join(files[name.strip('+')])})")
    for (file, name), used in allowed.items():
        if not used and (src.parent / file).exists():
            problems.append(f"tools/backend_names.py: '{name}' in {file} is allowed, but not there")

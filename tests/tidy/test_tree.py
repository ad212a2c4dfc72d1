"""The layer rule and the other properties of the tree, and that the check can fail."""
# tier: long
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["STOKER_SOURCE"])


def run(root, *options):
    return subprocess.run([sys.executable, root / "tools/check_tree.py", *options], capture_output=True, text=True)


done = run(SOURCE)
print(done.stdout)
assert done.returncode == 0, "the tree breaks its own rules"

with tempfile.TemporaryDirectory() as tmp:
    copy = pathlib.Path(tmp, "tree")
    shutil.copytree(SOURCE / "src", copy / "src")
    shutil.copytree(SOURCE / "tools", copy / "tools")
    shutil.copytree(SOURCE / "tests", copy / "tests", ignore=shutil.ignore_patterns("data", "corpus", "*.py"))
    shutil.copy(SOURCE / "CMakeLists.txt", copy)
    planted = copy / "src/base/err.c"
    planted.write_text('#include "run/run.h"\n' + planted.read_text())
    assert "base/ may not include run/" in run(copy, "--no-headers").stdout, "a planted layer break was not found"
    planted = copy / "src/judge/planted_open.c"
    planted.write_text('FILE *f = fopen(path, "r");\nint fd = s->ops->open(path);\n/* open(2) */\n')
    said = run(copy, "--no-headers").stdout
    assert "planted_open.c:1: fopen: named files" in said and "planted_open.c:2" not in said, said
    assert "planted_open.c:3" not in said, said
    planted.unlink()
    planted = copy / "src/judge/planted_prose.c"
    planted.write_text('if (strstr(v->text, "storage"))\n' + "\n" * 200000)
    said = run(copy, "--no-headers").stdout
    assert "planted_prose.c:1: reads a sentence of the program" in said and "say in the commit's body what for" in said, said
    planted.unlink()
    planted = copy / "src/base/str.h"
    planted.write_text(planted.read_text() + "int planted_dead(int n);\nint planted_own(int n);\nint planted_used(int n);\n")
    planted = copy / "src/base/str.c"
    planted.write_text(planted.read_text() + "int planted_dead(int n)\n{\n}\nint planted_own(int n)\n{\n}\n"
                       "int planted_used(int n)\n{\n\treturn planted_own(n);\n}\n")
    planted = copy / "src/base/clock.c"
    planted.write_text(planted.read_text() + "static int planted(void)\n{\n\treturn planted_used(1);\n}\n")
    said = run(copy, "--no-headers").stdout
    assert "planted_dead has no caller in src/" in said and "planted_own has no caller outside its own file" in said, said
    assert "planted_used" not in said, said
    for number, code in enumerate(('if (strcmp(name, "mmap") == 0)', 'strstr(w->storage.store, "memory")',
                                   'static const char *const known[] = {"npz"};', 'l->ops == &loader_dali',
                                   'str_starts(key, "json")', '"drop_behind+%s"')):
        planted = copy / f"src/judge/planted_{number}.c"
        planted.write_text(code + "\n")
        said = run(copy, "--no-headers").stdout
        assert (f"{planted.relative_to(copy)}:1: names the backend" in said) == (number < 5), (code, said)

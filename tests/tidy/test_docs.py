"""The generated documentation is what the program writes today (make docs renews it), and the documents
name no path of a machine."""
import os
import pathlib
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SOURCE, stoker  # noqa: E402

# a build without liburing lacks a store, and so do its words
complete = re.search(r"^io_uring ", stoker("show", "stores").stdout, re.M)
for what, name in ((["config", "--markdown"], "config.md"), (["config", "--man"], "stoker.1"), (["result"], "result.md")):
    now = stoker("show", *what).stdout
    assert not complete or now == (SOURCE / "docs" / name).read_text(), f"docs/{name} is stale: make docs"

for path in [*SOURCE.glob("*.md"), *SOURCE.glob("docs/*.md"), *SOURCE.glob("docs/*.1"), *SOURCE.glob("src/**/*.[ch]")]:
    found = re.search(r"(?<![\w.])/(?:root|home|work)/\S*", path.read_text())
    assert not found, f"{path}: {found.group(0)}"

rows = (SOURCE / "docs/compatibility.md").read_text()
assert [int(n) for n in re.findall(r"^\| Q(\d+) \|", rows, re.M)] == list(range(1, 92)), "a defect has no row"

section = (SOURCE / "docs/verdicts.md").read_text().split("\n## Verdicts\n")[1].split("\n## ")[0]
described = re.findall(r"^\*\*([a-z-]+)\*\*:", section, re.M)
listed = [line.split()[0] for line in stoker("show", "verdicts").stdout.splitlines() if line[0] != " "]
assert sorted(described) == sorted(listed), f"docs/verdicts.md describes {described}, the program has {listed}"

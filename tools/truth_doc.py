#!/usr/bin/env python3
"""Writes docs/truth.md: every situation the tests plant, and what Stoker says of it.

    truth_doc.py BUILD           rows of the tests that ran last with STOKER_TRUTH=BUILD/check/truth replace their old rows
    truth_doc.py BUILD --check   says what differs; the sentences are not compared, because their figures vary

The rows come from told() of tests/truth/told.py. tools/check.py sets STOKER_TRUTH and checks the document after the
tests. Rows that were not reported stay as they are, unless tools/check.py has seen that all cases of their script ran.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "truth.md"
FLOOR = 500                    # rows; what removes situations lowers this figure, visibly
INTRODUCTION = """\
# What Stoker says

Stoker claims to name what limits a training run, and to notice when a number does not mean what it seems to mean. This
page shows how that claim is tested. Each row is one situation that a test creates on purpose: a store of known speed, a
page cache filled beforehand, a processor taken away, a file with a hole in it. The right-hand column is the answer of
the program, word for word.

`make check-all` runs all of them and fails if an answer is wrong. It also fails if a row here was not run, or is
missing. The figures in the answers are those of one run on a virtual machine with two processors; they differ each
time. The page is written by the tests: `tools/truth_doc.py`. What the words mean is in `docs/metrics.md`.
"""


def cell(text):
    return text.replace("\\", "\\\\").replace("|", "\\|")


def text_of(cell_text):
    return re.sub(r"\\(.)", r"\1", cell_text.strip())


def documented():
    """{(script, group, situation): said} of the document; of a merge that left two of a row, the later one."""
    rows, group, script = {}, None, None
    for line in DOCUMENT.read_text().splitlines() if DOCUMENT.exists() else []:
        if line.startswith("## "):
            group, script = line[3:], None
        elif line.startswith("From `"):
            script = line.split("`")[1]
        elif script and line.startswith("| ") and line != "| situation | what Stoker says |":
            cells = re.split(r"(?<!\\)\|", line)
            if len(cells) == 4:
                rows[script, group, text_of(cells[1])] = text_of(cells[2])
    return rows


def rows_file(folder, script):
    """Where told() puts the rows of a script; a script that starts empties it."""
    path = pathlib.Path(script)
    return folder / f"{path.parent.name}.{path.stem}.jsonl"


def mark_whole(folder, script):
    """Of a script that has passed: none of its cases was left out, so there are no other rows than those reported."""
    with open(rows_file(folder, script), "a") as f:
        f.write(json.dumps(dict(script=script, whole=True)) + "\n")


def reported(folder):
    """({(script, group, situation): said}, the scripts all of whose cases ran)."""
    rows, whole = {}, set()
    for path in sorted(folder.glob("*.jsonl")):
        for row in map(json.loads, path.read_text().splitlines()):
            if "whole" in row:
                whole.add(row["script"])
            else:
                rows[row["script"], row["group"], row["situation"]] = row["said"]
    return rows, whole


def merged(folder):
    """The rows the document should have: reported ones, and old ones of what did not run."""
    new, whole = reported(folder)
    kept = {k: said for k, said in documented().items()
            if k not in new and k[0] not in whole and (ROOT / k[0]).exists()}
    return {**new, **kept}


def write(rows):
    out = [INTRODUCTION]
    for group in sorted({g for _, g, _ in rows}):
        out.append(f"## {group}\n")
        for script in sorted({s for s, g, _ in rows if g == group}):
            out.append(f"From `{script}`:\n\n| situation | what Stoker says |\n|---|---|")
            out += [f"| {cell(situation)} | {cell(rows[s, g, situation])} |"
                    for s, g, situation in rows if (s, g) == (script, group)]
            out.append("")
    DOCUMENT.write_text("\n".join(out))


def problems(folder):
    """What is wrong with the document, in sentences."""
    have = documented()
    new, whole = reported(folder)
    found = [f"docs/truth.md lacks a row of {s}: {g}: {situation}" for s, g, situation in new if (s, g, situation) not in have]
    found += [f"docs/truth.md has a row that {s} did not report: {g}: {situation}" for s, g, situation in have
              if (s in whole and (s, g, situation) not in new) or not (ROOT / s).exists()]
    if len(have) < FLOOR:
        found.append(f"docs/truth.md has {len(have)} rows; at least {FLOOR} are expected")
    return found


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1], "check", "truth")
    if "--check" not in sys.argv:
        write(merged(folder))
        print(f"docs/truth.md: {len(documented())} rows")
        return 0
    found = problems(folder)
    for line in found:
        print(line)
    if found:
        print(f"write it anew: python3 tools/truth_doc.py {sys.argv[1]}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

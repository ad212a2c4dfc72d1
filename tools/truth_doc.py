#!/usr/bin/env python3
"""Keeps tests/situations.md, the list of every situation that the tests plant, and writes what Stoker says of each.

    truth_doc.py BUILD           rows of the tests that ran last with STOKER_TRUTH=BUILD/check/truth replace their old rows;
                                 BUILD/check/answers.md has them with the answers
    truth_doc.py BUILD --check   says what differs

The rows come from told() of tests/truth/told.py. tools/check.py sets STOKER_TRUTH, checks the list after the tests, and
writes the answers. Rows that were not reported stay as they are, unless tools/check.py has seen that all cases of their
script ran.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "tests" / "situations.md"
FLOOR = 500                    # rows; what removes situations lowers this figure, visibly
INTRODUCTION = """\
# What the tests plant

Stoker claims to name what limits a training run, and to notice when a number does not mean what it seems to mean. Each
row is a situation that a test creates on purpose: a store of known speed, a page cache filled beforehand, a processor
taken away, a file with a hole in it. `make check-all` runs all of them, fails if an answer is wrong, and writes the
answers, word for word, to `build/check/answers.md`. It also fails if a row here was not run, or is missing.
`tools/truth_doc.py` writes this page.
"""
ANSWERS = """\
# What Stoker says

The answers of the program to the situations that the tests plant, as of the last run of the tests.
"""


def cell(text):
    return text.replace("\\", "\\\\").replace("|", "\\|")


def documented():
    """The rows of the document, (script, group, situation), each once and in order."""
    rows, group, script = {}, None, None
    for line in DOCUMENT.read_text().splitlines() if DOCUMENT.exists() else []:
        if line.startswith("## "):
            group, script = line[3:], None
        elif line.startswith("From `"):
            script = line.split("`")[1]
        elif script and line.startswith("* "):
            rows[script, group, line[2:].strip()] = None
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
    return [*new, *(k for k in documented() if k not in new and k[0] not in whole and (ROOT / k[0]).exists())]


def by_group(rows):
    """(group, script, its situations), in the order of the document."""
    for group in sorted({g for _, g, _ in rows}):
        for script in sorted({s for s, g, _ in rows if g == group}):
            yield group, script, [situation for s, g, situation in rows if (s, g) == (script, group)]


def write(rows):
    out, heading = [INTRODUCTION], None
    for group, script, situations in by_group(rows):
        out += [f"## {group}\n"] * (group != heading) + [f"From `{script}`:\n"] + [f"* {s}" for s in situations] + [""]
        heading = group
    DOCUMENT.write_text("\n".join(out))


def write_answers(folder):
    """BUILD/check/answers.md: the rows that were reported, with what the program said."""
    rows, out = reported(folder)[0], [ANSWERS]
    for group, script, situations in by_group(rows):
        out.append(f"## {group}\n\nFrom `{script}`:\n\n| situation | what Stoker says |\n|---|---|")
        out += [f"| {cell(s)} | {cell(rows[script, group, s])} |" for s in situations]
        out.append("")
    (folder.parent / "answers.md").write_text("\n".join(out))


def problems(folder):
    """What is wrong with the document, in sentences."""
    have = documented()
    new, whole = reported(folder)
    found = [f"{DOCUMENT.name} lacks a row of {s}: {g}: {situation}" for s, g, situation in new if (s, g, situation) not in have]
    found += [f"{DOCUMENT.name} has a row that {s} did not report: {g}: {situation}" for s, g, situation in have
              if (s in whole and (s, g, situation) not in new) or not (ROOT / s).exists()]
    if len(have) < FLOOR:
        found.append(f"{DOCUMENT.name} has {len(have)} rows; at least {FLOOR} are expected")
    return found


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1], "check", "truth")
    if "--check" not in sys.argv:
        write(merged(folder))
        write_answers(folder)
        print(f"{DOCUMENT}: {len(documented())} rows")
        return 0
    found = problems(folder)
    for line in found:
        print(line)
    if found:
        print(f"write it anew: python3 tools/truth_doc.py {sys.argv[1]}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

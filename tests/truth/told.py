"""Reports planted situations with what the program said, for tests/situations.md (see tools/truth_doc.py)."""
import json
import os
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
SCRIPT = pathlib.Path(sys.argv[0]).resolve()
NAME = str(SCRIPT.relative_to(TESTS.parent)) if TESTS in SCRIPT.parents else SCRIPT.name
FOLDER = os.environ.get("STOKER_TRUTH", "")
# what differs from run to run and tells a reader nothing
TEMPORARY = re.compile(r"/\S*?/tmp[a-z0-9_]{8}\b")

if FOLDER:
    os.makedirs(FOLDER, exist_ok=True)
    # the name that tools/truth_doc.py looks for
    ROWS = os.path.join(FOLDER, f"{SCRIPT.parent.name}.{SCRIPT.stem}.jsonl")
    open(ROWS, "w").close()


def told(group, situation, said):
    """Reports that `said` (a sentence of the program: what limits it, a verdict, a finding) was its answer to
    `situation`, one short line that says what was planted, with its figures. `group` is the heading. Of rows with the
    same group and situation the last one counts. Does nothing without $STOKER_TRUTH."""
    if FOLDER:
        row = dict(script=NAME, group=group, situation=TEMPORARY.sub("…", situation),
                   said=TEMPORARY.sub("…", " ".join(said.split())))
        with open(ROWS, "a") as f:
            f.write(json.dumps(row) + "\n")


def verdict(result, check):
    """A verdict of a result.json as the program prints it: "WARN cache: 90 % of ..."."""
    words = {"pass": "ok", "warn": "WARN", "fail": "FAIL", "unknown": "?"}
    found = [v for v in result["verdicts"] if v["check"] == check]
    return "; ".join(f"{words[v['level']]} {v['check']}: {v['text']}" for v in found) or f"no verdict `{check}`"

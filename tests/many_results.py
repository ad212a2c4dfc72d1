"""Results by the thousand: copies of a few real ones, each a run of its own. Times, ids, waits and the value of one
override differ, and every digest is made again, so that an audit finds in a copy what it finds in its original.

python3 tests/many_results.py FOLDER COUNT [VALUES]     writes COUNT results; VALUES: different overrides (default: 1)
"""
import datetime
import hashlib
import json
import os
import pathlib
import re
import sys

sys.path.insert(0, os.path.dirname(__file__))
from measures_file import Measures  # noqa: E402
from util import stoker, tiny  # noqa: E402

# the value of `varied` in the originals; no other number of theirs
varied, VALUE = "reader.transfer_size", 918273645
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
FORM = "%Y-%m-%dT%H:%M:%S"
LIST = re.compile(r'"load": \{[^{}]*\}')
NUMBER = re.compile(r"\d+\.\d+(?:e-?\d+)?|\d+e-\d+|\d+\.\d+")
FILES = ("result.json", ".hydra/config.yaml", ".hydra/hydra.yaml", ".hydra/overrides.yaml")


def originals(folder, count=3):
    """A few small runs of one and two accelerators, one with another batch size: a list of folders."""
    out = []
    for i in range(count):
        one = pathlib.Path(folder, f"original{i}")
        keys = {"reader__batch_size": 4} if i == 2 else {}
        stoker("run", "-n", 1 + i % 2, *tiny(pathlib.Path(folder, f"data{i}"), one, files=32, **keys), f"{varied}={VALUE}")
        out.append(one)
    return out


class Original:
    """The files of a result, ready to be written again as another run."""

    def __init__(self, folder):
        self.files = {}
        for root, _, names in os.walk(folder):
            for name in names:
                path = pathlib.Path(root, name)
                if name == "measures.bin":
                    self.measures = Measures(path.read_bytes())
                else:
                    self.files[str(path.relative_to(folder))] = path.read_text()
        self.run_id = json.loads(self.files["result.json"])["run_id"]
        self.sealed = json.loads(self.files["result.json"])["integrity"]["files"]

    def write(self, folder, number, value):
        """As run `number`: that many seconds later, its waits a little different, its override `value`."""
        later = datetime.timedelta(seconds=2 * number)

        def stamp(m):
            return (datetime.datetime.strptime(m.group(), FORM) + later).strftime(FORM)

        def waits(m):
            # below what an audit takes for rounding
            return NUMBER.sub(lambda x: repr(float(x.group()) * (1 + number * 3e-15)), m.group())

        text = {}
        for name, was in self.files.items():
            t = STAMP.sub(stamp, was) if name != ".hydra/hydra.yaml" else was
            t = t.replace(str(VALUE), str(value))
            if name.endswith("_output.json"):
                t = LIST.sub(waits, t)
            text[name] = t
        run_id = f"{number:08x}{self.run_id[8:]}"
        result = text["result.json"].replace(self.run_id, run_id)
        binary = {"measures.bin": self.measures.later(2 * number, self.run_id, run_id)}
        for name, was in self.sealed.items():
            data = binary[name] if name in binary else text[name].encode()
            result = result.replace(was["sha256"], hashlib.sha256(data).hexdigest())
            assert len(data) == was["bytes"] or re.search(rf'"bytes": ?{was["bytes"]}\b', result)
            result = re.sub(rf'("{re.escape(name)}": ?{{\s*"bytes": ?)\d+', rf"\g<1>{len(data)}", result)
        at = [m.end() for m in re.finditer('"result_json_sha256": ?"', result)][-1]
        bare = result[:at] + result[at + 64:]
        text["result.json"] = bare[:at] + hashlib.sha256(bare.encode()).hexdigest() + bare[at:]
        os.makedirs(pathlib.Path(folder, ".hydra"))
        for name, t in text.items():
            pathlib.Path(folder, name).write_text(t)
        for name, data in binary.items():
            pathlib.Path(folder, name).write_bytes(data)


def make(folder, count, of, values=1, first=1):
    """Writes results first, first + 1, ... into folders of their own below `folder`."""
    of = [o if isinstance(o, Original) else Original(o) for o in of]
    for i in range(first, first + count):
        of[i % len(of)].write(pathlib.Path(folder, f"{i:06d}"), i, 100000 + i // len(of) % values)


if __name__ == "__main__":
    where, n = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    where.mkdir(parents=True)
    make(where / "results", n, originals(where / "from"), int(sys.argv[3]) if len(sys.argv) > 3 else 1)

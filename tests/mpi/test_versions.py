"""What the processes of one run must agree on is checked when they meet: another build of the program is refused by a
sentence with both versions and hosts, and a workload that differs by one that names the first key that differs. Real
processes: the other build is a copy of the program with another version in it, and one from before versions had a
digest."""
# beside others
# mostly waits
import os
import pathlib
import re
import socket
import sys
import tempfile

from launchers import LIBRARIES, STOKER, mpirun, need_mpi, run, sentences, stoker, tiny

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "truth"))
try:
    from told import told
except ImportError:
    def told(*_):
        pass

need_mpi()
HOST = socket.gethostname()
VERSION = stoker("--version").stdout.split()[1]


def other_build(folder, version):
    """The program as it would be with another version: the text in it has the same length."""
    folder.mkdir()
    program = folder / "stoker"
    whole = pathlib.Path(STOKER).read_bytes()
    assert whole.count(VERSION.encode() + b"\0") == 1, "the version is in the program once"
    program.write_bytes(whole.replace(VERSION.encode() + b"\0", version.encode().ljust(len(VERSION), b"\0") + b"\0"))
    program.chmod(0o755)
    return program


def together(library, processes):
    """mpirun of several programs: [(how many, program, arguments)]."""
    line = mpirun(library, 0)
    line = line[:line.index("-np")]
    for i, (n, program, arguments) in enumerate(processes):
        line += [*([":"] if i else []), "-np", n, program, "run", *arguments]
    return run(line, status=None)


with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
    tmp = pathlib.Path(tmp)
    last = VERSION[:-1] + ("0" if VERSION[-1] != "0" else "1")
    cases = [("one digit of the digest differs", other_build(tmp / "digit", last), last),
             ("a version without a digest", other_build(tmp / "old", "0.1.0"), "0.1.0")]
    keys = dict(files=16, reader__batch_size=1, train__epochs=1)
    mine = tiny(tmp / "data", tmp / "out", **keys)
    for name, program, version in cases:
        for library in LIBRARIES:
            for order in (0, 1):
                pair = [(1, os.path.abspath(STOKER), mine), (1, program, mine)]
                done = together(library, pair[::-1] if order else pair)
                said = sentences(done.stderr)
                assert done.returncode == 2 and len(said) == 1, (name, library, order, done.returncode, done.stderr)
                assert VERSION in said[0] and re.search(rf"version {re.escape(version)}\b", said[0]), said
                assert said[0].count(f"'{HOST}'") == 2 and "same build" in said[0], said
                assert not (tmp / "out" / "summary.json").exists(), "a run of two builds left a result"
        told("versions", f"process {1 - order} of 2 is another build: {name}", said[0])
    # three of four are right
    done = together(LIBRARIES[0], [(3, os.path.abspath(STOKER), mine), (1, cases[0][1], mine)])
    said = sentences(done.stderr)
    assert done.returncode == 2 and len(said) == 1 and last in said[0], done.stderr
    told("versions", "the last of 4 processes is another build", said[0])

    # one key differs: its name and both values; the order of keys and how a number is written do not count
    def differing(library, first, second):
        base = [a for a in tiny(tmp / "data2", tmp / "out2", **keys)]
        return together(library, [(1, os.path.abspath(STOKER), [*base, *first]), (1, os.path.abspath(STOKER), [*base, *second])])

    for first, second, words in (
            (["reader.read_threads=3"], ["reader.read_threads=5"], ["reader.read_threads is 5 in process 1", "and 3 in process 0"]),
            (["train.seed=7"], [], ["train.seed is not set in process 1", "and 7 in process 0"]),
            ([], ["storage.page_cache=cold"], ["storage.page_cache is cold in process 1", "not set in process 0"]),
            (["dataset.record_length_bytes=8192"], ["dataset.record_length_bytes=8193", "reader.read_threads=7"],
             ["dataset.record_length_bytes is 8193 in process 1", "and 8192 in process 0"])):
        done = differing(LIBRARIES[-1], first, second)
        said = sentences(done.stderr)
        assert done.returncode == 2 and len(said) == 1, (first, second, done.returncode, done.stderr)
        assert all(w in said[0] for w in words), (words, said)
        told("versions", f"process 0 has {' '.join(first) or 'no such key'}, process 1 {' '.join(second) or 'no such key'}", said[0])
    done = differing(LIBRARIES[0], ["reader.read_threads=2", "train.epochs=1"], ["train.epochs=1", "reader.read_threads=2"])
    assert done.returncode == 0, done.stderr

"""A job of two ranks is one recording, whether the recorder starts the launcher or the launcher the recorder."""
# beside others
import os
import pathlib
import subprocess
import tempfile

from launchers import ENV, LIBRARIES, STOKER, need_mpi, run

need_mpi()

TOOLS = pathlib.Path(os.environ["STOKER_TOOLS"])
READS = 500


def lines(folder):
    found = subprocess.run([TOOLS / "job_events", folder], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split(" ") for line in found]


def check(folder, shown):
    """Both ranks, their reads of one file, and nothing of a key that is left."""
    events = lines(folder)
    ranks = {e[1]: e[3] for e in events if e[0] == "process" and e[3] != "-1"}
    assert sorted(ranks.values()) == ["0", "1"], events[-9:]
    reads = [e for e in events if e[:1] == ["event"] and e[2] == "read" and e[4] == "512" and e[1] in ranks]
    assert len(reads) == 2 * READS and len({e[6] for e in reads}) == 1, len(reads)
    assert (reads[0][6].endswith("/data")) == shown, reads[0]
    assert not [p for p in folder.iterdir() if p.name.startswith(".")], list(folder.iterdir())


def main():
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        (tmp / "data").write_bytes(bytes(65536))
        job = [TOOLS / "recorded", "loop", tmp / "data", READS]
        for library in LIBRARIES:
            launch = ["timeout", "-k", "5", "60", f"mpirun.{library}", *(["--oversubscribe"] if library == "openmpi" else []), "-np", "2"]
            for option in ([], ["--anonymize"]):
                name = f"{library}{len(option)}"
                record = [os.path.abspath(STOKER), "record", *option, "-o"]
                done = run([*launch, *record, tmp / f"{name}-in", "--", *job], env=ENV)
                assert done.stderr.count("recorded: 2 processes, 1 file") == 1, done.stderr
                check(tmp / f"{name}-in", not option)
                run([*record, tmp / f"{name}-out", "--", *launch, *job], env=ENV)
                check(tmp / f"{name}-out", not option)
            # the same folder again is another job
            done = run([*launch, *record, tmp / f"{name}-in", "--", *job], env=ENV, status=None)
            assert done.returncode != 0 and "holds the recording of another job" in done.stderr, done
    print(f"{len(LIBRARIES)} launchers")


if __name__ == "__main__":
    main()

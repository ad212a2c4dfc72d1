"""checkpoint.recovery_rank_shift over two hosts: each rank reads what the rank at its place on the other host wrote,
whether the launcher dealt the ranks out host by host or round and round."""
# beside others
# mostly waits
import json
import os
import pathlib
import re
import tempfile

from launchers import LIBRARIES, hosts, load, mpirun, need_hosts, need_mpi, on_hosts, run, tiny

need_mpi()
need_hosts()
RANKS = 4
KEYS = dict(workflow__train="false", workflow__generate_data="false", workflow__checkpoint="true",
            checkpoint__num_checkpoints_write=1, checkpoint__num_checkpoints_read=1,
            checkpoint__recovery_rank_shift="true", checkpoint__verify="true", run__trace="pfw",
            model__type="transformer", model__num_layers=2, model__transformer__hidden_size=64,
            model__transformer__ffn_hidden_size=128, model__transformer__vocab_size=500,
            model__parallelism__zero_stage=3)


def sources(out):
    """The rank in the names of the files that each rank opened within its restore."""
    found = []
    for rank in range(RANKS):
        events = [json.loads(line) for line in pathlib.Path(out, f"trace-{rank}-of-{RANKS}.pfw").read_text()
                  .splitlines()[1:-1]]
        files = {ev["args"]["value"]: ev["args"]["name"] for ev in events if ev["name"] == "FH"}
        restore = next(ev for ev in events if ev["name"] == "restart")
        read = {files[ev["args"]["fhash"]] for ev in events
                if ev["name"] == "pread64" and ev["ts"] >= restore["ts"]}
        ranks = {int(re.search(r"pp_rank_(\d+)_", name).group(1)) for name in read}
        assert len(ranks) == 1 and len(read) == 2, (rank, read)
        found.append(ranks.pop())
    return found


def round_and_round(library):
    """Options that deal ranks out to the hosts in turn."""
    options = on_hosts(library, 2, 2)
    if library == "openmpi":
        return [*options, "--map-by", "node"]
    return on_hosts(library, 2, 1)


with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
    os.chmod(tmp, 0o755)
    with hosts(2):
        for library in LIBRARIES:
            for name, options, node, expected in (
                    ("blocks", on_hosts(library, 2, 2), [0, 0, 1, 1], [2, 3, 0, 1]),
                    ("turns", round_and_round(library), [0, 1, 0, 1], [1, 0, 3, 2])):
                out, saved = f"{tmp}/{library}-{name}", f"{tmp}/{library}-{name}-saved"
                run([*mpirun(library, RANKS, *options),
                     *tiny(f"{tmp}/data", out, **KEYS, checkpoint__checkpoint_folder=saved)])
                where = {p["first_rank"]: h["hostname"] for h in load(out)["hosts"] for p in h["processes"]}
                assert [where[r] for r in range(RANKS)] == [f"node{n + 1}" for n in node], (library, name, where)
                assert sources(out) == expected, (library, name, sources(out))
print("shifted by a host under", ", ".join(LIBRARIES))

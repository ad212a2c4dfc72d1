"""Checkpoints of four ranks in one, two and four processes: the same names and sizes, alone and while training, with
the measures of all ranks in one result."""
# beside others
# mostly waits
import os
import pathlib
import tempfile

from launchers import LIBRARIES, STOKER, load, mpirun, need_mpi, run, tiny

from checkpoint_times import check_by_time

need_mpi()
RANKS = 4
MODEL = dict(model__type="transformer", model__num_layers=3, model__transformer__hidden_size=64,
             model__transformer__ffn_hidden_size=128, model__transformer__vocab_size=500,
             model__parallelism__zero_stage=3, workflow__checkpoint="true")
ALONE = dict(workflow__train="false", workflow__generate_data="false", checkpoint__num_checkpoints_write=3,
             checkpoint__num_checkpoints_read=2)
MIXED = dict(files=24, checkpoint__steps_between_checkpoints=2, checkpoint__rank_sync="true",
             checkpoint__keep_last=1, checkpoint__format="distcp")
BACKGROUND = dict(MIXED, checkpoint__async="true", checkpoint__rank_sync="false")


def files(folder):
    return {str(p.relative_to(folder)): p.stat().st_size for p in pathlib.Path(folder).rglob("*") if p.is_file()}


def facts(tmp, name, command, keys):
    out, saved = f"{tmp}/{name}-out", f"{tmp}/{name}-saved"
    run([*command, *tiny(f"{tmp}/data", out, **{**MODEL, **keys}, checkpoint__checkpoint_folder=saved), "-n", RANKS])
    c = load(out)["checkpoint"]
    for each in c["save"]["each"]:
        assert each["whole"] and each["duration_s"] >= each["duration_shortest_rank_s"] > 0, (name, each)
        assert each["process_write_bytes"] is not None, (name, each)
    log = pathlib.Path(out, "dlio.log").read_text()
    keys = [list(load(out, f"{rank}_per_epoch_stats.json")["1"]) for rank in range(RANKS)]
    return (files(saved), keys, c["total_bytes"], c["save"]["count"], c["load"]["count"],
            sum(x["file_bytes"] for x in c["save"]["each"]), c["save"]["io"]["write"]["returned_bytes"],
            log.count("Starting saving"), sorted(load(out, "summary.json")["metric"]))


with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
    for what, keys in (("alone", ALONE), ("mixed", MIXED), ("background", BACKGROUND)):
        expected = facts(tmp, what, [os.path.abspath(STOKER), "run"], keys)
        assert expected[0], expected
        for library in LIBRARIES:
            for processes in (1, 2, 4):
                name = f"{what}-{library}-{processes}"
                found = facts(tmp, name, mpirun(library, processes), keys)
                assert found == expected, (name, found, expected)
        print(f"   {what}: {len(expected[0])} files of {expected[2]} bytes of tensors, whatever the processes")

    # by process 0's clock, and all processes follow it
    for library in LIBRARIES:
        for asynchronous in ("false", "true"):
            out, saved = f"{tmp}/time-{library}-{asynchronous}", f"{tmp}/time-{library}-{asynchronous}-saved"
            run([*mpirun(library, 2), *tiny(f"{tmp}/data-time", out, files=96, **MODEL, train__computation_time=0.01,
                                            train__epochs=2, checkpoint__seconds_between_checkpoints=0.0625,
                                            checkpoint__async=asynchronous, checkpoint__checkpoint_folder=saved,
                                            run__trace="chrome"), "-n", RANKS])
            made = check_by_time(out, saved, RANKS, 0.0625, "trace-0.json")
            assert made >= 1, (library, asynchronous)
    print(f"   by time: {made} checkpoints after the same steps of all ranks")

"""Result folders that were changed after the run: figures, times, verdicts, files of another run. Each is tried as it is
left by an editor, when the digests tell, and with the digests of result.json written again, as who knows the format would:
then the figures must tell. Folders that nobody touched, of the same runs, have none of these findings."""
# beside others
# takes 80 s
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import forged  # noqa: E402
from measures_file import edited  # noqa: E402
from util import SOURCE, STOKER, left_out, stoker, tiny  # noqa: E402
from told import told  # noqa: E402

OURS = {"digest", "figures", "identity", "verdict"}
DLIO = SOURCE / "tests/data/dlio-output"
STUDY = SOURCE / "tests/data/seed-study/results"


def read(path):
    return json.loads(path.read_text())


def write(path, tree):
    path.write_text(json.dumps(tree, indent=4, ensure_ascii=False))


class Folder:
    """A copy of a result; json files are read when they are asked for and written by save()."""

    def __init__(self, at):
        self.at, self.trees = at, {}

    def __getitem__(self, name):
        name = {"result": "result.json", "summary": "summary.json"}.get(name, name)
        if name not in self.trees:
            self.trees[name] = read(self.at / name)
        return self.trees[name]

    def save(self):
        for name, tree in self.trees.items():
            write(self.at / name, tree)

    def text(self, name, pattern, new):
        text = (self.at / name).read_text()
        changed = re.sub(pattern, new, text, flags=re.M)
        assert changed != text, (name, pattern)
        (self.at / name).write_text(changed)

    def ranks(self):
        return range(int(self["summary"]["num_accelerators"]))

    def phases(self, what):
        """(map of a phase, its name) of all ranks and epochs, of one list of N_output.json."""
        for k in self.ranks():
            for epoch, tree in self[f"{k}_output.json"].items():
                if epoch.isdigit():
                    for name in tree[what]:
                        yield tree[what], name


def seal(folder):
    """Writes all digests of result.json again."""
    path = folder / "result.json"
    result = read(path)
    names = set(result["integrity"]["files"]) | {p.name for p in folder.glob("*_output.json")}
    names |= {p.name for p in folder.glob("*_per_epoch_stats.json")}
    result["integrity"]["files"] = {}
    for name in sorted(names):
        if (folder / name).exists():
            data = (folder / name).read_bytes()
            result["integrity"]["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    del result["integrity"]["result_json_sha256"]
    result["integrity"]["result_json_sha256"] = ""
    write(path, result)
    text = path.read_text()
    digest = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(text.replace('"result_json_sha256": ""', f'"result_json_sha256": "{digest}"'))


def scale(value, by):
    return [v * by for v in value] if isinstance(value, list) else value * by


def keys(tree, pattern, by):
    """Multiplies all numbers of a tree whose key matches."""
    for key, value in (tree.items() if isinstance(tree, dict) else enumerate(tree)):
        if isinstance(value, (dict, list)) and value and not (isinstance(value, list) and isinstance(key, str)
                                                             and re.fullmatch(pattern, key)):
            keys(value, pattern, by)
        elif isinstance(key, str) and re.fullmatch(pattern, key) and value is not None:
            tree[key] = scale(value, by)


# ---- tamperings: name, what is done with Folder f; other: the folder of another run of the same workload ----

def au_of_result(f, other):
    f["result"]["training"]["au_mean_percent"] *= 1.3


def au_of_result_whole(f, other):
    keys(f["result"]["training"], r"au_(mean|min|max|stdev)?_?percent", 1.3)
    keys(f["summary"]["metric"], r"train_au.*percentage", 1.3)


def au_of_one_rank(f, other):
    f["1_output.json"]["2"]["au"]["block1"] *= 1.2


def au_everywhere(f, other):
    au_of_result_whole(f, other)
    for tree, name in f.phases("au"):
        tree[name] *= 1.3 if name != "eval" else 1
    f.save()
    for line in (r"(Training Accelerator Utilization \[AU\] \(%\): )([0-9.]+) \(([0-9.]+)",):
        f.text("dlio.log", line, lambda m: f"{m[1]}{float(m[2]) * 1.3:.4f} ({float(m[3]) * 1.3:.4f}")
    f.text("dlio.log", r"(Block . \[Training\] Accelerator Utilization \[AU\] \(%\): )([0-9.]+)",
           lambda m: f"{m[1]}{float(m[2]) * 1.3:.4f}")


def au_of_epoch_in_summary(f, other):
    f["summary"]["metric"]["train_au_percentage"][0] += 5


def rates_of_summary(f, other):
    keys(f["summary"]["metric"], r"train_throughput.*", 3)


def rates_of_result(f, other):
    keys(f["result"]["training"], r".*throughput.*samples_per_s", 3)


def rates_everywhere(f, other):
    rates_of_summary(f, other)
    rates_of_result(f, other)
    keys(f["result"]["training"], r"io_.*mib_per_s", 3)
    keys(f["summary"]["metric"], r"train_io.*", 3)
    for tree, name in f.phases("throughput"):
        tree[name] *= 3 if name != "eval" else 1
    f.save()
    f.text("dlio.log", r"(Training (?:I/O )?Throughput \([a-zA-Z/]+\): )([0-9.]+) \(([0-9.]+)",
           lambda m: f"{m[1]}{float(m[2]) * 3:.4f} ({float(m[3]) * 3:.4f}")
    f.text("dlio.log", r"(\[Training\] Throughput \(samples/second\): )([0-9.]+)",
           lambda m: f"{m[1]}{float(m[2]) * 3:.4f}")


def steps_longer(f, other):
    for what in ("load", "proc", "compute"):
        for tree, name in f.phases(what):
            tree[name] = scale(tree[name], 1.9)


def computes_longer(f, other):
    for tree, name in f.phases("compute"):
        tree[name] = scale(tree[name], 1.9)


def waits_halved(f, other):
    for tree, name in f.phases("load"):
        tree[name] = scale(tree[name], 0.5)


def waits_and_steps_halved(f, other):
    for k in f.ranks():
        for tree in (e for n, e in f[f"{k}_output.json"].items() if n.isdigit()):
            for name, load in tree["load"].items():
                tree["proc"][name] = [p - 0.5 * w for p, w in zip(tree["proc"][name], load)]
                tree["load"][name] = scale(load, 0.5)


def slowest_step_removed(f, other):
    for k in f.ranks():
        tree = f[f"{k}_output.json"]["1"]
        at = tree["load"]["block1"].index(max(tree["load"]["block1"]))
        for what in ("load", "proc", "compute"):
            del tree[what]["block1"][at]


def one_wait_removed(f, other):
    waits = f["0_output.json"]["2"]["load"]["block1"]
    waits[waits.index(max(waits))] = 0.0


def set_verdict(f, check, level="pass"):
    for v in f["result"]["verdicts"]:
        if v["check"] == check:
            assert v["level"] != level, v
            v["level"] = level
            v["text"] = "All is well."


def cache_passes(f, other):
    set_verdict(f, "cache")


def bytes_pass(f, other):
    set_verdict(f, "bytes")


def all_pass(f, other):
    for v in f["result"]["verdicts"]:
        v["level"], v["text"] = "pass", "All is well."


def cached_figures(f, other):
    for epoch in f["result"]["training"]["epochs"]:
        epoch["page_cache"]["cached_at_start_bytes"] = 0


def sentence_of_whole_run(f, other):
    for v in f["result"]["verdicts"]:
        v["text"] = re.sub(r"(?<=Computation takes )[0-9.]+", lambda m: f"{(float(m[0]) + 37) % 100:.1f}", v["text"])


def cache_deleted(f, other):
    f["result"]["verdicts"] = [v for v in f["result"]["verdicts"] if v["check"] != "cache"]


def steady_passes(f, other):
    set_verdict(f, "steady")


def steady_is_a_warning(f, other):
    set_verdict(f, "steady", "warn")


def whole_run_complete(f, other):
    set_verdict(f, "complete")


def file_of_rank_copied(f, other):
    shutil.copy(f.at / "0_output.json", f.at / "1_output.json")


def files_of_rank_copied(f, other):
    file_of_rank_copied(f, other)
    shutil.copy(f.at / "0_per_epoch_stats.json", f.at / "1_per_epoch_stats.json")


def copied_from(name):
    def tamper(f, other):
        for one in name.split():
            shutil.copy(other / one, f.at / one)
    return tamper


def config_of_run(f, other):
    f.text(".hydra/config.yaml", r"batch_size: 2", "batch_size: 4")


def computation_time_of_run(f, other):
    f.text(".hydra/config.yaml", r"computation_time: 0.00[0-9]+", "computation_time: 0.002")
    f["result"]["configuration"]["train.computation_time"]["value"] = "0.002"


def override_changed(f, other):
    f["result"]["overrides"] = [o.replace("reader.batch_size=2", "reader.batch_size=8")
                                for o in f["result"]["overrides"]]


def files_of_dataset(f, other):
    f["summary"]["num_files_train"] *= 10


def host_renamed(f, other):
    f["1_output.json"]["hostname"] = "fast-node"


def memory_of_host(f, other):
    f["0_output.json"]["host_meminfo"]["MemTotal"] = "1 kB"


def another_day(f, other):
    for name in ("result", "summary"):
        for key in ("start", "end"):
            f[name][key] = "2031-05-05" + f[name][key][10:]


def stamps_of_rank_shifted(f, other):
    f.text("1_per_epoch_stats.json", r"T([0-9]{2}):([0-9]{2}):", lambda m: f"T{m[1]}:{(int(m[2]) + 7) % 60:02}:")


def epoch_removed(f, other):
    for k in f.ranks():
        del f[f"{k}_output.json"]["3"]
        del f[f"{k}_per_epoch_stats.json"]["3"]


def epoch_removed_from_result(f, other):
    t = f["result"]["training"]
    del t["epochs"][1]
    t["epochs_done"] = t["epochs_begun"] = t["epochs_planned"] = len(t["epochs"])


def epochs_claimed(f, other):
    f["summary"]["epochs"] += 2


def payload_doubled(f, other):
    keys(f["result"]["training"], r"payload_bytes", 2)


def samples_doubled(f, other):
    keys(f["result"]["training"]["epochs"], r"samples", 2)


def device_bytes(f, other):
    f["result"]["training"]["device_read_bytes"] = f["result"]["training"]["returned_bytes"]


def ledger_agrees(f, other):
    for line in f["result"]["ledger"]:
        if line["key"] == "process_fetched":
            line["bytes"] = f["result"]["training"]["returned_bytes"]
            line["state"] = "agrees"


def ledger_percent(f, other):
    f["result"]["ledger"][1]["percent"] = 100.0


def requests_fewer(f, other):
    f["result"]["training"]["io"]["data"]["requests"] //= 2


def tail_cut(f, other):
    latency = f["result"]["training"]["io"]["data"]["latency"]
    latency["p99_9_ns"] = latency["p99_99_ns"] = latency["max_ns"] = latency["p50_ns"] - 1


def latency_mean(f, other):
    f["result"]["training"]["io"]["data"]["latency"]["mean_ns"] /= 3


def buckets_cut(f, other):
    del f["result"]["training"]["io"]["data"]["latency"]["buckets"][-1]


def wall_halved(f, other):
    for epoch in f["result"]["training"]["epochs"]:
        epoch["wall_s"] *= 0.5
        epoch["whole_au_percent"] *= 2


def wait_is_compute(f, other):
    for part in [f["result"]["training"]] + f["result"]["training"]["epochs"]:
        mean = part["decomposition"]["mean_over_ranks_s"]
        mean["compute"] += mean["data"] + mean["starved"]
        mean["data"] = mean["starved"] = 0.0


def part_dropped(f, other):
    f["result"]["training"]["decomposition"]["mean_over_ranks_s"]["compute"] *= 0.5


def wait_of_rank(f, other):
    f["result"]["ranks"][1]["exposed_wait_s"] *= 0.1


def whole_au_of_rank(f, other):
    f["result"]["ranks"][0]["whole_au_percent"] = 99.0


def spread_of_ranks(f, other):
    f["result"]["training"]["epochs"][0]["over_ranks"]["au_min_percent"] += 3


def deviation(f, other):
    f["summary"]["metric"]["train_au_stdev_percentage"] = 0.0001


def success(f, other):
    for key in ("train_au_meet_expectation", "eval_au_meet_expectation"):
        if f["summary"]["metric"].get(key) == "fail":
            f["summary"]["metric"][key] = "success"


def checkpoint_faster(f, other):
    for one in f["result"]["checkpoint"]["save"]["each"]:
        one["duration_s"] *= 0.5


def checkpoint_mean(f, other):
    f["summary"]["metric"]["save_checkpoint_duration_mean_seconds"] *= 0.5
    f["result"]["checkpoint"]["save"]["duration_mean_s"] *= 0.5


def checkpoints_whole(f, other):
    keys(f["result"]["checkpoint"]["save"], r"duration_.*", 0.3)
    keys(f["result"]["checkpoint"]["save"], r"throughput_.*", 1 / 0.3)
    keys(f["summary"]["metric"], r"save_checkpoint_duration.*", 0.3)
    keys(f["summary"]["metric"], r"save_checkpoint_io.*", 1 / 0.3)


def evaluation_au(f, other):
    keys(f["summary"]["metric"], r"eval_au_.*percentage", 1.2)


def evaluation_rate_of_rank(f, other):
    f["0_output.json"]["1"]["throughput"]["eval"] *= 3


def log_changed(f, other):
    f.text("dlio.log", r"(Training Accelerator Utilization \[AU\] \(%\): )[0-9.]+", r"\g<1>99.1234")


def accelerators(f, other):
    f["result"]["accelerators"] = 8


def rank_added(f, other):
    shutil.copy(f.at / "1_output.json", f.at / "2_output.json")
    shutil.copy(f.at / "1_per_epoch_stats.json", f.at / "2_per_epoch_stats.json")


def overshoot(f, other):
    f["result"]["training"]["compute_overshoot_mean_s"] = 0.0


def wall_of_run(f, other):
    f["result"]["wall_s"] /= 2


def duration_of_block(f, other):
    f["1_per_epoch_stats.json"]["1"]["block1"]["duration"] = "0.01"


def end_of_block(f, other):
    block = f["0_per_epoch_stats.json"]["2"]["block1"]
    block["end"] = block["start"]


def digests_removed(f, other):
    del f["result"]["integrity"]


def result_numbers(f, other):
    f["result"]["training"]["whole_au_mean_percent"] = 93.0


def whole_run_number(f, other):
    f["result"]["training"]["whole_run_au_percent"] = 93.0


def target(f, other):
    f["result"]["training"]["au_target_percent"] = 50.0


def dataset_larger(f, other):
    f["result"]["dataset"]["train_files"] *= 100


def verdict_deleted(check):
    def tamper(f, other):
        f["result"]["verdicts"] = [v for v in f["result"]["verdicts"] if v["check"] != check]
    return tamper


def headline(f, other):
    f["result"]["measured"] = {"storage": "yes", "text": "the storage.", "taken": []}


def limit_is_computation(f, other):
    f["result"]["limit"] = {**f["result"]["limit"], "cause": "compute",
                            "text": "AU 77.0 %: limited by computation; the storage keeps up (workers 9 % busy)."}


def client_unknown(f, other):
    set_verdict(f, "client", "unknown")


def checkpoint_passes(f, other):
    set_verdict(f, "checkpoint")


def files_are_links(f, other):
    f["result"]["dataset"]["different_files"] -= 3


def files_differ(f, other):
    f["result"]["dataset"]["content"]["files_of_zeros"] += 3


def never_cached(f, other):
    cached_figures(f, other)
    cache_passes(f, other)
    set_verdict(f, "bytes", "unknown")
    for v in f["result"]["verdicts"]:
        v.pop("takes", None)
    headline(f, other)


def predicted(f, other):
    f["result"]["what_if"]["measured_whole_au_percent"] += 20


def generation(f, other):
    f["result"]["generation"]["rate_bytes_per_s"] *= 4


def default_changed(f, other):
    f["result"]["configuration"]["train.seed"]["value"] = 7


def unit_changed(f, other):
    f["result"]["configuration"]["train.computation_time"]["unit"] = "ms"


def key_invented(f, other):
    f["result"]["configuration"]["storage.cache_bypass"] = {"value": True}


def kernel_changed(f, other):
    f["result"]["environment"]["kernel"] = "Linux 9.9"


def processors_added(f, other):
    f["result"]["environment"]["cpu_count"] *= 8


def build_changed(f, other):
    f["result"]["environment"]["versions"]["build"] = "0.1.0-000000000000"


def version_of_another_build(f, other):
    r = f["result"]
    r["version"] = r["environment"]["versions"]["stoker"] = "9.9.9"
    r["environment"]["versions"]["build"] = "0.0.9-" + "0" * 12


def figure_invented(f, other):
    f["result"]["training"]["storage_au_percent"] = 99.0


def section_invented(f, other):
    f["result"]["certificate"] = {"passed": True}


def schema_of_before(f, other):
    """As if an earlier version had written it, which kept no measures."""
    f["result"]["schema"] = 1
    f["result"]["integrity"]["files"].pop("measures.bin", None)
    (f.at / "measures.bin").unlink()


def override_everywhere(f, other):
    override_changed(f, other)
    f.text(".hydra/overrides.yaml", "reader.batch_size=2", "reader.batch_size=8")


def override_of(old, new):
    def tamper(f, other):
        f["result"]["overrides"] = [new if o == old else o for o in f["result"]["overrides"]]
        f.save()
        for name in (".hydra/overrides.yaml", "result.json"):
            assert (f.at / name).read_text().count(new) >= (name == "result.json"), name
        f.text(".hydra/overrides.yaml", "^- " + re.escape(old) + "$", "- " + new)
    return tamper


def override_of_time(f, other):
    f["result"]["overrides"] = [o.replace("computation_time=0.005", "computation_time=0.004") for o in f["result"]["overrides"]]
    f.text(".hydra/overrides.yaml", "computation_time=0.005", "computation_time=0.004")


def curve(name, by=3):
    def tamper(f, other):
        values = f["result"]["series"]["curves"][name]["values"]
        f["result"]["series"]["curves"][name]["values"] = [v and v * by for v in values]
    return tamper


def accelerator_use(f, other):
    use = f["result"]["series"]["accelerator_use"]
    use["mean"] = [100.0] * len(use["mean"])


TRAIN = [
    (default_changed, "a key that nobody set in the configuration of result.json"),
    (unit_changed, "a unit of the configuration"),
    (key_invented, "a key that the program does not have in the configuration"),
    (kernel_changed, "another kernel"),
    (processors_added, "8 times the processors"),
    (build_changed, "another build of the program"),
    (version_of_another_build, "a version that its build does not have"),
    (figure_invented, "a figure that the run does not give"),
    (section_invented, "a section that no result has"),
    (schema_of_before, "the schema of an earlier version, the measures removed"),
    (override_everywhere, "another override in result.json and .hydra"),
    (override_of("dataset.format=npz", "dataset.format=hdf5"), "another format among the overrides, in result.json and .hydra"),
    (override_of("workflow.checkpoint=true", "workflow.checkpoint=False"), "checkpoints off among the overrides, in result.json and .hydra"),
    (override_of_time, "another computation time among the overrides, in result.json and .hydra"),
    (curve("payload"), "the curve of data delivered × 3"),
    (accelerator_use, "accelerators that always compute, in the curve of their use"),
    (au_of_result, "AU in result.json × 1.3"),
    (au_of_result_whole, "AU × 1.3 in result.json and summary.json, means and epochs alike"),
    (au_of_one_rank, "AU of one rank in one epoch × 1.2"),
    (au_everywhere, "AU × 1.3 in every file and in the log"),
    (au_of_epoch_in_summary, "AU of one epoch in summary.json + 5 points"),
    (rates_of_summary, "samples/s × 3 in summary.json"),
    (rates_of_result, "samples/s × 3 in result.json"),
    (rates_everywhere, "samples/s and MiB/s × 3 in every file and in the log"),
    (steps_longer, "all times of steps × 1.9"),
    (computes_longer, "computation of all steps × 1.9"),
    (waits_halved, "waits of all steps halved"),
    (waits_and_steps_halved, "waits halved and steps shortened by as much"),
    (slowest_step_removed, "the slowest step of each rank removed"),
    (one_wait_removed, "one wait of one step removed"),
    (file_of_rank_copied, "0_output.json copied over 1_output.json"),
    (files_of_rank_copied, "both files of rank 0 copied over those of rank 1"),
    (copied_from("1_output.json"), "1_output.json of another run of the same workload"),
    (copied_from("1_output.json 1_per_epoch_stats.json"), "both files of rank 1 of another run"),
    (copied_from("0_output.json 0_per_epoch_stats.json 1_output.json 1_per_epoch_stats.json"),
     "the files of all ranks of another run"),
    (copied_from("summary.json"), "summary.json of another run"),
    (copied_from("result.json"), "result.json of another run"),
    (copied_from("result.json summary.json"), "result.json and summary.json of another run"),
    (config_of_run, "another batch size in .hydra/config.yaml"),
    (computation_time_of_run, "a shorter computation time in .hydra/config.yaml and result.json"),
    (override_changed, "another override in result.json"),
    (files_of_dataset, "10 times the files in summary.json"),
    (host_renamed, "another host name in 1_output.json"),
    (memory_of_host, "other memory of the host in 0_output.json"),
    (another_day, "start and end of the run moved by years"),
    (stamps_of_rank_shifted, "stamps of rank 1 moved by 7 minutes"),
    (epoch_removed, "epoch 3 removed from the files of the ranks"),
    (epoch_removed_from_result, "epoch 2 removed from result.json"),
    (epochs_claimed, "two epochs more in summary.json"),
    (payload_doubled, "payload of all epochs doubled"),
    (samples_doubled, "samples of all epochs doubled"),
    (ledger_percent, "a percentage of the ledger set to 100"),
    (requests_fewer, "half of the requests"),
    (tail_cut, "latencies above the median cut off"),
    (latency_mean, "mean latency of reads divided by 3"),
    (buckets_cut, "the slowest bucket of latencies removed"),
    (wall_halved, "wall time of epochs halved, whole-run AU doubled"),
    (wait_is_compute, "waits moved to computation in the parts of time"),
    (part_dropped, "computation halved in the parts of time"),
    (wait_of_rank, "waits of rank 1 in result.json divided by 10"),
    (whole_au_of_rank, "whole-run AU of rank 0 set to 99 %"),
    (spread_of_ranks, "the lowest AU of a rank raised by 3 points"),
    (deviation, "standard deviation of AU set to almost 0"),
    (success, "train_au_meet_expectation set to success"),
    (checkpoint_faster, "durations of checkpoints halved in result.json"),
    (checkpoint_mean, "mean duration of checkpoints halved in both files"),
    (checkpoints_whole, "durations of checkpoints × 0.3 wherever a mean or a rate is"),
    (evaluation_au, "AU of evaluations × 1.2 in summary.json"),
    (evaluation_rate_of_rank, "samples/s of an evaluation × 3 in 0_output.json"),
    (log_changed, "AU in the log set to 99.1234 %"),
    (accelerators, "8 accelerators in result.json"),
    (rank_added, "the files of a third rank added"),
    (overshoot, "late timers set to 0"),
    (wall_of_run, "the wall time of the run halved"),
    (duration_of_block, "the duration of a block set to 0.01 s"),
    (end_of_block, "a block that ends when it starts"),
    (digests_removed, "the digests removed"),
    (target, "the target of AU set to 50 %"),
    (dataset_larger, "100 times the files in result.json"),
    (result_numbers, "mean of whole-run AU set to 93 %"),
    (whole_run_number, "AU of the whole run set to 93 %"),
    (verdict_deleted("dataset"), "verdict dataset removed"),
    (verdict_deleted("evaluation"), "verdict evaluation removed"),
    (headline, "the headline says storage, of an emulated store"),
    (limit_is_computation, "the limit says computation, at an AU far below 95 %"),
    (client_unknown, "verdict client set to unknown, its counters are there"),
    (checkpoint_passes, "verdict checkpoint set to pass, of a store without files"),
    (predicted, "the whole-run AU that predictions begin with + 20 points"),
]
CACHED = [
    (curve("returned"), "the curve of bytes returned × 3"),
    (cache_passes, "verdict cache set to pass: all of the dataset was in the page cache"),
    (bytes_pass, "verdict bytes set to pass: nothing came from the device"),
    (all_pass, "all verdicts set to pass"),
    (cache_deleted, "verdict cache removed"),
    (cached_figures, "bytes in the page cache set to 0"),
    (sentence_of_whole_run, "37 points more in the sentence of whole-run AU"),
    (device_bytes, "bytes from the device set to all that was returned"),
    (ledger_agrees, "the ledger's line of fetched bytes set to agree"),
    (generation, "the rate of generation × 4"),
    (files_are_links, "three files fewer than names"),
    (files_differ, "three files of zeros counted"),
    (never_cached, "nothing cached, the bytes called unknown, the headline changed"),
    (headline, "the headline says storage, of the page cache"),
]
TRAPPED = [
    (steady_passes, "verdict steady set to pass: the window holds only prefetched batches"),
    (steady_is_a_warning, "verdict steady set from FAIL to WARN"),
]
STOPPED = [(whole_run_complete, "verdict complete of an interrupted run set to pass")]


# ---- DLIO's folders ----

def of_rank(path, change):
    def tamper(f, other):
        change(f[path])
    return tamper


def dlio_scaled(pattern, phase, by):
    """A measure times `by` in every file but the log, which is removed."""
    def tamper(f, other):
        keys(f["summary"]["metric"], pattern, by)
        for tree, name in f.phases(phase):
            tree[name] *= by
        f.save()
        (f.at / "dlio.log").unlink()
    return tamper


def dlio_config(f, other):
    path = next(p for p in f.at.rglob("config.yaml"))
    f.text(str(path.relative_to(f.at)), r"batch_size: ([0-9]+)", "batch_size: 64")


DLIO_CASES = [
    (of_rank("summary", lambda s: keys(s["metric"], "train_au_mean_percentage", 1.2)), "mean AU × 1.2"),
    (of_rank("summary", lambda s: keys(s["metric"], "train_au.*percentage", 1.2)), "AU × 1.2 in summary.json"),
    (of_rank("1_output.json", lambda o: keys(o["1"], "block1", 1)), None),
    (of_rank("1_output.json", lambda o: o["1"]["au"].update(block1=99.0)), "AU of rank 1 set to 99 %"),
    (dlio_scaled(r"train_au.*percentage", "au", 1.2), "AU × 1.2 in every file"),
    (of_rank("summary", lambda s: keys(s["metric"], "train_throughput.*", 3)), "samples/s × 3 in summary.json"),
    (dlio_scaled(r"train_throughput.*|train_io.*", "throughput", 3), "samples/s and MB/s × 3 in every file"),
    (steps_longer, "all times of steps × 1.9"),
    (slowest_step_removed, "the slowest step of each rank removed"),
    (files_of_rank_copied, "the files of rank 0 copied over those of rank 1"),
    (of_rank("1_output.json", lambda o: o.update(hostname="elsewhere")), "another host name in 1_output.json"),
    (of_rank("summary", lambda s: s.update(epochs=s["epochs"] + 1)), "one epoch more in summary.json"),
    (of_rank("1_per_epoch_stats.json", lambda s: s.pop("2")), "epoch 2 of rank 1 removed"),
    (of_rank("summary", lambda s: s.update(start=s["start"].replace("20", "19", 1))), None),
    (of_rank("summary", lambda s: s.update(start="2031" + s["start"][4:], end="2031" + s["end"][4:])),
     "start and end moved by years"),
    (stamps_of_rank_shifted, "stamps of rank 1 moved by 7 minutes"),
    (of_rank("summary", lambda s: keys(s["metric"], "train_au_stdev_percentage", 0.1)), "standard deviation / 10"),
    (of_rank("summary", lambda s: s["metric"].update(train_au_meet_expectation="success")), "the target met"),
    (rank_added, "the files of a third rank added"),
    (log_changed, "AU in the log set to 99.1234 %"),
    (of_rank("summary", lambda s: s.update(num_files_train=9999)), "9999 files in summary.json"),
]
DLIO_CASES = [c for c in DLIO_CASES if c[1]]


# ---- the runs ----

KEYS = dict(files=24, dataset__record_length_bytes=65536, reader__batch_size=2, train__epochs=3,
            train__computation_time=0.005, workflow__evaluation="true", dataset__num_files_eval=8,
            reader__batch_size_eval=1, evaluation__eval_time=0.003, workflow__checkpoint="true",
            model__model_size_bytes=262144, checkpoint__steps_between_checkpoints=3,
            metric__au=0.97, output__metric__exclude_start_steps=1)


def train(tmp, name, ranks=2):
    out = tmp / name
    stoker("run", "-n", str(ranks), *tiny(tmp / f"{name}.d", out, storage__store="throttle+memory", **KEYS),
           f"checkpoint.checkpoint_folder={tmp / name}.c", "+storage.throttle.latency=0.004")
    return out


def plain(tmp):
    out = tmp / "plain"
    stoker("run", *tiny(tmp / "plain.d", out, files=24, dataset__record_length_bytes=65536, train__epochs=2,
                        train__computation_time=0.005, storage__store="throttle+memory"), "+storage.throttle.latency=0.004")
    return out


def on_disk(tmp):
    """From the device, as far as there is one, with checkpoints; with a curve of many points."""
    out = tmp / "disk"
    stoker("run", "-n", "2", *tiny(tmp / "disk.d", out, files=64, dataset__record_length_bytes=2**20, train__epochs=2,
                                   train__computation_time=0.03, workflow__checkpoint="true", model__model_size_bytes=2**22,
                                   checkpoint__steps_between_checkpoints=4, storage__page_cache="cold_epochs",
                                   run__sample_interval=0.05), f"checkpoint.checkpoint_folder={tmp}/disk.c")
    return out


def forge_measures(tmp, two):
    one, disk = plain(tmp), on_disk(tmp)
    for folder in (one, disk):
        untouched(folder, 300)
    common = forged.STEPS + forged.EPOCHS + forged.REQUESTS + forged.RUN
    read = sum(e["process_io"].get("device_read_bytes") or 0 for e in read_epochs(disk))
    device = forged.DEVICE if read > 2**26 else []
    if not device:
        left_out("curves of the device: the dataset does not come from one")
    forged.forgeries(tmp, {"1 rank": (one, common + forged.CURVES + forged.ONCE),
                           "2 ranks with evaluations": (two, forged.STEPS + forged.EVALUATIONS + forged.REQUESTS[:7]),
                           "2 ranks with checkpoints": (disk, forged.CHECKPOINTS + forged.ONCE_SAVED + device)}, seal, write)


def read_epochs(folder):
    return read(folder / "result.json")["training"]["epochs"]


def cached(tmp):
    """Files that were just written: the page cache holds them."""
    out = tmp / "cached"
    stoker("run", *tiny(tmp / "cached.d", out, files=16, train__epochs=2, dataset__record_length_bytes=262144,
                        train__computation_time=0.003))
    return out


def trapped(tmp):
    out = tmp / "trapped"
    stoker("run", *tiny(tmp / "trapped.d", out, files=8, train__epochs=2, train__computation_time=0.003,
                        reader__batch_size=1, reader__prefetch_size=8, reader__read_threads=4,
                        storage__store="throttle+memory"), "+storage.throttle.latency=0.05")
    return out


def stopped(tmp):
    out = tmp / "stopped"
    p = subprocess.Popen([STOKER, "run", *tiny(tmp / "stopped.d", out, files=24, train__epochs=40,
                                               train__computation_time=0.02)],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.time() + 30
    log = out / "dlio.log"
    while time.time() < deadline and not (log.exists() and "Starting epoch 3" in log.read_text()):
        time.sleep(0.02)
    p.send_signal(signal.SIGINT)
    p.wait(30)
    return out


def findings(folder, *options):
    # status 1: a log of another run that happens to be shorter is a file that was cut
    done = stoker("audit", "--json", folder, *options, status=None)
    assert done.returncode in (0, 1), done
    found = json.loads(done.stdout)["results"][0]
    return found, [f for f in found["findings"] if f["check"] in OURS and f["level"] == "fail"]


class Tried:
    def __init__(self, tmp):
        self.tmp, self.tried, self.whole, self.missed, self.n = tmp, 0, 0, [], 0

    def place(self, base):
        self.n += 1
        at = self.tmp / f"case{self.n}"
        shutil.copytree(base, at)
        return at

    def one(self, base, other, tamper, what, group):
        """Once as an editor leaves it, and once with all digests written again."""
        for forged in (False, True):
            at = self.place(base)
            f = Folder(at)
            tamper(f, other)
            f.save()
            has_digests = (at / "result.json").exists() and "integrity" in read(at / "result.json")
            if forged and not has_digests:
                continue
            if forged:
                seal(at)
            self.tried += 1
            # making limit and predictions again takes most of the time, and only adds findings
            for options in (["--quick"], []):
                _, found = findings(at, *options)
                checks = {f["check"] for f in found}
                right = bool(checks - {"digest"}) if forged else bool(found)
                if has_digests and not forged:
                    right = right and "digest" in checks
                if right:
                    break
                self.whole += 1
            if not right:
                self.missed.append((group, what, "digests written again" if forged else "as edited", sorted(checks)))
            if right and (forged or not has_digests):
                text = [f for f in found if f["check"] != "digest"] or found
                told("tampering", f"{group}: {what}" + (", digests written again" if forged else ""),
                     f"{text[0]['check']}: {text[0]['text']}")
            shutil.rmtree(at)


def untouched(folder, least):
    """No finding, and a list of what was compared."""
    result, found = findings(folder)
    assert not found, (folder, found)
    compared = sum(c["compared"] for c in result["checked"])
    assert compared >= least, (folder, compared, result["checked"], result["unchecked"])
    return compared


def old_version(tmp, base):
    """A result of a version without digests and measures is read without a word, and says what it lacks."""
    at = tmp / "old"
    shutil.copytree(base, at)
    result = read(at / "result.json")
    del result["integrity"], result["run_id"]
    result["schema"] = 1
    result["environment"]["versions"]["build"] = "0.0.9-000000000000"
    (at / "measures.bin").unlink()
    write(at / "result.json", result)
    found, ours = findings(at)
    assert not ours, ours
    assert {"digests", "measures"} <= {u["name"] for u in found["unchecked"]}, found["unchecked"]


def measures_disagree(tmp, base, warm):
    """Curves of the measures themselves that do not fit what the epochs counted, digests written again."""
    tried = 0
    for run, member, by in ((base, "user", 2), (base, "user", 0.5), (warm, "process.rchar_bytes", 0.1)):
        at = tmp / "disagree"
        shutil.copytree(run, at)
        path = at / "measures.bin"

        def change(values, by=by):
            return [values[0] + int((v - values[0]) * by) for v in values]

        path.write_bytes(edited(path.read_bytes(), "series", member, change))
        seal(at)
        found, _ = findings(at)
        differ = sum(c["differ"] for c in found["checked"] if c["name"] == "curves")
        assert differ, (member, by, [c for c in found["checked"] if c["name"] == "curves"])
        tried += 1
        shutil.rmtree(at)
    print(f"{tried} curves of measures that do not fit the epochs, all found")


def forged_copy(source, at, days, microseconds):
    """The result of a run as that of another one: another number, other dates, waits a little longer."""
    shutil.copytree(source, at)
    f = Folder(at)
    old = f["result"]["run_id"]
    for k in f.ranks():
        for tree in (e for n, e in f[f"{k}_output.json"].items() if n.isdigit()):
            for name, load in tree["load"].items():
                tree["load"][name] = [v + microseconds * 1e-6 for v in load]
                tree["proc"][name] = [v + microseconds * 1e-6 for v in tree["proc"][name]]
    f.save()
    for path in [at / "result.json", at / "summary.json", *at.glob("*_per_epoch_stats.json")]:
        text = path.read_text().replace(old, f"{days:032x}")
        path.write_text(re.sub(r"\b20\d\d-\d\d-\d\d(?=T)", f"2025-03-{days + 10}", text))
    seal(at)


def copies(tmp):
    """Copies under other numbers and dates are no repetitions; repetitions of a store that answers always alike are."""
    for name, store, more in (("fast", "memory", []), ("alike", "throttle+memory", ["+storage.throttle.latency=0.002"])):
        real, forged = tmp / f"{name}-real", tmp / f"{name}-forged"
        stoker("run", "--repeat", "5", *tiny("/copies", real, fmt="npy", files=80, reader__batch_size=1,
                                             train__computation_time=0.002, storage__store=store), *more)
        for k in (1, 2, 3):
            forged_copy(real / "1", forged / str(k), k, k)
        said = json.loads(stoker("compare", "--json", real, forged, status=None).stdout)
        assert said["runs"] == [5, 1] and said["copies_not_counted"] == [0, 2], (name, said["runs"], said["copies_not_counted"])
        assert all("p" not in m for m in said["measures"]), said["measures"]

        def named(*folders):
            results = json.loads(stoker("audit", "--quick", "--json", *folders, status=None).stdout)["results"]
            return [f["text"] for r in results for f in r["findings"] if f["check"] == "identity" and "copy of the other" in f["text"]]

        assert not named(real), named(real)
        assert len(named(forged)) == 3, named(forged)  # the first, and the copies of it
        told("tampering", f"a result over a {store} store copied with other numbers, other dates and longer waits", named(forged)[0])


def added_files(tmp, base):
    """Notes, pages and whatever else a user keeps in the folder are no finding."""
    at = tmp / "added"
    shutil.copytree(base, at)
    (at / "notes.txt").write_text("mine")
    (at / "report.html").write_text("<html>")
    (at / "plots").mkdir()
    untouched(at, 100)


def dlio_base(tmp):
    """A folder of DLIO with the configuration that its log and summary imply."""
    at = tmp / "dlio"
    shutil.copytree(DLIO, at)
    if not list(at.rglob("config.yaml")):
        (at / ".hydra").mkdir(exist_ok=True)
        summary = read(at / "summary.json")
        (at / ".hydra/config.yaml").write_text(
            "workload:\n  model: {name: default}\n  framework: pytorch\n"
            f"  dataset: {{num_files_train: {summary['num_files_train']}, num_files_eval: {summary['num_files_eval']},"
            f" num_samples_per_file: {summary['num_samples_per_file']}, record_length_bytes: 65536, format: npz}}\n"
            "  reader: {batch_size: 2, batch_size_eval: 1, data_loader: pytorch}\n"
            f"  train: {{epochs: {summary['epochs']}, computation_time: 0.02}}\n"
            "  workflow: {train: true, evaluation: true, checkpoint: true}\n")
    return at


def lost_result(tmp, base):
    """Without result.json a folder of ours is not judged as one of DLIO."""
    at = tmp / "lost"
    shutil.copytree(base, at)
    (at / "result.json").unlink()
    done = stoker("audit", "--json", at, status=1)
    found = json.loads(done.stdout)["results"][0]["findings"]
    assert [f["check"] for f in found] == ["complete"] and found[0]["level"] == "fail", found
    assert "has no result.json" in found[0]["text"] and "has no result.json" in done.stderr, done
    told("tampering", "result.json removed", found[0]["text"])


def summed_up(tmp, folders):
    """Many folders: each finding once, how often, with an example; all of them with -v."""
    text = stoker("audit", *folders).stdout
    assert f"{len(folders)} results" in text and "for example" in text and "-v" in text, text
    assert len(text) < len(stoker("audit", "-v", *folders).stdout)
    assert stoker("audit", folders[0]).stdout.count("checked") >= 1


def main():
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        with ThreadPoolExecutor(3) as pool:
            jobs = [pool.submit(train, tmp, "one"), pool.submit(train, tmp, "two"), pool.submit(cached, tmp),
                    pool.submit(trapped, tmp), pool.submit(stopped, tmp)]
            one, two, warm, trap, stop = [j.result() for j in jobs]
        compared = {d.name: untouched(d, least) for d, least in
                    ((one, 600), (two, 600), (warm, 300), (trap, 200), (stop, 100))}
        dlio = dlio_base(tmp)
        compared["dlio"] = untouched(dlio, 60)
        for folder in sorted(STUDY.rglob("summary.json")):
            untouched(folder.parent, 1)
        print("compared in folders that nobody touched:", compared)
        assert any(v["check"] == "steady" and v["level"] == "fail" for v in read(trap / "result.json")["verdicts"])
        old_version(tmp, one)
        added_files(tmp, one)
        measures_disagree(tmp, one, warm)
        copies(tmp)
        forge_measures(tmp, one)
        lost_result(tmp, warm)
        tried = Tried(tmp)
        for base, group, cases in ((one, "a run of 2 ranks", TRAIN), (warm, "a run from the page cache", CACHED),
                                   (trap, "a run that is too short", TRAPPED), (stop, "an interrupted run", STOPPED),
                                   (dlio, "a result of DLIO", DLIO_CASES)):
            for tamper, what in cases:
                tried.one(base, two, tamper, what, group)
        summed_up(tmp, [one, two, warm, trap])
        print(f"{tried.tried} tamperings tried, {len(tried.missed)} missed, {tried.whole} told by limit and predictions alone")
        for miss in tried.missed:
            print("   missed:", *miss)
        assert not tried.missed and tried.tried >= 100


if __name__ == "__main__":
    main()

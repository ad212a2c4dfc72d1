"""What reads the files of a result that DLIO also writes, as strictly as the strictest of their readers.

DLIO itself and the report generators of MLPerf Storage add, compare and print what they find: a null, NaN or Infinity,
or a key that is not there, ends them with a traceback. The functions named after a reader follow its source."""
import json
import math
import pathlib
import re

LISTS = ("train_au_percentage", "train_throughput_samples_per_second", "eval_au_percentage",
         "eval_throughput_samples_per_second")
BY_HOST = ("host_cpu_count", "host_memory_GB", "potential_caching")
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$")


def is_number(v):
    return isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v)


def refuse(word):
    raise AssertionError(f"{word} is not JSON")


def no_null(value, where):
    assert value is not None, f"{where} is null"
    if isinstance(value, dict):
        for key, v in value.items():
            no_null(v, f"{where}.{key}")
    elif isinstance(value, list):
        for i, v in enumerate(value):
            no_null(v, f"{where}[{i}]")


def strict(path):
    root = json.loads(pathlib.Path(path).read_text(), parse_constant=refuse)
    no_null(root, pathlib.Path(path).name)
    return root


def stamp(value, where):
    assert isinstance(value, str) and STAMP.match(value) and not value.startswith("1970"), (where, value)


def rank_output(out, where):
    """The end of a run in DLIO: sums of lists, a mean over the blocks of an epoch by their steps."""
    assert is_number(out["host_memory_GB"]) and isinstance(out["host_cpu_count"], int), where
    for epoch in (k for k in out if k.isdigit()):
        e, at = out[epoch], f"{where}: epoch {epoch}"
        for kind in ("load", "proc", "compute"):
            assert all(is_number(v) for phase in e[kind].values() for v in phase), (at, kind)
        assert all(is_number(v) for kind in ("au", "throughput") for v in e[kind].values()), at
        weights = [len(e["proc"][k]) for k in e["throughput"]]
        assert sum(weights) >= 0 and all(k in e["proc"] for k in e["au"]), at
        for key in ("start", "end"):
            if key in e:
                stamp(e[key], at)


def rank_epochs(stats, where):
    """DLIO looks for save_ckpt and load_ckpt among the keys of each epoch; its report, for maps with start and end."""
    for number, epoch in stats.items():
        assert number.isdigit() or isinstance(epoch, str), (where, number)
        if not isinstance(epoch, dict):
            continue
        for name, part in epoch.items():
            at = f"{where}: epoch {number}: {name}"
            if name in ("start", "end"):
                stamp(part, at)
            if not isinstance(part, dict):
                continue
            stamp(part["start"], at)
            if "end" not in part:
                continue
            stamp(part["end"], at)
            assert is_number(float(part["duration"])), at
            if "_ckpt" in name and "throughput" in part:
                assert is_number(part["throughput"]), at


def summary(s, where="summary.json"):
    for key in ("start", "end"):
        stamp(s[key], f"{where}: {key}")
    hosts = s["num_hosts"]
    assert is_number(hosts) and is_number(s["num_accelerators"]) and is_number(s["epochs"])
    for key in BY_HOST:
        assert 1 <= len(s[key]) <= hosts and all(is_number(v) for v in s[key]), (where, key, s[key])
    for key in ("num_files_train", "num_files_eval", "num_samples_per_file", "data_size_per_host_GB"):
        assert is_number(s[key]), (where, key)
    for key, value in s["metric"].items():
        if key in LISTS:
            assert isinstance(value, list) and all(is_number(v) for v in value), (where, key, value)
        elif key.endswith("_meet_expectation"):
            assert value in ("success", "fail"), (where, key, value)
        else:
            assert is_number(value), (where, key, value)
    return s


def folder(at, sub=".hydra", ranks=None):
    """Every file of DLIO's kind of a result folder; returns summary.json, or None if there is none."""
    import yaml
    at = pathlib.Path(at)
    found = None
    if (at / "summary.json").exists():
        found = summary(strict(at / "summary.json"))
        for k in range(ranks if ranks is not None else found["num_accelerators"]):
            rank_output(strict(at / f"{k}_output.json"), f"{k}_output.json")
            rank_epochs(strict(at / f"{k}_per_epoch_stats.json"), f"{k}_per_epoch_stats.json")
    overrides = yaml.safe_load((at / sub / "overrides.yaml").read_text())
    assert isinstance(overrides, list) and all(isinstance(v, str) for v in overrides), overrides
    assert isinstance(yaml.safe_load((at / sub / "config.yaml").read_text())["workload"], dict)
    assert yaml.safe_load((at / sub / "hydra.yaml").read_text())["hydra"]["run"]["dir"]
    return found


# ---- the report generators of MLPerf Storage ----

def printed_v2(name, value):
    """Results Report of v2.0: one line a metric."""
    unit = "%" if "percentage" in name.lower() else ""
    if type(value) in (int, float):
        return f"{value:,.1f}{unit}"
    if type(value) in (list, tuple):
        return ", ".join(f"{v:,.1f}{unit}" for v in value)
    return f"{value}"


def report_v2(at):
    """BenchmarkRun of v2.0 (rules.py) from a folder: what results.json of its report has of one run."""
    import yaml
    at = pathlib.Path(at)
    s = json.loads((at / "summary.json").read_text())
    config = yaml.load((at / "dlio_config/config.yaml").read_text(), Loader=yaml.Loader)["workload"]
    overrides = yaml.load((at / "dlio_config/overrides.yaml").read_text(), Loader=yaml.Loader)
    workflow = config.get("workflow", {})
    generate, train = (workflow.get(k, {}) for k in ("generate_data", "train"))
    run = {"model": config["model"]["name"].replace("llama_", "llama3_").replace("_", "-"),
           "num_processes": s["num_accelerators"], "start": s.get("start"), "parameters": config, "overrides": {},
           "type": "training" if generate or train else "checkpointing" if workflow.get("checkpoint") else None}
    if train:
        run["accelerator"] = [w for w in overrides if w.startswith("workload=")][0].split("_")[1]
    for one in overrides:
        key, value = one.split("=")
        if key.startswith("++workload."):
            run["overrides"][key[len("++workload."):]] = value
    run["metrics"] = s.get("metric")
    run["memory_bytes"] = sum(s.get("host_memory_GB")) * 2**30
    run["cores"] = sum(s.get("host_cpu_count"))
    if run["type"] == "training":  # the size that a submission needs, in the numbers of config.yaml
        d, per_file = config["dataset"], config["dataset"]["num_samples_per_file"]
        run["files_needed"] = max(5 * run["memory_bytes"] // (per_file * d["record_length_bytes"]),
                                  500 * run["num_processes"] * config["reader"]["batch_size"] // per_file
                                  if train else 0)
        assert int(d["num_files_train"]) >= 0
    elif run["type"] == "checkpointing":
        c = config["checkpoint"]
        run["writes"], run["reads"] = c.get("num_checkpoints_write", 0) + 0, c.get("num_checkpoints_read", 0) + 0
    run["printed"] = {k: printed_v2(k, v) for k, v in run["metrics"].items()}
    return run


def printed_v3(name, value):
    """ValidationMessageFormatter of v3 (reporting/formatters.py)."""
    if isinstance(value, (int, float)):
        return f"{value:,.1f}%" if "percentage" in name.lower() or "pct" in name.lower() else f"{value:,.2f}"
    if isinstance(value, (list, tuple)):
        return ", ".join(printed_v3(name, v) for v in value)
    return str(value)


def report_v3(at):
    """DLIOResultParser of v3 (rules/models.py), and what its checker of submissions looks up (submission_checker)."""
    import yaml
    at = pathlib.Path(at)
    s = json.loads((at / "summary.json").read_text())
    config = yaml.load((at / "dlio_config/config.yaml").read_text(), Loader=yaml.Loader)["workload"]
    overrides = yaml.load((at / "dlio_config/overrides.yaml").read_text(), Loader=yaml.Loader)
    workflow = config.get("workflow", {})
    assert workflow.get("generate_data") or workflow.get("train") or workflow.get("checkpoint"), "no type"
    hosts = [(int(m * 2**30), s["host_cpu_count"][i] if i < len(s["host_cpu_count"]) else None)
             for i, m in enumerate(s["host_memory_GB"])]
    metric = s["metric"]
    run = {"model": config.get("model", {}).get("name", "").replace("llama_", "llama3-").replace("_", "-"),
           "start": s.get("start", ""), "end": s.get("end", ""), "num_processes": s.get("num_accelerators", 0),
           "overrides": dict(o[len("++workload."):].split("=", 1) for o in overrides if o.startswith("++workload.")),
           "memory_bytes": sum(m for m, _ in hosts), "metrics": metric,
           "met": metric.get("train_au_meet_expectation"), "first_host_gib": s.get("host_memory_GB", [0])[0],
           "checkpoint_gib": metric.get("checkpoint_size_GB", 0) * 1.0,
           "accelerators_per_host": s.get("num_accelerators", 1) % s.get("num_hosts", 1)}
    names = [f.name for f in at.iterdir()]
    for pattern in (r".*output\.json", r".*per_epoch_stats\.json", r".*summary\.json", r"dlio\.log"):
        assert any(re.match(pattern, n) for n in names), (pattern, names)
    assert sorted(f.name for f in (at / "dlio_config").iterdir()) == ["config.yaml", "hydra.yaml", "overrides.yaml"]
    run["printed"] = {k: printed_v3(k, v) for k, v in metric.items()}
    return run

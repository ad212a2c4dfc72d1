"""The files of a train + evaluate + checkpoint run hold the keys that DLIO's real output holds: same names, same
nesting, same order, same types (tests/data/dlio-output), and a mark of this program that DLIO's readers do not see."""
import json
import os
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import SOURCE, stoker, tiny  # noqa: E402

HOST_MAPS = ("host_cpuinfo", "host_meminfo")


def tree(value, path=""):
    """Ordered list of (path, type); the contents of host maps depend on the kernel."""
    kind = "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__
    out = [(path, kind)]
    if isinstance(value, dict) and path.split("/")[-1] not in HOST_MAPS:
        for key, v in value.items():
            out += tree(v, f"{path}/{key}")
    elif isinstance(value, list) and value:
        out += tree(value[0], path + "[]")
    return out


def without_mark(root, name):
    """The mark comes first, where a cut leaves it: of a file, or of each epoch where a file has nothing but epochs."""
    for marked in root.values() if "per_epoch" in name else [root]:
        assert next(iter(marked)) == "program" and marked.pop("program").startswith("stoker "), (name, marked)
    return root


def main():
    golden = SOURCE / "tests/data/dlio-output"
    with tempfile.TemporaryDirectory() as tmp:
        out = pathlib.Path(tmp, "out")
        stoker("run", "-n", "2", *tiny(pathlib.Path(tmp, "data"), out, files=24, dataset__num_files_eval=8,
                                       dataset__record_length_bytes=65536, workflow__evaluation="true",
                                       reader__batch_size_eval=1, train__epochs=2,
                                       train__computation_time=0.02, evaluation__eval_time=0.01,
                                       workflow__checkpoint="true", model__model_size_bytes=1048576,
                                       checkpoint__checkpoint_folder=pathlib.Path(tmp, "saved")))
        for name in ("summary.json", "0_output.json", "1_output.json", "0_per_epoch_stats.json",
                     "1_per_epoch_stats.json"):
            ours, theirs = (json.loads((d / name).read_text()) for d in (out, golden))
            ours, theirs = tree(without_mark(ours, name)), tree(theirs)
            for a, b in zip(ours, theirs):
                assert a == b, f"{name}: {a} where DLIO has {b}"
            assert len(ours) == len(theirs), f"{name}: {set(ours) ^ set(theirs)}"
            print(f"   {name}: {len(ours)} keys as DLIO's")
        for name in ("config.yaml", "overrides.yaml", "hydra.yaml"):
            assert (out / ".hydra" / name).read_text().startswith("# Written by stoker "), name
        log = (out / "dlio.log").read_text()
        assert log.count("Starting epoch") == 2 and re.match(r"\[OUTPUT\] \S+ Written by stoker \S+\n", log), log
        theirs = golden / "dlio.log"
        ours, theirs = ([re.sub(r"[0-9][0-9T:.-]*", "#", line) for line in f.read_text().splitlines()
                         if "aving checkpoint" in line or " size: " in line] for f in (out / "dlio.log", theirs))
        assert ours == theirs, (ours, theirs)
        assert os.listdir(pathlib.Path(tmp, "saved", "global_epoch1_step6")) == ["model_states-0.pt"]
        summary = json.loads((out / "summary.json").read_text())["metric"]
        assert len(summary["eval_au_percentage"]) == 2, "one value an evaluation"
        assert 20 < summary["eval_au_mean_percentage"] <= 100


if __name__ == "__main__":
    main()

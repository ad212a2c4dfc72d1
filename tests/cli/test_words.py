"""Options as people type them, and what sentences name."""
import os
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import load, stoker, tiny  # noqa: E402

with tempfile.TemporaryDirectory() as tmp:
    data, out = pathlib.Path(tmp, "data"), pathlib.Path(tmp, "out")
    stoker("run", "-n4", *tiny(data, out, files=16))
    r = load(out)
    assert r["accelerators"] == 4
    stoker("run", "-n4x", *tiny(data, out, files=16), status=2)

    # the evaluation's order is proved as the training's
    stoker("run", "-n2", *tiny(data, out, files=16, dataset__num_files_eval=8, workflow__evaluation="true",
                               reader__batch_size_eval=3, evaluation__eval_time=0))
    epoch = load(out)["evaluation"]["epochs"][0]
    assert epoch["order_proved"] and "6 of 8 samples" in epoch["order_note"], epoch

    # a good AU of the measured steps does not hide a verdict
    trap = tiny("/trap", out, files=16, fmt="npy", storage__store="throttle+memory", storage__throttle__latency=0.1,
                reader__batch_size=4, reader__read_threads=4, reader__prefetch_size=8, train__computation_time=0.05,
                reader__access="native", metric__au=0.001)
    stoker("run", *trap)
    failed = [v["check"] for v in load(out)["verdicts"] if v["level"] == "fail"]
    assert failed, load(out)["verdicts"]
    done = stoker("run", *trap, "--check", status=3)
    assert f"the verdict '{failed[0]}' is FAIL" in done.stderr, done.stderr

    # one rank's failure names the rank once
    broken = tiny(data, out, files=16, workflow__generate_data="false", storage__store="fault+posix",
                  storage__fault__op="read", storage__fault__nth=5, storage__fault__path="img_")
    done = stoker("run", "-n2", *broken, status=1)
    assert done.stderr.count("rank ") == 1 and "worker" in done.stderr, done.stderr

    done = stoker("run", *tiny(data, out, workflow__generate_data="false", storage__store="fault+posix",
                               storage__fault__op="read", storage__fault__nth=1), status=1)
    assert str(data / "stoker_manifest.json") in done.stderr, done.stderr

    # what explains the commands fits the narrowest terminals, lists fit a page
    commands = ("run", "generate", "verify", "show", "study", "audit", "compare", "report")
    for words in ([], *([c] for c in commands)):
        lines = stoker(*words, "--help").stdout.splitlines()
        assert len(lines) > 4 and max(map(len, lines)) <= 80, (words, max(lines, key=len))
    for topic in ("workloads", "formats", "stores", "loaders", "verdicts", "system"):
        lines = stoker("show", topic).stdout.splitlines()
        assert len(lines) > 2 and max(map(len, lines)) <= 100, (topic, max(lines, key=len))
    assert "checkpoint" in stoker("run", "--help").stdout and "manifest" in stoker("verify", "--help").stdout

    # built-in workloads have a line each; those that this version cannot run say so, and a run says why
    lines = {line.split()[0]: line for line in stoker("show", "workloads").stdout.splitlines()}
    assert len(set(lines)) >= 48 and not lines["default"].endswith(" no"), lines
    if lines["dlrm_b200"].endswith(" no"):
        assert "parquet" in stoker("run", "dlrm_b200", status=1).stderr and "no:" in lines, lines
    names = [line.split()[0] for line in stoker("show", "workloads", "UNET3D_h").stdout.splitlines()]
    assert "unet3d_h100" in names and not {"default", "cosmoflow_h100"} & set(names), names
    assert "'nothing' in its name" in stoker("show", "workloads", "nothing", status=2).stderr
    # what needs a workload does not take one that was not named
    for command in ("run", "generate", "capacity"):
        assert "name a workload" in stoker(command, status=2).stderr, command

    # which program it is, by any name
    for words in (["--version"], ["-V"], ["version"]):
        said = stoker(*words).stdout
        assert re.fullmatch(r"stoker \d+\.\d+\.\d+-[0-9a-f]{12} \((commit [0-9a-f]{12}\+?; )?(portable, )?for \w+, with(out)? io_uring"
                            r"(, with sanitizers \([\w,]+\))?\)\n", said), said

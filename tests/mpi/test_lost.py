"""A process that ends, is ended or falls silent ends the run everywhere, with one sentence that names it,
and what the others measured is written down. Launchers kill what is left: that must not matter. What a launcher returns
depends on the order in which its processes end, too: after an interrupt it is asked several times."""
# beside others
# mostly waits
# takes 34 s
import os
import signal
import tempfile
import time

from launchers import LIBRARIES, at_work, audited, load, mpirun, need_mpi, sentences, started, tiny, wait_epoch, wait_for, worker_pid

need_mpi()
LIMIT_S = 10
spoken = []  # sentences that came through the launcher, by case


def lose(library, tmp, name, victim, sig, processes=3, epoch=4, **keys):
    """Sends `sig` to the launcher, to the child of a rank (its number) or to its parent; returns what was said."""
    out = f"{tmp}/{library}-{name}"
    arguments = tiny(f"{tmp}/data", out, files=12, train__epochs=2000, train__computation_time=0.03, reader__batch_size=1, **keys)
    with started([*mpirun(library, processes), *arguments]) as launcher:
        wait_epoch(out, epoch)
        if victim == "launcher":
            pid = int(open(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read().split()[0])
            os.kill(pid, sig)
        else:
            child, parent = worker_pid(abs(victim) - 1, out)
            pid = child if victim > 0 else parent
            os.kill(pid, sig)
        begin = time.monotonic()
        text = launcher.communicate(timeout=60)[0]
        wait_for(lambda: os.path.exists(f"{out}/result.json"), LIMIT_S, f"{name}: no result\n{text}")
        took = time.monotonic() - begin
        if sig == signal.SIGSTOP and os.path.exists(f"/proc/{pid}"):
            os.kill(pid, signal.SIGKILL)
    assert took < LIMIT_S, f"{library} {name}: {took:.1f} s"
    said = sentences(text)
    # who lost the launcher may still write the other files
    wait_for(lambda: not at_work(out), 30, f"{name}: processes stay")
    result = load(out)
    audited(out)
    spoken.append(len(said))
    if not said:  # who would have passed it on may be gone by then
        said = [f"stoker: {result['reason']}"]
    assert len(said) == 1, f"{library} {name}: not one sentence:\n{text}"
    assert said[0] == f"stoker: {result['reason']}", (said, result["reason"])
    assert launcher.returncode != 0, f"{library} {name}: the launcher returned 0:\n{text}"
    assert not os.path.exists(f"{out}/.stoker-taken-over")
    lost = [k["rank"] for k in result["ranks"] if k.get("lost")]
    print(f"{library} {name}: {took:.1f} s, {said[0][8:]}")
    return said[0], result, lost, set(os.listdir(out))


def finished(result):
    assert result["training"]["epochs_done"] >= 2
    assert len(result["training"]["epochs"]) == result["training"]["epochs_done"]
    assert result["training"]["au_mean_percent"] > 10
    # a process that is lost has no times: no part of what the others tell
    for epoch in result["training"]["epochs"]:
        parts = epoch["decomposition"]
        for wall, part in (("wall_s", "mean_over_ranks_s"), ("critical_path_wall_s", "critical_path_s")):
            assert 0.5 * epoch["wall_s"] < parts[wall] < 2 * epoch["wall_s"], (epoch["wall_s"], parts[wall])
            assert abs(sum(parts[part].values()) - parts[wall]) < 1e-6 * parts[wall]


with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
    saves = dict(workflow__checkpoint="true", checkpoint__checkpoint_folder=f"{tmp}/saved", checkpoint__epochs_between_checkpoints=1,
                 model__model_size_bytes=1000)
    for library in LIBRARIES:
        text, result, lost, names = lose(library, tmp, "rank 2 killed", 3, signal.SIGKILL, **saves)
        assert "rank 2 on host '" in text and "ended unexpectedly" in text
        assert result["status"] == "failed" and lost == [2]
        assert "1_output.json" in names and "2_output.json" not in names and "summary.json" in names
        finished(result)

        text, result, lost, names = lose(library, tmp, "rank 0 killed", 1, signal.SIGKILL, **saves)
        assert "rank 0 on host '" in text and 0 in lost and len(lost) == 2
        finished(result)

        # the launcher loses sight of a process; the process itself still tells what it measured
        text, result, lost, names = lose(library, tmp, "place of rank 1 killed", -2, signal.SIGKILL)
        assert "rank 1 on host '" in text and lost == [] and "1_output.json" in names
        finished(result)

        text, result, lost, names = lose(library, tmp, "interrupted", "launcher", signal.SIGINT)
        assert result["status"] == "interrupted" and lost == [] and "2_output.json" in names
        finished(result)

        for again in range(3):
            lose(library, tmp, f"interrupted, again {again}", "launcher", signal.SIGINT, epoch=2)

        text, result, lost, names = lose(library, tmp, "launcher killed", "launcher", signal.SIGKILL)
        assert result["status"] == "interrupted" and lost == [] and "2_output.json" in names
        finished(result)
    text, result, lost, names = lose(LIBRARIES[-1], tmp, "rank 2 stopped", 3, signal.SIGSTOP)
    assert "rank 2 on host '" in text and "has not answered for" in text and lost == [2]
    finished(result)
    # one that is silent for no longer than it may be: the others wait, and so does its parent
    out = f"{tmp}/silent"
    arguments = tiny(f"{tmp}/data", out, files=12, train__epochs=120, train__computation_time=0.03, reader__batch_size=1)
    with started([*mpirun(LIBRARIES[-1], 3), *arguments, "comm.silence=20"]) as launcher:
        wait_epoch(out, 20)
        pid = worker_pid(2, out)[0]
        os.kill(pid, signal.SIGSTOP)
        time.sleep(9)
        os.kill(pid, signal.SIGCONT)
        text = launcher.communicate(timeout=60)[0]
    assert launcher.returncode == 0 and load(out)["status"] == "complete", text
assert sum(spoken) * 2 > len(spoken), f"hardly ever was it said: {spoken}"

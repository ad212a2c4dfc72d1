"""Storage that stops answering, uninterruptibly, at any phase of a run: the results are there within 10 s of the
watchdog, the process ends as far as the kernel lets it, and one sentence says what does not answer."""
# mostly waits
# takes 25 s
import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from hung_store import LIMIT_S, HungRun, has_ended, wait_for  # noqa: E402
from loop_device import Unavailable  # noqa: E402
from util import SANITIZED, STOKER, skip, stoker  # noqa: E402

CHECKPOINTS = dict(workflow__checkpoint="true", checkpoint__checkpoint_folder="MOUNT/checkpoints",
                   checkpoint__epochs_between_checkpoints=1, model__model_size_bytes=20000000)


def in_time(name, run, says, epochs=None, status="failed"):
    written, ended, result = run.outcome()
    said = run.said()
    assert written is not None and result, f"{name}: no results\n{said}"
    assert written < LIMIT_S and ended is not None and ended < LIMIT_S, (name, written, ended)
    assert result["status"] == status, (name, result["status"], said)
    assert any(says in text for text in (said, result.get("reason", ""))), f"{name}: '{says}' is not in\n{said}"
    if epochs is not None:
        assert result["training"]["epochs_done"] >= epochs, (name, result["training"]["epochs_done"])
        assert not any(rank.get("lost") for rank in result["ranks"]), name
    print(f"{name}: results {written:.1f} s after the watchdog, end {ended:.1f} s", flush=True)
    return result


def start():
    with HungRun() as run:
        run.fs.hang("all")
        run.begun = time.monotonic()
        run.start()
        in_time("start", run, "does not answer")


def survey():
    with HungRun() as run:
        run.fs.hang("read")
        run.begun = time.monotonic()
        run.start()
        in_time("survey", run, "does not answer")


def training(requests):
    with HungRun() as run:
        run.start()
        run.hang(lambda: run.logged("Starting epoch 3"), *requests)
        in_time(f"training, {' '.join(requests)}", run, "run.watchdog", epochs=2)


def evaluation():
    with HungRun(workflow__evaluation="true", dataset__num_files_eval=8, evaluation__eval_time=0.05) as run:
        run.start()
        run.hang(lambda: run.logged("Starting eval", 2), "all")
        in_time("evaluation", run, "of evaluation", epochs=1)


def page_cache():
    with HungRun(storage__page_cache="cold_epochs", direct=0) as run:
        run.start()
        run.hang(lambda: run.logged("Ending epoch 2"), "open", "getattr", "statfs")
        in_time("page cache", run, "run.watchdog", epochs=1)


def checkpoint_written(requests):
    with HungRun(**CHECKPOINTS) as run:
        run.start()
        run.hang(lambda: run.logged("Starting epoch 2"), *requests)
        in_time(f"checkpoint written, {' '.join(requests)}", run, "writes a checkpoint", epochs=1)


def checkpoint_read():
    keys = dict(CHECKPOINTS, workflow__train="false", checkpoint__num_checkpoints_write=60,
                checkpoint__num_checkpoints_read=60)
    with HungRun(**keys) as run:
        run.start()
        run.hang(lambda: run.logged("read"), "read")
        in_time("checkpoint read", run, "reads a checkpoint")


def generation(requests, command):
    with HungRun(command=command, generated=False, files=50000, dataset__record_length_bytes=4096) as run:
        folder = run.source / "data" / "train"
        run.start()
        run.hang(lambda: folder.exists() and len(os.listdir(folder)) > 20, *requests)
        if command == "run":
            in_time(f"generation, {' '.join(requests)}", run, "made no progress")
        else:
            ended = run.seconds_to(lambda: has_ended(run.process.pid))
            assert ended is not None and ended < LIMIT_S and "made no progress" in run.said(), (ended, run.said())
            print(f"stoker generate, {' '.join(requests)}: end {ended:.1f} s after the watchdog", flush=True)
        assert not [p for p in folder.glob("*.npy") if p.stat().st_size < 4096], "a file under its name is not whole"


def end_of_run():
    """All is measured when it hangs, at the latest when the facts about the file system are asked for."""
    with HungRun(train__epochs=3, dataset__num_files_eval=0) as run:
        run.start()
        run.hang(lambda: run.logged("Starting epoch 3"), "statfs")
        written, ended, result = run.outcome()
        assert written is not None and written < LIMIT_S and ended < LIMIT_S and result, (written, run.said())
        assert result["training"]["epochs_done"] >= 2, result["training"]
        print(f"end of the run: results {written:.1f} s after the watchdog, {result['status']}", flush=True)


def folder_of_results():
    with HungRun(out_below=True) as run:
        run.start()
        run.hang(lambda: run.logged("Starting epoch 3"), "all")
        in_time("folder of results", run, "the results are in '", epochs=2)
        assert f"the results are in '{run.results()}'" in run.said() and "does not answer" in run.said(), run.said()
        stoker("audit", run.results(), status=None)


def second_signal():
    """The first waits for a request that may come back, the second does not; the results are written all the same."""
    with HungRun(run__watchdog=300) as run:
        run.start()
        run.hang(lambda: run.logged("Starting epoch 3"), "all")
        os.kill(run.process.pid, signal.SIGINT)
        time.sleep(0.7)
        assert not has_ended(run.process.pid)
        os.kill(run.process.pid, signal.SIGINT)
        begin = time.monotonic()
        assert wait_for(lambda: has_ended(run.process.pid), 10), run.said()
        took = time.monotonic() - begin
        result = run.results() and in_time("second signal", run, "stopped by a signal", 2, "interrupted")
        assert result and took < 3, (took, run.said())
        print(f"second signal: end {took:.1f} s after it", flush=True)


def third_signal():
    """Nobody is held by a folder of results that does not answer."""
    with HungRun(run__watchdog=300, out_below=True) as run:
        run.start()
        run.hang(lambda: run.logged("Starting epoch 3"), "all")
        for _ in range(3):
            os.kill(run.process.pid, signal.SIGINT)
            time.sleep(0.6)
        assert wait_for(lambda: has_ended(run.process.pid), 2), run.said()


def commands_end():
    """The second signal ends the commands that have nothing to write down, the first those that look at none. A thread that
    the kernel keeps holds nobody who reads their output."""
    with HungRun() as run:
        point = ("--point", "hosts=1,accelerators=8,samples_per_s=160,au=93.1", "--model", "unet3d_h100", "--accelerators", "8")
        log = run.tmp / "log"
        log.write_text("".join(f'10 {1000 + i / 1e4:.6f} pread64(3</d/f>, ""..., 4096, {i * 4096}) = 4096 <0.00002>\n'
                               for i in range(500)))
        for signals, requests, *words in (
                (2, ("read",), "verify", f"{run.mount}/data"),
                (2, ("write",), "replay", log, "--data", f"{run.mount}/image"),
                (2, ("fsync",), "replay", log, "--data", run.tmp / "image", "-o", f"{run.mount}/fidelity.json"),
                (1, ("fsync",), "plan", *point, "-o", f"{run.mount}/plan.html"),
                (1, ("all",), "explain", f"{run.mount}/data/log")):
            run.fs.hang(*requests)
            done = subprocess.Popen([os.path.abspath(STOKER), *map(str, words)], stdout=subprocess.PIPE, cwd=run.tmp,
                                    stderr=subprocess.STDOUT, text=True)
            time.sleep(1)
            assert done.poll() is None, (words, done.stdout.read())
            for _ in range(signals):
                if not has_ended(done.pid):
                    done.send_signal(signal.SIGTERM)
                    time.sleep(0.7)
            assert wait_for(lambda: has_ended(done.pid), 5), words
            said = done.stdout.read()  # its end, though the process may not be gone
            assert any(s in said for s in ("stopped by a signal", "stopped on request", "ended at once")), (words, said)
            run.fs.hang()
            assert done.wait(10) not in (0, 2), words


CASES = [(commands_end,), (start,), (survey,), (training, ("all",)), (training, ("open@img_07",)), (training, ("flush",)), (evaluation,),
         (page_cache,), (checkpoint_written, ("write",)), (checkpoint_written, ("all@checkpoints",)),
         (checkpoint_read,), (generation, ("write",), "run"), (generation, ("fsync",), "generate"), (end_of_run,),
         (folder_of_results,), (second_signal,), (third_signal,)]

if __name__ == "__main__":
    if SANITIZED:
        skip("a process under a sanitizer ends only when all its threads do")
    try:
        with HungRun(generated=False):
            pass
    except Unavailable as why:
        skip(str(why))
    # they wait most of the time
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for case in [pool.submit(*c) for c in CASES]:
            case.result()

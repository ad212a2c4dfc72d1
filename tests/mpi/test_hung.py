"""Under launchers: storage that hangs for one rank or for all leaves results within 10 s of the watchdog, the launcher
returns, and no rank is lost; warnings of schedulers, which launchers pass on, keep what was measured."""
# beside others
# mostly waits
# takes 25 s
import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from launchers import ENV, LIBRARIES, at_work, mpirun, need_mpi, tiny, wait_epoch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from hung_store import LIMIT_S, HungRun, result_in, wait_for  # noqa: E402
from loop_device import Unavailable  # noqa: E402
from util import left_out  # noqa: E402


ENDS_S = 30  # where nothing hangs, only a process that stays is told from one that ends


def hung(library, name, requests, says, **keys):
    with HungRun(launcher=mpirun(library, 3)[:-2], **keys) as run:
        run.start()
        run.hang(lambda: run.logged("Starting epoch 3"), *requests)
        written, _, result = run.outcome()
        ended = run.seconds_to(lambda: run.process.poll() is not None)
        said = run.said()
        assert written is not None and result, f"{library} {name}: no results\n{said}"
        assert written < LIMIT_S, (library, name, written)
        assert ended is not None and run.process.returncode != 0, f"{library} {name}: the launcher did not return\n{said}"
        assert result["status"] == "failed" and "run.watchdog" in result["reason"], result["reason"]
        # what launchers print of it depends on which process ends first
        assert says in said or says in result["reason"], (library, name, said)
        assert not any(k.get("lost") for k in result["ranks"]) and len(result["ranks"]) == 3, (library, name)
        assert result["training"]["epochs_done"] >= 2, result["training"]["epochs_done"]
        print(f"{library} {name}: results {written:.1f} s after the watchdog, the launcher returned {ended:.1f} s after it",
              flush=True)


def signalled(library, sig):
    """To the launcher. Some it passes on; of others it dies, and the processes notice."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        out = pathlib.Path(tmp, "out")
        keys = tiny(pathlib.Path(tmp, "data"), out, fmt="npy", files=12, train__epochs=100000, train__computation_time=0.02)
        # not below 'timeout', which would get the signal
        command = mpirun(library, 3)
        launcher = subprocess.Popen([*map(str, command[command.index(f"mpirun.{library}"):]), *map(str, keys)],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENV, start_new_session=True)
        try:
            wait_epoch(out, 3)
            launcher.send_signal(sig)
            assert wait_for(lambda: result_in(out), ENDS_S), f"{library} {sig.name}: no results"
            launcher.wait(timeout=ENDS_S)
        finally:
            if launcher.poll() is None:
                os.killpg(launcher.pid, signal.SIGKILL)
                launcher.wait()
        result = result_in(out)
        # processes that lost their launcher may still write the other files
        assert wait_for(lambda: not at_work(str(out)), ENDS_S), f"{library} {sig.name}: processes stay"
        assert result["status"] == "interrupted" and result["training"]["epochs_done"] >= 2, (library, sig.name, result["reason"])
        assert not any(k.get("lost") for k in result["ranks"]), (library, sig.name)


need_mpi()
cases = []
try:
    with HungRun(generated=False):
        pass
    for library in LIBRARIES:
        cases += [(hung, library, "all ranks", ("all",), "no rank made progress"),
                  (hung, library, "one rank", ("open@img_07",), "no rank made progress")]
    cases.append((lambda: hung(LIBRARIES[-1], "folder of results", ("all",), "the results are in '", out_below=True),))
except Unavailable as why:
    left_out(f"hung storage: {why}")
for library in LIBRARIES:
    cases += [(signalled, library, sig) for sig in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT, signal.SIGHUP)]
# they wait most of the time
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    for case in [pool.submit(*c) for c in cases]:
        case.result()

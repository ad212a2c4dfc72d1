"""Measurements beside which nothing else ran: how much processor time others took, and what to do again."""
import atexit
import os
import resource
import signal
import sys
import time

OTHERS = 0.25  # processors


def _busy():
    with open("/proc/stat") as f:
        user, nice, system, idle, wait, irq, soft = map(int, f.readline().split()[1:8])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def _ours():
    t = os.times()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return t.user + t.system + children.ru_utime + children.ru_stime


def quietly(once, tries=int(os.environ.get("BENCH_TRIES", "2"))):
    """once() again while other programs used more than OTHERS processors beside it: the quietest attempt."""
    best = None
    for _ in range(tries):
        begin, busy, ours = time.monotonic(), _busy(), _ours()
        value = once()
        others = (_busy() - busy - (_ours() - ours)) / (time.monotonic() - begin)
        if best is None or others < best[0]:
            best = others, value
        if others <= OTHERS:
            break
    if best[0] > OTHERS:
        print(f"others used {best[0]:.2f} processors beside this measurement", file=sys.stderr, flush=True)
    return best[1]


GROUP = f"/sys/fs/cgroup/cpu/quiet.{os.getpid()}"


def _group():
    """A control group whose processes go before all others. Where sessions are grouped (autogroup), a nice value counts
    only within its session."""
    above = os.path.dirname(GROUP)
    if not os.path.exists(f"{above}/cpu.shares"):
        return False
    try:
        os.mkdir(GROUP)
        atexit.register(_leave, above)
        for name, value in (("cpu.shares", 1 << 18), ("cgroup.procs", os.getpid())):
            with open(f"{GROUP}/{name}", "w") as f:
                f.write(str(value))
    except OSError:
        return False
    return True


def _leave(above):
    with open(f"{above}/cgroup.procs", "w") as f:
        f.write(str(os.getpid()))
    for _ in range(50):
        try:
            return os.rmdir(GROUP)
        except OSError:  # what was started may still end
            time.sleep(0.1)


def first():
    """What is measured goes before what else runs here, if that is allowed. A time limit leaves no store behind."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        _group() or os.nice(-15)
    except OSError:
        pass

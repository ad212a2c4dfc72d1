"""Processors that a run does not get: taken by other programs, by a control group's quota, by a cpuset; a process or a
thread that is stopped or frozen, in training and in evaluation; reads that a control group limits. Each is planted and
must be told, with figures, in the verdict `client`, in the time budget (no_processor) and in what limits the run; quiet
runs, and runs whose own decoding is what is busy, must stay clean. Cases that measure times must be right in 3 of 4
attempts."""
# tier: long
import concurrent.futures
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import result_facts  # noqa: E402
from loop_device import LoopDevice, Unavailable  # noqa: E402
from told import told, verdict  # noqa: E402
from util import SANITIZED, STOKER, attempts, left_out, load, skip, tiny  # noqa: E402

GROUP = "processors taken away"
CPUS = sorted(os.sched_getaffinity(0))


class Hogs:
    """Programs that keep processors busy: `n` of them, each bound to one."""

    def __init__(self, n, cpus=None):
        self.n, self.cpus = n, cpus or CPUS

    def __enter__(self):
        self.busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"],
                                      preexec_fn=lambda c=self.cpus[i % len(self.cpus)]: os.sched_setaffinity(0, [c]))
                     for i in range(self.n)]
        return self

    def __exit__(self, *_):
        for p in self.busy:
            p.kill()
            p.wait()


class Group:
    """A control group of version 1, gone at the end; in_it is a preexec_fn."""

    def __init__(self, controller, **settings):
        self.folder = f"/sys/fs/cgroup/{controller}/stoker-cpu-{os.getpid()}-{threading.get_ident()}"
        self.settings = settings

    def __enter__(self):
        os.mkdir(self.folder)
        for key, value in self.settings.items():
            self.put(key.replace("__", "."), value)
        return self

    def put(self, file, value):
        with open(f"{self.folder}/{file}", "w") as f:
            f.write(str(value))

    def in_it(self):
        self.put("cgroup.procs", os.getpid())

    def __exit__(self, *_):
        for _ in range(50):
            with contextlib.suppress(OSError):
                os.rmdir(self.folder)
                return
            time.sleep(0.05)


def groups(controller):
    return os.geteuid() == 0 and os.access(f"/sys/fs/cgroup/{controller}/tasks", os.W_OK)


def start(args, ranks=1, **kw):
    return subprocess.Popen([STOKER, "run", *args, "-n", str(ranks)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, **kw)


def end(p):
    text, _ = p.communicate(timeout=120)
    assert p.returncode == 0, (p.returncode, text)


def facts(out):
    """What the cases look at, from a result."""
    r = load(out)
    t = r["training"]
    d = t["decomposition"]
    client = next(v for v in r["verdicts"] if v["check"] == "client")
    assert abs(sum(d["mean_over_ranks_s"].values()) - d["wall_s"]) <= 1e-3 * d["wall_s"] + 1e-6, d
    assert abs(sum(d["critical_path_s"].values()) - d["critical_path_wall_s"]) <= 1e-3 * d["wall_s"] + 1e-6, d
    return dict(r=r, cause=r["limit"]["cause"], limit=r["limit"]["text"],
                facts=result_facts.reasons(r["limit"]["facts"]), level=client["level"], client=client["text"], shown=client["facts"],
                lost=d["mean_over_ranks_s"]["no_processor"], wall=d["wall_s"], workers=d["workers_s"])


def short(f):
    return {k: v for k, v in f.items() if k != "r"}


def said(f):
    return f"{f['limit']} {verdict(f['r'], 'client')}"


# reads that wait for a throttle, and do next to nothing themselves
WAITS = dict(fmt="npy", files=200, storage__store="throttle+memory", dataset__record_length_bytes=16384,
             reader__batch_size=2, reader__read_threads=2, storage__throttle__latency=0.001,
             train__computation_time=0.004)
# text that is parsed: the workers compute for some 8 ms a sample
DECODES = dict(fmt="csv", files=32, storage__store="memory", dataset__record_length_bytes=1048576, train__epochs=3,
               reader__decode="full", reader__batch_size=1, reader__read_threads=2, train__computation_time=0.001)
# samples of some size, of which the workers do little more than copy the bytes
COPIES = dict(WAITS, files=400, dataset__record_length_bytes=400000, storage__throttle__latency=0.0005,
              train__computation_time=0.005, train__epochs=1)
# computation that hides all reads: 2 s of 6 ms steps
COMPUTES = dict(WAITS, files=1000, reader__read_threads=4, storage__throttle__latency=0.0002,
                train__computation_time=0.006)


# the same, in steps of 20 ms
LONG = dict(COMPUTES, files=500, train__computation_time=0.02)


def args_of(out, keys):
    keys = dict(keys)
    return tiny("/processors", out, keys.pop("fmt"), keys.pop("files"), **keys)


# ---- taken by other programs, quotas, cpusets ----

def lower(pid, nice):
    """Gives all threads of a process that niceness; None: SCHED_IDLE."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it may end meanwhile
        for t in os.listdir(f"/proc/{pid}/task"):
            if nice is None:
                os.sched_setscheduler(int(t), os.SCHED_IDLE, os.sched_param(0))
            else:
                os.setpriority(os.PRIO_PROCESS, int(t), nice)


def beside(hogs, nice, keys, ranks=1, cpus=None, length=2.5):
    """A run that trains at that niceness beside so many busy loops, both on the same processors; it begins and ends
    without them, because that would take long."""
    def once(out):
        cpus_of_run = cpus or CPUS
        p = start(args_of(out, keys), ranks, preexec_fn=lambda: os.sched_setaffinity(0, cpus_of_run))
        ready(p)
        with Hogs(hogs, cpus_of_run):
            lower(p.pid, nice)
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.wait(length)
            lower(p.pid, 0)
        end(p)
        return facts(out)
    return once


def with_quota(share, keys, ranks=1):
    def once(out):
        with Group("cpu", cpu__cfs_quota_us=int(100000 * share), cpu__cfs_period_us=100000) as g:
            end(start(args_of(out, keys), ranks, preexec_fn=g.in_it))
        return facts(out)
    return once


def workers_with_quota(share, keys, after=0.5):
    """Only the worker threads are moved to a group with that quota, while they read."""
    def once(out):
        with Group("cpu", cpu__cfs_quota_us=int(100000 * share), cpu__cfs_period_us=100000) as g:
            p = start(args_of(out, keys))
            ready(p)
            time.sleep(after)
            for t in os.listdir(f"/proc/{p.pid}/task"):
                if re.match(r"w\d", open(f"/proc/{p.pid}/task/{t}/comm").read()):
                    g.put("tasks", t)
            end(p)
        return facts(out)
    return once


def on_one(keys, ranks=1):
    """A cpuset of one processor."""
    def once(out):
        end(start(args_of(out, keys), ranks, preexec_fn=lambda: os.sched_setaffinity(0, CPUS[:1])))
        return facts(out)
    return once


def shown(f, *names, evaluation=False):
    """The figures of the verdict's first such fact, of training or of evaluation; None."""
    inside, part = not evaluation, []
    for fact in f["shown"]:
        if fact["reason"] == "client.lost":
            inside = bool(fact["figures"].get("eval")) == evaluation
        if inside:
            part.append(fact)
    return result_facts.find(part, *names)


def taken(f, least=0.3):
    return (f["cause"] == "other_programs" and f["level"] in ("warn", "fail") and f["lost"] >= least * f["wall"] and
            shown(f, "cpu.others", "cpu.others_idle_class") and "limit.no_cpu_others" in f["facts"])


def throttled(f, least=0.3):
    return (f["cause"] == "cpu_quota" and f["level"] in ("warn", "fail") and f["lost"] >= least * f["wall"] and
            shown(f, "cpu.quota", "cpu.quota_of_threads") and f["facts"] & {"cpu.quota", "cpu.quota_of_threads"})


def own(f):
    return f["cause"] == "decode" and not shown(f, "cpu.others", "cpu.others_idle_class") and "cpu.others" not in f["facts"]


def only_what_was_asked(f, ranks, points=2, least=15):
    """Whole-run AU is the computation that was asked for over the wall time; AU by DLIO's definition, which counts a
    computation until its thread goes on, is that many points above it. The time budget says the same."""
    t = f["r"]["training"]
    asked = 100 * f["r"]["need"]["computation_s"] * t["steps_per_epoch"] * t["epochs_done"] / f["wall"]
    computed = t["decomposition"]["mean_over_ranks_percent"]["compute"]
    raw = 100 * sum(e["compute_s"] for e in t["epochs"]) / f["wall"]
    whole = t["whole_run_au_percent"]
    f.update(asked=asked, whole=whole, raw=raw, dlio=t["au_mean_percent"])
    assert len(f["r"]["ranks"]) == ranks and abs(whole - computed) <= 0.5, short(f)
    return (abs(whole - asked) <= points and raw - whole >= least and t["au_mean_percent"] - whole >= least and
            abs(100 - f["r"]["limit"]["lost_percent"] - whole) <= 0.5 and taken(f, 0.15))


def taken_cases():
    """(what was planted, how, whether it was told)"""
    two = len(CPUS)
    yield (f"nice 19 beside {2 * two} busy loops on {two} processors, reads of 1 ms",
           beside(2 * two, 19, dict(WAITS, files=300)), lambda f: taken(f, 0.2))
    yield (f"nice 19 beside {2 * two} busy loops, 2 ranks", beside(2 * two, 19, dict(WAITS, files=300), 2),
           lambda f: taken(f, 0.2))
    yield (f"SCHED_IDLE beside {two} busy loops", beside(two, None, dict(WAITS, files=300)), taken)
    late = dict(COMPUTES, files=300, reader__batch_size=1)
    yield (f"SCHED_IDLE beside {two} busy loops, reads hidden by computation of 6 ms: lateness is not computation",
           beside(two, None, late), lambda f: only_what_was_asked(f, 1))
    yield (f"nice 19 beside {3 * two} busy loops, 2 ranks that compute for 6 ms: lateness is not computation",
           beside(3 * two, 19, dict(late, files=400), 2, length=4), lambda f: only_what_was_asked(f, 2, 3, 8))
    yield ("nice 10 beside one busy loop, both on one processor, decoding",
           beside(1, 10, dict(DECODES, files=24), 1, CPUS[:1]), taken)
    yield f"nice 5 beside {two} busy loops, decoding", beside(two, 5, DECODES), taken
    if not groups("cpu"):
        left_out("quotas: no control group of processors (version 1)")
    else:
        yield ("a quota of 0.25 processors, 4 workers that decode",
               with_quota(0.25, dict(DECODES, train__epochs=1, reader__read_threads=4)), throttled)
        yield ("a quota of 0.55 processors, 2 ranks that decode", with_quota(0.55, dict(DECODES, train__epochs=2), 2), throttled)
        yield ("a quota of 0.01 processors for the worker threads alone, during an epoch",
               workers_with_quota(0.01, COPIES), lambda f: throttled(f, 0.1) and shown(f, "cpu.quota_of_threads"))
    yield (f"one of {two} processors, 6 workers that decode", on_one(dict(DECODES, reader__read_threads=6)),
           lambda f: own(f) and result_facts.find(f["r"]["limit"]["facts"], "cpu.self").get("online") == two)


# ---- stopped and frozen ----

def ready(p):
    """Waits until training has begun: rank 0 has worker threads."""
    for _ in range(400):
        with contextlib.suppress(OSError):
            names = [open(f"/proc/{p.pid}/task/{t}/comm").read().strip() for t in os.listdir(f"/proc/{p.pid}/task")]
            if sum(bool(re.match(r"w\d", n)) for n in names) >= 1:
                return
        time.sleep(0.01)
    raise AssertionError(f"{p.args}: no worker was seen")


def worker_of(pid):
    return next(int(t) for t in os.listdir(f"/proc/{pid}/task")
                if re.match(r"w\d", open(f"/proc/{pid}/task/{t}/comm").read()))


def stopped(length, keys, after=0.5, ranks=1):
    def once(out):
        p = start(args_of(out, keys), ranks)
        ready(p)
        time.sleep(after)
        p.send_signal(signal.SIGSTOP)
        time.sleep(length)
        p.send_signal(signal.SIGCONT)
        end(p)
        return facts(out)
    return once


def frozen_group(length, keys, after=0.5):
    def once(out):
        with Group("freezer") as g:
            p = start(args_of(out, keys), preexec_fn=g.in_it)
            ready(p)
            time.sleep(after)
            g.put("freezer.state", "FROZEN")
            time.sleep(length)
            g.put("freezer.state", "THAWED")
            end(p)
        return facts(out)
    return once


def stopped_often(length, pause, times, keys, after=0.5):
    """Stopped so many times, each time too briefly to be told alone."""
    def once(out):
        p = start(args_of(out, keys))
        ready(p)
        time.sleep(after)
        for _ in range(times):
            p.send_signal(signal.SIGSTOP)
            time.sleep(length)
            p.send_signal(signal.SIGCONT)
            time.sleep(pause)
        end(p)
        return facts(out)
    return once


def frozen_often(length, pause, times, keys, after=0.5):
    def once(out):
        with Group("freezer") as g:
            p = start(args_of(out, keys), preexec_fn=g.in_it)
            ready(p)
            time.sleep(after)
            for _ in range(times):
                g.put("freezer.state", "FROZEN")
                time.sleep(length)
                g.put("freezer.state", "THAWED")
                time.sleep(pause)
            end(p)
        return facts(out)
    return once


def stood_often(length, times):
    def right(f):
        m = shown(f, "cpu.stopped")
        return (bool(m) and abs(m["seconds"] - times * length) <= 0.2 * times * length and
                abs(m["stops"] - times) <= max(1, times // 8) and f["level"] in ("warn", "fail") and
                f["cause"] == "stopped" and abs(f["lost"] - times * length) <= 0.3 * times * length)
    return right


def frozen_thread(length, keys, after=0.5):
    """One worker in a frozen group."""
    def once(out):
        with Group("freezer") as g:
            p = start(args_of(out, keys))
            ready(p)
            time.sleep(after)
            g.put("tasks", worker_of(p.pid))
            g.put("freezer.state", "FROZEN")
            time.sleep(length)
            g.put("freezer.state", "THAWED")
            end(p)
        return facts(out)
    return once


def stood(length, phase="training"):
    def right(f):
        m = shown(f, "cpu.stopped", evaluation=phase != "training")
        ok = bool(m) and abs(m["seconds"] - length) <= 0.25 and f["level"] in ("warn", "fail")
        if phase == "training":
            return ok and f["cause"] == "stopped" and abs(f["lost"] - length) <= 0.3
        return ok and f["cause"] != "stopped" and f["lost"] < 0.3
    return right


def thread_stood(length):
    def right(f):
        m = shown(f, "cpu.frozen")
        return (bool(m) and m["thread"].startswith("w") and abs(m["seconds"] - length) <= 0.6 and f["level"] in ("warn", "fail") and
                f["cause"] == "stopped" and abs(f["lost"] - length) <= 0.7)
    return right


def stopped_cases():
    yield "SIGSTOP for 1.3 s while reads of 1 ms are waited for", stopped(1.3, dict(WAITS, files=400)), stood(1.3)
    yield "SIGSTOP for 2.2 s while computation hides all reads", stopped(2.2, COMPUTES), stood(2.2)
    yield "SIGSTOP for 1 s, 3 ranks", stopped(1, dict(WAITS, files=900), ranks=3), stood(1)
    evaluation = dict(WAITS, files=40, dataset__num_files_eval=600, workflow__evaluation="true",
                      evaluation__eval_time=0.002, reader__batch_size_eval=2)
    yield "SIGSTOP for 1.5 s in the evaluation", stopped(1.5, evaluation, 1.2), stood(1.5, "evaluation")
    yield ("SIGSTOP for 0.2 s, 12 times, while computation hides all reads", stopped_often(0.2, 0.2, 12, LONG),
           stood_often(0.2, 12))
    yield ("SIGSTOP for 0.06 s, 25 times, while computation hides all reads", stopped_often(0.06, 0.14, 25, LONG),
           stood_often(0.06, 25))
    if not groups("freezer"):
        left_out("freezing: no freezer control group (version 1)")
        return
    yield "the whole process frozen by its control group for 1.7 s", frozen_group(1.7, dict(WAITS, files=400)), stood(1.7)
    yield ("frozen by its control group for 0.18 s of every 0.45 s, 9 times", frozen_often(0.18, 0.27, 9, LONG),
           stood_often(0.18, 9))
    yield "one of 2 workers frozen for 2 s", frozen_thread(2, dict(WAITS, files=500)), thread_stood(2)


# ---- quiet, or busy by itself ----

def busy_s():
    """Seconds that processors ran anything, and those that ended children of this test ran."""
    ticks = [int(x) for x in open("/proc/stat").readline().split()[1:]]
    return (sum(ticks) - ticks[3] - ticks[4] - ticks[7]) / os.sysconf("SC_CLK_TCK"), sum(os.times()[2:4])


def plain(keys, ranks=1):
    """A run with nothing beside it: repeated while this machine has other work, as this test counts it."""
    def once(out):
        for n in range(8):
            begin, at = busy_s(), time.monotonic()
            end(start(args_of(f"{out}.{n}", keys), ranks))
            took, now = time.monotonic() - at, busy_s()
            others = (now[0] - begin[0]) - (now[1] - begin[1])
            if others <= 0.12 * took * os.cpu_count():
                break
            print(f"other programs used {others:.2f} s in a run of {took:.2f} s: once more", flush=True)
            time.sleep(1)
        return facts(f"{out}.{n}")
    return once


def quiet(f):
    return f["level"] == "pass" and f["cause"] not in ("other_programs", "cpu_quota", "stopped")


def quiet_cases():
    yield "a quiet run, reads of 1 ms", plain(dict(WAITS, files=300)), lambda f: quiet(f) and f["lost"] < 0.03 * f["wall"]
    yield "a quiet run with 4 ranks whose reads are hidden", plain(dict(COMPUTES, files=800), 4), quiet
    yield ("4 workers whose own decoding takes all processors", plain(dict(DECODES, reader__read_threads=4)), own)
    busy = dict(COMPUTES, files=400)
    yield ("a busy loop on another processor than the run's", lambda out: beside_elsewhere(busy, out), quiet)


def beside_elsewhere(keys, out):
    with Hogs(1, CPUS[-1:]):
        end(start(args_of(out, keys), preexec_fn=lambda: os.sched_setaffinity(0, CPUS[:1])))
    return facts(out)


# ---- reads that a control group limits ----

def io_limit(tmp):
    """(misses) of a device whose control group limits reads."""
    misses = 0
    try:
        device = LoopDevice(96)
        with device as d, Group("blkio") as g:
            if not groups("blkio"):
                left_out("limited reads: no control group of block devices (version 1)")
                return 0
            folder = os.path.join(d.mount, "data")
            keys = dict(fmt="npy", files=64, dataset__record_length_bytes=524288, reader__batch_size=2,
                        reader__read_threads=2, train__computation_time=0.002, storage__store="direct")
            number = open(f"/sys/block/{d.name}/dev").read().strip()

            def run(out):
                end(start(tiny(folder, out, keys["fmt"], keys["files"],
                               **{k: v for k, v in keys.items() if k not in ("fmt", "files")}), preexec_fn=g.in_it))
                return facts(out)
            run(os.path.join(tmp, "unlimited"))
            for file, value, words, figure in [
                    ("blkio.throttle.read_bps_device", 18000000, "to 18 MB/s", "bytes_per_s"),
                    ("blkio.throttle.read_iops_device", 70, "to 70 requests/s", "reads_per_s")]:
                g.put(file, f"{number} {value}")

                def once(n, file=file, value=value, figure=figure):
                    f = run(os.path.join(tmp, f"{file}-{n}"))
                    group = result_facts.find(f["r"]["limit"]["facts"], "io_group") or {}
                    return (f["cause"] == "io_limit" and f["level"] == "warn" and
                            group.get(figure) == value and group.get("device") == d.name), f
                name = f"reads of a loop device limited by its control group {words}"
                ok, f = attempts(name, once)
                misses += report(name, ok, f)
                g.put(file, f"{number} 0")
    except Unavailable as e:
        left_out(f"limited reads: {e}")
    return misses


# ---- all ----

def report(name, ok, f):
    print(f"{'' if ok else 'MISSED '}{name}: {said(f)}{'' if ok else short(f)}", flush=True)
    told(GROUP, name, said(f))
    return not ok


def try_once(once, right, out):
    f = once(out)
    return bool(right(f)), f


def judge(tmp, name, once, right, first=None):
    base = os.path.join(tmp, re.sub(r"\W", "", name))
    ok, f = attempts(name, lambda n: try_once(once, right, f"{base}-{n}"), first)
    return report(name, ok, f)


def main():
    if SANITIZED:
        skip("times under a sanitizer are not those of the program")
    if not os.path.exists("/proc/self/schedstat") or open("/proc/self/schedstat").read().split()[-1] == "0":
        skip("this kernel does not count waits for a processor (/proc/self/schedstat)")
    wanted = sys.argv[1] if sys.argv[1:] else ""
    misses = 0
    with tempfile.TemporaryDirectory() as tmp:
        stops = [c for c in stopped_cases() if wanted in c[0]]
        # these sleep for most of their time
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            first = [pool.submit(try_once, once, right, os.path.join(tmp, f"first{i}"))
                     for i, (_, once, right) in enumerate(stops)]
        for case, done in zip(stops, first):
            misses += judge(tmp, *case, first=done.result())
        for case in [*quiet_cases(), *taken_cases()]:
            if wanted in case[0]:
                begin = time.monotonic()
                misses += judge(tmp, *case)
                print(f"  {time.monotonic() - begin:.1f} s")
        if wanted in "limited reads":
            misses += io_limit(tmp)
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())

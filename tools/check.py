#!/usr/bin/env python3
"""Runs the tests of a build folder and says where it is: a live line on a terminal, a line per test elsewhere.

    check.py BUILD [--all] [--only REGEX] [--leave REGEX] [--leave-tiers A,B] [-j N | --targets]

Without --all only the quick tests run: those without the label `long`. Counted and printed with their reasons: skipped
tests, parts and cmocka cases that were left out, cases of timing tests that were repeated, tests that failed once
("unsteady", see second_chances). The last line is "N passed, N failed, N skipped", with ", N unsteady" where there were
some. The output of each test stays in BUILD/check/NAME.log.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import truth_doc

# How many tests and cases within the C tests a whole build has: TESTS_* of tests/CMakeLists.txt.
COUNTS = re.compile(r"^set\(TESTS_(QUICK|ALL|CASES) (\d+)\)", re.M)
# These measure, or wait for other processes, on a machine that others may use: at most so many that failed are run once
# more, not counting those beside which others were seen to use the processors.
NEED_QUIET = {"truth", "mpi", "cli", "fault", "interop", "contract", "unit"}
SECOND_CHANCES = 6
DISTURBED = 0.25  # processors that others or the hypervisor had, beside a test that ran alone
STOLEN = float(os.environ.get("STOKER_STOLEN", 0.15))  # processors that the hypervisor had, beside any test
# What sanitizers find goes to files of their own, so that a finding counts even where a test does not look at the output.
FOUND = re.compile(r"^SUMMARY: |runtime error: |(ERROR|FATAL): \w+Sanitizer", re.M)
# What a program does only when it is wrong, however busy the machine is: it died, it hung, a sanitizer found something.
DIED = re.compile(r"Sanitizer|runtime error: |[Aa]ssertion [`'].* failed|Assertion failed|status -\d|exit(ed)? with -\d|by signal \d"
                  r"|SIG(SEGV|ABRT|BUS|ILL|FPE|SYS|KILL)|core dumped|Segmentation fault|double free|stack smashing"
                  r"|crash: |\bhangs\b")
HUNG = re.compile(r"TimeoutExpired")  # no accident either, but where a sanitizer makes the program ten times slower
QUIET_SECONDS = 30
LAST_WORDS = 600  # of a failed test, at the end of all
WAITING = 2  # tests that mostly wait, beside the others
CALM_SECONDS = float(os.environ.get("STOKER_CALM_SECONDS", 45))  # at most so long is waited for other work on the machine to pass
CASE = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (\w+)")


def default_signals():
    """What started the tests (nohup, a background job of a script) may ignore signals, which programs inherit."""
    for sig in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(sig, signal.SIG_DFL)


HZ = os.sysconf("SC_CLK_TCK")


def ticks():
    """Of all processors: what programs have used, and what the hypervisor has taken."""
    t = [int(x) for x in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return t[0] + t[1] + t[2] + t[5] + t[6], t[7]


class Test:
    def __init__(self, entry, sanitized):
        self.sanitized = sanitized
        self.name = entry["name"]
        self.command = entry.get("command", [])
        p = {q["name"]: q["value"] for q in entry.get("properties", [])}
        labels = set(p.get("LABELS", []))
        self.tier = self.name.split(".")[0]
        short = self.name.partition(".")[2]
        self.target = f"fuzz_{short}_replay" if self.tier == "fuzz" else f"{self.tier}_test_{short}"  # of a C test
        self.long = "long" in labels
        self.waits = "waits" in labels
        self.serial = bool(p.get("RUN_SERIAL"))
        self.pairs = "pairs" in labels  # alone, or beside one more such
        self.timeout = float(p.get("TIMEOUT", 600))
        self.skip_status = int(p.get("SKIP_RETURN_CODE", -1))
        self.folder = p.get("WORKING_DIRECTORY", ".")
        self.env = dict(e.split("=", 1) for e in p.get("ENVIRONMENT", []))
        self.state = None  # "passed", "failed", "skipped"
        self.why = ""
        self.seconds = self.cpu = 0.0
        self.output = ""
        self.late = self.by_signal = self.second = False
        self.disturbed = False  # others used the processors while it ran, as far as that can be told

    def size(self):
        """What stands in for the duration of a test that was never run here: what a script says of itself ("# takes 200 s"),
        its tier, its length."""
        script = next((a for a in self.command if a.endswith(".py")), None)
        text = pathlib.Path(script).read_text() if script and os.path.exists(script) else ""
        takes = re.search(r"^# takes (\d+) s$", text, re.M)
        return int(takes[1]) if takes else 0, self.tier == "contract", len(text)

    def script(self):
        """The script of the test, from the root of the tree; None: a C program."""
        path = next((pathlib.Path(a) for a in self.command if a.endswith(".py")), None)
        return str(path.relative_to(truth_doc.ROOT)) if path and truth_doc.ROOT in path.parents else None

    def start(self, logs):
        self.log = logs / f"{self.name}.log"
        for old in self.findings():
            old.unlink()
        findings = self.log.with_suffix(".found").resolve()
        for options in [k for k in self.env if k.endswith("SAN_OPTIONS")] if self.sanitized else []:
            self.env[options] = f"{self.env[options].split(':log_path=')[0]}:log_path={findings}"
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(self.command, cwd=self.folder, env={**os.environ, **self.env},
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                            start_new_session=True, preexec_fn=default_signals)
        self.began, self.ticks = time.monotonic(), ticks()
        self.late = self.by_signal = False

    def findings(self):
        return self.log.parent.glob(f"{self.name}.found.*")

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def ended(self):
        """Whether the test has ended; then its state is known."""
        self.seconds = time.monotonic() - self.began
        if not self.late and self.seconds > self.timeout:
            self.late = True
            self.kill()
        pid, status, use = os.wait4(self.process.pid, os.WNOHANG)
        if pid == 0:
            return False
        self.process.returncode = status = os.waitstatus_to_exitcode(status)
        self.cpu = use.ru_utime + use.ru_stime
        busy, stolen = ((now - then) / HZ for now, then in zip(ticks(), self.ticks))
        self.disturbed = stolen > STOLEN * self.seconds or \
            self.serial and busy + stolen - self.cpu > DISTURBED * self.seconds
        self.output = self.log.read_text(errors="replace")
        found = [text for text in (f.read_text(errors="replace") for f in self.findings()) if FOUND.search(text)]
        self.output += "".join(found)
        if self.late:
            self.state, self.why = "failed", f"still running after {self.timeout:.0f} s"
        elif found:
            self.state, self.why = "failed", f"a sanitizer's finding, {len(found)} in all"
        elif status == 0:
            self.state = "passed"
        elif status == self.skip_status:
            self.state = "skipped"
            self.why = next((line[len("skipped: "):] for line in self.output.splitlines()
                             if line.startswith("skipped: ")), "no reason given")
        else:
            self.state, self.by_signal = "failed", status < 0
            self.why = f"status {status}" if status > 0 else f"killed by {signal.Signals(-status).name}"
        return True

    def cases(self):
        """Of a cmocka program: {state: number of cases}, and (case, reason) of each that was skipped."""
        count, skipped, reason, running = collections.Counter(), [], None, False
        for line in self.output.splitlines():
            if line.startswith("[==========]"):
                # after the run, cmocka repeats the names of the cases that failed or were skipped
                running = "Running" in line
            elif line.startswith("[ RUN "):
                reason = None
            elif line.startswith("skipped: "):
                reason = line[len("skipped: "):]
            found = CASE.match(line)
            if running and found:
                count[found.group(1)] += 1
                if found.group(1) == "SKIPPED":
                    skipped.append((found.group(2), reason or "no reason given"))
        return count, skipped

    def lines(self, mark):
        return [line[len(mark):] for line in self.output.splitlines() if line.startswith(mark)]


class Screen:
    """One line that changes on a terminal, lines elsewhere."""

    def __init__(self, total):
        self.total = total
        self.live = sys.stdout.isatty()
        self.said = time.monotonic()
        self.drawn = ""

    def say(self, text):
        if self.drawn:
            sys.stdout.write("\r\x1b[K")
            self.drawn = ""
        print(text, flush=True)
        self.said = time.monotonic()

    def ended(self, test, done):
        if not self.live or test.state != "passed":
            why = f": {test.why}" if test.why else ""
            self.say(f"{done:4}/{self.total} {test.name} {test.state}, {test.seconds:.1f} s{why}")

    def running(self, running, done, failed):
        names = ", ".join(f"{t.name} {t.seconds:.0f} s" for t in running)
        if self.live:
            text = f"{done} of {self.total} tests, {failed} failed; running: {names}"
            text = text[:shutil.get_terminal_size().columns - 1]
            if text != self.drawn:
                sys.stdout.write(f"\r{text}\x1b[K")
                sys.stdout.flush()
                self.drawn = text
        elif time.monotonic() - self.said > QUIET_SECONDS:
            self.say(f"{done:4}/{self.total} still running: {names}")


def run(tests, jobs, logs):
    """Runs the tests: the longest first, those that must be alone, or beside one that hardly computes, at the end."""
    screen = Screen(len(tests))
    waiting, running, done, failed = list(tests), [], 0, 0
    try:
        while waiting or running:
            for test in list(waiting):
                if running and (test.serial or running[0].serial) and \
                        not (test.pairs and len(running) == 1 and running[0].pairs):
                    break
                alike = sum(t.waits == test.waits for t in running)
                if alike >= (WAITING if test.waits and jobs > 1 else jobs):
                    continue
                test.start(logs)
                waiting.remove(test)
                running.append(test)
            for test in list(running):
                if test.ended():
                    running.remove(test)
                    done += 1
                    failed += test.state == "failed"
                    screen.ended(test, done)
            screen.running(running, done, failed)
            time.sleep(0.02)
        if screen.drawn:
            sys.stdout.write("\r\x1b[K")
    finally:
        for test in running:
            test.kill()


def certain(test):
    """Why the failure of a test is no accident of the machine; None: it may be one."""
    if test.tier not in NEED_QUIET:
        return f"tests of the tier {test.tier} depend on nothing outside the program"
    if test.late:
        return "it hung"
    if test.by_signal:
        return "a signal ended it"
    found = DIED.search(test.output) or not test.sanitized and HUNG.search(test.output)
    return f"its output says '{found.group(0).strip()}'" if found else None


def busy_share(seconds):
    """Of all processors, what other programs and the hypervisor took in these seconds."""
    before = sum(ticks())
    time.sleep(seconds)
    return (sum(ticks()) - before) / HZ / seconds / os.cpu_count()


def wait_calm():
    end = time.monotonic() + CALM_SECONDS
    while busy_share(0.5) > 0.2 and time.monotonic() < end:
        pass


def second_chances(tests, logs, unsteady):
    """Tests that failed, once more and alone: other work on the machine passes, a wrong program fails twice. All but
    those whose failure is certain, or none where too many failed. One that had repeated its own cases already must
    now need no repetition, and one that was unsteady in the last run of this build folder (`unsteady`) is not tried."""
    failed = [t for t in tests if t.state == "failed"]
    quiet = sum(not t.disturbed for t in failed)
    if quiet > SECOND_CHANCES:
        print(f"{quiet} tests failed on a quiet machine; none is run once more", flush=True)
        return
    for test in failed:
        why = certain(test) or test.name in unsteady and "it was unsteady in the last run, too"
        if why:
            print(f"{test.name} is not run once more: {why}", flush=True)
            continue
        beside = ", while others used the processors" if test.disturbed else ""
        print(f"failed, once more alone: {test.name}: {test.why}{beside}\n{test.output.rstrip()}\n=== end of the first "
              f"failure of {test.name}", flush=True)
        first, repeated = test.output, test.lines("attempts: ")
        wait_calm()
        run([test], 1, logs)
        if test.state == "passed" and repeated and test.lines("attempts: "):
            test.state, test.why = "failed", "it needed repetitions again"
        if test.state == "failed":
            test.output = f"{first}\n--- once more, alone\n{test.output}"
        else:
            test.second = True


def truth_problems(tests, folder):
    """Where tests/situations.md differs from what the tests that ran have planted; see truth_doc.py."""
    folder.mkdir(parents=True, exist_ok=True)
    for t in tests:
        if t.script() and t.state == "passed" and not t.lines("left out: "):
            truth_doc.mark_whole(folder, t.script())
    truth_doc.write_answers(folder)
    return truth_doc.problems(folder)


def other_number(tests, cases, every, source):
    """A sentence when there are other tests than the build says there are; None otherwise."""
    if not any(cases.values()):
        if os.environ.get("STOKER_WITHOUT_CMOCKA"):
            print("every C test is left out: cmocka is not installed")
            return None
        return ("cmocka is not installed, so every C test is left out: install libcmocka-dev and configure again, or set "
                "STOKER_WITHOUT_CMOCKA=1 to do without them")
    file = source / "tests/CMakeLists.txt"
    want = {k: int(n) for k, n in COUNTS.findall(file.read_text())}
    want_tests, total = want["ALL" if every else "QUICK"], sum(cases.values())
    if len(tests) != want_tests or total < want["CASES"]:
        return (f"{len(tests)} tests with {total} C cases exist, {want_tests} and at least {want['CASES']} are expected: were "
                "some left out of the build? What adds or removes tests changes TESTS_* in tests/CMakeLists.txt")
    return None


def report(tests, args, truth):
    """Prints what was left out, repeated and failed; returns (cases, whether all is well)."""
    for test in tests:
        if test.state == "failed":
            print(f"\n=== {test.name}: {test.why}\n{test.output.rstrip()}\n=== end of {test.name}")
    skipped = [t for t in tests if t.state == "skipped"]
    if skipped:
        print(f"skipped tests: {len(skipped)}")
        for t in skipped:
            print(f"  {t.name}: {t.why}")
    cases, parts = collections.Counter(), []
    for t in tests:
        count, left = t.cases()
        cases += count
        parts += [f"{t.name}: {case}: {why}" for case, why in left] + \
            [f"{t.name}: {why}" for why in t.lines("left out: ")]
    if parts:
        print(f"parts of tests left out: {len(parts)}")
        for part in parts:
            print(f"  {part}")
    repeated = [f"{t.name}: {line}" for t in tests for line in t.lines("attempts: ")]
    if repeated:
        print(f"attempts: {len(repeated)} cases repeated")
        for line in repeated:
            print(f"  {line}")
    for t in tests:
        if t.second:
            print(f"unsteady: {t.name} passed only when it was run once more, alone; its first output is above")
    for what, used in (("slowest", lambda t: t.seconds), ("most processor time", lambda t: t.cpu)):
        print(f"{what}: " + ", ".join(f"{t.name} {used(t):.1f} s" for t in sorted(tests, key=used, reverse=True)[:5]))
    print(f"C cases: {cases['OK']} passed, {cases['FAILED']} failed, {cases['SKIPPED']} skipped")
    floor = None if args.filtered else other_number(tests, cases, args.all, args.source)
    if floor:
        print(floor)
    wrong = truth_problems(tests, truth) if truth else []
    for line in wrong:
        print(line)
    if wrong:
        print(f"write tests/situations.md anew: python3 tools/truth_doc.py {args.build}")
    return not floor and not wrong


def select(args, sanitized):
    listed = subprocess.run(["ctest", "--test-dir", args.build, "--show-only=json-v1"], capture_output=True, text=True)
    if listed.returncode:
        sys.exit(f"ctest cannot list the tests of {args.build}:\n{listed.stderr}")
    leave = set(filter(None, args.leave_tiers.split(",")))
    tests = [Test(entry, sanitized) for entry in json.loads(listed.stdout)["tests"]]
    return [t for t in tests if (args.all or not t.long) and t.tier not in leave and
            (not args.only or re.search(args.only, t.name)) and
            not (args.leave and re.search(args.leave, t.name))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--all", action="store_true", help="the long tests too")
    parser.add_argument("--only", help="tests whose name matches")
    parser.add_argument("--leave", help="all but tests whose name matches")
    parser.add_argument("--leave-tiers", default="", help="all but these tiers, a list with commas")
    parser.add_argument("--targets", action="store_true", help="print what has to be built for these tests, and end")
    # many tests wait more than they compute
    parser.add_argument("-j", "--jobs", type=int, default=len(os.sched_getaffinity(0)) + 1)
    args = parser.parse_args()
    args.filtered = bool(args.only or args.leave or args.leave_tiers)
    build = pathlib.Path(args.build)
    cache = (build / "CMakeCache.txt").read_text()
    sanitized = re.search(r"^STOKER_SANITIZE:\w+=.", cache, re.M) is not None
    args.source = pathlib.Path(re.search(r"^CMAKE_HOME_DIRECTORY:\w+=(.*)", cache, re.M)[1])
    tests = select(args, sanitized)
    if args.targets:
        print("rigs", *(t.target for t in tests if not t.script()))
        return 0
    logs = build / "check"
    logs.mkdir(exist_ok=True)
    truth = None if sanitized else logs.resolve() / "truth"
    if truth:
        shutil.rmtree(truth, ignore_errors=True)
        os.environ["STOKER_TRUTH"] = str(truth)
    else:
        os.environ.pop("STOKER_TRUTH", None)
    times_file = build / "check-times.json"
    times = json.loads(times_file.read_text()) if times_file.exists() else {}
    tests.sort(key=lambda t: (t.serial, not t.pairs, -times.get(t.name, 0), tuple(-x for x in t.size())))
    began = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run(tests, args.jobs, logs)
        second_chances(tests, logs, times.pop("unsteady", []))
    except KeyboardInterrupt:
        print("\ninterrupted")
        return 130
    times.update({t.name: round(t.seconds, 2) for t in tests}, unsteady=[t.name for t in tests if t.second])
    times_file.write_text(json.dumps(times, indent=0, sort_keys=True))
    well = report(tests, args, truth)
    count, unsteady = collections.Counter(t.state for t in tests), sum(t.second for t in tests)
    for t in tests:
        if t.state == "failed":
            # again, because whoever keeps only the end of a log needs it there
            lines = [line for line in t.output.splitlines() if line.strip()] or ["no output"]
            told = [line for line in lines if line.startswith("SUMMARY: ")][:2] or lines[-1:]
            print(f"failed: {t.name}: {t.why}: {'; '.join(told).strip()[-LAST_WORDS:]}")
    print(f"{time.monotonic() - began:.0f} s, {sum(t.cpu for t in tests):.0f} s of processor time")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped" +
          (f", {unsteady} unsteady" if unsteady else ""))
    return 0 if well and count["passed"] and not count["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())

"""The runner of the tests: what passes, fails, is skipped, repeated or left out is counted as it is, and too few tests
are a failure."""
# tier: long
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["STOKER_SOURCE"])
SECOND_CHANCES = int(re.search(r"^SECOND_CHANCES = (\d+)$", (SOURCE / "tools/check.py").read_text(), re.M)[1])
CMOCKA = r"""
[==========] Running 3 test(s).
[ RUN      ] one
[       OK ] one
[ RUN      ] two
skipped: no disk here
[  SKIPPED ] two
[ RUN      ] three
[  SKIPPED ] three
[==========] 3 test(s) run.
[  PASSED  ] 1 test(s).
[  SKIPPED ] 2 test(s), listed below:
[  SKIPPED ] two
[  SKIPPED ] three
"""


def build(tmp, tests, cache="STOKER_SANITIZE:STRING="):
    """A build folder with tests of shell commands: {name: (command, properties)}."""
    tmp.mkdir()
    (tmp / "CMakeCache.txt").write_text(f"{cache}\nCMAKE_HOME_DIRECTORY:INTERNAL={SOURCE}\n")
    lines = []
    for name, (command, properties) in tests.items():
        lines += [f"add_test({name} sh -c [==[{command}]==])",
                  f"set_tests_properties({name} PROPERTIES SKIP_RETURN_CODE 77 LABELS \"{name.split('.')[0]}\" {properties})"]
    (tmp / "CTestTestfile.cmake").write_text("\n".join(lines) + "\n")
    return tmp


def check(folder, *options, **env):
    """Without what the hypervisor takes: on a machine that it shares, any test would count as disturbed."""
    done = subprocess.run([sys.executable, SOURCE / "tools/check.py", folder, *options], capture_output=True, text=True,
                          env={**os.environ, "STOKER_CALM_SECONDS": "0", "STOKER_STOLEN": "inf", **env}, timeout=100)
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


def expect(text, *lines):
    for line in lines:
        assert f"\n{line}\n" in "\n" + text, f"no line '{line}' in:\n{text}"


def counts(tmp):
    folder = build(tmp / "counts", {
        "unit.c": (f"cat <<'E'{CMOCKA}E", ""),
        "cli.fine": ("echo left out: a full disk: no tmpfs", ""),
        "cli.absent": ("echo skipped: no strace; exit 77", ""),
        "truth.repeats": ("echo attempts: bandwidth: right in 3 of 4; echo attempts: latency: right in 3 of 4", ""),
        "cli.slow": ("exit 1", "LABELS \"cli;long\""),
    })
    status, text = check(folder, "--leave", "nothing")
    expect(text, "skipped tests: 1", "  cli.absent: no strace", "parts of tests left out: 3", "  unit.c: two: no disk here",
           "  unit.c: three: no reason given", "  cli.fine: a full disk: no tmpfs", "attempts: 2 cases repeated",
           "  truth.repeats: bandwidth: right in 3 of 4", "C cases: 1 passed, 0 failed, 2 skipped")
    assert status == 0 and text.splitlines()[-1] == "3 passed, 0 failed, 1 skipped", text
    status, text = check(folder, "--all", "--leave", "nothing")
    assert status == 1 and text.splitlines()[-1] == "3 passed, 1 failed, 1 skipped", text


def failures(tmp):
    folder = build(tmp / "failures", {
        "cli.wrong": ("echo this is why; exit 3", ""),
        "cli.hangs": ("sleep 50", "TIMEOUT 1"),
        "cli.dies": ("kill -SEGV $$", ""),
        "cli.fine": ("true", ""),
    })
    status, text = check(folder, "--leave", "nothing")
    expect(text, "=== cli.wrong: status 3", "this is why", "=== cli.hangs: still running after 1 s",
           "=== cli.dies: killed by SIGSEGV")
    assert status == 1 and text.splitlines()[-1] == "1 passed, 3 failed, 0 skipped", text


def pairs(tmp):
    """Of those that run alone, two that hardly compute run at once, with nothing else."""
    def meets(me, other):
        return f"touch {tmp}/{me}; until test -e {tmp}/{other}; do sleep 0.05; done; touch {tmp}/{me}.done"

    alone = f"test -e {tmp}/one.done && test -e {tmp}/two.done"
    both = 'RUN_SERIAL TRUE TIMEOUT 30 LABELS "truth;pairs"'
    folder = build(tmp / "pairs", {"truth.alone": (alone, "RUN_SERIAL TRUE"), "truth.one": (meets("one", "two"), both),
                                   "truth.two": (meets("two", "one"), both),
                                   "cli.beside": (f"sleep 0.3; test ! -e {tmp}/one && test ! -e {tmp}/two", "")})
    status, text = check(folder, "--leave", "nothing")
    assert status == 0 and text.splitlines()[-1] == "4 passed, 0 failed, 0 skipped", text


def second_chances(tmp):
    """Failures that the machine may have caused are tried once more; those that only the program can cause never."""
    marks = iter(range(100))

    def once(words="true"):
        mark = tmp / f"mark{next(marks)}"
        return f"test -e {mark} && exit 0; touch {mark}; {words}; exit 1"

    def tried(tests, cache="STOKER_SANITIZE:STRING="):
        folder = build(tmp / f"second{next(marks)}", {n: c if isinstance(c, tuple) else (c, "") for n, c in tests.items()}, cache)
        status, text = check(folder, "--leave", "nothing")
        return status, text, text.splitlines()[-1]

    for name in ("truth.once", "cli.once", "fault.once", "mpi.once", "interop.once", "contract.once", "unit.once"):
        status, text, last = tried({name: once("echo this is why"), "cli.fine": "true"})
        expect(text, f"failed, once more alone: {name}: status 1", "this is why", f"=== end of the first failure of {name}",
               f"unsteady: {name} passed only when it was run once more, alone; its first output is above")
        assert status == 0 and last == "2 passed, 0 failed, 0 skipped, 1 unsteady", text
    status, text, last = tried({"truth.once": once(), "cli.never": "exit 1"})
    assert status == 1 and last == "1 passed, 1 failed, 0 skipped, 1 unsteady", text
    status, text, last = tried({f"cli.once{i}": once() for i in range(3)})
    assert status == 0 and last == "3 passed, 0 failed, 0 skipped, 3 unsteady", text

    for name, command, why in (
            ("fuzz.once", once(), "tests of the tier fuzz depend on nothing outside the program"),
            ("scale.once", once(), "tests of the tier scale depend on nothing outside the program"),
            ("tidy.once", once(), "tests of the tier tidy depend on nothing outside the program"),
            ("cli.dies", once("kill -SEGV $$"), "a signal ended it"),
            ("cli.hangs", (once("sleep 50"), "TIMEOUT 1"), "it hung"),
            ("cli.waits", once("echo subprocess.TimeoutExpired: stoker"), "its output says 'TimeoutExpired'"),
            ("cli.child", once("echo 'run: status -11, not 0'"), "its output says 'status -1'"),
            ("fault.child", once("echo 'finding: crash: status 139'"), "its output says 'crash:'"),
            ("fault.report", once("echo ==1==ERROR: AddressSanitizer: x"), "its output says 'Sanitizer'")):
        status, text, last = tried({name: command, "cli.once": once()})
        expect(text, f"{name} is not run once more: {why}")
        assert f"\nfailed: {name}: " in text and status == 1 and last == "1 passed, 1 failed, 0 skipped, 1 unsteady", text
    # a limit of time is no proof where a sanitizer makes the program ten times slower
    status, text, last = tried({"cli.waits": once("echo subprocess.TimeoutExpired: stoker")}, "STOKER_SANITIZE:STRING=thread")
    assert status == 0 and last == "1 passed, 0 failed, 0 skipped, 1 unsteady", text
    many = SECOND_CHANCES + 1
    status, text, last = tried({f"cli.once{i}": once("sleep 0.2") for i in range(many)})
    expect(text, f"{many} tests failed on a quiet machine; none is run once more")
    assert status == 1 and last == f"0 passed, {many} failed, 0 skipped", text

    # while others use the processors, a test that ran alone says nothing
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        status, text, last = tried({f"cli.once{i}": (once("sleep 0.5"), "RUN_SERIAL TRUE") for i in range(many)})
    finally:
        for other in others:
            other.kill()
            other.wait()
    expect(text, "failed, once more alone: cli.once0: status 1, while others used the processors")
    assert status == 0 and last == f"{many} passed, 0 failed, 0 skipped, {many} unsteady", text

    # nor is one tried that was unsteady in the last run of the same build
    folder = build(tmp / "twice", {"cli.once": (once(), "")})
    status, text = check(folder, "--leave", "nothing")
    assert status == 0 and "1 unsteady" in text, text
    for mark in tmp.glob("mark*"):
        mark.unlink()
    status, text = check(folder, "--leave", "nothing")
    expect(text, "cli.once is not run once more: it was unsteady in the last run, too")
    assert status == 1, text

    # what repeated its own cases must need no repetition
    case = "echo attempts: x: right in {0} of 4"
    for second, want in (("true", 0), (case.format(3), 1)):
        mark = tmp / f"mark{next(marks)}"
        status, text, last = tried({"truth.x": f"test -e {mark} && {{ {second}; exit 0; }}; touch {mark}; {case.format(1)}; exit 1"})
        assert status == want and ("unsteady" in last) == (not want), text


def sanitized(tmp):
    """A finding counts, whatever the test makes of it; another failure is one as in any build."""
    found = ("sh -c 'echo ==7==ERROR: AddressSanitizer: heap-use-after-free >${ASAN_OPTIONS##*log_path=}.7'; exit $1",
             'ENVIRONMENT "ASAN_OPTIONS=detect_leaks=1"')
    cache = "STOKER_SANITIZE:STRING=address"
    for n, status_of_test in enumerate((0, 1)):
        folder = build(tmp / f"found{n}", {"cli.found": (found[0].replace("$1", str(status_of_test)), found[1])}, cache)
        for _ in range(2):
            status, text = check(folder, "--leave", "nothing")
            expect(text, "=== cli.found: a sanitizer's finding, 1 in all", "==7==ERROR: AddressSanitizer: heap-use-after-free")
            assert status == 1 and "unsteady" not in text, text
    mark = tmp / "sanitized-mark"
    folder = build(tmp / "found-nothing", {"cli.once": (f"test -e {mark} && exit 0; touch {mark}; exit 1", found[1])}, cache)
    status, text = check(folder, "--leave", "nothing")
    assert status == 0 and text.splitlines()[-1] == "1 passed, 0 failed, 0 skipped, 1 unsteady", text


def floor(tmp):
    folder = build(tmp / "floor", {"unit.c": (f"cat <<'E'{CMOCKA}E", "")})
    status, text = check(folder)
    assert status == 1 and "1 tests with 3 C cases exist" in text and "tests/CMakeLists.txt" in text, text
    folder = build(tmp / "bare", {"cli.fine": ("true", "")})
    status, text = check(folder)
    assert status == 1 and "cmocka is not installed" in text, text
    status, text = check(folder, STOKER_WITHOUT_CMOCKA="1")
    assert status == 0 and text.splitlines()[-1] == "1 passed, 0 failed, 0 skipped", text


def truth(tmp):
    """The table of situations: a script that ran in part keeps its other rows, one that ran whole has no others."""
    sys.path.insert(0, str(SOURCE / "tools"))
    import truth_doc
    folder, script = tmp / "truth", "tests/truth/test_window.py"
    folder.mkdir()
    truth_doc.DOCUMENT, truth_doc.FLOOR = tmp / "situations.md", 1

    def report(*situations, whole):
        with open(truth_doc.rows_file(folder, script), "w") as f:
            f.writelines(json.dumps(dict(script=script, group="g", situation=s, said="a | b")) + "\n" for s in situations)
        if whole:
            truth_doc.mark_whole(folder, script)
        found = truth_doc.problems(folder)
        truth_doc.write(truth_doc.merged(folder))
        assert not truth_doc.problems(folder), truth_doc.problems(folder)
        truth_doc.write_answers(folder)
        assert all(f"| {s} | a \\| b |" in (tmp / "answers.md").read_text() for s in situations)
        return [s for _, _, s in truth_doc.documented()], found

    assert report("one", "two", whole=True)[0] == ["one", "two"]
    assert report("two", whole=False) == (["two", "one"], [])
    rows, found = report("two", "three", whole=True)
    assert rows == ["two", "three"], rows
    assert len(found) == 2 and "lacks a row of" in found[0] and "three" in found[0] and "did not report: g: one" in found[1], found


with tempfile.TemporaryDirectory() as tmp:
    tmp = pathlib.Path(tmp)
    truth(tmp)
    counts(tmp)
    failures(tmp)
    pairs(tmp)
    second_chances(tmp)
    sanitized(tmp)
    floor(tmp)

"""The program alone, without a file beside it: it meets its other processes where no MPI library can be seen, it uses
libraries of the three binary interfaces, and what cannot work is a sentence: a library of an unknown interface, one that
lacks a function, fails, hangs, ends the process or sees one process only; a process that does not come. Real launchers;
the libraries are made here (tests/rigs/fake_mpi.c), because those of the launchers do nothing wrong."""
# beside others
# mostly waits
# takes 13 s
import concurrent.futures
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from launchers import ENV, LIBRARIES, RIGS, STOKER, left_out, load, need, need_mpi, run, sentences, tiny

need_mpi()
need([(shutil.which("cc"), "there is no compiler for the libraries")])
KINDS = {"openmpi": ("-DOPENMPI", "Open MPI v9.9, fake"), "mpich": ("-DMPICH", "MPICH Version:\t9.9"),
         "standard": ("-DSTANDARD", "MPICH Version: 9.9 with the standard's interface"), "unknown": ("-DNONE", "Foo MPI 1.0"),
         "lacks": ("-DMPICH", "MPICH Version: 9.9", "-DLACKS")}


def fake(folder, kind, name="libfake.so"):
    interface, version, *more = KINDS[kind]
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", interface, f'-DVERSION="{version}"', *more, "-o", folder / name,
                    RIGS / "fake_mpi.c"], check=True)
    return folder / name


def launch(library, program, arguments, n=2, env=(), before=()):
    """mpirun of a program; `env`: variables of its processes alone; `before`: words in front of it."""
    slots = ["--oversubscribe"] if library == "openmpi" else []
    return run(["timeout", "-k", "5", "120", f"mpirun.{library}", *slots, "-n", n, "env", *env, *before, program, "run", *arguments],
               status=None)


def whole(done, out, ranks=2):
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert sentences(done.stderr) == [], done.stderr
    r = load(out)
    assert r["status"] == "complete" and r["accelerators"] == ranks, (r["reason"], r["accelerators"])
    assert all(e["order_proved"] for e in r["training"]["epochs"])
    shutil.rmtree(out)


def refused(done, words, code=None, name=""):
    said = sentences(done.stderr)
    assert done.returncode not in (0, 124, 137) and code in (None, done.returncode), (name, done.returncode, done.stderr)
    assert len(said) >= 1 and len(set(said)) == 1, (name, done.stderr)
    assert all(w in said[0] for w in words), (name, words, said)
    print(f"{name}: {said[0]}")


@contextlib.contextmanager
def no_libraries(folder, program):
    """Words that start the program where the only libraries are those it is linked with."""
    root = folder / "root"
    for line in run(["ldd", program], 0).stdout.splitlines():
        m = re.search(r"(/\S+) \(0x", line)
        if m:
            target = root / m[1][1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(os.path.realpath(m[1]), target)
    for name in ("proc", "dev", "tmp"):
        (root / name).mkdir()
    shutil.copy(program, root / "stoker")
    start = folder / "start"
    start.write_text("#!/bin/sh\nexec unshare --mount sh -c 'mount --rbind /proc \"$0/proc\" && mount --rbind /dev \"$0/dev\" && "
                     f"exec chroot \"$0\" \"$@\"' {root} \"$@\"\n")
    start.chmod(0o755)
    yield start


with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
    tmp = pathlib.Path(tmp)
    (tmp / "alone").mkdir()
    program = shutil.copy(STOKER, tmp / "alone" / "stoker")
    out = tmp / "out"
    arguments = tiny(tmp / "data", out, files=8)
    assert "mpi" not in run(["ldd", program], 0).stdout

    # nothing but the program and what it is linked with
    hidden = os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0
    if not hidden:
        left_out("a root without MPI libraries: this needs root and mount namespaces")
    else:
        with no_libraries(tmp, program) as start:
            for library in LIBRARIES:
                whole(launch(library, "/stoker", arguments, n=4, before=[start]), out, 4)
                # the barrier goes over sockets unless a library is asked for
                loud = [a for a in arguments if a != "-q"]
                done = launch(library, "/stoker", [*loud, "comm.barrier=auto"], n=3, before=[start])
                assert load(out)["barrier"]["over"] == "sockets" and "library" not in load(out)["barrier"], load(out)["barrier"]
                assert done.stderr.count("the barriers of steps go over sockets") == 1, done.stderr
                whole(done, out, 3)
                done = launch(library, "/stoker", [*arguments, "comm.barrier=mpi"], n=3, before=[start])
                refused(done, ["no usable MPI library", "(comm.barrier)"], 1, "no library for the barrier")
            if "openmpi" in LIBRARIES:
                # as on two hosts
                done = launch("openmpi", "/stoker", arguments, before=["env", "OMPI_COMM_WORLD_LOCAL_SIZE=1", start])
                refused(done, ["mpirun (Open MPI)", "several hosts", "libmpi.so.40", "LD_LIBRARY_PATH", "STOKER_MPI"], 1, "no library")
                # there is one, but of another launcher's kind
                path = fake(tmp / "mpich", "mpich", "libmpi.so.12").parent
                done = launch("openmpi", "/stoker", arguments,
                              before=["env", "OMPI_COMM_WORLD_LOCAL_SIZE=1", f"LD_LIBRARY_PATH={path}", start])
                refused(done, ["found: 'libmpi.so.12' is MPICH Version: 9.9, not Open MPI"], 1, "of another kind")

    wrong = []  # (name, words, status, arguments of launch or a whole command line)
    for library in LIBRARIES:
        # wrappers: a shell between, and a Python that closes all descriptors, PMI's too
        whole(launch(library, program, arguments, before=["sh", "-c", '"$@"; exit $?', "sh"]), out)
        whole(launch(library, program, arguments, before=["/usr/bin/python3", "-c",
                                                          "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"]), out)
        # four jobs at once
        slots = ["--oversubscribe"] if library == "openmpi" else []
        jobs = [subprocess.Popen([f"mpirun.{library}", *slots, "-n", "2", program, "run",
                                  *map(str, tiny(tmp / "data", tmp / f"at-once{i}", workflow__generate_data="false"))],
                                 env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for i in range(4)]
        for i, job in enumerate(jobs):
            said = job.communicate(timeout=60)
            assert job.returncode == 0, said
            assert load(tmp / f"at-once{i}")["accelerators"] == 2

        if library == "mpich":
            # the launcher is met at a port, and only there says how many there are
            whole(run(["timeout", "-k", "5", "120", "mpirun.mpich", "-pmi-port", "-n", 3, program, "run", *tiny(
                tmp / "data", out, files=8, reader__batch_size=1)], status=None), out, 3)

        # a library of each interface
        for kind in (library, "standard"):
            bytes_in = tmp / f"bytes-{library}-{kind}"
            path = fake(bytes_in, kind)
            done = launch(library, program, arguments, env=[f"STOKER_MPI={path}", f"FAKE_MPI_FOLDER={bytes_in}"])
            assert "fake MPI prints this" in done.stderr and "fake" not in done.stdout, (done.stdout, done.stderr)
            whole(done, out)
            assert (bytes_in / "bytes").exists(), f"{kind}: they met without the library"

        # one of the processes is another program, and leaves at once
        for first in (True, False):
            pair = [["-n", 1, "env", "STOKER_START_LIMIT=1", program, "run", *arguments], ["-n", 1, "true"]]
            words = ["within 1 s"] + ([] if library == "mpich" else ["missing: 1"] if first else ["process 0 did not come"])
            wrong.append((f"{library}, process {int(first)} ends before", words, 1,
                          [f"mpirun.{library}", *slots, *pair[not first], ":", *pair[first]]))
        for name, kind, what, words, code in (
                ("of an unknown interface", "unknown", "", ["(Foo MPI 1.0) has an unknown binary interface"], 1),
                ("without MPI_Bcast", "lacks", "", ["lacks MPI_Bcast"], 1),
                ("that fails", library, "error", ["MPI_Init_thread failed", "code 15: fake error of code 15"], 1),
                ("that cannot broadcast", library, "broadcast", ["MPI_Bcast failed", "code 16"], 1),
                ("that sees one process", library, "alone", ["started 2 processes", "found 1", "do not match"], 2),
                ("that hangs", library, "hang", ["libfake.so' has not introduced", "within 2 s"], 1),
                ("that exits", library, "exit", ["libfake.so' ended the process"], 1)):
            path = fake(tmp / f"wrong-{library}-{kind}", kind)
            wrong.append((f"{library}, a library {name}", words, code,
                          [f"mpirun.{library}", *slots, "-n", 2, "env", f"STOKER_MPI={path}", f"FAKE_MPI={what}",
                           "STOKER_START_LIMIT=1", program, "run", *arguments]))
    cut = fake(tmp / "cut", "mpich")
    os.truncate(cut, os.path.getsize(cut) // 2)
    for name, words, code, setting in (("a part of one", [f"'{cut}' is cut short"], 1, f"STOKER_MPI={cut}"),
                                       ("no shared object", ["'/etc/passwd' cannot be loaded"], 1, "STOKER_MPI=/etc/passwd"),
                                       ("no limit", ["STOKER_START_LIMIT is 'soon'"], 2, "STOKER_START_LIMIT=soon")):
        wrong.append((name, words, code, [f"mpirun.{library}", *slots, "-n", 2, "env", setting, program, "run", *arguments]))
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        all_done = pool.map(lambda w: run(["timeout", "-k", "5", "120", *w[3]], status=None), wrong)
        for (name, words, code, _), done in zip(wrong, all_done):
            refused(done, words, code, name)
    assert not out.exists(), "a refused run left a result"

    if "openmpi" in LIBRARIES:
        # as on two hosts, the library is found: in the launcher's folders, said or beside its program, and by the loader
        away = ["OMPI_COMM_WORLD_LOCAL_SIZE=1"]
        lib = fake(tmp / "prefix" / "lib", "openmpi", "libmpi.so.40").parent
        (lib.parent / "bin").mkdir()
        shell = shutil.copy(os.path.realpath("/bin/sh"), lib.parent / "bin" / "sh")
        for i, (env, before) in enumerate(((["OPAL_PREFIX=" + str(lib.parent)], []), ([f"LD_LIBRARY_PATH={lib}"], []),
                                           ([], [shell, "-c", '"$@"; exit $?', "sh"]))):
            (tmp / f"bytes{i}").mkdir()
            whole(launch("openmpi", program, arguments, env=[*away, *env, f"FAKE_MPI_FOLDER={tmp}/bytes{i}"], before=before), out)
            assert (tmp / f"bytes{i}" / "bytes").exists(), f"found another library than the one by {env or before}"
print("alone under", ", ".join(LIBRARIES))

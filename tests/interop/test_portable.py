"""The portable program: what it needs of a system, and that it works in roots of Debian 11, 12 and 13 that have nothing but a
C library and a shell."""
# takes 120 s
# may take 1200 s
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import portable_root  # noqa: E402
from util import SOURCE  # noqa: E402

SUITES = ["bullseye", "bookworm", "trixie"]

WORK = """
cd /work
PATH=/opt/stoker:$PATH
stoker --version
keys="dataset.data_folder=/work/data dataset.num_files_train=8 dataset.num_files_eval=0 workflow.evaluation=false
    dataset.record_length_bytes=100000 reader.batch_size=1 train.computation_time=0.01 train.epochs=2"
for format in hdf5 jpeg png npz; do
    stoker generate default dataset.format=$format $keys >/dev/null
    stoker run default -q -o out-$format dataset.format=$format $keys
    rm -r data
done
echo 0123456789 >file
stoker record -o recording -- cat file
stoker replay recording --data /work/image
stoker explain recording >/dev/null
stoker report out-* -o report.html
stoker audit out-hdf5 >/dev/null
stoker show system
"""


def check_works(suite, folder, tmp):
    """In a root: starts, generates, trains, records, replays, reports."""
    work = tmp / suite
    work.mkdir()
    root = portable_root.make(suite, *portable_root.SHELL)
    done = portable_root.run(root, WORK, (folder, "/opt/stoker"), (work, "/work"))
    assert re.search(r"^stoker \S+ \(.*portable, for \w+, with io_uring\)$", done.stdout, re.M), done.stdout[:200]
    assert done.stdout.count("2 of 2 epochs, complete") == 4, done.stdout
    assert "recorded: 1 process, 1 file" in done.stderr, done.stderr
    assert re.search(r"^\S+ requests of 1 thread in 1 process; 1 file of 11 B", done.stdout, re.M), done.stdout
    page = (work / "report.html").read_text()
    assert page.rstrip().endswith("</html>") and "jpeg" in page
    print(f"Debian {suite}: works")


def check_musl(folder, tmp):
    """musl's loader is no loader of glibc's programs: it says what it lacks, and nothing runs."""
    loader = next(pathlib.Path(portable_root.make("bookworm", "musl")).glob("lib/*-linux-musl/libc.so"), None)
    assert loader
    root = tmp / "musl"
    (root / "lib").mkdir(parents=True)
    shutil.copy(loader, root / "lib" / "ld-musl.so.1")
    shutil.copy(folder / "stoker", root)
    enter = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "chroot", root]
    plain = subprocess.run([*enter, "/stoker", "--version"], capture_output=True, text=True)
    loaded = subprocess.run([*enter, "/lib/ld-musl.so.1", "/stoker", "--version"], capture_output=True, text=True)
    assert plain.returncode == 127 and "No such file or directory" in plain.stderr, plain
    assert loaded.returncode == 127 and "Error relocating /stoker" in loaded.stderr, loaded
    missing = re.findall(r"relocating /stoker: (\w+): symbol not found", loaded.stderr)
    print(f"musl: not started; its library lacks {' '.join(sorted(missing))}")


def main():
    portable_root.needs("objdump")
    portable_root.build("portable")
    folder = SOURCE / "build" / "portable"
    portable_root.check_files(folder)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as tmp, concurrent.futures.ThreadPoolExecutor(2) as pool:
        tmp = pathlib.Path(tmp)
        for job in [pool.submit(check_works, suite, folder, tmp) for suite in SUITES]:
            job.result()
        check_musl(folder, tmp)


if __name__ == "__main__":
    main()

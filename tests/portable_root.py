"""Roots of Debian for scripts that test the portable program: made by tools/root.sh, kept between tests."""
import re
import shutil
import subprocess

from util import SANITIZED, SOURCE, skip

ROOT_SH = SOURCE / "tools" / "root.sh"
GLIBC = (2, 28)
# with its loader; from 2.34 on all but libm and the loader are in libc.so.6
GLIBCS_OWN = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-aarch64.so.1"}
MOST_BYTES = 6e6
SHELL = ["base-files", "dash", "coreutils"]  # with what they depend on: libc6 and three small libraries


def needs(*programs):
    """Skips the test where the portable program cannot be built or tried."""
    if SANITIZED:
        skip("the portable program is built without sanitizers")
    for program in ("dpkg", "mmdebstrap", *programs):
        if not shutil.which(program):
            skip(f"{program} is not installed")


def make(suite, *packages, variant="extract", arch=None):
    """The folder of a root; skips the test where there are no packages to make it of."""
    arch = arch or native()
    done = subprocess.run([ROOT_SH, "make", suite, variant, arch, *packages], capture_output=True, text=True, timeout=540)
    if done.returncode:
        skip(f"no root of Debian {suite}: {done.stderr.strip()[-300:]}")
    return done.stdout.strip()


def native():
    return subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()


def build(*words):
    """Runs `make WORDS` for the portable program or a package of it."""
    done = subprocess.run(["make", "-C", SOURCE, *words], capture_output=True, text=True, timeout=1080)
    if done.returncode and re.search("^mmdebstrap could not make|^This system allows no mounts", done.stderr, re.M):
        skip(f"no root to build in: {done.stderr.strip()[-300:]}")
    assert done.returncode == 0, f"{words}: status {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}"
    return done.stdout


def run(root, script, *folders, status=0, timeout=300):
    """Runs a script of /bin/sh in a root that sees folders, (FOLDER, AT); returns the CompletedProcess."""
    done = subprocess.run([ROOT_SH, "run", root, *(f"{folder}={at}" for folder, at in folders), "--", "/bin/sh", "-euc", script],
                          capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
    if "This system allows no mounts" in done.stderr:
        skip(done.stderr.strip())
    assert status is None or done.returncode == status, (
        f"{root}: status {done.returncode}\nstdout: {done.stdout[-3000:]}\nstderr: {done.stderr[-3000:]}")
    return done


def needed(file):
    """The libraries that a file asks the loader for, and the versions of glibc's symbols."""
    text = subprocess.run(["objdump", "-p", "-T", file], capture_output=True, text=True, check=True).stdout
    libraries = re.findall(r"^ +NEEDED +(\S+)$", text, re.M)
    return libraries, {tuple(int(n) for n in v.split(".")) for v in re.findall(r"GLIBC_(\d+(?:\.\d+)+)", text)}


def check_files(folder):
    """The program and the library of `record` need no more than glibc 2.28; the licences are beside them."""
    for name in ("stoker", "libstoker_record.so"):
        libraries, versions = needed(folder / name)
        assert set(libraries) <= GLIBCS_OWN, (name, libraries)
        assert versions and max(versions) <= GLIBC, (name, sorted(versions)[-3:])
        size = (folder / name).stat().st_size
        assert size < MOST_BYTES, (name, size)
        print(f"{name}: {size / 1e6:.1f} MB, glibc {'.'.join(map(str, max(versions)))}, {' '.join(sorted(libraries))}")
    # whoever passes the program on passes these on
    licences = (folder / "LICENSES").read_text()
    assert all(name in licences for name in ("LibYAML", "Jansson", "libdeflate", "bzip2", "libjpeg", "liburing", "zlib"))

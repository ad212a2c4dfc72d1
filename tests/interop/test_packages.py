"""The packages of the portable program: each installs into a root or an environment that has nothing else, works there, and
leaves nothing behind when it is removed; and `make install` installs what docs/install.md lists."""
# takes 90 s
# may take 1200 s
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import portable_root  # noqa: E402
from util import SOURCE, STOKER, left_out  # noqa: E402

PACKAGES = SOURCE / "build" / "packages"
# the first example of README.md, in less time
SURVEY = "mkdir -p /mnt/fs; stoker survey /mnt/fs --only unet3d --time 8; echo 0123456789 >/tmp/file; cd /tmp; " \
         "stoker record -o recording -- cat file; stoker replay recording --data /tmp/image >/dev/null; rm -r recording image file"
TREE = "find / -xdev ! -path '/proc*' ! -path '/dev*' ! -path '/packages*' ! -path '/var/lib/dpkg*' ! -path '/var/lib/rpm*' " \
       "! -path '/var/log/*' ! -path /mnt/fs | sort"


def package(pattern):
    found = sorted(PACKAGES.glob(pattern))
    assert len(found) == 1, (pattern, found)
    return found[0]


def listed():
    """The paths below the prefix that docs/install.md names; those that end in / are folders."""
    text = (SOURCE / "docs" / "install.md").read_text()
    return re.findall(r"^    ((?:bin|lib|share)/\S+)", text, re.M)


def check_list(root, but=()):
    files = {str(p.relative_to(root)) for p in pathlib.Path(root).rglob("*") if not p.is_dir()} - set(but)
    assert files, f"nothing is installed in {root}"
    for name in listed():
        of = {f for f in files if f == name or name.endswith("/") and f.startswith(name)}
        assert of, f"docs/install.md lists {name}, which is not installed"
        files -= of
    assert not files, f"installed and not in docs/install.md: {sorted(files)}"


def check_install(tmp):
    env = {**os.environ, "DESTDIR": str(tmp / "d")}
    subprocess.run(["cmake", "--install", pathlib.Path(STOKER).parent, "--prefix", "/usr/local"], env=env, check=True, capture_output=True)
    check_list(tmp / "d" / "usr" / "local")
    print("make install: what docs/install.md lists")


def check_in_root(what, base, file, install, remove, tmp):
    """A package in a copy of a root: installed, used, removed."""
    root = tmp / what
    subprocess.run(["cp", "-a", "--reflink=auto", base, root], check=True)
    (root / "packages").mkdir()
    shutil.copy(file, root / "packages")
    script = f"{TREE} >/packages/before; {install} /packages/{file.name}; {SURVEY}; stoker --version; {remove}; {TREE} >/packages/after"
    done = portable_root.run(root, script)
    assert re.search(r"^stoker .*portable", done.stdout, re.M) and "H100" in done.stdout, done.stdout
    assert "recorded: 1 process, 1 file" in done.stderr, done.stderr
    before, after = ((root / "packages" / name).read_text().splitlines() for name in ("before", "after"))
    assert before == after, f"{what} leaves {sorted(set(after) - set(before))}, takes {sorted(set(before) - set(after))}"
    print(f"{what}: installed, used and removed without a rest")


def check_deb(tmp):
    file = package("*.deb")
    base = portable_root.make("bookworm", "libc6", variant="essential")
    check_in_root("deb", base, file, "dpkg -i", "dpkg --purge stoker", tmp)
    if not shutil.which("lintian"):
        return left_out("lintian is not installed")
    done = subprocess.run(["lintian", "--fail-on", "error,warning", file], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return print("lintian: no error, no warning")


def check_rpm(tmp):
    # Debian's root knows no packages of rpm, so what this one depends on is compared here
    file = package("*.rpm")
    base = portable_root.make("bookworm", *portable_root.SHELL, "rpm")
    check_in_root("rpm", base, file, "rpm -i --nodeps", "rpm -e stoker", tmp)
    asked = subprocess.run(["rpm", "-qp", "--requires", file], capture_output=True, text=True, check=True).stdout.split("\n")
    others = [a for a in asked if a and not re.match(r"lib(c|m|dl|rt|pthread)\.so\.\d\(|rpmlib\(|rtld\(GNU_HASH\)", a)]
    assert not others and "libc.so.6(GLIBC_2.28)(64bit)" in asked, asked


def check_wheel(tmp):
    venv = tmp / "venv"
    if subprocess.run([sys.executable, "-m", "venv", venv], capture_output=True).returncode:
        return left_out("the wheel: python3-venv is not installed")
    files = lambda: sorted(str(p) for p in venv.rglob("*") if "__pycache__" not in p.parts and not p.is_dir())  # noqa: E731
    before, pip = files(), [venv / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-index", package("*.whl")], check=True, capture_output=True)
    stoker = venv / "bin" / "stoker"
    (tmp / "file").write_text("0123456789")
    assert " (" in subprocess.run([stoker, "--version"], capture_output=True, text=True, check=True).stdout
    done = subprocess.run([stoker, "record", "-o", tmp / "recording", "--", "cat", tmp / "file"], capture_output=True, text=True, check=True)
    assert "recorded: 1 process, 1 file" in done.stderr, done.stderr
    subprocess.run([*pip, "uninstall", "-y", "stoker"], check=True, capture_output=True)
    assert files() == before, set(files()) ^ set(before)
    return print("wheel: installed, used and removed without a rest")


def check_tarball(tmp):
    subprocess.run(["tar", "-xzf", package("*.tar.gz"), "-C", tmp], check=True)
    (root,) = tmp.glob("stoker-*")
    check_list(root, but=["share/doc/stoker/LICENSES"])
    subprocess.run([root / "bin" / "stoker", "--version"], check=True, capture_output=True)
    print("tarball: what docs/install.md lists, with the licences of the libraries within")


def main():
    portable_root.needs("rpmbuild", "rpm")
    shutil.rmtree(PACKAGES, ignore_errors=True)
    portable_root.build("tarball", "deb", "rpm", "wheel")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as tmp:
        tmp = pathlib.Path(tmp)
        check_install(tmp)
        check_tarball(tmp)
        check_wheel(tmp)
        check_deb(tmp)
        check_rpm(tmp)


if __name__ == "__main__":
    main()

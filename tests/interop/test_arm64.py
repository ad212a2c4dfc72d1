"""The program for arm64 under qemu's emulation of a processor: its datasets and checkpoints are those of this machine's program
byte for byte, and it runs, studies, records, replays and judges. No time is judged."""
# takes 60 s
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
from util import SOURCE, left_out, load, skip, stoker, tiny  # noqa: E402

STUDY = "model,epochs,processes,overrides,run\ndefault,1,1,++workload.reader.read_threads=0,N\ndefault,1,2,++workload.reader.read_threads=2,N\n"


# In namespaces of one's own programs for arm64 can be executed like others: from Linux 6.7 on.
REGISTER = r"""
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
printf %s ":arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:$0:F" \
    >/proc/sys/fs/binfmt_misc/register
exec "$@"
"""


class Emulated:
    """The programs of a root, each under an emulator of its own."""

    def __init__(self, folder, root):
        qemu = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
        if not qemu:
            skip("qemu-aarch64 is not installed")
        self.root, self.program, self.words = root, folder / "stoker", [qemu, "-L", str(root)]

    def executes(self):
        """From now on also programs that it executes are for arm64. False: this system does not allow that."""
        words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-euc", REGISTER, self.words[0]]
        done = subprocess.run([*words, "true"], capture_output=True, text=True, timeout=60)
        if done.returncode:
            left_out(f"programs that are executed: no binfmt_misc in namespaces ({done.stderr.strip()[-200:]})")
            return False
        self.words = words
        os.environ["QEMU_LD_PREFIX"] = self.root
        return True

    def __call__(self, *args, status=0):
        done = subprocess.run([*self.words, self.program, *map(str, args)], capture_output=True, text=True, timeout=300)
        assert done.returncode == status, (args, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        return done

    def command(self, name):
        return [*self.words, str(next(p for p in (pathlib.Path(self.root, f, name) for f in ("usr/bin", "bin")) if p.exists()))]


def contents(folder):
    """Of all files; what was written down about their making has its time."""
    return {str(p.relative_to(folder)): re.sub(rb'"created": "[^"]*"', b"", p.read_bytes())
            for p in sorted(folder.rglob("*")) if p.is_file()}


def formats():
    return re.findall(r"^(\w+)  ", stoker("show", "formats").stdout, re.M)


def same_datasets(arm, tmp):
    names = formats()
    assert len(names) > 8, names
    for name in names:
        keys = dict(fmt=name, files=6, dataset__num_samples_per_file=1 if name in ("png", "jpeg") else 3,
                    dataset__record_length_bytes=70000, dataset__record_length_bytes_stdev=9000)
        ours, theirs = tmp / f"ours_{name}", tmp / f"theirs_{name}"
        stoker("generate", *tiny(ours, None, **keys))
        arm("generate", *tiny(theirs, None, **keys))
        a, b = contents(ours), contents(theirs)
        assert a.keys() == b.keys() and len(a) >= (6 if name != "synthetic" else 1), (name, a.keys() ^ b.keys())
        differ = [f for f in a if a[f] != b[f]]
        assert not differ, (name, differ)
        arm("verify", *tiny(ours, None, **keys))
    print(f"datasets of {len(names)} formats: the same bytes, and verified")


def runs(arm, tmp):
    """Training, evaluation and checkpoints; the order of samples and what was read are this machine's."""
    keys = dict(workflow__evaluation="true", dataset__num_files_eval=4, workflow__checkpoint="true", train__epochs=2,
                model__model_size=100000, reader__file_shuffle="seed", reader__sample_shuffle="seed", files=12)
    found = {}
    for who, run in (("ours", stoker), ("theirs", arm)):
        out, ck = tmp / f"run_{who}", tmp / f"checkpoints_{who}"
        run("run", *tiny(tmp / f"data_{who}", out, **keys), f"checkpoint.checkpoint_folder={ck}")
        found[who] = contents(ck), [(e["payload_bytes"], e["order_proved"]) for e in load(out)["training"]["epochs"]]
    assert found["ours"][0] and found["ours"] == found["theirs"], [(v[0].keys(), v[1]) for v in found.values()]
    arm("audit", tmp / "run_ours")
    stoker("audit", tmp / "run_theirs")
    arm("report", tmp / "run_ours", tmp / "run_theirs", "-o", tmp / "report.html")
    print("a run: checkpoints and order the same; each program judges the other's result")


def studies(arm, tmp):
    if not arm.executes():
        return
    (tmp / "study.csv").write_text(STUDY)
    arm("study", "run", tmp / "study.csv", "-q", "--results", tmp / "study", "--scratch", tmp / "scratch",
        *[k for k in tiny(tmp, None)[2:] if "data_folder" not in k and "read_threads" not in k])
    done = (tmp / "study.csv").read_text()
    assert len(list((tmp / "study").rglob("result.json"))) == 2, (done, list((tmp / "study").rglob("*")))
    print("a study: 2 of 2 runs")


def records(arm, tmp):
    """What is recorded runs under an emulator, too, which leaves the library to the program that it runs."""
    (tmp / "file").write_text("0123456789\n")
    said = arm("record", "-o", tmp / "recording", "--", *arm.command("cat"), tmp / "file")
    assert said.stdout == "0123456789\n" and re.search(r"^recorded: 1 process, 1 file", said.stderr, re.M), said
    assert "11 B read" in said.stderr, said.stderr
    for judge in (arm, stoker):
        told = judge("explain", tmp / "recording").stdout
        assert re.search(r"read 11 B\s+from 1\s+file", told), told
    told = arm("replay", tmp / "recording", "--data", tmp / "image").stdout
    assert "1 file of 11 B" in told, told
    print("recorded, explained by both, replayed")


def main():
    portable_root.needs("objdump")
    root = portable_root.make("bookworm", "libc6:arm64", "coreutils:arm64", arch="arm64")
    folder = SOURCE / "build" / "portable-arm64"
    with tempfile.TemporaryDirectory(dir="/var/tmp") as tmp:
        tmp = pathlib.Path(tmp)
        arm = Emulated(folder, root)
        portable_root.build("portable", "ARCH=arm64")
        portable_root.check_files(folder)
        assert "for aarch64" in arm("--version").stdout
        for part in (same_datasets, runs, records, studies):
            part(arm, tmp)


if __name__ == "__main__":
    main()

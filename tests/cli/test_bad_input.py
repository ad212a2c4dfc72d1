"""Bad input of every kind: each a clear sentence and the right exit status, nothing half-written."""
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import STOKER, left_out, load, logged, stoker, tiny, wait_for  # noqa: E402

ROOT = os.geteuid() == 0
count = 0


def refused(args, status, *words, **kw):
    """The program leaves with `status` and one sentence that holds all the words."""
    global count
    done = stoker(*args, status=status, **kw)
    lines = [line for line in done.stderr.splitlines() if line.startswith("stoker: ")]
    assert len(lines) == 1, f"{args}: not one sentence: {done.stderr!r}"
    for word in words:
        assert word.lower() in lines[0].lower(), f"{args}: '{word}' is not in: {lines[0]}"
    assert "Traceback" not in done.stderr and "Sanitizer" not in done.stderr, done.stderr
    print("  ", lines[0])
    count += 1


def configuration(tmp):
    bad = tmp / "bad.yaml"
    bad.write_text("model:\n  name: x\ndataset:\n  format: [npz\n")
    refused(["run", bad], 2, "bad.yaml", "line")
    bad.write_text("model:\n  name: x\nreader:\n  batch_size: many\n")
    refused(["run", bad], 2, "bad.yaml", "line 4", "batch_size", "many")
    bad.write_text("model:\n  name: x\nreader:\n  batchsize: 4\n")
    refused(["run", bad, "--strict"], 2, "bad.yaml", "line 4", "batchsize", "batch_size")
    bad.write_text("")
    refused(["run", "no_such_workload"], 2, "no_such_workload")
    refused(["run", tmp / "missing.yaml"], 2, "missing.yaml")
    run = ["run", "default"]
    refused([*run, "reader.batch_size=-3"], 2, "reader.batch_size", "-3")
    refused([*run, "reader.batch_size=99999999999999999999"], 2, "reader.batch_size")
    refused([*run, "dataset.num_files_train=9223372036854775807"], 2, "num_files_train")
    refused([*run, "dataset.num_samples_per_file=9223372036854775807"], 2, "num_samples_per_file")
    refused([*run, "dataset.record_length_bytes=1e30"], 2, "record_length_bytes")
    refused([*run, "dataset.record_dims=[4294967296,4294967296]"], 2, "record_dims")
    # more memory than can be counted is not next to none
    refused([*run, "-n", "4096", "reader.batch_size=1", "train.epochs=1000000", "dataset.num_files_train=329406944179",
             "storage.store=synthetic", "dataset.format=synthetic"], 1, "16384 PiB", "number of ranks")
    refused([*run, "reader.batch_size=4.5"], 2, "reader.batch_size", "4.5")
    refused([*run, "train.computation_time=fast"], 2, "computation_time", "fast")
    for key, value in (("train.computation_time", "-1"), ("train.computation_time.mean", "-0.1"), ("train.computation_time.stdev", "-1"),
                       ("train.computation_time_stdev", "-1"), ("evaluation.eval_time", "-0.5"), ("evaluation.eval_time.mean", "-1"),
                       ("evaluation.eval_time_stdev", "-1"), ("reader.preprocess_time", "-1ms"), ("reader.preprocess_time.mean", "-1"),
                       ("storage.throttle.latency", "-1"), ("reader.worker_init_time", "-1")):
        more = ["++train.computation_time.mean=1"] if key.endswith(".stdev") else []
        refused([*run, "storage.store=throttle+posix", *more, f"++{key}={value}"], 2, key.split(".")[-1], value,
                "below the minimum 0 (allowed: 0 to 1000000 s)")
    refused([*run, "train.computation_time=nan"], 2, "computation_time", "nan", "finite")
    refused([*run, "evaluation.eval_time=inf"], 2, "eval_time", "inf")
    refused([*run, "reader.preprocess_time={type:uniform,min:-1,max:1}"], 2, "preprocess_time.min", "-1", "below the minimum 0")
    refused([*run, "dataset.format=npx"], 2, "format", "npx", "npz")
    refused([*run, "reader.data_loader=pytorhc"], 2, "data_loader", "pytorhc", "pytorch")
    refused([*run, "framework=pytroch"], 2, "framework", "pytroch", "pytorch")
    refused([*run, "storage.store=posx"], 2, "posx", "posix")
    refused([*run, "dataset.record_element_type=uint7"], 2, "record_element_type", "uint7")
    refused([*run, "reader.sample_shuffle=sometimes"], 2, "sample_shuffle", "sometimes")
    refused([*run, "workload.nope.deeper=1", "--strict"], 2, "nope")
    refused([*run, "reader.batch_size"], 2, "reader.batch_size", "key=value")
    refused([*run, "reader.batch_size=1,2"], 2, "batch_size")
    refused([*run, "-n", "0"], 2, "-n", "0")
    refused([*run[:2], "-o", ""], 2, "-o needs a value", "FOLDER")
    refused(["show", "nonsense"], 2, "nonsense", "workloads", "system")
    refused(["show", "system", tmp / "missing"], 2, "missing", "not a folder")
    refused(["verify", tmp / "missing"], 2, "missing", "dataset's folder")
    (tmp / "bare").mkdir()
    refused(["verify", tmp / "bare"], 2, "has no stoker_manifest.json", "give its workload instead", "data_folder=")
    refused([*run, "framework=tensorflow"], 2, "set reader.data_loader=tensorflow too")
    if os.path.isdir("/dev/shm"):  # memory, which the store refuses: nothing is left there
        with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
            refused(["generate", *tiny(f"{memory}/d", None, dataset__num_subfolders_train=2), "storage.store=direct"],
                    1, "tmpfs")
            assert not os.listdir(memory), list(pathlib.Path(memory).rglob("*"))
    design = tmp / "design.csv"
    design.write_text("model,processes,Model\nunet3d_h100,1,resnet50_h100\n")
    refused(["study", "run", design, "--dry-run"], 2, "design.csv", "line 1", "two columns", "model")
    design.write_text("model;processes\nunet3d_h100;1\n")
    refused(["study", "run", design, "--dry-run"], 2, "design.csv", "line 1", "commas")
    refused([*run, "--nonsense"], 2, "--nonsense")
    refused([*run, "--config-dir", tmp / "nowhere"], 2, "nowhere")
    refused([*run, "workflow.checkpoint=true", "checkpoint.checkpoint_mechanism_classname=a.B"], 1, "runs no Python")
    refused([*run, "dataset.format=hdf5_opt"], 1, "hdf5_opt", "is not supported")
    refused([*run, "reader.data_loader=tensorflow", "framework=tensorflow", "reader.data_loader_sampler=index"], 2,
            "cannot be used with")
    stoker("frobnicate", status=2)
    stoker(status=2)


def dataset(tmp):
    data, out = tmp / "data", tmp / "out"
    base = dict(workflow__generate_data="false")
    refused(["run", *tiny(tmp / "nothing", out, **base)], 1, "nothing")
    stoker("run", *tiny(data, out))
    refused(["run", *tiny(data, out, files=9, **base)], 1, "9", "8")
    refused(["run", *tiny(data, out, dataset__record_length_bytes=8192, **base)], 1, str(data))
    os.rename(data / "train/img_3_of_8.npz", tmp / "kept")
    refused(["run", *tiny(data, out, **base)], 1, "img_3_of_8.npz")
    whole = (tmp / "kept").read_bytes()
    # truncated: of another size than the dataset says
    (data / "train/img_3_of_8.npz").write_bytes(whole[:-100])
    refused(["run", *tiny(data, out, **base)], 1, "img_3_of_8.npz")
    # wrong CRC: right size, one payload byte changed
    flipped = bytearray(whole)
    flipped[2000] ^= 1
    (data / "train/img_3_of_8.npz").write_bytes(flipped)
    refused(["run", *tiny(data, out, **base)], 1, "img_3_of_8.npz", "crc")
    refused(["verify", *tiny(data, None)], 1, "img_3_of_8.npz", "2000")
    (data / "train/img_3_of_8.npz").write_bytes(b"\0" * len(whole))
    refused(["run", *tiny(data, out, **base)], 1, "img_3_of_8.npz")
    (data / "train/img_3_of_8.npz").write_bytes(whole)
    stoker("run", *tiny(data, out, **base))
    manifest = data / "stoker_manifest.json"
    text = manifest.read_text()
    manifest.write_text(text.replace('"npz"', '"npy"'))
    refused(["run", *tiny(data, out, **base)], 1, "npy", "npz")
    manifest.write_text(text[: len(text) // 2])
    refused(["run", *tiny(data, out, **base)], 1, "stoker_manifest.json")
    manifest.write_text(text)
    # partial results: a failing read ends a run that had begun, and says where
    (data / "train/img_7_of_8.npz").write_bytes(bytes(flipped))
    refused(["run", *tiny(data, out, reader__order="dlio", **base)], 1, "img_7_of_8.npz")
    assert load(out)["status"] == "failed"


def full_disks(tmp):
    out = tmp / "out"
    # no space for the dataset: known before a byte is written
    mount = tmp / "small"
    mount.mkdir()
    if not ROOT or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", mount],
                                  capture_output=True).returncode:
        left_out("full disks: no tmpfs can be mounted")
        return
    try:
        refused(["run", *tiny(mount / "data", out, dataset__record_length_bytes=1 << 20)], 1, "are free",
                str(mount))
        assert not list(mount.rglob("*.npz")), "written in spite of the missing space"
        # nor for what a search reads; what is missing is told, not what follows from it
        refused(["capacity", "unet3d_h100", f"dataset.data_folder={mount}/data", "-o", tmp / "search"], 1, "need ", " GiB at least",
                f"1 MiB are free in {mount}/data", "try --small")
        # the twin of a folder that a file system is mounted on is on that file system
        for i in range(30):
            (mount / f"{i}.npz").write_bytes(b"0")
        refused(["run", "unet3d_h100", "--small", f"dataset.data_folder={mount}", "-o", out], 2, f"set dataset.data_folder={mount}/stoker or")
        for path in mount.glob("*.npz"):
            path.unlink()
        # results on a full disk
        try:
            (mount / "filler").write_bytes(b"\0" * (1 << 20))
        except OSError:
            pass
        done = stoker("run", *tiny(tmp / "data", mount / "out"), status=1)
        assert "stoker: " in done.stderr and "space" in done.stderr, done.stderr
        assert not list(mount.rglob("*.tmp")), "a half-written file was left"
    finally:
        subprocess.run(["umount", mount], check=True)


def survey_read_only(tmp):
    folder = tmp / "bound"
    folder.mkdir()
    if not ROOT or subprocess.run(["mount", "--bind", folder, folder], capture_output=True).returncode:
        left_out("a survey of what is read-only: nothing can be mounted")
        return
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
        done = stoker("survey", folder, "--only", "dlrm", "-q", status=1)
        assert "cannot remove" not in done.stderr and "Read-only file system" in done.stderr, done.stderr
        print("  ", done.stderr.strip())
    finally:
        subprocess.run(["umount", folder], check=True)


def read_only(tmp):
    folder = tmp / "readonly"
    folder.mkdir()
    if ROOT:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", folder],
                          capture_output=True).returncode:
            return
    else:
        folder.chmod(0o500)
    try:
        refused(["run", *tiny(folder / "data", tmp / "out")], 1, str(folder))
        refused(["run", *tiny(tmp / "data", folder / "out")], 1, str(folder))
        # nothing is there that could be removed
        survey_read_only(tmp)
    finally:
        if ROOT:
            subprocess.run(["umount", folder], check=True)
        else:
            folder.chmod(0o700)


def kill_and_resume(tmp):
    data = tmp / "killed"
    args = tiny(data, None, files=300, dataset__record_length_bytes=1 << 18)
    args = [a for a in args if a != "-q"]
    for delay in (0.05, 0.1, 0.2, 0.3):
        p = subprocess.Popen([STOKER, "generate", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(delay)
        p.send_signal(signal.SIGKILL)
        p.communicate()
        for path in (data / "train").glob("*.npz") if data.exists() else ():
            # under its final name a file is whole
            assert zipfile.ZipFile(path).testzip() is None, path
    stoker("generate", *args)
    assert len(list((data / "train").glob("*.npz"))) == 300
    assert not list(data.rglob("*.part")) and not list(data.rglob(".*.part"))
    stoker("verify", *args)


def generation_fails(tmp):
    """What the run left tells why there is nothing to judge."""
    out = tmp / "generation-fails"
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))  # noqa: E731
    refused(["run", *tiny(tmp / "too-large", out, dataset__record_length_bytes=2 << 20), "workflow.generate_data=true"], 1,
            "too large", preexec_fn=limit)
    refused(["audit", out], 1, "ended before it trained", "too large")


def stop_by_signal(tmp):
    for sig in (signal.SIGINT, signal.SIGTERM):
        out = tmp / f"stopped-{sig.name}"
        args = tiny(tmp / "data2", out, files=64, train__computation_time=0.2, train__epochs=5)
        p = subprocess.Popen([STOKER, "run", *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True)
        assert wait_for(lambda: logged(out, "Starting epoch 1"), 30)
        time.sleep(0.5)
        begin = time.monotonic()
        p.send_signal(sig)
        stdout, stderr = p.communicate(timeout=20)
        assert time.monotonic() - begin < 10
        assert p.returncode == 1, (p.returncode, stderr)
        assert "stopped by a signal" in stderr, stderr
        result = load(out)
        assert result["status"] == "interrupted", result["status"]
        assert os.path.exists(out / "0_output.json")


def stop_while_computing(tmp):
    """A long emulated computation does not keep a stopped run."""
    out = tmp / "long"
    args = tiny(tmp / "data2", out, files=64, train__computation_time=60)
    p = subprocess.Popen([STOKER, "run", "-n", "4", *map(str, args)], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    assert wait_for(lambda: logged(out, "Starting epoch 1"), 30)
    time.sleep(1)
    begin = time.monotonic()
    p.send_signal(signal.SIGINT)
    stdout, stderr = p.communicate(timeout=50)
    assert time.monotonic() - begin < 30, "the ranks slept on"
    assert p.returncode == 1 and "stuck" not in stderr, stderr
    assert "stopped by a signal" in stderr, stderr


def watchdog(tmp):
    done = stoker("run", *tiny("/stuck", tmp / "stuck", storage__store="fault+memory",
                               storage__fault__op="read", storage__fault__nth=5, storage__fault__count=1,
                               storage__fault__action="delay", storage__fault__delay=30,
                               run__watchdog=2), status=1, timeout=60)
    assert "watchdog" in done.stderr and "img_" in done.stderr, done.stderr
    print("  ", done.stderr.strip().splitlines()[-1])


def odd_folders(tmp):
    """What a folder is called is never read as syntax of an override."""
    keys = ["dataset.num_files_train=4", "dataset.num_files_eval=0", "workflow.evaluation=false",
            "train.computation_time=0", "reader.batch_size=1"]
    for name in ("it's", "a \\'b\\", "x${y}", 'q",{z} ', "a=b"):
        at = tmp / "odd" / name
        at.mkdir(parents=True)
        stoker("generate", "default", "dataset.data_folder=d", *keys, cwd=at)
        assert "every byte" in stoker("verify", at / "d").stdout
        if name == "a=b":
            (at / "d").rename(at / "d=e")
            assert "every byte" in stoker("verify", "d=e", cwd=at).stdout
            refused(["verify", at / "none=e"], 2, "a=b/none=e' does not exist", "dataset's folder")
            refused(["verify", "default", "none/e=3"], 2, "configuration group")
            (at / "d=e").rename(at / "d")
        (at / "d.csv").write_text("model,epochs,processes\ndefault,1,1\n")
        stoker("study", "run", "d.csv", *keys, cwd=at)
        assert (at / "results/default/1/run-1/summary.json").exists()


def damaged_search(tmp):
    """What was found is not thrown away, and is not called something else's."""
    folder = tmp / "damaged search"
    folder.mkdir()
    (folder / "1").mkdir()
    for text, why in (('{"key": "', "damaged in line 1"), ("", "is empty"), ("[]", "not a JSON object")):
        (folder / "capacity.json").write_text(text)
        refused(["capacity", "unet3d_h100", f"dataset.data_folder={tmp}/data", "-o", folder], 1, why,
                "another folder with -o")
        assert (folder / "capacity.json").read_text() == text


def launchers(tmp):
    """What looks like a launcher's environment and is none; nobody else would say what is wrong, whichever process it is."""
    openmpi, mpich = "OMPI_COMM_WORLD_", "PMI_"
    for size, rank, *words in (("0", "0", "_SIZE is '0'"), ("y", "0", "_SIZE is 'y'"), ("", "", "_SIZE is ''"),
                               ("9" * 30, "0", "_SIZE is '9999"), ("2", "2", "_RANK is '2'", "0 to 1"),
                               ("2", "-1", "_RANK is '-1'", "0 to 1"), ("3", "x", "_RANK is 'x'", "0 to 2")):
        for kind in (openmpi, mpich):
            refused(["run", "default"], 1, *words, f"unset {kind}SIZE", cwd=tmp,
                    env=dict(os.environ, **{kind + "SIZE": size, kind + "RANK": rank}))
    for fd in ("99", "0", "x"):
        refused(["run", "default"], 1, f"at descriptor {fd} (PMI_FD)", "closed it", cwd=tmp,
                env=dict(os.environ, PMI_FD=fd, PMI_RANK="1", PMI_SIZE="2"))
    for port, words in (("garbage", "HOST:PORT"), (":1", "HOST:PORT"), ("localhost:x", "cannot reach mpiexec"),
                        ("localhost:1", "refused")):
        refused(["run", "default"], 1, "PMI_PORT", port, words, cwd=tmp, env=dict(os.environ, PMI_PORT=port, PMI_ID="1"))
    # a host that does not answer: the queue of connections is full
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for s in (first, second):
            s.setblocking(False)
            s.connect_ex(full.getsockname())
        begin = time.monotonic()
        refused(["run", "default"], 1, "cannot reach", "timed out", cwd=tmp,
                env=dict(os.environ, PMI_PORT=f"127.0.0.1:{full.getsockname()[1]}", PMI_ID="0", STOKER_START_LIMIT="1"))
        assert time.monotonic() - begin < 20


def main():
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        configuration(tmp)
        dataset(tmp)
        full_disks(tmp)
        read_only(tmp)
        kill_and_resume(tmp)
        generation_fails(tmp)
        stop_by_signal(tmp)
        stop_while_computing(tmp)
        watchdog(tmp)
        odd_folders(tmp)
        damaged_search(tmp)
        launchers(tmp)
    print(f"{count} refusals, each a sentence")


if __name__ == "__main__":
    main()

"""Ratios, not tests: what the client of the store s3 costs beside one that does nothing but GET (tests/rigs/get_loop.c; https:
libcurl), both against one nginx that sends files from memory; and what a GET costs a run of stoker, over Ceph's radosgw.

    python3 tests/bench/s3.py build/stoker [ROUNDS [SECONDS]]

Turns alternate; each figure is the median of the ratios of the turns. "threads": one connection a thread, plain reads; "queue":
all connections in one thread, as reader.queue_depth asks for them. rate: at least 0.95 wanted; processor time: at most 1.1.
"""
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
STOKER = sys.argv[1] if len(sys.argv) > 1 else "build/stoker"
os.environ["STOKER"] = STOKER
import s3_rigs  # noqa: E402
from s3_server import make_certificate  # noqa: E402
from util import tiny  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
TOOL = str(pathlib.Path(STOKER).resolve().parent / "tests" / "store_tool")
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
SECONDS = sys.argv[3] if len(sys.argv) > 3 else "0.8"
KINDS = [("s", 100_000, 64, (1, 8, 32)), ("l", 100_000_000, 2, (1, 8, 32))]
SHM = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def build(tmp):
    source, out = HERE.parent / "rigs" / "get_loop.c", tmp / "get_loop"
    base = ["cc", "-O2", "-D_GNU_SOURCE", "-o", str(out), str(source), "-lpthread"]
    if subprocess.run(base + ["-DWITH_CURL", "-lcurl"], capture_output=True).returncode:
        subprocess.run(base, check=True)
    return str(out)


def figures(command, env):
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode == 77:
        return None
    if done.returncode:
        raise RuntimeError(f"{command[:6]}: {done.stderr}")
    return [float(x) for x in re.match(r"([\d.]+) MB/s ([\d.]+) reads/s ([\d.]+) s/GB ([\d.]+) us/read", done.stdout).groups()]


def client(tmp, port, secure, env):
    loop = build(tmp)
    for tls in (False, True):
        for letter, size, files, connections in KINDS:
            names = [f"{letter}{i}" for i in range(files)]
            where = f"https://127.0.0.1:{secure}" if tls else f"http://127.0.0.1:{port}"
            options = f's3: {{bucket: bench, sign: true, head_on_open: false, endpoints: ["{where}"]}}'
            for n in connections:
                if size * n > 1 << 30:
                    n = 10  # its buffers
                paths = [f"/bench/{x}" for x in names]
                runs = {"reference": [loop, *([where] if tls else ["127.0.0.1", str(port)]), SECONDS, str(n), *paths],
                        "threads": [TOOL, "s3", options, str(size), "1", str(n), SECONDS, *names],
                        "queue": [TOOL, "s3", options, str(size), str(max(n, 2)), "1", SECONDS, *names]}
                if n == 1:
                    del runs["queue"]
                turns = []
                for turn in range(ROUNDS):
                    order = list(runs.items())[::-1 if turn % 2 else 1]
                    turns.append({k: figures(v, env) for k, v in order})
                if not turns[0]["reference"]:
                    print("https: libcurl's headers are not installed (libcurl4-openssl-dev)")
                    return
                for k in list(runs)[1:]:
                    rate = statistics.median(t[k][0] / t["reference"][0] for t in turns)
                    cpu = statistics.median(t[k][2] / t["reference"][2] for t in turns)
                    print(f"{'https' if tls else 'http'}, {size / 1e6:g} MB, {n} connections, {k}: rate {rate:.2f}, processor "
                          f"time {cpu:.2f} of the reference, which took {statistics.median(t['reference'][0] for t in turns):.0f} "
                          f"MB/s, {statistics.median(t['reference'][2] for t in turns):.3f} s/GB, "
                          f"{statistics.median(t['reference'][3] for t in turns):.0f} us a GET", flush=True)


def nginx(tmp):
    program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    made = make_certificate(tmp)
    if not program or not made:
        print("the client alone: nginx (nginx-light) or openssl is not installed")
        return
    port = s3_rigs.free_ports(2)
    folder = pathlib.Path(tempfile.mkdtemp(dir=SHM))
    try:
        (folder / "bench").mkdir()
        os.chmod(folder, 0o755)
        for letter, size, files, _ in KINDS:
            for i in range(files):
                (folder / "bench" / f"{letter}{i}").write_bytes(os.urandom(size))
        temporary = "".join(f"{k}_temp_path {tmp}/{k};" for k in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (tmp / "nginx.conf").write_text(
            f"daemon off; worker_processes 1; pid {tmp}/pid; error_log {tmp}/error.log; events {{ worker_connections 1024; }}\n"
            f"http {{ access_log off; sendfile on; keepalive_requests 1000000000; open_file_cache max=1000; {temporary}\n"
            f"server {{ listen 127.0.0.1:{port}; listen 127.0.0.1:{port + 1} ssl; ssl_certificate {made[0]}; "
            f"ssl_certificate_key {made[1]}; root {folder}; }} }}\n")
        server = subprocess.Popen([program, "-e", str(tmp / "error.log"), "-c", str(tmp / "nginx.conf")])
        try:
            rig = s3_rigs.Rig(tmp)
            rig.running = [server]
            rig.answers(f"http://127.0.0.1:{port}/bench/s0")
            client(tmp, port, port + 1, {**os.environ, "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s",
                                         "AWS_CA_BUNDLE": str(made[0])})
        finally:
            server.terminate()
            server.wait()
    finally:
        shutil.rmtree(folder)


def spent(argv, env):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, check=True, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def runs(tmp):
    """Epochs after the first: what stays the same drops out."""
    files, epochs = 256, 9
    try:
        with s3_rigs.Radosgw(tmp / "radosgw") as env:
            env = {**os.environ, **env}
            import boto3
            boto3.client("s3", endpoint_url=env["AWS_ENDPOINT_URL"], aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
                         aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"], region_name="us-east-1").create_bucket(Bucket="bench")
            keys = dict(fmt="npy", files=files, dataset__record_length_bytes=100_000, storage__storage_type="s3",
                        storage__storage_root="bench", train__computation_time=0, reader__read_threads=1, reader__access="native",
                        reader__decode="none", reader__batch_size=8, reader__queue_depth=8, storage__s3__head_on_open="false")
            subprocess.run([STOKER, "generate", *map(str, tiny("data", None, **keys))], check=True, env=env, stdout=subprocess.DEVNULL)
            per = []
            for i in range(3):
                few, many = (spent([STOKER, "run", *map(str, tiny("data", tmp / f"o{i}.{n}", workflow__generate_data="false",
                                                                 train__epochs=n, **keys))], env) for n in (1, epochs))
                per.append((many - few) / ((epochs - 1) * files))
            print(f"a run, npy of 100 kB, queue_depth 8, radosgw: {statistics.median(per) * 1e6:.0f} us of processor time a sample")
    except (s3_rigs.Missing, ImportError) as e:
        print(f"a run: {e}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        nginx(pathlib.Path(folder))
        runs(pathlib.Path(folder))


if __name__ == "__main__":
    main()

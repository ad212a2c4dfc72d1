"""S3 servers of others, each in a folder of its own on 127.0.0.1: Ceph's radosgw, OpenStack Swift's s3api, s3rver of npm and
versitygw, which is written in Go.

    with Radosgw(folder) as env: ...    # env: AWS_* variables; raises Missing where the programs are not installed
"""
import os
import pathlib
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
import uuid


class Missing(Exception):
    """Why a server cannot run here."""


def free_ports(n):
    """n consecutive ports that nobody listens at now."""
    for base in range(21000 + os.getpid() % 5000, 60000, n + 7):
        taken = False
        for port in range(base, base + n):
            with socket.socket() as s:
                try:
                    s.bind(("127.0.0.1", port))
                except OSError:
                    taken = True
                    break
        if not taken:
            return base
    raise Missing("no free ports")


class Rig:
    programs, packages = (), ""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.running = []

    def run(self, *command, name=None, **kw):
        """Starts a daemon."""
        out = open(self.folder / f"{name or pathlib.Path(command[0]).name}.out", "wb")
        self.running.append(subprocess.Popen(list(map(str, command)), stdout=out, stderr=subprocess.STDOUT,
                                             stdin=subprocess.DEVNULL, start_new_session=True, **kw))
        out.close()

    def call(self, *command, **kw):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60, **kw)
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stdout[-500:]} {done.stderr[-1000:]}")
        return done.stdout

    def answers(self, url, seconds=40):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if dead := [p for p in self.running if p.poll() is not None]:
                raise RuntimeError(f"{dead[0].args[0]} ended with {dead[0].returncode}")
            try:
                urllib.request.urlopen(url, timeout=2).read()
                return
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(f"{url} does not answer")

    def __enter__(self):
        path = os.environ["PATH"] + ":/usr/sbin:/sbin"
        if absent := [p for p in self.programs if not shutil.which(p, path=path)]:
            raise Missing(f"{absent[0]} is not installed ({self.packages})")
        self.folder.mkdir(parents=True)
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def stop(self):
        for p in reversed(self.running):
            p.terminate()
        for p in reversed(self.running):
            try:
                p.wait(10)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __exit__(self, *_):
        self.stop()

    @staticmethod
    def env(port, access, secret, region="us-east-1"):
        return {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": access, "AWS_SECRET_ACCESS_KEY": secret,
                "AWS_REGION": region, "AWS_DEFAULT_REGION": region, "AWS_EC2_METADATA_DISABLED": "true"}


class Radosgw(Rig):
    """One monitor, one storage daemon in memory and the gateway; signatures are checked, but for their region."""
    programs = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "monmaptool", "ceph")
    packages = "ceph-mon ceph-osd ceph-common radosgw"

    def __init__(self, folder, store="memstore"):
        super().__init__(folder)
        self.store = store

    def start(self):
        d, base = self.folder.resolve(), free_ports(44)
        fsid = str(uuid.uuid4())
        for name in ("mon", "osd", "run"):
            (d / name).mkdir()
        library = next(iter(sorted(pathlib.Path("/usr/lib").glob("*/ceph"))), pathlib.Path("/usr/lib/ceph"))
        conf = d / "ceph.conf"
        conf.write_text(f"""[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{base + 2},v1:127.0.0.1:{base + 1}]
auth cluster required = none
auth service required = none
auth client required = none
ms mon client mode = crc
ms bind port min = {base + 3}
ms bind port max = {base + 43}
public addr = 127.0.0.1
cluster addr = 127.0.0.1
run dir = {d}/run
admin socket = {d}/run/$name.$pid.asok
log file = {d}/$name.log
crash dir = {d}
mon cluster log file = {d}/cluster.log
plugin dir = {library}
erasure code dir = {library}/erasure-code
osd class dir = {library.parent}/rados-classes
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd max object name len = 460
osd max object namespace len = 64
mon allow pool size one = true
mon warn on pool no redundancy = false
mon max pg per osd = 2000
mon data avail warn = 1
mon data avail crit = 0
[mon]
mon data = {d}/mon
[osd]
osd data = {d}/osd
osd objectstore = {self.store}
memstore device bytes = 4294967296
bluestore block path = {d}/block
bluestore block create = true
bluestore block size = 8589934592
osd memory target = 1073741824
osd op num shards = 2
[client]
admin socket =
[client.rgw.a]
rgw data = {d}/run
rgw frontends = beast endpoint=127.0.0.1:{base} tcp_nodelay=1
rgw thread pool size = 64
rgw enable usage log = false
rgw enable ops log = false
rgw run sync thread = false
rgw dns name =
""")
        self.call("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[v2:127.0.0.1:{base + 2},v1:127.0.0.1:{base + 1}]", d / "monmap")
        self.call("ceph-mon", "-c", conf, "-i", "a", "--mkfs", "--monmap", d / "monmap")
        self.run("ceph-mon", "-c", conf, "-i", "a", "-f")
        own = str(uuid.uuid4())
        self.call("ceph", "-c", conf, "osd", "new", own)
        self.call("ceph-osd", "-c", conf, "-i", "0", "--mkfs", "--osd-uuid", own)
        self.run("ceph-osd", "-c", conf, "-i", "0", "-f")
        end = time.monotonic() + 40
        while "1 up" not in self.call("ceph", "-c", conf, "osd", "stat"):
            if time.monotonic() > end:
                raise RuntimeError("the osd of Ceph does not come up")
            time.sleep(0.2)
        self.call("radosgw-admin", "-c", conf, "-n", "client.rgw.a", "user", "create", "--uid=stoker", "--display-name=stoker",
                  "--access-key=stokerkey", "--secret=stokersecret")
        self.run("radosgw", "-c", conf, "-n", "client.rgw.a", "-f")
        self.answers(f"http://127.0.0.1:{base}/")
        return self.env(base, "stokerkey", "stokersecret")


class Swift(Rig):
    """The proxy with s3api and tempauth over one account, container and object server; signatures are checked."""
    programs = ("swift-proxy-server", "swift-account-server", "swift-container-server", "swift-object-server", "swift-ring-builder", "memcached")
    packages = "swift-proxy swift-object swift-container swift-account memcached"

    def start(self):
        d, base = self.folder.resolve(), free_ports(5)
        for name in ("etc", "srv/d1", "cache"):
            (d / name).mkdir(parents=True)
        (d / "etc/swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = s\nswift_hash_path_prefix = p\n"
                                          "[storage-policy:0]\nname = p0\ndefault = yes\n")
        user = "root" if os.geteuid() == 0 else os.environ.get("USER", "nobody")
        common = f"bind_ip = 127.0.0.1\nswift_dir = {d}/etc\nuser = {user}\nlog_address = {d}/nolog\nlog_level = ERROR\n"
        for i, kind in enumerate(("account", "container", "object")):
            builder = d / f"etc/{kind}.builder"
            self.call("swift-ring-builder", builder, "create", 4, 1, 0)
            self.call("swift-ring-builder", builder, "add", f"r1z1-127.0.0.1:{base + 1 + i}/d1", 1)
            self.call("swift-ring-builder", builder, "rebalance")
            (d / f"etc/{kind}.conf").write_text(
                f"[DEFAULT]\n{common}bind_port = {base + 1 + i}\ndevices = {d}/srv\nmount_check = false\nworkers = 0\n"
                f"disable_fallocate = true\nrecon_cache_path = {d}/cache\n[pipeline:main]\npipeline = {kind}-server\n"
                f"[app:{kind}-server]\nuse = egg:swift#{kind}\n")
        filters = ["catch_errors", "gatekeeper", "healthcheck", "cache", "s3api", "tempauth", "copy", "slo", "dlo", "versioned_writes"]
        extra = {"cache": f"memcache_servers = 127.0.0.1:{base + 4}\n", "s3api": "allow_multipart_uploads = yes\nlocation = us-east-1\n",
                 "tempauth": "user_test_tester = testing .admin\n"}
        (d / "etc/proxy.conf").write_text(
            f"[DEFAULT]\n{common}bind_port = {base}\nworkers = 1\n[pipeline:main]\npipeline = {' '.join(filters)} proxy-server\n"
            "[app:proxy-server]\nuse = egg:swift#proxy\naccount_autocreate = true\n"
            + "".join(f"[filter:{f}]\nuse = egg:swift#{'memcache' if f == 'cache' else f}\n{extra.get(f, '')}" for f in filters))
        self.run("memcached", "-u", user, "-l", "127.0.0.1", "-p", base + 4, "-m", 64)
        for kind in ("account", "container", "object", "proxy"):
            self.run(f"swift-{kind}-server", d / f"etc/{kind}.conf", env={**os.environ, "SWIFT_CONF_FILE": str(d / "etc/swift.conf")})
        self.answers(f"http://127.0.0.1:{base}/healthcheck")
        return self.env(base, "test:tester", "testing")


CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "stoker"


class S3rver(Rig):
    """In node; signatures are not checked."""
    programs, packages = ("node",), "nodejs, and s3rver 3.7.1 of npm: tools/setup.sh heavy"

    def start(self):
        program = CACHE / "s3rver-3.7.1/node_modules/s3rver/bin/s3rver.js"
        if not program.exists():
            raise Missing("s3rver is not installed (tools/setup.sh heavy)")
        port = free_ports(1)
        (self.folder / "data").mkdir()
        # its tokens of lists are made with a cipher that OpenSSL 3 has put aside
        self.run("node", "--openssl-legacy-provider", program, "-d", self.folder / "data", "-a", "127.0.0.1", "-p", port, "--silent")
        self.answers(f"http://127.0.0.1:{port}/")
        return self.env(port, "S3RVER", "S3RVER")


class Versitygw(Rig):
    """In Go, over files of a folder; signatures are checked, their region, too."""

    def start(self):
        program = CACHE / "versitygw-1.8.0/bin/versitygw"
        if not program.exists():
            raise Missing("versitygw is not installed (Go, and tools/setup.sh heavy)")
        port = free_ports(1)
        (self.folder / "data").mkdir()
        self.run(program, "--access", "stokerkey", "--secret", "stokersecret", "--region", "us-east-1", "--port", f"127.0.0.1:{port}",
                 "posix", self.folder / "data")
        self.answers(f"http://127.0.0.1:{port}/")
        return self.env(port, "stokerkey", "stokersecret")

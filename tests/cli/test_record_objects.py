"""stoker record: what clients of HTTP ask for is in the recording, and nothing that is a secret; explain says it, and makes a
workload of it that asks for the same; hostile servers and clients change neither the job nor what else is recorded."""
# mostly waits
import array
import collections
import ctypes
import http.client
import json
import os
import pathlib
import platform
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from s3_server import S3Server  # noqa: E402
from util import STOKER  # noqa: E402

OBJECTS, BATCH, EPOCHS = 24, 4, 2
SECRET = "verysecretword"


# ---- the jobs: run by this file itself ----

def train(host, port, style):
    """Two epochs over the objects, in an order of its own for each."""
    headers = {"User-Agent": f"Boto3/1.26 {style}", "x-amz-security-token": SECRET, "Authorization": f"AWS4-HMAC {SECRET}", "Cookie": SECRET,
               "Proxy-Authorization": SECRET}
    c = http.client.HTTPConnection(host, int(port))
    order = random.Random(3)
    keys = [f"train/img_{i:02}.npz" for i in range(OBJECTS)]
    for _ in range(EPOCHS):
        order.shuffle(keys)
        for i, key in enumerate(keys):
            while True:
                c.request("GET", f"/bucket/{key}?X-Amz-Signature={SECRET}&X-Amz-Credential={SECRET}", headers=headers)
                r = c.getresponse()
                body = r.read()
                if r.status != 503:
                    break
            assert r.status == 200 and len(body) == 4000 + 100 * int(key[-6:-4]), r.status
            if i % BATCH == BATCH - 1:
                time.sleep(0.025)
    c.request("PUT", "/bucket/out/model.bin", body=b"GET /evil HTTP/1.1\r\n\r\n" * 1000, headers=headers)
    c.getresponse().read()
    c.request("HEAD", "/bucket/train/img_00.npz", headers=headers)
    c.getresponse().read()


def connect(port):
    s = socket.socket()
    s.connect(("127.0.0.1", int(port)))
    return s


def until_end(s):
    got = b""
    try:
        while len(got) < 1 << 20:
            piece = s.recv(65536)
            if not piece:
                break
            got += piece
    except OSError as e:
        got += type(e).__name__.encode()
    return got


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class Message(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("name_bytes", ctypes.c_uint32), ("vector", ctypes.POINTER(Vector)), ("vectors", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("control_bytes", ctypes.c_size_t), ("flags", ctypes.c_int), ("moved", ctypes.c_uint)]


LIBC = ctypes.CDLL(None, use_errno=True)
# connect, sendto, sendmsg, sendmmsg, recvmmsg
NUMBERS = {"x86_64": (42, 44, 46, 307, 299), "aarch64": (203, 206, 211, 269, 243)}.get(platform.machine())


def call(name, *a):
    """A function of libc, and the system call of that name."""
    a = [ctypes.c_long(v) if isinstance(v, int) else v for v in a]
    yield lambda: getattr(LIBC, name)(*a)
    if NUMBERS:
        number = NUMBERS[("connect", "sendto", "sendmsg", "sendmmsg", "recvmmsg").index(name)]
        yield lambda: LIBC.syscall(ctypes.c_long(number), *a)


def at_end(data):
    """Where the bytes are, with no memory behind them."""
    page = os.sysconf("SC_PAGE_SIZE")
    LIBC.mmap.restype = ctypes.c_void_p
    at = LIBC.mmap(None, ctypes.c_size_t(2 * page), 3, 0x22, -1, ctypes.c_long(0)) + page
    assert LIBC.munmap(ctypes.c_void_p(at), ctypes.c_size_t(page)) == 0
    ctypes.memmove(at - len(data), data, len(data))
    return at - len(data)


def short_addresses():
    """Addresses of fewer bytes than the structures for them have."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind("")
    local = socket.AF_UNIX.to_bytes(2, sys.byteorder) + listener.getsockname()
    for family, address in ((socket.AF_UNIX, local), (socket.AF_INET, bytes(2)),
                            (socket.AF_INET6, socket.AF_INET6.to_bytes(2, sys.byteorder) + b"\0\x09" + bytes(19) + b"\1")):
        try:
            s = socket.socket(family, socket.SOCK_DGRAM)
        except OSError:
            continue
        for made in call("connect", s.fileno(), at_end(address), len(address)):
            yield made()
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    for made in call("sendto", s.fileno(), at_end(b"x"), 1, socket.MSG_FASTOPEN, at_end(local), len(local)):
        yield made()


def messages(port, get):
    """Messages that Python has no functions for."""
    room = ctypes.create_string_buffer(5000)
    answer = Message(vector=ctypes.pointer(Vector(ctypes.addressof(room), 5000)), vectors=1)
    for name in ("sendmsg", "sendmmsg", "recvmmsg"):
        for way in (0, 1) if NUMBERS else (0,):
            s = connect(port)
            data = get.replace(b"/k", b"/%s%d" % (name.encode(), way))
            m = Message(vector=ctypes.pointer(Vector(ctypes.cast(data, ctypes.c_void_p), len(data))), vectors=1)
            if name == "recvmmsg":
                s.send(data)
                yield list(call(name, s.fileno(), ctypes.byref(answer), 1, 0, None))[way]()
            else:
                yield list(call(name, s.fileno(), ctypes.byref(m), *((0,) if name == "sendmsg" else (1, 0))))[way]()
                yield len(until_end(s))


def hostile(port):
    """What each way of talking gave, as text: the same with and without the recorder."""
    say = []
    get = b"GET /bucket/k HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    s = connect(port)  # pieces of a head, and a look before it is taken
    for piece in (b"GET /bucket/pieces", b" HTTP/1.1\r\nHo", b"st: 127.0.0.1\r\nRange: bytes=0-9\r\n", b"\r\n"):
        s.send(piece)
        time.sleep(0.01)
    while len(s.recv(100, socket.MSG_PEEK)) < 59:  # all of the answer
        pass
    say.append(len(until_end(s)))
    for pieces in ((b"GET ", b"/bucket/k%3FX-Amz-Signature=" + SECRET.encode() + b" HTTP/1.1\r\n\r\n"),  # the path in the second
                   (b"GET /buck", b"et/k HTTP/1.1\r\nHost: user:" + SECRET.encode() + b"@" + SECRET.encode() + b"@h\r\n\r\n"),
                   (b"GET http://user:" + SECRET.encode(), b"@127.0.0.1/bucket/k HTTP/1.1\r\n\r\n"),  # its path is not known
                   (b"GET /bucket/k%3", b"FX-Amz-Signature=" + SECRET.encode() + b" HTTP/1.1\r\n\r\n")):
        s = connect(port)
        for piece in pieces:
            s.send(piece)
            time.sleep(0.01)
        say.append(len(until_end(s)))
    s = connect(port)  # connected again, within a head
    s.send(b"GET /bucket/never")
    LIBC.connect(s.fileno(), bytes(16), 16)
    s.connect(("127.0.0.1", int(port)))
    s.send(get.replace(b"/k", b"/again"))
    say.append(len(until_end(s)))
    s = connect(port)  # pipelined
    s.send(get + get)
    say.append(len(until_end(s)))
    s = connect(port)  # HTTP/2
    s.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + get)
    say.append(len(until_end(s)))
    s = connect(port)  # anything
    s.send(bytes(range(256)) * 10 + get)
    say.append(len(until_end(s)))
    s = connect(port)  # a head without end, both ways
    s.send(b"GET /endless HTTP/1.1\r\n")
    for i in range(200):
        s.send(b"X-Field: %d\r\n" % i)
    until_end(s)  # what was not read ends the connection at any moment
    s = connect(port)  # shared with a child, which asks; the parent takes the answer
    child = os.fork()
    if child == 0:
        s.send(get.replace(b"/k", b"/forked"))
        os._exit(0)
    os.waitpid(child, 0)
    say.append(len(until_end(s)))
    s = connect(port)  # dup2, and vectors
    other = os.open("/dev/null", os.O_RDONLY)
    os.dup2(s.fileno(), other)
    s.close()
    say.append(os.writev(other, [get[:20], get[20:]]))
    room = [bytearray(5), bytearray(5000)]
    say.append(os.readv(other, room) > 0)
    os.close(other)
    s = connect(port)  # passed on
    a, b = socket.socketpair()
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [s.fileno()]))])
    s.close()
    _, control, _, _ = b.recvmsg(1, socket.CMSG_LEN(4))
    s = socket.socket(fileno=int.from_bytes(control[0][2][:4], "little"))
    s.send(get.replace(b"/k", b"/passed"))
    say.append(len(until_end(s)))
    say += [*short_addresses(), *messages(port, get)]
    a.send(b"GET /no HTTP/1.1\r\n\r\n")  # no server
    say.append(len(b.recv(100)))
    s = connect(port)  # not blocking
    s.setblocking(False)
    try:
        s.recv(10)
    except BlockingIOError as e:
        say.append(e.errno)
    s.close()
    try:
        s.send(b"x")
    except OSError as e:
        say.append(e.errno)
    s = connect(port)
    s.send(b"GET /reset HTTP/1.1\r\n\r\n")
    time.sleep(0.1)
    for _ in range(3):
        try:
            say.append(s.send(b"more"))
        except OSError as e:
            say.append(e.errno)
        time.sleep(0.05)
    refused = socket.socket()
    refused.bind(("127.0.0.1", 0))
    say.append(socket.socket().connect_ex(refused.getsockname()))
    for _ in range(500):
        connect(port).close()
    print(say)


# ---- the servers ----

def answer(s):
    with s:
        s.settimeout(10)
        got = b""
        try:
            while b"\r\n\r\n" not in got and len(got) < 2000:
                piece = s.recv(4096)
                if not piece:
                    return
                got += piece
            if b"/endless" in got:
                s.sendall(b"HTTP/1.1 200 OK\r\n")
                for i in range(300):
                    s.sendall(b"X-Field: value\r\n")
            elif b"/reset" in got:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            else:
                for _ in range(got.count(b"HTTP/1.1\r\n")):
                    s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nHTTP/1.1 500 no body")
        except OSError:
            pass


def serve(listener):
    while True:
        try:
            s, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=answer, args=(s,), daemon=True).start()


# ---- the cases ----

def run(*command, status=0, env=None):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == status, (command, done)
    return done.stdout


def record(folder, *command, options=()):
    return run(STOKER, "record", "-o", folder, *options, "--", sys.executable, __file__, *command)


def explain(folder, *options):
    return run(STOKER, "explain", folder, *options)


def check(what, wanted, got):
    assert wanted == got, f"{what}: {got} instead of {wanted}"


def has_no_secret(recording):
    for file in recording.iterdir():
        assert SECRET.encode() not in file.read_bytes(), f"{file} has a secret"


def objects(tmp):
    with S3Server(check=False, rules=[{"op": "GetObject", "nth": 5, "count": 2, "do": "status", "status": 503}]) as s3:
        for i in range(OBJECTS):
            s3.put("bucket", f"train/img_{i:02}.npz", random.Random(i).randbytes(4000 + 100 * i))
        record(tmp / "r", "train", "127.0.0.1", s3.port, "plain")
        asked = s3.requests()
        # of a job that uses names that are not to be told
        record(tmp / "hashed", "train", "127.0.0.1", s3.port, "hashed", options=("--anonymize",))
        port = s3.port
    gets = [r for r in asked if r["op"] == "GetObject"]
    has_no_secret(tmp / "r")
    for file in (tmp / "hashed").iterdir():
        for word in (SECRET, "bucket", "img_", "Boto3", "7f000001"):
            assert word.encode() not in file.read_bytes(), f"{file} has {word}"
    told = json.loads(explain(tmp / "r", "--json"))
    server = told["servers"][0]
    ok = [r for r in gets if r["status"] == 200]
    for key, wanted in {"server": f"127.0.0.1:{port}", "protocol": "http", "bucket": "bucket", "client": "Boto3/1.26 plain",
                        "connections": len({r["conn"] for r in asked}), "get": len(gets), "gets": len(ok), "head": 1, "put": 1,
                        "objects": OBJECTS, "gets_ranged": 0, "gets_at_once": 1, "answers_later": 2, "answers_refused": 0, "unanswered": 0,
                        "answers_cut": 0, "got_bytes": sum(r["sent"] for r in ok), "put_bytes": 22000, "get_bytes_least": 4000,
                        "get_bytes_most": 4000 + 100 * (OBJECTS - 1)}.items():
        check(key, wanted, server[key])
    assert 0 < server["first_byte_s"] <= server["last_byte_s"] < 5, server
    for key, wanted in {"files": OBJECTS, "epochs": EPOCHS, "batch": BATCH, "format": "npz", "folder": "s3://bucket/train", "workers": 0}.items():
        check(key, wanted, told["values"][key]["value"])
    assert "cache" not in told["values"], "a page cache of objects"
    text = explain(tmp / "r")
    assert text.startswith(f"Objects over http from 127.0.0.1:{port}: {len(ok)} GETs of "), text
    page = tmp / "job.html"
    explain(tmp / "r", "-o", page)
    assert '"first_byte_s"' in page.read_text()
    not_replayed(tmp)
    hashed = json.loads(explain(tmp / "hashed", "--json"))["servers"][0]
    check("GETs with hashed names", len(ok), hashed["gets"])
    again(tmp, ok)


def not_replayed(tmp):
    """Objects are not replayed, and are none of what the replay is compared with."""
    text = " ".join(run(STOKER, "replay", tmp / "r", "--data", tmp / "image").split())
    assert f"Not replayed: {OBJECTS * EPOCHS + 2} requests of objects, " in text, text
    reads = re.search(r" reads (\d+) (\d+)", text)
    assert reads and reads[1] == reads[2], text


def again(tmp, asked):
    """The workload of the job asks for as many objects of the same sizes."""
    explain(tmp / "r", "-o", tmp / "job.yaml")
    with S3Server() as s3:
        env = {**os.environ, **s3.env()}
        to = [tmp / "job.yaml", f"storage.s3.endpoints=[{s3.endpoint}]"]
        run(STOKER, "generate", *to, env=env)
        before = len(s3.requests())
        run(STOKER, "record", "-o", tmp / "run", "--", STOKER, "run", *to, "run.probe=false", "-o", tmp / "result", env=env)
        made = [r["sent"] for r in s3.requests()[before:] if r["op"] == "GetObject"]
    # beside those of training, each object is looked at once before, and the description of the dataset
    told = json.loads(explain(tmp / "run", "--json"))["servers"][0]
    check("GETs of the run that are recorded", len(made), told["gets"])
    sizes, wanted = collections.Counter(made), collections.Counter(r["sent"] for r in asked)
    assert all(sizes[n] >= count for n, count in wanted.items()), (sizes, wanted)
    same = run(STOKER, "explain", tmp / "r", "--fidelity", tmp / "run")
    assert f"{len(asked)}" in same, same


def by_strace(tmp):
    """The same from a log of strace that has the heads."""
    if not shutil.which("strace"):
        return
    with S3Server(check=False) as s3:
        for i in range(OBJECTS):
            s3.put("bucket", f"train/img_{i:02}.npz", bytes(4000 + 100 * i))
        run("strace", "-f", "-y", "-ttt", "-T", "-s", "600", "-e", "trace=%file,%desc,%process,%network", "-o", tmp / "strace", sys.executable,
            __file__, "train", "127.0.0.1", s3.port, "traced")
    told = json.loads(explain(tmp / "strace", "--json"))
    for key, wanted in {"gets": OBJECTS * EPOCHS, "objects": OBJECTS, "bucket": "bucket", "client": "Boto3/1.26 traced", "connections": 1,
                        "get_bytes_least": 4000}.items():
        check(f"strace: {key}", wanted, told["servers"][0][key])
    check("epochs of strace", EPOCHS, told["values"]["epochs"]["value"])
    # with -s 24, strings end within the paths
    lines = "\n".join(re.sub(r'("(?:[^"\\]|\\.){24})(?:[^"\\]|\\.)*"', r'\1"...', line) if "sendto(" in line else line
                      for line in (tmp / "strace").read_text(errors="replace").split("\n"))
    (tmp / "short").write_text(lines)
    told = json.loads(explain(tmp / "short", "--json"))
    assert any("`strace -s 400`" in n for n in told["notes"]), told["notes"]
    server = told["servers"][0]
    # what the body of the PUT says is a request here
    assert server["get"] >= OBJECTS * EPOCHS and "gets" not in server and "objects" not in server, server
    assert f"{OBJECTS * EPOCHS} GETs whose paths are cut off" in " ".join(explain(tmp / "short").split())


def strange(tmp):
    listener = socket.create_server(("127.0.0.1", 0), backlog=600)
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    port = listener.getsockname()[1]
    plain = run(sys.executable, __file__, "hostile", port)
    check("the job", plain, record(tmp / "strange", "hostile", port))
    servers = json.loads(explain(tmp / "strange", "--json"))["servers"]
    # pieces (of three requests the path is seen), again, pipelined (the second is not seen), forked, dup2, passed, messages
    check("GETs", 8 + (6 if NUMBERS else 3), sum(v.get("gets", 0) for v in servers))
    check("hosts", ["h"], [v["server"] for v in servers if not v["server"].startswith("127.")])
    check("ranges", 0, servers[0]["gets_ranged"])  # it was ignored by the server
    notes = json.loads(explain(tmp / "strange", "--json"))["notes"]
    assert not any("damaged" in n for n in notes), notes
    assert any("the paths of 3 requests were cut" in n for n in notes), notes
    has_no_secret(tmp / "strange")
    said = subprocess.run([STOKER, "explain", tmp / "strange", "-o", tmp / "strange.yaml"], capture_output=True, text=True, timeout=60)
    assert said.returncode and "no workload" in said.stderr and "replay" not in said.stderr, said
    listener.close()
    # what is only looked at is no read: of 100 bytes, the job took something once
    lines = run(pathlib.Path(os.environ["STOKER_TOOLS"]) / "job_events", tmp / "strange").splitlines()
    check("reads of 100 bytes", 1, sum(line.startswith("event ") and line.split()[2] == "read" and line.split()[4] == "100" for line in lines))


def main():
    with tempfile.TemporaryDirectory() as tmp:
        objects(pathlib.Path(tmp))
        by_strace(pathlib.Path(tmp))
        strange(pathlib.Path(tmp))


if __name__ == "__main__":
    if sys.argv[1:2] == ["train"]:
        train(*sys.argv[2:])
    elif sys.argv[1:2] == ["hostile"]:
        hostile(*sys.argv[2:])
    else:
        main()

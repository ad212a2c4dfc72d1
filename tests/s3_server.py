#!/usr/bin/env python3
"""An S3 server for tests: it checks signatures, records every request, and misbehaves as told.

    with S3Server(log="requests.jsonl", rules=[{"op": "GetObject", "nth": 3, "do": "reset", "after": 100}]) as s3:
        s3.put("bucket", "key", b"bytes")
        subprocess.run(..., env={**os.environ, **s3.env()})
        s3.requests()   # what was asked, in order of arrival

By hand: `s3_server.py [--port N] [--log FILE] [--rules JSON] [--tls] ...` prints what to export, and serves until it is ended.

Objects are kept in memory; zeros are kept as lengths alone, and with keep="sizes" everything is (it reads back as zeros).
`virtual` makes keys without objects: [("bucket", "data/x_%07d.npz", 1000000, 1000)].

A request is recorded when its answer has been sent, with: n (order of arrival), conn (number of the connection), on_conn
(the how many-th on it), at, first, end (seconds since the server started: request read, first byte and last byte of the
answer), in_flight (requests being answered when it came, itself included), in_flight_op (those of the same operation),
method, op, bucket, key, query, range, headers (those of KEPT), status, received, sent (bytes of the bodies), fault, path.

Rules. Which requests: op, method, bucket, key (regular expression, searched), range (regular expression), endpoint_conn
(number of the connection); of those that match: nth (default 1) and count (default 1; 0 without end), or every. What: `do`:
    reset        after: bytes of the body (negative: of head and body together, so -1 is one byte of the head; default: nothing sent)
    reset_upload after: bytes of the request's body that were read
    close        ends the connection in an orderly way instead of answering
    short        the body ends `by` bytes early, then the connection is closed in an orderly way
    length       Content-Length is wrong by `add`; or is `value`
    etag         value (default: another than the object's)
    status       status, code, message, retry_after, close
    slow_head    a line of the head each `seconds`
    slow_body    `bytes` each `seconds`
    silent       reads the request and never answers
    stall        after: bytes of the body, then nothing
    redirect     status (default 307), location (None: no Location at all)
    body         the answer is 200 with the text `body`
    raw          the answer is the text `raw` (latin-1), then the connection is closed
    error_in_200 code: 200 with an error in the body, as CompleteMultipartUpload and CopyObject may answer
    endless_list a listing that always has a next page
    same_token   a listing that always names the same next page
    two_tokens   a listing whose next pages are two, in turn
    list_size    size: what the listing says of each object
    endless_head lines of the head without end
    entities     XML that declares entities that grow
    no_continue  ignores Expect: 100-continue
    chunked      the answer is sent in chunks, without a Content-Length; chunk: bytes
    ignore_range answers 200 with the whole object
    shift_range  by: Content-Range names another range
    corrupt      at: a byte of the body is another one
    close_after  closes the connection after the answer, unannounced
    say_close    announces Connection: close and does so
    wait         seconds before the answer
"""
import argparse
import hashlib
import http.client
import json
import pathlib
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

from s3_objects import (CHUNK, MIN_PART, NS, Answer, Content, Object, Operations, Refused, Gone, Request, Virtual, http_date,
                        xml_text)

KEPT = ("host", "user-agent", "if-match", "if-none-match", "expect", "content-length", "content-type", "content-md5",
        "x-amz-content-sha256", "x-amz-copy-source", "x-amz-checksum-mode", "x-amz-sdk-checksum-algorithm", "connection",
        "transfer-encoding", "content-encoding", "accept-encoding", "te")


def make_certificate(folder):
    """(certificate, key) for 127.0.0.1 and localhost, made by the openssl command; None: there is none."""
    if not shutil.which("openssl"):
        return None
    cert, key = pathlib.Path(folder, "cert.pem"), pathlib.Path(folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:*.localhost",
                    "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    return cert, key


class Pace:
    """Lets so many units a second pass, all users together."""

    def __init__(self, rate):
        self.rate, self.next, self.lock = rate, 0.0, threading.Lock()

    def pass_(self, units):
        with self.lock:
            self.next = max(self.next, time.monotonic()) + units / self.rate
            late = self.next - time.monotonic()
        if late > 0:
            time.sleep(late)


class S3Server(Operations):
    """access, secret, token: the credentials; region: the only one that is accepted (None: any); check: whether signatures
    are; clock: seconds by which the server's clock is ahead; requests_s: above it 503 (burst: how many at once), with
    Retry-After retry_after; bytes_s of all answers together, conn_bytes_s of each connection; latency: seconds before each
    answer; per_conn: requests after which a connection is closed; idle: seconds after which an idle one is."""

    def __init__(self, *, port=0, access="stokerkey", secret="stoker/secret+key", token=None, region=None, check=True,
                 tls=False, nodelay=True, keep="all", log=None, rules=(), virtual=(), buckets=("bucket",), domain="localhost",
                 clock=0, requests_s=0, burst=1, retry_after=None, bytes_s=0, conn_bytes_s=0, latency=0, per_conn=0, idle=0,
                 page=1000, min_part=MIN_PART):
        self.access, self.secret, self.token, self.region, self.check = access, secret, token, region, check
        self.nodelay, self.keep, self.domain, self.clock, self.page, self.min_part = nodelay, keep, domain, clock, page, min_part
        self.requests_s, self.burst, self.retry_after, self.latency = requests_s, burst, retry_after, latency
        self.per_conn, self.idle = per_conn, idle
        self.pace = Pace(bytes_s) if bytes_s else None
        self.conn_bytes_s = conn_bytes_s
        self.buckets = {b: {} for b in buckets}
        self.virtual = {}
        for bucket, form, count, size in virtual:
            self.buckets.setdefault(bucket, {})
            self.virtual.setdefault(bucket, []).append(Virtual(form, count, size))
        self.uploads = {}
        self.aborted = self.completed = 0
        self.expired = False
        self.lock = threading.RLock()
        self.rules, self.matched = [], []
        self.add_rules(rules)
        self.record, self.arrived, self.conns, self.flying, self.flying_op = [], 0, 0, 0, {}
        self.refused_signatures = []
        self.log = open(log, "w", buffering=1) if log else None
        self.allowance, self.allowed_at = float(burst), time.monotonic()
        self.open, self.stopping, self.held = set(), threading.Event(), set()
        self.folder = tempfile.mkdtemp(prefix="s3_server_") if tls else None
        self.cert = None
        self.tls = None
        if tls:
            made = make_certificate(self.folder)
            if not made:
                shutil.rmtree(self.folder)
                raise FileNotFoundError("the openssl command")
            self.cert = str(made[0])
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(*map(str, made))
        self.began = time.monotonic()
        self.socket = socket.create_server(("127.0.0.1", port), backlog=4096)
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    # -- what tests call

    @property
    def endpoint(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def env(self):
        """Variables by which clients find the server."""
        names = {"AWS_ENDPOINT_URL": self.endpoint, "AWS_ACCESS_KEY_ID": self.access, "AWS_SECRET_ACCESS_KEY": self.secret,
                 "AWS_REGION": self.region or "us-east-1", "AWS_DEFAULT_REGION": self.region or "us-east-1",
                 "AWS_EC2_METADATA_DISABLED": "true"}
        if self.token:
            names["AWS_SESSION_TOKEN"] = self.token
        if self.cert:
            names["AWS_CA_BUNDLE"] = self.cert
        return names

    def put(self, bucket, key, data):
        content = Content()
        content.add(data, self.keep == "sizes")
        with self.lock:
            self.buckets.setdefault(bucket, {})[key] = Object(content, hashlib.md5(data).hexdigest(), time.time())

    def sparse(self, bucket, key, size):
        """An object of zeros."""
        with self.lock:
            self.buckets.setdefault(bucket, {})[key] = Object(Content([size] if size else []), f"{size:032x}", time.time())

    def get(self, bucket, key):
        o = self.buckets[bucket][key]
        return b"".join(o.content.read(0, o.content.size))

    def keys(self, bucket, prefix=""):
        with self.lock:
            return sorted((k for k in self.buckets[bucket] if k.startswith(prefix)), key=lambda k: k.encode())

    def size(self, bucket, key):
        return self.buckets[bucket][key].content.size

    def add_rules(self, rules):
        with self.lock:
            for rule in rules:
                self.rules.append(rule)
                self.matched.append(0)

    def settle(self, seconds=2):
        """Waits for answers under way to end, but for those that a rule keeps from ending."""
        end = time.monotonic() + seconds
        while self.flying > len(self.held) and time.monotonic() < end:
            time.sleep(0.002)

    def clear(self):
        """Forgets rules and records."""
        self.settle()
        with self.lock:
            self.rules, self.matched, self.record = [], [], []

    def requests(self, **same):
        """The records in order of arrival; those whose fields are as named."""
        self.settle()
        with self.lock:
            out = sorted(self.record, key=lambda r: r["n"])
        return [r for r in out if all(r[k] == v for k, v in same.items())]

    def in_flight(self):
        """How many requests are being answered now."""
        with self.lock:
            return self.flying

    def stop(self):
        self.stopping.set()
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()
        with self.lock:
            open_ = list(self.open)
        for s in open_:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.thread.join(5)
        if self.log:
            self.log.close()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # -- connections

    def now(self):
        return time.monotonic() - self.began

    def accept(self):
        while not self.stopping.is_set():
            try:
                conn, _ = self.socket.accept()
            except OSError:
                return
            with self.lock:
                self.conns += 1
                number = self.conns
                self.open.add(conn)
            threading.Thread(target=self.serve, args=(conn, number), daemon=True).start()

    def serve(self, conn, number):
        raw = conn
        try:
            if self.nodelay:
                conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls:
                conn = self.tls.wrap_socket(conn, server_side=True)
                with self.lock:
                    self.open.discard(raw)
                    self.open.add(conn)
            if self.idle:
                conn.settimeout(self.idle)
            Connection(self, conn, number).run()
        except (OSError, Gone, ssl.SSLError):
            pass
        finally:
            with self.lock:
                self.open.discard(conn)
                self.open.discard(raw)
            conn.close()

    # -- one request

    def find_fault(self, r):
        with self.lock:
            found = None
            for i, rule in enumerate(self.rules):
                if any(name in rule and rule[name] != getattr(r, name) for name in ("op", "method", "bucket", "conn")):
                    continue
                if "key" in rule and not re.search(rule["key"], r.key):
                    continue
                if "range" in rule and not re.search(rule["range"], r.headers.get("range", "")):
                    continue
                self.matched[i] += 1
                n = self.matched[i] - rule.get("nth", 1)
                count = rule.get("count", 0 if "every" in rule else 1)
                if found is None and n >= 0 and n % rule.get("every", 1) == 0 and (count == 0 or n // rule.get("every", 1) < count):
                    found = rule
            return found

    def throttled(self):
        if not self.requests_s:
            return False
        with self.lock:
            now = time.monotonic()
            self.allowance = min(self.burst, self.allowance + (now - self.allowed_at) * self.requests_s)
            self.allowed_at = now
            if self.allowance < 1:
                return True
            self.allowance -= 1
            return False


class Connection:
    """One connection of a client."""

    def __init__(self, server, conn, number):
        self.server, self.conn, self.number = server, conn, number
        self.file = conn.makefile("rb", buffering=CHUNK)
        self.done = 0
        self.pace = Pace(server.conn_bytes_s) if server.conn_bytes_s else None

    def run(self):
        try:
            while self.one():
                pass
        finally:
            self.file.close()

    def reset(self):
        self.file.close()
        try:
            self.conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if self.server.tls:  # without the goodbye of TLS
                socket.socket(fileno=self.conn.detach()).close()
            else:
                self.conn.close()
        except OSError:
            pass
        raise Gone

    def hang(self, seconds=None):
        """Says nothing until the client or the server ends it."""
        with self.server.lock:
            self.server.held.add(self.number)
        end = time.monotonic() + (seconds or 3600)
        self.conn.settimeout(0.2)
        while not self.server.stopping.is_set() and time.monotonic() < end:
            try:
                if self.conn.recv(4096) == b"":
                    break
            except (TimeoutError, ssl.SSLWantReadError):
                continue
            except OSError:
                break
        raise Gone

    def read_head(self):
        line = self.file.readline(65536)
        if not line:
            return None
        words = line.decode("latin-1").split()
        if len(words) != 3:
            raise Gone
        headers, repeated = {}, []
        while (line := self.file.readline(65536)) not in (b"\r\n", b"\n", b""):
            name, _, value = line.decode("latin-1").partition(":")
            name = name.strip().lower()
            if name in headers:
                repeated.append(name)
            headers[name] = value.strip()
        with self.server.lock:
            self.server.arrived += 1
            n = self.server.arrived
        self.done += 1
        return Request(n, self.number, self.done, words[0], words[1], headers, repeated)

    def place(self, r):
        """Bucket, key, query and operation of a request."""
        target = r.target
        if target.startswith("http"):  # to a proxy
            parsed = urllib.parse.urlsplit(target)
            target = parsed.path + ("?" + parsed.query if parsed.query else "")
        r.path, _, query = target.partition("?")
        r.query = dict(tuple(urllib.parse.unquote(x) for x in p.partition("=")[::2]) for p in query.split("&") if p)
        r.target = target
        host = r.headers.get("host", "").partition(":")[0]
        path = urllib.parse.unquote(r.path)[1:]
        if host.endswith("." + self.server.domain):
            r.bucket, r.key = host[:-len(self.server.domain) - 1], path
        else:
            r.bucket, _, r.key = path.partition("/")
        r.op = self.server.name_op(r)

    def proxy(self, r):
        """CONNECT: bytes both ways until one side ends."""
        host, _, port = r.target.partition(":")
        with socket.create_connection((host, int(port))) as far:
            self.conn.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")

            def copy(a, b):
                try:
                    while data := a.recv(CHUNK):
                        b.sendall(data)
                    b.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
            t = threading.Thread(target=copy, args=(far, self.conn), daemon=True)
            t.start()
            copy(self.conn, far)
            t.join()
        raise Gone

    def body_pieces(self, r, fault):
        """Yields the bytes of the request's body as they come."""
        h = r.headers
        stop_at = fault.get("after", 0) if fault.get("do") == "reset_upload" else None

        def take(length):
            while length > 0:
                most = min(length, CHUNK)
                if stop_at is not None:
                    if r.received >= stop_at:
                        self.reset()
                    most = min(most, stop_at - r.received)
                data = self.file.read(most)
                if not data:
                    raise Gone
                r.received += len(data)
                length -= len(data)
                yield data
            if stop_at is not None and r.received >= stop_at:
                self.reset()

        def lines():
            while True:
                size = int(self.file.readline(1000).split(b";")[0] or b"0", 16)
                if size == 0:
                    while self.file.readline(65536) not in (b"\r\n", b"\n", b""):
                        pass
                    return
                yield from take(size)
                self.file.readline(10)

        if h.get("transfer-encoding", "").lower() == "chunked":
            if "aws-chunked" in h.get("content-encoding", ""):
                yield from self.payload(r, b"".join(lines()))
            else:
                yield from lines()
        elif "aws-chunked" in h.get("content-encoding", "") or h.get("x-amz-content-sha256", "").startswith("STREAMING"):
            yield from self.payload(r, b"".join(take(int(h.get("content-length", 0)))))
        else:
            yield from take(int(h.get("content-length", 0)))

    @staticmethod
    def payload(r, framed):
        """What an aws-chunked body holds, which is what counts as received."""
        pieces = list(unframe(framed))
        r.received = sum(map(len, pieces))
        yield from pieces

    def read_body(self, r, fault):
        """The request's body as an object."""
        sizes = self.server.keep == "sizes" and r.method == "PUT"
        content, md5, sha = Content(), hashlib.md5(), None
        wanted = r.headers.get("x-amz-content-sha256", "")
        if re.fullmatch(r"[0-9a-f]{64}", wanted):
            sha = hashlib.sha256()
        for data in self.body_pieces(r, fault):
            content.add(data, sizes)
            if not sizes:
                md5.update(data)
            if sha:
                sha.update(data)
        r.body_read = True
        if sha and self.server.check and sha.hexdigest() != wanted:
            raise Refused(400, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.")
        etag = hashlib.md5(f"{r.n} {content.size}".encode()).hexdigest() if sizes else md5.hexdigest()
        return Object(content, etag, time.time())

    def one(self):
        """Answers one request; whether the connection goes on."""
        s = self.server
        r = self.read_head()
        if r is None:
            return False
        if r.method == "CONNECT":
            self.proxy(r)
        self.place(r)
        r.at = s.now()
        with s.lock:
            s.flying += 1
            s.flying_op[r.op] = s.flying_op.get(r.op, 0) + 1
            r.in_flight, r.in_flight_op = s.flying, s.flying_op[r.op]
        try:
            return self.carry_out(r)
        finally:
            self.note(r)
            with s.lock:
                s.flying -= 1
                s.flying_op[r.op] -= 1
                s.held.discard(r.conn)

    def carry_out(self, r):
        s = self.server
        r.fault = fault = s.find_fault(r) or {}
        if "do" not in fault:
            fault["do"] = ""
        try:
            if r.headers.get("expect", "").lower() == "100-continue" and fault["do"] != "no_continue":
                self.conn.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            s.authorize(r)
            body = self.read_body(r, fault)
            if fault["do"] == "silent":
                self.hang(fault.get("seconds"))
            if s.latency or fault["do"] == "wait":
                time.sleep(s.latency + (fault["seconds"] if fault["do"] == "wait" else 0))
            if s.throttled():
                raise Refused(503, "SlowDown", "Please reduce your request rate.", "",
                              [("Retry-After", str(s.retry_after))] if s.retry_after is not None else [])
            if fault["do"] in ("status", "redirect", "body", "raw", "error_in_200", "entities"):
                answer = self.instead(r, fault)
            else:
                answer = s.answer(r, body)
        except Refused as e:
            if not r.body_read:
                for _ in self.body_pieces(r, {}):
                    pass
            text = (f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{e.code}</Code><Message>{xml_text(e.message)}</Message>{e.extra}'
                    f"<RequestId>{r.n:016X}</RequestId></Error>").encode()
            answer = Answer(e.status, [("Content-Type", "application/xml"), *e.headers], text, len(text))
        return self.send(r, answer, fault)

    def instead(self, r, fault):
        """Answers that have nothing to do with what was asked."""
        do = fault["do"]
        if do == "status":
            headers = [("Retry-After", str(fault["retry_after"]))] if "retry_after" in fault else []
            raise Refused(fault["status"], fault.get("code", {503: "SlowDown", 429: "TooManyRequests", 500: "InternalError"}.get(fault["status"], "Error")),
                          fault.get("message", "as the test wants it"), "", headers)
        if do == "redirect":
            headers = [] if fault.get("location") is None else [("Location", fault["location"].replace("{target}", r.target))]
            return Answer(fault.get("status", 307), headers)
        if do == "raw":
            self.conn.sendall(fault["raw"].encode("latin-1"))
            raise Gone
        text = fault.get("body", "")
        if do == "error_in_200":
            text = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{fault.get("code", "InternalError")}</Code><Message>late</Message></Error>'
        if do == "entities":
            text = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "aaaaaaaaaa">' + "".join(
                f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12)) + f"]><ListBucketResult {NS}><Name>&a11;</Name></ListBucketResult>"
        data = text.encode()
        return Answer(200, [("Content-Type", "application/xml")], data, len(data))

    def send(self, r, answer, fault):
        s, do = self.server, fault["do"]
        if do == "close":
            return False
        if do == "reset" and "after" not in fault:
            self.reset()
        r.status = answer.status
        length = answer.length or 0
        sent = length if r.method != "HEAD" else 0
        closing = (r.headers.get("connection", "").lower() == "close" or do == "say_close"
                   or fault.get("close", False) or s.per_conn and self.done >= s.per_conn)
        headers = [("Server", "tests"), ("Date", http_date(time.time() + s.clock)), ("x-amz-request-id", f"{r.n:016X}"), *answer.headers]
        if do == "etag":
            headers = [(k, fault.get("value", '"00000000000000000000000000000000"') if k == "ETag" else v) for k, v in headers]
        if do == "chunked":
            headers.append(("Transfer-Encoding", "chunked"))
        elif answer.status != 204:
            said = length + fault.get("add", 0) if do == "length" else length
            headers.append(("Content-Length", str(fault.get("value", said) if do == "length" else said)))
        if closing:
            headers.append(("Connection", "close"))
        lines = [f"HTTP/1.1 {answer.status} {http.client.responses.get(answer.status, 'Unknown')}", *(f"{k}: {v}" for k, v in headers), ""]
        head = "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n"
        r.first = s.now()
        if do == "endless_head":
            line = b"X-More: " + b"x" * 1000 + b"\r\n"
            self.conn.sendall(head[:-2])
            while not s.stopping.is_set():
                self.conn.sendall(line * 64)
            raise Gone
        if do == "slow_head":
            for line in head.splitlines(True):
                self.conn.sendall(line)
                time.sleep(fault["seconds"])
            head = b""
        if do == "reset" and fault["after"] < 0:
            self.conn.sendall(head[:-fault["after"]])
            self.reset()
        body = [answer.body] if isinstance(answer.body, bytes) else answer.body
        if r.method == "HEAD":
            body = []
        end = {"short": sent - fault.get("by", 1), "reset": fault.get("after", 0), "stall": fault.get("after", 0)}.get(do, sent)
        step = fault.get("bytes", CHUNK) if do == "slow_body" else min(CHUNK, 65536) if s.pace or self.pace else CHUNK
        waiting = head
        for data in body:
            if do == "corrupt" and r.sent <= fault["at"] < r.sent + len(data):
                changed = bytearray(data)
                changed[fault["at"] - r.sent] ^= 0xff
                data = bytes(changed)
            for i in range(0, len(data), step):
                piece = data[i:i + min(step, end - r.sent)] if r.sent < end else b""
                if not piece:
                    break
                for pace in (s.pace, self.pace):
                    if pace:
                        pace.pass_(len(piece))
                if do == "chunked":
                    cut = fault.get("chunk", len(piece))
                    out = b"".join(b"%x\r\n%s\r\n" % (len(piece[j:j + cut]), piece[j:j + cut]) for j in range(0, len(piece), cut))
                else:
                    out = piece
                if waiting and s.nodelay and len(out) < 65536:
                    out, waiting = waiting + out, b""
                elif waiting:
                    self.conn.sendall(waiting)
                    waiting = b""
                self.conn.sendall(out)
                r.sent += len(piece)
                if do == "slow_body":
                    time.sleep(fault["seconds"])
            if r.sent >= end:
                break
        if waiting:
            self.conn.sendall(waiting)
        if do == "chunked":
            self.conn.sendall(b"0\r\n\r\n")
        if do == "reset":
            time.sleep(0.05)  # what was sent is read before the reset throws it away
            self.reset()
        if do == "stall":
            self.hang()
        return not closing and do not in ("short", "close_after") and not (do == "length" and r.method != "HEAD")

    def note(self, r):
        s = self.server
        entry = {"n": r.n, "conn": r.conn, "on_conn": r.on_conn, "at": round(r.at, 6), "first": round(r.first, 6), "end": round(s.now(), 6),
                 "in_flight": r.in_flight, "in_flight_op": r.in_flight_op, "method": r.method, "op": r.op, "bucket": r.bucket, "key": r.key,
                 "query": r.query, "range": r.headers.get("range"), "headers": {k: v for k, v in r.headers.items() if k in KEPT},
                 "status": r.status, "received": r.received, "sent": r.sent, "fault": (r.fault or {}).get("do") or None, "path": r.path}
        with s.lock:
            s.record.append(entry)
            if s.log and not s.log.closed:
                s.log.write(json.dumps(entry) + "\n")


def unframe(data):
    """The payload of an aws-chunked body; its signatures and checksums are not looked at."""
    at = 0
    while at < len(data):
        end = data.index(b"\r\n", at)
        size = int(data[at:end].split(b";")[0], 16)
        if size == 0:
            return
        yield data[end + 2:end + 2 + size]
        at = end + 2 + size + 2


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rules", type=json.loads, default=[], help="a JSON list")
    p.add_argument("--buckets", default="bucket", help="names, with commas")
    for name, kind in (("port", int), ("log", str), ("access", str), ("secret", str), ("token", str), ("region", str), ("keep", str),
                       ("clock", float), ("requests_s", float), ("burst", float), ("retry_after", float), ("bytes_s", float),
                       ("conn_bytes_s", float), ("latency", float), ("per_conn", int), ("idle", float)):
        p.add_argument("--" + name.replace("_", "-"), type=kind)
    p.add_argument("--tls", action="store_true")
    p.add_argument("--no-nodelay", action="store_true")
    p.add_argument("--no-check", action="store_true")
    a = vars(p.parse_args())
    options = {k: v for k, v in a.items() if v is not None and k not in ("buckets", "no_nodelay", "no_check")}
    with S3Server(buckets=a["buckets"].split(","), nodelay=not a["no_nodelay"], check=not a["no_check"], **options) as s3:
        print(*(f"export {k}={v}" for k, v in s3.env().items()), sep="\n", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    sys.exit(main())

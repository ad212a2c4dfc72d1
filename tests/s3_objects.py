"""The objects of tests/s3_server.py: what they are made of, signatures, and the operations of S3."""
import base64
import bisect
import dataclasses
import datetime
import hashlib
import heapq
import hmac
import re
import time
import urllib.parse
from xml.etree import ElementTree
from xml.sax.saxutils import escape

CHUNK = 1 << 18
ZEROS = bytes(CHUNK)
NS = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
MIN_PART = 5 << 20
MORE = "\U0010ffff"


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status, code, message="", extra="", headers=()):
        super().__init__(code)
        self.status, self.code, self.message, self.extra, self.headers = status, code, message, extra, list(headers)


class Gone(Exception):
    """The connection is to be closed."""


class Content:
    """Bytes as pieces: bytes, or a number of zeros."""

    def __init__(self, pieces=()):
        self.pieces = list(pieces)
        self.starts = []
        self.size = 0
        for piece in self.pieces:
            self.starts.append(self.size)
            self.size += piece if isinstance(piece, int) else len(piece)

    def add(self, data, sizes_only):
        zeros = sizes_only or data.count(0) == len(data)
        if zeros and self.pieces and isinstance(self.pieces[-1], int):
            self.pieces[-1] += len(data)
        else:
            self.starts.append(self.size)
            self.pieces.append(len(data) if zeros else bytes(data))
        self.size += len(data)

    def read(self, start, length):
        """Yields the bytes of a range."""
        at = max(0, bisect.bisect_right(self.starts, start) - 1)
        while length > 0:
            piece, skipped = self.pieces[at], start - self.starts[at]
            if isinstance(piece, int):
                have = min(piece - skipped, length)
                for done in range(0, have, CHUNK):
                    yield ZEROS[:min(CHUNK, have - done)]
            else:
                have = min(len(piece) - skipped, length)
                for done in range(skipped, skipped + have, CHUNK):
                    yield piece[done:min(done + CHUNK, skipped + have)]
            start += have
            length -= have
            at += 1


@dataclasses.dataclass
class Object:
    content: Content
    etag: str
    modified: float
    parts: list = dataclasses.field(default_factory=list)  # sizes of the parts, of a multipart object
    meta: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Upload:
    bucket: str
    key: str
    started: float
    meta: list
    parts: dict = dataclasses.field(default_factory=dict)  # number -> Object


class Virtual:
    """Keys that a format with a zero-padded number makes, in order, as a sequence."""

    def __init__(self, form, count, size):
        self.form, self.count, self.size = form, count, size

    def __len__(self):
        return self.count

    def __getitem__(self, n):
        if not 0 <= n < self.count:
            raise IndexError(n)
        return self.form % n

    def holds(self, key):
        n = bisect.bisect_left(self, key)
        return n < self.count and self[n] == key


@dataclasses.dataclass
class Answer:
    status: int = 200
    headers: list = dataclasses.field(default_factory=list)
    body: object = b""      # bytes, or an iterator over bytes
    length: int = None      # of the body


@dataclasses.dataclass
class Request:
    n: int
    conn: int
    on_conn: int
    method: str
    target: str
    headers: dict
    repeated: list
    path: str = ""
    query: dict = dataclasses.field(default_factory=dict)
    bucket: str = ""
    key: str = ""
    op: str = ""
    at: float = 0
    first: float = 0
    received: int = 0
    sent: int = 0
    status: int = 0
    in_flight: int = 0
    in_flight_op: int = 0
    fault: dict = None
    body_read: bool = False


def quote(text, safe=""):
    """As signatures want it: all but A-Za-z0-9-_.~ (and what is safe)."""
    return urllib.parse.quote(text, safe="-_.~" + safe)


def xml_text(text):
    return "".join(c if c >= " " or c in "\t\n" else f"&#x{ord(c):x};" for c in escape(text)).replace("\r", "&#13;")


def stamp(seconds):
    at = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def sign(secret, date, region, service, text):
    """The signature of a string to sign (Signature Version 4)."""
    key = ("AWS4" + secret).encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def canonical(method, path, query, headers, signed, payload):
    """The canonical request: path as text without escapes, query as pairs, headers as a dict of lower-case names."""
    pairs = sorted((quote(k), quote(v)) for k, v in query)
    return "\n".join([method, quote(path, "/"), "&".join(f"{k}={v}" for k, v in pairs),
                      *(f"{name}:{' '.join(headers[name].split())}" for name in signed), "", ";".join(signed), payload])


def string_to_sign(when, scope, text):
    return "\n".join(["AWS4-HMAC-SHA256", when, scope, hashlib.sha256(text.encode()).hexdigest()])


def http_date(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT")


class Operations:
    """What a server answers, given its buckets and uploads."""

    def authorize(self, r):
        """Refuses a request whose signature is not right."""
        if not self.check:
            return
        found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^,]*?)/(\d{8})/([^/,]+)/s3/aws4_request, ?"
                             r"SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})", r.headers.get("authorization", ""))
        if not found:
            raise Refused(403, "AccessDenied", "The request is not signed as it should be.")
        access, date, region, signed, signature = found.groups()
        when = r.headers.get("x-amz-date", "")
        try:
            then = datetime.datetime.strptime(when, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc).timestamp()
        except ValueError:
            raise Refused(403, "AccessDenied", "x-amz-date is missing or wrong.") from None
        if abs(then - time.time() - self.clock) > 900:
            raise Refused(403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.",
                          f"<RequestTime>{when}</RequestTime><ServerTime>{stamp(time.time() + self.clock)}</ServerTime>"
                          "<MaxAllowedSkewMilliseconds>900000</MaxAllowedSkewMilliseconds>")
        if access != self.access:
            raise Refused(403, "InvalidAccessKeyId", "The access key does not exist.")
        if self.region and region != self.region:
            raise Refused(400, "AuthorizationHeaderMalformed", f"the region '{region}' is wrong; expecting '{self.region}'",
                          f"<Region>{self.region}</Region>", [("x-amz-bucket-region", self.region)])
        if self.expired:
            raise Refused(400, "ExpiredToken", "The provided token has expired.")
        if (self.token or "") != r.headers.get("x-amz-security-token", ""):
            raise Refused(403, "InvalidToken", "The provided token is malformed or otherwise invalid.")
        names = signed.split(";")
        must = {"host"} | {h for h in r.headers if h.startswith("x-amz-")}
        if names != sorted(names) or not must <= set(names):
            raise Refused(403, "AccessDenied", f"These headers must be signed: {sorted(must - set(names))}")
        if any(n not in r.headers for n in names):
            raise Refused(403, "SignatureDoesNotMatch", "A signed header was not sent.")
        payload = r.headers.get("x-amz-content-sha256", "")
        if not payload:
            raise Refused(400, "InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
        path, _, query = r.target.partition("?")
        pairs = [tuple(urllib.parse.unquote(x) for x in p.partition("=")[::2]) for p in query.split("&") if p]
        text = canonical(r.method, urllib.parse.unquote(path), pairs, r.headers, names, payload)
        to_sign = string_to_sign(when, f"{date}/{region}/s3/aws4_request", text)
        if not hmac.compare_digest(sign(self.secret, date, region, "s3", to_sign), signature):
            with self.lock:
                self.refused_signatures.append(text)
            raise Refused(403, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided.",
                          f"<CanonicalRequest>{xml_text(text)}</CanonicalRequest>")

    def name_op(self, r):
        q, m = r.query, r.method
        if not r.bucket:
            return "ListBuckets" if m == "GET" else "Unknown"
        if not r.key:
            if m == "GET":
                return "ListMultipartUploads" if "uploads" in q else "GetBucketLocation" if "location" in q else \
                    "ListObjectsV2" if q.get("list-type") == "2" else "ListObjects"
            if m == "POST" and "delete" in q:
                return "DeleteObjects"
            return {"HEAD": "HeadBucket", "PUT": "CreateBucket", "DELETE": "DeleteBucket"}.get(m, "Unknown")
        if m == "PUT":
            copy = "x-amz-copy-source" in r.headers
            return ("UploadPartCopy" if copy else "UploadPart") if "partNumber" in q else "CopyObject" if copy else "PutObject"
        if m == "POST":
            return "CreateMultipartUpload" if "uploads" in q else "CompleteMultipartUpload" if "uploadId" in q else "Unknown"
        if m == "DELETE":
            return "AbortMultipartUpload" if "uploadId" in q else "DeleteObject"
        if m == "GET" and "uploadId" in q:
            return "ListParts"
        return {"GET": "GetObject", "HEAD": "HeadObject"}.get(m, "Unknown")

    def find(self, bucket, key):
        if bucket not in self.buckets:
            raise Refused(404, "NoSuchBucket", "The specified bucket does not exist")
        found = self.buckets[bucket].get(key)
        if found is None:
            for v in self.virtual.get(bucket, ()):
                if v.holds(key):
                    return Object(Content([v.size] if v.size else []), f"{v.size:032x}", 1.7e9)
            raise Refused(404, "NoSuchKey", "The specified key does not exist.", f"<Key>{xml_text(key)}</Key>")
        return found

    def answer(self, r, body):
        """The answer to a request whose body was read."""
        with self.lock:
            if r.bucket and r.bucket not in self.buckets and r.op != "CreateBucket":
                raise Refused(404, "NoSuchBucket", "The specified bucket does not exist")
            act = getattr(self, "do_" + r.op, None)
            if act is None:
                raise Refused(501, "NotImplemented", f"{r.method} {r.target}")
            return act(r, body)

    @staticmethod
    def xml(text, headers=()):
        data = ('<?xml version="1.0" encoding="UTF-8"?>\n' + text).encode()
        return Answer(200, [("Content-Type", "application/xml"), *headers], data, len(data))

    def do_ListBuckets(self, r, _):
        inner = "".join(f"<Bucket><Name>{b}</Name><CreationDate>{stamp(1.7e9)}</CreationDate></Bucket>" for b in sorted(self.buckets))
        return self.xml(f"<ListAllMyBucketsResult {NS}><Buckets>{inner}</Buckets></ListAllMyBucketsResult>")

    def do_HeadBucket(self, r, _):
        return Answer(200, [("x-amz-bucket-region", self.region or "us-east-1")])

    def do_CreateBucket(self, r, _):
        self.buckets.setdefault(r.bucket, {})
        return Answer(200, [("Location", "/" + r.bucket)])

    def do_DeleteBucket(self, r, _):
        if self.buckets[r.bucket]:
            raise Refused(409, "BucketNotEmpty", "The bucket you tried to delete is not empty")
        del self.buckets[r.bucket]
        return Answer(204)

    def do_GetBucketLocation(self, r, _):
        return self.xml(f"<LocationConstraint {NS}>{self.region or ''}</LocationConstraint>")

    def listed(self, bucket, start):
        """Keys after `start` in the order of their bytes, with their objects."""
        own = sorted((k.encode(), k) for k in self.buckets[bucket])
        sources = [own[bisect.bisect_right(own, (start.encode(), MORE)):]]
        for v in self.virtual.get(bucket, ()):
            sources.append((v[n].encode(), v[n]) for n in range(bisect.bisect_right(v, start), len(v)))
        return heapq.merge(*sources)

    def do_ListObjectsV2(self, r, _, v2=True):
        q = r.query
        prefix, delimiter = q.get("prefix", ""), q.get("delimiter", "")
        most = min(int(q.get("max-keys", self.page)), self.page)
        coded = q.get("encoding-type") == "url"
        show = (lambda k: quote(k, "/ ").replace(" ", "+")) if coded else xml_text
        fault = (r.fault or {}).get("do")
        start = q.get("start-after" if v2 else "marker", "")
        if q.get("continuation-token"):
            try:
                start = base64.b64decode(q["continuation-token"].removeprefix("+/=t "), validate=True).decode()
            except ValueError:
                raise Refused(400, "InvalidArgument", "The continuation token provided is incorrect") from None
        if prefix > start:
            start = prefix[:-1] + chr(ord(prefix[-1]) - 1) + MORE if prefix else start
        keys, common, last, cut, again = [], [], start, False, True
        while again:
            again = False
            for _, key in self.listed(r.bucket, last):
                if not key.startswith(prefix):
                    if key > prefix:
                        break
                    continue
                if len(keys) + len(common) >= most:
                    cut = most > 0
                    break
                end = key.find(delimiter, len(prefix)) if delimiter else -1
                if end >= 0:
                    common.append(key[:end + len(delimiter)])
                    last, again = common[-1] + MORE, True
                    break
                keys.append(key)
                last = key
        if fault in ("endless_list", "same_token"):
            cut = True
            if fault == "endless_list" and q.get("continuation-token"):
                last = start + "0"
        if fault == "two_tokens":
            cut, last = True, prefix + ("x" if start == prefix + "y" else "y")
        parts = []
        for k in keys:
            o = self.find(r.bucket, k)
            size = r.fault["size"] if fault == "list_size" else o.content.size
            parts.append(f"<Contents><Key>{show(k)}</Key><LastModified>{stamp(o.modified)}</LastModified><ETag>&quot;{o.etag}&quot;</ETag>"
                         f"<Size>{size}</Size><StorageClass>STANDARD</StorageClass></Contents>")
        parts += [f"<CommonPrefixes><Prefix>{show(p)}</Prefix></CommonPrefixes>" for p in common]
        token = "+/=t " + base64.b64encode((start if fault == "same_token" else last).encode()).decode()
        more = f"<NextContinuationToken>{token}</NextContinuationToken>" if v2 else f"<NextMarker>{show(last)}</NextMarker>"
        return self.xml(f"<ListBucketResult {NS}><Name>{r.bucket}</Name><Prefix>{show(prefix)}</Prefix>"
                        f"<KeyCount>{len(keys) + len(common)}</KeyCount><MaxKeys>{most}</MaxKeys><Delimiter>{show(delimiter)}</Delimiter>"
                        + ("<EncodingType>url</EncodingType>" if coded else "")
                        + f"<IsTruncated>{'true' if cut else 'false'}</IsTruncated>{more if cut else ''}{''.join(parts)}</ListBucketResult>")

    def do_ListObjects(self, r, body):
        return self.do_ListObjectsV2(r, body, v2=False)

    def do_ListMultipartUploads(self, r, _):
        prefix = r.query.get("prefix", "")
        coded = r.query.get("encoding-type") == "url"
        show = (lambda k: quote(k, "/ ").replace(" ", "+")) if coded else xml_text
        inner = "".join(f"<Upload><Key>{show(u.key)}</Key><UploadId>{i}</UploadId><Initiated>{stamp(u.started)}</Initiated></Upload>"
                        for i, u in sorted(self.uploads.items(), key=lambda x: x[1].key)
                        if u.bucket == r.bucket and u.key.startswith(prefix))
        return self.xml(f"<ListMultipartUploadsResult {NS}><Bucket>{r.bucket}</Bucket><Prefix>{show(prefix)}</Prefix>"
                        f"<MaxUploads>1000</MaxUploads><IsTruncated>false</IsTruncated>{inner}</ListMultipartUploadsResult>")

    def meta(self, r):
        return [(k, v) for k, v in r.headers.items() if k.startswith("x-amz-meta-") or k == "content-type"]

    def do_PutObject(self, r, body):
        if r.headers.get("if-none-match") == "*" and r.key in self.buckets[r.bucket]:
            raise Refused(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
        body.meta = self.meta(r)
        self.buckets[r.bucket][r.key] = body
        return Answer(200, [("ETag", f'"{body.etag}"')])

    def source(self, r):
        bucket, _, key = urllib.parse.unquote(r.headers["x-amz-copy-source"]).lstrip("/").partition("/")
        return self.find(bucket, key)

    def do_CopyObject(self, r, _):
        o = dataclasses.replace(self.source(r), modified=time.time(), parts=[])
        self.buckets[r.bucket][r.key] = o
        return self.xml(f"<CopyObjectResult {NS}><LastModified>{stamp(o.modified)}</LastModified><ETag>&quot;{o.etag}&quot;</ETag></CopyObjectResult>")

    def do_CreateMultipartUpload(self, r, _):
        upload = f"u{len(self.uploads) + self.aborted + self.completed + 1}.{r.n}+=/"[:24].replace("/", "_").replace("+", ".")
        self.uploads[upload] = Upload(r.bucket, r.key, time.time(), self.meta(r))
        return self.xml(f"<InitiateMultipartUploadResult {NS}><Bucket>{r.bucket}</Bucket><Key>{xml_text(r.key)}</Key>"
                        f"<UploadId>{upload}</UploadId></InitiateMultipartUploadResult>")

    def upload(self, r):
        u = self.uploads.get(r.query.get("uploadId"))
        if u is None or (u.bucket, u.key) != (r.bucket, r.key):
            raise Refused(404, "NoSuchUpload", "The specified upload does not exist.")
        return u

    def do_UploadPart(self, r, body):
        number = int(r.query["partNumber"])
        if not 1 <= number <= 10000:
            raise Refused(400, "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive")
        self.upload(r).parts[number] = body
        return Answer(200, [("ETag", f'"{body.etag}"')])

    def do_UploadPartCopy(self, r, _):
        o = self.source(r)
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", r.headers.get("x-amz-copy-source-range", f"bytes=0-{o.content.size - 1}"))
        part = Content()
        for data in o.content.read(int(found[1]), int(found[2]) + 1 - int(found[1])):
            part.add(data, self.keep == "sizes")
        etag = hashlib.md5(o.etag.encode() + found[0].encode()).hexdigest()
        self.upload(r).parts[int(r.query["partNumber"])] = Object(part, etag, time.time())
        return self.xml(f"<CopyPartResult {NS}><LastModified>{stamp(time.time())}</LastModified><ETag>&quot;{etag}&quot;</ETag></CopyPartResult>")

    def do_ListParts(self, r, _):
        inner = "".join(f"<Part><PartNumber>{n}</PartNumber><ETag>&quot;{p.etag}&quot;</ETag><Size>{p.content.size}</Size></Part>"
                        for n, p in sorted(self.upload(r).parts.items()))
        return self.xml(f"<ListPartsResult {NS}><Bucket>{r.bucket}</Bucket><Key>{xml_text(r.key)}</Key><UploadId>{r.query['uploadId']}</UploadId>"
                        f"<IsTruncated>false</IsTruncated>{inner}</ListPartsResult>")

    def do_CompleteMultipartUpload(self, r, body):
        u = self.upload(r)
        text = b"".join(body.content.read(0, body.content.size)).decode()
        wanted = []
        for part in re.findall(r"<Part>(.*?)</Part>", text, re.S):
            number, etag = re.search(r"<PartNumber>\s*(\d+)\s*</PartNumber>", part), re.search(r"<ETag>\s*(.*?)\s*</ETag>", part, re.S)
            if not number or not etag:
                raise Refused(400, "MalformedXML", "The XML you provided was not well-formed")
            wanted.append((int(number[1]), etag[1].replace("&quot;", "").replace("&#34;", "").strip('"')))
        if not wanted:
            raise Refused(400, "MalformedXML", "The XML you provided was not well-formed")
        if [n for n, _ in wanted] != sorted({n for n, _ in wanted}):
            raise Refused(400, "InvalidPartOrder", "The list of parts was not in ascending order.")
        if any(n not in u.parts or u.parts[n].etag != e for n, e in wanted):
            raise Refused(400, "InvalidPart", "One or more of the specified parts could not be found.")
        parts = [u.parts[n] for n, _ in wanted]
        if any(p.content.size < self.min_part for p in parts[:-1]):
            raise Refused(400, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size")
        etag = hashlib.md5(b"".join(bytes.fromhex(p.etag) for p in parts)).hexdigest() + f"-{len(parts)}"
        whole = Content(piece for p in parts for piece in p.content.pieces)
        self.buckets[r.bucket][r.key] = Object(whole, etag, time.time(), [p.content.size for p in parts], u.meta)
        del self.uploads[r.query["uploadId"]]
        self.completed += 1
        return self.xml(f"<CompleteMultipartUploadResult {NS}><Location>http://x</Location><Bucket>{r.bucket}</Bucket><Key>{xml_text(r.key)}</Key>"
                        f"<ETag>&quot;{etag}&quot;</ETag></CompleteMultipartUploadResult>")

    def do_AbortMultipartUpload(self, r, _):
        self.upload(r)
        del self.uploads[r.query["uploadId"]]
        self.aborted += 1
        return Answer(204)

    def do_DeleteObject(self, r, _):
        self.buckets[r.bucket].pop(r.key, None)
        return Answer(204)

    def do_DeleteObjects(self, r, body):
        text = b"".join(body.content.read(0, body.content.size))
        md5 = r.headers.get("content-md5")
        if md5 and base64.b64encode(hashlib.md5(text).digest()).decode() != md5:
            raise Refused(400, "BadDigest", "The Content-MD5 you specified did not match what we received.")
        if not md5 and not any(h.startswith("x-amz-checksum-") for h in r.headers):
            raise Refused(400, "InvalidRequest", "Missing required header for this request: Content-MD5")
        try:
            root = ElementTree.fromstring(text)
        except ElementTree.ParseError:
            raise Refused(400, "MalformedXML", "The XML you provided was not well-formed") from None
        names = [e.text or "" for e in root.iter() if e.tag.rpartition("}")[2] == "Key"]
        if len(names) > 1000:
            raise Refused(400, "MalformedXML", "More than 1000 keys")
        quiet = any(e.tag.rpartition("}")[2] == "Quiet" and e.text == "true" for e in root.iter())
        inner = ""
        for k in names:
            self.buckets[r.bucket].pop(k, None)
            inner += "" if quiet else f"<Deleted><Key>{xml_text(k)}</Key></Deleted>"
        return self.xml(f"<DeleteResult {NS}>{inner}</DeleteResult>")

    def do_GetObject(self, r, _, head=False):
        o = self.find(r.bucket, r.key)
        if r.headers.get("if-match", "*").strip('"') not in ("*", o.etag):
            raise Refused(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
        size = o.content.size
        first, last, status = 0, size - 1, 200
        headers = [("ETag", f'"{o.etag}"'), ("Last-Modified", http_date(o.modified)), ("Accept-Ranges", "bytes"),
                   ("Content-Type", dict(o.meta).get("content-type", "binary/octet-stream"))]
        headers += [(k, v) for k, v in o.meta if k != "content-type"]
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", r.headers.get("range", ""))
        if (r.fault or {}).get("do") == "ignore_range":
            found = None
        if "partNumber" in r.query:
            sizes = o.parts or [size]
            n = int(r.query["partNumber"])
            if not 1 <= n <= len(sizes):
                raise Refused(416, "InvalidPartNumber", "The requested partnumber is not satisfiable")
            first, status = sum(sizes[:n - 1]), 206
            last = first + sizes[n - 1] - 1
            headers.append(("x-amz-mp-parts-count", str(len(sizes))))
        elif found and (found[1] or found[2]):
            if found[1]:
                first, last = int(found[1]), min(int(found[2]) if found[2] else size - 1, size - 1)
            else:
                first = max(0, size - int(found[2]))
            if first > last:
                raise Refused(416, "InvalidRange", "The requested range is not satisfiable", f"<ActualObjectSize>{size}</ActualObjectSize>",
                              [("Content-Range", f"bytes */{size}")])
            status = 206
        if status == 206 and size:
            by = r.fault.get("by", 1) if r.fault and r.fault["do"] == "shift_range" else 0
            headers.append(("Content-Range", f"bytes {first + by}-{last + by}/{size}"))
        length = last - first + 1
        return Answer(status, headers, b"" if head else o.content.read(first, length), length)

    def do_HeadObject(self, r, body):
        return self.do_GetObject(r, body, head=True)

"""Servers that fail in every way: each ends in a sentence or in the repetition that is stated, without hanging, and nothing
is counted twice. Each fault is planted into one request of a run over the tests' own S3 server."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from s3_objects import Upload  # noqa: E402
from s3_server import S3Server  # noqa: E402
from util import PATIENCE, load, stoker, tiny  # noqa: E402

OWN = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "S3_", "DLIO_")) and not k.lower().endswith("_proxy")}
FILES = 6
KEY = r"train/img_3_"
# limits of time so that what never answers ends soon
SHORT = {"storage__s3__connect_time": 1, "storage__s3__answer_time": 0.5, "storage__s3__idle_time": 0.5, "storage__s3__retries": 3,
         "storage__s3__retry_first": 0.02, "storage__s3__retry_most": 0.2, "reader__access": "native", "reader__decode": "verify",
         "storage__storage_type": "s3", "storage__storage_root": "bucket"}
LIMIT = 20  # seconds until a run counts as hanging
HUGE = 2 ** 63


def call(verb, s3, *args, status=None, **kw):
    """(seconds, the ended process)."""
    begin = time.monotonic()
    done = stoker(verb, *args, status=status, timeout=LIMIT * PATIENCE, env={**OWN, **s3.env()}, **kw)
    return time.monotonic() - begin, done


def train(s3, out, **keys):
    return call("run", s3, *tiny("data", out, files=FILES, workflow__generate_data="false", **{**SHORT, **keys}))


def counted_once(out):
    result = load(out)
    epoch = result["training"]["epochs"][0]
    assert epoch["samples"] == FILES and epoch["order_proved"], epoch
    assert result["ranks"][0]["payload_bytes"] == FILES * 4096, result["ranks"][0]
    return result


# what an object's GET meets -> whether the run goes on; or what its sentence holds
BODIES = [
    ({"do": "reset"}, True), ({"do": "reset", "after": -1}, True), ({"do": "reset", "after": -40}, True),
    ({"do": "reset", "after": 0}, True), ({"do": "reset", "after": 1}, True), ({"do": "reset", "after": 4000}, True),
    ({"do": "close"}, True), ({"do": "short", "by": 1}, True), ({"do": "short", "by": 3000}, True),
    ({"do": "status", "status": 500}, True), ({"do": "status", "status": 503}, True),
    ({"do": "status", "status": 503, "retry_after": 0}, True), ({"do": "status", "status": 503, "retry_after": 100000}, True),
    ({"do": "status", "status": 503, "retry_after": -5}, True), ({"do": "status", "status": 503, "close": True}, True),
    ({"do": "status", "status": 429}, True), ({"do": "silent"}, True), ({"do": "stall", "after": 100}, True),
    ({"do": "slow_head", "seconds": 0.05}, True), ({"do": "slow_body", "bytes": 1000, "seconds": 0.05}, True),
    ({"do": "close_after"}, True), ({"do": "say_close"}, True), ({"do": "chunked"}, True), ({"do": "chunked", "chunk": 7}, True),
    ({"do": "redirect", "location": "{self}{target}"}, True), ({"do": "redirect", "status": 301, "location": "{self}{target}"}, True),
    ({"do": "status", "status": 400, "code": "RequestTimeout"}, None), ({"do": "error_in_200"}, None),
    ({"do": "redirect", "location": None}, None), ({"do": "redirect", "location": "gopher://x/"}, None),
    ({"do": "length", "add": 5}, None), ({"do": "length", "add": -5}, None), ({"do": "length", "value": HUGE}, None),
    ({"do": "length", "value": "-1"}, None), ({"do": "length", "value": "5, 6"}, None), ({"do": "etag"}, None),
    ({"do": "ignore_range"}, None), ({"do": "shift_range", "by": 7}, None), ({"do": "body", "body": ""}, None),
    ({"do": "raw", "raw": "\0\1\2garbage\r\n\r\n"}, None), ({"do": "raw", "raw": "HTTP/1.1 206\r\n\r\n"}, None),
    ({"do": "raw", "raw": "HTTP/1.1 100 x\r\n\r\n" * 2000}, None), ({"do": "endless_head"}, None),
]
# of every request, so that repetitions end, too
ALWAYS = [({"do": "reset"}, "127.0.0.1"), ({"do": "status", "status": 503}, "503"), ({"do": "status", "status": 500}, "500"),
          ({"do": "short", "by": 10}, "127.0.0.1"), ({"do": "silent"}, "answer"), ({"do": "stall", "after": 50}, "127.0.0.1"),
          ({"do": "status", "status": 403, "code": "AccessDenied"}, "403"),
          ({"do": "redirect", "location": "{self}{target}"}, "307"), ({"do": "endless_head"}, "127.0.0.1"),
          ({"do": "length", "value": HUGE}, "127.0.0.1"), ({"do": "corrupt", "at": 3000}, "img_3_")]
LISTS = [({"do": "body", "body": "<ListBucketResult><Contents><Key>x"}, ""), ({"do": "body", "body": "no XML"}, ""), ({"do": "body", "body": ""}, ""),
         ({"do": "entities"}, ""), ({"do": "same_token"}, "page"), ({"do": "two_tokens"}, "page"), ({"do": "body", "body": "<a>" * 100000}, ""),
         ({"do": "body", "body": "<ListBucketResult><Name>\0</Name></ListBucketResult>"}, "")]


def place(rule, s3):
    return {**rule, "location": rule["location"].replace("{self}", s3.endpoint)} if rule.get("location") else rule


def reading(tmp, fill):
    """Each fault once, and some always."""
    for rules, always in ((BODIES, False), (ALWAYS, True)):
        for rule, ends in rules:
            with S3Server() as s3:
                fill(s3)
                s3.add_rules([{"op": "GetObject", "key": KEY, **({"every": 1} if always else {}), **place(rule, s3)}])
                out = tmp / "out"
                shutil.rmtree(out, ignore_errors=True)
                seconds, done = train(s3, out)
                what = (rule, always, done.returncode, done.stderr[-600:], round(seconds, 2))
                hit = [r for r in s3.requests(op="GetObject") if r["fault"] == rule["do"]]
                assert hit, ("the fault was not met", what)
                if ends is True:
                    assert done.returncode == 0, what
                if done.returncode == 0:
                    assert not always, what
                    counted_once(out)
                else:
                    # a sentence, and what had been measured is there
                    assert done.returncode == 1 and done.stderr.startswith("stoker: ") and len(done.stderr) < 2000, what
                    assert not always or ends in done.stderr, what
                    assert "img_3_" in done.stderr, what
                if always:
                    assert len(hit) <= 24, (len(hit), what)


def slowed(tmp, fill):
    """Pauses that the server asks for are made, and are known."""
    with S3Server() as s3:
        fill(s3)
        s3.add_rules([{"op": "GetObject", "key": KEY, "do": "status", "status": 503, "retry_after": 1}])
        seconds, done = train(s3, tmp / "out", storage__s3__retry_most=5)
        assert done.returncode == 0, done
        first, second = s3.requests(op="GetObject", key="data/train/img_3_of_6.npz")[:2]
        assert 0.99 <= second["at"] - first["end"] < 5, (first, second)
    with S3Server(requests_s=50, burst=5) as s3:
        s3.requests_s = 0
        fill(s3)
        s3.requests_s = 50
        seconds, done = train(s3, tmp / "limited", storage__s3__retries=50)
        assert done.returncode == 0, done
        counted_once(tmp / "limited")
        assert s3.requests(status=503), "nothing was refused"


def listing(tmp, fill):
    for rule, says in LISTS:
        with S3Server() as s3:
            fill(s3)
            s3.add_rules([{"op": "ListObjectsV2", "every": 1, **rule}])
            # without the manifest objects are listed
            s3.buckets["bucket"].pop("data/stoker_manifest.json")
            seconds, done = train(s3, tmp / "list")
            assert done.returncode == 1 and done.stderr.startswith("stoker: ") and says in done.stderr, (rule, done)
    with S3Server(virtual=[("bucket", "data/train/img_%07d.npz", 20000, 4594)]) as s3:
        seconds, done = train(s3, tmp / "many")
        assert done.returncode in (0, 1), done


def clocks(tmp, fill):
    for ahead in (-7200, 7200):
        with S3Server() as s3:
            fill(s3)
            s3.clock = ahead
            seconds, done = train(s3, tmp / f"clock{ahead}")
            assert done.returncode == 0, done
            counted_once(tmp / f"clock{ahead}")
    with S3Server(token="aToken") as s3:
        fill(s3)
        s3.expired = True
        seconds, done = train(s3, tmp / "expired")
        assert done.returncode == 1 and "credential" in done.stderr, done
        assert "aToken" not in done.stderr
    with S3Server(region="us-west-2") as s3:
        fill(s3)
        seconds, done = call("run", s3, *tiny("data", tmp / "region", files=FILES, workflow__generate_data="false", storage__s3__region="eu-west-1", **SHORT))
        assert done.returncode == 0 or "us-west-2" in done.stderr, done


UPLOADS = [({"op": "UploadPart", "do": "reset"}, True), ({"op": "UploadPart", "do": "reset_upload", "after": 100000}, True),
           ({"op": "UploadPart", "do": "status", "status": 503}, True), ({"op": "UploadPart", "do": "silent"}, True),
           ({"op": "UploadPart", "every": 1, "do": "status", "status": 500}, False),
           ({"op": "UploadPart", "every": 1, "do": "reset_upload", "after": 1}, False),
           ({"op": "UploadPart", "do": "status", "status": 403, "code": "AccessDenied"}, False),
           ({"op": "CompleteMultipartUpload", "do": "status", "status": 500}, True),
           # done, but not answered
           ({"op": "CompleteMultipartUpload", "do": "reset"}, True), ({"op": "CompleteMultipartUpload", "do": "close"}, True),
           ({"op": "CompleteMultipartUpload", "do": "reset", "after": -1}, True),
           ({"op": "CompleteMultipartUpload", "every": 1, "do": "error_in_200"}, False),
           ({"op": "CompleteMultipartUpload", "every": 1, "do": "body", "body": "<x"}, False),
           ({"op": "CompleteMultipartUpload", "do": "status", "status": 400, "code": "InvalidPart"}, False),
           ({"op": "CreateMultipartUpload", "every": 1, "do": "body", "body": "<InitiateMultipartUploadResult/>"}, False),
           ({"op": "CreateMultipartUpload", "every": 1, "do": "body", "body": ""}, False)]


def uploading(tmp, _):
    """Checkpoints in parts: there, or nothing of them."""
    for rule, ends in UPLOADS:
        with S3Server() as s3:
            s3.add_rules([rule])
            out = tmp / "up"
            shutil.rmtree(out, ignore_errors=True)
            seconds, done = call("run", s3, *tiny(
                "data", out, workflow__checkpoint="true", workflow__train="false", workflow__generate_data="false",
                checkpoint__checkpoint_folder="ck", checkpoint__access="native", checkpoint__num_checkpoints_write=1,
                checkpoint__num_checkpoints_read=0, model__model_size=12000000, storage__s3__part_bytes=5 << 20,
                storage__s3__put_bytes=5 << 20, **SHORT))
            what = (rule, done.returncode, done.stderr[-600:], done.stdout[-300:])
            assert not s3.uploads, ("parts were left behind", what, s3.uploads)
            if ends:
                assert done.returncode == 0 and s3.completed, what
            else:
                assert done.returncode == 1 and done.stderr.startswith("stoker: "), what
                assert s3.aborted or rule["op"] == "CreateMultipartUpload", what


def left(tmp, _):
    """Unfinished uploads of earlier runs are told once, and stay: another program may be at it."""
    with S3Server() as s3:
        s3.buckets["bucket"] = {}
        for key in ("data0/train/old", "data0/x", "data1/x", "other/y"):
            s3.uploads[key] = Upload("bucket", key, time.time() - 1000, [])
        for i, rule in enumerate(((), ({"op": "ListMultipartUploads", "every": 1, "do": "status", "status": 501},))):
            s3.add_rules(rule)
            s3.clear()
            _, done = call("generate", s3, *[a for a in tiny(f"data{i}", None, files=FILES, **SHORT) if a != "-q"])
            asked = len(s3.requests(op="ListMultipartUploads"))
            assert done.returncode == 0 and asked == 1 and len(s3.uploads) == 4, (asked, done)
            assert ("2 unfinished uploads are below 's3://bucket/data0/'" in done.stderr) == (not rule), done.stderr


def ahead(tmp, fill):
    """Whole objects that are read ahead: one that fails ends the run, however long the others take; a signal does."""
    for why in ("403", "signal"):
        with S3Server() as s3:
            fill(s3)
            s3.add_rules([{"op": "GetObject", "key": KEY, "every": 1, "do": "status", "status": 403, "code": "AccessDenied"}] * (why == "403") +
                         [{"op": "GetObject", "key": "img_", "every": 1, "do": "slow_body", "bytes": 1, "seconds": 0.02}])
            timer = threading.Timer(1.0 if why == "signal" else LIMIT, lambda: subprocess.run(["pkill", "-INT", "-f", str(tmp / f"ahead{why}")]))
            timer.start()
            seconds, done = train(s3, tmp / f"ahead{why}", reader__access="object", reader__decode="none",
                                  storage__s3__client="s3dlio-0.9", dataset__verify_samples=0)
            timer.cancel()
            assert done.returncode != 0 and seconds < 8, (why, seconds, done)
            assert why == "signal" or "403" in done.stderr, done
            assert "cannot be cancelled" not in done.stderr, done


def killed(tmp, fill):
    """The server goes away in the middle of an epoch: the run ends, and what was measured is kept."""
    with S3Server(latency=0.02) as s3:
        fill(s3)

        def stop_in_a_later_epoch():
            gone = time.monotonic() + LIMIT
            while time.monotonic() < gone and any(len(s3.requests(op="GetObject", key=k)) < 5 for k in s3.keys("bucket") if "img_" in k):
                time.sleep(0.05)
            s3.stop()

        thread = threading.Thread(target=stop_in_a_later_epoch)
        thread.start()
        seconds, done = train(s3, tmp / "gone", train__epochs=1000)
        thread.join()
        assert done.returncode == 1 and f"127.0.0.1:{s3.port}" in done.stderr and seconds < LIMIT, (seconds, done)
        assert load(tmp / "gone")["training"]["epochs"], "nothing was kept"


def main():
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        with S3Server() as model:
            _, done = call("generate", model, *tiny("data", None, files=FILES, **SHORT))
            assert done.returncode == 0, done
            objects = {k: model.get("bucket", k) for k in model.keys("bucket")}

        def fill(s3):
            for k, data in objects.items():
                s3.put("bucket", k, data)

        for case in (reading, slowed, listing, clocks, uploading, left, ahead, killed):
            if len(sys.argv) > 1 and case.__name__ not in sys.argv[1:]:
                continue
            begin = time.monotonic()
            case(tmp, fill)
            print(f"{case.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()

"""What a result says of the servers that the store s3 talked to: nothing of a healthy one; and the verdict, the limit and the
figures of each thing that a server, a proxy or the network may do to a run, and that its rates do not show."""
# tier: long
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from s3_server import S3Server  # noqa: E402
from util import attempts, left_out, load, stoker, tiny  # noqa: E402

OWN = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "S3_", "DLIO_")) and not k.lower().endswith("_proxy")}
FILES = 64
KEYS = {"storage__storage_type": "s3", "storage__storage_root": "bucket", "files": FILES, "reader__read_threads": 2,
        "train__epochs": 2, "train__computation_time": 0.0002, "storage__s3__retry_first": 0.02, "storage__s3__retry_most": 0.05}


def generated(s3):
    stoker("generate", *tiny("data", None, **KEYS), env={**OWN, **s3.env()})
    s3.clear()


def run(s3, out, *flags, **keys):
    done = stoker("run", *flags, *tiny("data", out, **{**KEYS, "workflow__generate_data": "false", **keys}), env={**OWN, **s3.env()})
    return load(out), done.stdout


def verdict(result, check="server"):
    found = [v for v in result["verdicts"] if v["check"] == check]
    assert len(found) == 1, (check, result["verdicts"])
    return found[0]["level"], {f["reason"]: f for f in found[0]["facts"]}


def told(result, reason, check="server"):
    """The figures of a warning, which is the only one that is about the servers."""
    level, facts = verdict(result, check)
    assert level == "warn" and reason in facts, (level, facts)
    return facts[reason].get("figures", {})


def healthy(tmp):
    """Every figure is what the server saw, and nothing is wrong."""
    with S3Server() as s3:
        generated(s3)
        result, text = run(s3, tmp / "out", "-v")
        for check in ("server", "far-cache"):
            level, facts = verdict(result, check)
            assert level == "pass", facts
        assert set(verdict(result)[1]) == {"server.asked"}, verdict(result)
        assert result["measured"]["storage"] == "yes", result["measured"]
        # what lies below a folder of that name here is not theirs
        assert "storage_path" not in result and "data file system" not in result["system"], result["system"]
        assert "emulated" not in text and f"127.0.0.1:{s3.port}: " in text, text
        o = result["object_store"]
        one, = o["servers"]
        whole, timed = one["whole"], one["timed"]
        seen = s3.requests()
        assert one["address"] == f"127.0.0.1:{s3.port}" and not one["tls"] and one["given"], one
        assert whole["requests"] == len(seen) and whole["sent_again"] == whole["failed"] == 0, (whole, len(seen))
        assert whole["by_kind"]["get"] == len(s3.requests(op="GetObject")), whole
        assert whole["body_received_bytes"] == sum(r["sent"] for r in seen), whole
        assert whole["connections"] == len({r["conn"] for r in seen}) and whole["reopened"] == 0, whole
        assert whole["wire_received_bytes"] > whole["body_received_bytes"] and whole["wire_sent_bytes"] > 0, whole
        assert 2 * FILES <= timed["requests"] < whole["requests"] and timed["answers"] == timed["requests"], (timed, whole)
        assert 0 < timed["first_byte_mean_s"] <= timed["last_byte_mean_s"] < 0.5, timed
        assert o["timed_requests"] == timed["requests"] and o["timed_again_share"] == 0 and o["processor_s_per_gb"] > 0, o
        stoker("audit", tmp / "out")
        page = stoker("report", tmp / "out", "-o", tmp / "page.html")
        assert f"127.0.0.1:{s3.port}" in (tmp / "page.html").read_text(), page
        stoker("run", *tiny(tmp / "d", tmp / "posix", **{**KEYS, "storage__storage_type": "local_fs", "storage__storage_root": "."}))
        assert "object_store" not in load(tmp / "posix"), load(tmp / "posix")
        both = stoker("compare", tmp / "posix", tmp / "out", status=None)
        assert "storage.store" in both.stdout and f"second, 127.0.0.1:{s3.port}: {timed['requests']} requests" in both.stdout, both.stdout


def throttled(tmp):
    with S3Server() as s3:
        generated(s3)
        s3.add_rules([dict(op="GetObject", key="img_", every=2, do="status", status=503)])
        result, text = run(s3, tmp / "out")
        f = told(result, "server.busy")
        timed = result["object_store"]["servers"][0]["timed"]
        assert f["busy"] == timed["again_by_reason"]["too_busy"] == result["object_store"]["timed_too_busy"] >= FILES, (f, timed)
        assert f["tries"] == timed["requests"] + timed["sent_again"] and 0.3 < f["took"] <= 1, (f, timed)
        assert result["limit"]["cause"] == "throttled" and "WARN server" in text, (result["limit"], text)
        assert not result["what_if"].get("changes") and result["what_if"]["why"], result["what_if"]
        stoker("audit", tmp / "out")


def repeated(tmp):
    with S3Server() as s3:
        generated(s3)
        s3.add_rules([dict(op="GetObject", key="img_", every=2, do="reset", after=100)])
        result, _ = run(s3, tmp / "out")
        level, facts = verdict(result)
        assert level == "warn" and facts["server.again"]["texts"]["reason"] == "lost connections", facts
        assert result["limit"]["cause"] == "repetitions", result["limit"]


def reopened(tmp):
    with S3Server() as s3:
        generated(s3)
        s3.add_rules([dict(op="GetObject", every=2, do="say_close")])
        f = told(run(s3, tmp / "out")[0], "server.reopened")
        assert f["reopened"] >= FILES / 2 and 0.3 < f["share"] < 0.7, f


def clumped(tmp):
    with S3Server(nodelay=False) as s3:
        generated(s3)
        result, _ = run(s3, tmp / "out", train__epochs=1)
        n = result["object_store"]["servers"][0]["timed"]
        assert n["waited_for_ack"] >= 20, n
        # where other programs have the processors, answers come late by other times, too
        if n["waited_for_ack"] > 0.1 * n["answers"] and n["waited_nearly_as_long"] <= 0.25 * n["waited_for_ack"]:
            f = told(result, "server.clump")
            assert f["clumped"] == n["waited_for_ack"] and f["share"] > 0.1, f


def of_two(tmp):
    """One that nobody asks, and one that is slower."""
    with S3Server() as a, S3Server(latency=0.01) as b:
        generated(a)
        b.buckets = a.buckets
        ends = f"storage.s3.endpoints=[{a.endpoint},{b.endpoint}]"
        stoker("run", *tiny("data", tmp / "idle", **{**KEYS, "workflow__generate_data": "false", "reader__read_threads": 1,
                                                      "storage__s3__balance": "thread"}), ends, env={**OWN, **a.env()})
        result = load(tmp / "idle")
        level, facts = verdict(result)
        stoker("run", *tiny("data", tmp / "slow", **{**KEYS, "workflow__generate_data": "false",
                                                      "storage__s3__balance": "round_robin"}), ends, env={**OWN, **a.env()})
        f = told(load(tmp / "slow"), "server.slow")
        assert f["took"] > 0.01 > f["others"], f
        assert [len(load(tmp / "slow")["object_store"]["servers"])] == [2]
        assert level == "warn" and facts["server.idle"]["figures"] == {"idle": 1, "servers": 2}, facts


def skewed(tmp):
    with S3Server(clock=3600) as s3:
        generated(s3)
        result, _ = run(s3, tmp / "out")
        assert 3590 < told(result, "server.clock")["ahead"] < 3610, verdict(result)
        assert 3590 < result["object_store"]["servers"][0]["clock_ahead_s"] < 3610, result["object_store"]


def cached(tmp):
    """The first epoch waits for disks, later ones do not."""
    with S3Server() as s3:
        generated(s3)
        s3.add_rules([dict(op="GetObject", key="img_", count=5 * FILES, do="wait", seconds=0.005)])
        result, _ = run(s3, tmp / "out")
        f = told(result, "far_cache.seen", "far-cache")
        assert f["first"] > 0.005 > f["later"], f
        assert result["measured"]["storage"] == "part" and verdict(result)[0] == "pass", result["measured"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        for case in (healthy, throttled, repeated, reopened, clumped, of_two, skewed, cached):
            def once(n):
                place = tmp / f"{case.__name__}{n}"
                place.mkdir()
                try:
                    case(place)
                except AssertionError as e:
                    return False, e
                return True, None
            right, why = attempts(case.__name__, once)
            if not right and "far_cache.no_cpu" in str(why):
                left_out("a cache of the servers: threads had no processor, of which the verdict says nothing")
                continue
            assert right, why
            print(case.__name__, flush=True)


if __name__ == "__main__":
    main()

"""Known answers over S3 servers that are limited: to bytes a second, to a time a request, to requests a second. AU is within a
point of the arithmetic, the cause is named, and the remedies that the run states hold when they are applied. For times of
requests it is the arithmetic of what the server says they took; where requests are refused, AU is up to 10 points below it:
while all pauses last that are drawn before a repetition, the server waits."""
# beside one
import os
import pathlib
import sys
import tempfile

sys.path[:0] = [os.path.dirname(__file__), os.path.join(os.path.dirname(__file__), "..")]
from loader_sim import simulate  # noqa: E402
from s3_server import Pace, S3Server  # noqa: E402
from told import told  # noqa: E402
from util import SANITIZED, attempts, load, skip, stoker, tiny  # noqa: E402

if SANITIZED:
    skip("a sanitizer changes the times that are measured here")
OWN = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "S3_", "DLIO_")) and not k.lower().endswith("_proxy")}
KEYS = dict(fmt="npy", reader__access="native", reader__decode="none", storage__s3__head_on_open="false", reader__read_threads=1,
            storage__storage_type="s3", storage__storage_root="bench", workflow__generate_data="false")


class Limited:
    """A server with a dataset, limited afterwards."""

    def __init__(self, tmp, files, size):
        self.tmp, self.runs, self.keys = tmp, 0, dict(KEYS, files=files, dataset__record_length_bytes=size)
        self.s3 = S3Server().__enter__()
        self.s3.buckets["bench"] = {}
        stoker("generate", *tiny("data", None, **self.keys), env=self.env())

    def env(self):
        return {**OWN, **self.s3.env()}

    def run(self, **more):
        """(result, AU by DLIO's definition, the whole run's)."""
        self.runs += 1
        self.s3.clear()
        out = self.tmp / f"{id(self)}.{self.runs}"
        stoker("run", *tiny("data", out, **dict(self.keys, **more)), env=self.env())
        r = load(out)
        return r, load(out, "summary.json")["metric"]["train_au_mean_percentage"], r["training"]["whole_run_au_percent"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.s3.__exit__(None, None, None)


def promise(result, reason):
    """(figure, low, high) of a remedy."""
    return next(((f["figures"]["au"], f["figures"]["low"], f["figures"]["high"]) for f in result["limit"].get("remedy_facts", [])
                 if f["reason"] == reason and "au" in f.get("figures", {})), None)


def kept(said, real):
    return said is None or said[1] - 1 <= real <= said[2] + 1


def bandwidth(tmp):
    """20 MB/s, 4 samples of 1 MB in 150 ms: 75 %; twice the bandwidth feeds it."""
    rate, c, steps = 20e6, 0.15, 16

    def once(n):
        with Limited(tmp, 4 * steps, 1_000_000) as at:
            more = dict(reader__batch_size=4, reader__queue_depth=4, reader__prefetch_size=2, train__computation_time=c)
            at.s3.pace = Pace(rate)
            result, au, _ = at.run(**more)
            expected = simulate(R=1, W=1, P=2, b=4, nb=steps, c=c, size=1_000_128, B=rate)["dlio_AU"]
            said = promise(result, "remedy.bandwidth")
            at.s3.pace = Pace(2 * rate)
            _, _, real = at.run(**more)
            reasons = {f["reason"] for f in result["limit"]["facts"]}
            good = abs(au - expected) <= 1 and "limit.bandwidth" in reasons and kept(said, real)
            return good, (f"AU {au:.1f} %, {expected:.1f} expected; twice the bandwidth: said {said}, is {real:.1f}; "
                          f"{result['limit']['text']}")
    return attempts("bandwidth", once)


def latency(tmp):
    """10 ms a request, 8 of them a batch, 40 ms of computation: 50 %, and less by what the server takes besides; 3 workers."""
    def once(n):
        k = 4 if n else 1  # a busy machine's lateness weighs less
        c = 0.04 * k
        with Limited(tmp, 200 // k, 100_000) as at:
            more = dict(reader__batch_size=8, train__computation_time=c)
            at.s3.latency = 0.01 * k
            result, au, _ = at.run(run__probe="false", **more)
            answers = [r for r in at.s3.requests(op="GetObject") if "/train/" in r["key"]]
            each = sum(r["end"] - r["at"] for r in answers) / len(answers)
            expected = 100 * c / (8 * each)
            result, again, _ = at.run(**more)  # with the probe
            said, text = promise(result, "remedy.workers"), result["limit"]["text"]
            workers = [int(f["figures"]["workers"]) for f in result["limit"].get("remedy_facts", []) if "workers" in f.get("figures", {})]
            real = at.run(run__probe="false", **dict(more, reader__read_threads=workers[0]))[2] if workers else None
            reasons = {f["reason"] for f in result["limit"]["facts"]}
            # a client takes a little to ask again
            good = expected - 3 <= au <= expected + 1 and any(r.startswith(("limit.latency", "limit.few_workers")) for r in reasons) and (real is None or kept(said, real))
            return good, (f"AU {au:.1f} %, {expected:.1f} expected of {1e3 * each:.2f} ms a request; {workers} workers: said {said}, is "
                          f"{real}; {reasons} {text}")
    return attempts("latency", once)


def requests(tmp):
    """100 requests a second, above that 503; 16 a batch, 80 ms of computation: 50 %. What looks at the files before has 16 requests
    under way, of which some are refused more often than storage.s3.retries says by default."""
    c, steps, burst = 0.08, 20, 10

    def once(n):
        with Limited(tmp, 16 * steps, 100_000) as at:
            at.s3.burst, at.s3.requests_s, at.s3.allowance = burst, 100, burst
            result, _, whole = at.run(reader__batch_size=16, reader__read_threads=4, train__computation_time=c, run__probe="false",
                                      storage__s3__retries=20)
            expected = 100 * steps * c / ((16 * steps - burst) / 100 + c)
            refused = len([r for r in at.s3.requests() if r["status"] == 503])
            good = expected - 10 <= whole <= expected + 1 and refused > 0 and result["limit"]["cause"] == "throttled"
            return good, f"AU {whole:.1f} %, {expected:.1f} expected, {refused} answers 503; {result['limit']['text']}"
    return attempts("requests", once)


CASES = {"20 MB/s, 4 samples of 1 MB in 150 ms": bandwidth, "10 ms a request, 8 a batch in 40 ms": latency,
         "503 above 100 requests/s, 16 a batch in 80 ms": requests}


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            if len(sys.argv) > 1 and case.__name__ not in sys.argv[1:]:
                continue
            right, text = case(pathlib.Path(folder))
            print(f"{case.__name__}: {text}", flush=True)
            told("S3 servers with limits", name, text.split("; ", 1)[-1])
            if not right:
                wrong.append(text)
    assert not wrong, wrong


if __name__ == "__main__":
    main()

"""How good are plans from one published point? Made-up systems are submitted as real ones are: each row is about the most
accelerators that pass. One row is planned from another of the same system, and compared with its truth and with the linear rule.

    plan_submissions.py [CASES [SEED [largest]]]    kinds: a  one host, more accelerators     b  more hosts
                                                           c  another accelerator             d  another model
                                                           e  hosts and storage grown         f  fewer hosts

The systems share no law with the plan beyond that caps exist: what hosts, storage, files, waits and the tuning of each row
differ by is drawn. `largest`: rows that are the largest say so.
"""
import concurrent.futures
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile

STOKER = os.environ.get("STOKER", "build/stoker")
# batch, s of a step, bytes of a sample, target
DUTY = {("unet3d", "a100"): (7, .636, 146.6e6, .9), ("unet3d", "h100"): (7, .323, 146.6e6, .9),
        ("resnet50", "a100"): (400, .435, 115e3, .9), ("resnet50", "h100"): (400, .224, 115e3, .9),
        ("cosmoflow", "a100"): (1, .00551, 2.83e6, .7), ("cosmoflow", "h100"): (1, .0035, 2.83e6, .7)}
GAP = {"unet3d": .022, "resnet50": .0015, "cosmoflow": .004}  # what AU leaves out, of a step: published medians


class System:
    def __init__(self, r):
        self.r = r
        self.host = r.choice([5e9, 11e9, 22e9, 45e9]) * r.uniform(.8, 1.1)
        self.store = self.host * r.choice([.9, 2, 3.5, 6, 1e3]) * r.uniform(.8, 1.2)
        self.file = r.choice([2e5, 5e5, 1.5e6]) * r.uniform(.5, 2)  # a file costs as much as so many bytes
        self.wait, self.growth = math.exp(r.gauss(math.log(.012), .9)), r.choice([0, 0, .15, .3, .5])
        self.gap, self.careful, self.drawn = math.exp(r.gauss(0, .9)), r.random() < .3, {}

    def scatter(self, sigma, *key):
        if key not in self.drawn:
            self.drawn[key] = math.exp(sigma * self.r.gauss(0, 1) / math.sqrt(self.r.gammavariate(1.5, 1) / 1.5))
        return self.drawn[key]

    def au(self, m, a, n, hosts, grown):
        batch, step, size, _ = DUTY[m, a]
        wait = self.wait * (n / 8) ** self.growth * self.scatter(.5, "wait", m, a, hosts) * (4 if m == "cosmoflow" else 1)
        part = size / (size + (self.file / 100 if m == "resnet50" else self.file))
        cap = min(self.host * hosts, self.store * grown) * part * self.scatter(.09, "cap", m, a) * self.scatter(.03, "row", m, a, hosts)
        busy, alone = n * batch * size / cap, step * (1 + wait)
        longer = max(busy, alone)
        return step / (longer * (1 + (min(busy, alone) / longer) ** 10) ** .1)

    def row(self, m, a, hosts, grown=1):
        most = 0
        while most < 4000 and self.au(m, a, (most + 1) * hosts, hosts, grown) >= DUTY[m, a][3]:
            most += 1
        each = max(1, int(most * self.r.uniform(.6, 1))) if self.careful else most
        return self.measured(m, a, each * hosts, hosts, grown, each == most) if most else None

    def measured(self, m, a, n, hosts, grown=1, largest=False):
        batch, step, _, _ = DUTY[m, a]
        au, off = self.au(m, a, n, hosts, grown), math.exp(self.r.gauss(0, .004))
        share = off / (1 / au + GAP[m] * self.gap * self.scatter(.3, "gap", m, a, hosts))
        return dict(model=m, accelerator=a, hosts=hosts, accelerators=n, au=min(100, 100 * au * off), share=100 * share,
                    largest=largest, rate=share * n * batch / step, grown=grown)


def pair(r):
    s, m, a, hosts, kind = System(r), r.choice(["unet3d", "unet3d", "resnet50", "cosmoflow"]), r.choice(["a100", "h100"]), \
        r.choice([1, 1, 2]), r.choice("abcdef")
    if kind == "a":
        q = s.row(m, a, hosts)
        few = q and max(hosts, int(q["accelerators"] / hosts * r.uniform(.2, .7)) * hosts)
        return kind, s.measured(m, a, few, hosts) if few else None, q
    if kind == "e":
        by = r.choice([2, 4, 8, 20])
        return kind, s.row(m, a, hosts), s.row(m, a, hosts * by, by)
    if kind == "f":
        return kind, s.row(m, a, hosts * r.choice([2, 4])), s.row(m, a, hosts)
    other = {"b": (m, a, hosts * r.choice([2, 3, 4, 8])), "c": (m, "h100" if a == "a100" else "a100", hosts),
             "d": (r.choice([x for x in GAP if x != m]), a, hosts)}[kind]
    return kind, s.row(m, a, hosts), s.row(*other)


def pairs(seed, n):
    r, found = random.Random(seed), []
    while len(found) < n:
        kind, p, q = pair(r)
        if p and q and 1 / 30 <= q["accelerators"] / p["accelerators"] <= 30 and p["au"] - p["share"] < 20:
            found.append((kind, p, q))
    return found


def planned(kind, p, q, largest):
    text = (f"hosts={p['hosts']},accelerators={p['accelerators']},samples_per_s={p['rate']:.8g},au={p['au']:.5f},model={p['model']},"
            f"accelerator={p['accelerator']}{',largest=yes' if largest and p['largest'] else ''}")
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run([STOKER, "plan", "--point", text, "--model", f"{q['model']}_{q['accelerator']}", "-n", str(q["accelerators"]),
                        "--hosts", str(q["hosts"]), "--json", out.name, *(["--storage-grows"] if kind == "e" else [])],
                       check=True, capture_output=True)
        return kind, q, json.load(open(out.name))["plans"][0]


def held(figure, truth):
    return figure.get("low", figure.get("at_least")) <= truth <= figure["high"]


def tell(name, rows):
    ours = [abs(o["by_rate_percent"]["estimate"] - q["share"]) for _, q, o in rows]
    linear = [abs(o["simpler_rules"]["linear_by_rate_percent"] - q["share"]) for _, q, o in rows]
    said = [o["passes"] for _, _, o in rows]
    print(f"{name}  {len(rows):3}  error {statistics.median(ours):5.2f}, linear {statistics.median(linear):5.2f} points; "
          f"rate held {100 * sum(held(o['by_rate_percent'], q['share']) for _, q, o in rows) / len(rows):3.0f} %, "
          f"AU {100 * sum(held(o['au_percent'], q['au']) for _, q, o in rows) / len(rows):3.0f} %; "
          f"passes: {said.count('yes')} yes, {said.count('no')} no")


def main():
    cases, seed = [*map(int, sys.argv[1:3]), 120, 1][:2] if len(sys.argv) != 2 else (int(sys.argv[1]), 1)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda c: planned(*c, "largest" in sys.argv), pairs(seed, cases)))
    for kind in "abcdef":
        if any(r[0] == kind for r in rows):
            tell(kind, [r for r in rows if r[0] == kind])
    tell("*", rows)


if __name__ == "__main__":
    main()

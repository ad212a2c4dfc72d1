"""Recomputes the key findings of a report from its table (--csv): every figure of every sentence, and that no two
sentences contradict each other. A sentence that is not known here is an error."""
import csv
import json
import math
import pathlib
import re

EFFICIENT, LARGE, LEVEL, NEEDED = 0.8, 10, 0.05, 3
POINTS, SHARE = (1, 5), (0.02, 0.1)  # of several values, of so few that they show no error
NUMBER = r"([+-]?\d+(?:\.\d+)?)"


class Wrong(Exception):
    pass


def need(truth, *what):
    if not truth:
        raise Wrong(" ".join(map(str, what)))


# ---- Student's t, by integration ----

def student_p(t, df):
    """P(|T| > t)."""
    def density(x):
        return math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - (df + 1) / 2 * math.log1p(x * x / df)
                        ) / math.sqrt(df * math.pi)
    n, top = 1000, abs(t)
    step = top / n
    inner = sum((1 if i in (0, n) else 4 if i % 2 else 2) * density(i * step) for i in range(n + 1)) * step / 3
    return max(0.0, 1 - 2 * inner)


def student_t(p, df):
    low, high = 0.0, 700.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if student_p(middle, df) > p else (low, middle)
    return low


def welch(a, b):
    """Change, its 95 % interval, p."""
    def moments(v):
        m = sum(v) / len(v)
        return m, sum((x - m) ** 2 for x in v) / (len(v) - 1) / len(v)
    (ma, va), (mb, vb) = moments(a), moments(b)
    error = math.sqrt(va + vb)
    df = (va + vb) ** 2 / (va ** 2 / (len(a) - 1) + vb ** 2 / (len(b) - 1))
    t = student_t(0.05, df)
    return mb - ma, mb - ma - t * error, mb - ma + t * error, student_p((mb - ma) / error, df)


# ---- the table ----

def number(text):
    return float(text) if text else math.nan


class Group:
    """Runs of one configuration; figures of those that count."""

    def __init__(self, rows):
        self.rows = [r for r in rows if r["left_out"] != "copy"]
        self.counted = [r for r in self.rows if not r["left_out"]]
        self.model, self.ranks = rows[0]["model"], int(rows[0]["processes"])
        self.label = rows[0]["factors"].replace(" ", ", ")
        self.factors = rows[0]["factors"].split()
        self.target = number(rows[0]["target_percent"])
        # where the time went is said of all of it
        for r in (r for r in self.counted if r["tool"] == "stoker" and r["waiting_percent"]):
            parts = [number(r[c]) for c in ("whole_run_au_percent", "waiting_percent", "other_percent")]
            assert abs(sum(parts) - 100) < 0.5 or not parts[2], (r["folder"], parts)
        self.wait, self.other = (self.mean(c) for c in ("waiting_percent", "other_percent"))

    def mean(self, column):
        v = [number(r[column]) for r in self.counted]
        return sum(v) / len(v) if v else math.nan

    def value(self, what):
        return self.mean("whole_run_au_percent" if what == "au" else "whole_run_samples_per_s")

    def dlio_au(self):
        return self.mean("au_mean_percent")

    def range(self, what):
        if len(self.counted) > 1:
            column = "whole_run_au_percent" if what == "au" else "whole_run_samples_per_s"
            v = [number(r[column]) for r in self.counted]
            return min(v), max(v)
        names = (("whole_run_au_least_percent", "whole_run_au_most_percent") if what == "au" else
                 ("whole_run_least_samples_per_s", "whole_run_most_samples_per_s"))
        return tuple(number(self.counted[0][n]) for n in names)

    def count(self):
        return len(self.counted) if len(self.counted) > 1 else int(self.counted[0]["epochs"])

    def values(self, what):
        return [number(r["whole_run_au_percent" if what == "au" else "whole_run_samples_per_s"]) for r in self.counted]

    def __repr__(self):
        return f"{self.model}, {self.ranks} accelerators, {self.label or 'no overrides'}"


def differs(a, b, what):
    if len(a.counted) >= NEEDED and len(b.counted) >= NEEDED:
        return welch(a.values(what), b.values(what))[3] < LEVEL
    few = a.count() < NEEDED or b.count() < NEEDED
    share = SHARE[few] * max(a.value(what), b.value(what))
    least = min(POINTS[few], share) if what == "au" else share
    (a_low, a_high), (b_low, b_high) = a.range(what), b.range(what)
    return (a_low > b_high or a_high < b_low) and abs(a.value(what) - b.value(what)) > least


def by_value(text):
    """Numbers by their values, before texts."""
    try:
        return 0, float(text), text
    except ValueError:
        return 1, 0, text


class Table:
    def __init__(self, path):
        self.rows = list(csv.DictReader(open(path, newline="")))
        groups = {}
        for r in self.rows:
            groups.setdefault((r["model"], int(r["processes"]), r["factors"]), []).append(r)
        self.groups = [Group(v) for v in groups.values()]
        self.models = sorted({g.model for g in self.groups}, key=len, reverse=True)
        self.labels = sorted({g.label for g in self.groups if g.label}, key=len, reverse=True)
        self.MODEL = "(" + "|".join(map(re.escape, self.models)) + ")"
        self.LABEL = "(" + "|".join(map(re.escape, [*self.labels, "no overrides", "no other overrides"])) + ")"
        self.CONFIG = rf"(\d+) accelerators? and {self.LABEL}"

    def as_results(self):
        """The table has the numbers that the runs themselves lead with."""
        for r in self.rows:
            if r["tool"] == "stoker" and r["left_out"] != "check failed":
                training = json.loads((pathlib.Path(r["folder"]) / "result.json").read_text())["training"]
                for column, key in (("whole_run_au_percent",) * 2, ("whole_run_samples_per_s",) * 2):
                    need(abs(number(r[column]) / training[key] - 1) < 1e-6, r["folder"], column, r[column], training[key])

    def counted(self, model=None):
        return [g for g in self.groups if g.counted and model in (None, g.model)]

    def group(self, model, ranks, label):
        label = "" if label in ("no overrides", "no other overrides") else label
        found = [g for g in self.groups if g.model == model and g.ranks == int(ranks) and g.label == label]
        need(len(found) == 1, "no such configuration:", model, ranks, label)
        need(found[0].counted, "it is left out, but quoted:", found[0])
        return found[0]


# ---- the sentences ----

class Checker:
    def __init__(self, table):
        self.t = table
        self.said = {}     # (group, measure) -> text of its value
        self.relation = {}  # (a, b, measure) -> "same", "more" or "less": of b
        self.best, self.peak = {}, {}
        self.kinds, self.factors = set(), set()

    def quote(self, g, what, text):
        """A value as it is printed; the same everywhere."""
        need(abs(number(text) - g.value(what)) <= 0.0501, f"{g}: {what} is {g.value(what)}, not {text}")
        need(self.said.setdefault((g, what), text) == text, f"{g}: {what} is said to be {self.said[g, what]} and {text}")

    def relate(self, a, b, what, how):
        need((how == "same") != differs(a, b, what), f"{how}, but the table says otherwise: {a} and {b}")
        if how != "same":
            need((how == "more") == (b.value(what) > a.value(what)), f"{b} is not {how} than {a}")
        back = {"more": "less", "less": "more", "same": "same"}[how]
        for key, value in (((a, b, what), how), ((b, a, what), back)):
            need(self.relation.setdefault(key, value) == value, "two sentences contradict each other on", *key)

    def take(self, text, *patterns):
        for kind, (pattern, check) in enumerate(patterns):
            found = re.match(pattern, text)
            if found:
                check(*found.groups())
                self.kinds.add(check.__name__)
                return text[found.end():]
        raise Wrong(f"an unknown sentence: '{text}'")

    def finding(self, text):
        t = self.t
        rest = self.take(
            text,
            (rf"(\d+) of (\d+) runs? (?:has|have) invalid results: (.*?)\. Their AU and MB/s do not describe the storage, "
             r"and they are left out\.", self.invalid),
            (r"No check failed for (this run|any of the (\d+) runs)\.", self.sound),
            (r"Of (\d+) configurations, (?:(\d+) lost most time to waiting for data)?(?: \(in (\d+) of them, "
             r"the largest part is the framework's own code\))?(?:, )?(?:(\d+) lost most time to other"
             r" things \(barriers, the start and the end of epochs\))?(?:,? ?and (\d+) lost at most 10 % in any one "
             r"way|none lost more than 10 % of the time to waiting for data or to other things \(barriers, the start and "
             r"the end of epochs\))?\.", self.limits),
            (rf"The configuration waited for data for {NUMBER} % of the training time; {NUMBER} % was spent on neither "
             r"waiting nor computation(?: \([^)]* %\))?\.(?: The largest part of the lost time is the framework's own code\.)?", self.one_limit),
            (rf"With(?:out)? the framework's own costs \(.*?\), AU would be (?:about {NUMBER} %(?: \(.*?\))?(?:, {NUMBER} % by DLIO's "
             rf"definition)?(?:, with those of .*? alone {NUMBER} %)?|\d+ to \d+ %)\.", self.costs),
            (rf"{t.MODEL}: whole-run AU is highest with {t.CONFIG} \({NUMBER} %\)(.*)", self.highest),
            (rf"{t.MODEL}: only one configuration can be ranked \({t.CONFIG}, {NUMBER} %\)\.(.*)", self.only),
            (rf"{t.MODEL}: nothing is concluded, because (?:the run is|all (\d+) runs are) left out\. Whole-run AU was "
             rf"{NUMBER}(?: to {NUMBER})? %\.", self.nothing),
            (rf"{t.MODEL}(?:, {t.LABEL})?: from (\d+) to (\d+) accelerators, throughput (.*)", self.scaling),
            (rf"{t.MODEL}, (\d+) accelerators?(?:, (.*?))?: whole-run AU is {NUMBER} % (?:without (\S+)|with (\S+?)=(\S+?))"
             r"( \(no override\))?\.(?= It )(.*)", self.factor),
            (rf"{t.MODEL}, (\d+) accelerators?(?:, (.*?))?: ((?:from|with|for all values of) \S+?.*?throughput .*)", self.reach),
            (rf"(\d+) more comparisons? of one factor shows? a difference, of at most {NUMBER} points: see the table\.",
             self.more),
            (r"Changes without an interval are based on fewer than 3 runs of a configuration; stoker study run --repeat 3 adds "
             r"the missing ones\.", self.untested),
            (r"No difference in whole-run AU is shown for (.*)\.$", self.same))
        while rest:
            rest = self.take(
                rest,
                (r" (\d+) runs? (?:is|are) left out: the whole-run AU is unknown or impossible\.", self.impossible),
                (r" (\d+) runs? that the page cache or memory (?:served|may have served) (?:is|are) left out: other runs of the model were not "
                 r"served from there\.", self.memory),
                (r" The findings below are based on the other (\d+) runs?\.| No run is left to base findings on\.", self.others),
                (r" In (\d+) of (\d+) runs, the numbers are not those of the storage alone\. The first of these runs measured: .*?\.(?= \d| In|$)",
                 self.doubted),
                (r" Measured: .*", self.measured),
                (r" (?:The page cache|In (\d+) runs?, the page cache) (?:served|may have served) some or all of (?:its|the) reads\.", self.cached),
                (r" In (\d+) results? of checkpoints, the page cache may have served what was read back\.", self.checkpoints),
                (r" Of (\d+) results? without training, \d+ (?:is|are) invalid\.", self.untrained),
                (r" (\d+) results? (?:is a copy|are each a copy) of another one and not counted as a repetition; audit "
                 r"calls both invalid\.", self.copies),
                (rf" The longest wait was {NUMBER} %: {t.MODEL}, (\d+) accelerators?, {t.LABEL}\.", self.longest))

    # -- which runs --

    def failing(self, rows):
        """Of results that are there twice, the first counts, although audit calls both invalid."""
        copied = len(rows) < len(self.t.rows)
        return sum(r["verdict"] == "fail" and not (copied and r["failed_checks"] == "identity") for r in rows)

    def invalid(self, bad, runs, names):
        rows = [r for r in self.t.rows if r["left_out"] != "copy"]
        failed = [r for r in rows if r["left_out"] == "check failed"]
        need(int(bad) == len(failed) == self.failing(rows), "invalid:", bad, len(failed))
        need(int(runs) == len(rows), "runs:", runs, len(rows))
        counts = {}
        for r in failed:
            for name in r["failed_checks"].split():
                counts[name] = counts.get(name, 0) + 1
        need(dict(re.findall(r"(\S+) \((\d+)\)", names)) == {k: str(v) for k, v in counts.items()}, names, counts)

    def sound(self, one, runs):
        rows = [r for r in self.t.rows if r["left_out"] != "copy"]
        need(not self.failing(rows) and len(rows) == int(runs or 1), one)

    def left_out(self, count, why):
        need(int(count) == sum(r["left_out"] == why for r in self.t.rows), count, "runs left out:", why)

    def impossible(self, n):
        self.left_out(n, "impossible or unknown figures")

    def memory(self, n):
        self.left_out(n, "page cache or memory")

    def others(self, n):
        self.left_out(n or 0, "")

    def copies(self, n):
        self.left_out(n, "copy")

    def doubted(self, n, known):
        claims = [json.loads((pathlib.Path(r["folder"]) / "result.json").read_text()).get("measured") for r in self.t.rows
                  if r["tool"] == "stoker"]
        claims = [c for c in claims if c]
        need(int(known) == len(claims) and int(n) == sum(c["storage"] != "yes" or bool(c["taken"]) for c in claims), n, known)

    def measured(self):
        need(len(self.t.rows) == 1, "one run")

    def cached(self, n):
        rows = [r for r in self.t.rows if r["tool"] == "dlio" and "cache" in r["findings"].split()
                and "cache" not in r["failed_checks"].split()]
        need(int(n or 1) == len(rows), "from the page cache:", n, len(rows))

    def checkpoints(self, n):
        need(int(n) > 0, n)

    untrained = checkpoints

    # -- limits --

    def limits(self, every, data, own, other, compute):
        groups = [g for g in self.t.counted() if not math.isnan(g.wait)]
        waits = [g for g in groups if g.wait > LARGE and g.wait >= g.other]
        others = [g for g in groups if g not in waits and g.other > LARGE]
        rest = len(groups) - len(waits) - len(others)
        said = tuple(int(n) if n else 0 for n in (every, data, other, compute))
        need(int(own or 0) <= len(waits), own, data)
        need(said == (len(groups), len(waits), len(others), rest if waits or others else 0), said)

    def longest(self, percent, model, ranks, label):
        g = self.t.group(model, ranks, label)
        need(abs(g.wait - number(percent)) <= 0.0501 and g.wait >= max(x.wait for x in self.t.counted()) - 1e-9, g, g.wait)

    def one_limit(self, wait, other):
        g, = self.t.counted()
        need(abs(g.wait - number(wait)) <= 0.0501 and abs(g.other - number(other)) <= 0.0501, g, g.wait, g.other)

    def costs(self, au):
        g, = self.t.counted()
        need(au is None or abs(float(g.rows[0]["framework_costs_au_percent"]) - number(au)) <= 0.501, g, au)

    # -- ranking --

    def ties(self, best, text, what):
        """"." or "; 2 others are not beyond the error of it: A (x), B (y)."; returns what follows."""
        tied = [g for g in self.t.counted(best.model) if g is not best and not differs(best, g, what)]
        need(best.value(what) >= max(g.value(what) for g in self.t.counted(best.model)) - 1e-9, best, "is not the highest")
        if text.startswith("."):
            need(not tied, "not said to be within the error of", best, ":", tied)
            return text[1:]
        head = re.match(r"; (\d+) others? (?:does|do) not differ from it beyond the error:", text)
        need(head and int(head.group(1)) == len(tied), "ties:", text, len(tied))
        text, named = text[head.end():], 0
        while found := re.match(rf",? {self.t.CONFIG} \({NUMBER}(?: %)?\)", text):
            g = self.t.group(best.model, found.group(1), found.group(2))
            self.quote(g, what, found.group(3))
            self.relate(best, g, what, "same")
            named, text = named + 1, text[found.end():]
        found = re.match(r"(?:, and (\d+) more)?\.", text)
        need(found and named + int(found.group(1) or 0) == len(tied), "ties:", text)
        return text[found.end():]

    def highest(self, model, ranks, label, au, rest):
        g = self.t.group(model, ranks, label)
        self.quote(g, "au", au)
        self.best[model, "au"] = g
        rest = self.ties(g, rest, "au")
        found = re.match(rf" Throughput is highest there, too \({NUMBER} samples/s\)", rest)
        if found:
            self.quote(g, "rate", found.group(1))
            self.best[model, "rate"] = g
            rest = self.ties(g, rest[found.end():], "rate")
        found = re.match(rf" Throughput is highest with {self.t.CONFIG} \({NUMBER} samples/s, at {NUMBER} %\)", rest)
        if found:
            g = self.t.group(model, found.group(1), found.group(2))
            self.quote(g, "rate", found.group(3))
            self.quote(g, "au", found.group(4))
            self.best[model, "rate"] = g
            rest = self.ties(g, rest[found.end():], "rate")
        self.ranked(model, rest)

    def only(self, model, ranks, label, au, rest):
        g = self.t.group(model, ranks, label)
        need(self.t.counted(model) == [g], "others count, too")
        self.quote(g, "au", au)
        self.ranked(model, rest)

    def ranked(self, model, rest):
        counted = self.t.counted(model)
        out = [g for g in self.t.groups if g.model == model and not g.counted]
        cached = [g for g in out if any(r["left_out"] == "page cache or memory" for r in g.rows)]
        failed = [g for g in out if g not in cached and any(r["left_out"] in ("check failed", "damaged or incomplete") for r in g.rows)]
        targets = {g.target for g in counted}
        hit = sum(g.value("au") >= g.target for g in counted)
        both = rf" By whole-run AU, (?:no|\d+).*?%\)?; by AU as DLIO and MLPerf define it, (\d+) of {len(counted)} do\."
        stated = re.match(rf".*{both}", rest)
        if stated:
            need(int(stated[1]) != hit and int(stated[1]) == sum(g.dlio_au() >= g.target for g in counted), stated[0], hit)
            rest = rest.replace(f"; by AU as DLIO and MLPerf define it, {stated[1]} of {len(counted)} do", "")
        parts = (
            (r" Throughput in samples/s is not ranked: a sample has \d+ to \d+ bytes in these configurations\.", None),
            (r" In all of them, the page cache or memory (?:served|may have served) reads: these are not figures of the storage\.", None),
            (r" (\d+) configurations? (?:is|are) not ranked: a check failed in each of (?:its|their) runs\.",
             len(failed)),
            (r" (\d+) configurations? (?:is|are) not ranked: the whole-run AU of (?:its|their) runs is unknown or impossible\.",
             len(out) - len(cached) - len(failed)),
            (r" (\d+) configurations? (?:is|are) not ranked: the page cache or memory (?:served|may have served) (?:its|their) reads\.", len(cached)),
            (rf" \d+ of the (\d+) read from a store inside Stoker, not from storage\.", len(counted)),
            (r" The accelerators differ \(train\.computation_time of \S+ to \S+ s\), so AU does not compare storage\.", None),
            (r" By whole-run AU, no configuration reaches (?:the|its) target.*?%\)?\.", hit == 0),
            (rf" By whole-run AU, (\d+) of {len(counted)} reach (?:the|their) target.*?%\)?\.", hit),
        )
        while rest:
            for pattern, value in parts:
                found = re.match(pattern, rest)
                if found:
                    need(value is None or (value is True if not found.groups() else int(found.group(1)) == value),
                         found.group(0), value)
                    rest = rest[found.end():]
                    break
            else:
                raise Wrong(f"an unknown sentence on {model}: '{rest}' {targets}")

    def nothing(self, model, runs, least, most):
        rows = [r for r in self.t.rows if r["model"] == model and r["left_out"] != "copy"]
        need(all(r["left_out"] for r in rows) and len(rows) == int(runs or 1), "runs of", model)
        v = [number(r["whole_run_au_percent"]) for r in rows]
        need(abs(min(v) - number(least)) <= 0.0501 and abs(max(v) - number(most or least)) <= 0.0501, least, most, v)

    # -- scaling --

    def interval(self, text, a, b, what):
        """"; 95 % confidence interval x to y, over n and m runs", if there are runs enough; else "" """
        enough = len(a.counted) >= NEEDED and len(b.counted) >= NEEDED
        found = re.fullmatch(rf"; 95 % confidence interval {NUMBER} to {NUMBER}, over (\d+) and (\d+) runs", text or "")
        need(bool(found) == enough, "an interval needs 3 runs of each:", a, b, text)
        if found:
            _, low, high, _ = welch(a.values(what), b.values(what))
            need(abs(low - number(found.group(1))) <= 0.06 and abs(high - number(found.group(2))) <= 0.06, low, high, text)
            need((int(found.group(3)), int(found.group(4))) == (len(a.counted), len(b.counted)), text)

    def scaling(self, model, label, first, last, rest):
        a, b = self.t.group(model, first, label or ""), self.t.group(model, last, label or "")
        line = sorted((g for g in self.t.counted(model) if g.label == a.label), key=lambda g: g.ranks)
        found = re.match(rf"(does not change beyond the error|falls to {NUMBER} %|rises {NUMBER} times) "
                         rf"\((?:from )?{NUMBER} (?:to|and) {NUMBER} samples/s(;.*? runs)?\), which is {NUMBER} % of linear "
                         rf"scaling; (?:it stays above 80 % of it (throughout|up to (\d+))|with (\d+) it is below 80 % of it)\.",
                         rest)
        need(found, "an unknown sentence on scaling:", rest)
        how, falls, rises, x, y, interval, linear, stays, up_to, below = found.groups()
        factor = b.value("rate") / a.value("rate")
        self.quote(a, "rate", x)
        self.quote(b, "rate", y)
        self.interval(interval, a, b, "rate")
        self.relate(a, b, "rate", "less" if falls else "more" if rises else "same")
        need(not falls or abs(100 * factor - number(falls)) <= 0.51, how, factor)
        need(not rises or abs(factor - number(rises)) <= 0.0051, how, factor)
        need(abs(100 * factor * a.ranks / b.ranks - number(linear)) <= 0.51, "linear:", linear)
        rest = rest[found.end():]
        left = re.search(r" Left out: (.*)\.$", rest)
        out = set(re.findall(r"(\d+) \(", left.group(1))) if left else set()
        line = [g for g in line if str(g.ranks) not in out]
        need(line[0] is a and line[-1] is b, "the line:", line)
        need(out >= {str(g.ranks) for g in self.t.groups if g.model == model and g.label == a.label and not g.counted},
             "not said to be left out", rest)
        good = [g.value("rate") / a.value("rate") >= EFFICIENT * g.ranks / a.ranks for g in line]
        stop = good.index(False) if False in good else len(line)
        need((stays == "throughout") == (stop == len(line)), stays, good)
        need(not up_to or int(up_to) == line[stop - 1].ranks, up_to, good)
        need(not below or (stop == 1 and int(below) == line[1].ranks), below, good)
        rest = rest[:left.start()] if left else rest
        peak = max(line, key=lambda g: g.value("rate"))
        found = re.match(rf" It is highest with (\d+) \({NUMBER} samples/s\)\.", rest)
        need(bool(found) == (peak is not b and differs(peak, b, "rate")), "highest:", rest, peak)
        if found:
            need(int(found.group(1)) == peak.ranks, rest, peak)
            self.quote(peak, "rate", found.group(2))
            rest = rest[found.end():]
        self.peak[model] = line, peak
        found = re.fullmatch(rf" Whole-run AU goes from {NUMBER} % to {NUMBER} %\.", rest)
        need(found, "an unknown sentence on scaling:", rest)
        self.quote(a, "au", found.group(1))
        self.quote(b, "au", found.group(2))

    # -- factors --

    def family(self, model, ranks, rest, key):
        """The base, or None, and the groups by the value of the key."""
        common = set((rest or "").split(", ")) - {""}
        base, members = None, {}
        for g in self.t.counted(model):
            if g.ranks != int(ranks):
                continue
            own = [f for f in g.factors if f.split("=")[0] == key]
            if set(g.factors) - set(own) != common:
                continue
            if own:
                members[own[0].split("=", 1)[1]] = g
            else:
                base = g
        return base, members

    def limits_of(self, text, values):
        """Takes the last sentence, which has each value of a family once, with what limits its runs."""
        before, found, said = text.partition(" What limits the runs: ")
        if not found:
            return text
        parts = re.findall(r"([^;]+?): ([a-z ]+)[;.]", said)
        need(len(parts) > 1 and all(a[1] != b[1] for a, b in zip(parts, parts[1:])), "limits that differ", said)
        named = [v.strip() for values_, _ in parts for v in re.split(r", | to ", values_)]
        need(len(set(named)) == len(named) and set(named) <= set(values), "the values of the limits", named, values)
        need(" to " in said or set(named) == set(values), "all values", named, values)
        return before

    def reach(self, model, ranks, rest, text):
        """Where a curve becomes flat, against the table."""
        found = (re.match(r"from (\S+?)=(\S+) on, throughput stays within 10 %()", text) or re.match(r"from (\S+?)=(\S+) to (\S+), throughput", text) or
                 re.match(r"with (\S+?)=(\S+)(), throughput", text) or re.match(r"for all values of (\S+), (\S+) to (\S+), throughput", text))
        need(found, "a curve", text)
        key, first, last = found.groups()
        base, members = self.family(model, ranks, rest, key)
        if base:
            members[first if first not in members else last] = base
        try:
            names = sorted(members, key=float)
        except ValueError:
            return  # sizes with units: tests/truth/test_experiments.py
        rates = {v: members[v].value("rate") for v in names}
        best = max(rates.values())
        at = names.index(max(rates, key=rates.get))
        begins = at
        while begins and rates[names[begins - 1]] >= 0.9 * best:
            begins -= 1
        need(first not in names or names[begins] == first or abs(rates[names[begins]] / best - 0.9) < 0.01, "begins at", names[begins], text)

    def factor(self, model, ranks, rest, au, without, key, value, no_override, text):
        key = without or key
        base, members = self.family(model, ranks, rest, key)
        text = self.limits_of(text, [*members, *([value or "no override"] if base else [])])
        reference = base if without or no_override else members.pop(value)
        self.factors.add((model, int(ranks), rest or "", key))
        need(reference and (bool(base) == bool(without or no_override)), "the reference of", key)
        self.quote(reference, "au", au)
        while found := re.match(rf" It (falls|rises) to {NUMBER} % with (\S+) \({NUMBER} points(;.*? runs)?\)\.", text):
            how, to, value, change, interval = found.groups()
            g = members.pop(value)
            self.quote(g, "au", to)
            need(abs(g.value("au") - reference.value("au") - number(change)) <= 0.0501, found.group(0))
            self.relate(reference, g, "au", "less" if how == "falls" else "more")
            self.interval(interval, reference, g, "au")
            text = text[found.end():]
        found = re.match(rf" No difference is shown with ((?:\S+ \({NUMBER} %\)(?:, )?)+)\.", text)
        if found:
            for value, to in re.findall(rf"(\S+) \({NUMBER} %\)", found.group(1)):
                g = members.pop(value)
                self.quote(g, "au", to)
                self.relate(reference, g, "au", "same")
            text = text[found.end():]
        found = re.match(r" Not compared: (.*)\.$", text)
        for value in re.findall(r"(\S+) \([^)]*\)", found.group(1)) if found else []:
            members.pop(value)
        need(not members and (found or not text), "not said:", members, text)

    def families(self):
        """(model, ranks, rest, key): the largest change that is a difference, 0 for none."""
        found = {}
        for g in self.t.counted():
            for factor in g.factors:
                rest = ", ".join(f for f in g.factors if f != factor)
                key = factor.split("=")[0]
                base, members = self.family(g.model, g.ranks, rest, key)
                base = base or members[min(members, key=by_value)]
                others = [m for m in members.values() if m is not base]
                if others:
                    found[g.model, g.ranks, rest, key] = max(
                        [abs(m.value("au") - base.value("au")) for m in others if differs(base, m, "au")], default=0)
        return found

    def more(self, n, points):
        """Those that are not said. The largest of each model and key is said."""
        unsaid = {k: v for k, v in self.families().items() if v and k not in self.factors}
        need(len(unsaid) == int(n), "unsaid:", n, len(unsaid))
        need(abs(max(unsaid.values()) - number(points)) <= 0.0501, "the largest of them:", points, unsaid)
        for (model, _, _, key), change in unsaid.items():
            said = [v for k, v in self.families().items() if k in self.factors and (k[0], k[3]) == (model, key)]
            need(said and max(said) >= change, "a larger change is not said:", model, key, change)

    def same(self, text):
        parts = text.split("; ")
        more = re.fullmatch(r"and (\d+) more comparisons?", parts[-1])
        need(len(parts) <= 8 if not more else len(parts) == 9, "how many are said:", len(parts))
        unsaid = [k for k, v in self.families().items() if not v]
        need(len(unsaid) >= len(parts) - bool(more) + (int(more.group(1)) if more else 0), "with no difference:", len(unsaid))
        for part in parts[:-1] if more else parts:
            found = re.fullmatch(rf"{self.t.MODEL}, (\d+) accelerators?(?:, (.*?))?: (\S+) of (.*)", part)
            need(found, "an unknown sentence on no difference:", part)
            model, ranks, rest, key, values = found.groups()
            base, members = self.family(model, ranks, rest, key)
            values = re.findall(rf"(no override|\S+) \({NUMBER} %\)", values)
            reference = base or members[values[0][0]]
            self.quote(reference, "au", values[0][1])
            for value, au in values[1:]:
                self.quote(members[value], "au", au)
                self.relate(reference, members[value], "au", "same")

    def untested(self):
        need(any(len(g.counted) < NEEDED for g in self.t.counted()), "all have 3 runs")

    # -- all together --

    def together(self):
        for model, (line, peak) in self.peak.items():
            best = self.best.get((model, "rate"))
            if best in line:
                need(best is peak, f"the highest throughput is with {best}, but in the line with {peak}")
        for (model, what), best in self.best.items():
            for (a, b, measure), how in self.relation.items():
                if measure == what and a is best:
                    need(how != "more", f"{b} is more than the highest, {a}")


def findings(stdout):
    return [line[2:] for line in stdout.splitlines() if line.startswith("* ")]


def check(stdout, path):
    """The sentences of a report against its table. Returns the names of the kinds of sentences that there were."""
    checker = Checker(Table(path))
    checker.t.as_results()
    for text in findings(stdout):
        try:
            checker.finding(text)
        except Wrong as e:
            raise AssertionError(f"{e}\nin: {text}") from None
    try:
        checker.together()
    except Wrong as e:
        raise AssertionError(str(e)) from None
    return checker.kinds

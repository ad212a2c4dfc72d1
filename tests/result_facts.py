"""The facts of result.json: what limits a run, what would change it. Tests look at these, not at the sentences beside
them."""


def all_of(result):
    """Facts of the limit: what shows the cause, and what changes would do."""
    limit = result.get("limit", {})
    return limit.get("facts", []) + limit.get("effects", [])


def reasons(facts):
    return {f["reason"] for f in facts}


def told(facts, words):
    """Whether for each of `words` one fact has all its parts: "reason && figure=1 && a part of a text"."""
    flat = []
    for f in facts:
        figures = [f"{name}={value:{'.0f' if value == int(value) else '.3g'}}" for name, value in f.get("figures", {}).items()
                   if value is not None]
        flat.append(" ".join([f["reason"], *figures, *f.get("texts", {}).values()]).lower())
    return all(any(all(part.lower() in one for part in w.split(" && ")) for one in flat) for w in words)


def verdict_facts(result, check):
    """The facts of its verdict."""
    return next(v["facts"] for v in result["verdicts"] if v["check"] == check)


def find(facts, *names):
    """Figures and texts of the first fact with one of these reasons, and the reason; None: there is none."""
    for f in facts:
        if f["reason"] in names:
            return dict(f.get("figures", {}), **f.get("texts", {}), reason=f["reason"])
    return None


def change_of(change):
    """A change of what_if: its keys; the reason where no keys make it."""
    keys = change["change"]
    return keys if "=" in keys or "change_fact" not in change else change["change_fact"]["reason"]

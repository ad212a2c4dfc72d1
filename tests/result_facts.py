"""The facts of result.json: what limits a run, what would change it. Tests look at these, not at the sentences beside
them."""


def all_of(result):
    """Facts of the limit: what shows the cause, and what changes would do."""
    limit = result.get("limit", {})
    return limit.get("facts", []) + limit.get("effects", [])


def reasons(facts):
    return {f["reason"] for f in facts}


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

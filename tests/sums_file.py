"""Files that sum up several runs (repeat.json, truth_table.json, capacity.json, plans): audited, and edited in every place."""
import hashlib
import json
import pathlib
import shutil

from util import stoker


def audited(path, **kw):
    """(findings without notes, what is unchecked, all that was compared) of the file."""
    path = pathlib.Path(path)
    which = [path] if path.name.startswith("plan") else ["--quick", path.parent]
    done = stoker("audit", "--json", *which, status=None, **kw)
    one, = [s for s in json.loads(done.stdout)["sums"] if s["file"] == str(path)]
    return ([f for f in one["findings"] if f["level"] != "note"], one["unchecked"],
            sum(c["compared"] for c in one["checked"]))


def failed(path):
    """The checks that fail."""
    return {f["check"] for f in audited(path)[0] if f["level"] == "fail"}


def seal(path, tree):
    """Writes the file with its digest made again, as who knows the format would."""
    tree["integrity"]["file_sha256"] = ""
    text = json.dumps(tree, indent=4, ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    pathlib.Path(path).write_text(text.replace('"file_sha256": ""', f'"file_sha256": "{digest}"'))


def leaves(tree, at=()):
    if isinstance(tree, (dict, list)):
        for key, value in (tree.items() if isinstance(tree, dict) else enumerate(tree)):
            yield from leaves(value, at + (key,))
    elif tree is not None:
        yield at, tree


def other(value):
    if isinstance(value, bool):
        return not value
    return value + "x" if isinstance(value, str) else value * 1.1 + 1 if isinstance(value, float) else value + 1


def edited_anywhere(path, told, every=1):
    """Each figure and word alone, sealed again: a finding, but for keys that `unchecked` says are known by digest only."""
    path = pathlib.Path(path)
    text = path.read_text()
    found, unchecked, compared = audited(path)
    assert not found and compared > 10, (path, found, compared)
    assert [u for u in unchecked if u["name"] == "figures" and "digest" in u["why"]], unchecked
    missed, tried = set(), 0
    try:
        for at, value in list(leaves(json.loads(text)))[::every]:
            if at[0] == "integrity" or at[-1] in told:
                continue
            tree = json.loads(text)
            part = tree
            for key in at[:-1]:
                part = part[key]
            part[at[-1]] = other(value)
            seal(path, tree)
            tried += 1
            if not failed(path) - {"digest"}:
                missed.add(at)
        # as an editor leaves it
        path.write_text(text.replace("0", "1", 1))
        assert "digest" in failed(path)
        # and without digests
        tree = json.loads(text)
        del tree["integrity"]
        path.write_text(json.dumps(tree))
        assert "digest" in failed(path)
    finally:
        path.write_text(text)
    assert not missed and tried, missed
    return tried


def row_removed(path, rows):
    """Each run alone no longer counted, sealed again: its folder is still there, and the figures are those of all."""
    path = pathlib.Path(path)
    text = path.read_text()
    for at in range(len(json.loads(text)[rows])):
        tree = json.loads(text)
        gone = tree[rows].pop(at)
        seal(path, tree)
        assert failed(path) & {"figures", "identity"}, (gone, audited(path))
    path.write_text(text)


def runs_gone(path, *folders):
    """Runs that the file counts, moved away one after the other."""
    path = pathlib.Path(path)
    for folder in folders:
        away = path.parent.parent / "away"
        shutil.move(path.parent / folder, away)
        try:
            found = [f for f in audited(path)[0] if f["check"] == "identity" and f"'{folder}'" in f["text"]]
            assert found, (folder, audited(path))
        finally:
            shutil.move(away, path.parent / folder)
    assert not failed(path)

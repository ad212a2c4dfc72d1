#!/usr/bin/env python3
"""wheel.py FOLDER FILE VERSION SUMMARY: writes a wheel with an installed program, as `pip install` takes it. FOLDER is the
program's prefix, with bin, lib and share; the name of FILE has the tag of the platform."""
import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile


def files(prefix):
    """(path in the wheel, content, whether it is executed): what pip puts in bin, lib and share beside Python's own."""
    name = "stoker"
    for path in sorted(p for p in prefix.rglob("*") if p.is_file()):
        inside = path.relative_to(prefix)
        if inside.parts[:1] == ("bin",):
            yield f"scripts/{inside.name}", path.read_bytes(), True
        elif inside.parts[:1] == ("lib",) or inside.parts[:2] == ("share", "man"):
            yield f"data/{inside}", path.read_bytes(), False
        elif inside.parts[:3] == ("share", "doc", name) and inside.name in ("LICENSE", "LICENSES"):
            yield f"licenses/{inside.name}", path.read_bytes(), False


def main():
    prefix, out, version, summary = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), *sys.argv[3:]
    tag = out.stem.split("-", 2)[2]
    info = f"stoker-{version}.dist-info"
    members = []
    for place, content, executed in files(prefix):
        folder = info if place.startswith("licenses/") else f"stoker-{version}.data"
        members.append((f"{folder}/{place}", content, executed))
    members.append((f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: stoker\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), False))
    members.append((f"{info}/METADATA", f"Metadata-Version: 2.1\nName: stoker\nVersion: {version}\nSummary: {summary}\n"
                    "License: Apache-2.0\nRequires-Python: >=3\n".encode(), False))
    record = ""
    for name, content, _ in members:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    members.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), False))
    # a ZIP knows no time before 1980
    when = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())), 315532800))[:6]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content, executed in members:
            entry = zipfile.ZipInfo(name, when)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if executed else 0o100644) << 16
            archive.writestr(entry, content)


if __name__ == "__main__":
    main()

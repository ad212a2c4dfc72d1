#!/usr/bin/python3
"""The page of a real job in a browser: nothing fails, nothing is wider than the window, the timeline is drawn and zooms."""
# tier: long
import os
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from browser import BROWSER, Page  # noqa: E402
from util import skip, stoker  # noqa: E402

LOG = HERE.parent / "data" / "jobs" / "png-w2-checkpoint-steps.strace.gz"
DRAWN = """(() => { const c = document.getElementById("tl"), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data,
  seen = new Set(); for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 250) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size; })()"""
RANGE = "[Number(tl.getAttribute('data-from')), Number(tl.getAttribute('data-to'))]"

if not BROWSER:
    skip("no chromium is installed")
with tempfile.TemporaryDirectory() as folder:
    out = pathlib.Path(folder, "job.html")
    stoker("explain", LOG, "-o", out)
    with Page(os.path.join(folder, "profile"), out.as_uri(), 500, 900) as page:
        for width in (500, 1400):
            page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
            page.until(f"window.innerWidth == {width} && {RANGE}[1] > 0")
            page.frame()
            assert page.value("document.documentElement.scrollWidth <= window.innerWidth"), f"wider than {width}"
            page.until(f"{DRAWN} > 6")
        assert page.value("document.querySelectorAll('#values tbody tr').length") > 15
        assert page.value("document.querySelectorAll('#bytes polygon').length") >= 2
        begin, end = page.value(RANGE)
        page.value("document.getElementById('tl-in').click(), 1")
        page.until(f"{RANGE}[1] - {RANGE}[0] < {0.7 * (end - begin)}")
        ours = [p for p in page.problems if "getImageData" not in str(p)]  # but of the look at the pixels
        assert not ours, ours

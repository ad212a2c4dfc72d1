"""A browser under the hands of a test: Chromium over a pipe, with real events of mouse and keys."""
import base64
import json
import os
import shutil
import subprocess
import time

BROWSER = next((b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None)


class Page:
    """One page. Leaving the block ends the browser."""

    def __init__(self, profile, url, width=1200, height=1000):
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()

        def ends():
            # the browser reads from 3 and writes to 4
            a, b = os.dup(to_read), os.dup(from_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=ends, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.to, self.back, self.rest, self.last = to_write, from_read, b"", 0
        self.session, self.problems = None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Runtime.enable")
        self.call("Log.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url=url)
        self.until('document.readyState === "complete"')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(20)
        except (OSError, AssertionError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.back)

    def message(self):
        while b"\0" not in self.rest:
            piece = os.read(self.back, 1 << 16)
            assert piece, "the browser has ended"
            self.rest += piece
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, **params):
        self.last += 1
        command = {"id": self.last, "method": method, "params": params}
        if self.session:
            command["sessionId"] = self.session
        left = json.dumps(command).encode() + b"\0"
        while left:
            left = left[os.write(self.to, left):]
        while True:
            m = self.message()
            if m.get("id") == self.last:
                assert "error" not in m, (method, m["error"])
                return m["result"]
            kind, what = m.get("method"), m.get("params", {})
            if kind == "Runtime.exceptionThrown" or (kind == "Runtime.consoleAPICalled" and what["type"] != "log") or (
                    kind == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning")):
                self.problems.append(what)

    def value(self, expression):
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in got, got
        return got["result"].get("value")

    def until(self, expression, seconds=30):
        end = time.monotonic() + seconds
        while not self.value(expression):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.05)

    def frame(self):
        """After what was asked for is drawn."""
        self.value("new Promise(f => requestAnimationFrame(() => requestAnimationFrame(() => f(1))))")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def key(self, key, **more):
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **more)

    def picture(self):
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

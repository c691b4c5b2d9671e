"""A page in a real browser: Debian's chromium without a window, driven through its debugging pipe
(file descriptors 3 and 4, messages that end with a zero byte), so that nothing but Python is needed."""

import contextlib
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ["chromium", "chromium-browser", "google-chrome"]


def executable():
    for name in NAMES:
        if shutil.which(name):
            return shutil.which(name)
    raise FileNotFoundError(f"no browser: expected one of {', '.join(NAMES)} (Debian package chromium)")


class Page:
    """One tab. `problems` gathers what its console would show in red, and `requests` what it loads."""

    def __init__(self, reader, writer):
        self.reader, self.writer, self.rest = reader, writer, b""
        self.last, self.problems, self.requests = 0, [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.call(f"{domain}.enable")

    def receive(self):
        deadline = time.monotonic() + 20
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.reader], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self.reader, 1 << 20) if ready else b""
            if not data:
                raise AssertionError("the browser does not answer")
            self.rest += data
        message, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(message)
        method, parameters = message.get("method"), message.get("params", {})
        if method in ["Runtime.exceptionThrown", "Log.entryAdded"]:
            self.problems.append(parameters)
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ["error", "warning"]:
            self.problems.append(parameters)
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        return message

    def call(self, method, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if hasattr(self, "session"):
            message["sessionId"] = self.session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, path, width=1000, height=800):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        while self.receive().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def press(self, key):
        text = {"text": " "} if key == " " else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def swipe(self, start, end):
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": start[0], "y": start[1]}])
        self.call("Input.dispatchTouchEvent", type="touchMove", touchPoints=[{"x": end[0], "y": end[1]}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])


@contextlib.contextmanager
def browser():
    """A Page of a browser that ends with the block."""
    folder = tempfile.mkdtemp(prefix="posattn-browser-")
    to_browser, from_us = os.pipe()
    from_browser, to_us = os.pipe()

    def connect():
        # Out of the way first: one of the pipes may have the other's number.
        ends = [os.dup2(to_browser, 103), os.dup2(to_us, 104)]
        for end, place in zip(ends, (3, 4)):
            os.dup2(end, place)

    process = subprocess.Popen(
        [executable(), "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
         "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
         f"--user-data-dir={folder}", "about:blank"],
        preexec_fn=connect, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    os.close(to_browser)
    os.close(to_us)
    try:
        yield Page(from_browser, from_us)
    finally:
        process.kill()
        process.wait()
        os.close(from_us)
        os.close(from_browser)
        shutil.rmtree(folder, ignore_errors=True)

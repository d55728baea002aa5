"""A page in headless Chromium, through the protocol of its developer tools: no package is needed."""

import base64
import json
import os
import socket
import struct
import subprocess
import time
import urllib.request


class Page:
    def __init__(self, program, folder, width, height):
        self.browser = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", f"--user-data-dir={folder}",
             f"--window-size={width},{height}", "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        told = os.path.join(folder, "DevToolsActivePort")
        for _ in range(300):
            if os.path.exists(told) and os.path.getsize(told):
                break
            time.sleep(0.1)
        with open(told, encoding="ascii") as file:
            port = int(file.readline())
        for _ in range(100):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
                pages = [target for target in json.load(answer) if target["type"] == "page"]
            if pages:
                break
            time.sleep(0.1)
        path = pages[0]["webSocketDebuggerUrl"].split(str(port), 1)[1]
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        self.rest = b""
        while b"\r\n\r\n" not in self.rest:
            self.rest += self.socket.recv(65536)
        self.rest = self.rest.split(b"\r\n\r\n", 1)[1]
        self.last, self.errors = 0, []
        for domain in ("Page", "Runtime", "Log"):
            self.send(domain + ".enable")
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)

    def bytes(self, count):
        while len(self.rest) < count:
            got = self.socket.recv(65536)
            if not got:
                raise RuntimeError("the browser has gone")
            self.rest += got
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def message(self):
        data = b""
        while True:
            first, second = self.bytes(2)
            size = second & 127
            if size == 126:
                [size] = struct.unpack(">H", self.bytes(2))
            elif size == 127:
                [size] = struct.unpack(">Q", self.bytes(8))
            data += self.bytes(size)
            if first & 128:
                return json.loads(data)

    def send(self, method, **parameters):
        self.last += 1
        text = json.dumps({"id": self.last, "method": method, "params": parameters}).encode()
        size = struct.pack("B", 128 | len(text)) if len(text) < 126 else struct.pack(">BH", 254, len(text)) if len(text) < 65536 \
            else struct.pack(">BQ", 255, len(text))
        self.socket.sendall(b"\x81" + size + bytes(4) + text)  # a mask of zeros
        while True:
            told = self.message()
            if told.get("id") == self.last:
                if "error" in told:
                    raise RuntimeError(f"{method}: {told['error']}")
                return told["result"]
            if told.get("method") == "Runtime.exceptionThrown" or told.get("method") == "Log.entryAdded" and \
                    told["params"]["entry"]["level"] == "error":
                self.errors.append(json.dumps(told["params"])[:500])
            if told.get("method") == "Page.javascriptDialogOpening":
                self.send("Page.handleJavaScriptDialog", accept=True)

    def run(self, script):
        """The value of an expression; a promise is waited for."""
        told = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in told:
            raise RuntimeError(f"{script}: {told['exceptionDetails']}")
        return told["result"].get("value")

    def until(self, script, seconds=30):
        end = time.monotonic() + seconds
        while not (value := self.run(script)):
            if time.monotonic() > end:
                raise RuntimeError(f"never: {script}")
            time.sleep(0.02)
        return value

    def go(self, url):
        self.send("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href.startsWith('http')")

    def close(self):
        self.browser.kill()
        self.browser.wait()

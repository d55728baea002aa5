#!/usr/bin/env python3
"""Loads a server that runs: python3 tests/soak/serve_load.py --url http://127.0.0.1:8080 [--clients 64] [--seconds 600]

Clients stream answers one after another. Some leave in the middle, some read slowly, some ask for whole answers. At the
end it prints one JSON object: what was asked and answered, the times to the first text (median, p99, worst), and, with
--pid, the server's memory in the first and the last tenth of the time. It exits with 1 where an answer was lost, a
stream ended without [DONE], or the server kept a request after its client had left.
"""

import argparse
import asyncio
import json
import random
import sys
import time
import urllib.parse
import urllib.request


class Load:
    def __init__(self, options):
        self.options = options
        url = urllib.parse.urlparse(options.url)
        self.host, self.port = url.hostname, url.port
        self.first = []  # seconds to the first text
        self.counts = {"done": 0, "left": 0, "slow": 0, "whole": 0, "busy": 0, "lost": 0}
        self.problems = []
        self.tokens = 0
        self.memory = []
        self.end = 0.0

    def request(self, rng, stream):
        words = " ".join(rng.choice("the a fox runs over hills and far away from rain".split()) for _ in range(rng.randint(3, 60)))
        body = {"prompt": words, "max_tokens": rng.randint(8, self.options.max_tokens), "stream": stream, "seed": rng.randint(0, 2**31),
                "temperature": rng.choice([0, 0.7, 1.0])}
        if stream:
            body["stream_options"] = {"include_usage": True}
        text = json.dumps(body).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
        return head.encode() + text

    async def stream(self, rng, kind):
        start = time.monotonic()
        reader, writer = await asyncio.open_connection(self.host, self.port, limit=1 << 16)
        try:
            writer.write(self.request(rng, kind != "whole"))
            await writer.drain()
            status = int((await reader.readuntil(b"\r\n")).split()[1])
            if status in (429, 503):
                self.counts["busy"] += 1
                await asyncio.sleep(0.5)
                return
            if status != 200:
                raise RuntimeError(f"status {status}")
            leaves_after = rng.randint(1, 20) if kind == "left" else None
            events = 0
            data = b""
            while True:
                piece = await reader.read(256 if kind == "slow" else 65536)
                if not piece:
                    break
                data += piece
                found = piece.count(b"data: ")
                if found and events == 0 and kind != "whole":
                    self.first.append(time.monotonic() - start)
                events += found
                if leaves_after is not None and events >= leaves_after:
                    if rng.random() < 0.5:
                        writer.transport.abort()  # a client that is killed
                    self.counts["left"] += 1
                    return
                if kind == "slow":
                    await asyncio.sleep(0.02)
            if kind == "whole":
                body = data.split(b"\r\n\r\n", 1)[1]
                self.tokens += json.loads(body)["usage"]["completion_tokens"]
                self.counts["whole"] += 1
            else:
                if b"data: [DONE]" not in data:
                    raise RuntimeError("a stream without an end")
                at = data.rfind(b'"completion_tokens":')
                self.tokens += int(data[at + 20:].split(b",")[0])
                self.counts["slow" if kind == "slow" else "done"] += 1
        finally:
            writer.close()

    async def client(self, number):
        rng = random.Random(number)
        while time.monotonic() < self.end:
            kind = rng.choices(["done", "left", "slow", "whole"], [6, 2, 1, 1])[0]
            try:
                await asyncio.wait_for(self.stream(rng, kind), 120)
            except Exception as error:  # noqa: every way to lose an answer counts
                self.counts["lost"] += 1
                self.problems.append(f"{kind}: {error!r}"[:200])

    async def watch(self):
        while time.monotonic() < self.end:
            if self.options.pid:
                with open(f"/proc/{self.options.pid}/status", encoding="ascii") as status:
                    for line in status:
                        if line.startswith("VmRSS:"):
                            self.memory.append(int(line.split()[1]))
            await asyncio.sleep(max(0.2, self.options.seconds / 200))

    async def run(self):
        self.end = time.monotonic() + self.options.seconds
        await asyncio.gather(self.watch(), *(self.client(i) for i in range(self.options.clients)))

    def active(self):
        """Requests that the server still answers."""
        with urllib.request.urlopen(self.options.url + "/metrics") as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith("caldera_requests_active "):
                    return int(line.split()[1])
        return -1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--max-tokens", type=int, default=120)
    parser.add_argument("--pid", type=int, help="of the server, to watch its memory")
    options = parser.parse_args()
    load = Load(options)
    asyncio.run(load.run())
    left = 1
    for _ in range(100):
        left = load.active()
        if left == 0:
            break
        time.sleep(0.1)
    first = sorted(load.first)
    tenth = max(1, len(load.memory) // 10)
    report = {"clients": options.clients, "seconds": options.seconds, "requests": load.counts, "tokens": load.tokens,
              "first_text_seconds": {"median": first[len(first) // 2], "p99": first[int(len(first) * 0.99)], "worst": first[-1]} if first else None,
              "memory_kb": {"first_tenth": max(load.memory[:tenth]), "last_tenth": max(load.memory[-tenth:])} if load.memory else None,
              "still_active": left, "problems": load.problems[:5]}
    print(json.dumps(report, indent=1))
    return 1 if load.counts["lost"] or left else 0


if __name__ == "__main__":
    sys.exit(main())

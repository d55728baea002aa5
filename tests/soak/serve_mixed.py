#!/usr/bin/env python3
"""Serves a model and asks everything of it at once, for as long as it is told to:

    python3 tests/soak/serve_mixed.py --caldera build/release/bin/caldera --model DIR --adapter DIR [--clients 64] [--seconds 1800]

The model needs a chat template that names tools. Clients ask for texts, conversations, schemas and calls of tools, whole and
as streams, in the words of four APIs, of three models (of which two may be open) and of adapters that are loaded, replaced and
unloaded meanwhile; some leave in the middle or are killed, some read slowly, some send half of a request or what is none. The
server reads its keys, adapters and models again every few seconds. At the end it prints one JSON object. It exits with 1 where
an answer was lost or is not what was asked for, where something is still held once all have left, or where memory grew by
more than --growth from the second tenth of the time to the last.
"""

import argparse
import asyncio
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

WORDS = "the a fox runs over hills and far away from rain".split()
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 6}, "age": {"type": "integer", "minimum": 0}},
          "required": ["name", "age"], "additionalProperties": False}
TOOL = {"name": "add", "parameters": SCHEMA}


class Refused(Exception):
    """The server told the client to come again, as it may."""


def check_value(text, ended):
    """A document of SCHEMA; where the text was cut off at its last token it is the beginning of one."""
    if not ended:
        assert text == "" or text[0] in "{", text
        return
    value = json.loads(text)
    assert list(value) == ["name", "age"] and len(value["name"]) <= 6 and value["age"] >= 0, value


class Kind:
    """A kind of request: its path and body, what the end of its stream looks like, and what its whole answer must be."""

    def __init__(self, path, body, check, end=b"data: [DONE]"):
        self.path, self.body, self.check, self.end = path, body, check, end


def kinds(rng, most):
    words = " ".join(rng.choice(WORDS) for _ in range(rng.randint(2, 30)))
    tokens = rng.randint(1, most)
    sampling = {"temperature": rng.choice([0, 0.7, 1.0]), "top_p": rng.choice([1, 0.9]), "seed": rng.randint(0, 2**31)}
    turns = [{"role": "user", "content": words}]
    sized = {"max_tokens": tokens, **sampling}
    seedless = {name: value for name, value in sized.items() if name != "seed"}  # Anthropic has none

    def completion(answer):
        choice = answer["choices"][0]
        assert choice["text"].startswith(words), (words, choice["text"])  # somebody else's answer else
        assert 0 < answer["usage"]["completion_tokens"] <= tokens, answer

    def chat(answer):
        assert answer["choices"][0]["message"]["role"] == "assistant", answer
        assert 0 < answer["usage"]["completion_tokens"] <= tokens, answer

    def schema(answer):
        choice = answer["choices"][0]
        check_value(choice["message"]["content"], choice["finish_reason"] == "stop")

    def tool(answer):
        choice = answer["choices"][0]
        calls = choice["message"].get("tool_calls")
        if calls:
            assert calls[0]["function"]["name"] == "add", calls
            check_value(calls[0]["function"]["arguments"], choice["finish_reason"] == "tool_calls")
        else:
            assert choice["finish_reason"] == "length", choice

    def message(answer):
        assert answer["type"] == "message" and answer["usage"]["output_tokens"] <= tokens, answer

    def response(answer):
        assert answer["object"] == "response" and answer["status"] in ("completed", "incomplete"), answer

    def ollama(answer):
        assert answer["done"] and answer["eval_count"] <= tokens, answer

    of_tools = [{"type": "function", "function": TOOL}]
    shape = {"type": "json_schema", "json_schema": {"name": "p", "schema": SCHEMA}}
    chats = "/v1/chat/completions"
    return {
        "completion": Kind("/v1/completions", {"prompt": words, "echo": True, **sized}, completion),
        "scored": Kind("/v1/completions", {"prompt": words, "echo": True, "logprobs": 2, **sized}, completion),
        "chat": Kind(chats, {"messages": turns, **sized}, chat),
        # Beyond the context of 512 tokens.
        "shifted": Kind("/v1/completions", {"prompt": words, "context_shift": True, "ignore_eos": True, **sized, "max_tokens": 520},
                        lambda a: a["usage"]["completion_tokens"] == 520 or 1 / 0),
        "begun": Kind(chats, {"messages": [*turns, {"role": "assistant", "content": words}], "continue_final_message": True,
                              "mirostat": 2, **sized}, chat),
        "choices": Kind(chats, {"messages": turns, "n": 3, "logprobs": True, "top_logprobs": 2, **sized}, lambda a: len(a["choices"]) == 3 or 1 / 0),
        "schema": Kind(chats, {"messages": turns, "response_format": shape, **sized, "max_tokens": 90}, schema),
        "tool": Kind(chats, {"messages": turns, "tools": of_tools, "tool_choice": "required", **sized, "max_tokens": 140}, tool),
        "auto": Kind(chats, {"messages": turns, "tools": of_tools, **sized}, chat),
        "regex": Kind("/v1/completions", {"prompt": words, "structured_outputs": {"regex": "(ab|c)+d"}, **sized}, lambda a: a["choices"][0]),
        "message": Kind("/v1/messages", {"messages": turns, **seedless}, message, b"event: message_stop"),
        "response": Kind("/v1/responses", {"input": words, "max_output_tokens": tokens, **sampling}, response, b"event: response."),
        "ollama": Kind("/api/chat", {"messages": turns, "options": {"num_predict": tokens, **sampling}}, ollama, b'"done":true'),
    }


class Mixed:
    def __init__(self, options, place):
        self.options, self.place = options, place
        self.counts = collections.Counter()
        self.problems = []
        self.memory = []
        self.end = 0.0
        self.models = [8, 3, 0 if "adapters" in options.leave_out else 3] + [0 if "models" in options.leave_out else 1] * 2

    # ---- the server --------------------------------------------------------------------------------------------------

    def serve(self):
        for name in ("first", "second", "third"):
            shutil.copytree(self.options.model, f"{self.place}/{name}")
        shutil.copytree(self.options.adapter, f"{self.place}/adapter")
        self.write_keys(0)
        command = [self.options.caldera, "serve", "--json", "--device", "cpu", "--port", "0", "--threads", str(self.options.threads),
                   "--model", f"first={self.place}/first", "--model", f"second={self.place}/second", "--model",
                   f"third={self.place}/third", "--max-models", "2", "--adapter", f"poet={self.place}/adapter", "--adapter-updates",
                   "--api-keys", f"{self.place}/keys.json", "--max-batch", "16", "--cache-positions", str(self.options.cache_positions)]
        self.log = open(f"{self.place}/server.log", "w", encoding="utf-8")  # noqa: until the end
        self.server = subprocess.Popen(command + self.options.flags.split(), stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.url = json.loads(self.server.stdout.readline())["url"]
        self.host, self.port = self.url.split("//")[1].split(":")

    def write_keys(self, number):
        keys = [{"name": "main", "key": "alpha"}, {"name": "other", "key": f"beta{number}"}]
        with open(f"{self.place}/keys.new", "w", encoding="utf-8") as file:
            json.dump({"keys": keys}, file)
        os.replace(f"{self.place}/keys.new", f"{self.place}/keys.json")

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers={"Authorization": "Bearer alpha"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.read().decode()

    def metric(self, name):
        for line in self.ask("/metrics").splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        return -1

    def held(self):
        """What the server's process has: kilobytes, threads, open files."""
        with open(f"/proc/{self.server.pid}/status", encoding="ascii") as status:
            found = {line.split(":")[0]: line.split()[1] for line in status if line.startswith(("VmRSS", "Threads"))}
        return int(found["VmRSS"]), int(found["Threads"]), len(os.listdir(f"/proc/{self.server.pid}/fd"))

    # ---- clients -----------------------------------------------------------------------------------------------------

    def head(self, path, size):
        return (f"POST {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nAuthorization: Bearer alpha\r\n"
                f"Content-Length: {size}\r\nConnection: close\r\n\r\n").encode()

    async def one(self, rng):
        name, kind = rng.choice(list(kinds(rng, self.options.max_tokens).items()))
        body = dict(kind.body)
        body["model"] = rng.choices(["first", "poet", "guest", "second", "third"], self.models)[0]
        manner = rng.choices(["stream", "whole", "leave", "kill", "slow", "half", "damaged"], [8, 5, 2, 2, 1, 0.5, 0.5])[0]
        body["stream"] = manner not in ("whole", "damaged")
        text = json.dumps(body).encode()
        if manner == "damaged":
            text = text[: rng.randint(0, len(text) - 1)]
        reader, writer = await asyncio.open_connection(self.host, int(self.port), limit=1 << 16)
        try:
            writer.write(self.head(kind.path, len(text)))
            if manner == "half":
                writer.write(text[: len(text) // 2])
                await writer.drain()
                await asyncio.sleep(rng.random())
                self.counts["half"] += 1
                return
            writer.write(text)
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            status = int(head.split()[1])
            if status != 200:
                answer = await reader.read()
                if status == 400 and manner == "damaged":
                    self.counts["damaged"] += 1
                    return
                if status == 404 and body["model"] == "guest":
                    raise Refused("no adapter of that name now")
                if status == 429 or (status == 503 and b"models" in answer):
                    raise Refused(answer.decode()[:100])
                raise RuntimeError(f"status {status}: {answer[:200]!r}")
            await self.read(rng, reader, writer, name, kind, manner)
        finally:
            writer.close()

    async def read(self, rng, reader, writer, name, kind, manner):
        leaves_after = rng.randint(1, 12) if manner in ("leave", "kill") else None
        data, events = b"", 0
        while True:
            piece = await reader.read(200 if manner == "slow" else 65536)
            if not piece:
                break
            data += piece
            events += piece.count(b"\n\n") or 1
            if leaves_after is not None and events >= leaves_after:
                if manner == "kill":
                    writer.transport.abort()
                self.counts[manner] += 1
                return
            if manner == "slow":
                await asyncio.sleep(0.01)
        if manner == "whole":
            kind.check(json.loads(data))
        else:
            assert kind.end in data[-4000:], f"a stream without an end: {data[-200:]!r}"
            assert b'"error":' not in data.replace(b'"error":null', b""), data[-400:]
        self.counts[f"{name}"] += 1
        self.counts["slow" if manner == "slow" else "answers"] += 1

    async def client(self, number):
        rng = random.Random(self.options.seed * 1000 + number)
        while time.monotonic() < self.end:
            try:
                await asyncio.wait_for(self.one(rng), 180)
            except Refused:
                self.counts["refused"] += 1
                await asyncio.sleep(0.2)
            except Exception as error:  # noqa: every way to lose an answer counts
                self.counts["lost"] += 1
                self.problems.append(repr(error)[:300])

    # ---- what happens meanwhile ----------------------------------------------------------------------------------------

    async def in_turns(self, seconds, act):
        loop, turn = asyncio.get_running_loop(), 0
        while time.monotonic() < self.end:
            try:
                await loop.run_in_executor(None, act, turn)
            except Exception as error:  # noqa
                self.counts["lost"] += 1
                self.problems.append(f"{act.__name__}: {error!r}"[:300])
            turn += 1
            await asyncio.sleep(seconds)

    def change_adapter(self, turn):
        load = {"lora_name": "guest", "lora_path": f"{self.place}/adapter"}
        if turn % 3 == 0:
            self.ask("/v1/load_lora_adapter", load)
        elif turn % 3 == 1:
            self.ask("/v1/load_lora_adapter", {**load, "load_inplace": True})
        else:
            self.ask("/v1/unload_lora_adapter", {"lora_name": "guest"})
        self.counts["adapters changed"] += 1

    def reload(self, turn):
        self.write_keys(turn)
        for touched in ("adapter/adapter_model.safetensors", "first/config.json")[: 1 + turn % 2]:
            os.utime(f"{self.place}/{touched}")
        self.server.send_signal(signal.SIGHUP)
        self.counts["reloads"] += 1

    def look(self, _):
        for path in ("/", "/health", "/v1/models", "/api/tags"):
            self.ask(path)
        self.memory.append(self.held()[0])

    async def run(self):
        self.end = time.monotonic() + self.options.seconds
        acts = [self.client(i) for i in range(self.options.clients)]
        if "adapters" not in self.options.leave_out:
            acts.append(self.in_turns(0.5, self.change_adapter))
        if "reloads" not in self.options.leave_out:
            acts.append(self.in_turns(5, self.reload))
        await asyncio.gather(*acts, self.in_turns(max(0.2, self.options.seconds / 300), self.look))

    # ---- the end -----------------------------------------------------------------------------------------------------

    def finish(self):
        """What is wrong once all have left."""
        wrong = []
        left = {}
        for _ in range(300):
            left = {name: self.metric("caldera_" + name) for name in ("requests_active", "batch_running", "cache_pages_in_use")}
            if not any(value > 0 for value in left.values()):
                break
            time.sleep(0.1)
        if any(value > 0 for value in left.values()):
            wrong.append(f"still held: {left}")
        self.server.send_signal(signal.SIGTERM)
        try:
            if self.server.wait(60) != 0:
                wrong.append(f"the server ended with {self.server.returncode}")
        except subprocess.TimeoutExpired:
            self.server.kill()
            wrong.append("the server did not end")
        tenth = max(1, len(self.memory) // 10)
        early, late = max(self.memory[tenth:2 * tenth] or [0]), max(self.memory[-tenth:] or [0])
        if self.options.growth >= 0 and late > early * (1 + self.options.growth):
            wrong.append(f"memory grew from {early} to {late} kB")
        if self.counts["lost"]:
            wrong.append(f"{self.counts['lost']} answers were lost")
        if not self.counts["answers"]:
            wrong.append("nothing was answered")
        report = {"clients": self.options.clients, "seconds": self.options.seconds, "counts": dict(self.counts),
                  "memory_kb": [max(self.memory[i * tenth:(i + 1) * tenth] or [0]) for i in range(10)], "wrong": wrong, "problems": self.problems[:8]}
        print(json.dumps(report, indent=1))
        return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--caldera", required=True, help="the program")
    parser.add_argument("--model", required=True)
    parser.add_argument("--adapter", required=True)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--max-tokens", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cache-positions", type=int, default=4096)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--growth", type=float, default=0.05, help="of memory that is allowed; -1: any")
    parser.add_argument("--flags", default="", help="more flags of the server, with spaces between them")
    parser.add_argument("--leave-out", default="", help="adapters, reloads, models: what does not change")
    parser.add_argument("--log", help="where the server's log goes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        mixed = Mixed(options, place)
        mixed.serve()
        try:
            asyncio.run(mixed.run())
            code = mixed.finish()
        finally:
            mixed.server.kill()
            mixed.log.close()
            if options.log:
                shutil.copy(f"{place}/server.log", options.log)
    return code


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""What a call of the model endpoints costs beside the same call of the provider itself.

    python3 bench/gateway.py [PROGRAM] [PEOPLE]

Starts `tale dev` on a directory of its own and a provider in another process, and makes PEOPLE (25)
people with a key each, because a person has 120 calls a minute with bursts of 200 and 8 at once. Every
call is checked, held, charged and answered as in production. With 125 people the last part holds 1,000
streams open. See bench/gateway.md.
"""

import asyncio
import http.client
import json
import multiprocessing
import os
import pathlib
import socket
import sys
import tempfile
import threading
import time

sys.argv, arguments = sys.argv[:1], sys.argv[1:]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import start  # noqa: E402  (how the program is started and stopped)

PROGRAM = pathlib.Path(arguments[0] if arguments else start.ROOT / "target/release/tale").resolve()
PEOPLE = int(arguments[1]) if len(arguments) > 1 else 25
PASSWORD = "Blue-Kettle-42"
TICK = os.sysconf("SC_CLK_TCK")

WHOLE = json.dumps(
    {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "fake",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello there."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
    }
).encode()


def chunk(delta, finish=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    data = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "fake", "choices": [choice]}
    return b"data: " + json.dumps(data).encode() + b"\n\n"


class Provider(asyncio.Protocol):
    """Answers chat completions; a stream has 20 tokens a second for as long as `x-tokens` in the prompt says."""

    def connection_made(self, transport):
        self.transport, self.held = transport, b""

    def connection_lost(self, _):
        self.transport = None

    def data_received(self, data):
        self.held += data
        head, separator, body = self.held.partition(b"\r\n\r\n")
        if not separator:
            return
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        if len(body) < length:
            return
        self.held = body[length:]
        if b'"stream":true' not in body and b'"stream": true' not in body:
            self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(WHOLE), WHOLE))
            return
        tokens = int(body.split(b"tokens=")[1].split(b";")[0])
        self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        asyncio.get_running_loop().create_task(self.stream(tokens))

    def send(self, data):
        if self.transport:
            self.transport.write(b"%x\r\n%s\r\n" % (len(data), data))

    async def stream(self, tokens):
        self.send(chunk({"role": "assistant", "content": ""}))
        for at in range(tokens):
            if not self.transport:
                return
            self.send(chunk({"content": f"t{time.perf_counter():.6f} "}))
            if at + 1 < tokens:
                await asyncio.sleep(0.05)
        self.send(chunk({}, "stop"))
        self.send(b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}\n\n')
        self.send(b"data: [DONE]\n\n")
        if self.transport:
            self.transport.write(b"0\r\n\r\n")


def provide(port):
    async def serve():
        server = await asyncio.get_running_loop().create_server(Provider, "127.0.0.1", port, backlog=4096)
        await server.serve_forever()

    asyncio.run(serve())


class Site:
    """The installation, with its people."""

    def __init__(self, port, upstream):
        self.port = port
        form = {"name": "Ada", "email": "ada@acme.test", "password": PASSWORD, "organizationName": "Acme"}
        answer, cookie = self.call("POST", "/api/app/setup", form)
        self.org = answer["organization"]["id"]
        model = {"id": "m", "contextWindow": 128_000, "maxOutputTokens": 4_096, "purposes": ["chat"], "pricing": {"input": 1.0, "output": 2.0}}
        provider = {"name": "p", "displayName": "P", "apiFormat": "openai", "baseUrl": f"http://127.0.0.1:{upstream}/v1", "apiKey": "sk-0123456789ab", "models": [model]}
        self.call("POST", self.at("providers"), provider, cookie)
        self.call("PUT", self.at("governance/policies/model_access"), {"value": {"modelApi": {"enabled": True}}}, cookie)
        rules = [{"scope": "org", "period": "monthly", "maxTokens": 10**12}, {"scope": "default", "period": "daily", "maxCostCents": 10**9}]
        self.call("PUT", self.at("governance/policies/budgets"), {"value": {"rules": rules}}, cookie)
        self.keys = [self.key(cookie)]
        for at in range(1, PEOPLE):
            email = f"p{at}@acme.test"
            made, _ = self.call("POST", self.at("members"), {"email": email, "name": "P", "role": "developer", "password": PASSWORD}, cookie)
            _, own = self.call("POST", "/api/auth/sign-in/email", {"email": email, "password": PASSWORD})
            self.keys.append(self.key(own))

    def at(self, path):
        return f"/api/app/{path}?orgId={self.org}"

    def key(self, cookie):
        return self.call("POST", self.at("api-keys"), {"name": "bench", "expiresInDays": 1}, cookie)[0]["key"]

    def call(self, method, path, body, cookie=None):
        connection = http.client.HTTPConnection("localhost", self.port)
        headers = {"origin": f"http://localhost:{self.port}", "host": f"localhost:{self.port}", "content-type": "application/json"}
        if cookie:
            headers["cookie"] = cookie
        connection.request(method, path, json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            sys.exit(f"{method} {path}: {answer.status} {text[:300]}")
        return json.loads(text or b"null"), (answer.getheader("set-cookie") or "").split(";")[0]


def body(model, size=0, tokens=None):
    text = "x" * size if tokens is None else f"tokens={tokens};"
    more = {} if tokens is None else {"stream": True}
    return json.dumps({"model": model, "max_tokens": 50, "messages": [{"role": "user", "content": text or "hi"}], **more}).encode()


class Caller:
    """One connection that asks again and again."""

    def __init__(self, port, path, key):
        self.connection = http.client.HTTPConnection("127.0.0.1", port)
        self.path, self.headers = path, {"authorization": f"Bearer {key}", "content-type": "application/json"}
        self.connection.connect()
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, data):
        begun = time.perf_counter()
        self.connection.request("POST", self.path, data, self.headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            sys.exit(f"{answer.status} {text[:300]}")
        return time.perf_counter() - begun

    def first_byte(self, data):
        """Delay of the first token after the provider wrote it."""
        self.connection.request("POST", self.path, data, self.headers)
        answer = self.connection.getresponse()
        delay = None
        for line in answer:
            if delay is None and b'"t' in line:
                delay = time.perf_counter() - float(line.split(b'"t')[1].split(b" ")[0])
        return delay


def tree(pid):
    """The process and everything below it."""
    found, parents = [pid], {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
            parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
        except OSError:
            pass
    for one in found:
        found.extend(parents.get(one, []))
    return found


def cpu(pids):
    total = 0
    for pid in pids:
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        except OSError:
            pass
    return total / TICK * 1000


def memory(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024


def paced(callers, data, rate, count):
    """Calls at fixed times, by whoever's turn it is."""
    times, lock, begun = [], threading.Lock(), time.perf_counter() + 0.1
    turns = iter(range(count))

    def work(caller):
        while True:
            with lock:
                turn = next(turns, None)
            if turn is None:
                return
            time.sleep(max(0, begun + turn / rate - time.perf_counter()))
            took = caller.ask(data)
            with lock:
                times.append(took)

    threads = [threading.Thread(target=work, args=(caller,)) for caller in callers]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return sorted(times)


def at(times, part):
    return times[min(len(times) - 1, int(len(times) * part))] * 1000


async def hold_streams(port, keys, pid):
    """Eight streams for each key, and how late their tokens come."""
    delays, open_now, first = [], 0, asyncio.Event()
    wanted = 8 * len(keys)

    async def one(key):
        nonlocal open_now
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        data = body("p/m", tokens=400)
        writer.write(b"POST /api/v1/openai/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer %s\r\ncontent-length: %d\r\n\r\n%s" % (key.encode(), len(data), data))
        counted = False
        while line := await reader.readline():
            if b'"t' in line:
                if not counted:
                    counted, open_now = True, open_now + 1
                    if open_now == wanted:
                        first.set()
                if first.is_set():
                    delays.append(time.perf_counter() - float(line.split(b'"t')[1].split(b" ")[0]))
            elif line.startswith(b"HTTP/1.1") and b"200" not in line:
                sys.exit(line)
        writer.close()

    idle = memory(pid)
    gate = asyncio.Semaphore(50)

    async def spaced(key):
        async with gate:
            task = asyncio.create_task(one(key))
            await asyncio.sleep(0.05)
        await task

    tasks = [asyncio.create_task(spaced(key)) for key in keys for _ in range(8)]
    await asyncio.wait_for(first.wait(), 120)
    before, begun = cpu([pid]), time.perf_counter()
    await asyncio.sleep(5)
    used, seconds = cpu([pid]) - before, time.perf_counter() - begun
    full = memory(pid)
    [task.cancel() for task in tasks]
    delays.sort()
    print(f"{wanted} streams of 20 tokens/s: {full:.0f} MiB resident, {idle:.0f} MiB before; {(full - idle) * 1024 / wanted:.0f} KiB a stream")
    print(f"  delay of a token p50 {at(delays, 0.5):.2f} ms, p99 {at(delays, 0.99):.2f} ms over {len(delays)} tokens; {used / seconds / 10:.0f} % of a core")


def main():
    upstream = start.free_port()
    provider = multiprocessing.Process(target=provide, args=(upstream,), daemon=True)
    provider.start()
    os.environ["TALE_ALLOW_PRIVATE_PROVIDER_HOSTS"] = "1"
    os.environ["SANDBOX_LLM_GATEWAY_CUSTOM_PROVIDER_CONCURRENCY"] = "2000"
    with tempfile.TemporaryDirectory(prefix="tale-bench-") as folder:
        start.PROGRAM = PROGRAM
        log = open(pathlib.Path(folder) / "log", "w")
        program, port, _ = start.start_tale(f"{folder}/data", log)
        try:
            site = Site(port, upstream)
            path = "/api/v1/openai/chat/completions"
            through = [Caller(port, path, key) for key in site.keys[:8]]
            direct = [Caller(upstream, "/v1/chat/completions", "none") for _ in range(8)]
            family = tree(program.pid)
            for name, size in (("small", 0), ("64 KiB", 65_536)):
                paced(through, body("p/m", size), 1e9, 80)
                before = cpu([program.pid]), cpu(family)
                paced(through, body("p/m", size), 1e9, 480)
                own, all_of_it = cpu([program.pid]) - before[0], cpu(family) - before[1]
                print(f"{name} body: {own / 480:.3f} CPU-ms a call in Tale, {all_of_it / 480:.3f} with its Postgres")
            through = [Caller(port, path, key) for key in site.keys[8:24]]
            for name, callers, model in (("direct", direct, "m"), ("through Tale", through, "p/m")):
                paced(callers, body(model), 200, 100)
                times = paced(callers, body(model), 200, 1_200)
                print(f"200 calls/s, {name}: p50 {at(times, 0.5):.2f} ms, p99 {at(times, 0.99):.2f} ms")
            for name, caller, model in (("direct", direct[0], "m"), ("through Tale", Caller(port, path, site.keys[24]), "p/m")):
                delays = sorted(caller.first_byte(body(model, tokens=1)) for _ in range(100))
                print(f"first token after the provider wrote it, {name}: p50 {at(delays, 0.5):.2f} ms")
            time.sleep(30)
            asyncio.run(hold_streams(port, site.keys, program.pid))
        finally:
            provider.terminate()
            start.stop(program)


main()

#!/usr/bin/env python3
"""What idle live-update streams and idle connections cost the program, and how fast a hint reaches them.

    python3 bench/events.py [PROGRAM] [STREAMS]

Starts `tale dev` on a directory of its own, opens STREAMS (10,000) connections to `/events` as one
person, then changes one thing and waits until every stream has told it. Needs STREAMS + 100 open
files (`ulimit -n`). See bench/events.md.
"""

import asyncio
import http.client
import json
import os
import pathlib
import resource
import shutil
import statistics
import sys
import tempfile
import time

sys.argv, arguments = sys.argv[:1], sys.argv[1:]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import start  # noqa: E402  (how the program is started and stopped)

PROGRAM = pathlib.Path(arguments[0] if arguments else start.ROOT / "target/release/tale").resolve()
STREAMS = int(arguments[1]) if len(arguments) > 1 else 10_000
AT_ONCE = 100


def kib(pid):
    """Memory that belongs to the process alone: what the kernel calls anonymous."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    sys.exit("this kernel does not tell RssAnon")


class Stream(asyncio.Protocol):
    """Sends one request and notes what it is waiting for."""

    def __init__(self, request, word):
        self.request, self.word = request, word
        self.seen = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport
        transport.write(self.request)

    def data_received(self, data):
        if self.word in data and not self.seen.done():
            self.seen.set_result(time.perf_counter())

    def connection_lost(self, _):
        if not self.seen.done():
            self.seen.set_exception(ConnectionError("the server closed the connection"))

    def expect(self, word):
        self.word, self.seen = word, asyncio.get_running_loop().create_future()


async def open_all(port, request, word, count):
    loop, streams, gate = asyncio.get_running_loop(), [], asyncio.Semaphore(AT_ONCE)

    async def one():
        async with gate:
            _, stream = await loop.create_connection(lambda: Stream(request, word), "127.0.0.1", port)
            await stream.seen
            streams.append(stream)

    await asyncio.gather(*(one() for _ in range(count)))
    return streams


def close_all(streams):
    for stream in streams:
        stream.transport.abort()


async def settle(pid):
    """Memory once it has not grown for a second."""
    before = kib(pid)
    while True:
        await asyncio.sleep(1)
        now = kib(pid)
        if now <= before + 64:
            return now
        before = now


def call(port, method, path, body=None, cookie=""):
    connection = http.client.HTTPConnection("localhost", port, timeout=60)
    headers = {"origin": f"http://localhost:{port}", "cookie": cookie}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status < 300, (method, path, answer.status, text)
    return answer.getheader("set-cookie", "").split(";")[0], json.loads(text) if text else None


async def measure(tale, port):
    body = {"name": "Bench", "email": "bench@example.com", "password": "Harbour-lantern-42"}
    cookie, _ = call(port, "POST", "/api/auth/sign-up/email", body)
    org = call(port, "POST", "/api/app/organizations", {"name": "Bench"}, cookie)[1]["id"]
    await asyncio.sleep(2)
    host = f"host: localhost:{port}\r\n"
    ping = f"GET /ping HTTP/1.1\r\n{host}\r\n".encode()
    events = f"GET /events?orgId={org} HTTP/1.1\r\n{host}cookie: {cookie}\r\n\r\n".encode()
    # A first round warms pools and allocator, so that the second tells what one more costs.
    close_all(await open_all(port, ping, b"pong", 200))
    close_all(await open_all(port, events, b"hello", 200))
    await asyncio.sleep(2)
    idle = await settle(tale.pid)
    begun = time.perf_counter()
    connections = await open_all(port, ping, b"pong", STREAMS)
    took = time.perf_counter() - begun
    print(f"{STREAMS} idle connections: {(await settle(tale.pid) - idle) / STREAMS:.1f} KiB each; all were open after {took:.1f} s")
    close_all(connections)
    await asyncio.sleep(2)
    idle = min(idle, await settle(tale.pid))
    begun = time.perf_counter()
    streams = await open_all(port, events, b"hello", STREAMS)
    took = time.perf_counter() - begun
    print(f"{STREAMS} idle streams: {(await settle(tale.pid) - idle) / STREAMS:.1f} KiB each; all were open after {took:.1f} s")
    cpu, begun = start.cpu_ms(tale.pid), time.perf_counter()
    await asyncio.sleep(30)
    print(f"CPU of the program while they are idle: {(start.cpu_ms(tale.pid) - cpu) / (time.perf_counter() - begun):.1f} ms per second")
    for stream in streams:
        stream.expect(b"hint")
    begun = time.perf_counter()
    await asyncio.to_thread(call, port, "PATCH", f"/api/app/organizations/{org}", {"name": "Bench again"}, cookie)
    told = sorted(seen - begun for seen in await asyncio.gather(*(stream.seen for stream in streams)))
    print(f"a change reached the first stream after {told[0] * 1000:.0f} ms, half of them after {statistics.median(told) * 1000:.0f} ms, all after {told[-1] * 1000:.0f} ms")
    close_all(streams)


def main():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    start.PROGRAM = PROGRAM
    home = tempfile.mkdtemp(prefix="tale-bench-")
    # The private Postgres runs as another person when we are root.
    os.chmod(home, 0o755)
    try:
        with open(pathlib.Path(home) / "log", "w") as log:
            tale, port, _ = start.start_tale(str(pathlib.Path(home) / "data"), log)
            try:
                asyncio.run(measure(tale, port))
            finally:
                start.stop(tale)
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()

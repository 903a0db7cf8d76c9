#!/usr/bin/env python3
"""Time of `tale dev` until ready beside `pg_ctl -w start` of the same cluster, and idle memory.

    python3 bench/start.py [PROGRAM] [ROUNDS]

The rounds alternate between the two, so that what else runs on the machine hits both. The first
start, which creates everything, is not counted. See bench/start.md.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
POSTGRES = ROOT / ".cache/postgres/18.6.3"
PROGRAM = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/release/tale").resolve()
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 9
# Each one needs 19 MiB for its password; none of that may stay.
SIGN_INS = 8
DOCUMENTS = 100
PAGE = os.sysconf("SC_PAGE_SIZE")


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def start_tale(home, log):
    """The running program, its port and how many seconds it took to print that it is ready."""
    port, begun = free_port(), time.perf_counter()
    tale = subprocess.Popen(
        [PROGRAM, "dev", "--port", str(port), "--data-dir", home],
        stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, "TALE_EMBEDDED_POSTGRES_DIR": str(POSTGRES)},
    )
    for line in tale.stdout:
        if line.startswith("ready "):
            return tale, port, time.perf_counter() - begun
    sys.exit(f"{PROGRAM} did not become ready; see {log.name}")


def stop(tale):
    tale.send_signal(signal.SIGTERM)
    tale.wait(60)


def pg_ctl(cluster, *arguments):
    """Seconds that pg_ctl took, as the owner of the cluster."""
    owner = cluster.stat()
    switch = {} if os.geteuid() else {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
    begun = time.perf_counter()
    subprocess.run([POSTGRES / "bin/pg_ctl", "-s", "-w", "-D", cluster, *arguments], check=True, cwd="/",
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **switch)
    return time.perf_counter() - begun


def call(port, method, path, body=None, **headers):
    """The cookie that an answer sets, if any, and its body."""
    site = f"http://localhost:{port}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(site + path, data, {"content-type": "application/json", "origin": site, **headers}, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        text = answer.read()
        return answer.headers.get("set-cookie", "").split(";")[0], json.loads(text) if text else None


def sign(port, door, **more):
    body = {"email": "bench@example.com", "password": "Harbour-lantern-42", **more}
    return call(port, "POST", f"/api/auth/{door}/email", body)[0]


def index_documents(port):
    """Uploads DOCUMENTS texts of some pages each and waits until the last one is indexed."""
    cookie = {"cookie": sign(port, "sign-in")}
    org = call(port, "POST", "/api/app/organizations", {"name": "Bench"}, **cookie)[1]["id"]
    key = call(port, "POST", f"/api/app/api-keys?orgId={org}", {"name": "bench", "expiresInDays": 1}, **cookie)[1]["key"]
    bearer, waiting = {"authorization": f"Bearer {key}"}, []
    words = "harbour lantern invoice meadow quarterly bridge copper letter warranty engine".split()
    for number in range(DOCUMENTS):
        text = "".join(f"Paragraph {line} of file {number}: " + " ".join(words[(line * n + number) % 10] for n in range(1, 60)) + ".\n\n"
                       for line in range(60)).encode()
        upload = {"fileName": f"file {number}.txt", "contentType": "text/plain", "size": len(text)}
        slot = call(port, "POST", f"/api/app/uploads?orgId={org}", upload, **cookie)[1]
        put = urllib.request.Request(slot["url"], text, slot["headers"], method=slot["method"])
        urllib.request.urlopen(put, timeout=30).read()
        waiting.append(call(port, "POST", "/api/v1/documents", {"fileId": slot["fileId"]}, **bearer)[1]["id"])
    while waiting:
        # Slow enough for the limit of requests.
        time.sleep(0.5)
        if call(port, "GET", f"/api/v1/documents/{waiting[0]}", **bearer)[1]["indexing"]["status"] == "completed":
            waiting.pop(0)
            continue
        time.sleep(0.5)


def resident_mib(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / 2**20


def cpu_ms(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def main():
    # Not below a private directory: pg_ctl runs as the cluster's owner here, without our rights.
    home = pathlib.Path(tempfile.mkdtemp(prefix="tale-bench-"))
    home.chmod(0o755)
    log = open(home / "log", "w")
    try:
        data = home / "data"
        tale, port, first = start_tale(data, log)
        sign(port, "sign-up", name="Bench")
        stop(tale)
        data.chmod(0o755)
        cluster = data / "postgres/cluster"
        ours, theirs, cpu = [], [], []
        for _ in range(ROUNDS):
            tale, _, seconds = start_tale(data, log)
            ours.append(seconds)
            cpu.append(cpu_ms(tale.pid))
            stop(tale)
            theirs.append(pg_ctl(cluster, "-l", "/dev/null", "-o", f"-p {free_port()} -k ''", "start"))
            pg_ctl(cluster, "-m", "fast", "stop")
        bound = 2.0 * statistics.median(theirs) + 0.5
        print(f"first start, creating everything: {first:.2f} s")
        print(f"tale dev until ready: median {statistics.median(ours):.3f} s, slowest {max(ours):.3f} s, "
              f"{statistics.median(cpu):.0f} ms of CPU of its own")
        print(f"pg_ctl -w start: median {statistics.median(theirs):.3f} s, slowest {max(theirs):.3f} s")
        print(f"bound 2.0 x pg_ctl + 0.5 s = {bound:.3f} s: {'kept' if statistics.median(ours) <= bound else 'MISSED'}")

        tale, port, _ = start_tale(data, log)
        for _ in range(SIGN_INS):
            sign(port, "sign-in")
        time.sleep(10)
        print(f"resident memory, {SIGN_INS} sign-ins and 10 s idle: {resident_mib(tale.pid):.0f} MiB (bound 80)")
        index_documents(port)
        for _ in range(SIGN_INS):
            sign(port, "sign-in")
        time.sleep(10)
        print(f"resident memory, {DOCUMENTS} documents and {SIGN_INS} more sign-ins later: {resident_mib(tale.pid):.0f} MiB (bound 80)")
        before = cpu_ms(tale.pid)
        time.sleep(20)
        print(f"CPU while idle: {(cpu_ms(tale.pid) - before) / 20:.1f} ms per second")
        stop(tale)
    finally:
        log.close()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()

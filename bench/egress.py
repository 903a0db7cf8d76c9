#!/usr/bin/env python3
"""The way out of sandboxes beside squid and tinyproxy: processor time, throughput, memory.

Needs root, iproute2, nftables, squid and tinyproxy (Debian's packages), and a program:

    bench/egress.py [--tale target/release/tale] [--tunnels 20000]

Three network namespaces: the clients, the proxy, and an outside with a public address.
"""

import argparse
import json
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

SITE, PROXY, RESOLVER = "93.184.216.34", "10.98.0.2", "10.97.0.1"
LINK = "10gbit"
TICK = os.sysconf("SC_CLK_TCK")


def run(line):
    subprocess.run(line.split(), check=True)


def namespaces(names):
    session, proxy, outside = names
    for name in names:
        run(f"ip netns add {name}")
        run(f"ip -n {name} link set lo up")
    for line in (
        f"ip link add s0 netns {session} type veth peer name s1 netns {proxy}",
        f"ip link add o0 netns {proxy} type veth peer name o1 netns {outside}",
        f"ip -n {session} address add 10.98.0.5/24 dev s0",
        f"ip -n {proxy} address add {PROXY}/24 dev s1",
        f"ip -n {proxy} address add 10.97.0.2/24 dev o0",
        f"ip -n {outside} address add {RESOLVER}/24 dev o1",
        f"ip -n {outside} address add {SITE}/32 dev lo",
        f"ip -n {session} link set s0 up",
        f"ip -n {proxy} link set s1 up",
        f"ip -n {proxy} link set o0 up",
        f"ip -n {outside} link set o1 up",
        f"ip -n {proxy} route add default via {RESOLVER}",
    ):
        run(line)


def inside(name, *arguments, **options):
    return subprocess.Popen(["ip", "netns", "exec", name, *arguments], **options)


# --- outside ------------------------------------------------------------------------------------


def serve_names():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((RESOLVER, 53))
    while True:
        query, client = server.recvfrom(1500)
        end = 12
        while query[end]:
            end += query[end] + 1
        kind = query[end + 1 : end + 3]
        answer = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if kind == b"\0\1" else b"\0\0") + b"\0\0\0\0" + query[12 : end + 5]
        if kind == b"\0\1":
            answer += b"\xc0\x0c\0\1\0\1\0\0\x0e\x10\0\4" + socket.inet_aton(SITE)
        server.sendto(answer, client)


def serve_site():
    """Answers 100 bytes with 1,000; to a line `get N` N bytes follow."""
    threading.Thread(target=serve_names, daemon=True).start()
    listener = socket.create_server((SITE, 443), backlog=4096)
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    streams, answer = {}, b"a" * 1000
    while True:
        for number, _ in poll.poll():
            if number == listener.fileno():
                stream, _ = listener.accept()
                stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                streams[stream.fileno()] = stream
                poll.register(stream, select.EPOLLIN)
                continue
            stream = streams[number]
            try:
                data = stream.recv(4096)
            except OSError:
                data = b""
            if not data:
                poll.unregister(number)
                streams.pop(number).close()
            elif data.startswith(b"get "):
                poll.unregister(number)
                threading.Thread(target=flood, args=(streams.pop(number), int(data[4:])), daemon=True).start()
            else:
                stream.sendall(answer)


def flood(stream, left):
    block = bytes(1 << 20)
    with stream:
        while left > 0:
            left -= stream.send(block[: min(left, len(block))])


# --- inside -------------------------------------------------------------------------------------


def tunnel(port):
    stream = socket.create_connection((PROXY, port) if port else (SITE, 443), timeout=60)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if port:
        stream.sendall(b"CONNECT site.example:443 HTTP/1.1\r\nHost: site.example:443\r\n\r\n")
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            piece = stream.recv(4096)
            if not piece:
                raise SystemExit(f"no tunnel: {head!r}")
            head += piece
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise SystemExit(f"no tunnel: {head!r}")
    return stream


def ask(stream):
    stream.sendall(b"q" * 100)
    left = 1000
    while left:
        left -= len(stream.recv(left))


def client(task, port, count):
    if task == "connects":
        def some():
            for _ in range(count // 8):
                with tunnel(port) as stream:
                    ask(stream)
        work = [threading.Thread(target=some) for _ in range(8)]
    elif task == "requests":
        def some():
            with tunnel(port) as stream:
                for _ in range(count // 8):
                    ask(stream)
        work = [threading.Thread(target=some) for _ in range(8)]
    elif task == "bytes":
        stream, room, left = tunnel(port), bytearray(1 << 20), count
        stream.sendall(b"get %d" % count)
        since = time.monotonic()
        while left:
            got = stream.recv_into(room)
            if not got:
                raise SystemExit("cut")
            left -= got
        print(json.dumps({"seconds": time.monotonic() - since}))
        return
    else:
        held = [tunnel(port) for _ in range(count)]
        print(json.dumps({"held": len(held)}), flush=True)
        sys.stdin.readline()
        return
    since = time.monotonic()
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    print(json.dumps({"seconds": time.monotonic() - since}))


# --- measuring ----------------------------------------------------------------------------------


def family(pid):
    pids = [pid]
    for one in pids:
        try:
            with open(f"/proc/{one}/task/{one}/children") as file:
                pids += [int(child) for child in file.read().split()]
        except OSError:
            pass
    return pids


def cpu(pid):
    """Milliseconds of all threads, those that ended included."""
    total = 0
    for one in family(pid):
        try:
            with open(f"/proc/{one}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        except OSError:
            pass
    return total * 1000 / TICK


def resident(pid):
    total = 0
    for one in family(pid):
        try:
            with open(f"/proc/{one}/status") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
        except OSError:
            pass
    return total


class Bench:
    def __init__(self, names, folder):
        self.session, self.proxy, self.outside = names
        self.folder = folder

    def task(self, task, port, count, name=None):
        arguments = [sys.executable, __file__, "--client", task, str(port), str(count)]
        done = inside(name or self.session, *arguments, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
        out, _ = done.communicate()
        if done.returncode:
            raise SystemExit(f"{task} failed")
        return json.loads(out)

    def each(self, what, port, pid, count):
        self.task(what, port, max(count // 10, 80))
        before = cpu(pid)
        seconds = self.task(what, port, count)["seconds"]
        return (cpu(pid) - before) / count, count / seconds

    def rate(self, port, size, name=None):
        return max(size / self.task("bytes", port, size, name)["seconds"] for _ in range(3)) / 1e9

    def idle(self, port, pid, count):
        before = resident(pid)
        arguments = [sys.executable, __file__, "--client", "idle", str(port), str(count)]
        holder = inside(self.session, *arguments, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
        line = holder.stdout.readline()
        after = resident(pid)
        holder.communicate("done\n")
        return before, after if line else None


def wait_for(name, port):
    probe = f"import socket; socket.create_connection(('{PROXY}', {port}), 1).close()"
    for _ in range(100):
        if inside(name, sys.executable, "-c", probe, stderr=subprocess.DEVNULL).wait() == 0:
            return
        time.sleep(0.1)
    raise SystemExit(f"nothing listens on {port}")


def start_tale(bench, program, connections):
    # Every tunnel gets its line, as the others write theirs.
    log = open(os.path.join(bench.folder, "tale.log"), "w")
    environment = {
        "SANDBOX_EGRESS_MAX_CLIENTS": str(connections),
        "SANDBOX_EGRESS_MAX_CONNECTIONS_PER_SESSION": "0",
        "TALE_LOG": "info,tale_egress=debug",
        "TALE_LOG_FORMAT": "json",
        "PATH": os.environ["PATH"],
    }
    return inside(bench.proxy, program, "serve", "sandbox-egress", env=environment, stdout=log, stderr=log)


def start_squid(bench):
    path = os.path.join(bench.folder, "squid.conf")
    with open(path, "w") as file:
        file.write(
            f"http_port 3129\nacl tunnels port 443\nacl CONNECT method CONNECT\nacl inside dst 10.0.0.0/8 169.254.0.0/16\n"
            f"http_access deny CONNECT !tunnels\nhttp_access deny inside\nhttp_access allow all\ncache deny all\n"
            f"access_log stdio:{bench.folder}/squid-access.log\ncache_log {bench.folder}/squid.log\npid_filename none\n"
            f"dns_nameservers {RESOLVER}\ncoredump_dir {bench.folder}\npinger_enable off\n"
        )
    shutil.chown(bench.folder, "proxy")
    return inside(bench.proxy, "squid", "-N", "-f", path, stderr=subprocess.DEVNULL)


def start_tinyproxy(bench):
    path = os.path.join(bench.folder, "tinyproxy.conf")
    with open(path, "w") as file:
        file.write(
            f'Port 3130\nTimeout 600\nLogFile "{bench.folder}/tinyproxy.log"\nLogLevel Connect\nMaxClients 2000\n'
            f"Allow 10.98.0.0/24\nConnectPort 443\nUser root\nGroup root\n"
        )
    return inside(bench.proxy, "tinyproxy", "-d", "-c", path, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tale", default="target/release/tale")
    parser.add_argument("--tunnels", type=int, default=20_000)
    parser.add_argument("--client", nargs=3)
    parser.add_argument("--site", action="store_true")
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if options.site:
        return serve_site()
    if options.client:
        task, port, count = options.client
        return client(task, int(port), int(count))

    most = (hard - 900) // 2
    tunnels = min(options.tunnels, most)
    if tunnels < options.tunnels:
        print(f"this machine lets a process open {hard} files: {tunnels} tunnels instead of {options.tunnels}")
    names = [f"bench-{os.getpid()}-{what}" for what in ("session", "proxy", "outside")]
    started = []
    netns = f"/etc/netns/{names[1]}"
    try:
        namespaces(names)
        os.makedirs(netns)
        with open(f"{netns}/resolv.conf", "w") as file:
            file.write(f"nameserver {RESOLVER}\n")
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            bench = Bench(names, folder)
            started.append(inside(names[2], sys.executable, __file__, "--site"))
            candidates = [("tale", 3128, lambda: start_tale(bench, options.tale, tunnels + 100))]
            if shutil.which("squid"):
                candidates.append(("squid", 3129, lambda: start_squid(bench)))
            if shutil.which("tinyproxy"):
                candidates.append(("tinyproxy", 3130, lambda: start_tinyproxy(bench)))
            time.sleep(1)
            for name, port, start in candidates:
                process = start()
                started.append(process)
                wait_for(names[0], port)
                pid = process.pid
                # tinyproxy starts a thread for each connection and copies in small steps.
                share = 10 if name == "tinyproxy" else 1
                connect, per_second = bench.each("connects", port, pid, 4_000 // share)
                request, requests = bench.each("requests", port, pid, 40_000 // share)
                size = (2 << 30) // share
                direct = bench.rate(0, size, names[1])
                before = cpu(pid)
                through = bench.rate(port, size)
                moved = (cpu(pid) - before) / (3 * size / 1e9)
                print(
                    f"{name}: {connect:.3f} CPU-ms per CONNECT ({per_second:.0f}/s), {request:.4f} per request in a tunnel"
                    f" ({requests:.0f}/s), {through:.2f} GB/s beside {direct:.2f} direct ({through / direct:.2f}), {moved:.0f} CPU-ms per GB",
                    flush=True,
                )
                # A network card of that speed, which leaves the processors something to do it with.
                run(f"ip netns exec {names[2]} tc qdisc add dev o1 root tbf rate {LINK} burst 4mb latency 20ms")
                size = (4 << 30) // share
                direct, through = bench.rate(0, size, names[1]), bench.rate(port, size)
                run(f"ip netns exec {names[2]} tc qdisc del dev o1 root")
                print(f"{name}: over a link of {LINK}: {through:.2f} GB/s beside {direct:.2f} direct ({through / direct:.2f})", flush=True)
                held = tunnels if name == "tale" else 900
                before, after = bench.idle(port, pid, held)
                print(
                    f"{name}: {before / 1024:.1f} MiB resident, {after / 1024:.1f} with {held} idle tunnels:"
                    f" {(after - before) / held:.2f} KiB each",
                    flush=True,
                )
                process.send_signal(signal.SIGKILL)
                process.wait()
    finally:
        for process in started:
            for one in family(process.pid):
                try:
                    os.kill(one, signal.SIGKILL)
                except OSError:
                    pass
            process.wait()
        for name in names:
            subprocess.run(["ip", "netns", "del", name])
        shutil.rmtree(netns, ignore_errors=True)


if __name__ == "__main__":
    main()

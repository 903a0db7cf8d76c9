"""Processor time of a scrape with every label set of the requests filled.

    python3 bench/metrics.py http://localhost:3000 [SCRAPES]

Asks a running Tale on this machine for every class of route with every method and several statuses,
then scrapes `/metrics` and reads the process's own `process_cpu_seconds_total` before and after.
"""

import http.client
import re
import sys
import time
from urllib.parse import urlsplit

site = urlsplit(sys.argv[1])
scrapes = int(sys.argv[2]) if len(sys.argv) > 2 else 200
METHODS = "GET POST PUT DELETE OPTIONS TRACE PATCH PROPFIND PROPPATCH MKCOL COPY MOVE LOCK UNLOCK OTHER".split()


def ask(connection, method, path):
    connection.request(method, path)
    answer = connection.getresponse()
    return answer.read().decode()


connection = http.client.HTTPConnection(site.hostname, site.port)
routes = sorted(
    set(re.findall(r'"(/[a-z0-9/-]+)",', open("crates/http/src/metrics/requests.rs").read())) | {"/nowhere", "/_app/x"}
)
for method in METHODS:
    for route in routes:
        try:
            ask(connection, method, route)
        except (http.client.HTTPException, OSError):
            connection = http.client.HTTPConnection(site.hostname, site.port)
page = ask(connection, "GET", "/metrics")
cpu = lambda text: float(re.search(r"^process_cpu_seconds_total (\S+)$", text, re.M).group(1))
before, started = cpu(page), time.perf_counter()
for _ in range(scrapes):
    page = ask(connection, "GET", "/metrics")
took = time.perf_counter() - started
series = sum(1 for line in page.splitlines() if not line.startswith("#"))
print(f"{series} samples, {len(page) / 1024:.0f} KiB a page")
print(f"{(cpu(page) - before) / scrapes * 1000:.2f} ms processor time, {took / scrapes * 1000:.2f} ms elapsed a scrape")

#!/usr/bin/env python3
"""What a person and an operator do with the deployment of deploy/compose.yml.

Called by scripts/test-compose, in the network where the proxy's ports are, with the command of
compose as arguments. Each check prints one line; the last line counts them.
"""

import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import time

COMPOSE = sys.argv[1:]
HOST, PORT = "tale.test", 8443
SITE = f"https://{HOST}:{PORT}"
PATIENCE = 120
PASSWORD = "Blue-Kettle-42"
TEXT = "# Kettles\n\nThe violet kettle of the harbour office sings at dawn and is descaled every Thursday.\n"
TALE = ["platform", "backend-api", "backend-worker", "object-store", "proxy"]

passed = failed = 0


def check(name, holds, said=""):
    global passed, failed
    passed, failed = passed + bool(holds), failed + (not holds)
    print(f"{'ok    ' if holds else 'FAILED'}  {name}", flush=True)
    if not holds and said:
        print(f"        {said}", flush=True)


def compose(*arguments, env=None, wrong=False):
    done = subprocess.run([*COMPOSE, *arguments], env={**os.environ, **(env or {})}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode and not wrong:
        sys.exit(f"compose {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def docker(*arguments):
    return subprocess.run(["docker", *arguments], text=True, check=True, stdout=subprocess.PIPE).stdout


def container(service):
    return json.loads(docker("inspect", compose("ps", "--all", "--quiet", service).split()[0]))[0]


def until(what, look):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if seen := look():
            return seen
        time.sleep(0.5)
    print(compose("logs", "--tail", "30"))
    sys.exit(f"in {PATIENCE} s: {what}")


class Tls(http.client.HTTPSConnection):
    """To the proxy, by the name of the site, trusting its authority only."""

    def connect(self):
        self.sock = CONTEXT.wrap_socket(socket.create_connection(("127.0.0.1", PORT), timeout=60), server_hostname=HOST)


class Answer:
    def __init__(self, answer, body):
        self.status, self.headers, self.text = answer.status, answer.headers, body.decode(errors="replace")

    def json(self):
        return json.loads(self.text)


class Person:
    def __init__(self):
        self.cookie, self.org, self.key = None, None, None

    def ask(self, method, path, body=None, headers=None):
        sent = {"Host": f"{HOST}:{PORT}", "Origin": SITE, **(headers or {})}
        if self.cookie:
            sent["Cookie"] = self.cookie
        if self.key and path.startswith("/api/v1/"):
            sent["Authorization"] = f"Bearer {self.key}"
        if body is not None and not isinstance(body, bytes):
            body, sent["Content-Type"] = json.dumps(body).encode(), "application/json"
        connection = Tls(HOST)
        connection.request(method, path, body, sent)
        got = connection.getresponse()
        return Answer(got, got.read())

    def app(self, method, path, body=None):
        answer = self.ask(method, f"/api/app/{path}?orgId={self.org}", body)
        if answer.status >= 300:
            sys.exit(f"{method} {path}: {answer.status} {answer.text}")
        return answer.json()

    def events(self):
        connection = Tls(HOST)
        connection.request("GET", f"/events?orgId={self.org}", None, {"Host": f"{HOST}:{PORT}", "Cookie": self.cookie})
        return connection.getresponse()


def hear(stream, words):
    """Reads a live stream until it says the words."""
    heard = b""
    deadline = time.monotonic() + PATIENCE
    while words.encode() not in heard and time.monotonic() < deadline:
        line = stream.readline()
        if not line:
            break
        heard += line
    return words.encode() in heard


def main():
    global CONTEXT
    # The containers are up; the authority is made with the first certificate.
    until("the authority of the proxy", lambda: "BEGIN" in authority())
    CONTEXT = ssl.create_default_context(cadata=authority())
    containers()
    sandboxes()
    plain = http.client.HTTPConnection("127.0.0.1", 8080, timeout=60)
    plain.request("GET", "/chat?x=1", None, {"Host": HOST})
    moved = plain.getresponse()
    check("plain http leads to the site", (moved.status, moved.headers["Location"]) == (308, f"{SITE}/chat?x=1"))
    ada = Person()
    health = ada.ask("GET", "/api/health")
    check("the web tier answers over https", health.status == 200 and health.json()["status"] == "ok", health.text)
    page = ada.ask("GET", "/")
    check("the app's page comes", page.status == 200 and "<html" in page.text, page.text[:200])
    sign_up(ada)
    stream = ada.events()
    check("the live stream opens", hear(stream, "event: hello"))
    document = upload(ada)
    check("the live stream tells of the document", hear(stream, '"topic":"documents"'))
    def read():
        return ada.ask("GET", f"/api/v1/documents/{document}").json()["indexing"]["status"] == "completed"
    until("the worker reads the document", read)
    check("the worker has read the document", True)
    question(ada, "Who sings at dawn in the harbour office?")
    killed(ada)
    mistake()
    stopped(ada)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def authority():
    return compose("exec", "-T", "proxy", "cat", "/data/caddy/pki/authorities/local/root.crt", wrong=True)


def containers():
    published = {name: ports for name in [*TALE, "db"] if (ports := container(name)["HostConfig"]["PortBindings"])}
    check("only the proxy publishes ports", set(published) == {"proxy"}, published)
    for name in [*TALE, "db"]:
        made = container(name)
        host = made["HostConfig"]
        narrow = host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"] and not host["CapAdd"] and not host["Privileged"]
        narrow = narrow and "no-new-privileges:true" in host["SecurityOpt"] and made["Config"]["User"].split(":")[0] not in ("", "0", "root")
        rotated = host["LogConfig"]["Config"] == {"max-file": "3", "max-size": "10m"}
        check(f"{name} runs unprivileged on a read-only root, and its log is bounded", narrow and rotated, host)
    with open("deploy/compose.yml", encoding="utf-8") as file:
        written = re.findall(r"(?im)^ *\w*(?:password|secret|token|key)\w*: *[^\s$].*", file.read())
    check("no secret stands in the file", not written, written)


def sandboxes():
    def curl(service, *arguments):
        return compose("exec", "-T", service, "curl", "--silent", "--max-time", "10", *arguments, wrong=True)

    health = curl("sandbox", "http://localhost:8003/health")
    check("the spawner has an engine", '"status":"ok"' in health, health)
    check("it listens to whoever has its key", "missing_signature" in curl("sandbox", "http://localhost:8003/v1/limits"))
    check("the backend reaches it", '"status":"ok"' in curl("backend-api", "http://sandbox:8003/health"))
    check("pages do not", "status" not in curl("platform", "http://sandbox:8003/health"))
    asked = ["--output", "/dev/null", "--write-out", "%{http_code}", "--proxy", "http://sandbox-egress:3128"]
    refused = curl("sandbox", *asked, "http://169.254.169.254/")
    check("their way out refuses addresses that are nobody's business", refused == "403", refused)
    rights = docker("exec", container("sandbox-egress")["Id"], "sh", "-c", "grep -h -e ^CapEff -e ^Uid /proc/1/status")
    check("and holds no right", "CapEff:\t0000000000000000" in rights and "65534" in rights, rights)
    network = json.loads(docker("network", "inspect", "tale-test-sandbox"))[0]
    check("their network has no way out of its own", network["Internal"], network)


def sign_up(ada):
    form = {"name": "Ada", "email": "ada@acme.test", "password": PASSWORD, "organizationName": "Acme"}
    if ada.ask("GET", "/api/app/session").json()["setupTokenRequired"]:
        form["setupToken"] = re.search(r"needs this token ([\w-]+)", compose("logs", "backend-api"))[1]
    answer = ada.ask("POST", "/api/app/setup", form)
    check("the first owner is made with the token of the log", answer.status == 200 and "setupToken" in form, answer.text)
    ada.cookie = answer.headers["Set-Cookie"].split(";")[0]
    check("its cookie is for https only", "Secure" in answer.headers["Set-Cookie"], answer.headers["Set-Cookie"])
    ada.org = answer.json()["organization"]["id"]
    model = {"id": "tale-demo", "contextWindow": 32000, "maxOutputTokens": 2000, "purposes": ["chat"],
             "capabilities": {"tools": True, "vision": False, "reasoning": False}}
    ada.app("POST", "providers", {"name": "local", "displayName": "Local", "apiFormat": "openai", "apiKey": "sk-0123456789abcdef",
                                  "baseUrl": "http://model.local:8000/v1", "models": [model]})
    ada.key = ada.app("POST", "api-keys", {"name": "test", "expiresInDays": 30})["key"]


def upload(ada):
    slot = ada.app("POST", "uploads", {"fileName": "kettles.md", "contentType": "text/markdown", "size": len(TEXT)})
    check("uploads go to the site's own origin", slot["url"].startswith(f"{SITE}/tale-blobs/"), slot["url"])
    put = ada.ask("PUT", slot["url"][len(SITE):], TEXT.encode(), slot["headers"])
    check("the store takes the file through the proxy", put.status == 200, put.text)
    forged = ada.ask("PUT", slot["url"][len(SITE):-4] + "beef", TEXT.encode(), slot["headers"])
    check("and refuses a forged signature", forged.status == 403, forged.text)
    made = ada.ask("POST", "/api/v1/documents", {"fileId": slot["fileId"]})
    check("the document is made", made.status == 201, made.text)
    return made.json()["id"]


def question(ada, text, name="an answer comes with its source"):
    sent = ada.app("POST", "chat/threads/new/messages", {"content": text, "model": "tale-demo"})
    def settled():
        messages = ada.app("GET", f"chat/threads/{sent['threadId']}/messages")["messages"]
        return messages[-1] if messages[-1]["role"] == "assistant" and messages[-1]["status"] not in ("pending", "streaming") else None
    said = json.dumps(until("an answer", settled))
    check(name, "sings at dawn" in said and "kettles" in said and "citation" in said.lower(), said)


def killed(ada):
    compose("kill", "--signal", "KILL", "backend-api")
    away = ada.ask("GET", "/api/v1/me")
    check("without its backend the proxy says so", (away.status, away.json().get("code")) in
          [(502, "UPSTREAM_UNAVAILABLE"), (503, "UPSTREAM_UNAVAILABLE")] and away.headers["Retry-After"], away.text)
    status = ada.ask("GET", "/status.json")
    check("and the status report knows", status.status == 200 and '"status":"outage"' in status.text, status.text)
    compose("kill", "--signal", "KILL", "db", "object-store")
    compose("up", "--detach", "--wait")
    check("started again, database and store too, it knows the session", until("it is back", lambda: ada.ask("GET", "/api/v1/me").status == 200))
    question(ada, "What happens to the kettle every Thursday?", "and answers from the document")


def mistake():
    compose("up", "--detach", "--no-deps", "backend-worker", env={"WORKER_CONCURRENCY": "99"})
    words = 'WORKER_CONCURRENCY is "99", which is above 64'
    said = until("the worker names its mistake", lambda: words in compose("logs", "backend-worker"))
    check("a wrong setting stands in the log in words", said)
    compose("up", "--detach", "--wait", "--no-deps", "backend-worker")


def stopped(ada):
    stream = ada.events()
    hear(stream, "event: hello")
    compose("stop")
    codes = {name: container(name)["State"]["ExitCode"] for name in [*TALE, "db"]}
    check("everything stops by itself", set(codes.values()) == {0}, codes)
    for name in ["backend-api", "backend-worker", "object-store"]:
        check(f"{name} ended its drain", "process.stopped" in compose("logs", "--tail", "5", name))
    # Every place that handles a password has to quote it.
    compose("up", "--detach", "--wait", env={"DB_PASSWORD": "o'ther \"pass\\word\" @/%:"})
    question(ada, "Who sings at dawn in the harbour office?", "with another database password everything is still there")


main()

#!/usr/bin/env python3
"""Indexing 1,000 mixed documents beside extraction alone of the same files. See index.md.

    python3 bench/index.py [PROGRAM] [ROUNDS] [FOLDER]

Makes the files (seeded), uploads them through the doors to a fresh `tale dev`, and takes the time from
the first registration until the last document is `completed`. Every round reads the same files with
`bench_extract_all`, as many at once as the indexer does. FOLDER keeps the files for the next run. Needs a release build of both:
cargo build --release -p tale; cargo build --release -p tale-extract --example bench_extract_all
"""

import concurrent.futures
import http.client
import itertools
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import zipfile
import zlib

sys.argv, arguments = sys.argv[:1], sys.argv[1:]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import start  # noqa: E402  (how the program is started and stopped)

PROGRAM = start.PROGRAM = pathlib.Path(arguments[0] if arguments else start.ROOT / "target/release/tale").resolve()
ROUNDS = int(arguments[1]) if len(arguments) > 1 else 3
ALONE = PROGRAM.parent / "examples/bench_extract_all"
FILES = 1_000
# Files of one organization that the program reads at the same time.
PARALLEL = 3
# Connections that register, as many browsers would.
CLIENTS = 4
SMALLEST = 2_000
# Large files are mostly pictures, tables or exports.
LARGEST = {"txt": 1_000_000, "md": 300_000, "html": 1_000_000, "csv": 1_000_000, "json": 1_000_000, "xlsx": 1_000_000}
KINDS = ["pdf", "docx", "pdf", "docx", "xlsx", "pptx", "txt", "md", "html", "csv", "json", "odt"]
TICK = os.sysconf("SC_CLK_TCK")


class Words:
    """Sentences of a vocabulary whose frequencies fall as those of a language do."""

    COMMON = "the of and to in a is that for it as was with be by on not he this are or his from at which but have an had".split()

    def __init__(self, seed):
        self.random = random.Random(seed)
        start_of, middle, end = "b c d f g h l m n p r s t v w st tr pl".split(), "a e i o u ai ea ou".split(), "n r s t l nd ment tion ing er ly".split()
        made = {"".join(self.random.choice(start_of) + self.random.choice(middle) for _ in range(self.random.randint(1, 3))) + self.random.choice(end) for _ in range(30_000)}
        self.words = self.COMMON + sorted(made)
        self.weights = list(itertools.accumulate((3 if rank < len(self.COMMON) else 1) / (rank + 5) for rank in range(len(self.words))))

    def text(self, length):
        """Paragraphs of about `length` characters."""
        words, parts, size = iter(self.random.choices(self.words, cum_weights=self.weights, k=length // 4 + 40)), [], 0
        while size < length:
            sentence = " ".join(next(words, "end") for _ in range(self.random.randint(6, 22))).capitalize() + "."
            parts.append(sentence + ("\n\n" if self.random.random() < 0.2 else " "))
            size += len(parts[-1])
        return "".join(parts).strip()

    def number(self):
        return self.random.randint(1, 99_999)

    def noise(self, length):
        """Bytes that do not compress, as pictures are."""
        return self.random.randbytes(max(length, 0))


def archive(path, parts, stored=()):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as out:
        for name, content in stored:
            out.writestr(zipfile.ZipInfo(name), content)
        for name, content in parts:
            out.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


def prose(words, size):
    """A document whose size is mostly text while it is small and mostly pictures when it is large."""
    text = words.text(min(size * 2, 30_000 + size // 16))
    return text.split("\n\n"), size - len(text) // 3


def make_pdf(path, words, size):
    paragraphs, rest = prose(words, size)
    lines = [" ".join(chunk) for paragraph in paragraphs for chunk in batches(paragraph.split(), 13)]
    objects, pages = [], []

    def add(body):
        objects.append(body)
        return len(objects)

    def stream(content, entries=b"/Filter /FlateDecode"):
        return b"<< " + entries + b" /Length %d >>\nstream\n" % len(content) + content + b"\nendstream"

    add(b"")
    add(b"")
    font = add(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
    for page in batches(lines, 48):
        drawn = "BT /F1 11 Tf 14 TL 60 780 Td " + " ".join(f"({line}) Tj T*" for line in page) + " ET"
        content = add(stream(zlib.compress(drawn.encode())))
        resources = b"/Font << /F1 %d 0 R >>" % font
        if rest > 30_000:
            piece = min(rest, 300_000) // 3 * 3
            width = piece // 300
            image = add(stream(words.noise(width * 300), b"/Type /XObject /Subtype /Image /Width %d /Height 100 /ColorSpace /DeviceRGB /BitsPerComponent 8" % width))
            resources += b" /XObject << /I1 %d 0 R >>" % image
            rest -= piece
        pages.append(add(b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R /Resources << %s >> >>" % (content, resources)))
    objects[0] = b"<< /Type /Catalog /Pages 2 0 R >>"
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(pages), b" ".join(b"%d 0 R" % page for page in pages))
    out, offsets = bytearray(b"%PDF-1.5\n"), []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table)
    path.write_bytes(out)


def make_docx(path, words, size):
    paragraphs, rest = prose(words, size)
    styled = lambda n: '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>' if n % 12 == 0 else ""  # noqa: E731
    body = "".join(f'<w:p w:rsidR="00A1">{styled(n)}<w:r><w:rPr><w:lang w:val="en-GB"/></w:rPr><w:t xml:space="preserve">{text[:80] if n % 12 == 0 else text}</w:t></w:r></w:p>' for n, text in enumerate(paragraphs))
    archive(path, [
        ("[Content_Types].xml", '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'),
        ("_rels/.rels", RELATIONS % ("officeDocument", "word/document.xml")),
        ("word/document.xml", f'<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>{body}</w:body></w:document>'),
    ], [("word/media/image1.jpeg", words.noise(rest))])


RELATIONS = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/%s" Target="%s"/></Relationships>'


def make_pptx(path, words, size):
    paragraphs, rest = prose(words, min(size, 200_000))
    slides = list(batches(paragraphs, 4))
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    parts = [
        ("[Content_Types].xml", '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/ppt/presentation.xml" ContentType="application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"/></Types>'),
        ("_rels/.rels", RELATIONS % ("officeDocument", "ppt/presentation.xml")),
        ("ppt/presentation.xml", f'<p:presentation xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:r="{kind}"><p:sldIdLst>' + "".join(f'<p:sldId id="{256 + n}" r:id="rId{n}"/>' for n in range(1, len(slides) + 1)) + "</p:sldIdLst></p:presentation>"),
        ("ppt/_rels/presentation.xml.rels", '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">' + "".join(f'<Relationship Id="rId{n}" Type="{kind}/slide" Target="slides/slide{n}.xml"/>' for n in range(1, len(slides) + 1)) + "</Relationships>"),
    ]
    for n, slide in enumerate(slides, 1):
        shapes = "".join(f"<p:sp><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>" for text in slide)
        parts.append((f"ppt/slides/slide{n}.xml", f'<p:sld xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>'))
    archive(path, parts, [("ppt/media/image1.png", words.noise(size - 40_000 if size > 80_000 else rest))])


def make_odt(path, words, size):
    paragraphs, rest = prose(words, size)
    body = "".join(f"<text:p>{text}</text:p>" for text in paragraphs)
    archive(path, [("content.xml", f'<?xml version="1.0"?><office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:text>{body}</office:text></office:body></office:document-content>')],
            [("mimetype", "application/vnd.oasis.opendocument.text"), ("Pictures/1.png", words.noise(rest))])


def make_xlsx(path, words, size):
    rows = max(min(size, 1_000_000) // 60, 10)
    shared = [words.text(20) for _ in range(min(rows, 2_000))]
    cells = "".join(f'<row r="{row}"><c r="A{row}" t="s"><v>{row % len(shared)}</v></c>' + "".join(f'<c r="{column}{row}"><v>{words.number()}</v></c>' for column in "BCDEF") + "</row>" for row in range(1, rows + 1))
    archive(path, [
        ("[Content_Types].xml", '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'),
        ("xl/workbook.xml", '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="Figures" sheetId="1" r:id="rId1"/></sheets></workbook>'),
        ("xl/_rels/workbook.xml.rels", '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings" Target="sharedStrings.xml"/></Relationships>'),
        ("xl/sharedStrings.xml", '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">' + "".join(f"<si><t>{text}</t></si>" for text in shared) + "</sst>"),
        ("xl/worksheets/sheet1.xml", f'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{cells}</sheetData></worksheet>'),
    ])


def make_txt(path, words, size):
    path.write_text(words.text(size))


def make_md(path, words, size):
    path.write_text("\n\n".join(("## " + text[:50] + "\n\n" if n % 8 == 0 else "") + text for n, text in enumerate(words.text(size).split("\n\n"))))


def make_html(path, words, size):
    body = "".join(f'<div class="section"><h2>{text[:40]}</h2><p>{text}</p></div>' for text in words.text(size * 4 // 5).split("\n\n"))
    path.write_text(f"<!doctype html><html lang=en><head><title>Page</title><style>p{{margin:0}}</style></head><body>{body}</body></html>")


def make_csv(path, words, size):
    names = words.text(4_000).split()
    path.write_text("name,place,amount,note\n" + "".join(f"{names[n % len(names)]},{names[n * 7 % len(names)]},{words.number()},{names[n * 3 % len(names)]} {names[n * 5 % len(names)]}\n" for n in range(size // 32)))


def make_json(path, words, size):
    path.write_text(json.dumps({"entries": [{"id": n, "text": text, "amount": words.number()} for n, text in enumerate(words.text(size * 4 // 5).split("\n\n"))]}, indent=1))


def batches(items, size):
    items = list(items)
    return (items[at:at + size] for at in range(0, len(items), size))


def make_files(folder):
    """Sizes from 2 KB to 4 MB, half of them below 30 KB."""
    folder.mkdir(exist_ok=True)
    words, sizes = Words(7), random.Random(11)
    for number in range(FILES):
        kind = KINDS[number % len(KINDS)]
        # The square draws towards small files, as in real libraries.
        size = int(SMALLEST * (LARGEST.get(kind, 4_000_000) / SMALLEST) ** (sizes.random() ** 1.6))
        globals()[f"make_{kind}"](folder / f"{number:04}.{kind}", words, size)


class Door:
    """One kept-open connection with a session."""

    def __init__(self, port):
        self.port, self.cookie = port, None
        self.connection = http.client.HTTPConnection("localhost", port, timeout=120)
        self.connection.connect()

    def call(self, method, path, body=None, headers=None):
        sent = {"origin": f"http://localhost:{self.port}", **(headers or {"content-type": "application/json"})}
        if self.cookie:
            sent["cookie"] = self.cookie
        self.connection.request(method, path, json.dumps(body) if isinstance(body, dict) else body, sent)
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            sys.exit(f"{method} {path}: {answer.status} {content[:300]}")
        if answer.getheader("set-cookie"):
            self.cookie = answer.getheader("set-cookie").split(";")[0]
        return json.loads(content) if content else None


def cpu_seconds(pid):
    """Of a process and its children, those included that have ended."""
    total = 0.0
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if entry.name == str(pid) or fields[1] == str(pid):
                total += sum(int(fields[field]) for field in (11, 12, 13, 14)) / TICK
    return total


class Resident(threading.Thread):
    """Samples the resident memory of a process."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak, self.done = pid, 0.0, threading.Event()

    def run(self):
        while not self.done.wait(0.05):
            self.peak = max(self.peak, start.resident_mib(self.pid))


def postmaster(home):
    return int((home / "data/postgres/cluster/postmaster.pid").read_text().split()[0])


def upload(door, org, name, content):
    slot = door.call("POST", f"/api/app/uploads?orgId={org}", {"fileName": name, "contentType": "", "size": len(content)})
    target = urllib.parse.urlsplit(slot["url"])
    store = http.client.HTTPConnection(target.netloc, timeout=120)
    store.request(slot["method"], f"{target.path}?{target.query}", content, slot["headers"])
    if store.getresponse().status >= 300:
        sys.exit(f"the store refused {name}")
    store.close()
    return slot["fileId"]


def indexed(home, folder, log):
    """Seconds from the first registration to the last completion, processor seconds, memory; the organization."""
    tale, port, _ = start.start_tale(home / "data", log)
    try:
        first = Door(port)
        first.call("POST", "/api/auth/sign-up/email", {"name": "Bench", "email": "bench@example.com", "password": "Harbour-lantern-42"})
        org = first.call("POST", "/api/app/organizations", {"name": "Bench"})["id"]

        files = [upload(first, org, path.name, path.read_bytes()) for path in sorted(folder.iterdir())]
        doors = [Door(port) for _ in range(CLIENTS)]
        for door in doors:
            door.cookie = first.cookie
        watch = Resident(tale.pid)
        watch.start()
        time.sleep(1)
        base = postmaster(home)
        cpu = cpu_seconds(tale.pid), cpu_seconds(base)
        begun = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            def register(number):
                for file in files[number::CLIENTS]:
                    doors[number].call("POST", f"/api/app/documents?orgId={org}", {"fileId": file})
            list(pool.map(register, range(CLIENTS)))
        bound = time.perf_counter() - begun
        for status in ("queued", "running"):
            while first.call("GET", f"/api/app/documents?orgId={org}&status={status}&limit=1")["total"]:
                time.sleep(0.2)
        seconds = time.perf_counter() - begun
        cpu = cpu_seconds(tale.pid) - cpu[0], cpu_seconds(base) - cpu[1]
        time.sleep(3)  # the keyword index follows
        completed = first.call("GET", f"/api/app/documents?orgId={org}&status=completed&limit=1")["total"]
        if completed != len(files):
            sys.exit(f"only {completed} of {len(files)} documents were completed")
        watch.done.set()
        watch.join()
        return seconds, bound, cpu, watch.peak, org
    finally:
        start.stop(tale)


def sql(home, statement):
    """What psql answers to a statement in the knowledge database, as the superuser."""
    postgres = home / "data/postgres"
    password = dict(line.split("=", 1) for line in (postgres / "passwords").read_text().split())["superuser"]
    port = (postgres / "cluster/postmaster.pid").read_text().split()[3]
    return subprocess.run(
        [start.POSTGRES / "bin/psql", "-qAtX", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-d", "tale_knowledge", "-c", statement],
        check=True, capture_output=True, text=True, env={**os.environ, "PGPASSWORD": password}).stdout


def floor(home, org, log):
    """Processor seconds of what no way of indexing can do without: Postgres taking the same passages with their keys in
    one COPY, and the program (with Postgres) making the keyword index of them in one go."""
    shutil.rmtree(home / "data/search")
    tale, port, _ = start.start_tale(home / "data", log)
    try:
        base = postmaster(home)
        passages = home / "data/postgres/cluster/floor"
        sql(home, f"COPY private_knowledge.chunks TO '{passages}' (FORMAT binary)")
        sql(home, "CREATE TABLE public.floor (LIKE private_knowledge.chunks INCLUDING INDEXES) WITH (toast_tuple_target = 4096)")
        cpu = cpu_seconds(base)
        sql(home, f"COPY public.floor FROM '{passages}' (FORMAT binary)")
        copied = cpu_seconds(base) - cpu
        sql(home, "DROP TABLE public.floor")
        door = Door(port)
        door.cookie = start.sign(port, "sign-in")
        # A change makes the program look for the index, which is not there.
        file = upload(door, org, "one.txt", b"One more document.")
        written = pathlib.Path(log.name)
        built = written.read_text().count("the keyword index was built")
        cpu = cpu_seconds(tale.pid), cpu_seconds(base)
        door.call("POST", f"/api/app/documents?orgId={org}", {"fileId": file})
        while written.read_text().count("the keyword index was built") == built:
            time.sleep(0.1)
        return copied, cpu_seconds(tale.pid) - cpu[0], cpu_seconds(base) - cpu[1]
    finally:
        start.stop(tale)


def alone(folder):
    """Seconds and processor seconds of extraction alone."""
    before = os.times()
    line = subprocess.run([ALONE, folder, str(PARALLEL)], check=True, capture_output=True, text=True).stdout
    after = os.times()
    figures = {key: float(value) for key, value in (pair.split("=") for pair in line.split())}
    return figures["seconds"], after.children_user - before.children_user + after.children_system - before.children_system, figures


def main():
    home = pathlib.Path(tempfile.mkdtemp(prefix="tale-bench-"))
    home.chmod(0o755)
    try:
        folder = pathlib.Path(arguments[2]).resolve() if len(arguments) > 2 else home / "files"
        if not folder.exists():
            make_files(folder)
        size = sum(path.stat().st_size for path in folder.iterdir())
        alone(folder)  # the files are in the page cache from here on
        ratios = []
        for number in range(ROUNDS):
            own = home / str(number)
            own.mkdir(mode=0o755)
            own.chmod(0o755)
            before = alone(folder)
            with open(own / "log", "w") as log:
                seconds, bound, (tale, postgres), peak, org = indexed(own, folder, log)
                copied, words, reading = floor(own, org, log)
            after = alone(folder)
            shutil.rmtree(own, ignore_errors=True)
            extraction, processor = (before[0] + after[0]) / 2, (before[1] + after[1]) / 2
            ratios.append(seconds / extraction)
            if number == 0:
                print(f"{FILES} files, {size / 2**20:.0f} MiB, {before[2]['characters'] / 1e6:.1f} million characters, {before[2]['passages']:.0f} passages")
            print(f"indexed in {seconds:.2f} s (all registered after {bound:.2f} s), extraction alone {extraction:.2f} s: {seconds / extraction:.2f} times as long;"
                  f" processor {tale:.1f} s (with its readers) + {postgres:.1f} s (Postgres) against {processor:.1f} s; at most {peak:.0f} MiB resident;"
                  f" of the same passages, COPY alone takes Postgres {copied:.1f} s and the keyword index alone the program {words:.1f} s and Postgres {reading:.1f} s", flush=True)
        ratios.sort()
        print(f"median {ratios[len(ratios) // 2]:.2f} times extraction alone (bound 1.40)")
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()

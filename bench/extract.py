#!/usr/bin/env python3
"""Measures text extraction beside kreuzberg, on files made here. See extract.md.

Usage: python3 bench/extract.py [WORK_DIR]

Needs the packages kreuzberg, reportlab and python-docx (in a virtual environment) and a release build:
cargo build --release -p tale-extract --bins --examples
"""

import os
import random
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
BENCH = RELEASE / "examples" / "bench_extract"
CHILD = RELEASE / "tale-extract-file"
RUNS = 5

random.seed(7)
WORDS = ["".join(random.choice("etaoinshrdlucmfwyp") for _ in range(random.randint(2, 10))) for _ in range(3000)]


def sentence(words):
    return " ".join(random.choice(WORDS) for _ in range(words)).capitalize() + "."


def make_pdf(path, pages):
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate

    styles = getSampleStyleSheet()
    story = []
    for page in range(pages):
        story.append(Paragraph(f"Chapter {page + 1}", styles["Heading1"]))
        story += [Paragraph(sentence(70), styles["BodyText"]) for _ in range(6)]
        story.append(PageBreak())
    SimpleDocTemplate(str(path), pagesize=A4).build(story)


def make_docx(path, pages):
    import docx

    document = docx.Document()
    for page in range(pages):
        document.add_heading(f"Chapter {page + 1}", 1 + page % 3)
        for _ in range(6):
            document.add_paragraph(sentence(70))
        if page % 10 == 0:
            for row in document.add_table(5, 3).rows:
                for cell in row.cells:
                    cell.text = sentence(4)
        document.add_page_break()
    document.save(str(path))


def make_text(path, mebibytes):
    block = "\n\n".join(sentence(60) for _ in range(500)) + "\n\n"
    with open(path, "w") as file:
        while file.tell() < mebibytes * 1024 * 1024:
            file.write(block)


def make_xlsx(path, rows, columns):
    letters = [chr(ord("A") + column) for column in range(columns)]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("xl/workbook.xml", '<workbook xmlns:r="r"><sheets><sheet name="S" r:id="r1"/></sheets></workbook>')
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            '<R><Relationship Id="r1" Type="x/worksheet" Target="s.xml"/>'
            '<Relationship Id="r2" Type="x/sharedStrings" Target="t.xml"/></R>',
        )
        count = rows * columns // 4
        with archive.open("xl/t.xml", "w", force_zip64=True) as part:
            part.write(b"<sst>")
            for start in range(0, count, 10_000):
                part.write("".join(f"<si><t>text {n}</t></si>" for n in range(start, min(start + 10_000, count))).encode())
            part.write(b"</sst>")
        with archive.open("xl/s.xml", "w", force_zip64=True) as part:
            part.write(b"<worksheet><sheetData>")
            for row in range(1, rows + 1):
                cells = "".join(
                    f'<c r="{letter}{row}" t="s"><v>{(row * columns + n) // 4 % count}</v></c>'
                    if n % 2
                    else f'<c r="{letter}{row}"><v>{row * 7919 % 100_003}</v></c>'
                    for n, letter in enumerate(letters)
                )
                part.write(f'<row r="{row}">{cells}</row>'.encode())
            part.write(b"</sheetData></worksheet>")


def ours(path, runs=RUNS):
    """Seconds (best of `runs`, extraction and chunking) and the other figures of one process."""
    line = subprocess.run([BENCH, "time", path, str(runs)], check=True, capture_output=True, text=True).stdout
    return {key: float(value) for key, value in (pair.split("=") for pair in line.split())}


def child(kind, path):
    """Seconds from start to exit of the extraction process, its output read."""
    best = float("inf")
    for _ in range(RUNS):
        begun = time.perf_counter()
        subprocess.run([CHILD, kind, path], check=True, stdout=subprocess.PIPE)
        best = min(best, time.perf_counter() - begun)
    return best


def kreuzberg(path):
    import kreuzberg

    best = float("inf")
    for _ in range(RUNS):
        begun = time.perf_counter()
        kreuzberg.extract_file_sync(str(path))
        best = min(best, time.perf_counter() - begun)
    return best


def main():
    work = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tale-bench-")).resolve()
    work.mkdir(parents=True, exist_ok=True)

    def made(name, make, *arguments):
        path = work / name
        if not path.exists():
            make(path, *arguments)
        return path

    book = made("400.pdf", make_pdf, 400)
    mine, process, theirs = ours(book), child("pdf", book), kreuzberg(book)
    print(f"400-page PDF   extracted and chunked {mine['seconds']:.4f} s = {400 / mine['seconds']:.0f} pages/s,"
          f" whole child process {process:.3f} s = {400 / process:.0f} pages/s, peak {mine['peak_rss_mib']:.1f} MiB;"
          f" kreuzberg {theirs:.3f} s = {400 / theirs:.0f} pages/s")

    document = made("870.docx", make_docx, 870)
    mine, process, theirs = ours(document), child("docx", document), kreuzberg(document)
    print(f"870-page DOCX  extracted and chunked {mine['seconds']:.4f} s, whole child process {process:.3f} s,"
          f" peak {mine['peak_rss_mib']:.1f} MiB; kreuzberg {theirs:.3f} s")

    series = [(f"{size}.txt", make_text, (size,)) for size in (1, 10, 100)]
    series += [("1.pdf", make_pdf, (380,)), ("27.pdf", make_pdf, (9900,))]
    series += [("100k-cells.xlsx", make_xlsx, (5_000, 20)), ("10M-cells.xlsx", make_xlsx, (500_000, 20))]
    for name, make, arguments in series:
        path = made(name, make, *arguments)
        mine = ours(path, 1)
        print(f"{name:<15} {path.stat().st_size / 2**20:6.1f} MiB  {mine['seconds']:7.3f} s ({mine['cpu_seconds']:.2f} s of processor), {mine['chunks']:6.0f} chunks,"
              f" peak {mine['peak_rss_mib']:.1f} MiB")


if __name__ == "__main__":
    main()

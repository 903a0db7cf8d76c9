#!/usr/bin/env python3
"""Measures `tale env check` on a full file. See env.md.

Usage: python3 bench/env.py [PROGRAM]

The program is target/release/tale unless another is named. The file is .env.example with every line
active, some slips and further names, so that every part of the check has work.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "target" / "release" / "tale")
RUNS = 50


def full_file():
    text = (ROOT / ".env.example").read_text()
    lines = [re.sub(r"^#([A-Z_]+=)", r"\1", line) for line in text.splitlines()]
    for index in range(100):
        lines.append(f"TALE_UNKNOWN_NAME_{index}=x")
        lines.append(f"SOMEBODY_ELSES_NAME_{index}=${{SITE_URL:-none}}")
    lines.append("OBJECT_STORE_BUKCET=x")
    return "\n".join(lines) + "\n"


def main():
    with tempfile.NamedTemporaryFile("w", suffix=".env", delete=False) as file:
        file.write(full_file())
    names = sum(1 for line in open(file.name) if re.match(r"^[A-Z_0-9]+=", line))
    command = [PROGRAM, "env", "check", "--env-file", file.name]
    wall, cpu = [], []
    for _ in range(RUNS):
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall.append((time.perf_counter() - started) * 1000)
        cpu.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000)
    os.unlink(file.name)
    wall.sort()
    print(f"{names} variables, {RUNS} runs: processor {sum(cpu) / RUNS:.1f} ms each, wall median {wall[RUNS // 2]:.1f} ms")


main()

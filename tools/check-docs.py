#!/usr/bin/env python3
"""Check the documents: width, links to files and headings, and names of source files that exist.

usage: tools/check-docs.py [--self-test] [--wrap FILE...]

--wrap rewrites paragraphs and list items of FILE at the width this check asks for.
"""

import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

WIDTH = 100
LINK = re.compile(r"\]\(([^)\s]+)\)")
# A file of the project in backticks, such as `engine/act/land.c`; `cli/cmd/NAME.c` is a pattern.
FOLDERS = "base|cowfs|snapshot|runner|engine|cli|tools|tests|docs"
SOURCE = re.compile(rf"`((?:{FOLDERS})/[a-z0-9_./-]+\.[a-z]+)`")
ITEM = re.compile(r"^(\s*)([-*]|\d+\.)\s+")


def documents(root):
    out = subprocess.run(["git", "-C", root, "ls-files", "*.md"], capture_output=True, text=True,
                         check=True).stdout
    return [root / name for name in out.splitlines()]


def blocks(lines):
    """Yield (first line, lines, is prose); tables, code, headings and HTML are not prose."""
    start = 0
    while start < len(lines):
        line = lines[start]
        end = start + 1
        if line.startswith("```"):
            while end < len(lines) and not lines[end].startswith("```"):
                end += 1
            yield start, lines[start:end + 1], False
            start = end + 1
            continue
        if not line.strip() or line.lstrip().startswith("|") \
                or line.startswith(("#", "<", "    ", "\t", "![", "[!")):
            yield start, [line], False
        else:
            while end < len(lines) and lines[end].strip() and not ITEM.match(lines[end]) \
                    and not lines[end].startswith(("#", "```", "<")) \
                    and not lines[end].lstrip().startswith("|"):
                end += 1
            yield start, lines[start:end], True
        start = end


def slug(heading):
    text = re.sub(r"[`*]|\]\([^)]*\)|\[", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def headings(path):
    found, fenced = set(), False
    for line in path.read_text().splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif line.startswith("#") and not fenced:
            name, n = slug(line.lstrip("#")), 0
            while (f"{name}-{n}" if n else name) in found:
                n += 1
            found.add(f"{name}-{n}" if n else name)
    return found


def complaints(root, path):
    where = path.relative_to(root)
    lines = path.read_text().splitlines()
    for first, block, prose in blocks(lines):
        for n, line in enumerate(block, first + 1):
            if prose and len(line) > WIDTH and " " in line.strip()[:WIDTH]:
                yield (f"{where}:{n}: {len(line)} columns; "
                       f"'tools/check-docs.py --wrap {where}' mends it")
    for n, line in enumerate(lines, 1):
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, fragment = target.partition("#")
            there = (path.parent / name).resolve() if name else path
            if not there.exists():
                yield f"{where}:{n}: {target} is not there"
            elif fragment and there.suffix == ".md" and fragment not in headings(there):
                yield f"{where}:{n}: {name or where} has no heading '#{fragment}'"
        for name in SOURCE.findall(line):
            if not (root / name).exists():
                yield f"{where}:{n}: {name} is not there"


def wrap(path):
    out = []
    for _, block, prose in blocks(path.read_text().splitlines()):
        if not prose or all(len(line) <= WIDTH for line in block):
            out += block
            continue
        item = ITEM.match(block[0])
        lead = item.group(0) if item else re.match(r"\s*", block[0]).group(0)
        rest = " " * len(lead)
        text = " ".join(line.strip() for line in block)
        text = text[len(lead.strip()):].strip() if item else text
        out += textwrap.wrap(text, WIDTH, initial_indent=lead, subsequent_indent=rest,
                             break_long_words=False, break_on_hyphens=False)
    path.write_text("\n".join(out) + "\n")


PLANTED = [
    ("word " * 21, "105 columns"),
    ("[gone](gone.md)", "gone.md is not there"),
    ("[no heading](#nowhere)", "has no heading '#nowhere'"),
    ("see `base/nothing.c`", "base/nothing.c is not there"),
    ("| " + "wide " * 30 + "|", None),
    ("- " + "word " * 20 + "\n  | row 1 |\n  | row 2 |", "102 columns"),
    ("[fine](#top)", None),
    ("```\n" + "x " * 60 + "\n```", None),
]


def self_test():
    for text, expected in PLANTED:
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "page.md")
            page.write_text(f"# Top\n\n{text}\n")
            found = list(complaints(Path(folder), page))
            if (expected is None) != (not found) or expected and expected not in found[0]:
                print(f"{text[:40]!r}: expected {expected}, found {found}")
                return 1
            rows = [line for line in page.read_text().splitlines() if "| row" in line]
            wrap(page)
            if rows != [line for line in page.read_text().splitlines() if "| row" in line]:
                print(f"{text[:40]!r}: --wrap broke a table")
                return 1
            if any("columns" in line for line in complaints(Path(folder), page)):
                print(f"{text[:40]!r}: still too wide after --wrap")
                return 1
    return 0


def main():
    root = Path(__file__).resolve().parents[1]
    if "--self-test" in sys.argv[1:]:
        return self_test()
    if sys.argv[1:2] == ["--wrap"]:
        for name in sys.argv[2:]:
            wrap(Path(name))
        return 0
    found = [c for path in documents(root) for c in complaints(root, path)]
    print("\n".join(found) if found else "documents: widths, links and names are right")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

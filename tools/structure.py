#!/usr/bin/env python3
"""Measures the structure of the product's code, as a table in Markdown.

usage: tools/structure.py [--objects BUILD] [REVISION...]

A column for each revision, and a last one for the tree as it lies here. The rows from `calls` on come
from the symbols of a build: with --objects of BUILD for this tree, and for a REVISION of the directory
`REVISION=BUILD` names. What calls a function through a pointer is not seen.

What counts: .c and .h outside of tests/ and tools/. A room is a .c file.
"""

import collections
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "lib"))
sys.dont_write_bytecode = True
from sources import c_files  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
LONG_FILE, LONG_FUNCTION = 600, 50

# How an array that grows is written by hand: a capacity times a number, or with a part of it added,
# in a file that reallocates.  base/ has the only ones (vec.c, buf.c); a hash table that doubles
# (slots.c, map.c) allocates anew and enters all again.
GROWING = re.compile(r"\bcap\s*(?:\*=?\s*2|<<=?\s*1|\+=?\s*[\w>.-]*cap\s*/)|\b2\s*\*\s*\*?[\w>.-]*\bcap\b")
REALLOCATES = re.compile(r"\brealloc(?:array)?\((?!NULL)")

# Verb -> the function, or one of the functions, where it begins.
VERBS = {
    "promote, in cowfsd": ("serve_promote",),
    "write, in a mounted clone": ("op_write",),
}


def is_product(path):
    return path.endswith((".c", ".h")) and not path.startswith(("tests/", "tools/", "build"))


def tree_here():
    return {p: (ROOT / p).read_text(errors="replace") for p in c_files(ROOT) if is_product(p)}


def tree_of(revision):
    archive = subprocess.run(["git", "-C", ROOT, "archive", revision], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {m.name: tar.extractfile(m).read().decode(errors="replace")
                for m in tar if m.isfile() and is_product(m.name)}


def functions(text):
    """(name, lines) of each, by the house style: a brace in the first column opens and closes it."""
    lines, start = text.split("\n"), None
    for i, line in enumerate(lines):
        if line == "{":
            start = i
        elif line == "}" and start is not None:
            head = next((x for x in reversed(lines[max(0, start - 8):start]) if re.match(r"[a-zA-Z]", x)), "")
            name = re.search(r"(\w+)\(", head)
            yield (name[1] if name else "?"), i - start - 1
            start = None


def source_figures(tree):
    rooms = collections.Counter(os.path.dirname(p) for p in tree if p.endswith(".c"))
    folder, most = rooms.most_common(1)[0]
    lengths = [n for p, text in tree.items() if p.endswith(".c") for _, n in functions(text)]
    lines = {p: text.count("\n") for p, text in tree.items()}
    return {
        "lines of product code": f"{sum(lines.values()):,}",
        "rooms": f"{sum(rooms.values()):,}",
        "rooms in the largest folder": f"{most} ({folder}/)",
        f"files over {LONG_FILE} lines": str(sum(n > LONG_FILE for n in lines.values())),
        "functions": f"{len(lengths):,}",
        f"functions over {LONG_FUNCTION} lines": str(sum(n > LONG_FUNCTION for n in lengths)),
        "arrays that grow by hand": str(sum(
            len(GROWING.findall(t)) for p, t in tree.items() if REALLOCATES.search(t) and not p.startswith("base/"))),
        "`if (r >= 0)`: results carried along": f"{sum(t.count('if (r >= 0)') for t in tree.values()):,}",
        "`if (r < 0)`: early returns": f"{sum(t.count('if (r < 0)') for t in tree.values()):,}",
    }


# --- what the symbols show ----------------------------------------------------------------------


def check_layers():
    spec = importlib.util.spec_from_file_location("check_layers", ROOT / "tools" / "check-layers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def objects_of(build):
    """{source: object} of the product, by the sources' paths from the top of their tree."""
    found = {}
    top = next(p for p in build.parents if (p / "meson.build").is_file())
    for entry in json.loads((build / "compile_commands.json").read_text()):
        where = Path(entry["directory"])
        source = os.path.relpath(where / entry["file"], top)
        if is_product(source) and not entry["output"].startswith(("tests", "tools")):
            found.setdefault(source, where / entry["output"])
    return {s: o for s, o in found.items() if o.is_file()}


CALL = re.compile(r"^\s+[0-9a-f]+:\s+(?:bl|b|b\.\w+|callq?|jmpq?)\s+.*<([\w.]+)(?:\+0x[0-9a-f]+)?>")
RELOCATION = re.compile(r"^\s+[0-9a-f]+: R_\w+\s+([\w.]+)")
START = re.compile(r"^[0-9a-f]+ <([\w.]+)>:$")
OBJECT = re.compile(r"^(/\S+): +file format ")


def call_graph(objects):
    """{(source, function): names it calls}, {global name: source}."""
    graph, home, at = {}, {}, None
    source_of = {str(path): source for source, path in objects.items()}
    tool = subprocess.Popen(["objdump", "-dr", "--no-show-raw-insn", *sorted(source_of)], stdout=subprocess.PIPE,
                            text=True)
    for line in tool.stdout:
        start = OBJECT.match(line) or START.match(line)
        if start:
            source, at = (source_of[start[1]], None) if start.re is OBJECT else (source, (source, start[1]))
            if at:
                graph[at] = set()
            continue
        call = at and (CALL.match(line) or RELOCATION.match(line))
        if call:
            graph[at].add(call[1])
    if tool.wait() != 0:
        sys.exit("objdump failed: is something being built?")
    names = subprocess.run(["nm", "-A", *sorted(source_of)], capture_output=True, text=True, check=True).stdout
    for line in names.splitlines():
        path, _, rest = line.partition(":")
        *_, kind, name = rest.split()
        if kind == "T":
            home.setdefault(name, source_of[path])
    return graph, home


def arrows(graph, home, begin):
    """Files that call each other below a function: {file: files}."""
    left, seen, found = [begin], {begin}, collections.defaultdict(set)
    while left:
        source, function = left.pop()
        found[source] |= set()
        for name in graph.get((source, function), ()):
            to = (source, name) if (source, name) in graph else (home.get(name), name)
            if to not in graph:
                continue
            if to[0] != source:
                found[source].add(to[0])
            if to not in seen:
                seen.add(to)
                left.append(to)
    return found


def upward_calls(calls, layers):
    """Calls of files to a folder that the table of layers does not allow theirs; "" for other folders than it has."""
    def allowed(a, b):
        here, there = layers.folder_of(a), layers.folder_of(b)
        return layers.may_use(a, here, there) or there.startswith(layers.CALLS_ALL.get(here, "/"))
    if not set(map(layers.folder_of, calls)) <= set(layers.MAY_USE):
        return ""
    return str(sum(not allowed(a, b) for a, bs in calls.items() for b in bs))


def symbol_figures(build, layers):
    objects = objects_of(build)
    graph, home = call_graph(objects)
    defined, wants = layers.symbols(objects)
    calls = {s: {defined[n] for n in names if defined.get(n, s) != s} for s, names in wants.items()}
    edges = collections.defaultdict(set)
    for a, bs in calls.items():
        edges[os.path.dirname(a)] |= {os.path.dirname(b) for b in bs} - {os.path.dirname(a)}
    rows = {
        "calls from room to room": f"{sum(map(len, calls.values())):,}",
        "   of these upward, against the table of layers": upward_calls(calls, layers),
        "folders in a circle": str(sum(map(len, layers.circles(edges)))),
        "rooms in a circle": str(sum(map(len, layers.circles(calls)))),
    }
    for verb, names in VERBS.items():
        begin = next((at for at in graph if at[1] in names), None)
        below = arrows(graph, home, begin) if begin else {}
        ringed = [set(r) for r in layers.circles(below)]
        back = sum(1 for a in below for b in below[a] if any(a in r and b in r for r in ringed))
        rows[f"rooms of a {verb}"] = str(len(below)) if begin else "not found"
        rows["   of their arrows, on a circle (" + verb.split(",")[0] + ")"] = str(back) if begin else "not found"
    return rows


def main():
    args, build = sys.argv[1:], None
    if args[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    if args[:1] == ["--objects"] and len(args) > 1:
        build, args = Path(args[1]).resolve(), args[2:]
    layers, columns = check_layers(), []
    for arg in args:
        revision, _, where = arg.partition("=")
        figures = source_figures(tree_of(revision))
        if where:
            figures.update(symbol_figures(Path(where).resolve(), layers))
        columns.append((revision, figures))
    figures = source_figures(tree_here())
    if build:
        figures.update(symbol_figures(build, layers))
    figures["calls that close a circle, listed with a reason"] = str(len(layers.BACK))
    columns.append(("here", figures))
    rows = list(dict.fromkeys(name for _, column in columns for name in column))
    print("| | " + " | ".join(name for name, _ in columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for row in rows:
        print(f"| {row.strip()} | " + " | ".join(column.get(row, "") for _, column in columns) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())

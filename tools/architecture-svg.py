#!/usr/bin/env python3
"""Draws docs/design/architecture.svg from the table of tools/check-layers.py.

usage: tools/architecture-svg.py [--check]

An arrow says "may use". Arrows that others imply are left out: who may use a folder may use what
that one uses, unless the table says otherwise. A folder appears with its first C file, and must
then have a place below. With --check nothing is written, and a picture that differs is an error.
"""

import importlib.util
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "design" / "architecture.svg"

WIDTH, TOP, ROW, BOX_W, BOX_H = 1180, 100, 66, 146, 36
BASE_ROW = 12
SNAP, BOTH, COWFSD = "snap", "both", "cowfsd"  # in which process it is

# Folder -> process, middle in x, row.
PLACES = {
    "cli": (SNAP, 110, 0),
    "engine/experiment": (SNAP, 300, 1.7),
    "engine/watch": (SNAP, 405, 0),
    "engine/pipeline": (SNAP, 500, 0.7),
    "engine/verb": (SNAP, 300, 2.4),
    "engine/run": (SNAP, 300, 3),
    "engine/ask": (SNAP, 405, 4),
    "engine/policy": (SNAP, 500, 1.4),
    "cli/mcp": (SNAP, 110, 6),
    "cli/ui": (SNAP, 270, 6),
    "cli/http": (SNAP, 110, 8),
    "engine/worker": (SNAP, 110, 2.2),
    "engine/transfer": (SNAP, 110, 2.9),
    "remote": (SNAP, 110, 10),
    "runner": (SNAP, 200, 9),
    "runner/net": (SNAP, 362, 9),
    "engine/cowfsd": (COWFSD, 1060, 1),
    "engine/act": (COWFSD, 1060, 2),
    "engine/host": (COWFSD, 1060, 3),
    "cowfs/fuse": (COWFSD, 1060, 7),
    "cowfs/core": (COWFSD, 1060, 8),
    "engine/wire": (BOTH, 640, 5),
    "engine/find": (BOTH, 640, 6),
    "engine/api": (BOTH, 640, 7),
    "snapshot/patch": (BOTH, 480, 8),
    "snapshot/merge": (BOTH, 640, 8),
    "snapshot/apply": (BOTH, 800, 8),
    "snapshot/diff": (BOTH, 565, 9),
    "snapshot/capture": (BOTH, 800, 9),
    "snapshot/text": (BOTH, 680, 10),
    "remote/pack": (BOTH, 480, 10.6),
    "image": (BOTH, 330, 8),
    "cowfs/store/upkeep": (BOTH, 945, 10),
    "cowfs/store": (BOTH, 800, 11),
    "base": (BOTH, WIDTH // 2, BASE_ROW),
}
# Tests, tools, and what has no process of its own yet.
NOT_SHOWN = ("tests", "tools/bench", "tools/macos-stubs")
# Arrows that must go around others: beside the first box down, or aside and then down.
BESIDE = {("cli", "engine/api")}
ASIDE_FIRST = {("engine/find", "cowfs/store/upkeep")}

STYLE = """
text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #1b1f24; text-anchor: middle }
.title { font: 600 14px system-ui, sans-serif }
.note { font: 12px system-ui, sans-serif; fill: #57606a }
.box { stroke-width: 1.3 }
.snap { fill: #ddeeff; stroke: #3b75b8 }
.cowfsd { fill: #dff3e0; stroke: #3c8a48 }
.both { fill: #f3f0e6; stroke: #8a7f5c }
.arrow { fill: none; stroke: #57606a; stroke-width: 1.2; marker-end: url(#head) }
.asks { fill: none; stroke: #b3541e; stroke-width: 1.6; stroke-dasharray: 6 4; marker-end: url(#asks) }
"""


def table():
    """{folder: folders that it may use}, of those that have code."""
    spec = importlib.util.spec_from_file_location("layers", ROOT / "tools" / "check-layers.py")
    layers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(layers)
    rows = {here for here in layers.MAY_USE
            if here not in NOT_SHOWN and any((ROOT / here).glob("*.c"))}
    return {here: {there for there in layers.MAY_USE[here] if there in rows} for here in rows}


def reached(uses, here):
    return uses[here].union(*(reached(uses, there) for there in uses[here]))


def arrows(uses):
    """Those that no other arrow implies, in a fixed order."""
    for here in sorted(uses):
        for there in sorted(uses[here]):
            if not any(there in reached(uses, other) for other in uses[here] - {there}):
                yield here, there


def corner(place):
    _, x, row = place
    return x, TOP + row * ROW


def path(here, there):
    (x1, y1), (x2, y2) = corner(PLACES[here]), corner(PLACES[there])
    assert PLACES[here][2] < PLACES[there][2], f"{here} must be drawn above {there}"
    half = BOX_W // 2
    if (here, there) in BESIDE:
        return (f"M{x1 + half} {y1 + BOX_H // 2} H{x1 + half + 16} V{y2 + BOX_H // 2} "
                f"H{x2 - half}")
    if (here, there) in ASIDE_FIRST:
        return f"M{x1 + half} {y1 + BOX_H // 2} H{x2} V{y2}"
    if there == "base":
        return f"M{x1} {y1 + BOX_H} V{y2}"
    middle = (y1 + BOX_H + y2) // 2
    return f"M{x1} {y1 + BOX_H} C{x1} {middle} {x2} {middle} {x2} {y2}"


def box(folder):
    kind, x, y = PLACES[folder][0], *corner(PLACES[folder])
    width = WIDTH - 60 if folder == "base" else BOX_W
    return (f'<rect class="box {kind}" x="{x - width // 2}" y="{y}" width="{width}" '
            f'height="{BOX_H}" rx="5"/>\n'
            f'<text x="{x}" y="{y + BOX_H // 2 + 5}">{escape(folder)}</text>\n')


def head(name, colour):
    return (f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
            f'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="{colour}"/></marker>')


def picture():
    uses = table()
    missing = sorted(set(uses) ^ set(PLACES))
    if missing:
        sys.exit(f"tools/architecture-svg.py: PLACES and the layer table disagree about "
                 f"{', '.join(missing)}")
    height = TOP + BASE_ROW * ROW + BOX_H + 60
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'role="img" aria-label="Two processes, their folders, and which may use which">\n',
        f"<style>{STYLE}</style>\n",
        f'<defs>{head("head", "#57606a")}{head("asks", "#b3541e")}</defs>\n',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n',
        '<text class="title" x="200" y="32">snap: the command line</text>\n'
        '<text class="note" x="200" y="52">one thread, may fork</text>\n'
        f'<text class="title" x="{WIDTH - 120}" y="32">cowfsd: the daemon</text>\n'
        f'<text class="note" x="{WIDTH - 120}" y="52">many threads, never forks</text>\n'
        f'<path class="asks" d="M310 38 H{WIDTH - 220}"/>\n'
        f'<text class="note" x="{(310 + WIDTH - 220) // 2}" y="30">asks, over a unix socket</text>\n',
    ]
    parts += [f'<path class="arrow" d="{path(a, b)}"/>\n' for a, b in arrows(uses)]
    parts += [box(folder) for folder in PLACES]
    y = height - 34
    for kind, x, words in ((SNAP, 300, "in the command line"), (BOTH, 520, "in both processes"),
                           (COWFSD, 720, "in cowfsd")):
        parts.append(f'<rect class="box {kind}" x="{x}" y="{y}" width="18" height="14" rx="3"/>\n'
                     f'<text class="note" style="text-anchor:start" x="{x + 26}" y="{y + 12}">'
                     f'{words}</text>\n')
    return "".join(parts) + "</svg>\n"


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        print("usage: tools/architecture-svg.py [--check]", file=sys.stderr)
        return 2
    wanted = picture()
    if not sys.argv[1:]:
        PICTURE.write_text(wanted)
    elif not PICTURE.exists() or PICTURE.read_text() != wanted:
        print(f"{PICTURE.relative_to(ROOT)} is not what the layer table says: run "
              f"tools/architecture-svg.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

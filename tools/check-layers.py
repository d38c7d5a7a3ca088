#!/usr/bin/env python3
"""Reads every #include and says which ones point up. The table is docs/style.md, section 2."""

import os
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "lib"))
sys.dont_write_bytecode = True
from sources import c_files  # noqa: E402

ANY = object()

# Folder -> what else it may use. A file belongs to the deepest folder named here.
MAY_USE = {
    "base": (),
    "cowfs/store": ("base",),
    "cowfs/core": ("base", "cowfs/store"),
    "cowfs/fuse": ("base", "cowfs/core"),
    "snapshot": ("base", "cowfs/store"),
    "runner": ("base",),
    "engine": ("base", "cowfs/store", "cowfs/core", "cowfs/fuse", "snapshot", "runner"),
    "cli": ("base", "engine", "snapshot"),
    "tools/bench": ("base", "cowfs/store", "engine"),
    "tools/macos-stubs": (),
    "tests": ANY,
}

# Library header -> the folder that owns the library.
OWNER = {
    r"sqlite3(ext)?\.h": "cowfs/store",
    r"(zstd|zstd_errors|zdict)\.h": "cowfs/store",
    r"(xxhash|xxh3|xxh_\w+)\.h": "cowfs/store",
    r"(json-c/.+|json|json_\w+)\.h": "base",
    r"(libfyaml/.+|libfyaml)\.h": "base",
    r"(fuse3?/.+|fuse|fuse_\w+)\.h": "cowfs/fuse",
    r"(git2/.+|git2)\.h": "snapshot",
    r"(zlib|zconf)\.h": "snapshot",
    r"seccomp\.h": "runner",
    r"systemd/.+\.h": "runner",
    r"(cmocka|cmocka_\w+)\.h": "tests",
}

# What is measured beside ours: it uses any library, and nothing of the project.
PEERS = ("tools/bench/bare-fuse.c",)

# Headers that only their own folder may include.
PRIVATE = r"cowfs/store/(db|schema)\.h|cowfs/fuse/ops\.h|.+-i\.h"

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)


def folder_of(path):
    parts = path.split("/")[:-1]
    while parts and "/".join(parts) not in MAY_USE:
        parts.pop()
    return "/".join(parts)


def complaint(root, path, bracket, header):
    """What is wrong with this #include, or None."""
    here = folder_of(path)
    if not here:
        return f"{os.path.dirname(path) or path} has no row in the table of tools/check-layers.py"
    allowed = MAY_USE[here]
    if allowed is ANY:
        return None
    if path in PEERS:
        return None if bracket == "<" else "a peer uses nothing of the project"
    if bracket == "<":
        for pattern, owner in OWNER.items():
            if re.fullmatch(pattern, header) and owner != here:
                return f"<{header}> belongs to {owner}"
        return None
    if not (root / header).is_file():
        return f'"{header}" is no file here; name it by its path from the top'
    there = folder_of(header)
    if there == here:
        return None
    if there not in allowed:
        return f"{here} may not use {there or header}"
    if re.fullmatch(PRIVATE, header):
        return f"{header} is private to {there}"
    return None


def violations(root, files):
    for path in files:
        text = (root / path).read_text(errors="replace")
        for match in INCLUDE.finditer(text):
            why = complaint(root, path, *match.groups())
            if why:
                yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {why}"


# What the self-test plants: file, the include on its second line, the complaint it must cause.
PLANTED = [
    ("snapshot/diff/diff.c", '"cowfs/core/layer.h"', "snapshot may not use cowfs/core"),
    ("snapshot/a.c", "<sqlite3.h>", "<sqlite3.h> belongs to cowfs/store"),
    ("engine/a.c", '"cowfs/store/db.h"', "cowfs/store/db.h is private to cowfs/store"),
    ("engine/b.c", '"cowfs/core/layer-i.h"', "cowfs/core/layer-i.h is private to cowfs/core"),
    ("cowfs/fuse/a.c", '"cowfs/store/store.h"', "cowfs/fuse may not use cowfs/store"),
    ("runner/a.c", '"cowfs/store/store.h"', "runner may not use cowfs/store"),
    ("tools/bench/bare-fuse.c", '"base/buf.h"', "a peer uses nothing of the project"),
    ("base/a.h", '"tests/lib/test.h"', "base may not use tests"),
    ("cli/mcp/a.c", '"runner/sandbox.h"', "cli may not use runner"),
    ("cowfs/core/a.c", "<fuse3/fuse_lowlevel.h>", "<fuse3/fuse_lowlevel.h> belongs to cowfs/fuse"),
    ("cli/a.c", "<json-c/json.h>", "<json-c/json.h> belongs to base"),
    ("engine/c.c", "<git2.h>", "<git2.h> belongs to snapshot"),
    ("base/b.c", "<seccomp.h>", "<seccomp.h> belongs to runner"),
    ("tools/bench/a.c", '"cowfs/core/layer.h"', "tools/bench may not use cowfs/core"),
    ("base/c.c", '"err.h"', '"err.h" is no file here; name it by its path from the top'),
    ("misc/a.c", "<stdio.h>", "misc has no row in the table of tools/check-layers.py"),
    ("base/d.c", '"base/err.h"', None),
    ("cowfs/core/b.c", '"cowfs/core/layer-i.h"', None),
    ("cowfs/store/a.c", "<zstd.h>", None),
    ("runner/b.c", "<linux/seccomp.h>", None),
    ("cli/b.c", '"snapshot/diff/diff.h"', None),
    ("tools/bench/b.c", '"cowfs/store/store.h"', None),
    ("tests/unit/a.c", '"cowfs/store/db.h"', None),
]


def self_test():
    headers = ["base/err.h", "cowfs/store/store.h", "cowfs/store/db.h", "cowfs/core/layer.h",
               "cowfs/core/layer-i.h", "snapshot/diff/diff.h", "runner/sandbox.h", "tests/lib/test.h"]
    want = sorted(f"{path}:2: {why}" for path, _, why in PLANTED if why)
    with tempfile.TemporaryDirectory() as tmp:
        root = Path(tmp)
        files = {name: "#pragma once\n" for name in headers}
        files.update((path, f"/* planted */\n#include {inc}\n") for path, inc, _ in PLANTED)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found = sorted(violations(root, files))
    for line in sorted(set(want) - set(found)):
        print(f"not found: {line}")
    for line in sorted(set(found) - set(want)):
        print(f"found without reason: {line}")
    return found == want


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 0 if self_test() else 1
    if len(sys.argv) > 1:
        print("usage: tools/check-layers.py [--self-test]", file=sys.stderr)
        return 2
    root = Path(__file__).resolve().parent.parent
    found = list(violations(root, c_files(root)))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

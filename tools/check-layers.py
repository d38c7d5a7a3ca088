#!/usr/bin/env python3
"""Says what points the wrong way: the table is below, the words for it are in docs/design/architecture.md.

usage: tools/check-layers.py [--objects BUILD | --self-test]

Without options, every #include and every call that starts a process is read in the sources. With
--objects, the symbols of what was built in BUILD are read too: a public header may declare what a
higher folder defines, and macros call what no reader sees.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "lib"))
sys.dont_write_bytecode = True
from sources import c_files  # noqa: E402

ANY = object()

BOTH = ("engine/api", "engine/find", "engine/wire")  # where the two processes meet
SNAPSHOT = ("snapshot/text", "snapshot/diff", "snapshot/capture", "snapshot/patch", "snapshot/merge",
            "snapshot/apply")

# Folder -> what else it may use. A file belongs to the deepest folder named here.
MAY_USE = {
    "base": (),
    "cowfs/store": ("base",),
    "cowfs/store/upkeep": ("base", "cowfs/store"),
    "cowfs/core": ("base", "cowfs/store", "cowfs/store/upkeep"),
    "cowfs/fuse": ("base", "cowfs/core"),
    "snapshot/text": ("base", "cowfs/store"),
    "snapshot/diff": ("base", "cowfs/store", "snapshot/text"),
    "snapshot/capture": ("base", "cowfs/store", "snapshot/text"),
    "snapshot/patch": ("base", "cowfs/store", "snapshot/text", "snapshot/diff"),
    "snapshot/merge": ("base", "cowfs/store", "snapshot/text", "snapshot/diff"),
    "snapshot/apply": ("base", "cowfs/store", "snapshot/text", "snapshot/diff", "snapshot/capture"),
    "image": ("base", "cowfs/store", "snapshot/diff"),
    "runner": ("base",),
    "runner/net": ("base",),
    # What travels, for both processes; how it travels, for the command line.
    "remote/pack": ("base", "cowfs/store"),
    "remote": ("base", "remote/pack"),
    # Both processes.
    "engine/api": ("base", *SNAPSHOT),
    "engine/find": ("base", "cowfs/store", "cowfs/store/upkeep", *SNAPSHOT, "engine/api"),
    "engine/wire": ("base", "cowfs/store", *SNAPSHOT, "engine/api", "engine/find"),
    # The command line: one thread, may fork.
    "engine/ask": ("base", "cowfs/store", *BOTH),
    "engine/run": ("base", "cowfs/store", "runner", "runner/net", "snapshot/text", *BOTH, "engine/ask"),
    "engine/verb": ("base", "cowfs/store", "image", "runner", "remote", *SNAPSHOT, *BOTH, "engine/ask", "engine/run",
                    "engine/transfer"),
    "engine/experiment": ("base", "cowfs/store", *SNAPSHOT, *BOTH, "engine/ask", "engine/run",
                          "engine/verb", "engine/worker"),
    "engine/policy": ("base", *SNAPSHOT, *BOTH, "engine/run", "engine/verb", "engine/experiment"),
    "engine/pipeline": ("base", "cowfs/store", *SNAPSHOT, *BOTH, "engine/ask", "engine/run", "engine/verb",
                        "engine/policy"),
    "engine/watch": ("base", "cowfs/store", *SNAPSHOT, *BOTH, "engine/ask", "engine/run", "engine/verb",
                     "engine/experiment", "engine/policy", "engine/pipeline"),
    "engine/transfer": ("base", "cowfs/store", "snapshot/diff", *BOTH, "engine/ask", "remote",
                        "remote/pack"),
    "engine/worker": ("base", "cowfs/store", *BOTH, "engine/ask", "engine/run", "engine/transfer", "remote",
                      "remote/pack"),
    # cowfsd: many threads, never forks.
    "engine/host": ("base", "cowfs/store", "cowfs/core", "cowfs/fuse", *SNAPSHOT, "remote/pack", *BOTH),
    "engine/act": ("base", "cowfs/store", "cowfs/store/upkeep", "cowfs/core", "cowfs/fuse", "image", *SNAPSHOT,
                   "remote/pack", *BOTH, "engine/host"),
    "engine/cowfsd": ("base", "cowfs/store", *BOTH, "engine/host", "engine/act"),
    "cli/http": ("base",),
    "cli/mcp": ("base", "cli/http"),
    "cli/ui": ("base", "cli/http"),
    "cli": ("base", "engine/api", *SNAPSHOT, "cli/http", "cli/mcp", "cli/ui"),
    "web": ("base", "engine/api"),
    "tools/bench": ("base", "cowfs/store", "cowfs/fuse", "engine/api"),
    "tools/macos-stubs": (),
    "tests": ANY,
}

# (file, folder) that the table forbids, and why it is so all the same.
KNOWN = {
    ("engine/find/run-record-json.c", "runner"): "names of walls, which a record holds by name",
    ("engine/verb/doctor-linux.c", "cowfs/fuse"): "doctor tries what cowfsd will do",
    ("engine/ask/leave-linux.c", "runner"): "cowfsd is put in a scope of systemd, as a run is",
}

# (file, file): a call back that closes a circle between two files of one folder, and why it is so all
# the same.  The list may only become shorter: any other circle is refused.  What is left is one
# recursion, since an arm of an experiment may hold an experiment, which has arms, and two questions
# that are asked back.
BACK = {
    ("cowfs/core/budget.c", "cowfs/core/sweep.c"): "a write that waits for room may have to wait for a gc",
    ("engine/watch/reach.c", "engine/watch/rule-read.c"): "the look that may hang is at the files of the rules",
    ("engine/experiment/arm.c", "engine/experiment/inner.c"): "an arm may hold an experiment",
    ("engine/experiment/file-arms.c", "engine/experiment/file-read.c"): "an arm of a file may hold a plan",
    ("engine/experiment/inner.c", "engine/experiment/schedule.c"): "arms inside are stopped as any others",
    ("engine/experiment/inner.c", "engine/experiment/work.c"): "arms inside go on as any others",
}

# A folder that includes engine/api calls what is defined anywhere in the engine.
CALLS_ALL = {"cli": "engine/", "cli/mcp": "engine/", "web": "engine/",
             "tools/bench": "engine/"}

# Headers that end in -i.h, and these, are for the folders that begin like theirs.
PARTS = ("engine", "snapshot", "cowfs/store")
PRIVATE = r"cowfs/store/(db|schema)\.h|cowfs/fuse/ops\.h|.+-i\.h"

# Library header -> the folder, with those below it, that owns the library.
OWNER = {
    r"sqlite3(ext)?\.h": "cowfs/store",
    r"(zstd|zstd_errors|zdict)\.h": ("cowfs/store", "remote/pack"),
    r"(xxhash|xxh3|xxh_\w+)\.h": "cowfs/store",
    r"(json-c/.+|json|json_\w+)\.h": "base",
    r"(libfyaml/.+|libfyaml)\.h": "base",
    r"nettle/.+\.h": "base",
    r"(fuse3?/.+|fuse|fuse_\w+)\.h": "cowfs/fuse",
    r"(archive|archive_entry)\.h": "image",
    r"(git2/.+|git2)\.h": "snapshot",
    r"(zlib|zconf)\.h": ("snapshot", "image"),
    r"seccomp\.h": "runner",
    r"systemd/.+\.h": "runner",
    r"microhttpd\.h": "cli/http",
    r"gnutls/.+\.h": "runner/net",
    r"curl/.+\.h": "remote",
    r"(nats/.+|nats)\.h": "remote",
    r"(cmocka|cmocka_\w+)\.h": "tests",
}

# What is measured beside ours: it uses any library, and nothing of the project.
PEERS = ("tools/bench/bare-fuse.c",)

# What cowfsd is made of; in none of it a process begins, but for these by posix_spawn().
NO_FORK = ("base", "cowfs/", "image/", "snapshot/", "remote/pack", "engine/api", "engine/find", "engine/wire", "engine/host",
           "engine/act", "engine/cowfsd")
SPAWNS = {
    "cowfs/fuse/fusermount-linux.c": "fusermount3 may mount, we may not",
    "engine/host/self-process.c": "who reads our own mount must be a process that can be killed, and who moves one "
                                  "must leave our namespace",
}
FORKS = ("fork", "vfork", "_Fork", "clone", "clone3", "system", "popen", "daemon", "execl", "execle",
         "execlp", "execv", "execve", "execveat", "execvp", "execvpe", "fexecve", "posix_spawn",
         "posix_spawnp")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
FORK_CALL = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(FORKS))


def folder_of(path):
    parts = path.split("/")[:-1]
    while parts and "/".join(parts) not in MAY_USE:
        parts.pop()
    return "/".join(parts)


def within(folder, top):
    return folder == top or folder.startswith(top + "/")


def part_of(folder):
    return next((top for top in PARTS if within(folder, top)), folder)


def may_use(path, here, there):
    return there == here or there in MAY_USE[here] or (path, there) in KNOWN


def complaint(root, path, bracket, header):
    """What is wrong with this #include, or None."""
    here = folder_of(path)
    if not here:
        return f"{os.path.dirname(path) or path} has no row in the table of tools/check-layers.py"
    if MAY_USE[here] is ANY:
        return None
    if path in PEERS:
        return None if bracket == "<" else "a peer uses nothing of the project"
    if bracket == "<":
        for pattern, owner in OWNER.items():
            owners = (owner,) if isinstance(owner, str) else owner
            if re.fullmatch(pattern, header) and not any(within(here, one) for one in owners):
                return f"<{header}> belongs to {' and '.join(owners)}"
        return None
    if not (root / header).is_file():
        return f'"{header}" is no file here; name it by its path from the top'
    there = folder_of(header)
    if not may_use(path, here, there):
        return f"{here} may not use {there or header}"
    if re.fullmatch(PRIVATE, header) and part_of(here) != part_of(there):
        return f"{header} is private to {part_of(there)}"
    return None


def never_forks(path):
    return folder_of(path).startswith(NO_FORK)


def forbidden_start(path, function):
    """May this file of cowfsd's call that?"""
    return not (path in SPAWNS and function.startswith("posix_spawn"))


def violations(root, files):
    """What the sources show."""
    for path in files:
        text = (root / path).read_text(errors="replace")
        for match in INCLUDE.finditer(text):
            why = complaint(root, path, *match.groups())
            if why:
                yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {why}"
        if not never_forks(path):
            continue
        code = NO_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
        for match in FORK_CALL.finditer(code):
            if forbidden_start(path, match[1]):
                yield (f"{path}:{code.count(chr(10), 0, match.start()) + 1}: "
                       f"cowfsd never forks, and here is {match[1]}()")


# --- objects ----------------------------------------------------------------------------------


def built_objects(root, build):
    """{source: object} of what the product is made of."""
    objects = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        where = Path(entry["directory"])
        source = os.path.relpath(where / entry["file"], root)
        top = entry["output"].split("/")[0]
        if MAY_USE.get(folder_of(source), ANY) is not ANY and top != "tests":
            objects[source] = where / entry["output"]
    return objects


def symbols(objects):
    """{name: source that defines it}, {source: names that it wants}."""
    home, wants = {}, {source: set() for source in objects}
    source_of = {str(path): source for source, path in objects.items()}
    out = subprocess.run(["nm", "-A", *sorted(source_of)], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        path, _, rest = line.partition(":")
        *_, kind, name = rest.split()
        if kind == "U":
            wants[source_of[path]].add(name.split("@")[0])
        elif kind in "TDBRGSVWC":
            home.setdefault(name, source_of[path])
    return home, wants


def circles(edges):
    """What reaches each other, each circle once."""
    reach = {a: set(b) for a, b in edges.items()}
    changed = True
    while changed:
        changed = False
        for a in reach:
            more = set().union(*(reach.get(b, set()) for b in reach[a])) - reach[a]
            changed |= bool(more)
            reach[a] |= more
    seen = set()
    for a in sorted(reach):
        if a in reach[a] and a not in seen:
            ring = sorted(b for b in reach[a] if a in reach.get(b, ()))
            seen.update(ring)
            yield ring


def file_circles(calls, back):
    """Circles between files that `back` does not explain, and explanations that nothing needs."""
    left = {a: {b for b in bs if (a, b) not in back} for a, bs in calls.items()}
    for ring in circles(left):
        arrows = sorted(f"{a} -> {b}" for a in ring for b in left[a] if b in ring)
        yield "a circle of files: " + ", ".join(arrows)
    for a, b in sorted(back):
        # One that is not built here says nothing.
        if a in calls and b in calls and b not in calls[a]:
            yield f"{a} does not call {b} any more: take it out of BACK"


def symbol_violations(root, build, back=None):
    """What the objects show."""
    home, wants = symbols(built_objects(root, build))
    edges, calls = {}, {source: set() for source in wants}
    for source, names in sorted(wants.items()):
        here = folder_of(source)
        for name in sorted(names):
            if name in FORKS and never_forks(source) and forbidden_start(source, name):
                yield f"{source}: cowfsd never forks, and here is {name}()"
            if name not in home:
                continue
            there = folder_of(home[name])
            if home[name] != source:
                calls[source].add(home[name])
            if there != here:
                edges.setdefault(here, set()).add(there)
            if not (may_use(source, here, there) or there.startswith(CALLS_ALL.get(here, "/"))):
                yield f"{source}: {here} may not call {name}() of {home[name]}"
    for ring in circles(edges):
        yield "a circle: " + ", ".join(ring)
    yield from file_circles(calls, BACK if back is None else back)


# --- self-test --------------------------------------------------------------------------------

# What the self-test plants: file, its second line, the complaint it must cause.
PLANTED = [
    ("snapshot/diff/diff.c", '"cowfs/core/layer.h"', "snapshot/diff may not use cowfs/core"),
    ("snapshot/diff/a.c", '"snapshot/merge/merge.h"', "snapshot/diff may not use snapshot/merge"),
    ("snapshot/text/a.c", "<sqlite3.h>", "<sqlite3.h> belongs to cowfs/store"),
    ("engine/find/a.c", '"cowfs/store/db.h"', "cowfs/store/db.h is private to cowfs/store"),
    ("engine/host/b.c", '"cowfs/core/layer-i.h"', "cowfs/core/layer-i.h is private to cowfs/core"),
    ("engine/find/up.c", '"engine/host/host-i.h"', "engine/find may not use engine/host"),
    ("engine/wire/up.c", '"engine/ask/ask-i.h"', "engine/wire may not use engine/ask"),
    ("engine/act/across.c", '"engine/ask/ask-i.h"', "engine/act may not use engine/ask"),
    ("engine/verb/across.c", '"engine/host/host-i.h"', "engine/verb may not use engine/host"),
    ("engine/ask/up.c", '"engine/run/run-net.h"', "engine/ask may not use engine/run"),
    ("cli/c.c", '"engine/find/engine-i.h"', "cli may not use engine/find"),
    ("cowfs/store/a.h", '"cowfs/store/upkeep/gc.h"', "cowfs/store may not use cowfs/store/upkeep"),
    ("cowfs/fuse/a.c", '"cowfs/store/store.h"', "cowfs/fuse may not use cowfs/store"),
    ("runner/a.c", '"cowfs/store/store.h"', "runner may not use cowfs/store"),
    ("runner/net/a.c", '"runner/sandbox.h"', "runner/net may not use runner"),
    ("tools/bench/bare-fuse.c", '"base/buf.h"', "a peer uses nothing of the project"),
    ("base/a.h", '"tests/lib/test.h"', "base may not use tests"),
    ("cli/mcp/a.c", '"runner/sandbox.h"', "cli/mcp may not use runner"),
    ("cowfs/core/a.c", "<fuse3/fuse_lowlevel.h>", "<fuse3/fuse_lowlevel.h> belongs to cowfs/fuse"),
    ("cli/a.c", "<json-c/json.h>", "<json-c/json.h> belongs to base"),
    ("engine/act/c.c", "<git2.h>", "<git2.h> belongs to snapshot"),
    ("base/b.c", "<seccomp.h>", "<seccomp.h> belongs to runner"),
    ("cli/e.c", "<microhttpd.h>", "<microhttpd.h> belongs to cli/http"),
    ("tools/bench/a.c", '"cowfs/core/layer.h"', "tools/bench may not use cowfs/core"),
    ("base/c.c", '"err.h"', '"err.h" is no file here; name it by its path from the top'),
    ("misc/a.c", "<stdio.h>", "misc has no row in the table of tools/check-layers.py"),
    ("engine/new/a.c", "<stdio.h>", "engine/new has no row in the table of tools/check-layers.py"),
    ("base/d.c", '"base/err.h"', None),
    ("cowfs/core/b.c", '"cowfs/core/layer-i.h"', None),
    ("cowfs/store/a.c", "<zstd.h>", None),
    ("cowfs/store/upkeep/a.c", "<sqlite3.h>", None),
    ("cowfs/store/upkeep/b.c", '"cowfs/store/db.h"', None),
    ("engine/act/d.c", '"engine/host/host-i.h"', None),
    ("engine/verb/d.c", '"engine/ask/ask-i.h"', None),
    ("runner/b.c", "<linux/seccomp.h>", None),
    ("cli/b.c", '"snapshot/diff/diff.h"', None),
    ("tools/bench/b.c", '"cowfs/store/store.h"', None),
    ("tests/unit/a.c", '"cowfs/store/db.h"', None),
]

PLANTED_CODE = [
    ("engine/act/fork.c", "int f(void) { return fork(); }",
     "cowfsd never forks, and here is fork()"),
    ("cowfs/core/spawn.c", "int f(void) { return posix_spawn(0, 0, 0, 0, 0, 0); }",
     "cowfsd never forks, and here is posix_spawn()"),
    ("engine/find/system.c", 'int f(void) { return system("true"); }',
     "cowfsd never forks, and here is system()"),
    ("engine/ask/fork.c", "int f(void) { return fork(); }", None),
    ("engine/host/said.c", "/* fork() */ int f(struct v *v) { return v->clone(1); }", None),
    ("engine/host/self-process.c", "int f(void) { return posix_spawn(0, 0, 0, 0, 0, 0); }", None),
]

# Objects: a public header declares what a higher folder defines, and a macro calls it.
PLANTED_OBJECTS = {
    "engine/find/record.c": "#define CLEANUP(fn) __attribute__((cleanup(fn)))\n"
                            "void run_done(int *r);\nvoid record_end(void);\n"
                            "void record_end(void) { CLEANUP(run_done) int r = 0; (void)r; }\n",
    "engine/run/run.c": "void record_end(void);\nvoid run_done(int *r);\n"
                        "void run_done(int *r) { if (*r) record_end(); }\n",
    "engine/host/live.c": "int fork(void);\nint live(void);\nint live(void) { return fork(); }\n",
    "cli/main/main.c": "void run_done(int *r);\nint main(void) { int r = 0; run_done(&r); return r; }\n",
    # Three files of one folder in a circle, two in one that is explained, one explanation too many.
    "base/one.c": "void two(void);\nvoid one(void);\nvoid one(void) { two(); }\n",
    "base/two.c": "void three(void);\nvoid two(void);\nvoid two(void) { three(); }\n",
    "base/three.c": "void one(void);\nvoid three(void);\nvoid three(void) { one(); }\n",
    "runner/up.c": "void down(void);\nvoid up(void);\nvoid up(void) { down(); }\n",
    "runner/down.c": "void up(void);\nvoid down(void);\nvoid down(void) { up(); }\n",
}
PLANTED_BACK = {
    ("runner/down.c", "runner/up.c"): "explained",
    ("runner/up.c", "base/one.c"): "it does not",
    ("runner/not-built.c", "runner/up.c"): "nobody can tell here",
}
FOUND_OBJECTS = [
    "engine/find/record.c: engine/find may not call run_done() of engine/run/run.c",
    "engine/host/live.c: cowfsd never forks, and here is fork()",
    "a circle: engine/find, engine/run",
    "a circle of files: engine/find/record.c -> engine/run/run.c, engine/run/run.c -> engine/find/record.c",
    "a circle of files: base/one.c -> base/two.c, base/three.c -> base/one.c, base/two.c -> base/three.c",
    "runner/up.c does not call base/one.c any more: take it out of BACK",
]


def compare(want, found):
    for line in sorted(set(want) - set(found)):
        print(f"not found: {line}")
    for line in sorted(set(found) - set(want)):
        print(f"found without reason: {line}")
    return sorted(found) == sorted(want)


def self_test_sources():
    headers = ["base/err.h", "cowfs/store/store.h", "cowfs/store/db.h", "cowfs/store/upkeep/gc.h",
               "cowfs/core/layer.h", "cowfs/core/layer-i.h", "snapshot/diff/diff.h",
               "snapshot/merge/merge.h", "runner/sandbox.h", "tests/lib/test.h",
               "engine/host/host-i.h", "engine/ask/ask-i.h", "engine/run/run-net.h",
               "engine/find/engine-i.h"]
    want = [f"{path}:2: {why}" for path, _, why in PLANTED + PLANTED_CODE if why]
    with tempfile.TemporaryDirectory() as tmp:
        root = Path(tmp)
        files = {name: "#pragma once\n" for name in headers}
        files.update((path, f"/* planted */\n#include {inc}\n") for path, inc, _ in PLANTED)
        files.update((path, f"/* planted */\n{code}\n") for path, code, _ in PLANTED_CODE)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return compare(want, list(violations(root, files)))


def self_test_objects():
    with tempfile.TemporaryDirectory() as tmp:
        root = Path(tmp)
        build = root / "build"
        build.mkdir()
        entries = []
        for name, text in PLANTED_OBJECTS.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
            output = name.replace("/", "_") + ".o"
            subprocess.run([os.environ.get("CC", "cc"), "-w", "-fno-builtin", "-c", root / name, "-o",
                            build / output], check=True)
            entries.append({"directory": str(build), "file": f"../{name}", "output": output})
        (build / "compile_commands.json").write_text(json.dumps(entries))
        return compare(FOUND_OBJECTS, list(symbol_violations(root, build, PLANTED_BACK)))


def self_test_table():
    """No row may lead back to itself, and each names rows."""
    rows = {here: set(there) for here, there in MAY_USE.items() if there is not ANY}
    wrong = [f"a circle in the table: {', '.join(ring)}" for ring in circles(rows)]
    wrong += [f"no row: {there}" for row in rows.values() for there in row if there not in MAY_USE]
    for line in wrong:
        print(line)
    return not wrong


def main():
    args = sys.argv[1:]
    if args == ["--self-test"]:
        # Not `and`: each says what it found.
        return 0 if all([self_test_table(), self_test_sources(), self_test_objects()]) else 1
    if args and not (len(args) == 2 and args[0] == "--objects"):
        print("usage: tools/check-layers.py [--objects BUILD | --self-test]", file=sys.stderr)
        return 2
    root = Path(__file__).resolve().parent.parent
    found = list(violations(root, c_files(root)))
    if args:
        found += symbol_violations(root, Path(args[1]).resolve())
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

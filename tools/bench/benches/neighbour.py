"""What a build feels of the clone beside it, whose run takes all that it can get.

The hostile neighbour (neighbour.c) rewrites, syncs, and makes attributes, names and giants, one
process for each abuse. The honest one builds, in as many processes. Both run in a sandbox, in
turn, beside the same build in a third clone. Somebody looks at the neighbour all the while.

The same programs in directories of ext4, without a sandbox, show what is left when no file system
of ours is in between: processors and a disk are shared there too.
"""

import contextlib
import os
import shutil
import statistics
import subprocess
import threading
import time

from arena import run, timed
from row import OURS, at_most

KINDS = ["rewrite", "sparse", "syncs", "xattrs", "empty", "deep", "storm", "hold", "list"]
HONEST = "beside an honest one"
EXT4_HONEST, EXT4_HOSTILE = "ext4, beside an honest one", "ext4, beside a hostile one"
HONEST_CLONE, HOSTILE_CLONE = "honest", "hostile"
SECONDS, SLOT = 600, 30       # of the hostile neighbour in all, and at a time
QUICK_SECONDS, QUICK_SLOT = 60, 15
LATENCY_SECONDS, QUICK_LATENCY = 10, 3
SETTLE_SECONDS = 60
STORE_MORE, MEMORY_MORE = 17, 32  # MiB: garbage that is not worth a gc; caches of SQLite
SOURCES, FUNCTIONS = 6, 20
MIB = 1 << 20

BUILD = """#!/bin/sh
# build DIR: into DIR, as compilers, archivers and git do it
set -e
rm -rf "$1"; mkdir -p "$1"
for f in src/*.c; do gcc -O1 -Iinclude -c "$f" -o "$1/$(basename "$f" .c).o"; done
ar rcs "$1/all.a" "$1"/*.o
cp -r src include "$1"
git -C "$1" init -q && git -C "$1" add -A
git -C "$1" -c user.name=a -c user.email=a@example.org commit -q -m all
"""

HONEST_RUN = """#!/bin/sh
# honest SECONDS COUNT: builds in so many processes at once until the time is over
end=$(($(date +%s) + $1))
for i in $(seq "$2"); do
  while [ "$(date +%s)" -lt "$end" ]; do sh build "honest$i"; done &
done
wait
"""


def make_project(session):
    path = session.arena.fresh_dir("neighbours")
    for name in ("src", "include"):
        (path / name).mkdir()
    for i in range(SOURCES):
        (path / "include" / f"h{i}.h").write_text(
            "".join(f"int f{i}_{j}(int);\n" for j in range(FUNCTIONS)))
        body = "".join(f"int f{i}_{j}(int a) {{ int s = {j}; for (int i = 0; i < a; i++) "
                       f"s += i * a ^ {j}; return s; }}\n" for j in range(FUNCTIONS))
        heads = "".join(f'#include "h{j}.h"\n' for j in range(SOURCES))
        (path / "src" / f"s{i}.c").write_text(f"#include <stdio.h>\n{heads}{body}")
    (path / "build").write_text(BUILD)
    (path / "honest").write_text(HONEST_RUN)
    shutil.copy(session.helper("neighbour"), path / "neighbour")
    return path


def make_clones(session, project, *names):
    """Clones by these names; `rm` of one that is there takes what it wrote along."""
    there = session.store.path / "clones"
    for name in names:
        if (there / name).exists():
            session.store.snap("rm", "--force", name, cwd=project)
        session.clone_now(project, name)


class Neighbour:
    """A program that works there for so many seconds."""

    def __init__(self, command, cwd, env):
        self.process = subprocess.Popen(
            list(map(str, command)), cwd=cwd, env={**os.environ, **env}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def end(self):
        out, _ = self.process.communicate()
        if self.process.returncode:
            raise SystemExit(f"{out}error: the neighbour ended with {self.process.returncode}")
        return out


def in_clone(session, project, clone, *words):
    return Neighbour([session.snapcow, "run", clone, "--time", "1h", "--", *words], project,
                     session.store.env)


def hostile(session, project, seconds, kinds):
    return in_clone(session, project, HOSTILE_CLONE, "./neighbour", ".", seconds, *kinds)


def honest(session, project, seconds, count):
    return in_clone(session, project, HONEST_CLONE, "sh", "honest", seconds, count)


class Plain:
    """Copies of the project on ext4, for the same three."""

    def __init__(self, session, project):
        self.at = {name: session.arena.fresh_dir(f"plain-{name}")
                   for name in ("victim", HONEST_CLONE, HOSTILE_CLONE)}
        for path in self.at.values():
            shutil.copytree(project, path, dirs_exist_ok=True)

    def hostile(self, seconds, kinds):
        return Neighbour(["./neighbour", ".", seconds, *kinds], self.at[HOSTILE_CLONE], {})

    def honest(self, seconds, count):
        return Neighbour(["sh", "honest", seconds, count], self.at[HONEST_CLONE], {})

    def build(self):
        return timed("sh", "build", "out", cwd=self.at["victim"])


class Onlooker:
    """Somebody who asks for the neighbour's state again and again; milliseconds of each answer."""

    def __init__(self, session, project, clone):
        self.took, self.stop = [], threading.Event()
        self.args = session, project, clone
        self.thread = threading.Thread(target=self.look)
        self.thread.start()

    def look(self):
        session, project, clone = self.args
        while not self.stop.wait(1):
            for words in (["status", clone], ["diff", "--stat", clone]):
                self.took.append(session.store.timed(*words, cwd=project))

    def end(self):
        self.stop.set()
        self.thread.join()
        return self.took


def store_disk(store):
    """Bytes that its own files take, not those that clones show."""
    total = 0
    for path in [*store.path.iterdir(), *(store.path / "runs").glob("*")]:
        with contextlib.suppress(OSError):  # it may go meanwhile
            total += path.lstat().st_blocks * 512
    return total


def footprint(session, project):
    """What there is of it in the end: bytes on the disk, bytes stored, memory of cowfsd."""
    return {"disk of the store": store_disk(session.store) / MIB,
            "bytes stored": session.store.stored(project) / MIB,
            "memory of cowfsd": session.store.memory() / MIB}


def settle(session, project):
    """Once cowfsd has had time to do by itself what it does."""
    time.sleep(SETTLE_SECONDS)
    return footprint(session, project)


def neighbour(session):
    quick = session.opts.quick
    seconds, slot = (QUICK_SECONDS, QUICK_SLOT) if quick else (SECONDS, SLOT)
    built = session.row("a build beside a hostile neighbour", "ms", at_most(1.5, HONEST))
    looked = session.row("`status` and `diff` of the neighbour", "ms", at_most(2, HONEST))
    after = {what: session.row(f"{what}, more than before, when the clones are gone", "MiB",
                               at_most(limit))
             for what, limit in (("disk of the store", STORE_MORE), ("bytes stored", STORE_MORE),
                                 ("memory of cowfsd", MEMORY_MORE))}
    project = session.once("neighbours", lambda: make_project(session))
    make_clones(session, project, "victim", HONEST_CLONE, HOSTILE_CLONE)
    build = [session.snapcow, "run", "victim", "--", "sh", "build", "out"]
    env = session.store.env
    plain = session.once("plain neighbours", lambda: Plain(session, project))
    run(*build, cwd=project, env=env)
    time.sleep(6)
    before = footprint(session, project)
    work, most = {}, dict(before)

    def beside(who, one, clone):
        watcher = Onlooker(session, project, clone)
        time.sleep(1)
        end = time.monotonic() + slot - 1
        while time.monotonic() < end:
            built.add(who, timed(*build, cwd=project, env=env))
            for what, value in footprint(session, project).items():
                most[what] = max(most[what], value)
        for line in one.end().splitlines():
            kind, rounds, refused = line.split()
            got = work.setdefault(kind, [0, 0])
            got[0], got[1] = got[0] + int(rounds), got[1] + int(refused)
        for value in watcher.end():
            looked.add(who, value)

    def beside_on_ext4(who, one):
        time.sleep(1)
        end = time.monotonic() + slot - 1
        while time.monotonic() < end:
            built.add(who, plain.build())
        one.end()
    session.rounds("neighbours", {
        HONEST: lambda _: beside(HONEST, honest(session, project, slot, len(KINDS)), HONEST_CLONE),
        OURS: lambda _: beside(OURS, hostile(session, project, slot, KINDS), HOSTILE_CLONE),
        EXT4_HONEST: lambda _: beside_on_ext4(EXT4_HONEST, plain.honest(slot, len(KINDS))),
        EXT4_HOSTILE: lambda _: beside_on_ext4(EXT4_HOSTILE, plain.hostile(slot, KINDS)),
    }, [built, looked], count=seconds // slot, sync=False)
    built.notes.append("the hostile neighbour's rounds (and refusals): " + ", ".join(
        f"{kind} {n} ({refused})" for kind, (n, refused) in work.items()))
    built.notes.append(f"{seconds} s of the hostile neighbour, {slot} s at a time")
    looked.notes.append("worst: " + ", ".join(f"{who} {max(v):.0f} ms"
                                              for who, v in looked.values.items()))
    for name in (HONEST_CLONE, HOSTILE_CLONE):
        session.store.snap("rm", "--force", name, cwd=project)
    got = settle(session, project)
    for what, row in after.items():
        row.add(OURS, got[what] - before[what])
        row.notes.append(f"{what}: {before[what]:.1f} MiB before, {most[what]:.1f} at the most that "
                         f"was seen, {got[what]:.1f} in the end")


# --- latency ------------------------------------------------------------------------------------

def measure(path, seconds):
    """Microseconds of what a program does with a file, and of a sync: all of them."""
    plain, synced, data = [], [], os.urandom(4096)
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        name, n = path / f"measured{n % 50}", n + 1
        start = time.monotonic()
        fd = os.open(name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.write(fd, data)
        os.stat(name)
        took = time.monotonic() - start
        plain.append(took * 1e6)
        if n % 20 == 0:
            start = time.monotonic()
            os.fsync(fd)
            synced.append((time.monotonic() - start) * 1e6)
        os.close(fd)
        time.sleep(0.001)
    return plain, synced


def p99(values):
    return sorted(values)[int(len(values) * 0.99)]


def latency(session):
    seconds = QUICK_LATENCY if session.opts.quick else LATENCY_SECONDS
    project = session.once("neighbours", lambda: make_project(session))
    make_clones(session, project, "victim", HONEST_CLONE, HOSTILE_CLONE)
    plain = session.once("plain neighbours", lambda: Plain(session, project))
    path = session.store.path / "clones" / "victim"
    rows = {}
    for kind in KINDS:
        rows[kind] = [session.row(f"{what} beside `{kind}`", "us", at_most(1.5, HONEST))
                      for what in ("open, write 4 KiB and stat", "fsync of it")]
    for kind in KINDS:
        tails = {}

        def beside(who, one, at=path, kind=kind, tails=tails):
            time.sleep(0.5)
            for row, values in zip(rows[kind], measure(at, seconds)):
                row.add(who, statistics.median(values))
                tails.setdefault((row.name, who), []).extend(values)
            one.end()
        session.rounds(kind, {
            HONEST: lambda _: beside(HONEST, honest(session, project, seconds + 1, 1)),
            OURS: lambda _, kind=kind: beside(OURS, hostile(session, project, seconds + 1, [kind])),
            EXT4_HONEST: lambda _: beside(EXT4_HONEST, plain.honest(seconds + 1, 1),
                                          plain.at["victim"]),
            EXT4_HOSTILE: lambda _, kind=kind: beside(
                EXT4_HOSTILE, plain.hostile(seconds + 1, [kind]), plain.at["victim"]),
        }, rows[kind], count=1 if session.opts.quick else 3, sync=False)
        for row in rows[kind]:
            row.notes.append(f"{row.name}: p99 and worst " + ", ".join(
                f"{who} {p99(v):.0f} and {max(v):.0f} us" for (name, who), v in tails.items()
                if name == row.name))


PARTS = {"build": neighbour, "latency": latency}

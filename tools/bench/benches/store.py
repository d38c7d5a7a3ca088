"""Putting a tree's bytes into a fresh store, against copying the tree and against other stores.

The store's time includes a commit that survives power loss; `cp -a` leaves its bytes to the
kernel. All read from a warm page cache and write to the same filesystem.
"""

import json
import os
import shutil

import trees
from arena import run, timed
from row import OURS, at_most

THREADS = 2


def restic(row, source, target):
    words, env = ["restic", "--no-cache", "--quiet", "--repo", target], {"RESTIC_PASSWORD": "bench"}
    run(*words, "init", env=env)
    os.sync()
    row.add("restic backup", timed(*words, "backup", source, env=env))


def borg(row, source, target):
    env = {"BORG_BASE_DIR": str(target.with_name("borg-home")),
           "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes"}
    run("borg", "init", "-e", "none", target, env=env)
    os.sync()
    row.add("borg create", timed("borg", "create", "-C", "zstd,1", "--files-cache=disabled",
                                 f"{target}::tree", source, env=env))


def put(session):
    source = session.tree()
    trees.warm(source)
    time = session.row("put of the tree's bytes into a fresh store", "ms", at_most(1.0, "cp -a"))
    space = session.row("bytes of that store on disk", "MiB", at_most(0.35, "du"))
    space.add("du", trees.disk_bytes(source) / 2**20)
    top = session.arena.fresh_dir("puts")

    def copy(number):
        os.sync()
        time.add("cp -a", timed("cp", "-a", source, top / f"copy-{number}"))

    def ours(number):
        os.sync()
        target = top / f"store-{number}"
        figures = {}

        def act():
            figures.update(json.loads(run(session.helper("bench-store"), "put", source, target,
                                          "--threads", THREADS)))
        time.add(OURS, timed(act))
        if not figures["files"] or not figures["bytes"]:
            raise SystemExit("error: bench-store put nothing")
        space.add(OURS, trees.disk_bytes(target) / 2**20)
    acts = {"cp -a": copy, OURS: ours}
    for name, act in (("restic backup", restic), ("borg create", borg)):
        if shutil.which(name.split()[0]):
            acts[name] = lambda number, act=act, name=name: act(
                time, source, top / f"{name.split()[0]}-{number}")
        else:
            session.skipped[name.split()[0]] = "not installed"
    session.rounds("put", acts, [time, space])
    shutil.rmtree(top)


PARTS = {"put": put}

"""A tree to another machine and back, through a directory, against tar | zstd -1, rsync and restic.

Both ends lie on one disk. The tree was captured before: what is timed is the transfer alone, as a
person waits for it. tar's archive is synced, as our packs are. rsync runs by itself from directory
to directory, and through its daemon on loopback; restic has its repository in a directory, with the
compression that is nearest to ours.
"""

import os
import shutil
import socket
import subprocess
import time

import trees
from arena import Store, run, timed
from row import OURS, at_most

CHANGED = 10  # files
TAR, RSYNC, RSYNC_NET, RESTIC = "tar, zstd -1", "rsync -a", "rsync -a, loopback", "restic"


def shell(line, **words):
    run("sh", "-ec", line.format(**words))


class Restic:
    """A repository in a directory."""

    def __init__(self, path):
        self.path = path
        self.env = {**os.environ, "RESTIC_REPOSITORY": str(path), "RESTIC_PASSWORD": "bench",
                    "RESTIC_CACHE_DIR": f"{path}-cache"}
        self.run("init")

    def run(self, *words, cwd=None):
        run("restic", "-q", "--compression", "auto", *words, cwd=cwd, env=self.env)

    def timed(self, *words, cwd=None):
        return timed(lambda: self.run(*words, cwd=cwd))

    def size(self):
        return sum(f.stat().st_size for f in self.path.rglob("*") if f.is_file())

    def end(self):
        for path in (self.path, f"{self.path}-cache"):
            shutil.rmtree(path, ignore_errors=True)


class RsyncDaemon:
    """rsync's own server on loopback, for one directory."""

    def __init__(self, top, target):
        target.mkdir()
        config = top / "rsyncd.conf"
        config.write_text(f"use chroot = no\nuid = {os.getuid()}\ngid = {os.getgid()}\n"
                          f"[copy]\npath = {target}\nread only = no\n")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.process = subprocess.Popen(["rsync", "--daemon", "--no-detach", f"--config={config}",
                                         "--address=127.0.0.1", f"--port={self.port}"],
                                        stdin=subprocess.DEVNULL)
        self.url = f"rsync://127.0.0.1:{self.port}/copy/"
        for _ in range(100):
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)

    def end(self):
        self.process.terminate()
        self.process.wait()


def first(session):
    """All of it, to a place that has nothing."""
    source, store = session.tree(), session.store
    trees.warm(source)
    there = session.row("first push of the tree", "ms", at_most(1.2, TAR))
    back = session.row("first fetch of the tree", "ms", at_most(1.2, TAR))
    sent = session.row("bytes of a first push", "MiB", at_most(1.0, TAR))
    look = session.row("clone of a remote's snapshot until `ls` works", "ms", at_most(300))
    rest = session.row("the rest of it, in the background", "ms")
    if not shutil.which("zstd"):
        there.skip("zstd is not installed", TAR)
        return
    top = session.arena.fresh_dir("remote")
    store.snap("snapshot", cwd=source)

    def tar(number):
        archive, target = top / f"{number}.tar.zst", top / f"tar-{number}"
        os.sync()
        there.add(TAR, timed(lambda: shell("tar -C '{s}' -cf - . | zstd -q -1 -o '{a}'; sync '{a}'",
                                           s=source, a=archive)))
        sent.add(TAR, archive.stat().st_size / 2**20)
        target.mkdir()
        os.sync()
        back.add(TAR, timed(lambda: shell("zstd -q -dc '{a}' | tar -C '{t}' -xf -", a=archive, t=target)))
        shutil.rmtree(target)
        archive.unlink()

    def ours(number):
        depot = top / f"depot-{number}"
        shutil.rmtree(store.path / "remote", ignore_errors=True)  # nothing is known of it
        os.sync()
        there.add(OURS, store.timed("push", "@", f"dir:{depot}:main", cwd=source))
        sent.add(OURS, sum(f.stat().st_size for f in (depot / "blobs" / "sha256").iterdir()) / 2**20)
        other = Store(session.arena, session.snapcow, f"remote/store-{number}")
        project = top / f"project-{number}"
        project.mkdir()
        os.sync()
        back.add(OURS, other.timed("fetch", f"dir:{depot}:main", cwd=project))
        other.end()
        shutil.rmtree(other.path)
        os.sync()
        look.add(OURS, timed(lambda: list_elsewhere(other, project, depot)))
        rest.add(OURS, timed(lambda: other.snap("gc", cwd=project)))  # waits for the end
        other.end()
        for path in (other.path, depot, project):
            shutil.rmtree(path, ignore_errors=True)

    def list_elsewhere(other, project, depot):
        clone = other.snap("clone", "--lazy", f"dir:{depot}:main", "look", cwd=project)
        run("ls", "-l", clone["path"])

    def restic(number):
        repo, target = Restic(top / f"restic-{number}"), top / f"restored-{number}"
        os.sync()
        there.add(RESTIC, repo.timed("backup", ".", cwd=source))
        sent.add(RESTIC, repo.size() / 2**20)
        os.sync()
        back.add(RESTIC, repo.timed("restore", "latest", "--target", str(target)))
        shutil.rmtree(target)
        repo.end()
    acts = {TAR: tar, OURS: ours}
    if shutil.which("restic"):
        acts[RESTIC] = restic
    else:
        there.skip("restic is not installed", RESTIC)
    session.rounds("first transfer", acts, [there, back, sent, look, rest])
    shutil.rmtree(top, ignore_errors=True)


def again(session):
    """A few files changed since the last time."""
    source, store = session.tree(), session.store
    trees.warm(source)
    row = session.row(f"push and fetch with {CHANGED} changed files in {session.opts.entries:,}", "ms")
    row.targets = [at_most(0.2, RSYNC)]
    half = session.row(f"push alone with {CHANGED} changed files", "ms")
    top = session.arena.fresh_dir("again")
    clone = session.number("again")
    work, files = session.clone_of(source, clone), trees.some_files(source, CHANGED)
    other, project, copy = Store(session.arena, session.snapcow, "again/store"), top / "project", top / "copy"
    project.mkdir()
    depot = f"dir:{top}/depot:main"
    store.snap("push", clone, depot, cwd=source)
    other.snap("fetch", depot, cwd=project)
    if shutil.which("rsync"):
        run("rsync", "-a", f"{work}/", copy)

    def ours(number):
        trees.write_some(work, files, f"ours {number}")
        push = store.timed("push", clone, depot, cwd=source)
        half.add(OURS, push)
        row.add(OURS, push + other.timed("fetch", depot, cwd=project))

    def rsync(number):
        trees.write_some(work, files, f"rsync {number}")
        row.add(RSYNC, timed("rsync", "-a", f"{work}/", copy))

    def rsync_net(number):
        trees.write_some(work, files, f"net {number}")
        row.add(RSYNC_NET, timed("rsync", "-a", f"{work}/", server.url))

    def restic(number):
        trees.write_some(work, files, f"restic {number}")
        half.add(RESTIC, repo.timed("backup", ".", cwd=work))
    acts, server, repo = {OURS: ours}, None, None
    if shutil.which("rsync"):
        acts[RSYNC] = rsync
        server = RsyncDaemon(top, top / "served")
        run("rsync", "-a", f"{work}/", server.url)
        acts[RSYNC_NET] = rsync_net
    else:
        row.skip("rsync is not installed", RSYNC)
    if shutil.which("restic"):
        repo = Restic(top / "restic")
        repo.run("backup", ".", cwd=work)
        acts[RESTIC] = restic
    else:
        half.skip("restic is not installed", RESTIC)
    try:
        session.rounds("again", acts, [row, half])
    finally:
        if server:
            server.end()
    other.end()
    shutil.rmtree(top, ignore_errors=True)


PARTS = {"remote-first": first, "remote-again": again}

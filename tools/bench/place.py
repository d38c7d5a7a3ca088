"""Contestants that are places to work in: each shows the same tree its own way, on one disk."""

import contextlib
import os
import shutil
import time
from pathlib import Path

from arena import run, unmount
from row import OURS, PRIVATE

EXT4, OVERLAY, FUSE_OVERLAY, BINDFS = "ext4", "overlayfs", "fuse-overlayfs", "bindfs"
BARE = "bare FUSE"  # the floor: what FUSE costs without a file system behind it

WARM_SECONDS = 30


class Place:
    """`tree` shows the tree for the whole run, fresh() shows it anew, work() is empty."""

    name = None

    def __init__(self, session):
        self.session, self.arena = session, session.arena
        self.source = session.tree()
        self.stack = contextlib.ExitStack()
        self.arena.undo.callback(self.stack.close)
        self.shown = None

    @property
    def tree(self):
        if not self.shown:
            self.shown = self.stack.enter_context(self.fresh())
        return self.shown

    def number(self):
        return self.session.number(self.name.replace(" ", "-"))

    @contextlib.contextmanager
    def work(self):
        """An empty directory to write in."""
        path = self.tree / self.number()
        path.mkdir()
        yield path
        shutil.rmtree(path)

    def fresh(self, of=None, copied=False):
        """A context with a tree that nobody looked at through this place; to be written to only
        if it is `copied`, since for some it is the original."""
        raise NotImplementedError


class Plain(Place):
    name = EXT4

    @contextlib.contextmanager
    def work(self):
        path = self.arena.fresh_dir(self.number())
        yield path
        shutil.rmtree(path)

    @contextlib.contextmanager
    def fresh(self, of=None, copied=False):
        if not copied:
            yield of or self.source
            return
        path = self.arena.path / self.number()
        run("cp", "-a", of or self.source, path)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


class Overlay(Place):
    name = OVERLAY

    def mount(self, lower, top):
        run("mount", "-t", "overlay", "overlay", "-o", self.options(lower, top), top / "mount")

    @staticmethod
    def options(lower, top):
        return f"lowerdir={lower},upperdir={top}/upper,workdir={top}/work"

    @contextlib.contextmanager
    def fresh(self, of=None, copied=False):
        top = self.arena.fresh_dir(self.number())
        for name in ("upper", "work", "mount"):
            (top / name).mkdir()
        self.mount(of or self.source, top)
        try:
            yield top / "mount"
        finally:
            unmount(top / "mount")
            shutil.rmtree(top, ignore_errors=True)


class FuseOverlay(Overlay):
    name = FUSE_OVERLAY

    def mount(self, lower, top):
        run("fuse-overlayfs", "-o", self.options(lower, top), top / "mount")


class Bind(Place):
    """It shows the plain directory, and what is written goes there."""

    name = BINDFS

    @contextlib.contextmanager
    def fresh(self, of=None, copied=False):
        path = self.arena.fresh_dir(self.number())
        run("bindfs", "--no-allow-other", of or self.source, path)
        try:
            yield path
        finally:
            unmount(path)
            path.rmdir()


class Bare(Place):
    name = BARE

    @contextlib.contextmanager
    def fresh(self, of=None, copied=False):
        path = self.arena.fresh_dir(self.number())
        run(self.session.helper("bare-fuse"), path)
        try:
            run("cp", "-a", f"{of or self.source}/.", path)
            yield path
        finally:
            unmount(path)

    @contextlib.contextmanager
    def work(self):
        """A mount of its own: what is removed here stays in memory until the end of it."""
        path = self.arena.fresh_dir(self.number())
        run(self.session.helper("bare-fuse"), path)
        try:
            yield path
        finally:
            unmount(path)


class Ours(Place):
    name = OURS
    words = ()  # to say to `snap clone`
    busy = False

    def wait_for_warm_clone(self):
        """Until a warm clone is ready for the next clone; False if there is none, because the
        machine is busy.  After one wait in vain it does not wait again."""
        until = time.monotonic() + (0 if self.busy else WARM_SECONDS)
        while self.session.store.snap("start", cwd=self.source)["spare"] != "warm":
            if time.monotonic() > until:
                self.busy = True
                return False
            time.sleep(0.05)
        return True

    @contextlib.contextmanager
    def fresh(self, of=None, copied=False):
        project, name = of or self.source, self.number()
        path = self.session.clone_of(project, name, *self.words)
        try:
            yield Path(path)
        finally:
            self.session.store.snap("rm", "--force", name, cwd=project, check=False)


class Private(Ours):
    name, words = PRIVATE, ("--private", "--no-xattrs")


def why_not(kind):
    """What keeps that one from running here, or None."""
    if kind in (OVERLAY, BARE, PRIVATE) and os.geteuid() != 0:
        return "mounting it needs root"
    if kind in (FUSE_OVERLAY, BINDFS) and not shutil.which(kind):
        return "not installed"
    if kind in (FUSE_OVERLAY, BINDFS, BARE) and not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse cannot be opened"
    return None


def places(session, *names):
    """Contestants by name, ours last; those that cannot run are named with the reason."""
    return {name: place for name, place in session.once("places", lambda: find(session)).items()
            if name == OURS or name in names}


def find(session):
    found = {}
    for kind in (Plain, Overlay, FuseOverlay, Bind, Bare, Private, Ours):
        why = why_not(kind.name)
        if why:
            session.skipped[kind.name] = why
        else:
            found[kind.name] = kind(session)
    return found

"""What the tests of lazy clones from remotes share: a snapshot at some place, and a store elsewhere that clones it."""

import random
import time
from pathlib import Path

from snaptest import needs_fuse, until  # noqa: F401  (for the tests)


def furnish(top):
    dice = random.Random(3)
    for i in range(150):
        path = top / f"d{i % 5}" / f"f{i}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(dice.randbytes(dice.randrange(1, 40_000)))
    (top / "big").write_bytes(dice.randbytes(10 << 20))


class Far:
    """A store elsewhere that brings only what is asked for, until the gate is opened."""

    def __init__(self, w):
        needs_fuse()
        self.w = w
        self.place, self.env = w.top / "work" / "elsewhere", {"SNAPCOW_STORE": str(w.top / "store2")}
        self.place.mkdir()
        self.gate = w.top / "gate"
        self.gate.touch()
        w.env["SNAPCOW_FETCH_PAUSE"] = str(self.gate)

    def push(self, url):
        """Put the project there, under the name that clone() takes."""
        furnish(self.w.project)
        self.w.ok("remote", "add", "team", url)
        self.w.ok("init")
        self.pushed = self.w.ok("push", "--json", "team:main").json("snap.push/1")

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.snap("-q", "stop", "--force")

    def snap(self, *args, **more):
        return self.w.snap(*args, cwd=self.place, env=self.env, **more)

    def clone(self):
        got = self.snap("clone", "--lazy", "--json", "team/main", "look").json("snap.clone/1")
        assert got["fetching"] and not got["fetched"]["complete"], got
        return Path(got["path"])

    def status(self):
        return self.snap("status", "--json", "look").json("snap.status/1")

    def is_right(self, clone, path):
        assert (clone / path).read_bytes() == (self.w.project / path).read_bytes(), path

    def same(self, clone):
        for p in self.w.project.rglob("*"):
            if p.is_file():
                self.is_right(clone, p.relative_to(self.w.project))

    def finish(self, clone):
        """All of it comes, and is what a fetch of all at once gives."""
        if self.gate.exists():
            self.gate.unlink()
        until(lambda: self.status()["stuck"] is None)
        self.snap("gc").ends(0)
        got = self.status()
        assert got["complete"] and got["lost"] == 0 and got["unread"] == [], got
        self.same(clone)
        self.snap("check").ends(0)
        back = self.snap("push", "--json", "team/main", f"dir:{self.w.top}/back:main").ends(0).json("snap.push/1")
        assert back["root"] == self.pushed["root"], (back, self.pushed)


def reads_as_eio(path, seconds=45):
    start = time.monotonic()
    try:
        path.read_bytes()
    except OSError as e:
        assert e.errno == 5, e
    else:
        raise AssertionError(f"{path} could be read")
    assert time.monotonic() - start < seconds


def try_read(path):
    try:
        path.read_bytes()
    except OSError:
        return False
    return True

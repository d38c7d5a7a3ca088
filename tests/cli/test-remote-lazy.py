"""clone REMOTE/NAME: usable when names and attributes are here, exact all the same."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from depots import Other, depot  # noqa: E402
from snaptest import SNAP, Skip, gone, needs_fuse, test, until  # noqa: E402

BIG = 12 << 20  # read piece by piece while it is promised


def furnish(top):
    dice = random.Random(11)
    for i in range(200):
        path = top / f"d{i % 9}" / f"f{i}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(dice.randbytes(dice.randrange(1, 30_000)))
    (top / "big").write_bytes(dice.randbytes(BIG))
    (top / "middle").write_bytes(dice.randbytes(300_000))
    with open(top / "sparse", "wb") as f:
        f.truncate(9 << 20)
        f.seek(4 << 20)
        f.write(b"here")
    (top / "twin").write_bytes((top / "d1" / "f1").read_bytes())
    (top / "empty").touch()
    os.link(top / "d2" / "f2", top / "link")
    (top / "sym").symlink_to("d3/f3")


class Lazy:
    """A store that pushed, another one that has nothing, and a fetch that brings only what is asked for."""

    def __init__(self, w):
        needs_fuse()
        self.w = w
        furnish(w.project)
        w.ok("init")
        self.pushed = w.ok("push", "--json", f"{depot(w)}:main").json("snap.push/1")
        self.gate = w.top / "gate"
        w.env["SNAPCOW_FETCH_PAUSE"] = str(self.gate)
        self.hold()
        self.other = Other(w)

    def hold(self):
        self.gate.touch()

    def release(self):
        self.gate.unlink()

    def clone(self, name="look", *more, lazy=True):
        got = self.other.ok("clone", "--json", *more, f"{depot(self.w)}:main", name).json("snap.clone/1")
        assert got["fetched"]["complete"] != lazy and got["fetching"] == lazy, got
        return Path(got["path"])

    def status(self, name="look"):
        return self.other.ok("status", "--json", name).json("snap.status/1")

    def fetchers(self):
        return self.w.daemons(b"snap-fetch")

    def kill_fetcher(self):
        pid, = self.fetchers()
        os.kill(pid, signal.SIGKILL)
        assert gone(pid, 20)

    def kill_cowfsd(self):
        """With its keeper, so that it stays dead."""
        for name in (b"cowfsd-keep", b"cowfsd"):
            for pid in self.w.daemons(name):
                if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1] == os.fsencode(self.other.store):
                    os.kill(pid, signal.SIGKILL)
                    assert gone(pid, 20)

    def store_dir(self):
        return self.other.store / "remote" / "lazy"

    def same(self, clone):
        done = subprocess.run(["diff", "-r", "--no-dereference", self.w.project, clone],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert done.returncode == 0, done.stdout.decode()[:2000]

    def finish(self, clone, name="look"):
        """All of it comes, and is what a fetch of all at once gives."""
        with contextlib.suppress(FileNotFoundError):
            self.release()
        assert until(lambda: self.status(name)["stuck"] is None), self.status(name)
        self.other.ok("gc")  # waits for the end, unless nothing comes
        got = self.status(name)
        assert got["complete"] and got["captured"] == 100 and not got["fetching"] and got["lost"] == 0, got
        self.same(clone)
        self.other.ok("check")
        assert until(lambda: not self.fetchers()), self.fetchers()
        assert not list(self.store_dir().glob("*")), list(self.store_dir().rglob("*"))
        back = self.other.ok("push", "--json", "remote/main", f"dir:{self.w.top}/back:main").json("snap.push/1")
        assert back["root"] == self.pushed["root"], (back, self.pushed)
        self.other.end()


def reads(path):
    try:
        path.read_bytes()
    except OSError:
        return False
    return True


def fails(path, seconds):
    """Reading it is EIO, within so many seconds."""
    start = time.monotonic()
    try:
        Path(path).read_bytes()
    except OSError as e:
        assert e.errno == 5, e
    else:
        raise AssertionError(f"{path} could be read")
    assert time.monotonic() - start < seconds, time.monotonic() - start


@test
def names_and_attributes_come_first_and_bytes_when_they_are_read(w):
    o = Lazy(w)
    clone = o.clone()
    assert sorted(p.name for p in clone.iterdir()) == sorted(p.name for p in w.project.iterdir())
    for p in w.project.rglob("*"):
        ours, theirs = os.lstat(clone / p.relative_to(w.project)), os.lstat(p)
        assert (ours.st_mode, ours.st_size, ours.st_mtime_ns) == (theirs.st_mode, theirs.st_size, theirs.st_mtime_ns), p
    got = o.status()
    assert got["fetching"] and not got["complete"] and got["captured"] < 10 and got["unread"] == [], got
    assert "fetching 0 %" in o.other.ok("list").out.decode()
    assert "fetching 0 %" in o.other.ok("status", "look").out.decode()
    assert (clone / "d4" / "f4").read_bytes() == (w.project / "d4" / "f4").read_bytes()
    assert (clone / "link").read_bytes() == (w.project / "d2" / "f2").read_bytes()
    assert (clone / "middle").read_bytes() == (w.project / "middle").read_bytes()
    with open(clone / "big", "rb") as ours, open(w.project / "big", "rb") as theirs:
        for at in (5 << 20, 0, BIG - 100):
            ours.seek(at)
            theirs.seek(at)
            assert ours.read(70_000) == theirs.read(70_000), at
    came = sum(f.stat().st_blocks * 512 for f in o.store_dir().rglob("*.pack"))
    assert came < 8 << 20, f"{came} bytes came for a few"
    got = o.status()
    assert got["fetching"] and got["captured"] < 100, got
    o.finish(clone)


@test
def what_is_changed_in_the_clone_meanwhile_stays(w):
    o = Lazy(w)
    clone = o.clone()
    with open(clone / "d5" / "f5", "ab") as f:
        f.write(b"more")
    with open(clone / "big", "r+b") as f:
        f.seek(100)
        f.write(b"changed")
    (clone / "d6" / "f6").unlink()
    os.truncate(clone / "d7" / "f7", 0)
    (clone / "d8" / "f8").rename(clone / "moved")
    o.release()
    changed = o.other.ok("diff", "look", "--json").json("snap.diff/1")["files"]
    assert sorted(e["path"] for e in changed) == ["big", "d5/f5", "d6/f6", "d7/f7", "d8/f8", "moved"] or \
        sorted(e["path"] for e in changed) == ["big", "d5/f5", "d6/f6", "d7/f7", "moved"], changed
    for path, change in (("d5/f5", lambda b: b + b"more"), ("big", lambda b: b[:100] + b"changed" + b[107:])):
        assert (clone / path).read_bytes() == change((w.project / path).read_bytes()), path
    assert (clone / "moved").read_bytes() == (w.project / "d8" / "f8").read_bytes()
    o.other.ok("check")
    o.other.end()


@test
def a_fetcher_that_is_killed_is_started_by_the_next_command(w):
    o = Lazy(w)
    clone = o.clone()
    assert until(o.fetchers)
    o.kill_fetcher()
    o.other.ok("list")
    assert (clone / "d1" / "f10").read_bytes() == (w.project / "d1" / "f10").read_bytes()
    # In the middle of the rest, too.
    o.release()
    for _ in range(3):
        if o.fetchers():
            with contextlib.suppress(ProcessLookupError, ValueError):
                o.kill_fetcher()
        o.other.ok("list")
    o.finish(clone)


@test
def a_cowfsd_that_is_killed_goes_on_where_it_was(w):
    o = Lazy(w)
    clone = o.clone()
    assert (clone / "d4" / "f4").read_bytes() == (w.project / "d4" / "f4").read_bytes()
    o.kill_cowfsd()
    o.other.ok("list")
    assert o.status()["fetching"]
    assert (clone / "d3" / "f12").read_bytes() == (w.project / "d3" / "f12").read_bytes()
    o.release()
    time.sleep(0.05)
    o.kill_cowfsd()
    o.finish(clone)


@test
def both_killed_and_what_came_removed_all_the_same(w):
    o = Lazy(w)
    clone = o.clone()
    assert until(o.fetchers)
    o.kill_fetcher()
    o.kill_cowfsd()
    shutil.rmtree(o.other.store / "remote")
    o.other.ok("list")
    assert until(lambda: list(o.store_dir().glob("*/source")))
    o.other.ok("list")
    assert (clone / "d3" / "f12").read_bytes() == (w.project / "d3" / "f12").read_bytes()
    o.finish(clone)


@test
def files_that_a_power_loss_emptied_come_again(w):
    o = Lazy(w)
    clone = o.clone()
    assert until(o.fetchers)
    o.kill_fetcher()
    o.kill_cowfsd()
    dir, = o.store_dir().iterdir()
    emptied = [p for p in dir.iterdir() if p.name == "source" or p.suffix in (".index", ".pack")]
    assert len(emptied) > 2, list(dir.iterdir())
    for p in emptied:
        os.truncate(p, 0)
    o.other.ok("list")
    assert until(lambda: (dir / "source").stat().st_size > 0)
    o.other.ok("list")
    assert (clone / "d3" / "f12").read_bytes() == (w.project / "d3" / "f12").read_bytes()
    o.finish(clone)


@test
def a_remote_that_is_away_is_eio_and_named(w):
    o = Lazy(w)
    clone = o.clone()
    there, away = w.top / "depot", w.top / "away"
    there.rename(away)
    fails(clone / "d1" / "f19", 30)
    got = o.status()
    assert got["unread"] == ["d1/f19"] and got["stuck"], got
    assert "d1/f19" in o.other.ok("status", "look").out.decode()
    for words in (("diff", "look"), ("promote", "look", "--yes"), ("push", "look", f"dir:{w.top}/back:x")):
        done = o.other.snap(*words)
        assert done.status != 0 and "not fetched" in done.err.decode(), done
    o.other.ok("gc")  # removes things, and waits for nobody who cannot go on
    o.other.ok("check")
    away.rename(there)
    assert (clone / "d1" / "f19").read_bytes() == (w.project / "d1" / "f19").read_bytes()
    assert until(lambda: o.status()["unread"] == [] and not o.status()["stuck"]), o.status()
    o.finish(clone)


@test
def wrong_bytes_are_never_shown(w):
    o = Lazy(w)
    clone = o.clone()
    blobs = w.top / "depot" / "blobs" / "sha256"
    good = {p: p.read_bytes() for p in blobs.iterdir() if p.stat().st_size > 1 << 20}
    for p, data in good.items():
        bad = bytearray(data)
        for at in range(0, len(bad), 1000):
            bad[at] ^= 1
        p.write_bytes(bad)
    fails(clone / "d1" / "f19", 15)
    fails(clone / "big", 30)
    assert o.status()["stuck"], o.status()
    assert sorted(o.status()["unread"]) == ["big", "d1/f19"], o.status()
    o.other.ok("check")
    for p, data in good.items():
        p.write_bytes(data)
    assert until(lambda: reads(clone / "d1" / "f19"))
    assert (clone / "d1" / "f19").read_bytes() == (w.project / "d1" / "f19").read_bytes()
    o.finish(clone)


@test
def a_process_that_comes_after_the_end_leaves_nothing(w):
    o = Lazy(w)
    o.finish(o.clone())
    over = o.store_dir() / ("0" * 16)
    over.mkdir(parents=True)
    subprocess.run(["snap-fetch", o.other.store, over.name], executable=SNAP, env=w.env, check=False, timeout=60)
    assert not over.exists(), list(over.iterdir())


@test
def a_fetch_whose_last_clone_goes_is_given_up(w):
    o = Lazy(w)
    o.clone()
    assert until(o.fetchers)
    o.other.ok("rm", "look")
    assert until(lambda: not list(o.store_dir().glob("*")) and not o.fetchers())
    assert o.other.ok("tag", "--json").json("snap.tag/1")["tags"] == []
    o.other.ok("gc")
    o.other.ok("check")
    o.release()
    clone = o.clone("again")
    o.finish(clone, "again")


@test
def a_clone_that_cannot_be_made_leaves_no_fetch_that_nobody_owns(w):
    o = Lazy(w)
    o.other.ok("init")
    o.other.ok("clone", "-n", "look")
    assert b"there is a clone 'look' already" in o.other.snap("clone", f"{depot(w)}:main", "look").ends(1).err
    assert until(lambda: not list(o.store_dir().glob("*")) and not o.fetchers()), o.fetchers()
    o.other.ok("tag", "mine", "@", timeout=60)
    o.other.ok("diff", "look", timeout=60)
    o.other.end()


class Between:
    """A clone of the snapshot whose command stands between its two questions to cowfsd: it cannot say what it fetched."""

    def __init__(self, o, name):
        self.reader, writer = os.pipe()
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, b"x")
        os.set_blocking(writer, True)
        self.process = subprocess.Popen([SNAP, "clone", f"{depot(o.w)}:main", name], cwd=o.other.project,
                                        env={**o.w.env, "SNAPCOW_STORE": str(o.other.store)},
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=writer)
        os.close(writer)
        assert until(o.fetchers), "the first question is answered before this one starts"
        # The next command takes what is noted here for its own.
        assert until(lambda: list((o.other.store / "remote" / "seen").glob("*")))
        assert self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()
        os.close(self.reader)

    def go_on(self):
        while os.read(self.reader, 65536):
            pass
        os.close(self.reader)
        return self.process.wait()


@test
def a_command_killed_before_it_asks_for_the_clone_leaves_no_fetch(w):
    o = Lazy(w)
    Between(o, "look").kill()
    assert until(lambda: not list(o.store_dir().glob("*")) and not o.fetchers()), o.fetchers()
    assert o.other.ok("tag", "--json").json("snap.tag/1")["tags"] == []
    o.other.ok("check")
    clone = o.clone("again")
    o.finish(clone, "again")


@test
def what_one_command_is_about_to_clone_another_that_fails_does_not_end(w):
    o = Lazy(w)
    o.other.ok("init")
    o.other.ok("clone", "-n", "taken")
    first = Between(o, "look")
    assert b"there is a clone 'taken' already" in o.other.snap("clone", f"{depot(w)}:main", "taken").ends(1).err
    assert o.fetchers() and list(o.store_dir().glob("*"))
    assert first.go_on() == 0
    assert o.status()["fetching"], o.status()
    o.other.ok("rm", "look")
    assert until(lambda: not list(o.store_dir().glob("*")) and not o.fetchers()), o.fetchers()
    o.other.end()


@test
def a_clone_of_what_was_pulled_takes_back_nothing_that_was_edited_since(w):
    o = Lazy(w)
    o.release()
    o.other.ok("pull", f"{depot(w)}:main")
    (w.project / "note").write_text("theirs\n")
    w.ok("push", f"{depot(w)}:main")
    o.other.ok("pull", f"{depot(w)}:main")
    note = o.other.project / "note"
    assert note.read_text() == "theirs\n"
    note.write_text("mine again\n")
    o.other.ok("clone", f"{depot(w)}:main", "look")
    o.other.ok("gc")
    assert not o.other.ok("diff", "--stat", "look").out, "a fresh clone has no changes"
    o.other.snap("promote", "look")
    assert note.read_text() == "mine again\n"
    o.other.end()


@test
def what_is_on_its_way_is_not_fetched_twice(w):
    o = Lazy(w)
    first = o.clone()
    got = o.other.ok("clone", "--lazy", "--json", f"{depot(w)}:main", "second").json("snap.clone/1")
    assert got["base"] == o.status()["base"], got
    assert until(lambda: len(o.fetchers()) <= 1), o.fetchers()  # a second one finds the lock taken, and ends
    assert (Path(got["path"]) / "d1" / "f1").read_bytes() == (w.project / "d1" / "f1").read_bytes()
    o.release()
    o.other.ok("gc")
    o.same(Path(got["path"]))
    o.finish(first)


@test
def only_what_changed_is_promised_of_the_next_one(w):
    o = Lazy(w)
    o.clone()
    o.release()
    o.other.ok("gc")
    assert o.status()["complete"]
    o.hold()
    (w.project / "d1" / "f1").write_bytes(os.urandom(3 << 20))
    (w.project / "d1" / "new").write_text("new\n")
    o.pushed = w.ok("push", "--json", f"{depot(w)}:main").json("snap.push/1")
    clone = o.clone("next")
    assert (clone / "big").read_bytes() == (w.project / "big").read_bytes()
    assert (clone / "d1" / "new").read_text() == "new\n"
    assert o.status("next")["captured"] < 50, o.status("next")
    o.finish(clone, "next")


@test
def a_repository_in_it_works_at_once(w):
    if not shutil.which("git"):
        raise Skip("there is no git")
    env = {**w.env, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
           "GIT_COMMITTER_EMAIL": "a@b"}

    def git(where, *words):
        return subprocess.run(["git", *words], cwd=where, env=env, check=True, stdout=subprocess.PIPE).stdout.decode()
    git(w.project, "init", "-q")
    git(w.project, "add", ".")
    git(w.project, "commit", "-q", "-m", "first")
    o = Lazy(w)
    clone = o.clone()
    assert git(clone, "log", "--format=%s") == "first\n"
    o.release()
    o.other.ok("gc")
    assert "big" in git(clone, "status", "--short")
    o.other.ok("check")
    o.other.end()


@test
def wait_and_little_ones_come_at_once(w):
    o = Lazy(w)
    clone = o.clone("look", "--wait", lazy=False)
    o.same(clone)
    small = Path(w.top / "work" / "small")
    small.mkdir()
    (small / "a").write_text("a\n")
    w.ok("init", cwd=small)
    w.ok("push", "--json", f"dir:{w.top}/little:main", cwd=small)
    got = o.other.ok("clone", "--lazy", "--json", f"dir:{w.top}/little:main", "little").json("snap.clone/1")
    assert got["fetched"]["complete"] and not o.fetchers(), got
    o.other.end()


@test
def a_command_killed_at_any_time_leaves_nothing_half(w):
    o = Lazy(w)
    o.other.ok("init")
    env = {**w.env, "SNAPCOW_STORE": str(o.other.store)}
    for ms in (5, 15, 30, 60, 120, 250):
        p = subprocess.Popen([SNAP, "-q", "clone", "--lazy", f"{depot(w)}:main", f"c{ms}"],
                             cwd=o.other.project, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(ms / 1000)
        p.kill()
        p.wait()
    o.release()
    for clone in o.other.ok("list", "--json").json("snap.list/1")["clones"]:
        o.same(Path(clone["path"]))
    o.other.ok("gc")
    o.other.ok("check")
    o.other.ok("-q", "stop", "--force")
    o.other.ok("list")
    assert until(lambda: not list(o.store_dir().glob("*"))), list(o.store_dir().rglob("*"))
    o.other.end()


if __name__ == "__main__":
    sys.exit(livetest.main())

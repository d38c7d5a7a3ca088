"""clone --lazy: usable before the files are read, exact all the same."""

import contextlib
import ctypes
import errno
import itertools
import json
import mmap
import os
import shutil
import sqlite3
import subprocess
import threading
import time
from pathlib import Path

from snaptest import SNAP, Skip, hung, main, needs_fuse, test, until as wait_for

FILES = 40


class Lazy:
    """A project with old files, a copy of it, and a capture that goes no further than told."""

    def __init__(self, w):
        kind = subprocess.run(["stat", "-f", "-c", "%T", w.project], check=True,
                              stdout=subprocess.PIPE).stdout.decode().strip()
        if kind not in ("ext2/ext3", "xfs", "btrfs", "tmpfs"):
            raise Skip(f"on {kind} all files are read at once")
        self.w = w
        self.project = w.project
        (w.project / "d").mkdir()
        for i in range(FILES):
            (w.project / "d" / f"f{i}").write_text(f"file {i}\n" * (i + 1))
        (w.project / "big").write_bytes(os.urandom(300_000))
        with open(w.project / "sparse", "wb") as f:
            f.truncate(1 << 20)
            f.seek(700_000)
            f.write(b"here")
        os.link(w.project / "d" / "f1", w.project / "link")
        (w.project / "sym").symlink_to("d/f2")
        (w.project / "empty").touch()
        # A file that changed a moment ago is read at once.
        then = time.time() - 100
        for top, _, names in os.walk(w.project):
            for name in names:
                os.utime(Path(top) / name, (then, then), follow_symlinks=False)
        time.sleep(0.05)
        self.copy = w.top / "copy"
        subprocess.run(["cp", "-a", w.project, self.copy], check=True)
        self.gate = w.top / "gate"
        w.env["SNAPCOW_LAZY_PAUSE"] = str(self.gate)
        self.hold()

    def hold(self, after=0):
        tmp = self.gate.with_suffix(".new")
        tmp.write_text(f"{after}\n")
        tmp.rename(self.gate)

    def release(self):
        self.gate.unlink()

    def clone(self, *args):
        return Path(self.w.ok("-q", "clone", "--lazy", "-n", "try", *args).out.decode().strip())

    def status(self):
        return self.w.ok("status", "--json", "try").json("snap.status/1", "complete", "captured",
                                                         "lost")

    def same(self, path):
        done = subprocess.run(["diff", "-r", "--no-dereference", self.copy, path],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert done.returncode == 0, done.stdout.decode()[:2000]

    def finish(self):
        if self.gate.exists():
            self.release()
        self.w.ok("gc")
        self.w.ok("check")
        got = self.status()
        assert got["complete"] and got["captured"] == 100, got
        return got


def events_of(w, *kinds):
    lines = w.ok("--json", "events").out.decode().splitlines()
    return [e for e in map(json.loads, lines) if e["kind"] in kinds]


def stat_of(path):
    st = os.lstat(path)
    return st.st_mode, st.st_uid, st.st_gid, st.st_ino, st.st_size, st.st_mtime_ns, st.st_nlink


@test
def a_clone_is_there_before_the_files_are_read(w):
    lazy = Lazy(w)
    path = lazy.clone()
    got = lazy.status()
    assert not got["complete"] and got["captured"] == 0 and got["lost"] == 0, got
    assert "(capturing 0 %)" in w.ok("list").out.decode()
    for top, dirs, names in os.walk(lazy.project):
        for name in dirs + names:
            here = Path(top) / name
            there = path / here.relative_to(lazy.project)
            a, b = stat_of(here), stat_of(there)
            assert a[:6] == b[:6] if here.is_dir() else a == b, (here, a, b)
    lazy.same(path)
    assert not lazy.status()["complete"]
    lazy.finish()
    lazy.same(path)


@test
def how_far_it_is_stands_in_status_list_and_events(w):
    lazy = Lazy(w)
    lazy.clone()
    first = wait_for(lambda: events_of(w, "capturing"))[0]
    assert first["project"] == str(w.project) and first["data"]["captured"] == 0, first
    assert first["data"]["files"] >= FILES and first["data"]["snapshot"] == lazy.status()["base"], first
    time.sleep(1.1)  # it is said once a second at most
    lazy.hold(after=FILES // 2)
    told = wait_for(lambda: events_of(w, "capturing")[1:])[0]["data"]["captured"]
    assert 0 < told < 100, told
    now = wait_for(lambda: lazy.status()["captured"])
    assert 0 < now < 100, now
    assert "capturing " in w.ok("status", "try").out.decode()
    whole = w.ok("--json", "status").json("snap.status/1", "complete", "captured")
    assert not whole["complete"] and 0 < whole["captured"] < 100, whole
    assert "capturing " in w.ok("status").out.decode()
    got = w.ok("--json", "list").json("snap.list/1")["clones"][0]
    assert not got["complete"] and 0 < got["captured"] < 100, got
    assert not events_of(w, "captured")
    lazy.finish()
    done = wait_for(lambda: events_of(w, "captured"))
    assert len(done) == 1 and done[0]["data"]["lost"] == 0 and done[0]["data"]["paths"] == [], done
    assert " captured " in w.ok("events").out.decode()
    whole = w.ok("--json", "status").json("snap.status/1")
    assert whole["complete"] and whole["captured"] == 100, whole
    assert "capturing" not in w.ok("status").out.decode()


@test
def when_it_ends_the_snapshot_is_as_if_read_at_once(w):
    lazy = Lazy(w)
    path = lazy.clone()
    (path / "d" / "f3").read_text()
    lazy.finish()
    assert w.ok("diff", "try").out == b""
    out = w.ok("snapshot", "--json").json("snap.snapshot/1")
    assert out["modified"] == 0 and out["added"] == 0 and out["deleted"] == 0, out
    w.ok("umount", "try")
    w.ok("stop")
    w.ok("mount", "try")
    lazy.same(path)
    assert w.ok("status", "try").out.decode().count("changed  nothing")
    w.ok("check")


@test
def changes_in_the_clone_survive_the_end_of_the_capture(w):
    lazy = Lazy(w)
    path = lazy.clone()
    with open(path / "d" / "f9", "r+") as f:
        f.seek(5)
        f.write("XX")
    with open(path / "d" / "f10", "a") as f:
        f.write("more")
    (path / "d" / "f11").write_text("new")
    os.chmod(path / "d" / "f12", 0o755)
    (path / "d" / "f13").rename(path / "moved")
    (path / "d" / "f14").unlink()
    os.truncate(path / "d" / "f15", 3)
    shutil.copyfile(path / "d" / "f16", path / "copied")
    with open(path / "link", "a") as f:
        f.write("linked")
    kept = open(path / "d" / "f17", "rb")
    gone = open(path / "d" / "f18", "rb")
    (path / "d" / "f18").unlink()
    lazy.finish()
    text = {i: (lazy.copy / "d" / f"f{i}").read_text() for i in range(FILES)}

    def right():
        assert (path / "d" / "f9").read_text() == text[9][:5] + "XX" + text[9][7:]
        assert (path / "d" / "f10").read_text() == text[10] + "more"
        assert (path / "d" / "f11").read_text() == "new"
        assert (path / "d" / "f12").read_text() == text[12]
        assert os.stat(path / "d" / "f12").st_mode & 0o777 == 0o755
        assert (path / "moved").read_text() == text[13]
        assert not (path / "d" / "f14").exists() and not (path / "d" / "f18").exists()
        assert (path / "d" / "f15").read_text() == text[15][:3]
        assert (path / "copied").read_text() == text[16]
        assert (path / "d" / "f1").read_text() == text[1] + "linked"

    right()
    assert kept.read().decode() == text[17] and gone.read().decode() == text[18]
    kept.close()
    gone.close()
    (path / "d" / "f20").write_text("after")
    w.ok("snapshot", "try")
    w.ok("umount", "try")
    w.ok("stop")
    w.ok("mount", "try")
    right()
    assert (path / "d" / "f20").read_text() == "after"
    changed = {c["path"] for c in lazy.status()["changed_paths"]}
    assert changed == {"d/f9", "d/f10", "d/f11", "d/f12", "d/f13", "moved", "d/f14", "d/f15", "copied",
                       "link", "d/f1", "d/f18", "d/f20"}, changed
    w.ok("check")


def unreadable(path):
    try:
        path.read_bytes()
    except OSError as e:
        return e.errno == 5
    return False


@test
def what_changes_in_the_project_first_is_lost_by_name_and_never_shown(w):
    w.env["SNAPCOW_LAZY_HOLD"] = "no"
    lazy = Lazy(w)
    path = lazy.clone()
    with open(lazy.project / "d" / "f5", "r+") as f:
        f.write("F")
    (lazy.project / "d" / "f6").unlink()
    tmp = lazy.project / "tmp"
    tmp.write_text((lazy.project / "d" / "f7").read_text())
    tmp.rename(lazy.project / "d" / "f7")
    (lazy.project / "d" / "f8").unlink()
    (lazy.project / "d" / "f8").symlink_to("f9")
    lost = ["d/f5", "d/f6", "d/f7", "d/f8"]
    for one in lost[:2]:
        assert unreadable(path / one), one
        assert (path / one).stat().st_size == (lazy.copy / one).stat().st_size
    got = lazy.finish()
    assert got["lost"] == 4, got
    text = w.ok("status", "try").out.decode()
    assert all(one in text for one in lost) and "rebase try" in text, text
    for one in lost:
        assert unreadable(path / one), one
    for i in range(FILES):
        if f"d/f{i}" not in lost:
            assert (path / "d" / f"f{i}").read_text() == (lazy.copy / "d" / f"f{i}").read_text()
    # The next daemon knows them too.
    w.ok("stop", "--force")
    w.ok("mount", "try")
    assert all(unreadable(path / one) for one in lost)
    assert lazy.status()["lost"] == 4
    w.ok("check")
    w.ok("gc")
    # Nobody could fetch it, so no name says that it is there.
    base = w.ok("log", "--all", "--json").json("snap.log/1", "snapshots")["snapshots"][-1]["snapshot"]
    for state in (base, "try"):
        w.snap("push", state, f"dir:{w.top}/depot:main").fails(1, "'f5' was promised")
        assert not (w.top / "depot" / "index.json").exists(), state
    # What is replaced needs no old bytes; a rebase brings the new ones.
    (path / "d" / "f5").write_text("mine\n")
    os.truncate(path / "d" / "f6", 0)
    w.snap("rebase", "try").fails(5, "d/f5", "d/f6")
    w.ok("rebase", "try", "--conflict", "theirs")
    assert (path / "d" / "f5").read_text() == "mine\n"
    assert (path / "d" / "f7").read_text() == (lazy.project / "d" / "f7").read_text()
    assert os.readlink(path / "d" / "f8") == "f9"


def waits(w, *words, cwd=None):
    asked = subprocess.Popen([SNAP, *words], cwd=cwd or w.project, env=w.env, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    try:
        asked.wait(0.5)
        raise AssertionError(f"{words} did not wait")
    except subprocess.TimeoutExpired:
        asked.terminate()
        asked.wait()


@test
def others_wait_for_the_end_and_say_how_far_it_is(w):
    lazy = Lazy(w)
    lazy.clone()
    for words in (["snapshot", "try", "-m", "x"], ["diff", "try"], ["gc"],
                  ["promote", "try", "--dry-run"], ["rebase", "try"], ["log", "README.md"]):
        waits(w, *words)
    assert not lazy.status()["complete"]
    lazy.finish()


@test
def a_capture_holds_up_nobody_who_works_on_another_project(w):
    lazy = Lazy(w)
    lazy.clone()
    other = w.top / "other"
    other.mkdir()
    (other / "a").write_text("1\n")

    def ok(*words):
        return w.ok(*words, cwd=other, timeout=60).out.decode()

    ok("run", "--env", "ASAN_OPTIONS=detect_leaks=0", "--", "true")  # not even a project yet
    ok("snapshot", "-m", "first", "--tag", "one")
    mine = Path(ok("-q", "clone", "-n", "mine").strip())
    (mine / "a").write_text("2\n")
    ok("snapshot", "mine")
    assert "+2" in ok("diff", "mine")
    ok("promote", "mine")
    assert (other / "a").read_text() == "2\n"
    ok("undo")
    ok("rollback", "one")
    assert (other / "a").read_text() == "1\n"
    ok("rebase", "mine")
    ok("tag", "two", "@")
    ok("log", "a")
    first, second = ok("-q", "log", "--all").split()[:2]
    for nowhere in (w.home, "/"):  # no project can be there
        w.ok("diff", first, second, cwd=nowhere, timeout=60)
    # Whatever is named of the other project is waited for, wherever the command is given.
    waits(w, "diff", "try", cwd=other)
    waits(w, "promote", "try", "--dry-run", cwd=other)
    waits(w, "rebase", "try", cwd=other)
    waits(w, "gc", cwd=other)
    assert not lazy.status()["complete"]
    lazy.finish()


class Walk:
    """A clone that is being made, and whose walk does not go on before it is released."""

    def __init__(self, w, cwd, name):
        self.fifo = w.top / "walk"
        self.asked = subprocess.Popen([SNAP, "-q", "clone", "--lazy", "-n", name], cwd=cwd,
                                      env=w.env, stdout=subprocess.PIPE)
        self.gate = os.open(self.fifo, os.O_WRONLY)  # opens when the walk is there

    @staticmethod
    def prepare(w, variable="SNAPCOW_WALK_PAUSE"):
        os.mkfifo(w.top / "walk")
        w.env[variable] = str(w.top / "walk")

    def __enter__(self):
        return self

    def give_up(self):
        if self.gate >= 0:
            os.close(self.gate)
            self.gate = -1

    def release(self):
        self.give_up()
        assert self.asked.wait(60) == 0
        return Path(self.asked.stdout.read().decode().strip())

    def __exit__(self, *_):
        if self.gate >= 0:
            self.release()


@test
def a_walk_holds_up_only_who_works_on_its_project(w):
    Walk.prepare(w)
    lazy = Lazy(w)
    w.ok("init")
    other, unknown, nested = w.top / "other", w.top / "unknown", lazy.project / "d"
    for one in (other, unknown):
        one.mkdir()
        (one / "a").write_text("1\n")
    w.ok("snapshot", cwd=other)
    mine = Path(w.ok("-q", "clone", "-n", "mine", cwd=other).out.decode().strip())
    (mine / "a").write_text("2\n")
    with Walk(w, lazy.project, "try"):
        for words in (["diff", "mine"], ["rebase", "mine"], ["tag", "one", "@"]):
            w.ok(*words, cwd=other, timeout=60)
        w.ok("diff", cwd=mine, timeout=60)
        waits(w, "tag", "two", "@", cwd=lazy.project)
        waits(w, "tag", "two", "@", cwd=nested)
        waits(w, "gc", cwd=other)
        # The clone that the walk is for may come to have that name.
        waits(w, "rebase", "try", cwd=other)
        # What is written may lie around what is walked over, or in it.
        waits(w, "promote", "mine", "--dry-run", cwd=other)
    lazy.finish()
    # Of a directory that is no project yet the walk concerns whoever is in it.
    (unknown / "d").mkdir()
    then = time.time() - 100
    os.utime(unknown / "a", (then, then))
    with Walk(w, unknown, "new"):
        w.ok("diff", "mine", cwd=other, timeout=60)
        waits(w, "tag", "three", "@", cwd=unknown / "d")
    w.ok("gc")
    w.ok("check")


@test
def a_clone_that_hangs_on_its_project_keeps_no_capture_of_another_from_ending(w):
    needs_fuse(True)
    lazy = Lazy(w)
    other = w.top / "other"
    other.mkdir()
    (other / "a").write_text("1\n")
    state = w.ok("-q", "snapshot", cwd=other).out.decode().strip()
    path = lazy.clone()
    with hung(other):
        asked = subprocess.Popen([SNAP, "-q", "clone", "-n", "stuck", "--from", state], cwd=w.project,
                                 env=w.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(1)
        lazy.release()
        wait_for(lambda: lazy.status()["complete"], 60)
        assert asked.poll() is None
    out, err = asked.communicate(timeout=60)
    assert asked.returncode == 0, err
    assert (Path(out.decode().strip()) / "a").read_text() == "1\n"
    lazy.same(path)


@test
def a_read_that_hangs_keeps_no_capture_of_another_project_from_ending(w):
    fifo = w.top / "read"
    w.env["SNAPCOW_KEEP_PAUSE"] = str(fifo)
    lazy = Lazy(w)
    other = w.top / "other"
    shutil.copytree(lazy.copy, other)
    time.sleep(0.05)
    stuck = Path(w.ok("-q", "clone", "--lazy", "-n", "stuck", cwd=other).out.decode().strip())
    beside = Path(w.ok("-q", "clone", "-n", "beside", "--from", "stuck").out.decode().strip())
    path = lazy.clone()
    os.mkfifo(fifo)
    readers = [subprocess.Popen(["cat", stuck / "big"], stdout=subprocess.PIPE)]
    gate = os.open(fifo, os.O_WRONLY)  # opens when it is about to be read
    try:
        fifo.unlink()
        readers.append(subprocess.Popen(["cat", beside / "big"], stdout=subprocess.PIPE))
        time.sleep(0.5)  # it waits for the first
        lazy.release()
        wait_for(lambda: lazy.status()["complete"], 60)
        assert [one.poll() for one in readers] == [None, None]
    finally:
        os.close(gate)
    for one in readers:
        assert one.communicate(timeout=60)[0] == (lazy.copy / "big").read_bytes()
    lazy.same(path)


@test
def what_an_act_concerns_is_found_again_when_it_has_waited(w):
    """The name that it was given is another project's by then, which is captured still."""
    lazy = Lazy(w)
    small = w.top / "small"
    small.mkdir()
    then = time.time() - 100
    for i in range(3):
        (small / f"s{i}").write_text(f"{i}\n")
        os.utime(small / f"s{i}", (then, then))
    time.sleep(0.05)
    w.ok("-q", "clone", "--lazy", "-n", "first", cwd=small)
    asked = subprocess.Popen([SNAP, "rebase", "try"], cwd=small, env=w.env,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        asked.wait(0.5)
        raise AssertionError("it did not wait for the project it was asked in")
    except subprocess.TimeoutExpired:
        pass
    path = lazy.clone()
    lazy.hold(5)  # more than `small` has, and fewer than the project
    wait_for(lambda: w.ok("status", "--json", "first").json("snap.status/1")["complete"])
    try:
        out, err = asked.communicate(timeout=0.5)
        raise AssertionError(f"it did not wait for what has that name now: {out} {err}")
    except subprocess.TimeoutExpired:
        pass
    lazy.release()
    out, err = asked.communicate(timeout=60)
    assert asked.returncode == 0, (out, err)
    lazy.same(path)
    lazy.finish()


@test
def what_is_written_waits_for_a_capture_of_a_directory_around_it(w):
    """It may hold the files that are to be replaced."""
    lazy = Lazy(w)
    inner = lazy.project / "d"
    w.ok("init", inner)
    w.ok("-q", "clone", "-n", "mine", cwd=inner)
    lazy.clone()
    waits(w, "promote", "mine", "--dry-run", cwd=inner)
    w.ok("run", "--env", "ASAN_OPTIONS=detect_leaks=0", "--", "true", cwd=inner, timeout=60)
    assert not lazy.status()["complete"]
    lazy.finish()


@test
def a_dead_daemon_loses_nothing_and_the_next_one_goes_on(w):
    lazy = Lazy(w)
    path = lazy.clone()
    for after in (7, 15, 25, 39):
        lazy.hold(after)
        (path / "d" / f"f{after}").read_bytes()
        while lazy.status()["captured"] == 0:
            time.sleep(0.01)
        with open(path / f"new{after}", "w") as f:
            f.write("new")
            f.flush()
            os.fsync(f.fileno())
        w.kill_daemon()
        w.ok("mount", "try")
        assert (path / f"new{after}").read_text() == "new"
    got = lazy.finish()
    assert got["lost"] == 0, got
    for one in path.glob("new*"):
        one.unlink()
    lazy.same(path)


@test
def what_was_captured_before_a_death_needs_no_project_after_it(w):
    lazy = Lazy(w)
    w.env["SNAPCOW_LAZY_HOLD"] = "no"
    path = lazy.clone()
    lazy.hold(20)
    before = -1
    while (now := lazy.status()["captured"]) != before or now == 0:
        before = now
        time.sleep(0.2)
    w.kill_daemon()
    shutil.rmtree(lazy.project / "d")
    w.ok("mount", "try")
    lost = lazy.finish()["lost"]
    here = [i for i in range(FILES) if not unreadable(path / "d" / f"f{i}")]
    assert len(here) == FILES - lost and 10 <= len(here) <= 30, (here, lost)
    for i in here:
        assert (path / "d" / f"f{i}").read_text() == (lazy.copy / "d" / f"f{i}").read_text()


@test
def after_a_death_files_are_read_while_heirs_are_still_looked_for(w):
    lazy = Lazy(w)
    w.env["SNAPCOW_LAZY_HOLD"] = "no"
    path = lazy.clone()
    w.kill_daemon()
    Walk.prepare(w, "SNAPCOW_HEIRS_PAUSE")
    lazy.release()
    w.ok("mount", "try")
    with open(w.top / "walk", "wb"):  # opens when they are looked for
        wait_for(lambda: lazy.status()["captured"] == 99)  # all is read
        for i in range(FILES):
            (lazy.project / "d" / f"f{i}").write_text("changed")
        assert not lazy.status()["complete"]
    assert lazy.finish()["lost"] == 0
    lazy.same(path)


@test
def what_a_writer_or_a_reader_waited_for_outlives_the_daemon(w):
    """A writer goes on when its file is read; a daemon that dies in that moment has it all the same."""
    lazy = Lazy(w)
    path = lazy.clone()
    held = ["d/f5", "big", "link", "sparse"]
    for one in held:
        with open(lazy.project / one, "r+") as f:
            f.write("changed by a writer that had to wait")
    read = ["d/f20", "d/f21"]
    for one in read:
        (path / one).read_bytes()
    w.kill_daemon()
    for one in read:
        (lazy.project / one).write_text("changed while there was no daemon")
    w.ok("mount", "try")
    for one in held + read:
        assert (path / one).read_bytes() == (lazy.copy / one).read_bytes(), one
    assert lazy.finish()["lost"] == 0
    lazy.same(path)


@test
def after_a_restart_files_are_held_again_if_they_are_as_promised(w):
    lazy = Lazy(w)
    path = lazy.clone()
    w.kill_daemon()
    with open(lazy.project / "d" / "f5", "r+") as f:
        f.write("F")  # as long as before
    w.ok("mount", "try")
    # Nobody can tell when they are held; but they are before anything is read.
    assert (path / "d" / "f9").read_text() == (lazy.copy / "d" / "f9").read_text()
    assert unreadable(path / "d" / "f5")
    for one in ("d/f6", "big"):
        with open(lazy.project / one, "r+") as f:
            f.write("changed by a writer that had to wait")
        assert (path / one).read_bytes() == (lazy.copy / one).read_bytes(), one
    assert lazy.finish()["lost"] == 1


def mounted(fn):
    """The project on a file system that can be taken away, as a disk can."""
    def inner(w):
        if os.geteuid() != 0:
            raise Skip("mounting takes root")
        if not shutil.which("mkfs.ext4"):
            raise Skip("mkfs.ext4 is not installed")
        disk, image = w.top / "disk", w.top / "image"
        disk.mkdir()
        with open(image, "wb") as f:
            f.truncate(16 << 20)
        if subprocess.run(["mkfs.ext4", "-q", image], check=False).returncode != 0 or \
                subprocess.run(["mount", "-o", "loop", image, disk], check=False).returncode != 0:
            raise Skip("no ext4 in a file can be mounted here")
        shutil.copytree(w.project, disk / "p", symlinks=True)
        subprocess.run(["mount", "--bind", disk / "p", w.project], check=True)
        try:
            fn(w)
        finally:
            w.stop()
            subprocess.run(["umount", w.project], check=False)
            subprocess.run(["umount", disk], check=True)
    inner.__name__ = fn.__name__
    return inner


@test
@mounted
def a_project_whose_disk_is_not_mounted_is_waited_for(w):
    lazy = Lazy(w)
    path = lazy.clone()
    (path / "d" / "f2").read_bytes()
    w.kill_daemon()
    subprocess.run(["umount", w.project], check=True)
    lazy.release()
    w.ok("mount", "try", cwd=w.top)
    assert (path / "d" / "f2").read_bytes() == (lazy.copy / "d" / "f2").read_bytes()
    assert unreadable(path / "d" / "f3")
    w.snap("snapshot", "try", cwd=w.top).fails(1, "is not captured yet", "the project is not there")
    w.ok("gc", cwd=w.top)  # what removes things is not held up
    assert w.ok("status", "--json", "try", cwd=w.top).json("snap.status/1")["lost"] == 0
    subprocess.run(["mount", "--bind", w.top / "disk" / "p", w.project], check=True)
    until = time.monotonic() + 60
    while not lazy.status()["complete"]:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert lazy.status()["lost"] == 0
    lazy.same(path)
    w.ok("check")


@test
@mounted
def a_capture_that_cannot_go_on_says_so_while_heirs_are_still_looked_for(w):
    lazy = Lazy(w)
    path = lazy.clone()
    w.kill_daemon()
    subprocess.run(["umount", w.project], check=True)
    Walk.prepare(w, "SNAPCOW_HEIRS_PAUSE")
    lazy.release()
    w.ok("mount", "try", cwd=w.top)
    with open(w.top / "walk", "wb"):  # opens when they are looked for
        w.snap("snapshot", "try", cwd=w.top, timeout=60).fails(1, "is not captured yet",
                                                               "the project is not there")
        subprocess.run(["mount", "--bind", w.top / "disk" / "p", w.project], check=True)
        wait_for(lambda: lazy.status()["captured"] == 99)  # it is tried again
        assert not lazy.status()["complete"]
    assert lazy.finish()["lost"] == 0
    lazy.same(path)


@test
@mounted
def a_project_whose_disk_never_comes_back_can_be_forgotten(w):
    lazy = Lazy(w)
    lazy.clone()
    w.kill_daemon()
    subprocess.run(["umount", w.project], check=True)
    lazy.release()
    w.ok("mount", "try", cwd=w.top)
    w.ok("rm", "--force", "try", cwd=w.top)
    w.ok("projects", "forget", "--force", str(w.project), cwd=w.top)
    until = time.monotonic() + 60
    while w.snap("gc", cwd=w.top).status != 0:
        assert time.monotonic() < until
        time.sleep(0.1)
    w.ok("check", cwd=w.top)


@test
@mounted
def a_project_that_nobody_can_write_to_is_lazy_like_any_other(w):
    lazy = Lazy(w)
    subprocess.run(["mount", "-o", "remount,ro", w.top / "disk"], check=True)
    path = lazy.clone()
    assert not lazy.status()["complete"]
    assert (path / "d" / "f2").read_bytes() == (lazy.copy / "d" / "f2").read_bytes()
    (path / "d" / "f3").write_text("mine")
    assert lazy.finish()["lost"] == 0
    assert (path / "d" / "f3").read_text() == "mine"
    (path / "d" / "f3").write_bytes((lazy.copy / "d" / "f3").read_bytes())
    lazy.same(path)


@test
def a_file_system_that_may_change_unseen_is_read_first_and_that_is_said(w):
    """As NFS is, and the layers below an overlay, which is what a test can mount."""
    lazy = Lazy(w)
    parts = {name: w.top / f"over-{name}" for name in ("upper", "work")}
    for part in parts.values():
        part.mkdir()
    over = f"lowerdir={lazy.copy},upperdir={parts['upper']},workdir={parts['work']}"
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "overlay", "overlay", "-o", over, w.project],
                                           check=False, capture_output=True).returncode != 0:
        raise Skip("no overlay can be mounted here")
    try:
        got = w.ok("clone", "--lazy", "-n", "try")
        assert b"may change unseen" in got.err and b"--lazy has no effect" in got.err, got
        assert lazy.status()["complete"]
        lazy.same(Path(got.out.decode().strip()))
    finally:
        w.stop()
        subprocess.run(["umount", w.project], check=True)


@test
def without_a_thread_files_are_read_when_they_are_needed(w):
    lazy = Lazy(w)
    none = w.top / "no-thread"
    none.touch()
    w.env["SNAPCOW_LAZY_THREAD"] = str(none)
    path = lazy.clone()
    lazy.release()
    assert (path / "d" / "f5").read_bytes() == (lazy.copy / "d" / "f5").read_bytes()
    (lazy.project / "d" / "f6").write_text("changed")
    assert (path / "d" / "f6").read_bytes() == (lazy.copy / "d" / "f6").read_bytes()
    w.snap("diff", "try").fails(1, "is not captured yet", "no thread")
    none.unlink()
    assert lazy.finish()["lost"] == 0
    lazy.same(path)


@contextlib.contextmanager
def small_store(w):
    if os.geteuid() != 0:
        raise Skip("mounting takes root")
    w.store.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m,mode=700", "none", w.store], check=True)
    try:
        yield
    finally:
        w.snap("stop", "--force")
        subprocess.run(["umount", w.store], check=True)


@test
def a_full_store_stops_the_capture_and_not_a_gc(w):
    with small_store(w):
        for i in range(6):
            (w.project / f"blob{i}").write_bytes(os.urandom(4 << 20))
        lazy = Lazy(w)
        del w.env["SNAPCOW_LAZY_PAUSE"]
        path = lazy.clone()
        until = time.monotonic() + 60
        while "disk is full" not in (said := w.snap("snapshot", "try").err.decode()):
            assert time.monotonic() < until, said
            time.sleep(0.1)
        w.ok("gc")
        w.ok("check")
        assert (path / "d" / "f5").read_bytes() == (lazy.copy / "d" / "f5").read_bytes()
        got = lazy.status()
        assert not got["complete"] and got["lost"] == 0, got
        subprocess.run(["mount", "-o", "remount,size=96m", w.store], check=True)
        until = time.monotonic() + 60
        while not lazy.status()["complete"]:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert lazy.finish()["lost"] == 0
        lazy.same(path)


@test
def a_writer_waits_while_its_file_cannot_be_stored(w):
    with small_store(w):
        (w.project / "blob").write_bytes(os.urandom(16 << 20))
        lazy = Lazy(w)
        path = lazy.clone()
        with subprocess.Popen(["sh", "-c", 'printf x >> "$1"', "sh", w.project / "blob"]) as writer:
            try:
                status = writer.wait(1)
            except subprocess.TimeoutExpired:
                status = None
            assert status is None, "the writer went on, and the file is lost"
            subprocess.run(["mount", "-o", "remount,size=96m", w.store], check=True)
            assert writer.wait() == 0
        assert (path / "blob").read_bytes() == (lazy.copy / "blob").read_bytes()
        assert lazy.finish()["lost"] == 0


def limit_store(w, size):
    """A daemon that runs obeys it within seconds."""
    config = w.home / ".config" / "snapcow" / "config.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"store: {{limit: {size}}}\n")


@test
def a_writer_waits_while_its_file_is_beyond_the_limit_of_the_store(w):
    (w.project / "blob").write_bytes(os.urandom(40 << 20))
    limit_store(w, "32M")
    lazy = Lazy(w)
    path = lazy.clone()
    with subprocess.Popen(["sh", "-c", 'printf x >> "$1"', "sh", w.project / "blob"]) as writer:
        try:
            status = writer.wait(1)
        except subprocess.TimeoutExpired:
            status = None
        assert status is None, "the writer went on, and the file is lost"
        limit_store(w, "1G")
        assert writer.wait() == 0
    assert (path / "blob").read_bytes() == (lazy.copy / "blob").read_bytes()
    assert lazy.finish()["lost"] == 0


@test
def a_walk_that_fails_lets_its_files_go(w):
    with small_store(w):
        lazy = Lazy(w)
        lazy.clone()
        pid, = w.daemons()

        def held():
            return sum(os.readlink(fd).startswith(str(w.project))
                       for fd in Path(f"/proc/{pid}/fd").iterdir() if fd.is_symlink())

        before = held()
        assert before > FILES
        with open(w.project / "new", "wb") as f:
            f.write(os.urandom(16 << 20))
            # A file that somebody writes is read at once.
            w.snap("snapshot", "--lazy").fails(1, "disk is full")
        assert held() == before


@test
def what_is_held_is_read_before_it_changes_and_after_its_name_has_gone(w):
    lazy = Lazy(w)
    path = lazy.clone()
    with open(lazy.project / "d" / "f5", "r+") as f:
        f.write("F")
    os.truncate(lazy.project / "big", 1000)
    (lazy.project / "d" / "f6").unlink()
    (lazy.project / "d" / "f7").write_text("new")
    (lazy.project / "d" / "f8").chmod(0o600)
    (lazy.project / "d" / "f9").rename(lazy.project / "elsewhere")
    shutil.rmtree(lazy.project / "d")
    lazy.same(path)
    got = lazy.finish()
    assert got["lost"] == 0, got
    lazy.same(path)


@test
def small_files_are_read_directory_by_directory_and_large_ones_last(w):
    (w.project / "e").mkdir()
    for i in range(FILES):
        (w.project / "e" / f"f{i}").write_text(f"file {i}\n" * (i + 1))
    lazy = Lazy(w)
    lazy.clone()
    # One of the files has another name above them.
    dirs = [{os.stat(w.project / name / f"f{i}").st_ino for i in range(FILES) if i != 1} for name in "de"]

    def leased():
        lines = Path("/proc/locks").read_text().splitlines()
        return {int(line.split()[5].split(":")[2]) for line in lines if " LEASE " in line and "->" not in line}

    lazy.hold(20)
    wait_for(lambda: sum(len(one - leased()) for one in dirs) > 10)
    left = leased()
    assert sorted(bool(one - left) for one in dirs) == [False, True], [len(one - left) for one in dirs]
    assert os.stat(w.project / "big").st_ino in left
    assert lazy.finish()["lost"] == 0


@test
def a_file_that_is_emptied_without_a_word_is_lost_and_never_shown(w):
    """open(O_RDONLY | O_TRUNC) breaks no lease; the size tells."""
    lazy = Lazy(w)
    path = lazy.clone()
    os.close(os.open(lazy.project / "d" / "f5", os.O_RDONLY | os.O_TRUNC))
    (lazy.project / "d" / "f5").write_text("longer than it was before " * 100)
    assert unreadable(path / "d" / "f5")
    assert lazy.finish()["lost"] == 1


def damage_record(w):
    """Behind the back of a dead daemon: the tree with what was done cannot be read any more."""
    with contextlib.closing(sqlite3.connect(w.store / "meta.db")) as db:
        n = db.execute("UPDATE object SET data = substr(data, 1, length(data) - 1)"
                       " WHERE id IN (SELECT root FROM ref WHERE kind = 10)").rowcount
        db.commit()
    assert n == 1, n


@test
def a_capture_whose_record_is_damaged_says_so_and_nobody_hangs(w):
    lazy = Lazy(w)
    path = lazy.clone()
    w.kill_daemon()
    damage_record(w)
    w.ok("mount", "try")
    until = time.monotonic() + 5  # it was tried twice and began to turn in circles
    while time.monotonic() < until:
        w.snap("snapshot", "try", timeout=120).fails(12, "is not captured yet")
        w.snap("gc", timeout=120).fails(12, "is damaged")
        w.ok("list", timeout=120)
        time.sleep(0.5)
    assert unreadable(path / "d" / "f3")
    (path / "mine").write_text("mine")
    w.ok("rm", "--force", "try", timeout=120)


@test
def a_damaged_list_of_lost_files_keeps_no_daemon_from_starting(w):
    w.env["SNAPCOW_LAZY_HOLD"] = "no"
    lazy = Lazy(w)
    path = lazy.clone()
    (lazy.project / "d" / "f6").unlink()
    assert lazy.finish()["lost"] == 1
    w.stop()
    damage_record(w)
    w.ok("mount", "try")
    assert unreadable(path / "d" / "f6")
    assert (path / "d" / "f7").read_text() == (lazy.copy / "d" / "f7").read_text()


@test
def a_capture_that_has_ended_keeps_nothing_open(w):
    lazy = Lazy(w)
    lazy.release()
    for _ in range(3):
        w.ok("snapshot", "--lazy", "--wait")
        pid, = w.daemons()
        fds = [os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir() if fd.is_symlink()]
        assert str(w.project) not in fds, fds


@test
def a_clone_with_a_git_directory_of_its_own_names_what_was_lost(w):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", w.top]
    w.env["SNAPCOW_LAZY_HOLD"] = "no"
    shutil.rmtree(w.project)
    subprocess.run([*git, "init", "-q", "repo"], check=True)
    git[-1] /= "repo"
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", w.project], check=True)
    lazy = Lazy(w)
    path = lazy.clone()
    got = lazy.status()
    assert not got["complete"] and got["captured"] == 0, got
    (lazy.project / "d" / "f6").unlink()
    # One of its own, and one of that: two generations of snapshots that name promises.
    own = lazy.status()["base"]
    second = Path(w.ok("-q", "clone", "-n", "second", "--from", own).out.decode().strip())
    got = lazy.finish()
    assert got["lost"] == 1 and unreadable(path / "d" / "f6"), got
    assert "d/f6" in w.ok("status", "try").out.decode()
    assert (second / "d" / "f7").read_text() == (lazy.copy / "d" / "f7").read_text()
    w.ok("stop", "--force")
    w.ok("mount", "second")
    assert (second / "d" / "f7").read_text() == (lazy.copy / "d" / "f7").read_text()


@test
def a_snapshot_that_is_not_captured_yet_stays_for_the_clones_made_of_it(w):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", w.top]
    shutil.rmtree(w.project)
    subprocess.run([*git, "init", "-q", "repo"], check=True)
    git[-1] /= "repo"
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", w.project], check=True)
    lazy = Lazy(w)
    none = w.top / "no-thread"
    none.touch()
    w.env["SNAPCOW_LAZY_THREAD"] = str(none)
    path = lazy.clone()
    # The clone starts from a snapshot of its own, and only that names the captured one.
    own = lazy.status()["base"]
    captured, = set(w.ok("-q", "log", "--all").out.decode().split()) - {own}
    w.snap("rm", "--force", captured).fails(11, "is not captured yet")
    # A newer one, or the captured one would stay as the newest.
    w.ok("clone", "--lazy", "-n", "other")
    w.ok("gc", "--keep-last", "1")
    assert captured in w.ok("-q", "log", "--all").out.decode().split()
    none.unlink()
    assert lazy.finish()["lost"] == 0
    w.ok("stop", "--force")
    w.ok("mount", "try")
    for one in ("d/f7", "big"):
        assert (path / one).read_bytes() == (lazy.copy / one).read_bytes(), one


@test
def the_project_may_go_and_what_was_read_stays(w):
    w.env["SNAPCOW_LAZY_HOLD"] = "no"
    lazy = Lazy(w)
    path = lazy.clone()
    assert (path / "d" / "f2").read_text() == (lazy.copy / "d" / "f2").read_text()
    (path / "mine").write_text("mine")
    shutil.rmtree(lazy.project / "d")
    lazy.release()
    w.ok("gc")
    w.ok("check")
    got = lazy.status()
    assert got["complete"] and got["lost"] == FILES - 1, got
    assert (path / "d" / "f2").read_text() == (lazy.copy / "d" / "f2").read_text()
    assert (path / "big").read_bytes() == (lazy.copy / "big").read_bytes()
    assert (path / "mine").read_text() == "mine"
    assert unreadable(path / "d" / "f3")


@test
def the_whole_project_may_go_amid_a_capture(w):
    """What is held is read all the same, without leases what was read by then stays; the rest is named."""
    for hold in ("yes", "no"):
        w.env["SNAPCOW_LAZY_HOLD"] = hold
        lazy = Lazy(w)
        path = lazy.clone()
        lazy.hold(FILES // 2)
        wait_for(lambda: lazy.status()["captured"] > 0)
        shutil.rmtree(lazy.project)
        lazy.release()
        wait_for(lambda: w.ok("status", "--json", "try", cwd=w.top).json("snap.status/1")["complete"])
        got = w.ok("status", "--json", "try", cwd=w.top).json("snap.status/1")
        lost = {p.relative_to(path) for p in path.rglob("*") if p.is_file() and unreadable(p)}
        twins = {Path("link"), Path("d/f1")} <= lost
        assert got["lost"] == len(lost) - twins and (got["lost"] > 0) == (hold == "no"), (hold, got, lost)
        for here in (p for p in lazy.copy.rglob("*") if p.is_file() and not p.is_symlink()):
            name = here.relative_to(lazy.copy)
            assert name in lost or (path / name).read_bytes() == here.read_bytes(), name
        w.ok("check", cwd=w.top)
        w.ok("rm", "--force", "try", cwd=w.top)
        shutil.rmtree(lazy.copy)
        lazy.project.mkdir()
        w.stop()


# What is only read, rewritten with the same bytes, or replaced by a twin, has not changed.
BUSY = """cat d/f5 big sparse link; echo new > d/f6; rm d/f7; mv d/f8 d/f9; cp d/f11 d/same; mv d/same d/f11
          mv twin2 twin1; chmod 755 d/f12; cat d/f14 > d/copy; : > d/f15"""
DONE = {("M", "d/f6"), ("D", "d/f7"), ("D", "d/f8"), ("M", "d/f9"), ("D", "twin2"), ("M", "d/f12"),
        ("A", "d/copy"), ("M", "d/f15")}


def lazy_run(w, *words):
    got = w.ok("run", "--json", "--env", "ASAN_OPTIONS=detect_leaks=0", *words).json("snap.run/1")
    return got, {(c["status"], c["path"]) for c in got["changed"]["paths"]}


def plant_twins(w):
    for name in ("twin1", "twin2"):
        (w.project / name).write_text("the same\n")


@test
def a_run_begins_and_ends_before_the_files_are_read(w):
    plant_twins(w)
    lazy = Lazy(w)
    want = b"".join((lazy.copy / one).read_bytes() for one in ("d/f5", "big", "sparse", "link"))
    (w.top / "want").write_bytes(want)
    script = BUSY.replace(" link;", f" link | cmp - {w.top}/want || exit 9;")
    got, changed = lazy_run(w, "--lazy", "--ro", str(w.top / "want"), "--", "sh", "-c", script)
    assert got["exit_code"] == 0 and changed == DONE, (got, changed ^ DONE)
    w.ok("try", "--discard", "--lazy", "--env", "ASAN_OPTIONS=detect_leaks=0", "--ro", str(w.top / "want"),
         "--", "sh", "-c", script)
    assert not w.ok("-q", "list").out
    # With all captured it is the same.
    lazy.release()
    w.ok("gc")
    got, changed = lazy_run(w, "--ro", str(w.top / "want"), "--", "sh", "-c", script)
    assert got["exit_code"] == 0 and changed == DONE, (got, changed ^ DONE)
    w.snap("run", "--lazy", "nope", "--", "true").fails(2, "'--lazy'")
    w.ok("check")


@test
def runs_in_a_lazy_clone_begin_and_end_before_the_files_are_read(w):
    plant_twins(w)
    lazy = Lazy(w)
    path = lazy.clone()
    _, changed = lazy_run(w, "try", "--", "sh", "-c", BUSY)
    assert changed == DONE, changed ^ DONE
    got, changed = lazy_run(w, "try", "--", "sh", "-c", "echo two > d/f6; rm d/f16; cat d/f17")
    assert changed == {("M", "d/f6"), ("D", "d/f16")}, changed
    assert not lazy.status()["complete"]
    # The snapshot before the second one names promises, which outlive the daemon.
    w.kill_daemon()
    w.ok("mount", "try")
    assert not lazy.status()["complete"]
    assert lazy.finish()["lost"] == 0
    assert w.ok("show", f"{got['before']}:d/f6").out == b"new\n"
    for i in (0, 16, 17, 18, 39):
        assert w.ok("show", f"{got['before']}:d/f{i}").out == (lazy.copy / "d" / f"f{i}").read_bytes(), i
    w.ok("rollback", "try", got["before"], "--yes")
    assert (path / "d" / "f16").read_bytes() == (lazy.copy / "d" / "f16").read_bytes()
    assert (path / "big").read_bytes() == (lazy.copy / "big").read_bytes()
    w.ok("check")


@test
def a_run_without_a_snapshot_in_a_lazy_clone_waits(w):
    """Nothing could tell what the clone was before it."""
    lazy = Lazy(w)
    lazy.clone()
    with subprocess.Popen([SNAP, "run", "--no-snapshot", "--json", "--env", "ASAN_OPTIONS=detect_leaks=0", "try",
                           "--", "sh", "-c", "cat d/f5; rm d/f6"],
                          cwd=w.project, env=w.env, stdout=subprocess.PIPE) as run:
        try:
            run.wait(0.5)
            raise AssertionError("it did not wait")
        except subprocess.TimeoutExpired:
            lazy.release()
        got = json.loads(run.communicate()[0])
    assert [c["path"] for c in got["changed"]["paths"]] == ["d/f6"], got


@test
def a_fifth_lazy_capture_waits_for_one_of_the_others(w):
    lazy = Lazy(w)
    for i in range(4):
        w.ok("snapshot", "--lazy", "-m", str(i))
    with subprocess.Popen([SNAP, "snapshot", "--lazy", "-m", "4"], cwd=w.project, env=w.env,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as fifth:
        try:
            fifth.wait(0.5)
            raise AssertionError("it did not wait")
        except subprocess.TimeoutExpired:
            lazy.release()
        assert fifth.wait() == 0
    w.ok("gc")
    w.ok("check")


@test
def of_a_large_file_only_what_is_asked_for_is_read(w):
    (w.project / "large").write_bytes(os.urandom(64 << 20))
    lazy = Lazy(w)
    path = lazy.clone()
    want = (lazy.copy / "large").read_bytes()
    before = bytes_read(w)
    fd = os.open(path / "large", os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    for at in (0, 33 << 20, (64 << 20) - 100):
        assert os.pread(fd, 5000, at) == want[at:at + 5000], at
    assert bytes_read(w) - before < 16 << 20, bytes_read(w) - before
    assert lazy.status()["captured"] == 0
    # A writer waits until it is copied, and the clone has what was there before.
    with open(lazy.project / "large", "r+b") as f:
        f.seek(40 << 20)
        f.write(b"new")
    assert os.pread(fd, 5000, 40 << 20) == want[40 << 20:(40 << 20) + 5000]
    os.close(fd)
    assert lazy.finish()["lost"] == 0
    assert (path / "large").read_bytes() == want


class Steps:
    """Work of the daemon that stops at each step until it is let on."""

    def __init__(self, w, variable):
        self.fifo = w.top / "step"
        os.mkfifo(self.fifo)
        w.env[variable] = str(self.fifo)

    def begin(self):
        """Returns when the first step is reached."""
        self.gate = os.open(self.fifo, os.O_WRONLY)

    def go_on(self):
        """Until the next step, which has a fifo of its own."""
        self.fifo.unlink()
        os.mkfifo(self.fifo)
        os.close(self.gate)
        self.gate = None

    def end(self):
        """And no more steps."""
        self.fifo.unlink()
        os.close(self.gate)

    def stop(self, w):
        """Stop the daemon meanwhile, and then let it on at each step by itself; how many there are."""
        pid, = w.daemons()
        asked = subprocess.Popen([SNAP, "stop", "--force"], cwd=w.project, env=w.env, stdout=subprocess.DEVNULL)
        wait_for(lambda: not (w.store / "run" / "cowfsd.sock").exists())
        n = 0
        while Path(f"/proc/{pid}").exists():
            if self.gate is not None:
                self.go_on()
                n += 1
            try:
                self.gate = os.open(self.fifo, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as e:
                assert e.errno == errno.ENXIO, e
                time.sleep(0.001)
        assert asked.wait(60) == 0
        self.fifo.unlink()
        return n


def begin_large(w, size):
    """The background is amid a large file, and all that is smaller is read or not far from it."""
    (w.project / "large").write_bytes(os.urandom(size))
    steps = Steps(w, "SNAPCOW_READ_PAUSE")
    lazy = Lazy(w)
    for top in (lazy.project, lazy.copy):
        (top / "big").unlink()  # it takes more than one step
    path = lazy.clone()
    lazy.release()
    steps.begin()
    return steps, lazy, path


@test
def no_small_file_waits_until_a_large_one_is_read(w):
    """Neither a reader of the clone nor a writer of the project does."""
    steps, lazy, path = begin_large(w, 4 << 20)
    for i in range(FILES):
        done = subprocess.run(["cat", path / "d" / f"f{i}"], stdout=subprocess.PIPE, timeout=60, check=True)
        assert done.stdout == (lazy.copy / "d" / f"f{i}").read_bytes(), i
        subprocess.run(["sh", "-c", 'printf x >> "$1"', "sh", lazy.project / "d" / f"f{i}"], timeout=60, check=True)
    assert not lazy.status()["complete"]
    steps.end()
    assert lazy.finish()["lost"] == 0
    lazy.same(path)


@test
def a_daemon_that_ends_does_not_read_a_large_file_to_its_end(w):
    steps, lazy, path = begin_large(w, 64 << 20)
    blocks = steps.stop(w)
    assert blocks < 200, f"{blocks} of 256 blocks were read"
    w.ok("mount", "try")
    assert lazy.finish()["lost"] == 0
    lazy.same(path)


@test
def a_daemon_that_ends_does_not_look_for_all_heirs(w):
    (w.project / "many").mkdir()
    for i in range(16384):
        (w.project / "many" / f"f{i}").touch()
    lazy = Lazy(w)
    path = lazy.clone()
    w.ok("snapshot", "--lazy")  # it may have come of what the clone's capture lent
    w.kill_daemon()
    steps = Steps(w, "SNAPCOW_SIFT_PAUSE")
    w.ok("mount", "try")
    steps.begin()
    looks = steps.stop(w)
    assert looks < 200, f"{looks} of 256 looks were taken"
    w.ok("mount", "try")
    assert lazy.finish()["lost"] == 0
    lazy.same(path)


@test
def a_daemon_is_ready_before_heirs_of_captures_that_ended_are_looked_for(w):
    w.env["SNAPCOW_LAZY_HOLD"] = "no"
    lazy = Lazy(w)
    path = lazy.clone()
    (lazy.project / "d" / "f6").unlink()
    assert lazy.finish()["lost"] == 1
    w.stop()
    steps = Steps(w, "SNAPCOW_ENDED_PAUSE")
    w.ok("mount", "try", timeout=60)
    steps.begin()
    assert lazy.status()["lost"] == 1 and unreadable(path / "d" / "f6")
    assert (path / "d" / "f7").read_text() == (lazy.copy / "d" / "f7").read_text()
    steps.end()


def copies(w):
    """Plain copies of promised files in the store."""
    return sorted(p.name for p in (w.store / "stash").rglob("*") if p.is_file())


def overwrite(path, at=3 << 20):
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(b"new")


@test
def a_large_file_is_copied_while_its_writer_waits_and_captured_later(w):
    (w.project / "large").write_bytes(os.urandom(8 << 20))
    with open(w.project / "holes", "wb") as f:
        f.truncate(1 << 30)
        f.seek(512 << 20)
        f.write(b"here")
    lazy = Lazy(w)
    path = lazy.clone()
    want = (lazy.copy / "large").read_bytes()
    overwrite(lazy.project / "large")
    overwrite(lazy.project / "holes", 512 << 20)
    assert lazy.status()["captured"] == 0 and len(copies(w)) == 2, copies(w)
    taken = sum(p.stat().st_blocks for p in (w.store / "stash").rglob("*") if p.is_file())
    assert taken * 512 < 16 << 20, taken
    # Of a large file a reader gets what he asks for, and nothing is captured.
    fd = os.open(path / "large", os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    assert os.pread(fd, 5000, 3 << 20) == want[3 << 20:(3 << 20) + 5000]
    os.close(fd)
    w.kill_daemon()
    assert len(copies(w)) == 2, "a dead daemon lost them"
    w.ok("mount", "try")
    assert (path / "large").read_bytes() == want
    assert lazy.finish()["lost"] == 0
    assert not (w.store / "stash").exists()
    with open(path / "holes", "rb") as f:
        f.seek(512 << 20)
        assert f.read(4) == b"here"


@test
def a_writer_who_comes_during_the_walk_does_not_wait_for_its_end(w):
    """Nobody knows yet what was promised, so his file is copied whatever its size."""
    (w.project / "large").write_bytes(os.urandom(8 << 20))
    Walk.prepare(w, "SNAPCOW_WALKED_PAUSE")
    lazy = Lazy(w)
    with Walk(w, lazy.project, "try") as walk:
        for name in ("d/f5", "big", "large"):
            with open(lazy.project / name, "r+b") as f:
                f.write(b"new")
        os.truncate(lazy.project / "d" / "f6", 3)
        assert len(copies(w)) == 4, copies(w)
        path = walk.release()
    lazy.same(path)
    assert lazy.status()["lost"] == 0
    for i in (5, 6):
        (path / "d" / f"f{i}").write_text("mine")
        (path / "d" / f"f{i}").write_bytes((lazy.copy / "d" / f"f{i}").read_bytes())
    assert lazy.finish()["lost"] == 0
    assert not (w.store / "stash").exists()
    lazy.same(path)


def lingering(w, fifo):
    """How many threads of the daemon wait at the fifo."""
    pid, = w.daemons()
    links = [os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir() if fd.is_symlink()]
    return sum(link.startswith(str(fifo)) for link in links)


def broken_leases(path):
    """How many writers of files of this file system wait for us."""
    st = os.stat(path)
    place = f"{os.major(st.st_dev):02x}:{os.minor(st.st_dev):02x}:"
    lines = Path("/proc/locks").read_text().splitlines()
    return sum(" LEASE " in line and " BREAKING " in line and place in line for line in lines)


def write_to(path):
    return subprocess.Popen(["sh", "-c", 'printf x >> "$1"', "sh", path])


@test
def writers_of_files_that_somebody_has_in_hand_stop_no_others(w):
    (w.project / "large").write_bytes(os.urandom(2 << 20))
    fifo = w.top / "keep"
    w.env["SNAPCOW_KEEP_PAUSE"] = str(fifo)
    lazy = Lazy(w)
    path = lazy.clone()
    os.mkfifo(fifo)
    names = [f"d/f{i}" for i in range(4, 8)]
    # Four readers have read their files, and each holds up the writer of his.
    readers = [subprocess.Popen(["cat", path / name], stdout=subprocess.PIPE) for name in names]
    gate = os.open(fifo, os.O_WRONLY)
    try:
        wait_for(lambda: lingering(w, fifo) == len(names))
        writers = [write_to(lazy.project / name) for name in names]
        wait_for(lambda: broken_leases(w.project) >= len(names))
        assert write_to(lazy.project / "large").wait(60) == 0  # it is copied, and not read
        assert [one.poll() for one in writers] == [None] * len(names)
    finally:
        fifo.unlink()
        os.close(gate)
    for name, reader, writer in zip(names, readers, writers):
        assert reader.communicate(timeout=60)[0] == (lazy.copy / name).read_bytes()
        assert writer.wait(60) == 0
    assert lazy.finish()["lost"] == 0
    lazy.same(path)


@test
def a_writer_of_a_file_that_is_being_read_is_waited_for_at_the_end(w):
    steps = Steps(w, "SNAPCOW_READ_PAUSE")
    lazy = Lazy(w)
    path = lazy.clone()
    lazy.release()
    steps.begin()  # in the middle of 'big', which is too small to be copied
    pid, = w.daemons()
    writer = write_to(lazy.project / "big")
    wait_for(lambda: broken_leases(w.project))
    asked = subprocess.Popen([SNAP, "stop", "--force"], cwd=w.project, env=w.env, stdout=subprocess.DEVNULL)
    wait_for(lambda: not (w.store / "run" / "cowfsd.sock").exists())
    time.sleep(1)
    assert writer.poll() is None, "the writer went on, and the file is lost"
    steps.end()
    assert writer.wait(60) == 0 and asked.wait(60) == 0
    wait_for(lambda: not Path(f"/proc/{pid}").exists())
    w.ok("mount", "try")
    assert lazy.finish()["lost"] == 0
    lazy.same(path)


@test
def what_was_copied_during_the_walk_outlives_the_daemon(w):
    Walk.prepare(w, "SNAPCOW_WALKED_PAUSE")
    lazy = Lazy(w)
    with Walk(w, lazy.project, "try") as walk:
        (lazy.project / "d" / "f5").write_text("new")
        path = walk.release()
    w.kill_daemon()
    assert len(copies(w)) == 1, "a dead daemon lost it"
    w.env.pop("SNAPCOW_WALKED_PAUSE")
    w.ok("mount", "try")
    assert (path / "d" / "f5").read_text() == (lazy.copy / "d" / "f5").read_text()
    assert lazy.finish()["lost"] == 0
    assert not (w.store / "stash").exists()


@test
def what_was_copied_during_a_walk_that_is_given_up_goes(w):
    Walk.prepare(w, "SNAPCOW_WALKED_PAUSE")
    lazy = Lazy(w)
    with Walk(w, lazy.project, "try") as walk:
        (lazy.project / "d" / "f5").write_text("new")
        assert len(copies(w)) == 1
        walk.asked.kill()
        walk.asked.wait(60)
        walk.give_up()
    wait_for(lambda: not copies(w))
    w.ok("check")


@test
def all_copies_together_take_half_of_what_the_limit_leaves(w):
    names = ("one", "two")
    for name in names:
        (w.project / name).write_bytes(os.urandom(10 << 20))
    limit_store(w, "36M")
    lazy = Lazy(w)
    path = lazy.clone()
    overwrite(lazy.project / "one")
    assert len(copies(w)) == 1 and lazy.status()["captured"] == 0, copies(w)
    # 20 MiB would be more than half of 36.
    overwrite(lazy.project / "two")
    assert len(copies(w)) == 1 and lazy.status()["captured"] > 0, copies(w)
    for name in names:
        assert (path / name).read_bytes() == (lazy.copy / name).read_bytes(), name
    assert lazy.finish()["lost"] == 0
    assert not (w.store / "stash").exists()


@test
def a_copy_of_an_earlier_boot_is_never_shown(w):
    (w.project / "large").write_bytes(os.urandom(8 << 20))
    lazy = Lazy(w)
    path = lazy.clone()
    overwrite(lazy.project / "large")
    w.kill_daemon()
    boot, = (w.store / "stash").iterdir()
    boot.rename(boot.with_name("11111111-2222-3333-4444-555555555555"))
    w.ok("mount", "try")
    assert unreadable(path / "large")
    assert lazy.finish()["lost"] == 1
    assert not (w.store / "stash").exists()


@test
def copies_go_with_the_capture_that_nobody_needs(w):
    (w.project / "large").write_bytes(os.urandom(8 << 20))
    lazy = Lazy(w)
    lazy.clone()
    overwrite(lazy.project / "large")
    assert len(copies(w)) == 1
    w.kill_daemon()
    # Not whole, and of a capture that nobody knows.
    boot, = (w.store / "stash").iterdir()
    one, = boot.iterdir()
    shutil.copy(one, boot / f"{one.name}.part")
    shutil.copy(one, boot / ("0" * 16 + one.name[16:]))
    w.ok("mount", "try")
    assert copies(w) == [one.name]
    lazy.finish()
    assert not (w.store / "stash").exists()


@test
def a_change_of_a_large_file_waits_for_the_blocks_it_touches_in_part(w):
    (w.project / "large").write_bytes(os.urandom(64 << 20))
    lazy = Lazy(w)
    path = lazy.clone()
    want = bytearray((lazy.copy / "large").read_bytes())
    before = bytes_read(w)
    fd = os.open(path / "large", os.O_RDWR)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)

    def put(at, what):
        assert os.pwrite(fd, what, at) == len(what)
        want[at:at + len(what)] = what

    def right(at, size=5000):
        assert os.pread(fd, size, at) == want[at:at + size], at

    put(33 << 20, b"in the middle")
    put((64 << 20) - 3, b"across the end")
    put((20 << 20) + 1, b"x" * 200_000)
    for at in (0, (33 << 20) - 100, (64 << 20) - 100, 20 << 20):
        right(at)
    os.ftruncate(fd, 63 << 20)
    del want[63 << 20:]
    punch = ctypes.CDLL(None, use_errno=True).fallocate  # the program would call fsync
    punch.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    assert punch(fd, 3, 5 << 20, 100_000) == 0, os.strerror(ctypes.get_errno())
    want[5 << 20:(5 << 20) + 100_000] = bytes(100_000)
    right((5 << 20) - 100, 200_000)
    with mmap.mmap(fd, 63 << 20) as m:
        m[12345678:12345683] = b"store"
        want[12345678:12345683] = b"store"
        right(12345600)
        assert bytes_read(w) - before < 16 << 20, bytes_read(w) - before
        m.flush()  # as an fsync
    assert bytes_read(w) - before > 63 << 20, bytes_read(w) - before
    assert lazy.status()["captured"] > 0
    right(12345600)
    os.close(fd)
    assert lazy.finish()["lost"] == 0
    assert (path / "large").read_bytes() == want
    assert (lazy.project / "large").read_bytes() == (lazy.copy / "large").read_bytes()


@test
def a_large_file_that_is_changed_and_promised_outlives_the_daemon_if_it_is_synced(w):
    (w.project / "large").write_bytes(os.urandom(16 << 20))
    (w.project / "larger").write_bytes(os.urandom(17 << 20))
    lazy = Lazy(w)
    path = lazy.clone()
    want = {name: (lazy.copy / name).read_bytes() for name in ("large", "larger")}
    before = bytes_read(w)
    with open(path / "large", "r+b") as f:
        f.seek(5 << 20)
        f.write(b"synced")
        f.flush()
        os.fsync(f.fileno())
    # To ask for the status would persist it, whatever the fsync did.
    assert bytes_read(w) - before >= 16 << 20, bytes_read(w) - before
    with open(path / "larger", "r+b", buffering=0) as f:
        f.seek(5 << 20)
        f.write(b"not synced")
    w.kill_daemon()
    w.ok("mount", "try")
    got = (path / "large").read_bytes()
    assert got == want["large"][:5 << 20] + b"synced" + want["large"][(5 << 20) + 6:]
    # All of the change, if it was persisted meanwhile, or nothing of it.
    changed = want["larger"][:5 << 20] + b"not synced" + want["larger"][(5 << 20) + 10:]
    assert (path / "larger").read_bytes() in (want["larger"], changed)
    assert lazy.finish()["lost"] == 0


@test
def a_writer_in_the_project_and_one_in_the_clone_do_not_meet(w):
    (w.project / "large").write_bytes(os.urandom(16 << 20))
    lazy = Lazy(w)
    path = lazy.clone()
    want = bytearray((lazy.copy / "large").read_bytes())
    with open(path / "large", "r+b", buffering=0) as mine:
        mine.seek(1 << 20)
        mine.write(b"the clone")
        want[1 << 20:(1 << 20) + 9] = b"the clone"
        with open(lazy.project / "large", "r+b") as f:
            f.seek(8 << 20)
            f.write(b"the project")
        assert len(copies(w)) == 1 and lazy.status()["captured"] == 0
        os.fsync(mine.fileno())
        assert not copies(w) and lazy.status()["captured"] > 0
    assert (path / "large").read_bytes() == want
    assert lazy.finish()["lost"] == 0
    assert (path / "large").read_bytes() == want


@test
def a_large_file_that_changes_while_nobody_holds_it_is_never_shown(w):
    w.env["SNAPCOW_LAZY_HOLD"] = "no"
    (w.project / "large").write_bytes(os.urandom(16 << 20))
    lazy = Lazy(w)
    path = lazy.clone()
    fd = os.open(path / "large", os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    assert os.pread(fd, 100, 0) == (lazy.copy / "large").read_bytes()[:100]
    with open(lazy.project / "large", "r+b") as f:
        f.seek(10 << 20)
        f.write(b"new")
    try:
        os.pread(fd, 100, 10 << 20)
        raise AssertionError("a byte was shown that was not there when the clone was made")
    except OSError as e:
        assert e.errno == 5, e
    os.close(fd)
    assert lazy.finish()["lost"] == 1


def bytes_read(w):
    pid, = w.daemons()
    return int(Path(f"/proc/{pid}/io").read_text().split()[1])


@test
def the_next_capture_reads_only_what_changed(w):
    (w.project / "large").write_bytes(os.urandom(8 << 20))
    lazy = Lazy(w)
    lazy.clone()
    with open(lazy.project / "d" / "f5", "r+") as f:
        f.write("changed while it was promised")
    lazy.finish()
    before = bytes_read(w)
    got = w.ok("snapshot", "--json").json("snap.snapshot/1")
    assert got["modified"] == 1 and got["added"] == 0 and got["deleted"] == 0, got
    assert bytes_read(w) - before < 4 << 20, bytes_read(w) - before
    # The same again from nothing, so that nothing false was believed.
    first = w.ok("log", "--json").json("snap.log/1")["snapshots"][0]["snapshot"]
    shutil.rmtree(w.store / "signatures")
    got = w.ok("snapshot", "--json").json("snap.snapshot/1")
    assert got["modified"] == 0 and got["added"] == 0 and got["deleted"] == 0, (got, first)


@test
def a_file_that_somebody_writes_is_read_at_once(w):
    lazy = Lazy(w)
    with open(lazy.project / "d" / "f4", "r+b"):
        path = lazy.clone()
    (lazy.project / "d" / "f4").write_text("later")
    assert (path / "d" / "f4").read_text() == (lazy.copy / "d" / "f4").read_text()
    lazy.finish()
    lazy.same(path)


@test
def it_goes_on_beside_a_program_that_is_always_at_work_in_a_clone(w):
    """The threads that read pause for such a program, and not for ever."""
    (w.project / "many").mkdir()
    for i in range(4000):
        (w.project / "many" / f"f{i}").write_text(f"one of many, {i}\n" * 20)
    lazy = Lazy(w)
    del w.env["SNAPCOW_LAZY_PAUSE"]
    path = lazy.clone()
    ended = threading.Event()

    def work():
        for i in itertools.count():
            if ended.is_set():
                return
            assert not os.path.exists(path / f"none-{i}")

    worker = threading.Thread(target=work)
    worker.start()
    try:
        wait_for(lambda: lazy.status()["complete"])
    finally:
        ended.set()
        worker.join()
    assert lazy.status()["lost"] == 0
    lazy.same(path)


@test
def snapshot_waits_if_told_to_and_all_is_in_its_json(w):
    lazy = Lazy(w)
    got = w.ok("snapshot", "--lazy", "--json").json("snap.snapshot/1", "complete", "captured")
    assert not got["complete"] and got["captured"] == 0, got
    assert "in the background; 'status' shows how far" in w.ok("snapshot", "--lazy").out.decode()
    lazy.release()
    assert "all files are read" in w.ok("snapshot", "--lazy", "--wait").out.decode()
    (w.project / "d" / "f3").write_text("another")
    for words in (["--lazy", "--wait"], []):
        got = w.ok("snapshot", "--json", *words).json("snap.snapshot/1", "complete", "captured")
        assert got["complete"] and got["captured"] == 100, got
    w.ok("clone", "-n", "try", "--from", "@", "--lazy", "--wait")
    got = lazy.status()
    assert got["complete"] and got["captured"] == 100 and got["lost"] == 0, got


if __name__ == "__main__":
    needs_fuse()
    main()

"""rollback: of clones in use and of real projects, through the program."""

import errno
import hashlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

from snaptest import LONG, Skip, dice, gone, main, needs_fuse, test

NOBODY = 65534
# A race is repeated until it was met so often, in the long lane all of its rounds.
ROUNDS, ENOUGH = 20, 20 if LONG else 3
KEYS = ("to", "saved", "changed", "paths", "dry_run", "elapsed_ms")


def rollback(w, *args, **more):
    return w.ok("rollback", "--json", *args, **more).json("snap.rollback/1", *KEYS)


def staged(w):
    """Whether something is at work in the project; cheap, for loops that wait for it."""
    return any(name.startswith(".snapcow-stage-") for name in os.listdir(w.project))


def clone(w, name, *args):
    needs_fuse()
    got = w.ok("clone", "--json", "-n", name, *args).json("snap.clone/1", "path")
    return Path(got["path"])


def picture(top):
    """All that rollback promises to bring back: types, modes, owners, times, bytes, links."""
    seen, groups = {}, {}
    for dirpath, dirs, files in os.walk(top):
        for name in [".", *files, *(d for d in dirs if (Path(dirpath) / d).is_symlink())]:
            path = Path(dirpath) / name
            st = path.lstat()
            what = (stat.filemode(st.st_mode), st.st_uid, st.st_gid, st.st_mtime_ns)
            if stat.S_ISREG(st.st_mode):
                what += (hashlib.sha256(path.read_bytes()).hexdigest(),)
                groups.setdefault(st.st_ino, []).append(str(path.relative_to(top)))
            elif stat.S_ISLNK(st.st_mode):
                what += (os.readlink(path),)
            seen[str(path.relative_to(top))] = what
    return seen, sorted(sorted(g) for g in groups.values() if len(g) > 1)


def find_ls(top):
    """Inode numbers, blocks and link counts too."""
    return sorted(subprocess.run(["find", ".", "-ls"], cwd=top, check=True, env={"LC_ALL": "C"},
                                 stdout=subprocess.PIPE).stdout.splitlines())


def fill(top):
    (top / "docs").mkdir()
    (top / "docs" / "a.txt").write_text("a\n")
    os.link(top / "docs" / "a.txt", top / "docs" / "b.txt")
    (top / "run.sh").write_text("#!/bin/sh\n")
    (top / "run.sh").chmod(0o755)
    (top / "link").symlink_to("docs/a.txt")
    os.mkfifo(top / "fifo")
    (top / ".git").mkdir()
    (top / ".git" / "HEAD").write_text("ref: refs/heads/main\n")


def wreck(top):
    (top / "docs" / "a.txt").unlink()
    (top / "README.md").write_text("second\n")
    (top / "run.sh").chmod(0o600)
    (top / "link").unlink()
    (top / "link").mkdir()
    (top / "link" / "x").write_text("x")
    (top / "new").mkdir()
    (top / "new" / "file").write_text("new\n")
    (top / "fifo").unlink()
    (top / ".git" / "HEAD").write_text("ref: refs/heads/other\n")


# --- of a project ---------------------------------------------------------------------------

@test
def a_project_goes_back_to_all_that_it_was(w):
    fill(w.project)
    first = w.take()
    before = picture(w.project)
    wreck(w.project)
    wrecked = picture(w.project)
    got = rollback(w)
    assert got["to"] == first and got["clone"] is None and got["dry_run"] is False, got
    assert picture(w.project) == before
    status = {p["path"]: p["status"] for p in got["paths"]}
    assert status["new/file"] == "deleted" and status["docs/a.txt"] == "added", status
    assert status["README.md"] == "modified" and got["changed"] == len(got["paths"]), got
    log = w.ok("log", "--all", "--json").json("snap.log/1")["snapshots"]
    assert log[0]["snapshot"] == got["saved"] and log[0]["automatic"], log
    assert log[0]["message"] == f"before rollback to {first}", log
    # And forth again, to what was kept.
    again = rollback(w, got["saved"])
    assert again["to"] == got["saved"] and picture(w.project) == wrecked


@test
def a_dry_run_of_a_project_changes_and_keeps_nothing(w):
    fill(w.project)
    w.take()
    wreck(w.project)
    before = picture(w.project)
    got = rollback(w, "--dry-run")
    assert got["dry_run"] is True and got["saved"] is None and got["changed"] > 5, got
    assert picture(w.project) == before
    assert len(w.ok("log", "--all", "--json").json("snap.log/1")["snapshots"]) == 1
    text = w.ok("rollback", "-n").out.decode()
    assert "D new/file\n" in text and "M README.md\n" in text and "would go back" in text, text
    done = rollback(w)
    assert done["paths"] == got["paths"] and done["changed"] == got["changed"], done


@test
def a_rollback_and_a_promotion_count_paths_as_a_status_does(w):
    w.take()
    clone(w, "try")
    for top in (w.project, w.store / "clones" / "try"):
        for name in ("made/deep", "made/empty", "bare/in"):
            (top / name).mkdir(parents=True)
        (top / "made" / "deep" / "file").write_text("new\n")
        shutil.rmtree(top / "src")
    wanted = {"made/deep/file": "added", "bare": "added", "src/main.c": "deleted"}
    for name in ((), ("try",)):
        got = w.ok("--json", "status", *name).json("snap.status/1")
        assert got["changed"] == {"added": 2, "modified": 0, "deleted": 1}, got
        assert {p["path"]: p["status"] for p in got["changed_paths"]} == wanted, got
    opposite = {path: {"added": "deleted", "deleted": "added"}[status] for path, status in wanted.items()}
    back = rollback(w)
    assert back["changed"] == 3 and {p["path"]: p["status"] for p in back["paths"]} == opposite, back
    there = w.ok("--json", "promote", "try").json("snap.promote/1")["changed"]
    assert {p["path"]: p["status"] for p in there} == wanted, there
    assert {p["path"]: p["status"] for p in w.ok("--json", "undo").json("snap.undo/1")["changed"]} == opposite
    assert rollback(w, "try")["changed"] == 3


@test
def going_back_to_what_is_there_changes_and_keeps_nothing(w):
    fill(w.project)
    first = w.take()
    for _ in range(2):
        got = rollback(w)
        assert got["changed"] == 0 and got["saved"] is None and got["paths"] == [], got
    wreck(w.project)
    rollback(w, "@")
    assert rollback(w, first)["changed"] == 0


@test
def no_git_leaves_git_as_it_is(w):
    fill(w.project)
    w.take()
    wreck(w.project)
    got = rollback(w, "--no-git")
    assert not any(p["path"].startswith(".git") for p in got["paths"]), got
    assert (w.project / ".git" / "HEAD").read_text() == "ref: refs/heads/other\n"
    assert (w.project / "README.md").read_text() == "first\n"
    rollback(w)
    assert (w.project / ".git" / "HEAD").read_text() == "ref: refs/heads/main\n"


@test
def a_tag_an_id_and_a_beginning_of_one_name_the_snapshot(w):
    first = w.take("-t", "good")
    for word in ("good", first, first[:8]):
        (w.project / "README.md").write_text(f"for {word}\n")
        assert rollback(w, word)["to"] == first
        assert (w.project / "README.md").read_text() == "first\n"


@test
def people_are_told_what_to_type_to_return(w):
    first = w.take()
    (w.project / "README.md").write_text("second\n")
    top = clone(w, "try")
    for words, at, way in ((["try", first], top, "rollback try "), ([first], w.project, "undo ")):
        out = w.ok("rollback", *words).out.decode()
        assert (at / "README.md").read_text() == "first\n"
        saved, back = re.search(r"^  the state before is snapshot (\w{8}); to return: snapcow (.*)$", out, re.M).groups()
        assert back.startswith(way), out
        assert w.ok("show", f"{saved}:README.md").out == b"second\n"
        w.ok(*back.split())
        assert (at / "README.md").read_text() == "second\n"


@test
def quiet_prints_the_id_of_what_was_kept_alone(w):
    w.take()
    (w.project / "README.md").write_text("second\n")
    kept = w.ok("-q", "rollback", "--yes").out.decode().strip()
    w.ok("rollback", kept)
    assert (w.project / "README.md").read_text() == "second\n"
    assert w.ok("-q", "rollback", kept).out == b""


@test
def files_that_are_open_keep_what_they_were(w):
    w.take()
    (w.project / "README.md").write_text("second\n")
    with open(w.project / "README.md") as f:
        rollback(w)
        assert f.read() == "second\n"
    assert (w.project / "README.md").read_text() == "first\n"


@test
def readers_of_a_project_see_the_old_or_the_new_and_never_nothing(w):
    old, new = "old\n" * 5000, "new\n" * 6000
    path = w.project / "data"
    path.write_text(old)
    first = w.take()
    path.write_text(new)
    second = w.take()
    wrong, stop = [], threading.Event()

    def read():
        while not stop.is_set():
            try:
                text = path.read_text()
            except OSError as e:
                text = str(e)
            if text not in (old, new):
                wrong.append(text[:80])

    thread = threading.Thread(target=read)
    thread.start()
    try:
        for _ in range(10):
            rollback(w, first)
            rollback(w, second)
    finally:
        stop.set()
        thread.join()
    assert not wrong, wrong[:3]


@test
def what_cannot_be_replaced_takes_all_back_and_leaves_no_snapshot(w):
    w.take()
    (w.project / "README.md").write_text("second\n")
    # Immutable: even root cannot rename it.
    if subprocess.run(["chattr", "+i", w.project / "README.md"], check=False,
                      stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("this file system has no immutable files")
    try:
        (w.project / "another").write_text("x")
        before = picture(w.project)
        w.snap("rollback").fails(1, "README.md")
        assert picture(w.project) == before
        assert len(w.ok("log", "--all", "--json").json("snap.log/1")["snapshots"]) == 1
    finally:
        subprocess.run(["chattr", "-i", w.project / "README.md"], check=True)
    rollback(w)
    assert (w.project / "README.md").read_text() == "first\n"


@test
def an_edit_meanwhile_is_a_conflict_and_stays(w):
    for i in range(300):
        (w.project / f"f{i}").write_text("first\n")
    first = w.take()
    conflicts = 0
    for _ in range(ROUNDS):
        if conflicts == ENOUGH:
            break
        for i in range(300):
            (w.project / f"f{i}").write_text("second\n")
        act = subprocess.Popen([os.environ["SNAP_UNDER_TEST"], "--json", "rollback", first],
                               cwd=w.project, env=w.env, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
        while act.poll() is None and not staged(w):
            pass
        (w.project / "f299").write_text("edited\n")
        said = json.loads(act.communicate()[0])
        assert (w.project / "f299").read_text() == "edited\n"
        if act.returncode == 0:
            continue  # it was done before the edit
        assert act.returncode == 5 and said["error"]["code"] == "E_CONFLICT", said
        assert said["error"]["data"]["conflicts"][0]["path"] == "f299", said
        assert (w.project / "f0").read_text() == "second\n"
        assert len(w.ok("log", "--json").json("snap.log/1")["snapshots"]) >= 1
        conflicts += 1
    assert conflicts > 0, "no edit came in between"


@test
def what_cannot_be_taken_back_is_in_a_snapshot_that_stays(w):
    """Who writes to a file that the rollback put there keeps that; the one before it is kept too."""
    for i in range(300):
        (w.project / f"f{i}").write_text("first\n")
    first = w.take()
    astray = 0
    for n in range(ROUNDS):
        if astray == ENOUGH:
            break
        for i in range(300):
            (w.project / f"f{i}").write_text(f"second {n}\n")
        act = subprocess.Popen([os.environ["SNAP_UNDER_TEST"], "--json", "rollback", first],
                               cwd=w.project, env=w.env, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        while act.poll() is None and (w.project / "f0").read_text() != "first\n":
            pass
        (w.project / "f99").write_text("edited\n")
        with open(w.project / "f0", "a") as f:
            f.write("more\n")
        said = act.communicate()[1].decode()
        if act.returncode != 5 or (w.project / "f0").read_text() != "first\nmore\n":
            continue  # it was done, or not begun
        newest = w.ok("log", "--all", "--json").json("snap.log/1")["snapshots"][0]["snapshot"]
        assert newest in said, said
        assert w.ok("show", f"{newest}:f0").out.decode() == f"second {n}\n"
        astray += 1
    assert astray > 0, "no edit came in between"


@test
def an_ordinary_user_goes_back_through_read_only_directories(w):
    if os.geteuid() != 0:
        raise Skip("only root can be another user")
    needs_fuse(somebody_else=True)
    program = w.top / "snap"
    shutil.copy(os.environ["SNAP_UNDER_TEST"], program)
    w.top.chmod(0o755)
    locked = w.project / "locked"
    locked.mkdir()
    (locked / "file").write_text("one")
    (locked / "file").chmod(0o444)
    for path in (w.project, *w.project.rglob("*"), w.home):
        os.chown(path, NOBODY, NOBODY)
    locked.chmod(0o555)
    who = {"program": program, "user": NOBODY, "group": NOBODY, "extra_groups": [],
           "env": {"SNAPCOW_STORE": str(w.home / "store")}}
    w.ok("snapshot", **who)
    before = picture(w.project)
    (locked / "file").unlink()
    (locked / "more").write_text("more")
    os.chown(locked / "more", NOBODY, NOBODY)
    w.ok("rollback", **who)
    assert picture(w.project) == before
    # What belongs to somebody else is refused before anything changes.
    (w.project / "README.md").write_text("second\n")
    (w.project / "src" / "main.c").write_text("changed\n")
    os.chown(w.project / "src", 1, 1)
    now = picture(w.project)
    w.snap("rollback", **who).fails(1, "src", "belongs to user 1")
    assert picture(w.project) == now
    os.chown(w.project / "src", NOBODY, NOBODY)
    w.ok("stop", **who)


@test
def what_the_rules_of_a_snapshot_left_out_of_it_is_not_removed(w):
    (w.project / ".snapignore").write_text("data/\n*.key\n!open.key\n")
    (w.project / "src" / ".snapignore").write_text("*.o\n")
    first = w.take()
    (w.project / ".snapignore").unlink()
    (w.project / "src" / ".snapignore").write_text("")
    stays = ["data/deep/x", "a.key", "src/main.o", "new/b.key"]
    goes = ["open.key", "main.o", "new/file", "gone/file"]
    for name in stays + goes:
        (w.project / name).parent.mkdir(parents=True, exist_ok=True)
        (w.project / name).write_text(name)
    before = {name: (w.project / name).stat() for name in (*stays, "new", "data")}
    got = rollback(w, first)
    assert {p["path"] for p in got["paths"]} == {".snapignore", "src/.snapignore", *goes}, got
    for name in stays:
        assert (w.project / name).read_text() == name
    for name, st in before.items():
        assert (w.project / name).stat().st_mtime_ns == st.st_mtime_ns, name
    assert not any((w.project / name).exists() for name in (*goes, "gone"))
    # And a directory that holds such a thing does not give way to a file.
    (w.project / "data").rename(w.project / "kept")
    (w.project / "data").write_text("a file, of which no rule speaks")
    second = w.take()
    (w.project / "data").unlink()
    (w.project / "data").mkdir()
    (w.project / "data" / "a.key").write_text("key")
    (w.project / ".snapignore").unlink()
    w.snap("rollback", second).fails(7, "'data' is to become a file", "'data/a.key' is left alone")
    assert (w.project / "data" / "a.key").read_text() == "key"


def as_nobody(w):
    """The program run by somebody to whom not everything is readable."""
    if os.geteuid() != 0:
        raise Skip("only root can be another user")
    needs_fuse(somebody_else=True)
    program, store = w.top / "snap", w.home / "store"
    shutil.copy(os.environ["SNAP_UNDER_TEST"], program)
    w.top.chmod(0o755)
    for path in (w.project, *w.project.rglob("*"), w.home):
        os.chown(path, NOBODY, NOBODY)
    return lambda *args: w.ok(*args, program=program, user=NOBODY, group=NOBODY, extra_groups=[],
                              env={"SNAPCOW_STORE": str(store)})


@test
def what_a_snapshot_could_not_read_is_not_removed(w):
    snap = as_nobody(w)
    closed = [w.project / "closed" / "a", w.project / "src" / "se\ncret", w.project / "odd\udcff"]
    closed[0].parent.mkdir(mode=0o700)
    for path in closed:
        path.write_text("precious")
        path.chmod(0o600)
    needs_fuse()
    snap("snapshot", "--skip-unreadable", "-t", "first")
    snap("clone", "-n", "c", "--from", "first")
    snap("snapshot", "c", "-t", "second")
    for path in (*closed, closed[0].parent):
        os.chown(path, NOBODY, NOBODY)
    for tag in ("first", "second"):
        (w.project / "new").write_text("new")
        os.chown(w.project / "new", NOBODY, NOBODY)
        snap("rollback", tag)
        assert not (w.project / "new").exists()
        assert all(path.read_text() == "precious" for path in closed), tag
    snap("rm", "c")
    snap("stop")


@test
def what_cannot_be_read_now_fails_the_rollback_or_stays_as_it_is(w):
    snap = as_nobody(w)
    snap("snapshot", "-t", "first")
    closed = w.project / "src" / "closed"
    closed.write_text("precious")
    closed.chmod(0o600)
    (w.project / "README.md").write_text("second\n")
    def readme():
        """Without the time of access: whether it was read before the failure is nobody's business."""
        st = (w.project / "README.md").stat()
        return st.st_ino, st.st_mode, st.st_size, st.st_mtime_ns, st.st_ctime_ns

    before = readme()
    failed = w.snap("rollback", "first", program=w.top / "snap", user=NOBODY, group=NOBODY,
                    extra_groups=[], env={"SNAPCOW_STORE": str(w.home / "store")})
    failed.fails(1, "src/closed", "Permission denied", "rollback --skip-unreadable")
    assert readme() == before
    went = snap("rollback", "--skip-unreadable", "first")
    assert b"src/closed" in went.err and b"left out" in went.err, went
    assert (w.project / "README.md").read_text() == "first\n"
    assert closed.read_text() == "precious"
    # What was kept does not have it either, and so does not want it gone.
    os.chown(closed, NOBODY, NOBODY)
    saved = re.search(r"the state before is snapshot (\w+)", went.out.decode()).group(1)
    snap("rollback", saved)
    assert (w.project / "README.md").read_text() == "second\n"
    assert closed.read_text() == "precious"
    snap("stop")


@test
def a_clone_has_nothing_that_cannot_be_read(w):
    needs_fuse()
    w.take()
    w.ok("clone", "-n", "try")
    w.snap("rollback", "--skip-unreadable", "try").fails(2, "'--skip-unreadable'", "clone 'try'")


@test
def of_more_than_a_snapshot_can_tell_nothing_is_removed(w):
    snap = as_nobody(w)
    closed = [w.project / f"closed-{i}" for i in range(1001)]
    for path in closed:
        path.write_text("precious")
        path.chmod(0o600)
    snap("-q", "snapshot", "--skip-unreadable")
    for path in (*closed, w.project / "new"):
        path.write_text("precious")
        os.chown(path, NOBODY, NOBODY)
    (w.project / "README.md").write_text("second")
    snap("rollback")
    assert all(path.exists() for path in (*closed, w.project / "new"))
    assert (w.project / "README.md").read_text() == "first\n"
    snap("stop")


@test
def a_mount_below_the_project_is_not_changed(w):
    if os.geteuid() != 0:
        raise Skip("only root mounts")
    (w.project / "mnt").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", w.project / "mnt"], check=True)
    try:
        (w.project / "mnt" / "f").write_text("one")
        w.take()
        (w.project / "mnt" / "f").write_text("two")
        (w.project / "README.md").write_text("second\n")
        w.snap("rollback").fails(1, "mnt", "another file system")
        assert (w.project / "README.md").read_text() == "second\n"
        assert (w.project / "mnt" / "f").read_text() == "two"
    finally:
        subprocess.run(["umount", w.project / "mnt"], check=True)


@test
def what_is_mounted_from_elsewhere_on_the_same_disk_is_not_changed(w):
    if os.geteuid() != 0:
        raise Skip("only root mounts")
    outside, alone = w.top / "outside", w.top / "alone"
    (outside / "d").mkdir(parents=True)
    for path in (outside / "f", alone, w.project / "file"):
        path.write_text("one")
    (w.project / "mnt").mkdir()
    for source, at in ((outside, "mnt"), (alone, "file")):
        subprocess.run(["mount", "--bind", source, w.project / at], check=True)
    try:
        w.take()
        (outside / "d").rmdir()
        w.snap("rollback").fails(1, "mnt", "mounted in it")
        assert not (outside / "d").exists()
        (outside / "d").mkdir()
        (outside / "f").chmod(0o600)
        w.snap("rollback").fails(1, "mnt", "mounted in it")
        assert stat.S_IMODE((outside / "f").stat().st_mode) == 0o600
        (outside / "f").chmod(0o644)
        w.take()
        alone.chmod(0o600)
        w.snap("rollback").fails(1, "file", "cross-device")
        assert stat.S_IMODE(alone.stat().st_mode) == 0o600
        assert not list((w.store / "journal").iterdir())
        w.take()
    finally:
        for at in ("mnt", "file"):
            subprocess.run(["umount", w.project / at], check=True)


@test
def a_journal_that_cannot_be_read_is_the_business_of_its_project_alone(w):
    other = w.top / "work" / "other"
    other.mkdir()
    (other / "file").write_text("one")
    ours, theirs = w.take(), w.ok("--json", "snapshot", cwd=other)
    theirs = theirs.json("snap.snapshot/1")["snapshot"]
    w.stop()
    name = "0123456789abcdef"
    (w.store / "journal").mkdir(exist_ok=True)
    (w.store / "journal" / name).write_text("damaged")
    (w.project / f".snapcow-stage-{name}").mkdir()
    w.snap("snapshot").fails(12, f"journal/{name}", "does not begin like one")
    w.snap("rollback", ours).fails(12, f"journal/{name}")
    w.ok("snapshot", cwd=other)
    (other / "file").write_text("two")
    w.ok("rollback", theirs, cwd=other)
    assert (other / "file").read_text() == "one"
    assert (w.store / "journal" / name).exists()
    # Without a stage nothing was begun.
    (w.project / f".snapcow-stage-{name}").rmdir()
    w.ok("snapshot")


@test
def a_full_disk_leaves_the_project_as_it_was(w):
    if os.geteuid() != 0:
        raise Skip("only root mounts")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=755", "none", w.project], check=True)
    try:
        (w.project / "big").write_bytes(os.urandom(1200000))
        (w.project / "small").write_text("one")
        first = w.take()
        (w.project / "big").write_bytes(os.urandom(1300000))
        (w.project / "small").write_text("two")
        before = picture(w.project)
        w.snap("rollback").fails(1, "big", "No space left")
        assert picture(w.project) == before
        (w.project / "big").unlink()
        rollback(w, first)
        assert (w.project / "small").read_text() == "one"
    finally:
        w.stop()
        subprocess.run(["umount", w.project], check=True)


@test
def what_a_daemon_left_half_done_is_taken_back_by_the_next_command(w):
    fill(w.project)
    w.take()
    wreck(w.project)
    before = picture(w.project)
    for i in range(400):
        (w.project / f"f{i}").write_text(f"{i}\n")
    before = picture(w.project)
    for _ in range(6):
        pid = w.ok("version", "--json").json("snap.version/1")["daemon"]
        if pid is None:
            w.ok("start")
            pid = w.ok("version", "--json").json("snap.version/1")["daemon"]
        act = subprocess.Popen([os.environ["SNAP_UNDER_TEST"], "rollback"], cwd=w.project,
                               env=w.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # When the stage or the journal shows up it is at work; if it was faster, it is done.
        while act.poll() is None and not staged(w):
            pass
        os.kill(pid["pid"], signal.SIGKILL)
        assert gone(pid["pid"], 20)
        act.wait()
        w.ok("start")
        assert not list(w.project.glob(".snapcow-stage-*")), "a stage is left"
        assert not list((w.store / "journal").iterdir()), "a journal is left"
        if picture(w.project) != before:
            got = rollback(w)
            assert got["changed"] == 0, got
            break


# --- of a clone -----------------------------------------------------------------------------

@test
def a_clone_goes_back_while_it_is_in_use_without_a_remount(w):
    fill(w.project)
    path = clone(w, "try")
    fresh, listed = picture(path), find_ls(path)
    mounted = os.stat(path).st_dev
    wreck(path)
    with open(path / "README.md") as f, open(path / "new" / "file") as g:
        got = rollback(w, "try")
        assert f.read() == "second\n" and g.read() == "new\n"
    assert got["clone"] == "try" and got["saved"] and got["changed"] > 5, got
    assert picture(path) == fresh and os.stat(path).st_dev == mounted
    assert find_ls(path) == listed
    # What was kept can be had again, and is in the clone's own history.
    log = w.ok("log", "--all", "try", "--json").json("snap.log/1")["snapshots"]
    assert log[0]["snapshot"] == got["saved"], log
    rollback(w, "try", got["saved"])
    assert (path / "README.md").read_text() == "second\n"
    assert (w.project / "README.md").read_text() == "first\n"


@test
def readers_in_a_clone_see_the_old_or_the_new_and_no_mixture(w):
    path = clone(w, "try")
    old, new = b"o" * 300000, b"n" * 200000
    (path / "data").write_bytes(old)
    first = w.take("try")
    (path / "data").write_bytes(new)
    second = w.take("try")
    wrong, stop = [], threading.Event()

    def read():
        while not stop.is_set():
            with open(path / "data", "rb") as f:
                got = f.read()
            if got not in (old, new):
                wrong.append((len(got), set(got)))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for t in threads:
        t.start()
    try:
        for _ in range(20 if LONG else 6):
            rollback(w, "try", first)
            assert (path / "data").read_bytes() == old
            rollback(w, "try", second)
            assert (path / "data").read_bytes() == new
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert not wrong, wrong[:3]


@test
def a_clone_that_is_not_mounted_goes_back_too(w):
    path = clone(w, "try")
    (path / "README.md").write_text("second\n")
    w.ok("umount", "try")
    got = rollback(w, "try")
    assert got["saved"] and got["changed"] == 1, got
    w.ok("mount", "try")
    assert (path / "README.md").read_text() == "first\n"
    assert w.ok("check", "--json").json("snap.check/1")["errors"] == []


@test
def a_dry_run_of_a_clone_changes_nothing(w):
    path = clone(w, "try")
    (path / "README.md").write_text("second\n")
    got = rollback(w, "try", "--dry-run")
    assert got["paths"] == [{"path": "README.md", "status": "modified"}], got
    assert got["saved"] is None and (path / "README.md").read_text() == "second\n"
    assert rollback(w, "try")["changed"] == 1
    assert rollback(w, "try")["changed"] == 0


@test
def inside_a_clone_it_is_the_clone_that_goes_back(w):
    path = clone(w, "try")
    (path / "README.md").write_text("second\n")
    (w.project / "README.md").write_text("of the project\n")
    got = rollback(w, cwd=path / "src")
    assert got["clone"] == "try" and (path / "README.md").read_text() == "first\n", got
    assert (w.project / "README.md").read_text() == "of the project\n"
    got = rollback(w, got["saved"], cwd=path)
    assert got["clone"] == "try" and (path / "README.md").read_text() == "second\n", got


@test
def a_single_word_is_a_clone_before_it_is_a_tag(w):
    w.take("-t", "try")
    path = clone(w, "try")
    (path / "README.md").write_text("second\n")
    (w.project / "README.md").write_text("second\n")
    assert rollback(w, "try")["clone"] == "try"
    assert (w.project / "README.md").read_text() == "second\n"


@test
def a_dry_run_names_gits_folder_once(w):
    git = w.project / ".git"
    (git / "refs").mkdir(parents=True)
    for name in ("HEAD", "config", "refs/one"):
        (git / name).write_text("a\n")
    w.take()
    for name in ("HEAD", "config", "refs/two"):
        (git / name).write_text("b\n")
    (git / "refs/one").unlink()
    (w.project / "README.md").write_text("second\n")
    lines = w.ok("rollback", "--dry-run").out.decode().splitlines()
    assert "M README.md" in lines, lines
    assert [line for line in lines if ".git" in line] == ["M .git  (4 paths)"], lines
    got = w.ok("rollback", "--dry-run", "--json").json("snap.rollback/1", "paths")
    assert len(got["paths"]) == 5, got


# --- only some paths --------------------------------------------------------------------------

def spoil(top):
    (top / "README.md").write_text("spoilt\n")
    (top / "src" / "main.c").write_text("spoilt\n")
    (top / "src" / "new.c").write_text("new\n")
    (top / "notes.txt").write_text("to keep\n")


@test
def of_a_project_only_the_paths_that_are_named_go_back(w):
    (w.project / "src" / "gone.c").write_text("gone\n")
    good, was = w.take(), (w.project / "src" / "main.c").read_text()
    spoil(w.project)
    (w.project / "src" / "gone.c").unlink()
    spoilt = picture(w.project)
    would = rollback(w, "--dry-run", "--path", "src/")
    assert picture(w.project) == spoilt
    got = rollback(w, "--path", "src/")
    assert got["paths"] == would["paths"] and got["to"] == good, (got, would)
    assert [(p["status"], p["path"]) for p in got["paths"]] == [
        ("added", "src/gone.c"), ("modified", "src/main.c"), ("deleted", "src/new.c")], got
    assert (w.project / "src" / "main.c").read_text() == was
    assert not (w.project / "src" / "new.c").exists()
    assert (w.project / "README.md").read_text() == "spoilt\n"
    assert (w.project / "notes.txt").read_text() == "to keep\n"
    assert w.ok("diff", got["saved"], "--json").json("snap.diff/1"), "what was there is kept"
    assert rollback(w, "--path", "src/")["changed"] == 0
    (w.project / "notes.txt").write_text("later\n")
    w.ok("undo")
    assert (w.project / "src" / "main.c").read_text() == "spoilt\n"
    assert (w.project / "src" / "new.c").exists() and not (w.project / "src" / "gone.c").exists()
    assert (w.project / "notes.txt").read_text() == "later\n", "only that is undone"
    assert rollback(w)["to"] == good, "yours is still the last"
    w.ok("check")


@test
def of_a_clone_only_the_paths_that_are_named_go_back(w):
    path = clone(w, "try")
    was = (path / "src" / "main.c").read_text()
    spoil(path)
    for unmount in (False, True):
        if unmount:
            w.ok("umount", "try")
        got = rollback(w, "try", "--path", "*.c" if unmount else "new.c")
        assert [p["path"] for p in got["paths"]] == ["src/main.c" if unmount else "src/new.c"], got
    w.ok("mount", "try")
    assert (path / "src" / "main.c").read_text() == was
    assert (path / "README.md").read_text() == "spoilt\n"
    assert (path / "notes.txt").read_text() == "to keep\n"
    rollback(w, "try", got["saved"])
    assert (path / "src" / "main.c").read_text() == "spoilt\n", "and back again"
    w.ok("check")


KILLED_AT = [(call, n) for call in ("renameat", "renameat2", "fdatasync", "unlinkat", "mkdirat") for n in (1, 2, 3)]


def rollback_killed_at(w, call, n):
    """cowfsd dies as it enters that call, if there is one; was there?"""
    (pid,) = w.daemons()
    tracer = subprocess.Popen(["strace", "-f", "-p", str(pid), "-o", "/dev/null", "-e", f"trace={call}",
                               "-e", f"inject={call}:signal=KILL:when={n}"], stderr=subprocess.PIPE)
    assert b"attached" in tracer.stderr.readline(), "strace cannot attach"
    got = w.snap("rollback", "--path", "src/")
    if got.status != 0:
        assert gone(pid, 60), "it failed, and nothing had died"
    tracer.kill()
    tracer.communicate()
    return got.status != 0


@test
def wherever_a_rollback_of_some_paths_is_killed_they_went_back_together_or_not_at_all(w):
    if os.geteuid() != 0 or not shutil.which("strace"):
        raise Skip("strace kills cowfsd, as root")
    (w.project / "src" / "gone.c").write_text("gone\n")
    w.take()
    spoil(w.project)
    (w.project / "src" / "gone.c").unlink()
    before = picture(w.project)
    rollback(w, "--path", "src/")
    after = picture(w.project)
    w.ok("undo")
    assert picture(w.project) == before != after
    met = 0
    for call, n in KILLED_AT if LONG else dice().sample(KILLED_AT, 5):
        met += rollback_killed_at(w, call, n)
        w.ok("list")  # it recovers, if the keeper's has not
        now = picture(w.project)
        assert now in (before, after), (call, n)
        if now == after:
            w.ok("undo")
            assert picture(w.project) == before, (call, n)
    print(f"# {met} were killed")
    rollback(w, "--path", "src/")
    assert picture(w.project) == after
    w.ok("check")


@test
def the_guard_judges_the_paths_that_are_named(w):
    path = clone(w, "try")
    (path / ".envrc").write_text("export A=b\n")
    (path / "README.md").write_text("of the clone\n")
    theirs = w.take("try")
    got = w.snap("rollback", theirs, "--path", ".envrc", "--path", "src").fails(7, "--path src")
    assert b"--path .envrc" in got.err, got
    w.ok("rollback", theirs, "--path", "README.md")
    assert (w.project / "README.md").read_text() == "of the clone\n"
    assert not (w.project / ".envrc").exists()


# --- nonsense -------------------------------------------------------------------------------

@test
def what_makes_no_sense_to_roll_back_is_said(w):
    w.snap("rollback").fails(4)
    w.take()
    w.snap("rollback", "nothing").fails(4, "there is no snapshot 'nothing'")
    w.snap("rollback", "none", "@").fails(4, "there is no clone 'none'")
    w.snap("rollback", ".").fails(2, "not a snapshot")
    w.snap("rollback", "").fails(2)
    w.snap("rollback", "a", "b", "c").fails(2)
    w.snap("rollback", "@-9").fails(4)
    w.snap("--json", "rollback", "nothing").fails_json(4, "E_NOT_FOUND")


@test
def no_git_is_not_for_clones(w):
    clone(w, "try")
    w.snap("rollback", "try", "--no-git").fails(2, "--no-git")


@test
def a_snapshot_of_another_project_is_refused(w):
    w.take()
    other = w.top / "work" / "other"
    other.mkdir()
    (other / "f").write_text("f")
    theirs = w.ok("-q", "snapshot", cwd=other).out.decode().strip()
    w.snap("rollback", theirs).fails(2, "another project")


@test
def allocated_blocks_last_are_charged_and_come_back(w):
    """fallocate counts as space, over a snapshot, an end of cowfsd and a rollback."""
    fill(w.project)
    path = clone(w, "try", "--quota", "8M") / "room"

    def blocks():
        return path.stat().st_blocks * 512

    with open(path, "wb") as f:
        os.posix_fallocate(f.fileno(), 0, 4 << 20)
    assert blocks() == 4 << 20
    w.ok("snapshot", "try")
    used = w.ok("status", "--json", "try").json("snap.status/1")["used"]
    assert used >= 4 << 20, used
    with open(path.parent / "more", "wb") as f:
        try:
            os.posix_fallocate(f.fileno(), 0, 5 << 20)
        except OSError as e:
            assert e.errno == errno.ENOSPC, e
        else:
            raise AssertionError("more than the quota")
    w.ok("stop")
    w.ok("list")
    assert blocks() == 4 << 20 and path.read_bytes() == bytes(4 << 20)
    path.write_bytes(b"")
    rollback(w, "try")
    assert blocks() == 4 << 20 and path.read_bytes() == bytes(4 << 20)


sys.exit(main())

"""Clones: made, listed, mounted, removed, and brought back; through a real mount."""

import contextlib
import ctypes
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from mcptest import Client
from snaptest import SNAP, Skip, World, gone, leak_checks, main, needs_fuse, test, until as wait_for

NOBODY = 65534
ID = r"[0-9a-f]{16}"


def mounted_test(fn):
    def run(w):
        needs_fuse()
        fn(w)
    run.__name__ = fn.__name__
    return test(run)


def clone(w, *args, **more):
    """A clone; what --json says of it."""
    return w.ok("clone", "--json", *args, **more).json("snap.clone/1", "clone", "path", "base",
                                                       "project", "elapsed_ms")


def listed(w, *args):
    got = w.ok("list", "--json", *args).json("snap.list/1", "clones")
    return {c["clone"]: c for c in got["clones"]}


def status(w, name, *args):
    return w.ok("status", name, "--json", *args).json("snap.status/1", "clone", "base", "changed",
                                                      "stale", "quota", "used")


def daemon_pid(w):
    return w.ok("version", "--json").json("snap.version/1")["daemon"]["pid"]


def kill_daemon(w):
    pid = daemon_pid(w)
    os.kill(pid, signal.SIGKILL)
    assert gone(pid, 20)


@contextlib.contextmanager
def inside(path):
    """Somebody who uses what is mounted there."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield
    finally:
        os.close(fd)


# --- making ---------------------------------------------------------------------------------

@mounted_test
def a_clone_shows_the_project_and_changes_nothing_in_it(w: World):
    (w.project / "link").symlink_to("README.md")
    (w.project / ".hidden").write_text("ignored and untracked files too")
    os.utime(w.project / "README.md", ns=(1, 1234567890123456789))
    got = clone(w, "-n", "try")
    path = Path(got["path"])
    assert got["clone"] == "try" and path == w.store / "clones" / "try", got
    assert got["project"] == str(w.project) and re.fullmatch(ID, got["base"]), got
    assert sorted(os.listdir(path)) == [".hidden", "README.md", "link", "src"]
    assert (path / "README.md").read_text() == "first\n"
    ours, theirs = os.stat(path / "README.md"), os.stat(w.project / "README.md")
    assert (ours.st_mtime_ns, ours.st_ino, ours.st_mode) == (theirs.st_mtime_ns, theirs.st_ino,
                                                            theirs.st_mode)
    (path / "README.md").write_text("changed\n")
    (path / "src" / "main.c").unlink()
    (path / "new").mkdir()
    assert (w.project / "README.md").read_text() == "first\n"
    assert sorted(os.listdir(w.project / "src")) == ["main.c"]
    assert not (w.project / "new").exists()


@mounted_test
def people_get_the_path_alone_on_stdout(w: World):
    result = w.ok("clone", "-n", "try")
    assert result.out == f"{w.store}/clones/try\n".encode(), str(result)
    assert re.fullmatch(rb"clone try of snapshot [0-9a-f]{8}, in \S+\n", result.err), str(result)
    assert w.ok("-q", "clone", "-n", "other").err == b""


@mounted_test
def a_clone_without_a_name_gets_two_words(w: World):
    names = {clone(w)["clone"] for _ in range(5)}
    assert len(names) == 5, names
    assert all(re.fullmatch(r"[a-z]+-[a-z]+", n) for n in names), names


@mounted_test
def a_name_is_given_once_in_a_store(w: World):
    clone(w, "-n", "try")
    w.snap("clone", "-n", "try").fails(1, "'try'", "hint: snapcow list --all")
    w.snap("clone", "another").fails(4, "'another'", "hint: snapcow clone -n another")
    w.snap("clone", "-n", "try", "--json").fails_json(1, "E_EXISTS")
    assert list(listed(w)) == ["try"]
    for bad in ("", "a b", "a/b", "..", ".a", "-a", "a@b", "a:b", "x" * 65, "0123456789abcdef",
                "caf\u00e9"):
        w.snap("clone", f"--name={bad}").fails(2)
    w.snap("clone", "-n", "x" * 63, "--count", "10").fails(2)
    w.snap("clone", "--count", "1001").fails(2)
    w.snap("clone", "--count", "0").fails(2, "--count")
    assert list(listed(w)) == ["try"]


@mounted_test
def a_project_that_did_not_change_is_not_snapshotted_again(w: World):
    first = clone(w)["base"]
    assert clone(w)["base"] == first
    assert w.ok("-q", "log", "--all").out.decode().split() == [first]
    (w.project / "README.md").write_text("second\n")
    third = clone(w)
    assert third["base"] != first
    assert (Path(third["path"]) / "README.md").read_text() == "second\n"
    assert w.ok("-q", "log", "--all").out.decode().split() == [third["base"], first]


@mounted_test
def a_clone_can_start_from_any_state(w: World):
    first = w.take("-t", "v1")
    (w.project / "README.md").write_text("second\n")
    second = w.take()
    (w.project / "README.md").write_text("third\n")
    for state, base, text in (("@-1", first, "first\n"), ("v1", first, "first\n"),
                              (first, first, "first\n"), (first[:8], first, "first\n"),
                              ("@", second, "second\n")):
        got = clone(w, "--from", state)
        assert got["base"] == base, (state, got)
        assert (Path(got["path"]) / "README.md").read_text() == text, state
    assert len(w.ok("-q", "log").out.split()) == 2, "nothing was captured"
    got = clone(w, "--from", ".")
    assert (Path(got["path"]) / "README.md").read_text() == "third\n"
    w.snap("clone", "--from", "nope").fails(4, "'nope'", "hint: snapcow log")
    w.snap("clone", "--from", "@-9").fails(4)


@mounted_test
def a_clone_of_a_clone_shows_what_was_just_written(w: World):
    first = Path(clone(w, "-n", "first")["path"])
    (first / "README.md").write_text("in the first\n")
    got = clone(w, "-n", "second", "--from", "first")
    second = Path(got["path"])
    assert (second / "README.md").read_text() == "in the first\n"
    (second / "README.md").write_text("in the second\n")
    assert (first / "README.md").read_text() == "in the first\n"
    assert status(w, "second")["changed"] == {"added": 0, "modified": 1, "deleted": 0}
    again = clone(w, "-n", "third", "--from", "first")
    assert again["base"] == got["base"], "nothing changed in between"
    w.ok("umount", "first")
    assert clone(w, "-n", "fourth", "--from", "first")["base"] == got["base"]


@mounted_test
def many_are_made_at_once(w: World):
    got = clone(w, "-n", "agent", "--count", "5")
    assert [c["clone"] for c in got["clones"]] == [f"agent-{i}" for i in range(1, 6)], got
    paths = [Path(c["path"]) for c in got["clones"]]
    for i, path in enumerate(paths):
        (path / "README.md").write_text(str(i))
    assert [p.joinpath("README.md").read_text() for p in paths] == list("01234")
    assert len({p.stat().st_dev for p in paths}) == 5, "each is a file system of its own"
    assert w.ok("clone", "--count", "2").out.count(b"\n") == 2
    w.snap("clone", "-n", "agent", "--count", "2").fails(1, "'agent-1'")
    assert len(listed(w)) == 7


@mounted_test
def without_a_project_nothing_is_made(w: World):
    w.snap("clone", cwd=w.home).fails(7, "home directory", "hint: snapcow init .")
    w.snap("clone", "--from", "@").fails(4)
    assert not w.store.exists(), "a refusal must change nothing"
    w.take()
    w.snap("clone", cwd=w.home).fails(7)


@test
def a_machine_without_fuse_is_told_so_and_nothing_is_left(w: World):
    if os.geteuid() != 0:
        raise Skip("only root can hide /dev/fuse from a process")
    w.take()
    w.stop()
    # The daemon serves its own mount namespace only, so that is where it is stopped.
    script = ('mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 || exit 99\n'
              '"$0" "$@"; status=$?; "$0" -q stop --force; exit $status')
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, SNAP, "--json", "clone", "-n", "x"],
                          cwd=w.project, env=w.env, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if b"unshare" in done.stderr or b"mount:" in done.stderr or b"mknod" in done.stderr:
        raise Skip("mount namespaces are not allowed here")
    assert done.returncode == 13, done
    assert "/dev/fuse" in json.loads(done.stdout)["error"]["message"], done
    assert listed(w, "--all") == {} and not list((w.store / "clones").iterdir())


# --- looking --------------------------------------------------------------------------------

@mounted_test
def list_counts_what_was_written_a_moment_ago(w: World):
    assert w.ok("list", "--all").out == b"no clones\n"
    path = Path(clone(w, "-n", "try", "--quota", "1G", "--ttl", "2h")["path"])
    (path / "new").write_bytes(os.urandom(5000))
    (path / "README.md").unlink()
    one = listed(w)["try"]
    for key in ("clone", "path", "base", "created", "expires", "changed", "bytes", "stale", "runs"):
        assert key in one, one
    assert (one["changed"], one["added"], one["modified"], one["deleted"]) == (2, 1, 0, 1), one
    assert 4900 < one["bytes"] < 20000 and one["quota"] == 1 << 30, one
    assert one["mounted"] is True and one["stale"] is False and one["runs"] == 0, one
    assert one["expires"] > one["created"], one
    text = w.ok("ls").out.decode()
    assert re.search(r"^try +.* 2 changed .*/clones/try  \(expires in 1h 59m\)$", text, re.M), text
    assert w.ok("-q", "list").out == b"try\n"
    w.ok("umount", "try")
    after = listed(w)["try"]
    assert after["changed"] == 2 and after["mounted"] is False, after


@mounted_test
def list_knows_only_its_project_unless_asked(w: World):
    clone(w, "-n", "mine")
    other = w.top / "other"
    other.mkdir()
    assert f"no clones yet: the project would be {other}\n".encode() == w.ok("list", cwd=other).out
    clone(w, "-n", "theirs", cwd=other)
    assert list(listed(w)) == ["mine"]
    assert list(listed(w, "--all")) == ["mine", "theirs"]
    assert list(listed(w, "-a")) == ["mine", "theirs"]


@mounted_test
def status_tells_changes_limits_and_how_far_behind(w: World):
    path = Path(clone(w, "-n", "try", "--quota", "10M")["path"])
    got = status(w, "try")
    assert got["changed"] == {"added": 0, "modified": 0, "deleted": 0}, got
    assert got["stale"]["behind_ms"] == 0 and got["stale"]["paths"] == [], got
    assert got["quota"] == 10 << 20 and got["mounted"] is True and got["last_run"] is None, got
    os.listdir(path / "src")
    (path / "src" / "main.c").read_text()
    assert status(w, "try")["changed"]["modified"] == 0, "reading changes nothing"
    (path / "src" / "main.c").chmod(0o755)
    (w.project / "README.md").write_text("moved on\n")
    (w.project / "more").write_text("x")
    w.take()
    got = status(w, "try")
    assert got["changed"]["modified"] == 1, got
    assert got["stale"]["paths"] == ["README.md", "more"] and got["stale"]["behind_ms"] > 0, got
    assert listed(w)["try"]["stale"] is True
    text = w.ok("status", "try").out.decode()
    assert "changed  1 modified\n" in text and "2 paths changed in the project; the base is " in text, text
    w.snap("status", "nope").fails(4, "'nope'", "hint: snapcow list --all")


@mounted_test
def status_without_a_clone_is_about_the_project(w: World):
    assert b"no clones yet" in w.ok("status").out
    newest = clone(w, "-n", "try")["base"]
    got = w.ok("status", "--json").json("snap.status/1", "clone", "base", "changed", "stale",
                                        "quota", "used")
    assert got["clone"] is None and got["base"] == newest, got
    assert (got["snapshots"], got["clones"], got["mounted"]) == (1, 1, 1), got
    assert got["project"] == str(w.project), got
    assert "1 clone, 1 mounted" in w.ok("status").out.decode()


@mounted_test
def inside_of_a_clone_commands_know_where_they_are(w: World):
    path = Path(clone(w, "-n", "try")["path"])
    src = path / "src"
    assert status(w, "try")["clone"] == "try"
    assert w.ok("status", "--json", cwd=src).json("snap.status/1")["clone"] == "try"
    assert w.ok("-q", "list", cwd=src).out == b"try\n"
    assert w.ok("-q", "log", cwd=src).out == w.ok("-q", "log").out
    w.snap("init", ".", cwd=src).fails(7, "inside the store")
    (src / "new").write_text("new\n")
    taken = w.ok("snapshot", "--json", cwd=src).json("snap.snapshot/1")
    assert taken["origin"] == "try", taken
    assert w.ok("-q", "log", cwd=src).out.decode().split() == [taken["snapshot"]]
    other = Path(clone(w, "-n", "other", cwd=src)["path"])
    assert (other / "src" / "new").exists() and not (w.project / "src" / "new").exists()
    plain = Path(clone(w, "-n", "plain", "--from", ".", cwd=src)["path"])
    assert not (plain / "src" / "new").exists(), "'.' is the project"
    (w.top / "link").symlink_to(path)
    assert w.ok("snapshot", "--json", cwd=w.top / "link").json("snap.snapshot/1")["origin"] == "try"
    w.snap("init", str(w.top / "link")).fails(7)


@mounted_test
def what_shows_a_clone_elsewhere_is_never_captured(w: World):
    if os.geteuid() != 0:
        raise Skip("only root can bind a directory")
    path = clone(w, "-n", "try")["path"]
    place = w.project / "bound"
    place.mkdir()
    subprocess.run(["mount", "--bind", path, place], check=True)
    try:
        w.snap("snapshot").fails(7, "clone of this store")
        w.snap("init", str(place)).fails(7)
        w.snap("snapshot", cwd=place / "src").fails(7)
    finally:
        subprocess.run(["umount", place], check=True)
    w.ok("snapshot")


# --- snapshots of clones --------------------------------------------------------------------

@mounted_test
def a_snapshot_of_a_clone_holds_all_that_was_written(w: World):
    got = clone(w, "-n", "try")
    path = Path(got["path"])
    with open(path / "open", "wb", buffering=0) as f:
        f.write(b"still open")
        taken = w.ok("snapshot", "try", "-m", "one", "-t", "saved", "--json").json(
            "snap.snapshot/1", "snapshot", "parent", "files", "changed", "elapsed_ms")
        f.write(b", and more")
    assert taken["parent"] == got["base"] and taken["origin"] == "try", taken
    assert (taken["added"], taken["files"]) == (1, 3), taken
    assert w.ok("show", "saved:open").out == b"still open"
    assert w.ok("show", "try@:open").out == b"still open"
    second = w.ok("-q", "snapshot", "try").out.decode().strip()
    assert w.ok("show", "try@:open").out == b"still open, and more"
    assert w.ok("show", "try@-1:open").out == b"still open"
    assert w.ok("-q", "log", "try").out.decode().split() == [second, taken["snapshot"]]
    everything = w.ok("log", "--all", "--json").json("snap.log/1")["snapshots"]
    assert [s["snapshot"] for s in everything if s["origin"] == "."] == [got["base"]]
    w.ok("umount", "try")
    third = w.ok("snapshot", "try", "--json").json("snap.snapshot/1")
    assert third["changed"] == 0 and third["files"] == 3, third
    w.snap("snapshot", "nope").fails(4, "'nope'")
    w.snap("snapshot", "try", "-t", "saved").fails(1, "'saved'")


# --- mounting -------------------------------------------------------------------------------

@mounted_test
def what_was_written_survives_umount_and_mount(w: World):
    path = Path(clone(w, "-n", "try")["path"])
    (path / "kept").write_text("kept")
    w.ok("umount", "try")
    assert not path.exists() and w.mounts() == []
    w.ok("umount", "try")
    assert w.ok("mount", "try").out == f"{path}\n".encode()
    assert (path / "kept").read_text() == "kept"
    got = w.ok("mount", "try", "--json").json("snap.mount/1", "clone", "path")
    assert got["path"] == str(path), got
    w.snap("mount", "nope").fails(4, "'nope'", "hint: snapcow list --all")
    w.snap("umount", "nope", "--json").fails_json(4, "E_NOT_FOUND")


@mounted_test
def a_clone_in_use_is_unmounted_only_by_force(w: World):
    path = Path(clone(w, "-n", "try")["path"])
    (path / "kept").write_text("kept")
    with inside(path):
        w.snap("umount", "try").fails(11, "'try'", "hint: snapcow umount --force try")
        w.snap("umount", "try", "--json").fails_json(11, "E_BUSY")
        assert (path / "kept").read_text() == "kept", "nothing changed"
        w.ok("umount", "--force", "try")
    w.ok("mount", "try")
    assert (path / "kept").read_text() == "kept"


@mounted_test
def a_clone_that_somebody_else_unmounted_can_be_mounted_again(w: World):
    if os.geteuid() != 0:
        raise Skip("umount(8) is root's")
    path = Path(clone(w, "-n", "try")["path"])
    (path / "kept").write_text("kept")
    subprocess.run(["umount", path], check=True)
    wait_for(lambda: listed(w)["try"]["mounted"] is False)
    w.ok("mount", "try")
    assert (path / "kept").read_text() == "kept"


ROUNDS = 300  # of 1,313 once 15 were wrong


def umount(path):
    """As umount(8), without a process, so that the next command comes sooner."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.umount2(os.fsencode(path), 0) == 0, os.strerror(ctypes.get_errno())


@mounted_test
def a_write_of_a_stranger_takes_set_id_bits_as_on_the_disk_below(w: World):
    """Set-group-id goes also where the group may not execute the file, as fstests 683 to 685 have it."""
    if os.geteuid() != 0:
        raise Skip("only root has strangers at hand")
    path = Path(clone(w, "-n", "try")["path"])
    host = w.project / "host"
    for p in (w.top, w.project, w.store, w.store / "clones"):
        p.chmod(p.stat().st_mode | 0o055)
    for mode in (0o2666, 0o2676, 0o4666, 0o6666, 0o6777, 0o2767):
        seen = []
        for file in (path / "in-clone", host):
            for act in ("w", "t"):
                file.write_text("text")
                file.chmod(mode)
                pid = os.fork()
                if pid == 0:
                    os.setgroups([])
                    os.setgid(65534)
                    os.setuid(65534)
                    try:
                        fd = os.open(file, os.O_WRONLY)
                        os.write(fd, b"x") if act == "w" else os.ftruncate(fd, 1)
                        os._exit(0)
                    finally:
                        os._exit(1)
                assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, (file, oct(mode))
                seen.append(file.stat().st_mode & 0o7777)
        assert seen[:2] == seen[2:], (oct(mode), [oct(s) for s in seen])
        assert not seen[0] & 0o6000, oct(seen[0])


def mount_again(w):
    """A mount namespace that another program makes just now has a copy of the mount, which ends with it."""
    until = time.monotonic() + 120
    while (got := w.snap("mount", "try")).status == 11 and time.monotonic() < until:
        assert b"somebody else unmounted" in got.err, str(got)
    got.ends(0)


@mounted_test
def a_mount_that_somebody_else_took_away_is_not_taken_for_one(w: World):
    """Lazily, with a file open, it lives on and is seen nowhere."""
    if os.geteuid() != 0:
        raise Skip("umount(8) is root's")
    path = Path(clone(w, "-n", "try")["path"])
    (path / "kept").write_text("kept")
    with open(path / "kept", encoding="utf-8") as f:
        subprocess.run(["umount", "-l", path], check=True)
        w.snap("mount", "try").fails(11, "'try'", "somebody else unmounted")
        assert f.read() == "kept", "who has it open goes on"
    mount_again(w)
    assert os.path.ismount(path) and (path / "kept").read_text() == "kept"
    missing = 0
    for _ in range(ROUNDS):
        umount(path)
        mount_again(w)
        missing += not os.path.ismount(path) or (path / "kept").read_text() != "kept"
    assert missing == 0, f"{missing} of {ROUNDS} answers were wrong: what is answered is there"
    w.ok("mount", "try")


@mounted_test
def a_mount_says_that_it_notes_no_reads(w: World):
    path = clone(w, "-n", "try")["path"]
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    shown = [m[5].split(",") for m in mounts if m[4] == path]
    assert len(shown) == 1 and {"noatime", "nosuid", "nodev"} <= set(shown[0]), shown


# --- removing -------------------------------------------------------------------------------

@mounted_test
def a_removed_clone_is_gone_and_its_name_free(w: World):
    path = Path(clone(w, "-n", "try")["path"])
    clone(w, "-n", "more")
    got = w.ok("rm", "try", "more", "--json").json("snap.rm/1", "removed")
    assert [r["clone"] for r in got["removed"]] == ["try", "more"], got
    assert not path.exists() and listed(w) == {} and w.mounts() == []
    w.snap("rm", "try").fails(4, "'try'", "hint: snapcow list --all")
    assert sorted(os.listdir(clone(w, "-n", "try")["path"])) == ["README.md", "src"]
    w.ok("umount", "try")
    assert w.ok("rm", "try").out == b"removed  try\n"
    w.snap("rm").fails(2, "CLONE")
    w.ok("check")


@mounted_test
def a_clone_in_use_is_removed_only_by_force(w: World):
    path = Path(clone(w, "-n", "try")["path"])
    (path / "new").write_text("x")
    with inside(path):
        w.snap("rm", "try").fails(11, "'try'", "hint: snapcow rm --force try")
        assert (path / "new").read_text() == "x", "nothing changed"
        w.ok("rm", "-f", "try")
    assert listed(w) == {}


@mounted_test
def snapshots_go_with_their_clone_unless_something_names_them(w: World):
    base = clone(w, "-n", "try")["base"]
    path = w.store / "clones" / "try"
    ids = []
    for i, tag in enumerate((None, "kept", None, None, "late")):
        (path / "file").write_text(str(i))
        ids.append(w.ok("-q", "snapshot", "try", *(("-t", tag) if tag else ())).out.decode().strip())
    clone(w, "-n", "child", "--from", ids[3])
    got = w.ok("rm", "try", "--json").json("snap.rm/1")
    assert got["removed"] == [{"clone": "try", "snapshot": None, "snapshots": 2}], got
    for i, parent in ((1, base), (3, ids[1]), (4, ids[3])):
        shown = w.ok("show", ids[i], "--json").json("snap.show/1")
        assert shown["parent"] == parent, (i, shown)
        assert w.ok("show", f"{ids[i]}:file").out == str(i).encode()
    for i in (0, 2):
        w.snap("show", ids[i]).fails(4)
    clone(w, "-n", "try")
    assert w.ok("log", "try", "--json").json("snap.log/1")["snapshots"] == [], \
        "a namesake has no past"
    w.ok("gc")
    w.ok("check")
    assert (w.store / "clones" / "child" / "file").read_text() == "3"


# --- lifetimes ------------------------------------------------------------------------------

@mounted_test
def an_expired_clone_goes_once_nobody_uses_it(w: World):
    path = Path(clone(w, "-n", "short", "--ttl", "100ms")["path"])
    clone(w, "-n", "long", "--ttl", "1h")
    wait_for(lambda: list(listed(w)) == ["long"])
    assert not path.exists()
    with inside(clone(w, "-n", "used", "--ttl", "100ms")["path"]):
        time.sleep(1)
        assert "used" in listed(w)
    wait_for(lambda: list(listed(w)) == ["long"])
    w.snap("clone", "--ttl", "soon").fails(2)
    w.snap("clone", "--ttl", "999999999d").fails(2)


@mounted_test
def a_clone_that_expired_while_no_daemon_ran_goes_too(w: World):
    with inside(clone(w, "-n", "short", "--ttl", "300ms")["path"]):
        kill_daemon(w)
    time.sleep(0.5)
    w.ok("start")
    wait_for(lambda: listed(w, "--all") == {})
    assert w.mounts() == [] and not list((w.store / "clones").iterdir())


@mounted_test
def a_quota_is_a_limit_of_growth(w: World):
    path = Path(clone(w, "-n", "try", "--quota", "1M")["path"])
    (path / "fits").write_bytes(os.urandom(500_000))
    try:
        with open(path / "large", "wb") as f:
            for _ in range(64):
                f.write(os.urandom(65536))
                f.flush()
        raise AssertionError("four times the quota was written")
    except OSError as e:
        assert e.errno in (28, 122), e
    assert status(w, "try")["used"] <= 1 << 20
    (path / "large").unlink()
    (path / "fits").unlink()
    (path / "again").write_bytes(os.urandom(500_000))


# --- the daemon comes and goes --------------------------------------------------------------

@mounted_test
def stop_names_the_clones_in_use_and_keeps_all_mounted(w: World):
    busy = Path(clone(w, "-n", "busy")["path"])
    free = Path(clone(w, "-n", "free")["path"])
    (free / "new").write_text("x")
    with inside(busy):
        w.snap("stop").fails(11, "'busy'", "hint: snapcow stop --force")
        assert (free / "new").read_text() == "x" and (busy / "README.md").exists()
        w.ok("stop", "--force")
    assert w.mounts() == [] and w.daemons() == []
    assert listed(w)["busy"]["mounted"] is True, "the next command brings them back"
    assert (free / "new").read_text() == "x" and (busy / "README.md").exists()
    w.ok("umount", "free")
    w.ok("stop")
    w.ok("start")
    got = listed(w)
    assert got["busy"]["mounted"] is True and got["free"]["mounted"] is False, got


@mounted_test
def after_a_crash_the_next_command_brings_the_mounts_back(w: World):
    path = Path(clone(w, "-n", "try")["path"])
    clone(w, "-n", "unmounted")
    w.ok("umount", "unmounted")
    fd = os.open(path / "synced", os.O_WRONLY | os.O_CREAT)
    os.write(fd, b"synced")
    os.fsync(fd)
    kill_daemon(w)
    for act in (lambda: os.listdir(path), lambda: os.write(fd, b"x"),
                lambda: (path / "README.md").read_text()):
        try:
            act()
            raise AssertionError("it should have failed")
        except OSError as e:
            assert e.errno in (107, 103), e  # ENOTCONN, ECONNABORTED: an error, not a hang
    os.close(fd)
    result = w.ok("list", "--json")
    assert b"ended unexpectedly, and its clones are mounted again" in result.err, str(result)
    assert (path / "synced").read_bytes() == b"synced"
    assert (path / "README.md").read_text() == "first\n"
    got = listed(w)
    assert got["try"]["mounted"] is True and got["unmounted"]["mounted"] is False, got
    assert w.ok("list").err == b""
    w.ok("check")


@mounted_test
def what_killed_a_daemon_while_it_started_is_not_done_again(w: World):
    clone(w, "-n", "try")
    w.ok("stop")
    (w.store / "run" / "cowfsd").write_text("4242 0.1.0 starting\n")
    result = w.ok("list", "--json")
    assert b"4242" in result.err and b"no clone was mounted again" in result.err, str(result)
    assert listed(w)["try"]["mounted"] is False
    w.ok("mount", "try")
    assert (w.store / "clones" / "try" / "README.md").exists()


@mounted_test
def what_a_dead_daemon_left_of_a_removed_clone_is_taken_away(w: World):
    clone(w, "-n", "try")
    w.ok("stop")
    stray = w.store / "clones" / "stray"
    stray.mkdir()
    w.ok("start")
    assert not stray.exists() and (w.store / "clones" / "try" / "README.md").exists()
    kept = w.store / "clones" / "kept"
    w.ok("stop")
    kept.mkdir()
    (kept / "file").write_text("somebody's")
    w.ok("start")
    assert (kept / "file").read_text() == "somebody's", "what is not ours stays"


@mounted_test
def a_mounted_clone_keeps_the_daemon(w: World):
    env = {"SNAPCOW_IDLE_S": "1"}
    w.ok("clone", "-n", "try", env=env)
    pid = daemon_pid(w)
    time.sleep(2.5)
    assert w.daemons() == [pid]
    w.ok("umount", "try", env=env)
    assert gone(pid, 20)


@mounted_test
def acts_on_one_clone_wait_for_each_other(w: World):
    w.take()
    names = [f"c{i % 3}" for i in range(24)]
    verbs = (("clone", "-n", "{}", "--from", "@"), ("rm", "-f", "{}"), ("mount", "{}"),
             ("umount", "-f", "{}"), ("snapshot", "{}"), ("status", "{}"), ("list", "--all"))
    running = [subprocess.Popen([SNAP, *(a.format(n) for a in verbs[i % len(verbs)])],
                                cwd=w.project, env=w.env, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
               for i, n in enumerate(names)]
    for p in running:
        out, err = p.communicate(timeout=120)
        assert p.returncode in (0, 1, 4), (p.args, p.returncode, out, err)
    assert len(w.daemons()) == 1
    for name, one in listed(w, "--all").items():
        assert one["mounted"] is ((w.store / "clones" / name / "README.md").exists()), one
    w.ok("check")


@mounted_test
def neither_commands_on_clones_nor_the_daemon_leak(w: World):
    first, second, third = leak_checks(3, 1)
    w.ok("clone", "-n", "try", "--count", "2", env=first)  # and the daemon that it starts
    (w.store / "clones" / "try-1" / "new").write_text("x")
    w.snap("clone", "-n", "try-1").fails(1)
    w.ok("snapshot", "try-1", "-t", "v1")
    w.ok("clone", "-n", "third", "--from", "try-1")
    w.ok("list", "--json", env=second)
    w.ok("status", "try-1", env=third)
    w.ok("status")
    w.ok("umount", "try-2")
    w.ok("rm", "try-1")
    w.snap("rm", "nope").fails(4)
    w.ok("check")
    w.ok("gc")
    w.ok("stop")  # what the daemon lost shows in its log


# --- an ordinary user -----------------------------------------------------------------------

@mounted_test
def a_clone_says_who_made_it_and_through_what(w: World):
    me = pwd.getpwuid(os.geteuid()).pw_name
    w.take()
    assert (clone(w, "-n", "mine")["who"], status(w, "mine")["via"]) == (me, None)
    clone(w, "-n", "theirs", env={"SNAPCOW_VIA": "agent:test"})
    for odd in ("", "two\nlines", "x" * 97, "bell\a"):
        assert clone(w, env={"SNAPCOW_VIA": odd})["via"] is None, odd
    w.ok("experiment", "-n", "faster", "--arm", "a=true", "--keep", "all")
    kept = w.ok("run", "--keep", "--json", "--", "true").json("snap.run/1")
    with Client(w) as agent:
        # Of the protocol's later era: each request says whose it is.
        agent.ask("tools/call", name="snap_clone", arguments={"name": "asked"},
                  _meta={"io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "1"}})
    got = listed(w)
    assert {name: got[name]["via"] for name in ("mine", "theirs", "asked", kept["clone"])} == {
        "mine": None, "theirs": "agent:test", "asked": "agent:tester", kept["clone"]: f"run:{kept['run']}"}, got
    assert [c["via"] for n, c in got.items() if n.startswith("faster")] == ["experiment:faster"], got
    assert all(c["who"] == me for c in got.values()), got
    text = w.ok("list").out.decode()
    assert "(agent:test)" in text and "(experiment:faster)" in text, text
    assert f"by {me} (agent:test)" in w.ok("status", "theirs").out.decode()
    event = next(e for e in map(json.loads, w.ok("events", "--json").out.splitlines())
                 if e["kind"] == "clone" and e["clone"] == "theirs")
    assert event["data"]["who"] == me and event["data"]["via"] == "agent:test", event
    # It stays with the clone, whatever is done to it and whoever serves it.
    (w.store / "clones" / "theirs" / "new").write_text("x")
    w.ok("snapshot", "theirs")
    w.ok("rebase", "theirs")
    w.kill_daemon()
    assert status(w, "theirs")["via"] == "agent:test"


@test
def an_ordinary_user_has_clones_too(w: World):
    if os.geteuid() != 0:
        raise Skip("all other tests are this one")
    needs_fuse(somebody_else=True)
    program = w.top / "snapcow"
    shutil.copy(SNAP, program)
    w.top.chmod(0o755)
    for path in (w.project, *w.project.rglob("*"), w.home):
        os.chown(path, NOBODY, NOBODY)
    store = w.home / "store"
    who = {"program": program, "user": NOBODY, "group": NOBODY, "extra_groups": [],
           "env": {"SNAPCOW_STORE": str(store)}}
    path = w.ok("clone", "-n", "try", **who).out.decode().strip()
    subprocess.run(["sh", "-c", "cat README.md && echo more > new && rm -r src"], cwd="/",
                   check=True, stdout=subprocess.DEVNULL, user=NOBODY, group=NOBODY,
                   extra_groups=[], preexec_fn=lambda: (os.setuid(NOBODY), os.chdir(path)))
    got = w.ok("status", "try", "--json", **who).json("snap.status/1")
    assert got["changed"] == {"added": 1, "modified": 0, "deleted": 1}, got
    w.ok("stop", **who)
    w.ok("start", **who)
    pid = w.daemons()[0]
    os.kill(pid, signal.SIGKILL)
    assert gone(pid, 20)
    result = w.ok("snapshot", "try", **who)
    assert b"mounted again" in result.err, str(result)
    w.ok("rm", "try", **who)
    assert w.mounts() == []


if __name__ == "__main__":
    sys.exit(main())

"""Private clones: for root alone, with no permissions checked, and in all else like any other."""

import errno
import os
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

from snaptest import SNAP, Skip, World, main, needs_fuse, test

NOBODY = 65534

# What root meets of permissions in a plain directory, told in words.
SCRIPT = r"""
umask 027
mkdir plain sticky shared; chmod 1777 sticky; chmod 2775 shared; chgrp 12 shared
echo secret >closed; chmod 0 closed; cat closed; echo more >>closed; cat closed
echo text >program; ./program 2>/dev/null || echo "not run: $?"
test -x program || echo "not to be run"; test -w closed && echo writable
mkfifo pipe; test -x pipe || echo "no pipe is run"; test -x plain && echo "to be entered"; rm pipe
chmod 755 program; printf '#!/bin/sh\necho ran\n' >program; ./program
chmod 4755 program; echo '# more' >>program; stat -c '%a %u %g' program
chown 1000:1000 program; stat -c '%a %u %g' program
mkdir shared/below; echo >shared/new; stat -c '%a %u %g' plain shared/below shared/new
chmod 0 plain; echo in >plain/file; ls plain; cat plain/file
mv closed plain/moved; ln plain/moved twice; stat -c '%h %a' twice
chown 1000 sticky; rmdir sticky && echo "sticky gone"
rm -rf plain shared twice program; ls -A
"""


def private_test(fn):
    def run(w):
        needs_fuse()
        if os.geteuid() != 0:
            raise Skip("only root can have a private clone")
        fn(w)
    run.__name__ = fn.__name__
    return test(run)


def clone(w, *args):
    return Path(w.ok("clone", "--private", *args).out.decode().strip())


def options(path):
    """Of the mount there: those of this mount, and those of its file system."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        words = line.split()
        if words[4] == str(path):
            return words[5].split(","), words[-1].split(",")
    raise AssertionError(f"{path} is not mounted")


def is_private(path):
    return not {"allow_other", "default_permissions"} & set(options(path)[1])


def as_nobody(call, *args):
    """What an ordinary user gets of it: 0 or errno, in a process of its own."""
    child = os.fork()
    if child == 0:
        status = 125
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            call(*args)
            status = 0
        except OSError as e:
            status = e.errno
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@private_test
def nobody_but_root_enters_by_any_way(w: World):
    path = clone(w, "-n", "mine")
    assert is_private(path) and {"nosuid", "nodev"} <= set(options(path)[0])
    (path / "open").write_text("for all")
    (path / "open").chmod(0o666)
    for at in (w.top, w.store, w.store / "clones"):
        at.chmod(0o755)
    top = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert as_nobody(os.listdir, path) == errno.EACCES
        assert as_nobody(os.listdir, top) == errno.EACCES
        assert as_nobody(os.stat, path / "open") == errno.EACCES
        assert as_nobody(lambda: os.open("open", os.O_RDONLY, dir_fd=top)) == errno.EACCES
        assert as_nobody(lambda: os.open("new", os.O_WRONLY | os.O_CREAT, dir_fd=top)) == errno.EACCES
    finally:
        os.close(top)
    assert os.listdir(path) and not (path / "new").exists()


@private_test
def another_clone_of_root_is_open_to_whom_permissions_let_in(w: World):
    path = Path(w.ok("clone", "-n", "open").out.decode().strip())
    assert {"allow_other", "default_permissions"} <= set(options(path)[1])
    (path / "closed").write_text("for root")
    (path / "closed").chmod(0o600)
    for at in (w.top, w.store, w.store / "clones", path):
        at.chmod(0o755)
    assert as_nobody(os.stat, path / "README.md") == 0
    assert as_nobody(os.open, path / "closed", os.O_RDONLY) == errno.EACCES


@private_test
def root_meets_there_what_it_meets_in_a_plain_directory(w: World):
    plain = w.top / "plain"
    places = plain, clone(w) / "here"
    told = []
    for place in places:
        place.mkdir()
        done = subprocess.run(["sh", "-c", SCRIPT], cwd=place, capture_output=True, text=True)
        told.append((done.returncode, done.stdout, done.stderr))
    assert told[0] == told[1], told
    assert "secret\nmore" in told[0][1] and "not run: 126" in told[0][1], told[0]


ANY = 0xffffffff  # the id of an entry that needs none


def access_list(*entries):
    """As an attribute has it: (tag, permissions, id)."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in entries)


@private_test
def access_lists_are_kept_and_inherited(w: World):
    path = clone(w)
    (path / "dir").mkdir()
    given = access_list((1, 7, ANY), (2, 4, 1000), (4, 5, ANY), (16, 5, ANY), (32, 0, ANY))
    os.setxattr(path / "dir", "system.posix_acl_default", given)
    assert os.getxattr(path / "dir", "system.posix_acl_default") == given
    (path / "dir" / "file").write_text("text")
    assert (path / "dir" / "file").stat().st_mode & 0o777 == 0o640
    got = os.getxattr(path / "dir" / "file", "system.posix_acl_access")
    assert struct.pack("<HHI", 2, 4, 1000) in got


@private_test
def attributes_are_kept(w: World):
    path = clone(w)
    os.setxattr(path / "README.md", "user.note", b"kept")
    os.setxattr(path / "README.md", "trusted.note", b"kept too")
    assert os.getxattr(path / "README.md", "user.note") == b"kept"
    assert set(os.listxattr(path / "README.md")) == {"user.note", "trusted.note"}
    w.ok("snapshot", path.name)
    again = Path(w.ok("clone", "--from", f"{path.name}@").out.decode().strip())
    assert os.getxattr(again / "README.md", "user.note") == b"kept"


CAPABILITY = struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0)  # cap_net_raw, in effect


def capable(path):
    return "security.capability" in os.listxattr(path)


@private_test
def without_attributes_none_is_seen_or_set_and_none_is_lost(w: World):
    for name in ("README.md", "src/main.c"):
        os.setxattr(w.project / name, "user.note", b"kept")
    path = clone(w, "-n", "bare", "--no-xattrs")
    for call in (lambda: os.setxattr(path / "README.md", "user.other", b"x"),
                 lambda: os.getxattr(path / "README.md", "user.note"),
                 lambda: os.listxattr(path / "README.md"),
                 lambda: os.removexattr(path / "README.md", "user.note"),
                 lambda: os.setxattr(path, "system.posix_acl_default", access_list(
                     (1, 7, ANY), (4, 5, ANY), (32, 0, ANY)))):
        try:
            call()
            raise AssertionError("there are attributes")
        except OSError as e:
            assert e.errno == errno.EOPNOTSUPP, e
    (path / "README.md").write_text("changed\n")
    w.ok("umount", "bare")
    w.ok("mount", "bare")
    assert w.ok("status", "bare", "--json").json("snap.status/1")["xattrs"] is False
    assert b"without extended attributes" in w.ok("status", "bare").out
    w.ok("promote", "bare")
    assert (w.project / "README.md").read_text() == "changed\n"
    for name in ("README.md", "src/main.c"):
        assert os.getxattr(w.project / name, "user.note") == b"kept"


@private_test
def without_attributes_what_is_changed_has_no_capability_any_more(w: World):
    changes = {"written": lambda p: p.write_text("other"), "cut": lambda p: os.truncate(p, 1),
               "given": lambda p: os.chown(p, 1000, -1),
               "filled": lambda p: subprocess.run(["fallocate", "-l", "9999", p], check=True),
               "copied": lambda p: subprocess.run(["cp", p.parent / "other", p], check=True),
               "left": lambda p: p.chmod(0o700), "read": lambda p: p.read_text()}
    (w.project / "other").write_text("other")
    for name in changes:
        (w.project / name).write_text("program")
        os.setxattr(w.project / name, "security.capability", CAPABILITY)
    for words in ((), ("--no-xattrs",)):
        path = clone(w, *words)
        for name, change in changes.items():
            change(path / name)
        seen = Path(w.ok("clone", "--from", path.name).out.decode().strip())
        kept = {name for name in changes if capable(seen / name)}
        assert kept == {"left", "read"}, (words, kept)


@test
def only_a_private_clone_is_without_attributes(w: World):
    w.snap("clone", "--no-xattrs").fails(2, "'--no-xattrs' needs '--private'")


@private_test
def it_stays_private_however_often_it_is_mounted(w: World):
    path = clone(w, "-n", "mine")
    (path / "new").write_text("kept")
    w.ok("umount", "mine")
    w.ok("mount", "mine")
    assert is_private(path)
    w.stop()
    w.ok("mount", "mine")
    assert is_private(path) and (path / "new").read_text() == "kept"
    got = w.ok("status", "mine", "--json").json("snap.status/1", "private")
    assert got["private"] is True
    assert b"for root alone" in w.ok("status", "mine").out
    got = w.ok("list", "--json").json("snap.list/1", "clones")
    assert [c["private"] for c in got["clones"]] == [True]


@private_test
def all_of_many_are_private_and_what_starts_from_one_is_not(w: World):
    got = w.ok("clone", "--private", "--count", "3", "-n", "many", "--json").json("snap.clone/1")
    assert got["private"] and all(c["private"] for c in got["clones"])
    assert all(is_private(c["path"]) for c in got["clones"])
    assert not is_private(w.ok("clone", "--from", "many-1").out.decode().strip())


@private_test
def a_warm_one_that_waits_is_for_others(w: World):
    w.ok("clone")
    until = time.monotonic() + 60
    while w.ok("start", "--json").json("snap.start/1")["spare"] not in ("ready", "warm"):
        assert time.monotonic() < until, "there is no warm clone"
        time.sleep(0.05)
    snapshot = w.ok("log", "--all", "--json").json("snap.log/1")["snapshots"][0]["snapshot"]
    assert is_private(clone(w, "--from", snapshot))
    assert w.ok("start", "--json").json("snap.start/1")["spare"] in ("ready", "warm")
    assert not is_private(w.ok("clone", "--from", snapshot).out.decode().strip())


@private_test
def no_run_uses_it_and_nothing_is_left_of_the_attempt(w: World):
    path = clone(w, "-n", "mine")
    before = w.ok("log", "--all", "--json").json("snap.log/1")
    w.snap("run", "mine", "--", "true").fails(125, "clone 'mine' is private", "not root",
                                             "clone --from mine")
    w.snap("run", "mine", "--rm", "--json", "--", "true").fails_json(125, "E_PERMISSION")
    assert w.ok("log", "--all", "--json").json("snap.log/1") == before
    assert path.is_dir() and w.ok("runs", "--json").json("snap.runs/1")["runs"] == []
    name = Path(w.ok("clone", "--from", "mine").out.decode().strip()).name
    w.ok("run", name, "--", "true")


@private_test
def its_changes_are_told_rolled_back_and_promoted(w: World):
    path = clone(w, "-n", "mine")
    (path / "README.md").write_text("better\n")
    assert w.ok("diff", "mine", "--name-status").out.split() == [b"M", b"README.md"]
    w.ok("snapshot", "mine", "-t", "good")
    (path / "README.md").write_text("worse\n")
    (path / "junk").write_text("junk")
    assert (path / "README.md").read_text() == "worse\n"
    w.ok("rollback", "mine", "good")
    assert (path / "README.md").read_text() == "better\n" and not (path / "junk").exists()
    w.ok("promote", "mine", "--check", "grep -q better README.md")
    assert (w.project / "README.md").read_text() == "better\n"


@test
def an_ordinary_user_can_have_none(w: World):
    needs_fuse(somebody_else=os.geteuid() == 0)
    more = {}
    if os.geteuid() == 0:
        shutil.copy(SNAP, w.top / "snap")
        w.top.chmod(0o755)
        for path in (w.top, w.project, *w.project.rglob("*"), w.home):
            os.chown(path, NOBODY, NOBODY)
        more = {"program": w.top / "snap", "user": NOBODY, "group": NOBODY, "extra_groups": []}
    w.snap("clone", "--private", **more).fails(1, "only root can have a private clone", "hint: ", " clone")
    assert w.ok("list", "--all", "--json", **more).json("snap.list/1")["clones"] == []


if __name__ == "__main__":
    sys.exit(main())

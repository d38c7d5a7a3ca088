"""The warm clone: warm before anyone asks, given to the next clone of the same state, gone without a trace."""

import ctypes
import errno
import os
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from snaptest import SNAP, Skip, World, gone, leak_checks, test  # noqa: E402
from warmtest import (announce, aside, clone, daemon, fill, processes_on, ready, state, stopped_walker,  # noqa: E402
                      stopped_walkers, tree, wait_for, walkers, warm, warm_test)

NOBODY = 65534


# --- given out ------------------------------------------------------------------------------

@warm_test
def the_next_clone_of_the_same_state_is_the_warm_one_and_shows_it(w: World):
    fill(w)
    first, taken = clone(w, "-n", "first")
    assert taken == 0, "there was none yet"
    ready(w)
    waiting = aside(w)
    assert len(waiting) == (1 if livetest.USER else 0), waiting
    assert w.mounts() == [str(first), *waiting], "root's is nowhere"
    assert daemon(w)["mounted"] == 1
    second, taken = clone(w, "-n", "second")
    assert taken == 1
    assert tree(second) == tree(w.project)
    assert second.stat().st_dev != first.stat().st_dev
    lines = Path("/proc/self/mounts").read_text().splitlines()
    one, two = ([line.split() for line in lines if f" {p} " in line] for p in (first, second))
    assert len(one) == len(two) == 1 and one[0][2:] == two[0][2:], (one, two)
    assert two[0][0] == ("snapcow" if livetest.USER else "snapcow:second"), two
    assert not set(waiting) & set(w.mounts()), "it was moved"
    ready(w)
    assert clone(w)[1] == 1, "and the next one"


def preload(w, **env):
    """From now on cowfsd and what it starts do as mover-fault.c has it."""
    w.env.update(LD_PRELOAD=os.environ["SNAP_MOVER_FAULT"], **env,
                 ASAN_OPTIONS=w.env["ASAN_OPTIONS"] + ":verify_asan_link_order=0")


def asked(w, path):
    """How often the kernel has asked for something in this clone."""
    line = f'snapcow_clone_operations_total{{clone="{path.name}"}} '
    return int(next(l for l in w.ok("metrics").out.decode().splitlines() if l.startswith(line))[len(line):])


def content(path):
    """Without the question whether it is a terminal, which is always a request."""
    fd = os.open(path, os.O_RDONLY)
    os.read(fd, 4096)
    os.close(fd)


@warm_test
def of_a_warm_one_the_kernel_knows_names_attributes_and_contents(w: World):
    preload(w, WALKER_ALONE="1")  # to wait until nobody else computes may take for ever
    for i in range(4):
        (w.project / f"dir{i}").mkdir()
        for k in range(300):
            (w.project / f"dir{i}" / f"f{k}").write_text(f"{i} {k}")
    clone(w)
    warm(w)
    path, taken = clone(w)
    assert taken == 1
    warm(w)  # the next one is: nobody walks any more
    files = [Path(top, name) for top, _, names in os.walk(path) for name in names]
    assert len(files) > 1200, "all of it"
    for what in (os.lstat, content):
        before = asked(w, path)
        for file in files:
            what(file)
        count = asked(w, path) - before
        assert count < len(files) / 4, f"{count} requests for {len(files)} files: {what}"


@warm_test
def what_is_done_in_it_is_kept_like_in_any_other(w: World):
    w.ok("clone", "-n", "first")
    ready(w)
    path, taken = clone(w, "-n", "try", "--quota", "1M")
    assert taken == 1
    (path / "README.md").write_text("changed\n")
    (path / "src" / "main.c").unlink()
    (path / "new").mkdir()
    (path / "new" / "file").write_text("new")
    got = w.ok("status", "try", "--json").json("snap.status/1")
    assert got["changed"] == {"added": 1, "modified": 1, "deleted": 1}, got
    assert got["quota"] == 1 << 20, got
    assert (w.store / "clones" / "first" / "README.md").read_text() == "first\n"
    before = tree(path)
    w.ok("umount", "try")
    w.ok("mount", "try")
    assert tree(path) == before
    w.ok("stop")
    w.ok("start")
    assert tree(path) == before
    ino = {p.name: p.stat().st_ino for p in w.project.rglob("*")}
    assert (path / "new" / "file").stat().st_ino not in ino.values()
    w.ok("rm", "try")
    assert not path.exists()
    w.ok("gc")
    w.ok("check")


@warm_test
def it_can_be_removed_at_once(w: World):
    w.ok("clone", "-n", "first")
    for _ in range(3):
        ready(w)
        path, taken = clone(w, "-n", "try")
        assert taken == 1
        w.ok("rm", "try")
        assert not path.exists()


@warm_test
def one_that_is_not_all_warm_is_given_too_and_its_walker_ends(w: World):
    fill(w)
    with stopped_walkers(w):
        w.ok("clone", "-n", "first")
        pid = stopped_walker(w)
        path, taken = clone(w, "-n", "second")
        assert taken == 1 and gone(pid, 20)
    assert tree(path) == tree(w.project)
    w.ok("rm", "second")


@warm_test
def who_promotes_has_the_processors_and_it_gets_warm_afterwards(w: World):
    fill(w)
    with stopped_walkers(w):
        first, _ = clone(w, "-n", "first")
        (first / "README.md").write_text("promoted")
        pid = stopped_walker(w)
    w.ok("promote", "first", "--dry-run")
    wait_for(lambda: state(pid) != "T")
    ready(w)
    assert clone(w, "-n", "second")[1] == 1
    w.ok("promote", "first")
    assert (w.project / "README.md").read_text() == "promoted"


@warm_test
def of_many_made_at_once_one_is_the_warm_one(w: World):
    w.ok("clone", "-n", "first")
    ready(w)
    w.ok("clone", "-n", "some", "--count", "3")
    assert daemon(w)["spares_taken"] >= 1  # more if the next one was begun meanwhile
    for i in (1, 2, 3):
        path = w.store / "clones" / f"some-{i}"
        assert (path / "README.md").read_text() == "first\n"
        (path / "README.md").write_text(str(i))
    assert [(w.store / "clones" / f"some-{i}" / "README.md").read_text()
            for i in (1, 2, 3)] == ["1", "2", "3"]


@warm_test
def who_comes_at_the_same_time_gets_another(w: World):
    w.ok("clone", "-n", "first")
    ready(w)
    running = [subprocess.Popen([SNAP, "-q", "clone", "-n", f"c{i}", "--from", "@"],
                                cwd=w.project, env=w.env, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE) for i in range(6)]
    for p in running:
        out, err = p.communicate(timeout=60)
        assert p.returncode == 0, (out, err)
    assert daemon(w)["spares_taken"] >= 1  # more if the next one was begun meanwhile
    for i in range(6):
        path = w.store / "clones" / f"c{i}"
        (path / "README.md").write_text(f"{i}")
    assert [(w.store / "clones" / f"c{i}" / "README.md").read_text() for i in range(6)] \
        == list("012345")


# --- several ---------------------------------------------------------------------------------

@warm_test
def as_many_as_are_announced_are_ready(w: World):
    base = announce(w, 4)
    wait_for(lambda: daemon(w)["spares"] == 4)
    assert w.ok("-q", "list").out == b"", "a warm clone is none that anybody sees"
    for i in range(4):
        assert clone(w, "-n", f"c{i}", "--from", base)[1] == 1, f"number {i} is a warm one like the first"
    paths = [w.store / "clones" / f"c{i}" for i in range(4)]
    for i, path in enumerate(paths):
        (path / "README.md").write_text(f"{i}")
    assert [path.joinpath("README.md").read_text() for path in paths] == list("0123")
    assert len({path.stat().st_dev for path in paths}) == 4


@warm_test
def many_that_are_made_at_once_are_all_warm_if_announced(w: World):
    base = announce(w, 3)
    wait_for(lambda: daemon(w)["spares"] == 3)
    assert clone(w, "-n", "c", "--count", "3", "--from", base)[1] == 3


@warm_test
def as_many_as_were_made_at_once_are_ready_for_the_next_time(w: World):
    w.ok("clone", "-n", "c", "--count", "4")
    wait_for(lambda: daemon(w)["spares"] == 4)
    base = w.ok("status", "--json", "c-1").json("snap.status/1")["base"]
    assert clone(w, "-n", "d", "--count", "4", "--from", base)[1] == 4, "nobody announced them"


@warm_test
def what_is_announced_of_another_state_takes_the_place(w: World):
    announce(w, 2)
    wait_for(lambda: daemon(w)["spares"] == 2)
    (w.project / "README.md").write_text("later\n")
    base = announce(w, 3)
    wait_for(lambda: daemon(w)["spares"] == 3)
    path, taken = clone(w, "-n", "c", "--from", base)
    assert taken == 1 and (path / "README.md").read_text() == "later\n"
    w.snap("experiment", "announce", "0").fails(2, "no number of arms")
    w.snap("experiment", "announce", "2", "--from", "nope").ends(4)
    w.ok("stop", "--force")
    assert not walkers(w) and not w.mounts()


@warm_test
def arms_that_wait_have_warm_clones(w: World):
    hold = "until [ -e stop ]; do sleep 0.05; done; rm stop"
    w.ok("experiment", "-n", "x", "-d", "--arm", f"first={hold}", *[
        word for i in range(4) for word in ("--arm", f"a{i}=true")], "--jobs", "1", "--check", "true")
    wait_for(lambda: daemon(w)["spares"] == 4)
    before = daemon(w)["spares_taken"]
    w.ok("run", "--no-snapshot", "x-first", "--", "touch", "stop")
    w.ok("experiment", "wait", "x")
    # The judges of arms that changed nothing start from the same state, and may have one, too.
    assert daemon(w)["spares_taken"] - before >= 4, "the third arm begins as the first does"


@warm_test
def a_gc_frees_what_several_of_them_hold(w: World):
    first, _ = clone(w, "-n", "first")
    (first / "large").write_bytes(os.urandom(1 << 20))
    announce(w, 3, "--from", "first")
    wait_for(lambda: daemon(w)["spares"] == 3)
    w.ok("rm", "first")
    got = w.ok("gc", "--json").json("snap.gc/1")
    assert got["freed"] >= 1 << 20 and daemon(w)["spares"] == 0, got
    w.ok("check")


# --- of what --------------------------------------------------------------------------------

@warm_test
def one_of_an_older_state_is_not_given(w: World):
    w.ok("clone", "-n", "first")
    ready(w)
    (w.project / "README.md").write_text("second\n")
    path, taken = clone(w, "-n", "second")
    assert taken == 0 and (path / "README.md").read_text() == "second\n"
    ready(w)
    path, taken = clone(w, "-n", "third")
    assert taken == 1 and (path / "README.md").read_text() == "second\n"
    ready(w)
    path, taken = clone(w, "-n", "fourth", "--from", "@-1")
    assert taken == 0 and (path / "README.md").read_text() == "first\n"


@warm_test
def a_snapshot_of_the_project_renews_it(w: World):
    w.take()
    assert daemon(w)["spare"] == "none", "nobody clones here"
    w.ok("clone", "-n", "first")
    ready(w)
    (w.project / "README.md").write_text("second\n")
    w.take()
    ready(w)
    path, taken = clone(w, "--from", "@")
    assert taken == 1 and (path / "README.md").read_text() == "second\n"


@warm_test
def a_clone_of_a_clone_has_one_too(w: World):
    first, _ = clone(w, "-n", "first")
    (first / "README.md").write_text("in the first\n")
    clone(w, "-n", "second", "--from", "first")
    ready(w)
    path, taken = clone(w, "-n", "third", "--from", "first")
    assert taken == 1 and (path / "README.md").read_text() == "in the first\n"


# --- gone -----------------------------------------------------------------------------------

@warm_test
def stop_leaves_neither_process_nor_mount(w: World):
    fill(w)
    w.ok("clone", "-n", "first")
    ready(w)
    w.ok("umount", "first")
    assert len(w.daemons()) == 1
    w.ok("stop")
    assert processes_on(w) == [] and w.mounts() == []
    with stopped_walkers(w):
        w.ok("clone", "-n", "second")
        stopped_walker(w)
    w.ok("stop")
    assert processes_on(w) == []
    assert w.ok("start").err == b"", "that was no crash"


@warm_test
def it_does_not_keep_the_daemon(w: World):
    env = {"SNAPCOW_IDLE_S": "3"}
    w.ok("clone", "-n", "first", env=env)
    w.ok("umount", "first", env=env)
    ready(w)
    pid = w.daemons()[0]
    assert gone(pid, 20)
    assert processes_on(w) == [] and w.ok("start").err == b""


@warm_test
def a_daemon_that_is_killed_leaves_nothing_of_it(w: World):
    fill(w)
    with stopped_walkers(w):
        w.ok("clone", "-n", "first")
        w.ok("umount", "first")
        walker, pid = stopped_walker(w), w.daemons()[0]
    os.kill(pid, signal.SIGKILL)
    assert gone(pid, 20)
    os.kill(walker, signal.SIGCONT)
    assert gone(walker, 20)
    assert processes_on(w) == [] and w.mounts() == []
    assert b"ended unexpectedly" in w.ok("list").err
    w.ok("check")


@warm_test
def what_a_killed_daemon_left_mounted_is_taken_away(w: World):
    announce(w, 3)
    wait_for(lambda: daemon(w)["spares"] == 3)
    w.kill_daemon()
    left = w.mounts()
    assert len(left) == (3 if livetest.USER else 0) and left == aside(w), left
    assert b"ended unexpectedly" in w.ok("list").err
    assert w.mounts() == [] and list((w.store / "run").glob("warm/*")) == []


@warm_test
def a_walker_that_is_killed_does_no_harm(w: World):
    fill(w)
    with stopped_walkers(w):
        w.ok("clone", "-n", "first")
        pid = stopped_walker(w)
    os.kill(pid, signal.SIGKILL)
    ready(w)
    path, taken = clone(w)
    assert taken == 1 and tree(path) == tree(w.project)


@warm_test
def nobody_starts_a_walker_by_its_name(w: World):
    done = subprocess.run(["cowfsd-walk"], executable=SNAP, env=w.env, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 2 and b"error: " in done.stderr, done


@warm_test
def nothing_of_it_leaks(w: World):
    w.ok("start", env=leak_checks(4, 1)[0])  # a daemon and its walkers, in one of four runs
    w.ok("clone", "-n", "first")
    ready(w)
    w.ok("clone", "-n", "second")
    ready(w)
    w.ok("stop")  # what the daemon lost shows in its log


# --- beside others --------------------------------------------------------------------------

@warm_test
def a_gc_leaves_it_whole_while_its_snapshot_is_there(w: World):
    fill(w)
    w.ok("clone", "-n", "first")
    ready(w)
    w.ok("rm", "first")
    w.ok("gc")
    assert daemon(w)["spare"] in ("ready", "warm")
    path, taken = clone(w)
    assert taken == 1 and tree(path) == tree(w.project)
    w.ok("check")


@warm_test
def a_gc_frees_what_only_a_warm_clone_holds(w: World):
    first, _ = clone(w, "-n", "first")
    (first / "large").write_bytes(os.urandom(1 << 20))
    w.ok("clone", "-n", "second", "--from", "first")
    ready(w)
    w.ok("rm", "second")
    w.ok("rm", "first")
    got = w.ok("gc", "--json").json("snap.gc/1")
    assert got["freed"] >= 1 << 20, got
    assert daemon(w)["spare"] == "none"
    w.ok("check")


def nobody_without_namespaces():
    """For a process that is about to begin: an ordinary user whom unshare(2) is refused, as some systems do it."""
    number = {"x86_64": 272, "aarch64": 97}[os.uname().machine]
    code = b"".join(struct.pack("HBBI", *one) for one in (
        (0x20, 0, 0, 0),             # the number of the call
        (0x15, 0, 1, number),        # is it this one?
        (0x06, 0, 0, 0x50000 | 1),   # EPERM
        (0x06, 0, 0, 0x7fff0000)))   # any other may go on
    room = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxQ", 4, ctypes.addressof(room))
    assert ctypes.CDLL(None).prctl(22, 2, program) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


@warm_test
def an_ordinary_user_without_namespaces_has_none_and_does_not_miss_it(w: World):
    if os.geteuid() != 0 or livetest.INSIDE not in os.environ:
        raise Skip("it takes root to be another user")
    livetest.open_fuse_for_all()
    program, home = w.top / "snapcow", w.home
    program.write_bytes(SNAP.read_bytes())
    program.chmod(0o755)
    w.top.chmod(0o755)
    for path in (w.project, *w.project.rglob("*"), home):
        os.chown(path, NOBODY, NOBODY)
    who = {"program": program, "preexec_fn": nobody_without_namespaces, "env": {"SNAPCOW_STORE": str(home / "store")}}
    result = w.snap("clone", "-n", "first", **who)
    if result.status != 0:
        raise Skip(f"no clone for ordinary users: {result.err}")
    waiting = home / "store" / "run" / "warm"
    wait_for(lambda: waiting.exists() and list(waiting.iterdir()) == [])  # it was tried
    w.ok("experiment", "announce", "2", **who)
    w.ok("clone", "-n", "second", **who)
    got = w.ok("version", "--json", **who).json("snap.version/1")["daemon"]
    assert got["spare"] == "none" and got["spares_taken"] == 0, got
    assert [m for m in w.mounts() if "/warm/" in m] == []
    w.ok("stop", **who)
    assert "warn" not in (home / "store" / "cowfsd.log").read_text()


@warm_test
def what_somebody_unmounts_before_it_is_taken_is_replaced(w: World):
    if not livetest.USER:
        raise Skip("that of root is nowhere")
    w.ok("clone", "-n", "first")
    ready(w)
    (waiting,) = aside(w)
    subprocess.run(["fusermount3", "-uz", waiting], check=True)
    path, _ = clone(w, "-n", "second")
    assert tree(path) == tree(w.project)
    ready(w)
    path, taken = clone(w, "-n", "third")
    assert taken == 1 and tree(path) == tree(w.project)


def helper_that_may_refuse(w):
    """A fusermount3 for the daemon that unmounts nothing while the file exists, as one without its rights does."""
    if not livetest.USER:
        raise Skip("root unmounts by itself")
    refuse, helper = w.top / "refuse", w.top / "bin" / "fusermount3"
    helper.parent.mkdir()
    helper.write_text(f"""#!/bin/sh
case "$1" in -u*) if [ -e '{refuse}' ]; then echo 'not now' >&2; exit 1; fi;; esac
exec '{shutil.which("fusermount3")}' "$@"
""")
    helper.chmod(0o755)
    w.env["PATH"] = f"{helper.parent}:{w.env['PATH']}"
    return refuse


def renewed(w, text):
    """Another state of the project, for which cowfsd gives up the warm clone that waits; where the new one is."""
    before = aside(w)
    (w.project / "README.md").write_text(text)
    w.take()
    wait_for(lambda: [m for m in aside(w) if m not in before and not m.endswith(".new")])
    ready(w)
    return next(m for m in aside(w) if m not in before)


@warm_test
def one_that_could_not_be_unmounted_is_unmounted_with_the_next_or_at_the_end(w: World):
    refuse = helper_that_may_refuse(w)
    w.ok("clone", "-n", "first")
    ready(w)
    (first,) = aside(w)
    refuse.touch()
    second = renewed(w, "second\n")
    assert aside(w) == [first, second] and "not now" in log(w), log(w)
    refuse.unlink()
    third = renewed(w, "third\n")
    assert aside(w) == [third], log(w)
    refuse.touch()
    fourth = renewed(w, "fourth\n")
    assert aside(w) == [third, fourth], log(w)
    refuse.unlink()
    w.ok("stop", "--force")
    assert w.mounts() == [] and list((w.store / "run").glob("warm/*")) == []


# --- movers: how those of ordinary users get to their places --------------------------------

def next_mover(w, does=None):
    """What the next one does: "stop", or the code that it ends with. Without `does`, those that follow may fail."""
    if not livetest.USER:
        raise Skip("that of root is attached without one")
    fault = w.top / "mover-fault"
    preload(w, MOVER_FAULT=str(fault))
    if does:
        fault.write_text(str(does))
    return fault


def log(w):
    return (w.store / "cowfsd.log").read_text()


@warm_test
def a_mover_that_is_stopped_holds_a_clone_up_for_seconds_only(w: World):
    next_mover(w)
    w.ok("clone", "-n", "first")
    ready(w)
    next_mover(w, "stop")
    path, taken = clone(w, "-n", "second", timeout=60)
    assert taken == 1 and "clone 'second' cannot use the warm clone: moving the mount" in log(w), log(w)
    assert tree(path) == tree(w.project)
    # That of the next warm clone may be at work; one that has stopped would stay.
    wait_for(lambda: w.daemons(b"cowfsd-move") == [])
    (path / "new").write_text("mine")
    ready(w)
    path, taken = clone(w, "-n", "third")
    assert taken == 1 and tree(path) == tree(w.project) and log(w).count("cannot use") == 1, log(w)
    w.ok("rm", "second", "third")


@warm_test
def a_warm_clone_whose_mover_failed_or_stopped_is_made_at_the_next_chance(w: World):
    for does in (errno.EAGAIN, "stop"):
        fault = next_mover(w, does)
        w.ok("clone")
        wait_for(lambda: not fault.exists())
        wait_for(lambda: not any((w.store / "run" / "warm").iterdir()))
        assert daemon(w)["spare"] == "none", "none is tried again by itself"
        w.ok("clone")
        ready(w)
        assert clone(w)[1] == 1
        w.ok("stop", "--force")
    assert "warn" not in log(w), log(w)


@test
def a_walker_whose_daemon_died_before_it_began_waits_for_nobody(w: World):
    """It lets others go first, here such as never stop; but not for somebody who is gone."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    others = [subprocess.Popen(["sh", "-c", "while :; do :; done"])
              for _ in range(os.cpu_count() + 2)]
    try:
        walker = subprocess.Popen(["cowfsd-walk", str(w.store), str(dead.pid)], executable=SNAP, env=w.env,
                                  close_fds=False, stderr=subprocess.DEVNULL,
                                  preexec_fn=lambda: os.dup2(os.open(w.project, os.O_RDONLY), 3))
        try:
            walker.wait(timeout=60)
        finally:
            walker.kill()
            walker.wait()
    finally:
        for other in others:
            other.kill()
            other.wait()


if __name__ == "__main__":
    sys.exit(livetest.main())

"""How warm clones are walked: a bounded number at once, behind everybody else."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys

from snaptest import SNAP, Skip, World, gone, main, test
from warmtest import announce, clone, daemon, fill, ready, state, stopped_walkers, tree, wait_for, walkers, warm_test

AT_ONCE = 2 if len(os.sched_getaffinity(0)) > 1 else 1


def stopped(w):
    """Those that walk, all of which have stopped."""
    return [pid for pid in walkers(w) if state(pid) in ("T", "t")]


def let_walk(w, until, at_most):
    """Let those that stop go on, one at a time, until so many are ready."""
    most = 0
    while daemon(w)["spares"] < until:
        now = daemon(w)["spares"]
        wait_for(lambda: len(stopped(w)) > 0 or daemon(w)["spares"] > now)
        most = max(most, len(walkers(w)))
        assert most <= at_most, f"{most} walk at once"
        for pid in stopped(w)[:1]:
            os.kill(pid, signal.SIGCONT)
            assert gone(pid, 20)
    return most


@warm_test
def of_several_that_are_announced_two_are_walked_at_once_and_never_more(w: World):
    fill(w)
    with stopped_walkers(w):
        announce(w, 5)
        wait_for(lambda: len(stopped(w)) == AT_ONCE)
        assert daemon(w)["spares"] == 0, daemon(w)
        assert let_walk(w, until=5, at_most=AT_ONCE) == AT_ONCE


@warm_test
def what_nobody_announced_is_walked_one_at_a_time(w: World):
    fill(w)
    with stopped_walkers(w):
        w.ok("clone", "-n", "c", "--count", "3")
        wait_for(lambda: len(stopped(w)) == 1)
        with contextlib.suppress(AssertionError):  # cowfsd has nothing else to do now, and makes no other
            wait_for(lambda: len(walkers(w)) > 1, seconds=1.5)
        assert let_walk(w, until=3, at_most=1) == 1


@contextlib.contextmanager
def at_work(path):
    """Somebody makes and removes a directory, again and again."""
    script = "import os\nwhile True:\n os.mkdir('busy')\n os.rmdir('busy')"
    worker = subprocess.Popen([sys.executable, "-c", script], cwd=path)
    try:
        yield
    finally:
        worker.kill()
        worker.wait()


@warm_test
def beside_somebody_at_work_in_a_clone_there_is_one_walker(w: World):
    if AT_ONCE < 2:
        raise Skip("with one processor there is one anyway")
    fill(w)
    path, _ = clone(w, "-n", "c")
    ready(w)
    (w.project / "README.md").write_text("another state\n")
    with stopped_walkers(w):
        with at_work(path):
            wait_for(lambda: (path / "busy").exists())
            announce(w, 4)
            wait_for(lambda: len(stopped(w)) == 1)
            with contextlib.suppress(AssertionError):
                wait_for(lambda: len(walkers(w)) > 1, seconds=1.5)
            assert len(walkers(w)) == 1
        wait_for(lambda: len(stopped(w)) == AT_ONCE)
        let_walk(w, until=4, at_most=AT_ONCE)


@warm_test
def nobody_walks_while_clones_are_being_taken_unless_somebody_waits_for_it(w: World):
    fill(w)
    with stopped_walkers(w):
        base = announce(w, 3)
        wait_for(lambda: len(stopped(w)) == AT_ONCE)
        before = set(walkers(w))
        # It waits for the walk, but not for ever; then it takes a cold one.
        path, taken = clone(w, "-n", "first", "--from", base)
        assert taken == 1
        for pid in before:
            assert gone(pid, 20), "it would slow down whoever took one"
        # Whoever comes next has one walked through, and takes it then.
        second = subprocess.Popen([SNAP, "clone", "-n", "second", "--from", base], env=w.env, cwd=w.project,
                                  stdout=subprocess.DEVNULL)
        wait_for(lambda: len(stopped(w)) == AT_ONCE)
        assert second.poll() is None, "it did not wait"
        os.kill(stopped(w)[0], signal.SIGCONT)
        assert second.wait(60) == 0
        path2 = w.store / "clones" / "second"
    assert tree(path) == tree(w.project) and tree(path2) == tree(w.project)


@warm_test
def another_state_ends_the_walks_of_the_one_before(w: World):
    fill(w)
    with stopped_walkers(w):
        announce(w, 4)
        wait_for(lambda: len(stopped(w)) == AT_ONCE)
        before = walkers(w)
        (w.project / "README.md").write_text("later\n")
        base = announce(w, 2)
        for pid in before:
            assert gone(pid, 20)
        let_walk(w, until=2, at_most=AT_ONCE)
    path, taken = clone(w, "-n", "c", "--from", base)
    assert taken == 1 and (path / "README.md").read_text() == "later\n"


@warm_test
def stop_ends_all_walkers(w: World):
    fill(w)
    with stopped_walkers(w):
        announce(w, 4)
        wait_for(lambda: len(stopped(w)) == AT_ONCE)
        before = walkers(w)
    w.ok("stop")
    assert not walkers(w) and not w.daemons() and all(gone(pid, 20) for pid in before)


@test
def a_walker_lets_everybody_go_first(w: World):
    """Before it reads a name it takes the lowest priority there is."""
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    (w.top / "bin").mkdir()
    (w.top / "bin" / "cowfsd-walk").symlink_to(SNAP)
    seen = w.top / "seen"
    subprocess.run(["strace", "-qq", "-o", seen, "-e", "trace=setpriority,getdents64", "sh", "-c",
                    'exec 3< "$0"; exec cowfsd-walk', w.project],
                   env={**w.env, "PATH": f"{w.top / 'bin'}:{os.environ['PATH']}"}, check=True, timeout=60)
    lines = [line.split("(")[0] + line.split("(")[1][:20] for line in seen.read_text().splitlines() if "(" in line]
    assert lines and lines[0] == "setpriorityPRIO_PROCESS, 0, 20)", lines[:3]
    assert any(line.startswith("getdents64") for line in lines), lines


if __name__ == "__main__":
    sys.exit(main())

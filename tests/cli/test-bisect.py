"""bisect: the first bad snapshot or commit, several clones at once."""

import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import LONG, live_test  # noqa: E402
from snaptest import SNAP, Skip, needs_fuse, until  # noqa: E402


def ready(w):
    needs_fuse()
    if w.snap("run", "--", "true").status == 125:
        raise Skip("no sandbox can be set up here")


def snapshots(w, n, culprit):
    """n snapshots; from `culprit` on, counted from 0, the file says bad.  Their ids."""
    ids = []
    for i in range(n):
        (w.project / "state").write_text(f"{'bad' if i >= culprit else 'good'} {i}\n")
        ids.append(w.take("-m", f"number {i}"))
    return ids


def bisect(w, *args, status=0):
    return w.snap("bisect", "--json", *args).json("snap.bisect/1", "first_bad", "tried",
                                                  status=status)


def most_steps(states, jobs):
    """What k runs at once need for the n - 1 states that may be the first bad one."""
    return max(0, math.ceil(round(math.log(states - 1, jobs + 1), 9)))


def nothing_is_left(w):
    assert w.ok("-q", "list").out == b"", "clones are left"
    assert w.ok("-q", "ps").out == b"", "runs are left"


CHECK = ("--", "grep", "-q", "good", "state")


def from_on(culprit):
    """A command that takes all from there on for bad, whatever the file says."""
    return ("--", "sh", "-c", f"read word n < state; test $n -lt {culprit}")


@live_test
def the_culprit_is_found_in_as_many_steps_as_the_split_allows(w):
    ready(w)
    n = 1000 if LONG else 60
    ids = snapshots(w, n, n)
    for culprit, jobs in ((n // 3, 3), (n - 1, 3), (1, 2), (n - 1, 5)):
        got = bisect(w, ids[0], ids[-1], "-j", str(jobs), *from_on(culprit))
        assert got["first_bad"] == ids[culprit] and got["title"] == f"number {culprit}", got
        assert got["last_good"] == ids[culprit - 1] and got["states"] == n, got
        assert got["steps"] <= most_steps(n, jobs), (got["steps"], most_steps(n, jobs))
        assert all((t["verdict"] == "good") == (ids.index(t["state"]) < culprit) for t in got["tried"])
        print(f"# {n} snapshots, culprit {culprit}, {jobs} at once: {got['steps']} steps, "
              f"{got['runs']} runs, {got['elapsed_ms']} ms")
    nothing_is_left(w)


@live_test
def every_place_of_the_culprit_is_found(w):
    ready(w)
    n = 12 if LONG else 4
    ids = snapshots(w, n, n)
    assert bisect(w, ids[2], ids[3], *from_on(3))["steps"] == 0
    for last in range(2, n):
        for culprit in range(1, last + 1):
            for jobs in (1, 2, 4) if LONG else (2,):
                got = bisect(w, ids[0], ids[last], "-j", str(jobs), *from_on(culprit))
                assert got["first_bad"] == ids[culprit], (culprit, last, got)
                assert got["steps"] <= most_steps(last + 1, jobs), (culprit, last, got)


@live_test
def commits_are_checked_out_in_clones_and_the_project_stays(w):
    ready(w)
    n, culprit = (500, 333) if LONG else (40, 26)

    def git(*args):
        return subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *args], check=True,
                              cwd=w.project, stdout=subprocess.PIPE, env=w.env).stdout.decode().strip()
    git("init", "-q")
    commits = []
    for i in range(n):
        (w.project / "state").write_text(f"{'bad' if i >= culprit else 'good'} {i}\n")
        git("add", "state")
        git("commit", "-qm", f"commit {i}")
        commits.append(git("rev-parse", "HEAD"))
    (w.project / "state").write_text("mine, not committed\n")
    (w.project / "ignored").write_text("x")
    head = git("symbolic-ref", "HEAD")
    got = bisect(w, f"HEAD~{n - 1}", "HEAD", "-j", "3", "--", "sh", "-c",
                 "test -e ignored && grep -q good state")
    assert got["of"] == "commits" and got["first_bad"] == commits[culprit], got
    assert got["title"] == f"commit {culprit}" and got["states"] == n, got
    assert got["steps"] <= most_steps(n, 3), got
    assert git("symbolic-ref", "HEAD") == head and git("rev-parse", "HEAD") == commits[-1]
    assert (w.project / "state").read_text() == "mine, not committed\n"
    print(f"# {n} commits, 3 at once: {got['steps']} steps, {got['runs']} runs, {got['elapsed_ms']} ms")
    said = w.ok("bisect", "HEAD~3", "HEAD", "--", "false").err.decode()
    assert f"the good end {commits[-4][:8]} is probably not good: the command failed " in said, said
    hint, = re.findall("^hint: snapcow (.*) false$", said, re.M)
    w.ok(*shlex.split(hint), "grep", "-qx", f"bad {n - 4}", "state")
    assert git("rev-parse", "HEAD") == commits[-1]
    w.snap("bisect", "--git", "HEAD", "HEAD~3", *CHECK).fails(2, "ancestor")
    w.snap("bisect", "--git", "none", "HEAD", *CHECK).fails(4, "no commit")
    w.snap("bisect", "none", "HEAD", *CHECK).fails(4, "'none'")
    nothing_is_left(w)


@live_test
def exit_125_skips_and_what_cannot_be_told_is_said(w):
    ready(w)
    ids = snapshots(w, 9, 5)
    check = ("--", "sh", "-c", "read word n < state; case $n in 4) exit 125;; esac; test $word = good")
    got = bisect(w, ids[0], ids[-1], "-j1", *check, status=1)
    # 3 is good, 5 is bad, and nobody knows about 4.
    assert got["candidates"] == [ids[4], ids[5]] and got["first_bad"] is None, got
    check = ("--", "sh", "-c", "read word n < state; case $n in 2|7) exit 125;; esac; test $word = good")
    got = bisect(w, ids[0], ids[-1], "-j3", *check)
    assert got["first_bad"] == ids[5], got


@live_test
def a_log_is_taken_over_and_refused_where_it_is_of_something_else(w):
    ready(w)
    ids = snapshots(w, 20, 11)
    log = w.top / "bisect.log"
    first = bisect(w, ids[0], ids[-1], "-j1", "--log", str(log), *CHECK)
    lines = log.read_text().splitlines()
    assert lines[0].startswith(f"# snap bisect {ids[0]} {ids[-1]} ") and len(lines) == first["runs"] + 1
    # As a crash would leave it: without the last verdict, and half a line.
    log.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:7])
    again = bisect(w, ids[0], ids[-1], "-j1", "--log", str(log), *CHECK)
    assert again["runs"] == 1 and again["first_bad"] == first["first_bad"] == ids[11], again
    assert log.read_text().splitlines() == lines
    w.snap("bisect", ids[1], ids[-1], "--log", str(log), *CHECK).fails(2, "not the log")
    # A verdict that fits no other: the first bad one counts, and it is said.
    strange = w.top / "strange.log"
    strange.write_text(lines[0] + f"\nbad {ids[2]}\ngood {ids[5]}\n")
    got = bisect(w, ids[0], ids[-1], "--log", str(strange), *CHECK)
    assert got["unsteady"] and got["first_bad"] == ids[2] and got["runs"] == 1, got
    w.snap("bisect", ids[0], ids[-1], "--log", str(log), "--", "true").fails(2, "not the log")
    assert log.read_text().splitlines() == lines


@live_test
def a_search_that_was_killed_goes_on(w):
    ready(w)
    ids = snapshots(w, 20, 11)
    log = w.top / "log"
    running = subprocess.Popen([SNAP, "bisect", ids[0], ids[-1], "-j1", "--log", str(log), *CHECK],
                               cwd=w.project, env=w.env, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    until(lambda: log.exists() and log.read_text().count("\n") >= 2)
    running.kill()
    running.wait()
    tried = log.read_text().count("\n") - 1
    got = bisect(w, ids[0], ids[-1], "-j1", "--log", str(log), *CHECK)
    assert got["first_bad"] == ids[11] and tried >= 1 and len(got["tried"]) == tried + got["runs"], got
    # A run that was under way ends by itself, and takes its clone along.
    until(lambda: not w.ok("-q", "ps").out and not w.ok("-q", "list").out)


@live_test
def a_run_whose_daemon_died_says_nothing_and_is_made_again(w):
    ready(w)
    ids = snapshots(w, 7, 6)
    running = subprocess.Popen([SNAP, "bisect", "--json", ids[0], ids[-1], "-j2", "--", "sh", "-c",
                                "sleep 1; grep -q good state"], cwd=w.project, env=w.env, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    until(lambda: w.ok("-q", "ps").out.count(b"\n") == 2)
    w.kill_daemon(keeper=False)
    out, err = running.communicate(timeout=120)
    assert running.returncode == 0 and b"made again" in err, (out, err)
    assert json.loads(out)["first_bad"] == ids[-1], out
    until(lambda: not w.ok("-q", "ps").out and not w.ok("-q", "list").out)


@live_test
def needless_and_interrupted_runs_are_cancelled(w):
    ready(w)
    ids = snapshots(w, 8, 1)
    # The first bad one is found at once; the others would sleep for ten minutes.
    slow = ("--", "sh", "-c", "read word n < state; test $n -le 2 || sleep 600; test $word = good")
    got = bisect(w, ids[0], ids[-1], "-j3", *slow)
    assert got["first_bad"] == ids[1], got
    nothing_is_left(w)
    log = w.top / "log"
    running = subprocess.Popen([SNAP, "bisect", ids[0], ids[-1], "-j3", "--log", str(log), "--",
                                "sleep", "600"], cwd=w.project, env=w.env, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    until(lambda: w.ok("-q", "ps").out.count(b"\n") == 3)
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 130
    nothing_is_left(w)


@live_test
def a_reader_that_goes_leaves_no_run(w):
    """As `| head -1` does."""
    ready(w)
    ids = snapshots(w, 8, 1)
    out, into = os.pipe()
    script = "read word n < state; test $n -gt 3 && exec sleep 600; until [ -e go ]; do sleep 0.05; done"
    running = subprocess.Popen([SNAP, "bisect", ids[0], ids[-1], "-j2", "--", "sh", "-c", script], cwd=w.project,
                               env=w.env, stdout=into, stderr=into)
    os.close(into)
    until(lambda: w.ok("-q", "ps").out.count(b"\n") == 2)
    os.close(out)
    for clone in (w.store / "clones").glob("run-*"):
        (clone / "go").touch()  # one of the two has a verdict, which nobody reads
    assert running.wait(60) == 141
    nothing_is_left(w)


@live_test
def an_end_that_may_be_wrong_is_doubted(w):
    """Nothing but the word of the caller says that the last one is bad, or the first one good."""
    ready(w)
    ids = snapshots(w, 4, 2)
    for command, end, word in (("true", ids[-1], "bad"), ("false", ids[0], "good")):
        got = w.ok("bisect", "--time", "1m", "-e", "A=b c", ids[0], ids[-1], "--", command)
        said = got.err.decode()
        assert f"the {word} end {end[:8]} is probably not {word}: the command " in said, got
        make, run = re.findall("^hint: snapcow (.*)$", said, re.M)
        assert run == f"run --time 60000ms --env 'A=b c' end-{end[:8]} -- {command}", run
        for words in (make, run):
            done = w.snap(*shlex.split(words))
        assert done.status == (0 if command == "true" else 1), done
    got = w.ok("bisect", ids[0], ids[-1], *CHECK)
    assert b"probably not" not in got.err, got


@live_test
def people_get_a_log_of_what_was_tried_and_the_difference(w):
    ready(w)
    ids = snapshots(w, 5, 3)
    result = w.ok("bisect", ids[0], ids[-1], "-j1", *CHECK)
    text, log = result.out.decode(), result.err.decode()
    assert "3 snapshots between good and bad" in log and "step 2  bad   exit 1" in log, log
    assert "first bad: " + ids[3][:8] in text, text
    assert "state | 2 +-" in text, text
    assert w.ok("-q", "bisect", ids[0], ids[-1], *CHECK).out.decode() == ids[3] + "\n"
    w.snap("bisect", ids[3], ids[0], *CHECK).fails(2, "must be older")
    w.snap("bisect", ids[0], ids[0], *CHECK).fails(2)
    w.snap("bisect", ids[0], ids[1]).fails(2, "command")
    w.snap("-q", "bisect", ids[0], ids[-1], "--", "/no/such/program").fails(1, "/no/such/program")
    for tag in ("is-good", "is-bad"):
        (w.project / "state").write_text(f"{tag[3:]} 1\n")
        w.take("-t", tag)
    assert b"  is-bad\n" in w.ok("bisect", "is-good", "is-bad", *CHECK).out, "without a message the tag says which"
    nothing_is_left(w)


if __name__ == "__main__":
    sys.exit(livetest.main())

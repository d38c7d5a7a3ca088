"""Runs that go on by themselves: started, waited for, followed, cancelled, from any process."""

import fcntl
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import Skip, live_test  # noqa: E402
from runtest import alive, cgroups, clone, clones, line_of, maker, sh, start, until  # noqa: E402
from snaptest import SNAP, gone, stop_process  # noqa: E402

LAST = "until [ -e stop ]; do sleep 0.02; done"


def detach(w, script, *args, **more):
    """Its id."""
    got = w.ok("run", "--json", "--detach", *args, "--", "sh", "-c", script, **more)
    got = got.json("snap.run/1", "run", "state", "exit_code", "detached")
    assert got["detached"], got
    return got["run"]


def wait(w, *args, status=0):
    return w.snap("wait", "--json", *args).json("snap.wait/1", "runs", "complete", status=status)


def record(w, run):
    return next(r for r in w.ok("runs", "--json", "--all").json("snap.runs/1")["runs"]
                if r["run"] == run)


def popen(w, *args, **more):
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL,
            "cwd": w.project, "env": w.env, **more}
    return subprocess.Popen([SNAP, *args], bufsize=0, **more)


class Supervisor:
    """The process that holds a run; it has the look of what a foreground run's maker is."""

    def __init__(self, w, run):
        self.pid = record_of_ps(w, run)["pid"]


def record_of_ps(w, run):
    return next(r for r in w.ok("ps", "--json").json("snap.ps/1")["runs"] if r["run"] == run)


@live_test
def a_detached_run_goes_on_and_is_waited_for(w):
    clone(w)
    run = detach(w, f"echo out; echo err >&2; {LAST}; exit 3", "try")
    shown = record_of_ps(w, run)
    assert shown["state"] == "running" and shown["detached"] and shown["exit_code"] is None, shown
    assert b"(detached)" in w.ok("ps").out
    assert os.getsid(shown["pid"]) != os.getsid(0), "it is in a session of its own"
    waiter = popen(w, "wait", "--json", run[:8])
    assert wait(w, run, "--timeout", "0s", status=124) == {
        "schema": "snap.wait/1", "complete": False,
        "runs": [{"run": run, "state": "running", "exit_code": None, "problem": None}]}
    sh(w, "touch stop", "try")
    out, err = waiter.communicate(timeout=60)
    assert waiter.returncode == 3, err
    assert json.loads(out)["runs"][0] == {"run": run, "state": "ended", "exit_code": 3,
                                          "problem": None}
    got = record(w, run)
    assert got["exit_code"] == 3 and got["detached"] and got["changed"]["added"] == 1, got
    assert w.ok("logs", run).out == b"out\nerr\n"
    assert w.ok("ps", "--json").json("snap.ps/1")["runs"] == []


@live_test
def a_detached_run_is_held_by_the_same_limits(w):
    run = detach(w, "sleep 600", "--time", "300ms")
    assert wait(w, run, status=124)["runs"][0]["exit_code"] == 124
    got = record(w, run)
    assert got["timed_out"] and got["limit"] == "time", got
    assert clones(w) == [], "its throw-away clone is gone"


@live_test
def what_cannot_run_is_said_at_once(w):
    w.take()
    w.snap("run", "--detach", "nope", "--", "true").fails(125, "'nope'")
    w.snap("run", "--detach", "--tty", "--", "true").fails(2, "--tty")
    error = w.snap("run", "--json", "--detach", "--ro", "/no/such/path", "--", "true")
    assert error.status != 0 and json.loads(error.out)["schema"] == "snap.error/1", str(error)
    # What the sandbox does not know before, its record tells.
    run = w.ok("-q", "run", "--detach", "--", "/no/such/program").out.decode().strip()
    assert wait(w, run, status=127)["runs"][0]["exit_code"] == 127


@live_test
def it_holds_nothing_of_who_started_it(w):
    """Whoever reads until the end of the output is not kept waiting by a run that goes on."""
    read, write = os.pipe()
    os.set_inheritable(write, True)
    result = w.ok("-q", "run", "--detach", "--", "sleep", "600", close_fds=False)
    os.close(write)
    ready, _, _ = select.select([read], [], [], 20)
    assert ready and os.read(read, 1) == b"", "a descriptor of the starter's is held"
    os.close(read)
    run = result.out.decode().strip()
    assert os.readlink(f"/proc/{record_of_ps(w, run)['pid']}/cwd") == "/"
    w.ok("cancel", run)


@live_test
def it_survives_its_terminal(w):
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(w.project)
        os.execve(SNAP, [str(SNAP), "-q", "run", "--detach", "--", "sleep", "600"], w.env)
    assert os.waitpid(pid, 0)[1] == 0
    text = b""
    while not text.endswith(b"\n"):
        text += os.read(terminal, 100)
    os.close(terminal)  # and everybody who has it gets SIGHUP
    run = text.decode().split()[-1]
    assert record_of_ps(w, run)["state"] == "running"
    w.ok("cancel", run)


@live_test
def who_leaves_before_it_began_leaves_nothing(w):
    for i in range(400):
        (w.project / f"file{i}").write_bytes(os.urandom(20000))
    late = []
    for delay in (None, 0.03, 0.02, 0.01, 0):
        process = popen(w, "run", "--detach", "--", "sleep", "600")
        if delay is None:
            until(lambda: w.daemons())
        else:
            time.sleep(delay)
        process.kill()
        process.communicate(timeout=60)
        # Nobody can tell when a supervisor would have begun; the next run is after it.
        sh(w, "true")
        late = [r["run"] for r in w.ok("runs", "--json").json("snap.runs/1")["runs"] if r["state"] == "running"]
        if not late:
            break
        w.ok("cancel", *late)  # so late was the kill; the next one comes sooner
    assert late == []
    until(lambda: [c for c in clones(w)] == [])


@live_test
def who_leaves_before_there_is_a_supervisor_has_none(w):
    """Whom a signal would tell of it is not there yet."""
    sh(w, "true")
    before = w.ok("events", "--json").out.count(b"run-started")
    process = subprocess.Popen(["strace", "-f", "-o", w.top / "trace", "-e", "trace=setsid", "-e",
                                "inject=setsid:delay_enter=2000000", SNAP, "run", "--detach", "--", "true"],
                               cwd=w.project, env=w.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def children(pid):
        return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    until(lambda: process.poll() is not None or [c for asker in children(process.pid) for c in children(asker)])
    if process.poll() is not None:
        raise Skip(f"strace cannot trace here: {process.communicate()[1][:200]!r}")
    os.kill(children(process.pid)[0], signal.SIGKILL)
    process.communicate(timeout=60)  # the supervisor is traced, too
    assert w.ok("events", "--json").out.count(b"run-started") == before


@live_test
def a_run_that_is_just_beginning_is_not_lost(w):
    """A reader looks for the lock of the record before it is there, and reads the record when it is."""
    run = detach(w, "true")
    wait(w, run)
    path = w.store / "runs" / "0123456789ab.json"
    path.write_text((w.store / "runs" / f"{run}.json").read_text().splitlines(keepends=True)[0])
    reader = subprocess.Popen(["strace", "-o", w.top / "trace", "-P", path, "-e", "trace=flock,read", "-e",
                               "inject=flock:delay_exit=1000000:when=1", "-e", "inject=read:delay_exit=1000000:when=1",
                               SNAP, "wait", "--json", "--timeout", "0s", path.stem], cwd=w.project, env=w.env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def is_locked(f):
        """Without trying: a lock of ours, however short, is one that the reader finds."""
        number = f":{os.fstat(f.fileno()).st_ino} "
        return any("FLOCK" in line and number in line for line in Path("/proc/locks").read_text().splitlines())

    with path.open() as f:
        until(lambda: reader.poll() is not None or is_locked(f))
        if reader.poll() is not None:
            raise Skip(f"strace cannot trace here: {reader.communicate()[1][:200]!r}")
        fcntl.flock(f, fcntl.LOCK_EX)  # as soon as the reader is through
        out, err = reader.communicate(timeout=60)
    assert json.loads(out)["runs"][0]["state"] == "running", (out, err, (w.top / "trace").read_text())


@live_test
def a_run_that_begins_and_ends_between_two_looks_is_not_lost(w):
    """Its lock is not there yet at the first look for it, and is gone at the second."""
    run = detach(w, "true")
    wait(w, run)
    path, trace = w.store / "runs" / "0123456789ab.json", w.top / "trace"
    began, ended = (w.store / "runs" / f"{run}.json").read_text().splitlines(keepends=True)
    path.write_text(began)
    reader = subprocess.Popen(["strace", "-o", trace, "-P", path, "-e", "trace=read,flock", "-e",
                               "inject=flock:delay_enter=2000000:when=2", SNAP, "wait", "--json", "--timeout", "0s",
                               path.stem], cwd=w.project, env=w.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: reader.poll() is not None or (trace.exists() and "read(" in trace.read_text()))
    if reader.poll() is not None:
        raise Skip(f"strace cannot trace here: {reader.communicate()[1][:200]!r}")
    time.sleep(0.2)  # it has read to the end
    path.write_text(began + ended)
    out, err = reader.communicate(timeout=60)
    assert json.loads(out)["runs"][0]["state"] == "ended", (out, err)


@live_test
def kill_of_the_supervisor_ends_all_of_it(w):
    marker = f"sleep 345678.{os.getpid()}"
    run = detach(w, f"setsid {marker} & {marker}")
    supervisor = Supervisor(w, run)
    made_by = maker(supervisor)
    until(lambda: alive(marker))
    waiter = popen(w, "wait", "--json", run)
    begun = time.monotonic()
    os.kill(supervisor.pid, signal.SIGKILL)
    out, err = waiter.communicate(timeout=60)
    assert waiter.returncode == 137 and json.loads(out)["runs"][0]["state"] == "lost", (out, err)
    until(lambda: not alive(marker), seconds=1)
    assert time.monotonic() - begun < 5, "who waits hears of it at once"
    until(lambda: clones(w) == [])
    w.ok("run", "--", "true")
    assert cgroups({made_by}) == []
    got = record(w, run)
    assert got["state"] == "lost" and "killed" in got["problem"], got


@live_test
def several_are_waited_for(w):
    clone(w)
    slow = detach(w, f"{LAST}; exit 5", "try")
    quick = detach(w, "exit 4")
    ok = detach(w, "true")
    got = wait(w, "--any", slow, quick, status=4)
    assert [r["state"] for r in got["runs"]] == ["running", "ended"] and got["complete"], got
    waiter = popen(w, "-q", "wait", ok, slow, quick)
    sh(w, "touch stop", "try")
    out, _ = waiter.communicate(timeout=60)
    assert waiter.returncode == 5, "that of the first that failed, in the order of the words"
    assert out.decode().split() == [ok, slow, quick]
    w.snap("wait", "zzz").fails(4, "'zzz'")


# --- cancel -----------------------------------------------------------------------------------

@live_test
def a_run_is_cancelled_wherever_it_was_started(w):
    foreground = start(w, "--", "sh", "-c", "echo ready; exec sleep 600")
    assert line_of(foreground) == b"ready\n"
    run, = [r["run"] for r in w.ok("ps", "--json").json("snap.ps/1")["runs"]]
    got = w.ok("cancel", "--json", run).json("snap.cancel/1", "run", "state", "exit_code")
    assert (got["state"], got["exit_code"], got["was_over"]) == ("cancelled", 143, False), got
    _, err = foreground.communicate(timeout=60)
    assert foreground.returncode == 143 and b"cancelled" in err, err
    again = w.ok("cancel", "--json", run).json("snap.cancel/1")
    assert again["state"] == "cancelled" and again["was_over"], again
    assert b"cancelled" in w.ok("runs").out and clones(w) == []
    w.snap("cancel", "zzz").fails(4, "'zzz'")


@live_test
def one_that_ignores_the_end_is_cancelled_too(w):
    clone(w)
    run = detach(w, "trap '' TERM; touch ready; while :; do sleep 1; done", "try")
    until(lambda: (w.store / "clones" / "try" / "ready").exists())
    begun = time.monotonic()
    assert w.ok("cancel", "--json", run).json("snap.cancel/1")["state"] == "cancelled"
    assert time.monotonic() - begun < 10
    assert record(w, run)["exit_code"] == 143


@live_test
def one_whose_supervisor_is_stopped_is_cancelled_too(w):
    marker = f"sleep 456789.{os.getpid()}"
    run = detach(w, marker)
    supervisor = Supervisor(w, run)
    stop_process(supervisor.pid)
    got = w.ok("cancel", "--json", run).json("snap.cancel/1")
    assert got["state"] == "cancelled", got
    assert gone(supervisor.pid, 10)
    until(lambda: not alive(marker))
    assert record(w, run)["state"] == "cancelled", "its record says so too"


def is_pending(pid, number):
    """Does that signal wait for this process?"""
    masks = [line.split()[1] for line in Path(f"/proc/{pid}/status").read_text().splitlines()
             if line.startswith(("SigPnd:", "ShdPnd:"))]
    return any(int(mask, 16) >> number - 1 & 1 for mask in masks)


@live_test
def one_that_is_about_to_begin_is_cancelled_and_never_begins(w):
    """strace stops it when it has written its record and locks the events, its second lock."""
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    path, trace = clone(w), w.top / "trace"
    traced = subprocess.Popen(
        ["strace", "-qq", "-o", trace, "-e", "trace=flock", "-e", "inject=flock:signal=SIGSTOP:when=2",
         SNAP, "run", "try", "--", "touch", "begun"], cwd=w.project, env=w.env,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: trace.exists() and "stopped by SIGSTOP" in trace.read_text())
    run, = w.ok("ps", "--json").json("snap.ps/1")["runs"]
    cancel = popen(w, "cancel", "--json", run["run"])
    until(lambda: is_pending(run["pid"], signal.SIGVTALRM))
    os.kill(run["pid"], signal.SIGCONT)
    out, err = cancel.communicate(timeout=60)
    assert cancel.returncode == 0 and json.loads(out)["state"] == "cancelled", (out, err)
    _, err = traced.communicate(timeout=60)
    assert traced.returncode == 143 and b"cancelled" in err, (traced.returncode, err)
    assert not (path / "begun").exists(), "the command ran"
    assert record(w, run["run"])["state"] == "cancelled"


@live_test
def a_number_that_is_another_process_by_now_is_left_alone(w):
    """As after a start of the machine, or of a container that shares the store."""
    run = detach(w, "sleep 600")
    path = w.store / "runs" / f"{run}.json"
    stranger = subprocess.Popen(["sleep", "600"])
    lines = path.read_text().splitlines()
    told = json.loads(lines[0])
    pid, told["pid"] = told["pid"], stranger.pid
    with open(path, "a") as f:
        f.write(json.dumps(told) + "\n")
    w.snap("cancel", run).fails(1, "not to be found here")
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()
    os.kill(pid, signal.SIGKILL)
    assert gone(pid, 20)


# --- output -----------------------------------------------------------------------------------

@live_test
def output_is_read_on_from_where_one_was(w):
    clone(w)
    run = detach(w, f"echo one; sleep 0.1; echo two >&2; {LAST}; echo three", "try")
    until(lambda: w.ok("logs", run).out == b"one\ntwo\n")
    got = w.ok("logs", "--json", run).json("snap.logs/1", "output", "next", "state")
    assert (got["output"], got["next"], got["state"]) == ("one\ntwo\n", 8, "running"), got
    follower = popen(w, "logs", "--follow", "--since", "4", run)
    assert line_of(follower) == b"two\n"
    sh(w, "touch stop", "try")
    assert follower.communicate(timeout=60)[0] == b"three\n"
    got = w.ok("logs", "--json", "--since", "8", run).json("snap.logs/1")
    assert (got["output"], got["stdout"], got["stderr"]) == ("three\n", "three\n", ""), got
    assert got["next"] == 14 and got["exit_code"] == 0, got
    assert w.ok("logs", "--stderr", run).out == b"two\n"
    assert w.ok("logs", "--stdout", "--since", "4", run).out == b"three\n"
    assert w.ok("logs", "--since", "1000", run).out == b""


@live_test
def a_log_that_was_cut_off_is_read_up_to_there(w):
    run = sh(w, "echo one; sleep 0.1; echo two >&2")["run"]
    path = w.store / "runs" / f"{run}.log"
    whole = path.read_bytes()
    for n in range(len(whole) + 1):
        path.write_bytes(whole[:n])
        out = w.ok("logs", run).out
        assert b"one\ntwo\n".startswith(out), (n, out)
    assert out == b"one\ntwo\n"


@live_test
def who_attaches_sees_all_of_it_and_ends_as_it_does(w):
    clone(w)
    run = detach(w, f"echo out; echo err >&2; {LAST}; echo more; exit 6", "try")
    until(lambda: len(w.ok("logs", run).out) == 8)
    one = popen(w, "attach", run)
    assert line_of(one) == b"out\n"
    two = popen(w, "attach", run)
    assert line_of(two) == b"out\n"
    two.send_signal(signal.SIGINT)
    _, err = two.communicate(timeout=60)
    assert two.returncode == 130 and f"detached: run {run} goes on".encode() in err, err
    assert record_of_ps(w, run)["state"] == "running"
    sh(w, "touch stop", "try")
    out, err = one.communicate(timeout=60)
    assert (one.returncode, out, err) == (6, b"more\n", b"err\n")
    got = w.snap("attach", "--json", run).json("snap.attach/1", "output", status=6)
    assert got["stdout"] == "out\nmore\n" and got["exit_code"] == 6, got


if __name__ == "__main__":
    sys.exit(livetest.main())

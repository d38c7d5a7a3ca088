"""experiment, at work: many arms, limits of the whole, early ends; and without a terminal."""

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from experimenttest import arm, experiment, most_at_once, nothing_is_left, popen, receipts, states  # noqa: E402
from livetest import LONG, live_test, note  # noqa: E402
from runtest import alive, clone, clones, until  # noqa: E402
from snaptest import SNAP, Skip, gone  # noqa: E402

PID = os.getpid()  # tells our sleepers from those of the same program as another user


def stored(w):
    """Bytes of the store once nothing is left to free."""
    w.ok("gc")
    return w.ok("stats", "--json").json("snap.stats/1")["stored"]


@contextlib.contextmanager
def store_of(w, size):
    """The store on a disk of its own; gives a function that makes it larger."""
    if os.geteuid() != 0:
        raise Skip("mounting takes root")
    w.store.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "none", w.store], check=True)
    try:
        yield lambda now: subprocess.run(["mount", "-o", f"remount,size={now}", w.store], check=True)
    finally:
        w.snap("stop", "--force")
        subprocess.run(["umount", w.store], check=True)


@live_test
def a_store_that_runs_full_costs_only_the_arm_that_filled_it(w):
    with store_of(w, "24m") as grow:
        w.ok("init")
        words = ["-n", "full", "--arm", "hog=echo 0 > n; head -c 64M /dev/urandom > big && sync big", "--arm", "a=echo 2 > n",
                 "--arm", "b=echo 1 > n", "--score", "cat n", "--jobs", "1", "--promote-best"]
        done = w.snap("experiment", "--json", *words)
        if done.status != 0:  # one that met the full disk itself, and could not go on
            assert b"No space left" in done.out + done.err or b"E_NO_SPACE" in done.out + done.err, done
            grow("256m")
            w.snap("experiment", "resume", "full")
        got = w.ok("experiment", "show", "--json", "full").json("snap.experiment/1", "arms", "winner")
        assert states(got) == {"hog": "failed", "a": "passed", "b": "passed"} and got["winner"] == "b", got
        assert (w.project / "n").read_text() == "1\n"
        assert len(receipts(w)) == 1, receipts(w)
        w.ok("gc")
        w.ok("check")


@live_test
def many_arms_leave_nothing_behind(w):
    count, size = 200 if LONG else 24, 64 << 10
    w.ok("init")
    before = stored(w)
    args = [word for i in range(count) for word in ("--arm", f"a{i}=echo {i} > n; head -c {size} /dev/urandom > big")]
    process = popen(w, "experiment", "--json", "-n", "many", *args, "--check", "grep -q '[05]$' n", "--score", "cat n",
                    "--jobs", "8", "--keep", "all")
    got = json.loads(process.communicate(timeout=900)[0])
    assert process.returncode == 0, got
    assert got["winner"] == "a0" and got["passed"] == (count + 4) // 5, got["verdict"]
    assert most_at_once(w, "many") <= 8
    grown = stored(w) - before
    note(f"{count} arms of {size} bytes: the store grew by {grown}")
    assert count * size <= grown <= 1.5 * count * size, "what arms wrote, and little more"
    assert len(clones(w)) == count
    w.ok("exp", "rm", "many")
    nothing_is_left(w)
    assert list((w.store / "experiments").iterdir()) == []
    left = stored(w) - before
    note(f"and by {left} when they were removed")
    assert left <= size + (1 << 20), "nothing of what they wrote is left"
    assert w.ok("check", "--json").json("snap.check/1")["errors"] == []


# --- early ends ------------------------------------------------------------------------------

@live_test
def it_stops_when_enough_have_passed(w):
    args = [word for i in range(5) for word in ("--arm", f"a{i}=test {i} != 1")]
    got = experiment(w, "-n", "s", *args, "--jobs", "1", "--stop-after", "2")
    assert states(got) == {"a0": "passed", "a1": "failed", "a2": "passed", "a3": "stopped", "a4": "stopped"}, got
    assert {e["clone"] for e in receipts(w, "run-started")} == {"s-a0", "s-a1", "s-a2"}, "the rest never ran"
    assert "enough" in arm(got, "a4")["why"] and got["state"] == "ended", got
    w.snap("experiment", "--arm", "a=true", "--first-pass", "--stop-after", "2").fails(2, "exclude")


@live_test
def what_another_has_beaten_is_checked_no_further(w):
    got = experiment(w, "--arm", "small=echo 1 > n", "--arm", "large=seq 9 > n", "--score", "lines", "--stop-losers",
                     "--check", f"test $(wc -l < n) = 1 || sleep 606.{PID}", "--jobs", "2", "--promote-best")
    assert states(got) == {"small": "passed", "large": "stopped"} and got["promoted"] == ["small"], got
    assert "cannot win any more: 'small' changed fewer lines" in arm(got, "large")["why"], got
    assert not alive(f"sleep 606.{PID}")
    nothing_is_left(w)


@live_test
def what_another_has_beaten_is_measured_no_further(w):
    args = ("--arm", "good=echo 1 > n", "--arm", "bad=echo 5 > n", "--arm", "near=echo 2 > n", "--score",
            "echo $(($(cat n) + $(cat /proc/self/stat | cut -d' ' -f1) % 2))", "--rounds", "9")
    got = experiment(w, *args, "--stop-losers")
    rounds = {a["arm"]: len(a["rounds"]) for a in got["arms"]}
    assert set(states(got).values()) == {"passed"} and rounds["bad"] == 3 and rounds["good"] == 9, (rounds, got)
    got = experiment(w, *args)
    assert {len(a["rounds"]) for a in got["arms"]} == {9}, "unless it was asked for, all are measured alike"
    for wrong in ([], ["--score", "lines", "--repeat", "2"], ["--score", "lines", "--promote-all-compatible"]):
        w.snap("experiment", "--arm", "a=true", "--stop-losers", *wrong).fails(2, "--stop-losers")


@live_test
def losers_are_removed_with_their_space_and_the_record_stays(w):
    size = 1 << 20
    w.ok("init")
    before = stored(w)
    args = [word for i in range(6) for word in ("--arm", f"a{i}=echo {i} > n; head -c {size} /dev/urandom > big")]
    experiment(w, "-n", "few", *args, "--score", "cat n", "--jobs", "3")
    nothing_is_left(w, "few-a0")
    assert size <= stored(w) - before <= 2 * size, "what the winner wrote"
    got = experiment(w, "show", "few")
    assert [a["score"] for a in got["arms"]] == [0, 1, 2, 3, 4, 5] and arm(got, "a5")["changed"]["added"] == 2, got
    assert most_at_once(w, "few") <= 3


@live_test
def memory_of_the_whole_is_shared_by_arms_at_once(w):
    args = [word for i in range(6) for word in ("--arm", f"a{i}=true")]
    got = experiment(w, "-n", "mem", *args, "--jobs", "6", "--mem", "100M", "--all-mem", "250M", "--allow-missing",
                     "memory")
    assert got["jobs"] == 2 and most_at_once(w, "mem") <= 2, got



@live_test
def what_happens_to_it_is_in_the_events(w):
    w.ok("experiment", "-n", "ev", "--arm", "a=echo a > a", "--arm", "b=exit 1", "--jobs", "1", "--promote-best")
    got = [e for e in receipts(w, None) if e["kind"].startswith("experiment-")]
    assert [(e["kind"][11:], e["data"].get("arm"), e["data"].get("state")) for e in got] == [
        ("started", None, None), ("arm", "a", "passed"), ("arm", "b", "failed"), ("promoted", "a", "passed"),
        ("ended", None, None)], got
    assert got[3]["data"]["receipt"] == receipts(w)[0]["data"]["receipt"] and got[1]["clone"] == "ev-a", got
    assert got[4]["data"]["winner"] == "a" and all(e["data"]["experiment"] == "ev" for e in got), got
    assert b"experiment-promoted" in w.ok("events").out


# --- without the terminal --------------------------------------------------------------------

HOLD = "until [ -e stop ]; do sleep 0.05; done; rm stop"


def free(w, name):
    """Let the arm of that clone go on."""
    until(lambda: [r for r in w.ok("ps", "--json").json("snap.ps/1")["runs"] if r["clone"] == name])
    w.ok("run", "--no-snapshot", name, "--", "touch", "stop")


def worker(w, name):
    return json.loads((w.store / "experiments" / name / "state.json").read_text())["pid"]


@live_test
def detached_it_goes_on_without_the_terminal_and_wait_has_its_result(w):
    main, side = pty.openpty()
    process = popen(w, "experiment", "-n", "d", "--detach", "--arm", f"a=echo a > a; {HOLD}", "--arm", "b=echo b > a",
                    "--score", "cat a | wc -c", "--promote-best", "--jobs", "2", stdin=side, stdout=subprocess.PIPE,
                    stderr=side, start_new_session=True)
    os.close(side)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and out == b"d\n", out
    os.close(main)
    assert experiment(w, "show", "d")["state"] == "running"
    assert experiment(w, "wait", "d", "--timeout", "0s", status=124)["state"] == "running"
    w.snap("experiment", "resume", "d").fails(11, "another process", "experiment wait d")
    w.snap("experiment", "rm", "d").fails(11, "another process", "experiment cancel d")
    waiting = popen(w, "experiment", "wait", "d")
    free(w, "d-a")
    out, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 16 and b"tie" in out and b"a: passed" in err, (out, err)
    got = experiment(w, "wait", "d", status=16)
    assert states(got) == {"a": "passed", "b": "passed"} and got["state"] == "ended", got
    assert gone(worker(w, "d"), 20), "nobody works on it any more"
    w.ok("experiment", "rm", "d")
    nothing_is_left(w)


@live_test
def detached_it_says_at_once_what_cannot_be_done(w):
    w.snap("experiment", "--detach", "--arm", "a=true", "--profile", "nope").ends(4)
    w.snap("experiment", "--detach", "--arm", "a=true", "--from", "nope").ends(4)
    w.snap("experiment", "--detach", "--json", "--steps", "--arm", "a=true").fails_json(2, "E_USAGE")
    assert b"no experiments" in w.ok("exp", "list", "--all").out
    nothing_is_left(w)


def was_heard(w, name):
    """The process that works on it told the asker so, who took it: from then on it has given up what is his."""
    try:
        return os.readlink(f"/proc/{worker(w, name)}/fd/1") == "/dev/null"
    except OSError:  # it has ended, or forgotten it
        return False


def nobody_works(w, name):
    """One that is gone by now included."""
    shown = w.snap("experiment", "show", "--json", name)
    return shown.status == 4 or json.loads(shown.out)["state"] != "running"


@live_test
def an_asker_that_goes_before_the_first_arm_runs_leaves_nothing(w):
    w.ok("init")
    path = w.top / "trace"
    # It dies as it reads what the other says, so the other finds nobody to say it to.
    done = subprocess.run(["strace", "-o", path, "-e", "trace=socketpair,close", "-e",
                           "inject=socketpair:signal=KILL", SNAP, "experiment", "-n", "g", "--detach", "--arm",
                           f"a={HOLD}"], cwd=w.project, env=w.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60, check=False)
    if b"ptrace" in done.stderr or not path.exists():
        raise Skip(f"strace cannot trace here: {done.stderr[:200]!r}")
    assert done.returncode == -signal.SIGKILL, done
    w.ok("experiment", "rm", "g")
    process = popen(w, "experiment", "-n", "h", "--detach", "--arm", f"a={HOLD}")
    state = w.store / "experiments" / "h" / "state.json"
    until(lambda: state.exists() or process.poll() is not None)
    process.kill()
    process.communicate(timeout=60)
    until(lambda: not state.exists() or was_heard(w, "h") or nobody_works(w, "h"))
    if state.exists():
        note("it was killed before there was another process, or when that had been heard")
        w.ok("experiment", "cancel", "h")
        w.ok("experiment", "rm", "h")
    until(lambda: clones(w) == [] and w.ok("ps", "--json").json("snap.ps/1")["runs"] == [])


@live_test
def a_reader_that_goes_leaves_no_arm_running(w):
    """As `| head -1` does."""
    out, into = os.pipe()
    process = popen(w, "experiment", "-n", "p", "--arm", f"a={HOLD}", "--arm", f"b=sleep 608.{PID}", "--jobs", "2",
                    stdout=into, stderr=into)
    os.close(into)
    until(lambda: alive(f"sleep 608.{PID}"))
    os.close(out)
    free(w, "p-a")  # and it has something to print
    assert process.wait(timeout=60) == -signal.SIGPIPE
    assert not alive(f"sleep 608.{PID}")
    assert experiment(w, "show", "p")["state"] == "interrupted"
    nothing_is_left(w, "p-a")


@live_test
def cancel_ends_what_runs_and_it_can_be_resumed(w):
    w.ok("experiment", "-n", "c", "-d", "--arm", f"a=sleep 604.{PID}", "--arm", "b=true", "--jobs", "1")
    until(lambda: alive(f"sleep 604.{PID}"))
    got = experiment(w, "cancel", "c")
    assert got["state"] == "interrupted" and states(got) == {"a": "waiting", "b": "waiting"}, got
    assert not alive(f"sleep 604.{PID}")
    nothing_is_left(w)
    w.snap("experiment", "wait", "c").ends(1)
    assert experiment(w, "wait", "c", status=1)["state"] == "interrupted"
    assert experiment(w, "cancel", "c")["state"] == "interrupted", "it is interrupted already"
    w.ok("experiment", "rm", "c")
    w.ok("experiment", "-n", "e", "--arm", "a=true")
    assert b"was over already" in w.ok("experiment", "cancel", "e").out
    w.snap("experiment", "cancel", "nope").fails(4, "there is no experiment")


@live_test
def cancel_ends_the_arms_of_one_that_was_killed(w):
    w.ok("experiment", "-n", "k", "-d", "--arm", f"a=sleep 605.{PID}")
    until(lambda: alive(f"sleep 605.{PID}"))
    os.kill(worker(w, "k"), signal.SIGKILL)
    assert gone(worker(w, "k"), 20) and alive(f"sleep 605.{PID}")
    assert experiment(w, "cancel", "k")["state"] == "interrupted"
    assert not alive(f"sleep 605.{PID}")
    nothing_is_left(w)


@live_test
def one_that_was_interrupted_is_resumed_without_the_terminal(w):
    w.ok("experiment", "-n", "r", "-d", "--arm", "a=echo a > a", "--arm", f"b={HOLD}", "--jobs", "1")
    until(lambda: states(experiment(w, "show", "r"))["b"] == "running")
    w.ok("experiment", "cancel", "r")
    assert experiment(w, "resume", "--detach", "r")["state"] == "running"
    free(w, "r-b")
    got = experiment(w, "wait", "r")
    assert states(got) == {"a": "passed", "b": "passed"}, got
    assert len([e for e in receipts(w, "run-started") if e["clone"] == "r-a"]) == 1, "only what was missing ran"


@live_test
def wait_on_a_terminal_has_the_table(w):
    w.ok("experiment", "-n", "t", "-d", "--arm", f"a={HOLD}")
    main, side = pty.openpty()
    process = popen(w, "experiment", "wait", "t", stdout=side, stderr=side, env={**w.env, "TERM": "xterm"})
    os.close(side)
    said = os.read(main, 4096)
    while b"running" not in said:  # an arm that ended before the next look would never be seen to run
        said += os.read(main, 4096)
    free(w, "t-a")
    while select.select([main], [], [], 60)[0]:
        try:
            said += os.read(main, 4096)
        except OSError:
            break
    os.close(main)
    assert process.wait(60) == 0, said
    assert b"running" in said and b"\033[J" in said and b"wins" in said.split(b"\033[J")[-1], said


@live_test
def why_nobody_works_on_it_is_told(w):
    w.ok("experiment", "-n", "p", "-d", "--arm", f"a={HOLD}", "--arm", "b=true", "--jobs", "1")
    clone(w, "p-b")
    free(w, "p-a")
    got = experiment(w, "wait", "p", status=1)
    assert got["state"] == "interrupted" and "p-b" in got["problem"], got
    assert b"p-b" in w.snap("experiment", "wait", "p").out
    w.ok("rm", "--force", "p-b")
    got = experiment(w, "resume", "p")
    assert got["problem"] is None and states(got) == {"a": "passed", "b": "passed"}, got


if __name__ == "__main__":
    sys.exit(livetest.main())

"""experiment, scores that are times: taken by one experiment at a time, and what else was at work is said."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from experimenttest import arm, detached, experiment, popen, receipts  # noqa: E402
from livetest import live_test  # noqa: E402
from runtest import until  # noqa: E402
from snaptest import gone  # noqa: E402

PID = os.getpid()  # tells our sleepers from those of the same program as another user
TIMED = ("--score", "time:true", "--rounds", "2")


def take_turn(w, name):
    """Measure, as an experiment of that name would."""
    w.ok("init")
    turn = open(w.store / "measuring", "w", encoding="utf-8")
    turn.write(name)
    turn.flush()
    fcntl.lockf(turn, fcntl.LOCK_EX)
    return turn


def waits_for(w, name):
    until(lambda: (w.store / "experiments" / name / "state.json").exists())
    until(lambda: experiment(w, "show", name)["waits_for"])
    return experiment(w, "show", name)["waits_for"]


# --- one at a time ---------------------------------------------------------------------------

@live_test
def it_waits_until_another_has_measured_and_says_for_which(w):
    with take_turn(w, "slow"):
        process = popen(w, "experiment", "-n", "next", "--arm", "a=echo a > a", *TIMED)
        assert waits_for(w, "next") == "slow"
        assert b"next  scoring, waits until experiment slow has measured" in w.ok("exp", "show", "next").out
        assert len(receipts(w, "run-started")) == 1, "the arm ran, and nothing was measured"
        told = receipts(w, "experiment-waits")
        assert [(e["data"]["experiment"], e["data"]["waits_for"]) for e in told] == [("next", "slow")], told
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and b"next waits until experiment slow has measured\n" in err, (out, err)
    got = experiment(w, "show", "next")
    assert got["waits_for"] is None and len(arm(got, "a")["rounds"]) == 2, got


@live_test
def one_that_waits_can_be_interrupted_and_resumed(w):
    with take_turn(w, "slow"):
        process = popen(w, "experiment", "-n", "next", "--arm", "a=echo a > a", *TIMED)
        assert waits_for(w, "next") == "slow"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130 and b"experiment resume next" in err, (out, err)
        assert experiment(w, "show", "next")["waits_for"] is None
        process = popen(w, "experiment", "resume", "next")
        until(lambda: len(receipts(w, "experiment-waits")) == 2)
        process.kill()
        process.communicate(timeout=60)
        assert experiment(w, "show", "next")["waits_for"] is None, "nobody waits any more"
    assert arm(experiment(w, "resume", "next"), "a")["state"] == "passed"
    assert len([e for e in receipts(w, "run-started") if e["clone"] == "next-a"]) == 1, "only what was missing ran"


@live_test
def the_time_of_the_whole_goes_on_while_it_waits(w):
    with take_turn(w, "slow"):
        got = experiment(w, "--arm", "a=echo a > a", "--arm", "b=echo b > a", *TIMED, "--all-time", "2s")
    assert got["state"] == "ended" and got["winner"] is None and [a["rounds"] for a in got["arms"]] == [[], []], got


@live_test
def other_scores_do_not_wait(w):
    with take_turn(w, "slow"):
        for score in ("lines", "echo 1", "mem:true"):
            assert experiment(w, "--arm", "a=echo a > a", "--score", score, "--keep", "none")["winner"] == "a"


@live_test
def a_holder_that_is_killed_gives_its_turn_back(w):
    process = popen(w, "experiment", "-n", "first", "--arm", "a=true", "--score", f"time:sleep 607.{PID}")
    until(lambda: (w.store / "measuring").exists() and (w.store / "measuring").read_text() == "first")
    until(lambda: detached(w))
    process.kill()
    process.communicate(timeout=60)
    assert gone(process.pid, 20)
    got = experiment(w, "-n", "second", "--arm", "a=true", *TIMED)
    assert [r["other_runs"] for r in arm(got, "a")["rounds"]] == [1, 1], "what the other measured still runs"
    w.ok("experiment", "cancel", "first")
    w.ok("experiment", "rm", "first")


@live_test
def two_experiments_never_measure_at_the_same_time(w):
    w.ok("init")
    both = [popen(w, "experiment", "-n", name, "--arm", f"a=echo {name} > a", "--arm", f"b=echo {name} > b", "--score",
                  f"time:sleep 0.1; : {name}", "--rounds", "3") for name in ("one", "two")]
    for process in both:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, (out, err)
    runs = w.ok("runs", "--json").json("snap.runs/1")["runs"]
    spans = {name: [(r["started"], r["ended"]) for r in runs if r["command"][-1].endswith(f": {name}")]
             for name in ("one", "two")}
    assert {len(s) for s in spans.values()} == {8}, spans
    first, last = sorted(spans.values())
    assert max(end for _, end in first) <= min(begin for begin, _ in last), spans


# --- what else was at work -------------------------------------------------------------------

@live_test
def other_runs_are_said(w):
    run = w.ok("run", "--detach", "--", "sleep", f"608.{PID}").out.decode().strip()
    page = w.top / "page.html"
    got = experiment(w, "-n", "c", "--arm", "a=echo a > a", *TIMED, "--html", page)
    assert [r["other_runs"] for r in arm(got, "a")["rounds"]] == [1, 1], got
    said = "1 other run was at work while it was measured, in 2 of 2 rounds"
    assert [x for x in arm(got, "a")["warnings"] if x["kind"] == "company"] == [
        {"kind": "company", "path": None, "detail": said}], got
    assert f"! a: {said}\n" in w.ok("experiment", "show", "c").out.decode()
    assert said in page.read_text()
    got = experiment(w, "--arm", "a=echo a > a", "--score", "lines")
    assert arm(got, "a")["warnings"] == [], "only of what is measured"
    w.ok("cancel", run)
    got = experiment(w, "--arm", "a=echo b > a", *TIMED)
    assert [r["other_runs"] for r in arm(got, "a")["rounds"]] == [0, 0], got


@live_test
def a_busy_machine_is_said(w):
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
        try:
            got = experiment(w, "-n", "l", "--arm", "a=echo a > a", *TIMED)
        finally:
            busy.kill()
    rounds = arm(got, "a")["rounds"]
    assert all(r["other_runs"] == 0 and r["other_tasks"] >= 1 for r in rounds), got
    assert "the machine had" in json.dumps(arm(got, "a")["warnings"]), got
    assert "other task" in w.ok("experiment", "show", "l").out.decode()


if __name__ == "__main__":
    sys.exit(livetest.main())

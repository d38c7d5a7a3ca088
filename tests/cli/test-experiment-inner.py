"""experiment, with arms inside of arms: what they start from, who wins, limits of the whole, and deaths."""

import json
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from experimenttest import (arm, detached, experiment, most_at_once, nothing_is_left, plan, popen,  # noqa: E402
                            receipts, states)  # noqa: E402
from livetest import live_test  # noqa: E402
from runtest import alive, clones, until  # noqa: E402
from snaptest import SNAP  # noqa: E402

PID = os.getpid()  # tells our sleepers from those of the same program as another user


def inside(got, path):
    return next(i for i in got["inner"] if i["arm"] == path)


def began(w, name):
    """How often a command began on the clones of that experiment, by their names without its own."""
    got = {}
    for e in receipts(w, "run-started"):
        if (e["clone"] or "").startswith(f"{name}-"):
            key = e["clone"][len(name) + 1:]
            got[key] = got.get(key, 0) + 1
    return got


DEEP = """\
arms:
  plain: echo plain > out
  deep:
    run: echo rough > rough; echo deeper > out
    env: {WORD: whole}
    experiment:
      env: {MORE: inner}
      arms:
        long: test "$(cat out)" = deeper && echo "$WORD $MORE" > out
        short: echo s > out
        bad: exit 3
      checks: [test -s rough]
      score: wc -c < out
checks: [test -s out]
score: wc -c < out
"""


@live_test
def the_best_inside_of_an_arm_is_its_result(w):
    plan(w, "deep", DEEP)
    got = experiment(w, "deep", "--promote-best")
    inner = inside(got, "deep")
    assert states(got) == {"plain": "passed", "deep": "passed"} and got["winner"] == "deep", got
    assert states(inner) == {"long": "passed", "short": "passed", "bad": "failed"}, inner
    assert inner["winner"] == "short" and inner["state"] == "ended" and "'short' wins" in inner["verdict"], inner
    assert [arm(inner, n)["score"] for n in ("long", "short")] == [12, 2], "variables of the arm and its own"
    # Inside only the own change counts; of the arm all that would be promoted does.
    assert arm(inner, "short")["changed"]["added"] == 0 and arm(inner, "short")["changed"]["modified"] == 1, inner
    assert arm(got, "deep")["changed"]["added"] == 2 and arm(got, "deep")["score"] == 2, got
    assert got["promoted"] == ["deep"] and (w.project / "out").read_text() == "s\n"
    assert (w.project / "rough").read_text() == "rough\n", "and what the command of the arm left"
    nothing_is_left(w)
    assert w.ok("check", "--json").json("snap.check/1")["errors"] == []


@live_test
def what_wins_nothing_inside_fails_and_says_why(w):
    plan(w, "none", "arms: {a: exit 1, b: 'true'}\nchecks: ['false']\n")
    plan(w, "tie", "arms: {a: echo 1 > n, b: echo 2 > n}\n")
    plan(w, "same", "arms: {a: echo 1 > n, b: echo 1 > n; touch m}\nscore: cat n\n")
    got = experiment(w, "-n", "f", "--arm", "plain=echo p > p", "--arm-file", "none=none", "--arm-file", "tie=tie",
                     "--arm", "same=echo s > s", "--arm-file", "same=same", "--check", "true")
    assert states(got) == {"plain": "passed", "none": "failed", "tie": "failed", "same": "failed"}, got
    assert "no arm passed" in arm(got, "none")["why"] and "no score tells them apart" in arm(got, "tie")["why"], got
    assert "tie of 2 arms" in arm(got, "same")["why"] and inside(got, "same")["tie"] == ["a", "b"], got
    assert got["winner"] == "plain" and arm(got, "none")["run"] is None and arm(got, "none")["command"] is None, got
    nothing_is_left(w, "f-plain")
    # Its own command comes first, and if that fails nothing inside is tried.
    got = experiment(w, "-n", "g", "--arm", "a=exit 5", "--arm-file", "a=tie", status=15)
    assert states(inside(got, "a")) == {"a": "waiting", "b": "waiting"} and "ended with 5" in arm(got, "a")["why"], got
    assert began(w, "g") == {"a": 1}


THREE = """\
arms:
  top:
    experiment:
      arms:
        middle:
          run: echo middle > middle
          experiment: {run: echo $v >> middle, matrix: {v: [one, fifteen]}, score: wc -c < middle, better: higher}
        other: echo other > other
      checks: ["true"]
      score: ls | wc -l
      better: higher
keep: all
"""


@live_test
def levels_go_down_to_three(w):
    plan(w, "three", THREE)
    (w.project / "other").write_text("there\n")
    got = experiment(w, "three")
    assert [i["arm"] for i in got["inner"]] == ["top", "top/middle"], got
    assert inside(got, "top/middle")["winner"] == "v=fifteen" and inside(got, "top")["winner"] == "middle", got
    assert sorted(clones(w)) == ["three-top", "three-top-middle", "three-top-middle-v-fifteen",
                                 "three-top-middle-v-one", "three-top-other"], "keep: all"
    assert (w.store / "clones" / "three-top" / "middle").read_text() == "middle\nfifteen\n"
    w.ok("experiment", "promote", "three", "top")
    assert (w.project / "middle").read_text() == "middle\nfifteen\n"
    w.ok("experiment", "rm", "three")
    nothing_is_left(w)
    plan(w, "loop", "arms: {a: {experiment: loop}}\n")
    w.snap("experiment", "loop").fails(2, "3 levels deep")
    assert b"loop" not in w.ok("exp", "list", "--all").out


@live_test
def what_is_wrong_inside_is_said_before_anything_is_done(w):
    whole = {"base": "x", "profile": "strict", "net": "none", "pass_env": "[A]", "ro": "[/etc]", "repeat": "2",
             "keep": "all", "within": "[a]", "all": "{time: 1s}", "promote": "best", "allow": "[a]",
             "allow_missing": "[memory]"}
    for key, value in whole.items():
        plan(w, "p", f"arms:\n  a:\n    experiment: {{arms: {{b: 'true'}}, {key}: {value}}}\n")
        w.snap("experiment", "p").fails(2, f"'{key}' is of the whole", "p.yaml:3:")
    for text, words in {
            "arms: {a: {experiment: {}}}": "there is no arm",
            "arms: {a: {experiment: [b]}}": "expected a plan",
            "arms: {a: {env: {A: b}}}": "no 'run' and no 'experiment'",
            "arms: {a: {experiment: {arms: {b: {run: 'true', base: x}}}}}": "result to start from",
            "arms: {a: {experiment: {arms: {b: {run: 'true', profile: strict}}}}}": "has its profile",
            "arms: {a: {experiment: {arms: {b: {run: 'true', after: c}}}}}": "which is no arm",
            "arms: {a: {experiment: {arms: {b: {experimnt: x}}}}}": "did you mean 'experiment'",
            "arms: {a: {experiment: {arms: {b: 'true'}}}}\nscore: time": "time:COMMAND",
            "arms: {a: {experiment: {arms: {b: 'true'}}}}\nrepeat: 2": "cannot be repeated",
    }.items():
        plan(w, "p", text + "\n")
        w.snap("experiment", "p").fails(2, words)
    plan(w, "p", "arms: {a: {experiment: {arms: {b: 'true'}, limits: {mem: 900G}}}}\n")
    w.snap("experiment", "p").fails(7, "'limits.mem' is more than profile 'default' has")
    plan(w, "q", "arms: {b: 'true'}\nlimits: {mem: 900G}\n")
    w.snap("experiment", "--arm-file", "a=q").fails(7, "q.yaml:2:", "is more than profile 'default'")
    plan(w, "r", "arms: {b: 'true'}\npromote: best\n")
    w.snap("experiment", "--arm-file", "a=r").fails(2, "'promote' is of the whole")
    w.snap("experiment", "--arm-file", "a=nope").fails(4, "arm 'a': there is no plan")
    w.snap("experiment", "--arm-file", "a").fails(2, "NAME=FILE")
    plan(w, "s", "arms: {b: 'true'}\non: nats://127.0.0.1/q\n")
    w.snap("experiment", "--arm-file", "a=s").fails(2, "'on' is of the whole")
    many = "".join(f"      b{i}: 'true'\n" for i in range(500))
    plan(w, "p", "arms:\n" + "".join(f"  {a}:\n    experiment:\n     arms:\n{many}" for a in "xy"))
    w.snap("experiment", "p").fails(2, "more than 1000 arms")
    # It is said when there are too many, not after all of them were made.
    plan(w, "many", "arms:\n" + "".join(f"  b{i}: 'true'\n" for i in range(600)))
    plan(w, "p", "arms: {x: {experiment: many}, y: {experiment: many}, z: {experiment: nope}}\n")
    w.snap("experiment", "p").fails(2, "more than 1000 arms")
    tens = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
    wide = f"{{run: 'true', matrix: {{a: {tens}, b: {tens}, c: [1, 2, 3, 4, 5, 6]}}}}"
    plan(w, "p", f"arms:\n  x: {{experiment: {wide}}}\n  y: {{experiment: {wide}}}\n"
         "  z: {experiment: {run: 'true', matrix: {a: [1]}, exclude: [{a: 1}]}}\n")
    w.snap("experiment", "p").fails(2, "more than 1000 arms")
    cube = f"matrix: {{a: {tens}, b: {tens}, c: {tens}}}"
    plan(w, "p", f"arms: {{x: {{experiment: {{arms: {{y: {{experiment: {wide}}}}}, {cube}}}}}}}\n{cube}\n")
    w.snap("experiment", "p", timeout=60).fails(2, "the matrix makes more than 1000 arms", "p.yaml:1:")
    assert b"no experiments" in w.ok("exp", "list", "--all").out


# --- the limits of the whole -----------------------------------------------------------------

WIDE = "arms: {b: sleep 0.2; echo b > n, c: sleep 0.2; echo cc > n, d: sleep 0.2; echo ddd > n}\nscore: wc -c < n\n" \
       "checks: [sleep 0.1]\n"


@live_test
def arms_at_once_are_counted_at_all_levels(w):
    plan(w, "wide", WIDE)
    files = [word for a in "xyz" for word in ("--arm-file", f"{a}=wide")]
    got = experiment(w, "-n", "w", *files, "--arm", "x=sleep 2", "--arm", "e=sleep 0.2", "--jobs", "2",
                     "--first-pass", "--check", "sleep 0.1")
    assert got["jobs"] == 2 and most_at_once(w, "w") == 2, most_at_once(w, "w")
    got = experiment(w, "-n", "v", *files, "--jobs", "4", "--all-mem", "300M", "--mem", "100M", "--allow-missing",
                     "memory", "--check", "true", "--score", "wc -c < n")
    assert got["jobs"] == 3 and most_at_once(w, "v") <= 3, got
    assert {i["winner"] for i in got["inner"]} == {"b"} and len(got["tie"]) == 3, got


@live_test
def an_arm_goes_on_in_the_room_of_what_was_inside(w):
    plan(w, "alone", "arms: {b: echo b > n}\n")
    got = experiment(w, "-n", "u", "--arm", "a=true", "--arm-file", "a=alone", "--arm", "e=sleep 1", "--jobs", "1",
                     "--check", "sleep 0.1")
    assert set(states(got).values()) == {"passed"} and most_at_once(w, "u") == 1, most_at_once(w, "u")


@live_test
def fewer_at_once_may_be_asked_for_inside(w):
    plan(w, "one", WIDE + "jobs: 1\n")
    experiment(w, "-n", "o", "--arm-file", "a=one", "--jobs", "4")
    assert most_at_once(w, "o") == 1


@live_test
def enough_is_enough_inside_as_well(w):
    plan(w, "first", f"arms: {{b: echo b > n, c: sleep 607.{PID}}}\nfirst_pass: true\njobs: 1\n")
    got = experiment(w, "-n", "e", "--arm-file", "a=first")
    assert states(inside(got, "a")) == {"b": "passed", "c": "stopped"} and got["winner"] == "a", got
    assert inside(got, "a")["winner"] == "b" and began(w, "e") == {"a-b": 1}, began(w, "e")


@live_test
def the_time_of_the_whole_ends_what_is_inside(w):
    plan(w, "slow", f"arms: {{b: sleep 608.{PID}, c: sleep 608.{PID}}}\n")
    got = experiment(w, "-n", "t", "--arm-file", "a=slow", "--arm", "a=echo a > a", "--all-time", "2s", status=15)
    assert states(inside(got, "a")) == {"b": "stopped", "c": "stopped"} and states(got) == {"a": "stopped"}, got
    assert "time of the whole" in arm(got, "a")["why"] == arm(inside(got, "a"), "b")["why"], got
    assert not alive(f"sleep 608.{PID}")
    nothing_is_left(w)


@live_test
def the_space_of_the_whole_is_divided_among_all(w):
    plan(w, "big", "arms: {b: head -c 3M /dev/zero | tr '\\\\0' b > big, c: echo c > c}\n")
    got = experiment(w, "-n", "d", "--arm-file", "a=big", "--arm", "e=echo e > e", "--all-disk", "16M", "--check",
                     "true", "--score", "lines")
    assert states(inside(got, "a"))["c"] == "passed" and inside(got, "a")["winner"] == "c", got
    assert arm(inside(got, "a"), "b")["state"] in ("limit", "failed"), "3M are more than a share of 4 arms"
    # Limits inside narrow those of the whole, and never widen them.
    plan(w, "quick", f"arms: {{b: sleep 609.{PID}, c: echo c > c}}\nlimits: {{time: 1s}}\n")
    got = experiment(w, "-n", "q", "--arm-file", "a=quick", "--time", "100s")
    assert arm(inside(got, "a"), "b")["limit"] == "time" and got["winner"] == "a", got
    plan(w, "quick", f"arms: {{b: sleep 609.{PID}, c: echo c > c}}\nlimits: {{time: 100s}}\n")
    got = experiment(w, "-n", "r", "--arm-file", "a=quick", "--time", "1s")
    assert arm(inside(got, "a"), "b")["limit"] == "time" and got["winner"] == "a", got
    assert arm(inside(got, "a"), "b")["duration_ms"] < 90000, "the narrower one counts"


# --- deaths ----------------------------------------------------------------------------------

# What was read once is not asked for again: only a write tells that cowfsd is gone.
SLOW = "arms:\n  quick: echo quick > n\n" \
       "  held: until [ -e stop ]; do true > n || exit 1; sleep 0.05; done; rm stop; echo h > n\n" \
       "  fails: exit 1\nchecks: [test -s first]\nscore: wc -c < n\n"


def hold(w, *words):
    """Until one arm inside has passed and the other waits for `stop`."""
    plan(w, "slow", SLOW)
    process = popen(w, "experiment", *words, "--arm", "a=echo first > first", "--arm-file", "a=slow", "--arm",
                    "plain=echo plain > n", "--check", "test -s n", "--jobs", "3", "--json", "--score", "wc -c < n")
    name = words[1]

    def waits():
        if not (w.store / "experiments" / name / "state.json").exists():
            return False
        inner = inside(experiment(w, "show", name), "a")
        return states(inner) == {"quick": "passed", "held": "running", "fails": "failed"} and \
            states(experiment(w, "show", name))["plain"] == "passed" and \
            [r for r in detached(w) if r["clone"] == f"{name}-a-held"]
    until(waits)
    return process


@live_test
def killed_amid_an_arm_inside_it_is_resumed_there(w):
    process = hold(w, "-n", "k")
    process.kill()
    process.communicate(timeout=60)
    before = began(w, "k")
    assert len(w.ok("ps", "--json").json("snap.ps/1")["runs"]) == 1, "an arm is a process of its own"
    resumed = popen(w, "experiment", "resume", "--json", "k")
    w.ok("run", "--no-snapshot", "k-a-held", "--", "touch", "stop")
    got = json.loads(resumed.communicate(timeout=60)[0])
    assert resumed.returncode == 0 and got["winner"] == "a" and inside(got, "a")["winner"] == "held", got
    after = began(w, "k")
    assert {n: after[n] for n in ("a", "a-quick", "a-held", "a-fails", "plain")} == {
        "a": 1, "a-quick": 1, "a-held": before["a-held"] + 1, "a-fails": 1, "plain": 1}, (before, after)
    assert (w.store / "clones" / "k-a" / "n").read_text() == "h\n"
    nothing_is_left(w, "k-a")
    w.ok("experiment", "rm", "k")


@live_test
def an_interrupted_one_keeps_what_is_done_inside(w):
    process = hold(w, "-n", "i")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    got = experiment(w, "show", "i")
    assert got["state"] == "interrupted" and states(inside(got, "a"))["held"] == "waiting", got
    assert w.ok("ps", "--json").json("snap.ps/1")["runs"] == []
    resumed = popen(w, "experiment", "resume", "--json", "i")
    until(lambda: [r for r in w.ok("ps", "--json").json("snap.ps/1")["runs"] if r["clone"] == "i-a-held"])
    w.ok("run", "--no-snapshot", "i-a-held", "--", "touch", "stop")
    got = json.loads(resumed.communicate(timeout=60)[0])
    assert resumed.returncode == 0 and inside(got, "a")["winner"] == "held" and got["winner"] == "a", got
    after = began(w, "i")
    assert [after[n] for n in ("a", "a-quick", "a-fails", "plain")] == [1, 1, 1, 1], after
    w.ok("experiment", "rm", "i")
    nothing_is_left(w)


@live_test
def removed_amid_an_arm_inside_it_leaves_nothing(w):
    process = hold(w, "-n", "m")
    process.kill()
    process.communicate(timeout=60)
    w.ok("experiment", "rm", "m")
    nothing_is_left(w)


def free_until_over(w, process):
    """Whatever clone the arm that waits has by now."""
    def is_over():
        if process.poll() is None and [r for r in w.ok("ps", "--json").json("snap.ps/1")["runs"] if r["clone"]]:
            w.snap("run", "--no-snapshot", "c-a-held", "--", "touch", "stop")
        return process.poll() is not None
    until(is_over)
    process.communicate(timeout=60)
    return process.returncode


@live_test
def cowfsd_dies_amid_an_arm_inside(w):
    process = hold(w, "-n", "c")
    w.kill_daemon(keeper=False)
    if free_until_over(w, process) != 0:
        assert free_until_over(w, popen(w, "experiment", "resume", "--json", "c")) == 0
    got = experiment(w, "show", "c")
    assert got["winner"] == "a" and inside(got, "a")["winner"] == "held", got
    assert (w.store / "clones" / "c-a" / "first").read_text() == "first\n"


@live_test
def a_state_of_the_version_before_is_read(w):
    experiment(w, "-n", "o", "--arm", "a=echo a > a", "--score", "time:true", "--rounds", "1")
    path = w.store / "experiments" / "o" / "state.json"
    state = json.loads(path.read_text())
    assert state["version"] == 6
    for version, lost in ((5, ()), (4, ()), (3, ()), (2, ("inner",)), (1, ("inner", "machine"))):
        old = json.loads(json.dumps(state))
        old["version"] = version
        del old["saved"]
        for key in ("signed_only", "signers", "sign") if version < 5 else ():
            del old["on"][key]
        if version < 4:
            del old["waits_for"]
            for key in ("runs", "tasks"):
                del old["arms"][0]["rounds"][0][key]
        for key in lost:
            del old["arms"][0][key]
        if "machine" in lost:
            del old["on"]
        path.write_text(json.dumps(old))
        got = experiment(w, "show", "o")
        assert got["winner"] == "a" and got["inner"] == [] and len(got["arms"][0]["rounds"]) == 1, got


@live_test
def what_is_inside_of_a_state_of_version_3_is_read(w):
    plan(w, "deep", DEEP)
    before = experiment(w, "deep")["inner"]
    path = w.store / "experiments" / "deep" / "state.json"
    state = json.loads(path.read_text())

    def age(x):
        del x["saved"], x["waits_for"], x["on"]["signed_only"], x["on"]["signers"], x["on"]["sign"]
        for a in x["arms"]:
            a["rounds"] = [{"value": r["value"]} for r in a["rounds"]]
            for inner in a["inner"]:
                age(inner)

    age(state)
    state["version"] = 3
    path.write_text(json.dumps(state))
    got = experiment(w, "show", "deep")["inner"]
    assert before and [i["winner"] for i in got] == [i["winner"] for i in before], got


@live_test
def the_command_of_an_arm_cannot_start_an_experiment(w):
    """Only plans nest: neither with the store of the outer one nor with one of its own.

    Where there is no cgroup, a limit of memory is one of addresses, of which a sanitizer reserves terabytes.
    """
    built = ("--ro", str(SNAP.parent), "--mem", "0", "--env", "ASAN_OPTIONS=detect_leaks=0")
    own = f"SNAPCOW_STORE=/tmp/own {SNAP} experiment --arm b=true"
    got = experiment(w, "-n", "o", *built, "--arm", f"theirs={SNAP} experiment --arm b=true",
                     "--arm", f"own={own}", "--arm", f"mild={own}; test $? = 13", "--keep", "none")
    assert states(got) == {"theirs": "failed", "own": "failed", "mild": "passed"}, got
    assert [arm(got, name)["exit_code"] for name in ("theirs", "own")] == [13, 13], got
    assert b"there is no /dev/fuse" in w.ok("experiment", "show", "o").out
    assert [x["experiment"] for x in w.ok("exp", "list", "--json").json("snap.experiment/1")["experiments"]] == ["o"]
    nothing_is_left(w)


# --- what people see -------------------------------------------------------------------------

@live_test
def a_table_has_them_below_their_arm(w):
    plan(w, "deep", DEEP)
    page = w.top / "page.html"
    result = w.ok("experiment", "deep", "--html", page)
    lines = result.out.decode().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("deep "))
    assert [line.split()[0] for line in lines[at:at + 4]] == ["deep", "long", "short", "bad"], lines
    assert lines[at + 1].startswith("  long ") and "wins" in lines[at + 2], lines
    assert any(line.startswith("inside of deep: 'short' wins") for line in lines), lines
    assert b"deep/bad: failed" in result.err and b"deep/short: passed" in result.err, result.err
    text = page.read_text()
    assert "&emsp;short" in text and "inside of deep: " in text and "deep/long" in text
    assert b"  short " in w.ok("experiment", "show", "deep").out
    steps = w.ok("experiment", "-n", "s", "--json", "--steps", "deep").out.decode().splitlines()
    paths = {json.loads(line)["path"] for line in steps[:-1]}
    assert paths == {"plain", "deep", "deep/long", "deep/short", "deep/bad"}, paths
    assert {e["data"].get("arm") for e in receipts(w, "experiment-arm")} == paths


if __name__ == "__main__":
    sys.exit(livetest.main())

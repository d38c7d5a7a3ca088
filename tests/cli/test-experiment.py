"""experiment: several arms at once, judged alike; the decision, the promotion, and what a death leaves."""

import json
import os
import pty
import re
import select
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from experimenttest import arm, experiment, nothing_is_left, popen, receipts, states  # noqa: E402
from livetest import LONG, live_test  # noqa: E402
from runtest import alive, clone, clones, until  # noqa: E402
from schematest import fits  # noqa: E402

PID = os.getpid()  # tells our sleepers from those of the same program as another user


def sample(limit, slow, slower):
    """Two pass, one fails its check, one meets its limit, one is slower."""
    return ("--arm", "good=echo 'sleep 0.02' > work.sh; echo fixed > README.md",
            "--arm", f"slow=echo 'sleep {slower}' > work.sh; echo fixed > README.md",
            "--arm", "wrong=echo broken > README.md",
            "--arm", "endless=sleep 600",
            "--arm", f"worse=echo 'sleep {slow}' > work.sh; echo fixed > README.md; echo more > more",
            "--check", "grep -q fixed README.md", "--score", "time:sh work.sh", "--rounds", "3",
            "--time", limit, "--jobs", "5")


SAMPLE = sample("5s", 0.7, 0.9)


@live_test
def the_right_one_of_five_wins_and_the_table_says_why(w):
    got = experiment(w, "-n", "five", *SAMPLE)
    assert states(got) == {"good": "passed", "slow": "passed", "wrong": "check-failed",
                           "endless": "limit", "worse": "passed"}, states(got)
    assert got["winner"] == "good" and got["tie"] == [] and got["state"] == "ended", got
    assert arm(got, "endless")["limit"] == "time" and "limit" in arm(got, "endless")["why"]
    assert arm(got, "wrong")["checks"][0]["exit_code"] == 1
    assert len(arm(got, "good")["rounds"]) == 3 and arm(got, "good")["spread"] >= 0
    assert arm(got, "worse")["changed"]["added"] == 2, "the new file and the script"
    assert (w.project / "README.md").read_text() == "first\n", "nothing is promoted unasked"
    shown = w.ok("experiment", "show", "five").out.decode()
    for word in ("good", "wins", "check-failed", "limit: time", "'good' wins: its time is"):
        assert word in shown, shown
    assert b"five" in w.ok("exp", "list").out
    w.snap("exp", "promote", "fife", "good").fails(4, "there is no experiment 'fife'")
    nothing_is_left(w, "five-good")
    again = [experiment(w, act, "five") for act in ("show", "wait", "resume")]
    assert all(states(x) == states(got) and x["winner"] == "good" for x in again), again
    fits(got, *again, w.ok("exp", "list", "--json").json("snap.experiment/1"))
    w.ok("exp", "rm", "five")
    nothing_is_left(w)
    w.snap("exp", "show", "five").fails(4, "there is no experiment 'five'")


@live_test
def five_arms_have_exit_codes_and_their_steps_a_schema(w):
    """Of every arm, of its check, and of the command, whatever it is asked to do with the winner."""
    args = sample("2s", 0.3, 0.5)
    result = w.ok("experiment", "--json", "--steps", "-n", "five", *args, "--promote-best")
    *steps, got = (json.loads(line) for line in result.out.splitlines())
    fits(*steps, got)
    assert {s["path"] for s in steps if s.get("path")} == {"good", "slow", "wrong", "endless", "worse"}, steps
    assert {a["arm"]: a["exit_code"] for a in got["arms"]} == {
        "good": 0, "slow": 0, "wrong": 0, "endless": 124, "worse": 0}, got
    assert {a["arm"]: [c["exit_code"] for c in a["checks"]] for a in got["arms"]} == {
        "good": [0], "slow": [0], "wrong": [1], "endless": [], "worse": [0]}, got
    assert got["promoted"] == ["good"] and (w.project / "README.md").read_text() == "fixed\n", got
    # Nobody wins if those that fail are alone; without a score, those that pass tie.
    for picked, status in ((("wrong", "endless"), 15), (("good", "slow"), 16)):
        words = [x for word in args if word.split("=")[0] in picked for x in ("--arm", word)]
        got = experiment(w, *words, "--check", "grep -q fixed README.md", "--time", "2s", "--promote-best",
                         status=status)
        fits(got)
        assert got["winner"] is None and got["promoted"] == [] and len(got["tie"]) == (2 if status == 16 else 0), got


@live_test
def many_runs_have_the_same_winner(w):
    for i in range(20 if LONG else 3):
        got = experiment(w, *(SAMPLE if LONG else sample("2s", 0.3, 0.5)))
        assert got["winner"] == "good" and got["tie"] == [], (i, got["verdict"])
        assert sorted(states(got).values()) == ["check-failed", "limit", "passed", "passed", "passed"], (i, got)


@live_test
def the_best_is_promoted_through_its_checks_and_can_be_undone(w):
    got = experiment(w, "-n", "p", "--arm", "a=echo a > README.md; echo b > new",
                     "--arm", "b=echo b > README.md", "--check", "test -s README.md", "--score",
                     "lines", "--max", "--promote-best")
    assert got["winner"] == "a" and got["promoted"] == ["a"] and arm(got, "a")["promotion"], got
    assert (w.project / "README.md").read_text() == "a\n" and (w.project / "new").exists()
    nothing_is_left(w)
    w.ok("undo")
    assert (w.project / "README.md").read_text() == "first\n"


@live_test
def a_tie_or_no_pass_promotes_nothing_and_says_so(w):
    got = experiment(w, "--arm", "a=echo 1 > x", "--arm", "b=echo 2 > x", "--score", "lines",
                     "--promote-best", status=16)
    assert got["winner"] is None and sorted(got["tie"]) == ["a", "b"] and "tie" in got["verdict"]
    got = experiment(w, "--arm", "a=exit 3", "--arm", "b=kill -9 $$", "--promote-best", status=15)
    assert states(got) == {"a": "failed", "b": "failed"} and got["winner"] is None
    assert "signal 9" in arm(got, "b")["why"], got
    assert experiment(w, "--arm", "a=true", "--score", "echo words", status=15)["arms"][0][
        "state"] == "unscored"
    assert not (w.project / "x").exists() and receipts(w) == []


@live_test
def a_score_is_the_last_number_a_command_prints_and_a_size_that_of_a_file(w):
    got = experiment(w, "--arm", "a=echo 12 > n", "--arm", "b=echo 7.5 > n", "--score",
                     "echo scored; cat n", "--max")
    assert got["winner"] == "a" and arm(got, "b")["score"] == 7.5, got
    got = experiment(w, "--arm", "a=echo 12345 > 'a b'", "--arm", "b=echo 1 > 'a b'", "--score",
                     "size:a b")
    assert got["winner"] == "b" and arm(got, "a")["score"] == 6, got


@live_test
def checks_and_scores_cannot_change_what_is_promoted(w):
    got = experiment(w, "--arm", "a=echo a > made", "--check", "echo junk > made; touch more",
                     "--score", "echo 1; rm made; touch most", "--promote-best")
    assert got["promoted"] == ["a"], got
    assert (w.project / "made").read_text() == "a\n"
    assert not (w.project / "more").exists() and not (w.project / "most").exists()


@live_test
def what_stands_in_the_way_of_a_promotion_has_the_code_of_a_promotion(w):
    w.snap("experiment", "-n", "g", "--arm", "a=echo x > .envrc", "--promote-best").ends(7)
    assert not (w.project / ".envrc").exists()
    got = experiment(w, "show", "g")
    assert arm(got, "a")["warnings"][0]["kind"] == "guard" and clones(w) == ["g-a"], got
    got = experiment(w, "-n", "c", "--arm", "a=echo mine > README.md", "--arm",
                     "b=echo other > README.md")
    assert sorted(got["tie"]) == ["a", "b"] and len(clones(w)) == 3
    assert experiment(w, "promote", "c", "b")["promoted"] == ["b"]
    assert (w.project / "README.md").read_text() == "other\n"
    w.snap("experiment", "promote", "c", "b").fails(7, "promoted already")
    w.snap("experiment", "promote", "c", "a").ends(5)
    assert (w.project / "README.md").read_text() == "other\n"
    w.snap("experiment", "promote", "c", "z").fails(4, "no arm 'z'")


@live_test
def all_that_are_compatible_are_promoted_one_after_the_other(w):
    got = experiment(w, "--arm", "a=echo a > a", "--arm", "b=echo b > b", "--arm", "c=echo c > a",
                     "--arm", "d=echo d > d", "--check", "! test -e b || ! test -e d",
                     "--promote-all-compatible")
    assert got["promoted"] == ["a", "b"], got
    assert "conflicts" in arm(got, "c")["why"] and "check" in arm(got, "d")["why"], got
    assert sorted(p.name for p in w.project.iterdir()) == ["README.md", "a", "b", "src"]
    assert len(receipts(w)) == 2


@live_test
def the_first_that_passes_ends_the_others(w):
    got = experiment(w, "--arm", f"a=sleep 601.{PID}", "--arm", "b=echo b > b", "--arm", f"c=sleep 602.{PID}",
                     "--jobs", "2", "--first-pass", "--promote-best")
    assert got["winner"] == "b" and states(got) == {"a": "stopped", "b": "passed", "c": "stopped"}
    assert (w.project / "b").exists() and not alive(f"sleep 601.{PID}")
    nothing_is_left(w)
    got = experiment(w, "--arm", f"a=sleep 603.{PID}", "--arm", "b=true", "--all-time", "6s", "--jobs", "2")
    assert states(got) == {"a": "stopped", "b": "passed"} and "whole" in arm(got, "a")["why"]
    assert not alive(f"sleep 603.{PID}")


@live_test
def limits_of_the_whole_are_shared(w):
    got = experiment(w, "--arm", "a=head -c 20M /dev/urandom > big", "--arm", "b=echo 1 > small",
                     "--all-disk", "16M", "--all-mem", "256M", "--mem", "200M", "--jobs", "4",
                     "--allow-missing", "memory")
    assert states(got) == {"a": "limit", "b": "passed"} and got["jobs"] == 1, got
    assert arm(got, "a")["limit"] == "disk"
    w.snap("experiment", "--arm", "a=true", "--mem", "2G", "--all-mem", "1G").fails(2)
    for option in ("--all-mem", "--all-disk"):
        w.snap("experiment", "--arm", "a=true", "--arm", "b=true", "--jobs", "2", option, "1B").fails(2, "too little")


@live_test
def a_steady_command_and_one_that_never_passes_have_rates(w):
    got = experiment(w, "-n", "r", "--arm", "steady=true", "--arm", "never=false", "--repeat", "5",
                     "--jobs", "4")
    rates = {r["arm"]: r for r in got["rates"]}
    assert (rates["steady"]["runs"], rates["steady"]["passed"], rates["steady"]["high"]) == (5, 5, 1)
    assert 0.56 < rates["steady"]["low"] < 0.57, "Wilson: 5 of 5 is 56.6 to 100 per cent"
    assert rates["never"]["rate"] == 0 and 0.43 < rates["never"]["high"] < 0.44, rates
    nothing_is_left(w)
    assert b"steady passed 5 of 5 times: 100.0 %" in w.ok("exp", "show", "r").out


@live_test
def a_command_that_fails_every_third_time_has_its_rate_with_confidence(w):
    """What it depends on lies outside of the clone: a pipe that has one letter for each run."""
    place = w.top / "outside"
    place.mkdir()
    os.mkfifo(place / "luck")
    os.chmod(place / "luck", 0o666)
    luck = os.open(place / "luck", os.O_RDWR)
    flaky = f'test "$(dd if={place}/luck bs=1 count=1 2> /dev/null)" = p'
    try:
        os.write(luck, b"ppf" * 10)
        got = experiment(w, "-n", "r", "--ro", str(place), "--arm", f"flaky={flaky}", "--arm", "steady=true",
                         "--repeat", "30", "--jobs", "3")
        os.write(luck, b"pf" * 6)
        checked = experiment(w, "--ro", str(place), "--arm", "a=true", "--check", flaky, "--repeat", "12")
    finally:
        os.close(luck)
    fits(got, checked)
    rates = {r["arm"]: r for r in got["rates"]}
    assert (rates["flaky"]["runs"], rates["flaky"]["passed"], rates["flaky"]["rate"]) == (30, 20, 0.6667), rates
    assert (rates["flaky"]["low"], rates["flaky"]["high"]) == (0.4878, 0.8077), "Wilson, 95 per cent"
    assert rates["steady"]["passed"] == 30 and rates["steady"]["low"] > rates["flaky"]["high"], rates
    flaky_states = [a["state"] for a in got["arms"] if a["repeats"] == "flaky"]
    assert (flaky_states.count("passed"), flaky_states.count("failed")) == (20, 10), flaky_states
    assert [(r["passed"], r["rate"], r["low"], r["high"]) for r in checked["rates"]] == [(6, 0.5, 0.2538, 0.7462)]
    assert [a["state"] for a in checked["arms"]].count("check-failed") == 6, checked
    said = b"flaky passed 20 of 30 times: 66.7 % (with 95 % confidence 48.8 to 80.8 %)"
    assert said in w.ok("exp", "show", "r").out, w.ok("exp", "show", "r")
    nothing_is_left(w)


@live_test
def what_a_person_should_know_is_warned_of(w):
    (w.project / "tests").mkdir()
    (w.project / "tests" / "test_a.py").write_text("def test_a():\n    pass\n")
    (w.project / "tests" / "test_b.py").write_text("def test_b():\n    pass\n")
    got = experiment(w, "--arm", "a=rm tests/test_a.py; sed -i '1i @pytest.mark.skip' tests/test_b.py; "
                     "echo x > README.md", "--within", "tests/")
    told = {(x["kind"], x["path"]) for x in got["arms"][0]["warnings"]}
    assert told == {("test-deleted", "tests/test_a.py"), ("test-skipped", "tests/test_b.py"),
                    ("far", "README.md")}, told
    seen = w.ok("experiment", "show", got["experiment"]).out.decode()
    head, row = re.search(r"^(ARM .* WARN)\n(a .*)$", seen, re.M).groups()
    assert row[:len(head)].endswith(" 3!"), seen
    far = "README.md: it is outside of the paths that the change is meant for\n"
    assert f"! a: {far}" in seen and f"medium: {far}" in seen, seen
    (w.project / "docs").mkdir()
    got = experiment(w, "--arm", "a=mv tests/test_a.py docs/a.txt")
    told = {(x["kind"], x["path"]) for x in got["arms"][0]["warnings"]}
    assert told == {("test-deleted", "tests/test_a.py")}, told


@live_test
def steps_are_lines_in_a_pipe_and_objects_with_json(w):
    result = w.ok("experiment", "-n", "s", "--arm", "a=true", "--check", "true")
    assert result.err.decode().splitlines()[0] == "a: running", result
    assert b"a: checking" in result.err and b"a: passed" in result.err, result
    lines = w.ok("experiment", "--json", "--steps", "--arm", "a=true").out.splitlines()
    acts = [json.loads(line)["act"] for line in lines]
    assert acts == ["step"] * (len(acts) - 1) + ["run"] and len(acts) >= 3, acts


@live_test
def a_terminal_has_a_table_that_goes_and_a_result_that_stays(w):
    main, side = pty.openpty()
    process = popen(w, "experiment", "-n", "t", "--arm", "a=true", "--arm", "b=false",
                    stdout=side, stderr=side, env={**w.env, "TERM": "xterm"})
    os.close(side)
    said = b""
    while select.select([main], [], [], 60)[0]:
        try:
            part = os.read(main, 4096)
        except OSError:
            break
        said += part
    assert process.wait(60) == 0, said
    os.close(main)
    assert b"running" in said and b"\033[J" in said, said
    assert b"wins" in said.split(b"\033[J")[-1], said


@live_test
def the_exit_code_says_which_signal_ended_it(w):
    def ends(process, begun, by):
        until(lambda: list((w.store / "clones").glob(begun)))
        process.send_signal(by)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 128 + by, (process.returncode, out, err)

    for by in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        ends(popen(w, "experiment", "-n", f"s{int(by)}", "--arm", "a=touch begun; sleep 1000"), f"s{int(by)}-a/begun", by)
        ends(popen(w, "experiment", "resume", f"s{int(by)}"), f"s{int(by)}-a/begun", signal.SIGTERM)
    # Also while a promotion checks what it would make of the project.
    w.ok("experiment", "-n", "p", "--arm", "a=echo a > a", "--check", "! test -e slow || { touch begun; sleep 1000; }")
    (w.project / "slow").touch()
    ends(popen(w, "experiment", "promote", "p", "a"), "run-*/begun", signal.SIGTERM)
    assert not (w.project / "a").exists()


@live_test
def an_interrupted_one_leaves_no_run_and_is_resumed(w):
    process = popen(w, "experiment", "-n", "i", "--arm", "a=echo a > a", "--arm",
                    "b=test -e go && exit 0; until [ -e stop ]; do sleep 0.05; done", "--jobs", "2")
    until(lambda: (w.store / "clones" / "i-b").exists() and b"passed" in w.snap("exp", "show", "i").out)
    w.snap("experiment", "resume", "i").fails(11, "another process")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and b"experiment resume i" in err, (out, err)
    assert w.ok("ps", "--json").json("snap.ps/1")["runs"] == []
    assert b"interrupted" in w.ok("exp", "list").out and clones(w) == ["i-a"]
    refused = w.snap("experiment", "promote", "i", "a").fails(11, "interrupted")
    assert b"experiment resume i" in refused.err and b"experiment wait" not in refused.err, refused
    process = popen(w, "experiment", "resume", "--json", "i")
    until(lambda: (w.store / "clones" / "i-b").exists())
    until(lambda: w.ok("ps", "--json").json("snap.ps/1")["runs"])
    w.ok("run", "--no-snapshot", "i-b", "--", "touch", "stop")
    got = json.loads(process.communicate(timeout=60)[0])
    assert states(got) == {"a": "passed", "b": "passed"} and process.returncode == 0, got
    first = [e for e in receipts(w, "run-started") if e["clone"] == "i-a"]
    assert len(first) == 1, "only what was missing ran"


@live_test
def a_clone_of_somebody_else_is_not_removed(w):
    process = popen(w, "experiment", "-n", "fix", "--jobs", "1", "--arm",
                    "a=until [ -e stop ]; do sleep 0.05; done", "--arm", "b=true")
    until(lambda: (w.store / "clones" / "fix-a").exists())
    (clone(w, "fix-b") / "mine").write_text("mine\n")
    until(lambda: w.ok("ps", "--json").json("snap.ps/1")["runs"])
    w.ok("run", "--no-snapshot", "fix-a", "--", "touch", "stop")
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0 and b"fix-b" in err, err
    assert "fix-b" in clones(w)
    w.ok("exp", "rm", "fix")
    assert clones(w) == ["fix-b"] and (w.store / "clones" / "fix-b" / "mine").exists()
    clone(w, "j-a.check")
    w.snap("experiment", "-n", "j", "--arm", "a=true", "--check", "true").fails(1, "there is a clone 'j-a.check'")


@live_test
def what_changed_after_it_was_judged_is_not_promoted(w):
    experiment(w, "-n", "u", "--arm", "a=echo a > a", "--check", "true")
    w.ok("run", "--no-snapshot", "u-a", "--", "sh", "-c", "echo unseen > a")
    w.snap("experiment", "promote", "u", "a").fails(7, "was changed after arm 'a' was judged")
    assert not (w.project / "a").exists() and experiment(w, "show", "u")["state"] == "ended"


@live_test
def a_promotion_that_fails_leaves_an_ended_one_ended(w):
    experiment(w, "-n", "e", "--arm", "a=echo a > a", "--arm", "b=echo b > b", "--keep", "passed")
    w.ok("rm", "--force", "e-b")
    w.snap("experiment", "promote", "e", "b").ends(4)
    assert experiment(w, "show", "e")["state"] == "ended"
    assert experiment(w, "resume", "e")["promoted"] == [] and not (w.project / "a").exists()


@live_test
def scores_that_cannot_be_added_up_are_refused_and_small_ones_are_exact(w):
    got = experiment(w, "-n", "h", "--arm", "a=true", "--score", "echo 1e308", status=15)
    assert arm(got, "a")["state"] == "unscored", got
    experiment(w, "-n", "l", "--arm", "a=true", "--score", "echo 1.5e-9")
    assert json.loads((w.store / "experiments" / "l" / "state.json").read_text())["arms"][0]["score"] == 1.5e-9


@live_test
def a_winner_that_was_not_kept_is_not_offered(w):
    assert b"to take it" in w.ok("experiment", "--arm", "a=echo a > a").out
    assert b"to take it" not in w.ok("experiment", "--arm", "a=echo a > a", "--keep", "none").out
    tied = ("experiment", "-n", "tied", "--arm", "a=true", "--arm", "b=true")
    assert b"to take one of them: snap experiment promote tied a\n" in w.ok(*tied).out.replace(b"snapcow", b"snap")


@live_test
def what_nohup_ignores_stays_ignored(w):
    process = popen(w, "experiment", "-n", "n", "--arm", "a=until [ -e stop ]; do sleep 0.05; done",
                    preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    until(lambda: w.ok("ps", "--json").json("snap.ps/1")["runs"])
    process.send_signal(signal.SIGHUP)
    w.ok("run", "--no-snapshot", "n-a", "--", "touch", "stop")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, (out, err)


@live_test
def what_is_wrong_with_a_plan_is_said_before_anything_is_done(w):
    for words in (["--arm", "a"], ["--arm", "=true"], ["--arm", "a b=true"], ["--arm", "a=true"] * 2,
                  ["--arm", "a=true", "--min", "--max", "--score", "lines"], ["--check", "true"],
                  ["--arm", "a=true", "--score", "size"], ["--arm", "a=true", "--keep", "some"],
                  ["--arm", "a=true", "--repeat", "2", "--promote-best"], ["-n", "-x", "--arm", "a=true"],
                  ["--arm", "a=true", "-n", "x" * 40], ["show"], ["promote", "x"], ["bogus", "more"]):
        w.snap("experiment", *words).fails(2)
    w.snap("experiment", "bogus").fails(4, "there is no plan 'bogus'")
    w.snap("experiment", "--arm", "a=true", "--from", "nope").ends(4)
    w.snap("experiment", "--arm", "a=true", "--profile", "nope").ends(4)
    assert b"no experiments" in w.ok("exp", "list", "--all").out


if __name__ == "__main__":
    sys.exit(livetest.main())

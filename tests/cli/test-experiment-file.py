"""experiment: plans in files, the matrix, and how far a project's file is trusted."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from experimenttest import plan  # noqa: E402
from livetest import live_test  # noqa: E402
from runtest import alive, clone, clones  # noqa: E402

PID = os.getpid()  # tells our sleepers from those of the same program as another user


def own_plan(w, name, text):
    file = Path(w.env["HOME"]) / ".config" / "snapcow" / "experiments" / f"{name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def experiment(w, *args, status=0):
    """As an ordinary user it has no cgroup in which memory and processors could be limited."""
    missing = ("--allow-missing", "memory", "--allow-missing", "cpu")
    return w.snap("experiment", "--json", *missing, *args).json("snap.experiment/1", "experiment", "arms", "winner",
                                                               status=status)


def arms(got):
    return {a["arm"]: a for a in got["arms"]}


FULL = """\
description: which of them is shortest
base: first
env: {WORD: all}
arms:
  long: echo "$WORD and more" > out
  short:
    run: echo "$WORD" > out
    env: {WORD: x}
    profile: strict
  old: {run: cat README.md > out, base: second}
  wrong: "true"
checks:
  - test -s out
score: wc -c < out
better: lower
rounds: 2
limits: {mem: 128M, time: 30s, pids: 64, disk: 10M}
all: {time: 5m, mem: 512M, disk: 100M}
jobs: 2
keep: passed
within: [src/]
"""


@live_test
def a_file_has_all_that_options_have(w):
    w.ok("snapshot", "-t", "first")
    (w.project / "README.md").write_text("a second and longer one\n")
    w.ok("snapshot", "-t", "second")
    plan(w, "full", FULL)
    got = experiment(w, "full")
    by = arms(got)
    assert {n: a["state"] for n, a in by.items()} == {
        "long": "passed", "short": "passed", "old": "passed", "wrong": "check-failed"}, got
    assert got["experiment"] == got["file"] == "full" and got["winner"] == "short", got
    assert (by["short"]["score"], by["long"]["score"], by["old"]["score"]) == (2, 13, 24), "env, base"
    assert by["short"]["profile"] == "strict" and by["short"]["env"] == ["WORD=x"], by["short"]
    assert by["old"]["from"] and by["long"]["from"] is None, by
    assert len(by["short"]["rounds"]) == 2 and got["jobs"] == 2, got
    assert by["long"]["warnings"][0]["kind"] == "far", by["long"]
    assert sorted(clones(w)) == ["full-long", "full-old", "full-short"], "keep: passed"
    # The second one of the same file has a number, and options have the last word.
    got = experiment(w, "full", "--keep", "none", "--max", "--rounds", "1", "--check", "true", "--arm", "e=echo > out")
    assert got["experiment"] == "full-2" and got["winner"] == "old" and "e" in arms(got), got
    assert len(got["checks"]) == 2 and len(arms(got)["e"]["rounds"]) == 1
    assert experiment(w, "-n", "mine", "full", "--keep", "none")["experiment"] == "mine"


@live_test
def a_matrix_makes_an_arm_of_each_combination(w):
    plan(w, "m", "run: echo $cc-$opt > out\nmatrix: {cc: [gcc, clang], opt: [O1, \"-O2 -g\"]}\n"
         "exclude:\n  - {cc: clang, opt: O1}\nscore: wc -c < out\n")
    got = experiment(w, "m", "--keep", "all")
    assert list(arms(got)) == ["cc=gcc,opt=O1", "cc=gcc,opt=-O2 -g", "cc=clang,opt=-O2 -g"], list(arms(got))
    assert got["winner"] == "cc=gcc,opt=O1" and arms(got)["cc=clang,opt=-O2 -g"]["score"] == 13, got
    assert sorted(clones(w)) == ["m-cc-clang-opt--O2--g", "m-cc-gcc-opt--O2--g", "m-cc-gcc-opt-O1"], clones(w)
    got = experiment(w, "promote", "m", "cc=clang,opt=-O2 -g")
    assert (w.project / "out").read_text() == "clang--O2 -g\n", got
    # The same on the command line; long names and names that look alike have clones, too.
    got = experiment(w, "-n", "c", "--arm", "a=echo $v", "--matrix", "v=x,x.check," + "y" * 60, "--keep", "all",
                     "--arm-env", "a:W=1", "--arm-profile", "a:strict", "--arm-base", "a:@")
    assert [a["env"][-1] for a in got["arms"]] == ["v=x", "v=x.check", "v=" + "y" * 60], got
    assert all(a["env"][0] == "W=1" and a["profile"] == "strict" and a["from"] for a in got["arms"]), got
    assert len({a["clone"] for a in got["arms"]}) == 3
    w.snap("experiment", "--arm", "a=true", "--exclude", "v=1").fails(2, "needs '--matrix'")
    w.snap("experiment", "--arm", "a=true", "--matrix", "v=1", "--exclude", "v=2").fails(2, "no arm has 'v=2'")
    w.snap("experiment", "--arm", "a=true", "--arm-env", "b:X=1").fails(2, "begins with the name of no arm")


LOSERS = f"""\
arms: {{small: echo 1 > n, large: seq 9 > n}}
checks: ["test $(wc -l < n) = 1 || sleep 608.{PID}"]
score: lines
jobs: 2
limits: {{time: 20s}}
stop_losers: true
"""


@live_test
def a_file_says_not_to_wait_for_arms_that_another_has_beaten(w):
    inner = "".join(f"      {line}\n" for line in LOSERS.splitlines())
    plan(w, "losers", LOSERS)
    plan(w, "inside", f"arms:\n  deep:\n    experiment:\n{inner}")
    for name in ("losers", "inside"):
        got = experiment(w, name)
        by = arms(got if name == "losers" else got["inner"][0])
        assert {n: a["state"] for n, a in by.items()} == {"small": "passed", "large": "stopped"}, got
        assert "cannot win any more: 'small' changed fewer lines" in by["large"]["why"], got
        assert not alive(f"sleep 608.{PID}")
    own_plan(w, "own", "arms: {a: x}\nscore: lines\npromote: all-compatible\nstop_losers: true\n")
    w.snap("experiment", "own").fails(2, "4:1: 'stop_losers' excludes 'promote: all-compatible'")
    plan(w, "losers", LOSERS.replace("true", "false"))
    w.snap("experiment", "losers", "--promote-all-compatible", "--time", "1s").ends(0)


CHAIN = """\
arms:
  fine: {run: "test -s rough; echo fine > fine", after: rough}
  finer: {run: "test -s fine; echo finer > fine", after: fine}
  same: {run: "test -s rough", after: rough}
  rough: echo rough > rough
  bad: exit 3
  never: {run: echo never > never, after: bad}
  nor: {run: "true", after: never}
checks: ["! test -e never"]
score: cat * | wc -c
better: higher
jobs: 2
keep: passed
"""


@live_test
def an_arm_goes_on_from_what_another_left_within_the_limits_of_the_whole(w):
    plan(w, "chain", CHAIN)
    got = experiment(w, "chain", "--all-time", "5m")
    by = arms(got)
    assert {n: a["state"] for n, a in by.items()} == {
        "rough": "passed", "fine": "passed", "finer": "passed", "same": "passed", "bad": "failed",
        "never": "stopped", "nor": "stopped"}, got
    assert "goes on from did not pass" in by["never"]["why"] and by["never"]["run"] is None, by["never"]
    assert by["finer"]["after"] == "fine" and by["rough"]["after"] is None and got["winner"] == "finer", got
    # What would be promoted is what all of them changed, and that is what is counted.
    assert {n: by[n]["changed"]["lines_added"] for n in ("rough", "fine", "finer", "same")} == {
        "rough": 1, "fine": 2, "finer": 2, "same": 1}, by
    assert {n: by[n]["changed"]["added"] for n in ("rough", "fine", "finer", "same")} == {
        "rough": 1, "fine": 2, "finer": 2, "same": 1}, by
    assert by["same"]["result"] == by["rough"]["result"], by
    assert experiment(w, "promote", "chain", "finer")["promoted"] == ["finer"]
    assert (w.project / "rough").read_text() == "rough\n" and (w.project / "fine").read_text() == "finer\n"
    # The time of the whole ends those that wait, too.
    got = experiment(w, "-n", "t", "--all-time", "1s", "--arm", "a=sleep 60", "--arm", "b=true", "--arm-after", "b:a",
                     status=15)
    assert {a["state"] for a in got["arms"]} == {"stopped"} and "time of the whole" in arms(got)["b"]["why"], got
    # Each combination goes on from its own.
    got = experiment(w, "-n", "x", "--arm", "a=echo $v > v", "--arm", 'b=test "$(cat v)" = "$v"', "--arm-after", "b:a",
                     "--matrix", "v=1,2", "--keep", "none")
    assert [(a["arm"], a["after"], a["state"]) for a in got["arms"]][2:] == [
        ("b,v=1", "a,v=1", "passed"), ("b,v=2", "a,v=2", "passed")], got
    for words, said in ((("b:c",), "'c', which is no arm"), (("a:b", "b:a"), "go on from it"),
                        (("a:a",), "go on from it"), (("b:a", "--repeat", "2"), "cannot be repeated"),
                        (("b:a", "--arm-base", "b:@"), "another state to start from")):
        more = [x for word in words for x in (("--arm-after", word) if word[1:2] == ":" and word != "b:@" else (word,))]
        w.snap("experiment", "--arm", "a=true", "--arm", "b=true", *more).fails(2, said)


@live_test
def a_mistake_is_named_with_file_line_and_field(w):
    mistakes = {
        "arms: {a: x}\nscre: time\n": "2:1: unknown key 'scre', did you mean 'score'?",
        "arms:\n  a: {run: x, profle: y}\n": "2:15: unknown key 'profle' of an arm, did you mean 'profile'?",
        "arms:\n  a b: x\n": "2:3: 'arms': 'a b' is no name of an arm",
        "arms:\n  a=b: x\n": "2:3: 'arms': 'a=b' is no name of an arm",
        "arms:\n  a:\n": "2:3: arm 'a': expected a line for the shell",
        "arms:\n  a: {env: {X: y}}\n": "2:3: arm 'a' has no 'run'",
        "arms:\n  a: {run: x, env: {1X: y}}\n": "2:21: 'env': '1X' is not the name of a variable",
        "arms: {a: x}\nlimits:\n  mem: lots\n": "3:8: 'limits.mem' is 'lots', expected a size",
        "arms: {a: x}\nlimits: {cpus: 1}\n": "2:10: unknown key 'limits.cpus', expected mem",
        "arms: {a: x}\nall: {pids: 1}\n": "2:7: unknown key 'all.pids'",
        "arms: {a: x}\nrounds: 0\n": "2:9: 'rounds' is '0', expected a number from 1",
        "arms: {a: x}\nscore: size\n": "2:8: 'score': the score 'size' needs a file",
        "arms: {a: x}\nbetter: higher\n": "2:1: 'better' needs 'score'",
        "arms: {a: x}\nkeep: some\n": "2:7: 'keep' is 'some', expected best, passed",
        "arms: {a: x}\nnet: a b c\n": "2:6: 'net': ",
        "arms: {a: x}\nprofile: nowhere\n": "2:1: 'profile': there is no profile 'nowhere'",
        "arms: {a: x}\nbase: nowhere\n": "2:1: 'base': there is no clone or snapshot 'nowhere'",
        "arms: {a: x}\nfirst_pass: true\nstop_after: 2\n": "3:1: 'stop_after' excludes 'first_pass'",
        "arms: {a: x}\nstop_losers: true\n": "2:1: 'stop_losers' needs 'score'",
        "arms: {a: x}\nscore: lines\nrepeat: 2\nstop_losers: true\n": "4:1: 'stop_losers' excludes 'repeat'",
        "arms: {a: x}\nscore: lines\nstop_losers: 2\n": "3:14: 'stop_losers' is '2', expected true or false",
        "run: x\n": "1:1: 'run' needs 'matrix'",
        "run: x\nmatrix: {a: [1]}\narms: {a: x}\n": "1:1: 'run' excludes 'arms'",
        "run: x\nmatrix: {a: 1}\n": "2:10: 'matrix': 'a' is no list of values",
        "run: x\nmatrix: {a: [1, 1]}\n": "2:17: 'matrix': 'a' has the value '1' twice",
        "run: x\nmatrix: {a: []}\n": "2:10: 'matrix': 'a' has no values",
        "run: x\nmatrix: {a: [1]}\nexclude: [{a: 2}]\n": "3:12: 'exclude': no arm has 'a=2'",
        "run: x\nmatrix: {a: [1]}\nexclude: [{a: 1}]\n": "2:1: 'matrix': nothing is left",
        "arms: {a: x}\nchecks:\n": "2:1: 'checks' has no value",
        "arms: &a {a: x}\n": ":1:",
        "- a\n": "1:1: expected keys and values",
        "": "1:1: expected keys and values",
        "description: nothing\n": "1:1: there is no arm",
    }
    w.ok("init")
    for text, why in mistakes.items():
        plan(w, "bad", text)
        w.snap("experiment", "bad").fails(2, ".snap/experiments/bad.yaml:" + why.lstrip(":"))
    w.snap("experiment", "nowhere").fails(4, "there is no plan 'nowhere'")
    w.snap("experiment", "../x").fails(4, "there is no plan")
    w.snap("experiment", "bad", "more").fails(2)
    assert clones(w) == [] and w.ok("-q", "exp", "list").out == b""


@live_test
def a_file_of_the_project_may_only_narrow(w):
    w.ok("init")
    other = w.top / "other"
    other.mkdir()
    (other / "secret").write_text("theirs\n")
    w.ok("-C", str(other), "clone", "-n", "theirs")
    more = {
        "limits: {mem: 8G}": "2:10: 'limits.mem' is more than profile 'default' has",
        "limits: {time: 0}": "2:10: 'limits.time' is more than",
        "limits: {disk: 900G}": "2:10: 'limits.disk' is more than",
        "limits: {pids: 0}": "2:10: 'limits.pids' is more than",
        "net: host": "2:1: 'net' allows more than profile 'default' has",
        "net: example.org:443": "2:1: 'net' allows more",
        "pass_env: [HOME]": "2:1: 'pass_env' names a variable more than",
        "ro: [/root]": "2:1: 'ro' shows more of the host",
        "promote: best": "2:1: 'promote' writes the project",
        "allow: [.envrc]": "2:1: 'allow' opens the guard",
        "allow_missing: [memory]": "2:1: 'allow_missing' takes walls away",
        "base: theirs": "2:1: 'base' is of another project",
    }
    for line, why in more.items():
        plan(w, "wide", "arms: {a: 'true'}\n" + line + "\n")
        w.snap("experiment", "wide").fails(7, ".snap/experiments/wide.yaml:" + why)
    plan(w, "wide", "arms:\n  a: {run: 'true', base: theirs}\n")
    w.snap("experiment", "wide").fails(7, ":2:3: 'base' is of another project")
    # A wider profile allows more, and one arm with a narrower one less.
    plan(w, "wide", "arms: {a: 'true'}\nlimits: {mem: 2G}\n")
    w.snap("experiment", "wide").ends(7)
    experiment(w, "wide", "--profile", "build")
    plan(w, "wide", "profile: build\narms:\n  a: 'true'\n  b: {run: 'true', profile: strict}\nlimits: {mem: 2G}\n")
    w.snap("experiment", "wide").fails(7, "5:10: 'limits.mem' is more than profile 'strict' has")
    assert [c for c in clones(w) if c.startswith("wide-b")] == []


@live_test
def a_file_of_your_own_is_trusted_and_comes_after_the_projects(w):
    own_plan(w, "p", "arms: {a: 'echo a > made'}\npromote: best\nlimits: {time: 0}\n")
    got = experiment(w, "p")
    assert got["promoted"] == ["a"] and (w.project / "made").exists(), got
    plan(w, "p", "arms: {theirs: 'true'}\n")
    assert list(arms(experiment(w, "p"))) == ["theirs"]
    assert experiment(w, "p", "--promote-best")["experiment"] == "p-3", "options may promote"


@live_test
def no_link_of_the_project_is_followed(w):
    outside = w.top / "outside"
    outside.mkdir()
    (outside / "x.yaml").write_text("arms: {a: 'true'}\n")
    (w.project / ".snap").mkdir(exist_ok=True)
    os.symlink(outside, w.project / ".snap" / "experiments")
    w.snap("experiment", "x").fails(4, "there is no plan")
    (w.project / ".snap" / "experiments").unlink()
    (w.project / ".snap" / "experiments").mkdir()
    os.symlink(outside / "x.yaml", w.project / ".snap" / "experiments" / "x.yaml")
    w.snap("experiment", "x").fails(2, "x.yaml")
    (w.project / ".snap" / "experiments" / "x.yaml").unlink()
    os.mkfifo(w.project / ".snap" / "experiments" / "x.yaml")
    w.snap("experiment", "x").fails(2, "no regular file")


@live_test
def a_file_in_a_clone_is_not_the_projects(w):
    """What a run wrote counts only once it was promoted, and then it may only narrow."""
    w.ok("init")
    path = clone(w, "c")
    (path / ".snap" / "experiments").mkdir(parents=True)
    (path / ".snap" / "experiments" / "evil.yaml").write_text("arms: {a: 'true'}\n")
    w.snap("experiment", "evil").fails(4)


if __name__ == "__main__":
    sys.exit(livetest.main())

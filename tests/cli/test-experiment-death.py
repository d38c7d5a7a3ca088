"""experiment, when something dies: the command, cowfsd, an arm; what is resumed, promoted and left."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from experimenttest import arm, detached, experiment, nothing_is_left, plan, popen, receipts, states  # noqa: E402
from livetest import LONG, chosen, live_test, note, share, timed  # noqa: E402
from runtest import clone, clones, until  # noqa: E402
from snaptest import SNAP, Skip, dice, gone, stop_process  # noqa: E402


# --- what is remembered ----------------------------------------------------------------------

@live_test
def what_kept_it_from_promoting_is_told_again(w):
    for name, script, code in (("g", "echo x > .envrc", 7), ("c", "echo mine > README.md", 5)):
        process = popen(w, "experiment", "-n", name, "--arm", f"a={script}; until [ -e stop ]; do sleep 0.05; done; "
                        "rm stop", "--promote-best")
        until(lambda: w.ok("ps", "--json").json("snap.ps/1")["runs"])
        (w.project / "README.md").write_text(f"theirs {name}\n")
        w.ok("run", "--no-snapshot", f"{name}-a", "--", "touch", "stop")
        process.communicate(timeout=60)
        assert process.returncode == code, (name, process.returncode)
        w.snap("experiment", "resume", name).ends(code)
        w.snap("experiment", "wait", name).ends(code)
        got = experiment(w, "wait", name, status=code)
        assert got["winner"] == "a" and "not promoted" in arm(got, "a")["why"], got
        w.snap("experiment", "promote", name, "a").ends(code)
        w.snap("experiment", "wait", name).ends(code)
    assert (w.project / "README.md").read_text() == "theirs c\n" and not (w.project / ".envrc").exists()


@live_test
def all_that_is_compatible_has_the_same_code_afterwards(w):
    got = experiment(w, "-n", "h", "--arm", "a=echo x > .envrc", "--promote-all-compatible", status=5)
    assert got["promoted"] == [] and "guard" in arm(got, "a")["why"], got
    assert experiment(w, "wait", "h", status=5)["promoted"] == []
    got = experiment(w, "-n", "i", "--arm", "a=echo x > .envrc", "--arm", "b=echo b > b", "--promote-all-compatible")
    assert experiment(w, "resume", "i")["promoted"] == ["b"] == got["promoted"]


@live_test
def a_winner_whose_clone_is_removed_before_it_lands_ends_it(w):
    process = popen(w, "experiment", "-n", "x", "--arm", "a=echo a > a; until [ -e stop ]; do sleep 0.05; done; rm stop",
                    "--check", "[ ! -e gate ] || until [ -e go ]; do sleep 0.05; done", "--promote-best")
    until(lambda: w.ok("ps", "--json").json("snap.ps/1")["runs"])
    (w.project / "gate").touch()  # the merged tree has it, and the arm has not
    w.ok("run", "--no-snapshot", "x-a", "--", "touch", "stop")
    until(lambda: list((w.store / "clones").glob("run-*/gate")))
    w.ok("rm", "--force", "x-a")
    for gate in (w.store / "clones").glob("run-*/gate"):
        gate.with_name("go").touch()
    process.communicate(timeout=60)
    assert process.returncode == 4, process.returncode
    for word in ("wait", "resume"):
        got = experiment(w, word, "x", status=4)
        assert got["state"] == "ended" and arm(got, "a")["why"] == "not promoted: its clone was removed", got
    assert not (w.project / "a").exists()
    w.ok("experiment", "rm", "x")
    nothing_is_left(w)


# --- whose clone it is -----------------------------------------------------------------------

def stopped_before(w, *words):
    """As a kill -9 leaves it that comes when the state names the clone of `b`, and nobody has made it."""
    process = popen(w, "experiment", *words)
    until(lambda: w.ok("ps", "--json").json("snap.ps/1")["runs"])
    process.kill()
    process.communicate(timeout=60)
    path = w.store / "experiments" / "o" / "state.json"
    state = json.loads(path.read_text())
    state["arms"][1].update(has_clone=True, state=1, attempts=1)
    path.write_text(json.dumps(state))


OWNER = ("-n", "o", "--jobs", "1", "--arm", "a=until [ -e stop ]; do sleep 0.05; done", "--arm", "b=true")


@live_test
def a_name_that_somebody_took_before_the_arm_had_its_clone_stays_theirs(w):
    stopped_before(w, *OWNER)
    (clone(w, "o-b") / "mine").write_text("mine\n")
    w.snap("experiment", "rm", "o").ends(0)
    assert clones(w) == ["o-b"] and (w.store / "clones" / "o-b" / "mine").exists()
    assert w.ok("ps", "--json").json("snap.ps/1")["runs"] == []


@live_test
def a_clone_that_was_finished_after_its_maker_died_is_used_again(w):
    stopped_before(w, *OWNER)
    path = w.store / "experiments" / "o" / "state.json"
    state = json.loads(path.read_text())
    state["arms"][0].update(has_clone=False, state=0, now=None)
    path.write_text(json.dumps(state))
    assert clones(w) == ["o-a"]
    before = [r["run"] for r in w.ok("ps", "--json").json("snap.ps/1")["runs"]]
    process = popen(w, "experiment", "resume", "--json", "o")
    until(lambda: [r for r in w.ok("ps", "--json").json("snap.ps/1")["runs"] if r["run"] not in before])
    w.ok("run", "--no-snapshot", "o-a", "--", "touch", "stop")
    got = json.loads(process.communicate(timeout=60)[0])
    assert process.returncode == 0 and states(got) == {"a": "passed", "b": "passed"}, got
    w.ok("experiment", "rm", "o")
    nothing_is_left(w)


# --- deaths ----------------------------------------------------------------------------------
ARMS = ("-n", "w", "--arm", "a=echo a > a; echo a > README.md", "--arm", "b=echo b > b", "--arm", "c=exit 1", "--check",
        "test -e a -o -e b && cat README.md > built", "--score", "wc -c < built", "--jobs", "2")
# What is killed; "promote" has the experiment behind it.
WALKS = {"plain": ARMS, "best": (*ARMS, "--promote-best"), "compatible": (*ARMS, "--promote-all-compatible"),
         "chain": (*ARMS, "--arm", "d=echo d > d; : > README.md", "--arm-after", "d:b", "--promote-best"),
         "inner": (*ARMS, "--arm", "e=echo b > b", "--arm-file", "e=inner", "--promote-best"),
         "promote": ("promote", "w", "a")}
INNER = "arms: {x: ': > README.md; echo d > d', y: echo d > d}\nchecks: [test -e d -a -e b]\nscore: wc -c < README.md\n"
# Between two of these nothing is different outside of the process, so to die there is to die at the next one.
CALLS = ("renameat", "sendmsg", "fsync", "clone", "inotify_add_watch", "mkdir", "mkdirat", "unlinkat", "rmdir")


def strace(w, walk, *words, log="/dev/null", **more):
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": w.project, "env": w.env, **more}
    return subprocess.Popen(["strace", "-o", str(log), *words, str(SNAP), "experiment", "--json",
                             *WALKS.get(walk, walk)], **more)


def ended(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def picture(w):
    return {p.name: p.read_bytes() for p in sorted(w.project.iterdir()) if p.is_file()}


def put_back(w):
    if b"w" in w.ok("-q", "exp", "list").out.split():
        w.ok("exp", "rm", "w")
    nothing_is_left(w)
    for name in ("a", "b", "d"):
        (w.project / name).unlink(missing_ok=True)
    (w.project / "README.md").write_text("first\n")


def outcome(w, before):
    """All that must be the same, whoever died: the decision, the project, how often it was written, what is kept."""
    got = experiment(w, "show", "w")
    return {"inner": [(i["arm"], states(i), i["winner"]) for i in got["inner"]],
            "winner": got["winner"], "promoted": got["promoted"], "states": states(got), "state": got["state"],
            "scores": [a["score"] for a in got["arms"]], "verdict": got["verdict"], "project": picture(w),
            "receipts": len(set(promotions(w)) - before), "clones": sorted(clones(w)),
            "runs": w.ok("ps", "--json").json("snap.ps/1")["runs"]}


def promotions(w):
    """Which there were.  The oldest go after some hundreds of experiments, so their number says nothing."""
    return [json.dumps(e, sort_keys=True) for e in receipts(w)]


def begin(w, walk):
    """The promotions before it."""
    if walk == "inner":
        plan(w, "inner", INNER)
    if walk == "promote":
        assert experiment(w, *ARMS)["winner"] == "a"
    return set(promotions(w))


def undisturbed(w, walk):
    """What comes of it, and how often it makes each of the calls."""
    path, before = w.top / "trace", begin(w, walk)
    status, _, err = ended(strace(w, walk, "-e", "trace=" + ",".join("?" + c for c in CALLS), log=path))
    if b"ptrace" in err or not path.exists():
        raise Skip(f"strace cannot trace here: {err[:200]!r}")
    assert status == 0, err
    calls = [line.split("(", 1)[0] for line in path.read_text(errors="replace").splitlines()]
    want = outcome(w, before)
    assert want["promoted"] == {"plain": [], "best": ["a"], "compatible": ["a", "b"], "chain": ["d"],
                                "inner": ["e"], "promote": ["a"]}[walk], want
    put_back(w)
    return want, {c: calls.count(c) for c in CALLS if c in calls}


def go_on(w, walk):
    """Whatever a person would type next."""
    if walk == "promote":
        w.snap("experiment", "resume", "w").ends(0)
        if not experiment(w, "show", "w")["promoted"]:
            experiment(w, *WALKS[walk])
    elif w.snap("experiment", "resume", "w").status == 4:  # it died before the state was there
        experiment(w, *WALKS[walk])


def die_and_go_on(w, walk, want, call, n):
    before = begin(w, walk)
    status, _, err = ended(strace(w, walk, "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={n}"))
    if status != 0:
        assert status == -signal.SIGKILL, (status, err)
        go_on(w, walk)
    got = outcome(w, before)
    assert got == want, f"{walk}, {call} {n}:\n{got}\n{want}"
    put_back(w)


@live_test
def killed_at_any_step_it_is_resumed_and_promotes_once(w):
    w.ok("init")
    chance = dice()
    for walk in chosen(WALKS) if LONG else chance.sample(sorted(WALKS), 2):
        want, calls = undisturbed(w, walk)
        places = [(call, n) for call, count in calls.items() for n in range(1, count + 1)]
        mine = share(places) if LONG else chance.sample(places, 3)
        note(f"{walk}: {len(mine)} of {len(places)} places to die: {calls}")
        with timed(f"{walk}: killed at {len(mine)} places"):
            for call, n in mine:
                note(f"{walk}: killed at {call} {n}")
                die_and_go_on(w, walk, want, call, n)


# --- others die ------------------------------------------------------------------------------

def stop_at(w, walk, n, call="renameat"):
    """Begin it, and wait until it has stopped at the n-th state that it saves; the strace, and whom it traces."""
    log = w.top / "stops"
    log.unlink(missing_ok=True)
    process = strace(w, walk, "-e", f"trace={call}", "-e", f"inject={call}:signal=STOP:when={n}", log=log)
    until(lambda: process.poll() is not None or (log.exists() and "--- stopped by SIGSTOP" in log.read_text()))
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return process, int(children.read_text().split()[0]) if process.poll() is None else None


def disturb(w, walk, want, n, hurt):
    """At the n-th state that is saved; then it goes on by itself or is resumed."""
    before = begin(w, walk)
    process, pid = stop_at(w, walk, n)
    if pid:
        hurt(w)
        os.kill(pid, signal.SIGCONT)
    status, _, err = ended(process)
    if status != 0:
        note(f"{walk}, state {n}: {err.decode(errors='replace').splitlines()[-1:]}")
        go_on(w, walk)
    got = outcome(w, before)
    assert got == want, f"{walk}, state {n}:\n{got}\n{want}"
    put_back(w)


def kill_the_daemon(w):
    if w.daemons():
        w.kill_daemon(keeper=False)


def kill_the_arms(w):
    for run in w.ok("ps", "--json").json("snap.ps/1")["runs"]:
        try:
            os.kill(run["pid"], signal.SIGKILL)
        except ProcessLookupError:
            continue
        assert gone(run["pid"], 20)


def beside(w, hurt):
    w.ok("init")
    chance = dice()
    for walk in chosen(("best", "compatible")) if LONG else chance.sample(("best", "compatible"), 1):
        want, calls = undisturbed(w, walk)
        saves = range(1, calls["renameat"] + 1)
        mine = share(saves) if LONG else chance.sample(saves, 3)
        with timed(f"{walk}: disturbed at {len(mine)} of {len(saves)} states"):
            for n in mine:
                note(f"{walk}: at state {n} of {calls['renameat']}")
                disturb(w, walk, want, n, hurt)


@live_test
def the_daemon_is_killed_at_any_state(w):
    beside(w, kill_the_daemon)


@live_test
def arms_are_killed_at_any_state(w):
    beside(w, kill_the_arms)


@live_test
def a_machine_that_goes_down_is_one_that_can_resume(w):
    w.ok("init")
    chance = dice()
    want, calls = undisturbed(w, "best")
    saves = range(1, calls["renameat"] + 1)
    for n in share(saves) if LONG else chance.sample(saves, 2):
        before = begin(w, "best")
        process, pid = stop_at(w, "best", n)
        runs = w.ok("ps", "--json").json("snap.ps/1")["runs"]
        for one in [pid, process.pid, *w.keepers(), *w.daemons(), *(r["pid"] for r in runs)]:
            try:
                os.kill(one, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.communicate(timeout=60)
        assert all(gone(one, 20) for one in [pid, *w.daemons(), *(r["pid"] for r in runs)])
        for point in w.mounts():
            subprocess.run(["fusermount3" if livetest.USER else "umount", "-u" if livetest.USER else "-l", point],
                           check=False, stderr=subprocess.DEVNULL)
        note(f"down at state {n} of {calls['renameat']}")
        go_on(w, "best")
        got = outcome(w, before)
        assert got == want, f"state {n}:\n{got}\n{want}"
        put_back(w)


@live_test
def a_full_disk_loses_no_decision(w):
    w.ok("init")
    chance = dice()
    for walk in chosen(("best", "compatible")) if LONG else chance.sample(("best", "compatible"), 1):
        want, calls = undisturbed(w, walk)
        saves = range(1, calls["fsync"] + 1)
        for n in share(saves) if LONG else chance.sample(saves, 3):
            before = begin(w, walk)
            status, out, err = ended(strace(w, walk, "-e", "trace=fsync", "-e", f"inject=fsync:error=ENOSPC:when={n}"))
            note(f"{walk}: full at {n} of {calls['fsync']}: {status}")
            assert status == 0 or b"No space left" in out + err, (walk, n, out, err)
            if status != 0:
                go_on(w, walk)
            got = outcome(w, before)
            assert got == want, f"{walk}, full at {n}:\n{got}\n{want}"
            put_back(w)


@live_test
def a_signal_after_the_last_run_keeps_it_from_promoting(w):
    words = [SNAP, "experiment", "-n", "s", "--arm", "a=echo a > a", "--score", "echo 1"]
    more = {"cwd": w.project, "env": w.env, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
            "timeout": 120, "check": False}
    path = w.top / "trace"
    done = subprocess.run(["strace", "-o", path, "-e", "trace=renameat", *words], **more)
    if b"ptrace" in done.stderr or not path.exists():
        raise Skip(f"strace cannot trace here: {done.stderr[:200]!r}")
    saves = [line for line in path.read_text().splitlines() if line.startswith("renameat(")]
    w.ok("exp", "rm", "s")
    # The last one says that it has ended, the one before that all scores are there.
    done = subprocess.run(["strace", "-o", path, "-e", "trace=renameat", "-e",
                           f"inject=renameat:signal=INT:when={len(saves) - 1}", *words, "--promote-best"], **more)
    assert done.returncode == 130 and not (w.project / "a").exists(), done
    assert experiment(w, "resume", "s")["promoted"] == ["a"]


@live_test
def a_death_gives_no_time_back_and_leaves_no_measuring_run(w):
    process = popen(w, "experiment", "-n", "m", "--arm", "a=sleep 2",
                    "--score", "time", "--all-time", "600s")
    state = w.store / "experiments" / "m" / "state.json"
    until(lambda: state.exists() and json.loads(state.read_text())["state"] == 1
          and json.loads(state.read_text())["arms"][0]["now"])
    process.kill()
    process.communicate(timeout=60)
    assert json.loads(state.read_text())["spent_ms"] > 0
    w.ok("exp", "rm", "m")
    assert w.ok("ps", "--json").json("snap.ps/1")["runs"] == []


@live_test
def a_death_before_a_measuring_run_is_noted_leaves_no_second_one(w):
    """Each state takes long to save, so there is time for a kill while the run goes on by itself already."""
    w.ok("init")
    state = w.store / "experiments" / "m" / "state.json"
    # In a clone of the experiment's, and in one without a name.
    for command, score in (("true", "echo 1; sleep 20"), ("sleep 6", "time")):
        process = strace(w, ("-n", "m", "--arm", f"a={command}", "--score", score), "-e", "trace=renameat", "-e",
                         "inject=renameat:delay_enter=1500000")
        until(lambda: process.poll() is not None
              or (state.exists() and json.loads(state.read_text())["arms"][0]["state"] == 3))
        if process.poll() is not None:
            raise Skip(f"strace cannot trace here: {process.communicate()[1][:200]!r}")
        first, = until(lambda: detached(w))
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        os.kill(int(children.read_text()), signal.SIGKILL)
        process.communicate(timeout=60)
        process = popen(w, "experiment", "resume", "m")
        more = until(lambda: [r for r in detached(w) if r["run"] != first["run"]])
        assert first["run"] not in [r["run"] for r in detached(w)], (score, first, more)
        process.terminate()
        process.communicate(timeout=60)
        w.ok("exp", "rm", "m")
        nothing_is_left(w)


@live_test
def an_experiment_whose_clone_cannot_be_removed_stays(w):
    w.ok("init")
    experiment(w, "-n", "x", "--arm", "a=echo a > a", "--arm", "b=echo b > b", "--keep", "all")
    status, out, err = ended(strace(w, ("rm", "x"), "-e", "trace=sendmsg", "-e", "inject=sendmsg:error=ENOBUFS"))
    if b"ptrace" in err:
        raise Skip(f"strace cannot trace here: {err[:200]!r}")
    said = json.loads(out)["error"]["message"]
    assert status == 1 and said.startswith("experiment 'x' stays: clone 'x-a' could not be removed: "), (status, said)
    assert "No buffer space" in said and sorted(clones(w)) == ["x-a", "x-b"], (clones(w), said)
    assert states(experiment(w, "show", "x")) == {"a": "passed", "b": "passed"}
    w.ok("rm", "--force", "x-b")
    w.ok("exp", "rm", "x")
    nothing_is_left(w)
    assert w.ok("-q", "exp", "list").out == b""


@live_test
def what_ran_on_after_a_death_counts_for_the_whole(w):
    process = popen(w, "experiment", "-n", "u", "--arm", "a=until [ -e stop ]; do sleep 0.05; done", "--arm", "b=true",
                    "--jobs", "1", "--all-time", "30m")
    until(lambda: detached(w))
    process.kill()
    process.communicate(timeout=60)
    # As if it had died an hour ago.
    path = w.store / "experiments" / "u" / "state.json"
    state = json.loads(path.read_text())
    state["saved"] -= 3600 * 10**9
    path.write_text(json.dumps(state))
    got = experiment(w, "resume", "u", status=15)
    assert states(got) == {"a": "stopped", "b": "stopped"} and "time of the whole" in arm(got, "a")["why"], got
    assert w.ok("ps", "--json").json("snap.ps/1")["runs"] == []


def free_until_over(w, process, name):
    """Let the command on that clone end, whenever it begins; what comes of it."""
    def is_over():
        if process.poll() is None and w.ok("ps", "--json").json("snap.ps/1")["runs"]:
            w.snap("run", "--no-snapshot", name, "--", "touch", "stop")
        return process.poll() is not None
    until(is_over)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, (process.returncode, err)
    return json.loads(out)


@live_test
def what_others_run_in_its_clone_is_not_the_arm(w):
    process = popen(w, "experiment", "-n", "z", "--arm", "a=until [ -e stop ]; do sleep 0.05; done; echo a > a")
    run = until(lambda: detached(w))[0]
    for pid in (process.pid, run["pid"]):
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert gone(run["pid"], 20)
    w.ok("run", "--no-snapshot", "z-a", "--", "ls")  # somebody looks at what it left
    got = free_until_over(w, popen(w, "experiment", "resume", "--json", "z"), "z-a")
    assert states(got) == {"a": "passed"} and arm(got, "a")["changed"]["added"] == 2, "its command never ran"


@live_test
def a_holder_that_dies_as_it_reports_costs_one_attempt(w):
    w.ok("init")
    words = ("-n", "h", "--arm", "a=touch began; until [ -e stop ]; do sleep 0.05; done")
    process, pid = stop_at(w, words, 1, call="wait4")  # the holder goes on, and waits for an answer
    until((w.store / "clones" / "h-a" / "began").exists)
    time.sleep(0.5)  # too early a kill would be another case, which ends alike
    run = w.ok("ps", "--json").json("snap.ps/1")["runs"][0]
    os.kill(run["pid"], signal.SIGKILL)
    assert gone(run["pid"], 20)
    os.kill(pid, signal.SIGCONT)
    assert states(free_until_over(w, process, "h-a")) == {"a": "passed"}
    assert len([e for e in receipts(w, "run-started") if e["clone"] == "h-a"]) >= 2, "it began again"


@live_test
def a_signal_ends_it_while_its_clone_is_made(w):
    """cowfsd may have to read a large project first; here it stands still."""
    w.ok("init")
    process, pid = stop_at(w, ("-n", "v", "--arm", "a=true"), 2)
    state = json.loads((w.store / "experiments" / "v" / "state.json").read_text())
    assert state["arms"][0]["has_clone"] and clones(w) == [], state
    cowfsd, = w.daemons()
    stop_process(cowfsd)
    try:
        os.kill(pid, signal.SIGCONT)
        os.kill(pid, signal.SIGTERM)
        process.communicate(timeout=60)
    finally:
        os.kill(cowfsd, signal.SIGCONT)
    assert process.returncode == 143, process.returncode
    nothing_is_left(w)
    assert experiment(w, "resume", "v")["winner"] == "a"


@live_test
def cowfsd_dies_as_it_removes_the_clone_of_a_loser(w):
    if os.geteuid() != 0:
        raise Skip("a user's cowfsd unmounts by another program")
    words = ("-n", "r", "--arm", "a=echo 1 > n", "--arm", "b=echo 2 > n", "--score", "cat n", "--jobs", "1")
    path = w.top / "trace"
    w.ok("init")
    status, _, err = ended(strace(w, words, "-e", "trace=renameat", log=path))
    if b"ptrace" in err or not path.exists():
        raise Skip(f"strace cannot trace here: {err[:200]!r}")
    assert status == 0, err
    w.ok("exp", "rm", "r")
    # Before the last state all is decided, and losers are removed.
    process, pid = stop_at(w, words, path.read_text().count("renameat(") - 1)
    assert sorted(clones(w)) == ["r-a", "r-b"]
    cowfsd, = w.daemons()
    tracer = subprocess.Popen(["strace", "-f", "-p", str(cowfsd), "-o", "/dev/null", "-e", "trace=umount2", "-e",
                               "inject=umount2:signal=KILL"], stderr=subprocess.PIPE)
    assert b"attached" in tracer.stderr.readline(), "strace cannot attach"
    os.kill(pid, signal.SIGCONT)
    status, _, err = ended(process)
    assert gone(cowfsd, 20)
    tracer.kill()
    tracer.communicate()
    assert status == 0 and clones(w) == ["r-a"], (status, err, clones(w))


@live_test
def an_arm_whose_holder_is_killed_begins_again(w):
    process = popen(w, "experiment", "--json", "-n", "k", "--arm",
                    "a=echo once > a; until [ -e stop ]; do sleep 0.05; done; rm stop")
    until(lambda: w.ok("ps", "--json").json("snap.ps/1")["runs"])
    run = w.ok("ps", "--json").json("snap.ps/1")["runs"][0]
    os.kill(run["pid"], signal.SIGKILL)
    assert gone(run["pid"], 20)
    until(lambda: [r for r in w.ok("ps", "--json").json("snap.ps/1")["runs"] if r["run"] != run["run"]])
    w.ok("run", "--no-snapshot", "k-a", "--", "touch", "stop")
    got = json.loads(process.communicate(timeout=60)[0])
    assert process.returncode == 0 and got["winner"] == "a", got


def at_second_check(w, but=None):
    """The run of the second check once it is there, and that of the first."""
    def look():
        runs = [r["run"] for r in w.ok("ps", "--json").json("snap.ps/1")["runs"] if r["clone"] == "c-a.check"]
        checks = arm(experiment(w, "show", "c"), "a")["checks"] if runs else []
        return (runs[0], checks[0]["run"]) if len(checks) == 1 and runs[0] not in (but, checks[0]["run"]) else None
    until(look)
    return look()


@live_test
def checks_after_a_death_begin_with_the_first(w):
    process = popen(w, "experiment", "--json", "-n", "c", "--arm", "a=echo a > a", "--check", "test -s a", "--check",
                    "until [ -e stop ]; do sleep 0.05; done")
    held, first = at_second_check(w)
    pid = next(r["pid"] for r in w.ok("ps", "--json").json("snap.ps/1")["runs"] if r["run"] == held)
    os.kill(pid, signal.SIGKILL)
    assert gone(pid, 20)
    again = at_second_check(w, but=held)[1]
    w.ok("run", "--no-snapshot", "c-a.check", "--", "touch", "stop")
    got = json.loads(process.communicate(timeout=60)[0])
    assert process.returncode == 0 and got["winner"] == "a" and len(arm(got, "a")["checks"]) == 2, got
    assert again != first, "it judged what the first attempt left"


@live_test
def a_signal_ends_what_a_resumed_one_has_just_begun(w):
    process = popen(w, "experiment", "-n", "q", "--arm", "a=echo a > a", "--check", "until [ -e stop ]; do sleep 0.05; done")
    until(lambda: [r for r in w.ok("ps", "--json").json("snap.ps/1")["runs"] if r["clone"] == "q-a.check"])
    process.kill()
    process.communicate(timeout=60)
    # The judge's clone, the check, and that all arms go on.
    process, pid = stop_at(w, ("resume", "q"), 3)
    assert len(w.ok("ps", "--json").json("snap.ps/1")["runs"]) == 1
    os.kill(pid, signal.SIGINT)
    os.kill(pid, signal.SIGCONT)
    assert ended(process)[0] == 130
    assert experiment(w, "show", "q")["state"] == "interrupted"
    nothing_is_left(w)


@live_test
def the_death_of_the_daemon_loses_no_decision(w):
    process = popen(w, "experiment", "--json", "-n", "d", "--arm", "a=echo a > a; sleep 1; cat README.md",
                    "--arm", "b=echo b > b", "--check", "true", "--score", "lines", "--max", "--jobs", "2")
    until(lambda: (w.store / "clones" / "d-a" / "a").exists() and arm(experiment(w, "show", "d"), "a")["run"])
    w.kill_daemon(keeper=False)
    process.communicate(timeout=120)
    got = experiment(w, "resume", "d")
    assert set(states(got).values()) == {"passed"}, got


if __name__ == "__main__":
    sys.exit(livetest.main())

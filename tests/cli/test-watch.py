"""Rules: what fires them, what is tried, what lands, and what a budget holds back."""

import contextlib
import http.server
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from snaptest import SNAP, Skip, World, gone, hung, needs_fuse, test  # noqa: E402
from watchtest import (HOUR, MINUTE, Clock, config, fire, firings, once, put, results, rule_of, rules,  # noqa: E402
                       stages, status, until)

DEV = "{name: dev, target: ., approve: never}"


@test
def what_an_action_changes_is_reported_kept_or_shipped(w: World):
    rules(w, "name: report, on: fire, run: echo a > a.txt",
          "name: keep, on: fire, run: echo b > b.txt, then: keep",
          "name: ship, on: fire, run: echo c > c.txt, then: ship",
          "name: none, on: fire, run: 'true', then: ship")
    stages(w, DEV)
    for name in ("report", "keep", "ship", "none"):
        assert fire(w, name)["state"] == "queued"
    w.ok("snapshot")
    assert b'snapcow_watch_actions{state="queued"} 4\n' in w.ok("metrics").out
    once(w)
    assert {f["rule"]: f["result"] for f in firings(w)} == \
        {"report": "reported", "keep": "kept", "ship": "shipped", "none": "nothing"}
    assert not (w.project / "a.txt").exists() and not (w.project / "b.txt").exists()
    assert (w.project / "c.txt").read_text() == "c\n"
    kept = firings(w, "keep")[0]["clone"]
    assert w.ok("-q", "list", "--all").out.decode().split() == [kept], "only what is kept is left"
    assert (w.store / "clones" / kept / "b.txt").read_text() == "b\n"
    shipped = firings(w, "ship")[0]
    change = next(c for c in status(w)["changes"] if c["change"] == shipped["change"])
    assert change["who"] == "watch:ship" and change["state"] == "shipped", change
    once(w)
    assert len(firings(w)) == 4, "nothing fires twice"
    assert b'snapcow_watch_actions{state="done"} 4\n' in w.ok("metrics").out


@test
def without_a_rule_of_the_policy_nothing_lands(w: World):
    rules(w, "name: ship, on: fire, run: echo c > c.txt, then: ship")
    fire(w, "ship")
    once(w)
    got = firings(w)[0]
    assert got["result"] == "kept" and "pipeline.yaml" in got["why"], got
    stages(w, "{name: dev, target: .}")
    fire(w, "ship")
    once(w)
    assert [c["state"] for c in status(w)["changes"]] == ["waiting"]
    assert not (w.project / "c.txt").exists()
    said = w.ok("watch").out.decode()
    assert "Waits for a person" in said and "no rule of policy.yaml" in said, said


@test
def the_action_knows_what_fired_it(w: World):
    rules(w, "name: tell, on: {files: '*.c'}, then: keep, "
             "run: 'cat $SNAPCOW_TRIGGER_PATHS > paths; env | grep ^SNAPCOW_TRIGGER | sort > facts'")
    put(w.project / "a.c")
    once(w)
    assert firings(w) == [], "what was there before is no change"
    put(w.project / "a.c", "changed\n")
    put(w.project / "sub" / "b.c")
    put(w.project / "c.txt")
    once(w)
    got = firings(w)[0]
    assert got["paths"] == ["a.c", "sub/b.c"] and got["trigger"] == "files", got
    there = w.store / "clones" / got["clone"]
    assert (there / "paths").read_text() == "a.c\nsub/b.c\n"
    facts = dict(line.split("=", 1) for line in (there / "facts").read_text().splitlines())
    assert facts["SNAPCOW_TRIGGER_RULE"] == "tell" and facts["SNAPCOW_TRIGGER_KIND"] == "files", facts
    assert facts["SNAPCOW_TRIGGER_ID"] == got["firing"]
    once(w)
    assert len(firings(w)) == 1


@test
def names_of_changed_files_are_not_forged_and_those_left_out_are_counted(w: World):
    tell = "then: keep, run: 'cat > got; echo $SNAPCOW_TRIGGER_MORE > more'"
    rules(w, f"name: lines, on: {{files: '*'}}, {tell}", f"name: nul, on: {{files: '*'}}, paths: nul, {tell}")
    once(w)
    put(w.project / "a.c\nb.c")
    put(w.project / "c.c")
    once(w)

    def got(rule):
        there = w.store / "clones" / firings(w, rule)[-1]["clone"]
        return (there / "got").read_text(), int((there / "more").read_text())

    assert got("lines") == ("c.c\n", 1), got("lines")
    assert got("nul") == ("a.c\nb.c\0c.c\0", 0), got("nul")
    for i in range(2005):
        put(w.project / "many" / f"{i:04}", "")
    once(w)
    seen = firings(w, "nul")[-1]
    assert len(seen["paths"]) == 2000 and len(seen["paths"]) + seen["more_paths"] in (2005, 2006), seen["more_paths"]
    assert got("nul")[1] == seen["more_paths"]


@test
def a_landing_of_its_own_fires_no_rule(w: World):
    put(w.project / "a.c", "good\n")
    rules(w, "name: fix, on: {files: '*.c'}, run: sed -i s/bad/good/ a.c, then: ship",
          "name: other, on: {files: '*'}, run: 'true'")
    stages(w, DEV)
    once(w)
    put(w.project / "a.c", "bad\n")
    once(w)
    assert (w.project / "a.c").read_text() == "good\n"
    once(w)
    assert results(w, "fix") == ["shipped"] and results(w, "other") == ["nothing"], firings(w)
    # An edit before and after a landing counts, also of the same file.
    put(w.project / "b.c", "new\n")
    once(w)
    assert firings(w, "fix")[1]["paths"] == ["b.c"], firings(w)
    # What a person takes back is the person's doing.
    w.ok("undo")
    once(w)
    assert firings(w, "fix")[2]["paths"] == ["a.c"], firings(w)


@test
def a_schedule_fires_once_however_often_it_was_due(w: World):
    clock = Clock(w)  # 17:46:40 UTC
    rules(w, "name: night, on: {schedule: '03:00 UTC'}, run: 'true'")
    once(w)
    assert firings(w) == [] and rule_of(w, "night")["next"].startswith("2030-03-18T03:00:00"), status(w)
    clock.forward(9 * HOUR)
    once(w)
    assert firings(w) == []
    clock.forward(HOUR)
    once(w)
    once(w)
    assert len(firings(w)) == 1
    clock.forward(72 * HOUR)
    once(w)
    once(w)
    assert len(firings(w)) == 2
    rules(w, "name: night, on: {schedule: '04:00 UTC'}, run: 'true'")
    once(w)
    assert len(firings(w)) == 2, "another schedule begins anew"


@test
def a_clock_that_was_ahead_freezes_nothing(w: World):
    clock = Clock(w)
    rules(w, "name: night, on: {schedule: hourly}, run: 'true'",
          "name: bad, on: fire, run: exit 1, budget: {backoff: 10m}")
    once(w)
    clock.forward(8760 * HOUR)
    fire(w, "bad")
    once(w)
    assert results(w, "night") == ["nothing"] and results(w, "bad") == ["failed"]
    clock.forward(-8760 * HOUR)
    fire(w, "bad")
    once(w)
    assert results(w, "bad") == ["failed", None], "it backs off from now on"
    clock.forward(10 * MINUTE)
    once(w)
    assert results(w, "bad") == ["failed", "failed"], firings(w)
    clock.forward(2 * HOUR)
    once(w)
    clock.forward(HOUR)
    once(w)
    assert results(w, "night") == ["nothing"] * 2, firings(w)


@test
def a_resume_while_the_clock_was_ahead_lets_nothing_fail_for_ever(w: World):
    clock = Clock(w)
    rules(w, "name: bad, on: fire, run: exit 1, budget: {failures: 1}")
    clock.forward(8760 * HOUR)
    w.ok("watch", "resume")
    w.ok("watch", "resume", "bad")
    clock.forward(-8760 * HOUR)
    for _ in range(2):
        clock.forward(HOUR)
        fire(w, "bad")
        once(w)
    assert results(w) == ["failed", None] and rule_of(w, "bad")["state"] == "stopped", status(w)
    w.ok("watch", "resume", "bad")
    once(w)
    assert results(w) == ["failed", "failed"], firings(w)


@test
def a_soak_goes_on_by_the_clock_that_nobody_sets(w: World):
    clock = Clock(w)
    rules(w, "name: a, on: fire, run: echo a > a.txt, then: ship")
    stages(w, "{name: dev, target: ., approve: never, soak: 30m, "
              f"health: ['echo x >> {w.home}/ran'], health_every: 10m}}")
    fire(w, "a")
    once(w)

    def look(hours, minutes):
        clock.file.write_text(f"{clock.ns + hours * HOUR} {clock.ns // 10**6 + minutes * 60_000} test")
        once(w)
        return status(w)["changes"][0]["state"], len((w.home / "ran").read_text()) // 2

    assert look(0, 1) == ("soaking", 1)
    assert look(24, 2) == ("soaking", 1), "a clock that was set forward lets nothing go on"
    assert look(-24, 15) == ("soaking", 2), "and one that was set back holds nothing"
    assert look(-24, 31) == ("shipped", 3)


@test
def a_budget_of_runs_is_held_and_triggers_meanwhile_become_one(w: World):
    clock = Clock(w)
    rules(w, "name: a, on: fire, run: 'true', budget: {runs_per_hour: 2}")
    for _ in range(2):
        fire(w, "a")
        once(w)
    for _ in range(5):
        fire(w, "a")
    once(w)
    got = firings(w)
    assert [f["state"] for f in got] == ["done", "done", "queued"] and got[2]["merged"] == 4, got
    rule = rule_of(w, "a")
    assert rule["state"] == "waits" and "2 times in the last hour" in rule["why"], rule
    clock.forward(HOUR + 1)
    once(w)
    assert [f["state"] for f in firings(w)] == ["done"] * 3


@test
def a_day_of_processor_time_is_held(w: World):
    clock = Clock(w)
    burn = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"
    rules(w, f"name: a, on: fire, run: '{burn}', budget: {{cpu_per_day: 1ms}}")
    fire(w, "a")
    once(w)
    assert firings(w)[0]["cpu_ms"] > 1
    fire(w, "a")
    clock.forward(23 * HOUR)
    once(w)
    assert rule_of(w, "a")["state"] == "waits", rule_of(w, "a")
    clock.forward(HOUR + 1)
    once(w)
    assert [f["state"] for f in firings(w)] == ["done", "done"]


@test
def failures_back_off_are_told_once_and_stop_the_rule(w: World):
    clock = Clock(w)
    told = w.home / "told"
    rules(w, "name: a, on: fire, run: 'echo $$ is bad; exit 3', budget: {failures: 3, backoff: 10m}",
          top=f"notify: echo $SNAPCOW_WATCH_RULE $SNAPCOW_WATCH_RESULT >> {told}\n")
    fire(w, "a")
    once(w)
    assert results(w) == ["failed"] and "ended with 3" in firings(w)[0]["why"], firings(w)
    fire(w, "a")
    clock.forward(9 * MINUTE)
    once(w)
    assert results(w) == ["failed", None] and "waits before" in rule_of(w, "a")["why"], rule_of(w, "a")
    clock.forward(MINUTE)
    once(w)
    assert results(w) == ["failed", "failed"]
    assert firings(w)[0]["signature"] == firings(w)[1]["signature"], "numbers do not make another failure"
    assert told.read_text() == "a failed\n", "the same failure is told once"
    fire(w, "a")
    clock.forward(19 * MINUTE)
    once(w)
    assert results(w)[2] is None, "the second back-off is twice as long"
    clock.forward(MINUTE)
    once(w)
    assert results(w) == ["failed"] * 3 and rule_of(w, "a")["state"] == "stopped", rule_of(w, "a")
    fire(w, "a")
    clock.forward(100 * HOUR)
    once(w)
    assert results(w)[3] is None, "it has stopped trying"
    w.ok("watch", "resume", "a")
    once(w)
    assert results(w)[3] == "failed" and rule_of(w, "a")["failures_in_a_row"] == 1


@test
def limits_of_time_and_lines_are_held(w: World):
    rules(w, "name: slow, on: fire, run: sleep 60, budget: {wall: 200ms}",
          "name: much, on: fire, run: seq 100 > a.txt, then: ship, budget: {lines: 99}")
    stages(w, DEV)
    fire(w, "slow")
    fire(w, "much")
    once(w)
    slow, much = firings(w, "slow")[0], firings(w, "much")[0]
    assert slow["result"] == "failed" and "limit of time" in slow["why"], slow
    assert much["result"] == "over-budget" and "100 lines" in much["why"] and much["then"] == "keep", much
    assert not (w.project / "a.txt").exists()


@test
def nothing_begins_in_quiet_hours_or_while_it_is_paused(w: World):
    clock = Clock(w)  # 17:46:40 UTC
    rules(w, "name: a, on: fire, run: 'true', quiet: '17:00-18:00 UTC'", "name: b, on: fire, run: 'true'")
    fire(w, "a")
    fire(w, "b")
    w.ok("watch", "pause", "b")
    once(w)
    assert results(w) == [None, None] and "quiet" in rule_of(w, "a")["why"], status(w)
    assert rule_of(w, "b")["state"] == "paused"
    w.ok("watch", "pause")
    clock.forward(HOUR)
    once(w)
    assert results(w) == [None, None] and status(w)["paused"]
    w.ok("watch", "resume")
    once(w)
    assert results(w, "a") == ["nothing"] and results(w, "b") == [None]
    w.ok("watch", "resume", "b")
    once(w)
    assert results(w, "b") == ["nothing"]


@test
def a_project_can_only_narrow_its_rules(w: World):
    rules(w, "name: a, on: fire, run: echo a > a.txt, then: ship", "name: b, on: fire, run: 'true'")
    stages(w, DEV)
    own = w.project / ".snap" / "watch.yaml"
    put(own, "- {name: a, then: keep, budget: {runs_per_hour: 100000, lines: 5}}\n- {name: b, off: true}\n"
             "- {name: unknown, off: true}\n")
    fire(w, "a")
    once(w)
    assert results(w) == ["kept"] and not (w.project / "a.txt").exists()
    w.snap("watch", "fire", "b").ends(7)
    assert rule_of(w, "b")["state"] == "off"
    for bad in ("- {name: a, run: evil}\n", "- {name: a, on: fire}\n", "- {name: a, project: /}\n", "rules: []\n"):
        put(own, bad)
        said = w.ok("watch", "start", "--once")
        assert b".snap/watch.yaml:1:" in said.err, said.err
        assert rule_of(w, "a")["state"] == "off" and ".snap/watch.yaml:1:" in rule_of(w, "a")["why"], status(w)
        assert b".snap/watch.yaml:1:" in w.snap("watch", "fire", "a").ends(7).err
    own.unlink()
    # A project that asks for more gets no more.
    rules(w, "name: a, on: fire, run: echo a > a.txt, then: report")
    put(own, "- {name: a, then: ship}\n")
    fire(w, "a")
    once(w)
    assert results(w, "a")[-1] == "reported" and not (w.project / "a.txt").exists()


@test
def a_bad_file_of_one_project_turns_off_its_rules_until_it_is_mended(w: World):
    other = w.top / "other"
    put(other / "README")
    config(w, "watch.yaml", f"rules:\n  - {{name: a, project: {w.project}, on: fire, run: 'true'}}\n"
                            f"  - {{name: b, project: {other}, on: fire, run: 'true'}}\n")
    own = w.project / ".snap" / "watch.yaml"
    put(own, "- {name: a, off: false}\n")
    fire(w, "a")
    fire(w, "b")
    put(own, "- {name: a, off: [}\n")
    w.ok("watch", "start")
    until(lambda: results(w, "b") == ["nothing"])
    assert results(w, "a") == [None] and rule_of(w, "a")["state"] == "off", status(w)
    until(lambda: rule_of(w, "b")["state"] == "ready")
    assert status(w)["problem"] is None
    put(own, "[]\n")
    until(lambda: results(w, "a") == ["nothing"])
    w.ok("watch", "stop")


@test
def while_it_is_paused_what_has_landed_keeps_its_health_checks(w: World):
    clock = Clock(w)
    there = w.top / "staging"
    put(there / "README")
    rules(w, "name: a, on: fire, run: echo a > a.txt, then: ship")
    health = "soak: 30m, health: ['test ! -e sick'], health_every: 10m"
    stages(w, f"{{name: dev, target: ., approve: never, {health}}}",
           f"{{name: staging, target: {there}, approve: never, {health}}}")
    fire(w, "a")
    once(w)
    w.ok("watch", "pause")
    clock.forward(31 * MINUTE)
    once(w)
    assert not (there / "a.txt").exists(), "nothing lands while it is paused"
    assert [c["state"] for c in status(w)["changes"]] == ["ready"], status(w)
    w.ok("watch", "resume")
    once(w)
    assert (there / "a.txt").exists()
    w.ok("watch", "pause")
    put(there / "sick")
    clock.forward(10 * MINUTE)
    once(w)
    assert [c["state"] for c in status(w)["changes"]] == ["sick"] and not (there / "a.txt").exists(), status(w)


@test
def the_checks_of_one_change_keep_no_other_from_its_health_checks(w: World):
    rules(w, "name: a, on: fire, run: echo a > a.txt, then: ship", "name: slow, on: fire, run: touch slow, then: ship")
    rounds = w.home / "rounds"
    stages(w, "{name: dev, target: ., approve: always, checks: ['test ! -e slow || sleep 300'], soak: 1h, "
              f"health: ['echo >> {rounds}'], health_every: 1s}}")
    w.ok("watch", "start")
    for rule in ("a", "slow"):
        fire(w, rule)
        until(lambda: any(f["rule"] == rule and f["change"] for f in firings(w)))
        w.ok("approve", next(f["change"] for f in firings(w, rule)))
    until(lambda: any("sleep 300" in str(r["command"]) for r in w.ok("ps", "--json").json("snap.ps/1")["runs"]))
    before = len(rounds.read_text())
    until(lambda: len(rounds.read_text()) >= before + 3, 60)
    w.ok("watch", "stop")


@test
def a_run_that_writes_rules_and_records_gains_nothing(w: World):
    evil = (f"mkdir -p .snap {w.home}/.config/snapcow {w.store}/firings {w.store}/watch/control; "
            "echo evil > x.txt; "
            "printf \"- {name: a, then: ship}\\n\" > .snap/watch.yaml; "
            f"cp .snap/watch.yaml {w.home}/.config/snapcow/watch.yaml; "
            f"cp .snap/watch.yaml {w.store}/watch/control/state.json; touch {w.store}/firings/x; true")
    config(w, "watch.yaml", f"rules:\n  - name: a\n    project: {w.project}\n    on: fire\n    run: >-\n"
                            f"      {evil}\n    then: keep\n")
    before = (w.home / ".config" / "snapcow" / "watch.yaml").read_bytes()
    fire(w, "a")
    once(w)
    got = firings(w)
    assert results(w) == ["kept"] and got[0]["exit_code"] == 0, got
    assert (w.home / ".config" / "snapcow" / "watch.yaml").read_bytes() == before
    assert not (w.project / ".snap").exists() and not (w.project / "x.txt").exists()
    assert not (w.store / "firings" / "x").exists()
    fire(w, "a")
    once(w)
    assert results(w) == ["kept", "kept"] and not status(w)["paused"]


@test
def rules_that_cannot_be_understood_are_said_with_their_place(w: World):
    for line, why in (("name: A, on: fire, run: x", "lower-case"),
                      ("name: a, on: fire", "one of 'run' and 'experiment'"),
                      ("name: a, on: {}, run: x", "one trigger"),
                      ("name: a, on: {schedule: '25:00'}, run: x", "no time"),
                      ("name: a, on: {log: /x}, run: x", "belong together"),
                      ("name: a, on: {log: /x, match: '('}, run: x", "regular expression"),
                      ("name: a, on: {ref: main}, run: x", "refs/heads/main"),
                      ("name: a, on: never, run: x", "'on' is fire"),
                      ("name: a, on: fire, run: x, then: land", "report, keep, ship"),
                      ("name: a, on: fire, run: x, quiet: late", "part of a day"),
                      ("name: a, on: fire, run: x, budget: {wall: 0s}", "nothing happen"),
                      ("name: a, on: fire, run: x, budget: {tea: 1}", "a budget has"),
                      ("name: a, on: fire, run: x, tea: 1", "a rule has")):
        rules(w, line)
        said = w.snap("watch", "start").ends(2)
        assert b"watch.yaml:2:" in said.err and why.encode() in said.err, (line, said.err)
        got = status(w)
        assert why in got["problem"] and got["rules"] == [], got
    config(w, "watch.yaml", "notify: x\n")
    w.snap("watch", "fire", "a").ends(4)
    w.snap("watch", "fire").ends(2)
    w.snap("watch", "tea").ends(2)
    (w.home / ".config" / "snapcow" / "watch.yaml").unlink()
    for act in (["start"], ["pause", "a"]):
        said = w.snap("watch", *act).ends(4)
        assert b"there are no rules" in said.err, said.err


@test
def a_rule_can_be_tested_and_nothing_lands(w: World):
    rules(w, "name: a, on: fire, run: echo a > a.txt, then: ship", "name: b, on: fire, run: exit 2")
    stages(w, DEV)
    got = w.ok("watch", "test", "a", "--json").json("snap.watch/1")
    assert got["firing"]["files"] == 1 and got["verdict"] == "approve" and got["risk"] == "low", got
    assert b"ended with 2" in w.ok("watch", "test", "b").out
    assert firings(w) == [] and not (w.project / "a.txt").exists()
    assert w.ok("-q", "list", "--all").out == b""


@test
def a_tested_rule_says_which_rule_decides_how_far_it_comes_and_who_may_approve(w: World):
    rules(w, "name: a, on: fire, run: echo a > a.txt, then: ship", "name: b, on: fire, run: echo b > b.txt, then: ship",
          "name: to, on: fire, run: echo a > a.txt, then: ship, to: dev", "name: keep, on: fire, run: echo a > a.txt, then: keep")
    stages(w, "{name: verified, checks: ['true']}", "{name: dev, target: .}",
           f"{{name: staging, target: {w.top / 'staging'}, approve: always, approvers: [alice, '%ops']}}",
           f"{{name: production, target: {w.top / 'production'}}}")
    config(w, "policy.yaml", "- {name: docs, paths: ['docs/'], then: land}\n"
                             "- {name: tested, paths: ['a.txt'], when: [tests==pass], then: land}\n")
    got = w.ok("watch", "test", "a", "--json").json("snap.watch/1")
    assert [(s["stage"], s["then"], s["approvers"]) for s in got["stages"]] == [
        ("verified", "passes", []), ("dev", "lands", []), ("staging", "waits", ["alice", "%ops"])], got["stages"]
    assert got["stages"][1]["why"] == "the rule 'tested' lets it", got["stages"]
    assert [(s["rule"], s["fits"]) for s in got["steps"]][:2] == [("docs", False), ("tested", True)], got["steps"]
    said = w.ok("watch", "test", "a").out.decode()
    assert "stage dev: lands; the rule 'tested' lets it\n" in said and "stage verified: if its checks pass, passes; " in said, said
    assert "stage staging: waits for alice or %ops; this stage always asks for a person (judged by the project" in said, said
    assert "The policy says: land, by these rules:\n" in said and "'docs' does not fit: " in said and "'tested' fits: land" in said, said
    said = w.ok("watch", "test", "b").out.decode()
    assert "stage dev: waits for the owner of the store; no rule of policy.yaml fits, and then a person decides\n" in said, said
    assert "stage staging" not in said and "no rule fits: a person must approve\n" in said, said
    assert [s["stage"] for s in w.ok("watch", "test", "to", "--json").json("snap.watch/1")["stages"]] == ["verified", "dev"]
    got = w.ok("watch", "test", "keep", "--json").json("snap.watch/1")
    assert got["stages"] == [] and got["verdict"] == "approve" and got["firing"]["result"] == "kept", got
    config(w, "policy.yaml", "- {name: never, paths: ['*.txt'], then: refuse}\n")
    assert "stage dev: is held; the rule 'never' refuses it\n" in w.ok("watch", "test", "a").out.decode()
    (w.home / ".config" / "snapcow" / "pipeline.yaml").unlink()
    assert "pipeline.yaml" in w.ok("watch", "test", "a", "--json").json("snap.watch/1")["problem"]
    assert b"its clone would be kept: " in w.ok("watch", "test", "a").out
    assert firings(w) == [] and not (w.project / "a.txt").exists()


@test
def an_experiment_may_be_the_action_and_its_winner_ships(w: World):
    put(w.home / ".config" / "snapcow" / "experiments" / "ways.yaml",
        "arms:\n  long: seq 50 > made.txt\n  short: echo 1 > made.txt\n  wrong: exit 1\n"
        "checks: [test -s made.txt]\nscore: lines\n")
    rules(w, "name: a, on: fire, experiment: ways, then: ship", "name: b, on: fire, experiment: none")
    stages(w, DEV)
    fire(w, "a")
    fire(w, "b")
    once(w)
    assert results(w, "a") == ["shipped"] and (w.project / "made.txt").read_text() == "1\n", firings(w)
    assert results(w, "b") == ["failed"] and "none" in firings(w, "b")[0]["why"], firings(w)
    assert w.ok("-q", "list", "--all").out == b""
    assert w.ok("experiment", "list", "--json").json("snap.experiment/1")["experiments"] == []


@test
def an_experiment_whose_rule_went_leaves_nothing(w: World):
    def experiments():
        return w.ok("experiment", "list", "--json").json("snap.experiment/1")["experiments"]

    put(w.home / ".config" / "snapcow" / "experiments" / "ways.yaml", "arms:\n  slow: sleep 600\n")
    rules(w, "name: a, on: fire, experiment: ways")
    fire(w, "a")
    w.ok("watch", "start")
    until(lambda: w.ok("-q", "list", "--all").out)
    w.ok("watch", "stop")
    assert experiments()
    rules(w, "name: b, on: fire, run: 'true'")
    once(w)
    assert results(w, "a") == ["dropped"] and experiments() == [], (firings(w), experiments())
    assert w.ok("-q", "list", "--all").out == b""


@test
def an_action_that_uses_up_the_day_is_ended(w: World):
    rules(w, "name: a, on: fire, run: 'while :; do :; done', budget: {cpu_per_day: 500ms, wall: 10m}")
    fire(w, "a")
    once(w)
    got = firings(w)[0]
    assert got["result"] == "failed" and got["exit_code"] == 143 and got["cpu_ms"] >= 500, got


@test
def an_experiment_that_uses_up_the_day_is_ended(w: World):
    put(w.home / ".config" / "snapcow" / "experiments" / "ways.yaml", "arms:\n  a: 'while :; do :; done'\n  b: 'while :; do :; done'\n")
    rules(w, "name: a, on: fire, experiment: ways, budget: {cpu_per_day: 500ms, wall: 10m}")
    fire(w, "a")
    once(w)
    got = firings(w)[0]
    assert got["result"] == "failed" and "no processor time left" in got["why"] and got["cpu_ms"] >= 250, got
    fire(w, "a")
    once(w)
    assert results(w)[1] is None, "no more begins"
    assert w.ok("-q", "list", "--all").out == b""


@test
def actions_of_a_project_run_one_at_a_time_unless_a_rule_says_otherwise(w: World):
    wait = "run: 'while ! test -e go; do sleep 0.05; done', budget: {wall: 300ms}"
    rules(w, f"name: a, on: fire, {wait}", f"name: b, on: fire, {wait}", f"name: c, on: fire, {wait}, parallel: true",
          top="concurrent: 2\n")
    for name in "abc":
        fire(w, name)
    once(w)
    a, b, c = (firings(w, name)[0] for name in "abc")
    assert b["begun"] >= a["ended"] and c["begun"] < a["ended"], (a, b, c)


# --- other triggers ------------------------------------------------------------------------------


@test
def a_command_that_begins_to_fail_fires(w: World):
    clock = Clock(w)
    rules(w, "name: a, on: {fails: test -e ok, every: 10m}, run: touch ok, then: ship")
    stages(w, DEV)
    once(w)
    assert firings(w) == [], "one that never passed does not begin to fail"
    put(w.project / "ok")
    clock.forward(10 * MINUTE)
    once(w)
    (w.project / "ok").unlink()
    clock.forward(9 * MINUTE)
    once(w)
    assert firings(w) == []
    clock.forward(MINUTE)
    once(w)
    got = firings(w)
    assert results(w) == ["shipped"] and got[0]["detail"] == "test -e ok", got
    assert (w.project / "ok").exists()


@test
def a_ref_that_moved_fires(w: World):
    clock = Clock(w)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(w.project)]

    def commit():
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True, env=w.env)
        return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()

    subprocess.run([*git, "init", "-q", "-b", "main"], check=True, env=w.env)
    first = commit()
    rules(w, "name: a, on: {ref: refs/heads/main}, run: 'true'")
    once(w)
    assert firings(w) == []
    second = commit()
    once(w)
    assert firings(w)[0]["detail"] == f"refs/heads/main {first} {second}", firings(w)
    subprocess.run([*git, "pack-refs", "--all"], check=True)
    clock.forward(2 * MINUTE)
    once(w)
    assert len(firings(w)) == 1, "packed is not moved"
    # There and back is two moves.
    for want in (2, 3, 4, 5):
        subprocess.run([*git, "update-ref", "refs/heads/main", first if want % 2 == 0 else second], check=True)
        clock.forward(2 * MINUTE)
        once(w)
        assert len(firings(w)) == want, firings(w)


@test
def a_rule_does_not_chase_the_branch_that_it_ships_to(w: World):
    clock = Clock(w)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(w.project)]

    def move():
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True, env=w.env)
        subprocess.run([*git, "branch", "-f", "auto"], check=True)

    subprocess.run([*git, "init", "-q", "-b", "main"], check=True, env=w.env)
    subprocess.run([*git, "add", "-A"], check=True)
    move()
    rules(w, "name: a, on: {ref: refs/heads/auto}, run: date +%N > when, then: ship")
    stages(w, f"{{name: br, target: 'git:{w.project}#auto', approve: never}}")
    once(w)
    move()
    once(w)
    assert results(w) == ["shipped"], firings(w)
    commit = subprocess.run([*git, "rev-parse", "auto"], check=True, capture_output=True, text=True).stdout.strip()
    assert commit != subprocess.run([*git, "rev-parse", "main"], check=True, capture_output=True, text=True).stdout.strip()
    for _ in range(3):
        clock.forward(2 * MINUTE)
        once(w)
    assert len(firings(w)) == 1, "what it shipped is no reason to begin again"
    move()
    clock.forward(2 * MINUTE)
    once(w)
    assert len(firings(w)) == 2, "what another did is"


@test
def probes_are_within_the_budget_of_their_rule(w: World):
    clock = Clock(w)
    put(w.project / "burn.py", "import time\nwhile time.process_time() < 1.1: pass\n")
    rules(w, "name: a, on: {fails: python3 burn.py, every: 10m}, run: 'true', budget: {cpu_per_day: 1s}")
    runs = []
    for forward in (0, 10 * MINUTE, HOUR, 25 * HOUR):
        clock.forward(forward)
        once(w)
        runs.append(len(w.ok("runs", "--json").json("snap.runs/1")["runs"]))
    assert runs == [1, 1, 1, 2], runs
    assert "processor time for a day" in rule_of(w, "a")["why"], status(w)
    clock.forward(26 * HOUR)
    w.ok("watch", "pause", "a")
    once(w)
    assert len(w.ok("runs", "--json").json("snap.runs/1")["runs"]) == 2, "a rule that is paused probes nothing"


@contextlib.contextmanager
def rounds_of(w):
    """How many rounds a watching process has begun, whenever that is asked; none of its trace is in a project."""
    if not shutil.which("strace"):
        raise Skip("needs strace")
    with tempfile.TemporaryDirectory() as top:
        trace = Path(top) / "trace"
        watch = subprocess.Popen(["strace", "-o", str(trace), "-e", "trace=openat", SNAP, "watch", "start", "--foreground"],
                                 cwd=w.project, env=w.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def rounds():
            return trace.read_text().count(f'"{w.store}/firings"')

        try:
            until(lambda: trace.exists() and rounds() >= 1)
            yield rounds
        finally:
            children = Path(f"/proc/{watch.pid}/task/{watch.pid}/children").read_text().split()
            for pid in children:
                os.kill(int(pid), signal.SIGTERM)
            watch.wait(30)


@test
def a_storm_of_files_costs_no_rounds(w: World):
    rules(w, "name: a, on: {files: ['*.x'], debounce: 2s}, run: 'true'",
          "name: b, on: {fails: 'true', every: 1h}, run: 'true'")
    with rounds_of(w) as rounds:
        time.sleep(0.5)
        before = rounds()
        for i in range(100):
            put(w.project / f"{i}.x")
            time.sleep(0.01)
        during = rounds() - before
        until(lambda: len(firings(w)) == 1 and firings(w)[0]["result"])
    assert during <= 25, during  # of 100 files; a busy machine has more rounds in that time


@test
def what_snap_writes_itself_is_no_event_of_a_project_that_holds_its_store(w: World):
    config(w, "watch.yaml", f"rules: [{{name: a, project: {w.top}, on: {{files: ['*.x'], debounce: 100ms}}, run: 'true'}}]\n")
    with rounds_of(w) as rounds:
        put(w.top / "1.x")
        until(lambda: len(firings(w)) == 1 and firings(w)[0]["result"])
        time.sleep(1)
        before = rounds()
        time.sleep(3)
        after = rounds()
    assert after - before <= 3, after - before


@test
def directories_that_cannot_be_watched_are_told(w: World):
    rules(w, "name: a, on: {files: ['*.x']}, run: 'true'", "name: b, on: fire, run: 'true'")
    for i in range(30):
        put(w.project / f"d{i}" / "f")
    # A user namespace has its own limit, below that of the user outside.
    few = "echo 10 > /proc/sys/user/max_inotify_watches && { \"$@\"; \"$1\" -q stop --force; }"
    got = subprocess.run(["unshare", "--user", "--map-root-user", "sh", "-c", few, "sh", SNAP, "watch", "start", "--once"],
                         cwd=w.project, env=w.env, capture_output=True)
    if b"max_inotify_watches" in got.stderr and b"rule 'a'" not in got.stderr:
        raise Skip("no user namespace can have a limit of its own here")
    assert b"rule 'a': not all directories of" in got.stderr and b"max_user_watches" in got.stderr, got
    assert "once a minute" in rule_of(w, "a")["why"] and not rule_of(w, "b")["why"], status(w)
    once(w)
    assert not rule_of(w, "a")["why"], status(w)


class Hook:
    """`watch hook`, and what it is asked."""

    def __init__(self, w, *args):
        self.process = subprocess.Popen([SNAP, "watch", "hook", "--json", *args], cwd=w.project, env=w.env,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line:
            raise Skip(self.process.stderr.read().decode())
        self.told = json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20) == 0, self.process.stderr.read()

    def call(self, rule, body=b"", token=None, method="POST", **headers):
        url = self.told["url"] + rule
        request = urllib.request.Request(url, data=body, method=method, headers={
            "Authorization": f"Bearer {self.told['token'] if token is None else token}", **headers})
        try:
            with urllib.request.urlopen(request, timeout=30) as got:
                return got.status, json.loads(got.read())
        except urllib.error.HTTPError as e:
            return e.code, json.loads(e.read())


@test
def a_call_by_http_fires_rules_that_wait_for_it_and_no_others(w: World):
    rules(w, "name: a, on: webhook, run: 'printf \"$SNAPCOW_TRIGGER_KIND $SNAPCOW_TRIGGER_DETAIL\"'",
          "name: b, on: fire, run: 'true'")
    with Hook(w) as hook:
        assert hook.told["url"].startswith("http://127.0.0.1:") and hook.told["act"] == "hook", hook.told
        status_, got = hook.call("a", b"pushed\n\x1b[2Jby ci")
        assert status_ == 202, got
        firing, = firings(w)
        assert firing["firing"] == got["firing"] and firing["trigger"] == "webhook", firing
        assert firing["detail"] == "pushed  [2Jby ci", firing
        for want, call in ((404, ("b",)), (404, ("c",)), (404, ("../a",)), (401, ("a", b"", "wrong")), (401, ("a", b"", "")),
                           (405, ("a", None, None, "GET")), (413, ("a", b"x" * 1_100_000))):
            status_, got = hook.call(*call)
            assert status_ == want and got["error"], (call[0], status_, got)
        assert hook.call("a", Host="evil.example")[0] == 403 and hook.call("a", Origin="http://evil.example")[0] == 403
        assert len(firings(w)) == 1, "who may not call fires nothing"
    once(w)
    firing, = firings(w)
    assert firing["result"] == "nothing", firing
    assert w.ok("logs", firing["run"]).out == b"webhook pushed  [2Jby ci"
    w.snap("watch", "hook", "--listen", "0.0.0.0:0").fails(2, "0.0.0.0")


@test
def what_was_done_is_posted_and_shown(w: World):
    got, tools = [], w.home / "tools"

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.path, self.headers["Content-Type"], json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            # Where it is sent on to it must not go.
            self.send_response(307 if len(got) == 2 else 204)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    if not shutil.which("curl"):
        raise Skip("needs curl")
    put(tools / "notify-send", f"#!/bin/sh\nprintf '%s|' \"$@\" >> {w.home}/shown\n")
    (tools / "notify-send").chmod(0o755)
    put(tools / "curl", f"#!/bin/sh\nprintf '%s|' \"$@\" >> {w.home}/words\nexec {shutil.which('curl')} \"$@\"\n")
    (tools / "curl").chmod(0o755)
    w.env["PATH"] = f"{tools}:{w.env['PATH']}"
    w.env["no_proxy"] = "127.0.0.1"
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        rules(w, "name: a, on: fire, run: 'exit 3'", "name: b, on: fire, run: 'echo x > x', then: keep",
              top=f"notify: {{post: 'http://127.0.0.1:{server.server_port}/in', desktop: true}}\n")
        for name in ("a", "b"):
            fire(w, name)
            once(w)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert [(path, kind, m["rule"], m["result"]) for path, kind, m in got] == [
        ("/in", "application/json", "a", "failed"), ("/in", "application/json", "b", "kept")], got
    assert "ended with 3" in got[0][2]["why"], got
    # Everybody can read the words of a command, and an address is often a secret.
    assert "/in" not in (w.home / "words").read_text()
    shown = (w.home / "shown").read_text()
    assert "a: failed|" in shown and "b: kept|" in shown and str(w.project) in shown, shown
    for bad in ("{post: 'ftp://x/y'}", "{post: 'https://u:p@x/y'}", "{desktop: maybe}", "{mail: x}"):
        rules(w, "name: a, on: fire, run: 'true'", top=f"notify: {bad}\n")
        assert "watch.yaml:1" in status(w)["problem"], bad


@test
def what_becomes_of_a_change_is_told_once_each_time_it_stands(w: World):
    told, ill, staging = w.home / "told", w.home / "ill", w.top / "staging"
    clock = Clock(w)
    put(staging / "README.md")
    stages(w, "{name: dev, target: ., approvers: [" + pwd.getpwuid(os.getuid()).pw_name + "]}",
           f"{{name: staging, target: {staging}, soak: 30m, health: ['test ! -e {ill}'], health_every: 10m, on_failure: undo-all}}")
    # Who tells it dies after that, each time.
    top = f"notify: echo $SNAPCOW_WATCH_RULE $SNAPCOW_WATCH_RESULT $SNAPCOW_WATCH_STAGE - $SNAPCOW_WATCH_WHY >> {told}; kill -9 $PPID\n"
    rules(w, "name: ask, on: fire, run: date +%N > a.txt, then: ship", "name: far, on: fire, run: date +%N > b.txt, then: ship, to: dev",
          "name: no, on: fire, run: echo > c.txt, then: ship", top=top)
    config(w, "policy.yaml", "- {name: far, who: ['watch:far'], then: land}\n- {name: no, who: ['watch:no'], then: refuse}\n"
                             "- {name: asks, paths: ['a.txt'], then: approve}\n")

    def news():
        once(w)
        once(w)
        got = told.read_text().splitlines() if told.exists() else []
        told.unlink(missing_ok=True)
        return got

    def change(rule):
        return next(c["change"] for c in status(w)["changes"] if c["who"] == f"watch:{rule}")

    fire(w, "far")
    assert news() == ["far shipped dev - it landed on stage 'dev'"]
    fire(w, "no")
    assert news() == ["no held dev - it is held at stage 'dev': the rule 'no' refuses it"]
    fire(w, "ask")
    line, = news()
    assert line.startswith("ask waiting dev - its stage 'dev' waits for '") and "the rule 'asks' asks for a person (snap approve " in line, line
    assert news() == [], "nothing new"
    w.ok("approve", change("ask"))
    line, = news()
    assert line.startswith("ask waiting staging - it landed on stage 'dev', and stage 'staging' waits for the owner of the store: "), line
    w.ok("approve", change("ask"))
    assert news() == ["ask soaking staging - it landed on stage 'staging' and is watched there"]
    ill.touch()
    clock.forward(10 * MINUTE)
    assert news() == [f"ask sick staging - not healthy on 'staging': 'test ! -e {ill}' ended with 1; "
                      "taken back from stage 'staging' and stage 'dev'"]
    ill.unlink()
    fire(w, "ask")
    assert len(news()) == 1
    w.ok("reject", change("ask"), "-m", "not now")
    line, = news()
    assert line.startswith("ask rejected dev - rejected by ") and line.endswith(": not now"), line
    clock.forward(10 * MINUTE)
    assert news() == []


@test
def events_say_to_people_what_happened_to_rules_and_changes(w: World):
    ill = w.home / "ill"
    clock = Clock(w)
    stages(w, f"{{name: dev, target: ., approve: always, soak: 30m, health: ['test ! -e {ill}'], health_every: 10m}}")
    rules(w, "name: ask, on: fire, run: echo a > a.txt, then: ship")
    fire(w, "ask")
    once(w)
    change = status(w)["changes"][0]["change"]
    w.ok("approve", change)
    once(w)
    ill.touch()
    clock.forward(10 * MINUTE)
    once(w)
    w.ok("watch", "pause")
    w.ok("watch", "resume", "ask")
    seen = {}
    for line in w.ok("events", "-a", "-n", "0").out.decode().splitlines():
        number, _, _, kind, _, *rest = line.split()
        seen[kind] = " ".join(rest)
    short, ours = change[:8], {k: v for k, v in seen.items() if k.startswith(("watch-", "change-"))}
    assert all(ours.values()), ours
    assert ours["watch-fired"] == "ask (fire) queued" and ours["watch-began"] == "ask (fire) running", ours
    assert ours["watch-done"] == f"ask (fire) shipped as {short}", ours
    assert ours["change-waiting"] == f"{short} at dev: this stage always asks for a person", ours
    assert ours["change-approved"] == ours["change-passed"] == f"{short} at dev", ours
    assert ours["change-undone"].startswith(f"{short} at dev: not healthy on 'dev': "), ours
    assert ours["watch-paused"] == "all rules" and ours["watch-resumed"] == "ask", ours


@test
def a_firing_whose_process_died_before_it_told_is_told_by_the_next(w: World):
    told = w.home / "told"
    rules(w, "name: a, on: fire, run: echo > a.txt, then: keep", top=f"notify: echo $SNAPCOW_WATCH_RESULT >> {told}\n")
    fire(w, "a")
    once(w)
    state, = (w.store / "firings").glob("*/state.json")
    got = json.loads(state.read_text())
    assert told.read_text() == "kept\n" and got["told"] == "kept", got
    state.write_text(json.dumps({**got, "told": None}))
    once(w)
    once(w)
    assert told.read_text() == "kept\n" * 2
    # One of an earlier version told it, and did not say so in these words.
    del got["told"]
    state.write_text(json.dumps({**got, "version": 1, "notified": True}))
    once(w)
    assert told.read_text() == "kept\n" * 2


@test
def a_line_of_a_log_fires(w: World):
    log = w.home / "app.log"
    put(log, "ERROR old\n")
    rules(w, f"name: a, on: {{log: {log}, match: '^ERROR [a-z]+'}}, run: 'true'")
    once(w)
    with log.open("a") as f:
        f.write("fine\nERROR disk\nERROR ha")
    once(w)
    assert [f["detail"] for f in firings(w)] == ["ERROR disk"], firings(w)
    with log.open("a") as f:
        f.write("lf\n")
    once(w)
    assert [f["detail"] for f in firings(w)] == ["ERROR disk", "ERROR half"]
    os.rename(log, w.home / "app.log.1")
    put(log, "ERROR rotated\n")
    once(w)
    assert firings(w)[2]["detail"] == "ERROR rotated"
    once(w)
    assert len(firings(w)) == 3
    # The same line at the same place of a file that was emptied.
    put(log, "")
    once(w)
    put(log, "ERROR rotated\n")
    once(w)
    assert [f["detail"] for f in firings(w)][3:] == ["ERROR rotated"], firings(w)
    # A file that is made again may get the inode number that it had.
    os.rename(log, w.home / "kept")
    once(w)
    put(w.home / "kept", "ERROR again\n" + "fine\n" * 9)
    os.rename(w.home / "kept", log)
    once(w)
    assert [f["detail"] for f in firings(w)][4:] == ["ERROR again"], firings(w)


@test
def no_line_of_a_log_is_missed_that_comes_at_once_or_with_its_file(w: World):
    logs = w.home / "logs"
    rules(w, f"name: a, on: {{log: {logs}/app.log, match: '^ERROR [a-z]+'}}, run: 'true'")
    once(w)
    put(logs / "app.log", "ERROR first\nfine\n")
    once(w)
    assert [f["detail"] for f in firings(w)] == ["ERROR first"], firings(w)
    with (logs / "app.log").open("a") as f:
        f.write("ERROR many\n" + ("x" * 99 + "\n") * 30000)
    once(w)
    assert [f["detail"] for f in firings(w)][1:] == ["ERROR many"], firings(w)
    # A line that is longer than what is read at once hides none behind it.
    with (logs / "app.log").open("a") as f:
        f.write("y" * 3_000_000 + "\nERROR behind\n")
    once(w)
    assert [f["detail"] for f in firings(w)][2:] == ["ERROR behind"], firings(w)
    once(w)
    assert len(firings(w)) == 3, firings(w)
    # It is matched itself, by what is read of it first, and no other part of it is a line.
    with (logs / "app.log").open("a") as f:
        f.write("ERROR long".ljust(2 << 20, "y"))
    once(w)
    with (logs / "app.log").open("a") as f:
        f.write("ERROR part\nfine\n")
    once(w)
    assert [f["detail"] for f in firings(w)][3:] == ["ERROR long".ljust(400, "y")], firings(w)
    with (logs / "app.log").open("a") as f:
        f.write("ERROR last\n")
    once(w)
    assert [f["detail"] for f in firings(w)][4:] == ["ERROR last"], firings(w)


@test
def why_a_trigger_cannot_be_looked_at_is_said(w: World):
    log = w.home / "app.log"
    log.mkdir()
    rules(w, f"name: a, on: {{log: {log}, match: ERROR}}, run: 'true'")
    once(w)
    assert "is no file of lines" in rule_of(w, "a")["why"], status(w)
    log.rmdir()
    once(w)
    assert rule_of(w, "a")["why"] is None, status(w)


@test
def a_rule_that_was_edited_and_edited_back_fires_again(w: World):
    line = "name: a, on: {{disk: {}}}, run: 'true'"
    for want, size in enumerate(("1000000T", "1K", "1000000T"), 1):
        rules(w, line.format(size))
        once(w)
        assert len(firings(w)) == (want + 1) // 2, firings(w)
    (w.store / "watch" / "daemon" / "state.json").unlink()
    once(w)
    assert len(firings(w)) == 3, "a state that was lost begins anew"
    # One of an earlier version has no epochs.
    state = w.store / "watch" / "daemon" / "state.json"
    old = json.loads(state.read_text())
    old["version"] = 1
    del old["cursors"][0]["epoch"]
    state.write_text(json.dumps(old))
    once(w)
    assert len(firings(w)) == 3 and json.loads(state.read_text())["cursors"][0]["epoch"]


@test
def limits_of_disk_and_store_fire_when_they_are_crossed(w: World):
    clock = Clock(w)
    rules(w, "name: disk, on: {disk: 1000000T}, run: 'true'", "name: store, on: {store: 1K}, run: 'true'",
          "name: room, on: {disk: 1K}, run: 'true'")
    put(w.project / "a")
    w.ok("snapshot")
    once(w)
    assert sorted(f["rule"] for f in firings(w)) == ["disk", "store"], firings(w)
    clock.forward(HOUR)
    once(w)
    assert len(firings(w)) == 2, "it is still so"


# --- the process ---------------------------------------------------------------------------------


@test
def a_process_in_the_background_follows_the_rules_until_it_is_stopped(w: World):
    put(w.project / "a.c", "good\n")
    rules(w, "name: fix, on: {files: '*.c', debounce: 100ms}, run: sed -i s/bad/good/ *.c, then: ship")
    stages(w, DEV)
    pid = w.ok("watch", "start", "--json").json("snap.watch/1")["pid"]
    assert status(w)["running"] and status(w)["pid"] == pid
    w.snap("watch", "start").ends(11)
    # A storm becomes few actions, and all of it is mended.
    for i in range(300):
        put(w.project / "deep" / f"d{i % 7}" / f"f{i}.txt", f"{i}\n")
    put(w.project / "a.c", "bad\n")
    until(lambda: (w.project / "a.c").read_text() == "good\n")
    until(lambda: all(f["state"] == "done" for f in firings(w)))
    assert 1 <= len(firings(w)) <= 5, firings(w)
    # A directory that is new is watched, too.
    put(w.project / "new" / "dir" / "b.c", "fine\n")
    until(lambda: any("new/dir/b.c" in f["paths"] for f in firings(w)))
    # So are rules that change.
    rules(w, "name: hand, on: fire, run: 'true'")
    fire(w, "hand")
    until(lambda: results(w, "hand") == ["nothing"])
    config(w, "watch.yaml", "rules: 3\n")
    until(lambda: status(w)["problem"])
    w.ok("watch", "stop")
    assert not status(w)["running"]
    assert b"Nothing was watching" in w.ok("watch", "stop").out
    assert gone(pid, 60)


@test
def a_project_that_another_directory_takes_the_place_of_is_watched_again(w: World):
    put(w.project / "a.x")
    link, own = w.home / "link", str(w.project)
    link.symlink_to(w.project)
    rules(w, "name: a, on: {files: ['*.x'], debounce: 100ms}, run: 'true'")
    w.ok("watch", "start")

    def fires(path):
        before = len(firings(w))
        put(path, f"{before}\n")
        until(lambda: len(firings(w)) > before and all(f["state"] == "done" for f in firings(w)))

    fires(w.project / "a.x")
    # Moved away, and another one takes its place.
    os.rename(own, own + ".old")
    put(w.project / "b.x")
    until(lambda: any("b.x" in f["paths"] for f in firings(w)))
    until(lambda: all(f["state"] == "done" for f in firings(w)))
    fires(w.project / "b.x")
    fires(w.project / "sub" / "c.x")
    # Removed while somebody is in it, and made again.
    with subprocess.Popen(["sleep", "1000"], cwd=own) as shell:
        shutil.rmtree(own)
        put(w.project / "d.x")
        until(lambda: any("d.x" in f["paths"] for f in firings(w)))
        until(lambda: all(f["state"] == "done" for f in firings(w)))
        fires(w.project / "d.x")
        shell.kill()
    # Removed with nobody in it, it may get the number that it had.
    shutil.rmtree(own)
    put(w.project / "e.x")
    until(lambda: any("e.x" in f["paths"] for f in firings(w)))
    until(lambda: all(f["state"] == "done" for f in firings(w)))
    fires(w.project / "e.x")
    w.ok("watch", "stop")
    # One that is named by a symlink is watched as well.
    config(w, "watch.yaml", f"rules: [{{name: b, project: {link}, on: {{files: ['*.x'], debounce: 100ms}}, run: 'true'}}]\n")
    w.ok("watch", "start")
    fires(w.project / "e.x")
    w.ok("watch", "stop")


@test
def another_directory_is_found_of_which_no_event_tells(w: World):
    up, link = w.home / "up", w.home / "link"
    put(up / "project" / "a.x")
    put(up / "logs" / "app.log")
    put(w.home / "one" / "a.x")
    link.symlink_to("one")
    files = ", on: {files: ['*.x'], debounce: 100ms}, run: 'true'}\n"
    config(w, "watch.yaml", f"rules:\n  - {{name: a, project: {up}/project" + files
           + f"  - {{name: b, project: {up}/project" + files + f"  - {{name: link, project: {link}" + files
           + f"  - {{name: log, project: {w.project}, on: {{log: {up}/logs/app.log, match: ERROR}}, run: 'true'}}\n")
    w.ok("watch", "start")
    # A parent directory is made anew, a symlink gets another target.
    os.rename(up, w.home / "old")
    put(up / "project" / "b.x")
    put(up / "logs" / "app.log", "ERROR\n")
    put(w.home / "two" / "b.x")
    link.unlink()
    link.symlink_to("two")
    until(lambda: {f["rule"] for f in firings(w)} == {"a", "b", "link", "log"})
    until(lambda: all(f["state"] == "done" for f in firings(w)))
    put(up / "project" / "c.x")
    put(link / "c.x")
    until(lambda: {f["rule"] for f in firings(w) if "c.x" in f["paths"]} == {"a", "b", "link"}, 30)
    w.ok("watch", "stop")


@test
def a_project_that_hangs_hangs_alone(w: World):
    needs_fuse(True)
    dead = w.home / "dead"
    put(dead / "a.x")
    put(w.project / "a.x")
    config(w, "watch.yaml", "rules:\n" + "".join(
        f"  - {{name: {name}, project: {project}, on: {{files: ['*.x'], debounce: 100ms}}, run: 'true'}}\n"
        for name, project in (("stuck", dead), ("fine", w.project))))
    w.ok("watch", "start")

    def fires(rule, path, seconds=60):
        put(path)
        until(lambda: any(path.name in f["paths"] for f in firings(w, rule)), seconds)
        until(lambda: all(f["state"] == "done" for f in firings(w)))

    fires("fine", w.project / "b.x")
    fires("stuck", dead / "b.x")
    with hung(dead):
        fires("fine", w.project / "c.x")
        seen = rule_of(w, "stuck")
        assert seen["state"] == "off" and "its file system does not answer" in seen["why"], seen
        fires("fine", w.project / "d.x")
    # It answers again, which is found once a minute, and so is what changed meanwhile.
    fires("stuck", dead / "c.x", 120)
    until(lambda: rule_of(w, "stuck")["state"] == "ready")
    w.ok("watch", "stop")


@test
def what_fails_for_a_moment_does_not_end_the_process(w: World):
    log = w.home / "app.log"
    put(log, "fine\n")
    rules(w, f"name: a, on: {{log: {log}, match: ERROR}}, run: 'true'")
    pid = w.ok("watch", "start", "--json").json("snap.watch/1")["pid"]
    own = w.store / "watch" / "daemon"
    # Nothing can be written there now.
    (own / "state.json").rename(own / "kept")
    (own / "state.json").mkdir()
    with log.open("a") as f:
        f.write("ERROR\n")
    until(lambda: "trying again" in (own / "log").read_text())
    assert os.path.exists(f"/proc/{pid}")
    (own / "state.json").rmdir()
    (own / "kept").rename(own / "state.json")
    until(lambda: results(w) == ["nothing"])
    assert status(w)["pid"] == pid
    w.ok("watch", "stop")


@test
def a_clock_that_is_set_as_the_timer_is_set_does_not_end_the_process(w: World):
    if not shutil.which("strace"):
        raise Skip("needs strace")
    rules(w, "name: a, on: fire, run: 'true'")
    log = w.top / "trace"
    watch = subprocess.Popen(["strace", "-o", str(log), "-e", "trace=timerfd_settime",
                              "-e", "inject=timerfd_settime:error=ECANCELED:when=2..8+2",
                              SNAP, "watch", "start", "--foreground"], cwd=w.project, env=w.env,
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: watch.poll() is not None or status(w)["running"])
    for _ in range(4):
        fire(w, "a")
    until(lambda: watch.poll() is not None or log.read_text().count("INJECTED") >= 2)
    until(lambda: watch.poll() is not None or set(results(w)) == {"nothing"})
    assert watch.poll() is None, log.read_text()
    w.ok("watch", "stop")
    watch.wait()


@test
def a_firing_that_cannot_begin_says_why_until_it_can(w: World):
    there, gone_there = w.top / "there", w.top / "gone"
    put(there / "a")
    config(w, "watch.yaml", f"rules: [{{name: a, project: {there}, on: fire, run: 'true'}}]\n")
    fire(w, "a")
    os.rename(there, gone_there)
    for _ in range(2):
        once(w)
        got = firings(w)[0]
        assert got["state"] == "queued" and got["attempts"] == 0 and f"'{there}'" in got["why"], got
    os.rename(gone_there, there)
    once(w)
    got = firings(w)[0]
    assert got["result"] == "nothing" and got["attempts"] == 1 and got["why"] is None, got


@test
def a_stopped_action_begins_again_and_is_done_once(w: World):
    rules(w, "name: a, on: fire, run: 'test -e go || sleep 600; echo x >> made', then: ship")
    stages(w, DEV)
    fire(w, "a")
    w.ok("watch", "start")
    until(lambda: firings(w)[0]["run"])
    w.ok("watch", "stop")
    got = firings(w)[0]
    assert got["state"] == "running" and not got["running"] and got["attempts"] == 1, got
    assert not [r for r in json.loads(w.ok("ps", "--json").out)["runs"]], "the run ended with it"
    put(w.project / "go")
    once(w)
    got = firings(w)
    assert len(got) == 1 and got[0]["result"] == "shipped" and got[0]["attempts"] == 2, got
    assert (w.project / "made").read_text() == "x\n"
    assert w.ok("-q", "list", "--all").out == b""


@test
def an_attempt_that_died_counts_and_begins_again_only_when_it_may(w: World):
    rules(w, "name: a, on: fire, run: 'test -e go && exit; while :; do :; done', budget: {cpu_per_day: 1h}")
    fire(w, "a")
    w.ok("watch", "start")
    state = w.store / "watch" / "daemon" / "state.json"
    until(lambda: json.loads(state.read_text())["meters"])
    w.ok("watch", "stop")
    used = json.loads(state.read_text())["meters"][0]["cpu_ms"]
    assert used >= 1000, used
    put(w.project / "go")
    w.ok("watch", "pause", "a")
    once(w)
    got = firings(w)[0]
    assert got["state"] == "running" and got["attempts"] == 1, got
    w.ok("watch", "resume", "a")
    once(w)
    got = firings(w)[0]
    assert got["attempts"] == 2 and got["result"] == "nothing" and used <= got["cpu_ms"] < 2 * used, got
    assert json.loads(state.read_text())["version"] == 5
    once(w)
    assert json.loads(state.read_text())["meters"] == []


@test
def in_the_foreground_it_ends_by_a_signal(w: World):
    rules(w, "name: a, on: fire, run: 'true'")
    p = subprocess.Popen([str(SNAP), "watch", "start", "--foreground"], cwd=w.project, env=w.env,
                         stdout=subprocess.PIPE)
    until(lambda: status(w)["running"])
    fire(w, "a")
    until(lambda: results(w) == ["nothing"])
    p.terminate()
    assert p.wait(30) == 0 and p.stdout.read() == b"The watch has ended.\n"


if __name__ == "__main__":
    sys.exit(livetest.main())

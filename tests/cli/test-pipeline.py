"""Changes on their way through stages: checks, approvals, landings, soak, receipts."""

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from promotetest import clone  # noqa: E402
from snaptest import SNAP, World, test  # noqa: E402

HOUR = 3600 * 10**9


def put(path, text="x\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def config(w, name, text):
    put(w.home / ".config" / "snapcow" / name, text)


def stages(w, *lines):
    config(w, "pipeline.yaml", "- stages:\n" + "".join(f"    - {line}\n" for line in lines))


class Clock:
    """A clock that the test drives."""

    def __init__(self, w):
        self.file, self.ns = w.home / "clock", 1_700_000_000 * 10**9
        w.env["SNAPCOW_CLOCK"] = str(self.file)
        self.forward(0)

    def forward(self, ns):
        self.ns += ns
        self.file.write_text(str(self.ns))

    def say(self, hours, since_boot, boot="one"):
        """The clock that people set, in hours from the beginning, the one that nobody sets, and the boot."""
        self.file.write_text(f"{self.ns + hours * HOUR} {since_boot * 3600 * 1000} {boot}")


def ship(w, *args, code=0):
    return w.snap("ship", "--json", *args).json("snap.ship/1", "change", "state", status=code)


def passed(got):
    return [r["stage"] for r in got["receipts"] if not r["undone"]]


def staging(w):
    """Another directory, which begins as a copy of the project and has something of its own."""
    there = w.home / "staging"
    put(there / "README.md", (w.project / "README.md").read_text())
    put(there / "own.conf", "port=1\n")
    return there


@test
def a_change_goes_through_all_stages_as_it_was_when_it_was_shipped(w: World):
    there = staging(w)
    c = clone(w)
    put(c / "a.txt", "good\n")
    stages(w, "{name: dev, target: ., approve: never}", f"{{name: staging, target: {there}, approve: never}}")
    got = ship(w, "try", "--to", "dev")
    assert got["state"] == "ready" and passed(got) == ["dev"], got
    assert (w.project / "a.txt").read_text() == "good\n" and not (there / "a.txt").exists()
    put(c / "a.txt", "later\n")
    got = ship(w, "--continue", got["change"], "--to", "staging")
    assert passed(got) == ["dev", "staging"] and got["state"] == "shipped", got
    assert (there / "a.txt").read_text() == "good\n" and (there / "own.conf").read_text() == "port=1\n"
    assert w.ok("-q", "list", "--all").out.decode().split() == ["try"], "no clone is left"
    # What landed is the clone's base now, so it can be edited and shipped again.
    got = ship(w, "try")
    assert got["state"] == "shipped" and (there / "a.txt").read_text() == "later\n", got
    w.ok("-C", str(there), "undo")
    assert (there / "a.txt").read_text() == "good\n"


@test
def checks_run_on_exactly_what_would_land(w: World):
    there = staging(w)
    c = clone(w)
    put(c / "a.txt", "bad\n")
    stages(w, "{name: verified, checks: [test -e a.txt]}",
           f"{{name: staging, target: {there}, approve: never, checks: [test -e own.conf, grep -q good a.txt]}}")
    got = ship(w, "try", code=8)
    assert got["state"] == "held" and got["obstacle"] == "check" and passed(got) == ["verified"], got
    assert "grep -q good a.txt" in got["why"] and not (there / "a.txt").exists()
    put(c / "a.txt", "good\n")
    got = ship(w, "try")
    assert got["state"] == "shipped" and len(got["receipts"][1]["checks"]) == 2, got


@test
def a_conflict_in_a_target_changes_nothing(w: World):
    there = staging(w)
    c = clone(w)
    put(c / "README.md", "mine\n")
    put(there / "README.md", "theirs\n")
    stages(w, f"{{name: staging, target: {there}}}")
    got = ship(w, "try", code=5)
    assert got["state"] == "held" and got["obstacle"] == "conflict", got
    assert (there / "README.md").read_text() == "theirs\n"


@test
def a_person_lets_it_go_on_and_only_one_who_may(w: World):
    me = pwd.getpwuid(os.getuid()).pw_name
    c = clone(w)
    put(c / "a.txt")
    stages(w, "{name: dev, target: ., approve: always, approvers: [nobody-at-all]}")
    got = ship(w, "try", code=14)
    assert got["state"] == "waiting" and got["waits_for"]["approvers"] == ["nobody-at-all"], got
    said = w.snap("approve", got["change"]).ends(7)
    assert b"may not decide" in said.err, said.err
    assert ship(w, "--continue", got["change"], code=14)["state"] == "waiting"
    stages(w, f"{{name: dev, target: ., approve: always, approvers: [{me}]}}")
    w.snap("reject", got["change"]).ends(2)
    other = ship(w, "--continue", got["change"], code=14)
    assert other["waits_for"]["approvers"] == ["nobody-at-all"], "who decides is fixed while it waits"
    put(c / "b.txt")
    got = ship(w, "try", code=14)
    w.ok("approve", got["change"], "-m", "looked at it")
    w.snap("approve", got["change"]).ends(7)
    got = ship(w, "--continue", got["change"])
    assert got["state"] == "shipped" and got["receipts"][0]["approved_by"] == me, got
    assert got["receipts"][0]["reason"] == "looked at it" and (w.project / "a.txt").exists()


@test
def without_a_rule_only_a_person_ships_and_a_guarded_path_needs_an_approval(w: World):
    c = clone(w)
    put(c / "a.txt")
    stages(w, "{name: dev, target: .}")
    got = ship(w, "try", "--as", "watch", code=14)
    assert not (w.project / "a.txt").exists() and "no rule" in got["why"], got
    w.ok("reject", got["change"], "-m", "not at night")
    said = w.snap("ship", "try").ends(7)
    assert b"barred" in said.err and b"not at night" in said.err, said.err
    put(c / ".github" / "workflows" / "ci.yml")
    got = ship(w, "try", code=14)
    assert "the guard holds" in got["why"] and got["risk"] == "high", got
    w.ok("approve", got["change"])
    assert ship(w, "--continue", got["change"])["state"] == "shipped"
    assert (w.project / ".github" / "workflows" / "ci.yml").exists()


@test
def whom_the_policy_names_decides_where_a_stage_always_asks(w: World):
    config(w, "policy.yaml", "- {name: ops, then: approve, approvers: [nobody-at-all]}\n")
    c = clone(w)
    put(c / "a.txt")
    stages(w, "{name: dev, target: ., approve: always}")
    assert ship(w, "try", code=14)["waits_for"]["approvers"] == ["nobody-at-all"]


@test
def the_guard_asks_where_nobody_else_does_and_only_what_it_held_passes(w: World):
    c = clone(w)
    put(c / ".envrc")
    stages(w, "{name: dev, target: ., approve: never}")
    got = ship(w, "try", code=14)
    assert got["state"] == "waiting" and not (w.project / ".envrc").exists(), got
    w.ok("approve", got["change"])
    assert ship(w, "--continue", got["change"])["state"] == "shipped" and (w.project / ".envrc").exists()


@test
def what_the_target_has_already_is_checked_all_the_same(w: World):
    c = clone(w)
    put(c / "a.txt")
    stages(w, "{name: first, target: ., approve: never}", "{name: dev, target: ., approve: never, checks: [grep -q good a.txt]}")
    got = ship(w, "try", code=8)
    assert got["obstacle"] == "check" and passed(got) == ["first"], got


@test
def an_agent_that_takes_a_persons_change_further_is_judged_as_an_agent(w: World):
    c = clone(w)
    put(c / "a.txt")
    stages(w, "{name: first}", "{name: dev, target: .}")
    got = ship(w, "try", "--to", "first")
    assert got["state"] == "ready", got
    assert ship(w, "--continue", got["change"], "--as", "agent")["state"] == "ready", "no further than it was to go"
    put(c / "b.txt")
    stages(w, "{name: first, checks: [test -e c.txt]}", "{name: dev, target: .}")
    got = ship(w, "try", code=8)
    stages(w, "{name: first}", "{name: dev, target: .}")
    assert ship(w, "try", "--as", "watch", code=14)["state"] == "waiting"
    assert not (w.project / "b.txt").exists()


@test
def nothing_is_no_change(w: World):
    c = clone(w)
    stages(w, "{name: dev, target: ., approve: never}")
    w.snap("ship", "try").fails(1, "changed nothing that could be shipped")
    put(c / "a.txt")
    ship(w, "try")
    w.snap("ship", "try").fails(1, "changed nothing that could be shipped")


@test
def a_change_that_turns_sick_is_taken_back_and_barred(w: World):
    clock, there = Clock(w), staging(w)
    c = clone(w)
    put(c / "a.txt")
    stages(w, "{name: dev, target: ., approve: never}",
           f"{{name: staging, target: {there}, approve: never, soak: 1h, health_every: 10m, "
           f"health: [test ! -e sick], on_failure: undo-all}}",
           "{name: last, target: ., approve: never}")
    got = ship(w, "try")
    assert got["state"] == "soaking" and got["receipts"][1]["health_runs"] == 1, got
    assert w.ok("pipeline", "advance", "--json").json("snap.pipeline/1", "changes")["changes"][0][
        "receipts"][1]["health_runs"] == 1, "not due yet"
    clock.forward(HOUR // 2)
    put(there / "edited.txt", "meanwhile\n")
    put(there / "sick")
    got = w.ok("pipeline", "advance", "--json").json("snap.pipeline/1", "changes")["changes"][0]
    assert got["state"] == "sick" and passed(got) == [] and "ended with 1" in got["why"], got
    assert not (there / "a.txt").exists() and not (w.project / "a.txt").exists()
    assert (there / "edited.txt").read_text() == "meanwhile\n"
    (there / "sick").unlink()
    said = w.snap("ship", "try").ends(7)
    assert b"found sick" in said.err, said.err


@test
def a_soak_that_stays_healthy_lets_it_go_on(w: World):
    clock = Clock(w)
    c = clone(w)
    put(c / "a.txt")
    stages(w, "{name: dev, target: ., approve: never, soak: 1h, health: [test -e a.txt]}", "{name: end}")
    assert ship(w, "try")["state"] == "soaking"
    clock.forward(HOUR)
    got = ship(w, "--continue", "try")
    assert got["state"] == "shipped" and got["receipts"][0]["health_runs"] == 2, got


def advance(w):
    return w.ok("pipeline", "advance", "--json").json("snap.pipeline/1", "changes")["changes"][0]


@test
def a_soak_lasts_its_time_whatever_the_clock_says(w: World):
    clock = Clock(w)
    put(clone(w) / "a.txt")
    stages(w, "{name: dev, target: ., approve: never, soak: 4h, health: [test -e a.txt], health_every: 1h}")
    clock.say(0, 1)
    assert ship(w, "try")["state"] == "soaking"
    clock.say(100, 2)
    got = advance(w)
    assert got["state"] == "soaking" and got["receipts"][0]["health_runs"] == 2, "a clock set forward ends nothing"
    clock.say(-100, 3)
    assert advance(w)["receipts"][0]["health_runs"] == 3, "one set back stops nothing"
    clock.say(-99, 0, "two")
    got = advance(w)
    assert got["state"] == "soaking" and got["receipts"][0]["health_runs"] == 4, "over a boot the other clock counts"
    clock.say(-200, 0, "three")
    assert advance(w)["state"] == "soaking", "and nothing has passed if that went back"
    clock.say(-200, 1, "three")
    got = advance(w)
    assert got["state"] == "ready" or got["state"] == "shipped", got
    assert got["receipts"][0]["health_runs"] == 5, got


@test
def an_edit_of_the_pipeline_changes_nothing_that_soaks_or_waits(w: World):
    clock, there = Clock(w), staging(w)
    c = clone(w)
    put(c / "a.txt")
    stages(w, f"{{name: staging, target: {there}, approve: never, soak: 2h, health: [test ! -e sick], on_failure: undo}}")
    assert ship(w, "try")["state"] == "soaking"
    stages(w, f"{{name: staging, target: {there}, approve: never, soak: 1s}}", "{name: other}")
    clock.forward(HOUR)
    assert advance(w)["state"] == "soaking"
    stages(w, "{name: other}")
    put(there / "sick")
    clock.forward(HOUR // 2)
    got = advance(w)
    assert got["state"] == "sick" and not (there / "a.txt").exists(), got
    me = pwd.getpwuid(os.getuid()).pw_name
    put(c / "b.txt")
    stages(w, f"{{name: dev, target: ., approve: always, approvers: [{me}], checks: [test -e c.txt]}}")
    got = ship(w, "try", code=14)
    stages(w, "{name: dev, target: ., approve: never}")
    w.ok("approve", got["change"])
    got = ship(w, "--continue", got["change"], code=8)
    assert got["obstacle"] == "check", "what was approved was to be checked so"
    assert ship(w, "--continue", got["change"])["state"] == "shipped", "one that was held arrives anew"


@test
def the_same_shipped_at_once_is_one_change(w: World):
    put(clone(w) / "a.txt")
    stages(w, "{name: dev, target: ., approve: always}")
    all_of = [subprocess.Popen([SNAP, "-q", "ship", "try"], env=w.env, cwd=w.project, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE) for _ in range(6)]
    codes = sorted(p.wait(60) for p in all_of)
    for p in all_of:
        p.communicate()
    assert set(codes) <= {11, 14} and 14 in codes, codes
    assert len(w.ok("-q", "pipeline").out.split()) == 1, "one made it, the others found it"


def states(w, change):
    return w.store / "changes" / change / "state.json"


@test
def what_landed_before_a_crash_is_found_though_the_clock_went_back(w: World):
    c, other = clone(w), clone(w, "other")
    put(c / "a.txt")
    put(other / "o.txt")
    stages(w, "{name: dev, target: ., approve: never}")
    got = ship(w, "try")
    w.ok("promote", "other")
    state = json.loads(states(w, got["change"]).read_text())
    # As a kill between the landing and the record of it leaves it, where the other promotion came first.
    state.update(state=2, stage="dev", landing_clone="try", landing_target=str(w.project), passed=[],
                 settings=[{"name": "dev", "target": str(w.project), "checks": [], "health": [], "approvers": [],
                            "approve": "never", "soak_ms": 0, "every_ms": 60000, "undo_all": False}])
    states(w, got["change"]).write_text(json.dumps(state))
    again = ship(w, "--continue", got["change"])
    assert again["state"] == "shipped" and again["receipts"][0]["receipt"] == got["receipts"][0]["receipt"], again
    assert len(w.ok("log", "--json").json("snap.log/1")["receipts"]) == 2


@test
def a_record_of_the_version_before_goes_on(w: World):
    clock = Clock(w)
    put(clone(w) / "a.txt")
    stages(w, "{name: dev, target: ., approve: never, soak: 1h, health: [test -e a.txt], health_every: 10m}")
    got = ship(w, "try")
    state = json.loads(states(w, got["change"]).read_text())
    for key in ("settings", "landing_known"):
        del state[key]
    for key in ("health", "soak_ms", "every_ms", "undo_all", "soaked_ms", "health_ms", "seen", "seen_ms", "boot"):
        del state["passed"][0][key]
    state.update(version=1, landing_after=None)
    states(w, got["change"]).write_text(json.dumps(state))
    clock.forward(HOUR // 2)
    got = advance(w)
    assert got["state"] == "soaking" and got["receipts"][0]["health_runs"] == 2, got
    clock.forward(HOUR)
    assert ship(w, "--continue", "try")["state"] == "shipped"
    w.ok("pipeline", "verify", "--all")


@test
def receipts_that_were_changed_are_named_and_stop_the_change(w: World):
    there = staging(w)
    c = clone(w)
    put(c / "a.txt")
    stages(w, "{name: dev, target: ., approve: never}", f"{{name: staging, target: {there}, approve: never}}")
    got = ship(w, "try", "--to", "dev")
    w.ok("pipeline", "verify")
    file = w.store / "changes" / got["change"] / "state.json"
    was = file.read_text()
    state = json.loads(was)
    state["passed"][0]["approved_by"] = "alice"
    file.write_text(json.dumps(state))
    said = w.snap("pipeline", "verify").ends(12)
    assert b"stage 'dev': its receipt was changed" in said.out, said.out
    held = ship(w, "--continue", got["change"], code=6)
    assert held["obstacle"] == "receipt" and not (there / "a.txt").exists(), held
    state = json.loads(was)
    state["sha256"] = "0" * 64
    file.write_text(json.dumps(state))
    assert b"content is not what its digest says" in w.snap("pipeline", "verify").ends(12).out
    file.write_text(was)
    w.ok("undo")
    held = ship(w, "--continue", got["change"], "--to", "staging", code=6)
    assert "taken back" in held["why"] and not (there / "a.txt").exists(), held


@test
def a_project_can_only_narrow_and_a_clone_cannot_say_anything(w: World):
    stages(w, "{name: dev, target: ., approve: never}")
    put(w.project / ".snap" / "pipeline.yaml", "- {name: dev, approve: always}\n")
    c = clone(w)
    put(c / ".snap" / "pipeline.yaml", "- {name: dev, approve: never}\n")
    put(c / "a.txt")
    assert ship(w, "try", code=14)["state"] == "waiting"
    for text, why in (("- {name: dev, approve: never}", "only to always"),
                      ("- {name: dev, target: /tmp}", "can only add"),
                      ("- {name: other}", "cannot add one"),
                      ("- {name: dev, health: [x]}", "can only add")):
        put(w.project / ".snap" / "pipeline.yaml", text + "\n")
        said = w.snap("pipeline", "stages").ends(2)
        assert b".snap/pipeline.yaml:1:" in said.err and why.encode() in said.err, (text, said.err)


EVIL = r"""
export CONFIG=$1 STORE=$2 RECORD=$3 CHANGE=$4 SNAP=$5 PROJECT=$6
echo ran > ran.txt
tell() { "$@" 2>> told.txt || true; }
for there in .snap "$CONFIG" "$HOME/.config/snapcow"; do
    tell mkdir -p "$there"
    tell sh -c "echo '- stages: [{name: dev, target: ., approve: never}]' > $there/pipeline.yaml"
    tell sh -c "echo '- {name: all, then: land}' > $there/policy.yaml"
    tell sh -c "echo 'rules: [{name: a, project: $PROJECT, on: fire, run: id, then: ship}]' > $there/watch.yaml"
done
tell sed -i 's/"approved_by":null/"approved_by":"root"/; s/"state":1/"state":0/; s/nobody-at-all/root/' "$RECORD"
tell sh -c 'echo x > "$RECORD"'
tell rm -rf "$(dirname "$RECORD")"
tell mkdir -p "$STORE/changes/evil" "$STORE/firings/evil"
tell cp told.txt "$STORE/changes/evil/state.json"
tell "$SNAP" --store "$STORE" approve "$CHANGE"
tell "$SNAP" approve "$CHANGE"
tell "$SNAP" ship --continue "$CHANGE"
true
"""


def records(w):
    """All that says what may land: the user's files, and what the store has about changes and rules."""
    tops = w.home / ".config" / "snapcow", w.store / "changes", w.store / "firings", w.store / "watch"
    return {str(p): p.read_bytes() if p.is_file() else b"" for top in tops for p in top.rglob("*")}


@test
def a_run_that_writes_files_of_authority_and_records_gains_nothing(w: World):
    stages(w, "{name: dev, target: ., approve: always, approvers: [nobody-at-all]}")
    config(w, "policy.yaml", "- {name: ask, then: approve, approvers: [nobody-at-all]}\n")
    config(w, "watch.yaml", "rules: []\n")
    c = clone(w)
    put(c / "a.txt")
    got = ship(w, "try", code=14)
    record, = (w.store / "changes").glob("*/state.json")
    assert b'"approved_by":null' in record.read_bytes().replace(b" ", b""), "what the run would write is in it"
    before = records(w)
    evil = ["sh", "-c", EVIL, "sh", str(w.home / ".config" / "snapcow"), str(w.store), str(record), got["change"],
            str(SNAP), str(w.project)]
    said = w.snap("run", "try", "--", *evil)
    assert said.status == 0 and (c / "ran.txt").exists(), f"{said}"
    assert records(w) == before, "not a byte of what counts is another"
    assert (c / ".snap" / "policy.yaml").exists() and not (w.project / ".snap").exists()
    # Neither the change that waits nor a new one, which has those files, goes anywhere.
    assert ship(w, "--continue", got["change"], code=14)["state"] == "waiting"
    again = ship(w, "try", code=14)
    assert again["state"] == "waiting" and again["waits_for"]["approvers"] == ["nobody-at-all"], again
    w.snap("approve", again["change"]).ends(7)
    assert not (w.project / "a.txt").exists() and not (w.project / "ran.txt").exists()
    w.ok("pipeline", "verify", "--all")
    # The control: it is the sandbox that it takes.
    subprocess.run(evil, cwd=w.top, env=w.env, check=True, stdout=subprocess.DEVNULL)
    assert not record.exists() and records(w) != before


@test
def files_that_cannot_be_understood_let_nothing_ship(w: World):
    c = clone(w)
    put(c / "a.txt")
    said = w.snap("ship", "try").ends(4)
    assert b"no stages are configured" in said.err, said.err
    for line, why in (("{target: .}", "a stage is a map with a 'name'"), ("{name: a, soak: 1h}", "nothing that could"),
                      ("{name: a, target: x}", "absolute path"), ("{name: a, target: ., health: [x]}", "the stage has none"),
                      ("{name: a, wrong: 1}", "a stage has name"), ("{name: 'a b'}", "letters"),
                      ("{name: a, target: ., approve: maybe}", "one of never")):
        stages(w, line)
        said = w.snap("ship", "try").ends(2)
        assert b"pipeline.yaml:2:" in said.err and why.encode() in said.err, (line, said.err)
    stages(w, "{name: a}", "{name: a}")
    assert b"two stages" in w.snap("pipeline", "stages").ends(2).err
    stages(w, "{name: a}")
    assert b"no stage 'b'" in w.snap("ship", "try", "--to", "b").ends(2).err


if __name__ == "__main__":
    sys.exit(livetest.main())

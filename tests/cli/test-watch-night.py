"""A night in one test, by a clock that the test drives: what fires, lands, waits, turns sick, and survives deaths."""

import os
import pwd
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import live_test, note  # noqa: E402
from snaptest import dice, gone  # noqa: E402
from watchtest import HOUR, MINUTE, Clock, config, fire, firings, once, put, results, rules, stages, status, until  # noqa: E402

MIRROR = ("mkdir -p gen; while read -r f; do cp $f gen/$(basename $f).out; done < $SNAPCOW_TRIGGER_PATHS")


class Night:
    def __init__(self, w):
        self.w, self.clock, self.chance = w, Clock(w), dice()
        self.staging, self.production, self.ill = w.top / "staging", w.top / "production", w.home / "ill"
        me = pwd.getpwuid(os.getuid()).pw_name
        for there in (self.staging, self.production):
            put(there / "README.md", (w.project / "README.md").read_text())
            put(there / "own.conf", f"{there.name}\n")
        health = f"test ! -e sick.txt || test ! -e {self.ill}"
        stages(w, "{name: dev, target: .}",
               f"{{name: staging, target: {self.staging}, soak: 30m, health: ['{health}'], health_every: 10m, "
               "on_failure: undo-all}",
               f"{{name: production, target: {self.production}, soak: 1h, health: ['{health}'], health_every: 10m, "
               "on_failure: undo-all}")
        config(w, "policy.yaml", f"- {{name: mine, who: ['watch:ask'], then: approve, approvers: [{me}]}}\n"
                                 "- {name: theirs, who: ['watch:beg'], then: approve, approvers: [nobody-at-all]}\n"
                                 "- {name: rest, who: [watch], then: land}\n")
        rules(w, f"name: gen, on: {{files: '*.c', debounce: 20ms}}, run: '{MIRROR}', then: ship, "
                 "budget: {runs_per_hour: 100}",
              "name: count, on: {files: storm/, debounce: 400ms}, run: 'wc -l; exit 3', "
              "budget: {failures: 100, backoff: 0s}",
              "name: nightly, on: {schedule: '03:00 UTC'}, run: 'true'",
              "name: note, on: fire, run: date > note.txt, budget: {runs_per_hour: 100}",
              "name: sick, on: fire, run: echo > sick.txt, then: ship",
              "name: ask, on: fire, run: echo asked > ask.txt, then: ship",
              "name: beg, on: fire, run: echo begged > beg.txt, then: ship",
              "name: big, on: fire, run: seq 1000 > big.txt, then: ship, budget: {lines: 100}",
              "name: slow, on: fire, run: sleep 100, budget: {wall: 100ms, failures: 100, backoff: 0s}")
        once(w)

    def die(self, *more):
        """Let a process follow the rules for a moment, kill it, and have the next one finish."""
        pid = self.w.ok("watch", "start", "--json").json("snap.watch/1")["pid"]
        for act in more:
            act()
        time.sleep(self.chance.random() * 0.3)
        os.kill(pid, signal.SIGKILL)
        assert gone(pid, 30)
        once(self.w)

    def forward(self, ns):
        self.clock.forward(ns)
        once(self.w)

    def fires(self, *names):
        return [lambda n=n: fire(self.w, n) for n in names]

    def changes(self, rule):
        return [c for c in status(self.w)["changes"] if c["who"] == f"watch:{rule}"]


def tree(top):
    return {str(p.relative_to(top)): p.read_text() for p in sorted(top.rglob("*")) if p.is_file()}


def storm(w):
    for i in range(500):
        put(w.project / "storm" / f"d{i % 9}" / f"{i}.txt", f"{i}\n")


def groups():
    """Those of runs, beside or below ours, whose maker is gone: nobody would end them any more."""
    here = os.stat("/proc/self/ns/pid").st_ino
    ours = {os.path.dirname(line.split(":", 2)[2]) for line in Path("/proc/self/cgroup").read_text().split()}
    found = {top for top, _, _ in os.walk("/sys/fs/cgroup") if Path(top).name.startswith(f"snap-run-{here}-")}
    return {top for top in found if any(path in top for path in ours) and gone(int(Path(top).name.split("-")[3]), 0)}


def reboot(n):
    """All processes die at once, and the clock that nobody sets begins anew."""
    for pid in n.w.keepers() + n.w.daemons():
        os.kill(pid, signal.SIGKILL)
        assert gone(pid, 30)
    n.clock.reboot()


@live_test
def a_night_is_left_alone_and_every_landing_is_accounted_for(w):
    before = groups()
    n = Night(w)
    # 17:46: a source comes, and the storm.
    n.die(lambda: put(w.project / "one.c", "one\n"), *n.fires("note"))
    assert [c["state"] for c in n.changes("gen")] == ["soaking"], status(w)
    assert (n.staging / "gen" / "one.c.out").exists() and not (n.production / "gen").exists()
    n.forward(HOUR)
    n.forward(HOUR)
    n.die(lambda: storm(w), *n.fires("note", "note", "sick"))
    paths = set().union(*(f["paths"] for f in firings(w, "count")))
    assert len(paths) == 500 and len(firings(w, "count")) <= 6, (len(paths), len(firings(w, "count")))
    assert [c["state"] for c in n.changes("sick")] == ["soaking"], status(w)
    assert (n.staging / "sick.txt").exists() and not (n.production / "sick.txt").exists()
    # It passes on staging and turns sick there during the soak.
    n.forward(10 * MINUTE)
    n.ill.touch()
    n.die(*n.fires("note", "slow", "note"))
    n.forward(10 * MINUTE)
    assert [c["state"] for c in n.changes("sick")] == ["sick"], n.changes("sick")
    assert not (n.staging / "sick.txt").exists() and not (w.project / "sick.txt").exists()
    n.die(*n.fires("sick", "big", "note"))
    assert results(w, "sick") == ["shipped", "barred"] and results(w, "big") == ["over-budget"], firings(w)
    # A person is needed.
    n.die(*n.fires("ask", "beg", "note", "slow"))
    n.forward(HOUR)
    ask, beg = n.changes("ask")[0], n.changes("beg")[0]
    assert ask["state"] == beg["state"] == "waiting", (ask, beg)
    w.snap("approve", beg["change"]).ends(7)
    w.ok("approve", ask["change"])
    n.die(lambda: put(w.project / "two.c", "two\n"), *n.fires("slow", "note", "note"))
    # The next stage asks again.
    ask = n.changes("ask")[0]
    assert ask["state"] == "waiting" and ask["stage"] == "staging" and (w.project / "ask.txt").exists(), ask
    w.ok("approve", ask["change"])
    n.die(lambda: reboot(n), *n.fires("note", "note"))
    n.forward(HOUR)
    w.ok("approve", n.changes("ask")[0]["change"])
    for i in range(3):
        n.die(lambda i=i: put(w.project / f"late{i}.c", f"{i}\n"), *n.fires("note", "slow", "note", "note", "slow", "note"))
        n.forward(HOUR)
    n.forward(6 * HOUR)
    n.forward(2 * HOUR)
    look_in_the_morning(n)
    # Those of other tests come and go.
    until(lambda: not groups() - before, 30)


def look_in_the_morning(n):
    w = n.w
    all_firings = firings(w)
    assert {f["state"] for f in all_firings} == {"done"}, all_firings
    note(f"{sum(f['merged'] + 1 for f in all_firings)} triggers, {len(all_firings)} firings")
    assert sum(f["merged"] + 1 for f in all_firings) >= 40, len(all_firings)
    assert len(firings(w, "nightly")) == 1
    gens = {f"gen/{name}.c.out": text for name, text in
            (("one", "one\n"), ("two", "two\n"), ("late0", "0\n"), ("late1", "1\n"), ("late2", "2\n"))}
    made = {**gens, "ask.txt": "asked\n"}
    sources = {f"{Path(p).name[:-4]}": t for p, t in gens.items()}
    dust = {f"storm/d{i % 9}/{i}.txt": f"{i}\n" for i in range(500)}
    first = {"README.md": "first\n", "src/main.c": "int main(void)\n{\n}\n"}
    got, want = tree(w.project), {**first, **sources, **dust, **made}
    assert got == want, sorted(set(got.items()) ^ set(want.items()))
    for there in (n.staging, n.production):
        assert tree(there) == {"README.md": "first\n", "own.conf": f"{there.name}\n", **made}, tree(there)
    # Every landing has one receipt, and nothing landed that has none.
    changes = status(w)["changes"]
    states = sorted((c["who"], c["state"]) for c in changes)
    shipped = [c for c in changes if c["state"] == "shipped"]
    assert {c["who"] for c in shipped} == {"watch:gen", "watch:ask"}, states
    assert [s for s in states if s[1] != "shipped"] == [("watch:beg", "waiting"), ("watch:sick", "sick")], states
    for i, where in enumerate((w.project, n.staging, n.production)):
        log = w.ok("-C", str(where), "log", "--json").json("snap.log/1")["receipts"]
        want = [r["receipt"] for c in changes for r in c["receipts"] if r["target"] == str(where)]
        got = [r["receipt"] for r in log if r["kind"] == "promotion"]
        assert sorted(want) == sorted(got), (where, want, got)
        assert len([r for r in log if r["kind"] == "undo"]) == (i < 2), log
    w.ok("pipeline", "verify", "--all")
    kept = [f["clone"] for f in all_firings if f["result"] == "over-budget"]
    assert w.ok("-q", "list", "--all").out.decode().split() == kept
    page = w.ok("watch").out.decode()
    assert all(t in page for t in ("What fired", "Waits for a person", "Turned sick", "\nLanded\n")), page
    assert not w.ok("ps", "--json").json("snap.ps/1")["runs"]
    w.ok("rm", *kept)


if __name__ == "__main__":
    sys.exit(livetest.main())

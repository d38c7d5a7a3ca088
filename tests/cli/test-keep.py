"""What is kept and what goes: tags, and gc by a rule."""

import os
import sys
import time

from snaptest import World, main, test


def ids(w, *args):
    return w.ok("-q", "log", *args).out.decode().split()


def gc(w, *args):
    return w.ok("gc", "--json", *args).json("snap.gc/1", "snapshots", "removed", "freed", "dry_run")


def gone(got):
    return [s["snapshot"] for s in got["snapshots"]]


def numbered(w, n):
    """Snapshots, oldest first, each with something of its own."""
    made = []
    for i in range(n):
        (w.project / "README.md").write_bytes(b"%d" % i + os.urandom(5000))
        made.append(w.take("-m", f"number {i}"))
    return made


def stored(w):
    got = w.ok("stats", "--json").json("snap.stats/1")
    return [got[key] for key in ("snapshots", "stored", "chunks", "objects")]


def parents(w, *args):
    got = w.ok("log", "--json", *args).json("snap.log/1")["snapshots"]
    return {s["snapshot"]: s["parent"] for s in got}


# --- tags -------------------------------------------------------------------------------------

@test
def a_tag_is_given_listed_and_taken_away(w: World):
    first, second = numbered(w, 2)
    got = w.ok("tag", "newest", "--json").json("snap.tag/1", "project", "act", "tags")
    assert got["act"] == "add" and got["tags"] == [{"tag": "newest", "snapshot": second}], got
    w.ok("tag", "older", "@-1")
    got = w.ok("tag", "--json").json("snap.tag/1")
    assert got["act"] == "list" and got["project"] == str(w.project), got
    assert got["tags"] == [{"tag": "newest", "snapshot": second},
                           {"tag": "older", "snapshot": first}], got
    assert w.ok("tag").out.decode() == f"{second[:8]}  newest\n{first[:8]}  older\n"
    assert w.ok("-q", "tag").out == b"newest\nolder\n"
    assert w.ok("show", "older", "--json").json("snap.show/1")["snapshot"] == first
    got = w.ok("tag", "-d", "older", "--json").json("snap.tag/1")
    assert got["act"] == "delete" and got["tags"] == [{"tag": "older", "snapshot": first}], got
    w.snap("show", "older").fails(4)
    assert ids(w) == [second, first], "the snapshot stays"


@test
def a_tag_that_cannot_be_is_refused(w: World):
    w.snap("tag").fails(4, "hint: snapcow init")
    w.snap("tag", "v1").fails(4, "hint: snapcow init")
    assert not w.store.exists()
    first = w.take("-t", "v1")
    w.snap("tag", "v1").fails(1, "'v1'", first, "hint: snapcow tag --delete v1")
    w.snap("tag", "v1", "--json").fails_json(1, "E_EXISTS")
    w.snap("tag", "v2", "nope").fails(4, "'nope'", "hint: snapcow log")
    w.snap("tag", "--delete", "nope").fails(4, "'nope'", "hint: snapcow tag")
    w.snap("tag", "a b").fails(2, "'a b'")
    w.snap("tag", "--delete").fails(2, "NAME")
    w.snap("tag", "--delete", "v1", "@").fails(2)
    w.snap("tag", "a", "@", "b").fails(2)
    other = w.top / "other"
    other.mkdir()
    w.ok("init", cwd=other)
    w.snap("tag", "mine", first, cwd=other).fails(4, "another project")
    w.ok("tag", "v1", cwd=other)
    assert w.ok("-q", "tag").out == b"v1\n"


@test
def a_tag_survives_the_daemon(w: World):
    first, _ = numbered(w, 2)
    w.ok("tag", "old", "@-1")
    os.kill(w.daemons()[0], 9)
    assert w.ok("show", "old", "--json").json("snap.show/1")["snapshot"] == first


# --- gc by a rule -----------------------------------------------------------------------------

@test
def without_a_rule_no_snapshot_goes(w: World):
    made = numbered(w, 3)
    assert gone(gc(w)) == [] and ids(w) == made[::-1]
    assert gc(w)["dry_run"] is False


@test
def the_last_ones_stay_and_the_rest_follow_their_parents(w: World):
    made = numbered(w, 5)
    w.ok("tag", "kept", made[1])
    got = gc(w, "--keep-last", "2")
    assert gone(got) == [made[2], made[0]], got
    assert got["snapshots"][0]["message"] == "number 2", got
    assert ids(w) == [made[4], made[3], made[1]]
    assert parents(w) == {made[4]: made[3], made[3]: made[1], made[1]: None}
    assert w.ok("show", "kept:README.md").out.startswith(b"1")
    w.snap("show", made[0]).fails(4)
    w.ok("check")


@test
def a_trial_says_what_the_act_then_does(w: World):
    made = numbered(w, 6)
    before = stored(w)
    trial = gc(w, "--keep-last", "2", "--dry-run")
    assert trial["dry_run"] is True and gone(trial) == made[3::-1], trial
    assert ids(w) == made[::-1] and stored(w) == before
    act = gc(w, "--keep-last", "2")
    for key in ("snapshots", "removed", "freed", "kept"):
        assert trial[key] == act[key], (key, trial, act)
    assert act["freed"] > 4 * 5000, act
    out = w.ok("gc", "--keep-last", "1", "-n").out.decode()
    assert out.startswith(f"snapshot {made[4][:8]}  ") and "would go  1 snapshot, " in out, out
    w.ok("check")


@test
def a_trial_takes_nothing_from_who_writes_beside_it(w: World):
    """Also not the garbage that a snapshot taken afterwards finds again."""
    made = numbered(w, 3)
    text = (w.project / "README.md").read_bytes()
    (w.project / "README.md").write_text("other")
    newest = w.take()
    gc(w, "--keep-last", "1", "--dry-run")
    (w.project / "README.md").write_bytes(text)
    again = w.take()
    assert ids(w) == [again, newest, *made[::-1]]
    w.ok("check")


@test
def age_counts_and_either_rule_keeps(w: World):
    made = numbered(w, 4)
    assert gone(gc(w, "--keep-within", "1h")) == []
    time.sleep(0.02)
    assert gone(gc(w, "--keep-within", "1ms", "--keep-last", "3", "-n")) == made[:1]
    assert gone(gc(w, "--keep-within", "4w", "--keep-last", "1", "-n")) == []
    assert gone(gc(w, "--keep-within", "1ms")) == made[2::-1]
    assert ids(w) == made[3:], "the newest stays, however old it is"


@test
def what_a_clone_started_from_stays_and_each_project_counts_by_itself(w: World):
    made = numbered(w, 3)
    w.ok("clone", "-n", "try", "--from", made[0])
    own = w.take("try")
    other = w.top / "other"
    other.mkdir()
    elsewhere = w.ok("-q", "snapshot", cwd=other).out.decode().strip()
    got = gc(w, "--keep-last", "1")
    assert gone(got) == [made[1]], got
    assert ids(w) == [made[2], made[0]]
    assert w.ok("-q", "log", cwd=other).out.decode().split() == [elsewhere]
    assert ids(w, "try") == [own], "snapshots of a clone are the clone's"
    assert w.ok("status", "try", "--json").json("snap.status/1")["base"] == made[0]
    w.ok("rm", "try")
    assert gone(gc(w, "--keep-last", "1")) == [made[0]]
    w.ok("check")


@test
def snapshots_of_a_clone_that_is_gone_count_with_the_project(w: World):
    first = w.take()
    w.ok("clone", "-n", "try")
    (w.store / "clones" / "try" / "new").write_text("x")
    old = w.take("try")
    w.ok("clone", "-n", "next", "--from", old)
    w.ok("rm", "try")
    newest = w.take()
    assert gone(gc(w, "--keep-last", "1")) == [], "what it started as, and its base"
    w.ok("rm", "next")
    assert gone(gc(w, "--keep-last", "1")) == [old, first], "nothing names them any more"
    assert ids(w) == [newest]
    w.ok("check")


# --- one by one -------------------------------------------------------------------------------

@test
def a_snapshot_is_removed_by_its_id_or_tag_and_gc_frees_it(w: World):
    made = []
    for i in range(4):
        (w.project / "blob").write_bytes(os.urandom(100_000))
        made.append(w.take(*(("-t", "v1") if i == 1 else ())))
    got = w.ok("rm", "--json", made[0], "v1").json("snap.rm/1", "removed")["removed"]
    assert got == [{"clone": None, "snapshot": one, "snapshots": 1} for one in made[:2]], got
    assert ids(w) == made[:1:-1]
    assert w.ok("tag", "--json").json("snap.tag/1")["tags"] == [], "the tag goes with it"
    assert w.ok("rm", "@-1").out == f"removed  {made[2][:8]}\n".encode()
    assert gc(w)["freed"] > 290_000
    w.ok("check")
    assert w.ok("show", "@", "--json").json("snap.show/1")["parent"] is None
    w.ok("rm", made[3])
    w.snap("rm", made[3]).fails(4, "no clone or snapshot")
    w.take()
    w.ok("check")


@test
def a_snapshot_that_something_needs_is_not_removed(w: World):
    made = [w.take()]
    w.ok("clone", "-n", "try")
    w.snap("rm", made[0]).fails(11, "clone 'try' started from")
    (w.store / "clones" / "try" / "new").write_text("x")
    receipt = w.ok("promote", "--json", "try").json("snap.promote/1")["promotion"]
    w.ok("rm", "try")
    w.snap("rm", made[0]).fails(7, f"undo the promotion {receipt}")
    w.ok("tag", "v1", made[0])
    w.snap("rm", "--force", made[0]).fails(7, "has the tag 'v1'")
    assert made[0] in w.ok("-q", "log").out.decode().split()
    w.ok("tag", "v2", made[0])
    w.snap("rm", "--force", "v1").fails(7, "has the tag 'v2'")
    w.ok("tag", "-d", "v2")
    w.ok("rm", "--force", "v1")
    w.snap("undo").fails(4, "was removed")
    w.ok("check")


@test
def a_clone_comes_before_a_snapshot_and_no_short_name_costs_one(w: World):
    made = w.take("-t", "try")
    (w.project / "new").write_text("x")
    w.ok("clone", "-n", "try")
    assert w.ok("rm", "try").out == b"removed  try\n"
    assert made in w.ok("-q", "log").out.decode().split(), "the clone was meant"
    w.snap("rm", made[:7]).fails(4)
    w.snap("rm", ".").fails(2)
    assert w.ok("rm", "try").out == f"removed  {made[:8]}\n".encode()


# --- whose it is ------------------------------------------------------------------------------

def shares(w):
    got = w.ok("stats", "--json").json("snap.stats/1", "per_clone")["per_clone"]
    return {one["clone"]: one for one in got}


@test
def stats_say_what_is_a_clones_own(w: World):
    (w.project / "blob").write_bytes(os.urandom(200_000))
    w.ok("clone", "-n", "same")
    w.ok("clone", "-n", "more")
    w.ok("clone", "-n", "moved")
    clones = w.store / "clones"
    (clones / "more" / "new").write_bytes(os.urandom(100_000))
    (clones / "moved" / "deep" / "down").mkdir(parents=True)
    (clones / "moved" / "blob").rename(clones / "moved" / "deep" / "down" / "blob")
    w.stop()  # all is persisted then
    gc(w)
    got = shares(w)
    assert got["same"]["private"] == 0 and got["same"]["logical"] == 200_025, got
    assert 100_000 < got["more"]["private"] < 105_000, got
    assert got["more"]["logical"] == 300_025, got
    assert got["more"]["shared"] == 300_025 - got["more"]["private"], got
    assert got["moved"]["private"] < 5000, "what only moved is stored once"
    out = w.ok("stats").out.decode()
    assert "CLONE " in out and "same    195.3 KiB         0 B\n" in out, out
    # What is its own is what its removal frees.
    before = w.ok("stats", "--json").json("snap.stats/1")["stored"]
    w.ok("rm", "more")
    freed = gc(w)["freed"]
    assert freed == got["more"]["private"], (freed, got)
    assert w.ok("stats", "--json").json("snap.stats/1")["stored"] == before - freed


def own(w, name="try"):
    """What is the clone's own, which three commands agree on; stats first, as the others persist."""
    stats = shares(w)[name]
    listed = {c["clone"]: c for c in w.ok("list", "--json").json("snap.list/1", "clones")["clones"]}[name]
    status = w.ok("status", "--json", name).json("snap.status/1", "own", "used")
    got = {stats["own"], stats["private"], listed["own"], listed["bytes"], status["own"]}
    assert len(got) == 1, (stats, listed, status)
    return got.pop()


@test
def list_status_and_stats_agree_on_what_is_a_clones_own(w: World):
    size, more = 16 << 20, 64 << 10  # the pieces' list and the directories
    (w.project / "blob").write_bytes(os.urandom(size))
    w.ok("clone", "-n", "try")
    top = w.store / "clones" / "try"
    assert own(w) == 0
    (top / "blob").write_bytes(os.urandom(size))
    assert size <= own(w) < size + more, "overwritten: it has not grown, but it is stored"
    (top / "new").write_bytes(os.urandom(size))
    assert 2 * size <= own(w) < 2 * size + more, own(w)
    (top / "new").write_bytes(os.urandom(size))
    assert 2 * size <= own(w) < 2 * size + more, "what was there before is not shown any more"
    before = own(w)
    w.take("try")
    assert own(w) == before, "a snapshot of it costs nothing"
    w.stop()
    assert own(w) == before, "nor does it matter who counts"
    (top / "new").unlink()
    (top / "blob").unlink()
    assert own(w) < more, own(w)


@test
def a_rule_that_is_none_is_usage(w: World):
    w.take()
    w.snap("gc", "--keep-last", "many").fails(2, "many")
    w.snap("gc", "--keep-within", "7").fails(2, "duration")
    w.snap("gc", "--keep-within", "2d1w").fails(2, "duration")


if __name__ == "__main__":
    sys.exit(main())

"""The ordinary loop: clone, edit, promote, edit, promote, undo; and clones of clones."""

import os
import random
import sys

from promotetest import clone, promote, refused, statuses, undo
from snaptest import World, main, test

LINES = [f"line {i}\n" for i in range(30)]


def text(path):
    return path.read_text()


def put(path, line, to):
    lines = path.read_text().splitlines(keepends=True)
    lines[line] = f"{to}\n"
    path.write_text("".join(lines))


def lines_of(path):
    return path.read_text().splitlines()


def base(w, name="try"):
    return w.ok("status", "--json", name).json("snap.status/1")["base"]


def used(w, name="try"):
    return w.ok("status", "--json", name).json("snap.status/1")["used"]


def changed(w, name="try"):
    got = w.ok("diff", "--json", name).json("snap.diff/1", "files")
    return {f["path"]: f["status"] for f in got["files"]}


def prepared(w, *names):
    for name in names or ("both",):
        (w.project / name).write_text("".join(LINES))
    return clone(w)


def seeded():
    seed = int(os.environ.get("SNAP_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"# SNAP_SEED={seed}")
    return random.Random(seed)


# --- the base follows what landed -------------------------------------------------------------

@test
def what_was_promoted_can_be_edited_and_promoted_again(w: World):
    path = prepared(w)
    for i in range(3):
        put(path / "both", 3, f"clone {i}")
        got = promote(w, "try")
        assert statuses(got) == {"both": "modified"}, got
        assert changed(w) == {}, (i, changed(w))
        assert base(w) == got["after"], got
        assert text(w.project / "both") == text(path / "both")
    assert promote(w, "try")["promotion"] is None


@test
def a_project_that_moved_meanwhile_keeps_its_changes_and_does_not_conflict(w: World):
    path = prepared(w, "both", "mine")
    for i in range(3):
        put(path / "both", 3, f"clone {i}")
        put(w.project / "both", 20, f"project {i}")
        put(w.project / "mine", 20, f"project {i}")
        promote(w, "try")
        assert changed(w) == {}, "what landed is no change of the clone's"
        assert lines_of(w.project / "both")[3] == f"clone {i}"
        assert lines_of(w.project / "both")[20] == f"project {i}"
        assert lines_of(w.project / "mine")[20] == f"project {i}"
        assert lines_of(path / "both")[20] == "line 20", "the clone is left alone"
    put(path / "both", 3, "clone last")
    w.ok("rebase", "try")
    assert lines_of(path / "both")[3] == "clone last" and lines_of(path / "both")[20] == "project 2"
    assert changed(w) == {"both": "modified"}
    promote(w, "try")
    assert text(w.project / "both") == text(path / "both")
    w.ok("check")


@test
def what_somebody_else_does_to_it_afterwards_is_his_change(w: World):
    path = prepared(w)
    put(path / "both", 3, "clone")
    promote(w, "try")
    put(w.project / "both", 3, "project")
    assert promote(w, "try")["promotion"] is None, "the clone has changed nothing since"
    put(path / "both", 3, "again")
    data = refused(w, 5, "E_CONFLICT", "promote", "try")
    assert [c["path"] for c in data["conflicts"]] == ["both"], data


@test
def with_paths_only_those_become_the_base(w: World):
    path = prepared(w, "a", "b")
    put(path / "a", 3, "clone")
    put(path / "b", 3, "clone")
    put(w.project / "b", 20, "project")
    promote(w, "try", "--path", "a")
    assert changed(w) == {"b": "modified"}
    put(path / "a", 3, "again")
    got = promote(w, "try")
    assert statuses(got) == {"a": "modified", "b": "modified"}, got
    assert lines_of(w.project / "b")[3] == "clone" and lines_of(w.project / "b")[20] == "project"
    assert changed(w) == {}


@test
def undo_gives_the_clone_its_changes_and_its_base_back(w: World):
    path = prepared(w)
    first = base(w)
    put(path / "both", 3, "clone")
    put(w.project / "both", 20, "project")
    done = promote(w, "try")
    second = base(w)
    assert second != first
    undo(w)
    assert base(w) == first and changed(w) == {"both": "modified"}
    assert lines_of(w.project / "both")[3] == "line 3"
    undo(w, w.ok("log", "--json").json("snap.log/1")["receipts"][0]["receipt"])
    assert base(w) == second and changed(w) == {}, "the undo was undone"
    undo(w, done["promotion"])
    put(path / "both", 4, "more")
    assert statuses(promote(w, "try")) == {"both": "modified"}
    assert lines_of(w.project / "both")[3:5] == ["clone", "more"]
    assert lines_of(w.project / "both")[20] == "project"


@test
def a_base_that_the_clone_has_no_more_is_left_alone(w: World):
    path = prepared(w)
    put(path / "both", 3, "clone")
    promote(w, "try")
    put(w.project / "both", 20, "project")
    w.ok("rebase", "try")
    onto = base(w)
    undo(w)
    assert base(w) == onto


@test
def a_clone_of_the_same_name_is_another(w: World):
    path = prepared(w)
    put(path / "both", 3, "clone")
    promote(w, "try")
    w.ok("rm", "try")
    clone(w)
    before = base(w)
    undo(w)
    assert base(w) == before


@test
def a_clone_that_is_not_mounted_gets_its_base_too(w: World):
    path = prepared(w)
    put(path / "both", 3, "clone")
    put(w.project / "both", 20, "project")
    w.ok("umount", "try")
    before = base(w)
    promote(w, "try")
    assert base(w) != before and changed(w) == {}
    w.stop()
    assert base(w) != before and changed(w) == {}
    undo(w)
    assert base(w) == before
    w.ok("check")


@test
def other_times_of_the_same_bytes_are_nothing_to_promote(w: World):
    path = prepared(w)
    put(path / "both", 3, "clone")
    done = promote(w, "try")
    os.utime(path / "both", (1, 1))
    got = promote(w, "try")
    assert got["promotion"] is None and got["changed"] == [], got
    assert undo(w)["undone"] == done["promotion"]


@test
def what_landed_counts_against_the_quota_no_more(w: World):
    size = 3 << 20
    path = clone(w, "try", "--quota", "8M")
    for i in range(4):
        (path / f"new{i}").write_bytes(os.urandom(size))
        assert used(w) >= size, used(w)
        if i == 2:
            w.ok("umount", "try")
        promote(w, "try")
        w.ok("mount", "try")
        assert used(w) == 0, (i, used(w))
    undo(w)
    assert used(w) == size, used(w)
    promote(w, "try")
    # Across a promotion too.
    (path / "more").write_bytes(os.urandom(size))
    before = w.ok("snapshot", "--json", "try").json("snap.snapshot/1")["snapshot"]
    promote(w, "try")
    w.ok("-C", path, "rollback", before)
    w.ok("umount", "try")
    w.ok("mount", "try")
    assert used(w) == size, used(w)


@test
def the_base_outlives_a_gc_and_goes_with_the_clone(w: World):
    path = prepared(w)
    put(path / "both", 3, "clone")
    put(w.project / "both", 20, "project")
    promote(w, "try")
    w.take()
    w.ok("gc", "--keep-last", "1")
    kept = base(w)
    put(path / "both", 3, "again")
    promote(w, "try")
    w.ok("rm", "try")
    w.ok("gc", "--keep-last", "1")
    w.snap("show", kept).fails(4)
    w.ok("check")


@test
def any_order_of_editing_promoting_undoing_and_rebasing_agrees(w: World):
    """The clone writes lines 0 to 9 of each file and the project lines 20 to 29."""
    rng = seeded()
    names = ("a", "b", "c")
    path = prepared(w, *names)
    done = []  # what lines 0 to 9 of each file of the project were before each promotion

    def head(top):
        return {n: lines_of(top / n)[:10] for n in names}

    def tail(top):
        return {n: lines_of(top / n)[20:] for n in names}

    for serial in range(50):
        act = rng.choice(("edit", "edit", "move", "promote", "promote", "some", "undo", "rebase"))
        theirs, ours, mine = head(path), head(w.project), tail(w.project)
        if act in ("edit", "move"):
            top, first = (path, 0) if act == "edit" else (w.project, 20)
            put(top / rng.choice(names), first + rng.randrange(10), f"{act} {serial}")
            continue
        if act == "rebase":
            w.ok("rebase", "try")
            assert tail(path) == mine and head(path) == theirs, serial
            done.clear()
        elif act == "undo":
            if not done:
                continue
            w.ok("undo")
            assert head(w.project) == done.pop(), serial
        else:
            want = rng.sample(names, 2) if act == "some" else names
            words = [x for n in want for x in ("--path", n)] if act == "some" else []
            got = promote(w, "try", *words)
            after = {n: theirs[n] if n in want else ours[n] for n in names}
            assert head(w.project) == after, (serial, got)
            assert (got["promotion"] is not None) == (after != ours), (serial, got)
            if got["promotion"]:
                done.append(ours)
        assert tail(w.project) == mine, (serial, act)
        assert head(path) == theirs, (serial, act)
    w.ok("check")


# --- clones of clones -------------------------------------------------------------------------

def between(w, name):
    got = w.ok("diff", "--json", "--no-renames", ".", name).json("snap.diff/1", "files")
    return {f["path"]: f["status"] for f in got["files"]}


@test
def a_clone_of_a_clone_promotes_what_both_have_done(w: World):
    one = prepared(w, "both", "goes")
    put(one / "both", 3, "one")
    (one / "goes").unlink()
    two = clone(w, "two", "--from", "try")
    put(two / "both", 4, "two")
    (two / "new").write_text("new\n")
    assert base(w, "two") == base(w)
    want = {"both": "modified", "goes": "deleted", "new": "added"}
    assert changed(w, "two") == want == between(w, "two")
    assert statuses(promote(w, "two")) == want
    assert lines_of(w.project / "both")[3:5] == ["one", "two"]
    assert changed(w, "two") == {} and between(w, "two") == {}


@test
def a_clone_of_a_clones_snapshot_has_the_base_that_the_clone_had_then(w: World):
    one = prepared(w)
    put(one / "both", 3, "one")
    saved = w.take("try")
    first = base(w)
    promote(w, "try")
    put(one / "both", 3, "later")
    clone(w, "old", "--from", saved)
    assert base(w, "old") == first and changed(w, "old") == {"both": "modified"}
    clone(w, "new", "--from", "try")
    assert base(w, "new") == base(w) != first and changed(w, "new") == {"both": "modified"}
    put(w.store / "clones" / "new" / "both", 3, "last")
    promote(w, "new")
    assert lines_of(w.project / "both")[3] == "last"


@test
def a_bare_rollback_goes_to_what_the_clone_started_as(w: World):
    one = prepared(w)
    put(one / "both", 3, "one")
    two = clone(w, "two", "--from", "try")
    w.ok("rm", "try")
    w.ok("gc", "--keep-last", "1")
    put(two / "both", 3, "two")
    w.ok("rollback", "two")
    assert lines_of(two / "both")[3] == "one"
    promote(w, "two")
    put(two / "both", 3, "two")
    w.ok("rollback", "two")
    assert lines_of(two / "both")[3] == "one"
    w.ok("check")


@test
def what_is_promoted_is_what_differs_whatever_it_descends_from(w: World):
    """Random trees of clones of clones and of their snapshots, of a project that nobody changes."""
    rng = seeded()
    names = [f"f{i}" for i in range(6)]
    for name in names[:4]:
        (w.project / name).write_bytes(rng.randbytes(400))
    states, clones = ["."], []
    for serial in range(8):
        name = f"c{serial}"
        path = clone(w, name, "--from", rng.choice(states))
        clones.append(name)
        states.append(name)
        for _ in range(rng.randrange(5)):
            one = path / rng.choice(names)
            if one.exists() and rng.random() < 0.3:
                one.unlink()
            else:
                one.write_bytes(rng.randbytes(400))
            if rng.random() < 0.3:
                states.append(w.take(name))
            if rng.random() < 0.1:
                w.ok("rollback", name)
    for name in clones:
        would = statuses(w.ok("promote", "-n", "--json", name).json("snap.promote/1", "changed"))
        assert would == between(w, name), name
        assert would == changed(w, name), name
    last = rng.choice(clones)
    w.ok("promote", last)
    top = w.store / "clones" / last
    for name in names:
        there = (top / name).read_bytes() if (top / name).exists() else None
        assert ((w.project / name).read_bytes() if (w.project / name).exists() else None) == there
    w.ok("check")


if __name__ == "__main__":
    sys.exit(main())

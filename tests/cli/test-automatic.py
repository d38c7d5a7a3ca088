"""Automatic snapshots: kept for the way back, and in nobody's way."""

import os
import random
import sys
from pathlib import Path

from snaptest import World, main, needs_fuse, test


def back(w, *args):
    return w.ok("rollback", "--json", *args).json("snap.rollback/1", "to", "saved")


def log(w, *args):
    return w.ok("log", "--json", *args).json("snap.log/1", "snapshots", "folded")


def ids(w, *args):
    return [s["snapshot"] for s in log(w, *args)["snapshots"]]


def clone(w, name="try", *args):
    needs_fuse()
    return Path(w.ok("clone", "--json", "-n", name, *args).json("snap.clone/1", "path")["path"])


@test
def a_second_rollback_of_a_project_goes_to_the_same_good_state(w: World):
    good = w.take("-m", "good")
    for text in ("broken\n", "broken again\n", "and again\n"):
        (w.project / "README.md").write_text(text)
        got = back(w)
        assert got["to"] == good and got["saved"] not in ("", good), got
        assert (w.project / "README.md").read_text() == "first\n"
    w.ok("undo")
    assert (w.project / "README.md").read_text() == "and again\n", "what was saved is there for undo"
    assert back(w)["to"] == good, "what undo brought back is no good state either"


@test
def a_second_rollback_of_a_clone_goes_to_the_same_good_state(w: World):
    path = clone(w)
    assert back(w, "try")["changed"] == 0
    base = w.ok("status", "try", "--json").json("snap.status/1")["base"]
    for text in ("broken\n", "broken again\n"):
        (path / "README.md").write_text(text)
        assert back(w, "try")["to"] == base
        assert (path / "README.md").read_text() == "first\n"
    (path / "README.md").write_text("good\n")
    good = w.take("try")
    for text in ("broken\n", "broken again\n"):
        (path / "README.md").write_text(text)
        assert back(w, "try")["to"] == good
        assert (path / "README.md").read_text() == "good\n"


@test
def a_clone_of_a_broken_project_does_not_become_its_last_good_state(w: World):
    good = w.take()
    (w.project / "README.md").write_text("broken\n")
    clone(w)
    assert back(w)["to"] == good


@test
def a_promotion_is_a_state_that_somebody_wanted_and_so_is_its_undo(w: World):
    good = w.take()
    path = clone(w)
    (path / "README.md").write_text("better\n")
    w.ok("promote", "try")
    (w.project / "README.md").write_text("broken\n")
    back(w)
    assert (w.project / "README.md").read_text() == "better\n"
    listed = log(w)["snapshots"]
    assert [s["message"] for s in listed] == ["promotion of try", ""], listed
    assert listed[1]["snapshot"] == good
    receipts = [r for r in log(w)["receipts"] if r["kind"] == "promotion"]
    w.ok("undo", receipts[0]["receipt"])
    (w.project / "README.md").write_text("broken\n")
    back(w)
    assert (w.project / "README.md").read_text() == "first\n", "the promotion was taken back"


@test
def at_counts_those_that_somebody_took(w: World):
    one = w.take()
    (w.project / "README.md").write_text("second\n")
    two = w.take()
    (w.project / "README.md").write_text("broken\n")
    saved = back(w)["saved"]
    assert w.ok("show", "@", "--json").json("snap.show/1")["snapshot"] == two
    assert w.ok("show", "@-1", "--json").json("snap.show/1")["snapshot"] == one
    w.snap("show", "@-2").fails(4, "'@-1'")
    assert w.ok("show", saved, "--json").json("snap.show/1")["automatic"] is True
    assert w.ok("diff", "--json").json("snap.diff/1")["files"] == []
    assert w.ok("status", "--json").json("snap.status/1")["base"] == two


@test
def where_nobody_took_one_a_rollback_does_not_guess(w: World):
    clone(w)
    w.snap("rollback").fails(4, "automatic", "hint: snapcow log --all\n")
    only = w.ok("show", "@", "--json").json("snap.show/1")
    assert only["automatic"] is True, only
    w.snap("show", "try@").fails(4)
    (w.project / "README.md").write_text("second\n")
    files = w.ok("diff", "--json").json("snap.diff/1")["files"]
    assert [f["path"] for f in files] == ["README.md"], files


@test
def the_log_folds_automatic_ones_and_all_of_it_shows_them(w: World):
    good = w.take("-m", "good")
    for i in range(3):
        (w.project / "README.md").write_text(f"broken {i}\n")
        back(w)
    assert ids(w) == [good] and log(w)["folded"] == 3
    everything = log(w, "--all")
    assert len(everything["snapshots"]) == 4 and everything["folded"] == 0
    assert [s["automatic"] for s in everything["snapshots"]] == [True] * 3 + [False]
    assert w.ok("-q", "log").out.decode().split() == [good]
    lines = w.ok("log").out.decode().splitlines()
    assert len(lines) == 3 and lines[2] == "3 automatic snapshots not listed: log --all", lines
    assert "automatic" not in w.ok("log", "--all").out.decode()
    # What somebody has named is seen, and still nothing that a rollback goes to.
    w.ok("tag", "wreck", everything["snapshots"][0]["snapshot"])
    assert ids(w) == [everything["snapshots"][0]["snapshot"], good]
    (w.project / "README.md").write_text("broken\n")
    assert back(w)["to"] == good
    path = clone(w)
    (path / "README.md").write_text("broken\n")
    back(w, "try")
    assert log(w, "try")["folded"] == 1 and len(ids(w, "--all", "try")) == 1


@test
def keep_last_counts_those_that_somebody_took(w: World):
    made = []
    for i in range(3):
        (w.project / "README.md").write_text(f"{i}\n")
        made.append(w.take())
        for j in range(2):
            (w.project / "README.md").write_text(f"broken {i} {j}\n")
            back(w)
    w.ok("gc", "--keep-last", "2")
    assert ids(w) == made[:0:-1]
    automatic = [s for s in log(w, "--all")["snapshots"] if s["automatic"]]
    assert len(automatic) == 2, automatic
    w.ok("undo")
    assert (w.project / "README.md").read_text() == "broken 2 1\n"
    w.ok("gc", "--keep-last", "1")
    assert ids(w) == made[2:]
    w.ok("check")


@test
def whatever_was_done_before_a_rollback_goes_to_the_last_that_somebody_took(w: World):
    """Random breaking, going back, cloning, undoing and saving, in a project and in a clone."""
    seed = int(os.environ.get("SNAP_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"# SNAP_SEED={seed}")
    rng = random.Random(seed)
    path = clone(w)
    places = {".": w.project, "try": path}
    wanted = {".": [], "try": ["first\n"]}
    serial = 0
    for _ in range(40):
        of = rng.choice((".", "try"))
        words = [] if of == "." else ["try"]
        readme = places[of] / "README.md"
        act = rng.choice(("break", "break", "save", "back", "back", "clone", "name"))
        if act == "break":
            serial += 1
            readme.write_text(f"{of} {serial}\n")
        elif act == "save":
            w.take(*words)
            wanted[of].append(readme.read_text())
        elif act == "clone":
            serial += 1
            clone(w, f"c{serial}", "--from", of)
            w.ok("rm", f"c{serial}")
        elif act == "name" and wanted[of]:
            back_to = rng.randrange(min(3, len(wanted[of])))
            if of == "try" and back_to >= len(wanted[of]) - 1:
                continue
            w.ok("rollback", *words, f"{'' if of == '.' else of}@-{back_to}")
            assert readme.read_text() == wanted[of][-1 - back_to]
        elif act == "back" and wanted[of]:
            w.ok("rollback", *words)
            assert readme.read_text() == wanted[of][-1], (of, wanted)
    w.ok("check")


if __name__ == "__main__":
    sys.exit(main())

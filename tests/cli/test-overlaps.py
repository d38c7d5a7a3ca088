"""status --others: which clones are at work on the same paths, and whether they would conflict."""

import os
import sys

from meeting import LINES, clone, two_clones
from snaptest import main, needs_fuse, test


def others(w, *args, **more):
    return w.ok("status", "--json", "--others", *args, **more).json("snap.status/1",
                                                                    "others")["others"]


def met(entry):
    return {p["path"]: p["overlap"] for p in entry["paths"]}


@test
def clones_that_touch_the_same_paths_say_how_they_meet(w):
    two_clones(w)
    c = clone(w, "c")
    (c / "mine").write_text("c\n")
    [entry] = others(w, "a")
    assert entry["clone"] == "b" and entry["with"] == "a" and not entry["bases_differ"], entry
    assert met(entry) == {"hunks": "apart", "lines": "overlap", "same": "same", "gone": "overlap",
                          "blob": "overlap", "mode": "apart"}, entry
    assert (entry["same"], entry["apart"], entry["overlap"]) == (1, 2, 3), entry
    assert others(w, "c") == []
    [entry] = others(w, "b")
    assert entry["clone"] == "a" and entry["with"] == "b", entry


@test
def all_clones_of_a_project_are_compared_with_each_other(w):
    for name in ("x", "y", "z"):
        (clone(w, name) / "README.md").write_text(f"{name}\n")
    got = others(w)
    assert {(e["with"], e["clone"]) for e in got} == {("x", "y"), ("x", "z"), ("y", "z")}, got
    assert all(met(e) == {"README.md": "overlap"} for e in got), got
    text = w.ok("status", "--others").out.decode()
    assert "x and y: 1 path, 1 would conflict\n    overlap  README.md\n" in text, text


@test
def the_clone_here_is_the_one_that_is_asked_about(w):
    a, b = clone(w, "a"), clone(w, "b")
    (a / "README.md").write_text("a\n")
    (b / "README.md").write_text("b\n")
    assert [e["with"] for e in others(w, cwd=a)] == ["a"]
    text = w.ok("status", "--others", cwd=a).out.decode()
    assert "also changed in\n  b: 1 path, 1 would conflict\n" in text, text


@test
def what_only_the_project_changed_between_two_bases_is_nobodys(w):
    (w.project / "between").write_text(LINES)
    (w.project / "both").write_text(LINES)
    old = clone(w, "old")
    (w.project / "between").write_text(LINES.replace("line 5\n", "project\n"))
    new = clone(w, "new")
    (old / "between").write_text(LINES.replace("line 9\n", "old\n"))
    assert others(w, "old") == [], "the other one has not touched it"
    (old / "both").write_text(LINES.replace("line 2\n", "old\n"))
    (new / "both").write_text(LINES.replace("line 19\n", "new\n"))
    [entry] = others(w, "old")
    older = w.ok("status", "--json", "old").json("snap.status/1")["base"]
    assert entry["bases_differ"] and entry["base"] == older, entry
    assert met(entry) == {"both": "apart"}, entry
    assert "judged from the older base" in w.ok("status", "--others", "new").out.decode()


@test
def what_the_project_did_between_two_bases_counts_for_the_younger(w):
    (w.project / "f").write_text(LINES)
    old = clone(w, "old")
    (w.project / "f").write_text(LINES.replace("line 5\n", "project\n"))
    new = clone(w, "new")
    (old / "f").write_text(LINES.replace("line 5\n", "old\n"))
    (new / "f").write_text((w.project / "f").read_text().replace("line 19\n", "new\n"))
    [entry] = others(w, "old")
    assert met(entry) == {"f": "overlap"}, entry


@test
def clones_of_another_project_and_what_git_keeps_are_left_out(w):
    other = w.top / "other"
    other.mkdir()
    (other / "README.md").write_text("first\n")
    needs_fuse()
    w.ok("clone", "-n", "elsewhere", cwd=other)
    (w.store / "clones" / "elsewhere" / "README.md").write_text("elsewhere\n")
    (w.project / ".git").mkdir()
    a, b = clone(w, "a"), clone(w, "b")
    for top in (a, b):
        (top / ".git" / "index").write_bytes(os.urandom(10))
    (a / "README.md").write_text("a\n")
    assert others(w, "a") == []
    text = w.ok("status", "--others", "a").out.decode()
    assert "no other clone touches what this one does; 1 clone looked at" in text, text


@test
def without_the_option_nothing_is_said_of_others(w):
    clone(w, "a")
    assert "others" not in w.ok("status", "--json", "a").json("snap.status/1")
    w.snap("status", "--others", "none").fails(4, "'none'")


if __name__ == "__main__":
    sys.exit(main())

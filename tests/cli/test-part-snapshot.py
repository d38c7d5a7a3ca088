"""snapshot --path: one directory of a project is kept, and what concerns the whole project passes over it."""

import sys
from pathlib import Path

from parttest import PART, make, names, outside
from snaptest import main, test


def take(w, *more):
    return w.ok("--json", "snapshot", *more).json("snap.snapshot/1")


def log(w, *more):
    return w.ok("--json", "log", *more).json("snap.log/1")["snapshots"]


@test
def a_snapshot_of_a_part_has_that_directory_alone_and_the_project_knows_it(w):
    make(w)
    whole = take(w, "-t", "whole")
    assert whole["part"] is None, whole
    (w.project / "README").write_text("changed outside\n")
    (w.project / "src/app/new").write_text("new\n")
    one = take(w, "--path", PART, "-t", "one", "-m", "just the app")
    assert one["part"] == PART and one["origin"] == ".", one
    assert (one["parent"], one["added"], one["changed"]) == (whole["snapshot"], 1, 1), "README is not compared"
    (w.project / "src/app/gone").unlink()
    two = take(w, "--path", PART, "-t", "two")
    assert (two["parent"], two["deleted"], two["changed"]) == (one["snapshot"], 1, 1), two
    assert f"only {PART}" in w.ok("log").out.decode()
    assert [s["part"] for s in log(w)] == [PART, PART, None]
    other = take(w, "--path", "src/other")
    assert other["parent"] == whole["snapshot"] and other["changed"] == 0, other
    got = w.ok("-q", "clone", "--from", "one", "-n", "c").out.decode().strip()
    assert names(got) == sorted(["src", "src/app", "src/app/deep", "src/app/deep/er", "src/app/deep/er/x", "src/app/gone",
                                 "src/app/main.c", "src/app/new", "src/app/twin"])
    listed = w.ok("--json", "list").json("snap.list/1")["clones"]
    assert [(c["part"], c["changed"]) for c in listed] == [(PART, 0)], listed
    w.ok("check")


@test
def the_project_as_a_whole_passes_over_snapshots_of_a_part(w):
    make(w)
    w.snap("diff", "@").fails(4)
    first = take(w, "--path", PART)
    assert first["registered"] and first["parent"] is None, first
    w.snap("clone", "--from", "@").fails(4)  # there is no snapshot of the project
    whole = take(w)
    assert whole["parent"] is None and whole["changed"] is None, "it follows none"
    (w.project / "README").write_text("changed\n")
    (w.project / "src/app/main.c").write_text("changed\n")
    part = take(w, "--path", PART, "-t", "part")
    later = take(w)
    assert (later["parent"], later["modified"], later["changed"]) == (whole["snapshot"], 2, 2), later
    (w.project / "src/app/main.c").write_text("changed again\n")
    take(w, "--path", PART)
    got = w.ok("--json", "show", "@").json("snap.show/1")
    assert got["snapshot"] == later["snapshot"], got
    before = outside(w)
    w.snap("rollback", part["snapshot"]).fails(2, f"only '{PART}'", f"rollback --path /{PART}")
    w.ok("rollback", "part", "--path", f"/{PART}")
    assert (w.project / "src/app/main.c").read_text() == "changed\n" and outside(w) == before
    w.ok("undo")
    w.ok("rollback")
    assert (w.project / "src/app/main.c").read_text() == "changed\n" and outside(w) == before, "to the newest whole one"
    take(w, "--path", PART)
    blamed = w.ok("--json", "blame", "README").json("snap.blame/1")
    assert blamed["lines"][0]["snapshot"] == later["snapshot"], "no part removed it in between"
    w.ok("check")


@test
def a_snapshot_of_a_part_can_be_lazy_and_is_promoted_from_like_any(w):
    make(w)
    w.ok("init")
    got = w.ok("--json", "snapshot", "--path", "app", "--lazy", "-t", "lazy", cwd=w.project / "src").json("snap.snapshot/1")
    assert got["part"] == PART, "a directory is named as seen from the current one"
    (w.project / "src/app/main.c").write_text("later\n")
    path = Path(w.ok("-q", "clone", "--from", "lazy", "-n", "c").out.decode().strip())
    assert (path / "src/app/main.c").read_text() == "int main(void);\n" * 30
    (path / "src/app/made").write_text("made\n")
    before = outside(w)
    w.ok("promote", "c")
    assert (w.project / "src/app/made").read_text() == "made\n" and outside(w) == before
    assert (w.project / "src/app/main.c").read_text() == "later\n"


@test
def a_snapshot_of_no_part_is_refused_with_the_reason(w):
    make(w)
    for named, status, words in (("nothing", 4, "'nothing' is no directory"), (".", 2, "whole project"),
                                 ("/etc", 2, "outside of the project"), ("README", 4, "is no directory")):
        w.snap("snapshot", "--path", named).fails(status, words)
    path = Path(w.ok("-q", "clone", "--path", PART, "-n", "p").out.decode().strip())
    w.snap("snapshot", "p", "--path", PART).fails(2, "not of a clone")
    w.snap("snapshot", "--path", PART, cwd=path).fails(2, "not of a clone")


@test
def a_bisection_passes_over_snapshots_of_a_part(w):
    make(w)
    take(w, "-t", "good")
    (w.project / "src/app/main.c").write_text("changed\n")
    take(w, "--path", PART)
    take(w)
    (w.project / "README").unlink()
    bad = take(w, "-t", "bad")["snapshot"]
    got = w.ok("--json", "bisect", "good", "bad", "--", "test", "-e", "README").json("snap.bisect/1")
    assert got["states"] == 3 and got["first_bad"] == bad, "in the part there is no README"


@test
def gc_counts_each_part_by_itself_and_keeps_the_whole_project(w):
    make(w)
    whole = take(w)["snapshot"]
    other = take(w, "--path", "src/other")["snapshot"]
    for i in range(3):
        (w.project / "src/app/main.c").write_text(f"{i}\n")
        last = take(w, "--path", PART)["snapshot"]
    w.ok("gc", "--keep-last", "1")
    assert [s["snapshot"] for s in log(w)] == [last, other, whole], "a part never stands for the whole"
    w.ok("gc", "--keep-within", "1ms")
    assert [s["snapshot"] for s in log(w)] == [last, other, whole], "the newest of each stays"
    w.ok("check")


if __name__ == "__main__":
    sys.exit(main())

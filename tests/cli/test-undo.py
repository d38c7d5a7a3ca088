"""The way back, and what must not slip past the guard: found by trying to break promotion."""

import json
import os
import re
import subprocess
from pathlib import Path

from snaptest import World, main, needs_fuse, test


def clone(w, name):
    needs_fuse()
    return Path(w.ok("-q", "clone", "-n", name).out.decode().strip())


def git(where, *args):
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    words = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *args]
    return subprocess.run(words, cwd=where, env=env, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True).stdout


def held(result):
    error = result.fails_json(7, "E_REFUSED")
    return {h["path"]: h["rule"] for h in error["data"]["held"]}


# --- how far back --------------------------------------------------------------------------

@test
def only_what_is_new_enough_is_taken_back(w: World):
    (clone(w, "c") / "new").write_text("new")
    landed = w.ok("promote", "--json", "c").json("snap.promote/1")["promotion"]
    for args in ((), (landed,), (landed[:8],)):
        w.snap("undo", "--if-newer-than", "1ms", *args).fails(7, "nothing changed", landed,
                                                              "'--if-newer-than' allows 1")
        assert (w.project / "new").exists()
    got = w.ok("undo", "--json", "--if-newer-than", "1h").json("snap.undo/1", "undone")
    assert got["undone"] == landed and not (w.project / "new").exists(), got
    w.snap("undo", "--if-newer-than", "1h").fails(4, "nothing to undo")


# --- what must not slip through -------------------------------------------------------------

@test
def another_name_of_a_hook_is_no_way_into_it(w: World):
    hooks = w.project / ".git" / "hooks"
    hooks.mkdir(parents=True)
    (w.project / "pc").write_text("old")
    os.link(w.project / "pc", hooks / "pre-commit")
    (clone(w, "c") / "pc").write_text("evil")
    assert held(w.snap("promote", "--json", "c")) == {".git/hooks/pre-commit": "git"}
    assert (hooks / "pre-commit").read_text() == "old"


@test
def what_is_left_out_stays_out_by_its_other_names_too(w: World):
    (w.project / "one").write_text("old")
    os.link(w.project / "one", w.project / "two")
    (clone(w, "c") / "one").write_text("new")
    assert held(w.snap("promote", "--json", "--exclude", "two", "c")) == {"two": "left-out"}
    assert (w.project / "two").read_text() == "old"
    w.ok("promote", "--exclude", "two", "--allow", "two", "c")
    assert (w.project / "two").read_text() == "new"


@test
def a_name_that_the_project_gave_it_since_is_judged_too(w: World):
    (w.project / "solo").write_text("old")
    path = clone(w, "c")
    os.link(w.project / "solo", w.project / ".bashrc")
    (path / "solo").write_text("evil")
    got = w.snap("promote", "--json", "c")
    # Either it is held under that name, or it is a file by itself by now.
    assert got.status == 7 or (w.project / ".bashrc").read_text() == "old", got
    assert (w.project / ".bashrc").read_text() == "old"


@test
def what_gives_way_takes_nothing_along_unnamed(w: World):
    (w.project / "v" / ".git").mkdir(parents=True)
    (w.project / "v" / ".git" / "config").write_text("precious")
    (w.project / "v" / "Jenkinsfile").write_text("build")
    path = clone(w, "c")
    subprocess.run(["rm", "-rf", path / "v"], check=True)
    (path / "v").write_text("a file")
    for how in ("stop", "theirs"):
        got = w.snap("promote", "--json", "--conflict", how, "c")
        assert got.status in (5, 7), got
        assert (w.project / "v" / ".git" / "config").read_text() == "precious"
        assert (w.project / "v" / "Jenkinsfile").read_text() == "build"


@test
def hints_are_safe_to_run_whatever_a_file_is_called(w: World):
    (clone(w, "c") / ".aider; touch pwned #").write_text("x")
    error = w.snap("promote", "--json", "c").fails_json(7, "E_REFUSED")
    (hint,) = (h for h in error["hints"] if "--allow" in h)
    assert "'.aider; touch pwned #'" in hint, hint


# --- the way back ---------------------------------------------------------------------------

@test
def commits_that_a_rollback_took_come_back(w: World):
    git(w.project, "init", "-q")
    git(w.project, "add", "-A")
    git(w.project, "commit", "-qm", "first")
    w.ok("snapshot")
    (w.project / "more").write_text("more")
    git(w.project, "add", "-A")
    git(w.project, "commit", "-qm", "second")
    before = git(w.project, "log", "--format=%H")
    w.ok("rollback")
    assert git(w.project, "log", "--format=%s") == "first\n"
    w.ok("undo")
    assert git(w.project, "log", "--format=%H") == before
    git(w.project, "fsck", "--strict")
    assert git(w.project, "status", "--porcelain") == ""


@test
def back_and_forth_ends_where_it_should(w: World):
    (clone(w, "c") / "new").write_text("new")
    at = w.ok("promote", "--json", "c").json("snap.promote/1")["promotion"]
    for there in (False, True, False, True):
        at = w.ok("undo", "--json", at).json("snap.undo/1")["promotion"]
        assert (w.project / "new").exists() == there
    w.ok("undo")  # the promotion counts as done, so that is what the last one means
    assert not (w.project / "new").exists()
    w.snap("undo").fails(4, "nothing to undo")


@test
def names_that_parted_from_their_file_join_it_again(w: World):
    for one, two in (("a1", "a2"), ("b1", "b2")):
        (w.project / one).write_text(one)
        os.link(w.project / one, w.project / two)
    numbers = {n: (w.project / n).stat().st_ino for n in ("a1", "b1")}
    there = clone(w, "c")
    (there / "a2").unlink()
    (there / "a2").write_text("a file of its own")
    (there / "b2").unlink()
    got = w.ok("promote", "--json", "c").json("snap.promote/1")
    assert {p["path"] for p in got["changed"]} == {"a2", "b2"}, got
    # The name that stays is not written anew.
    assert {n: (w.project / n).stat().st_ino for n in ("a1", "b1")} == numbers
    w.ok("undo")
    # And again: they have other numbers now, which says nothing about who parted from whom.
    w.ok("promote", "c")
    assert (w.project / "a1").read_text() == "a1" and (w.project / "b1").stat().st_nlink == 1
    assert (w.project / "a2").read_text() == "a file of its own"
    w.ok("undo")
    for one, two in (("a1", "a2"), ("b1", "b2")):
        assert (w.project / one).samefile(w.project / two) and (w.project / two).read_text() == one


@test
def names_of_one_file_come_back_as_that(w: World):
    one, two = w.project / "one", w.project / "two"
    one.write_text("two names\n")
    os.link(one, two)
    there = clone(w, "c")
    (there / "one").unlink()
    (there / "two").write_text("one name\n")
    w.ok("promote", "c")
    w.ok("undo")
    assert two.read_text() == "two names\n" and one.samefile(two)


@test
def what_was_taken_back_by_hand_is_in_nobodys_way(w: World):
    for name in ("first", "second"):
        (clone(w, name) / name).write_text(name)
        w.ok("promote", name)
    (w.project / "second").unlink()
    said = w.ok("undo").out.decode()
    assert re.fullmatch(r"counts as undone  [0-9a-f]{8}, none of its changes are left\n", said), said
    w.ok("undo")
    assert not (w.project / "first").exists()


@test
def undo_in_a_clone_does_not_mean_the_project(w: World):
    path = clone(w, "c")
    (path / "new").write_text("new")
    w.ok("promote", "c")
    w.snap("undo", cwd=path).fails(2, "this is clone 'c'")
    assert (w.project / "new").exists()


@test
def a_check_leaves_no_circle_of_parents(w: World):
    path = clone(w, "c")
    (path / "new").write_text("new")
    (w.project / "other").write_text("other")
    w.ok("promote", "--check", "true", "c")
    listed = json.loads(w.ok("log", "--json").out)["snapshots"]
    parents = {s["snapshot"]: s["parent"] for s in listed}
    for start in parents:
        seen, at = set(), start
        while at in parents:
            assert at not in seen, parents
            seen.add(at)
            at = parents[at]
    w.ok("rm", "c")
    (w.project / "z").write_text("z")
    w.ok("snapshot")
    w.ok("gc", "--keep-last", "1")


if __name__ == "__main__":
    main()

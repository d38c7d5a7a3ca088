"""clone --path: a clone of one directory, and nothing that is done with it concerns the rest."""

import os
import subprocess
import sys
from pathlib import Path

from parttest import PART, make, names, outside
from snaptest import Skip, main, test


def clone(w, *more, name="p"):
    return Path(w.ok("-q", "clone", "--path", PART, "-n", name, *more).out.decode().strip())


@test
def a_clone_of_a_part_has_that_and_nothing_else(w):
    make(w)
    path = clone(w)
    assert names(path) == ["src", "src/app", "src/app/deep", "src/app/deep/er", "src/app/deep/er/x", "src/app/gone",
                           "src/app/main.c", "src/app/twin"], names(path)
    subprocess.run(["diff", "-r", w.project / PART, path / PART], check=True)
    for name in (PART, "src/app/main.c"):
        a, b = os.stat(w.project / name), os.stat(path / name)
        assert (a.st_mode, a.st_ino, a.st_mtime_ns) == (b.st_mode, b.st_ino, b.st_mtime_ns), name
    assert os.stat(path / "src/app/deep/er/x").st_nlink == 1
    got = w.ok("--json", "list").json("snap.list/1")["clones"][0]
    assert got["part"] == PART and got["changed"] == 0, got
    assert f"(only {PART})" in w.ok("list").out.decode()
    got = w.ok("--json", "status", "p").json("snap.status/1")
    assert got["part"] == PART and got["stale"]["changed"] == 0, got
    # The project's own history has no state that it never had.
    assert w.ok("--json", "log").json("snap.log/1")["snapshots"] == []
    assert w.ok("--json", "clone", "-n", "whole").json("snap.clone/1")["part"] is None
    whole = w.ok("--json", "status", "whole").json("snap.status/1")
    assert Path(whole["path"], "README").read_text() == "read me\n"
    w.ok("check")


@test
def a_promotion_leaves_everything_outside_as_it_is(w):
    make(w)
    before = outside(w)
    path = clone(w)
    (path / "src/app/main.c").write_text("changed\n")
    (path / "src/app/new").write_text("new\n")
    (path / "src/app/gone").unlink()
    plan = w.ok("--json", "promote", "p", "--dry-run").json("snap.promote/1")["changed"]
    assert sorted(c["path"] for c in plan) == ["src/app/gone", "src/app/main.c", "src/app/new"], plan
    w.ok("promote", "p")
    assert outside(w) == before
    assert (w.project / "src/app/main.c").read_text() == "changed\n"
    assert not (w.project / "src/app/gone").exists()
    # Its base has moved, and the next promotion is no other.
    assert w.ok("diff", "p").out == b""
    (path / "src/app/new").write_text("newer\n")
    plan = w.ok("--json", "promote", "p").json("snap.promote/1")["changed"]
    assert [c["path"] for c in plan] == ["src/app/new"], plan
    assert outside(w) == before
    w.ok("undo")
    w.ok("undo")
    assert outside(w) == before
    assert (w.project / "src/app/gone").read_text() == "goes\n"
    w.ok("check")


@test
def a_file_with_a_second_name_outside_is_not_changed_through_the_first(w):
    make(w)
    path = clone(w)
    (path / "src/app/deep/er/x").write_text("changed\n")
    (path / "src/app/main.c").write_text("changed\n")
    before = outside(w)
    for words in (["--dry-run"], [], ["--conflict", "theirs"]):
        w.snap("promote", "p", *words).fails(7, "docs/linked", "nothing is promoted")
    assert outside(w) == before
    assert (w.project / "src/app/main.c").read_text() != "changed\n"
    (w.project / "docs/linked").unlink()
    (w.project / "docs/linked").write_text("x\n")
    before = outside(w)
    w.ok("promote", "p")
    assert outside(w) == before
    assert (w.project / "src/app/deep/er/x").read_text() == "changed\n"
    # The same where the second name comes later.
    os.link(w.project / "src/app/main.c", w.project / "docs/later")
    (path / "src/app/main.c").write_text("changed again\n")
    before = outside(w)
    w.snap("promote", "p").fails(7, "docs/later", "nothing is promoted", "second name")
    assert outside(w) == before
    assert (w.project / "src/app/main.c").read_text() == "changed\n"
    # One name less is no change to the other.
    (path / "src/app/main.c").unlink()
    w.ok("promote", "p")
    assert outside(w) == before
    assert not (w.project / "src/app/main.c").exists()


@test
def what_seems_renamed_to_a_place_outside_is_not(w):
    """The project lost a file of the part, and has had a copy of it elsewhere all the time."""
    make(w)
    path = clone(w)
    with open(path / "src/app/twin", "a", encoding="utf-8") as f:
        f.write("one line more\n")
    (w.project / "src/app/twin").unlink()
    before = outside(w)
    w.snap("promote", "p").fails(5, "src/app/twin")
    assert outside(w) == before
    w.ok("promote", "p", "--conflict", "theirs")
    assert outside(w) == before
    assert (w.project / "src/app/twin").read_text().endswith("one line more\n")


@test
def what_the_clone_makes_outside_meets_what_the_project_has_there(w):
    make(w)
    before = outside(w)
    path = clone(w)
    (path / "README").write_text("another\n")
    w.snap("promote", "p").fails(5, "README")
    assert outside(w) == before
    (path / "README").rename(path / "NOTES")
    w.ok("promote", "p")
    assert (w.project / "NOTES").read_text() == "another\n"
    (w.project / "NOTES").unlink()
    assert outside(w) == before


@test
def comparisons_are_of_the_part(w):
    make(w)
    w.ok("snapshot", "-t", "whole")
    path = clone(w)
    (w.project / "README").write_text("changed outside\n")
    (w.project / "extra").write_text("new outside\n")
    w.ok("snapshot")
    got = w.ok("--json", "status", "p").json("snap.status/1")
    assert got["stale"]["changed"] == 0 and got["stale"]["paths"] == [], got["stale"]
    assert w.ok("--json", "list").json("snap.list/1")["clones"][0]["stale"] is False
    (path / "src/app/main.c").write_text("mine\n")
    for words in (["p"], [".", "p"], ["whole", "p"]):
        files = w.ok("--json", "diff", *words).json("snap.diff/1")["files"]
        assert [(f["path"], f["status"]) for f in files] == [("src/app/main.c", "modified")], (words, files)
    (w.project / "src/app/twin").write_text("changed inside\n")
    got = w.ok("--json", "status", "p").json("snap.status/1")
    assert got["stale"]["changed"] == 1, got["stale"]


@test
def a_rebase_brings_what_changed_in_the_part(w):
    make(w)
    path = clone(w)
    (path / "src/app/main.c").write_text("mine\n")
    (w.project / "src/app/twin").write_text("theirs\n")
    (w.project / "src/app/added").write_text("added\n")
    (w.project / "README").write_text("changed outside\n")
    before, had = outside(w), names(path)
    w.ok("rebase", "p")
    assert names(path) == sorted([*had, "src/app/added"]), names(path)
    assert (path / "src/app/twin").read_text() == "theirs\n"
    assert (path / "src/app/main.c").read_text() == "mine\n"
    files = w.ok("--json", "diff", "p").json("snap.diff/1")["files"]
    assert [f["path"] for f in files] == ["src/app/main.c"], files
    assert w.ok("--json", "status", "p").json("snap.status/1")["part"] == PART
    w.ok("promote", "p")
    assert outside(w) == before
    assert (w.project / "src/app/main.c").read_text() == "mine\n"
    # Back to before the rebase, which is a part as well.
    w.ok("rollback", "p", "p@-1")
    w.ok("promote", "p", "--conflict", "ours")
    assert outside(w) == before


def states(w, path):
    """The base of the clone, and a snapshot of it with one file more."""
    base = w.ok("--json", "status", "p").json("snap.status/1")["base"]
    (path / "src/app/new").write_text("new\n")
    return base, w.ok("--json", "snapshot", "p").json("snap.snapshot/1")["snapshot"]


@test
def a_project_goes_back_to_a_part_by_its_path_only(w):
    make(w)
    path = clone(w)
    base, later = states(w, path)
    (w.project / "src/app/main.c").write_text("changed since\n")
    before = outside(w)
    for state in (base, later):
        for words in ([], ["--dry-run"]):
            w.snap("rollback", state, *words).fails(2, f"only '{PART}'", f"rollback --path /{PART}", "promote")
    assert (w.project / "src/app/main.c").read_text() == "changed since\n"
    # Of what is not in it nothing is known.
    got = w.ok("--json", "rollback", later, "--path", "/README", "--path", "/docs").json("snap.rollback/1")
    assert got["paths"] == [], got
    for state in (base, later):
        w.ok("rollback", state, "--path", f"/{PART}")
        assert outside(w) == before, state
        assert (w.project / "src/app/main.c").read_text() == "int main(void);\n" * 30
    assert (w.project / "src/app/new").read_text() == "new\n"
    # A second name outside would change with the one inside.
    (w.project / "docs/linked").write_text("changed since\n")
    (w.project / "src/app/main.c").write_text("changed again\n")
    before = outside(w)
    for words in ([], ["--dry-run"]):
        w.snap("rollback", base, "--path", f"/{PART}", *words).fails(7, "docs/linked", "nothing is rolled back")
    assert outside(w) == before and (w.project / "src/app/main.c").read_text() == "changed again\n"
    w.ok("rollback", base, "--path", f"/{PART}/main.c")
    assert outside(w) == before
    w.ok("undo")
    (w.project / "src/app/main.c").write_text("int main(void);\n" * 30)
    # What was done outside since then is nothing that an undo takes back.
    (w.project / "README").write_text("written since\n")
    (w.project / "docs/guide").unlink()
    before = outside(w)
    w.ok("undo")
    assert outside(w) == before
    assert not (w.project / "src/app/new").exists()
    w.ok("undo")
    assert outside(w) == before
    assert (w.project / "src/app/main.c").read_text() == "changed since\n"


@test
def a_clone_is_not_rolled_back_to_another_part_than_it_has(w):
    make(w)
    whole = w.ok("--json", "snapshot").json("snap.snapshot/1")["snapshot"]
    path = clone(w)
    base, later = states(w, path)
    w.ok("clone", "-n", "whole")
    other = w.ok("--json", "clone", "--path", "src/other", "-n", "o").json("snap.clone/1")["base"]
    before = outside(w)
    for state in (base, later, other):
        for words in ([], ["--path", f"/{PART}"], ["--dry-run"]):
            w.snap("rollback", "whole", state, *words).fails(2, "'whole' has all", "has only 'src/", "clone --from")
    for state, words in ((whole, "has all"), (other, "has only 'src/other'")):
        w.snap("rollback", "p", state).fails(2, f"'p' has only '{PART}'", words, "clone --from")
    got = {c["clone"]: c["changed"] for c in w.ok("--json", "list").json("snap.list/1")["clones"]}
    assert got == {"whole": 0, "o": 0, "p": 1}, got
    for name in ("whole", "p", "o"):
        w.snap("promote", name)
        assert outside(w) == before, name
    w.ok("rollback", "p", base)
    assert not (path / "src/app/new").exists()


@test
def a_clone_of_a_snapshot_of_a_part_is_one_too(w):
    make(w)
    path = clone(w)
    base, later = states(w, path)
    before = outside(w)
    for i, state in enumerate((base, later)):
        got = w.ok("--json", "clone", "--from", state, "-n", f"q{i}").json("snap.clone/1")
        assert got["part"] == PART, got
    mine = Path(w.ok("--json", "status", "q1").json("snap.status/1")["path"])
    w.ok("rebase", "q1")
    (mine / "src/app/gone").unlink()
    w.ok("snapshot", "q1")
    w.ok("promote", "q1")
    assert outside(w) == before
    assert not (w.project / "src/app/gone").exists() and (w.project / "src/app/new").exists()
    w.ok("undo")
    assert outside(w) == before


@test
def a_part_is_not_pushed(w):
    make(w)
    path = clone(w)
    base, later = states(w, path)
    depot = f"dir:{w.top}/depot:main"
    for state in ("p", base, later):
        w.snap("push", state, depot).fails(2, f"has only '{PART}'", "a part is not pushed", "promote")
    w.snap("push", depot, cwd=path).fails(2, "a part is not pushed")
    assert not list(w.top.glob("depot/**/main"))
    w.snap("run", "--on", "nats://127.0.0.1:9", "--remote", depot.removesuffix(":main"), "p", "--", "true").fails(2, "a part is not pushed")
    w.ok("promote", "p")
    w.ok("push", depot)


@test
def nothing_outside_seems_removed_to_those_who_get_it_elsewhere(w):
    make(w)
    clone(w)
    w.ok("snapshot", "-t", "all")
    w.ok("clone", "-n", "whole")
    target, archive = w.top / "target", w.top / "layer.tar"
    target.mkdir()
    w.ok("promote", "whole", "--path", "src", "--to", target)
    for named in ("src", "docs"):
        w.snap("promote", "p", "--path", named, "--to", target).fails(2, f"has only '{PART}'", named)
    assert (target / "src/other/y").read_text() == "y\n"
    path = Path(w.ok("--json", "status", "p").json("snap.status/1")["path"])
    w.ok("promote", "p", "--path", PART, "--to", target)
    (path / "src/app/gone").unlink()
    w.ok("promote", "p", "--path", PART, "--to", target)
    assert (target / "app/main.c").exists() and not (target / "app/gone").exists()
    for state, of in (("p", "all"), ("all", "p")):
        w.snap("export", state, "--base", of, "--tar", archive).fails(2, f"only '{PART}'", "--base")


@test
def a_part_whose_repository_is_elsewhere_is_refused(w):
    make(w)
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-C", w.project]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", w.project / "src/tree"], check=True)
    w.snap("clone", "--path", "src/tree").fails(7, "src/tree/.git", "commits in the clone", "without '--path'")
    w.snap("clone", "--path", "src").fails(7, "src/tree/.git")
    assert w.ok("--json", "list").json("snap.list/1")["clones"] == []
    clone(w)
    w.ok("gc")
    w.ok("check")


@test
def a_clone_of_such_a_clone_is_one_too(w):
    make(w)
    path = clone(w)
    (path / "src/app/new").write_text("new\n")
    got = w.ok("--json", "clone", "--from", "p", "-n", "q").json("snap.clone/1")
    assert got["part"] == PART, got
    assert w.ok("--json", "status", "q").json("snap.status/1")["part"] == PART
    w.ok("rm", "--force", "p")
    before = outside(w)
    w.ok("gc")
    w.ok("promote", "q")
    assert outside(w) == before
    assert (w.project / "src/app/new").read_text() == "new\n"
    w.ok("rm", "--force", "q")
    w.ok("gc")
    w.ok("check")


@test
def several_at_once_and_those_that_are_left_when_the_first_is_gone(w):
    make(w)
    w.ok("clone", "--path", PART, "--count", "3", "-n", "n")
    w.ok("rm", "--force", "n-1")
    w.ok("gc")
    path = Path(w.ok("--json", "status", "n-2").json("snap.status/1")["path"])
    (path / "src/app/main.c").write_text("second\n")
    before = outside(w)
    w.ok("promote", "n-2")
    assert outside(w) == before
    w.ok("check")


@test
def a_lazy_one_is_exact_and_ends(w):
    make(w)
    gate = w.top / "gate"
    gate.write_text("0\n")
    w.env["SNAPCOW_LAZY_PAUSE"] = str(gate)
    subprocess.run(["cp", "-a", w.project, w.top / "copy"], check=True)
    for top, _, files in os.walk(w.project):
        for name in files:
            os.utime(Path(top) / name, (1, 1), follow_symlinks=False)
    subprocess.run(["sleep", "0.05"], check=True)  # a file that changed a moment ago is read at once
    path = clone(w, "--lazy")
    got = w.ok("--json", "status", "p").json("snap.status/1")
    assert not got["complete"], got
    (w.project / "src/app/main.c").write_text("changed since\n")
    subprocess.run(["diff", "-r", w.top / "copy" / PART, path / PART], check=True)
    gate.unlink()
    w.ok("gc")
    got = w.ok("--json", "status", "p").json("snap.status/1")
    assert got["complete"] and got["lost"] == 0, got
    w.ok("stop", "--force")
    w.ok("mount", "p")
    subprocess.run(["diff", "-r", w.top / "copy" / PART, path / PART], check=True)
    # What comes next reads all of the project.
    whole = Path(w.ok("-q", "clone", "-n", "whole").out.decode().strip())
    subprocess.run(["diff", "-r", "--no-dereference", w.project, whole], check=True)
    w.ok("check")


@test
def rules_above_the_part_hold_in_it(w):
    make(w)
    (w.project / ".snapignore").write_text("*.o\nsrc/other\n")
    (w.project / "src/app/a.o").write_text("object\n")
    path = clone(w)
    assert "src/app/a.o" not in names(path) and "src/app/main.c" in names(path)
    w.snap("clone", "--path", "src/other").fails(4, "src/other", ".snapignore")


@test
def what_is_no_part_is_refused(w):
    make(w)
    (w.project / "way").symlink_to("src")
    for named, words in (("nothing", ["'nothing' is no directory"]), ("README", ["'README' is no directory"]),
                         ("way/app", ["'way/app' is no directory", "symlink"])):
        w.snap("clone", "--path", named).fails(4, *words)
    w.snap("clone", "--path", ".").fails(2, "whole project")
    w.snap("clone", "--path", "/etc").fails(2, "outside of the project")
    w.snap("clone", "--path", "src", "--from", "@").fails(2, "exclude each other")
    path = clone(w)
    w.snap("clone", "--path", PART, cwd=path).fails(2, "not of a snapshot or a clone")
    assert len(w.ok("--json", "list").json("snap.list/1")["clones"]) == 1
    # From a directory of the project, as any other path.
    got = w.ok("--json", "clone", "--path", "app", "-n", "q", cwd=w.project / "src").json("snap.clone/1")
    assert got["part"] == PART, got


def can_run(w):
    """Why no sandbox can be had here, if so."""
    make(w)
    if w.snap("run", "--", "true").status == 125:
        raise Skip("no sandbox can be set up here")


def clones(w):
    return w.ok("--json", "list").json("snap.list/1")["clones"]


@test
def a_run_has_the_part_at_its_place_and_nothing_else(w):
    can_run(w)
    before = outside(w)
    got = w.ok("run", "--path", PART, "--", "find", ".", "-type", "f").out.decode().split()
    assert sorted(got) == ["./src/app/deep/er/x", "./src/app/gone", "./src/app/main.c", "./src/app/twin"], got
    script = "pwd; ls ..; echo changed > main.c; rm gone"
    got = w.ok("--json", "run", "--path", ".", "--", "sh", "-c", script, cwd=w.project / PART).json("snap.run/1")
    assert got["stdout"] == f"{w.project}/{PART}\napp\n", got["stdout"]
    changed = got["changed"]
    assert (changed["added"], changed["modified"], changed["deleted"]) == (0, 1, 1), changed
    assert outside(w) == before and (w.project / PART / "gone").exists()
    assert clones(w) == []
    # A snapshot of a part that only the run had goes with its clone.
    assert all("part" not in s or s["part"] is None for s in w.ok("--json", "log", "--all").json("snap.log/1")["snapshots"])
    w.ok("gc")
    w.ok("check")


@test
def what_a_trial_in_a_part_changed_lands_there(w):
    can_run(w)
    before = outside(w)
    script = "echo tried > app/main.c; rm app/gone; echo new > app/deep/new"
    w.ok("try", "--path", "app", "--promote-if-ok", "--", "sh", "-c", script, cwd=w.project / "src")
    assert outside(w) == before
    assert (w.project / "src/app/main.c").read_text() == "tried\n"
    assert (w.project / "src/app/deep/new").read_text() == "new\n"
    assert not (w.project / "src/app/gone").exists()
    assert clones(w) == []
    w.ok("undo")
    assert outside(w) == before and (w.project / "src/app/gone").read_text() == "goes\n"
    # A lazy one that is kept is a clone of the part.
    got = w.ok("--json", "run", "--path", PART, "--lazy", "--keep", "--", "sh", "-c", "echo kept > src/app/kept")
    name = got.json("snap.run/1")["clone"]
    assert [(c["clone"], c["part"]) for c in clones(w)] == [(name, PART)], clones(w)
    w.ok("promote", name)
    assert outside(w) == before and (w.project / "src/app/kept").read_text() == "kept\n"


@test
def runs_in_a_part_are_refused_as_clones_are(w):
    can_run(w)
    w.ok("clone", "-n", "named")
    here = Path(w.ok("--json", "status", "named").json("snap.status/1")["path"])
    ran = ["--", "sh", "-c", "echo it ran"]
    for words, told in ((["--path", "nothing"], "'nothing' is no directory"),
                        (["--path", "."], "whole project"), (["--path", "/etc"], "outside of the project"),
                        (["--path", PART, "named"], "name no clone"), (["--path", PART, "--root"], "--root"),
                        (["--path", PART, "--on", "nats://127.0.0.1:9"], "exclude each other")):
        got = w.snap("run", *words, *ran)
        assert got.status != 0 and told in got.err.decode() and b"it ran" not in got.out, (words, got.err)
    got = w.snap("run", "--path", PART, *ran, cwd=here)
    assert got.status != 0 and "in clone 'named'" in got.err.decode() and b"it ran" not in got.out, got.err
    got = w.snap("try", "--path", PART, "--discard", *ran, cwd=here)
    assert got.status != 0 and "not of a snapshot or a clone" in got.err.decode(), got.err
    # Where it would begin is not in the part.
    got = w.snap("run", "--path", f"../{PART}", *ran, cwd=w.project / "docs")
    assert got.status != 0 and f"'{w.project}/docs'" in got.err.decode() and b"it ran" not in got.out, got.err
    assert "only" in got.err.decode() and "--workdir" in got.err.decode(), got.err
    w.ok("run", "--path", f"../{PART}", "--workdir", f"../{PART}", *ran, cwd=w.project / "docs")
    assert [c["clone"] for c in clones(w)] == ["named"]


if __name__ == "__main__":
    sys.exit(main())

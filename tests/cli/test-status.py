"""status: what changed here, what changed in the project meanwhile, and what in both."""

import os
import re
import subprocess
import sys
from pathlib import Path

from snaptest import main, test


def clone(world, *args):
    return Path(world.ok("-q", "clone", "-n", "try", *args).out.decode().strip())


def status(world, *args, code=0):
    return world.snap("status", "--json", *args).json(
        "snap.status/1", "clone", "base", "changed", "stale", "changed_paths", status=code)


@test
def paths_that_changed_in_the_project_are_told_as_they_are_now(w):
    path = clone(w)
    assert status(w, "try")["stale"]["changed"] == 0
    (w.project / "README.md").write_text("moved on\n")
    (w.project / "src" / "new.c").write_text("new\n")
    (w.project / "src" / "main.c").unlink()
    got = status(w, "try")["stale"]
    assert got["paths"] == ["README.md", "src/main.c", "src/new.c"], got
    assert got["changed"] == 3 and got["both"] == [] and got["behind_ms"] > 0, got
    (path / "README.md").write_text("here too\n")
    (path / "only").write_text("here\n")
    got = status(w, "try")
    assert got["stale"]["both"] == ["README.md"], got
    assert got["changed_paths"] == [{"path": "README.md", "status": "modified"},
                                    {"path": "only", "status": "added"}], got
    assert got["truncated"] is False
    # Looking takes no snapshot, and what was taken back is no change.
    assert len(w.ok("log", "--all", "--json").json("snap.log/1")["snapshots"]) == 1
    (w.project / "README.md").write_text("first\n")
    assert status(w, "try")["stale"]["both"] == []


@test
def people_read_it_as_a_sentence(w):
    path = clone(w)
    assert "behind   nothing, the project is as it was\n" in w.ok("status", "try").out.decode()
    (w.project / "README.md").write_text("moved on\n")
    (w.project / "more").write_text("more\n")
    (path / "README.md").write_text("here too\n")
    text = w.ok("status", "try").out.decode()
    assert re.search(r"^behind   2 paths changed in the project, 1 of them also here; the base is \d\S* old$", text, re.M), text
    assert "\nchanged here\n  M  README.md  (in both)\n" in text, text
    assert "\nchanged in the project\n  M  README.md  (in both)\n  A  more\n" in text, text


@test
def people_see_the_first_ten_and_programs_a_thousand(w):
    path = clone(w)
    (path / "d").mkdir()
    for i in range(1200):
        (path / "d" / f"{i:04}").write_text("")
    text = w.ok("status", "try").out.decode()
    assert "  A  d/0009\n  and 1,190 more\n" in text, text
    got = status(w, "try")
    assert len(got["changed_paths"]) == 1000 and got["truncated"] is True
    assert got["changed"]["added"] == 1200


@test
def a_name_that_is_something_else_now_is_one_path(w):
    path = clone(w)
    for top in (w.project, path):
        (top / "README.md").unlink()
        (top / "README.md").mkdir()
    got = status(w, "try")
    assert got["stale"]["paths"] == ["README.md"] == got["stale"]["both"], got
    assert [p["status"] for p in got["changed_paths"]] == ["deleted", "added"], got


@test
def names_that_are_no_text_survive(w):
    clone(w)
    (w.project / "a\nb\udcff\\").write_text("")
    assert status(w, "try")["stale"]["paths"] == ["a\\x0ab\\xff\\x5c"]


@test
def staleness_is_an_exit_code_if_asked_for(w):
    clone(w)
    status(w, "try", "--fail-if-stale")
    (w.project / "README.md").write_text("moved on\n")
    status(w, "try")
    assert status(w, "try", "--fail-if-stale", code=6)["stale"]["changed"] == 1
    w.snap("status", "try", "--fail-if-stale").ends(6)


@test
def a_project_that_is_gone_leaves_the_rest_of_a_status(w):
    path = clone(w)
    (path / "README.md").write_text("here\n")
    elsewhere = w.top / "elsewhere"
    w.project.rename(elsewhere)
    result = w.snap("status", "--json", "try", cwd=w.home)
    got = result.json("snap.status/1", "stale", "changed")
    assert got["stale"] is None and got["changed"]["modified"] == 1, got
    assert b"comparing with the project" in result.err and bytes(w.project) in result.err
    w.snap("status", "try", "--fail-if-stale", cwd=w.home).ends(6)
    assert "behind   not known\n" in w.ok("status", "try", cwd=w.home).out.decode()
    elsewhere.rename(w.project)


@test
def a_project_tells_what_changed_since_its_last_snapshot(w):
    w.take()
    got = status(w)
    assert got["clone"] is None and got["changed_paths"] == []
    (w.project / "README.md").write_text("other\n")
    (w.project / "src" / "new.c").write_text("")
    (w.project / "src" / "main.c").unlink()
    got = status(w)
    assert got["changed"] == {"added": 1, "modified": 1, "deleted": 1}, got
    assert got["changed_paths"] == [{"path": "README.md", "status": "modified"},
                                    {"path": "src/main.c", "status": "deleted"},
                                    {"path": "src/new.c", "status": "added"}], got
    text = w.ok("status").out.decode()
    assert "changed  1 added, 1 modified, 1 deleted since the newest\n" in text, text
    assert "  D  src/main.c\n" in text, text


@test
def metadata_counts_as_a_change(w):
    w.take()
    (w.project / "README.md").chmod(0o600)
    os.utime(w.project / "src" / "main.c", (1, 1))
    assert status(w)["changed_paths"] == [{"path": "README.md", "status": "modified"}]


@test
def what_a_commit_changes_in_git_is_one_line_and_hides_no_file(w):
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], cwd=w.project, check=True)
    path = clone(w)
    (path / "README.md").write_text("second\n")
    subprocess.run([*git, "commit", "-q", "-a", "-m", "second"], cwd=path, check=True)
    (path / "src" / "new.c").write_text("new\n")
    lines = w.ok("status", "try").out.decode().splitlines()
    shown = [line.split() for line in lines[lines.index("changed here") + 1:]]
    assert [s[1] for s in shown] == [".git", "README.md", "src/new.c"], lines
    assert shown[0][0] == "M" and shown[0][2].startswith("(") and shown[0][3] == "paths)", lines
    got = status(w, "try")["changed_paths"]
    assert sum(p["path"].startswith(".git/") for p in got) == int(shown[0][2][1:]), got
    stat = w.ok("diff", "--stat", "try").out.decode().splitlines()
    assert len(stat) == 4 and stat[0].startswith(" .git ("), stat
    assert stat[3].startswith(f" {len(w.ok('diff', '--name-status', 'try').out.splitlines())} files")
    # What only the clone changed comes as one line, too.
    (w.project / "mine").write_text("mine\n")
    (w.project / ".git" / "a").write_text("a\n")
    (w.project / ".git" / "b").write_text("b\n")
    w.ok("clone", "-n", "other")
    (w.project / ".git" / "a").write_text("A\n")
    (w.project / ".git" / "b").write_text("B\n")
    text = w.ok("rebase", "other").out.decode()
    assert "  M .git  (2 paths)\n" in text, text


if __name__ == "__main__":
    sys.exit(main())

"""A branch of a git repository as a stage: changes become commits, at most once, and work trees stay as they are."""

import os
import subprocess
import sys

from promotetest import clone
from snaptest import World, main, test

HOUR = 3600 * 10**9


def put(path, text="x\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def git(w, *args, cwd=None):
    env = {**w.env, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
           "GIT_COMMITTER_EMAIL": "a@b"}
    return subprocess.run(["git", *args], cwd=cwd or w.project, env=env, check=True, stdout=subprocess.PIPE).stdout.decode().strip()


def repository(w):
    """The project is a repository with two branches, of which `main` is checked out."""
    put(w.project / ".gitignore", "out/\n")
    git(w, "init", "-q", "-b", "main")
    git(w, "add", "-A")
    git(w, "commit", "-qm", "first")
    git(w, "branch", "release")


def stages(w, *lines):
    put(w.home / ".config" / "snapcow" / "pipeline.yaml", "- stages:\n" + "".join(f"    - {line}\n" for line in lines))


def ship(w, *args, code=0):
    return w.snap("ship", "--json", *args).json("snap.ship/1", "change", "state", status=code)


def untouched(w):
    """Neither the work tree nor the index nor the branch that is checked out."""
    assert git(w, "status", "--porcelain") == "" and git(w, "log", "--format=%s", "main") == "first"


@test
def a_change_becomes_a_commit_and_the_work_tree_stays(w: World):
    repository(w)
    put(w.project / "old.txt")
    git(w, "add", "-A")
    git(w, "commit", "-qm", "first", "--amend")
    git(w, "branch", "-f", "release")
    c = clone(w)
    put(c / "a.txt", "new\n")
    put(c / "out" / "built.o")
    put(c / "tool", "#!/bin/sh\n")
    (c / "tool").chmod(0o755)
    os.symlink("a.txt", c / "link")
    (c / "old.txt").unlink()
    stages(w, "{name: verified, checks: [test -e a.txt]}", "{name: release, target: 'git:release', approve: never, checks: [test -e a.txt]}")
    got = ship(w, "try")
    commit = got["receipts"][1]["commit"]
    assert got["state"] == "shipped" and git(w, "rev-parse", "release") == commit and git(w, "rev-parse", "release^") == git(w, "rev-parse", "main")
    files = dict(reversed(line.split(None, 1)[1].split("\t")) for line in git(w, "ls-tree", "-r", "--format=x %(objectmode)\t%(path)", "release").splitlines())
    assert files == {".gitignore": "100644", "README.md": "100644", "a.txt": "100644", "link": "120000", "src/main.c": "100644",
                     "tool": "100755"}, files
    said = git(w, "log", "-1", "--format=%B", "release")
    for want in (f"Snap-Change: {got['change']}", f"Snap-Content: sha256:{got['sha256']}", "Snap-Stage: release",
                 f"Snap-Receipt: verified sha256:{got['receipts'][0]['link']}"):
        assert want in said, (want, said)
    untouched(w)
    git(w, "fsck", "--strict")
    assert git(w, "reflog", "-1", "--format=%H %gs", "release") == f"{commit} snap ship"
    assert not list((w.project / ".git").glob("snap-*"))
    w.ok("pipeline", "verify", "--all")
    git(w, "update-ref", "refs/heads/release", "main")
    assert b"its commit is not on the branch any more" in w.snap("pipeline", "verify", "--all").ends(12).out
    git(w, "branch", "-D", "release")
    assert b"its branch is gone" in w.snap("pipeline", "verify", "--all").ends(12).out


@test
def it_merges_with_what_the_branch_has_and_a_conflict_moves_nothing(w: World):
    repository(w)
    other = w.top / "other"
    git(w, "worktree", "add", "-q", str(other), "release")
    put(other / "theirs.txt")
    git(w, "add", "-A", cwd=other)
    git(w, "commit", "-qm", "theirs", cwd=other)
    git(w, "worktree", "remove", str(other))
    before = git(w, "rev-parse", "release")
    git(w, "pack-refs", "--all")
    c = clone(w)
    put(c / "a.txt", "new\n")
    stages(w, f"{{name: release, target: 'git:{w.project}#release', approve: never, checks: [test -e theirs.txt]}}")
    assert ship(w, "try")["state"] == "shipped"
    assert git(w, "rev-parse", "release^") == before and git(w, "show", "release:theirs.txt") == "x"
    put(c / "theirs.txt", "mine\n")
    got = ship(w, "try", code=5)
    assert got["obstacle"] == "conflict" and git(w, "rev-parse", "release^") == before, got
    untouched(w)
    # What it has already is no second commit.
    d = clone(w, "again")
    put(d / "a.txt", "new\n")
    tip = git(w, "rev-parse", "release")
    got = ship(w, "again")
    assert got["state"] == "shipped" and got["receipts"][0]["commit"] is None and git(w, "rev-parse", "release") == tip


@test
def a_branch_that_is_checked_out_or_missing_is_refused(w: World):
    repository(w)
    put(clone(w) / "a.txt")
    stages(w, "{name: main, target: 'git:main', approve: never}")
    said = w.snap("ship", "try").ends(7)
    assert b"is checked out" in said.err, said.err
    untouched(w)
    stages(w, "{name: main, target: 'git:other', approve: never}")
    assert b"has no branch 'other'" in w.snap("ship", "try").ends(4).err
    stages(w, f"{{name: main, target: 'git:{w.home}#main', approve: never}}")
    assert b"no git repository" in w.snap("ship", "try").ends(4).err
    for bad in ("git:", "git:/x", "git:x#y"):
        stages(w, f"{{name: main, target: '{bad}'}}")
        assert b"git:BRANCH" in w.snap("ship", "try").ends(2).err, bad
    stages(w, "{name: main, target: 'git:release', approve: never}")
    assert ship(w, "try")["state"] == "shipped", "what failed can go on"


@test
def one_that_turns_sick_is_reverted_by_a_commit_and_later_commits_stay(w: World):
    repository(w)
    w.env["SNAPCOW_CLOCK"] = str(w.home / "clock")
    put(w.home / "clock", str(10**18))
    put(clone(w) / "a.txt", "new\n")
    stages(w, "{name: release, target: 'git:release', approve: never, soak: 1h, health: [test ! -e .git/sick]}")
    got = ship(w, "try")
    assert got["state"] == "soaking" and got["receipts"][0]["health_runs"] == 1, got
    tree = git(w, "rev-parse", "release^{tree}")
    later = git(w, "commit-tree", "-p", "release", "-m", "later", tree)
    git(w, "update-ref", "refs/heads/release", later)
    put(w.project / ".git" / "sick")
    put(w.home / "clock", str(10**18 + HOUR))
    got = w.ok("pipeline", "advance", "--json").json("snap.pipeline/1")["changes"][0]
    assert got["state"] == "sick" and got["receipts"][0]["undone"], got
    assert git(w, "log", "--format=%s", "release").splitlines() == ["Take back changes of clone try", "later", "Changes of clone try", "first"]
    assert git(w, "rev-parse", "release^{tree}") == git(w, "rev-parse", "main^{tree}")
    w.ok("pipeline", "verify", "--all")
    untouched(w)


@test
def a_lock_that_somebody_else_left_is_named_and_stays(w: World):
    repository(w)
    put(clone(w) / "a.txt")
    stages(w, "{name: release, target: 'git:release', approve: never}")
    lock = w.project / ".git" / "refs" / "heads" / "release.lock"
    put(lock, "")
    said = w.snap("ship", "try").ends(11)
    assert b"release.lock" in said.err and lock.exists(), said.err
    lock.unlink()
    assert ship(w, "--continue", "try")["state"] == "shipped"
    assert git(w, "log", "--format=%s", "release").splitlines() == ["Changes of clone try", "first"]


@test
def where_the_way_back_conflicts_a_person_is_told_how(w: World):
    repository(w)
    w.env["SNAPCOW_CLOCK"] = str(w.home / "clock")
    put(w.home / "clock", str(10**18))
    put(clone(w) / "a.txt", "new\n")
    stages(w, "{name: release, target: 'git:release', approve: never, soak: 1h, health: [test ! -e .git/sick]}")
    commit = ship(w, "try")["receipts"][0]["commit"]
    other = w.top / "other"
    git(w, "worktree", "add", "-q", str(other), "release")
    put(other / "a.txt", "edited since\n")
    git(w, "commit", "-qam", "edit", cwd=other)
    put(w.project / ".git" / "sick")
    put(w.home / "clock", str(10**18 + HOUR))
    said = w.snap("ship", "--continue", "try").ends(7)
    assert b"is checked out" in said.err, "it waits for the work tree"
    git(w, "worktree", "remove", str(other))
    got = ship(w, "--continue", "try", code=8)
    assert f"git revert {commit}" in got["why"] and git(w, "show", "release:a.txt") == "edited since", got


if __name__ == "__main__":
    sys.exit(main())

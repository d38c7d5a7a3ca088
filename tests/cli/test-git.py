"""promote --git: commits made in a clone reach the project's repository, by git's own means."""

import os
import subprocess
import sys
from pathlib import Path

from snaptest import Skip, main, needs_fuse, test


def git(top, *args, check=True, **more):
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1",
           "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
           "GIT_COMMITTER_EMAIL": "a@b", "LC_ALL": "C"}
    return subprocess.run(["git", "-c", "safe.directory=*", *args], cwd=top, env=env, check=check,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          **more).stdout.decode().strip()


def start(w, name="c"):
    """A repository with one commit, and a clone of it."""
    needs_fuse()
    if w.snap("run", "--", "true").status == 125:
        raise Skip("no sandbox can be set up here")
    git(w.project, "init", "-q", "-b", "main")
    git(w.project, "add", ".")
    git(w.project, "commit", "-q", "-m", "first")
    return clone(w, name)


def clone(w, name):
    return Path(w.ok("clone", "--json", "-n", name).json("snap.clone/1", "path")["path"])


def commit(top, name, text="x\n"):
    (top / name).write_text(text)
    git(top, "add", name)
    git(top, "commit", "-q", "-m", name)
    return git(top, "rev-parse", "HEAD")


def promote(w, *args):
    return w.ok("promote", "--json", "--git", *args).json("snap.promote/1", "git")


@test
def three_commits_made_in_the_clone_reach_the_project(w):
    top = start(w)
    head, index = git(w.project, "rev-parse", "HEAD"), (w.project / ".git" / "index").read_bytes()
    for name in ("one", "two"):
        commit(top, name)
    git(top, "checkout", "-q", "-b", "topic/deep")
    three = commit(top, "three")
    got = promote(w, "c")
    refs = {g["ref"]: g["commit"] for g in got["git"]}
    assert refs == {"refs/heads/snap/c/main": git(top, "rev-parse", "main"),
                    "refs/heads/snap/c/topic/deep": three}, got
    for ref, oid in refs.items():
        assert git(w.project, "rev-parse", ref) == oid
    assert git(w.project, "log", "--format=%s", "snap/c/topic/deep") == "three\ntwo\none\nfirst"
    assert git(w.project, "rev-parse", "HEAD") == head, "its own branch is where it was"
    assert (w.project / ".git" / "index").read_bytes() == index, "and so is its index"
    assert git(w.project, "status", "--porcelain").split("\n") == ["?? one", "?? three", "?? two"]
    assert git(w.project, "fsck", "--strict") == ""
    assert not (w.project / ".git" / "FETCH_HEAD").exists()


@test
def commits_of_both_sides_stay_what_they_are(w):
    top = start(w)
    mine = commit(top, "mine")
    theirs = commit(w.project, "theirs")
    got = promote(w, "c")
    assert [g["commit"] for g in got["git"]] == [mine], got
    assert git(w.project, "rev-parse", "main") == theirs
    assert git(w.project, "merge-base", "main", "snap/c/main") == git(w.project, "rev-parse", "main~")
    assert git(w.project, "fsck", "--strict") == ""


@test
def a_second_promotion_moves_the_branches_on(w):
    top = start(w)
    commit(top, "one")
    promote(w, "c")
    got = promote(w, "c")
    assert got["git"] == [], "there is nothing new"
    assert b"no commit that the project lacks" in w.ok("promote", "--git", "c").out
    git(top, "commit", "-q", "--amend", "-m", "another")
    [branch] = promote(w, "c")["git"]
    assert git(w.project, "rev-parse", "snap/c/main") == branch["commit"]
    assert git(w.project, "log", "-1", "--format=%s", "snap/c/main") == "another"


@test
def an_undo_takes_the_files_back_and_leaves_the_commits(w):
    top = start(w)
    oid = commit(top, "one")
    promote(w, "c")
    w.ok("undo")
    assert not (w.project / "one").exists()
    assert git(w.project, "rev-parse", "snap/c/main") == oid, "as the help of `undo` says"
    assert "snap/CLONE" in w.ok("help", "undo").out.decode()
    assert promote(w, "c")["git"] == [] and (w.project / "one").exists()


@test
def a_dry_run_brings_no_commit(w):
    top = start(w)
    oid = commit(top, "one")
    got = promote(w, "--dry-run", "c")
    assert got["git"] == [{"repository": "", "ref": "refs/heads/snap/c/main", "commit": oid}], got
    assert git(w.project, "branch", "--list", "snap/*") == ""
    text = w.ok("promote", "--git", "-n", "c").out.decode()
    assert f"would bring refs/heads/snap/c/main at {oid[:12]}" in text, text


@test
def a_promotion_that_does_not_come_about_brings_no_commit(w):
    top = start(w)
    commit(top, "README.md", "clone\n")
    (w.project / "README.md").write_text("project\n")
    w.snap("promote", "--git", "c").fails(5, "conflicts")
    assert git(w.project, "branch", "--list", "snap/*") == ""


@test
def nothing_that_the_clone_configured_is_run_outside(w):
    top = start(w)
    commit(top, "one")
    proof = w.top / "proof"
    evil = w.top / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {proof}\n")
    evil.chmod(0o755)
    for key in ("core.fsmonitor", "core.pager", "core.sshCommand", "core.alternateRefsCommand",
                "uploadpack.packObjectsHook", "core.gitProxy", "gpg.program", "core.askPass"):
        git(top, "config", key, str(evil))
    for repository in (top, w.project):
        for hook in ("reference-transaction", "post-checkout", "pre-auto-gc", "post-merge"):
            path = repository / ".git" / "hooks" / hook
            path.parent.mkdir(exist_ok=True)
            path.write_text(evil.read_text())
            path.chmod(0o755)
    git(top, "-c", "core.fsmonitor=", "update-ref", "refs/heads/control", "HEAD")
    assert proof.exists(), "the control: such a hook is run by anybody else's git"
    proof.unlink()
    refs = {g["ref"] for g in promote(w, "c")["git"]}
    assert refs == {"refs/heads/snap/c/main", "refs/heads/snap/c/control"}, refs
    assert not proof.exists()


@test
def an_object_that_git_would_not_have_is_refused(w):
    top = start(w)
    blob = git(top, "hash-object", "-w", "README.md")
    tree = git(top, "hash-object", "-t", "tree", "-w", "--literally", "--stdin",
               input=b"100644 .git\0" + bytes.fromhex(blob))
    oid = git(top, "commit-tree", "-m", "evil", tree)
    git(top, "update-ref", "refs/heads/evil", oid)
    (top / "new").write_text("new\n")
    before = sorted((w.project / ".git").rglob("*"))
    env = {"TMPDIR": str(w.home)}
    w.snap("promote", "--git", "c", env=env).fails(1, f"git in '{w.project}/.git'")
    assert not (w.project / "new").exists(), "nothing is promoted then"
    assert sorted((w.project / ".git").rglob("*")) == before
    assert not list(w.home.glob("snapcow-*"))
    git(top, "branch", "-D", "evil")
    w.ok("promote", "--git", "c")


@test
def commits_that_cannot_be_taken_do_not_take_the_files_back(w):
    top = start(w)
    commit(top, "one")
    promote(w, "c")
    git(w.project, "checkout", "-q", "-f", "snap/c/main")
    commit(top, "two")
    w.snap("promote", "--git", "c").fails(1, "the files are promoted, but not the commits",
                                          "refusing to fetch into")
    assert (w.project / "two").exists()


@test
def a_clone_that_has_no_repository_any_more_is_refused(w):
    top = start(w)
    commit(top, "one")
    subprocess.run(["rm", "-rf", top / ".git"], check=True)
    (top / ".git").write_text("gitdir: /somewhere\n")
    w.snap("promote", "--git", "c").fails(7, "clone 'c' has no git repository of its own")
    assert not (w.project / "one").exists(), "nothing is promoted then"
    subprocess.run(["rm", "-rf", w.project / ".git"], check=True)
    (w.project / ".git").write_text("gitdir: /somewhere\n")
    w.snap("promote", "--git", "c").fails(7, "leads to no repository of this project")


@test
def a_project_without_a_repository_is_told_so(w):
    needs_fuse()
    w.ok("clone", "-n", "c")
    w.snap("promote", "--git", "c").fails(7, "has no git repository")
    w.snap("promote", "--git", "none").fails(4, "'none'")
    w.snap("promote", "--git").fails(2, "name the clone", "hint: snapcow list")


@test
def no_log_has_the_bundle_that_the_commits_came_in(w):
    top = start(w)
    commit(top, "one")
    promote(w, "c")
    got = w.ok("logs", "--json").json("snap.logs/1", "stdout", "stderr")
    assert got["stdout"] == "" and w.ok("logs").out == b"", got


@test
def variables_of_git_lead_it_nowhere_else(w):
    top = start(w)
    oid = commit(top, "one")
    elsewhere = w.top / "elsewhere"
    git(w.top, "init", "-q", str(elsewhere))
    env = {"GIT_DIR": str(elsewhere / ".git"), "GIT_OBJECT_DIRECTORY": str(elsewhere / "objects")}
    w.ok("promote", "--git", "c", env=env)
    assert git(w.project, "rev-parse", "snap/c/main") == oid
    assert git(elsewhere, "for-each-ref") == ""


if __name__ == "__main__":
    sys.exit(main())

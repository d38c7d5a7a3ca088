"""rebase: a clone moves on to what the project is now, with its changes, while it is in use."""

import os
import subprocess
import sys
import threading
from pathlib import Path

from snaptest import gone, main, needs_fuse, test

KEYS = ("clone", "project", "from", "onto", "saved", "dry_run", "changed", "truncated", "merged",
        "conflicts", "left", "elapsed_ms")
LINES = "".join(f"line {i}\n" for i in range(1, 21))


def clone(w, name, *args):
    needs_fuse()
    got = w.ok("clone", "--json", "-n", name, *args).json("snap.clone/1", "path")
    return Path(got["path"])


def rebase(w, *args, **more):
    return w.ok("rebase", "--json", *args, **more).json("snap.rebase/1", *KEYS)


def changed(got):
    return {c["path"]: c["status"] for c in got["changed"]}


def diff(w, name):
    got = w.ok("diff", "--json", name).json("snap.diff/1", "files")
    return {f["path"]: f["status"] for f in got["files"]}


def base(w, name):
    return w.ok("status", "--json", name).json("snap.status/1", "base")["base"]


def git(top, *args):
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1",
           "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
           "GIT_COMMITTER_EMAIL": "a@b", "LC_ALL": "C"}
    return subprocess.run(["git", "-c", "safe.directory=*", *args], cwd=top, env=env, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout.decode().strip()


@test
def a_clone_gets_what_the_project_got_and_keeps_its_changes(w):
    (w.project / "both").write_text(LINES)
    (w.project / "goes").write_text("x\n")
    top = clone(w, "c")
    (top / "both").write_text(LINES.replace("line 2\n", "clone 2\n"))
    (top / "mine").write_text("mine\n")
    (w.project / "both").write_text(LINES.replace("line 19\n", "project 19\n"))
    (w.project / "new").write_text("new\n")
    (w.project / "goes").unlink()
    before = base(w, "c")
    got = rebase(w, "c")
    assert (top / "both").read_text() == LINES.replace("line 2\n", "clone 2\n").replace(
        "line 19\n", "project 19\n")
    assert (top / "new").read_text() == "new\n" and (top / "mine").read_text() == "mine\n"
    assert not (top / "goes").exists()
    assert got["from"] == before and got["onto"] == base(w, "c") != before, got
    assert got["merged"] == 1 and got["conflicts"] == [] and got["dry_run"] is False, got
    assert changed(got) == {"both": "modified", "new": "added", "goes": "deleted"}, got
    assert diff(w, "c") == {"both": "modified", "mine": "added"}
    status = w.ok("status", "--json", "c").json("snap.status/1", "stale")
    assert status["stale"]["changed"] == 0, status
    log = w.ok("log", "--all", "--json").json("snap.log/1")["snapshots"]
    log = [s for s in log if s["origin"] == "."]
    assert log[0]["snapshot"] == got["onto"] and log[0]["message"] == "rebase of c", log


@test
def a_rollback_takes_a_rebase_back_with_its_base(w):
    top = clone(w, "c")
    (top / "mine").write_text("mine\n")
    (w.project / "README.md").write_text("project\n")
    before = base(w, "c")
    got = rebase(w, "c")
    log = w.ok("log", "--all", "--json", "c").json("snap.log/1")["snapshots"]
    assert log[0]["snapshot"] == got["saved"], log
    assert log[0]["message"] == f"before rebase onto {got['onto']}", log
    after = w.ok("-q", "rollback", "c", got["saved"]).out.decode().strip()
    assert base(w, "c") == before and diff(w, "c") == {"mine": "added"}
    assert (top / "README.md").read_text() == "first\n"
    # What a promotion brings is what the clone did, and not the project's own edit taken back.
    w.ok("promote", "c")
    assert (w.project / "README.md").read_text() == "project\n"
    # And forth again: the state after the rebase has its own base.
    w.ok("rollback", "c", after)
    assert base(w, "c") == got["onto"] and (top / "README.md").read_text() == "project\n"


@test
def a_clone_without_changes_can_be_rebased_and_taken_back(w):
    top = clone(w, "c")
    before = base(w, "c")
    (w.project / "README.md").write_text("project\n")
    saved = rebase(w, "c")["saved"]
    assert (top / "README.md").read_text() == "project\n" and diff(w, "c") == {}
    w.ok("rollback", "c", saved)
    assert base(w, "c") == before and (top / "README.md").read_text() == "first\n"


@test
def people_are_told_what_to_type_to_take_it_back(w):
    top = clone(w, "c")
    (w.project / "README.md").write_text("project\n")
    said, _, back = w.ok("rebase", "c").out.decode().partition("; to return: snapcow ")
    assert "\n  the state before is snapshot " in said and back.startswith("rollback c "), (said, back)
    w.ok(*back.split())
    assert (top / "README.md").read_text() == "first\n"


@test
def a_base_that_a_snapshot_had_outlives_the_rule_of_a_gc(w):
    top = clone(w, "c")
    (top / "mine").write_text("mine\n")
    before = base(w, "c")
    for i in range(3):
        (w.project / "README.md").write_text(f"{i}\n")
        w.take()
    saved = rebase(w, "c")["saved"]
    w.ok("gc", "--keep-last", "1")
    w.ok("rollback", "c", saved)
    assert base(w, "c") == before and diff(w, "c") == {"mine": "added"}


@test
def what_both_changed_in_the_same_place_changes_nothing(w):
    top = clone(w, "c")
    (top / "README.md").write_text("clone\n")
    (w.project / "README.md").write_text("project\n")
    (w.project / "new").write_text("new\n")
    before, log = base(w, "c"), w.ok("log", "--all", "--json").out
    w.snap("rebase", "c").fails(5, "nothing is rebased: 'README.md' conflicts (content)",
                                "rebase --conflict markers c", "show .:README.md",
                                "show c:README.md")
    data = w.snap("rebase", "--json", "c").fails_json(5, "E_CONFLICT")["data"]
    assert [(c["path"], c["kind"]) for c in data["conflicts"]] == [("README.md", "content")], data
    assert data["conflicts"][0]["base"] == f"{before}:README.md", data
    assert base(w, "c") == before and w.ok("log", "--all", "--json").out == log
    assert w.ok("log", "--all", "--json", "c").json("snap.log/1")["snapshots"] == []
    assert (top / "README.md").read_text() == "clone\n" and not (top / "new").exists()


@test
def a_conflict_is_settled_as_asked(w):
    for how, want in (("ours", "project\n"), ("theirs", "clone\n"),
                      ("markers", "<<<<<<< project\nproject\n=======\nclone\n>>>>>>> clone\n")):
        (w.project / "README.md").write_text("first\n")
        top = clone(w, how)
        (top / "README.md").write_text("clone\n")
        (w.project / "README.md").write_text("project\n")
        got = rebase(w, "--conflict", how, how)
        assert got["conflicts"][0]["settled"] is True, got
        assert (top / "README.md").read_text() == want, how
    w.snap("rebase", "--conflict", "mine", "ours").fails(2, "one of stop, ours")


@test
def a_dry_run_of_a_rebase_changes_and_keeps_nothing(w):
    top = clone(w, "c")
    (top / "mine").write_text("mine\n")
    (w.project / "new").write_text("new\n")
    before, log = base(w, "c"), w.ok("log", "--json", "--all").out
    got = rebase(w, "--dry-run", "c")
    assert got["dry_run"] is True and got["onto"] is None and got["saved"] is None, got
    assert changed(got) == {"new": "added"} and not (top / "new").exists(), got
    assert base(w, "c") == before and w.ok("log", "--json", "--all").out == log
    (top / "README.md").write_text("clone\n")
    (w.project / "README.md").write_text("project\n")
    text = w.snap("rebase", "-n", "c").ends(5).out.decode()
    assert "would rebase c" in text and "conflict: README.md (content, 1 place)" in text, text


@test
def a_project_that_is_as_it_was_leaves_nothing_to_rebase(w):
    top = clone(w, "c")
    (top / "mine").write_text("mine\n")
    got = rebase(w, "c")
    assert got["onto"] == got["from"] and got["saved"] is None and got["changed"] == [], got
    assert b"nothing to rebase" in w.ok("rebase", "c").out
    assert w.ok("-q", "rebase", "c").out == b""


@test
def the_clone_here_is_meant_and_without_one_it_is_asked_for(w):
    top = clone(w, "c")
    (w.project / "new").write_text("new\n")
    w.snap("rebase").fails(2, "name the clone", "hint: snapcow list")
    w.snap("rebase", "none").fails(4, "'none'", "list")
    saved = w.ok("-q", "rebase", cwd=top).out.decode().strip()
    assert (top / "new").exists() and len(saved) == 16, saved


@test
def a_clone_that_is_not_mounted_is_rebased(w):
    top = clone(w, "c")
    (top / "mine").write_text("mine\n")
    w.ok("umount", "c")
    (w.project / "new").write_text("new\n")
    rebase(w, "c")
    w.ok("mount", "c")
    assert (top / "new").exists() and (top / "mine").exists()


@test
def programs_keep_the_files_that_they_have_open(w):
    (w.project / "data").write_text("old\n")
    top = clone(w, "c")
    with subprocess.Popen([sys.executable, "-c", """
import os, sys
a = open("data"); os.chdir("src"); print("ready", flush=True); sys.stdin.readline()
print(a.read().strip(), open("../data").read().strip(), open("main.c").read(), flush=True)
"""], cwd=top, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "ready\n"
        (w.project / "data").write_text("new\n")
        (w.project / "src" / "main.c").write_text("moved on")
        rebase(w, "c")
        out, _ = child.communicate("\n")
    assert out == "old new moved on\n", out


@test
def no_write_falls_between_what_is_merged_and_what_is_shown(w):
    top = clone(w, "c")
    counter = top / "counter"
    stop, wrote = threading.Event(), []

    def write():
        with counter.open("ab", buffering=0) as f:
            while not stop.is_set():
                f.write(b"x")
                wrote.append(1)
                # A file that is replaced by a rebase is another one from then on.
                (top / f"file{len(wrote)}").write_text("f\n")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for i in range(5):
            (w.project / "README.md").write_text(f"{i}\n")
            rebase(w, "c")
    finally:
        stop.set()
        thread.join()
    assert (top / "README.md").read_text() == "4\n"
    assert counter.stat().st_size == len(wrote)
    missing = [i for i in range(1, len(wrote) + 1) if not (top / f"file{i}").exists()]
    assert not missing, missing


@test
def a_rebase_that_was_answered_survives_the_death_of_the_daemon(w):
    top = clone(w, "c")
    (top / "mine").write_text("mine\n")
    (w.project / "new").write_text("new\n")
    got = rebase(w, "c")
    for pid in w.daemons():
        os.kill(pid, 9)
        gone(pid, 20)
    assert base(w, "c") == got["onto"] and diff(w, "c") == {"mine": "added"}
    w.ok("check")


@test
def the_room_of_a_clone_counts_from_its_new_base(w):
    top = clone(w, "c", "--quota", "2M")
    (top / "mine").write_bytes(os.urandom(1 << 20))
    (w.project / "large").write_bytes(os.urandom(8 << 20))
    rebase(w, "c")
    used = w.ok("status", "--json", "c").json("snap.status/1", "used")["used"]
    assert used == 1 << 20, used
    (top / "more").write_bytes(os.urandom(1 << 19))


# --- git -----------------------------------------------------------------------------------

def repository(w):
    git(w.project, "init", "-q", "-b", "main")
    git(w.project, "add", ".")
    git(w.project, "commit", "-q", "-m", "first")


@test
def a_git_folder_that_only_the_project_changed_is_the_projects(w):
    repository(w)
    top = clone(w, "c")
    (top / "mine").write_text("mine\n")
    (w.project / "README.md").write_text("second\n")
    git(w.project, "commit", "-q", "-a", "-m", "second")
    got = rebase(w, "c")
    assert got["left"] == [], got
    assert git(top, "rev-parse", "HEAD") == git(w.project, "rev-parse", "HEAD")
    assert git(top, "status", "--porcelain") == "?? mine"
    git(top, "fsck", "--strict")


@test
def a_git_folder_that_only_the_clone_changed_is_the_clones(w):
    repository(w)
    top = clone(w, "c")
    (top / "mine").write_text("mine\n")
    git(top, "add", ".")
    git(top, "commit", "-q", "-m", "mine")
    head = git(top, "rev-parse", "HEAD")
    (w.project / "README.md").write_text("second\n")
    got = rebase(w, "c")
    assert got["left"] == [] and git(top, "rev-parse", "HEAD") == head, got
    assert git(top, "status", "--porcelain") == "M README.md"
    git(top, "fsck", "--strict")


@test
def a_git_folder_that_both_changed_stays_the_clones_as_a_whole(w):
    repository(w)
    top = clone(w, "c")
    (top / "mine").write_text("mine\n")
    git(top, "add", ".")
    git(top, "commit", "-q", "-m", "mine")
    head, refs = git(top, "rev-parse", "HEAD"), git(top, "for-each-ref")
    (w.project / "README.md").write_text("second\n")
    git(w.project, "commit", "-q", "-a", "-m", "second")
    git(w.project, "branch", "other")
    got = rebase(w, "c")
    assert got["left"] == [{"path": ".git", "status": "modified"}], got
    assert git(top, "rev-parse", "HEAD") == head and git(top, "for-each-ref") == refs
    assert (top / "README.md").read_text() == "second\n"
    git(top, "fsck", "--strict", "--no-dangling")
    text = w.ok("rollback", "c", got["saved"]).out
    assert text and b"left alone: .git" in w.ok("rebase", "c").out


if __name__ == "__main__":
    sys.exit(main())

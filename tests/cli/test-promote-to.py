"""promote --path P --to DIR: results land in a directory that is no project, whole and undoable, or not at all."""

import ctypes
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import live_test  # noqa: E402
from mcptest import Client  # noqa: E402
from promotetest import clone, daemon, log, picture, promote, refused, same, undo  # noqa: E402
from snaptest import SNAP, Skip, World, gone  # noqa: E402

CALLS = ("openat", "pwrite64", "renameat2", "unlinkat", "mkdirat", "fchmod", "utimensat", "fsync", "fdatasync")


def build(w):
    """A clone with results, and a directory for them that others use, too."""
    top = clone(w)
    (top / "build" / "site" / "sub").mkdir(parents=True)
    (top / "build" / "app").write_bytes(b"\x7fELF" + bytes(70_000))
    (top / "build" / "app").chmod(0o755)
    for name in ("index.html", "sub/a.html", "sub/b.html"):
        (top / "build" / "site" / name).write_text(f"{name}\n")
    os.link(top / "build" / "site" / "index.html", top / "build" / "site" / "again.html")
    out = w.home / "out"
    out.mkdir()
    (out / "other").write_text("of somebody else\n")
    os.utime(out, (1_500_000_000, 1_500_000_000))
    return top, out


def to(out, *names):
    return [*(w for n in names or ("build/app", "build/site") for w in ("--path", n)), "--to", str(out)]


@live_test
def results_arrive_under_their_last_names_and_go_again(w: World):
    top, out = build(w)
    project, before = picture(w.project), picture(out)
    got = promote(w, "try", *to(out))
    assert got["to"] == str(out) and len(got["changed"]) == 5, got
    assert (out / "app").read_bytes() == (top / "build" / "app").read_bytes()
    assert (out / "app").stat().st_mode & 0o777 == 0o755
    assert sorted(p.name for p in (out / "site").iterdir()) == ["again.html", "index.html", "sub"]
    assert promote(w, "try", *to(out))["promotion"] is None, "nothing is left to do"
    first = picture(out)
    (top / "build" / "app").write_text("second\n")
    (top / "build" / "site" / "sub" / "b.html").unlink()
    second = promote(w, "try", *to(out))
    assert {(p["path"], p["status"]) for p in second["changed"]} == {("app", "modified"), ("site/sub/b.html", "deleted")}
    same(picture(w.project), project)
    assert w.ok("status", "try", "--json").json("snap.status/1")["changed"]["added"] > 0, "its base stays"
    assert undo(w)["undone"] == second["promotion"]
    same(picture(out), first)
    undone = undo(w)
    assert undone["to"] == str(out)
    same(picture(out), before)
    receipts = log(w)["receipts"]
    assert all(r["to"] == str(out) for r in receipts) and sum(r["undone"] for r in receipts) == 2, receipts
    shown = w.ok("log").out.decode()
    assert f"of try to {out}" in shown and shown.count("before promotion") == 0, shown
    events = [json.loads(line) for line in w.ok("events", "--json").out.splitlines()]
    events = [e for e in events if e["data"].get("to")]
    assert [e["kind"] for e in events] == ["promotion", "promotion", "undo", "undo"], events
    assert w.ok("check", "--json").json("snap.check/1")["errors"] == []


@live_test
def what_others_put_there_is_a_conflict_until_somebody_decides(w: World):
    top, out = build(w)
    (out / "app").write_text("mine\n")
    before = picture(out)
    got = refused(w, 5, "E_CONFLICT", "promote", "try", *to(out))
    assert {c["path"] for c in got["conflicts"]} == {"app"}, got
    assert b"resolve" not in w.snap("promote", "try", *to(out)).err, "it is for conflicts with the project"
    w.snap("promote", "-n", "try", *to(out)).ends(5)
    same(picture(out), before)
    promote(w, "try", "--conflict", "theirs", *to(out))
    assert (out / "app").stat().st_size == 70_004
    undo(w)
    same(picture(out), before)
    refused(w, 5, "E_CONFLICT", "promote", "try", *to(out))  # what was undone is nobody's permission
    (out / "app").unlink()
    promote(w, "try", *to(out))
    (out / "app").write_text("edited there\n")
    promote(w, "try", *to(out, "build/site"))
    (top / "build" / "app").write_text("new\n")
    refused(w, 5, "E_CONFLICT", "promote", "try", *to(out, "build/app"))
    assert (out / "app").read_text() == "edited there\n", "another promotion in between is no permission either"
    (out / "app").unlink()
    promote(w, "try", *to(out, "build/app"))
    assert (out / "app").read_text() == "new\n", "what was removed comes anew"
    (out / "app").write_text("edited again\n")
    refused(w, 5, "E_CONFLICT", "undo")
    (top / "same").write_text("the same\n")
    (out / "same").write_text("the same\n")
    (top / "new").write_text("new\n")
    assert [p["path"] for p in promote(w, "try", *to(out, "same", "new"))["changed"]] == ["new"]
    (top / "same").write_text("not the same\n")
    refused(w, 5, "E_CONFLICT", "promote", "try", *to(out, "same"))  # it was there before, so it is somebody's


@live_test
def an_undo_of_an_older_one_leaves_the_newer_alone(w: World):
    _, out = build(w)
    first = promote(w, "try", *to(out, "build/app"))["promotion"]
    promote(w, "try", *to(out, "build/site"))
    undo(w, first)
    assert sorted(p.name for p in out.iterdir()) == ["other", "site"]
    undo(w)
    assert [p.name for p in out.iterdir()] == ["other"]
    w.snap("undo").fails(4, "nothing to undo")


@live_test
def checks_run_on_the_clone_and_the_guard_looks_at_where_it_goes(w: World):
    top, out = build(w)
    got = refused(w, 8, "E_CHECK_FAILED", "promote", "try", "--check", "test ! -e build/app", *to(out))
    assert got["checks"][0]["exit_code"] == 1
    got = promote(w, "try", "--check", "test -x build/app", "--check", "test -e README.md || test -d .", *to(out))
    assert [c["exit_code"] for c in got["checks"]] == [0, 0]
    assert log(w)["receipts"][0]["checks"][0]["cmd"] == "test -x build/app"
    undo(w)
    (top / ".bashrc").write_text("evil\n")
    (top / "pre-commit").write_text("evil\n")
    (top / "away").symlink_to("/etc/passwd")
    (top / "suid").write_text("x")
    (top / "suid").chmod(0o4755)
    hooks = w.home / "elsewhere" / ".git" / "hooks"
    hooks.mkdir(parents=True)
    for words, rule in ((to(out, ".bashrc"), "shell"), (to(hooks, "pre-commit"), "git"), (to(out, "away"), "link"),
                        (to(out, "suid"), "set-id")):
        held = refused(w, 7, "E_REFUSED", "promote", "try", *words)["held"]
        assert [h["rule"] for h in held] == [rule], held
    assert list(hooks.iterdir()) == [] and [p.name for p in out.iterdir()] == ["other"]
    promote(w, "try", "--allow", "pre-commit", *to(hooks, "pre-commit"))
    assert (hooks / "pre-commit").read_text() == "evil\n"


@live_test
def places_and_words_that_are_refused_change_nothing(w: World):
    top, out = build(w)
    link, inner = w.home / "link", w.home / "real" / "inner"
    inner.mkdir(parents=True)
    link.symlink_to(inner.parent)
    other = w.home / "other-project"
    (other / "sub").mkdir(parents=True)
    w.ok("init", cwd=other)
    (top / "build" / other.name).write_text("would replace it\n")
    (top / "two").mkdir()
    (top / "two" / "app").write_text("another app\n")
    for status, said, words in (
            (7, f"name '{inner}'", to(link / "inner")), (7, "is a symlink", to(link)),
            (7, "in the project itself", to(w.project)), (7, "in the project itself", to(w.project / "sub")),
            (7, f"in the project '{other}'", to(other / "sub")),
            (7, "is or holds the project", to(w.home, f"build/{other.name}")),
            (7, "inside the store", to(w.store)), (7, "inside the store", to(top)),
            (4, "No such file", to(w.home / "nowhere")), (4, "no directory", to(out / "other")),
            (4, "no pattern", to(out, "build/*")), (2, "needs '--path'", ["--to", str(out)]),
            (2, "all of the clone", to(out, ".")), (2, "top of the project", to(out, "/etc/passwd")),
            (2, "would both become", to(out, "build/app", "two/app")),
            (2, "goes with 'build' already", to(out, "build", "build/site")), (2, "git's own", to(out, ".git")),
            (2, "--git does not go", ["--git", *to(out)]), (2, "--exclude does not go", ["--exclude", "x", *to(out)]),
            (2, "--continue does not go", ["--continue", *to(out)]), (2, "is empty", ["--path", "build/app", "--to", ""])):
        w.snap("promote", "try", *words).fails(status, said)
    assert [p.name for p in out.iterdir()] == ["other"] and list(inner.iterdir()) == []
    assert log(w)["receipts"] == []
    projects = w.ok("projects", "--json").json("snap.projects/1")["projects"]
    assert {p["path"] for p in projects} == {str(w.project), str(other)}, "a target is no project"
    promote(w, "try", *to(os.path.relpath(out, w.project)))
    assert {p["path"] for p in w.ok("projects", "--json").json("snap.projects/1")["projects"]} == \
        {str(w.project), str(other)}
    assert w.snap("rollback", log(w)["receipts"][0]["before"], "--json").status != 0, "nor a state of the project"
    w.ok("rm", "-f", "try")
    w.ok("projects", "forget", str(w.project))
    w.ok("projects", "forget", str(other))
    assert w.ok("gc", "--json").json("snap.gc/1")["kept"] == 0, "nothing of it stays in the store"
    assert (out / "app").exists()


def targets(w):
    """Directories that the store has as targets, by rows of kind 1 whose value says so."""
    db = sqlite3.connect(w.store / "meta.db")
    got = [value for value, in db.execute("SELECT value FROM ref WHERE kind = 1")]
    db.close()
    return sum(str(w.home / "out").encode() in value for value in got)


class Swapping:
    """Exchanges two names as fast as it can, until the end."""

    def __init__(self, a, b):
        parent, call = os.getpid(), ctypes.CDLL(None).renameat2
        self.pid = os.fork()
        while self.pid == 0:
            for _ in range(50):
                call(-100, os.fsencode(a), -100, os.fsencode(b), 2)
            if os.getppid() != parent:
                os._exit(0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@live_test
def a_directory_that_changes_places_with_a_link_is_never_followed(w: World):
    top, out = build(w)
    victim, pub = w.home / "victim", w.home / "pub"
    for d in (victim / "out", pub / "out"):
        d.mkdir(parents=True)
    (w.home / "link").symlink_to(victim)
    fd = os.open(pub / "out", os.O_RDONLY)
    with Swapping(pub, w.home / "link"):
        for i in range(40):
            (top / "build" / "app").write_text(f"turn {i}\n")
            got = w.snap("promote", "try", "--yes", *to(pub / "out", "build/app"))
            # Done, or refused in one of many ways, as the moment has it.
            assert got.status != 13 and got.status < 125, got
            assert not os.listdir(victim / "out"), (i, os.listdir(victim / "out"), got)
            # Both lack it, so that what is planned for the one would do for the other.
            if "app" in os.listdir(fd):
                os.unlink("app", dir_fd=fd)
    os.close(fd)


@live_test
def a_directory_that_its_owner_may_not_write_stays_so_and_nothing_is_left_in_it(w: World):
    _, out = build(w)
    out.chmod(0o555)
    try:
        promote(w, "try", *to(out, "build/app"))
        assert sorted(os.listdir(out)) == ["app", "other"] and out.stat().st_mode & 0o777 == 0o555, os.listdir(out)
        assert list((w.store / "journal").iterdir()) == []
        undo(w)
        assert os.listdir(out) == ["other"] and out.stat().st_mode & 0o777 == 0o555, os.listdir(out)
        assert list((w.store / "journal").iterdir()) == []
    finally:
        out.chmod(0o755)


@live_test
def a_promotion_that_fails_leaves_no_target_behind(w: World):
    top, out = build(w)
    w.stop()
    assert targets(w) == 0
    got = w.snap("promote", "try", "--yes", "--check", "false", *to(out))
    assert got.status == 8, got
    w.stop()
    assert targets(w) == 0, "what changed nothing is not remembered"
    promote(w, "try", *to(out, "build/site"))
    w.ok("rm", "try", "--force")
    w.stop()
    assert targets(w) == 1
    # As a version left it that registered the target first and died.
    db = sqlite3.connect(w.store / "meta.db")
    db.execute("DELETE FROM ref WHERE kind IN (2, 5, 9)")
    db.commit()
    db.close()
    w.ok("gc")
    w.stop()
    assert targets(w) == 0 and (out / "site").is_dir()


@live_test
def whenever_cowfsd_is_killed_the_directory_is_before_or_after(w: World):
    if not shutil.which("strace"):
        raise Skip("there is no strace")
    _, out = build(w)
    promote(w, "try", *to(out, "build/app"))
    w.take("try")
    before = picture(out)
    promote(w, "try", *to(out, "build/site"))
    after = picture(out)
    undo(w)
    same(picture(out), before)
    ends = set()
    for name, n in random.Random(7).sample([(c, n) for c in CALLS for n in (1, 2, 3, 5, 8)], 16):
        pid = daemon(w)
        act = subprocess.Popen(["strace", "-f", "-p", str(pid), "-o", "/dev/null", "-e", f"trace={name}",
                                "-e", f"inject={name}:signal=KILL:when={n}"], stderr=subprocess.PIPE)
        if b"attached" not in act.stderr.readline():
            act.communicate()
            raise Skip("strace cannot attach here")
        done = subprocess.run([SNAP, "promote", "try", "--json", *to(out, "build/site")], cwd=w.project, env=w.env,
                              check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        act.kill()
        act.communicate()
        assert done.returncode == 0 or gone(pid, 20), done
        w.ok("start")
        now = picture(out)
        assert now in (before, after), (name, n, now)
        assert done.returncode != 0 or now == after and json.loads(done.stdout)["promotion"], done
        assert list((w.store / "journal").iterdir()) == [] and not list(out.glob(".snapcow-stage-*")), (name, n)
        ends.add(now == after)
        if now == after:
            undo(w)
            same(picture(out), before)
    assert ends == {False, True}, ends
    assert w.ok("check", "--json").json("snap.check/1")["errors"] == []


@live_test
def an_agent_needs_a_person_for_it_even_with_leave_to_promote(w: World):
    _, out = build(w)
    with Client(w, "--allow-promote") as c:
        c.fails("snap_promote", "a person must agree", f"--to={out}", clone="try", path=["build/app"], to=str(out))
        got = c.ok("snap_promote", clone="try", path=["build/app"], to=str(out), dry_run=True)
        assert got["to"] == str(out) and [p["path"] for p in got["changed"]] == ["app"], got
    assert [p.name for p in out.iterdir()] == ["other"]
    with Client(w, can_ask=True) as c:
        got = c.ok("snap_promote", clone="try", path=["build/app"], to=str(out))
        assert got["promotion"] and (out / "app").exists(), got


if __name__ == "__main__":
    sys.exit(livetest.main())

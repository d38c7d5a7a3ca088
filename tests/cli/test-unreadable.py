"""What cannot be read: refused with a hint, or left as it is, and never taken for deleted."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import live_test  # noqa: E402
from snaptest import SNAP, Skip, World, gone, main  # noqa: E402


def as_nobody(w):
    """A function like w.snap() for an ordinary user, to whom the project belongs: root can read everything."""
    if os.geteuid() != 0:
        raise Skip("only root can prepare it")
    nobody = pwd.getpwnam(livetest.ORDINARY)
    livetest.open_fuse_for_all()
    w.top.chmod(0o755)
    program = w.top / "snap"
    shutil.copy(SNAP, program)
    for path in (w.top, w.home, w.project, *w.project.rglob("*")):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    return lambda *args: w.snap(*args, program=program, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[])


def close(path):
    """Nobody but root reads it from now on."""
    os.chown(path, 0, 0)
    path.chmod(0o600)


def reopen(w, *names):
    """As they were before close()."""
    for name in names:
        os.chown(w.project / name, w.project.stat().st_uid, w.project.stat().st_gid)
        (w.project / name).chmod(0o644)


def prepare(w, *closed):
    """As as_nobody(), for a project with a clone `try` of its files, of which these are closed afterwards."""
    snap = as_nobody(w)
    for name in closed:
        path = w.project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("precious\n")
        path.chmod(0o644)
        for made in (path.parent, path):
            os.chown(made, w.project.stat().st_uid, w.project.stat().st_gid)
    snap("clone", "-n", "try").ends(0)
    for name in closed:
        close(w.project / name)
    return snap, w.store / "clones" / "try"


def change(snap, script):
    snap("run", "--no-snapshot", "try", "--", "sh", "-c", script).ends(0)


def skips(result, *names):
    """What was left out is said."""
    for name in names:
        assert f"'{name}': ".encode() in result.err and b"left out" in result.err, result
    return result


@live_test
def each_command_that_captures_the_project_names_the_option_and_has_it(w: World):
    snap, _ = prepare(w, "src/closed")
    change(snap, "echo second >README.md")
    for command in (("run", "--", "cat", "README.md"), ("try", "--discard", "--", "true"), ("rebase", "try"),
                    ("promote", "try")):
        code = 125 if command[0] in ("run", "try") else 1
        text = snap(*command).fails(code, "src/closed", "Permission denied").err.decode()
        assert f"{command[0]} --skip-unreadable" in text, text
        skips(snap(command[0], "--skip-unreadable", *command[1:]).ends(0), "src/closed")
    text = snap("undo").fails(1, "src/closed").err.decode()
    assert "undo --skip-unreadable" in text, text
    skips(snap("undo", "--skip-unreadable").ends(0), "src/closed")
    assert (w.project / "README.md").read_text() == "first\n"
    assert (w.project / "src" / "closed").read_text() == "precious\n"
    snap("run", "--skip-unreadable", "try", "--", "true").fails(2, "name no clone")
    snap("stop", "--force").ends(0)


@live_test
def a_run_and_a_try_do_without_it(w: World):
    snap, _ = prepare(w, "src/closed")
    got = snap("run", "--skip-unreadable", "--", "ls", "src").ends(0)
    assert got.out == b"main.c\n", got
    skips(snap("try", "--skip-unreadable", "--promote-if-ok", "--", "sh", "-c", "echo third >README.md").ends(0),
          "src/closed")
    assert (w.project / "README.md").read_text() == "third\n"
    snap("stop", "--force").ends(0)


@live_test
def a_promotion_leaves_it_though_the_clone_changed_or_deleted_it(w: World):
    snap, _ = prepare(w, "changed", "deleted", "dir/inside")
    change(snap, "echo second >README.md; echo mine >changed; rm -r deleted dir")
    got = skips(snap("promote", "--json", "--skip-unreadable", "try").ends(0), "changed", "deleted", "dir/inside")
    assert [p["path"] for p in got.json("snap.promote/1")["changed"]] == ["README.md"], got
    assert (w.project / "README.md").read_text() == "second\n"
    for name in ("changed", "deleted", "dir/inside"):
        assert (w.project / name).read_text() == "precious\n", name
    reopen(w, "changed", "deleted", "dir/inside")
    # They are still the clone's own changes, and land once they can be compared.
    left = snap("promote", "--json", "try").ends(0).json("snap.promote/1")["changed"]
    assert {p["path"] for p in left} >= {"changed", "deleted", "dir/inside"}, left
    assert (w.project / "changed").read_text() == "mine\n" and not (w.project / "deleted").exists()
    assert not (w.project / "dir").exists()
    snap("stop", "--force").ends(0)


@live_test
def what_was_never_read_stays_where_the_clone_put_something_or_removed_all(w: World):
    snap = as_nobody(w)
    for name in ("new", "src/closed"):
        (w.project / name).write_text("precious\n")
        close(w.project / name)
    snap("clone", "--skip-unreadable", "-n", "try").ends(0)
    change(snap, "echo mine >new; rm -r src")
    skips(snap("promote", "--skip-unreadable", "try").ends(0), "new", "src/closed")
    assert (w.project / "new").read_text() == (w.project / "src" / "closed").read_text() == "precious\n"
    assert not (w.project / "src" / "main.c").exists()
    snap("stop", "--force").ends(0)


@live_test
def what_a_try_put_there_is_kept_in_its_clone(w: World):
    snap, _ = prepare(w, "src/closed")
    script = "echo mine >src/closed; echo third >README.md"
    got = skips(snap("try", "--skip-unreadable", "--promote-if-ok", "--", "sh", "-c", script).ends(0), "src/closed")
    assert b"left alone: src/closed, which cannot be read here" in got.out + got.err, got
    assert (w.project / "README.md").read_text() == "third\n"
    assert (w.project / "src" / "closed").read_text() == "precious\n"
    (name,) = [c["clone"] for c in snap("list", "--json").ends(0).json("snap.list/1")["clones"] if c["clone"] != "try"]
    assert snap("run", name, "--", "cat", "src/closed").ends(0).out == b"mine\n"
    snap("stop", "--force").ends(0)


@live_test
def a_rollback_to_what_a_rebase_took_removes_none_of_it(w: World):
    snap, _ = prepare(w, "src/closed")
    (w.project / "README.md").write_text("second\n")
    skips(snap("rebase", "--skip-unreadable", "try").ends(0), "src/closed")
    listed = snap("log", "--all", "--json").ends(0).json("snap.log/1")["snapshots"]
    (onto,) = [s for s in listed if s["message"] == "rebase of try"]
    files = [p for p in w.project.rglob("*") if p.is_file()]
    assert (onto["files"], onto["bytes"]) == (len(files), sum(p.stat().st_size for p in files)), onto
    onto = onto["snapshot"]
    (w.project / "README.md").write_text("third\n")
    os.chown(w.project / "src" / "closed", w.project.stat().st_uid, w.project.stat().st_gid)
    snap("rollback", onto).ends(0)
    assert (w.project / "README.md").read_text() == "second\n"
    assert (w.project / "src" / "closed").read_text() == "precious\n"
    snap("stop", "--force").ends(0)


def promoted(snap, *words):
    """What a promotion changes, by path."""
    got = snap("promote", "--json", *words).ends(0).json("snap.promote/1")
    return {p["path"]: p["status"] for p in got["changed"]}


@live_test
def a_clone_rolled_back_to_a_snapshot_without_it_keeps_it(w: World):
    snap, _ = prepare(w)
    (w.project / "closed").write_text("precious\n")
    reopen(w, "closed")
    snap("clone", "-n", "other").ends(0)
    snap("clone", "-n", "lost").ends(0)
    change(snap, "echo second >README.md")
    close(w.project / "closed")
    skips(snap("promote", "--skip-unreadable", "try").ends(0), "closed")
    for name in ("other", "lost"):
        snap("run", name, "--", "sh", "-c", "echo mine >made; echo mine >closed").ends(0)
    # By a path, too, though that names it.
    snap("rollback", "lost", "@", "--path", "/closed", "--path", "/README.md").ends(0)
    snap("rollback", "other", "@").ends(0)
    shown = "cat README.md closed; test -e made && echo made"
    assert snap("run", "other", "--", "sh", "-c", shown).ends(1).out == b"second\nmine\n"
    assert snap("run", "lost", "--", "sh", "-c", shown).ends(0).out == b"second\nmine\nmade\n"
    reopen(w, "closed")
    for name in ("other", "lost"):
        assert "deleted" not in promoted(snap, "--dry-run", name).values()
    snap("promote", "other").ends(0)
    assert (w.project / "closed").read_text() == "mine\n"
    snap("stop", "--force").ends(0)


@live_test
def a_clone_rolled_back_to_one_that_lacks_too_much_to_be_named_loses_nothing(w: World):
    snap, _ = prepare(w)
    names = [f"closed-{i}" for i in range(1001)]
    for name in (*names, "gone"):
        (w.project / name).write_text("precious\n")
        reopen(w, name)
    snap("clone", "-n", "other").ends(0)
    for name in names:
        close(w.project / name)
    (w.project / "gone").unlink()
    (w.project / "README.md").write_text("second\n")
    snap("snapshot", "--skip-unreadable", "-m", "most").ends(0)
    snap("rollback", "other", "@").ends(0)
    got = snap("run", "other", "--", "sh", "-c", "cat README.md; ls closed-* gone | wc -l").ends(0).out
    assert got == b"second\n1002\n", got
    reopen(w, *names)
    assert "deleted" not in promoted(snap, "--dry-run", "other").values()
    snap("stop", "--force").ends(0)


@live_test
def a_part_names_what_in_it_could_not_be_read(w: World):
    snap = as_nobody(w)
    for name in ("src/closed", "src/gone"):
        (w.project / name).write_text("precious\n")
        reopen(w, name)
    snap("clone", "--path", "src", "-n", "a").ends(0)
    close(w.project / "src" / "closed")
    (w.project / "src" / "gone").unlink()
    skips(snap("clone", "--path", "src", "--skip-unreadable", "-n", "b").ends(0), "src/closed")
    base = snap("status", "--json", "b").ends(0).json("snap.status/1")["base"]
    snap("rollback", "a", base).ends(0)
    reopen(w, "src/closed")
    assert snap("run", "a", "--", "ls", "src").ends(0).out == b"closed\nmain.c\n"
    assert promoted(snap, "--dry-run", "a") == {}
    (w.project / "src" / "main.c").write_text("changed\n")
    snap("rollback", base, "--path", "/src").ends(0)
    assert (w.project / "src" / "closed").read_text() == "precious\n"
    assert (w.project / "src" / "main.c").read_text() != "changed\n"
    snap("stop", "--force").ends(0)


@live_test
def a_clones_own_states_are_whole(w: World):
    snap = as_nobody(w)
    (w.project / "closed").write_text("precious\n")
    close(w.project / "closed")
    snap("clone", "--skip-unreadable", "-n", "try").ends(0)
    change(snap, "echo second >README.md")
    snap("snapshot", "try", "-m", "own").ends(0)
    change(snap, "echo mine >closed")
    snap("rollback", "try").ends(0)
    assert snap("run", "try", "--", "ls", "closed").ends(2).out == b""
    snap("stop", "--force").ends(0)


@live_test
def a_rebase_takes_it_for_what_the_clones_base_has(w: World):
    closed = ("gone", "kept", "edited")
    snap, _ = prepare(w, *closed)
    change(snap, "rm gone; echo mine >edited")
    (w.project / "README.md").write_text("second\n")
    skips(snap("rebase", "--skip-unreadable", "try").ends(0), *closed)
    assert snap("diff", "--name-status", "try").ends(0).out.split() == [b"M", b"edited", b"D", b"gone"]
    reopen(w, *closed)
    (w.project / "kept").unlink()
    assert promoted(snap, "try") == {"gone": "deleted", "edited": "modified"}
    assert not (w.project / "gone").exists() and not (w.project / "kept").exists()
    assert (w.project / "edited").read_text() == "mine\n"
    snap("stop", "--force").ends(0)


@live_test
def a_clone_goes_back_to_its_rebase_and_has_it(w: World):
    snap, _ = prepare(w, "src/closed")
    change(snap, "echo mine >src/closed")
    (w.project / "README.md").write_text("second\n")
    skips(snap("rebase", "--skip-unreadable", "try").ends(0), "src/closed")
    snap("rollback", "try").ends(0)
    assert snap("run", "try", "--", "cat", "README.md", "src/closed").ends(0).out == b"second\nprecious\n"
    reopen(w, "src/closed")
    assert promoted(snap, "try") == {}
    snap("stop", "--force").ends(0)


@live_test
def a_rebase_names_what_its_base_lacked_and_what_is_new(w: World):
    snap, _ = prepare(w)
    real = w.top / "real"
    w.project.rename(real)
    env = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory",
           "GIT_CONFIG_VALUE_0": "*"}
    for words in (("init", "-q"), ("add", "."), ("-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "one"),
                  ("worktree", "add", "-q", str(w.project))):
        subprocess.run(["git", "-C", str(real), *words], check=True, env={**os.environ, **env})
    for path in (real, *real.rglob("*"), w.project, *w.project.rglob("*")):
        os.chown(path, w.home.stat().st_uid, w.home.stat().st_gid)
    for name in ("old", "new"):
        (w.project / name).write_text("precious\n")
        reopen(w, name)
    close(w.project / "old")
    skips(snap("clone", "--skip-unreadable", "-n", "grafted").ends(0), "old")
    (w.project / "new").write_text("newer\n")
    close(w.project / "new")
    (w.project / "README.md").write_text("second\n")
    skips(snap("rebase", "--skip-unreadable", "grafted").ends(0), "old", "new")
    listed = snap("log", "--all", "--json").ends(0).json("snap.log/1")["snapshots"]
    (onto,) = [s["snapshot"] for s in listed if s["message"] == "rebase of grafted"]
    (w.project / "README.md").write_text("third\n")
    reopen(w, "old", "new")
    snap("rollback", onto).ends(0)
    assert (w.project / "README.md").read_text() == "second\n"
    assert (w.project / "old").read_text() == "precious\n"
    assert (w.project / "new").read_text() == "newer\n"
    snap("stop", "--force").ends(0)


@live_test
def somebody_elses_directory_in_the_place_of_ours_keeps_nothing_from_being_taken_back(w: World):
    """cowfsd dies before it makes its directory, and another user makes one there that nobody else may enter."""
    snap, _ = prepare(w)
    text = (w.project / "README.md").read_text()
    change(snap, "rm README.md; mkdir -p made/deep; echo mine >made/deep/file")
    for pid in w.keepers():
        os.kill(pid, signal.SIGKILL)
        assert gone(pid, 20)
    cowfsd, = w.daemons()
    tracer = subprocess.Popen(["strace", "-f", "-p", str(cowfsd), "-o", "/dev/null", "-e", "trace=mkdirat", "-e",
                               "inject=mkdirat:signal=KILL:when=2"], stderr=subprocess.PIPE)
    if b"attached" not in tracer.stderr.readline():
        raise Skip("strace cannot attach")
    promoting = threading.Thread(target=snap, args=("promote", "try"), daemon=True)
    promoting.start()
    assert gone(cowfsd, 60), "the first mkdirat makes the stage"
    (w.project / "made").mkdir(mode=0o700)
    (w.project / "made" / "theirs").write_text("theirs\n")
    tracer.communicate(timeout=60)
    promoting.join(60)
    snap("start").ends(0)
    snap("list").ends(0)
    assert (w.project / "README.md").read_text() == text
    assert os.listdir(w.project / "made") == ["theirs"] and (w.project / "made").stat().st_uid == 0
    assert not list(w.project.glob(".snapcow-stage-*")) and not list((w.store / "journal").glob("*"))
    assert "'made' is left: it is somebody else's" in (w.store / "cowfsd.log").read_text()
    snap("stop", "--force").ends(0)


@live_test
def what_is_left_below_an_unreadable_directory_is_told_once(w: World):
    snap, _ = prepare(w, "cache/one", "cache/two", "cache/deep/three")
    change(snap, "echo second >README.md; for i in one two deep/three four; do echo mine >cache/$i; done")
    reopen(w, "cache/one", "cache/two", "cache/deep/three")
    close(w.project / "cache")
    got = skips(snap("promote", "--json", "--skip-unreadable", "try").ends(0), "cache").json("snap.promote/1")
    assert [p["path"] for p in got["left"]] == ["cache"] and [p["path"] for p in got["changed"]] == ["README.md"], got
    snap("stop", "--force").ends(0)


@live_test
def a_rebase_keeps_what_the_clone_has_of_it(w: World):
    snap, _ = prepare(w, "src/closed", "src/mine")
    change(snap, "echo mine >src/mine")
    (w.project / "README.md").write_text("second\n")
    skips(snap("rebase", "--skip-unreadable", "try").ends(0), "src/closed", "src/mine")
    assert snap("run", "try", "--", "cat", "README.md", "src/closed", "src/mine").ends(0).out == \
        b"second\nprecious\nmine\n"
    snap("stop", "--force").ends(0)


@live_test
def an_undo_that_would_change_it_is_refused(w: World):
    snap, _ = prepare(w)
    change(snap, "echo second >README.md")
    snap("promote", "try").ends(0)
    close(w.project / "README.md")
    text = skips(snap("undo", "--skip-unreadable").ends(1), "README.md").err.decode()
    assert "error: nothing is undone: 'README.md' is among the changes and cannot be read" in text, text
    assert (w.project / "README.md").read_text() == "second\n"
    snap("stop", "--force").ends(0)


@live_test
def an_undo_of_a_rollback_leaves_what_could_not_be_read_then(w: World):
    snap = as_nobody(w)
    for names in (["closed"], [f"closed-{i}-{'long' * 30}" for i in range(600)]):  # more than a record names
        for name in names:
            (w.project / name).write_text("precious\n")
            reopen(w, name)
        (w.project / "README.md").write_text("first\n")
        snap("snapshot", "-m", "all").ends(0)
        (w.project / "README.md").write_text("second\n")
        for name in names:
            close(w.project / name)
        for back in (["undo", "--skip-unreadable"], None):  # the first beside what still cannot be read
            skips(snap("rollback", "--skip-unreadable", "@").ends(0), names[0])
            assert (w.project / "README.md").read_text() == "first\n"
            if back:
                snap(*back).ends(0)
                assert (w.project / "README.md").read_text() == "second\n"
        reopen(w, *names)
        got = snap("undo").ends(0)
        assert f"left alone: {names[0]}, which could not be read then" in got.out.decode(), got
        assert (w.project / "README.md").read_text() == "second\n"
        for name in names:
            assert (w.project / name).read_text() == "precious\n"
    snap("stop", "--force").ends(0)


@live_test
def an_undo_removes_what_a_promotion_added_beside_much_that_could_not_be_read(w: World):
    snap, _ = prepare(w)
    change(snap, "echo mine >made")
    for i in range(600):
        name = f"closed-{i}-{'long' * 30}"
        (w.project / name).write_text("precious\n")
        close(w.project / name)
    snap("promote", "--skip-unreadable", "try").ends(0)
    assert (w.project / "made").exists()
    snap("undo", "--skip-unreadable").ends(0)
    assert not (w.project / "made").exists()
    snap("stop", "--force").ends(0)


@live_test
def a_clones_snapshot_lacks_what_its_base_lacks(w: World):
    snap, _ = prepare(w)
    change(snap, "echo mine >made")
    (w.project / "late").write_text("precious\n")
    close(w.project / "late")
    skips(snap("rebase", "--skip-unreadable", "try").ends(0), "late")
    snap("snapshot", "try", "-m", "own").ends(0)
    reopen(w, "late")
    snap("clone", "-n", "other").ends(0)
    listed = snap("log", "--all", "--json").ends(0).json("snap.log/1")["snapshots"]
    (own,) = [s["snapshot"] for s in listed if s["message"] == "own"]
    snap("rollback", "other", own).ends(0)
    assert snap("run", "other", "--", "cat", "made", "late").ends(0).out == b"mine\nprecious\n"
    snap("stop", "--force").ends(0)


@live_test
def a_clone_has_back_what_it_made_where_its_base_knows_nothing(w: World):
    snap, _ = prepare(w, "late")
    snap("clone", "--skip-unreadable", "-n", "c").ends(0)
    snap("run", "--no-snapshot", "c", "--", "sh", "-c", "echo mine >late").ends(0)
    snap("snapshot", "c", "-m", "own").ends(0)
    listed = snap("log", "--all", "--json").ends(0).json("snap.log/1")["snapshots"]
    (own,) = [s["snapshot"] for s in listed if s["message"] == "own"]
    (w.project / "README.md").write_text("second\n")
    snap("rebase", "--skip-unreadable", "c").ends(0)
    snap("run", "--no-snapshot", "c", "--", "sh", "-c", "echo damaged >late").ends(0)
    snap("rollback", "c", own, "--path", "late").ends(0)
    assert snap("run", "c", "--", "cat", "README.md", "late").ends(0).out == b"second\nmine\n"
    snap("stop", "--force").ends(0)


@live_test
def what_is_too_much_to_be_named_is_refused(w: World):
    snap, _ = prepare(w)
    change(snap, "echo second >README.md")
    for i in range(1001):
        (w.project / f"closed-{i}").write_text("precious\n")
        close(w.project / f"closed-{i}")
    for command in ("promote", "rebase"):
        text = snap(command, "--skip-unreadable", "try").ends(1).err.decode()
        assert "too much cannot be read to leave it out by name" in text, text
    assert (w.project / "README.md").read_text() == "first\n"
    snap("stop", "--force").ends(0)


@live_test
def a_state_that_lacks_what_could_not_be_read_is_not_pushed(w: World):
    snap, _ = prepare(w, "src/closed", "src/other")
    depot = f"dir:{w.top}/depot:main"
    snap("snapshot", "--skip-unreadable", "-t", "partial").ends(0)
    snap("clone", "-n", "lacking", "--from", "partial").ends(0)
    for state in ("partial", "lacking"):
        snap("push", state, depot).fails(2, f"'{state}' lacks 'src/closed'", "delete it elsewhere", "make it readable")
    assert not (w.top / "depot").exists()
    reopen(w, "src/closed", "src/other")
    snap("push", depot).ends(0)


if __name__ == "__main__":
    sys.exit(livetest.main())

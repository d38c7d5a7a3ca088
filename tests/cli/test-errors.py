"""Every way to fail: the exit code, the sentence, the hints, and what is left untouched."""

import contextlib
import fcntl
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys

from snaptest import SNAP, Skip, World, flip, main, test, unescape

NOBODY = 65534


# --- usage ----------------------------------------------------------------------------------

@test
def an_unknown_command_is_usage_and_a_slip_is_guessed(w: World):
    w.snap("lgo").fails(2, "unknown command 'lgo', did you mean 'log'?", "hint: snapcow help")
    w.snap("frobnicate").fails(2, "unknown command 'frobnicate'")
    w.snap("--json", "lgo").fails_json(2, "E_USAGE")
    w.snap("lgo", "--json").fails_json(2, "E_USAGE")
    w.snap("help", "lgo").fails(2, "did you mean 'log'?")


@test
def no_command_is_usage(w: World):
    w.snap().fails(2, "hint: snapcow help")
    w.snap("--json").fails_json(2, "E_USAGE")
    w.snap("-C", str(w.project)).fails(2)


@test
def an_unknown_option_is_usage_wherever_it_stands(w: World):
    w.snap("--jsn", "log").fails(2, "did you mean '--json'?", "hint: snapcow help\n")
    w.snap("log", "--jsn").fails(2, "did you mean '--json'?", "hint: snapcow help log\n")
    w.snap("log", "-x").fails(2, "-x")
    w.snap("log", "--bogus", "--json").fails_json(2, "E_USAGE")
    w.snap("log", "--json", "--bogus").fails_json(2, "E_USAGE")
    w.snap("--bogus", "log", "--json").fails_json(2, "E_USAGE")
    w.snap("snapshot", "-m").fails(2, "'-m' needs a value")
    w.snap("log", "-n", "many").fails(2, "many")


@test
def too_few_or_too_many_words_are_usage(w: World):
    w.snap("show").fails(2, "'show' needs STATE[:PATH]", "hint: snapcow help show")
    w.snap("show", "@", "x").fails(2, "'x'")
    w.snap("init", "a", "b").fails(2, "'b'")
    w.snap("stats", "x").fails(2, "'x'")
    w.snap("gc", "x", "--json").fails_json(2, "E_USAGE")


@test
def a_tag_that_would_read_as_something_else_is_usage(w: World):
    for bad in ("", "a b", "a:b", "a@b", "-a", ".a", "x" * 129, "0123456789abcdef", "a\nb"):
        w.snap("snapshot", f"--tag={bad}").fails(2, "tag")
    assert not w.store.exists(), "nothing may be taken under a bad name"


@test
def a_state_that_is_none_is_usage(w: World):
    w.take()
    for bad in ("", "@x", "@-", "@-1x", ":README.md"):
        w.snap("show", bad).fails(2)
    w.snap("show", "@x", "--json").fails_json(2, "E_USAGE")


# --- not found ------------------------------------------------------------------------------

@test
def where_there_is_no_project_nothing_is_found(w: World):
    for args in (("show", "@"), ("show", "@:README.md")):
        w.snap(*args).fails(4, str(w.project), "hint: snapcow init")
        w.snap(*args, "--json").fails_json(4, "E_NO_PROJECT")
    for name in ("stats", "check", "gc"):
        w.snap(name).fails(4, str(w.store), "hint: snapcow init")
        w.snap(name, "--json").fails_json(4, "E_NOT_FOUND")
    assert not w.store.exists(), "looking must not make a store"


@test
def a_project_of_which_nothing_is_kept_yet_is_no_failure(w: World):
    for args in (("list",), ("status",), ("log",), ("log", "--all"), ("status", "--others"),
                 ("runs",), ("experiment", "list")):
        result = w.ok(*args)
        assert b" yet: the project would be " in result.out and result.err == b"", str(result)
        assert f"{w.project}\n".encode() in result.out, str(result)
        assert w.ok("-q", *args).out == b""
    for name, key in (("list", "clones"), ("log", "snapshots")):
        got = w.ok(name, "--json").json(f"snap.{name}/1", "project", key)
        assert got[key] == [] and got["project"] == str(w.project), got
    got = w.ok("status", "--json").json("snap.status/1", "project", "clone", "base")
    assert got["clones"] == 0 and got["base"] is None and got["project"] == str(w.project), got
    assert w.ok("projects").out == b"no projects yet\n"
    assert not w.store.exists(), "looking must not make a store"
    w.snap("list", cwd=w.home).fails(4, "hint: snapcow init")
    w.snap("log", "nope").fails(4)


@test
def the_projects_of_a_store_are_listed(w: World):
    other = w.top / "work" / "other"
    other.mkdir()
    w.take()
    w.take("-C", str(other))
    other.rmdir()
    got = w.ok("projects", "--json").json("snap.projects/1", "projects")["projects"]
    assert [(p["path"], p["missing"], p["snapshots"], p["clones"]) for p in got] == [
        (str(other), True, 1, 0), (str(w.project), False, 1, 0)], got
    assert b"(there is no such directory)" in w.ok("projects").out
    assert w.ok("-q", "projects").out.decode().split() == [str(other), str(w.project)]


@test
def a_project_is_forgotten_with_all_that_is_kept_of_it(w: World):
    other = w.top / "work" / "other"
    other.mkdir()
    stays = w.take()
    (other / "blob").write_bytes(os.urandom(100_000))
    w.take("-C", str(other), "-t", "v1")
    w.ok("clone", "-n", "mine", "--from", "v1", cwd=other)
    w.snap("projects", "forget", str(other)).fails(11, "'mine'", "--force")
    assert len(w.ok("projects", "--json").json("snap.projects/1")["projects"]) == 2
    got = w.ok("projects", "--json", "forget", "--force", "../other").json("snap.projects/1", "act")
    assert got["act"] == "forget" and got["projects"][0]["path"] == str(other), got
    assert w.ok("-q", "projects").out.decode().split() == [str(w.project)]
    assert w.ok("gc", "--json").json("snap.gc/1")["freed"] > 100_000
    w.ok("check")
    assert (other / "blob").stat().st_size == 100_000, "the directory is not touched"
    w.take("-C", str(other), "-t", "v1")
    assert w.ok("-q", "log").out.decode().split() == [stays]
    w.snap("projects", "forget", "nowhere").fails(4, "there is no project 'nowhere'")
    w.snap("projects", "forget").fails(2)
    w.snap("projects", "drop", "x").fails(2)


def moved(w):
    """A project with one snapshot, elsewhere since."""
    old, new = w.top / "work" / "old", w.top / "work" / "new"
    (old / "sub").mkdir(parents=True)
    (old / "f").write_text("first\n")
    first = w.ok("-q", "snapshot", cwd=old).out.decode().strip()
    w.ok("clone", "-n", "of-it", cwd=old)
    old.rename(new)
    return old, new, first


def need_identity(path):
    born = subprocess.run(["stat", "-c", "%W", path], check=True, stdout=subprocess.PIPE).stdout
    if int(born) == 0 or os.statvfs(path).f_fsid == 0:
        raise Skip("this file system does not say which it is, or when a directory was made")


def project_paths(w):
    return {p["path"] for p in w.ok("projects", "--json").json("snap.projects/1")["projects"]}


@test
def a_project_that_moved_is_found_again_by_itself(w: World):
    need_identity(w.top)
    for words in (["list"], ["log"], ["status"], ["snapshot"], ["clone", "-n", "another"], ["rollback"]):
        old, new, first = moved(w)
        said = f"project '{old}' moved to '{new}': its snapshots and clones came along"
        if words[0] == "rollback":
            (new / "f").write_text("second\n")
            w.snap("rollback", first, cwd=new / "sub").fails(7, said, f"hint: snapcow rollback {first}\n")
            assert (new / "f").read_text() == "second\n", "the place was not known when it was typed"
        else:
            got = w.ok(*words, cwd=new / "sub")
            assert said in got.err.decode(), (words, got)
        assert said not in w.ok("list", cwd=new).err.decode()
        assert first in w.ok("-q", "log", "--all", cwd=new).out.decode().split(), words
        assert "of-it" in w.ok("-q", "list", cwd=new).out.decode().split(), words
        paths = project_paths(w)
        assert str(new) in paths and str(old) not in paths, paths
        w.ok("rm", "--force", "of-it", *(["another"] if "another" in words else []), cwd=new)
        w.ok("projects", "forget", str(new))
        shutil.rmtree(new)
    w.ok("check")


def nested(w):
    """A project in another one, and the outer one moved."""
    old, new = w.top / "work" / "old", w.top / "work" / "new"
    (old / "in").mkdir(parents=True)
    (old / "sub").mkdir()
    for top in (old / "in", old):
        (top / "f").write_text("first\n")
        w.ok("init", str(top))
        w.ok("snapshot", "-t", "v1", cwd=top)
        (top / "f").write_text("second\n")
    old.rename(new)
    return old, new


@test
def of_nested_projects_that_moved_the_inner_one_is_meant_inside(w: World):
    need_identity(w.top)
    old, new = nested(w)
    w.snap("rollback", "v1", cwd=new / "in").fails(7, f"project '{old}/in' moved to '{new}/in'")
    assert (new / "f").read_text() == (new / "in" / "f").read_text() == "second\n"
    w.ok("rollback", "v1", cwd=new / "in")
    assert (new / "f").read_text() == "second\n"
    assert (new / "in" / "f").read_text() == "first\n"
    assert f"project '{old}' moved to '{new}'" in w.ok("list", cwd=new).err.decode()
    assert {str(new), str(new / "in")} <= project_paths(w)


@test
def projects_inside_one_that_moved_come_along(w: World):
    need_identity(w.top)
    old, new = nested(w)
    assert f"project '{old}' moved to '{new}'" in w.ok("list", cwd=new / "sub").err.decode()
    assert project_paths(w) >= {str(new), str(new / "in")}
    w.ok("rollback", "v1", cwd=new / "in")
    assert (new / "f").read_text() == "second\n"
    assert (new / "in" / "f").read_text() == "first\n"
    new.rename(old)
    w.ok("projects", "mv", str(new), str(old))
    assert project_paths(w) >= {str(old), str(old / "in")}
    shutil.copytree(old, new)
    w.ok("projects", "mv", "--force", str(old), str(new))
    assert project_paths(w) >= {str(new), str(old / "in")}, "what is still there did not move"
    w.ok("check")


@test
def a_project_that_was_moved_by_force_is_known_by_its_new_directory(w: World):
    need_identity(w.top)
    one, two, three = (w.top / "work" / name for name in ("one", "two", "three"))
    one.mkdir(parents=True)
    two.mkdir()
    (one / "f").write_text("first\n")
    w.ok("snapshot", cwd=one)
    w.ok("projects", "mv", "--force", str(one), str(two))
    two.rename(three)
    assert b"moved" not in w.ok("list", cwd=one).err
    assert f"project '{two}' moved to '{three}'" in w.ok("list", cwd=three).err.decode()


@test
def a_copy_is_another_project(w: World):
    """It has the name of one that is gone, which says nothing: a hint would be followed."""
    there, gone = w.top / "work" / "here" / "app", w.top / "work" / "there" / "app"
    (gone / "sub").mkdir(parents=True)
    (gone / "f").write_text("first\n")
    first = w.ok("-q", "snapshot", cwd=gone).out.decode().strip()
    shutil.copytree(gone, there)
    assert b"gone" not in w.ok("list", cwd=there).err
    shutil.rmtree(gone)
    assert b"projects mv" not in w.snap("diff", cwd=there).fails(4).err
    w.ok("projects", "mv", str(gone), str(there))
    assert w.ok("-q", "log", cwd=there).out.decode().split() == [first]
    other = w.top / "work" / "app"
    there.rename(w.top / "work" / "kept")
    shutil.copytree(w.top / "work" / "kept", other)
    shutil.rmtree(w.top / "work" / "kept")
    assert b"is gone" not in w.ok("snapshot", cwd=other).err


@test
def a_folder_inside_what_looks_like_a_project_says_which_it_took(w: World):
    outer = w.top / "work" / "outer"
    inner = outer / "src" / "deep"
    inner.mkdir(parents=True)
    (outer / "package.json").write_text("{}\n")
    got = w.ok("snapshot", cwd=inner)
    assert (f"the project is '{inner}'; '{outer}' above it has a package.json: if you meant that, "
            f"'projects forget {inner}', then 'init {outer}'") in got.err.decode(), got
    assert b"above it" not in w.ok("snapshot", cwd=inner).err, "once"
    w.ok("projects", "forget", str(inner))
    w.ok("init", str(outer))
    assert b"above it" not in w.ok("snapshot", cwd=inner).err
    assert w.ok("projects", "-q").out.decode().split()[-1] == str(outer)
    for named in (["init", str(inner)], ["-C", str(w.top), "init", str(inner)]):
        assert b"above it" not in w.ok(*named).err, "who names it knows"
        w.ok("projects", "forget", str(inner))


@test
def a_project_that_moved_keeps_its_history(w: World):
    old, new = w.top / "work" / "old", w.top / "work" / "new"
    old.mkdir()
    (old / "f").write_text("first\n")
    first = w.ok("-q", "snapshot", "-t", "v1", cwd=old).out.decode().strip()
    w.snap("projects", "mv", str(old), str(w.top)).fails(7, "still there")
    old.rename(new)
    w.snap("projects", "mv", str(old), str(old)).fails(4)
    (new / "f").write_text("second\n")
    w.take()
    w.snap("projects", "mv", str(old), str(w.project)).fails(1, "a project already")
    got = w.ok("projects", "mv", "--json", str(old), str(new)).json("snap.projects/1")
    assert (got["act"], got["projects"][0]["path"]) == ("mv", str(new)), got
    assert w.ok("-q", "log", cwd=new).out.decode().split() == [first]
    w.ok("rollback", "v1", cwd=new)
    assert (new / "f").read_text() == "first\n"
    w.ok("undo", cwd=new)
    assert (new / "f").read_text() == "second\n"
    w.ok("check")


@test
def a_state_or_path_that_does_not_exist_is_not_found(w: World):
    w.take("-t", "v1")
    for state in ("v2", "@-1", "ffffffffffffffff", "nobody@", "zzz"):
        w.snap("show", state).fails(4, state.rstrip("@"))
        w.snap("show", state, "--json").fails_json(4, "E_NOT_FOUND")
    w.snap("show", "v2").fails(4, "hint: snapcow log")
    w.snap("show", "@:nope").fails(4, "'nope'", "hint: snapcow show @:")
    w.snap("show", "@:src/nope/deeper").fails(4, "'src/nope'")
    w.snap("show", "@:README.md/x").fails(4, "'README.md' is not a directory")
    w.snap("show", "@:" + "n" * 300).fails(4)
    error = w.snap("show", "@:nope", "--json").fails_json(4, "E_NOT_FOUND")
    assert error["hints"] == ["snapcow show @:"], error


@test
def a_directory_that_does_not_exist_is_not_found(w: World):
    w.snap("-C", str(w.top / "nope"), "log").fails(4, "nope")
    w.snap("-C", str(w.top / "nope"), "--json", "log").fails_json(4, "E_NOT_FOUND")
    w.snap("-C", str(w.project / "README.md"), "log").fails(4, "not a directory")
    w.snap("init", "nope").fails(4, "nope")
    w.snap("init", "README.md").fails(4, "not a directory")


@test
def hints_can_be_copied_and_run(w: World):
    odd = w.top / "it's odd"
    odd.mkdir()
    w.ok("init", str(odd))
    result = w.snap("-C", str(odd), "--store", str(w.store), "show", "nope", cwd=w.top).fails(4)
    hint = re.search(r"hint: snapcow (.*)\n", result.err.decode()).group(1)
    done = subprocess.run(["bash", "-c", f"'{SNAP}' {hint}"], cwd=w.top, env=w.env,
                          stdout=subprocess.PIPE, check=False)
    assert done.returncode == 0 and b"SNAPSHOT" in done.stdout, hint


# --- taken names ----------------------------------------------------------------------------

@test
def a_tag_is_given_once_in_a_project(w: World):
    first = w.take("-t", "v1")
    w.snap("snapshot", "-t", "v1").fails(1, "'v1'", first)
    w.snap("snapshot", "-t", "v1", "--json").fails_json(1, "E_EXISTS")
    assert w.ok("-q", "log").out.decode().split() == [first]
    other = w.top / "other"
    other.mkdir()
    w.ok("snapshot", "-t", "v1", cwd=other)
    assert w.ok("show", "v1", "--json").json("snap.show/1")["snapshot"] == first


# --- the store ------------------------------------------------------------------------------

@test
def a_damaged_file_is_reported_with_its_path_and_not_handed_out(w: World):
    blob = os.urandom(4000)
    (w.project / "src" / "blob").write_bytes(blob)
    w.take()
    w.stop()
    flip(w.store / "chunks.db", blob[100:164])
    w.snap("show", "@:src/blob").fails(12, "'src/blob'", "chunk", "hint: snapcow check")
    w.snap("show", "@:src/blob", "--json").fails_json(12, "E_DAMAGED")
    assert w.ok("show", "@:README.md").out == b"first\n"


@test
def content_that_is_gone_is_damage_and_no_missing_file(w: World):
    w.take()
    w.stop()
    with contextlib.closing(sqlite3.connect(w.store / "chunks.db")) as db:
        db.execute("DELETE FROM chunk")
        db.commit()
    w.snap("show", "@:README.md").fails(12, "'README.md'", "hint: snapcow check")
    w.snap("show", "@:README.md", "--json").fails_json(12, "E_DAMAGED")
    got = w.snap("check", "--json").json("snap.check/1", status=12)
    assert {p.split(":")[1] for e in got["errors"] for p in e["paths"]} == {"README.md",
                                                                          "src/main.c"}, got


@test
def a_missing_database_is_damage(w: World):
    w.take()
    w.stop()
    (w.store / "chunks.db").unlink()
    for args in (("log",), ("show", "@"), ("snapshot",), ("check",), ("gc",), ("stats",)):
        w.snap(*args).fails(12, "chunks.db")
        w.snap(*args, "--json").fails_json(12, "E_DAMAGED")


@test
def a_file_that_is_no_database_is_damage(w: World):
    w.take()
    w.stop()
    (w.store / "meta.db").write_bytes(b"not a database at all " * 200)
    for name in ("log", "snapshot", "check"):
        w.snap(name).fails(12, "meta.db")


def lose_src(w):
    """Make the tree of src disappear from the first snapshot."""
    w.stop()
    with contextlib.closing(sqlite3.connect(w.store / "meta.db")) as db:
        # Trees go in from the bottom up, so the first is that of src; kind 3 is a tree.
        db.execute("DELETE FROM object WHERE seq = (SELECT min(seq) FROM object WHERE kind = 3)")
        db.commit()


@test
def a_parent_that_cannot_be_compared_does_not_stop_a_snapshot(w: World):
    first = w.take()
    lose_src(w)
    (w.project / "src" / "main.c").write_text("new\n")
    result = w.ok("snapshot", "--json")
    got = result.json("snap.snapshot/1")
    assert got["changed"] is None and got["parent"] == first, str(result)
    assert b"warning: " in result.err and b"continuing" in result.err, str(result)
    assert w.ok("show", "@:src/main.c").out == b"new\n"
    w.snap("show", "@-1:src/main.c").fails(12, "src/main.c")


@test
def a_store_in_use_is_busy_for_writers_and_open_to_readers(w: World):
    snapshot = w.take()
    w.stop()
    with open(w.store / "lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write("4242\n")
        lock.flush()
        for name in ("init", "snapshot", "gc", "check"):
            w.snap(name).fails(11, "in use by process 4242")
            w.snap(name, "--json").fails_json(11, "E_BUSY")
        assert w.ok("-q", "log").out.decode().strip() == snapshot
        assert w.ok("show", "@:README.md").out == b"first\n"
        w.ok("stats")
    w.ok("snapshot")


@test
def a_store_of_a_later_version_is_left_alone(w: World):
    w.take()
    w.stop()
    path = w.store / "meta.db"
    with open(path, "r+b") as f:  # user_version: four bytes at offset 60 of an SQLite header
        f.seek(60)
        f.write((99).to_bytes(4, "big"))
    before = path.read_bytes()
    for args in (("log",), ("show", "@"), ("snapshot",), ("check",), ("gc",), ("stats",)):
        w.snap(*args).fails(13, "99", "later version", "hint: snapcow version")
        w.snap(*args, "--json").fails_json(13, "E_VERSION")
    assert path.read_bytes() == before


def as_other(w):
    """How to run the program so that permissions count: root is someone else then."""
    if os.geteuid() != 0:
        return {}
    if w.store.exists():
        w.stop()
    program = w.top / "snapcow"  # where the build is may be closed to others
    shutil.copy(SNAP, program)
    w.top.chmod(0o755)
    for path in [w.store, *w.store.rglob("*")] if w.store.exists() else []:
        os.chown(path, NOBODY, NOBODY)
    return {"program": program, "user": NOBODY, "group": NOBODY, "extra_groups": []}


@test
def a_store_that_cannot_be_written_is_a_failure_and_stays_as_it_is(w: World):
    w.take()
    who = as_other(w)
    for name in ("events", "run", "signatures"):
        shutil.rmtree(w.store / name)
    for path in w.store.iterdir():
        path.chmod(0o400)
    w.store.chmod(0o500)
    before = {p.name: p.read_bytes() for p in w.store.iterdir()}
    for name in ("snapshot", "init", "gc"):
        w.snap(name, **who).fails(1, "Permission denied")
        w.snap(name, "--json", **who).fails_json(1, "E_PERMISSION")
    assert {p.name: p.read_bytes() for p in w.store.iterdir()} == before
    w.store.chmod(0o700)


@test
def a_store_that_cannot_be_made_is_a_failure(w: World):
    shut = w.top / "shut"
    shut.mkdir()
    shut.chmod(0o555)
    who = as_other(w)
    env = {"SNAPCOW_STORE": str(shut / "store")}
    w.snap("init", env=env, **who).fails(1, str(shut / "store"), "Permission denied")
    (w.top / "file").write_text("")
    w.snap("init", env={"SNAPCOW_STORE": str(w.top / "file")}).fails(4, "not a directory")


@test
def a_project_inside_of_the_store_is_refused(w: World):
    w.take()
    w.snap("init", str(w.store)).fails(7, "inside the store")


@test
def what_cannot_be_read_fails_the_snapshot_with_its_path(w: World):
    (w.project / "secret").write_text("x")
    (w.project / "secret").chmod(0)
    w.store.mkdir(mode=0o700)
    who = as_other(w)
    w.snap("snapshot", **who).fails(1, "secret", "Permission denied")
    assert b"no snapshots" in w.ok("log", **who).out


# --- output ---------------------------------------------------------------------------------

@test
def output_that_cannot_be_written_is_a_failure(w: World):
    (w.project / "blob").write_bytes(os.urandom(1 << 20))
    w.take()
    for args in (("log",), ("log", "--json"), ("show", "@:blob"), ("help",), ("version",),
                 ("stats",), ("snapshot",), ("nope", "--json")):
        with open("/dev/full", "wb") as full:
            result = w.snap(*args, stdout=full).ends(1)
        assert b"No space left" in result.err and result.err.count(b"error: ") == 1, str(result)


@test
def closed_streams_are_no_place_for_the_next_file(w: World):
    w.take()

    def without(*fds):
        def close():
            for fd in fds:
                os.close(fd)
        return {"preexec_fn": close}

    result = w.snap("log", **without(1)).ends(1)
    assert b"standard output" in result.err, str(result)
    w.snap("snapshot", **without(0, 1, 2)).ends(1)
    w.ok("check")
    # A warning is due while the store is open, and its lock was the next file to be opened.
    lose_src(w)
    (w.project / "src" / "main.c").write_text("new\n")
    w.ok("snapshot", **without(2))
    lock = (w.store / "lock").read_bytes()
    assert re.fullmatch(rb"\d+\n", lock), lock


@test
def a_reader_that_leaves_early_is_no_news(w: World):
    (w.project / "blob").write_bytes(os.urandom(1 << 20))
    w.take()
    for disposition, status in ((signal.SIG_DFL, -signal.SIGPIPE), (signal.SIG_IGN, 141)):
        reader, writer = os.pipe()
        os.close(reader)
        result = w.snap("show", "@:blob", stdout=writer, restore_signals=False,
                        preexec_fn=lambda d=disposition: signal.signal(signal.SIGPIPE, d))
        os.close(writer)
        assert result.status == status and result.err == b"", str(result)


# --- names ----------------------------------------------------------------------------------

ODD = [b"\xff\xfe", b"new\nline", b"esc\033[31m", b"back\\slash", b"\\xff", b"tab\t", b"caf\xc3\xa9",
       b"\xe2\x80\xaeltr", b" blank ", b"-dash", b"quote\"'", b"%s%n", b"a:b"]


@test
def any_name_survives_the_round_trip(w: World):
    top = os.fsencode(w.project)
    for i, name in enumerate(ODD):
        with open(os.path.join(top, name), "wb") as f:
            f.write(b"%d" % i)
    w.take()
    got = w.ok("show", "@:", "--json").json("snap.show/1")
    names = [unescape(e["name"]) for e in got["entries"]]
    assert names == sorted(os.listdir(top)), names
    for i, name in enumerate(ODD):
        assert w.ok("show", b"@:" + name).out == b"%d" % i, name
        one = w.ok("--json", "show", b"@:" + name).json("snap.show/1")
        assert unescape(one["path"]) == unescape(one["entry"]["name"]) == name, one


@test
def no_name_can_drive_the_terminal(w: World):
    top = os.fsencode(w.project)
    for name in ODD:
        open(os.path.join(top, name), "wb").close()
    os.symlink(b"\033]0;title\007", os.path.join(top, b"link"))
    w.take("-m", "message \033[31m\x9b", "-t", "caf\u00e9")
    for args in (("show", "@:"), ("show", "@"), ("log",), ("show", "\033[31m"),
                 ("\033[31m",), ("show", "@:\033[31m"), ("-C", "/\033[31m", "log")):
        result = w.snap(*args)
        for bad in (b"\033", b"\007", b"\xe2\x80\xae", b"\xff"):
            assert bad not in result.out + result.err, str(result)


@test
def a_project_with_an_odd_name_is_a_project(w: World):
    odd = os.path.join(os.fsencode(w.top), b"odd \xff\n\\name")
    os.mkdir(odd)
    got = w.ok("init", "--json", cwd=odd).json("snap.init/1")
    assert unescape(got["project"]) == odd, got
    got = w.ok("log", "--json", cwd=odd).json("snap.log/1")
    assert unescape(got["project"]) == odd, got
    w.snap("-C", odd, "show", "nope", "--json").fails_json(4, "E_NOT_FOUND")


if __name__ == "__main__":
    sys.exit(main())

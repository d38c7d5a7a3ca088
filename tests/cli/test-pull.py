"""pull into a project with nothing in it: killed, or out of room, it is finished or taken back."""

import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from depots import Other, deaths, depot, died_enough, dies
from promotetest import picture, same
from snaptest import SNAP, Skip, World, main, test
from trees import differences, walk
from trees import furnish as furnish_with_everything


def furnish(top, folders=60):
    """New directories within each other, with files that have other names elsewhere."""
    dice = random.Random(11)
    for i in range(folders):
        path = top / f"dir{i % 5}" / f"sub{i}" / "deep"
        path.mkdir(parents=True)
        for n in range(8):
            (path / f"file{n}").write_bytes(dice.randbytes(dice.randrange(1, 9000)))
        (path / "link").symlink_to("file1")
        os.link(path / "file2", top / f"dir{(i + 1) % 5}.{i}")
    (top / "dir0" / "sub0").chmod(0o555)
    (top / "dir1").chmod(0o755)
    os.utime(top / "dir2" / "sub2", ns=(1, 1_234_567_890_123_456_789))


def stages(o):
    return [name for name in os.listdir(o.project) if name.startswith(".snapcow-stage-")]


def daemon_of(o):
    return o.ok("version", "--json").json("snap.version/1")["daemon"]["pid"]


def reads_of(o, *args):
    """How many bytes the other cowfsd read for a command."""
    def rchar():
        return int(re.search(r"rchar: (\d+)", Path(f"/proc/{pid}/io").read_text())[1])

    time.sleep(0.05)  # past the time in which a change might not show in a file's times
    pid = daemon_of(o)
    before = rchar()
    o.ok(*args)
    return rchar() - before


def killed_while_it_writes(o, after):
    """Kill cowfsd so many seconds after the project has a stage; False if it had ended by then."""
    o.ok("snapshot", "--json")
    pid = daemon_of(o)
    with subprocess.Popen([SNAP, "-q", "pull", depot(o.world)], cwd=o.project,
                          env={**o.world.env, "SNAPCOW_STORE": str(o.store)},
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        while p.poll() is None and not stages(o):
            pass
        time.sleep(after)
        os.kill(pid, signal.SIGKILL)
        return p.wait(60) != 0


@test
def a_pull_that_is_killed_is_finished_or_taken_back(w: World):
    furnish(w.project)
    w.ok("init")
    w.ok("push", depot(w))
    o = Other(w)
    o.ok("init")
    nothing, all_of_it = picture(o.project), picture(w.project)
    died = 0
    for i in range(12):
        died += killed_while_it_writes(o, i * 0.008)
        o.ok("status")  # whoever comes next ends it
        now = picture(o.project)
        assert now in (nothing, all_of_it) and not stages(o), i
        if now == all_of_it:
            o.ok("undo")
            same(picture(o.project), nothing)
    assert died > 2, died
    o.ok("pull", depot(w))
    same(picture(o.project), all_of_it)
    assert "no damage" in o.ok("check").out.decode()
    o.end()


@test
def a_pull_whose_command_is_killed_changes_all_or_nothing(w: World):
    furnish(w.project, 12)
    w.ok("init")
    w.ok("push", depot(w))
    first, o = Other(w, "first"), Other(w)
    for one in (first, o):
        one.ok("init")
    nothing, all_of_it = picture(o.project), picture(w.project)
    args = ["pull", depot(w)]
    points = deaths(w, args, first.project, {**w.env, "SNAPCOW_STORE": str(first.store)}, "")
    died = 0
    for point in points if os.environ.get("SNAP_TESTS_LONG") else points[-2:]:
        died += dies(point, args, o.project, {**w.env, "SNAPCOW_STORE": str(o.store)})
        o.ok("-q", "snapshot")  # has its turn when the pull has had its own
        now = picture(o.project)
        assert now in (nothing, all_of_it) and not stages(o), point
        if now == all_of_it:
            o.ok("undo")
            same(picture(o.project), nothing)
    died_enough("pull", died)
    o.ok("pull", depot(w))
    same(picture(o.project), all_of_it)
    assert "no damage" in o.ok("check").out.decode()
    first.end()
    o.end()


@test
def a_pull_into_a_full_disk_is_taken_back_and_succeeds_with_more_room(w: World):
    if os.geteuid() != 0:
        raise Skip("mounting a small file system needs root")
    furnish(w.project)
    w.ok("init")
    w.ok("push", depot(w))
    o = Other(w)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=755", "none", o.project], check=False,
                      capture_output=True).returncode:
        raise Skip("no file system can be mounted here")
    try:
        o.ok("init")
        nothing = picture(o.project)
        o.snap("pull", depot(w)).fails(1, "is as it was, for lack of room for the change", "No space left on device")
        same(picture(o.project), nothing)
        assert "no damage" in o.ok("check").out.decode()
        subprocess.run(["mount", "-o", "remount,size=64m", o.project], check=True)
        o.ok("pull", depot(w))
        assert (o.project / "dir4" / "sub4" / "deep" / "link").is_symlink()
        o.ok("undo")
        same(picture(o.project), nothing)
        o.end()
    finally:
        subprocess.run(["umount", "-l", o.project], check=True)


@test
def a_pull_remembers_what_it_read_also_if_nothing_comes_of_it(w: World):
    size = 8 << 20
    furnish(w.project, 5)
    (w.project / "large").write_bytes(os.urandom(size))
    w.ok("init")
    w.ok("push", depot(w))
    o = Other(w)
    o.ok("pull", depot(w))
    assert reads_of(o, "pull", depot(w)) >= size
    assert reads_of(o, "pull", depot(w)) < size / 2
    assert reads_of(o, "pull", "--replace", depot(w)) < size / 2
    (w.project / "dir1" / "sub1" / "new").write_text("new\n")
    w.ok("push", depot(w))
    assert reads_of(o, "pull", depot(w)) < size / 2
    same(picture(o.project), picture(w.project))
    # Refused, it has read the change, and it saved the state with it.
    (o.project / "large").write_bytes(os.urandom(size))
    (w.project / "dir1" / "sub1" / "new").write_text("newer\n")
    w.ok("push", depot(w))
    o.snap("pull", depot(w)).fails(5, "changes of its own")
    assert reads_of(o, "snapshot") < size / 2
    o.end()


@test
def a_project_that_was_never_pulled_keeps_files_of_its_own(w: World):
    furnish(w.project, 5)
    w.ok("init")
    w.ok("push", depot(w))
    for known in (False, True):
        o = Other(w, f"other{known}")
        (o.project / "mine").write_text("mine\n")
        if known:
            o.ok("init")
        mine = picture(o.project)
        # A clone of what came would land nothing: nobody knows what both have in common.
        refused = o.snap("pull", depot(w)).fails(5, "changes of its own", "--replace", "diff . remote/latest")
        assert b"promote" not in refused.err, refused.err
        same(picture(o.project), mine)
        o.ok("pull", "--replace", depot(w))
        same(picture(o.project), picture(w.project))
        o.ok("undo")
        same(picture(o.project), mine)
        o.end()
    o = Other(w, "equal")
    subprocess.run(["cp", "-a", f"{w.project}/.", o.project], check=True)
    assert o.ok("--json", "pull", depot(w)).json("snap.pull/1")["changed"] == 0
    same(picture(o.project), picture(w.project))
    o.end()


@test
def all_that_a_tree_can_hold_is_pulled(w: World):
    furnish_with_everything(w.project)
    w.ok("init")
    w.ok("push", depot(w))
    o = Other(w)
    o.ok("pull", "--allow", "fifo", depot(w))
    assert not differences(walk(w.project), walk(o.project))
    o.end()


def write(o, name, text):
    (o.project / name).write_text(text)


def read(o, name):
    return (o.project / name).read_text()


@test
def a_fetch_is_no_merge_and_a_push_after_it_is_still_refused(w: World):
    w.ok("init")
    w.ok("push", depot(w))
    o = Other(w)
    o.ok("pull", depot(w))
    write(w, "theirs", "theirs\n")
    w.ok("push", depot(w))
    write(o, "ours", "ours\n")

    def refused(*state):
        o.snap("push", *state, depot(w)).fails(6, "changes that are not in what you push")

    refused()
    # Neither what only brings it into the store, nor what refuses, is a merge.
    o.ok("fetch", depot(w))
    refused()
    o.snap("pull", depot(w)).fails(5, "changes of its own", "promote pulled")
    refused()
    o.snap("push", depot(w)).fails(6, f"hint: snapcow pull {depot(w)}", "then push again", "push --force")
    o.ok("snapshot", "--tag", "old")
    # A merge is one, as soon as all of it landed.
    o.ok("clone", "-n", "pulled", "--from", "remote/latest")
    o.ok("promote", "--path", "theirs", "--dry-run", "pulled")
    o.ok("promote", "--dry-run", "pulled")
    refused()
    o.ok("promote", "pulled")
    o.ok("rm", "pulled")
    assert (read(o, "theirs"), read(o, "ours")) == ("theirs\n", "ours\n")
    # What was there before the merge has nothing of it.
    refused("old")
    o.ok("push", depot(w))
    # From there on, a pull counts only what changes later.
    write(w, "more", "more\n")
    w.snap("push", depot(w)).fails(6)
    w.snap("pull", depot(w)).fails(5)
    w.ok("clone", "-n", "pulled", "--from", "remote/latest")
    w.ok("promote", "pulled")
    w.ok("push", depot(w))
    o.ok("pull", depot(w))
    assert {read(o, x) for x in ("theirs", "ours", "more")} == {"theirs\n", "ours\n", "more\n"}
    o.end()


@test
def a_clone_made_of_what_was_fetched_may_be_pushed_over_it(w: World):
    w.ok("init")
    w.ok("clone", "-n", "before")
    w.ok("push", depot(w))
    o = Other(w)
    o.ok("pull", depot(w))
    write(o, "theirs", "theirs\n")
    o.ok("push", depot(w))
    w.ok("fetch", depot(w))
    w.snap("push", "before", depot(w)).fails(6, f"hint: snapcow fetch {depot(w)}")
    w.ok("clone", "-n", "after", "--from", "remote/latest")
    (w.store / "clones" / "after" / "ours").write_text("ours\n")
    w.ok("push", "after", depot(w))
    # A pull brings it into the project, and not into clones that were made before.
    w.ok("pull", depot(w))
    w.snap("push", "before", depot(w)).fails(6)
    w.ok("rebase", "before")
    w.ok("push", "before", depot(w))
    o.end()


@test
def changes_of_a_clone_that_was_pushed_come_back_with_those_of_others(w: World):
    w.ok("init")
    w.ok("remote", "add", "origin", depot(w))
    w.ok("clone", "-n", "idea")
    (w.store / "clones" / "idea" / "idea").write_text("idea\n")
    w.ok("push", "idea", "origin:idea")
    o = Other(w)
    o.ok("pull", "origin:idea")
    write(o, "theirs", "theirs\n")
    o.ok("push", "origin:idea")
    w.ok("fetch", "origin:idea")
    w.ok("clone", "-n", "both", "--from", "origin/idea")
    w.ok("promote", "both")
    assert (read(w, "theirs"), read(w, "idea")) == ("theirs\n", "idea\n")
    # The same of one that started as what was fetched, which the project never was.
    w.ok("undo")
    shutil.rmtree(w.store / "remote")
    w.ok("fetch", "origin:idea")
    w.ok("clone", "-n", "third", "--from", "origin/idea")
    (w.store / "clones" / "third" / "third").write_text("third\n")
    w.ok("push", "third", "origin:idea")
    w.snap("pull", "origin:idea").fails(5, "diff . origin/idea")
    assert not (w.project / "theirs").exists()
    o.end()


@test
def a_merge_without_a_common_state_brings_nothing_and_is_none(w: World):
    write(w, "theirs", "theirs\n")
    w.ok("init")
    w.ok("push", depot(w))
    o = Other(w)
    write(o, "ours", "ours\n")
    o.ok("init")
    o.ok("fetch", depot(w))
    o.ok("clone", "-n", "c", "--from", "remote/latest")
    (o.store / "clones" / "c" / "own").write_text("own\n")
    o.ok("promote", "c")
    assert (o.project / "own").exists() and not (o.project / "theirs").exists()
    o.snap("push", depot(w)).fails(6)
    o.snap("pull", depot(w)).fails(5, "diff . remote/latest")
    o.end()


@test
def each_project_of_a_store_has_its_own_state_of_a_name(w: World):
    w.ok("init")
    w.ok("push", depot(w))
    o = Other(w)
    a, b = o.project, w.top / "work" / "b"
    b.mkdir()
    o.ok("pull", depot(w))
    o.project = b
    o.ok("pull", depot(w))
    (w.project / "README.md").write_text("second\n")
    w.ok("push", depot(w))
    # What A pulled is not in B, which may not push over it, and may pull it.
    o.project = a
    o.ok("pull", depot(w))
    o.project = b
    o.snap("push", depot(w)).fails(6)
    o.ok("pull", depot(w))
    assert read(o, "README.md") == "second\n"
    o.ok("push", depot(w))
    o.end()


@test
def what_a_pull_leaves_alone_is_no_change_of_the_project(w: World):
    subprocess.run(["git", "init", "-q"], cwd=w.project, check=True)
    write(w, ".snapignore", "*.o\n")
    w.ok("init")
    w.ok("push", depot(w))
    o = Other(w)
    o.ok("pull", "--allow", ".snapignore", depot(w))
    assert not (o.project / ".git").exists()
    write(w, "README.md", "second\n")
    w.ok("push", depot(w))
    o.ok("pull", depot(w))
    assert read(o, "README.md") == "second\n"
    # A repository and a build of its own are none either; a change is.
    subprocess.run(["git", "init", "-q"], cwd=o.project, check=True)
    write(o, "main.o", "built\n")
    write(w, "README.md", "third\n")
    w.ok("push", depot(w))
    o.ok("pull", depot(w))
    assert read(o, "README.md") == "third\n" and read(o, "main.o") == "built\n"
    assert (o.project / ".git" / "HEAD").exists()
    o.ok("pull", depot(w))
    write(o, "main.c", "mine\n")
    o.snap("pull", depot(w)).fails(5, "changes of its own")
    o.end()


@test
def a_pull_that_died_before_it_could_note_it_is_known_by_its_receipt(w: World):
    w.ok("init")
    w.ok("push", depot(w))
    o = Other(w)
    o.ok("pull", depot(w))
    notes = o.store / "remote" / "known"
    shutil.copytree(notes, w.top / "notes")
    write(w, "README.md", "second\n")
    w.ok("push", depot(w))
    o.ok("pull", depot(w))
    for note in (w.top / "notes", None):
        shutil.rmtree(notes)
        if note:
            shutil.copytree(note, notes)
        write(o, "ours", f"{note}\n")
        o.snap("pull", depot(w)).fails(5, "promote pulled")
        (o.project / "ours").unlink()
        o.ok("pull", depot(w))
    write(w, "README.md", "third\n")
    w.ok("push", depot(w))
    shutil.rmtree(notes)
    o.ok("pull", depot(w))
    assert read(o, "README.md") == "third\n"
    o.end()


main()

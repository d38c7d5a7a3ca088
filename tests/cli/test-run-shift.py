"""run by root where the kernel maps no ids of FUSE mounts, as before Linux 6.12.

cowfsd then serves each run from a mount of its own, on which it shifts the ids. Every kernel can do
that: SNAPCOW_NO_IDMAP has it done on one that would not need it.
"""

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import live_test  # noqa: E402
from runtest import clone, line_of, run, sh, start, until  # noqa: E402
from snaptest import Skip, gone  # noqa: E402


def shifting(w):
    if os.geteuid() != 0:
        raise Skip("only a run of root's has other ids outside")
    w.env["SNAPCOW_NO_IDMAP"] = "1"
    return w


def views(w):
    folder = w.store / "run" / "views"
    return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


@live_test
def files_are_roots_inside_and_where_they_are_stored(w):
    shifting(w)
    os.chown(w.project / "src" / "main.c", 1000, 1001)
    path = clone(w)
    got = sh(w, "stat -c '%u:%g' . README.md src/main.c; id -u; echo x > new; mkdir d; ln -s new l;"
                "stat -c '%u:%g' new d l; echo more >> README.md; echo no >> src/main.c", "try",
             status=2)
    assert got["stdout"] == "0:0\n0:0\n1000:1001\n0\n0:0\n0:0\n0:0\n", got
    assert "Permission denied" in got["stderr"], "another user's file is not the run's to write"
    assert "idmap" in got["isolation"]["walls"], got
    for name in ("new", "d", "l", "README.md"):
        st = (path / name).lstat()
        assert (st.st_uid, st.st_gid) == (0, 0), name
    assert (path / "README.md").read_text() == "first\nmore\n", "and seen at once"
    assert (path / "src" / "main.c").stat().st_uid == 1000
    again = w.ok("-q", "clone", "-n", "copy", "--from", "try").out.decode().strip()
    assert (Path(again) / "new").stat().st_uid == 0, "also in what was stored"
    assert views(w) == [] and len(w.mounts()) == 2, w.mounts()


@live_test
def modes_and_owners_can_be_set_as_on_a_mapped_mount(w):
    script = ("echo x > f; chmod 6755 f; stat -c %a f; chown 0:0 f; chown 5 f || echo refused;"
              "echo y >> f; stat -c %a f; touch -d @1000 f; stat -c %Y f; umask 077; echo > g; stat -c %a g")
    mapped = sh(w, script)["stdout"]
    w.stop()
    shifting(w)
    assert sh(w, script)["stdout"] == mapped, mapped
    assert "refused\n" in mapped, mapped


@live_test
def the_run_and_who_looks_from_outside_see_each_others_changes(w):
    shifting(w)
    path = clone(w)
    assert not (path / "answer").exists() and (path / "README.md").read_text() == "first\n"
    with start(w, "try", "--", "sh", "-c",
               "cat README.md; ls > /dev/null; echo in > README.md; echo ready;"
               "while ! [ -e answer ]; do sleep 0.05; done; cat answer") as p:
        assert line_of(p) == b"first\n" and line_of(p) == b"ready\n"
        assert len(views(w)) == 1, "it has a mount of its own"
        until(lambda: (path / "README.md").read_text() == "in\n")
        w.snap("umount", "try").fails(11, "in use")
        (path / "new").write_text("from outside\n")
        (path / "new").rename(path / "answer")
        assert line_of(p) == b"from outside\n"
        assert p.wait(60) == 0
    w.ok("-q", "umount", "try")
    assert views(w) == []


@live_test
def nothing_is_left_of_a_run_that_is_killed(w):
    shifting(w)
    clone(w)
    with start(w, "try", "--", "sh", "-c", "echo ready; sleep 1000") as p:
        assert line_of(p) == b"ready\n"
        p.kill()
    until(lambda: views(w) == [])
    assert len(w.mounts()) == 1, w.mounts()
    assert sh(w, "cat README.md", "try")["stdout"] == "first\n"


@live_test
def nothing_is_left_of_a_daemon_that_is_killed(w):
    shifting(w)
    clone(w)
    pid = w.daemons()[0]
    with start(w, "try", "--", "sh", "-c",
               "echo ready; while echo x > f; do sleep 0.1; done 2>/dev/null") as p:
        assert line_of(p) == b"ready\n"
        os.kill(pid, signal.SIGKILL)
        assert gone(pid, 20)
        assert p.wait(60) == 0, "it sees an error and ends"
    assert sh(w, "cat README.md", "try")["stdout"] == "first\n"
    assert views(w) == [] and len(w.mounts()) == 1, w.mounts()


@live_test
def what_is_granted_in_the_clone_comes_from_the_same_mount(w):
    shifting(w)
    got = run(w, "--ro", "src", "--", "sh", "-c", "stat -c %u src/main.c; echo x > src/new", status=2)
    assert got["stdout"] == "0\n" and "Read-only" in got["stderr"], got


@live_test
def doctor_says_which_way_it_is(w):
    shifting(w)
    for more, words in ({}, "cowfsd shifts the ids"), ({"SNAPCOW_NO_IDMAP": None}, "ids"):
        got = w.ok("doctor", "--json", env=more).json("snap.doctor/1", "checks")
        one = next(c for c in got["checks"] if c["name"] == "idmap")
        assert one["ok"] and words in one["detail"], one


if __name__ == "__main__":
    sys.exit(livetest.main())

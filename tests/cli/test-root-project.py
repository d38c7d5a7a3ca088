"""run --root in a project: the command sees a throw-away clone of it at its place, and never the project."""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from roottest import ids, listing, main, plant, root_run, root_sh
from livetest import live_test
from runtest import clone, clones, line_of, start, until

STRICT = ("--profile", "strict", "--allow-missing", "memory", "--allow-missing", "cpu", "--allow-missing", "pids")


@contextmanager
def project_in_var(w):
    """One whose place is no directory that every run has of its own, as /tmp is."""
    top = Path(tempfile.mkdtemp(prefix="snap-root-project-", dir="/var/tmp"))
    try:
        (top / "src").mkdir()
        (top / "Makefile").write_text("install:\n")
        yield top
    finally:
        shutil.rmtree(top)


def nothing_left(w):
    left = [c for c in clones(w) if c.startswith("run-")]
    assert not left, left


@live_test
def a_command_works_in_the_project_and_the_project_stays_as_it_is(w):
    top = plant(w.top / "root")
    w.take()
    before, machine = listing(w.project), listing(top)
    got = root_sh(w, "pwd; cat README.md; stat -c %u:%g README.md; echo other > README.md; rm -r src; echo x > made;"
                     " cat README.md > /usr/installed", str(top))
    assert got["stdout"] == f"{w.project}\nfirst\n0:0\n", got
    # Of the clone that is the root the result tells what changed; the project's is gone.
    assert [c["path"] for c in got["changed"]["paths"]] == ["usr/installed"], got["changed"]
    assert listing(w.project) == before and listing(top) == machine
    nothing_left(w)
    # A directory in it, another one by name, and no project at all.
    got = root_sh(w, "pwd; ls", str(top), cwd=w.project / "src")
    assert got["stdout"] == f"{w.project}/src\nmain.c\n", got
    assert root_sh(w, "pwd", "-w", "src", str(top))["stdout"] == f"{w.project}/src\n"
    assert root_sh(w, "pwd", "-w", "/etc", str(top))["stdout"] == "/etc\n"
    got = root_sh(w, f"pwd; test -e {w.project} || echo none", str(top), cwd=w.top)
    assert got["stdout"] == "/\nnone\n", got
    # Another user of that root may not be able to enter it.
    assert root_sh(w, "pwd", "--as", "1000:1000", str(top))["stdout"] == "/\n"
    w.ok("check")


@live_test
def each_run_begins_with_the_project_as_it_is_then(w):
    top = plant(w.top / "root")
    w.ok("-q", "init", str(top))
    w.ok("-q", "-C", str(top), "clone", "-n", "box")
    with project_in_var(w) as project:
        w.ok("-q", "-C", str(project), "snapshot")
        got = root_sh(w, "cat Makefile; echo x >> Makefile; echo one > /etc/one", "box", cwd=project)
        assert got["stdout"] == "install:\n", got
        assert got["changed"]["added"] == 1 and [c["path"] for c in got["changed"]["paths"]] == ["etc/one"], got["changed"]
        (project / "Makefile").write_text("edited:\n")
        got = root_sh(w, "pwd; cat Makefile /etc/one; ls", "box", cwd=project)
        assert got["stdout"] == f"{project}\nedited:\none\nMakefile\nsrc\n", got
        # Its place is an empty directory of the root, and no file of the project is in it.
        at = Path(w.ok("-C", str(top), "status", "box", "--json").json("snap.status/1")["path"])
        place = at / str(project)[1:]
        assert list(place.iterdir()) == [] and got["changed"]["added"] == 0, got["changed"]
        assert (project / "Makefile").read_text() == "edited:\n"
        # Of a root that was made for the run nothing is told that the command did not do.
        got = root_sh(w, "echo one > /etc/one", str(top), cwd=project)
        assert [c["path"] for c in got["changed"]["paths"]] == ["etc/one"], got["changed"]
    nothing_left(w)


@live_test
def in_a_clone_of_the_project_the_command_sees_that_clone(w):
    top = plant(w.top / "root")
    w.take()
    there = clone(w, "idea")
    (there / "README.md").write_text("the idea\n")
    got = root_sh(w, "pwd; cat ../README.md; echo no > ../README.md", str(top), cwd=there / "src")
    assert got["stdout"] == f"{w.project}/src\nthe idea\n", got
    assert (there / "README.md").read_text() == "the idea\n" and (w.project / "README.md").read_text() == "first\n"
    assert clones(w) == ["idea"]


@live_test
def a_work_tree_of_git_is_a_project_and_the_root_itself_is_none(w):
    top = plant(w.top / "root")
    subprocess.run(["git", "init", "-q", w.project], check=True)
    assert root_sh(w, "pwd; cat README.md", str(top))["stdout"] == f"{w.project}\nfirst\n"
    w.ok("-q", "init", str(top))
    w.ok("-q", "-C", str(top), "clone", "-n", "box")
    for word in ("box", str(top), "."):
        assert root_sh(w, f"pwd; test -e {top} || echo none", word, cwd=top)["stdout"] == "/\nnone\n", word
    nothing_left(w)


@live_test
def what_the_root_has_at_that_place_stays(w):
    with project_in_var(w) as project:
        w.ok("-q", "-C", str(project), "snapshot")
        top = plant(w.top / "root")
        place = top / str(project)[1:]
        place.mkdir(parents=True)
        (place / "own").write_text("of the root\n")
        said = w.snap("run", "--root", "--allow-missing", "pids", str(top), "--", "sh", "-c", "pwd; ls", cwd=project)
        assert said.out.decode() == f"{project}\nown\n", said
        assert f"files of its own in '{project}'" in said.err.decode(), said
        # A symlink on the way leads nowhere else.
        shutil.rmtree(top / "var/tmp")
        (top / "var/tmp").symlink_to("/etc")
        assert root_sh(w, "pwd; ls /etc", str(top), cwd=project)["stdout"] == "/\ngroup\npasswd\n"
    nothing_left(w)


@live_test
def no_wall_is_lower_for_it(w):
    top = plant(w.top / "root")
    (w.project / ".env").write_text("TOKEN=of-the-project\n")
    (w.project / "deep").mkdir()
    (w.project / "deep/id_rsa").write_text("of-the-project\n")
    w.take()
    got = root_sh(w, "cat .env; cat /proc/self/mountinfo", str(top))
    assert "of-the-project" in got["stdout"] and str(w.store) not in got["stdout"], got
    line, = [one for one in got["stdout"].splitlines() if f" {w.project} " in one]
    assert {"nosuid", "nodev"} <= set(line.split()[5].split(",")), line
    # A profile that hides secrets, and a path that the command may not see, count there too.
    got = root_sh(w, "cat .env deep/id_rsa; mv deep other; cat other/id_rsa; cat README.md", *STRICT, str(top), status=None)
    assert "of-the-project" not in got["stdout"] and "first" in got["stdout"], got
    got = root_sh(w, "cat README.md; cat src/main.c", "--hide", str(w.project / "README.md"), str(top), status=None)
    assert "first" not in got["stdout"] and "main" in got["stdout"], got
    # The project around a folder that is shown is the clone's as well.
    got = root_sh(w, f"echo no > {w.project}/README.md; cat {w.project}/README.md", "--ro", str(w.project.parent), str(top))
    assert got["stdout"] == "no\n" and (w.project / "README.md").read_text() == "first\n", got
    nothing_left(w)


@live_test
def what_it_may_grow_by_is_limited_too(w):
    top = plant(w.top / "root")
    w.take()
    for where in (".", "/srv"):
        got = root_sh(w, f"mkdir -p /srv; head -c 64M /dev/zero > {where}/big", "--disk", "4M", str(top), status=None)
        assert got["exit_code"] != 0 and got["limit"] == "disk", (where, got)
    got = root_sh(w, "for i in 1 2 3 4 5 6 7 8 9; do mkdir d$i || exit 1; done", "--inodes", "4", str(top), status=None)
    assert got["exit_code"] == 1 and got["limit"] == "inodes", got


@live_test
def owners_in_it_are_those_of_the_run(w):
    top = plant(w.top / "root")
    w.take()
    before = listing(w.project)
    got = root_sh(w, "chown 33:33 README.md && stat -c %u README.md; mknod null c 1 3 || echo refused; touch new; stat -c %u new",
                  str(top), status=None)
    # With one id there is nobody else to be, and no owner is kept of what goes.
    assert got["stdout"].split() == ["0" if ids() == "one" else "33", "refused", "0"], got
    assert listing(w.project) == before
    nothing_left(w)


@live_test
def its_clone_goes_when_the_run_is_killed(w):
    top = plant(w.top / "root")
    w.take()
    process = start(w, "--root", "--allow-missing", "pids", str(top), "--", "sh", "-c", "test -e README.md && echo ready; cat", stdin=subprocess.PIPE)
    assert line_of(process) == b"ready\n"
    assert len([c for c in clones(w) if c.endswith("-project")]) == 1, clones(w)
    process.kill()
    process.wait()
    until(lambda: not clones(w))
    w.ok("check")


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())

"""Artifacts: files of a clone outlive it, whatever is removed, and come back whole or not at all."""

import os
import signal
import sys

from mcptest import Client
from snaptest import World, main, needs_fuse, test


def artifact(w, *args):
    return w.ok("artifact", *args, "--json").json("snap.artifact/1", "act")


def fill(w):
    """A clone with a build in it."""
    w.ok("clone", "-n", "try")
    top = w.store / "clones" / "try"
    (top / "build" / "sub").mkdir(parents=True)
    (top / "build" / "app").write_bytes(b"\x7fELF" + bytes(100_000))
    (top / "build" / "app").chmod(0o755)
    (top / "build" / "sub" / "one").write_text("linked\n")
    os.link(top / "build" / "sub" / "one", top / "build" / "sub" / "two")
    (top / "build" / "away").symlink_to("/etc/hostname")
    with open(top / "build" / "holes", "wb") as f:
        f.truncate(1 << 31)
        f.seek(1 << 29)
        f.write(b"middle")
    (top / "report").write_text("all is well\n")
    return top


@test
def an_artifact_outlives_its_clone_and_a_gc(w: World):
    needs_fuse()
    top = fill(w)
    kept = artifact(w, "save", "try", "build", "report", "build/app", "--meta", "v=2")
    assert kept["paths"] == ["build", "report"] and kept["files"] == 6 and kept["meta"] == {"v": "2"}, kept
    again = artifact(w, "save", "try", "report", "build/")
    assert again["sha256"] == kept["sha256"] and again["artifact"] != kept["artifact"], "the same content"
    (top / "build" / "app").write_text("changed since\n")
    assert artifact(w, "save", "try", "build", "report")["sha256"] != kept["sha256"]
    w.ok("rm", "-f", "try")
    w.ok("gc", "--keep-last", "1")
    w.ok("check")
    out = w.home / "out"
    artifact(w, "get", kept["artifact"][:8], "--to", str(out / "deep"))
    got = out / "deep" / "build"
    assert (got / "app").read_bytes() == b"\x7fELF" + bytes(100_000) and (got / "app").stat().st_mode & 0o777 == 0o755
    assert os.readlink(got / "away") == "/etc/hostname" and (got / "sub" / "two").read_text() == "linked\n"
    holes = (got / "holes").stat()
    assert holes.st_size == 1 << 31 and holes.st_blocks < 10_000, "holes stay holes"
    assert sorted(p.name for p in (out / "deep").iterdir()) == ["build", "report"], "nothing else is left there"
    listed = artifact(w, "list", "--meta", "v")["artifacts"]
    assert [a["artifact"] for a in listed] == [kept["artifact"]], listed
    assert w.ok("artifact", "show", kept["artifact"], "report").out == b"all is well\n"
    for a in artifact(w)["artifacts"]:
        w.ok("artifact", "rm", a["artifact"])
    assert w.ok("gc", "--json").json("snap.gc/1")["removed"] > 0, "and then it goes"
    w.ok("check")
    w.snap("artifact", "get", kept["artifact"]).fails(4, "no artifact")


@test
def what_is_in_the_way_stays_and_nothing_is_left(w: World):
    needs_fuse()
    fill(w)
    kept = artifact(w, "save", "try", "build", "report")["artifact"]
    out = w.home / "out"
    out.mkdir()
    (out / "report").write_text("mine\n")
    w.snap("artifact", "get", kept, "--to", str(out)).fails(1, "has 'report' already")
    assert [p.name for p in out.iterdir()] == ["report"] and (out / "report").read_text() == "mine\n"
    (out / "report").unlink()
    elsewhere = w.home / "elsewhere"
    elsewhere.mkdir()
    (out / "build").symlink_to(elsewhere)
    w.snap("artifact", "get", kept, "--to", str(out)).fails(1, "has 'build' already")
    assert list(elsewhere.iterdir()) == [], "no link is followed"


@test
def into_a_project_comes_nothing_that_the_guard_holds(w: World):
    needs_fuse()
    top = fill(w)
    (top / ".envrc").write_text("evil\n")
    (top / "bare" / "objects").mkdir(parents=True)
    (top / "bare" / "refs").mkdir()
    (top / "bare" / "HEAD").write_text("ref: refs/heads/main\n")
    for name, target in (("up", "../x"), ("round", "build/../../x"), ("hooks", ".git/hooks"), ("fine", "report")):
        (top / name).symlink_to(target)
    (w.home / "in").symlink_to(w.project)
    before = sorted(p.name for p in w.project.rglob("*"))
    for path, rule in ((".envrc", "shell"), ("bare", "bare-repository"), ("up", "link"), ("round", "link"),
                       ("hooks", "link"), ("build", "link")):
        kept = artifact(w, "save", "try", path)["artifact"]
        for to in ((), ("--to", "."), ("--to", "new/deep"), ("--to", str(w.home / "in"))):
            w.snap("artifact", "get", kept, *to).fails(1, rule, "--to DIR")
        w.ok("artifact", "get", kept, "--to", str(w.home / "out"))
    assert sorted(p.name for p in w.project.rglob("*")) == before, "nothing was made"
    kept = artifact(w, "save", "try", "report", "fine")["artifact"]
    assert artifact(w, "get", kept)["to"] == f"artifact-{kept[:8]}"
    assert (w.project / f"artifact-{kept[:8]}" / "fine").read_text() == "all is well\n"
    w.snap("artifact", "get", kept).fails(1, "already", "-again")


@test
def what_cannot_be_saved_is_named(w: World):
    needs_fuse()
    fill(w)
    for args, status, why in ((("try", "nothing"), 4, "it has no 'nothing'"), (("try", "report/x"), 4, "no directory"),
                              (("try", "."), 2, "all of the clone"), (("try", "../.."), 2, "all of the clone"),
                              (("try", "/etc/passwd"), 2, "from the top"), (("none", "x"), 4, "none"),
                              (("try",), 2, "CLONE PATH")):
        w.snap("artifact", "save", *args).fails(status, why)
    w.snap("artifact", "show", "xyz").fails(2, "is not the id of an artifact")
    w.snap("artifact", "get", "0123").fails(4, "no artifact '0123'")
    w.snap("artifact", "fly").fails(2, "takes 'save")
    assert artifact(w)["artifacts"] == []


@test
def a_run_leaves_its_artifacts_in_its_record(w: World):
    needs_fuse()
    got = w.ok("run", "--json", "--artifact", "out", "--artifact", "none", "--", "sh", "-c", "echo built > out").json("snap.run/1")
    saved, missing = got["artifacts"]
    assert saved["path"] == "out" and saved["problem"] is None and got["kept"] is False, got
    assert missing["artifact"] is None and "it has no 'none'" in missing["problem"], missing
    assert w.ok("runs", "--json").json("snap.runs/1")["runs"][0]["artifacts"] == got["artifacts"]
    one = artifact(w, "show", saved["artifact"])
    assert one["run"] == got["run"] and one["paths"] == ["out"], one
    assert w.ok("artifact", "show", saved["artifact"], "out").out == b"built\n"
    failed = w.snap("run", "--artifact", "log", "--", "sh", "-c", "echo why > log; exit 3").ends(3)
    assert b"artifact " in failed.err, "what a run that failed left is worth keeping"


@test
def artifacts_are_a_projects_own_and_go_with_it(w: World):
    needs_fuse()
    fill(w)
    kept = artifact(w, "save", "try", "report")["artifact"]
    other = w.home / "other"
    other.mkdir()
    w.ok("init", cwd=other)
    assert w.ok("artifact", "list", "--json", cwd=other).json("snap.artifact/1")["artifacts"] == []
    w.snap("artifact", "get", kept, cwd=other).fails(4, "no artifact")
    w.snap("artifact", "rm", kept, cwd=other).fails(4, "no artifact")
    w.ok("rm", "-f", "try")
    w.snap("projects", "forget", str(w.project)).fails(11, "artifact", "--force")
    w.ok("projects", "forget", "--force", str(w.project))
    w.ok("gc")
    w.ok("init")
    assert artifact(w)["artifacts"] == []
    w.ok("check")


@test
def an_artifact_that_was_promised_survives_kill_9(w: World):
    needs_fuse()
    fill(w)
    kept = []
    for i in range(5):
        w.ok("write", "try:report", "--content", f"number {i}\n")
        kept.append(artifact(w, "save", "try", "report")["artifact"])
        pid = w.ok("start", "--json").json("snap.start/1")["pid"]
        os.kill(pid, signal.SIGKILL)
    w.ok("check")
    w.ok("gc")
    for i, one in enumerate(kept):
        assert w.ok("artifact", "show", one, "report").out == f"number {i}\n".encode()


@test
def an_agent_saves_and_reads_but_writes_no_disk(w: World):
    needs_fuse()
    with Client(w) as c:
        c.ok("snap_clone", name="try")
        c.ok("snap_write", clone="try", path="out/report", content="fine\n")
        saved = c.ok("snap_artifact", act="save", clone="try", paths=["out"], meta=["by=agent"])
        run = c.ok("snap_run", command="echo more > log", artifact=["log"])
        assert run["exit_code"] == 0, run
        c.ok("snap_destroy", clone="try", force=True)
        got = c.ok("snap_artifact", act="list")["artifacts"]
        assert sorted(a["paths"][0] for a in got) == ["log", "out"], got
        assert c.ok("snap_artifact", act="show", artifact=saved["artifact"], paths=["out/report"])["content"] == "fine\n"
        c.fails("snap_artifact", "must be one of", act="get", artifact=saved["artifact"])
        c.fails("snap_artifact", "must be one of", act="rm", artifact=saved["artifact"])
        c.fails("snap_artifact", "no such thing", act="show", artifact="--to=/tmp")
        c.fails("snap_artifact", "", act="save", clone="try", paths=["--meta=x"])


@test
def an_agent_reaches_no_clone_of_another_project(w: World):
    needs_fuse()
    other = w.project.parent / "other"
    other.mkdir()
    (other / "secret").write_text("of the other\n")
    w.ok("clone", "-n", "foreign", cwd=other)
    with Client(w) as c:
        c.ok("snap_clone", name="try")
        c.fails("snap_artifact", "foreign", act="save", clone="foreign", paths=["secret"])
        c.fails("snap_artifact", "needs 'clone'", act="save", paths=["foreign", "secret"])
        c.fails("snap_artifact", "needs 'clone'", act="save", artifact="foreign", paths=["secret"])
        c.fails("snap_artifact", "no 'artifact'", act="save", clone="try", artifact="foreign", paths=["secret"])
        c.fails("snap_artifact", "needs 'paths'", act="save", clone="try")
        c.fails("snap_artifact", "needs 'artifact'", act="show", paths=["secret"])
        c.fails("snap_artifact", "no 'clone'", act="list", clone="try")
        assert c.ok("snap_artifact", act="list")["artifacts"] == []


@test
def a_session_of_an_agent_keeps_so_many_and_no_more(w: World):
    needs_fuse()
    w.ok("clone", "-n", "try")
    top = w.store / "clones" / "try"
    with open(top / "large", "wb") as f:
        f.truncate((1 << 30) - 5)
    (top / "small").write_text("small\n")
    with Client(w) as c:
        c.ok("snap_artifact", act="save", clone="try", paths=["large"], meta=["session=forged", "v=1"])
        c.fails("snap_artifact", "may have 1.0 GiB", act="save", clone="try", paths=["small"])
        (top / "small").write_text("tiny\n")
        c.ok("snap_artifact", act="save", clone="try", paths=["small"])
        (top / "small").write_text("")
        for _ in range(98):
            c.ok("snap_artifact", act="save", clone="try", paths=["small"])
        c.fails("snap_artifact", "has 100 artifacts", "artifact rm", act="save", clone="try", paths=["small"])
    kept = artifact(w)["artifacts"]
    assert len(kept) == 100 and len({a["meta"]["session"] for a in kept}) == 1, "one label for all"
    assert kept[-1]["meta"]["v"] == "1" and kept[-1]["meta"]["session"] != "forged", kept[-1]
    artifact(w, "save", "try", "small", "large")  # a person is not counted
    w.ok("artifact", "rm", kept[0]["artifact"])
    with Client(w) as c:
        c.ok("snap_artifact", act="save", clone="try", paths=["large"])  # another session has its own count


if __name__ == "__main__":
    sys.exit(main())

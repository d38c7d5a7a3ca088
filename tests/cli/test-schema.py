"""Every command's --json against its schema in docs/schema: what it prints, and nothing else."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from schematest import jsonschema, load, validators, what_is_wrong
from snaptest import SERVERS, SNAP, World, flip, main, test


def commands(w):
    return {c["name"] for c in w.ok("help", "--json").json("snap.help/1")["commands"]}


def objects_in(schema):
    """Every description of an object in a schema."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and "properties" in schema:
            yield schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from objects_in(part)


class Judge:
    """Runs commands and holds what they print against their schemas."""

    def __init__(self, w):
        self.world, self.used = w, set()
        self.schemas = validators()

    def __call__(self, *args, status=0, name=None, **more):
        result = self.world.snap(args[0], "--json", *args[1:], **more).ends(status)
        assert result.out.count(b"\n") == 1, f"not one line\n{result}"
        got = json.loads(result.out)
        name = name or ("error" if status and not (args[0] == "check" and status == 12) else args[0])
        assert got["schema"] == f"snap.{name}/1", str(result)
        wrong = what_is_wrong(self.schemas[name], got)
        assert not wrong, "\n".join([*wrong, str(result)])
        self.used.add(name)
        return got


@test
def every_command_has_a_schema_and_every_schema_a_command(w: World):
    schemas = load()
    there = commands(w)
    assert there | {"error"} <= set(schemas), f"no schema for {there - set(schemas)}"
    orphans = set(schemas) - there - {"error"}
    assert not orphans, f"no command for {orphans}"


@test
def every_schema_is_one_and_leaves_nothing_open(w: World):
    for name, schema in load().items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["$id"] == f"snap.{name}/1" == schema["properties"]["schema"]["const"], name
        for part in objects_in(schema):
            assert part["additionalProperties"] is False, f"{name} leaves something open: {part}"


def look_at_snapshots(w, judge):
    (w.project / "link").symlink_to("README.md")
    (w.project / "blob").write_bytes(b"\xff\x00")
    judge("init")
    judge("snapshot", "-m", "message", "-t", "v1", "--meta", "step=1", "--meta", "empty=")
    judge("log")
    judge("log", "--meta", "step=1")
    judge("audit", "verify")
    judge("metrics")
    judge("why", "README.md")
    judge("log", "README.md")
    judge("blame", "README.md")
    judge("show", "@")
    judge("show", ".")
    judge("show", ".:README.md")
    judge("show", "@:")
    judge("show", "@:README.md")
    judge("show", "@:blob")
    judge("show", "@:link")
    judge("status")
    judge("push", f"dir:{w.top}/depot:v1")
    judge("push", f"dir:{w.top}/depot:v1")
    judge("fetch", f"dir:{w.top}/depot:v1")
    judge("pull", f"dir:{w.top}/depot:v1")
    for args in (("add", "origin", f"dir:{w.top}/depot"), ("list",), ("log", "origin"), ("log", "origin:v1")):
        judge("remote", *args)
    judge("clone", "origin/v1", "theirs")
    judge("rm", "theirs", "--force")
    judge("doctor", "--remote", "origin")
    judge("remote", "gc", "origin", "--keep-last", "1", "--dry-run")
    judge("remote", "gc", "origin", "--older-than", "1ms", "--grace", "0")
    judge("remote", "rm", "origin")


def look_at_clones(w, judge):
    judge("clone", "-n", "try", "--ttl", "1h", "--quota", "1G")
    judge("clone", "--count", "2", "-n", "many", "--durability", "full")
    (w.store / "clones" / "try" / "new").write_text("new")
    judge("list")
    judge("ls", "--all", name="list")
    judge("status", "try")
    judge("snapshot", "try")
    judge("log", "try")
    judge("show", "try")
    judge("write", "try:README.md", "--content", "one two")
    judge("edit", "try:README.md", "--old", "two", "--new", "three")
    judge("mcp")
    judge("serve")
    judge("top", "-n", "1")
    judge("tasks")
    for args in (("a.example:443", "try"), ("--list", "try"), ("--remove", "a.example:443", "try")):
        judge("allow", *args)
        judge("list")
    kept = judge("artifact", "save", "try", "README.md", "new", "--meta", "a=b")["artifact"]
    for args in ((), ("list",), ("show", kept), ("show", kept, ""), ("show", kept, "new"), ("get", kept, "--to", str(w.home / "out")),
                 ("rm", kept)):
        judge("artifact", *args)
    rootfs = w.top / "rootfs.tar"
    with tarfile.open(rootfs, "w") as tar:
        tar.add(w.project / "README.md", "README.md")
    judge("import", str(rootfs))
    for args in ((), ("show", "rootfs")):
        judge("image", *args)
    judge("export", "try", "--tar", str(w.top / "try.tar"))
    judge("export", "try", "--oci", str(w.top / "layout"), "--base", "rootfs")
    judge("image", "rm", "rootfs")
    judge("runs", "--agent")
    subprocess.run(["git", "init", "-q", w.store / "clones" / "try"], check=True)
    judge("fsmonitor", "--setup", "try")
    judge("fsmonitor", "2", "x", cwd=w.store / "clones" / "try")
    shutil.rmtree(w.store / "clones" / "try" / ".git")
    judge("umount", "many-1")
    judge("mount", "many-1")
    judge("rm", "many-1", "many-2")
    judge("tag", "needless", judge("snapshot", "-m", "another")["snapshot"])
    judge("rm", "needless")
    judge("rm", "v1", status=11)


def look_at_the_rest(w, judge):
    for args in (("stats",), ("events", "-n1"), ("agents",), ("agents", "show", "codex"), ("agents", "add", "codex"), ("agents", "remove", "codex"), ("agents", "--guide"), ("check",), ("gc",), ("gc", "--keep-last", "1", "--dry-run"), ("tag",),
                 ("projects",), ("tag", "v2"), ("tag", "-d", "v2"), ("version",), ("help",), ("help", "log"),
                 ("completion", "bash"), ("doctor",), ("profile",), ("profile", "show", "node"),
                 ("profile", "check", "default"), ("start",), ("start",)):
        judge(*args)


def look_at_differences(w, judge):
    (w.project / "README.md").write_text("second\n")
    (w.project / "src" / "main.c").chmod(0o600)
    for args in (("diff",), ("diff", "try"), ("compare", "try", "."), ("compare", "try", "@", "--base", "@-1"), ("diff", "@", "try"), ("diff", "--patch"),
                 ("diff", "--stat"), ("status", "try"), ("status",), ("status", "--others"), ("policy", "explain", "try"), ("pipeline",),
                 ("status", "try", "--others"), ("rollback", "try"),
                 ("rollback", "--dry-run"), ("rollback", "--path", "src/"), ("rollback",), ("rebase", "--dry-run", "try"),
                 ("rebase", "try")):
        judge(*args)


def look_at_promotions(w, judge):
    """Each end that a promotion can have, and each list that it can fill."""
    judge("promote", "--rules")
    judge("clone", "-n", "give")
    path = w.store / "clones" / "give"
    judge("promote", "give")
    (path / "README.md").write_text("of the clone\n")
    (path / ".envrc").write_text("export A=b\n")
    judge("promote", "give", "--dry-run", status=7, name="promote")
    judge("promote", "give", status=7)
    judge("promote", "give", "--allow", ".envrc", "--check", "false", status=8)
    judge("promote", "give", "--allow", ".envrc", "--check", "true")
    judge("log")
    (w.project / "README.md").write_text("of the project\n")
    judge("undo", status=5)
    judge("undo", "--dry-run", status=5, name="undo")
    judge("undo", "--conflict", "theirs")
    judge("undo")  # of the rollback before,
    judge("undo")  # and of the one of some paths
    judge("undo", status=4)
    (path / "README.md").write_text("again of the clone\n")
    (w.project / "README.md").write_text("again of the project\n")
    judge("promote", "give", status=5)
    judge("promote", "-n", "--with-hunks", "give", status=5, name="promote")
    judge("resolve", "give", "--with-hunks")
    judge("resolve", "give", "README.md", "--take", "theirs")
    judge("promote", "--continue", "give", "--allow", ".envrc")
    judge("rm", "give")
    look_at_commits(w, judge)


def look_at_commits(w, judge):
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "safe.directory=*"]
    for top in (w.project, w.store / "clones" / "commits"):
        if top == w.project:
            subprocess.run(["git", "init", "-q"], cwd=top, env=w.env, check=True)
        subprocess.run(["git", *who, "commit", "-q", "--allow-empty", "-m", top.name], cwd=top, env=w.env, check=True)
        if top == w.project:
            judge("clone", "-n", "commits")
    assert judge("promote", "--git", "commits")["git"]


def look_at_rules(w, judge):
    config = w.home / ".config" / "snapcow" / "watch.yaml"
    config.write_text(f"rules:\n  - {{name: a, project: {w.project}, on: fire, run: 'echo > watched', then: keep}}\n"
                      f"  - {{name: b, project: {w.project}, on: {{schedule: daily}}, run: exit 1}}\n")
    judge("watch", "fire", "a")
    judge("watch", "fire", "b", "--detail", "by hand")
    judge("watch", "start", "--once")
    judge("watch", "start")
    judge("watch")
    judge("watch", "log")
    judge("watch", "test", "a")
    judge("watch", "pause", "a")
    judge("watch", "resume")
    judge("watch", "stop")


@test
def what_every_command_prints_is_what_its_schema_says(w: World):
    judge = Judge(w)
    there = commands(w)
    look_at_snapshots(w, judge)
    look_at_clones(w, judge)
    look_at_the_rest(w, judge)
    look_at_differences(w, judge)
    look_at_promotions(w, judge)
    judge("run", "try", "--", "sh", "-c", "echo out; echo err >&2; echo new > more")
    judge("run", "--", "/no/such/program", status=127, name="run")
    for how in ("--discard", "--promote-if-ok", "--keep"):
        judge("try", how, "--", "sh", "-c", "echo new > tried")
    judge("bisect", "@-2", "@", "-a", "--", "sh", "-c", "exit 125", status=1, name="bisect")
    judge("bisect", "@-2", "@", "-a", "--", "true")
    judge("runs")
    judge("replay")
    stages = w.home / ".config" / "snapcow" / "pipeline.yaml"
    stages.parent.mkdir(parents=True, exist_ok=True)
    stages.write_text("- stages:\n    - {name: verified, checks: [true]}\n    - {name: dev, target: ., approve: always}\n")
    judge("pipeline", "stages")
    (w.store / "clones" / "try" / "shipped").write_text("a\n")
    judge("ship", "try", status=14, name="ship")
    judge("pipeline")
    with subprocess.Popen([SNAP, "-q", "pipeline", "serve", "--at", str(w.top / "desk")], env=w.env, cwd=w.project,
                          stdout=subprocess.PIPE) as p:
        at = p.stdout.readline().decode().strip()
        judge("approve", "--at", at)
        judge("approve", "--at", at, "--show", w.ok("-q", "pipeline").out.decode().strip())
        p.terminate()
    judge("approve", "try", "-m", "fine")
    judge("pipeline", "advance")
    judge("pipeline", "verify")
    (w.store / "clones" / "try" / "shipped").write_text("b\n")
    judge("ship", "try", status=14, name="ship")
    judge("reject", "try", "-m", "no")
    look_at_rules(w, judge)
    judge("experiment", "-n", "e", "--arm", "a=echo > .envrc; rm -f more", "--arm", "b=exit 3",
          "--check", "true", "--score", "time:true", "--rounds", "2", "--keep", "all")
    judge("experiment", "-n", "f", "--arm", "a=false", "--repeat", "2", status=15, name="experiment")
    judge("experiment", "list")
    judge("experiment", "show", "e")
    judge("experiment", "wait", "e")
    judge("experiment", "resume", "e")
    judge("experiment", "cancel", "e")
    judge("experiment", "announce", "2")
    judge("experiment", "promote", "e", "a", status=7, name="experiment")
    judge("experiment", "rm", "e", "f")
    judge("logs")
    judge("run", "--detach", "try", "--", "sleep", "600")
    run = judge("ps")["runs"][0]["run"]
    judge("wait", run, "--timeout", "0s", status=124, name="wait")
    judge("answer")
    judge("cancel", run)
    judge("wait", run, status=143, name="wait")
    judge("attach", run, status=143, name="attach")
    judge("status", "try")
    judge("rm", "try")
    judge("stop")
    judge("stop")
    judge("version")
    w.project.rename(w.top / "moved")
    judge("projects", "mv", str(w.project), str(w.top / "moved"), cwd=w.top)
    judge("projects", "forget", "--force", str(w.top / "moved"), cwd=w.top)
    (w.top / "moved").rename(w.project)
    judge("log", "nope", status=4)
    left = there | {"error"}
    left -= SERVERS  # test-ui.py holds its object against the schema
    assert judge.used >= left, f"nothing was printed by {left - judge.used}"


@test
def what_a_failing_command_prints_is_what_the_schema_says(w: World):
    judge = Judge(w)
    for name in ("log", "list", "status", "projects"):
        judge(name)
    judge("log", "--bogus", status=2)
    judge("frobnicate", status=2)
    judge("snapshot", cwd=w.home, status=7)
    judge("show", "@", "-C", os.fsencode(w.top) + b"/\xff", status=4)
    w.take("-t", "v1")
    judge("snapshot", "-t", "v1", status=1)
    judge("clone", "-n", "try")
    judge("clone", "-n", "try", status=1)
    with open(w.store / "clones" / "try" / "README.md", "rb"):
        judge("umount", "try", status=11)
        judge("stop", status=11)


@test
def what_a_damaged_store_prints_is_what_the_schema_says(w: World):
    judge = Judge(w)
    blob = os.urandom(4000)
    (w.project / "blob").write_bytes(blob)
    w.take()
    w.stop()
    flip(w.store / "chunks.db", blob[100:164])
    assert judge("check", status=12)["errors"]
    judge("show", "@:blob", status=12)
    (w.project / "blob").unlink()
    assert judge("check", "--repair", status=12)["repaired"]["set_aside"] == 1
    (w.project / "blob").write_bytes(blob)
    assert judge("check", "--repair")["repaired"]["restored"] == 1


if __name__ == "__main__":
    sys.exit(main())

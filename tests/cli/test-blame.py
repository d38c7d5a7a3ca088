"""Which version each line of a file came with, and what made that version."""

import json
import os
import subprocess
import sys

from snaptest import LONG, World, dice, main, needs_fuse, test

COMMITS = 1000 if LONG else 200


def git(w, *args):
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
           "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
           "GIT_COMMITTER_EMAIL": "a@b", "HOME": str(w.home)}
    return subprocess.run(["git", "--git-dir", str(w.home / "history"), "--work-tree", str(w.project), *args],
                          env=env, check=True, capture_output=True).stdout.decode()


def blame(w, *args):
    return w.ok("blame", *args, "--json").json("snap.blame/1", "project", "path", "versions", "lines")


def versions(w, *args):
    return w.ok("log", "--json", *args).json("snap.log/1", "path", "versions")["versions"]


def statuses(w, *args):
    return "".join(v["status"] for v in versions(w, *args))


def git_blame(w, path):
    """(commit, line there) of each line."""
    rows = git(w, "blame", "--porcelain", path).splitlines()
    return [(row.split()[0], int(row.split()[1])) for row in rows
            if len(row.split()) >= 3 and len(row.split()[0]) == 40 and not row.startswith("\t")]


def edit(dice, lines):
    """Change a text as people do: insert, delete, replace, move, and repeat what is there."""
    lines = list(lines)
    for _ in range(dice.randint(1, 3)):
        at, n = dice.randint(0, len(lines)), dice.randint(1, 6)
        kind = dice.choice("iiirdcmb")
        if kind == "i":
            lines[at:at] = [f"{'    ' * dice.randint(0, 2)}line {dice.randrange(1 << 30)}" for _ in range(n)]
        elif kind == "b":
            lines[at:at] = ["    if (x) {", "        return;", "    }", ""]
        elif kind == "r":
            lines[at:at + n] = [f"    other {dice.randrange(1 << 30)}" for _ in range(dice.randint(1, 6))]
        elif kind == "d":
            del lines[at:at + n]
        elif kind == "c":
            lines[at:at] = lines[max(0, at - n):at]
        else:
            moved = lines[at:at + n]
            del lines[at:at + n]
            to = dice.randint(0, len(lines))
            lines[to:to] = moved
    return lines


@test
def each_line_is_blamed_as_git_blames_it(w: World):
    rng = dice()
    git(w, "init", "-q")
    path, lines, names = "src/one.c", [f"line {i}" for i in range(60)], {}
    for i in range(COMMITS):
        lines = edit(rng, lines)
        if rng.random() < 0.02:
            (w.project / path).unlink(missing_ok=True)
            path = f"src/{'abc'[i % 3]}/name{i}.c"
            (w.project / path).parent.mkdir(exist_ok=True)
        (w.project / path).write_text("\n".join(lines) + ("\n" if rng.random() < 0.9 else ""))
        git(w, "add", "-A", ".")
        git(w, "commit", "-q", "--allow-empty", "-m", str(i))
        names[w.ok("snapshot", "--json").json("snap.snapshot/1")["snapshot"]] = git(w, "rev-parse", "HEAD").strip()
        if i % 50 == 49 or i == COMMITS - 1:
            want = git_blame(w, path)
            got = blame(w, path)["lines"]
            ours = [(names[line["snapshot"]], line["was_line"]) for line in got]
            assert len(ours) == len(want), f"{len(ours)} lines, git has {len(want)}"
            wrong = [k + 1 for k in range(len(want)) if ours[k] != want[k]]
            assert not wrong, f"after {i + 1} commits lines {wrong} of {path} differ from git blame"


@test
def lines_are_followed_through_runs_promotions_and_renames(w: World):
    needs_fuse()
    (w.project / "text").write_text("one\ntwo\nthree\n")
    first = w.ok("snapshot", "-q").out.decode().strip()
    w.ok("clone", "-n", "try")
    w.ok("run", "try", "--", "sh", "-c", "sed -i 's/two/TWO/' text")
    w.ok("snapshot", "try")
    w.ok("run", "try", "--", "sh", "-c", "echo four >> text; mv text words")
    runs = [r["run"] for r in w.ok("runs", "--json").json("snap.runs/1")["runs"]]
    w.ok("promote", "try", "--yes")
    got = blame(w, "words")
    by = [(line["by"], line["run"]) for line in got["lines"]]
    assert by == [("snapshot", None), ("run", runs[1]), ("snapshot", None), ("run", runs[0])], by
    assert got["lines"][0]["snapshot"].startswith(first)
    rows = versions(w, "words")
    assert [(v["status"], v["by"], v["path"]) for v in rows] == [
        ("R", "run", "words"), ("M", "run", "text"), ("A", "snapshot", "text")], rows
    assert rows[0]["old_path"] == "text" and rows[0]["promotion"] and rows[0]["clone"] == "try", rows[0]
    assert rows[0]["command"].startswith("sh -c"), rows[0]
    story = w.ok("why", "words", "--json").json("snap.why/1", "story")["story"]
    assert [s["by"] for s in story] == ["snapshot", "run", "run"], story
    assert "made text with 3 lines" in story[0]["sentence"], story
    assert f"Run {runs[1]} in the clone try changed text, adding 1 line and removing 1 line" in story[1]["sentence"]
    assert "renamed text to words" in story[2]["sentence"] and "with promotion" in story[2]["sentence"], story
    assert story[1]["promotion"] == story[2]["promotion"] == rows[0]["promotion"], story
    # The clone and its snapshots go; the promotion, and what is known of the run, stay.
    w.ok("rm", "try")
    by = [line["by"] for line in blame(w, "words")["lines"]]
    assert by[0] == by[2] == "snapshot" and set(by) <= {"snapshot", "run", "promotion"}, by
    assert w.ok("log", "words").out.count(b"\n") >= 2


@test
def what_no_snapshot_has_yet_is_marked(w: World):
    (w.project / "a").write_text("1\n2\n3\n")
    w.ok("snapshot")
    (w.project / "a").write_text("1\nnew\n3\n")
    got = blame(w, "a")["lines"]
    assert [(line["by"], line["line"]) for line in got] == [("snapshot", 1), ("now", 2), ("snapshot", 3)], got
    assert got[1]["snapshot"] is None
    assert statuses(w, "a") == "MA"
    (w.project / "a").unlink()
    assert statuses(w, "a") == "DA"
    w.snap("blame", "a").fails(4, "there is no file 'a'")
    w.ok("snapshot")
    assert statuses(w, "a") == "DA"
    (w.project / "a").write_text("1\n2\n3\n")
    assert statuses(w, "a") == "ADA"
    got = blame(w, "a", "--at", "@-1")["lines"]
    assert [line["by"] for line in got] == ["snapshot"] * 3, got
    needs_fuse()
    w.ok("clone", "-n", "try", "--from", "@-1")
    w.ok("write", "try:a", input=b"1\n2\n3\n4\n", stdin=None)
    got = blame(w, "a", "--at", "try")["lines"]
    assert [line["by"] for line in got] == ["snapshot"] * 3 + ["now"], got
    assert statuses(w, "try", "--", "a") == "MA"


@test
def lines_that_a_rollback_brought_back_keep_their_author(w: World):
    (w.project / "a").write_text("1\n2\n")
    first = w.ok("snapshot", "--json").json("snap.snapshot/1")["snapshot"]
    (w.project / "a").write_text("1\nx\n")
    w.ok("snapshot")
    w.ok("rollback", first, "--yes")
    (w.project / "a").write_text("1\n2\n3\n")
    third = w.ok("snapshot", "--json").json("snap.snapshot/1")["snapshot"]
    got = [line["snapshot"] for line in blame(w, "a")["lines"]]
    assert got == [first, first, third], got


@test
def a_range_lists_the_versions_that_changed_it(w: World):
    text = [f"line {i}" for i in range(1, 21)]

    def take():
        (w.project / "a").write_text("\n".join(text) + "\n")
        return w.ok("snapshot", "--json").json("snap.snapshot/1")["snapshot"]

    first = take()
    text[9] = "ten"
    ten = take()
    text[0:0] = ["new", "new"]
    take()
    text[19] = "far"
    take()
    text[12] = "thirteen"
    last = take()
    got = [v["snapshot"] for v in versions(w, "-L", "10,14:a")]
    assert got == [last, ten, first], got
    assert [v["snapshot"] for v in versions(w, "-L", "1,2:a")] == [versions(w, "a")[2]["snapshot"]]
    assert [v["snapshot"] for v in versions(w, "-L", "13,+1:a")] == [last, first]
    assert len(blame(w, "-L", "3,5", "a")["lines"]) == 3
    assert [line["line"] for line in blame(w, "-L", "21,", "a")["lines"]] == [21, 22]
    for bad in ("0,1", "x", "3,2", "1,+0", "-1,2"):
        w.snap("blame", "-L", bad, "a").fails(2, "are no lines")
        w.snap("log", "-L", f"{bad}:a").fails(2, "is no range")
    w.snap("blame", "-L", "90,91", "a").fails(2, "has 22 lines")
    w.snap("log", "-L", "90,91:a").fails(2, "has 22 lines")


@test
def what_is_asked_wrongly_gets_a_sentence(w: World):
    w.ok("snapshot")
    w.snap("log", "nothing").fails(4, "no clone 'nothing'")
    w.snap("log", "--", "nothing").fails(4, "no snapshot has a file 'nothing'")
    w.snap("log", "--", "..").fails(2, "is outside of")
    w.snap("log", "--", ".").fails(2, "is a directory")
    w.snap("log", "--", "a", "b").fails(2, "takes one file")
    w.snap("log", "--graph", "--", "README.md").fails(2, "neither --graph")
    w.snap("why", "nothing").fails(4, "no snapshot has a file 'nothing'")
    w.snap("blame", "nothing").fails(4, "there is no file 'nothing'")
    w.snap("blame", "--at", "nope", "README.md").fails(4, "nope")
    (w.project / "link").symlink_to("x")
    w.ok("snapshot")
    w.snap("blame", "link").fails(2, "no regular file")
    (w.project / "link").unlink()
    (w.project / "link").symlink_to("y")
    w.ok("snapshot")
    assert statuses(w, "link") == "MA"
    (w.project / "README.md").chmod(0o755)
    w.ok("snapshot")
    assert statuses(w, "README.md")[0] == "M"


def hook(w, event, **more):
    said = {"session_id": "s-1", "cwd": str(w.project), "hook_event_name": event, **more}
    w.ok("agents", "hook", "claude-code", input=json.dumps(said).encode(), stdin=None, cwd="/")


@test
def a_step_of_an_agent_is_named(w: World):
    (w.project / "a").write_text("1\n")
    w.ok("snapshot")
    tool = {"tool_name": "Edit", "tool_input": {"file_path": "a"}}

    def write(last):
        (w.project / "a").write_text("".join(f"{i}\n" for i in range(1, last + 1)))

    hook(w, "UserPromptSubmit", prompt="add a line")
    hook(w, "PreToolUse", **tool)
    write(2)
    hook(w, "PostToolUse", **tool)
    # Clients without a hook for the end of a tool.
    hook(w, "UserPromptSubmit", prompt="add two lines")
    hook(w, "PreToolUse", **tool)
    write(3)
    hook(w, "PreToolUse", **tool)
    write(4)
    w.ok("snapshot")
    got = blame(w, "a")
    rows = [(line["by"], line["who"]) for line in got["lines"]]
    assert rows[1:] == [("step", "claude-code")] * 3 and rows[0][0] == "snapshot", rows
    step = got["versions"][got["lines"][1]["version"]]
    assert step["session"] == "s-1" and step["turn"] == 1 and "Edit" in step["command"], step
    write(5)
    # Labels that anybody may give are not a hook's.
    meta = ["client=claude", "session=s1", "turn=2", "step=after"]
    w.ok("snapshot", *[word for m in meta for word in ("--meta", m)])
    assert blame(w, "a")["lines"][4]["by"] == "snapshot"


if __name__ == "__main__":
    sys.exit(main())

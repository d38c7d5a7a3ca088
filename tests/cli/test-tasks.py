"""Commands with a name, and snippets: which is meant, how it runs, and that no file is left of it."""

import json
import sys

from snaptest import World, main, needs_fuse, test, unescape


def tasks(w):
    got = w.ok("tasks", "--json").json("snap.tasks/1", "tasks")["tasks"]
    return {t["task"]: (t["command"], t["source"]) for t in got}


def configure(w, text):
    path = w.home / ".config/snapcow/config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@test
def tasks_are_found_in_the_files_of_a_project_and_the_users_come_first(w: World):
    assert tasks(w) == {}
    (w.project / "package.json").write_text(json.dumps({"scripts": {"test": "jest", "dev:web": "vite", "a b": "no"}}))
    (w.project / "Makefile").write_text("X := 1\nY = 2\n.PHONY: all\nall check: dep\n\ttest: no\n%.o: %.c\n$(X): y\ntest:\n")
    (w.project / "pyproject.toml").write_text("[tool.poe.tasks]\nfmt = 'black .'\n# no\nlint = 'ruff'\n[other]\nnot = 1\n")
    (w.project / "Cargo.toml").write_text("")
    (w.project / "meson.build").write_text("")
    got = tasks(w)
    assert got["test"] == ("npm run test", "package.json") and got["dev:web"][0] == "npm run dev:web", got
    assert got["all"] == ("make all", "Makefile") and got["check"] == ("make check", "Makefile"), got
    assert got["fmt"] == ("poe fmt", "pyproject.toml") and got["lint"][0] == "poe lint", got
    assert got["clippy"] == ("cargo clippy", "Cargo.toml") and got["build"][0] == "cargo build", got
    assert not {"a b", "X", "Y", ".PHONY", "not", "%.o", "dep"} & set(got), got
    (w.project / "yarn.lock").write_text("")
    assert tasks(w)["test"][0] == "yarn run test"
    configure(w, "tasks: {test: echo mine}\n")
    assert tasks(w)["test"] == ("echo mine", "config.yaml")
    (w.project / "package.json").write_text("{ no json")
    (w.project / "Makefile").unlink()
    (w.project / "Makefile").symlink_to("/etc/hostname")
    assert tasks(w)["test"] == ("echo mine", "config.yaml") and "all" not in tasks(w)


@test
def a_task_runs_on_a_clone_with_its_arguments(w: World):
    needs_fuse()
    configure(w, "tasks:\n  show: printf '%s,'\n  two: echo a && echo b\n")
    assert w.ok("run", "@show", "one", "two words").out == b"one,two words,"
    w.ok("clone", "-n", "try")
    assert w.ok("run", "try", "--", "@two").out == b"a\nb\n"
    w.snap("run", "@nothing").fails(125, "there is no task 'nothing'")
    w.snap("run", "@").fails(2, "'@' is the beginning of a task's name")
    assert w.ok("run", "echo", "@show").out == b"@show\n", "only the first word is a task"
    configure(w, "tasks: [no]\n")
    w.snap("run", "@show").fails(2, "'tasks' expects names")


@test
def a_snippet_runs_and_is_in_the_record_and_in_no_file(w: World):
    needs_fuse()
    code = "import os, sys\nprint(sys.argv[1:], sys.stdin.read(), sorted(os.listdir('.')))\n"
    got = w.ok("run", "--code", "-", "--lang", "python", "--", "x", "y", input=code.encode(), stdin=None)
    assert got.out == b"['x', 'y']  ['README.md', 'src']\n", got
    (run,) = w.ok("runs", "--json").json("snap.runs/1", "runs")["runs"]
    assert [unescape(word) for word in run["command"]] == [b"python3", b"-c", code.encode(), b"x", b"y"], run
    assert w.ok("run", "--code", "echo \"$0 $1\"", "--lang", "sh", "--", "a").out == b"sh a\n"
    w.ok("clone", "-n", "try")
    w.ok("run", "--code", "echo more > new", "--lang", "sh", "try", "--")
    assert w.ok("show", "try:new").out == b"more\n"


@test
def a_snippet_that_cannot_be_one_is_refused(w: World):
    for args, text, why in ((["--lang", "cobol"], b"x", "'cobol' is not one of bash, node"),
                            ([], b"x", "'--code' needs '--lang'"), (["--lang", "sh"], b"", "is empty"),
                            (["--lang", "sh"], b"a\0b", "without a NUL"),
                            (["--lang", "sh"], b"x" * 131072, "at most 131071 bytes")):
        w.snap("run", "--code", "-", *args, input=text, stdin=None).fails(2, why)
    w.snap("run", "--lang", "sh", "--", "true").fails(2, "'--lang' needs '--code'")


def replay(w, *args, status=0):
    return w.snap("replay", "--json", *args).ends(status).json("snap.replay/1", "same", "differences")


@test
def a_replay_begins_where_the_run_began_and_says_what_is_different(w: World):
    needs_fuse()
    w.ok("clone", "-n", "try")
    first = w.ok("run", "--json", "try", "--", "sh", "-c", "cat README.md; pwd; echo more >> README.md",
                 cwd=w.project / "src").json("snap.run/1", "run")["run"]
    w.ok("write", "try:README.md", "--content", "changed since")
    got = replay(w, first)
    assert got["same"] is True and got["of"] == first and got["run"] != first, got
    assert w.ok("show", "try:README.md").out == b"changed since", "it has a clone of its own"
    (w.project / "README.md").write_text("now\n")
    assert replay(w, first)["same"] is True, "nor does the project matter"
    dice = w.ok("run", "--json", "--pass-env", "DICE", "--", "sh", "-c",
                "echo one; echo $DICE; touch new$DICE; exit $DICE", env={"DICE": "0"}).json("snap.run/1")["run"]
    got = json.loads(w.snap("replay", "--json", dice, env={"DICE": "7"}).ends(3).out)
    assert {d["what"]: (d["before"], d["now"]) for d in got["differences"]} == {
        "exit code": ("0", "7"), "stdout": ("6 bytes", "6 bytes, other from line 2 on")}, got
    assert "exit code       0, now 7" in w.snap("replay", dice, env={"DICE": "7"}).ends(3).out.decode()
    w.snap("replay", "0123456789ab").ends(4)
    bare = w.ok("run", "--json", "--no-snapshot", "try", "--", "true").json("snap.run/1")
    if not bare["before"]:
        w.snap("replay", bare["run"]).fails(4, "was not kept")


@test
def a_replay_gets_no_variable_and_sees_no_path_that_the_run_had_not(w: World):
    needs_fuse()
    (w.project / "secrets").mkdir()
    (w.project / "secrets" / "key").write_text("hidden\n")
    real = {"API_TOKEN": "the-real-one", "PASSED": "yes"}
    first = w.ok("run", "--json", "--env", "API_TOKEN=x", "--pass-env", "PASSED", "--hide", "secrets", "--", "sh", "-c",
                 "echo [$API_TOKEN $PASSED]; cat secrets/key; true", env=real).json("snap.run/1")
    assert first["stdout"] == "[x yes]\n", first
    got = w.snap("replay", "--json", first["run"], env=real).ends(3)
    assert b"API_TOKEN is not set again: its value was not kept" in got.err, got
    again = json.loads(got.out)
    assert {d["what"] for d in again["differences"]} == {"stdout"}, again
    assert w.ok("attach", again["run"]).out == b"[ yes]\n"
    other = w.project.parent / "other"
    other.mkdir()
    (other / "file").write_text("of another project\n")
    w.ok("run", "--", "cat", "file", cwd=other)
    assert json.loads(w.ok("replay", "--json", env=real).out)["of"] == again["run"], "the newest here"
    record = w.store / "runs" / (first["run"] + ".json")
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    for line in lines:
        del line["asked"]
    record.write_text("".join(json.dumps(line) + "\n" for line in lines))
    w.snap("replay", first["run"]).fails(4, "was not kept: an older version ran it")


if __name__ == "__main__":
    sys.exit(main())

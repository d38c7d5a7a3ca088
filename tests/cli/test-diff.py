"""diff: between which states, in which forms, and that git takes it."""

import base64
import json
import os
import pty
import re
import stat
import subprocess
import sys
from pathlib import Path

from snaptest import SNAP, main, test


def git(world, *args, cwd):
    env = {**world.env, "GIT_CEILING_DIRECTORIES": str(world.top), "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["git", *args], cwd=cwd, env=env, check=True, capture_output=True).stdout


def clone(world, name="try"):
    """A clone with one change of every common kind in it."""
    path = Path(world.ok("-q", "clone", "-n", name).out.decode().strip())
    (path / "README.md").write_text("second\n")
    (path / "src" / "new.c").write_text("int x;\n")
    (path / "src" / "main.c").rename(path / "src" / "moved.c")
    return path


def names(result):
    return result.ends(0).out.decode().splitlines()


def tree(top):
    found = {}
    for path in sorted(top.rglob("*")):
        st = path.lstat()
        if stat.S_ISLNK(st.st_mode):
            found[str(path.relative_to(top))] = os.readlink(path)
        elif stat.S_ISREG(st.st_mode):
            found[str(path.relative_to(top))] = (bool(st.st_mode & 0o100), path.read_bytes())
    return found


# --- which states -------------------------------------------------------------------------


@test
def a_clone_is_compared_with_what_it_started_from(w):
    path = clone(w)
    want = ["M\tREADME.md", "R100\tsrc/main.c\tsrc/moved.c", "A\tsrc/new.c"]
    (w.project / "later").write_text("not in the clone\n")
    assert sorted(names(w.snap("diff", "try", "--name-status"))) == sorted(want)
    assert sorted(names(w.snap("diff", "--name-status", cwd=path))) == sorted(want)
    assert sorted(names(w.snap("diff", "--name-status", cwd=path / "src"))) == sorted(want)


@test
def a_project_is_compared_with_its_last_snapshot(w):
    w.take()
    assert names(w.snap("diff")) == []
    (w.project / "README.md").write_text("other\n")
    assert names(w.snap("diff", "--name-status")) == ["M\tREADME.md"]
    assert names(w.snap("diff", ".", "--name-status")) == ["M\tREADME.md"]
    w.take()
    assert names(w.snap("diff", "--name-status")) == []
    assert names(w.snap("diff", "@-1", "--name-status")) == ["M\tREADME.md"]
    assert names(w.snap("diff", "@-1", "@", "--name-status")) == ["M\tREADME.md"]
    # Looking takes no snapshot.
    assert len(w.ok("log", "--json").json("snap.log/1")["snapshots"]) == 2


@test
def a_snapshot_alone_is_compared_with_the_clone_one_stands_in(w):
    first = w.take("-t", "first")
    path = clone(w)
    assert len(names(w.snap("diff", "first", "--name-status", cwd=path))) == 3
    assert names(w.snap("diff", first, "--name-status")) == []


@test
def any_two_states_can_be_compared(w):
    path = clone(w)
    (w.project / "README.md").write_text("third\n")
    assert "M\tREADME.md" in names(w.snap("diff", ".", "try", "--name-status"))
    w.ok("snapshot", "try")
    (path / "more").write_text("more\n")
    assert names(w.snap("diff", "try@", "try", "--name-status")) == ["A\tmore"]
    assert names(w.snap("diff", "try", "try@", "--name-status")) == ["D\tmore"]
    other = clone(w, "other")
    (other / "README.md").write_text("third\n")
    got = w.ok("diff", "try", "other", "--json").json("snap.diff/1", "from", "to", "files")
    assert (got["from"], got["to"]) == ("try", "other")


@test
def a_clone_goes_before_a_tag_of_its_name(w):
    w.take("-t", "try")
    clone(w)
    assert len(names(w.snap("diff", "try", "--name-status"))) == 3
    assert w.ok("show", "try", "--json").json("snap.show/1")["snapshot"] is None


@test
def two_snapshots_are_compared_without_a_daemon(w):
    w.take()
    (w.project / "README.md").write_text("other\n")
    w.take()
    w.stop()
    assert names(w.snap("diff", "@-1", "@", "--name-status")) == ["M\tREADME.md"]
    assert w.daemons() == []


@test
def what_is_written_a_moment_ago_counts(w):
    path = clone(w)
    for i in range(20):
        (path / "counter").write_text(f"{i}\n")
        assert f"+{i}\n" in w.ok("diff", "try", "--", "counter").out.decode()


@test
def a_gc_takes_nothing_from_who_compares(w):
    """The states hang on the connection: what nothing else names stays until it ends."""
    w.take()
    (w.project / "big").write_bytes(os.urandom(3 << 20))
    # A pager that does not read: the command is held up with its states held.
    held = subprocess.Popen([SNAP, "diff"], cwd=w.project, env=w.env, stdout=subprocess.PIPE)
    first = held.stdout.read(1 << 10)
    w.ok("gc")
    rest = held.stdout.read()
    assert held.wait() == 0
    (w.top / "p.patch").write_bytes(first + rest)
    want = (w.project / "big").read_bytes()
    (w.project / "big").unlink()
    git(w, "apply", str(w.top / "p.patch"), cwd=w.project)
    assert (w.project / "big").read_bytes() == want
    (w.project / "big").unlink()
    before = w.ok("stats", "--json").json("snap.stats/1")["chunks"]
    w.ok("gc")
    assert w.ok("stats", "--json").json("snap.stats/1")["chunks"] < before


# --- forms --------------------------------------------------------------------------------


@test
def git_apply_takes_the_text_of_a_clone(w):
    (w.project / "old").symlink_to("README.md")
    (w.project / "bin").write_bytes(bytes(range(256)) * 40)
    path = clone(w)
    (path / "old").unlink()
    (path / "old").symlink_to("elsewhere")
    (path / "bin").write_bytes(bytes(range(255, -1, -1)) * 41)
    (path / "odd \"name\"\n\\").write_bytes(b"no end")
    (path / "src" / "new.c").chmod(0o755)
    (path / "crlf").write_bytes(b"a\r\nb\r\n")
    text = w.ok("diff", "try").out
    (w.top / "try.patch").write_bytes(text)
    git(w, "apply", "--whitespace=nowarn", str(w.top / "try.patch"), cwd=w.project)
    assert tree(w.project) == tree(path)
    git(w, "apply", "-R", "--whitespace=nowarn", str(w.top / "try.patch"), cwd=w.project)
    assert "odd \"name\"\n\\" not in tree(w.project)


@test
def paths_count_from_the_top_wherever_it_is_asked(w):
    path = clone(w)
    text = w.ok("diff", cwd=path / "src").out
    assert b"+++ b/README.md\n" in text and b"rename to src/moved.c\n" in text


@test
def what_git_cannot_say_stands_before_the_patch(w):
    path = clone(w)
    (path / "empty").mkdir()
    (path / "README.md").chmod(0o600)
    os.mkfifo(path / "pipe")
    text = w.ok("diff", "try").out.decode()
    assert text.startswith("# meta: modified README.md: mode\n# meta: added empty: directory\n"
                           "# meta: added pipe: special\ndiff --git "), text
    (w.top / "try.patch").write_text(text)
    git(w, "apply", str(w.top / "try.patch"), cwd=w.project)
    got = w.ok("diff", "try", "--json").json("snap.diff/1", "metadata")["metadata"]
    assert [(m["path"], m["status"], m["what"]) for m in got] == [
        ("README.md", "modified", ["mode"]), ("empty", "added", ["directory"]),
        ("pipe", "added", ["special"])]
    assert "m\tempty" in names(w.snap("diff", "try", "--name-status"))


@test
def what_git_refuses_is_listed_and_left_out_of_the_patch(w):
    git(w, "init", "-q", ".", cwd=w.project)
    path = clone(w)
    git(w, "config", "core.editor", "vi", cwd=path)
    text = w.ok("diff", "try").out.decode()
    assert "# left out: 1 file in places that git refuses" in text and "a/.git" not in text
    (w.top / "try.patch").write_text(text)
    git(w, "apply", str(w.top / "try.patch"), cwd=w.project)
    files = w.ok("diff", "try", "--json").json("snap.diff/1")["files"]
    assert {f["path"]: f["in_patch"] for f in files}[".git/config"] is False
    assert "M\t.git/config" in names(w.snap("diff", "try", "--name-status"))


@test
def stat_counts_lines(w):
    path = clone(w)
    (path / "bin").write_bytes(b"\0")
    lines = names(w.snap("diff", "try", "--stat"))
    assert [" ".join(line.split()) for line in lines] == [
        "README.md | 2 +-", "bin | Bin", "src/main.c => src/moved.c | 0", "src/new.c | 1 +",
        "4 files changed, 2 insertions(+), 1 deletion(-)"], lines
    assert len({line.index("|") for line in lines[:-1]}) == 1


@test
def differences_are_told_by_the_exit_code_if_asked_for(w):
    w.take()
    w.snap("diff", "--exit-code").ends(0)
    (w.project / "README.md").chmod(0o600)
    w.snap("diff", "--exit-code").ends(3)
    w.snap("diff", "--exit-code", "--stat").ends(3)
    w.snap("diff", "--exit-code", "--name-status").ends(3)
    assert w.snap("diff", "--exit-code", "--json").json(
        "snap.diff/1", "different", status=3)["different"] is True
    w.snap("diff").ends(0)
    w.snap("diff", "--exit-code", "--", "src").ends(0)


@test
def renames_can_be_left_alone(w):
    clone(w)
    assert "D\tsrc/main.c" in names(w.snap("diff", "try", "--no-renames", "--name-status"))
    assert b"rename from" not in w.ok("diff", "try", "--no-renames").out


@test
def the_lines_around_a_change_can_be_chosen(w):
    (w.project / "f").write_text("".join(f"{i}\n" for i in range(20)))
    w.take()
    (w.project / "f").write_text("".join(f"{i if i != 10 else 'x'}\n" for i in range(20)))
    for given, want in (((), 6), (("-U1",), 2), (("--unified=0",), 0), (("-U", "50"), 19)):
        text = w.ok("diff", *given).out.decode().splitlines()
        assert sum(line.startswith(" ") for line in text) == want, given


@test
def paths_limit_what_is_told(w):
    path = clone(w)
    assert names(w.snap("diff", "try", "--name-status", "--", "README.md")) == ["M\tREADME.md"]
    assert len(names(w.snap("diff", "try", "--name-status", "--", "src"))) == 2
    assert len(names(w.snap("diff", "try", "--name-status", "--", "src", "README.md"))) == 3
    assert len(names(w.snap("diff", "--name-status", "--", ".", cwd=path / "src"))) == 2
    assert names(w.snap("diff", "--name-status", "--", "../README.md", cwd=path / "src")) == [
        "M\tREADME.md"]
    assert names(w.snap("diff", "try", "--name-status", "--", "sr", "nothing")) == []
    # From elsewhere they count from the top.
    assert len(names(w.snap("diff", "try", "--name-status", "--", "src", cwd=w.home))) == 2
    w.snap("diff", "try", "--", "../../elsewhere").fails(2, "is outside of")


@test
def json_has_all_of_a_file(w):
    path = clone(w)
    (path / "\udcff").write_bytes(b"\0")
    got = w.ok("diff", "try", "--json").json("snap.diff/1", "from", "to", "files", "metadata")
    files = {f["path"]: f for f in got["files"]}
    assert files["README.md"]["status"] == "modified"
    assert (files["README.md"]["added"], files["README.md"]["removed"]) == (1, 1)
    assert files["src/moved.c"]["old_path"] == "src/main.c"
    assert files["src/moved.c"]["similarity"] == 100
    assert files["\\xff"]["binary"] is True and files["\\xff"]["old_mode"] is None
    assert files["src/new.c"]["mode_changed"] is False
    assert "patch" not in got
    (path / "src" / "new.c").chmod(0o755)
    (path / "README.md").chmod(0o755)
    files = w.ok("diff", "try", "--json").json("snap.diff/1")["files"]
    assert {f["path"]: f["mode_changed"] for f in files}["README.md"] is True


@test
def json_holds_the_patch_if_asked_for(w):
    path = clone(w)
    text = w.ok("diff", "try").out
    got = w.ok("diff", "try", "--json", "--patch").json("snap.diff/1", "patch")
    assert got["patch_encoding"] == "utf-8" and got["patch"].encode() == text
    (path / "latin").write_bytes(b"\xe4\n")
    got = w.ok("diff", "try", "--json", "-p").json("snap.diff/1", "patch")
    assert got["patch_encoding"] == "base64"
    assert base64.b64decode(got["patch"]) == w.ok("diff", "try").out


@test
def quiet_prints_names_alone(w):
    clone(w)
    assert sorted(names(w.snap("diff", "-q", "try"))) == ["README.md", "src/moved.c", "src/new.c"]


@test
def colour_is_as_git_has_it(w):
    clone(w)
    text = w.ok("diff", "--color", "always", "try", "--", "README.md").out.decode()
    assert "\033[1m--- a/README.md\033[0m\n" in text
    assert "\033[36m@@ -1 +1 @@\033[0m\n" in text
    assert "\033[31m-first\033[0m\n\033[32m+second\033[0m\n" in text
    assert b"\033" not in w.ok("diff", "try").out


# --- on a terminal ------------------------------------------------------------------------


def on_terminal(world, *args, env, cwd=None):
    """Runs it with a terminal for its output; its status and what was shown."""
    master, slave = pty.openpty()
    env = {**world.env, "TERM": "xterm", **env}
    process = subprocess.Popen([SNAP, *args], cwd=cwd or world.project, env=env, stdout=slave,
                               stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    os.close(slave)
    shown = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # nobody has the other end any more
            break
        shown += piece
    err = process.stderr.read()
    status = process.wait(60)
    os.close(master)
    return status, shown, err


def fake_pager(world, body):
    path = world.top / "pager"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@test
def a_terminal_gets_colours_and_a_pager(w):
    clone(w)
    pager = fake_pager(w, f"cat > {w.top}/paged; echo left")
    status, shown, _ = on_terminal(w, "diff", "try", env={"SNAP_PAGER": pager, "PAGER": "false"})
    assert status == 0 and shown == b"left\r\n", shown
    assert b"\033[31m-first\033[0m\n" in (w.top / "paged").read_bytes()
    status, shown, _ = on_terminal(w, "diff", "try", env={"PAGER": pager})
    assert shown == b"left\r\n"
    status, shown, _ = on_terminal(w, "diff", "try", "--stat", env={"PAGER": pager})
    assert b"3 files changed" in (w.top / "paged").read_bytes()
    for words in (("log", "--all"), ("log", "--graph")):
        status, shown, _ = on_terminal(w, *words, env={"PAGER": pager})
        assert (status, shown) == (0, b"left\r\n"), shown
        assert re.search(rb"just now|s ago", (w.top / "paged").read_bytes()), (w.top / "paged").read_bytes()


@test
def what_show_prints_goes_through_the_pager_too(w):
    clone(w)
    (w.project / "long").write_text("".join(f"line {i}\n" for i in range(1000)))
    w.take()
    pager = fake_pager(w, f"cat > {w.top}/paged; echo left")
    for state, want in (("@:long", b"line 999\n"), ("@:", b"long"), ("@", b"files")):
        status, shown, err = on_terminal(w, "show", state, env={"PAGER": pager})
        assert (status, shown, err) == (0, b"left\r\n", b""), (state, shown, err)
        assert want in (w.top / "paged").read_bytes(), state
    (w.top / "paged").unlink()
    assert on_terminal(w, "show", "@:long", env={"PAGER": "cat"})[1].count(b"\n") == 1000
    assert b"line 999" in w.ok("show", "@:long", env={"PAGER": pager}).out
    assert on_terminal(w, "show", "@:nowhere", env={"PAGER": pager})[0] == 4
    assert not (w.top / "paged").exists()
    (w.project / "long").write_text("some line of text\n" * 200000)
    w.take()
    early = fake_pager(w, "head -n 1; exec 0<&-; exit 0")
    assert on_terminal(w, "show", "@:long", env={"PAGER": early}) == (
        0, b"some line of text\r\n", b"")


@test
def the_exit_code_is_that_of_the_command_not_of_the_pager(w):
    clone(w)
    pager = fake_pager(w, "cat > /dev/null; exit 9")
    assert on_terminal(w, "diff", "try", env={"PAGER": pager})[0] == 0
    assert on_terminal(w, "diff", "try", "--exit-code", env={"PAGER": pager})[0] == 3


@test
def who_leaves_the_pager_early_has_seen_enough(w):
    path = clone(w)
    (path / "large").write_text("some line of text\n" * 200000)
    pager = fake_pager(w, "head -n 1; exec 0<&-; exit 0")
    status, shown, err = on_terminal(w, "diff", "try", "--exit-code", env={"PAGER": pager})
    assert status == 3 and shown.count(b"\n") == 1 and err == b"", (status, shown, err)


@test
def there_is_no_pager_for_nothing_in_a_pipe_or_for_json(w):
    clone(w)
    pager = fake_pager(w, f"touch {w.top}/was-run; cat")
    w.ok("diff", "try", env={"PAGER": pager})
    w.ok("diff", "@", "@", env={"PAGER": pager})
    assert on_terminal(w, "diff", "@", "@", env={"PAGER": pager})[1] == b""
    status, shown, _ = on_terminal(w, "--json", "diff", "try", env={"PAGER": pager})
    assert json.loads(shown)["schema"] == "snap.diff/1"
    for none in ("", "cat"):
        assert b"diff --git" in on_terminal(w, "diff", "try", env={"PAGER": none})[1]
    assert not (w.top / "was-run").exists()


@test
def a_pager_that_cannot_be_run_is_told(w):
    clone(w)
    _, _, err = on_terminal(w, "diff", "try", env={"PAGER": str(w.top / "nowhere")})
    assert b"could not be run" in err, err


# --- nonsense and damage ------------------------------------------------------------------


@test
def states_that_are_none_are_refused_before_anything_is_shown(w):
    w.take()
    w.snap("diff", "nowhere").fails(4, "'nowhere'", "hint: ")
    w.snap("diff", "@", "nowhere").fails(4, "'nowhere'")
    w.snap("diff", "@-9").fails(4, "'@-9'")
    w.snap("diff", "@x").fails(2, "'@x'")
    w.snap("diff", "").fails(2, "empty")
    w.snap("diff", "a", "b", "c").fails(2, "one word too many: 'c'")
    w.snap("diff", "gone@").fails(4, "'gone'")
    w.snap("diff", "--stat", "--name-status").fails(2, "do not go together")
    w.snap("diff", "-U", "x").fails(2, "'x'")
    w.snap("diff", "nowhere", "--json").fails_json(4, "E_NOT_FOUND")
    w.snap("diff", cwd=w.home).fails(4)


@test
def without_a_store_there_is_no_project(w):
    w.snap("diff").fails(4, "no project")
    assert not w.store.exists()


@test
def a_project_that_is_gone_is_named(w):
    w.take()
    w.ok("clone", "-n", "try")
    elsewhere = w.top / "elsewhere"
    w.project.rename(elsewhere)
    result = w.snap("diff", ".", "@", cwd=w.store / "clones" / "try")
    result.fails(4, str(w.project))
    elsewhere.rename(w.project)


@test
def output_that_cannot_be_written_is_a_failure(w):
    clone(w)
    with open("/dev/full", "wb") as full:
        result = w.snap("diff", "try", stdout=full)
    assert result.status == 1 and b"No space left" in result.err, str(result)


@test
def show_looks_into_clones_and_the_project_as_they_are(w):
    path = clone(w)
    (w.project / "README.md").write_text("third\n")
    assert w.ok("show", "try:README.md").out == b"second\n"
    assert w.ok("show", ".:README.md").out == b"third\n"
    assert w.ok("show", "@:README.md").out == b"first\n"
    got = w.ok("show", "try", "--json").json("snap.show/1", "snapshot", "files")
    assert got["snapshot"] is None and got["files"] == 3
    w.snap("show", "try:nowhere").fails(4, "there is no 'nowhere' in clone try")
    (path / "README.md").write_text("fourth\n")
    assert w.ok("show", "try:README.md").out == b"fourth\n"


if __name__ == "__main__":
    sys.exit(main())

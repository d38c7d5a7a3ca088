"""Every command, as people read it and as programs do."""

import base64
import fcntl
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import tarfile
import termios
from pathlib import Path

from snaptest import SERVERS, World, flip, help_lines, leak_checks, main, needs_fuse, test

ID = r"[0-9a-f]{16}"
SHORT = r"[0-9a-f]{8}"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def matches(pattern, result):
    assert re.fullmatch(pattern, result.out.decode(), re.S), f"want {pattern}\n{result}"


# --- init and snapshot ----------------------------------------------------------------------

@test
def init_registers_the_project_and_takes_a_snapshot(w: World):
    got = w.ok("--json", "init").json("snap.init/1", "project", "snapshot", "files", "bytes")
    assert got["project"] == str(w.project) and got["registered"] is True, got
    assert re.fullmatch(ID, got["snapshot"]) and re.fullmatch(ID, got["project_id"]), got
    assert got["files"] == 2 and got["dirs"] == 2 and got["bytes"] == 6 + 19, got
    assert got["parent"] is None and got["changed"] is None, got
    assert re.fullmatch(TIME, got["time"]), got


@test
def init_tells_people_project_snapshot_and_amount(w: World):
    matches(rf"project  {w.project}\nsnapshot {SHORT}  2 files, 25 B, in \S+\n", w.ok("init"))
    matches(rf"snapshot {SHORT}  2 files, 25 B, in \S+\n  nothing changed since {SHORT}\n",
            w.ok("init"))


@test
def init_takes_a_directory_as_it_is_named(w: World):
    got = w.ok("init", "src", "--json").json("snap.init/1")
    assert got["project"] == str(w.project / "src") and got["files"] == 1, got
    got = w.ok("init", str(w.project), "--json").json("snap.init/1")
    assert got["project"] == str(w.project) and got["registered"] is True, got


@test
def a_symlink_to_a_project_is_that_project(w: World):
    (w.top / "link").symlink_to(w.project)
    got = w.ok("init", str(w.top / "link"), "--json").json("snap.init/1")
    assert got["project"] == str(w.project), got


@test
def snapshot_needs_no_init_and_counts_what_changed(w: World):
    first = w.ok("snapshot", "--json").json("snap.snapshot/1", "snapshot", "parent", "files",
                                            "changed", "elapsed_ms")
    assert first["registered"] is True and first["parent"] is None, first
    (w.project / "README.md").write_text("second\n")
    (w.project / "src" / "main.c").unlink()
    (w.project / "new" / "deep").mkdir(parents=True)
    (w.project / "new" / "deep" / "a").write_text("a")
    (w.project / "new" / "b").write_text("b")
    (w.project / "empty").mkdir()
    got = w.ok("snapshot", "--json").json("snap.snapshot/1")
    assert got["parent"] == first["snapshot"] and got["registered"] is False, got
    assert (got["added"], got["modified"], got["deleted"]) == (3, 1, 1), got
    assert got["changed"] == 5 and got["files"] == 3, got


@test
def a_touched_file_has_not_changed_and_a_chmodded_one_has(w: World):
    w.take()
    os.utime(w.project / "README.md", (1, 1))
    assert w.ok("snapshot", "--json").json("snap.snapshot/1")["changed"] == 0
    (w.project / "README.md").chmod(0o755)
    (w.project / "src").chmod(0o700)
    got = w.ok("snapshot", "--json").json("snap.snapshot/1")
    assert (got["changed"], got["modified"]) == (2, 2), got


@test
def a_change_through_one_hard_link_counts_for_every_name(w: World):
    os.link(w.project / "README.md", w.project / "src" / "other")
    w.take()
    (w.project / "README.md").write_text("changed\n")
    got = w.ok("snapshot", "--json").json("snap.snapshot/1")
    assert (got["added"], got["modified"], got["deleted"]) == (0, 2, 0), got


@test
def a_file_that_becomes_a_directory_goes_and_comes(w: World):
    w.take()
    (w.project / "README.md").unlink()
    (w.project / "README.md").mkdir()
    for name in "xyz":
        (w.project / "README.md" / name).write_text(name)
    got = w.ok("snapshot", "--json").json("snap.snapshot/1")
    assert (got["added"], got["modified"], got["deleted"]) == (3, 0, 1), got


@test
def snapshot_keeps_message_and_tag(w: World):
    got = w.ok("snapshot", "-m", "two\nlines é", "-t", "v1", "--json").json("snap.snapshot/1")
    assert got["message"] == "two\nlines é" and got["tags"] == ["v1"], got
    assert w.take("--message=more") != got["snapshot"]


@test
def quiet_prints_the_id_alone(w: World):
    matches(ID + "\n", w.ok("-q", "snapshot"))
    matches(ID + "\n", w.ok("init", "--quiet"))


@test
def the_store_inside_of_a_project_is_left_out(w: World):
    store = str(w.project / "deep" / "store")
    w.ok("--store", store, "init")
    got = w.ok("--store", store, "snapshot", "--json").json("snap.snapshot/1")
    assert got["files"] == 2 and got["changed"] == 0, got


# --- which project --------------------------------------------------------------------------

def project_of(w, cwd, *args, **more):
    return w.ok("--json", *args, "snapshot", cwd=cwd, **more).json("snap.snapshot/1")["project"]


@test
def the_nearest_registered_project_wins_then_the_work_tree_then_the_directory(w: World):
    src, deep = w.project / "src", w.project / "src" / "deep"
    deep.mkdir()
    assert project_of(w, deep) == str(deep)
    (w.project / ".git").mkdir()
    assert project_of(w, src) == str(src), "an empty .git is no repository"
    (w.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    other = w.project / "other"
    other.mkdir()
    assert project_of(w, other) == str(w.project)
    assert project_of(w, deep) == str(deep)
    assert project_of(w, w.top, "-C", str(other)) == str(w.project)


@test
def a_linked_work_tree_of_git_is_one_too(w: World):
    (w.project / ".git").write_text("gitdir: /elsewhere/.git/worktrees/project\n")
    assert project_of(w, w.project / "src") == str(w.project)


@test
def a_repository_of_dot_files_does_not_make_the_home_a_project(w: World):
    (w.home / ".git").mkdir()
    (w.home / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    sub = w.home / "notes"
    sub.mkdir()
    assert project_of(w, sub) == str(sub)


@test
def the_home_directory_is_a_project_only_if_named(w: World):
    w.snap("snapshot", cwd=w.home).fails(7, "home directory", "hint: snap", " init .")
    assert not w.store.exists(), "a refusal must change nothing"
    w.snap("snapshot", "--json", cwd=w.home).fails_json(7, "E_REFUSED")
    w.ok("init", ".", cwd=w.home)
    w.ok("snapshot", cwd=w.home)
    w.snap("snapshot", cwd="/", env={"HOME": None}).fails(7)


@test
def a_folder_of_many_is_a_project_only_if_named_and_the_hint_says_how(w: World):
    shared = w.top / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    sub = shared / "mine"
    for at in ("/", "/etc", "/usr", shared, w.home):
        for status, *words in ((4, "status"), (4, "list"), (4, "gc"), (7, "init"), (7, "snapshot"), (7, "run", "--", "true")):
            failed = w.snap(*words, cwd=at)
            failed.fails(125 if words[0] == "run" else status, "hint: snapcow init .  ")
            assert failed.err.count(b"\nhint: ") == 1, failed
    w.snap("-C", str(shared), "status").fails(4, f"hint: snapcow -C {shared} init .  ")
    assert not w.store.exists(), "a refusal must change nothing"
    assert w.snap("status", "--json", cwd=shared).fails_json(4, "E_NO_PROJECT")["hints"] == ["snapcow init ."]
    sub.mkdir()
    assert project_of(w, sub) == str(sub), "what lies below is a directory like any other"
    (shared / ".git").write_text("gitdir: /elsewhere\n")
    assert project_of(w, shared) == str(shared), "git says what it is"
    (shared / ".git").unlink()
    w.ok("projects", "forget", str(shared))
    hints = [line for line in w.snap("status", cwd=shared).fails(4).err.decode().splitlines() if "hint: " in line]
    assert [h.split("  ")[0] for h in hints] == ["hint: snapcow projects", "hint: snapcow init ."], hints
    w.ok("init", ".", cwd=shared)
    w.ok("status", cwd=shared)


@test
def a_large_folder_that_nothing_marks_as_a_project_is_told(w: World):
    large = w.top / "large"
    large.mkdir()
    with open(large / "holes", "wb") as f:
        f.truncate(2 << 30)
    told = f"'{large}' is a project now, with 2.0 GiB in 1 file; if"
    got = w.ok("snapshot", cwd=large).err.decode()
    assert told in got, got
    assert told not in w.ok("snapshot", cwd=large).err.decode(), "once"
    undo = got.split("did not mean that: '")[1].split("'\n")[0]
    w.ok(*undo.split())
    assert b"large" not in w.ok("projects").out
    (large / "Makefile").write_text("all:\n")
    assert told not in w.ok("snapshot", cwd=large).err.decode()
    w.ok(*undo.split())
    (large / "Makefile").unlink()
    assert b"is a project now" not in w.ok("init", ".", cwd=large).err, "who names it knows"


@test
def the_store_is_found_by_option_variable_xdg_and_home(w: World):
    xdg, named = w.top / "xdg", w.top / "named"
    more = {"SNAPCOW_STORE": None}
    w.ok("init", env=more)
    assert (w.home / ".local/share/snapcow/meta.db").exists()
    w.ok("init", env={**more, "XDG_DATA_HOME": str(xdg)})
    assert (xdg / "snapcow/meta.db").exists()
    w.ok("init", env={**more, "XDG_DATA_HOME": "relative"})
    assert not (w.project / "relative").exists(), "XDG ignores relative paths"
    w.ok("--store", "../../named", "init")
    assert (named / "meta.db").exists()
    w.snap("init", env={**more, "HOME": None}).fails(2, "SNAPCOW_STORE")
    w.snap("--store", "", "init").fails(2)


# --- log ------------------------------------------------------------------------------------

@test
def log_lists_newest_first(w: World):
    ids = [w.take("-m", f"number {i}", "-t", f"t{i}") for i in range(3)]
    got = w.ok("log", "--json").json("snap.log/1", "project", "snapshots")
    assert [s["snapshot"] for s in got["snapshots"]] == ids[::-1], got
    newest, middle, oldest = got["snapshots"]
    for key in ("snapshot", "parent", "time", "message", "tags", "origin"):
        assert key in newest, got
    assert newest["parent"] == ids[1] and oldest["parent"] is None, got
    assert middle["message"] == "number 1" and middle["tags"] == ["t1"], got
    assert newest["origin"] == "." and re.fullmatch(TIME, newest["time"]), got
    assert w.ok("-q", "log").out.decode().split() == ids[::-1]
    assert w.ok("log", "-q", "-n", "1").out.decode().split() == ids[2:]
    lines = w.ok("log").out.decode().splitlines()
    assert len(lines) == 4 and lines[0].startswith("SNAPSHOT  TAKEN"), lines
    assert re.fullmatch(rf"{ids[2][:8]}  .+ +2 +25 B  \[t2\] number 2", lines[1]), lines


@test
def log_knows_only_its_project(w: World):
    w.take()
    other = w.top / "other"
    other.mkdir()
    w.ok("init", cwd=other)
    assert len(w.ok("log", "-q", cwd=other).out.split()) == 1
    w.snap("log", "no-such-clone").fails(4, "no-such-clone")


@test
def snapshots_in_quick_succession_keep_their_order(w: World):
    ids = [w.take() for _ in range(5)]
    assert w.ok("-q", "log").out.decode().split() == ids[::-1]


# --- show -----------------------------------------------------------------------------------

@test
def show_describes_a_snapshot_by_every_kind_of_name(w: World):
    first = w.take("-m", "one", "-t", "v1")
    second = w.take("-m", "two")
    for name, want in (("@", second), ("@-0", second), ("@-1", first), ("v1", first),
                       (first, first), (first[:6], first), (second.upper(), second)):
        got = w.ok("show", name, "--json").json("snap.show/1", "snapshot", "parent", "project")
        assert got["snapshot"] == want, (name, got)
    text = w.ok("show", "v1").out.decode()
    for part in (first, str(w.project), "v1", "25 B", "    one\n"):
        assert part in text, text
    got = w.ok("show", first, "--json", cwd=w.top).json("snap.show/1")
    assert got["snapshot"] == first, "an id needs no project"


@test
def show_prints_a_file_byte_for_byte(w: World):
    blob = os.urandom(300_000) + b"\0" * 200_000 + b"end"
    (w.project / "blob").write_bytes(blob)
    (w.project / "empty").write_bytes(b"")
    w.take()
    (w.project / "README.md").write_text("second\n")
    w.take()
    assert w.ok("show", "@-1:README.md").out == b"first\n"
    assert w.ok("show", "@:README.md").out == b"second\n"
    assert w.ok("show", "@:blob").out == blob
    assert w.ok("show", "@:empty").out == b""


@test
def show_gives_programs_text_as_text_and_the_rest_as_base64(w: World):
    text, blob = "a\\b \"é\"\n\0\x7f", b"\xff\xfe\0raw"
    (w.project / "text").write_text(text)
    (w.project / "blob").write_bytes(blob)
    w.take()
    got = w.ok("show", "@:text", "--json").json("snap.show/1", "path", "entry", "content")
    assert got["encoding"] == "utf-8" and got["content"] == text, got
    assert got["entry"]["type"] == "file" and got["entry"]["mode"] == "0644", got
    assert got["entry"]["size"] == len(text.encode()), got
    got = w.ok("show", "@:blob", "--json").json("snap.show/1")
    assert got["encoding"] == "base64" and base64.b64decode(got["content"]) == blob, got


@test
def a_file_too_large_for_json_is_refused_and_shown_without_it(w: World):
    size = (16 << 20) + 1
    with open(w.project / "large", "wb") as f:
        f.truncate(size)
    w.take()
    w.snap("show", "@:large", "--json").fails_json(1, "E_FAILED")
    assert len(w.ok("show", "@:large").out) == size


@test
def show_lists_a_directory(w: World):
    (w.project / "link").symlink_to("src/main.c")
    os.mkfifo(w.project / "pipe")
    os.link(w.project / "README.md", w.project / "twin")
    (w.project / "src" / "main.c").chmod(0o4755)
    w.take()
    got = w.ok("show", "@:", "--json").json("snap.show/1", "entries")
    by_name = {e["name"]: e for e in got["entries"]}
    assert list(by_name) == ["README.md", "link", "pipe", "src", "twin"], got
    assert by_name["twin"]["size"] == 6 and by_name["twin"]["type"] == "file", got
    assert by_name["link"]["target"] == "src/main.c", got
    assert by_name["pipe"]["type"] == "fifo" and by_name["src"]["files"] == 1, got
    text = w.ok("show", "@:").out.decode()
    for part in (r"lrwxrwxrwx .* link -> src/main\.c\n", r"prw-r--r-- .* pipe\n",
                 r"drwxr-xr-x .* src/\n", r"-rw-r--r-- +6 B .* twin\n"):
        assert re.search(part, text), text
    assert re.fullmatch(r"-rwsr-xr-x .* main\.c\n", w.ok("show", "@:src").out.decode())
    assert re.fullmatch(r"lrwxrwxrwx .* link -> .*\n", w.ok("show", "@:link").out.decode())


@test
def show_counts_paths_from_the_top_or_from_here(w: World):
    w.take()
    src = w.project / "src"
    main_c = (src / "main.c").read_bytes()
    for path in ("src/main.c", "./main.c", "../src//main.c", "src/../src/main.c",
                 str(src / "main.c")):
        assert w.ok("show", f"@:{path}", cwd=src).out == main_c, path
    w.snap("show", "@:main.c", cwd=src).fails(4)
    w.snap("show", "@:../../x", cwd=src).fails(4, "outside")
    first = w.take()
    w.snap("show", f"{first}:./main.c", cwd=w.top).fails(2)


# --- the store ------------------------------------------------------------------------------

@test
def stats_count_what_is_there_and_what_sharing_saves(w: World):
    (w.project / "blob").write_bytes(os.urandom(200_000))
    for tag in "abc":
        w.take("-t", tag)
    got = w.ok("stats", "--json").json("snap.stats/1", "logical", "stored", "chunks", "snapshots",
                                       "clones")
    assert (got["projects"], got["snapshots"], got["tags"], got["clones"]) == (1, 3, 3, 0), got
    assert got["logical"] == 3 * 200_025 and 200_000 < got["stored"] < 220_000, got
    assert got["disk"] >= got["stored"] and 2.7 < got["ratio"] < 3.0, got
    assert got["store"] == str(w.store), got
    text = w.ok("stats").out.decode()
    assert re.search(r"snapshots +3\n", text) and "times less" in text, text


@test
def check_of_a_sound_store_finds_nothing(w: World):
    w.take()
    got = w.ok("check", "--json").json("snap.check/1", "objects", "bytes", "errors")
    assert got["errors"] == [] and got["objects"] > 0 and got["bytes"] > 25, got
    matches(r"checked  \d+ objects, \S+ \S+, in \S+: no damage\n", w.ok("check"))
    matches("", w.ok("check", "-q"))


@test
def check_names_the_damaged_object_and_its_files(w: World):
    blob = os.urandom(4000)
    (w.project / "src" / "blob").write_bytes(blob)
    snapshot = w.take()
    w.stop()
    flip(w.store / "chunks.db", blob[100:164])
    got = w.snap("check", "--json").json("snap.check/1", "errors", status=12)
    assert len(got["errors"]) == 1, got
    error = got["errors"][0]
    assert error["object"].startswith("chunk ") and error["why"], got
    assert error["paths"] == [f"snapshot {snapshot}:src/blob"] and error["n_paths"] == 1, got
    text = w.snap("check").ends(12).out.decode()
    assert error["object"] in text and f"snapshot {snapshot}:src/blob\n" in text, text
    assert ": 1 is damaged\n" in text and "snapcow check --repair" in text, text
    assert w.snap("check", "-q").ends(12).out == b""


@test
def gc_frees_what_nothing_needs_and_keeps_the_rest(w: World):
    w.take()
    (w.project / "blob").write_bytes(os.urandom(40 << 20))

    # With no room for all of it, a snapshot fails and leaves content that nothing names.
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (24 << 20, 24 << 20))
    w.stop()  # the next daemon has the limit of the command that starts it
    w.snap("snapshot", preexec_fn=limit, restore_signals=False).fails(1)
    w.stop()
    assert len(w.ok("-q", "log").out.split()) == 1
    got = w.ok("gc", "--json").json("snap.gc/1", "freed", "removed", "kept")
    assert got["freed"] > 1 << 20 and got["removed"] > 10 and got["kept"] > 0, got
    assert got["disk"] < got["disk_before"], got
    assert w.ok("show", "@:README.md").out == b"first\n"
    w.ok("check")
    matches(r"removed  0 objects, 0 B, in \S+\nkept     \d+ objects; the store takes .*\n",
            w.ok("gc"))


# --- help and version -----------------------------------------------------------------------

@test
def version_is_the_same_however_it_is_asked_for(w: World):
    got = w.ok("version", "--json").json("snap.version/1", "version", "daemon")
    assert got["daemon"] is None, got
    matches(f"snapcow {got['version']}\n", w.ok("version"))
    matches(f"snapcow {got['version']}\n", w.ok("--version"))
    assert w.ok("--version", "--json").json("snap.version/1") == got


@test
def help_has_topics(w: World):
    topics = ["exit-codes", "guard", "json", "states"]
    got = w.ok("help", "--json").json("snap.help/1", "topics")["topics"]
    assert [t["name"] for t in got] == topics, got
    for name in topics:
        lines = w.ok("help", name).out.decode().splitlines()
        assert 10 < len(lines) <= 25 and max(map(len, lines)) <= 90, lines
        assert f"{name}" in w.ok("help").out.decode()
        one = w.ok("help", "--json", name).json("snap.help/1", "topics")
        assert [t["name"] for t in one["topics"]] == [name] and one["commands"] == [], one
    codes = w.ok("help", "exit-codes").out.decode()
    page = (Path(__file__).resolve().parents[2] / "docs/man/snapcow-exit-codes.7.scd").read_text()
    for code in re.findall(r"^\*(\d+)\*", page, re.M):
        assert re.search(rf"^  {code}[ +]", codes, re.M), code
    assert w.ok("help", "json", cwd="/").out, "it needs no project"


@test
def help_knows_every_command_and_fits_a_screen(w: World):
    overview = w.ok("help")
    assert w.ok("--help").out == w.ok("-h").out == overview.out
    got = w.ok("help", "--json").json("snap.help/1", "commands", "options")
    names = [c["name"] for c in got["commands"]]
    assert {"clone", "list", "status", "rm", "init", "snapshot", "log", "show", "stats", "check",
            "gc", "mount", "umount", "start", "stop", "help", "version"} <= set(names), names
    whole = w.ok("help", "--all")
    assert w.ok("help", "-a").out == whole.out
    pages = {name: w.ok("help", name) for name in names}
    for page, most, wide in [(overview, 52, 80), (whole, 104, 90),
                             *((page, help_lines(name), 80) for name, page in pages.items())]:
        lines = page.out.decode().splitlines()
        assert len(lines) <= most, page
        assert max(map(len, lines)) <= wide, page
    for name in names:
        assert f"\n  {name} " in whole.out.decode(), name
        assert re.search(rf"(\n  |also .*|\n  [a-z, ]*){name}[ ,\n]", overview.out.decode()), name
        page = pages[name].out
        assert page.startswith(f"usage: snapcow {name}".encode()), page
        assert w.ok(name, "--help").out == w.ok(name, "-h").out == page, name
    assert not w.store.exists(), "asking for help must not make a store"


@test
def help_has_examples_and_fills_a_narrow_terminal(w: World):
    for c in w.ok("help", "--json").json("snap.help/1", "commands")["commands"]:
        assert c["examples"], c["name"]
    assert "\n    rules:\n      - name: lint\n" in w.ok("help", "watch").out.decode()
    assert '\n    restrict,command="snapcow serve' in w.ok("help", "serve").out.decode()
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    w.ok("help", "gc", stdout=theirs)
    os.close(theirs)
    lines = os.read(ours, 65536).decode().replace("\r\n", "\n").splitlines()
    os.close(ours)
    long = [line for line in lines if len(line) > 40]
    assert long == ["  snapcow gc --keep-last 20 --keep-within 30d --dry-run",
                    "Options of every command: snapcow help --all"], long
    assert "      --keep-last N" in lines and "Without options it removes no snapshot." in lines, lines


@test
def options_of_all_commands_may_stand_before_or_behind(w: World):
    w.take()
    assert w.ok("--json", "log").out == w.ok("log", "--json").out
    assert w.ok("log", "-C", str(w.project), "-q", cwd=w.top).out == w.ok("-q", "log").out
    w.ok("-v", "stats", "-v")


# Of each command, in an order that works: what scripts need of it, and nothing else.
QUIET = (
    (rf"{ID}\n", "init"),
    (r"/\S+/x\n", "clone", "-n", "x"),
    (r"x\n", "list"),
    (r"project .+", "status"),
    ("", "write", "x:f"),
    ("", "edit", "x:f", "--old", "1", "--new", "2"),
    (rf"{ID}\n", "snapshot", "x"),
    (rf"({ID}\n)+", "log", "x"),
    (r"snapshot .+", "show", "@"),
    (rf"({ID}\n)+", "blame", "README.md"),
    ("", "why", "README.md"),
    ("", "tag", "v1", "@"),
    (r"f\n", "diff", "x"),
    ("", "compare", "x", "@"),
    (r"x\n|", "resolve", "x"),
    (r"approve\n", "policy", "explain", "x"),
    ("", "watch"),
    (rf"{ID}\n", "ship", "x"),
    (rf"{ID}\n", "pipeline"),
    ("", "approve", "x"),
    ("", "reject", "x", "-m", "no"),
    (rf"{ID}\n", "promote", "x"),
    (rf"{ID}\n", "undo"),
    (rf"({ID}\n)?", "rebase", "x"),
    (rf"({ID}\n)?", "rollback", "x"),
    ("out\n", "run", "x", "--", "echo", "out"),
    ("out\n", "try", "--keep", "sh", "-c", "echo out; echo > new"),
    (rf"{ID}\n", "bisect", "@-1", "@", "--", "true"),
    (r"([0-9a-f]{12}\n){2}", "runs"),
    (r"out\n", "logs"),
    (r"[0-9a-f]{12}\n", "replay"),
    (r"a\n", "experiment", "--arm", "a=true"),
    (r"[0-9a-f]{12}\n", "run", "--detach", "x", "--", "sleep", "600"),
    (r"[0-9a-f]{12}\n", "ps"),
    ("", "answer"),
    ("", "cancel", "RUN"),
    (".*", "wait", "RUN"),
    ("", "attach", "RUN"),
    (r"store .+", "stats"),
    (r"(\d+\n)+", "events"),
    ("", "tasks"),
    ("", "allow", "a.example:443", "x"),
    (r"rootfs\n", "import", "ROOTFS"),
    (r"rootfs\n", "image"),
    ("", "export", "rootfs", "--tar", "AGAIN"),
    ("", "artifact"),
    (rf"{ID}\n", "artifact", "save", "x", "f"),
    (r"sha256:[0-9a-f]{64}\n", "push", "dir:DEPOT"),
    (rf"{ID}\n", "fetch", "dir:DEPOT"),
    (rf"{ID}\n", "pull", "dir:DEPOT"),
    ("", "remote", "add", "origin", "dir:DEPOT"),
    ("SNAPDEP1", "serve"),
    (r"/\S+\n", "projects"),
    ("", "check"),
    ("", "audit", "verify"),
    (r"# HELP .+", "metrics"),
    ("", "gc"),
    ("", "umount", "x"),
    (r"/\S+/x\n", "mount", "x"),
    ("", "fsmonitor", "--setup", "x"),
    ("", "start"),
    (r"([a-z-]+\n)+", "profile"),
    ("", "profile", "check"),
    (r"usage: .+", "help"),
    (r"# .+", "completion", "bash"),
    (".*", "doctor"),
    ("(.*\n)+", "top", "-n", "1"),
    ("", "mcp"),
    (r"([a-z-]+\n)*", "agents"),
    (r"\S+ \S+\n", "version"),
    ("", "rm", "x"),
    ("", "stop"),
)


@test
def quiet_is_quiet_in_every_command(w: World):
    needs_fuse()
    there = {c["name"] for c in w.ok("help", "--json").json("snap.help/1")["commands"]}
    run = ""
    stages = w.home / ".config" / "snapcow" / "pipeline.yaml"
    stages.parent.mkdir(parents=True)
    stages.write_text("- stages: [{name: dev, target: ., approve: always}]\n")
    places = {"ROOTFS": str(w.top / "rootfs.tar"), "AGAIN": str(w.top / "again.tar")}
    with tarfile.open(places["ROOTFS"], "w") as tar:
        tar.add(w.project / "README.md", "README.md")
    for pattern, *args in QUIET:
        args = [places.get(word, word) for word in args]
        if args[0] == "fsmonitor":
            subprocess.run(["git", "init", "-q", w.store / "clones" / "x"], check=True, capture_output=True)
        status = {"doctor": None, "wait": 143, "attach": 143, "ship": 14}.get(args[0], 0)
        result = w.snap("-q", *(run if word == "RUN" else word.replace("DEPOT", str(w.top / "depot")) for word in args),
                        **({"input": b"1\n", "stdin": None} if args[0] == "write" else {}))
        if status is not None:  # doctor ends as the machine is
            result.ends(status)
        assert result.err == b"", f"something on stderr\n{result}"
        matches(pattern, result)
        run = result.out.decode().strip() if "--detach" in args else run
    assert there - SERVERS == {args[0] for _, *args in QUIET}, "some are not tried"
    for name in there:
        failed = w.snap("-q", name, "--bogus").fails(2, "--bogus")
        assert failed.err.count(b"\n") == 1, str(failed)


@test
def the_name_it_was_called_by_does_not_matter(w: World):
    link = w.top / "snap"
    link.symlink_to(os.environ["SNAP_UNDER_TEST"])
    assert w.ok("version", program=link).out == w.ok("version").out
    w.snap("show", "@", program=link).fails(4, "hint: snap init\n")
    w.snap("show", "@").fails(4, "hint: snapcow init\n")


@test
def no_command_leaks(w: World):
    os.link(w.project / "README.md", w.project / "twin")
    commands = (("snapshot", "-m", "first", "-t", "v1"), ("snapshot",), ("log", "--json"),
                ("show", "@"), ("show", "v1:", "--json"), ("show", "@:twin"), ("stats",),
                ("check", "--json"), ("gc",), ("help", "log"), ("clone", "-n", "try"),
                ("log", "--graph"), ("tag", "v2"), ("tag", "--json"), ("tag", "-d", "v2"),
                ("stats", "--json"), ("gc", "--keep-last", "1", "--json"), ("doctor", "--json"),
                ("completion", "zsh"), ("completion", "bash", "--json"), ("completion", "states"),
                ("run", "--json", "--", "true"), ("run", "try", "--", "true"), ("runs",),
                ("runs", "--json"), ("logs",), ("logs", "--json"), ("ps",), ("status", "try"),
                ("list", "--json"))
    failing = ((4, "show", "@:nope"), (127, "run", "--", "no-such-program"),
               (125, "run", "-w", "nope", "--", "true"))
    checks = leak_checks(len(commands) + len(failing) + 1, 4)
    for args, env in zip(commands, checks):
        w.ok(*args, env=env)
    for (status, *args), env in zip(failing, checks[len(commands):]):
        w.snap(*args, env=env).fails(status)
    w.snap("snapshot", "-t", "v1", "--json", env=checks[-1]).fails_json(1, "E_EXISTS")


# --- colour ---------------------------------------------------------------------------------

@test
def colour_is_for_terminals_unless_asked_for(w: World):
    w.take()
    assert b"\033" not in w.ok("log").out
    assert b"\033[33m" in w.ok("log", "--color", "always").out
    assert b"\033[33m" in w.ok("--color=always", "log", env={"NO_COLOR": "1"}).out
    w.snap("log", "--color", "maybe").fails(2, "maybe", "always")
    for env, want in (({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False),
                      ({"TERM": "xterm", "NO_COLOR": ""}, True), ({"TERM": "dumb"}, False),
                      ({"TERM": ""}, False), ({}, False)):
        ours, theirs = os.openpty()
        w.ok("log", env={**env, "PAGER": "cat"}, stdout=theirs)
        os.close(theirs)
        assert (b"\033[" in os.read(ours, 65536)) == want, env
        os.close(ours)


@test
def an_empty_list_says_so_to_a_person_and_not_to_a_pipe(w: World):
    w.take()
    for args, said in ((["tag"], b"no tags yet\nhint: snapcow tag known-good\n"),
                       (["remote"], b"no remotes yet\nhint: snapcow help remote\n"),
                       (["tasks"], b"no command has a name here\nhint: snapcow help tasks\n"),
                       (["ps"], b"nothing runs now\nhint: snapcow runs --all\n"),
                       (["runs"], b"no runs yet\nhint: snapcow help run\n"),
                       (["runs", "--agent"], b"no agent called snap yet\nhint: snapcow agents\n")):
        got = w.ok(*args)
        assert got.out == got.err == b"", str(got)
        ours, theirs = os.openpty()
        assert w.ok(*args, stdout=theirs).err == said, args
        for option in ("-q", "--json"):
            assert w.ok(*args, option, stdout=theirs).err == b"", (args, option)
        os.close(theirs)
        os.close(ours)
    w.ok("tag", "v1")
    ours, theirs = os.openpty()
    assert w.ok("tag", stdout=theirs).err == b""
    os.close(theirs)
    assert b"v1" in os.read(ours, 65536)
    os.close(ours)


if __name__ == "__main__":
    sys.exit(main())

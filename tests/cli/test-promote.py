"""promote and undo: what reaches a project, what is held, and the way back."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

from promotetest import (change, clone, daemon, fill, holes, kept, log, picture, promote, refused,
                         same, statuses, undo)
from snaptest import SNAP, Skip, gone, main, test

LINES = [f"line {i}\n" for i in range(1, 21)]


def text(**changed):
    """Twenty lines, some of them other ones: l3="x"."""
    lines = list(LINES)
    for key, value in changed.items():
        lines[int(key[1:]) - 1] = f"{value}\n"
    return "".join(lines)


# --- what reaches the project -----------------------------------------------------------------

@test
def all_that_a_clone_changed_reaches_the_project_and_goes_back_exactly(w):
    fill(w.project)
    path = clone(w)
    before = picture(w.project)
    change(path)
    wanted, data = picture(path), holes(path / "sparse")
    got = promote(w, "try", "--allow", "pipe")
    same(picture(w.project), wanted)
    assert holes(w.project / "sparse") == data or len(holes(w.project / "sparse")) == 1
    assert got["promotion"] and got["before"] and got["after"] and got["clone"] == "try", got
    assert len(got["sha256"]) == 64 and got["merged"] == 0 and got["conflicts"] == [], got
    status = statuses(got)
    assert status["pipe"] == "added" and status["gone/file"] == "deleted", status
    assert status["tool"] == "modified" and status["n\u00e9e\\x0a\\x01"] == "added", status
    back = undo(w)
    assert back["undone"] == got["promotion"], back
    same(picture(w.project), before)
    # And the undo can be taken back as well, and that, too.
    again = undo(w, back["promotion"])
    same(picture(w.project), wanted)
    assert again["undone"] == back["promotion"]
    undo(w, again["promotion"])
    same(picture(w.project), before)


def swept(w, seconds=20):
    """Nothing is left of what promotions replaced."""
    until = time.monotonic() + seconds
    while any((w.store / "trash").iterdir()):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


@test
def what_many_files_replaced_goes_to_the_store_and_is_gone_soon(w):
    for i in range(100):
        (w.project / f"f{i}").write_text(f"{i}\n")
    path = clone(w)
    for i in range(100):
        (path / f"f{i}").write_text(f"{i} again\n")
    promote(w, "try")
    assert not list(w.project.glob(".snapcow-stage-*"))
    assert swept(w), "after the answer"
    # As if cowfsd had been killed after the answer.
    w.ok("stop", "--force")
    stage = w.store / "trash" / ".snapcow-stage-0123456789abcdef"
    stage.mkdir()
    (stage / "n1").write_text("replaced\n")
    w.ok("start")
    assert swept(w), "by the next one"


@contextlib.contextmanager
def on_btrfs(w):
    """The project's directory is a file system that lists what was in a directory when it was opened, and no more."""
    if os.geteuid() != 0 or not shutil.which("mkfs.btrfs"):
        raise Skip("it takes root and mkfs.btrfs")
    image = w.top / "image"
    with open(image, "wb") as f:
        f.truncate(128 << 20)
    quiet = {"check": False, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if subprocess.run(["mkfs.btrfs", "-q", image], **quiet).returncode != 0 or \
            subprocess.run(["mount", "-o", "loop", image, w.project], **quiet).returncode != 0:
        raise Skip("no btrfs can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", w.project], check=True)


@test
def nothing_of_a_promotion_is_left_on_btrfs(w):
    with on_btrfs(w):
        (w.project / "goes").write_text("x\n")
        path = clone(w)
        (path / "goes").unlink()
        (path / "README.md").write_text("second\n")
        done = w.ok("promote", "try")
        assert b"is left" not in done.err, done
        assert not list(w.project.glob(".snapcow-*")), os.listdir(w.project)
        undo(w)
        assert (w.project / "goes").read_text() == "x\n" and not list(w.project.glob(".snapcow-*"))
        w.stop()


@test
def a_promotion_that_is_repeated_changes_nothing(w):
    path = clone(w)
    assert promote(w, "try")["promotion"] is None
    (path / "README.md").write_text("second\n")
    promote(w, "try")
    before = kept(w), picture(w.project)
    got = promote(w, "try")
    assert got["promotion"] is None and got["changed"] == [] and got["after"] is None, got
    assert (kept(w), picture(w.project)) == before
    assert b"nothing to promote" in w.ok("promote", "try").out


def base(w):
    return w.ok("status", "--json", "try").json("snap.status/1", "base")["base"]


def own_changes(w):
    return {f["path"]: f["status"] for f in w.ok("diff", "--json", "try").json("snap.diff/1", "files")["files"]}


@test
def what_the_project_has_as_well_is_no_change_of_the_clone_any_more(w):
    (w.project / "goes").write_text("x\n")
    path = clone(w)
    for top in (path, w.project):
        (top / "README.md").write_text("second\n")
        (top / "new").write_text("new\n")
        (top / "goes").unlink()
    (w.project / "theirs").write_text("of the project\n")
    old = base(w)
    assert len(own_changes(w)) == 3
    w.ok("promote", "--dry-run", "try")
    assert base(w) == old
    got = promote(w, "try", "--path", "new")
    assert got["promotion"] is None and got["changed"] == [], got
    assert own_changes(w) == {"README.md": "modified", "goes": "deleted"} and base(w) != old
    w.kill_daemon()
    w.ok("stop", "--force")
    assert promote(w, "try")["promotion"] is None
    assert own_changes(w) == {}
    before = kept(w)
    promote(w, "try")
    assert kept(w) == before, "once"
    assert [c["path"] for c in w.ok("rebase", "--json", "try").json("snap.rebase/1")["changed"]] == ["theirs"]
    assert (path / "theirs").exists() and (path / "new").exists() and not (path / "goes").exists()
    w.ok("gc")
    w.ok("check")


@test
def a_conflict_that_is_settled_for_the_project_leaves_the_clone_its_change(w):
    path = clone(w)
    (path / "README.md").write_text("of the clone\n")
    (w.project / "README.md").write_text("of the project\n")
    old = base(w)
    assert promote(w, "try", "--conflict", "ours")["promotion"] is None
    assert base(w) == old and own_changes(w) == {"README.md": "modified"}


@test
def what_the_project_did_meanwhile_stays_and_texts_are_merged(w):
    for name in ("both", "mine"):
        (w.project / name).write_text(text())
    path = clone(w)
    (path / "both").write_text(text(l3="of the clone"))
    (w.project / "both").write_text(text(l17="of the project"))
    (w.project / "mine").write_text("only here\n")
    (w.project / "also").write_text("only here\n")
    before = picture(w.project)
    got = promote(w, "try")
    assert statuses(got) == {"both": "modified"} and got["merged"] == 1, got
    assert (w.project / "both").read_text() == text(l3="of the clone", l17="of the project")
    assert (w.project / "mine").read_text() == (w.project / "also").read_text() == "only here\n"
    undo(w)
    same(picture(w.project), before)


@test
def inside_a_clone_it_is_that_clone(w):
    path = clone(w)
    (path / "README.md").write_text("second\n")
    assert promote(w, cwd=path / "src")["clone"] == "try"
    assert (w.project / "README.md").read_text() == "second\n"
    w.snap("promote").fails(2, "name the clone")


@test
def quiet_prints_the_id_alone_and_a_beginning_of_it_is_enough(w):
    path = clone(w)
    (path / "README.md").write_text("second\n")
    done = w.ok("-q", "promote", "try", "--yes").out.decode().strip()
    assert w.ok("-q", "promote", "try").out == b""
    taken = w.ok("-q", "undo", done[:6]).out.decode().strip()
    assert (w.project / "README.md").read_text() == "first\n" and len(taken) == 16


@test
def people_are_told_what_happened(w):
    path = clone(w)
    (path / "README.md").write_text("second\n")
    (path / "new").write_text("new\n")
    out = w.ok("promote", "try").out.decode()
    assert out.startswith("promoted  ") and "2 paths" in out and "  A new\n" in out, out
    assert re.search(r"^  snapshots: \w{8} before it, \w{8} after it$", out, re.M), out
    done = log(w)["receipts"][0]["receipt"]
    out = w.ok("undo").out.decode()
    assert out.startswith(f"undone  {done[:8]}  ") and "  D new\n" in out, out
    assert f"  this undo is promotion {log(w)['receipts'][0]['receipt'][:8]}, and can be undone too\n" in out, out


@test
def other_owners_and_special_bits_arrive(w):
    if os.geteuid() != 0:
        raise Skip("only root gives files away")
    path = clone(w)
    before = picture(w.project)
    (path / "theirs").write_text("x")
    os.chown(path / "theirs", 12, 34)
    (path / "sticky").mkdir()
    (path / "sticky").chmod(0o3775)
    os.chown(path / "sticky", 0, 34)
    (path / "sticky").chmod(0o3775)
    wanted = picture(path)
    promote(w, "try")
    same(picture(w.project), wanted)
    undo(w)
    same(picture(w.project), before)


# --- a part of it -----------------------------------------------------------------------------

@test
def patterns_say_which_part_takes_part(w):
    fill(w.project)
    path = clone(w)
    for name in ("src/a.c", "src/deep/b.c", "src/b.h", "docs/a.md"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(name)
    (path / "tool").unlink()
    cases = ((["--path", "src/"], {"src/a.c", "src/deep/b.c", "src/b.h"}),
             (["--path", "*.c"], {"src/a.c", "src/deep/b.c"}),
             (["--path", "/tool", "--path", "docs"], {"tool", "docs/a.md"}),
             (["--exclude", "src", "--exclude", "tool"], {"docs/a.md"}),
             (["--path", "src", "--exclude", "*.h", "--exclude", "deep/"], {"src/a.c"}),
             (["--path", "nothing"], set()))
    for words, wanted in cases:
        got = promote(w, "try", "--dry-run", *words)
        told = {p["path"] for p in got["changed"]} - {"src/deep"}
        assert told == wanted, (words, got["changed"])
    promote(w, "try", "--path", "*.c")
    assert (w.project / "src" / "deep" / "b.c").exists() and (w.project / "tool").exists()
    assert not (w.project / "src" / "b.h").exists() and not (w.project / "docs").exists()
    # The rest can come later.
    promote(w, "try")
    assert (w.project / "src" / "b.h").exists() and not (w.project / "tool").exists()


# --- conflicts --------------------------------------------------------------------------------

def quarrel(w):
    """A text that both sides changed in the same place, one that only the clone changed."""
    (w.project / "both").write_text(text())
    path = clone(w)
    (path / "both").write_text(text(l3="of the clone", l18="also of the clone"))
    (path / "README.md").write_text("second\n")
    (w.project / "both").write_text(text(l3="of the project"))
    return path


@test
def a_conflict_changes_nothing_and_each_side_can_be_shown(w):
    quarrel(w)
    before = kept(w), picture(w.project)
    data = refused(w, 5, "E_CONFLICT", "promote", "try")
    assert data["promotion"] is None and len(data["conflicts"]) == 1, data
    c = data["conflicts"][0]
    assert (c["path"], c["kind"], c["hunks"], c["settled"]) == ("both", "content", 1, False), c
    assert b"line 3\n" in w.ok("show", c["base"]).out
    assert b"of the project" in w.ok("show", c["ours"]).out
    assert b"of the clone" in w.ok("show", c["theirs"]).out
    said = w.snap("promote", "try").fails(5, "'both'", "content", "promote --conflict markers try")
    hints = [line.partition("#") for line in said.err.decode().splitlines() if line.startswith("hint: ")]
    assert [(line.split()[2], note) for line, _, note in hints] == [
        ("promote", " put both versions, marked, into the project's files"),
        ("resolve", " list the conflicts and what to type for each"),
        ("promote", " usual: settle each conflict with resolve, then this"),
        ("show", " the base: the file before both changes"), ("show", " the clone's version")], said
    assert hints[-1][0].startswith("hint: snapcow show try:both  "), said
    hints = w.snap("--json", "promote", "try").json("snap.error/1", "error", status=5)["error"]["hints"]
    assert len(hints) == 5 and "#" not in "".join(hints), hints
    assert (kept(w), picture(w.project)) == before
    # A dry run tells the same as a plan, and ends as the act.
    got = w.snap("promote", "--json", "try", "--dry-run").json("snap.promote/1", status=5)
    assert got["conflicts"][0]["path"] == "both" and got["dry_run"], got
    assert (kept(w), picture(w.project)) == before


@test
def conflicts_are_settled_as_asked(w):
    quarrel(w)
    before = picture(w.project)
    ends = {"ours": text(l3="of the project", l18="also of the clone"),
            "theirs": text(l3="of the clone", l18="also of the clone")}
    for how, wanted in ends.items():
        got = promote(w, "try", "--conflict", how)
        assert (w.project / "both").read_text() == wanted, how
        assert got["conflicts"][0]["settled"] is True, got
        undo(w)
        same(picture(w.project), before)
    promote(w, "try", "--conflict", "markers", "--markers", "diff3")
    told = (w.project / "both").read_text()
    for part in ("<<<<<<< project\nof the project\n", "||||||| base\nline 3\n",
                 ">>>>>>> clone\n", "also of the clone"):
        assert part in told, told
    undo(w)
    same(picture(w.project), before)
    w.snap("promote", "try", "--conflict", "maybe").fails(2, "'maybe'")
    w.snap("promote", "try", "--markers", "none").fails(2, "'none'")


# --- the guard --------------------------------------------------------------------------------

def make(path, body="x\n", mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(body)
    path.chmod(mode)


HELD = {"git": ".gitmodules", "ci": ".github/workflows/ci.yml", "shell": "sub/.bashrc",
        "editor": ".vscode/tasks.json", "packages": ".npmrc", "tools": ".gdbinit", "agents": "AGENTS.md",
        "snap": ".snap/guard.yaml"}


@test
def each_rule_of_the_guard_holds_its_own(w):
    path = clone(w)
    for name in HELD.values():
        make(path / name)
    make(path / "root", mode=0o4755)
    make(path / ".hidden" / "program", mode=0o755)
    wanted = {**{v: k for k, v in HELD.items()}, "root": "set-id",
              ".hidden/program": "hidden-program"}
    if os.geteuid() == 0:
        os.mknod(path / "null", 0o020666, os.makedev(1, 3))
        wanted["null"] = "device"
    os.mkfifo(path / "pipe")
    (path / "out").symlink_to("/etc")
    (path / "repo" / "objects").mkdir(parents=True)
    (path / "repo" / "refs").mkdir()
    make(path / "repo" / "HEAD")
    wanted.update({"pipe": "fifo", "out": "link", "repo/HEAD": "bare-repository"})
    make(path / "plain")
    before = kept(w), picture(w.project)
    data = refused(w, 7, "E_REFUSED", "promote", "try")
    held = {p["path"]: p["rule"] for p in data["held"]}
    assert wanted.items() <= held.items(), wanted.items() - held.items()
    assert "plain" not in held and data["promotion"] is None, held
    assert (kept(w), picture(w.project)) == before
    w.snap("promote", "try").fails(7, "held by rule", "--allow", "promote --rules")
    rules = w.ok("promote", "--rules", "--json").json("snap.promote/1", "rules")["rules"]
    assert {r["name"] for r in rules} == set(wanted.values()) | {
        "device", "capabilities", "left-out", "sparse", "scripts", "recipes", "build", "group",
        "clone-path", "unsearched"}, rules
    listed = w.ok("promote", "--rules").out.decode()
    assert all(f"{name}: " in listed for name in HELD), listed
    # Each by its name, or all that is in a directory.
    allow = [word for name in held for word in ("--allow", name)]
    assert promote(w, "try", *allow)["held"] == []
    assert (w.project / ".snap" / "guard.yaml").exists()


RULES = """\
- name: keys
  paths: ["secrets/", "*.pem"]
  why: whoever has them is us
"""


@test
def rules_of_ones_own_hold_too(w):
    config = w.home / ".config" / "snapcow"
    config.mkdir(parents=True)
    (config / "guard.yaml").write_text(RULES)
    (w.project / ".snap").mkdir()
    (w.project / ".snap" / "guard.yaml").write_text(RULES.replace("keys", "docs")
                                                    .replace('"secrets/", "*.pem"', "README*"))
    path = clone(w)
    for name in ("secrets/a", "b.pem", "README.md", "plain"):
        make(path / name)
    make(path / ".snap" / "guard.yaml")  # what a clone says of it counts for nothing
    data = refused(w, 7, "E_REFUSED", "promote", "try")
    assert {p["path"]: p["rule"] for p in data["held"]} == {
        "secrets": "keys", "secrets/a": "keys", "b.pem": "keys", "README.md": "docs",
        ".snap/guard.yaml": "snap"}, data["held"]
    names = [r["name"] for r in w.ok("promote", "--rules", "--json").json("snap.promote/1")["rules"]]
    assert names[-2:] == ["keys", "docs"], names
    assert "keys: whoever has them is us" in w.ok("promote", "--rules").out.decode()


@test
def a_rule_that_is_none_stops_every_promotion_and_says_where(w):
    config = w.home / ".config" / "snapcow"
    config.mkdir(parents=True)
    path = clone(w)
    make(path / "plain")
    for text, where in (("name: x", ":1:1: this is a list of rules"),
                        ("- name: x\n  why: y", ":1:3: a rule has name, paths, why and perhaps level"),
                        ("- {name: x, why: y, paths: ['!z']}", "takes nothing back"),
                        ("- {name: x, why: y, paths: []}", "names nothing"),
                        ("- {name: x, why: y, paths: [z], more: 1}", "a rule has name"),
                        ("- [", ":2:1: ")):
        (config / "guard.yaml").write_text(text)
        for args in (("promote", "try"), ("promote", "--rules")):
            w.snap(*args).fails(2, "guard.yaml:", where)
    assert not (w.project / "plain").exists()
    (config / "guard.yaml").write_text("")
    promote(w, "try")


@test
def what_is_allowed_by_a_directory_is_what_is_in_it(w):
    path = clone(w)
    make(path / ".github" / "workflows" / "ci.yml")
    make(path / ".githubber")
    make(path / ".npmrc")
    data = refused(w, 7, "E_REFUSED", "promote", "try", "--allow", ".github/")
    assert [p["path"] for p in data["held"]] == [".npmrc"], data["held"]
    data = refused(w, 7, "E_REFUSED", "promote", "try", "--allow", ".git")
    assert {p["path"] for p in data["held"]} > {".npmrc"}, data["held"]


@test
def what_goes_and_what_was_there_before_is_held_too(w):
    make(w.project / ".github" / "workflows" / "ci.yml")
    make(w.project / "tool", mode=0o755)
    path = clone(w)
    (path / ".github" / "workflows" / "ci.yml").unlink()
    (path / "tool").chmod(0o2755)
    data = refused(w, 7, "E_REFUSED", "promote", "try")
    assert statuses(data, "held") == {".github/workflows/ci.yml": "deleted", "tool": "modified"}
    # What the other side changed there is nobody's to hold.
    (w.project / ".github" / "workflows" / "ci.yml").write_text("of the project\n")
    promote(w, "try", "--exclude", ".github", "--exclude", "tool")


@test
def a_link_in_the_place_of_a_held_directory_is_held(w):
    """An editor follows it, wherever the files then are."""
    path = clone(w)
    make(path / "innocent" / "tasks.json")
    for name in (".vscode", ".github", ".husky", ".snap"):
        (path / name).symlink_to("innocent")
    data = refused(w, 7, "E_REFUSED", "promote", "try")
    assert {p["path"] for p in data["held"]} == {".vscode", ".github", ".husky", ".snap"}, data


@test
def a_file_with_capabilities_is_held(w):
    """It is as good as one that is set-id, and no bit of its mode tells."""
    path = clone(w)
    make(path / "plain" / "net", mode=0o755)
    capability = struct.pack("<5I", 0x02000001, 1 << 12, 0, 0, 0)  # version 2, CAP_NET_ADMIN
    try:
        os.setxattr(path / "plain" / "net", "security.capability", capability)
    except OSError as e:
        raise Skip(f"no capabilities can be given here: {e.strerror}") from e
    data = refused(w, 7, "E_REFUSED", "promote", "try")
    assert [(p["path"], p["rule"]) for p in data["held"]] == [("plain/net", "capabilities")], data
    promote(w, "try", "--allow", "plain/net")
    assert os.getxattr(w.project / "plain" / "net", "security.capability") == capability


# --- checks -----------------------------------------------------------------------------------

@test
def a_check_sees_exactly_the_merged_tree(w):
    (w.project / "both").write_text(text())
    path = clone(w)
    (path / "both").write_text(text(l3="of the clone"))
    (path / "new").write_text("new\n")
    (w.project / "both").write_text(text(l17="of the project"))
    (w.project / "mine").write_text("mine\n")
    before = kept(w)
    got = promote(w, "try", "--check", "grep -q 'of the clone' both && grep -q 'of the project' both",
                  "--check", "test -e new -a -e mine && touch trace && pwd")
    assert [c["exit_code"] for c in got["checks"]] == [0, 0], got["checks"]
    said = w.ok("logs", got["checks"][1]["run"]).out.decode()
    assert said.strip() == str(w.project), said
    assert not (w.project / "trace").exists() and not (path / "trace").exists()
    receipt = log(w)["receipts"][0]
    assert receipt["receipt"] == got["promotion"] and receipt["clone"] == "try", receipt
    assert [c["run"] for c in receipt["checks"]] == [c["run"] for c in got["checks"]], receipt
    assert (receipt["before"], receipt["after"]) == (got["before"], got["after"]), receipt
    assert receipt["sha256"] == got["sha256"] and receipt["kind"] == "promotion", receipt
    after = kept(w)  # with what was there, what landed, and the clone's new base
    assert after[2:] == before[2:] and len(after[0]) == len(before[0]) + 3, after


@test
def a_check_that_fails_changes_and_leaves_nothing(w):
    path = clone(w)
    (path / "README.md").write_text("second\n")
    w.take()
    before = kept(w), picture(w.project)
    for command, code in (("exit 3", 3), ("kill -9 $$", 137), ("no-such-program", 127)):
        data = refused(w, 8, "E_CHECK_FAILED", "promote", "try", "--check", "true", "--check",
                       command, "--check", "echo never")
        assert [c["exit_code"] for c in data["checks"]] == [0, code], data["checks"]
        assert (kept(w), picture(w.project)) == before, command
    said = w.snap("promote", "try", "--check", "echo why >&2; false")
    assert said.status == 8 and b"error: nothing is promoted: check" in said.err, said
    assert b"hint: snapcow logs " in said.err, said
    got = promote(w, "try", "--dry-run", "--check", "false")
    assert got["checks"] == [] and (kept(w), picture(w.project)) == before, got
    w.ok("check")


@test
def a_check_that_fails_says_at_once_what_it_wrote(w):
    path = clone(w)
    (path / "README.md").write_text("second\n")
    said = w.snap("promote", "try", "--check", "seq 100; echo why >&2; printf 'end\\n'; exit 3").ends(8)
    lines = said.out.decode().splitlines()
    assert lines[0].startswith("\u2717  seq 100"), lines
    assert "  | why" in lines and "  | 100" in lines and "  | 1" not in lines, lines
    assert len(lines) <= 21, lines
    said = w.snap("promote", "try", "--check", "true").ends(0)
    assert b"  | " not in said.out, said


@test
def checks_have_limits_and_a_profile(w):
    path = clone(w)
    (path / "README.md").write_text("second\n")
    data = refused(w, 8, "E_CHECK_FAILED", "promote", "try", "--time", "1s", "--check", "sleep 100")
    assert data["checks"][0]["exit_code"] == 124, data
    w.snap("promote", "try", "--profile", "nobody-has", "--check", "true").fails(4, "nobody-has")
    command = "test $(ulimit -n) -gt 0"
    assert promote(w, "try", "--profile", "strict", "--mem", "256M", "--check", command)["promotion"]


# Until it is let go, or what it runs on is gone; which only a write tells, as the kernel knows the rest.
WAIT = "while echo > beat && test ! -e go; do sleep 0.05; done; "


def begin(w, *args):
    """A promotion, up to where its check runs; and the clone that it runs on."""
    act = subprocess.Popen([SNAP, "promote", "--json", *args], cwd=w.project, env=w.env,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return act, running(w, act)


def running(w, act, but=None):
    while act.poll() is None:
        for run in w.ok("ps", "--json").json("snap.ps/1")["runs"]:
            if run["clone"] != but:
                return run["clone"]
    raise AssertionError(act.communicate())


def let_go(w, name):
    (w.store / "clones" / name / "go").touch()


@test
def what_waits_for_its_check_is_no_state_of_the_project_yet(w):
    """While a check runs somebody looks at the project, saves it, and makes a clone of it."""
    path = clone(w)
    (path / "README.md").write_text("second\n")
    (w.project / "mine").write_text("mine\n")
    first = w.take("-m", "known")
    act, name = begin(w, "try", "--check", WAIT + "false")
    assert [s["snapshot"] for s in log(w)["snapshots"]][0] == first
    assert json.loads(w.ok("rollback", "--json").out)["to"] == first
    w.ok("clone", "-n", "other", "--from", "@")
    (w.project / "README.md").write_text("third\n")
    third = w.take("-m", "meanwhile")
    let_go(w, name)
    act.communicate()
    assert act.returncode == 8
    snapshots = w.ok("log", "--all", "--json").json("snap.log/1")["snapshots"]
    assert [s["snapshot"] for s in log(w)["snapshots"]] == [third, first], snapshots
    known = {s["snapshot"] for s in snapshots}
    assert all(s["parent"] in known or s["parent"] is None for s in snapshots), snapshots
    assert w.ok("status", "other", "--json").json("snap.status/1")["base"] in known
    assert w.ok("check", "--json").json("snap.check/1")["errors"] == []


@test
def a_clone_of_what_is_being_checked_keeps_its_base(w):
    path = clone(w)
    (path / "README.md").write_text("second\n")
    act, name = begin(w, "try", "--check", WAIT + "false")
    base = w.ok("status", name, "--json").json("snap.status/1")["base"]
    other = clone(w, "other", "--from", base)
    let_go(w, name)
    act.communicate()
    assert act.returncode == 8 and (other / "README.md").read_text() == "second\n"
    assert w.ok("status", "other", "--json").json("snap.status/1")["base"] == base
    w.ok("diff", "other")
    w.ok("rm", "other")


@test
def an_edit_during_a_check_is_merged_and_checked_again(w):
    (w.project / "both").write_text(text())
    path = clone(w)
    (path / "both").write_text(text(l3="of the clone"))
    act, name = begin(w, "try", "--check", WAIT + "cat both")
    (w.project / "both").write_text(text(l17="meanwhile"))
    let_go(w, name)
    let_go(w, running(w, act, but=name))
    got = json.loads(act.communicate()[0])
    assert act.returncode == 0, got
    assert (w.project / "both").read_text() == text(l3="of the clone", l17="meanwhile")
    checked = w.ok("logs", got["checks"][0]["run"]).out.decode()
    assert checked == (w.project / "both").read_text(), "what landed was not what was checked"
    assert len(log(w)["receipts"]) == 1


@test
def a_change_in_the_clone_during_a_check_does_not_land_unchecked(w):
    path = clone(w)
    (path / "README.md").write_text("second\n")
    act, name = begin(w, "try", "--check", WAIT + "cat README.md")
    (path / "README.md").write_text("third\n")
    let_go(w, name)
    let_go(w, running(w, act, but=name))
    got = json.loads(act.communicate()[0])
    assert (w.project / "README.md").read_text() == "third\n", got
    assert w.ok("logs", got["checks"][0]["run"]).out == b"third\n"


@test
def who_dies_while_a_check_runs_leaves_nothing(w):
    path = clone(w)
    (path / "README.md").write_text("second\n")
    w.take()
    before = kept(w), picture(w.project)
    act, _ = begin(w, "try", "--check", WAIT)
    act.kill()
    act.communicate()
    w.stop()
    after = kept(w), picture(w.project)
    assert after == before, (after[0], before[0])
    assert not w.ok("ps", "--json").json("snap.ps/1")["runs"]


@test
def cowfsd_that_dies_while_a_check_runs_leaves_nothing(w):
    path = clone(w)
    (path / "README.md").write_text("second\n")
    w.take()
    before = kept(w), picture(w.project)
    act, _ = begin(w, "try", "--check", WAIT)
    pid = daemon(w)
    os.kill(pid, signal.SIGKILL)
    assert gone(pid, 20)
    act.communicate()
    assert act.returncode not in (0, None)
    w.ok("start")
    after = kept(w), picture(w.project)
    assert after == before, (after[0], before[0])


# --- times ------------------------------------------------------------------------------------

@test
def what_lands_bears_the_time_at_which_the_clone_wrote_it(w):
    path = clone(w)
    (path / "src" / "main.c").write_text("int main(void) { return 1; }\n")
    (path / "new").write_text("new\n")
    (w.project / "main.o").write_text("built since\n")
    want = {n: (path / n).stat().st_mtime_ns for n in ("src/main.c", "new")}
    os.utime(w.project / "main.o", ns=(max(want.values()) + 10**9,) * 2)
    promote(w, "try")
    assert {n: (w.project / n).stat().st_mtime_ns for n in want} == want
    # As documented: to make, the object is newer than the source. To a capture it is another file all the same.
    assert (w.project / "main.o").stat().st_mtime_ns > want["src/main.c"]
    assert w.ok("diff", "--json", "@", ".").json("snap.diff/1")["files"] == []


# --- git --------------------------------------------------------------------------------------

def git(top, *args):
    done = subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *args], cwd=top,
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.decode()


@test
def git_shows_exactly_what_was_promoted(w):
    fill(w.project)
    git(w.project, "init", "-q")
    git(w.project, "add", "-A")
    git(w.project, "commit", "-qm", "first")
    (w.project / "staged").write_text("staged\n")
    git(w.project, "add", "staged")
    path = clone(w)
    (path / "README.md").write_text("second\n")
    (path / "lib" / "d0" / "f0").unlink()
    (path / "new.c").write_text("new\n")
    git(path, "add", "-A")
    git(path, "commit", "-qm", "in the clone")
    git(w.project, "commit", "-qm", "meanwhile, in the project")
    index, head = (w.project / ".git" / "index").read_bytes(), git(w.project, "rev-parse", "HEAD")
    got = promote(w, "try")
    assert [p["path"] for p in got["left"]] == [".git"], got["left"]
    assert (w.project / ".git" / "index").read_bytes() == index
    assert git(w.project, "rev-parse", "HEAD") == head
    told = git(w.project, "status", "--porcelain", "-uall").splitlines()
    assert sorted(told) == [" D lib/d0/f0", " M README.md", "?? new.c"], told
    git(w.project, "fsck", "--strict")
    left = "left alone: .git, which is git's own"
    assert f"{left}; 'promote --git' brings commits\n" in w.ok("promote", "try", "--dry-run").out.decode()
    assert f"{left}\n" in w.ok("promote", "--git", "try", "--dry-run").out.decode()
    undo(w)
    assert git(w.project, "status", "--porcelain") == ""


# --- undo -------------------------------------------------------------------------------------

@test
def undo_keeps_what_was_edited_since(w):
    (w.project / "both").write_text(text())
    path = clone(w)
    (path / "both").write_text(text(l3="of the clone"))
    (path / "new").write_text("new\n")
    promote(w, "try")
    (w.project / "both").write_text(text(l3="of the clone", l17="later"))
    (w.project / "later").write_text("later\n")
    got = undo(w)
    assert (w.project / "both").read_text() == text(l17="later") and got["merged"] == 1, got
    assert (w.project / "later").exists() and not (w.project / "new").exists()


@test
def undo_of_what_was_edited_in_the_same_place_is_a_conflict(w):
    (w.project / "both").write_text(text())
    path = clone(w)
    (path / "both").write_text(text(l3="of the clone"))
    done = promote(w, "try")
    (w.project / "both").write_text(text(l3="edited since"))
    before = kept(w), picture(w.project)
    data = refused(w, 5, "E_CONFLICT", "undo")
    assert data["conflicts"][0]["path"] == "both", data
    assert b"of the clone" in w.ok("show", data["conflicts"][0]["base"]).out
    assert (kept(w), picture(w.project)) == before
    w.snap("undo").fails(5, "conflicts", f"undo --conflict markers {done['promotion'][:8]}")
    plan = w.snap("undo", "--json", "--dry-run").json("snap.undo/1", status=5)
    assert plan["conflicts"] and (kept(w), picture(w.project)) == before
    undo(w, "--conflict", "theirs")
    assert (w.project / "both").read_text() == text()


@test
def undo_takes_back_one_after_the_other_and_any_by_its_id(w):
    path = clone(w)
    states, ids = [picture(w.project)], []
    for i in range(3):
        (path / f"f{i}").write_text(f"{i}\n")
        ids.append(promote(w, "try")["promotion"])
        states.append(picture(w.project))
    undo(w, ids[0])
    assert not (w.project / "f0").exists() and (w.project / "f2").exists()
    w.snap("undo", ids[0]).fails(4, "already")
    assert undo(w)["undone"] == ids[2]
    assert undo(w)["undone"] == ids[1]
    # Not in their order, so the time of a directory that all of them changed is not the first one.
    assert picture(w.project)[0].keys() == states[0][0].keys()
    w.snap("undo").fails(4, "nothing to undo")
    w.snap("undo", "--json").fails_json(4, "E_NOT_FOUND")
    w.snap("undo", "ffffffff").fails(4, "no promotion")
    assert [r["undone"] for r in log(w)["receipts"]].count(True) == 3


@test
def a_rollback_of_the_project_is_undone_exactly(w):
    fill(w.project)
    (w.project / ".git").mkdir()
    (w.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    first = w.take()
    change(w.project)
    (w.project / ".git" / "HEAD").write_text("ref: refs/heads/other\n")
    changed = picture(w.project)
    rolled = w.ok("rollback", "--json").json("snap.rollback/1", "receipt")
    assert rolled["to"] == first and rolled["receipt"], rolled
    assert log(w)["receipts"][0]["kind"] == "rollback"
    got = undo(w)
    assert got["undone"] == rolled["receipt"], got
    same(picture(w.project), changed)


@test
def git_that_was_used_since_a_rollback_is_a_conflict_of_its_undo(w):
    git(w.project, "init", "-q")
    git(w.project, "add", "-A")
    git(w.project, "commit", "-qm", "first")
    w.take()
    (w.project / "README.md").write_text("second\n")
    git(w.project, "commit", "-qam", "second")
    w.ok("rollback")
    (w.project / "other").write_text("other\n")
    git(w.project, "add", "other")
    git(w.project, "commit", "-qm", "another second")
    head = git(w.project, "rev-parse", "HEAD")
    before = picture(w.project)
    data = refused(w, 5, "E_CONFLICT", "undo")
    assert all(c["path"].startswith(".git/") for c in data["conflicts"]), data
    same(picture(w.project), before)
    undo(w, "--conflict", "ours")
    assert (w.project / "README.md").read_text() == "second\n" and (w.project / "other").exists()
    assert git(w.project, "rev-parse", "HEAD") == head
    git(w.project, "fsck", "--strict")


@test
def what_was_left_out_by_forgetting_cannot_be_undone_and_says_so(w):
    path = clone(w)
    (path / "README.md").write_text("second\n")
    done = promote(w, "try")
    for i in range(3):
        (w.project / "README.md").write_text(f"{i}\n")
        w.take()
    w.ok("rm", "try")
    w.ok("gc", "--keep-last", "1")
    w.snap("undo", done["promotion"]).fails(4, "was removed")


# --- receipts ---------------------------------------------------------------------------------

@test
def the_log_shows_receipts(w):
    path = clone(w)
    (path / "README.md").write_text("second\n")
    done = promote(w, "try", "--check", "test -e README.md")
    lines = w.ok("log").out.decode().splitlines()
    line = next(x for x in lines if "promotion of try" in x and "before" not in x)
    assert f"({done['promotion'][:8]}, test -e README.md)" in line, line
    back = undo(w)
    lines = w.ok("log").out.decode()
    assert f"({done['promotion'][:8]}, test -e README.md, undone)" in lines, lines
    assert f"({back['promotion'][:8]})" in lines, lines
    assert f"({back['promotion'][:8]})" in w.ok("log", "--graph").out.decode()
    got = {r["receipt"]: r for r in log(w)["receipts"]}
    assert got[back["promotion"]]["undoes"] == done["promotion"], got
    assert got[done["promotion"]]["base"] and got[done["promotion"]]["uid"] == os.geteuid(), got
    names = w.ok("completion", "promotions").out.decode()
    assert names == f"{back['promotion'][:8]}\tundo\n", names
    assert w.ok("log", "try", "--json").json("snap.log/1")["receipts"] == []


@test
def the_digest_is_the_one_that_is_documented(w):
    (w.project / "gone").write_text("gone\n")
    path = clone(w)
    (path / "gone").unlink()
    (path / "README.md").write_text("second\n")
    (path / "link").symlink_to("README.md")
    (path / "README.md").chmod(0o644)
    os.utime(path, ns=(1, 1))
    got = promote(w, "try", "--path", "README.md", "--path", "gone", "--path", "link")

    def row(letter, mode, body, name):
        digest = hashlib.sha256(body).hexdigest() if body is not None else "-"
        return f"{letter} {mode:o} {digest} {name}\0".encode()

    rows = [row("M", 0o100644, b"second\n", "README.md"), row("D", 0, None, "gone"),
            row("A", 0o120777, b"README.md", "link")]
    assert got["sha256"] == hashlib.sha256(b"".join(rows)).hexdigest(), got


@test
def links_holes_and_modes_are_in_the_digest_too(w):
    (w.project / "mode").write_text("stays\n")
    (w.project / "mode").chmod(0o644)
    (w.project / "kept").write_text("kept\n")
    path = clone(w)
    (path / "mode").chmod(0o600)
    os.link(path / "kept", path / "kept-2")
    (path / "new").write_text("twice\n")
    os.link(path / "new", path / "new-2")
    with open(path / "sparse", "wb") as f:
        f.seek(1 << 20)
        f.write(b"end")
        f.truncate(3 << 20)
    for name in ("new", "sparse", "kept"):
        (path / name).chmod(0o644)
    got = promote(w, "try")
    letter = {"added": "A", "modified": "M"}
    rows = [f"{letter[p['status']]} {0o100600 if p['path'] == 'mode' else 0o100644:o} "
            f"{hashlib.sha256((w.project / p['path']).read_bytes()).hexdigest()} {p['path']}\0"
            for p in got["changed"]]
    assert {p["path"] for p in got["changed"]} >= {"mode", "kept-2", "new", "new-2", "sparse"}, got
    assert got["sha256"] == hashlib.sha256("".join(rows).encode()).hexdigest(), got
    assert [r["sha256"] for r in log(w)["receipts"]] == [got["sha256"]], log(w)


@test
def the_files_of_what_came_of_it_are_counted(w):
    path = clone(w)
    (path / "a").write_text("12345")
    (path / "src" / "main.c").unlink()
    (path / "b").write_text("1")
    promote(w, "try")
    after = log(w)["snapshots"][0]
    counted = w.ok("snapshot", "--json").json("snap.snapshot/1")
    assert (after["files"], after["bytes"]) == (counted["files"], counted["bytes"]), after


# --- nonsense ---------------------------------------------------------------------------------

@test
def what_makes_no_sense_to_promote_is_said(w):
    w.snap("promote", "none").fails(4)
    clone(w)
    w.snap("promote", "none").fails(4, "'none'")
    w.snap("promote", "none", "--json").fails_json(4, "E_NOT_FOUND")
    w.snap("promote", "a", "b").fails(2)
    w.snap("undo", "").fails(2)


if __name__ == "__main__":
    sys.exit(main())

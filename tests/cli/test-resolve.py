"""Conflicts of a clone, settled path by path."""

import os
import random
import re
import sys

from promotetest import clone, kept, promote, refused, statuses, undo
from snaptest import main, test

LINES = [f"line {i}\n" for i in range(20)]
OURS, THEIRS = "of the project", "of the clone"


def put(path, to, line=3):
    lines = path.read_text().splitlines(keepends=True)
    lines[line] = f"{to}\n"
    path.write_text("".join(lines))


def quarrel(w, name="try"):
    """One conflict of each sort that files can have."""
    for file in ("both", "other", "deleted", "edited", "mode", "type"):
        (w.project / file).write_text("".join(LINES))
    (w.project / "binary").write_bytes(b"\0")
    top = clone(w, name)
    for at, word in ((top, THEIRS), (w.project, OURS)):
        put(at / "both", word)
        put(at / "other", word)
        (at / "binary").write_bytes(b"\0" + word.encode())
        (at / "added").write_text(word + "\n")
    put(top / "both", "also " + THEIRS, 15)
    (top / "deleted").unlink()
    put(w.project / "deleted", OURS)
    put(top / "edited", THEIRS)
    (w.project / "edited").unlink()
    (top / "mode").chmod(0o755)
    (w.project / "mode").chmod(0o600)
    (top / "type").unlink()
    (top / "type").symlink_to("both")
    put(w.project / "type", OURS)
    return top


def resolve(w, *args, **more):
    got = w.ok("resolve", "--json", *args, **more).json("snap.resolve/1", "clone", "conflicts", "open")
    return {c["path"]: c for c in got["conflicts"]}, got["open"]


def files(top):
    found = {}
    for path in sorted(p for p in top.iterdir() if p.is_symlink() or not p.is_dir()):
        found[path.name] = (os.readlink(path) if path.is_symlink() else path.read_bytes(),
                            oct(path.lstat().st_mode))
    return found


PATHS = ["added", "binary", "both", "deleted", "edited", "mode", "other", "type"]


@test
def all_conflicts_are_listed_with_what_to_type_for_each(w):
    quarrel(w)
    said = w.snap("promote", "try").fails(5, "nothing is promoted: 8 conflicts",
                                          "promote --conflict markers try", "resolve try",
                                          "promote --continue try").err.decode()
    assert " more" not in said, said
    for path in PATHS:
        assert f"conflict: {path} (" in said, said
        for side in ("ours", "theirs"):
            assert f"snapcow resolve try {path} --take {side} " in said, said
    assert "# the project's" in said and "# the clone's" in said, said
    assert w.snap("-q", "promote", "try").fails(5).err.count(b"\n") == 1
    found, n = resolve(w, "try")
    assert sorted(found) == PATHS and n == 8, found
    assert not any(c["resolved"] or c["stale"] or c["settled"] for c in found.values()), found
    assert w.ok("-q", "resolve", "try").out.decode().split() == PATHS
    rebase = w.snap("rebase", "try").fails(5, "nothing is rebased: 8 conflicts").err.decode()
    assert "snapcow resolve try type --take theirs" in rebase, rebase
    assert re.search("^hint: snapcow rebase .*  # usual: put both versions, marked, into the clone's files", rebase, re.M), rebase
    assert re.search("^hint: snapcow show .*  # the project's version$", rebase, re.M), rebase


@test
def each_conflict_is_settled_by_itself_and_continue_keeps_the_options(w):
    top = quarrel(w)
    before = kept(w), files(w.project)
    given = w.top / "given"
    given.write_bytes(b"neither\n")
    (top / ".envrc").write_text("export A=b\n")
    refused(w, 5, "E_CONFLICT", "promote", "--check", "test -e both", "--exclude", "skipped", "try")
    (top / "skipped").write_text("no\n")
    resolve(w, "try", "both", "edited", "mode", "--take", "theirs")
    resolve(w, "try", "other", "--take", str(given))
    with open(given, "rb") as pipe:
        resolve(w, "try", "added", "--take", "-", stdin=pipe)
    found, n = resolve(w, "try", "--all", "--take", "ours")
    assert n == 0 and [found[p]["take"] for p in PATHS] == \
        ["file", "ours", "theirs", "ours", "theirs", "theirs", "file", "ours"], found
    assert (kept(w), files(w.project)) == before, "nothing is changed until it is promoted"
    # What is resolved is guarded, too.
    data = refused(w, 7, "E_REFUSED", "promote", "--continue", "try")
    assert [h["path"] for h in data["held"]] == [".envrc"], data
    got = promote(w, "--continue", "--allow", ".envrc", "try")
    assert [c["cmd"] for c in got["checks"]] == ["test -e both"], got
    assert all(c["settled"] and c["resolved"] for c in got["conflicts"]), got
    now = files(w.project)
    assert "skipped" not in now and ".envrc" in now, now
    assert THEIRS in (w.project / "both").read_text()
    assert "also " + THEIRS in (w.project / "both").read_text(), "all else is merged"
    assert now["other"][0] == b"neither\n" and now["added"][0] == b"neither\n", now
    assert now["binary"][0] == b"\0" + OURS.encode() and OURS in (w.project / "deleted").read_text()
    assert THEIRS in (w.project / "edited").read_text() and now["mode"][1] == oct(0o100755), now
    assert not (w.project / "type").is_symlink()
    # They are used up, and so are the options.
    assert resolve(w, "try") == ({}, 0)
    w.snap("promote", "--continue", "try").fails(4, "promote try")
    undo(w)
    assert files(w.project) == before[1]
    w.ok("check")


@test
def what_was_decided_holds_for_these_versions_only(w):
    top = quarrel(w)
    resolve(w, "try", "--all", "--take", "theirs")
    put(w.project / "both", "again", 10)
    put(top / "other", "again", 10)
    found, n = resolve(w, "try")
    assert n == 2 and found["both"]["stale"] and found["other"]["stale"], found
    assert not found["both"]["resolved"] and found["edited"]["resolved"], found
    said = w.snap("promote", "try").fails(5, "2 conflicts").err
    assert said.count(b"was for other versions") == 2, said
    # Once the versions are what they were it counts again.
    put(w.project / "both", LINES[10].strip(), 10)
    assert not resolve(w, "try")[0]["both"]["stale"]
    found, n = resolve(w, "try", "other", "--take", "ours")
    assert n == 0 and found["other"]["take"] == "ours", found
    found, n = resolve(w, "try", "--undo", "both")
    assert n == 1 and not found["both"]["resolved"], found
    w.snap("resolve", "try", "--undo", "both").fails(4, "nothing was decided")
    w.snap("resolve", "try", "both", "--take", "theirs").ends(0)
    # Another clone of that name has nothing decided.
    w.ok("rm", "try")
    w.ok("gc")
    top = clone(w)
    assert resolve(w, "try") == ({}, 0)
    w.ok("check")


@test
def rebase_uses_what_was_decided(w):
    top = quarrel(w)
    resolve(w, "try", "both", "--take", "theirs")
    resolve(w, "try", "--all", "--take", "ours")
    got = w.ok("rebase", "--json", "try").json("snap.rebase/1")
    assert all(c["resolved"] for c in got["conflicts"]) and len(got["conflicts"]) == 8, got
    assert THEIRS in (top / "both").read_text() and OURS in (top / "other").read_text()
    assert resolve(w, "try") == ({}, 0)
    got = promote(w, "try")
    assert statuses(got) == {"both": "modified"}, got


@test
def wrong_words_settle_nothing(w):
    top = quarrel(w)
    w.snap("resolve", "try", "both").fails(2, "no resolution is given", "--take ours", "help resolve")
    w.snap("resolve", "try", "--take", "ours").fails(2, "--all")
    w.snap("resolve", "try", "both", "--take", "ours", "--undo").fails(2, "exclude")
    w.snap("resolve", "try", "both", "--edit").fails(2, "--take FILE")
    w.snap("resolve", "try", "README.md", "--take", "ours").fails(4, "does not conflict", "resolve try")
    w.snap("resolve", "try", "both", "--take", "nofile").fails(4, "nofile")
    w.snap("resolve", "none").fails(4, "none")
    assert resolve(w, "try")[1] == 8
    # In the clone's directory it is meant.
    found, n = resolve(w, "both", "--take", "theirs", cwd=top)
    assert n == 7 and found["both"]["resolved"], found


@test
def a_name_is_typed_as_it_is_printed(w):
    name = b"a\nb\xff"
    path = os.path.join(os.fsencode(w.project), name)
    with open(path, "w") as f:
        f.write("base\n")
    top = clone(w)
    for at, word in ((top, THEIRS), (w.project, OURS)):
        with open(os.path.join(os.fsencode(at), name), "w") as f:
            f.write(word)
    shown = w.ok("-q", "resolve", "try").out.decode().strip()
    assert shown == "a\\x0ab\\xff", shown
    found, n = resolve(w, "try", shown, "--take", "theirs")
    assert n == 0, found
    w.ok("promote", "try")
    assert open(path).read() == THEIRS


@test
def programs_get_the_texts_and_the_places(w):
    quarrel(w)
    got = w.snap("promote", "--json", "-n", "--with-hunks", "try").json("snap.promote/1", status=5)
    c = {c["path"]: c for c in got["conflicts"]}["both"]
    assert c["places"] == [{"line": 4, "base": LINES[3], "ours": OURS + "\n",
                            "theirs": THEIRS + "\n"}], c
    assert c["marked"].splitlines()[3:10] == [
        "<<<<<<< project", OURS, "||||||| base", LINES[3].strip(), "=======", THEIRS,
        ">>>>>>> clone"], c
    assert c["versions"]["base"] == "".join(LINES) and OURS in c["versions"]["ours"], c
    found, _ = resolve(w, "try", "--with-hunks")
    assert found["both"]["places"] == c["places"]
    assert found["edited"]["versions"]["ours"] is None and "places" not in found["binary"], found


@test
def markers_that_are_left_are_called_that(w):
    quarrel(w)
    resolve(w, "try", "binary", "deleted", "edited", "mode", "type", "--take", "ours")
    w.snap("promote", "-n", "try").ends(5)
    said = w.ok("promote", "--conflict", "markers", "try").out.decode()
    assert "markers left in both (content, 1 place)" in said, said
    assert ">>>>>>> clone\n" in (w.project / "both").read_text()


@test
def one_side_of_each_is_that_side_of_all(w):
    rng = random.Random(int(os.environ.get("SNAP_TEST_SEED", "7")))
    for i in range(6):
        names = [f"f{k}" for k in range(6)]
        for name in names:
            (w.project / name).write_text("".join(LINES))
        top = clone(w, f"c{i}")
        for at, word in ((top, THEIRS), (w.project, OURS)):
            for name in names:
                act = rng.choice(("edit", "edit", "delete", "mode", "link", "none"))
                if act == "edit":
                    put(at / name, f"{word} {i}", rng.randrange(3))
                elif act == "mode":
                    (at / name).chmod(0o700 if at == top else 0o600)
                elif act in ("delete", "link"):
                    (at / name).unlink()
                if act == "link":
                    (at / name).symlink_to(word)
        before = files(w.project)
        for side in ("ours", "theirs"):
            whole = promote(w, f"c{i}", "--conflict", side)
            want = files(w.project)
            if whole["promotion"]:
                undo(w)
            assert files(w.project) == before
            resolve(w, f"c{i}", "--all", "--take", side)
            got = promote(w, f"c{i}")
            assert files(w.project) == want, (i, side, whole["conflicts"])
            if got["promotion"]:
                undo(w)
            for c in got["conflicts"]:
                w.snap("resolve", f"c{i}", "--undo", c["path"])
        for name in names:
            path = w.project / name
            if path.is_symlink():
                path.unlink()
            path.write_text("".join(LINES))
            path.chmod(0o644)


sys.exit(main())

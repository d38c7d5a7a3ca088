"""compare: several states side by side, and whether they would merge."""

import base64
import json
import os
import subprocess
import sys
from html.parser import HTMLParser

from meeting import LINES, clone, two_clones
from snaptest import main, needs_fuse, dice, test


def compare(w, *args, **more):
    return w.ok("compare", "--json", *args, **more).json("snap.compare/1", "files", "pairs")


def overlaps(got):
    return {f["path"]: f["overlap"] for f in got["files"]}


def changes(got, path):
    """{state: (status, added, removed)} of one file."""
    [f] = [f for f in got["files"] if f["path"] == path]
    return {c["state"]: (c["status"], c["added"], c["removed"]) for c in f["changes"]}


@test
def a_matrix_says_what_each_did_and_how_it_meets(w):
    two_clones(w)
    got = compare(w, "a", "b")
    assert overlaps(got) == {"blob": "conflict", "gone": "conflict", "hunks": "merges",
                             "lines": "conflict", "mode": "merges", "only": "one",
                             "same": "same"}, got
    assert changes(got, "hunks") == {"a": ("modified", 1, 1), "b": ("modified", 2, 1)}
    assert changes(got, "gone") == {"a": ("deleted", 0, 20), "b": ("modified", 1, 20)}
    assert changes(got, "only") == {"a": ("added", 1, 0)}
    assert changes(got, "mode") == {"a": ("metadata", 0, 0), "b": ("modified", 1, 0)}
    [pair] = got["pairs"]
    assert not got["clean"] and not pair["clean"] and (pair["a"], pair["b"]) == ("a", "b")
    kinds = {c["path"]: c["kind"] for c in pair["conflicts"]}
    assert kinds == {"blob": "binary", "gone": "delete/edit", "lines": "content"}, kinds
    [lines] = [c for c in pair["conflicts"] if c["path"] == "lines"]
    [place] = lines["places"]
    assert (place["base"], place["a"], place["b"]) == ("line 9\n", "from a\n", "from b\n"), place
    assert [s["state"] for s in got["states"]] == ["a", "b"]
    assert got["states"][0]["deleted"] == 1 and got["states"][0]["added"] == 1, got["states"]


@test
def hunks_of_each_side_are_told_where_they_made_different_things(w):
    two_clones(w)

    def hunks(got, path):
        [f] = [f for f in got["files"] if f["path"] == path]
        return {c["state"]: c["hunks"] for c in f["changes"]}

    plain, got = compare(w, "a", "b"), compare(w, "a", "b", "--hunks")
    assert not any(h for f in plain["files"] for h in hunks(plain, f["path"]).values()), "unless it was asked for"
    both = hunks(got, "hunks")
    assert set(both) == {"a", "b"} and all(h.startswith("@@ -") for h in both.values()), both
    assert both["a"].count("\n+") == 1 and both["b"].count("\n+") == 2 and both["a"] != both["b"], both
    assert "\n+from a\n" in hunks(got, "lines")["a"] and hunks(got, "blob") == {"a": None, "b": None}, got
    assert hunks(got, "only") == {"a": None} and set(hunks(got, "same").values()) == {None}, "nobody differs there"
    assert not any(c["cut"] for f in got["files"] for c in f["changes"]), got
    assert {c["hunks_encoding"] for f in got["files"] for c in f["changes"] if c["hunks"]} == {"utf-8"}, got
    for name in ("a", "b"):
        clone = w.store / "clones" / name
        clone.joinpath("lines").write_bytes(clone.joinpath("lines").read_bytes() + b"\xe9" + name.encode() + b"\n")
    other = compare(w, "a", "b", "--hunks")
    [f] = [f for f in other["files"] if f["path"] == "lines"]
    for c in f["changes"]:
        assert c["hunks_encoding"] == "base64" and b"\xe9" in base64.b64decode(c["hunks"]), c
    got = compare(w, "a", "b", "--hunks")
    both = hunks(got, "hunks")
    shown = w.ok("compare", "a", "b", "--hunks").out.decode(errors="replace")
    for side, text in both.items():
        block = "".join(f"  {side} | {line}\n" for line in text.splitlines())
        assert block in shown.split("\nhunks: merges\n")[1], shown
    assert b"hunks: merges" not in w.ok("compare", "a", "b").out
    w.snap("compare", "a", "b", "--hunks", "--stat").fails(2, "exclude")


@test
def what_it_says_of_a_merge_is_what_a_promotion_finds(w):
    a, b = two_clones(w)
    w.ok("promote", "a")
    [pair] = compare(w, ".", "b")["pairs"]
    plan = w.snap("promote", "b", "--dry-run", "--json").json("snap.promote/1", "conflicts", status=5)
    want = {(c["path"], c["kind"]) for c in plan["conflicts"]}
    assert len(want) == 3 and {(c["path"], c["kind"]) for c in pair["conflicts"]} == want, want


def disturb(top, rng):
    """Some random changes of a tree: texts, bytes, modes, names and types."""
    for _ in range(rng.randint(1, 5)):
        files = sorted(p for p in top.rglob("*") if p.is_file() and not p.is_symlink())
        if not files:
            return
        path, act = rng.choice(files), rng.randrange(8)
        if act <= 1:
            lines = path.read_bytes().split(b"\n")
            lines[rng.randrange(len(lines))] = b"%d" % rng.randrange(3)
            path.write_bytes(b"\n".join(lines))
        elif act == 2:
            path.write_bytes(b"\0%d" % rng.randrange(2))
        elif act == 3:
            path.chmod(rng.choice((0o600, 0o755)))
        elif act == 4:
            (top / rng.choice(("n1", "n2", "d1"))).exists() or path.rename(top / rng.choice(("n3", "n4")))
        else:
            path.unlink()
            if act == 6:
                path.symlink_to(rng.choice(("x", "y")))
            elif act == 7:
                path.mkdir()
                (path / "in").write_text("in\n")


@test
def random_trees_conflict_as_a_promotion_says(w):
    needs_fuse()
    rng = dice()
    for name in ("f1", "f2", "d1/f3", "d1/f4", "d2/f5"):
        (w.project / name).parent.mkdir(exist_ok=True)
        (w.project / name).write_text(LINES)
    conflicts = 0
    for i in range(150 if os.environ.get("SNAP_LONG") else 12):
        a, b = clone(w, f"a{i}"), clone(w, f"b{i}")
        disturb(a, rng)
        disturb(b, rng)
        between = compare(w, f"a{i}", f"b{i}")
        landed = w.ok("promote", f"a{i}", "--allow", ".", "--json").json("snap.promote/1", "promotion")
        [pair] = compare(w, ".", f"b{i}")["pairs"]
        plan = w.snap("promote", f"b{i}", "--dry-run", "--json", "--allow", ".")
        got = json.loads(plan.out)
        want = sorted((c["path"], c["kind"], c["hunks"]) for c in got["conflicts"])
        assert sorted((c["path"], c["kind"], c["hunks"]) for c in pair["conflicts"]) == want, (i, got)
        assert between["clean"] == (not want), (i, between, want)
        conflicts += len(want)
        if landed["promotion"]:
            w.ok("undo")
        w.ok("rm", f"a{i}", f"b{i}")
    print(f"# {conflicts} conflicts")


@test
def a_rename_on_one_side_and_an_edit_on_the_other_merge(w):
    (w.project / "old").write_text(LINES)
    a, b = clone(w, "a"), clone(w, "b")
    os.rename(a / "old", a / "new")
    (b / "old").write_text(LINES.replace("line 5\n", "five\n"))
    got = compare(w, "a", "b")
    assert got["clean"], got
    w.ok("promote", "a")
    w.ok("promote", "b")
    assert "five" in (w.project / "new").read_text()


@test
def three_sides_and_the_project_are_compared_each_with_each(w):
    (w.project / "f").write_text(LINES)
    for name, line in (("a", "line 3\n"), ("b", "line 10\n"), ("c", "line 10\n")):
        (clone(w, name) / "f").write_text(LINES.replace(line, f"{name}\n"))
    (w.project / "f").write_text(LINES.replace("line 17\n", "project\n"))
    got = compare(w, "a", "b", "c", ".")
    clean = {(p["a"], p["b"]): p["clean"] for p in got["pairs"]}
    assert clean == {("a", "b"): True, ("a", "c"): True, ("a", "."): True, ("b", "c"): False,
                     ("b", "."): True, ("c", "."): True}, clean
    assert overlaps(got) == {"f": "conflict"}
    w.snap("compare", "b", "c", "--exit-code").ends(5)
    w.ok("compare", "a", "b", "--exit-code")
    assert w.ok("-q", "compare", "b", "c").out == b"f\n"
    assert w.ok("-q", "compare", "a", "b").out == b""


@test
def what_the_project_did_between_two_bases_counts_for_nobody(w):
    (w.project / "f").write_text(LINES)
    (w.project / "g").write_text(LINES)
    a = clone(w, "a")
    (w.project / "f").write_text(LINES.replace("line 9\n", "project\n"))
    b = clone(w, "b")
    (a / "f").write_text(LINES.replace("line 9\n", "a\n"))
    (b / "g").write_text(LINES.replace("line 9\n", "b\n"))
    got = compare(w, "a", "b")
    assert overlaps(got) == {"f": "one", "g": "one"} and got["clean"], got
    assert [s["base_differs"] for s in got["states"]] == [False, True], got
    assert b"different bases" in w.ok("compare", "a", "b").out
    older = got["states"][0]["base"]
    assert got["base"] == older
    # A base that was named counts all since it.
    got = compare(w, "a", "b", "--base", older)
    assert overlaps(got)["f"] == "conflict", got


@test
def snapshots_of_clones_and_of_the_project_have_their_base(w):
    first = w.take()
    a = clone(w, "a")
    (a / "README.md").write_text("one\n")
    w.ok("snapshot", "a")
    (a / "README.md").write_text("two\n")
    got = compare(w, "a@", "a")
    assert got["base"] == first and overlaps(got) == {"README.md": "conflict"}, got
    (w.project / "README.md").write_text("three\n")
    second = w.take()
    got = compare(w, "@-1", "@", "a")
    assert got["base"] == first and changes(got, "README.md").keys() == {second, "a"}, got
    assert compare(w, "@", "@")["files"] == []


@test
def git_is_folded_and_never_a_conflict(w):
    def git(top, *args):
        subprocess.run(["git", "-C", top, "-c", "user.name=n", "-c", "user.email=e", *args],
                       check=True, stdout=subprocess.DEVNULL, env=w.env)
    git(w.project, "init", "-q")
    git(w.project, "add", ".")
    git(w.project, "commit", "-qm", "first")
    for name in ("a", "b"):
        top = clone(w, name)
        (top / name).write_text(name)
        git(top, "add", ".")
        git(top, "commit", "-qm", name)
    got = compare(w, "a", "b")
    assert overlaps(got) == {"a": "one", "b": "one"} and got["clean"], got
    assert all(s["git_paths"] > 0 for s in got["states"])
    rows = [line for line in w.ok("compare", "a", "b").out.decode().splitlines() if ".git" in line]
    assert len(rows) == 1, rows


@test
def warnings_name_what_should_be_looked_at_first(w):
    (w.project / "tests").mkdir()
    (w.project / "tests" / "test_a.py").write_text("def test_a():\n    assert 0\n")
    (w.project / "tests" / "test_b.py").write_text("def test_b():\n    assert 0\n")
    a, b = clone(w, "a"), clone(w, "b")
    (a / "tests" / "test_a.py").unlink()
    (a / "tests" / "test_b.py").write_text("@pytest.mark.skip\ndef test_b():\n    assert 0\n")
    (b / ".envrc").write_text("export A=1\n")
    (b / "fix.py").write_text("@pytest.mark.skip\n")
    got = compare(w, "a", "b")
    found = {(x["state"], x["path"], x["rule"]) for x in got["warnings"]}
    assert ("a", "tests/test_a.py", "test-deleted") in found, found
    assert ("a", "tests/test_b.py", "test-skipped") in found, found
    assert {x[0] for x in found if x[1] == ".envrc"} == {"b"}, found
    assert not any(x[1] == "fix.py" for x in found), found


class Page(HTMLParser):
    """What a browser would make of it: elements that are balanced, and text."""

    VOID = {"meta", "col", "path", "rect"}
    TAGS = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "div", "table", "thead", "tbody",
            "tr", "th", "td", "colgroup", "col", "code", "span", "details", "summary", "svg", "path", "rect",
            "text"}

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.text, self.seen = [], "", set()
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        assert tag in self.TAGS, tag
        assert not any(name.startswith("on") or name in ("href", "src") for name, _ in attrs), attrs
        self.seen.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text += data


EVIL = "<script>alert(1)</script>\" onload='x' &lt;\x1b[31m\u202e\u200b</td></table><img src=x>"


@test
def a_page_is_one_file_and_nothing_in_it_is_obeyed(w):
    (w.project / "f").write_text("base\n")
    (w.project / "long").write_text(LINES)
    for name in ("a", "b"):
        top = clone(w, name)
        (top / "f").write_bytes((name + EVIL + "\n").encode() + b"\xff\n")
        (top / EVIL.replace("/", "|")).write_text(name)
        (top / "long").write_text(LINES.replace("line 9\n", "").replace("line 15\n", f"{name}\nmore\n"))
    page = w.top / "page.html"
    page.write_text("before")
    w.ok("compare", "a", "b", "--html", str(page), "--score", "a<b>=1.5:0.25", "--score", "b=-2")
    got = page.read_text()
    shown = EVIL.replace("\x1b", "^[").replace("\u202e", "<U+202E>").replace("\u200b", "<U+200B>")
    read = Page(got)
    assert "b" + shown in read.text and "<FF>" in read.text, read.text
    assert shown.replace("/", "|") in read.text and "line 8" in read.text
    assert "a<b>" in read.text and "1.5 \u00b1 0.25" in read.text and "svg" in read.seen
    assert not any(c in got for c in "\x1b\u202e\u200b"), "something that a browser obeys"
    assert "http:" not in got and "https:" not in got and "url(" not in got
    assert not [p for p in w.top.iterdir() if p.name.startswith(".tmp-")]


@test
def a_page_that_cannot_be_written_is_a_failure_and_leaves_the_old_one(w):
    clone(w, "a")
    clone(w, "b")
    w.snap("compare", "a", "b", "--html", str(w.top / "none" / "x.html")).fails(4, "none")
    w.snap("compare", "a", "b", "--score", "a=1").fails(2, "--html")
    for wrong in ("a", "a=", "=1", "a=x", "a=1:", "a=1:-1", "a=nan", "a=1 2"):
        w.snap("compare", "a", "b", "--html", str(w.top / "x"), "--score", wrong).fails(2, "--score")
    assert not (w.top / "x").exists()


@test
def sides_that_share_nothing_are_refused_with_a_reason(w):
    needs_fuse()
    w.take()
    clone(w, "a")
    other = w.top / "other"
    other.mkdir()
    (other / "f").write_text("f")
    w.ok("clone", "-n", "b", cwd=other)
    w.snap("compare", "a", "b").fails(2, "share no base")
    w.snap("compare", "a", "none").fails(4, "none")
    w.snap("compare", "a").fails(2)


if __name__ == "__main__":
    sys.exit(main())

"""What a person looks at before a decision: shown, never obeyed, on a terminal."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from promotetest import clone  # noqa: E402
from snaptest import SNAP, Skip, needs_fuse, test  # noqa: E402

# Conceal, a line cleared, the clipboard written, a title, 8-bit CSI, bidirectional, zero-width.
EVIL = (b"\x1b[8mhidden\x1b[0m \x1b[2K\x1b[1A \x1b]52;c;eA==\x07 \x1b]0;t\x1b\\ good\rbad "
        b"\xc2\x9b8m \x9b8m ad\xe2\x80\x8bmin \xe2\x80\xaetxt\n")
SHOWN = ("^[[8mhidden^[[0m ^[[2K^[[1A ^[]52;c;eA==^G ^[]0;t^[\\ good^Mbad "
         "<U+009B>8m <9B>8m ad<U+200B>min <U+202E>txt")
STYLE = re.compile(rb"\x1b\[(?:[01247]|27|3[0-9]|1;3[0-9])?m")
OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


def at_terminal(w, *args, keys=b"", env=None):
    """What arrives at a terminal, less line ends and colours of our own."""
    master, slave = pty.openpty()
    process = subprocess.Popen([SNAP, *args], cwd=w.project, stdin=slave, stdout=slave, stderr=slave,
                               env={**w.env, "TERM": "xterm", "SNAP_PAGER": "", **(env or {})})
    os.close(slave)
    seen = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # nobody has the other end any more
            break
        seen += piece
        if keys and b"discard? " in STYLE.sub(b"", seen):
            os.write(master, keys)
            keys = b""
    process.wait(60)
    os.close(master)
    return STYLE.sub(b"", seen).replace(b"\r\n", b"\n").decode()


def harmless(text):
    found = OBEYED.search(text)
    assert not found, f"{found.group()!r} in {text!r}"
    return text


def can_run(w):
    needs_fuse()
    if w.snap("run", "--", "true").status == 125:
        raise Skip("no sandbox can be set up here")


@test
def a_diff_is_shown_and_not_obeyed(w):
    path = clone(w)
    (path / "README.md").write_bytes(EVIL)
    (path / "ad\u200bmin\u202e.c").write_text("x\n")
    (path / "esc\x1b[8m").write_text("x\n")
    text = harmless(at_terminal(w, "diff", "try"))
    assert "+" + SHOWN in text, text
    assert "ad<U+200B>min" in text, text
    for words in (["--stat"], ["--name-status"], ["-q"]):
        assert "<U+200B>" in harmless(at_terminal(w, "diff", "try", *words))
    harmless(at_terminal(w, "diff", "try", env={"NO_COLOR": "1"}))


@test
def a_comparison_is_shown_and_not_obeyed(w):
    for name in ("a", "b"):
        path = clone(w, name)
        (path / "README.md").write_bytes(name.encode() + EVIL)
        (path / "esc\x1b[8m\u202e").write_text(name)
    text = harmless(at_terminal(w, "compare", "a", "b"))
    assert f"a    | a{SHOWN}" in text and "conflict" in text, text
    harmless(at_terminal(w, "compare", "a", "b", "-q"))
    assert EVIL in w.ok("compare", "a", "b").out, "a pipe gets the bytes"


@test
def a_pager_gets_what_a_terminal_would(w):
    path = clone(w)
    (path / "README.md").write_bytes(EVIL)
    seen = w.top / "paged"
    at_terminal(w, "diff", "try", env={"SNAP_PAGER": f"cat > {seen}"})
    text = harmless(STYLE.sub(b"", seen.read_bytes()).decode())
    assert "+" + SHOWN in text, text
    w.take("-t", "evil", "try")
    at_terminal(w, "show", "evil:README.md", env={"SNAP_PAGER": f"cat > {seen}"})
    assert STYLE.sub(b"", seen.read_bytes()).decode() == SHOWN + "\n"


@test
def a_file_is_shown_and_not_obeyed(w):
    (w.project / "evil").write_bytes(EVIL)
    (w.project / "cut").write_bytes(b"half \xe2\x80")
    w.take()
    assert at_terminal(w, "show", "@:evil") == SHOWN + "\n"
    assert at_terminal(w, "show", "@:cut") == "half <E2><80>"


@test
def names_are_shown_and_not_obeyed(w):
    path = clone(w)
    (path / "ad\u200bmin\u202e.c").write_text("x\n")
    (path / ".envrc\u2060").write_text("x\n")
    for words in (["show", "try:"], ["status", "try"], ["promote", "-n", "try"], ["promote", "try"]):
        text = harmless(at_terminal(w, *words))
        assert r"\xe2\x80\x8b" in text, text


@test
def what_is_shown_can_be_typed_back(w):
    path = clone(w)
    odd = ".npmrc\n\u200b/x"
    (path / odd).parent.mkdir()
    (path / odd).write_text("odd\n")
    (path / ".npmrc").mkdir()
    (path / ".npmrc" / "a\\x41\x1b").write_text("second\n")
    held = w.snap("promote", "-n", "try").out.decode()
    shown = re.search(r"held: (.npmrc/\S+)", held).group(1)
    assert shown == r".npmrc/a\x5cx41\x1b", held
    assert w.ok("show", "try:" + shown).out == b"second\n"
    assert w.ok("show", r"try:.npmrc\x0a\xe2\x80\x8b/x").out == b"odd\n"
    w.ok("promote", "try", "--allow", ".npmrc/" + r"a\x5cx41\x1b", "--allow", ".npmrc")
    w.snap("show", r"try:\x41").fails(4)


@test
def pipes_and_json_stay_as_they_were(w):
    path = clone(w)
    (path / "README.md").write_bytes(EVIL)
    (path / "ad\u200bmin").write_text("x\n")
    assert b"+" + EVIL in w.ok("diff", "try").out
    assert b"+++ b/ad\xe2\x80\x8bmin" in w.ok("diff", "try").out
    assert w.ok("show", "try:README.md").out == EVIL
    files = w.ok("diff", "--json", "try").json("snap.diff/1", "files")["files"]
    assert "ad\u200bmin" in [f["path"] for f in files], files


@test
def the_log_of_a_run_is_shown_and_not_obeyed(w):
    can_run(w)
    (w.project / "evil").write_bytes(EVIL)
    w.ok("run", "--", "sh", "-c", "cat evil; cat evil >&2")
    assert at_terminal(w, "logs", "--stdout") == SHOWN + "\n"
    assert at_terminal(w, "logs", "--stderr") == SHOWN + "\n"
    assert w.ok("logs", "--stdout").out == EVIL and w.ok("logs").out == EVIL + EVIL


@test
def a_question_follows_what_can_be_seen(w):
    can_run(w)
    (w.project / "evil").write_bytes(EVIL)
    text = at_terminal(w, "try", "--", "sh", "-c", "cat evil | tee README.md; cat evil >&2; "
                       r"printf '\033[8m\342\200'", keys=b"d")
    assert text.count(SHOWN) == 3, text
    assert "<E2><80>" in text and "^[[8m" in text, text
    harmless(text)


@test
def a_terminal_of_its_own_is_given_back_clean(w):
    can_run(w)
    text = at_terminal(w, "try", "--tty", "--", "sh", "-c", r"printf '\033[?1049h\033[8m'; echo x > new",
                       keys=b"d")
    at = text.index("\x1b[8m") if "\x1b[8m" in text else text.index("\x1b[?1049h")
    assert "\x1b[?1049l\x1b[!p" in text[at:], repr(text)


if __name__ == "__main__":
    sys.exit(livetest.main())

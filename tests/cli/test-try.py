"""try: a command on a throw-away clone, and what is decided then, by a key or by an option."""

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time

from snaptest import SNAP, Skip, gone, main, needs_fuse, test

KEYS = ("run", "clone", "before", "exit_code", "signal", "timed_out", "oom_killed", "isolation",
        "duration_ms", "stdout", "stderr", "changed", "diff", "decision", "promotion")
EDIT = ("sh", "-c", "echo second > README.md; echo new > new")
QUESTION = "discard? "


def can_run(w):
    """Why no sandbox can be had here, if so."""
    needs_fuse()
    if w.snap("run", "--", "true").status == 125:
        raise Skip("no sandbox can be set up here")


def clones(w):
    return [c["clone"] for c in w.ok("list", "--json").json("snap.list/1")["clones"]]


def left_nothing(w):
    """No clone, and soon no mount: who was killed cannot say when cowfsd has noticed."""
    for _ in range(200):
        if not clones(w) and not [m for m in w.mounts() if "/clones/" in m]:
            return
        time.sleep(0.05)
    raise AssertionError(f"left: {clones(w)} {w.mounts()}")


class Terminal:
    """The program at a terminal of its own."""

    def __init__(self, w, *args, env=None, cwd=None):
        self.fd, slave = pty.openpty()
        termios.tcsetwinsize(slave, (24, 80))
        self.before = termios.tcgetattr(slave)
        env = {**w.env, "TERM": "xterm", "SNAP_PAGER": "", **(env or {})}
        self.child = subprocess.Popen(
            [SNAP, *args], stdin=slave, stdout=slave, stderr=slave, cwd=cwd or w.project, env=env,
            start_new_session=True, close_fds=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.slave, self.seen = slave, ""

    def wait_for(self, text, times=1):
        """Read until that is on the screen; colours do not count."""
        end = time.monotonic() + 60
        while self.seen.count(text) < times:
            assert time.monotonic() < end, f"never saw {text!r}:\n{self.seen}"
            if select.select([self.fd], [], [], 1)[0]:
                self.read()
        return self

    def read(self):
        try:
            data = os.read(self.fd, 65536).decode(errors="replace")
        except OSError:
            data = ""
        self.raw = getattr(self, "raw", "") + data
        self.seen += re.sub(r"\x1b\[[0-9;]*[mK]", "", data)
        return data

    def press(self, keys):
        os.write(self.fd, keys.encode())
        return self

    def ends(self, status):
        while self.child.poll() is None:
            if select.select([self.fd], [], [], 0.05)[0]:
                self.read()
        while select.select([self.fd], [], [], 0)[0] and self.read():
            pass
        assert termios.tcgetattr(self.slave) == self.before, "the terminal is not as it was"
        os.close(self.fd)
        os.close(self.slave)
        assert self.child.returncode == status, f"{self.child.returncode}:\n{self.seen}"
        return self


# --- at a terminal -------------------------------------------------------------------------

@test
def a_key_lets_the_project_take_it(w):
    can_run(w)
    t = Terminal(w, "try", "--", *EDIT).wait_for(QUESTION)
    assert "-first" in t.seen and "+second" in t.seen and "\x1b[32m+second" in t.raw, t.raw
    assert "2 paths changed: 1 added, 1 modified, 0 deleted" in t.seen, t.seen
    assert (w.project / "README.md").read_text() == "first\n"
    t.press("p").ends(0)
    assert "clone " not in t.seen, t.seen
    assert "promote\r\n" in t.seen and "promoted" in t.seen, t.seen
    assert (w.project / "README.md").read_text() == "second\n"
    assert (w.project / "new").read_text() == "new\n"
    left_nothing(w)
    w.ok("undo")
    assert (w.project / "README.md").read_text() == "first\n"


@test
def a_key_keeps_the_clone_for_good(w):
    can_run(w)
    t = Terminal(w, "try", "--", *EDIT).wait_for(QUESTION).press("K").ends(0)
    [name] = clones(w)
    assert f"clone {name}" in t.seen and not name.startswith("run-"), t.seen
    status = w.ok("status", "--json", name).json("snap.status/1")
    assert status["expires"] is None and status["changed"]["added"] == 1, status
    assert (w.project / "README.md").read_text() == "first\n"
    w.ok("promote", name)
    assert (w.project / "README.md").read_text() == "second\n"
    w.ok("rm", name)


@test
def every_other_way_out_of_the_question_discards(w):
    can_run(w)
    for keys in ("d", "\r", "\x03", "\x04", "xyzD"):
        Terminal(w, "try", "--", *EDIT).wait_for(QUESTION).press(keys).ends(0)
        assert clones(w) == [] and (w.project / "README.md").read_text() == "first\n", repr(keys)


@test
def what_was_typed_before_the_question_is_no_answer(w):
    can_run(w)
    go = w.top / "go"
    pager = f"cat > /dev/null; echo paging; until [ -e {go} ]; do sleep 0.05; done"
    t = Terminal(w, "try", "--", *EDIT, env={"SNAP_PAGER": pager}).wait_for("paging\r\n")
    # The terminal echoes what has reached it.
    t.press("p").wait_for("paging\r\np")
    go.touch()
    t.wait_for(QUESTION).press("d").ends(0)
    assert (w.project / "README.md").read_text() == "first\n" and clones(w) == []


@test
def a_command_that_fails_is_asked_about_and_its_code_is_given(w):
    can_run(w)
    t = Terminal(w, "try", "--", "sh", "-c", "echo second > README.md; exit 7")
    t.wait_for(QUESTION)
    assert "the command ended with 7" in t.seen, t.seen
    t.press("p").ends(7)
    assert (w.project / "README.md").read_text() == "second\n"
    Terminal(w, "try", "--", "false").ends(1)
    assert clones(w) == []


@test
def a_command_that_changed_nothing_is_not_asked_about(w):
    can_run(w)
    t = Terminal(w, "try", "--", "true").ends(0)
    assert "nothing changed" in t.seen and QUESTION not in t.seen, t.seen
    assert clones(w) == []


@test
def what_stands_in_the_way_is_told_and_asked_again(w):
    can_run(w)
    t = Terminal(w, "try", "--", *EDIT).wait_for(QUESTION)
    (w.project / "README.md").write_text("mine\n")
    t.press("p").wait_for(QUESTION, times=2)
    assert "conflicts (content)" in t.seen and "hint: " in t.seen, t.seen
    t.press("d").ends(5)
    assert (w.project / "README.md").read_text() == "mine\n" and clones(w) == []


@test
def a_long_difference_goes_through_the_pager(w):
    can_run(w)
    seen = w.top / "paged"
    t = Terminal(w, "try", "--", "sh", "-c", "seq 500 > many", env={"SNAP_PAGER": f"cat > {seen}"})
    t.wait_for(QUESTION).press("d").ends(0)
    assert "+500" in seen.read_text() and "+500" not in t.seen


@test
def an_interrupted_command_is_discarded_unasked(w):
    can_run(w)
    t = Terminal(w, "try", "--", "sh", "-c", "echo x > new; echo ready; sleep 60").wait_for("ready")
    t.press("\x03").ends(130)
    assert QUESTION not in t.seen and clones(w) == [], t.seen


@test
def a_clone_that_is_kept_says_what_to_type(w):
    can_run(w)
    said = w.ok("try", "--keep", "--", *EDIT).err.decode()
    name = clones(w)[0]
    for word in ("diff", "promote", "rm"):
        assert f"hint: snapcow {word} {name}\n" in said, said
    said = w.ok("run", "--keep", "--", "true").err.decode()
    assert "hint: snapcow promote " in said, said
    assert b"hint" not in w.ok("-q", "run", "--keep", "--", "true").err


@test
def what_a_promotion_would_meet_is_shown_before_the_question(w):
    can_run(w)
    t = Terminal(w, "try", "--", "sh", "-c", "echo x > CLAUDE.md; ln -s /etc/passwd out; echo x > conftest.py")
    t.wait_for(QUESTION)
    for line in ("held: CLAUDE.md (agents)", "held: out -> /etc/passwd (link)", "warning: conftest.py: "):
        assert line in t.seen, t.seen
    t.press("d").ends(0)


@test
def a_signal_at_the_question_discards_and_leaves_the_terminal_as_it_was(w):
    can_run(w)
    for sig in (signal.SIGTERM, signal.SIGHUP):
        t = Terminal(w, "try", "--", *EDIT).wait_for(QUESTION)
        t.child.send_signal(sig)
        t.ends(128 + sig)
        assert clones(w) == []


@test
def a_kill_at_any_moment_leaves_no_clone(w):
    can_run(w)
    t = Terminal(w, "try", "--", *EDIT).wait_for(QUESTION)
    t.child.kill()
    t.child.wait()
    left_nothing(w)
    with subprocess.Popen([SNAP, "try", "--keep", "--promote-if-ok", "--", "true"], cwd=w.project,
                          env=w.env, stderr=subprocess.DEVNULL) as child:
        assert child.wait() == 2
    with subprocess.Popen([SNAP, "try", "--promote-if-ok", "--", "sh", "-c",
                           "echo ready; sleep 60"], cwd=w.project, env=w.env,
                          stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"ready\n"
        child.kill()
    left_nothing(w)


@test
def a_kill_of_the_daemon_and_it_leaves_no_clone(w):
    """Nobody is left to remove it: the next daemon does, whether there was a record yet or not."""
    can_run(w)
    for recorded in (True, False):
        with subprocess.Popen([SNAP, "try", "--promote-if-ok", "--", "sh", "-c", "echo ready; sleep 60"],
                              cwd=w.project, env=w.env, stdout=subprocess.PIPE) as child:
            assert child.stdout.readline() == b"ready\n"
            for pid in w.daemons():
                os.kill(pid, 9)
                gone(pid, 20)
            child.kill()
        for path in [] if recorded else (w.store / "runs").iterdir():
            path.unlink()
        left_nothing(w)
    t = Terminal(w, "try", "--", *EDIT).wait_for(QUESTION)
    for pid in w.daemons():
        os.kill(pid, 9)
        gone(pid, 20)
    w.ok("list")  # its daemon leaves what is waited for alone
    assert len(clones(w)) == 1
    for pid in w.daemons():
        os.kill(pid, 9)
        gone(pid, 20)
    t.child.kill()
    t.child.wait()
    left_nothing(w)


@test
def who_follows_its_output_does_not_wait_for_the_decision(w):
    can_run(w)
    t = Terminal(w, "try", "--", "sh", "-c", "echo said; echo new > new").wait_for(QUESTION)
    run = w.ok("runs", "--json").json("snap.runs/1")["runs"][0]["run"]
    assert w.ok("logs", "--follow", run).out == b"said\n"
    t.press("d").ends(0)
    left_nothing(w)


@test
def a_clone_can_be_decided_on_after_its_daemon_died(w):
    can_run(w)
    for key, want in (("d", []), ("p", [])):
        t = Terminal(w, "try", "--", *EDIT).wait_for(QUESTION)
        for pid in w.daemons():
            os.kill(pid, 9)
            gone(pid, 20)
        t.press(key).ends(0)
        assert clones(w) == want, key
    assert (w.project / "new").read_text() == "new\n"


@test
def a_clone_is_kept_for_good_after_its_daemon_died(w):
    can_run(w)
    t = Terminal(w, "try", "--", *EDIT).wait_for(QUESTION)
    for pid in w.daemons():
        os.kill(pid, 9)
        gone(pid, 20)
    t.press("k").ends(0)
    [name] = clones(w)
    status = w.ok("status", "--json", name).json("snap.status/1")
    assert status["expires"] is None and status["changed"]["added"] == 1, status
    w.ok("rm", name)


# --- without one ---------------------------------------------------------------------------

@test
def where_nobody_can_be_asked_nothing_is_run(w):
    needs_fuse()
    w.snap("try", "--", "touch", "x").fails(2, "cannot ask without a terminal", "'--promote-if-ok'",
                                            "'--keep'", "'--discard'")
    w.snap("try", "--json", "--", "touch", "x").fails_json(2, "E_USAGE")
    result = w.snap("try", "--discard").fails(2, "'try' needs a command")
    assert result.err.count(b"hint: ") == 1, result
    w.snap("try", "--keep", "--discard", "--", "true").fails(2, "exclude each other")
    w.snap("try", "--discard", "--conflict", "no", "--", "true").fails(2, "one of stop")
    assert w.snap("runs", "--json").status in (0, 4)


@test
def a_script_promotes_what_ended_well(w):
    can_run(w)
    done = w.ok("try", "--promote-if-ok", "--", "sh", "-c", "echo out; echo second > README.md")
    assert done.out == b"out\n" and b"promoted" in done.err, done
    assert (w.project / "README.md").read_text() == "second\n" and clones(w) == []
    w.snap("try", "--promote-if-ok", "--", "sh", "-c", "echo third > README.md; exit 3").ends(3)
    assert (w.project / "README.md").read_text() == "second\n" and clones(w) == []


@test
def what_a_daemon_that_died_may_have_lost_is_not_promoted(w):
    """The command ends well, but a part of what it wrote may have died with cowfsd."""
    can_run(w)
    with subprocess.Popen([SNAP, "try", "--promote-if-ok", "--", "sh", "-c",
                           "echo second > README.md; echo ready; read word"], cwd=w.project, env=w.env,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"ready\n"
        for pid in w.daemons():
            os.kill(pid, 9)
            gone(pid, 20)
        _, said = child.communicate(b"go on\n", timeout=120)
    assert child.returncode == 1 and b"error: nothing is promoted: cowfsd ended" in said, said
    assert (w.project / "README.md").read_text() == "first\n" and clones(w) == []


@test
def a_script_is_told_all_of_it(w):
    can_run(w)
    got = w.ok("try", "--json", "--promote-if-ok", "--", *EDIT).json("snap.try/1", *KEYS)
    assert got["decision"] == "promoted" and got["kept"] is False, got
    assert got["promotion"]["promotion"] and got["promotion"]["conflicts"] == [], got
    files = {f["path"]: f["status"] for f in got["diff"]["files"]}
    assert files == {"README.md": "modified", "new": "added"}, got
    assert "+second\n" in got["diff"]["patch"], got
    got = w.ok("try", "--json", "--discard", "--", "sh", "-c", "rm new").json("snap.try/1", *KEYS)
    assert got["decision"] == "discarded" and got["promotion"] is None, got
    assert got["diff"]["files"][0]["status"] == "deleted" and clones(w) == [], got
    got = w.ok("try", "--json", "--keep", "--", "sh", "-c", "rm new").json("snap.try/1", *KEYS)
    assert got["decision"] == "kept" and clones(w) == [got["clone"]] and got["kept"] is True, got
    w.ok("rm", got["clone"])


@test
def a_check_that_fails_keeps_the_clone_for_another_look(w):
    can_run(w)
    done = w.snap("try", "--promote-if-ok", "--check", "test ! -e new", "--", *EDIT).ends(8)
    [name] = clones(w)
    assert f"clone {name}".encode() in done.err and b"check" in done.err, done
    assert (w.project / "README.md").read_text() == "first\n"
    assert w.ok("status", "--json", name).json("snap.status/1")["expires"] is None
    w.ok("rm", name)
    w.ok("try", "--promote-if-ok", "--check", "test -e new", "--", *EDIT)
    assert (w.project / "README.md").read_text() == "second\n" and clones(w) == []


@test
def the_guard_holds_what_a_script_did_not_allow(w):
    can_run(w)
    edit = ("sh", "-c", "mkdir -p .github/workflows; echo x > .github/workflows/ci.yml")
    error = w.snap("try", "--json", "--promote-if-ok", "--", *edit).fails_json(7, "E_REFUSED")
    [name] = clones(w)
    assert any(f"--allow .github {name}" in h for h in error["hints"]), error
    w.ok("rm", name)
    w.ok("try", "--promote-if-ok", "--allow", ".github", "--", *edit)
    assert (w.project / ".github" / "workflows" / "ci.yml").exists() and clones(w) == []


@test
def a_command_that_is_not_there_is_discarded(w):
    can_run(w)
    w.snap("try", "--promote-if-ok", "--", "/no/such/program").ends(127)
    assert clones(w) == []


@test
def limits_are_those_of_a_run(w):
    can_run(w)
    got = w.snap("try", "--json", "--discard", "--time", "1s", "--pids", "20", "--", "sleep", "60")
    got = got.json("snap.try/1", *KEYS, status=124)
    assert got["timed_out"] is True and got["limits"]["pids"] == 20, got
    assert clones(w) == []


if __name__ == "__main__":
    sys.exit(main())

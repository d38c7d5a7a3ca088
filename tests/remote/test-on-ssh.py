#!/usr/bin/env python3
"""run --on ssh:HOST, experiment --on ssh:HOST: a real sshd, connections that break, and processes that die."""

import json
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

from remotetest import CLIENT  # noqa: F401  (finds the modules below)

sys.path.append(str(Path(__file__).resolve().parents[1] / "live"))

import livetest  # noqa: E402  (found through the line above)
from snaptest import SNAP, Skip, needs_fuse, stop_process, test, until as wait_for  # noqa: E402
from sshtest import Sshd, StandIn, by_sshd  # noqa: E402

PATIENCE = 60  # seconds for what takes one


class Far:
    """Another machine: a home and a store of its own, behind a real sshd or behind the stand-in."""

    def __init__(self, w, ssh):
        self.world, self.home, self.store = w, w.top / "far-home", w.top / "far-store"
        self.home.mkdir()
        self.program = f"env HOME={self.home} SNAPCOW_STORE={self.store} HOLD=there {SNAP}"
        self.env = {**(ssh.env() if isinstance(ssh, Sshd) else ssh.env), "SNAPCOW_SSH_PROGRAM": self.program}
        self.on = f"ssh:{ssh.user}@127.0.0.1:{ssh.port}" if isinstance(ssh, Sshd) else "ssh:far"

    def words(self, *words, options=()):
        return ["run", "--on", self.on, *options, "--", *words]

    def run(self, *words, options=()):
        return self.world.snap(*self.words(*words, options=options), env=self.env)

    def start(self, *line):
        """A command here that goes on beside us."""
        return subprocess.Popen([SNAP, *line], cwd=self.world.project, env={**self.world.env, **self.env},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)

    def results(self):
        return [json.loads(p.read_text()) for p in Path(f"{self.store}-tickets").glob("*.result")]

    def runs(self):
        return len(list((self.store / "runs").glob("*.json")))

    def names(self):
        """In its depot."""
        index = self.home / ".local" / "share" / "snapcow-depot" / "index.json"
        return [m["annotations"]["org.opencontainers.image.ref.name"] for m in json.loads(index.read_text())["manifests"]
                if "org.opencontainers.image.ref.name" in m.get("annotations", {})]

    def processes(self, what):
        """Of this machine's: whose environment has its store, or a child of such, by what they were called with."""
        found = []
        for p in Path("/proc").glob("[0-9]*"):
            try:
                if what in (p / "cmdline").read_bytes().split(b"\0") or what == (p / "comm").read_bytes().strip():
                    found.append((int(p.name), os.fsencode(self.store) in (p / "environ").read_bytes()))
            except OSError:
                continue
        return [pid for pid, ours in found if ours]

    def serves(self):
        """The process at its end of the connection."""
        return [pid for pid in self.processes(b"--tickets") if os.readlink(f"/proc/{pid}/fd/0").startswith(("pipe:", "socket:"))]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.world.snap("-q", "stop", "--force", env={"SNAPCOW_STORE": str(self.store), "HOME": str(self.home)})


class SmallDisk:
    """What the far machine keeps of tickets is on a disk of its own, which can be full."""

    def __init__(self, far):
        self.dir = Path(f"{far.store}-tickets")

    def fill(self):
        with open(self.dir / "filler", "wb", buffering=0) as f:
            try:
                while True:
                    f.write(b"x" * 4096)
            except OSError:
                pass

    def free(self):
        (self.dir / "filler").unlink()

    def __enter__(self):
        self.dir.mkdir(mode=0o700)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", self.dir], capture_output=True, check=False).returncode != 0:
            raise Skip("this user cannot mount")
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.dir], check=False)


def ended(process, status):
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == status, (process.returncode, out, err)
    return out, err


def runs_there(w, ssh):
    """What holds of any ssh."""
    with Far(w, ssh) as far:
        got = far.run("sh", "-c", "echo out; echo err >&2; cat README.md > made; exit 3").ends(3)
        assert got.out == b"out\n" and b"err\n" in got.err and b"exit in" in got.err, str(got)
        [result] = far.results()
        assert (result["outcome"], result["code"], result["attempt"]) == ("exit", 3, 1), result
        assert w.ok("show", f"run/{result['ticket'][:12]}:made").out == b"first\n"
        assert not (w.project / "made").exists() and not (far.store / "made").exists()
        # The same state again: it is there, and only the ticket travels.
        told = w.snap("--json", *far.words("sh", "-c", "echo again; echo x >> README.md"), env=far.env).json("snap.run/1", "on")
        assert (told["exit_code"], told["stdout"], told["changed"]["modified"]) == (0, "again\n", 1), told
        assert told["on"]["worker"] == os.uname().nodename and told["on"]["worker_received"] == 0, told["on"]
        kept = far.run("sh", "-c", "echo kept > new", options=["--keep"]).ends(0)
        name = next(x for x in kept.err.decode().splitlines() if x.startswith("clone ")).split()[1]
        assert (w.store / "clones" / name / "new").read_text() == "kept\n"
        # Variables are the other machine's; profiles, too.
        assert far.run("sh", "-c", "echo $HOLD", options=["--pass-env", "HOLD"]).ends(0).out == b"there\n"
        got = far.run("true", options=["--profile", "nowhere"])
        assert got.status == 125 and b"nowhere" in got.err, str(got)
        # Only what is needed stays.
        assert [n for n in far.names() if n.startswith("result-")] == [], far.names()
        wait_for(lambda: far.processes(b"snap-ticket") == [])


@test
def a_command_runs_on_a_machine_behind_a_real_sshd(w):
    needs_fuse()
    with by_sshd(w) as s:
        runs_there(w, s)


@test
def a_command_runs_there_and_what_it_left_is_a_snapshot_here(w):
    needs_fuse()
    runs_there(w, StandIn(w))


@test
def what_strict_runs_here_must_not_see_they_do_not_see_there(w):
    needs_fuse()
    strict = ("--profile", "strict", "--allow-missing", "memory", "--allow-missing", "cpu")
    look = ("sh", "-c", "cat vendor/conf/.env vendor/conf/plain 2>/dev/null; echo x > new")
    for name in "conf", "vendor":
        (w.project / name).mkdir()
    (w.project / "conf" / ".env").write_text("secret\n")
    (w.project / "conf" / "plain").write_text("plain\n")
    w.ok("clone", "-n", "c")
    w.ok("run", "c", *strict, "--", "mv", "conf", "vendor/conf")
    with Far(w, StandIn(w)) as far:
        assert far.run(*look, options=["c"]).ends(0).out == b"secret\nplain\n", "the control"
        # Not 'strict': where a user has no cgroups, nobody here may waive its walls there.
        profiles = far.home / ".config" / "snapcow" / "profiles"
        profiles.mkdir(parents=True)
        (profiles / "hides.yaml").write_text("hide: ['@secrets']\n")
        got = far.run(*look, options=["c", "--profile", "hides", "--keep"]).ends(0)
        assert got.out == b"plain\n", str(got)
    # Nor in the clone of what that left.
    kept = next(x for x in got.err.decode().splitlines() if x.startswith("clone ")).split()[1]
    assert w.ok("run", kept, *strict, "--", *look).out == b"plain\n"


@test
def an_interrupted_caller_cancels_the_run_there(w):
    needs_fuse()
    with Far(w, StandIn(w)) as far:
        caller = far.start(*far.words("sh", "-c", "echo begun; sleep 6171"))
        assert caller.stdout.readline() == b"begun\n"  # while it runs
        caller.send_signal(signal.SIGINT)
        _, err = ended(caller, 125)
        assert b"the ticket is cancelled" in err, err
        # All of it has ended when the caller has.
        assert far.processes(b"6171") == [] and far.processes(b"snap-ticket") == []
        assert [r["outcome"] for r in far.results()] == ["cancelled"], far.results()
        assert far.run("echo", "next").ends(0).out == b"next\n"


@test
def an_interrupt_finds_another_way_if_the_connection_is_gone(w):
    needs_fuse()
    ssh = StandIn(w)
    with Far(w, ssh) as far:
        caller = far.start(*far.words("sh", "-c", "echo begun; sleep 6172"))
        assert caller.stdout.readline() == b"begun\n"
        ssh.faults("die")  # the next try
        [serve] = far.serves()
        os.kill(serve, signal.SIGKILL)
        assert b"trying again" in caller.stderr.readline()
        caller.send_signal(signal.SIGINT)
        _, err = ended(caller, 125)
        assert b"the ticket is cancelled" in err, err
        assert far.processes(b"6172") == [] and [r["outcome"] for r in far.results()] == ["cancelled"]


@test
def an_interrupt_does_not_wait_for_the_rest_of_an_answer(w):
    needs_fuse()
    ssh = StandIn(w)
    with Far(w, ssh) as far:
        caller = far.start(*far.words("sh", "-c", "echo begun; sleep 6176"))
        assert caller.stdout.readline() == b"begun\n"
        ssh.faults("half")  # the next try
        [serve] = far.serves()
        os.kill(serve, signal.SIGKILL)
        wait_for(lambda: "half an answer" in ssh.calls())
        caller.send_signal(signal.SIGINT)
        _, err = ended(caller, 125)
        assert b"the ticket is cancelled" in err, err
        assert far.processes(b"6176") == [] and [r["outcome"] for r in far.results()] == ["cancelled"]


def stop_sleep(far, seconds):
    """End the `sleep` that a command there waits for."""
    [pid] = wait_for(lambda: far.processes(seconds))
    os.kill(pid, signal.SIGTERM)


@test
def an_interrupt_that_does_not_get_there_leaves_the_ticket_to_be_followed(w):
    needs_fuse()
    ssh = StandIn(w)
    with Far(w, ssh) as far:
        line = ["sh", "-c", "echo begun; sleep 6174; echo over; echo x > made; exit 4"]
        caller = far.start(*far.words(*line))
        assert caller.stdout.readline() == b"begun\n"
        [ticket] = [p.name for p in (w.store / "remote" / "tickets").iterdir()]
        ssh.faults(*["die"] * 9)
        [serve] = far.serves()
        os.kill(serve, signal.SIGKILL)
        assert b"trying again" in caller.stderr.readline()
        caller.send_signal(signal.SIGINT)
        _, err = ended(caller, 125)
        assert b"could not be cancelled" in err and b"'far' may still run the command" in err, err
        assert b"is cancelled" not in err and f"run --ticket {ticket} --on ssh:far".encode() in err, err
        ssh.faults()
        assert far.results() == []
        stop_sleep(far, b"6174")
        got = far.run(*line, options=["--ticket", ticket]).ends(4)
        assert got.out == b"begun\nover\n" and far.runs() == 1, str(got)
        assert w.ok("show", f"run/{ticket[:12]}:made").out == b"x\n"
        assert list((w.store / "remote" / "tickets").iterdir()) == []


@test
def an_interrupt_after_the_end_takes_the_result(w):
    needs_fuse()
    with Far(w, StandIn(w)) as far:
        caller = far.start(*far.words("sh", "-c", "echo begun; sleep 6175; echo x > made; exit 4"))
        assert caller.stdout.readline() == b"begun\n"
        # It ends, and the caller does not hear of it.
        [serve] = far.serves()
        stop_process(serve)
        stop_sleep(far, b"6175")
        [result] = wait_for(far.results)
        caller.send_signal(signal.SIGINT)
        os.kill(serve, signal.SIGKILL)
        _, err = ended(caller, 4)
        assert b"too late" in err and b"is cancelled" not in err and b"--ticket" not in err, err
        assert w.ok("show", f"run/{result['ticket'][:12]}:made").out == b"x\n"
        assert list((w.store / "remote" / "tickets").iterdir()) == []


@test
def an_interrupt_ends_the_run_there_though_the_disk_is_full(w):
    needs_fuse()
    with Far(w, StandIn(w)) as far, SmallDisk(far) as disk:
        caller = far.start(*far.words("sh", "-c", "sleep 6174; true"))
        wait_for(lambda: far.processes(b"6174"))
        disk.fill()
        caller.send_signal(signal.SIGINT)
        ended(caller, 125)
        assert far.processes(b"6174") == [] and far.processes(b"snap-ticket") == []
        assert far.runs() == 1 and far.results() == []


@test
def a_command_runs_once_though_its_result_finds_the_disk_full(w):
    needs_fuse()
    with Far(w, StandIn(w)) as far, SmallDisk(far) as disk:
        # Output makes room for the result.
        caller = far.start(*far.words("sh", "-c", "echo begun; sleep 2; exit 3"))
        assert caller.stdout.readline() == b"begun\n"
        disk.fill()
        ended(caller, 3)
        assert [r["code"] for r in far.results()] == [3] and far.runs() == 1
        disk.free()
        # Without any there is no result, and the ticket never begins again.
        line = ["sh", "-c", "sleep 2.5; true"]
        caller = far.start(*far.words(*line))
        wait_for(lambda: far.processes(b"2.5"))
        disk.fill()
        _, err = ended(caller, 125)
        assert b"No space left" in err and far.runs() == 2, (err, far.runs())
        disk.free()
        [ticket] = [p.name for p in (w.store / "remote" / "tickets").iterdir()]
        got = far.run(*line, options=["--ticket", ticket])
        assert got.status == 125 and b"its result could not be stored" in got.err, str(got)
        assert far.runs() == 2 and sorted(r["outcome"] for r in far.results()) == ["exit", "failed"]


@test
def a_connection_that_breaks_is_made_again_and_the_command_goes_on(w):
    needs_fuse()
    ssh = StandIn(w)
    with Far(w, ssh) as far:
        caller = far.start(*far.words("sh", "-c", "echo begun; sleep 4; echo over; echo x > made; exit 5"))
        assert caller.stdout.readline() == b"begun\n"
        ssh.faults("die", "out 3")  # and the next two tries as well
        [serve] = far.serves()
        os.kill(serve, signal.SIGKILL)
        out, err = ended(caller, 5)
        assert out == b"over\n" and b"trying again" in err and b"did not arrive" not in err, (out, err)
        [result] = far.results()
        assert (result["attempt"], result["code"]) == (1, 5) and far.runs() == 1, result
        assert w.ok("show", f"run/{result['ticket'][:12]}:made").out == b"x\n"
        assert ssh.file.read_text() == "", "not all faults were met"


@test
def a_process_there_that_is_killed_is_replaced(w):
    needs_fuse()
    with Far(w, StandIn(w)) as far:
        caller = far.start(*far.words("sh", "-c", "echo begun; sleep 3; echo over"))
        assert caller.stdout.readline() == b"begun\n"
        [holder] = far.processes(b"snap-ticket")
        os.kill(holder, signal.SIGKILL)
        out, err = ended(caller, 0)
        assert out == b"begun\nover\n" and b"begins again" in err, (out, err)
        assert [r["attempt"] for r in far.results()] == [2] and far.runs() == 2


@test
def a_machine_that_cannot_be_reached_says_why_at_once(w):
    ssh = StandIn(w)
    with Far(w, ssh) as far:
        w.ok("init")
        ssh.faults("-", "die", "die")
        began = time.monotonic()
        far.run("true").fails(125, "Connection refused")
        ssh.faults("-", "say Welcome to far\n")
        far.run("true").fails(125, "does not answer as snapcow does")
        assert time.monotonic() - began < 30 and far.results() == []
        w.snap(*far.words("true"), env={**far.env, "SNAPCOW_SSH_PROGRAM": "no-such-program"}).fails(125, "no snapcow in its PATH")


@test
def an_interrupt_ends_the_wait_for_a_machine_that_says_nothing(w):
    needs_fuse()
    ssh = StandIn(w)
    with Far(w, ssh) as far:
        assert far.run("true").ends(0)
        for how in (signal.SIGINT, signal.SIGTERM):
            # The state is sent; the ticket's connection stays silent, and the cancelling one works.
            calls = len(ssh.calls())
            ssh.faults("-", "stay SNAP")
            caller = far.start(*far.words("echo", "never"))
            wait_for(lambda n=calls: len(ssh.calls()) == n + 2)
            time.sleep(0.5)
            began = time.monotonic()
            caller.send_signal(how)
            out, _ = ended(caller, 125)
            assert out == b"" and time.monotonic() - began < 30
        assert far.runs() == 1 and [r["outcome"] for r in far.results()].count("exit") == 1


@test
def a_ticket_whose_caller_has_gone_is_followed_again_and_runs_once(w):
    needs_fuse()
    ssh = StandIn(w)
    with Far(w, ssh) as far:
        line = ["sh", "-c", "echo begun; sleep 2; echo over; echo x > made; exit 4"]
        caller = far.start(*far.words(*line))
        assert caller.stdout.readline() == b"begun\n"
        caller.kill()
        caller.communicate()
        notes = w.store / "remote" / "tickets"
        [ticket] = [p.name for p in notes.iterdir()]
        far.run("sh", "-c", "true", options=["--ticket", ticket]).fails(2, "is of another command")
        far.run(*line, options=["--ticket", "../" + ticket]).fails(125, "waits for no ticket")
        w.snap("run", "--on", "ssh:other", "--ticket", ticket, "--", *line, env=far.env) \
            .fails(2, "was sent to another place: --on ssh:far")
        got = far.run(*line, options=["--ticket", ticket]).ends(4)
        assert got.out == b"begun\nover\n" and far.runs() == 1, str(got)
        assert w.ok("show", f"run/{ticket[:12]}:made").out == b"x\n"
        assert list(notes.iterdir()) == []
        # A failure says so: here the state was sent, and then the machine was away.
        ssh.faults("-", "die")
        got = far.run("echo", "late")
        assert got.status == 125 and b"Connection refused" in got.err, str(got)
        [hint] = [x for x in got.err.decode().splitlines() if "--ticket" in x]
        [ticket] = [p.name for p in notes.iterdir()]
        assert hint.endswith(f"run --ticket {ticket} --on ssh:far -- echo late"), hint
        assert far.run("echo", "late", options=["--ticket", ticket]).ends(0).out == b"late\n"
        assert far.runs() == 2 and list(notes.iterdir()) == []


def make_older(path, days):
    when = path.stat().st_mtime - days * 86400
    os.utime(path, (when, when))


@test
def a_ticket_that_the_far_end_may_have_forgotten_is_not_sent_again(w):
    needs_fuse()
    ssh = StandIn(w)
    with Far(w, ssh) as far:
        ssh.faults("-", "die")
        far.run("echo", "late").fails(125, "Connection refused")
        [note] = (w.store / "remote" / "tickets").iterdir()
        make_older(note, 9)
        far.run("echo", "late", options=["--ticket", note.name]).fails(125, "more than 8 days old")
        assert far.runs() == 0
        make_older(note, -2)
        assert far.run("echo", "late", options=["--ticket", note.name]).ends(0).out == b"late\n"


@test
def a_result_is_kept_for_8_days_however_long_the_run_was(w):
    needs_fuse()
    with Far(w, StandIn(w)) as far:
        def sweep():
            far.run("true").ends(0)
            wait_for(lambda: far.processes(b"snap-ticket") == [])
            return {p.name for p in tray.iterdir()}
        far.run("true").ends(0)
        tray = Path(f"{far.store}-tickets")
        files = set(tray.iterdir())
        [result] = [p for p in files if p.suffix == ".result"]
        # It began 13 days ago, and ended 7 days ago.
        for path in files:
            make_older(path, 7 if path == result else 13)
        assert {p.name for p in files} <= sweep()
        make_older(result, 2)
        assert not {p.name for p in files} & sweep()


def experiment(far, name, arms, *options, there=True):
    return ["--json", "experiment", "-n", name, *(["--on", far.on] if there else []),
            *(x for a in arms for x in ("--arm", a)), *options]


def outcome(told):
    return told["winner"], [(a["arm"], a["state"], a["exit_code"], a["score"], a["changed"]) for a in told["arms"]]


@test
def arms_run_there_and_are_judged_here(w):
    needs_fuse()
    arms = ["good=echo 2 > made; mkdir sub; ln -s made sub/link", "better=echo 1 > made; rm README.md", "fails=exit 3"]
    options = ["--check", "test -s made", "--score", "cat made"]
    with Far(w, StandIn(w)) as far:
        here = w.snap(*experiment(far, "here", arms, *options, there=False)).json("snap.experiment/1", "arms")
        there = w.snap(*experiment(far, "there", arms, *options), env=far.env).json("snap.experiment/1", "arms")
        assert outcome(there) == outcome(here) and there["winner"] == "better", (there, here)
        assert {a["machine"]["worker"] for a in there["arms"]} == {os.uname().nodename}, there
        assert there["on"]["queue"] == "ssh:far" and there["on"]["bytes_sent"] > 0, there["on"]
        assert far.runs() == 3 and [n for n in far.names() if n.startswith("result-")] == [], far.names()


@test
def an_experiment_that_was_killed_runs_no_arm_twice(w):
    needs_fuse()
    with Far(w, StandIn(w)) as far:
        caller = far.start(*experiment(far, "killed", [f"arm{i}=sleep 2; echo {i} > made" for i in range(3)], "--score", "cat made"))
        wait_for(lambda: len(far.processes(b"snap-ticket")) == 3)
        caller.kill()
        caller.communicate()
        for path in (w.store / "runs").glob("*.json"):
            os.kill(json.loads(path.read_text().splitlines()[-1])["pid"], signal.SIGKILL)
        told = w.snap("--json", "experiment", "resume", "killed", env=far.env).json("snap.experiment/1", "arms")
        assert [a["state"] for a in told["arms"]] == ["passed"] * 3 and told["winner"] == "arm0", told
        assert sorted(a["machine"]["ticket"] for a in told["arms"]) == sorted(r["ticket"] for r in far.results())
        assert far.runs() == 3, far.runs()


@test
def an_interrupted_experiment_cancels_its_arms_there_and_is_resumed(w):
    needs_fuse()
    with Far(w, StandIn(w)) as far:
        arms = [f"arm{i}=sleep ${{HOLD#there}}6173" for i in range(3)]
        caller = far.start(*experiment(far, "stopped", arms, "--pass-env", "HOLD"))
        wait_for(lambda: len(far.processes(b"6173")) == 3)
        caller.send_signal(signal.SIGINT)
        ended(caller, 130)
        wait_for(lambda: far.processes(b"6173") == [] and far.processes(b"snap-ticket") == [])
        assert [r["outcome"] for r in far.results()] == ["cancelled"] * 3, far.results()
        env = {**far.env, "SNAPCOW_SSH_PROGRAM": far.program.replace("HOLD=there", "HOLD=0.0")}
        told = w.snap("--json", "experiment", "resume", "stopped", env=env).json("snap.experiment/1", "arms")
        assert [a["state"] for a in told["arms"]] == ["passed"] * 3, told


@test
def a_key_may_do_no_more_than_its_line_says(w):
    needs_fuse()
    inside = w.top / "inside"
    inside.mkdir()
    far_env = f"env HOME={w.top}/far-home SNAPCOW_STORE={w.top}/far-store HOLD=there"
    with by_sshd(w, f"{far_env} {SNAP} serve {inside}") as s, Far(w, s) as far:
        far.run("true").fails(125, "without --tickets")
        assert not Path(f"{far.store}-tickets").exists()
        (s.top / "may").write_text((s.top / "may").read_text().replace(f"serve {inside}", f"serve --tickets {inside}"))
        assert far.run("echo", "may").ends(0).out == b"may\n"
        assert (inside / "~" / ".local" / "share" / "snapcow-depot" / "index.json").exists()
        for options, says in ((["--pass-env", "HOLD"], b"does not pass 'HOLD' on"),
                              (["--profile", "offline"], b"does not offer the profile 'offline'")):
            got = far.run("true", options=options)
            assert got.status == 125 and says in got.err, str(got)
        got = far.run("true", options=["--remote", f"dir:{w.top}/elsewhere"])
        assert got.status == 125 and b"alone" in got.err, str(got)


@test
def what_cannot_be_asked_for_says_so(w):
    w.ok("init")
    for on in ("ssh:", "ssh:far/path", "ssh:-oProxyCommand=x", "ssh:far:port"):
        w.snap("run", "--on", on, "--", "true").fails(2, "is no machine")
        w.snap("experiment", "--on", on, "--arm", "a=true").fails(2, "is no machine")
    w.snap("run", "--on", "ssh:far", "--label", "x", "--", "true").fails(2, "--label")
    w.snap("experiment", "--on", "ssh:far", "--label", "x", "--arm", "a=true").fails(2, "--label")
    w.snap("run", "--ticket", "0" * 64, "--", "true").fails(2, "needs '--on'")
    w.snap("serve", "--profile", "x").fails(2, "needs '--tickets'")


# --- the far end alone, asked by something that is no client of ours -----------------------------

OPEN, HAS, TICKET, STOP, OUTPUT, OK, FAIL = 1, 2, 11, 12, 34, 64, 65


def message(kind, body=b""):
    return struct.pack("<IB", len(body) + 1, kind) + body


def question(text, mode=0, path=b"/depot", attempt=0, at=(0, 0)):
    return message(TICKET, struct.pack("<II", mode, len(path)) + path + struct.pack("<QQQ", attempt, *at) + text)


def ticket_text(snapshot, nonce, command=("true",)):
    """As a client of ours writes it."""
    limits = dict.fromkeys(("mem", "cpus_milli", "pids", "time_ms", "disk", "inodes", "fsize", "nofile", "output", "net_out"), 0)
    return json.dumps({"schema": "snapcow.ticket/1", "snapshot": f"sha256:{snapshot}", "name": "queue-x", "remote": "ssh://far/depot",
                       "profile": None, "command": list(command), "workdir": "", "env": [], "pass_env": [], "limits": limits,
                       "deadline": 0, "labels": [], "experiment": None, "arm": None, "nonce": nonce * 32},
                      separators=(",", ":")).encode() + b"\n"


def talk(w, *messages, options=("--tickets",), inside=None, env=None):
    p = subprocess.run([SNAP, "serve", *options, str(inside or w.top)], env={**w.env, **(env or {})}, capture_output=True, timeout=60,
                       check=False, input=b"".join(messages))
    assert b"Sanitizer" not in p.stderr and p.returncode in (0, 13), p
    out, answers = p.stdout[8:], []
    while out:
        length, kind = struct.unpack_from("<IB", out)
        answers.append((kind, out[5:4 + length]))
        out = out[4 + length:]
    return answers


@test
def the_far_end_believes_nothing(w):
    needs_fuse()
    ticket = ticket_text("ab" * 32, "0")  # whose state nobody has sent
    assert talk(w, question(ticket, 1)) == [(OK, b"")]
    # Cancelled before it began: it never runs, however often it is sent.
    [(kind, text)] = talk(w, question(ticket, 2))
    assert kind == OK and json.loads(text)["outcome"] == "cancelled", text
    again = talk(w, question(ticket), question(ticket, 1))
    assert [k for k, _ in again] == [OK, OK], again
    assert [json.loads(t)["outcome"] for _, t in again] == ["cancelled"] * 2
    other = ticket.replace(b"0" * 32, b"1" * 32)
    assert OK not in [k for k, _ in talk(w, question(other))], "a client that leaves at once hears no end"
    assert json.loads(wait_for(lambda: talk(w, question(other, 1))[0][1]))["outcome"] == "failed"
    # Texts that are no tickets, in no form that is theirs, too long; modes and lengths that there are not.
    for bad in (b"{}", ticket[:-1], ticket.replace(b'"workdir":""', b'"workdir":"../x"'), ticket + b" ", b"x" * 70_000,
                ticket.replace(b'"schema"', b'"schema":"x","schema"')):
        assert [k for k, _ in talk(w, question(bad))] == [FAIL], bad[:60]
    for bad in (question(ticket, 3), question(b""), message(TICKET, b"short"), message(TICKET, struct.pack("<II", 0, 0xFFFFFFF0)),
                question(ticket, path=b"/a\0b")):
        assert [k for k, _ in talk(w, bad)] == [FAIL], bad[:60]
    # Depots outside of the directory, and a server that was not told to.
    for path in (b"/../x", b"relative", b""):
        assert [k for k, _ in talk(w, question(other.replace(b"1" * 32, b"2" * 32), path=path))] == [FAIL], path
    assert b"without --tickets" in talk(w, question(ticket), options=())[0][1]


@test
def a_key_cannot_start_from_states_of_another_keys_directory(w):
    needs_fuse()
    mine, yours = w.top / "mine", w.top / "yours"
    with Far(w, StandIn(w)) as far:
        for top in (mine, yours):
            top.mkdir()
        # The words that the client adds are a comment then, as with a forced command.
        far.env["SNAPCOW_SSH_PROGRAM"] = f"{far.program} serve --tickets {yours} #"
        assert far.run("cat", "README.md").ends(0).out == b"first\n"
        index = json.loads(next(yours.rglob("index.json")).read_text())
        there = {"HOME": str(far.home), "SNAPCOW_STORE": str(far.store)}
        for nonce, entry in enumerate(index["manifests"]):
            digest = entry["digest"].removeprefix("sha256:")
            for n, known in enumerate((digest, digest[:16] + "0" * 48)):
                ticket = ticket_text(known, "abcdef"[2 * nonce + n], ["cat", "README.md"])
                talk(w, question(ticket), inside=mine, env=there)
                result = json.loads(wait_for(lambda t=ticket: talk(w, question(t, 1), inside=mine, env=there)[0][1]))
                assert result["outcome"] == "failed" and result["out"] == 0, result
        assert far.runs() == 1


if __name__ == "__main__":
    sys.exit(livetest.main())

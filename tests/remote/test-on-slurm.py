#!/usr/bin/env python3
"""run --on slurm, experiment --on slurm: a stand-in for its commands, and with SNAP_TESTS_LONG=1 a real one."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from remotetest import CLIENT  # noqa: F401  (finds the modules below)

sys.path.append(str(Path(__file__).resolve().parents[1] / "live"))

import livetest  # noqa: E402  (found through the line above)
from slurmtest import Cluster, Slurm, StandIn  # noqa: E402
from snaptest import LONG, Skip, needs_fuse, test, until as wait_for  # noqa: E402

PATIENCE = 90  # seconds for what takes one


def real(w):
    if not LONG:
        raise Skip("SNAP_TESTS_LONG=1 starts a real Slurm")
    return Slurm(w)


def ended(process, status):
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == status, (process.returncode, out, err)
    return out, err


def results(c):
    return [json.loads(p.read_text()) for p in (c.dir / "tickets").glob("*.result")]


def sleeps(seconds):
    """Processes of `sleep SECONDS`, by a number that nobody else has."""
    found = []
    for p in Path("/proc").glob("[0-9]*"):
        try:
            if (p / "cmdline").read_bytes() == b"sleep\0" + seconds + b"\0":
                found.append(int(p.name))
        except OSError:
            continue
    return found


def end_sleeps(seconds):
    """What a job that was killed may have left."""
    for pid in sleeps(seconds):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    wait_for(lambda: sleeps(seconds) == [])


# --- what holds of either ---------------------------------------------------------------------


def runs_there(w, slurm):
    with slurm, Cluster(w, slurm) as c:
        got = c.run("sh", "-c", "echo out; echo err >&2; cat README.md > made; exit 3").ends(3)
        assert got.out == b"out\n" and b"err\n" in got.err and b"exit in" in got.err, str(got)
        [result] = results(c)
        assert (result["outcome"], result["code"], result["attempt"]) == ("exit", 3, 1), result
        assert w.ok("show", f"run/{result['ticket'][:12]}:made").out == b"first\n"
        assert not (w.project / "made").exists()
        # The same state again: the node has it.
        told = w.snap("--json", *c.words("sh", "-c", "echo again; echo x >> README.md"), env=c.env).json("snap.run/1", "on")
        assert (told["exit_code"], told["stdout"], told["changed"]["modified"]) == (0, "again\n", 1), told
        assert told["on"]["worker"] == os.uname().nodename and told["on"]["worker_received"] == 0, told["on"]
        got = c.run("true", options=["--profile", "nowhere"])
        assert got.status == 125 and b"nowhere" in got.err, str(got)
        assert c.run("true", options=["--deadline", "1ms"]).status == 125
        assert "expired" in [r["outcome"] for r in results(c)]
        # One that ran before is not run again.
        w.snap("run", "--on", "slurm:", "--", "true", env=c.env).fails(2, "no partition")
        assert set(slurm.states()) == {"COMPLETED"}, slurm.states()


def is_cancelled(w, slurm):
    with slurm, Cluster(w, slurm) as c:
        caller = c.start(*c.words("sh", "-c", "echo begun; sleep 7171"))
        assert caller.stdout.readline() == b"begun\n"  # while it runs
        caller.send_signal(signal.SIGINT)
        _, err = ended(caller, 125)
        assert b"the ticket is cancelled" in err and b"may still run" not in err, err
        wait_for(lambda: sleeps(b"7171") == [])
        assert [r["outcome"] for r in results(c)] == ["cancelled"], results(c)
        assert slurm.states() == ["CANCELLED"], slurm.states()
        assert c.run("echo", "next").ends(0).out == b"next\n"


def experiment_runs(w, slurm, arms=6):
    with slurm, Cluster(w, slurm) as c:
        words = ["--json", "experiment", "-n", "far", "--on", "slurm", "--check", "test -s made", "--score", "cat made"]
        for i in range(arms):
            words += ["--arm", f"arm{i}=echo {(i * 7 + 3) % arms} > made"]
        told = w.snap(*words, env=c.env, timeout=300).json("snap.experiment/1", "arms")
        assert [a["state"] for a in told["arms"]] == ["passed"] * arms, told
        best = next(i for i in range(arms) if (i * 7 + 3) % arms == 0)
        assert told["winner"] == f"arm{best}", told["winner"]
        assert {a["machine"]["worker"] for a in told["arms"]} == {os.uname().nodename}, told
        assert c.runs() == arms and len(results(c)) == arms


# --- the stand-in -----------------------------------------------------------------------------


@test
def a_command_runs_as_a_job_and_what_it_left_is_a_snapshot_here(w):
    needs_fuse()
    runs_there(w, StandIn(w))


@test
def an_interrupted_caller_cancels_the_job(w):
    needs_fuse()
    is_cancelled(w, StandIn(w))


@test
def arms_of_an_experiment_are_jobs(w):
    needs_fuse()
    experiment_runs(w, StandIn(w))


@test
def what_a_ticket_asks_for_is_asked_of_slurm(w):
    needs_fuse()
    with StandIn(w) as slurm, Cluster(w, slurm) as c:
        c.run("true", options=["--mem", "100M", "--cpus", "1.5", "--time", "90s"], on="slurm:long")  # which not all can limit
        [call] = slurm.calls("sbatch")
        for word in ("--partition=long", "--mem=102400K", "--cpus-per-task=2", "--time=12", "--requeue", "--job-name=snapcow-"):
            assert word in call, call
        w.snap("run", "--on", "slurm", "--label", "x", "--", "true", env=c.env).fails(2, "is a cluster")
        w.snap("experiment", "--arm", "a=true", "--on", "slurm", "--creds", "x", env=c.env).fails(2, "is a cluster")
        slurm.set("refuse")
        c.run("true").fails(125, "Invalid account")
        slurm.set("away")
        c.run("true").fails(125, "contact slurm controller")
    w.snap("run", "--on", "slurm", "--", "true", env={**c.env, "PATH": "/nowhere"}).fails(125, "no 'squeue' here")


@test
def a_job_that_waits_is_cancelled_before_it_begins(w):
    needs_fuse()
    with StandIn(w) as slurm, Cluster(w, slurm) as c:
        slurm.set("hold")
        caller = c.start(*c.words("echo", "no"))
        wait_for(lambda: slurm.states() == ["PENDING"])
        caller.send_signal(signal.SIGINT)
        _, err = ended(caller, 125)
        assert b"the ticket is cancelled" in err and slurm.states() == ["CANCELLED"], err
        assert c.runs() == 0
        # Nothing but its result and its text, which go after 8 days.
        [result] = (c.dir / "tickets").glob("*.result")
        old = time.time() - 9 * 86400
        os.utime(result, (old, old))
        slurm.set("hold", False)
        c.run("true").ends(0)
        assert not list((c.dir / "tickets").glob(result.name.split(".")[0] + ".*"))


@test
def a_caller_that_was_killed_finds_its_job_again(w):
    needs_fuse()
    with StandIn(w) as slurm, Cluster(w, slurm) as c:
        slurm.set("hold")
        line = ["sh", "-c", "echo begun; echo x > made; exit 4"]
        caller = c.start(*c.words(*line))
        wait_for(lambda: slurm.states() == ["PENDING"])
        [ticket] = [p.name for p in (w.store / "remote" / "tickets").iterdir()]
        caller.kill()
        caller.communicate()
        again = c.start(*c.words(*line, options=["--ticket", ticket]))
        slurm.set("hold", False)
        out, _ = ended(again, 4)
        assert out == b"begun\n" and c.runs() == 1 and len(slurm.calls("sbatch")) == 1, out
        assert w.ok("show", f"run/{ticket[:12]}:made").out == b"x\n"


@test
def a_job_that_ends_without_a_result_is_told_with_what_it_said(w):
    needs_fuse()
    with StandIn(w) as slurm, Cluster(w, slurm) as c:
        c.env["SNAPCOW_SLURM_PROGRAM"] = "/nowhere/snapcow"
        got = c.run("true")
        assert got.status == 125 and b"FAILED" in got.err and b"/nowhere/snapcow: not found" in got.err, str(got)
        assert [r["outcome"] for r in results(c)] == ["failed"]
        c.env["SNAPCOW_SLURM_PROGRAM"] = c.world.env.get("SNAP_UNDER_TEST") or os.environ["SNAP_UNDER_TEST"]
        # Killed while it ran: the command may have done half of its work, and is not begun again behind Slurm's back.
        caller = c.start(*c.words("sh", "-c", "echo begun; sleep 7172"))
        assert caller.stdout.readline() == b"begun\n"
        [pid] = [int(p.read_text()) for p in slurm.top.glob("2.pid")]
        os.killpg(pid, signal.SIGKILL)
        _, err = ended(caller, 125)
        assert b"ended without a result (FAILED)" in err, err
        assert sorted(r["outcome"] for r in results(c)) == ["failed", "lost"]
        end_sleeps(b"7172")


@test
def a_job_that_slurm_begins_again_is_a_second_attempt(w):
    needs_fuse()
    with StandIn(w) as slurm, Cluster(w, slurm) as c:
        caller = c.start(*c.words("sh", "-c", "echo begun; sleep 7173; echo over"))
        assert caller.stdout.readline() == b"begun\n"
        # As when a node dies: it is waiting again, and then runs elsewhere.
        (slurm.top / "1.state").write_text("PENDING")
        os.killpg(int((slurm.top / "1.pid").read_text()), signal.SIGKILL)
        end_sleeps(b"7173")
        script = subprocess.Popen([slurm.top / "1.script"], env={**w.env, **c.env}, start_new_session=True,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        [left] = wait_for(lambda: sleeps(b"7173"))
        os.kill(left, signal.SIGTERM)
        out, err = ended(caller, 0)
        assert script.wait(PATIENCE) == 0 and out == b"begun\nover\n" and b"begins again" in err, (out, err)
        assert [r["attempt"] for r in results(c)] == [2], results(c)


@test
def a_directory_that_others_can_write_to_holds_no_store(w):
    needs_fuse()
    with StandIn(w) as slurm, Cluster(w, slurm) as c:
        c.stores.mkdir(mode=0o777)
        c.stores.chmod(0o777)
        got = c.run("true")
        assert got.status == 125 and b"only you can write to" in got.err, str(got)
        c.stores.chmod(0o700)
        w.snap("worker", "--ticket", "relative").fails(2, "is no ticket")
        w.snap("worker", "--ticket", "/x", "--queue", "nats://127.0.0.1").fails(2, "exclude each other")


@test
def a_directory_that_others_can_write_to_holds_no_tickets(w):
    needs_fuse()
    with StandIn(w) as slurm, Cluster(w, slurm) as c:
        tickets = c.dir / "tickets"
        tickets.mkdir(parents=True, exist_ok=True)
        tickets.chmod(0o777)
        got = c.run("true")
        assert got.status != 0 and b"only you can write to" in got.err and not results(c), str(got)
        tickets.chmod(0o700)
        c.run("true").ends(0)


# --- a real one -------------------------------------------------------------------------------


@test
def a_command_runs_as_a_job_of_a_real_slurm(w):
    needs_fuse()
    runs_there(w, real(w))


@test
def an_interrupted_caller_cancels_a_job_of_a_real_slurm(w):
    needs_fuse()
    is_cancelled(w, real(w))


@test
def twenty_arms_are_jobs_of_a_real_slurm(w):
    needs_fuse()
    experiment_runs(w, real(w), 20)


@test
def a_job_that_a_real_slurm_ends_is_told(w):
    needs_fuse()
    with real(w) as slurm, Cluster(w, slurm) as c:
        caller = c.start(*c.words("sh", "-c", "echo begun; sleep 7174"))
        assert caller.stdout.readline() == b"begun\n"
        subprocess.run(["scancel", "--user", str(os.geteuid())], env={**os.environ, **slurm.env}, check=True)
        _, err = ended(caller, 125)
        assert b"ended without a result (CANCELLED)" in err, err
        wait_for(lambda: sleeps(b"7174") == [])
        # The controller is away for a while: the job goes on, and so does who follows it.
        caller = c.start(*c.words("sh", "-c", "echo begun; sleep 3; echo over"))
        assert caller.stdout.readline() == b"begun\n"
        slurm.restart_controller()
        out, err = ended(caller, 0)
        assert out == b"over\n", (out, err)


if __name__ == "__main__":
    sys.exit(livetest.main())

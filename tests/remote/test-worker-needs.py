#!/usr/bin/env python3
"""run --on --mem, --cpus: a ticket goes to a worker that has that much left for it, and to no other."""

import signal
import subprocess
import sys

from remotetest import CLIENT  # noqa: F401  (finds the modules below)
from fleettest import depot, ended, events, start, words
from natstest import PATIENCE, Client, Nats, Worker
from snaptest import SNAP, main, needs_fuse, test, until


def call(w, nats, *options, command=("echo", "done")):
    """A caller that goes on beside us."""
    return start(w, "run", "--on", nats.url(), "--remote", depot(w), *options, "--", *command)


def subjects(nats):
    """Of the tickets that are there, and how many each has."""
    client = Client(nats)
    try:
        got = client.api("STREAM.INFO.SNAPCOW_TICKETS", subjects_filter="snapcow.>")
        return got.get("state", {}).get("subjects", {})
    finally:
        client.close()


def once(w, nats, *options, name):
    """Take what it can, and end."""
    with Worker(w, nats, depot(w), "--once", *options, name=name) as worker:
        assert worker.process.wait(PATIENCE) == 0, worker.said()
    return worker


def end(caller):
    caller.send_signal(signal.SIGINT)
    caller.communicate(timeout=PATIENCE)


@test
def a_ticket_that_asks_for_more_than_a_worker_offers_stays_for_another(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats:
        caller = call(w, nats, "--mem", "512M", "--cpus", "1.5")
        until(lambda: subjects(nats) == {"snapcow.default.ticket.any_M512_C1500": 1})
        for lacking in (("--mem", "511M", "--cpus", "2"), ("--mem", "1G", "--cpus", "1.4")):
            assert [e["event"] for e in once(w, nats, *lacking, name="small").events] == ["ready", "ended"]
        assert caller.poll() is None and len(subjects(nats)) == 1
        big = once(w, nats, "--mem", "512M", "--cpus", "1.5", name="big")
        out, err = ended(caller, 0)
        assert out == b"done\n" and b"big  exit" in err and len(events(big, "done")) == 1, (out, err)
        assert subjects(nats) == {}


@test
def labels_and_needs_hold_together(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats:
        caller = call(w, nats, "--label", "red", "--mem", "100M")
        until(lambda: subjects(nats) == {"snapcow.default.ticket.red_M100": 1})
        assert events(once(w, nats, name="colourless"), "taken") == []
        assert events(once(w, nats, "--labels", "red", "--mem", "64M", name="small"), "taken") == []
        assert len(events(once(w, nats, "--labels", "blue,red", "--mem", "100M", name="red"), "done")) == 1
        assert b"red  exit" in ended(caller, 0)[1]


@test
def tickets_at_once_share_what_a_worker_offers(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, \
            Worker(w, nats, depot(w), "--jobs", "3", "--mem", "600M", "--pass-env", "HOLD", env={"HOLD": "600"}) as worker:
        first = call(w, nats, "--mem", "400M", "--pass-env", "HOLD", command=("sh", "-c", "echo begun; sleep $HOLD"))
        assert first.stdout.readline() == b"begun\n"
        second = call(w, nats, "--mem", "201M")
        until(lambda: "snapcow.default.ticket.any_M201" in subjects(nats))
        # There is a slot for it, and for others.
        for options in ([], ["--mem", "200M"]):
            assert ended(call(w, nats, *options), 0)[0] == b"done\n"
        assert len(events(worker, "taken")) == 3 and second.poll() is None, worker.events
        end(first)
        assert ended(second, 0)[0] == b"done\n"


@test
def a_ticket_that_no_worker_can_take_ends_with_a_sentence(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w), name="one") as one, \
            Worker(w, nats, depot(w), "--mem", "300M", "--cpus", "1", name="two") as two:
        memory, processors = call(w, nats, "--mem", "64G"), call(w, nats, "--mem", "1M", "--cpus", "9999")
        arms = start(w, *words(w, nats, "far", ["a=true", "b=true"], "--mem", "65G"))
        _, err = ended(memory, 125)
        # What its profile has is all that a ticket can have.
        assert b"no worker offers 64.0 GiB of memory (the most is 1.0 GiB of memory)" in err, err
        _, err = ended(processors, 125)
        assert b"no worker offers 1.0 MiB of memory and 9999 processors" in err, err
        out, _ = arms.communicate(timeout=PATIENCE)
        assert arms.returncode != 0 and b"no worker offers 65.0 GiB of memory" in out.splitlines()[-1], out
        assert subjects(nats) == {} and events(one, "taken") == events(two, "taken") == []


@test
def a_ticket_that_nobody_takes_ends_at_its_deadline(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats:
        _, err = ended(call(w, nats, "--deadline", "1s"), 125)
        assert b"no worker took it before its deadline" in err and b"no worker  expired" in err, err
        assert subjects(nats) == {}


@test
def a_worker_says_what_it_offers(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w), "--mem", "300M", "--cpus", "0.5", name="one"):
        told = w.ok("--json", "worker", "status", "--queue", nats.url()).json("snap.worker/1", "workers")
        assert (told["workers"][0]["mem"], told["workers"][0]["cpus"]) == (300 << 20, 0.5), told
        assert b"up to 300.0 MiB, 0.5 cpus" in w.ok("worker", "status", "--queue", nats.url()).out
    done = subprocess.run([SNAP, "worker", "--queue", "nats://127.0.0.1:1", "--remote", depot(w), "--cpus", "two"], cwd=w.project,
                          env=w.env, capture_output=True, check=False)
    assert done.returncode == 2 and b"is not a number of processors" in done.stderr, done


if __name__ == "__main__":
    sys.exit(main())

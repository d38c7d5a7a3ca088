#!/usr/bin/env python3
"""worker --sign, run --on --allowed-signers: whose word a caller takes for what came of a ticket; and encrypted states."""

import base64
import hashlib
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys

from remotetest import CLIENT  # noqa: F401  (finds the modules below)
from fleettest import depot, ended, start, wait_for
from natstest import PATIENCE, Client, Nats, Worker
from snaptest import SNAP, Skip, main, needs_fuse, test
from sshtest import StandIn

KEEPS = "echo made > made"  # a command that leaves something


class Scene:
    """Keys of two people, a list that allows one of them, and a server."""

    def __init__(self, w):
        needs_fuse()
        if not shutil.which("ssh-keygen"):
            raise Skip("ssh-keygen is missing")
        self.w, self.allowed = w, w.top / "allowed"
        for who in ("anna", "eve"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", who, "-f", w.top / who], check=True)
        self.allowed.write_text(f'anna@example.org namespaces="snapcow,snapcow-result" {(w.top / "anna.pub").read_text()}')
        w.ok("init")

    def words(self, nats, *command, trust=True, options=()):
        trust = ["--allowed-signers", self.allowed] if trust else []
        return ["run", "--on", nats.url(), "--remote", depot(self.w), *trust, *options, "--", *command]

    def run(self, nats, command, **more):
        return self.w.snap("--json", *self.words(nats, "sh", "-c", command, **more))

    def signer(self, *args, **more):
        told = self.run(*args, **more).ends(0).json("snap.run/1", "on")
        return told["on"]["signer"]

    def refused(self, sentence, *args, **more):
        error = self.run(*args, **more).fails_json(125, "E_REFUSED")
        assert sentence in error["message"], error
        assert any("--ticket" in hint for hint in error["hints"]), error

    def tags(self):
        told = self.w.ok("--json", "log", "--all").json("snap.log/1")
        return [tag for s in told["snapshots"] for tag in s["tags"]]


@test
def a_signed_result_counts_and_names_its_signer(w):
    s = Scene(w)
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w), "--sign", w.top / "anna") as worker:
        assert s.signer(nats, KEEPS) == "anna@example.org"
        tag = f"run/{worker.wait('done')['ticket'][:12]}"
        assert w.ok("show", f"{tag}:made").out == b"made\n"
        # One that leaves nothing has no snapshot whose signature could be looked at.
        assert s.signer(nats, "true") == "anna@example.org"
        assert s.signer(nats, KEEPS, trust=False) is None
        s.run(nats, "exit 3").ends(3)
        s.run(nats, "true", trust=False, options=["--require-signature"]).fails_json(2, "E_USAGE")
        gone = s.run(nats, "true", trust=False, options=["--allowed-signers", w.top / "nowhere"])
        assert gone.status == 125 and b"nowhere" in gone.out, gone
        assert len([e for e in worker.events if e.get("event") == "taken"]) == 4, worker.events


@test
def a_result_that_nobody_allowed_signed_is_refused_and_nothing_of_it_stored(w):
    s = Scene(w)
    with Nats(w.top / "nats") as nats:
        with Worker(w, nats, depot(w), name="plain"):
            for command in (KEEPS, "true"):
                s.refused("is not accepted: it is not signed", nats, command)
            # So asks the list of the configuration.
            w.ok("remote", "add", "origin", depot(w))
            config = w.home / ".config" / "snapcow" / "config.yaml"
            config.write_text(f"remote:\n  origin:\n    signers: {s.allowed}\n")
        home = w.top / "home-of-worker"
        home.mkdir()
        with Worker(w, nats, depot(w), name="bare", env={"HOME": str(home)}):
            s.refused("is not accepted: it is not signed", nats, "true", trust=False)
            config.unlink()
        with Worker(w, nats, depot(w), "--sign", w.top / "eve", name="eve"):
            s.refused("does not list the key that signed it", nats, KEEPS)
        assert not [tag for tag in s.tags() if tag.startswith("run/")], s.tags()


@test
def what_travels_with_signatures_serves_a_remote_that_asks_for_them_at_both_ends(w):
    s = Scene(w)
    w.ok("remote", "add", "origin", depot(w))
    config = w.home / ".config" / "snapcow" / "config.yaml"
    config.write_text(f"remote:\n  origin:\n    signers: {s.allowed}\n")
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w), "--sign", w.top / "anna"):
        told = s.run(nats, KEEPS, trust=False).json("snap.run/1", "on", status=125)
        assert told["on"]["outcome"] == "failed" and "it is not signed" in told["on"]["problem"], told["on"]
        assert s.signer(nats, KEEPS, trust=False, options=["--sign", w.top / "anna"]) == "anna@example.org"


def waiting(nats):
    """The ticket that nobody has taken: its id."""
    client = Client(nats)
    try:
        state = client.api("STREAM.INFO.SNAPCOW_TICKETS").get("state", {})
        if state.get("messages", 0) == 0:
            return None
        got = client.api("STREAM.MSG.GET.SNAPCOW_TICKETS", seq=state["last_seq"])
        return hashlib.sha256(base64.b64decode(got["message"]["data"])).hexdigest()
    finally:
        client.close()


def written(result):
    """As a result is written: one text for one content."""
    return (json.dumps(result, separators=(",", ":")) + "\n").encode()


@test
def a_queue_that_lies_about_a_result_is_found_out(w):
    s = Scene(w)
    with Nats(w.top / "nats") as nats:
        with Worker(w, nats, depot(w), "--sign", w.top / "anna", "--tickets", "1") as worker:
            assert s.signer(nats, KEEPS) == "anna@example.org"
            client = Client(nats)
            real = client.result(worker.wait("done")["ticket"])
        assert real["signature"].startswith("-----BEGIN SSH SIGNATURE-----\n"), real
        lies = (({}, f"it belongs to ticket {real['ticket'][:12]}"),
                ({"ticket": None}, "its signature does not fit what it says"),
                ({"ticket": None, "signature": None}, "it is not signed"),
                ({"ticket": None, "signature": None, "snapshot": None, "added": 0}, "it is not signed"),
                ({"ticket": None, "signature": "nonsense\n"}, "is not accepted"),
                # What nobody has to sign says nothing of how the command ended.
                *(({"ticket": None, "signature": None, "snapshot": None, "added": 0, "outcome": outcome},
                   "'outcome' is not allowed") for outcome in ("lost", "failed", "expired", "cancelled")),
                ({"ticket": None, "signature": None, "outcome": "lost", "code": 125}, "'outcome' is not allowed"))
        for lie, sentence in lies:
            caller = start(w, "--json", *s.words(nats, "sh", "-c", KEEPS))
            ticket = wait_for(lambda: waiting(nats))
            forged = {**real, **lie}
            if "ticket" in lie:
                forged["ticket"] = ticket
            client.request(f"snapcow.default.result.{ticket}", written(forged))
            out, _ = ended(caller, 125)
            assert sentence in json.loads(out)["error"]["message"], (lie, out)
            client.api("STREAM.PURGE.SNAPCOW_TICKETS")
        # What only the worker's other process knows is not signed, and changes nothing else.
        caller = start(w, "--json", *s.words(nats, "sh", "-c", KEEPS))
        ticket = wait_for(lambda: waiting(nats))
        client.request(f"snapcow.default.result.{ticket}",
                       written({**real, "ticket": ticket, "outcome": "cancelled", "code": 143, "added": 0,
                                "snapshot": None, "signature": None}))
        ended(caller, 143)
        client.close()


@test
def a_ticket_is_followed_to_its_own_remote_and_by_the_strictest_name_that_has(w):
    s = Scene(w)
    config = w.home / ".config" / "snapcow" / "config.yaml"
    line = ["--", "sh", "-c", KEEPS]
    for name, url in (("here", depot(w)), ("elsewhere", f"dir:{w.top}/other"), ("strict", depot(w))):
        w.ok("remote", "add", name, url)
    with Nats(w.top / "nats") as nats:
        caller = start(w, "run", "--on", nats.url(), "--remote", "here", *line)
        ticket = wait_for(lambda: waiting(nats))
        caller.kill()
        caller.communicate()

        def follow(*options):
            return w.snap("run", "--on", nats.url(), "--ticket", ticket, *options, *line)

        follow("--remote", "elsewhere").fails(2, f"the ticket's state is in '{depot(w)}'", "'elsewhere' is")
        with Worker(w, nats, depot(w)) as worker:
            worker.wait("done")
        # One name of the place where the state is asks for signatures, so they count, whatever name was given before.
        config.write_text(f"remote:\n  strict:\n    signers: {s.allowed}\n")
        follow().fails(125, "is not accepted: it is not signed")
        assert not [tag for tag in s.tags() if tag.startswith("run/")], s.tags()
        config.unlink()
        follow().ends(0)
        assert w.ok("show", f"run/{ticket[:12]}:made").out == b"made\n"


def on_terminal(w, *words, answer=None):
    """What a command says on a terminal of its own, to which an answer is typed as soon as it asks; and its status."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(w.project)
        os.execve(SNAP, [SNAP, *map(str, words)], w.env)
    said = b""
    while select.select([fd], [], [], PATIENCE)[0]:
        try:
            said += os.read(fd, 4096)
        except OSError:  # it has ended
            break
        if answer and b"passphrase" in said:
            os.write(fd, answer)
            answer = None
    else:
        os.kill(pid, signal.SIGKILL)
    os.close(fd)
    return said.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@test
def a_worker_whose_key_has_a_passphrase_asks_nobody_and_ends_at_once(w):
    Scene(w)
    key = w.top / "locked"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", key], check=True)
    w.env.pop("SSH_AUTH_SOCK", None)
    w.env.pop("DISPLAY", None)
    w.take()
    # Somebody who signs for himself is asked.
    said, status = on_terminal(w, "audit", "sign", "--key", key, answer=b"secret\n")
    assert status == 0 and "passphrase" in said, said
    with Nats(w.top / "nats") as nats:
        said, status = on_terminal(w, "worker", "--queue", nats.url(), "--remote", depot(w), "--sign", key)
    assert status > 0 and "Enter passphrase" not in said and f"signing with '{key}'" in said, (status, said)


@test
def an_arm_whose_result_nobody_signed_is_run_again_by_a_worker_that_signs(w):
    s = Scene(w)
    signs = ("--sign", w.top / "anna")
    with Nats(w.top / "nats") as nats:
        line = ["--json", "experiment", "-n", "trial", "--on", nats.url(), "--remote", depot(w), "--allowed-signers", "allowed",
                "--jobs", "1", "--arm", "a=echo a > a", "--arm", "b=echo b > b; echo b >> b", "--score", "lines", "--max"]
        shutil.copy(s.allowed, w.project / "allowed")
        caller = start(w, *line)
        with Worker(w, nats, depot(w), *signs, "--tickets", "1", name="first") as first:
            first.wait("done")
        with Worker(w, nats, depot(w), name="plain"):
            error = json.loads(ended(caller, 7)[0])["error"]
            assert error["code"] == "E_REFUSED" and "arm 'b'" in error["message"] and "it is not signed" in error["message"], error
        with Worker(w, nats, depot(w), *signs, name="second") as second:
            # The list is the one that was named then, wherever we are now.
            told = w.snap("--json", "experiment", "resume", "trial", cwd=w.project / "src").ends(0)
            told = told.json("snap.experiment/1", "arms")
            assert [(a["arm"], a["machine"]["worker"], a["state"]) for a in told["arms"]] == [
                ("a", "first", "passed"), ("b", "second", "passed")], told
            assert second.wait("done")["outcome"] == "exit" and len(second.events) == 3, second.events


@test
def a_worker_that_cannot_sign_does_not_begin(w):
    s = Scene(w)
    with Nats(w.top / "nats") as nats:
        line = ["worker", "--queue", nats.url(), "--remote", depot(w), "--once"]
        w.snap(*line, "--sign", w.top / "nobody").fails(4, "nobody")
        w.snap(*line, "--identity", w.top / "nobody").fails(4, "nobody")
        w.snap(*line, "--encrypt-to", "nonsense").fails(2, "nonsense")
        (w.top / "broken").write_text("no key\n")
        w.snap(*line, "--sign", w.top / "broken").fails(1, "signing with")
        (w.top / "bin").mkdir()
        w.snap(*line, "--sign", w.top / "anna", env={"PATH": str(w.top / "bin")}).fails(13, "ssh-keygen")
    for option in ("--require-signature", "--allowed-signers=x", "--sign=x"):
        w.snap("run", option, "--", "true").fails(2, "needs '--on'")
        w.snap("experiment", option, "--arm", "a=true").fails(2, "needs '--on'")
    w.snap("serve", "--sign", w.top / "anna").fails(2, "needs '--tickets'")
    # Whoever resumes an experiment may be elsewhere; a list is one of the caller's, as with `run`.
    w.snap("-C", w.project, "experiment", "--on", "nats://127.0.0.1:1", "--remote", depot(w), "--allowed-signers", "nowhere",
           "--arm", "a=true", cwd=w.top).fails(4, f"'{w.top}/nowhere'")
    assert s.tags() == []


@test
def a_state_that_is_encrypted_needs_the_key_of_the_worker(w):
    s = Scene(w)
    for program in ("age", "age-keygen"):
        if not shutil.which(program):
            raise Skip(f"{program} is missing")
    key = w.top / "age-key"
    subprocess.run(["age-keygen", "-o", key], check=True, capture_output=True)
    public = subprocess.run(["age-keygen", "-y", key], check=True, capture_output=True, text=True).stdout.strip()
    (w.top / "readers").write_text(public + "\n")
    w.ok("remote", "add", "origin", depot(w))
    config = w.home / ".config" / "snapcow" / "config.yaml"
    config.write_text(f"remote:\n  origin:\n    recipients: {w.top}/readers\n    identity: {key}\n")
    home = w.top / "home-of-worker"
    home.mkdir()
    with Nats(w.top / "nats") as nats:
        caller = start(w, "--json", *s.words(nats, "sh", "-c", "cat README.md > made"))
        with Worker(w, nats, depot(w), name="blind", env={"HOME": str(home)}) as blind:
            assert "--identity" in blind.wait("again")["text"], blind.events
        with Worker(w, nats, depot(w), "--identity", key, "--encrypt-to", public, "--sign", w.top / "anna", name="sees",
                    env={"HOME": str(home)}) as worker:
            out, _ = ended(caller, 0)
            assert json.loads(out)["on"]["signer"] == "anna@example.org", out
            tag = f"run/{worker.wait('done')['ticket'][:12]}"
        assert w.ok("show", f"{tag}:made").out == b"first\n"
        for blob in (w.top / "depot" / "blobs" / "sha256").iterdir():
            assert b"first" not in blob.read_bytes(), blob


@test
def the_far_end_of_ssh_signs_what_it_is_told_to(w):
    s = Scene(w)
    home, store = w.top / "far-home", w.top / "far-store"
    home.mkdir()
    ssh = StandIn(w)

    def run(*more):
        program = f"env HOME={home} SNAPCOW_STORE={store} {' '.join(map(str, (w.top / 'far', *more)))}"
        return w.snap("--json", "run", "--on", "ssh:far", "--allowed-signers", s.allowed, "--", "sh", "-c", KEEPS,
                      env={**ssh.env, "SNAPCOW_SSH_PROGRAM": program})

    try:
        far = w.top / "far"
        far.write_text(f'#!/bin/sh\nexec {SNAP} "$@"\n')
        far.chmod(0o755)
        error = run().fails_json(125, "E_REFUSED")
        assert "it is not signed" in error["message"], error
        # A key that cannot sign: the command does not even begin.
        far.write_text(f'#!/bin/sh\ncase " $* " in *" --tickets "*) set -- "$@" --sign {far};; esac\nexec {SNAP} "$@"\n')
        ran = len(list((store / "runs").glob("*.json")))
        told = run().json("snap.run/1", "on", status=125)["on"]
        assert told["outcome"] == "failed" and "signing with" in told["problem"], told
        assert len(list((store / "runs").glob("*.json"))) == ran > 0
        far.write_text(f'#!/bin/sh\ncase " $* " in *" --tickets "*) set -- "$@" --sign {w.top}/anna;; esac\nexec {SNAP} "$@"\n')
        assert run().ends(0).json("snap.run/1", "on")["on"]["signer"] == "anna@example.org"
    finally:
        w.snap("-q", "stop", "--force", env={"SNAPCOW_STORE": str(store), "HOME": str(home)})


if __name__ == "__main__":
    sys.exit(main())

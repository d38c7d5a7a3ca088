#!/usr/bin/env python3
"""worker, run --on: tickets through a real nats-server, workers that die, and tickets that lie."""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from remotetest import CLIENT  # noqa: F401  (finds the modules below)
from natstest import PATIENCE, Between, Client, Nats, Worker, needs
from servers import Fault, Proxy, Registry, make_certificate, missing
from snaptest import SNAP, Skip, gone, main, needs_fuse, test


def depot(w):
    return f"dir:{w.top}/depot"


def on(w, nats, *words, options=(), **more):
    return w.snap("run", "--on", nats.url(), "--remote", depot(w), *options, "--", *words, **more)


def start(w, nats, *words, options=()):
    """A caller that goes on beside us."""
    return subprocess.Popen([SNAP, "run", "--on", nats.url(), "--remote", depot(w), *options, "--", *words], cwd=w.project,
                            env=w.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)


def ended(process, status):
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == status, (process.returncode, out, err)
    return out, err


@test
def a_command_runs_on_a_worker_and_what_it_left_is_a_snapshot_here(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w)) as worker:
        got = on(w, nats, "sh", "-c", "echo out; echo err >&2; cat README.md > made; exit 3").ends(3)
        assert got.out == b"out\n" and b"err\n" in got.err, str(got)
        done = worker.wait("done")
        assert (done["outcome"], done["code"], done["attempt"]) == ("exit", 3, 1), done
        tag = f"run/{done['ticket'][:12]}"
        assert w.ok("show", f"{tag}:made").out == b"first\n"
        assert not (w.project / "made").exists()
        # The same state again: the worker has it, and only the ticket travels.
        got = w.snap("--json", "run", "--on", nats.url(), "--remote", depot(w), "--", "sh", "-c", "echo again; echo x >> README.md")
        told = got.json("snap.run/1", "on")
        assert (told["exit_code"], told["stdout"]) == (0, "again\n"), told
        assert told["on"]["worker"] == "worker-1" and told["on"]["worker_received"] == 0, told["on"]
        assert told["changed"]["modified"] == 1, told["changed"]
        kept = on(w, nats, "sh", "-c", "echo kept > new", options=["--keep"]).ends(0)
        name = next(x for x in kept.err.decode().splitlines() if x.startswith("clone ")).split()[1]
        assert (w.store / "clones" / name / "new").read_text() == "kept\n"


@test
def a_killed_worker_is_replaced_and_the_ticket_has_one_result(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats:
        # The variable is the worker's own: the first one's run never ends by itself.
        options = ("--lease", "10s", "--pass-env", "HOLD")
        with Worker(w, nats, depot(w), *options, name="first", env={"HOLD": "600"}) as first:
            caller = start(w, nats, "sh", "-c", "echo begun; sleep $HOLD; echo over; echo x > made",
                           options=["--pass-env", "HOLD"])
            try:
                first.wait("taken")
                assert caller.stdout.readline() == b"begun\n"
            finally:
                first.kill()
            with Worker(w, nats, depot(w), *options, name="second", env={"HOLD": "0"}) as second:
                out, err = ended(caller, 0)
                assert out == b"begun\nover\n" and b"begins again" in err, (out, err)
                done = second.wait("done")
                assert (done["attempt"], done["outcome"]) == (2, "exit"), done
                client = Client(nats)
                assert client.messages("SNAPCOW_RESULTS") == 1 and client.messages("SNAPCOW_TICKETS") == 0
                assert client.result(done["ticket"])["worker"] == "second"
                client.close()


@test
def a_server_that_restarts_loses_no_ticket_and_no_result(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w)) as worker:
        caller = start(w, nats, "sh", "-c", "echo begun; sleep 3; echo over; exit 5")
        assert caller.stdout.readline() == b"begun\n"
        nats.stop()
        time.sleep(1)
        nats.start()
        out, err = ended(caller, 5)
        assert out == b"over\n", (out, err)
        assert worker.wait("done")["attempt"] == 1
        client = Client(nats)
        assert client.messages("SNAPCOW_RESULTS") == 1 and client.messages("SNAPCOW_TICKETS") == 0
        client.close()


@test
def an_interrupted_caller_cancels_the_run_wherever_it_is(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w)) as worker:
        caller = start(w, nats, "sh", "-c", "echo begun; sleep 600")
        assert caller.stdout.readline() == b"begun\n"
        caller.send_signal(signal.SIGINT)
        _, err = caller.communicate(timeout=PATIENCE)
        assert caller.returncode != 0 and b"cancelled" in err, (caller.returncode, err)
        done = worker.wait("done")
        assert done["outcome"] == "cancelled", done
        client = Client(nats)
        assert client.result(done["ticket"])["outcome"] == "cancelled"
        assert client.messages("SNAPCOW_RESULTS") == 1 and client.messages("SNAPCOW_TICKETS") == 0
        client.close()
        # Nothing of it is left, and the worker goes on.
        assert on(w, nats, "echo", "next").ends(0).out == b"next\n"
        # One that nobody has taken is withdrawn.
        waiting = start(w, nats, "true", options=["--label", "nowhere"])
        client = Client(nats)
        while client.messages("SNAPCOW_TICKETS") == 0:
            time.sleep(0.05)
        waiting.send_signal(signal.SIGINT)
        waiting.communicate(timeout=PATIENCE)
        assert client.messages("SNAPCOW_TICKETS") == 0
        client.close()


def notes(w):
    return [p.name for p in (w.store / "remote" / "tickets").iterdir()]


@test
def an_interrupt_while_the_server_is_away_leaves_the_ticket_to_be_followed(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w)) as worker:
        line = ["sh", "-c", f"echo begun; sleep {HOLD}; echo over; exit 4"]
        caller = start(w, nats, *line)
        assert caller.stdout.readline() == b"begun\n"
        [ticket] = notes(w)
        nats.stop()
        caller.send_signal(signal.SIGINT)
        _, err = ended(caller, 125)
        assert b"could not be cancelled" in err and b"a worker may still run the command" in err, err
        assert b"is cancelled" not in err and f"run --ticket {ticket} --on".encode() in err, err
        nats.start()
        stop_sleep()
        assert on(w, nats, *line, options=["--ticket", ticket]).ends(4).out == b"begun\nover\n"
        done = worker.wait("done")
        assert (done["ticket"], done["outcome"], done["attempt"]) == (ticket, "exit", 1) and notes(w) == [], done


@test
def an_interrupt_after_the_end_takes_the_result(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w)) as worker:
        seen = {"ended": False, "cancels": False}

        def news_of_the_result(subject, words):
            """Once it has ended, until the caller puts a result of its own."""
            seen["cancels"] |= subject is not None and ".result." in subject
            return seen["ended"] and not seen["cancels"] and (".result." in words[1] or str(subject).endswith("RESULTS"))
        with Between(nats, news_of_the_result) as between:
            caller = start(w, between, "sh", "-c", f"echo begun; sleep {HOLD}; echo x > made; exit 4")
            assert caller.stdout.readline() == b"begun\n"
            seen["ended"] = True
            stop_sleep()
            done = worker.wait("done")
            caller.send_signal(signal.SIGINT)
            _, err = ended(caller, 4)
            assert seen["cancels"], "it was not too late"
            assert b"too late" in err and b"is cancelled" not in err and b"--ticket" not in err, err
            assert done["outcome"] == "exit" and w.ok("show", f"run/{done['ticket'][:12]}:made").out == b"x\n"
            assert notes(w) == []


@test
def a_ticket_whose_result_the_queue_may_have_dropped_is_not_posted_again(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w)) as worker:
        caller = begun(w, nats)
        caller.kill()
        caller.communicate()
        stop_sleep()
        worker.wait("done")
        [ticket] = notes(w)
        client = Client(nats)
        assert client.api("STREAM.INFO.SNAPCOW_RESULTS")["config"]["max_age"] == 7 * 86400 * 10**9
        when = time.time() - 7.5 * 86400
        os.utime(w.store / "remote" / "tickets" / ticket, (when, when))
        line = ["sh", "-c", f"echo begun; sleep {HOLD}; echo over"]
        on(w, nats, *line, options=["--ticket", ticket]).fails(125, "more than 7 days old")
        os.utime(w.store / "remote" / "tickets" / ticket, (when + 86400, when + 86400))
        assert on(w, nats, *line, options=["--ticket", ticket]).ends(0).out == b"begun\nover\n"
        client.close()


def kill_daemon(worker):
    """kill -9 of the worker's cowfsd, and of its keeper first."""
    store = os.fsencode(worker.env["SNAPCOW_STORE"])
    for name in (b"cowfsd-keep", b"cowfsd"):
        for pid in worker.world.daemons(name):
            if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1].startswith(store):
                os.kill(pid, signal.SIGKILL)
                assert gone(pid, 20)


@test
def a_run_whose_cowfsd_died_is_no_result_but_begins_again(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w)) as worker:
        caller = start(w, nats, "sh", "-c", f"echo x > made; echo begun; sleep {HOLD}; echo over")
        assert caller.stdout.readline() == b"begun\n"
        kill_daemon(worker)
        stop_sleep()
        worker.wait("taken", 2)
        stop_sleep()
        ended(caller, 0)
        done = worker.wait("done")
        assert (done["outcome"], done["attempt"]) == ("exit", 2), done
        assert w.ok("show", f"run/{done['ticket'][:12]}:made").out == b"x\n"


@test
def a_worker_that_is_asked_to_end_finishes_what_it_has(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w)) as worker:
        caller = start(w, nats, "sh", "-c", "echo begun; sleep 2; echo over")
        assert caller.stdout.readline() == b"begun\n"
        assert worker.kill(signal.SIGTERM) == 0
        assert ended(caller, 0)[0] == b"over\n"


def ticket(w, **changed):
    """The text of a ticket, in its one form, but for what is changed."""
    fields = {
        "schema": "snapcow.ticket/1", "snapshot": "sha256:" + "0" * 64, "name": "queue-1", "remote": depot(w), "profile": None,
        "command": ["touch", "ran"], "workdir": "", "env": [], "pass_env": [],
        "limits": {k: 0 for k in ("mem", "cpus_milli", "pids", "time_ms", "disk", "inodes", "fsize", "nofile", "output", "net_out")},
        "deadline": 0, "labels": [], "experiment": None, "arm": None, "nonce": "0" * 32, **changed}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


@test
def a_ticket_that_lies_is_refused_and_runs_nothing(w):
    needs_fuse()
    limits = json.loads(ticket(w))["limits"]
    lies = {
        "path": (ticket(w, workdir="../../etc"), "workdir"),
        "absolute": (ticket(w, workdir="/etc"), "workdir"),
        "no words": (ticket(w, command=[]), "command"),
        "tag": (ticket(w, snapshot="latest"), "snapshot"),
        "foreign profile": (ticket(w, profile="root"), "does not offer"),
        "profile by path": (ticket(w, profile="../x"), "profile"),
        "more memory": (ticket(w, limits={**limits, "mem": 1 << 50}), "needs 1.0 PiB of memory, and this worker offers 1.0 GiB of memory"),
        "more output": (ticket(w, limits={**limits, "output": 1 << 60}), "output"),
        "their variable": (ticket(w, pass_env=["HOME"]), "HOME"),
        "other depot": (ticket(w, remote="dir:/etc"), "only uses"),
        "unknown member": (ticket(w, more=1), "form"),
        "doubled member": (ticket(w).replace(b'"deadline":0', b'"deadline":0,"deadline":0'), "form"),
        "blanks": (ticket(w).replace(b'{"schema"', b'{ "schema"'), "form"),
        "deep": (b"[" * 20000, ""),
        "no json": (b"\x00\xff" * 99, ""),
        "empty": (b"", ""),
        "control characters": (ticket(w, arm="\x1b[31m"), "form"),
        "late": (ticket(w, deadline=1), "deadline"),
        "no such state": (ticket(w), "has nothing"),
    }
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w)) as worker:
        on(w, nats, "true").ends(0)  # the depot is there now
        client = Client(nats)
        for what, (text, word) in lies.items():
            answer = json.loads(client.request("snapcow.default.ticket.any", text))
            assert "seq" in answer, (what, answer)
            got = client.result(hashlib.sha256(text).hexdigest())
            assert got["outcome"] in ("refused", "expired", "failed") and got["run"] is None, (what, got)
            assert word in got["problem"], (what, got["problem"])
        answer = json.loads(client.request("snapcow.default.ticket.any", b"x" * 70000))
        assert "error" in answer, answer
        assert client.messages("SNAPCOW_TICKETS") == 0
        assert on(w, nats, "echo", "alive").ends(0).out == b"alive\n"
        told = w.ok("--json", "worker", "status", "--queue", nats.url(), "-n", "100").json("snap.worker/1", "workers", "done")
        assert told["workers"][0]["refused"] >= 15, told["workers"]
        client.close()


def begun(w, nats):
    """A caller whose command waits for stop_sleep()."""
    caller = start(w, nats, "sh", "-c", f"echo begun; sleep {HOLD}; echo over")
    assert caller.stdout.readline() == b"begun\n"
    return caller


@test
def a_result_is_stored_though_the_server_lost_its_streams(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w)) as worker:
        caller = begun(w, nats)
        caller.kill()
        caller.communicate()
        client = Client(nats)
        for stream in ("TICKETS", "RESULTS", "LOGS"):
            assert client.api(f"STREAM.DELETE.SNAPCOW_{stream}")["success"]
        stop_sleep()
        done = worker.wait("done")
        assert done["outcome"] == "exit" and client.result(done["ticket"])["outcome"] == "exit", done
        client.close()
        # And the worker goes on.
        assert on(w, nats, "echo", "next").ends(0).out == b"next\n"


@test
def a_result_outlives_the_process_that_made_it(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w)) as worker:
        caller = begun(w, nats)
        nats.stop()
        stop_sleep()
        worker.wait("lost")  # its one slot is busy, so this is the result
        children = Path(f"/proc/{worker.process.pid}/task/{worker.process.pid}/children").read_text().split()
        for pid in children:
            if Path(f"/proc/{pid}/comm").read_text() == "snap-worker-slo\n":
                os.kill(int(pid), signal.SIGKILL)
        nats.start()
        worker.wait("done")
        ended(caller, 0)
        # It has no process left that could do a ticket.
        assert worker.process.wait(PATIENCE) != 0
        worker.wait("ended")
        assert worker.events[-2]["error"]["message"] == "the processes that do tickets were killed", worker.events


@test
def a_ticket_whose_post_is_not_answered_is_posted_once_or_cancelled(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w)) as worker:
        def posted(subject, _):
            return subject is not None and ".ticket." in subject
        with Between(nats, lambda *words: posted(*words) and not between.held) as between:
            assert on(w, between, "echo", "once").ends(0).out == b"once\n"
            assert len(between.held) == 1
        worker.wait("done")
        with Between(nats, posted) as between:
            told = on(w, between, "sh", "-c", "echo ran > made", options=["--label", "nobody"])
            assert told.status != 0 and b"the ticket is cancelled" in told.err, str(told)
            assert b"--ticket" not in told.err and notes(w) == [], str(told)
        client = Client(nats)
        assert client.messages("SNAPCOW_RESULTS") == 2
        with Worker(w, nats, depot(w), "--labels", "nobody", "--once", name="late") as late:
            late.process.wait(PATIENCE)
            assert [e["event"] for e in late.events if e.get("event") == "taken"] == [], late.events
        assert client.messages("SNAPCOW_TICKETS") == 0
        client.close()


@test
def a_result_that_two_workers_push_at_once_is_no_failure(w):
    needs_fuse()
    if missing("docker-registry"):
        raise Skip(missing("docker-registry"))
    with Nats(w.top / "nats") as nats, Registry(w.top / "registry") as registry, Proxy(registry.port) as proxy:
        w.ok("init")
        w.ok("remote", "add", "hub", f"oci://127.0.0.1:{registry.port}/team/app")
        manifest = w.ok("--json", "push", "hub:queue-1").json("snap.push/1")["manifest"]
        text = ticket(w, remote=f"oci://127.0.0.1:{proxy.port}/team/app", snapshot=manifest)
        name = "hub:result-" + hashlib.sha256(text).hexdigest()[:32]

        def push_other():
            (w.project / "README.md").write_text(str(len(proxy.faults)))
            w.ok("push", "--force", name)
        push_other()
        # The first look is for what is there, the second is that before the name moves.
        proxy.faults += [Fault("GET", "/manifests/result-", "none"), Fault("GET", "/manifests/result-", "call", fn=push_other)]
        with Worker(w, nats, f"oci://127.0.0.1:{proxy.port}/team/app"):
            client = Client(nats)
            client.request("snapcow.default.ticket.any", text)
            got = client.result(hashlib.sha256(text).hexdigest())
            assert (got["outcome"], got["problem"]) == ("exit", None), got
            assert proxy.faults[1].times == 0, proxy.seen
            client.close()


@test
def a_command_that_writes_without_end_can_be_cancelled(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w)) as worker:
        caller = start(w, nats, "yes")
        assert caller.stdout.readline() == b"y\n"
        caller.send_signal(signal.SIGINT)
        caller.communicate(timeout=PATIENCE)
        assert worker.wait("done")["outcome"] == "cancelled"


@test
def a_late_answer_does_not_pass_for_the_next_one(w):
    with Nats(w.top / "nats") as nats:
        def first_ticket(_, words):
            return "$JS.ACK." in " ".join(words) and not between.held
        with Between(nats, first_ticket) as between, Worker(w, between, depot(w), "--lease", "10m") as worker:
            texts = [ticket(w, command=[word]) for word in ("first", "second")]
            client = Client(nats)
            client.request("snapcow.default.ticket.any", texts[0])
            between.wait()
            client.request("snapcow.default.ticket.any", texts[1])
            worker.wait("lost")
            between.release()
            assert worker.wait("taken")["ticket"] == hashlib.sha256(texts[1]).hexdigest(), worker.events
            client.close()


@test
def status_says_who_works_and_who_did_what(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w), "--jobs", "2", "--labels", "big,arm64") as worker:
        on(w, nats, "true").ends(0)
        caller = start(w, nats, "sh", "-c", "echo begun; sleep 600", options=["--label", "arm64", "--label", "big"])
        assert caller.stdout.readline() == b"begun\n"
        told = w.ok("--json", "worker", "status", "--queue", nats.url()).json("snap.worker/1", "workers", "done")
        judge(told)
        one, = told["workers"]
        assert (one["name"], one["jobs"], one["labels"], one["done"]) == ("worker-1", 2, ["arm64", "big"], 1), one
        assert [r["command"] for r in one["running"]] == ["sh"] and told["taken"] == 1, told
        assert [(d["worker"], d["outcome"], d["command"]) for d in told["done"]] == [("worker-1", "exit", "true")], told
        text = w.ok("worker", "status", "--queue", nats.url()).out.decode()
        assert "1 of 2 busy" in text and "arm64,big" in text, text
        assert w.ok("-q", "worker", "status", "--queue", nats.url()).out == b"worker-1\n"
        numbers = w.ok("metrics", "--queue", nats.url()).out.decode()
        for line in ("queue_up 1", "queue_waiting 0", "queue_taken 1", "queue_workers 1",
                     'worker_running{worker="worker-1"} 1', 'worker_done_total{worker="worker-1"} 1'):
            assert f"\nsnapcow_{line}\n" in numbers, (line, numbers)
        caller.send_signal(signal.SIGINT)
        caller.communicate(timeout=PATIENCE)
        for event in worker.events:
            if event.get("event") != "ended":
                judge(event)


@test
def numbers_of_a_queue_that_is_away_say_so(w):
    """A monitoring system wants the rest of them all the same."""
    with Nats(w.top / "nats") as nats:
        url = nats.url()
    w.ok("snapshot")
    got = w.ok("metrics", "--queue", url)
    assert b"\nsnapcow_queue_up 0\n" in got.out and b"snapcow_queue_waiting" not in got.out, got
    assert b"snapcow_snapshots 1" in got.out and b"warning" in got.err, got
    w.snap("metrics", "--creds", "x").fails(2, "'--queue'")
    w.snap("metrics", "--queue", url, "--send").fails(2, "'--send'")


def sealed(w):
    """Every pack in the depot is encrypted."""
    for path in (w.top / "depot" / "blobs" / "sha256").iterdir():
        data = path.read_bytes()
        assert data.startswith((b"age-encryption.org/v1\n", b"{")) and b"hush" not in data, data[:200]
        if data.startswith(b"{"):
            assert all(part["mediaType"].endswith("+age") for part in json.loads(data)["layers"]), data


@test
def what_travels_is_encrypted_if_the_remote_asks_for_that(w):
    needs_fuse()
    if not shutil.which("age-keygen"):
        raise Skip("age-keygen is missing")
    subprocess.run(["age-keygen", "-o", w.top / "key"], check=True, capture_output=True)
    key = subprocess.run(["age-keygen", "-y", w.top / "key"], check=True, capture_output=True, text=True).stdout
    (w.top / "readers").write_text(key)
    (w.project / "secret").write_text("hush-hush\n" * 9)
    w.ok("remote", "add", "hub", depot(w))
    config = w.home / ".config" / "snapcow" / "config.yaml"
    config.write_text(f"remote: {{hub: {{recipients: {w.top}/readers, identity: {w.top}/key}}}}\n")
    with Nats(w.top / "nats") as nats, Worker(w, nats, "hub") as worker:
        for remote in ("hub", depot(w)):
            got = w.snap("run", "--on", nats.url(), "--remote", remote, "--", "sh", "-c", "cat secret > made; cat made")
            assert got.ends(0).out == (w.project / "secret").read_bytes(), str(got)
            sealed(w)
        # A worker that could only answer in the clear does not answer.
        caller = start(w, nats, "sh", "-c", f"echo begun; sleep {HOLD}; echo hush > open")
        assert caller.stdout.readline() == b"begun\n"
        config.write_text(f"remote: {{hub: {{identity: {w.top}/key}}}}\n")
        stop_sleep()
        _, err = ended(caller, 125)
        assert b"no recipients are known" in err, err
        sealed(w)
        assert worker.wait("done", 3)["outcome"] == "failed"


HOLD = f"6000.{os.getpid()}"  # seconds for which only we sleep


def stop_sleep():
    """End the `sleep` that a command waits for, as soon as it is there."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if path.read_bytes() == b"sleep\0%s\0" % HOLD.encode():
                    os.kill(int(path.parent.name), signal.SIGTERM)
                    return
            except OSError:
                pass
        time.sleep(0.05)
    raise AssertionError("no command waits")


@test
def a_queue_by_tls_is_not_spoken_to_without_and_not_under_another_name(w):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        heard = []

        def serve():
            while True:
                try:
                    sock, _ = listener.accept()
                except OSError:
                    return
                with sock:
                    sock.sendall(b'INFO {"server_id":"x","version":"2.9.0","max_payload":1048576,"headers":true}\r\n')
                    try:
                        heard.append(sock.recv(4096))
                    except OSError:
                        heard.append(b"")
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"tls://127.0.0.1:{listener.getsockname()[1]}"
        done = w.snap("worker", "status", "--queue", url)
        assert done.status != 0, str(done)
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)
        assert heard and not any(b"CONNECT" in text for text in heard), heard
    if not shutil.which("openssl"):
        raise Skip("openssl is missing")
    cert, key = make_certificate(w.top, "localhost")
    with Nats(w.top / "nats", options=["--tls", "--tlscert", cert, "--tlskey", key]) as nats:
        w.ok("worker", "status", "--queue", f"tls://localhost:{nats.port}", env={"SSL_CERT_FILE": cert})
        for url, env in ((f"tls://127.0.0.1:{nats.port}", {"SSL_CERT_FILE": cert}), (f"tls://localhost:{nats.port}", {})):
            done = w.snap("worker", "status", "--queue", url, env=env)
            assert done.status != 0, str(done)


def judge(told):
    """Hold it against its schema."""
    try:
        import jsonschema
    except ImportError:
        return
    name = told["schema"].split("/")[0] + ".1.json"
    schema = json.loads((Path(__file__).resolve().parents[2] / "docs" / "schema" / name).read_text())
    jsonschema.validate(told, schema)


@test
def what_cannot_be_asked_for_says_so(w):
    needs()
    w.snap("worker").fails(2, "--queue")
    w.snap("worker", "--queue", "nats://127.0.0.1:1").fails(2, "--remote")
    w.snap("worker", "--queue", "http://x", "--remote", depot(w)).fails(2, "is no queue")
    w.snap("worker", "--queue", "nats://127.0.0.1/Bad", "--remote", depot(w)).fails(2, "name of a queue")
    w.snap("worker", "--queue", "nats://127.0.0.1", "--remote", depot(w), "--labels", "A").fails(2, "label")
    w.snap("worker", "--queue", "nats://127.evil.org", "--remote", depot(w)).fails(1, "--creds")
    w.snap("worker", "--queue", "nats://192.0.2.1", "--remote", depot(w)).fails(1, "--insecure")
    w.snap("worker", "--queue", "nats://u:p@192.0.2.1", "--remote", depot(w)).fails(1, "tls://")
    w.snap("worker", "--queue", "nats://192.0.2.1", "--creds", "/dev/null", "--remote", depot(w)).fails(1, "tls://")
    w.snap("worker", "--queue", "nats://127.0.0.1", "--remote", depot(w), "--profile", "nosuch").fails(4, "nosuch")
    w.snap("run", "--on", "nats://127.0.0.1:1", "--", "true").fails(2, "--remote")
    w.snap("run", "--on", "nats://127.0.0.1:1", "--net", "host", "--", "true").fails(2, "--net")


if __name__ == "__main__":
    sys.exit(main())

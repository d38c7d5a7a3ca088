#!/usr/bin/env python3
"""experiment --on: arms on several workers, through a real nats-server, with workers and commands that die."""

import base64
import hashlib
import json
import os
import signal
import sys
import time

from remotetest import CLIENT  # noqa: F401  (finds the modules below)
from fleettest import (depot, ended, events, judge, names, outcome, results, run, start, tickets, unfinished, wait_for,
                       words)
from natstest import Client, Nats, Worker, needs
from servers import Fake, Fault, Proxy, Registry, missing
from snaptest import Skip, main, needs_fuse, test

MANY = 60 if os.environ.get("SNAP_TESTS_LONG") else 12


@test
def arms_run_on_workers_and_are_judged_here(w):
    needs_fuse()
    arms = ["good=echo 2 > made; mkdir sub; ln -s made sub/link; chmod 600 made", "better=echo 1 > made; rm README.md",
            "fails=exit 3", "unchecked=echo no > made", "idle=true"]
    options = ["--check", "test ! -e made || grep -q '[0-9]' made; test $? = 0", "--score", "cat made 2>/dev/null || echo 9",
               "--keep", "passed"]
    here = run(w, None, "here", arms, *options)
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w), name="one"), Worker(w, nats, depot(w), name="two"):
        there = run(w, nats, "there", arms, *options)
        assert outcome(there) == outcome(here), (outcome(there), outcome(here))
        assert there["winner"] == "better", there["winner"]
        ran = {a["arm"]: a["machine"]["worker"] for a in there["arms"]}
        assert set(ran.values()) <= {"one", "two"}, ran
        assert all(a["machine"] is None for a in here["arms"]) and here["on"] is None
        assert [a["why"] for a in there["arms"] if a["arm"] == "fails"] == [f"the command ended with 3 on {ran['fails']}"]
        assert there["on"]["bytes_sent"] > 0 and there["on"]["worker_sent"] > 0 and there["on"]["bytes_received"] > 0, there["on"]
        # What came back is what was left there.
        clones = w.store / "clones"
        for arm in ("good", "better"):
            trees = [{str(p.relative_to(clones / f"{x}-{arm}")): (p.lstat().st_mode, p.is_file() and p.read_bytes())
                      for p in sorted((clones / f"{x}-{arm}").rglob("*"))} for x in ("here", "there")]
            assert trees[0] == trees[1], trees
        text = w.ok("experiment", "show", "there").out.decode()
        assert "MACHINE" in text and "workers received" in text, text
        assert "MACHINE" not in w.ok("experiment", "show", "here").out.decode()
        # Nothing stays but what the next experiment starts from.
        assert [n for n in names(w) if n.startswith("result-")] == [], names(w)
        assert len([n for n in names(w) if n.startswith("queue-")]) == 1, names(w)
        wait_for(lambda: tickets(nats) == 0)  # a result comes before the acknowledgement
        assert [t for t in w.ok("tag").out.decode().split() if t.startswith("run/")] == []
        again = run(w, nats, "again", arms[:1])
        assert again["on"]["bytes_sent"] < there["on"]["bytes_sent"], again["on"]
        w.ok("experiment", "promote", "there", "good")
        assert (w.project / "made").read_text() == "2\n" and (w.project / "sub" / "link").is_symlink()


@test
def each_arm_has_one_result_though_a_worker_and_the_server_die(w):
    needs_fuse()
    arms = [f"arm{i}=sleep ${{HOLD:-0}}; echo {(i * 7) % MANY} > made" for i in range(MANY)]
    options = ["--check", "test -s made", "--score", "cat made", "--pass-env", "HOLD"]
    with Nats(w.top / "nats") as nats:
        more = ("--lease", "5s", "--pass-env", "HOLD")
        # What the first worker takes never ends by itself.
        with Worker(w, nats, depot(w), *more, name="first", env={"HOLD": "600"}) as first:
            caller = start(w, *words(w, nats, "far", arms, *options))
            first.wait("taken")
            first.kill()
        with Worker(w, nats, depot(w), *more, name="second") as second, \
             Worker(w, nats, depot(w), *more, name="third") as third:
            second.wait("done")
            nats.stop()
            nats.start()
            out, _ = ended(caller, 0)
            told = json.loads(out.splitlines()[-1])
            judge(told)
            got = results(nats)
            assert sorted(got) == sorted(a["arm"] for a in told["arms"]) and all(len(x) == 1 for x in got.values()), got
            wait_for(lambda: unfinished(nats) == 0)
            wait_for(lambda: {e["ticket"] for e in events(second, "done") + events(third, "done")} ==
                     {x["ticket"] for [x] in got.values()})
            taken = first.wait("taken")["ticket"]
            [late] = [a for a in told["arms"] if a["machine"]["ticket"] == taken]
            # A server that was killed may have forgotten how often it handed the ticket out.
            assert late["machine"]["worker"] in ("second", "third"), late
    assert outcome(told) == outcome(run(w, None, "near", arms, *options)), told


def following(w):
    """Processes here that follow a ticket: pid, ticket, and the worker that has it."""
    found = []
    for path in (w.store / "runs").glob("*.json"):
        # A line that is being written does not count.
        lines = [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
        last = json.loads(lines[-1]) if lines else {"state": "none"}
        if last["state"] == "running" and "machine" in last:
            found.append((last["pid"], last["machine"]["ticket"], last["machine"]["worker"]))
    return found


def holding(w):
    return [(pid, ticket) for pid, ticket, _ in following(w)]


@test
def an_experiment_that_was_killed_finds_the_results_that_are_there(w):
    needs_fuse()
    arms = [f"arm{i}=echo {i} > made" for i in range(3)]
    with Nats(w.top / "nats") as nats:
        caller = start(w, *words(w, nats, "killed", arms, "--score", "cat made"))
        held = wait_for(lambda: len(holding(w)) == 3 and tickets(nats) == 3 and holding(w))
        caller.kill()
        caller.communicate()
        for pid, _ in held:
            os.kill(pid, signal.SIGKILL)
        with Worker(w, nats, depot(w)) as worker:
            worker.wait("done", 3)
            told = w.ok("--json", "experiment", "resume", "killed").json("snap.experiment/1", "arms")
            assert [a["state"] for a in told["arms"]] == ["passed"] * 3 and told["winner"] == "arm0", told
            assert sorted(a["machine"]["ticket"] for a in told["arms"]) == sorted(t for _, t in held), told
            assert len(events(worker, "taken")) == 3, worker.events
            assert [a["changed"]["added"] for a in told["arms"]] == [1, 1, 1]
        assert all(len(x) == 1 for x in results(nats).values()), results(nats)


@test
def an_experiment_that_was_killed_alone_goes_on_where_it_was(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats:
        caller = start(w, *words(w, nats, "alone", ["a=echo 1 > made", "b=echo 2 > made"]))
        held = wait_for(lambda: len(holding(w)) == 2 and tickets(nats) == 2 and holding(w))
        caller.kill()
        caller.communicate()
        with Worker(w, nats, depot(w)) as worker:
            told = w.ok("--json", "experiment", "resume", "alone").json("snap.experiment/1", "arms")
            assert [a["state"] for a in told["arms"]] == ["passed"] * 2, told
            assert sorted(a["machine"]["ticket"] for a in told["arms"]) == sorted(t for _, t in held), told
            assert len(events(worker, "taken")) == 2, worker.events


@test
def an_interrupted_experiment_cancels_its_tickets_everywhere_and_is_resumed(w):
    needs_fuse()
    arms = [f"arm{i}=sleep ${{HOLD:-0}}; echo {i} > made" for i in range(3)]
    with Nats(w.top / "nats") as nats:
        with Worker(w, nats, depot(w), "--pass-env", "HOLD", env={"HOLD": "600"}) as worker:
            caller = start(w, *words(w, nats, "stopped", arms, "--pass-env", "HOLD"))
            worker.wait("taken")
            # The other two wait in the queue.
            wait_for(lambda: tickets(nats) == 3)
            wait_for(lambda: sorted(str(name) for _, _, name in following(w)) == ["None", "None", "worker-1"])
            caller.send_signal(signal.SIGINT)
            ended(caller, 130)
            assert worker.wait("done")["outcome"] == "cancelled"
            wait_for(lambda: tickets(nats) == 0)
            assert holding(w) == []
        assert {x["outcome"] for all_of_it in results(nats).values() for x in all_of_it} == {"cancelled"}
        with Worker(w, nats, depot(w), "--pass-env", "HOLD", name="later") as later:
            told = w.ok("--json", "experiment", "resume", "stopped").json("snap.experiment/1", "arms")
            assert [a["state"] for a in told["arms"]] == ["passed"] * 3, told
            assert len(events(later, "taken")) == 3, later.events


@test
def an_interrupted_experiment_waits_once_for_a_server_that_is_away(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats:
        caller = start(w, *words(w, nats, "away", [f"arm{i}=true" for i in range(6)]))
        wait_for(lambda: len(holding(w)) == 6 and tickets(nats) == 6)
        nats.stop()
        began = time.monotonic()
        caller.send_signal(signal.SIGINT)
        ended(caller, 130)
        # Each ticket is given up after some 6 s; one after the other would take 36.
        assert time.monotonic() - began < 20, time.monotonic() - began
        assert holding(w) == []


@test
def a_result_that_is_gone_from_the_remote_is_made_again(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats:
        caller = start(w, *words(w, nats, "gone", ["a=echo 1 > made"]))
        [(pid, ticket)] = wait_for(lambda: tickets(nats) == 1 and holding(w))
        caller.kill()
        caller.communicate()
        os.kill(pid, signal.SIGKILL)
        with Worker(w, nats, depot(w)) as worker:
            worker.wait("done")
            client = Client(nats)
            manifest = client.result(ticket)["snapshot"].removeprefix("sha256:")
            client.close()
            index = w.top / "depot" / "index.json"
            doc = json.loads(index.read_text())
            doc["manifests"] = [m for m in doc["manifests"] if not m["digest"].endswith(manifest)]
            index.write_text(json.dumps(doc))
            (w.top / "depot" / "blobs" / "sha256" / manifest).unlink()
            told = w.ok("--json", "experiment", "resume", "gone").json("snap.experiment/1", "arms")
            assert told["arms"][0]["state"] == "passed" and told["arms"][0]["machine"]["ticket"] != ticket, told
            assert len(events(worker, "taken")) == 2, worker.events


@test
def a_remote_that_is_away_for_a_while_does_not_let_the_command_run_again(w):
    needs_fuse()
    if missing("docker-registry"):
        raise Skip(missing("docker-registry"))
    with Nats(w.top / "nats") as nats, Registry(w.top / "registry") as registry, Proxy(registry.port) as proxy:
        url = f"oci://127.0.0.1:{proxy.port}/team/app"
        caller = start(w, "experiment", "-n", "away", "--on", nats.url(), "--remote", url, "--arm", "a=echo 1 > made")
        [(pid, ticket)] = wait_for(lambda: tickets(nats) == 1 and holding(w))
        caller.kill()
        caller.communicate()
        os.kill(pid, signal.SIGKILL)
        with Worker(w, nats, url) as worker:
            worker.wait("done")
            client = Client(nats)
            # More often than one request is tried.
            away = Fault("GET", "/manifests/" + client.result(ticket)["snapshot"], "status", 503, times=7)
            client.close()
            proxy.faults.append(away)
            told = w.ok("--json", "experiment", "resume", "away").json("snap.experiment/1", "arms")
            assert told["arms"][0]["state"] == "passed" and told["arms"][0]["machine"]["ticket"] == ticket, told
            assert away.times == 0 and len(events(worker, "taken")) == 1, worker.events


@test
def a_clone_that_somebody_removed_is_made_again_and_the_command_does_not_run_again(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats:
        caller = start(w, *words(w, nats, "bare", ["a=echo 1 > made"]))
        [(_, ticket)] = wait_for(lambda: tickets(nats) == 1 and holding(w))
        w.ok("rm", "bare-a")
        with Worker(w, nats, depot(w)) as worker:
            out, _ = ended(caller, 0)
            told = json.loads(out.splitlines()[-1])
            assert told["arms"][0]["state"] == "passed" and told["arms"][0]["machine"]["ticket"] == ticket, told
            assert len(events(worker, "taken")) == 1, worker.events
        assert (w.store / "clones" / "bare-a" / "made").read_text() == "1\n"
        assert [t for t in w.ok("tag").out.decode().split() if t.startswith("run/")] == []


@test
def an_arm_that_nobody_began_before_the_deadline_ends_at_its_limit(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats:
        told = run(w, nats, "late", ["a=touch ran", "b=touch ran"], "--deadline", "1s", status=15)
        assert told["on"]["deadline_ms"] == 1000 and told["winner"] is None, told["on"]
        for arm in told["arms"]:
            assert (arm["state"], arm["limit"], arm["why"]) == ("limit", "deadline", "the command met its limit: deadline"), arm
        assert tickets(nats) == 0
        # One worker took none of them, and the experiment has no other turn.
        with Worker(w, nats, depot(w), "--once") as worker:
            worker.process.wait(60)
            assert events(worker, "taken") == [] and events(worker, "done") == []
        with Worker(w, nats, depot(w)):
            told = run(w, nats, "early", ["a=echo x > made"], "--deadline", "1h")
            assert told["on"]["deadline_ms"] == 3600000 and told["winner"] == "a", told
        assert run(w, None, "here", ["a=true"])["on"] is None
        w.snap("experiment", "-n", "none", "--deadline", "1h", "--arm", "a=true").fails(2, "'--deadline' needs '--on'")


@test
def a_killed_experiment_leaves_a_ticket_with_its_deadline_and_finds_it_again(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats:
        before = time.time_ns()
        caller = start(w, *words(w, nats, "far", ["a=echo 1 > made"], "--deadline", "1h"))
        held = wait_for(lambda: tickets(nats) == 1 and holding(w))
        for pid in [caller.pid, held[0][0]]:
            os.kill(pid, signal.SIGKILL)
        caller.communicate()
        client = Client(nats)
        message = client.api("STREAM.MSG.GET.SNAPCOW_TICKETS", seq=1)["message"]
        client.close()
        deadline = json.loads(base64.b64decode(message["data"]))["deadline"] - 3600 * 10**9
        assert before < deadline < time.time_ns(), deadline
        with Worker(w, nats, depot(w)) as worker:
            worker.wait("done")
            told = w.ok("--json", "experiment", "resume", "far").json("snap.experiment/1", "arms")
            assert [(a["state"], a["machine"]["ticket"]) for a in told["arms"]] == [("passed", held[0][1])], told
            assert len(events(worker, "taken")) == 1, worker.events


@test
def a_worker_that_refuses_stops_the_experiment_and_says_why(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w), name="strict"):
        told = w.snap(*words(w, nats, "refused", ["a=true"], "--pass-env", "SECRET"))
        assert told.status != 0, str(told)
        text = told.out + told.err
        assert b"strict refuses it" in text and b"SECRET" in text, text


@test
def a_worker_keeps_the_last_states_and_no_more(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w)) as worker:
        seen = []
        for i in range(11):
            (w.project / "README.md").write_text(f"{i}\n")
            w.snap("run", "--on", nats.url(), "--remote", depot(w), "--", "sh", "-c", "cat README.md > made").ends(0)
            there = w.snap("-C", str(worker.env["SNAPCOW_STORE"]) + "-worker", "tag", env=worker.env).ends(0).out.decode().split()
            seen.append(len([t for t in there if t.startswith("ticket/")]))
        assert seen[:8] == list(range(1, 9)) and set(seen[8:]) == {8}, seen
        # And the callers left no name of a result.
        assert [n for n in names(w) if n.startswith("result-")] == [], names(w)


def age(w, name, days):
    """Let what a name of the depot means have been pushed so long ago."""
    top = w.top / "depot"
    blobs = top / "blobs" / "sha256"

    def put(doc):
        data = json.dumps(doc, separators=(",", ":")).encode()
        digest = hashlib.sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        return {"digest": "sha256:" + digest, "size": len(data)}

    doc = json.loads((top / "index.json").read_text())
    [entry] = [m for m in doc["manifests"] if m.get("annotations", {}).get("org.opencontainers.image.ref.name") == name]
    manifest = json.loads((blobs / entry["digest"][7:]).read_text())
    config = json.loads((blobs / manifest["config"]["digest"][7:]).read_text())
    config["pushed"] -= days * 86400 * 10**9
    manifest["config"].update(put(config))
    entry.update(put(manifest))
    (top / "index.json").write_text(json.dumps(doc))


@test
def names_that_tickets_left_go_by_gc_and_others_stay(w):
    left, young, mine = "result-" + "0" * 32, "queue-" + "1" * 16, "queue-mine"
    w.ok("init")
    for name in (left, young, mine):
        (w.project / "README.md").write_text(name)
        w.ok("push", f"{depot(w)}:{name}")
    age(w, left, 9)
    age(w, mine, 9)
    w.ok("remote", "gc", depot(w), "--keep-tag", "result-*", "--grace", "0")
    assert sorted(names(w)) == sorted([left, young, mine]), names(w)
    w.ok("remote", "gc", depot(w), "--grace", "0")
    assert sorted(names(w)) == sorted([young, mine]), names(w)


@test
def a_registry_that_stays_busy_ends_the_experiment_and_says_why(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, Fake(lambda q, _: q.say(429, b"{}", Retry_After="100000")) as registry:
        w.snap("-q", "experiment", "-n", "busy", "--on", nats.url(), "--remote", f"oci://127.0.0.1:{registry.port}/team/snaps",
               "--arm", "a=true", "--arm", "b=true", timeout=60).fails(1, "arm 'a'", "429")
        assert tickets(nats) == 0
    assert b"busy" not in w.ok("experiment", "list", "--all").out, "nothing of it ran"
    assert b"busy-" not in w.ok("list", "--all").out


@test
def what_a_new_ticket_names_stays_for_a_week(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w)):
        line = ["run", "--on", nats.url(), "--remote", depot(w), "--", "true"]
        w.ok(*line)
        [name] = names(w)
        age(w, name, 9)
        w.ok(*line)
        w.ok("remote", "gc", depot(w), "--grace", "0")
        assert names(w) == [name], names(w)


@test
def what_gc_removed_is_sent_again_when_an_experiment_is_resumed(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats:
        caller = start(w, *words(w, nats, "late", ["a=cat README.md > made"]))
        [(pid, ticket)] = wait_for(lambda: tickets(nats) == 1 and holding(w))
        caller.kill()
        caller.communicate()
        os.kill(pid, signal.SIGKILL)
        age(w, names(w)[0], 9)
        w.ok("remote", "gc", depot(w), "--grace", "0")
        assert names(w) == [], names(w)
        with Worker(w, nats, depot(w)):
            told = w.ok("--json", "experiment", "resume", "late").json("snap.experiment/1", "arms")
            assert told["arms"][0]["state"] == "passed" and told["arms"][0]["machine"]["ticket"] != ticket, told


@test
def what_cannot_be_asked_for_says_so(w):
    needs()
    line = ["experiment", "--arm", "a=true"]
    w.snap(*line, "--on", "http://x", "--remote", depot(w)).fails(2, "is no queue")
    w.snap(*line, "--on", "nats://192.0.2.1", "--remote", depot(w)).fails(1, "--insecure")
    w.snap(*line, "--on", "nats://127.0.0.1:1").fails(2, "--remote")
    w.snap(*line, "--on", "nats://127.0.0.1:1", "--remote", depot(w), "--label", "A").fails(2, "label")
    w.snap(*line, "--on", "nats://127.0.0.1:1", "--remote", depot(w), "--net", "host").fails(2, "--net")
    w.snap(*line, "--remote", depot(w)).fails(2, "needs '--on'")
    w.snap(*line, "--label", "x").fails(2, "needs '--on'")
    plans = w.project / ".snap" / "experiments"
    plans.mkdir(parents=True)
    (plans / "far.yaml").write_text("arms: {a: 'true'}\non: nats://127.0.0.1:1\n")
    w.snap("experiment", "far").fails(7, "other machines")
    (plans / "far.yaml").write_text("arms: {a: 'true'}\nlabels: [x]\n")
    w.snap("experiment", "far").fails(2, "'labels' needs 'on'")


@test
def a_file_of_the_users_own_names_the_queue(w):
    needs_fuse()
    plans = w.home / ".config" / "snapcow" / "experiments"
    plans.mkdir(parents=True)
    with Nats(w.top / "nats") as nats, Worker(w, nats, depot(w), "--labels", "big", name="big"):
        (plans / "far.yaml").write_text(f"arms: {{a: 'echo 1 > made'}}\non: {nats.url()}\nremote: {depot(w)}\nlabels: [big]\n")
        told = w.ok("--json", "experiment", "far").json("snap.experiment/1", "arms")
        assert told["arms"][0]["machine"]["worker"] == "big" and told["on"]["labels"] == ["big"], told


if __name__ == "__main__":
    sys.exit(main())

"""What tests of experiments on workers share."""

import base64
import json
import subprocess
from pathlib import Path

from natstest import PATIENCE, Client
from snaptest import SNAP, until as wait_for  # noqa: F401  (for the tests)


def depot(w):
    return f"dir:{w.top}/depot"


def words(w, nats, name, arms, *options):
    """An experiment; without a server it runs here."""
    on = ["--on", nats.url(), "--remote", depot(w)] if nats else []
    return ["--json", "experiment", "-n", name, *on, *(x for a in arms for x in ("--arm", a)), *options]


def run(w, nats, name, arms, *options, status=0):
    told = w.snap(*words(w, nats, name, arms, *options)).json("snap.experiment/1", "arms", status=status)
    judge(told)
    return told


def start(w, *line):
    """One that goes on beside us."""
    return subprocess.Popen([SNAP, *line], cwd=w.project, env=w.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            stdin=subprocess.DEVNULL)


def ended(process, status):
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == status, (process.returncode, out, err)
    return out, err


def judge(told):
    """Hold it against its schema."""
    try:
        import jsonschema
    except ImportError:
        return
    schema = json.loads((Path(__file__).resolve().parents[2] / "docs" / "schema" / "snap.experiment.1.json").read_text())
    jsonschema.validate(told, schema)


def outcome(told):
    """What does not depend on where an arm ran."""
    return told["winner"], [(a["arm"], a["state"], a["exit_code"], a["score"], a["changed"], [c["exit_code"] for c in a["checks"]])
                            for a in told["arms"]]


def results(nats):
    """All results in the queue, by arm."""
    client, found = Client(nats), {}
    for seq in range(1, client.api("STREAM.INFO.SNAPCOW_RESULTS")["state"]["last_seq"] + 1):
        got = client.api("STREAM.MSG.GET.SNAPCOW_RESULTS", seq=seq)
        if "message" in got:
            one = json.loads(base64.b64decode(got["message"]["data"]))
            found.setdefault(one["arm"], []).append(one)
    client.close()
    return found


def unfinished(nats):
    """Tickets that are still handed out. A server that was killed may keep one in its stream that was
    acknowledged, which nobody gets any more."""
    client = Client(nats)
    try:
        names = client.api("CONSUMER.NAMES.SNAPCOW_TICKETS")["consumers"]
        states = [client.api(f"CONSUMER.INFO.SNAPCOW_TICKETS.{name}") for name in names]
        return sum(s["num_pending"] + s["num_ack_pending"] for s in states)
    finally:
        client.close()


def tickets(nats):
    client = Client(nats)
    try:
        # There is no stream before somebody has connected.
        return client.api("STREAM.INFO.SNAPCOW_TICKETS").get("state", {"messages": 0})["messages"]
    finally:
        client.close()


def names(w):
    """In the depot."""
    return [m["annotations"]["org.opencontainers.image.ref.name"]
            for m in json.loads((w.top / "depot" / "index.json").read_text())["manifests"]
            if "org.opencontainers.image.ref.name" in m.get("annotations", {})]


def events(worker, what):
    return [e for e in worker.events if e.get("event") == what]

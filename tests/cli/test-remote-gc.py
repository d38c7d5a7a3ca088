"""remote gc: what rules remove, what a name needs stays, and pushes at the same time."""

import fcntl
import hashlib
import json
import os
import subprocess
import time

from depots import Other, blobs, deaths, depot, dies, names_are_complete, pushed
from snaptest import SNAP, World, main, test

DAY = 86400


def age(w, days, but=()):
    """All that is there was made that long ago."""
    then = time.time() - days * DAY
    for path in (w.top / "depot" / "blobs" / "sha256").iterdir():
        if path.name not in but:
            os.utime(path, (then, then))


def push(w, name, text):
    (w.project / "README.md").write_text(text)
    (w.project / "large").write_bytes(text.encode() * 3000)
    return pushed(w.ok("--json", "push", "--whole", "--force", f"{depot(w)}:{name}"))["manifest"]


def gc(w, *args):
    return w.ok("--json", "remote", "gc", depot(w), *args).json("snap.remote/1", "removed", "bytes", "kept")


def names(w):
    return {s["name"] for s in w.ok("--json", "remote", "log", depot(w)).json("snap.remote/1")["snapshots"]}


def history(w, name):
    log = w.ok("--json", "remote", "log", f"{depot(w)}:{name}").json("snap.remote/1")
    return [s["manifest"] for s in log["snapshots"]]


@test
def without_a_rule_only_what_no_snapshot_needs_goes(w: World):
    w.ok("init")
    manifests = [push(w, "main", f"{i}") for i in range(3)]
    orphan = w.top / "depot" / "blobs" / "sha256" / ("ab" * 32)
    killed = w.top / "depot" / "blobs" / "sha256" / ".tmp-0000-1"
    for path in (orphan, killed):
        path.write_bytes(b"x" * 1000)
    before = set(blobs(w))
    # What is young may belong to a push that is under way.
    got = gc(w)
    assert got["blobs"] == 0 and got["bytes_young"] == 2000 and set(blobs(w)) == before, got
    age(w, 2)
    got = gc(w, "--dry-run")
    assert got["blobs"] == 2 and got["bytes"] == 2000 and set(blobs(w)) == before, got
    got = gc(w)
    assert set(blobs(w)) == before - {orphan.name, killed.name} and got["removed"] == [], got
    assert history(w, "main") == manifests[::-1] and got["kept"] == 3
    assert gc(w)["blobs"] == 0
    assert "kept" in w.ok("remote", "gc", depot(w)).out.decode()


@test
def rules_decide_over_snapshots_and_one_keeps_what_another_would_not(w: World):
    w.ok("init")
    mains = [push(w, "main", f"main {i}") for i in range(4)]
    push(w, "v1", "release")
    push(w, "try", "trial")
    age(w, 2)
    got = gc(w, "--keep-last", "2")
    assert history(w, "main") == mains[:1:-1] and len(got["removed"]) == 2, got
    assert {r["manifest"] for r in got["removed"]} == set(mains[:2]) and got["bytes"] > 0, got
    assert all(r["name"] is None for r in got["removed"]), got
    # Everything is older than a millisecond; --keep-last and --keep-tag each keep some.
    assert gc(w, "--keep-last", "1", "--older-than", "1w")["removed"] == []
    assert gc(w, "--older-than", "1ms", "--keep-tag", "v*", "--keep-tag", "main", "--dry-run")["names"] == 2
    got = gc(w, "--older-than", "1ms", "--keep-tag", "v*")
    assert {r["name"] for r in got["removed"]} == {"main", "try", None} and names(w) == {"v1"}, got
    assert names_are_complete(w) == 6, "v1 lost something, or something is left"
    assert len(blobs(w)) == 6, blobs(w)
    o = Other(w)
    o.ok("fetch", f"{depot(w)}:v1")
    o.end()
    w.snap("remote", "gc", f"{depot(w)}:v1").fails(2, "whole remote")
    w.snap("remote", "gc").fails(2, "needs one REMOTE")


@test
def two_names_of_one_snapshot_and_images_of_others_keep_what_they_need(w: World):
    w.ok("init")
    one = push(w, "main", "one")
    index = w.top / "depot" / "index.json"
    listed = json.loads(index.read_text())
    listed["manifests"].append({**listed["manifests"][0],
                                "annotations": {"org.opencontainers.image.ref.name": "v1"}})
    # Something of docker's: an index that names a manifest that names a layer.
    folder = w.top / "depot" / "blobs" / "sha256"
    foreign = []

    def put(data, kind):
        name = hashlib.sha256(data).hexdigest()
        (folder / name).write_bytes(data)
        foreign.append(name)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": "sha256:" + name, "size": len(data)}

    layer = put(b"layer", "layer.v1.tar")
    image = put(json.dumps({"config": put(b"{}", "config.v1+json"), "layers": [layer]}).encode(), "manifest.v1+json")
    listed["manifests"].append({**put(json.dumps({"manifests": [image]}).encode(), "index.v1+json"),
                                "annotations": {"org.opencontainers.image.ref.name": "image"}})
    index.write_text(json.dumps(listed))
    age(w, 2)
    got = gc(w, "--older-than", "1ms", "--keep-tag", "v1")
    assert [r["name"] for r in got["removed"]] == ["main"] and got["blobs"] == 0, got
    assert names(w) == {"v1"} and history(w, "v1") == [one] and set(foreign) <= set(blobs(w))
    assert b"image" in (w.top / "depot" / "index.json").read_bytes()


@test
def a_listed_manifest_that_is_lost_stops_it(w: World):
    w.ok("init")
    push(w, "main", "one")
    manifest = push(w, "v1", "two")
    path = w.top / "depot" / "blobs" / "sha256" / manifest[7:]
    data = path.read_bytes()
    (path.parent / ("cd" * 32)).write_bytes(b"orphan")
    age(w, 2)
    for damage in (None, b"{}"):
        path.unlink(missing_ok=True)
        if damage:
            path.write_bytes(damage)
            os.utime(path, (0, 0))
        before = blobs(w)
        w.snap("remote", "gc", depot(w), "--keep-last", "1").fails(12)
        assert blobs(w) == before, "something went"
    path.write_bytes(data)
    gc(w)
    assert "cd" * 32 not in blobs(w) and names_are_complete(w)


def parts(w, manifest):
    """What a manifest names: its config, and its layers."""
    listed = json.loads((w.top / "depot" / "blobs" / "sha256" / manifest[7:]).read_text())
    return listed["config"]["digest"][7:], [one["digest"][7:] for one in listed["layers"]]


@test
def an_index_of_a_pack_that_is_lost_or_damaged_takes_nothing_along(w: World):
    w.ok("init")
    push(w, "main", "one")
    manifests = []
    for text in ("two", "three"):
        (w.project / "README.md").write_text(text)
        manifests.append(pushed(w.ok("--json", "push", f"{depot(w)}:main"))["manifest"])
    index = w.top / "depot" / "blobs" / "sha256" / parts(w, manifests[-1])[1][1]
    for damage in (None, b"x"):
        index.unlink(missing_ok=True)
        if damage:
            index.write_bytes(damage)
        before = blobs(w)
        got = gc(w, "--grace", "0")
        assert blobs(w) == before and got["kept"] == 3 and got["blobs"] == 0, got


@test
def a_snapshot_that_cannot_be_read_does_not_cost_what_its_name_meant_before(w: World):
    w.ok("init")
    manifests = [push(w, "main", f"{i}") for i in range(3)]
    folder = w.top / "depot" / "blobs" / "sha256"
    # The newest, one of the past, and a manifest of the past: missing, and with wrong bytes.
    for name in (parts(w, manifests[2])[0], parts(w, manifests[1])[0], manifests[1][7:]):
        data = (folder / name).read_bytes()
        for damage in (None, data[:-1]):
            (folder / name).unlink(missing_ok=True)
            if damage:
                (folder / name).write_bytes(damage)
            elif name == manifests[1][7:]:
                continue  # the end of what is there
            before = blobs(w)
            for rule in ((), ("--keep-last", "1")):
                w.snap("remote", "gc", depot(w), "--grace", "0", *rule).fails(12, "nothing is removed")
            assert blobs(w) == before, "something went"
        (folder / name).write_bytes(data)
    assert gc(w, "--grace", "0")["kept"] == 3


@test
def a_push_that_gc_came_between_is_refused_and_a_name_that_moved_stays(w: World):
    """What a push found there is removed before its manifest comes."""
    w.ok("init")
    push(w, "main", "one")
    # A push puts packs, indexes, config and manifest, and then waits for the lock to move the name.
    lock = os.open(w.top / "depot" / ".snapcow-lock", os.O_RDWR | os.O_CREAT)
    for pick in (min, max):
        (w.project / "README.md").write_text(f"two {pick}")
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = set(blobs(w))
        p = subprocess.Popen([SNAP, "push", f"{depot(w)}:main"], cwd=w.project, env=w.env, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        waits_for_lock(p.pid, w.top / "depot" / ".snapcow-lock")
        new = {name: size for name, size in blobs(w).items() if name not in before}
        assert len(new) >= 4, new
        # The smallest is a pack or an index, the largest the manifest itself.
        (w.top / "depot" / "blobs" / "sha256" / pick(new, key=new.get)).unlink()
        fcntl.flock(lock, fcntl.LOCK_UN)
        out, err = p.communicate(timeout=60)
        assert p.returncode == 1 and b"push once more" in err, (p.returncode, out, err)
        assert names_are_complete(w) > 3
    w.ok("push", f"{depot(w)}:main")
    assert names_are_complete(w) > 3
    # A gc that decided over a name which is moved before it has the lock leaves the name alone.
    fcntl.flock(lock, fcntl.LOCK_EX)
    p = subprocess.Popen([SNAP, "--json", "remote", "gc", depot(w), "--older-than", "1ms", "--grace", "0"],
                         cwd=w.project, env=w.env, stdout=subprocess.PIPE)
    waits_for_lock(p.pid, w.top / "depot" / ".snapcow-lock")
    index = w.top / "depot" / "index.json"
    listed = json.loads(index.read_text())
    old = history(w, "main")[-1]
    entry = listed["manifests"][0]
    entry["digest"], entry["size"] = old, blobs(w)[old[7:]]
    index.write_text(json.dumps(listed))
    fcntl.flock(lock, fcntl.LOCK_UN)
    got = json.loads(p.communicate(timeout=60)[0])
    os.close(lock)
    assert got["moved"] == 1 and history(w, "main") == [old], got
    assert names_are_complete(w) > 3


def waits_for_lock(pid, path):
    """Until the process waits for the lock of that file, as the kernel's own list has it."""
    want = f":{os.stat(path).st_ino} "
    for _ in range(6000):
        with open("/proc/locks", encoding="utf-8") as f:
            if any("->" in line and want in line and f" {pid} " in line for line in f):
                return
        assert os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None, "it ended"
        time.sleep(0.01)
    raise AssertionError("it never waited for the lock")


@test
def pushes_and_gcs_at_once_leave_every_name_whole(w: World):
    w.ok("init")
    push(w, "main", "0")
    stop = w.top / "stop"
    loop = f"while [ ! -e {stop} ]; do {SNAP} -q remote gc {depot(w)} --keep-last 1 --grace 0 || exit; done"
    with subprocess.Popen(["sh", "-c", loop], cwd=w.project, env=w.env) as p:
        try:
            for i in range(12):
                (w.project / "README.md").write_text(f"{i}")
                done = w.snap("push", "--whole", f"{depot(w)}:main")
                assert done.status == 0 or b"push once more" in done.err, done
                assert names_are_complete(w) > 3
        finally:
            stop.touch()
        assert p.wait(120) == 0
    assert names_are_complete(w) > 3


@test
def a_gc_that_is_killed_leaves_names_and_their_past_whole(w: World):
    w.ok("init")
    for i in range(3):
        push(w, "main", f"{i}")
        push(w, f"old{i}", f"old {i}")
    args = ["remote", "gc", depot(w), "--keep-last", "2", "--grace", "0"]
    calls = "?renameat,?renameat2,?unlinkat,?fsync"
    died = 0
    for i, point in enumerate(deaths(w, args, w.project, w.env, "unlinkat", calls=calls, jobs=False)[:8]):
        for n in range(2):
            push(w, "main", f"again {i} {n}")
        died += dies(point, args, w.project, w.env, jobs=False)
        assert names_are_complete(w) > 3
        for manifest in history(w, "main"):
            listed = json.loads((w.top / "depot" / "blobs" / "sha256" / manifest[7:]).read_text())
            for one in [listed["config"], *listed["layers"]]:
                assert one["digest"][7:] in blobs(w), (point, manifest)
    assert died > 2, died
    gc(w, "--keep-last", "2", "--grace", "0")
    assert len(history(w, "main")) == 2 and names_are_complete(w) > 3


main()

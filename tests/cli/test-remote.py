"""push, fetch, pull, remote: two stores and a directory between them."""

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

from depots import Other, blobs, deaths, depot, died_enough, dies, names_are_complete, pushed
from snaptest import SNAP, Skip, World, main, needs_fuse, stop_process, test
from trees import differences, furnish, walk


STRICT = ("--profile", "strict", "--allow-missing", "memory", "--allow-missing", "cpu")
LOOK = ("--", "sh", "-c", "cat vendor/conf/.env vendor/conf/plain 2>/dev/null")


@test
def what_strict_runs_must_not_see_goes_with_a_push(w: World):
    needs_fuse()
    for name in "conf", "vendor":
        (w.project / name).mkdir()
    (w.project / "conf" / ".env").write_text("secret\n")
    (w.project / "conf" / "plain").write_text("plain\n")
    w.ok("clone", "-n", "c")
    w.ok("run", "c", *STRICT, "--", "mv", "conf", "vendor/conf")
    assert w.snap("run", "c", *STRICT, *LOOK).ends(1).out == b"plain\n"
    w.ok("push", "c", f"{depot(w)}:main")
    o, third = Other(w), Other(w, "third")
    o.ok("clone", "-n", "far", f"{depot(w)}:main")
    o.ok("fetch", f"{depot(w)}:main")
    o.ok("clone", "-n", "again", "--from", "remote/main")
    o.ok("clone", "-n", "of-it", "--from", "far")
    for name in "far", "again", "of-it":
        assert o.ok("run", name, *LOOK).out == b"secret\nplain\n", "the control"
        assert o.snap("run", name, *STRICT, *LOOK).ends(1).out == b"plain\n", name
    # On from there, and from a snapshot whose clone is gone.
    o.ok("push", "remote/main", f"{depot(w)}:second")
    o.ok("snapshot", "-t", "kept", "far")
    o.ok("rm", "far")
    o.ok("push", "kept", f"{depot(w)}:third")
    for name in "second", "third":
        third.ok("clone", "-n", name, f"{depot(w)}:{name}")
        assert third.snap("run", name, *STRICT, *LOOK).ends(1).out == b"plain\n", name
    # What a run finds later in the same state is told the next time.
    (w.project / "id_rsa").write_text("secret\n")
    w.ok("clone", "-n", "late")
    w.ok("run", "late", "--", "touch", "new")
    before = pushed(w.ok("--json", "push", "late", f"{depot(w)}:late"))["manifest"]
    w.ok("run", "late", *STRICT, "--", "true")
    after = pushed(w.ok("--json", "push", "late", f"{depot(w)}:late"))["manifest"]
    assert before != after == pushed(w.ok("--json", "push", "late", f"{depot(w)}:late"))["manifest"]


@test
def nothing_is_sent_of_a_state_whose_hidden_files_cannot_be_told(w: World):
    needs_fuse()
    (w.project / ".env").write_text("secret\n")
    w.ok("clone", "-n", "c")
    w.ok("run", "c", *STRICT, "--", "touch", "new")
    w.stop()
    with contextlib.closing(sqlite3.connect(w.store / "meta.db")) as db:
        assert db.execute("UPDATE ref SET value = x'01' WHERE kind = 11").rowcount == 1
        db.commit()
    w.snap("push", "c", f"{depot(w)}:main").fails(12, "list of hidden files 'c'")
    assert not list((w.top / "depot").glob("blobs/*/*")), "it is known before anything is sent"


@test
def what_comes_out_is_what_went_in(w: World):
    needs_fuse()
    furnish(w.project)
    before = walk(w.project)
    w.ok("init")
    root = pushed(w.ok("--json", "push", f"{depot(w)}:main"))["root"]
    o = Other(w)
    got = o.ok("--json", "fetch", f"{depot(w)}:main").json("snap.fetch/1")
    assert got["root"] == root and got["registered"] and got["tag"] == "remote/main", got
    path = o.ok("-q", "clone", "-n", "same", "--from", "remote/main").out.decode().strip()
    assert not differences(before, walk(path))
    # Also what the store itself says of it, and what it would send itself.
    assert "no damage" in o.ok("check").out.decode()
    again = pushed(o.ok("--json", "push", "remote/main", f"dir:{w.top}/back:main"))
    assert again["root"] == root, again
    assert not any((o.store / "remote" / "incoming").glob("*.p*"))
    o.end()


@test
def a_push_needs_no_step_before_it(w: World):
    w.ok("push", depot(w))
    o = Other(w)
    o.ok("pull", depot(w))
    assert (o.project / "README.md").read_text() == (w.project / "README.md").read_text()
    o.end()


@test
def only_what_changed_travels(w: World):
    furnish(w.project, 2000)
    w.ok("init")
    first = pushed(w.ok("--json", "push", f"{depot(w)}:main"))
    o = Other(w)
    o.ok("fetch", f"{depot(w)}:main")
    before = blobs(w)
    dice = random.Random(3)
    for i in range(10):
        (w.project / f"dir{i % 7}" / f"sub{i % 3}" / f"file{i}").write_bytes(dice.randbytes(5000))
    (w.project / "wide" / "n00700").write_text("other")
    second = pushed(w.ok("--json", "push", f"{depot(w)}:main"))
    new = sum(size for name, size in blobs(w).items() if name not in before)
    assert second["bytes_sent"] == new, (second, new)
    # Ten files of random bytes, and the nodes of the directories that they lie in: some 1,400 entries, each with 32
    # bytes of a digest that cannot be packed, times and an inode number.
    assert 50_000 < new < 1.5 * 50_000 + 1500 * 48, new
    assert second["bytes_skipped"] > 0 and second["packs"] == first["packs"] + 2, second
    got = o.ok("--json", "fetch", f"{depot(w)}:main").json("snap.fetch/1")
    # The two new packs and their indexes alone: nothing that this store has.
    assert got["packs_received"] == 2 and got["root"] == second["root"], got
    third = pushed(w.ok("--json", "push", f"{depot(w)}:main"))
    assert third["same"] and third["bytes_sent"] == 0 and third["manifest"] == second["manifest"], third
    o.end()


@test
def a_new_name_builds_on_another_one(w: World):
    furnish(w.project, 100)
    w.ok("init")
    whole = pushed(w.ok("--json", "push", f"{depot(w)}:main"))
    w.ok("clone", "-n", "try")
    (w.store / "clones" / "try" / "new").write_bytes(os.urandom(5000))
    other = pushed(w.ok("--json", "push", "try", f"{depot(w)}:try"))
    assert 5000 < other["bytes_sent"] < whole["bytes_sent"] / 5, (other, whole)
    assert other["bytes_skipped"] > whole["bytes_sent"] / 2, (other, whole)
    assert names_are_complete(w) > 3
    o = Other(w)
    assert o.ok("--json", "fetch", f"{depot(w)}:try").json("snap.fetch/1")["root"] == other["root"]
    o.end()
    # It can go, and the other one stays whole.
    w.ok("remote", "gc", depot(w), "--keep-tag", "try", "--grace", "0s")
    assert names_are_complete(w) > 3
    # With --whole all of it is sent.
    assert pushed(w.ok("--json", "push", "--whole", "try", f"{depot(w)}:anew"))["bytes_skipped"] == 0


@test
def without_its_notes_a_store_sends_and_takes_the_same(w: World):
    furnish(w.project, 60)
    w.ok("init")
    one = pushed(w.ok("--json", "push", f"{depot(w)}:main"))
    shutil.rmtree(w.store / "remote")
    (w.project / "README.md").write_text("second\n")
    w.snap("push", f"{depot(w)}:main").fails(6, "not in what you push")
    two = pushed(w.ok("--json", "push", "--force", f"{depot(w)}:main"))
    assert two["root"] != one["root"] and 0 < two["objects_sent"] <= 4, two
    (w.store / "remote" / "digests").write_bytes(b"SNPD" + bytes(100))
    assert pushed(w.ok("--json", "push", f"{depot(w)}:main"))["same"]
    whole = pushed(w.ok("--json", "push", "--whole", f"{depot(w)}:main"))
    assert whole["root"] == two["root"] and whole["packs"] == 2, whole


@test
def a_name_that_somebody_else_moved_is_left_alone(w: World):
    o = Other(w)
    (o.project / "f").write_text("o")
    w.ok("init")
    o.ok("init")
    w.ok("push", f"{depot(w)}:main")
    o.snap("push", f"{depot(w)}:main").fails(6, "hint: snapcow push --force")
    o.ok("push", "--force", f"{depot(w)}:main")
    (w.project / "README.md").write_text("second\n")
    w.snap("--json", "push", f"{depot(w)}:main").fails_json(6, "E_STALE")
    log = w.ok("--json", "remote", "log", f"{depot(w)}:main").json("snap.remote/1")["snapshots"]
    assert len(log) == 2 and log[0]["name"] == "main" and log[1]["name"] is None, log
    o.end()


@test
def pull_makes_the_project_look_like_it_or_leaves_it_alone(w: World):
    needs_fuse()
    w.ok("init")
    w.ok("remote", "add", "origin", depot(w))
    w.ok("push", "-m", "one", "origin:main")
    o = Other(w)
    assert o.ok("--json", "pull", "origin:main").json("snap.pull/1")["changed"] == 2
    assert (o.project / "README.md").read_text() == "first\n"
    # Theirs goes on, ours does not: it comes as it is.
    (w.project / "README.md").write_text("second\n")
    w.ok("push", "origin:main")
    said, _, back = o.ok("pull", "origin:main").out.decode().partition("; to return: snapcow ")
    assert "\n  the state before is snapshot " in said and back.startswith("undo "), (said, back)
    assert o.ok(*back.split(), "--json", "-n").json("snap.undo/1")["changed"] == [{"path": "README.md", "status": "modified"}]
    assert (o.project / "README.md").read_text() == "second\n"
    # Both go on: nothing is touched, and the hints merge them.
    (o.project / "ours").write_text("ours\n")
    (w.project / "README.md").write_text("third\n")
    w.ok("push", "origin:main")
    o.snap("pull", "origin:main").fails(5, "changes of its own", "clone -n pulled --from origin/main", "promote pulled")
    assert (o.project / "README.md").read_text() == "second\n"
    o.ok("clone", "-n", "pulled", "--from", "origin/main")
    o.ok("promote", "pulled")
    assert (o.project / "README.md").read_text() == "third\n"
    assert (o.project / "ours").read_text() == "ours\n"
    # What a stranger must not set unseen is held.
    o.ok("pull", "--replace", "origin:main")
    assert not (o.project / "ours").exists()
    (w.project / ".github" / "workflows").mkdir(parents=True)
    (w.project / ".github" / "workflows" / "ci.yml").write_text("on: push\n")
    w.ok("push", "origin:main")
    o.snap("pull", "origin:main").fails(7, "ci.yml", "--allow")
    assert not (o.project / ".github").exists()
    o.end()


def damage(w, how):
    """Do it to the largest blob, a pack."""
    name = max(blobs(w).items(), key=lambda x: x[1])[0]
    path = w.top / "depot" / "blobs" / "sha256" / name
    data = bytearray(path.read_bytes())
    if how == "wrong":
        data[len(data) // 2] ^= 1
    path.chmod(0o600)
    path.write_bytes(data[:-7] if how == "truncated" else data + b"more" if how == "longer" else data)
    if how == "gone":
        path.unlink()
    return path


@test
def damage_in_a_remote_is_refused_and_nothing_is_stored(w: World):
    furnish(w.project, 60)
    w.ok("init")
    w.ok("push", f"{depot(w)}:main")
    good = w.top / "good"
    shutil.copytree(w.top / "depot", good)
    o = Other(w)
    for how, sentence in (("wrong", "wrong bytes"), ("truncated", "shorter than its manifest"),
                          ("longer", "longer than its manifest"), ("gone", "is not there")):
        damage(w, how)
        o.snap("fetch", f"{depot(w)}:main").fails(12, sentence)
        assert not o.store.joinpath("remote", "seen").exists() or not any((o.store / "remote" / "seen").iterdir())
        shutil.rmtree(w.top / "depot")
        shutil.copytree(good, w.top / "depot")
    # The same pack over and over costs a stranger nothing, and cowfsd memory and descriptors.
    forge_manifest(w, lambda m: m["layers"].extend(m["layers"][:2] * 400))
    o.snap("fetch", f"{depot(w)}:main").fails(12, "a pack is listed twice")
    shutil.rmtree(w.top / "depot")
    shutil.copytree(good, w.top / "depot")
    # More than any disk has is refused before anything of it comes.
    claims = [[{**layer, "digest": f"sha256:{2 * i + n:064x}", "size": 64 << 20 if n == 0 else 1000}
               for n, layer in enumerate(json.loads(manifest_of(w))["layers"][:2])] for i in range(4000)]
    forge_manifest(w, lambda m: m["layers"].extend(sum(claims, [])))
    if shutil.disk_usage(w.top).free < 4000 * (64 << 20):
        o.snap("fetch", f"{depot(w)}:main").fails(1, "needs 250", "and the disk of the store has")
        assert os.listdir(o.store / "remote" / "incoming") == ["lock"]
    shutil.rmtree(w.top / "depot")
    shutil.copytree(good, w.top / "depot")
    # An index that claims other things, with a manifest that fits: the objects themselves tell.
    forge_index(w)
    shutil.rmtree(o.store / "remote" / "incoming")
    o.snap("fetch", f"{depot(w)}:main").fails(12, "wrong bytes for a")
    shutil.rmtree(w.top / "depot")
    shutil.copytree(good, w.top / "depot")
    o.ok("fetch", f"{depot(w)}:main")
    assert "no damage" in o.ok("check").out.decode()
    o.end()


def blob(w, digest):
    return w.top / "depot" / "blobs" / "sha256" / digest.removeprefix("sha256:")


def put_blob(w, data):
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    blob(w, digest).write_bytes(data)
    return {"digest": digest, "size": len(data)}


def manifest_of(w):
    index = json.loads((w.top / "depot" / "index.json").read_text())
    return blob(w, index["manifests"][0]["digest"]).read_text()


def forge_manifest(w, change):
    """Change the manifest of the only name, and all that names it."""
    path = w.top / "depot" / "index.json"
    index = json.loads(path.read_text())
    entry = index["manifests"][0]
    manifest = json.loads(blob(w, entry["digest"]).read_text())
    change(manifest)
    entry.update(put_blob(w, json.dumps(manifest).encode()))
    path.write_text(json.dumps(index))


def forge_index(w):
    """Swap the digests of two chunks of the content pack in its index, and all that names it."""
    def swap(manifest):
        data = bytearray(blob(w, manifest["layers"][1]["digest"]).read_bytes())
        at = 56 + 8 * int.from_bytes(data[8:12], "little")
        data[at:at + 32], data[at + 36:at + 68] = data[at + 36:at + 68], data[at:at + 32]
        manifest["layers"][1].update(put_blob(w, bytes(data)))

    forge_manifest(w, swap)


@test
def a_push_does_not_build_on_what_somebody_removed(w: World):
    furnish(w.project, 20)
    w.ok("init")
    w.ok("push", f"{depot(w)}:main")
    for how in ("gone", "truncated"):
        damage(w, how)
        (w.project / how).write_text("more")
        w.snap("push", f"{depot(w)}:main").fails(12, "lacks a pack: push it with --whole")
        w.ok("push", "--whole", f"{depot(w)}:main")
        assert names_are_complete(w) > 3


@test
def a_depot_that_lost_a_manifest_or_a_config_is_not_called_the_same_and_can_be_mended(w: World):
    furnish(w.project, 20)
    w.ok("init")
    url, o = f"{depot(w)}:main", Other(w)
    furnish(o.project, 5)
    o.ok("init")
    for store in (w, o):
        path = blob(w, pushed(w.ok("--json", "push", "--whole", "--force", url))["manifest"])
        config = blob(w, json.loads(path.read_text())["config"]["digest"])
        assert pushed(w.ok("--json", "push", url))["same"]
        data = config.read_bytes()
        config.unlink()
        w.snap("push", url).fails(12, "lacks its config: push it with --whole")
        config.write_bytes(data)
        path.unlink()
        for options in ((), ("--whole",), ("--force",)):
            store.snap("push", *options, url).fails(12, "lacks the manifest", "push it with --whole --force")
        store.ok("push", "--whole", "--force", url)
        assert names_are_complete(w) > 3
    o.end()


@test
def a_push_that_is_killed_leaves_names_whole(w: World):
    furnish(w.project, 100)
    w.ok("init")
    args = ["push", "--force", f"{depot(w)}:main"]
    died = 0
    for i, point in enumerate(deaths(w, args, w.project, w.env, "index.json")):
        (w.project / f"round{i}").write_text(f"{i}" * 100)
        died += dies(point, args, w.project, w.env)
        assert names_are_complete(w) > 3
    died_enough("push", died)
    last = pushed(w.ok("--json", "push", "--force", f"{depot(w)}:main"))
    assert names_are_complete(w) > 3
    o = Other(w)
    assert o.ok("--json", "fetch", f"{depot(w)}:main").json("snap.fetch/1")["root"] == last["root"]
    o.end()


@test
def a_cached_blob_under_the_name_of_another_is_not_believed(w: World):
    furnish(w.project, 20)
    w.ok("init")
    root = pushed(w.ok("--json", "push", f"{depot(w)}:main"))["root"]
    o = Other(w)
    o.ok("init")
    o.ok("fetch", f"{depot(w)}:main")
    one, *others = sorted(p for p in (o.store / "remote" / "cache").iterdir() if len(p.name) == 64)
    assert others, "a snapshot and an index at least"
    for other in others:
        shutil.copy(one, other)
    assert o.ok("--json", "fetch", f"{depot(w)}:main", "-t", "again").json("snap.fetch/1")["root"] == root
    o.end()


@test
def a_fetch_that_is_killed_goes_on(w: World):
    furnish(w.project, 100)
    w.ok("init")
    root = pushed(w.ok("--json", "push", f"{depot(w)}:main"))["root"]
    first, o = Other(w, "first"), Other(w)
    for one in (first, o):
        one.ok("init")
    args = ["fetch", f"{depot(w)}:main"]
    died = 0
    for point in deaths(w, args, first.project, {**w.env, "SNAPCOW_STORE": str(first.store)}, ".pack"):
        died += dies(point, args, o.project, {**w.env, "SNAPCOW_STORE": str(o.store)})
        for pack in (o.store / "remote" / "incoming").glob("*.pack"):
            assert hashlib.sha256(pack.read_bytes()).hexdigest() == pack.stem, point
    died_enough("fetch", died)
    assert o.ok("--json", "fetch", f"{depot(w)}:main").json("snap.fetch/1")["root"] == root
    assert "no damage" in o.ok("check").out.decode()
    first.end()
    o.end()


@test
def a_daemon_that_is_killed_while_it_stores_leaves_nothing_half(w: World):
    furnish(w.project, 400)
    w.ok("init")
    root = pushed(w.ok("--json", "push", f"{depot(w)}:main"))["root"]
    for i in range(5):
        o = Other(w, f"other{i}")
        o.ok("init")
        o.ok("snapshot")  # cowfsd runs now
        pids = daemons_of(o.store)
        for pid in pids:  # it goes on when all packs are there, so that it dies before it answers
            stop_process(pid)
        env = {**w.env, "SNAPCOW_STORE": str(o.store)}
        with subprocess.Popen([SNAP, "fetch", f"{depot(w)}:main"], cwd=o.project, env=env,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
            # Packs are there until cowfsd has stored them, and it is asked once all are.
            while p.poll() is None and not all_came(o):
                pass
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
            time.sleep(0.004 - i * 0.001)
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            if p.wait(60) != 0:
                break
        o.end()
    else:
        raise AssertionError("no fetch was hit")
    assert o.ok("--json", "fetch", f"{depot(w)}:main").json("snap.fetch/1")["root"] == root
    assert "no damage" in o.ok("check").out.decode()
    o.end()


def all_came(o):
    """Two packs with their indexes, none of them partly."""
    try:
        names = os.listdir(o.store / "remote" / "incoming")
    except OSError:
        return False
    return len([n for n in names if n.endswith((".pack", ".index"))]) >= 4


def daemons_of(store):
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if b"cowfsd" in line.split(b"\0")[0] and os.fsencode(store) in line:
            found.append(int(entry.name))
    return found


@test
def a_full_disk_is_said_and_leaves_the_name_alone(w: World):
    if os.geteuid() != 0:
        raise Skip("mounting a small file system needs root")
    top = w.top / "depot"
    top.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", top], check=False,
                      capture_output=True).returncode:
        raise Skip("no file system can be mounted here")
    try:
        w.ok("init")
        one = pushed(w.ok("--json", "push", f"dir:{top}/d:main"))
        (w.project / "large").write_bytes(random.Random(1).randbytes(3 << 20))
        w.snap("push", f"dir:{top}/d:main").fails(1, "No space left on device")
        log = w.ok("--json", "remote", "log", f"dir:{top}/d:main").json("snap.remote/1")["snapshots"]
        assert log[0]["manifest"] == one["manifest"], log
        (w.project / "large").unlink()
        (w.project / "small").write_text("x")
        w.ok("push", f"dir:{top}/d:main")
    finally:
        subprocess.run(["umount", top], check=True)


@test
def a_full_disk_of_the_fetcher_is_said_and_the_fetch_goes_on_with_more_room(w: World):
    if os.geteuid() != 0:
        raise Skip("mounting a small file system needs root")
    o = Other(w)
    o.store.mkdir(mode=0o700)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m,mode=700", "none", o.store], check=False,
                      capture_output=True).returncode:
        raise Skip("no file system can be mounted here")
    try:
        w.ok("init")
        (w.project / "large").write_bytes(random.Random(1).randbytes(20 << 20))
        root = pushed(w.ok("--json", "push", f"{depot(w)}:main"))["root"]
        o.ok("init")
        before = o.ok("--json", "log", "--all").json("snap.log/1")["snapshots"]
        # First the packs have no room, then the objects beside them.
        for size, sentence in (("12m", "No space left on device"), ("32m", "the disk is full")):
            subprocess.run(["mount", "-o", f"remount,size={size}", o.store], check=True)
            o.snap("fetch", f"{depot(w)}:main").fails(1, sentence)
            assert o.ok("--json", "log", "--all").json("snap.log/1")["snapshots"] == before, size
        subprocess.run(["mount", "-o", "remount,size=128m", o.store], check=True)
        assert o.ok("--json", "fetch", f"{depot(w)}:main").json("snap.fetch/1")["root"] == root
        assert "no damage" in o.ok("check").out.decode()
        o.end()
    finally:
        subprocess.run(["umount", "-l", o.store], check=True)


@test
def a_clone_or_a_run_of_what_a_remote_has_is_one_command(w: World):
    needs_fuse()
    w.ok("init")
    w.ok("remote", "add", "origin", depot(w))
    w.ok("push", "origin:main")
    o = Other(w)
    path = Path(o.ok("-q", "clone", "origin/main", "theirs").out.decode().strip())
    assert path.name == "theirs" and (path / "README.md").read_text() == "first\n"
    assert not any(o.project.iterdir()), "the project was touched"
    (w.project / "README.md").write_text("second\n")
    w.ok("push", "origin:main")
    # Each time what is there now; the clone before keeps what it had.
    got = o.ok("--json", "clone", f"{depot(w)}:main", "-n", "again").json("snap.clone/1")
    assert got["fetched"]["name"] == "main" and got["base"] == got["fetched"]["snapshot"], got
    assert (Path(got["path"]) / "README.md").read_text() == "second\n"
    assert (path / "README.md").read_text() == "first\n"
    done = o.ok("run", "origin/main", "--", "sh", "-c", "cat README.md; echo x >made")
    assert done.out == b"second\n" and b"fetched" in done.err, done
    assert not (o.project / "made").exists()
    o.snap("clone", "origin/none").fails(4, "nothing with the name 'none'", "hint: snapcow remote log origin\n")
    o.snap("fetch", f"{depot(w)}:none").fails(4, "nothing with", f"hint: snapcow remote log {depot(w)}\n")
    w.snap("push", "none", "origin").fails(4, "no clone or snapshot 'none'", "hint: snapcow list --all")
    o.snap("clone", "nobody/main").fails(4, "no remote 'nobody'")
    o.snap("clone", "origin/main", "a", "-n", "b").fails(2, "two names")
    o.snap("clone", "origin/main", "--root").fails(2, "takes neither --from nor --root nor --path")
    o.snap("run", "origin/none", "--", "true").fails(125, "nothing with the name 'none'")
    o.snap("run", "--rm", "origin/main", "--", "true").fails(2, "--rm")
    o.end()


@test
def skopeo_reads_and_copies_it(w: World):
    if not shutil.which("skopeo"):
        raise Skip("skopeo is not installed")
    w.ok("init")
    one = pushed(w.ok("--json", "push", f"{depot(w)}:main"))
    raw = subprocess.run(["skopeo", "inspect", "--raw", f"oci:{w.top}/depot:main"], check=True,
                         capture_output=True).stdout
    assert "sha256:" + hashlib.sha256(raw).hexdigest() == one["manifest"]
    subprocess.run(["skopeo", "--insecure-policy", "copy", f"oci:{w.top}/depot:main",
                    f"oci:{w.top}/copied:main"], check=True, capture_output=True)
    o = Other(w)
    assert o.ok("--json", "fetch", f"dir:{w.top}/copied:main").json("snap.fetch/1")["root"] == one["root"]
    o.end()


@test
def remotes_have_names(w: World):
    w.ok("init")
    assert w.ok("remote").out == b""
    w.ok("remote", "add", "origin", depot(w))
    w.snap("remote", "add", "origin", depot(w)).fails(1, "already", "hint: snapcow remote rm origin")
    w.snap("remote", "add", "a:b", depot(w)).fails(2, "cannot be the name")
    w.snap("remote", "add", "x", "ftp://host/x").fails(2, "not the address of a remote")
    assert w.ok("-q", "remote", "list").out == b"origin\n"
    w.snap("push", "nobody:x").fails(4, "no remote 'nobody'")
    w.snap("push", "origin:a/b").fails(2, "cannot be a name there")
    w.snap("fetch", "origin:main").fails(4, "nothing with the name 'main'")
    w.snap("push", "--jobs", "9", "origin").fails(2, "at most 4 jobs")
    w.ok("push", "--jobs", "1", "origin")
    assert w.ok("-q", "remote", "log", "origin").out.startswith(b"sha256:")
    # `log` knows remotes too; a clone of that name comes first, and `--` means a file.
    for word in ("origin", "origin:latest", f"{depot(w)}:latest"):
        said = [(w.ok("log", word).out, w.ok("remote", "log", word).out) for _ in range(2)]  # ages may change between
        assert any(a == b != b"" for a, b in said), (word, said)
        assert w.ok("--json", "log", word).json("snap.remote/1")["act"] == "log"
    w.snap("log", "origin:none").fails(4, "nothing with the name 'none'")
    w.snap("log", "--graph", "origin").fails(2)
    w.snap("log", "--all", "origin").fails(2, "'log' of a remote takes neither")
    (w.project / "origin").write_text("a file\n")
    assert b"origin" not in w.ok("-q", "log", "--", "origin").out
    w.ok("remote", "rm", "origin")
    w.snap("remote", "rm", "origin").fails(4, "no remote 'origin'")


main()

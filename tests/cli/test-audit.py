"""What was changed behind our back in receipts, runs and events is named."""

import fcntl
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys

from runtest import until
from snaptest import SNAP, Skip, World, main, needs_fuse, test
from watchtest import once, rules, stages


def verify(w, *args, status=0):
    got = w.snap("audit", "verify", "--json", *args).json(
        "snap.audit/1", "sound", "problems", "receipts", "events", "runs", status=status)
    assert got["sound"] is (status == 0), got
    return got


def problems(w, *args):
    return [(p["kind"], p["name"], p["problem"]) for p in verify(w, *args, status=12)["problems"]]


def work(w):
    """Three promotions and four runs."""
    needs_fuse()
    w.ok("init")
    for i in range(3):
        w.ok("clone", "-n", f"c{i}")
        w.ok("run", f"c{i}", "--", "sh", "-c", f"echo {i} > new{i}")
        w.ok("promote", f"c{i}", "--yes")
    w.ok("run", "--", "true")
    w.stop()


def change_rows(w, sql, *args):
    """As somebody with sqlite3 would; the daemon is down."""
    db = sqlite3.connect(w.store / "meta.db")
    done = db.execute(sql, args).rowcount
    db.commit()
    db.close()
    return done


def rows(w, kind):
    db = sqlite3.connect(w.store / "meta.db")
    got = db.execute("SELECT name, value, sum FROM ref WHERE kind = ? ORDER BY name", (kind,)).fetchall()
    db.close()
    return got


@test
def a_store_that_nobody_touched_is_sound(w: World):
    work(w)
    got = verify(w)
    assert got["receipts"] == 3 and got["runs"] == 4 and got["unchained"] == 0, got
    assert got["events"] > 10 and got["problems"] == [], got
    heads = [got["receipt_head"]["digest"], got["event_head"]["digest"]]
    # What happens later leaves the old heads in the chains.
    w.ok("run", "--", "true")
    w.ok("undo", "--yes")
    later = verify(w, "--head", heads[0], "--head", heads[1])
    assert later["receipt_head"]["digest"] != heads[0] and later["event_head"]["digest"] != heads[1]
    other = "0" * 64
    assert problems(w, "--head", other)[0][:2] == ("head", other)
    w.snap("audit", "verify", "--head", "xyz").fails(2, "64 hex digits")
    w.snap("audit", "burn").fails(2, "does not know 'burn'")


@test
def a_chain_goes_on_after_a_daemon_is_killed(w: World):
    work(w)
    w.ok("clone", "-n", "again")
    w.kill_daemon()
    w.ok("run", "again", "--", "sh", "-c", "echo x > x")
    w.ok("promote", "again", "--yes")
    assert verify(w)["receipts"] == 4


@test
def a_receipt_that_was_removed_is_named(w: World):
    work(w)
    name = rows(w, 5)[1][0]
    assert change_rows(w, "DELETE FROM ref WHERE kind = 5 AND name = ?", name) == 1
    assert problems(w) == [("receipt", name.decode(), "it is gone, and nobody deleted it")]


@test
def a_receipt_that_was_put_back_to_an_earlier_state_is_named(w: World):
    work(w)
    old = rows(w, 5)
    w.ok("undo", "--yes")
    w.stop()
    new = dict((name, value) for name, value, _ in rows(w, 5))
    name, value, total = next(row for row in old if new[row[0]] != row[1])
    # The row is whole: it was there, with this checksum.
    assert change_rows(w, "UPDATE ref SET value = ?, sum = ? WHERE kind = 5 AND name = ?", value, total, name) == 1
    w.ok("log")
    assert problems(w) == [("receipt", name.decode(), "it was changed since it was written")]


@test
def a_receipt_whose_bytes_were_changed_is_named(w: World):
    work(w)
    name, value, _ = rows(w, 5)[0]
    change_rows(w, "UPDATE ref SET value = ? WHERE kind = 5 AND name = ?", value[:-1] + b"\x01", name)
    found, = problems(w)
    assert found[:2] == ("receipt", name.decode()) and "does not match its checksum" in found[2], found


@test
def all_that_cannot_be_read_is_named_and_not_only_the_first(w: World):
    work(w)
    receipt, chain = rows(w, 5)[0][0], [name for name, _, _ in rows(w, 9)]
    for name in (chain[0], chain[2], b"head"):
        assert change_rows(w, "UPDATE ref SET sum = 1 WHERE kind = 9 AND name = ?", name) == 1
    assert change_rows(w, "UPDATE ref SET sum = 1 WHERE kind = 5 AND name = ?", receipt) == 1
    found = [p[:2] for p in problems(w) if "does not match its checksum" in p[2]]
    assert found == [("audit entry", "head"), ("audit entry", chain[0].decode()), ("audit entry", chain[2].decode()),
                     ("receipt", receipt.decode())], problems(w)


@test
def damaged_entries_of_the_chain_stop_neither_gc_nor_the_next_receipt(w: World):
    work(w)
    chain = [name for name, _, _ in rows(w, 9)]
    for name in (chain[-2], b"head"):
        assert change_rows(w, "UPDATE ref SET sum = 1 WHERE kind = 9 AND name = ?", name) == 1
    w.ok("gc")
    w.ok("undo", "--yes")
    w.stop()
    after = [name for name, _, _ in rows(w, 9)]
    # The damaged one keeps its place, what is new stands behind it, and the head is whole again.
    assert after[:len(chain) - 1] == chain[:-1] and len(after) > len(chain), after
    found = problems(w)
    assert found[0][:2] == ("audit entry", chain[-2].decode()), found
    assert not any(p[1] == "head" or "missing" in p[2] or "does not follow" in p[2] for p in found), found
    # None at all can be read.
    assert change_rows(w, "UPDATE ref SET sum = 1 WHERE kind = 9") == len(after)
    w.ok("clone", "-n", "more")
    w.ok("run", "more", "--", "sh", "-c", "echo more > more")
    w.ok("promote", "more", "--yes")
    w.stop()
    assert len(problems(w)) >= len(after) - 1 and verify(w, status=12)["receipt_head"]["number"] > len(after) - 1


@test
def a_damaged_ref_that_may_keep_a_tree_stops_gc_whatever_kind_it_claims(w: World):
    work(w)
    assert change_rows(w, "UPDATE ref SET root = randomblob(16) WHERE kind = 9 AND name = CAST('head' AS BLOB)") == 1
    w.snap("gc").fails(12, "gc stopped before removing anything", "audit entry 'head'")


@test
def entries_of_the_chain_that_are_missing_are_named(w: World):
    work(w)
    chain = rows(w, 9)
    assert chain[-1][0] == b"head" and len(chain) > 5
    change_rows(w, "DELETE FROM ref WHERE kind = 9 AND name = ?", chain[1][0])
    found = problems(w)
    assert found[0] == ("audit entry", chain[1][0].decode(), "it is missing, or others are behind it"), found
    change_rows(w, "INSERT INTO ref VALUES(9, ?, zeroblob(16), ?, ?)", *chain[1])
    verify(w)
    last = chain[-2][0]
    change_rows(w, "DELETE FROM ref WHERE kind = 9 AND name = ?", last)
    assert ("audit entry", "head", "it is not the last entry: the newest are gone") in problems(w)
    change_rows(w, "INSERT INTO ref VALUES(9, ?, zeroblob(16), ?, ?)", *chain[-2])
    change_rows(w, "DELETE FROM ref WHERE kind = 9")
    assert verify(w)["unchained"] == 3, "without a chain nothing can be said"


@test
def a_store_whose_head_was_lost_goes_on(w: World):
    work(w)
    for sql in ("DELETE FROM ref WHERE kind = 9 AND name = CAST('head' AS BLOB)",
                "UPDATE ref SET sum = 1 WHERE kind = 9 AND name = CAST('head' AS BLOB)"):
        assert change_rows(w, sql) == 1
        w.ok("undo", "--yes")
        w.stop()
        assert verify(w)["unchained"] == 0


def event_files(w):
    return sorted(p for p in (w.store / "events").iterdir() if len(p.name) == 16)


def change_events(w, change):
    path, = event_files(w)
    lines = path.read_bytes().splitlines(keepends=True)
    number = change(lines)
    path.write_bytes(b"".join(lines))
    return str(number)


@test
def events_that_were_changed_removed_or_moved_are_named(w: World):
    work(w)
    path, = event_files(w)
    good = path.read_bytes()

    def edit(lines):
        event = json.loads(lines[3])
        lines[3] = lines[3].replace(b'"kind":"', b'"kind":"x')
        return event["n"]

    def remove(lines):
        return json.loads(lines.pop(4))["n"]

    def swap(lines):
        lines[2], lines[3] = lines[3], lines[2]
        return json.loads(lines[3])["n"]

    def cut(lines):
        number = json.loads(lines[-3])["n"]
        del lines[-3:]
        return number

    def edit_last(lines):
        number = json.loads(lines[-1])["n"]
        lines[-1] = lines[-1].replace(b'"kind":"', b'"kind":"x')
        return number

    for change, word in ((edit, "it was changed"), (remove, "it is missing"), (swap, "it is missing"),
                         (cut, "it is missing"), (edit_last, "it was changed")):
        number = change_events(w, change)
        found = [p for p in problems(w) if p[0] == "event"]
        assert any(p[1] == number and p[2].startswith(word) for p in found), (change.__name__, number, found)
        path.write_bytes(good)
        verify(w)
    # A writer that died behind its line: the next one goes on, and nothing is wrong.
    head = w.store / "events" / "head"
    after = head.read_bytes()
    lines = good.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    w.ok("run", "--", "true")
    found = problems(w)
    assert found, "an event that was cut off and replaced by others"
    path.write_bytes(good)
    head.write_bytes(after)
    verify(w)
    head.unlink()
    assert ("event", "head", "it is missing") in problems(w)


@test
def the_oldest_events_do_not_go_unseen(w: World):
    work(w)
    events = w.store / "events"
    first, = event_files(w)
    lines = first.read_bytes().splitlines(keepends=True)
    cut = json.loads(lines[5])["n"]
    second = events / f"{cut:016x}"
    first.write_bytes(b"".join(lines[:5]))
    second.write_bytes(b"".join(lines[5:]))
    verify(w)
    first.unlink()
    missing = ("event", "1", "it is missing, with those before the next")
    assert missing in problems(w)
    # The next events do not make that good.
    w.ok("run", "--", "true")
    assert missing in problems(w)
    # Nor does a head that says so: there is room for many more.
    number, one, digest = (events / "head").read_text().split()
    assert int(one, 16) == 1, one
    (events / "head").write_text(f"{number} {cut:016x} {digest}\n")
    assert ("event", str(cut - 1), "it is gone, and snap did not remove it") in problems(w)
    # All of them.
    second.unlink()
    w.ok("run", "--", "true")
    assert ("event", "1", "it has taken the place of others, which are gone") in problems(w)


@test
def a_record_of_a_run_that_was_changed_is_named(w: World):
    work(w)
    run = w.ok("runs", "--json").json("snap.runs/1")["runs"][0]["run"]
    path = w.store / "runs" / f"{run}.json"
    text = path.read_bytes()
    path.write_bytes(text.replace(b'"exit_code":0', b'"exit_code":1'))
    assert problems(w) == [("run", run, "its record was changed since the run ended")]
    path.write_bytes(text)
    verify(w)


@test
def a_record_of_a_run_that_is_gone_is_named_unless_snap_removed_it(w: World):
    needs_fuse()
    w.ok("init")
    w.ok("clone", "-n", "try")
    for _ in range(103):
        w.ok("run", "--no-snapshot", "try", "--", "true")
    runs = [r["run"] for r in w.ok("runs", "--json").json("snap.runs/1")["runs"]]
    lost = w.store / "runs" / f"{runs[50]}.json"
    text = lost.read_bytes()
    lost.unlink()
    assert problems(w) == [("run", runs[50], "its record is gone, and snap did not remove it")]
    lost.write_bytes(text)
    w.ok("gc")
    removed = [e["data"]["runs"] for e in map(json.loads, w.ok("events", "--all", "--json").out.splitlines())
               if e["kind"] == "runs-removed"]
    assert [sorted(r) for r in removed] == [sorted(runs[100:])], removed
    assert not any((w.store / "runs" / f"{run}.json").exists() for run in runs[100:])
    assert verify(w)["runs"] == 100


def docketed(w):
    """A change that was shipped, and a firing that is done."""
    needs_fuse()
    w.take()
    rules(w, "name: ship, on: fire, run: echo c > c.txt, then: ship")
    stages(w, "{name: dev, target: ., approve: never}")
    w.ok("watch", "fire", "ship")
    once(w)
    change, = (w.store / "changes").glob("[!.]*/state.json")
    firing, = (w.store / "firings").glob("[!.]*/state.json")
    return change, firing


@test
def changes_and_firings_that_were_changed_or_removed_are_named(w: World):
    for kind, path in zip(("change", "firing"), docketed(w)):
        name, text = path.parent.name, path.read_bytes()
        assert verify(w)["records"] == 2
        path.write_bytes(text.replace(b'"who":"watch', b'"who":"match').replace(b'"rule":"ship', b'"rule":"shop'))
        assert problems(w) == [(kind, name, "its record was changed since it was written")]
        path.unlink()
        assert problems(w) == [(kind, name, "its record is gone, and snap did not remove it")]
        path.write_bytes(text)
        head = verify(w)["record_head"]
        verify(w, "--head", head["digest"])


@test
def a_change_whose_writer_died_halfway_is_sound_and_a_changed_line_is_named(w: World):
    change, _ = docketed(w)
    log, = (p for p in (w.store / "records").iterdir() if len(p.name) == 16)
    lines = log.read_bytes().splitlines(keepends=True)
    told = [json.loads(line)["data"] for line in lines]
    mine = [i for i, d in enumerate(told) if d["name"] == change.parent.name]
    assert len(mine) > 2 and not told[mine[-2]]["done"] and told[mine[-1]]["done"], told
    assert told[mine[-2]]["sha256"] == hashlib.sha256(change.read_bytes()).hexdigest()
    # Killed behind the save: its second line is missing, and those of the firing that came later.
    log.write_bytes(b"".join(lines[:mine[-1]]))
    last = lines[mine[-1] - 1]
    (w.store / "records" / "head").write_text(
        f"{json.loads(last)['n']:016x} {1:016x} {hashlib.sha256(last).hexdigest()}\n")
    assert not [p for p in verify_any(w) if p[0] == "change"]
    log.write_bytes(log.read_bytes().replace(b'"of":"change"', b'"of":"chance"', 1))
    assert any(p[0] == "record entry" for p in problems(w))


def verify_any(w):
    got = w.snap("audit", "verify", "--json")
    return [(p["kind"], p["name"], p["problem"]) for p in got.json("snap.audit/1", status=got.status)["problems"]]


def is_waiting(pid):
    with open("/proc/locks") as f:
        return any("->" in line and "FLOCK" in line and f" {pid} " in line for line in f)


@test
def an_audit_waits_for_a_writer_and_complains_of_nothing_that_is_half_written(w: World):
    work(w)
    events = w.store / "events"
    lock = os.open(events, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(events / "head", events / "head.away")
        child = subprocess.Popen([SNAP, "audit", "verify"], cwd=w.project, env=w.env, stdout=subprocess.PIPE)
        until(lambda: is_waiting(child.pid) or child.poll() is not None)
        os.rename(events / "head.away", events / "head")
    finally:
        os.close(lock)
    out, _ = child.communicate(timeout=60)
    assert child.returncode == 0, out


def keys(w):
    """Of two people, and a list that allows one of them."""
    if not shutil.which("ssh-keygen"):
        raise Skip("ssh-keygen is missing")
    for who in ("anna", "eve"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", who, "-f", w.top / who], check=True)
    allowed = w.top / "allowed"
    allowed.write_text(f'anna@example.org namespaces="snapcow-audit" {(w.top / "anna.pub").read_text()}')
    return "--allowed-signers", str(allowed)


def sign(w, who="anna", status=0):
    return w.snap("audit", "sign", "--json", "--key", w.top / who).json("snap.audit/1", "signature", status=status)


@test
def what_somebody_signed_is_vouched_for_however_much_is_added(w: World):
    signers = keys(w)
    work(w)
    signed = sign(w)
    one = signed["signature"]
    assert one["signer"] is None and one["event_head"] == signed["event_head"] and one["record_head"] is None, one
    got = verify(w, *signers)["signature"]
    assert got == {**one, "signer": "anna@example.org"}, got
    assert verify(w)["signature"] is None
    w.ok("clone", "-n", "more")
    w.ok("run", "more", "--", "sh", "-c", "echo more > more")
    w.ok("promote", "more", "--yes")
    w.stop()
    later = verify(w, *signers)
    assert later["signature"] == got and later["receipt_head"]["number"] > got["receipt_head"]["number"], later
    text = w.ok("audit", "verify", *signers).out.decode()
    numbers = f"receipts {got['receipt_head']['number']} of {later['receipt_head']['number']}"
    assert "signed by anna@example.org at " in text and numbers in text, text
    # Another signer's word does not hide that of an allowed one.
    sign(w, "eve")
    assert verify(w, *signers)["signature"] == got
    for _ in range(17):
        sign(w)
    assert len(list((w.store / "audit").iterdir())) == 16
    assert verify(w, *signers)["signature"]["event_head"] == later["event_head"]


def rewrite_events(w):
    """Change the first event and compute the chain anew, as whoever may write to the store can."""
    path, = event_files(w)
    lines, prev = [], ""
    for event in map(json.loads, path.read_text().splitlines()):
        event.update(prev=prev, **({} if lines else {"kind": "forged"}))
        lines.append(json.dumps(event, separators=(",", ":")) + "\n")
        prev = hashlib.sha256(lines[-1].encode()).hexdigest()
    path.write_text("".join(lines))
    head = w.store / "events" / "head"
    words = head.read_text().split()
    words[[i for i, word in enumerate(words) if len(word) == 64][0]] = prev
    head.write_text(" ".join(words) + "\n")


@test
def a_chain_that_was_written_anew_fits_no_signature(w: World):
    signers = keys(w)
    work(w)
    assert problems(w, *signers) == [("signature", "-", "nobody signed what is recorded")]
    sign(w, "eve")
    (kind, _, why), = problems(w, *signers)
    assert kind == "signature" and "does not list the key that signed it" in why, why
    sign(w)
    verify(w, *signers)
    rewrite_events(w)
    verify(w)
    anew = "what was signed is not in the chain: it was written anew, or is no longer kept"
    assert problems(w, *signers) == [("signature", "events", anew)]
    # All receipts, with their chain: as if there had never been one.
    assert change_rows(w, "DELETE FROM ref WHERE kind IN (5, 9)") > 0
    assert verify(w)["receipts"] == 0
    assert problems(w, *signers) == [("signature", "receipts", anew), ("signature", "events", anew)]
    # Without the newest signature, the older one of nobody who counts is left.
    max((w.store / "audit").iterdir()).unlink()
    (kind, _, why), = problems(w, *signers)
    assert kind == "signature" and "does not list the key that signed it" in why, why


@test
def a_signature_that_was_changed_counts_no_more(w: World):
    signers = keys(w)
    work(w)
    one = sign(w)["signature"]
    file = w.store / "audit" / one["file"]
    text = file.read_text()
    for lie in (text.replace(one["event_head"]["digest"], "0" * 64), text.replace("records 0 -", "records 1 -"),
                text.replace("records 0 -", "records 0  -"), text.replace("snapcow audit 1", "snapcow audit 2"),
                text[:len(text) // 2], "", "\0" * 100_000):
        assert lie != text
        file.write_text(lie)
        found = problems(w, *signers)
        assert [p[:2] for p in found] == [("signature", one["file"])], (lie[:300], found)
    file.write_text(text)
    verify(w, *signers)
    file.rename(file.with_name("7" + one["file"][1:]))
    assert "it is no signature" in problems(w, *signers)[0][2]


@test
def what_was_changed_is_not_signed(w: World):
    signers = keys(w)
    work(w)
    assert change_rows(w, "DELETE FROM ref WHERE kind = 9 AND name = ?", b"0000000000000002") == 1
    got = sign(w, status=12)
    assert got["problems"] and got["signature"] is None and not (w.store / "audit").exists(), got
    w.snap("audit", "sign").fails(2, "needs --key")
    w.snap("audit", "sign", "--key", w.top / "anna", *signers).fails(2, "is for 'audit verify'")
    w.snap("audit", "verify", "--key", w.top / "anna").fails(2, "is for 'audit sign'")
    w.snap("audit", "verify", "--allowed-signers", w.top / "nowhere").fails(4, "nowhere")
    w.snap("audit", "what").fails(2, "audit sign")


@test
def a_key_that_cannot_sign_leaves_no_file(w: World):
    keys(w)
    work(w)
    w.snap("audit", "sign", "--key", w.top / "nobody").fails(4, "nobody")
    (w.top / "broken").write_text("no key\n")
    w.snap("audit", "sign", "--key", w.top / "broken").fails(1, "signing with")
    (w.top / "bin").mkdir()
    w.snap("audit", "sign", "--key", w.top / "anna", env={"PATH": str(w.top / "bin")}).fails(13, "ssh-keygen")
    assert not (w.store / "audit").exists()


if __name__ == "__main__":
    sys.exit(main())

"""check --repair: what comes back, from where, what is lost, and that nothing else changes."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

from snaptest import Skip, World, flip, main, needs_fuse, test


def mounted(w, name):
    """A clone in use; where it is."""
    needs_fuse()
    return Path(w.ok("-q", "clone", "-n", name).out.decode().strip())


def repair(w, status=0, **more):
    got = w.snap("check", "--repair", "--json", **more).json("snap.check/1", "repaired", "errors",
                                                             status=status)
    return got["repaired"], got["errors"]


def change(w, file, sql, *values):
    """Behind the store's back, also while it is in use; the number of rows that changed."""
    with contextlib.closing(sqlite3.connect(w.store / file, timeout=30)) as db:
        n = db.execute(sql, values).rowcount
        db.commit()
    return n


def spoil(w, content):
    """Damage the chunk that holds these bytes."""
    with contextlib.closing(sqlite3.connect(w.store / "chunks.db", timeout=30)) as db:
        rows = [(seq, data) for seq, data in db.execute("SELECT seq, data FROM chunk")
                if content[:64] in data]
        assert len(rows) == 1, len(rows)
        (seq, data), = rows
        db.execute("UPDATE chunk SET data = ? WHERE seq = ?",
                   (data[:-1] + bytes([data[-1] ^ 1]), seq))
        db.commit()


def refs(w):
    with contextlib.closing(sqlite3.connect(w.store / "meta.db")) as db:
        return db.execute("SELECT * FROM ref ORDER BY kind, name").fetchall()


def aside(w):
    return sorted(p.name for p in (w.store / "damaged").glob("*"))


@test
def a_clone_goes_though_the_record_of_a_snapshot_is_damaged(w: World):
    needs_fuse()
    damaged = w.take()
    w.ok("clone", "-n", "c")
    w.ok("snapshot", "c")
    w.stop()
    n = change(w, "meta.db", "UPDATE ref SET value = CAST(substr(value, 1, 9) AS BLOB) WHERE name = CAST(? AS BLOB)",
               damaged)
    assert n == 1, n
    done = w.ok("rm", "c")
    assert b"removed  c" in done.out and b"its snapshots stay" in done.err, done
    assert not (w.store / "clones/c").exists()
    w.snap("rm", "c").fails(4)


# --- what comes back ------------------------------------------------------------------------

@test
def what_the_project_still_has_comes_back_in_old_snapshots(w: World):
    blob = os.urandom(200_000)
    (w.project / "src" / "blob").write_bytes(blob)
    old = w.take()
    (w.project / "README.md").write_text("second\n")
    w.take()
    w.stop()
    before = refs(w)
    flip(w.store / "chunks.db", blob[70_000:70_064])
    w.snap("show", f"{old}:src/blob").fails(12)
    w.snap("check").ends(12)
    repaired, errors = repair(w)
    assert repaired == {"mended": 0, "restored": 1, "set_aside": 1} and errors == [], repaired
    assert w.ok("show", f"{old}:src/blob").out == blob
    assert w.ok("show", f"{old}:README.md").out == b"first\n"
    w.ok("check")
    assert refs(w) == before
    names = aside(w)
    assert len(names) == 1 and names[0].startswith("chunk-"), names
    file = w.store / "damaged" / names[0]
    assert file.stat().st_mode & 0o777 == 0o600 and file.stat().st_size > 60_000
    assert repair(w) == ({"mended": 0, "restored": 0, "set_aside": 0}, [])


@test
def directories_and_attributes_come_back_too(w: World):
    (w.project / "deep" / "er").mkdir(parents=True)
    (w.project / "deep" / "er" / "file").write_text("x" * 300)
    os.setxattr(w.project / "README.md", "user.note", b"kept")
    first = w.take()
    w.stop()
    # Every tree, recipe and attribute set of it, the root too.
    n = change(w, "meta.db", "UPDATE object SET data = substr(data, 1, length(data) - 1)")
    w.snap("check").ends(12)
    repaired, _ = repair(w)
    assert repaired["set_aside"] == repaired["restored"] == n, (n, repaired)
    assert w.ok("show", f"{first}:deep/er/file").out == b"x" * 300
    w.ok("check")


@test
def what_is_right_but_for_its_checksum_is_mended(w: World):
    w.take()
    w.stop()
    assert change(w, "chunks.db", "UPDATE chunk SET sum = sum + 1") == 2
    text = w.ok("check", "--repair").out.decode()
    assert "mended   2 objects whose content was right\n" in text, text
    assert text.endswith(": no damage\n") and "aside" not in text, text
    assert not aside(w)
    w.ok("check")


@test
def people_are_told_what_came_back_and_from_where(w: World):
    blob = os.urandom(4000)
    (w.project / "src" / "blob").write_bytes(blob)
    old = w.take()
    w.stop()
    flip(w.store / "chunks.db", blob[100:164])
    text = w.ok("check", "--repair").out.decode()
    assert f": from project '{w.project}'\n         snapshot {old}:src/blob\n" in text, text
    assert f"aside    1 damaged object, in '{w.store}/damaged'\n" in text, text
    assert text.endswith(": no damage\n"), text
    assert w.ok("check", "--repair", "-q").out == b""


@test
def the_next_snapshot_does_not_rely_on_what_is_gone(w: World):
    """Signatures say that a file is as it was and in the store; it is not, until it is read."""
    blob = os.urandom(4000)
    (w.project / "blob").write_bytes(blob)
    w.take()
    w.stop()
    flip(w.store / "chunks.db", blob[100:164])
    away = w.top / "away"
    w.project.rename(away)
    _, errors = repair(w, status=12, cwd=w.top)
    assert len(errors) == 1
    away.rename(w.project)
    new = w.take()
    assert w.ok("show", f"{new}:blob").out == blob
    w.ok("check")


@test
def every_project_of_the_store_is_asked(w: World):
    blob = os.urandom(4000)
    (w.project / "blob").write_bytes(blob)
    first = w.take()
    other = w.top / "other"
    other.mkdir()
    (other / "copy").write_bytes(blob)
    w.ok("snapshot", cwd=other)
    (w.project / "blob").unlink()
    gone = w.top / "gone"
    gone.mkdir()
    w.ok("snapshot", cwd=gone)
    w.stop()
    flip(w.store / "chunks.db", blob[100:164])
    gone.rmdir()
    done = w.ok("check", "--repair")
    assert f"from project '{other}'\n" in done.out.decode(), str(done)
    assert f"nothing came back from project '{gone}'" in done.err.decode(), str(done)
    assert w.ok("show", f"{first}:blob").out == blob


# --- what is lost ---------------------------------------------------------------------------

@test
def what_nobody_has_is_lost_by_name_and_the_way_out_is_told(w: World):
    blob = os.urandom(4000)
    (w.project / "src" / "blob").write_bytes(blob)
    old = w.take()
    (w.project / "src" / "blob").unlink()
    w.stop()
    before = refs(w)
    flip(w.store / "chunks.db", blob[100:164])
    repaired, errors = repair(w, status=12)
    assert repaired == {"mended": 0, "restored": 0, "set_aside": 1}, repaired
    assert len(errors) == 1 and "missing" in errors[0]["why"], errors
    assert errors[0]["paths"] == [f"snapshot {old}:src/blob"], errors
    assert refs(w) == before
    text = w.snap("check", "--repair").ends(12).out.decode()
    assert f"snapshot {old}:src/blob\n" in text and "snapcow gc --keep-last 1" in text, text
    assert w.ok("show", f"{old}:README.md").out == b"first\n"
    w.snap("show", f"{old}:src/blob").fails(12)

    # The way out that it tells.
    w.take()
    w.ok("gc", "--keep-last", "1")
    w.ok("check")


@test
def what_gets_back_into_the_project_comes_back_with_the_next_repair(w: World):
    blob = os.urandom(4000)
    (w.project / "blob").write_bytes(blob)
    old = w.take()
    (w.project / "blob").unlink()
    w.stop()
    flip(w.store / "chunks.db", blob[100:164])
    repair(w, status=12)
    (w.project / "found again").write_bytes(blob)
    repaired, _ = repair(w)
    assert repaired == {"mended": 0, "restored": 1, "set_aside": 0}, repaired
    assert w.ok("show", f"{old}:blob").out == blob


# --- beside others --------------------------------------------------------------------------

@test
def a_mounted_clone_goes_on_and_reads_what_came_back(w: World):
    blob = os.urandom(4000)
    (w.project / "blob").write_bytes(blob)
    old = w.take()
    path = mounted(w, "work")
    stop, wrote, failed = threading.Event(), [], []

    def write():
        try:
            while not stop.is_set() or not wrote:
                with open(path / "log", "ab") as log:
                    log.write(b"%08d" % len(wrote))
                    os.fsync(log.fileno())
                wrote.append(None)
        except OSError as e:
            failed.append(e)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        spoil(w, blob)
        repaired, errors = repair(w)
    finally:
        stop.set()
        writer.join()
    assert not failed and repaired["set_aside"] == 1 and errors == [], (failed, repaired, errors)
    assert (path / "blob").read_bytes() == blob
    assert (path / "log").read_bytes() == b"".join(b"%08d" % i for i in range(len(wrote)))
    assert w.ok("show", f"{old}:blob").out == blob
    w.ok("check")
    w.stop()
    w.ok("check")


@test
def what_only_a_mounted_clone_has_in_memory_comes_back(w: World):
    blob = os.urandom(4000)
    (w.project / "blob").write_bytes(blob)
    old = w.take()
    path = mounted(w, "work")
    (w.project / "blob").unlink()
    spoil(w, blob)
    (path / "again").write_bytes(blob)
    _, errors = repair(w)
    assert errors == []
    assert w.ok("show", f"{old}:blob").out == blob
    w.ok("check")


@test
def a_database_that_is_itself_damaged_is_left_as_it_is(w: World):
    blob = os.urandom(4000)
    (w.project / "blob").write_bytes(blob)
    w.take()
    w.stop()
    flip(w.store / "chunks.db", blob[100:164])
    with open(w.store / "chunks.db", "r+b") as f:
        f.seek(36)  # how many pages are free
        f.write((7).to_bytes(4, "big"))
    done = w.snap("check", "--repair").ends(12)
    assert "nothing was repaired" in done.err.decode() and b"\ndamaged  " in done.out, str(done)
    assert not aside(w)
    assert w.snap("check", "--json").json("snap.check/1", status=12)["errors"]


@test
def who_cannot_write_the_store_cannot_repair_it(w: World):
    if os.geteuid() != 0:
        raise Skip("only root can bind a directory")
    w.take()
    w.stop()
    point = w.top / "fixed"
    point.mkdir()
    subprocess.run(["mount", "--bind", w.store, point], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", point], check=True)
        w.snap("--store", str(point), "check", "--repair").fails(1)
    finally:
        subprocess.run(["umount", point], check=True)
    w.ok("check")


if __name__ == "__main__":
    sys.exit(main())

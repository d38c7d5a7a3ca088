"""Bits that flip in the store, as on a bad disk, with nobody at work on it.

Every flip is known, so it is known what must be noticed. What cannot come back is put back from
a copy afterwards, so that a torture can go on.
"""

import contextlib
import shutil
import sqlite3

FILES = ("meta.db", "meta.db-wal", "chunks.db", "chunks.db-wal")
KINDS = ("chunk", "object", "sum", "byte")


def save(store, place):
    """Copies of the databases."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name in FILES:
        if (store / name).exists():
            shutil.copy2(store / name, place / name)


def restore(store, place):
    for name in (*FILES, "meta.db-shm", "chunks.db-shm"):
        (store / name).unlink(missing_ok=True)
    for file in place.iterdir():
        shutil.copy2(file, store / file.name)
    shutil.rmtree(store / "damaged", ignore_errors=True)


def flip(store, kind, rng):
    """Do it; what was done, in words, or None if there is nothing to damage."""
    if kind == "byte":
        return flip_byte(store, rng)
    table, file = ("object", "meta.db") if kind == "object" else ("chunk", "chunks.db")
    with contextlib.closing(sqlite3.connect(store / file, timeout=30)) as db:
        rows = [r for r, in db.execute(f"SELECT rowid FROM {table} WHERE length(data) > 0")]
        if not rows:
            return None
        row = rng.choice(rows)
        if kind == "sum":
            db.execute("UPDATE chunk SET sum = sum + 1 WHERE rowid = ?", (row,))
            what = "its sum"
        else:
            data, = db.execute(f"SELECT data FROM {table} WHERE rowid = ?", (row,)).fetchone()
            at, bit = rng.randrange(len(data)), 1 << rng.randrange(8)
            spoilt = data[:at] + bytes([data[at] ^ bit]) + data[at + 1:]
            db.execute(f"UPDATE {table} SET data = ? WHERE rowid = ?", (spoilt, row))
            what = f"byte {at} of {len(data)}"
        db.commit()
    return f"{table} {row}: {what}"


def flip_byte(store, rng):
    """Anywhere in a file: a row, a page of SQLite's own, or what nobody uses."""
    path = store / rng.choice(("meta.db", "chunks.db"))
    with open(path, "r+b") as f:
        f.seek(0, 2)
        at = rng.randrange(f.tell())
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ (1 << rng.randrange(8))]))
    return f"{path.name} at {at}"

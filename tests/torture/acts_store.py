"""What a worker asks of the store: reading back, comparing, cleaning."""

import hashlib
import os

from merge import changed
from scene import Broken

SNAPSHOTS_KEPT = 20
MEMORY_MAX = 150  # snapshots that a worker remembers


def unescape(name):
    """The bytes of a name, by the rule that base/json.h gives."""
    out, rest = b"", name
    while "\\" in rest:
        before, _, rest = rest.partition("\\")
        out += before.encode() + bytes.fromhex(rest[1:3])
        rest = rest[3:]
    return out + rest.encode()


class StoreActs:
    def some_known(self):
        known = [s for s in self.snapshots if s.picture is not None]
        return self.rng.choice(known) if known else None

    def act_read(self):
        if self.snapshots:
            self.read(self.rng.choice(self.snapshots))
        while len(self.snapshots) > MEMORY_MAX:
            self.snapshots.pop(self.rng.randrange(MEMORY_MAX // 2))

    def act_show(self):
        """One file as it was, without cowfsd."""
        snapshot = self.some_known()
        files = sorted(p for p, n in snapshot.picture.items() if n[0] == "file") if snapshot else None
        if not files:
            return
        path = self.rng.choice(files)
        result = self.snap("show", os.fsencode(snapshot.name) + b":" + path, ok=(0, 4))
        if result.status == 4:
            return self.missing(snapshot, result)
        if hashlib.sha256(result.out).hexdigest()[:32] != snapshot.picture[path][3]:
            raise Broken(f"snapshot {snapshot.name}:{path!r} is shown with other bytes")
        self.counts.readings += 1

    def missing(self, snapshot, result):
        if not snapshot.may_be_gone(self.board.passes):
            raise Broken(f"snapshot {snapshot.name} is gone\n{result}")
        self.forget(snapshot)

    def act_diff(self):
        """What it tells is what differs."""
        a, b = self.some_known(), self.some_known()
        if not a:
            return
        result = self.snap("diff", "--json", "--no-renames", a.name, b.name, ok=(0, 4))
        if result.status == 4:
            if not (a.may_be_gone(self.board.passes) or b.may_be_gone(self.board.passes)):
                raise Broken(f"a snapshot is gone\n{result}")
            return
        got = result.json()
        files = {unescape(f["path"]) for f in got["files"]}
        told = files | {unescape(f["path"]) for f in got["metadata"]}
        differ = changed(a.picture, b.picture)
        must = {p for p in differ if self.content(a, p) != self.content(b, p)}
        if must - told or files - differ:
            raise Broken(f"not told: {sorted(must - told)[:5]}; told, and equal: "
                         f"{sorted(files - differ)[:5]}\n{result}")

    def content(self, snapshot, path):
        """Of what a patch could tell."""
        what = snapshot.picture.get(path)
        return None if what is None or what[0] == "dir" else (what[0], what[3])

    def act_tag(self):
        snapshot = self.some_known()
        if not snapshot or snapshot.tag:
            return
        tag = self.name("t")
        result = self.snap("tag", tag, snapshot.name, ok=(0, 4))
        if result.status == 4:
            return self.missing(snapshot, result)
        snapshot.tag = tag

    def act_gc(self):
        self.snap("gc", "--json", ok=(0, 11), kill=True)
        self.counts.gcs += 1

    def act_forget(self):
        """Old snapshots go, of every project in the store."""
        self.board.passes += 1
        try:
            self.snap("gc", "--json", "--keep-last", str(SNAPSHOTS_KEPT), ok=(0, 11), kill=True)
        finally:
            self.board.passes += 1
        self.counts.gcs += 1

    def act_check(self):
        got = self.snap("check", "--json", ok=(0, 11))
        if got.status == 0 and got.json()["errors"]:
            raise Broken(f"damaged, and nobody damaged it\n{got}")
        self.counts.checks += 1

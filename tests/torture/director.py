"""The director disturbs the workers (deaths of cowfsd, a full disk, flipped bits) and watches cowfsd."""

import contextlib
import os
import random
import time

import damage
from acts_store import unescape
from scene import Broken
from worker import DAMAGED, DOUBT, EXACT, PHASES, QUIESCE

PHASE_S = 600  # after which a worker counts as hung
RSS_MAX = {"asan": 1 << 30, "tsan": 3 << 30, "none": 512 << 20}
FDS_MAX, FDS_OF_A_CLONE = 120, 12
EVENTS = {"death": 12, "full": 2, "flip": 2, "rest": 2}
FILL_PIECE = 1 << 20


class Director:
    def __init__(self, seed, scene, board, workers):
        self.rng = random.Random(f"{seed}/director")
        self.scene, self.board, self.workers = scene, board, workers
        self.deaths = self.fulls = self.flips = self.lost = self.most_fds = self.most_rss = 0
        self.next, self.first = time.monotonic() + 2, ["death", "flip", "full"]

    def step(self):
        """Called again and again; does something now and then."""
        self.watch()
        if time.monotonic() < self.next:
            return
        event = self.first.pop(0) if self.first else \
            self.rng.choices(list(EVENTS), list(EVENTS.values()))[0]
        getattr(self, event)()
        self.next = time.monotonic() + self.rng.choice((0.3, 1, 2, 4, 8))

    def rest(self):
        """Nothing, for a while, so that some daemons grow old."""
        self.next = time.monotonic() + 20

    def death(self):
        self.board.deaths += 1
        try:
            self.deaths += self.scene.kill_daemon()
        finally:
            self.board.deaths += 1

    def full(self):
        """Somebody else fills the disk of the store."""
        if not self.scene.root:
            return
        self.board.full += 1
        filler = self.scene.disk / "filler"
        try:
            with open(filler, "wb", buffering=0) as f:
                with contextlib.suppress(OSError):
                    while True:
                        f.write(bytes(FILL_PIECE))
                with contextlib.suppress(OSError):
                    f.truncate(max(0, f.tell() - self.rng.choice((0, 1 << 16, 1 << 22))))
            end = time.monotonic() + self.rng.uniform(1, 5)
            if self.rng.random() < 0.3:
                time.sleep(0.5)
                self.death()
            time.sleep(max(0, end - time.monotonic()))
        finally:
            filler.unlink(missing_ok=True)
            self.board.full_end = int(time.monotonic())
            self.board.full += 1
        self.fulls += 1

    # --- bits that flip ---------------------------------------------------------------------

    def flip(self):
        self.to_phase(QUIESCE)
        if self.board.stop:
            return
        try:
            self.spoil(self.rng.choice(damage.KINDS))
        finally:
            if not self.board.failed:
                self.board.phase += PHASES - self.board.phase % PHASES
        self.flips += 1

    def spoil(self, kind):
        scene, place = self.scene, self.scene.top / "saved"
        self.stop_daemon()
        damage.save(scene.store, place)
        what = damage.flip(scene.store, kind, self.rng)
        self.say(f"flip: {what}")
        found = self.check()
        if found.status == 0:
            if kind != "byte":
                raise Broken(f"check does not notice: {what}\n{found}")
            self.to_phase(EXACT)  # nobody needs that byte
        else:
            if found.status != DAMAGED and kind != "byte":
                raise Broken(f"check does not say that the store is damaged: {what}\n{found}")
            self.to_phase(DOUBT)
            if kind != "byte":
                self.told(found)
                self.repair(what)
        self.stop_daemon()
        damage.restore(scene.store, place)
        self.to_phase(EXACT)

    def repair(self, what):
        """What can be had comes back; what is lost is reported, and nothing else."""
        found = self.check("--repair")
        if found.status == 0:
            self.to_phase(EXACT)
        elif found.status == DAMAGED:
            self.lost += 1
            self.to_phase(DOUBT)
            self.told(found)
        else:
            raise Broken(f"repair fails: {what}\n{found}")

    def check(self, *words):
        found = self.scene.snap("check", "--json", *words, cwd=self.scene.projects[0])
        self.say(f"check {' '.join(words)}: {found.status} {found.out[:500]!r} {found.err[:300]!r}")
        return found

    def told(self, found):
        """Whatever a worker could not read was named."""
        named = {unescape(p) for e in found.json()["errors"] for p in e["paths"]}
        more = any(e.get("truncated") or len(e["paths"]) >= 10 for e in found.json()["errors"])
        for number in range(self.workers):
            for lost in (self.scene.top / f"lost-{number}").read_bytes().split(b"\0")[:-1]:
                if not more and not covered(lost, named):
                    raise Broken(f"lost, and not named: {lost!r}\n{found}")

    def stop_daemon(self):
        done = self.scene.snap("stop", "--force", cwd=self.scene.projects[0])
        if done.status not in (0, 4) or self.scene.daemon():
            raise Broken(f"cowfsd does not stop\n{done}")

    def to_phase(self, phase):
        """Wait until every worker is there."""
        number = self.board.phase // PHASES * PHASES + PHASES + phase
        self.board.phase = number
        end = time.monotonic() + PHASE_S
        while not self.board.stop and any(ack.phase != number for ack in self.board.acks):
            if time.monotonic() > end:
                raise Broken(f"a worker does not come to phase {phase}")
            time.sleep(0.01)
        if self.board.failed:
            raise Broken("a worker failed")

    # --- cowfsd itself ---------------------------------------------------------------------

    def watch(self):
        """Its descriptors and memory stay within bounds."""
        use = self.scene.use()
        if not use:
            return
        fds, rss = use
        self.most_fds, self.most_rss = max(self.most_fds, fds), max(self.most_rss, rss)
        clones = len(list((self.scene.store / "clones").glob("*")))
        if fds > FDS_MAX + FDS_OF_A_CLONE * clones:
            raise Broken(f"cowfsd has {fds} descriptors with {clones} clones mounted")
        if rss > RSS_MAX[self.scene.sanitizer]:
            raise Broken(f"cowfsd has {rss >> 20} MiB of memory")

    def say(self, text):
        with open(self.scene.top / "director.log", "a") as f:
            print(f"{time.monotonic():.3f}", text, file=f)


def covered(lost, named):
    """Whether that path, or a directory above it, was named."""
    what, _, path = lost.partition(b":")
    above = {what + b":", what}
    while path:
        above.add(what + b":" + path)
        path = os.path.dirname(path)
    return bool(above & named)

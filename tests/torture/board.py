"""What all processes of a torture know of each other: counters in shared memory.

Whoever disturbs the world makes a counter odd before and even after, so that anybody can tell
whether what failed had a reason: disturbed() compares two moments.
"""

import mmap
import struct
import time

COUNTS = ["steps", "commands", "snapshots", "readings", "promotions", "conflicts", "rollbacks", "undos",
          "rebases", "runs", "tries", "gcs", "checks", "killed", "interrupted", "unjudged"]
FIXED = ["stop", "phase", "deaths", "full", "full_end", "passes", "failed"]
GRACE_S = 20  # for which a disk that was full may be felt


class Slots:
    """Named numbers."""

    def __init__(self, names):
        self.__dict__["_at"] = {name: 8 * i for i, name in enumerate(names)}
        self.__dict__["_map"] = mmap.mmap(-1, 8 * len(names))

    def __getattr__(self, name):
        return struct.unpack_from("q", self._map, self._at[name])[0]

    def __setattr__(self, name, value):
        struct.pack_into("q", self._map, self._at[name], value)


class Board(Slots):
    def __init__(self, workers):
        super().__init__(FIXED)
        self.full_end = -GRACE_S
        self.__dict__["counts"] = [Slots(COUNTS) for _ in range(workers)]
        self.__dict__["acks"] = [Slots(["phase"]) for _ in range(workers)]

    def mark(self):
        return self.deaths, self.full

    def died_since(self, deaths):
        return self.deaths != deaths or deaths % 2 == 1

    def disturbed_since(self, mark):
        return self.died_since(mark[0]) or self.is_full() or self.full != mark[1]

    def is_full(self):
        """Now, or so lately that it may still be felt."""
        return self.full % 2 == 1 or time.monotonic() < self.full_end + GRACE_S

    def total(self, name):
        return sum(getattr(c, name) for c in self.counts)

"""What a worker knows of its clones and snapshots."""

import contextlib
import os

from script import Script
from tree import differs, part, picture, without

CANDIDATES_MAX = 400


class Snapshot:
    """An id, and what it must hold for ever. With several candidates, the first reading decides."""

    def __init__(self, name, candidates, writers=(), clone=None, base=None, passes=0):
        self.name, self.candidates, self.writers = name, candidates, list(writers)
        self.clone, self.base, self.passes, self.tag = clone, base, passes, None
        self.picture = candidates[0] if len(candidates) == 1 and not self.writers else None

    def judge(self, found):
        """Why `found` is not what was kept; None if it is."""
        if self.picture is not None:
            return differs(found, self.picture)
        why = judge(found, self.candidates, self.writers)
        if why is None:
            self.picture, self.candidates, self.writers = found, [], []
        return why

    def may_be_gone(self, passes):
        return self.tag is None and passes != self.passes


class Clone:
    """A clone, what it holds, and what it may hold should cowfsd die now."""

    def __init__(self, name, path, base, state, seed, quota=False, notes=True):
        self.name, self.path, self.base, self.state, self.quota = name, path, base, state, quota
        self.script = Script(seed, notes=notes)
        self.line = [picture(state)]  # what a death may leave, the newest last
        self.doubt = []  # paths that a step which failed may have left in between
        self.unsure = False  # something was begun, and nobody knows whether it was done
        self.anything = False  # and nobody can say what it would have led to
        self.extra, self.extra_base = [], None  # what it would have led to, and the base with it
        self.promoted = False
        self.fd, self.seen, self.writers = -1, -1, []

    def lose_base(self):
        """Its base has moved with a promotion, or was another's; a rebase makes it known again."""
        self.base, self.promoted = None, True

    def picture(self):
        return self.line[-1]

    def become(self, state):
        """It holds this, and a death would leave it."""
        self.state, self.line = state, [picture(state)]
        self.doubt, self.unsure, self.anything, self.extra = [], False, False, []

    def step(self, state, durable):
        self.state = state
        self.line.append(picture(state))
        if durable:
            self.line = self.line[-1:]

    def begin(self, after, base):
        """Something begins that will lead there, if it is done; None: nobody can tell."""
        self.unsure, self.extra_base = True, base
        if after is None:
            self.anything = True
        else:
            self.extra = [after]

    def choose_base(self, found, before):
        """After something of which nobody knows whether it was done."""
        if self.anything:
            self.base = None
        elif self.extra and self.extra_base != self.base:
            done, not_done = found in self.extra, found in before
            self.base = self.extra_base if done and not not_done else None if done else self.base

    def hold(self):
        """Keep to the mount that is there now."""
        self.leave()
        self.fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)

    def leave(self):
        if self.fd >= 0:
            with contextlib.suppress(OSError):
                os.close(self.fd)
        self.fd = -1


def judge(found, candidates, writers, ignore=()):
    """Why this is none of those with a prefix of each writer's steps; None if it is one."""
    folders = [w.folder for w, _, _ in writers]
    for w, least, most in writers:
        if w.folder not in found:
            return f"the folder of a writer is missing: {w.folder!r}"
        why = w.finds(part(found, w.folder), least, most)
        if why:
            return f"{w.folder!r}: {why}"
    rest, first = without(found, folders), None
    for want in reversed(candidates):
        why = differs(rest, without(want, folders), ignore)
        if why is None:
            return None
        first = first or why
    return f"none of {len(candidates)} states; compared with the newest {first}"

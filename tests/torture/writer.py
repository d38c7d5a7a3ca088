"""A process that writes into a folder of its own in a clone, beside everything else.

What it does follows from its seed, so the directory alone shows which prefix of it was done. It
keeps to the mount that it began on: when that dies, it gets an error and ends.
"""

import contextlib
import errno
import json
import os
import signal

from board import Slots
from script import Script, apply, perform, touched
from tree import differs, picture

STEPS_MAX = 400


class Writer:
    def __init__(self, top, folder, seed, notes):
        self.folder, self.seed, self.notes = os.fsencode(folder), seed, notes
        self.slots = Slots(["stop", "done", "synced"])
        self.end = None  # what it said last, once it has ended
        back, front = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(back)
            self.work(top, front)
        os.close(front)
        self.pipe = back

    def work(self, top, pipe):
        said = {"errno": 0, "doubt": []}
        with contextlib.suppress(BaseException):
            signal.alarm(600)  # nobody is to wait for it for ever
            os.umask(0o022)
            try:
                os.chdir(os.path.join(os.fsencode(top), self.folder))
                os.closerange(3, pipe)  # other clones are not to be in use because of it
                os.closerange(pipe + 1, 1024)
                self.steps(said)
            except OSError as e:
                said["errno"] = e.errno
            os.write(pipe, json.dumps(said).encode())
        os._exit(0)

    def steps(self, said):
        script, state = Script(self.seed, notes=self.notes), {}
        while not self.slots.stop and self.slots.done < STEPS_MAX:
            step = script.next(state)
            said["doubt"] = [p.hex() for p in touched(state, step)]
            perform(step)
            state = apply(state, step)
            self.slots.done += 1
            if step[0] == "fsync":
                self.slots.synced = self.slots.done
        said["doubt"] = []

    def stop(self):
        """End it; the errno that it met, or 0."""
        if self.end is None:
            self.slots.stop = 1
            said = b""
            while piece := os.read(self.pipe, 65536):
                said += piece
            os.close(self.pipe)
            os.waitpid(self.pid, 0)
            self.end = json.loads(said) if said else {"errno": errno.EPIPE, "doubt": []}
        return self.end["errno"]

    def kill(self):
        if self.end is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.stop()

    def doubt(self):
        """Paths that its last step may have left in between."""
        if self.end and self.end["errno"] == errno.ENOSPC:
            return [bytes.fromhex(p) for p in self.end["doubt"]]
        return []

    def finds(self, found, least, most):
        """Why what is in its folder is no prefix of that many steps; None if it is one."""
        script, state = Script(self.seed, notes=self.notes), {}
        why, earlier = f"nothing between {least} and {most} steps", ""
        for number in range(most + 1):
            why = differs(found, picture(state), self.doubt())
            if why is None:
                if number >= least:
                    return None
                earlier = f", but of {number}"
            state = apply(state, script.next(state))
        return f"no prefix of {least} to {most} steps{earlier}; after {most}: {why}"

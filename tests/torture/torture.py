"""A torture from its beginning to its end: who takes part, for how long, and what came of it."""

import contextlib
import os
import signal
import sys
import tempfile
import time
import traceback

from board import COUNTS, Board
from director import Director
from scene import Broken, Scene
from worker import Worker

PROGRESS_S = 10
LEAVE_S = 20  # for a process that is to end and waits for a processor
END_S = 900  # for which workers may look through what they have


class Torture:
    def __init__(self, seed, minutes, workers, program, sanitizer, place=None):
        self.seed, self.seconds, self.workers = seed, minutes * 60, workers
        top = tempfile.mkdtemp(prefix="snap-torture-", dir=place)
        self.scene = Scene(top, program, sanitizer, workers)
        self.board = Board(workers)
        self.director = Director(seed, self.scene, self.board, workers)
        self.pids, self.why, self.began = {}, [], time.monotonic()

    def run(self):
        """Whether everything held."""
        try:
            self.start()
            self.disturb()
            self.finish()
        except (Exception, KeyboardInterrupt):
            self.why.append(traceback.format_exc())
        self.board.failed, self.board.stop = int(bool(self.why)) or self.board.failed, 1
        self.end_workers()
        if not self.why:
            self.attempt(self.look_back)
        else:
            self.attempt(self.scene.snap, "stop", "--force", cwd=self.scene.projects[0])
        self.attempt(self.scene.sanitizers_are_silent)
        self.say("summary: ")
        self.scene.close(keep=bool(self.why))
        return not self.why

    def attempt(self, act, *args, **more):
        try:
            act(*args, **more)
        except Exception:
            self.why.append(traceback.format_exc())

    def start(self):
        for number in range(self.workers):
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                os._exit(Worker(number, self.seed, self.scene, self.board).work())
            self.pids[pid] = number

    def disturb(self):
        end, said = time.monotonic() + self.seconds, time.monotonic()
        while time.monotonic() < end and not self.board.stop:
            self.director.step()
            self.scene.sanitizers_are_silent()
            if time.monotonic() - said >= PROGRESS_S:
                self.say()
                said = time.monotonic()
            time.sleep(0.05)

    def finish(self):
        """Undisturbed, everybody looks through what there is."""
        self.board.stop = 1
        end = time.monotonic() + END_S
        while self.reap():
            if time.monotonic() > end:
                self.scene.stacks()
                raise Broken(f"workers do not end: {sorted(self.pids.values())}")
            time.sleep(0.02)
        for number in range(self.workers):
            failed = self.scene.top / f"failed-{number}"
            if failed.exists():
                self.why.append(f"worker {number}:\n{failed.read_text()}")

    def reap(self):
        """Whether some still run."""
        for pid in list(self.pids):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                number = self.pids.pop(pid)
                if status and not (self.scene.top / f"failed-{number}").exists():
                    self.why.append(f"worker {number} ended with {os.waitstatus_to_exitcode(status)}")
        return bool(self.pids)

    def end_workers(self):
        end = time.monotonic() + 60
        while self.reap() and time.monotonic() < end:
            time.sleep(0.05)
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        for failed in sorted(self.scene.top.glob("failed-*")):
            text = f"worker {failed.name[7:]}:\n{failed.read_text()}"
            if text not in self.why:
                self.why.append(text)

    def look_back(self):
        """With everybody gone: a clean store, and nothing left."""
        scene, cwd = self.scene, self.scene.projects[0]
        clones = scene.snap("list", "--all", "--json", cwd=cwd).json()["clones"]
        if clones:
            raise Broken(f"clones are left: {[c['clone'] for c in clones]}")
        for words in (["gc", "--json"], ["check", "--json"], ["gc", "--json", "--keep-last", "1"],
                      ["check", "--json"], ["stop", "--force"]):
            result = scene.snap(*words, cwd=cwd)
            if result.status or b'"errors":[{' in result.out:
                raise Broken(str(result))
        scene.databases_are_sound()
        end = time.monotonic() + LEAVE_S
        while True:
            try:
                return scene.nothing_is_left({os.getpid(), 1})
            except Broken:
                if time.monotonic() > end:
                    raise
            time.sleep(0.2)

    def say(self, before=""):
        seconds = time.monotonic() - self.began
        d = self.director
        counts = ", ".join(f"{self.board.total(n)} {n}" for n in COUNTS)
        print(f"{before}{int(seconds) // 60}:{int(seconds) % 60:02} of {self.seconds / 60:g} min, "
              f"{self.workers} workers: {counts}; {d.deaths} deaths, {d.fulls} full disks, {d.flips} flips "
              f"({d.lost} with losses); cowfsd at most {d.most_fds} descriptors, {d.most_rss >> 20} MiB",
              flush=True)

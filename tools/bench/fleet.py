"""A queue on loopback, workers with stores of their own, and a small project whose state travels by a registry."""

import os
import signal
import subprocess
import time

from arena import Store
from servers import PATIENCE, Nats, Registry, missing

NEEDS = (Nats.name, Registry.name)


class Worker:
    """It takes tickets of one queue, `jobs` at once."""

    def __init__(self, fleet, name, queue, jobs):
        session, said = fleet.session, fleet.top / f"{name}.log"
        self.name = name
        self.store = Store(session.arena, session.snapcow, fleet.inner(f"store-{name}"))
        with open(said, "wb") as to:
            self.process = subprocess.Popen(
                [session.snapcow, "--json", "worker", "--queue", fleet.url(queue), "--remote", fleet.remote,
                 "--name", name, "--jobs", str(jobs)],
                cwd=fleet.top, env={**os.environ, **self.store.env}, stdin=subprocess.DEVNULL, stdout=to, stderr=to)
        session.arena.undo.callback(self.end)
        until = time.monotonic() + PATIENCE
        while b'"ready"' not in said.read_bytes():
            if self.process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"error: the worker does not start: {said.read_text(errors='replace')[-500:]}")
            time.sleep(0.02)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.store.end()


class Fleet:
    """`project` has been pushed: `manifest` is its state in `remote`."""

    def __init__(self, session, top):
        self.session, self.top, self.project = session, top, top / "project"
        self.project.mkdir()
        (self.project / "file").write_text("content\n")
        self.nats = Nats(session.arena, top / "nats")
        self.registry = session.once("registry", lambda: Registry(session.arena, session.arena.path / "registry"))
        self.remote = self.registry.address(session.number("bench/fleet"))
        session.store.snap("init", cwd=self.project)
        self.manifest = session.store.snap("push", f"{self.remote}:queue-bench", cwd=self.project)["manifest"]
        self.workers = []

    @staticmethod
    def missing():
        return missing(*NEEDS)

    def inner(self, name):
        """A path of ours, as the arena has it."""
        return (self.top / name).relative_to(self.session.arena.path)

    def url(self, queue):
        return f"{self.nats.url}/{queue}"

    def worker(self, name, queue, jobs):
        self.workers.append(Worker(self, name, queue, jobs))

    def experiment(self, queue, commands):
        """All of them as arms of one experiment; what it came to."""
        words = [word for i, command in enumerate(commands) for word in ("--arm", f"a{i}={command}")]
        told = self.session.store.snap("experiment", "--keep", "none", "--on", self.url(queue), "--remote", self.remote,
                                       *words, cwd=self.project)
        wrong = [arm for arm in told["arms"] if arm["exit_code"] != 0]
        if wrong or len(told["arms"]) != len(commands):
            raise SystemExit(f"error: {len(wrong)} of {len(told['arms'])} arms failed: {wrong[:1]}")
        return told

    def end(self):
        for one in (*self.workers, self.nats):
            one.end()

"""What `snap watch` costs while nothing happens, and how soon an action runs after a file was saved."""

import json
import os
import subprocess
import time

from row import OURS, at_most

RULES = 20
DEBOUNCE_MS = 50
IDLE_S = 60
TICKS = os.sysconf("SC_CLK_TCK")


class Watch:
    """One that follows rules on a project, in a configuration of its own."""

    def __init__(self, session, project):
        self.session, self.project = session, project
        config = session.arena.path / session.number("config")
        self.env = {**session.store.env, "XDG_CONFIG_HOME": str(config)}
        (config / "snapcow").mkdir(parents=True)
        where = f"project: {project}, budget: {{runs_per_hour: 100000}}"
        lines = [f"name: save, {where}, on: {{files: saved.c, debounce: {DEBOUNCE_MS}ms}}, run: date +%s%N"]
        lines += [f"name: files{i}, {where}, on: {{files: '*.none{i}'}}, run: 'true'" for i in range(RULES // 2 - 1)]
        lines += [f"name: time{i}, {where}, on: {{schedule: '03:{i:02}'}}, run: 'true'" for i in range(RULES // 2)]
        (config / "snapcow" / "watch.yaml").write_text("rules:\n" + "".join(f"  - {{{line}}}\n" for line in lines))
        self.pid = self.snap("watch", "start")["pid"]

    def snap(self, *words):
        done = subprocess.run([self.session.snapcow, *words, "--json"], cwd=self.project, env=self.env, check=True,
                              capture_output=True)
        return json.loads(done.stdout)

    def firings(self):
        return self.snap("watch", "log")["firings"]

    def cpu_ms(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / TICKS

    def resident_mib(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

    def save(self, text):
        """Milliseconds from a saved file to what its action did first, without the debounce."""
        before = len(self.firings())
        (self.project / "saved.c").write_text(text)
        saved = time.time_ns()
        while True:
            now = self.firings()
            if len(now) > before and now[0]["state"] == "done":
                break
            time.sleep(0.05)
        out = self.snap("logs", now[0]["run"])
        return (int(out["stdout"].split()[0]) - saved) / 1e6 - DEBOUNCE_MS


def watch(session):
    project = session.tree()
    session.store.snap("snapshot", cwd=project)
    w = Watch(session, project)
    idle = session.row(f"processor time with {RULES} rules and nothing to do", "ms a minute", at_most(120))
    memory = session.row("memory of the process", "MiB", at_most(30))
    latency = session.row("from a saved file to the first instruction of its action, without the debounce", "ms",
                          at_most(150))
    latency.notes.append(f"{session.opts.entries:,} entries; each save is captured")
    w.save("first\n")
    seconds = 5 if session.opts.quick else IDLE_S
    before = w.cpu_ms()
    time.sleep(seconds)
    idle.add(OURS, (w.cpu_ms() - before) * 60 / seconds)
    session.rounds("saves", {OURS: lambda n: latency.add(OURS, w.save(f"{n}\n"))}, [latency], sync=False)
    memory.add(OURS, w.resident_mib())
    w.snap("watch", "stop")


PARTS = {"watch": watch}

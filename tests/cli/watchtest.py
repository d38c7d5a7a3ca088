"""What tests of `snap watch` share: a clock that they drive, rules, and looking at what came of them."""

import os

from snaptest import until  # noqa: F401  (for the tests)

HOUR = 3600 * 10**9
MINUTE = HOUR // 60
START = 1_900_000_000 * 10**9  # 2030-03-17T17:46:40Z


def put(path, text="x\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def config(w, name, text):
    """Written at once: a process that reads it meanwhile never sees half of it."""
    path = w.home / ".config" / "snapcow" / name
    put(path.with_name(f".{name}.new"), text)
    os.rename(path.with_name(f".{name}.new"), path)


def rules(w, *lines, top=""):
    config(w, "watch.yaml", top + "rules:\n" + "".join(f"  - {{project: {w.project}, {line}}}\n" for line in lines))


def stages(w, *lines):
    config(w, "pipeline.yaml", "- stages:\n" + "".join(f"    - {line}\n" for line in lines))


class Clock:
    """A clock that the test drives."""

    def __init__(self, w, start=START):
        self.file, self.ns, self.booted, self.boots = w.home / "clock" / "now", start, 0, 0
        self.file.parent.mkdir()
        w.env["SNAPCOW_CLOCK"] = str(self.file)
        self.forward(0)

    def forward(self, ns):
        self.ns += ns
        new = self.file.with_name("new")
        new.write_text(f"{self.ns} {(self.ns - self.booted) // 10**6} {f'boot-{self.boots}' if self.boots else 'test'}")
        os.rename(new, self.file)

    def reboot(self):
        """The clock that nobody sets begins anew; a minute has passed, by the other one."""
        self.booted, self.boots = self.ns + MINUTE, self.boots + 1
        self.forward(MINUTE + MINUTE // 60)


def once(w):
    """Do what is due, and wait for it."""
    w.ok("watch", "start", "--once")


def status(w):
    return w.ok("watch", "status", "--json").json("snap.watch/1")


def firings(w, rule=None):
    """The oldest first."""
    got = w.ok("watch", "log", *([rule] if rule else []), "--json").json("snap.watch/1")
    return list(reversed(got["firings"]))


def results(w, rule=None):
    return [f["result"] for f in firings(w, rule)]


def rule_of(w, name):
    return next(r for r in status(w)["rules"] if r["rule"] == name)


def fire(w, rule, *more):
    return w.ok("watch", "fire", rule, *more, "--json").json("snap.watch/1")["firing"]

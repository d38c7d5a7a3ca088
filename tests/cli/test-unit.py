#!/usr/bin/env python3
"""The units that are installed, under a real systemd: cowfsd starts by its socket and comes back."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from managertest import with_manager
from snaptest import SNAP, World, gone, main, needs_fuse, test

SOURCE = Path(__file__).resolve().parents[2]
DEATHS = 3
DEATHS_MAX = 50  # five within ten seconds are too many
PATIENCE = 60  # seconds; that is for a machine with other work


def install_units(home):
    """The units as an installation has them, for the program under test."""
    folder = home / ".config" / "systemd" / "user"
    folder.mkdir(parents=True)
    for name in "snapcow-watch.service", "snapcow.service", "snapcow.socket":
        unit = (SOURCE / "tools" / "install" / f"{name}.in").read_text()
        assert "=@bindir@/snapcow " in unit
        (folder / name).write_text(unit.replace("@bindir@/snapcow", str(SNAP)))


def can_read(path):
    try:
        os.statvfs(path)  # that is asked every time; what was read before may be in the cache
        return path.read_text() == "first\n"
    except OSError:  # "Transport endpoint is not connected"
        return False


def ask(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def shown(name):
    return ask("systemctl", "--user", "show", "--value", "-p", name, "snapcow.service")


def systemctl(*words):
    return subprocess.run(["systemctl", "--user", *words], check=False, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE).returncode


def daemon():
    """The one that commands reach."""
    return str(json.loads(ask(SNAP, "--json", "start"))["pid"])


def make_clone():
    return Path(ask(SNAP, "-q", "clone", "-n", "try")) / "README.md"


def kill(pid):
    os.kill(int(pid), signal.SIGKILL)
    assert gone(int(pid), PATIENCE)  # until then it may still answer


# --- what the tests do beside the manager; each returns what it saw -----------------------------

def deaths():
    ask("systemctl", "--user", "start", "snapcow.socket")
    seen = {"before": shown("MainPID"), "deaths": [], "unit": {n: shown(n) for n in (
        "Restart", "RestartUSec", "MemoryMax", "Delegate")}}
    path = make_clone()
    seen["read"] = can_read(path)
    for _ in range(DEATHS):
        pid, begin = daemon(), time.monotonic()
        seen["named"] = Path("/proc", pid, "cmdline").read_bytes().split(b"\0")[0].decode()
        kill(pid)
        while not can_read(path) and time.monotonic() - begin < PATIENCE:
            time.sleep(0.005)
        seen["deaths"].append({"ms": round((time.monotonic() - begin) * 1000), "read": can_read(path),
                               "other": daemon() == shown("MainPID") != pid})
    return seen


def socket_after_a_daemon():
    path = make_clone()
    first = daemon()
    user = subprocess.Popen(["sleep", "600"], cwd=path.parent)
    seen = {"refused": systemctl("start", "snapcow.socket"), "goes_on": daemon() == first, "read": can_read(path)}
    user.kill()
    user.wait()
    seen["started"] = systemctl("start", "snapcow.socket")
    seen["unit_serves"] = daemon() == shown("MainPID") != first
    seen["first_is_gone"], seen["read_again"] = gone(int(first), PATIENCE), can_read(path)
    return seen


def more_deaths_than_systemd_allows():
    ask("systemctl", "--user", "start", "snapcow.socket")
    path = make_clone()
    for _ in range(DEATHS_MAX):
        pid = daemon()  # it serves: one that dies while starting mounts nothing again
        if pid != shown("MainPID"):
            break
        kill(pid)
    seen = {"state": shown("ActiveState"), "own": pid, "main": shown("MainPID"), "read": can_read(path)}
    systemctl("reset-failed", "snapcow.service")
    seen["started"] = systemctl("start", "snapcow.socket")
    seen["unit_serves"], seen["read_again"] = daemon() == shown("MainPID"), can_read(path)
    return seen


def watch():
    def of_watch(name):
        return ask("systemctl", "--user", "show", "--value", "-p", name, "snapcow-watch.service")

    def firings():
        return json.loads(ask(SNAP, "--json", "watch", "log"))["firings"]

    def status():
        return json.loads(ask(SNAP, "--json", "watch", "status"))

    def until(what):
        end = time.monotonic() + PATIENCE
        while not what() and time.monotonic() < end:
            time.sleep(0.02)
        return what()

    seen = {"none": systemctl("start", "--wait", "snapcow-watch.service")}
    until(lambda: of_watch("ActiveState") == "failed")
    seen["gives_up"] = of_watch("ActiveState"), of_watch("NRestarts")
    systemctl("reset-failed", "snapcow-watch.service")
    rules = Path.home() / ".config" / "snapcow" / "watch.yaml"
    rules.parent.mkdir(parents=True, exist_ok=True)
    rules.write_text(f"rules:\n  - {{name: a, project: {os.getcwd()}, on: fire, run: echo x > x, then: keep}}\n")
    seen["started"] = systemctl("start", "snapcow-watch.service")
    seen["follows"] = until(lambda: str(status()["pid"]) == of_watch("MainPID"))
    ask(SNAP, "watch", "fire", "a")
    seen["fired"] = until(lambda: [f["result"] for f in firings()] == ["kept"])
    seen["apart"] = daemon() == shown("MainPID")
    first = of_watch("MainPID")
    kill(first)
    seen["back"] = until(lambda: status()["running"] and str(status()["pid"]) == of_watch("MainPID") != first)
    seen["reloads"] = systemctl("reload", "snapcow-watch.service")
    last = of_watch("MainPID")
    seen["stopped"] = systemctl("stop", "snapcow-watch.service")
    seen["ended"] = gone(int(last), PATIENCE) and not status()["running"] and of_watch("ActiveState") == "inactive"
    seen["goes_on"] = daemon() == shown("MainPID")
    ask(SNAP, "rm", "--force", *[f["clone"] for f in firings()])
    return seen


def inside(project, what):
    os.chdir(project)
    print(json.dumps(globals()[what]()))
    subprocess.run([SNAP, "-q", "stop", "--force"], check=True, stderr=subprocess.PIPE)


# --- the tests ----------------------------------------------------------------------------------

def see(w, what):
    """What is seen where the units are installed, and a manager runs."""
    needs_fuse()
    install_units(w.home)
    del w.env["SNAPCOW_STORE"]  # the socket is that of the store in the home
    w.store = w.home / ".local" / "share" / "snapcow"
    done = with_manager(w, w.home, sys.executable, "-B", __file__, "--inside", w.project, what.__name__)
    assert done.returncode == 0, done.stderr.decode() + (w.top / "systemd.log").read_text()[-3000:]
    return json.loads(done.stdout)


@test
def its_socket_starts_it_and_a_dead_one_is_back_with_its_mounts(w: World):
    seen = see(w, deaths)
    assert seen["before"] == "0" and seen["read"] and seen["named"] == "cowfsd", seen
    assert seen["unit"]["Restart"] == "on-failure" and seen["unit"]["RestartUSec"] == "100ms", seen
    assert seen["unit"]["Delegate"] == "yes" and re.fullmatch(r"\d+", seen["unit"]["MemoryMax"]), seen
    assert all(d["read"] and d["other"] for d in seen["deaths"]), seen
    print(f"# readable again after {', '.join(str(d['ms']) for d in seen['deaths'])} ms")


@test
def its_socket_takes_over_from_a_daemon_that_a_command_started_unless_that_is_in_use(w: World):
    seen = see(w, socket_after_a_daemon)
    assert seen["refused"] != 0 and seen["goes_on"] and seen["read"], seen
    assert seen["started"] == 0 and seen["unit_serves"] and seen["first_is_gone"] and seen["read_again"], seen


@test
def a_command_serves_itself_once_systemd_has_given_up_and_the_socket_can_be_started_again(w: World):
    seen = see(w, more_deaths_than_systemd_allows)
    assert seen["state"] == "failed" and seen["main"] == "0" and seen["own"] and seen["read"], seen
    assert seen["started"] == 0 and seen["unit_serves"] and seen["read_again"], seen


@test
def the_watch_is_followed_comes_back_and_ends_and_leaves_the_daemon_alone(w: World):
    seen = see(w, watch)
    assert seen["gives_up"] == ["failed", "0"], seen  # without rules it is not tried again
    assert seen["started"] == seen["reloads"] == seen["stopped"] == 0, seen
    assert all(seen[what] for what in ("follows", "fired", "apart", "back", "ended", "goes_on")), seen


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        sys.exit(inside(*sys.argv[2:]))
    sys.exit(main())

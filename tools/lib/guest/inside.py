"""What the guest does: enters every situation in turn, sends what the probe found, powers off.

Runs as root in a system service. A result is one line of JSON on a port of the emulator, sent
as soon as the situation has ended, so that it is kept whatever happens to the guest later.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, "/guest")

import situations  # noqa: E402  (found through the line above)

RUN = Path("/run/guest")
PORT = Path("/dev/virtio-ports/results")
PROBE = ["/usr/bin/python3", "-B", "/guest/probe.py"]
PROBE_SECONDS = 900
AFTER_SECONDS = 180
INSTALL_SECONDS = 900
SETTLE_SECONDS = 20
BUS_TIMEOUT = "SYSTEMD_BUS_TIMEOUT=600"  # systemd-run gives up after 25 s, which a busy machine can take
LOGIN_PORT = {"root": "hvc1", "u": "hvc2"}
SETTINGS = json.loads(Path("/guest/settings.json").read_text())
STARTED = time.monotonic()


def seconds_left():
    return SETTINGS["minutes"] * 60 - (time.monotonic() - STARTED)


def say(text):
    print(f"guest: {time.monotonic() - STARTED:.0f} s: {text}", flush=True)


def quiet(*words, seconds=60):
    try:
        return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=seconds, check=False).stdout
    except subprocess.TimeoutExpired as late:
        return f"{late.stdout or ''}\nstopped after {seconds} s"


def command_line(one, words):
    if one.enter[:1] == ["su"]:
        return [*one.enter, shlex.join(words)]
    return [*one.enter, *words]


def log_in(one, words, seconds):
    """A getty logs the user in; the shell's profile runs the words; the session ends with them."""
    done, unit = RUN / "login-done", f"serial-getty@{LOGIN_PORT[one.login]}.service"
    done.unlink(missing_ok=True)
    script = RUN / "login"
    script.write_text(f"{BUS_TIMEOUT} {shlex.join(command_line(one, words))} >/run/guest/login-output 2>&1\n"
                      "echo $? >/run/guest/login-done\n")
    deadline = time.monotonic() + seconds
    quiet("systemctl", "start", unit, seconds=seconds)  # emulated beside other work, this can take minutes
    while not done.exists() and time.monotonic() < deadline:
        time.sleep(1)
        if quiet("systemctl", "is-active", unit).strip() in ("inactive", "failed"):
            break  # the session ended, with or without the script
    ended = done.exists()
    quiet("systemctl", "stop", unit)
    script.unlink()
    output = RUN / "login-output"
    said = output.read_text(errors="replace") if output.exists() else ""
    return said if ended else f"{said}\nthe login ended before its command, or took more than {seconds:.0f} s"


def enter(one, words, seconds):
    """Run the words in a situation; what they print is for the transcript only."""
    for stale in ("login-output", "login-done"):
        (RUN / stale).unlink(missing_ok=True)
    if one.login:
        return log_in(one, words, seconds)
    return quiet(*command_line(one, words), seconds=seconds)


def afterwards(one, out):
    """From outside, as the same user: do clones outlive the situation, and is anything left?"""
    words = [*PROBE, "after", one.name, str(out)]
    if one.user != "root":
        number = situations.UID[one.user]
        words = ["runuser", "-u", one.user, "--", "env", "-C", "/", f"HOME=/home/{one.user}", *(
            [f"XDG_RUNTIME_DIR=/run/user/{number}"] if one.manager else []), *words]
    return quiet(*words, seconds=AFTER_SECONDS)


def clean(one):
    """The next situation starts without a store, a daemon or a mount of this one."""
    home = Path("/root" if one.user == "root" else f"/home/{one.user}")
    if one.unit:
        quiet("runuser", "-u", one.user, "--", "env", f"XDG_RUNTIME_DIR=/run/user/{situations.UID[one.user]}",
              "systemctl", "--user", "stop", "snapcow.socket", "snapcow.service")
    with open("/proc/self/mounts") as mounts:
        for line in mounts:
            where, kind = line.split()[1:3]
            if kind.startswith("fuse") and kind != "fusectl":
                quiet("umount", "-l", where)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            name = Path("/proc", pid, "cmdline").read_bytes().split(b"\0")[0]
            if os.path.basename(name).startswith((b"cowfsd", b"snapcow")):
                os.kill(int(pid), 9)
        except OSError:
            pass
    shutil.rmtree(home / ".local" / "share" / "snapcow", ignore_errors=True)
    quiet("systemctl", "reset-failed")


def probe(one):
    out = RUN / f"{one.name}.json"
    seconds = min(PROBE_SECONDS, seconds_left())
    said = enter(one, [*PROBE, "probe", one.name, str(out)], seconds)
    if out.exists() and not one.container and json.loads(out.read_text()).get("left_mounted"):
        said += afterwards(one, out)
    found = json.loads(out.read_text()) if out.exists() else {"checks": {}, "commands": []}
    if not found.get("ended"):
        found["checks"]["probe"] = {"result": "fails", "why": "the probe did not end: " + said.strip()[-400:]}
    found["said"] = said[-4000:]
    return found


def groups_of_runs():
    return [Path(at, name) for at, names, _ in os.walk("/sys/fs/cgroup") for name in names
            if name.startswith("snap-run-")]


def take_away(group):
    """So that nobody else is blamed for it; what it was."""
    unit = quiet("systemctl", "is-active", group.name).strip()
    try:
        inside = len((group / "cgroup.procs").read_text().split())
        quiet("systemctl", "stop", group.name)
        group.rmdir()
    except OSError:
        inside = 0
    return f"{group} with {inside} processes, its unit {unit}"


def left_behind():
    """Groups of runs that stay; systemd takes a moment to remove those of runs that have ended."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while groups_of_runs() and time.monotonic() < deadline:
        time.sleep(0.5)
    return [take_away(group) for group in groups_of_runs()]


def run_tests(one, names):
    """These test programs in this situation; a user runs those that are not about becoming one."""
    for test in (t for t in SETTINGS["tests"] if t["name"] in names):
        if "--user" in test["cmd"] and one.user != "root":
            continue
        if seconds_left() < 60:
            yield {"name": test["name"], "result": "not tried", "why": "the time was up"}
            continue
        out = RUN / "test.json"
        out.unlink(missing_ok=True)
        (RUN / "test-command.json").write_text(json.dumps(test))
        said = enter(one, [*PROBE, "test", test["name"], str(out)], min(test["timeout"] * 6, seconds_left()))
        one_result = json.loads(out.read_text()) if out.exists() else {
            "name": test["name"], "result": "fails", "why": "it did not end: " + said.strip()[-400:]}
        clean(one)
        if left := left_behind():
            one_result["result"] = "fails"
            one_result["why"] = f"left behind: {', '.join(left)}; {one_result.get('why', '')}"
        say(f"{one.name}: {test['name']}: {one_result['result']} {one_result.get('why', '')[:200]}"
            f"{one_result.get('output', '')[-3000:] if one_result['result'] == 'fails' else ''}")
        yield one_result


def send(port, found, begin):
    found["seconds"] = round(time.monotonic() - begin)
    line = json.dumps(found).encode() + b"\n"
    while line:
        line = line[port.write(line):]


def facts():
    return {"kernel": os.uname().release, "machine": os.uname().machine,
            "systemd": quiet("systemctl", "--version").split("\n")[0],
            "boot_seconds": float(Path("/proc/uptime").read_text().split()[0])}


def install():
    """The program into the system, as files or with its package; what is wrong with the latter, if anything."""
    if not SETTINGS["package"]:
        quiet("cp", "-a", "/guest/install/.", "/")
        return ""
    if os.path.exists("/guest/status"):
        for name in ("info", "updates", "triggers", "parts"):
            Path("/var/lib/dpkg", name).mkdir(parents=True, exist_ok=True)
        shutil.copyfile("/guest/status", "/var/lib/dpkg/status")
        Path("/var/lib/dpkg/available").touch()
    said = quiet("dpkg", "-i", "/guest/package.deb", seconds=INSTALL_SECONDS)
    say(said)
    state = quiet("dpkg-query", "-W", "-f", "${Status}", "snapcow")
    os.symlink("/usr/bin/snapcow", "/usr/local/bin/snap")  # the name that the probe uses
    return "" if state == "install ok installed" else f"dpkg says '{state}': {said[-800:]}"


def give_logins_time():
    """login gives up after a minute, which an emulated PAM can take."""
    settings = Path("/etc/login.defs")
    if settings.exists():
        settings.write_text(re.sub(r"(?m)^LOGIN_TIMEOUT.*", "LOGIN_TIMEOUT 600", settings.read_text()))


def main():
    os.environ.update([BUS_TIMEOUT.split("=")])
    for place in (RUN, Path(situations.CONTAINER_TMP)):
        place.mkdir(exist_ok=True)
        place.chmod(0o1777)
    give_logins_time()
    wrong = install()
    quiet("systemctl", "daemon-reload")
    quiet("mount", "--bind", "/", "/mnt")  # what containers start from
    known = facts()
    say(f"up, {known}")
    with PORT.open("wb", buffering=0) as port:
        for step in SETTINGS["plan"]:
            name, one = step["name"], situations.BY_NAME[step["name"]]
            if seconds_left() < 60:
                say(f"the time is up before {name}")
                break
            say(name)
            begin = time.monotonic()
            found = probe(one) if step["probe"] else {"checks": {}, "commands": []}
            clean(one)
            if SETTINGS["package"]:
                found["checks"]["package"] = {"result": "fails" if wrong else "ok", "why": wrong}
                found["package"] = SETTINGS["package"]
            found.update(name=name, what=one.what, **known)
            found.update((k, SETTINGS[k]) for k in ("suite", "arch", "accel", "commit", "day"))
            send(port, found, begin)
            if step["tests"]:
                found["tests"] = []
                # Sent as each ends: the guest may be ended before the last.
                for result in run_tests(one, step["tests"]):
                    found["tests"].append(result)
                    send(port, found, begin)


if __name__ == "__main__":
    try:
        main()
    finally:
        subprocess.run(["systemctl", "poweroff", "--force"], check=False)

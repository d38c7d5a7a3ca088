"""One situation, looked at from inside: what the program does here, and what it leaves behind.

usage: probe.py probe|after|test NAME OUT

`probe` runs in the situation, `after` as the same user once it has ended, `test` runs one test
program. What was found is written to OUT after every step, so that a probe that hangs tells how
far it got. A check is ok or fails. A limit holds; where no manager can be asked, it may be refused
with a reason (status 125) or said to be missing. Where no run can start at all, the documented
refusal is what passes.
"""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, "/guest")

import situations  # noqa: E402  (found through the line above)

CGROUPS = Path("/sys/fs/cgroup")
OURS = re.compile(r"snap|cowfs")
INSTALLED_UNITS = ("snapcow.service", "snapcow.socket", "snapcow-watch.service")
COMMAND_SECONDS = 120
# The promise is a second; an emulated machine takes its time, unless that is counted in instructions.
RESTART_SECONDS = {"kvm": 1, "tcg": 30, "steady": 1}
READ_SECONDS = {"kvm": 5, "tcg": 60, "steady": 5}  # that is two programs to start
START_SECONDS = 30  # that Python may take to start, emulated
KILLED_CALLERS = 8
UNIT_DEATHS = 3  # of cowfsd as a unit; systemd gives up after five within ten seconds
YARDSTICK = "guest-yardstick"
MEASURED_RUNS = {"kvm": 20, "tcg": 5, "steady": 5}
BURN_MARK = "snap-guest-burn"

GROW_HEAP = "x = bytearray(b'1') * (300 << 20); print('grew')"
GROW_MEMFD = """
import os
fd = os.memfd_create('x')
for _ in range(300):
    os.write(fd, b'1' * (1 << 20))
print('grew')
"""
FORK = """
import os, signal, time
made = []
try:
    while len(made) < 60:
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
            os._exit(0)
        made.append(pid)
except OSError:
    pass
print('grew' if len(made) == 60 else f'stopped at {len(made)}')
for pid in made:
    os.kill(pid, signal.SIGKILL)
"""
BURN = f"""
import time  # {BURN_MARK}
begin, cpu = time.monotonic(), time.process_time()
while time.process_time() - cpu < 1.5:
    pass
print('ratio', round((time.monotonic() - begin) / 1.5, 2))
"""

# Kills and waits by itself, because starting a program for each look takes longer than what is timed.
KILL_AND_WAIT = """
import os, select, sys, time
path, pids = sys.argv[1], [int(pid) for pid in sys.argv[2:]]
deaths = [os.pidfd_open(pid) for pid in pids]
begin = time.monotonic()
for pid in pids:
    os.kill(pid, 9)
for death in deaths:
    select.select([death], [], [])  # until then it may still answer
while True:
    try:
        os.statvfs(path)  # that is asked every time; what was read before may be in the cache
        said = open(path).read().strip()
        if said and said not in sys.argv[2:]:  # a yardstick says its number
            break
    except OSError:
        pass
    time.sleep(0.005)
print(f'after {time.monotonic() - begin:.2f} s')
"""


def read(path):
    try:
        return Path(path).read_text().strip()
    except OSError as e:
        return f"({e.strerror})"


def group_path(pid="self"):
    for line in read(f"/proc/{pid}/cgroup").splitlines():
        if line.startswith("0::"):
            return line[3:]
    return None


def group_facts(path):
    folder = CGROUPS / path.lstrip("/")
    return {"path": path, "type": read(folder / "cgroup.type"), "controllers": read(folder / "cgroup.controllers"),
            "subtree_control": read(folder / "cgroup.subtree_control")}


def our_groups():
    """Groups whose name says that the program made them."""
    return {os.path.join(at, name) for at, names, _ in os.walk(CGROUPS) for name in names if OURS.search(name)}


def with_processes(group):
    """A group, and who is in it."""
    pids = read(Path(group, "cgroup.procs")).split()
    return f"{group} ({', '.join(read(f'/proc/{p}/cmdline').replace(chr(0), ' ') for p in pids) or 'nobody'})"


def daemons():
    """Process ids of cowfsd that belong to this user."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
            if os.path.basename(words[0]) == b"cowfsd" and os.stat(f"/proc/{pid}").st_uid == os.getuid():
                found.append(int(pid))
        except OSError:
            pass
    return found


def manager_controllers(one):
    """What the manager that this user can ask has to give."""
    if not one.manager:
        return []
    unit = "" if os.getuid() == 0 else f"user.slice/user-{os.getuid()}.slice/user@{os.getuid()}.service"
    return read(CGROUPS / unit / "cgroup.controllers").split()


class Probe:
    def __init__(self, name, out):
        self.one, self.out = situations.BY_NAME[name], Path(out)
        self.settings = json.loads(Path("/guest/settings.json").read_text())
        self.found = {"checks": {}, "commands": [], "ended": False}
        if self.out.exists():
            self.found = json.loads(self.out.read_text())
        os.environ.setdefault("HOME", os.path.expanduser("~"))
        os.environ["LC_ALL"] = "C.UTF-8"

    def save(self):
        part = self.out.with_suffix(".part")
        part.write_text(json.dumps(self.found))
        part.rename(self.out)

    def check(self, name, result, why=""):
        if isinstance(result, bool):
            result = "ok" if result else "fails"
        self.found["checks"][name] = {"result": result, "why": why}
        self.save()

    def run(self, *words, seconds=COMMAND_SECONDS, watch=None):
        """Run a command and put it into the transcript."""
        begin = time.monotonic()
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True, errors="replace", cwd=self.found.get("project", "/"))
        if watch:
            watch(child)
        try:
            out, err = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            err += f"\nprobe: stopped after {seconds} s"
        done = {"command": list(words), "status": child.returncode, "out": out[-3000:], "err": err[-2000:],
                "ms": round((time.monotonic() - begin) * 1000)}
        self.found["commands"].append(done)
        self.save()
        return {**done, "out": out}

    def snap(self, *words, **more):
        return self.run("snap", *words, **more)

    def snap_json(self, *words):
        try:
            return json.loads(self.snap("--json", *words)["out"])
        except ValueError:
            return {}

    def make_project(self):
        self.found["project"] = tempfile.mkdtemp(prefix="project-", dir=os.environ["HOME"])
        project = Path(self.found["project"])
        (project / "greet").write_text("hello\n")
        self.run("sh", "-c", "git init -q && git config user.name a && git config user.email a@example.org && "
                 "git add . && git commit -qm one")

    # What is probed, in this order.

    def probe(self):
        self.found["group"] = before = group_facts(group_path())
        self.make_project()
        if self.one.unit:
            self.probe_socket()
        self.found["doctor"] = self.snap_json("doctor")
        after = group_facts(group_path())
        self.check("doctor-looks", after == before, f"doctor changed the caller's group: {before} is now {after}")
        self.probe_run()
        self.kill_callers()
        self.probe_limits()
        self.check_doctor()
        self.probe_promote()
        if self.one.unit:
            self.probe_watch()
        self.measure()
        self.check_own_group(before)
        self.probe_restart()
        self.check_groups("tree")
        if self.one.container:
            self.stop()
        else:
            self.leave_mounted()
        self.found["ended"] = True
        self.save()

    def systemctl(self, *words):
        return self.run("systemctl", "--user", *words)

    def probe_socket(self):
        """The socket takes over from a cowfsd that a command started, and what that had mounted."""
        path = self.snap("clone", "-n", "before")["out"].strip()
        first = daemons()
        self.systemctl("daemon-reload")  # this manager is older than the installation
        started = self.systemctl("start", "snapcow.socket")
        listed, now = self.snap("mount", "before"), daemons()
        wrong = [] if first else ["no cowfsd was started by a command"]
        if started["status"] != 0:
            wrong.append(f"the socket does not start: {started['err'].strip()}")
        if listed["status"] != 0 or not path or not self.readable(path):
            wrong.append(f"the clone cannot be read any more: {listed['err'].strip()}")
        if len(now) != 1 or set(now) & set(first) or not (group_path(now[0]) or "").endswith("/snapcow.service"):
            wrong.append(f"cowfsd was {first} and is {[(pid, group_path(pid)) for pid in now]}")
        self.snap("rm", "--force", "before")
        self.check("socket", not wrong, "; ".join(wrong))

    def probe_watch(self):
        """The unit of watch follows the rules, comes back when it is killed, and leaves cowfsd alone."""
        rules, wrong = Path.home() / ".config" / "snapcow" / "watch.yaml", []
        rules.parent.mkdir(parents=True, exist_ok=True)
        rules.write_text(f"rules:\n  - {{name: a, project: {self.found['project']}, on: fire, run: echo x > x, "
                         "then: keep}\n")

        def main_pid():
            done = self.systemctl("show", "--value", "-p", "MainPID", "snapcow-watch.service")
            return done["out"].strip()

        def serves(other=""):
            deadline = time.monotonic() + COMMAND_SECONDS
            while time.monotonic() < deadline:
                pid = main_pid()
                if pid not in ("", "0", other) and str(self.snap_json("watch", "status").get("pid")) == pid:
                    return pid
                time.sleep(0.5)
            return ""

        started = self.systemctl("start", "snapcow-watch.service")
        before, first = daemons(), serves()
        if not first:
            wrong.append(f"nobody follows the rules: {started['err'].strip()}")
        else:
            os.kill(int(first), signal.SIGKILL)
            if not serves(first):
                wrong.append("it does not come back after SIGKILL")
        self.systemctl("stop", "snapcow-watch.service")
        if main_pid() != "0" or daemons() != before:
            wrong.append(f"after stop it is {main_pid()}, and cowfsd was {before} and is {daemons()}")
        rules.unlink()
        self.check("watch", not wrong, "; ".join(wrong))

    def probe_run(self):
        done = self.snap("run", "--", "true")
        why = f"status {done['status']}: {done['err'].strip()}"
        if self.one.refusal:
            self.check("run", "refused" if self.is_refusal(done) else "fails", why)
        else:
            self.check("run", done["status"] == 0, why)
        result = self.snap_json("run", "--", "true") if done["status"] == 0 else {}
        self.found["walls"] = result.get("isolation")

    def kill_callers(self):
        """End runs with SIGKILL at many moments, by turns with their init: the next run clears what they leave."""
        if self.found["checks"]["run"]["result"] != "ok":
            return
        whole = self.found["commands"][-1]["ms"] / 1000
        for i in range(KILLED_CALLERS):
            child = subprocess.Popen(["snap", "run", "--", "true"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL, cwd=self.found["project"], start_new_session=True)
            try:
                child.wait(whole * (i + 1) / (KILLED_CALLERS + 1))
            except subprocess.TimeoutExpired:
                if i % 2:
                    os.killpg(child.pid, signal.SIGKILL)
                else:
                    child.kill()
                child.wait()
        self.found["left_by_killed"] = sorted(our_groups())

    def is_refusal(self, done):
        """The documented one of this situation: that of snap itself, with its reason."""
        said = done["err"] + done["out"]  # with --json it is in the latter
        return done["status"] == 125 and re.search(self.one.refusal, said) is not None

    def judge_limit(self, name, done, stopped, controller, about):
        """`stopped` says that the command ran and met the limit. A limit may be missing, with a word about
        it, only where no manager can be asked for a scope, or one that does not have the controller."""
        why = f"status {done['status']}: {done['out'].strip()} {done['err'].strip()}".strip()
        if stopped:
            self.check(name, "holds", why)
        elif self.one.refusal:
            self.check(name, "refused" if self.is_refusal(done) else "fails", why)
        elif (controller in manager_controllers(self.one) or done["status"] not in (0, 125)
              or not re.search(about, done["err"] + done["out"])):
            self.check(name, "fails", why)
        else:
            self.check(name, "refused" if done["status"] == 125 else "said", why)

    def probe_limits(self):
        if not self.one.fuse:
            return
        for name, script in (("mem-heap", GROW_HEAP), ("mem-memfd", GROW_MEMFD)):
            # By heap python may also meet a limit of each process, and end by itself.
            done = self.snap("--json", "run", "--mem", "64M", "--", "python3", "-c", script)
            told = re.search(r'"oom_killed": *true.*"limit": *"memory"', done["out"])
            self.judge_limit(name, done, done["status"] == 137 and told or done["status"] == 1 and
                             not self.one.manager, "memory", "memory|cgroup")
        done = self.snap("run", "--pids", "20", "--", "python3", "-c", FORK)
        self.judge_limit("pids", done, "stopped at" in done["out"], "pids", "process|pids|cgroup")
        done = self.snap("run", "--cpus", "0.5", "--", "python3", "-c", BURN, watch=self.look_at_run)
        ratio = re.search(r"ratio ([\d.]+)", done["out"])
        self.judge_limit("cpus", done, bool(ratio) and float(ratio.group(1)) >= 1.6, "cpu", "cpu|processor|cgroup")

    def look_at_run(self, child):
        """Note the group of the command while it runs, and the limits that are set on it."""
        deadline = time.monotonic() + COMMAND_SECONDS
        while child.poll() is None and time.monotonic() < deadline:
            for pid in filter(str.isdigit, os.listdir("/proc")):
                words = read(f"/proc/{pid}/cmdline").split("\0")
                if BURN_MARK in read(f"/proc/{pid}/cmdline") and words[0] == "python3":
                    path = group_path(pid)
                    if path is None:
                        continue
                    limits, at = [], CGROUPS / path.lstrip("/")
                    while at != CGROUPS and at.is_relative_to(CGROUPS):
                        limits.append({"group": at.name, **{k: read(at / k) for k in (
                            "cgroup.type", "memory.max", "memory.swap.max", "pids.max", "cpu.max")}})
                        at = at.parent
                    self.found["group_of_run"] = {"path": path, "limits": limits}
                    return
            time.sleep(0.05)

    def check_doctor(self):
        """Does doctor promise what was seen, no more and no less?"""
        checks, doctor = self.found["checks"], self.found["doctor"]
        said = {c["name"]: c for c in doctor.get("checks", [])}
        if not said:
            self.check("doctor-true", False, "doctor --json printed no checks")
            return
        wrong = []
        ran = checks["run"]["result"] == "ok"
        if doctor["ok"] != ran:
            wrong.append(f"doctor says ok={doctor['ok']}, and a run {'works' if ran else 'does not'}")
        limits = {n: checks[n]["result"] for n in ("mem-heap", "mem-memfd", "pids", "cpus") if n in checks}
        if limits:
            hold = all(r == "holds" for r in limits.values())
            cgroups = said.get("cgroups", {})
            if cgroups.get("ok") != hold:
                wrong.append(f"doctor says of cgroups: {cgroups.get('level')}, '{cgroups.get('detail')}'; "
                             f"seen: {limits}")
        self.check("doctor-true", not wrong, "; ".join(wrong))

    def probe_promote(self):
        if not self.one.fuse:
            return
        project, wrong = Path(self.found["project"]), []
        self.snap("clone", "-n", "try")
        path = self.snap("mount", "try")["out"].strip()
        try:
            (Path(path) / "new").write_text("new\n")
        except OSError as e:
            wrong.append(f"writing to the clone '{path}': {e.strerror}")
        commands = [["promote", "--check", "test -e new", "try"], ["undo"]]
        if self.one.refusal:  # a check is a run; without one there is nothing to refuse
            done = self.snap(*commands[0])
            if done["status"] == 0 or not re.search(self.one.refusal, done["err"]) or (project / "new").exists():
                wrong.append(f"promote --check is not refused: status {done['status']}: {done['err'].strip()}")
            commands[0] = ["promote", "try"]
        for words in commands:
            done = self.snap(*words)
            if done["status"] != 0:
                wrong.append(f"{words[0]}: status {done['status']}: {done['err'].strip()}")
            there, want = (project / "new").exists(), words[0] == "promote"
            if there != want:
                wrong.append(f"after {words[0]} the new file is {'there' if there else 'not there'}")
        self.snap("rm", "--force", "try")
        passed = "refused" if self.one.refusal else "ok"
        self.check("promote", "fails" if wrong else passed, "; ".join(wrong))

    def measure(self):
        """What a run costs here, with a scope and without, beside what systemd takes for an empty scope."""
        if self.found["checks"]["run"]["result"] != "ok" or not (self.one.measured and self.settings["measure"]):
            return
        user = [] if os.getuid() == 0 else ["--user"]
        commands = {"snap run": ["snap", "-v", "run", "--", "true"],
                    "snap run without limits": ["snap", "run", "--mem", "0", "--pids", "0", "--", "true"],
                    "systemd-run --scope": ["systemd-run", *user, "-q", "--scope", "true"]}
        times, cpu, spent = {name: [] for name in commands}, {}, []
        runs = MEASURED_RUNS[self.settings["accel"]]
        for name, words in list(commands.items()) * runs:  # in turn: other work on the machine meets all
            before = self.cpu_ms()
            done = self.run(*words)
            cpu[name] = {who: round(ms - before[who]) for who, ms in self.cpu_ms().items()}
            if done["status"] == 0:
                times[name].append(done["ms"])
            spent += map(float, re.findall(r"the run spent ([\d.]+) ms on asking systemd", done["err"]))
        self.found["cost_ms"], self.found["cpu_ms"] = {**times, "the scope of snap run": spent}, cpu
        wrong = [name for name, found in self.found["cost_ms"].items() if len(found) != runs]
        self.check("measure", not wrong, f"not measured {runs} times: {', '.join(wrong)}" if wrong else "")
        if self.settings["trace"]:
            self.trace(commands)

    def cpu_ms(self):
        """Processor time so far: of commands that have ended, of cowfsd, and of the managers."""
        def spent(pid):
            fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
            return sum(map(int, fields[11:13])) * 1000 / os.sysconf("SC_CLK_TCK") if len(fields) > 12 else 0
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        managers = [p for p in filter(str.isdigit, os.listdir("/proc")) if read(f"/proc/{p}/comm") == "systemd"]
        return {"user": used.ru_utime * 1000, "kernel": used.ru_stime * 1000, "cowfsd": sum(map(spent, daemons())),
                "systemd": sum(map(spent, managers))}

    def trace(self, commands):
        """Every system call of one command of each kind with its time."""
        self.found["trace"] = {}
        for name, words in commands.items():
            with tempfile.NamedTemporaryFile() as file:
                self.run("strace", "-f", "-C", "-ttt", "-T", "-s", "60", "-o", file.name, *words, seconds=600)
                self.found["trace"][name] = Path(file.name).read_text(errors="replace")
        self.save()

    def readable(self, path):
        # What was read before may be in the cache; the file system itself is asked every time.
        return self.run("timeout", str(READ_SECONDS[self.settings["accel"]]), "sh", "-c", 'stat -f "$1" && cat "$1"',
                        "sh", f"{path}/greet")["status"] == 0

    def probe_restart(self):
        """cowfsd is killed: does the mount come back by itself?"""
        if not self.one.fuse:
            return
        path = self.snap("clone", "-n", "stay")["out"].strip()
        if not path or not self.readable(path):
            self.check("restart", False, f"the clone '{path}' cannot be read")
            self.run("sudo", "-n", "journalctl", "-n", "60", "--no-pager", "-o", "short-precise")
            return
        self.found["left_mounted"] = path
        victims = daemons()
        self.found["daemon_group"] = [group_path(pid) for pid in victims]
        if not victims:
            self.check("restart", False, "there is no cowfsd to kill")
            return
        if self.one.unit and not self.found["daemon_group"][0].endswith("/snapcow.service"):
            self.check("restart", False, f"cowfsd is not in its unit, but in {self.found['daemon_group']}")
            return
        bound, times = RESTART_SECONDS[self.settings["accel"]], []
        for _ in range(UNIT_DEATHS if self.one.unit else 1):
            times.append(self.time_restart(f"{path}/greet", daemons()))
        if all(t and float(t) <= bound for t in times) and daemons():
            self.check("restart", "ok", f"after {', '.join(times)} s{self.compare_restart()}")
            return
        self.snap("mount", "stay")
        self.check("restart", False, f"mounted again after {times} s, and {bound} are allowed; after the next command "
                   f"it is {'' if self.readable(path) else 'not '}readable")

    def time_restart(self, path, pids):
        """Kill them; the seconds after which the file can be read and does not name one of them."""
        bound = RESTART_SECONDS[self.settings["accel"]]
        done = self.run("timeout", "-s", "KILL", str(bound + START_SECONDS), "python3", "-c", KILL_AND_WAIT, path,
                        *map(str, pids))
        took = re.fullmatch(r"after ([\d.]+) s", done["out"].strip())
        return took.group(1) if took else ""

    def compare_restart(self):
        """Beside the unit of cowfsd: what systemd takes for a service that does nothing, on the same terms."""
        if not self.one.unit:
            return ""
        said, script = (f"{os.environ['XDG_RUNTIME_DIR']}/{YARDSTICK}{end}" for end in ("", ".sh"))
        Path(script).write_text(f"echo $$ >{said}; exec sleep 600\n")
        self.run("systemd-run", "--user", "-q", f"--unit={YARDSTICK}", "-p", "Restart=on-failure", "-p",
                 "RestartSec=100ms", "sh", script)
        deadline = time.monotonic() + COMMAND_SECONDS
        while not read(said).isdigit() and time.monotonic() < deadline:
            time.sleep(0.1)
        took = self.time_restart(said, [read(said)]) if read(said).isdigit() else ""
        self.systemctl("stop", YARDSTICK)
        return f"; a service that does nothing{f' after {took} s' if took else ' did not come back'}"

    def check_groups(self, name):
        """No group of a run is left; that of a cowfsd that runs may be."""
        alive = [str(CGROUPS / (group_path(p) or "/").lstrip("/")) for p in daemons()]
        own = str(CGROUPS / self.found["group"]["path"].lstrip("/"))
        expected = {g for g in our_groups() for a in [*alive, own] if a == g or a.startswith(g + "/")}
        may_stay = (["/snap-leaf"] if self.one.container else []) + (["/snapcow.socket"] if self.one.unit else [])
        left = sorted(g for g in our_groups() - expected if not g.endswith(tuple(may_stay)))
        self.check(name, "none" if not left else "fails", f"left behind: {' '.join(map(with_processes, left))}"
                   if left else "")

    def check_own_group(self, before):
        """As it was. In a container that is ours, all processes may have moved into a leaf."""
        after = group_facts(group_path())
        moved = self.one.container and after["path"].endswith("/snap-leaf") and after["type"] == "domain"
        self.check("group", moved or after == before, f"the caller's group was {before}, is now {after}")

    def check_units(self):
        managers = [["systemctl"]]
        if os.getuid() != 0:
            managers = [["systemctl", "--user"]] if "XDG_RUNTIME_DIR" in os.environ else []
        left = []
        for manager in managers:
            lines = self.run(*manager, "list-units", "--all", "--plain", "--no-legend")["out"].splitlines()
            left += [line for line in lines if OURS.search(line.split()[0])
                     and not line.split()[0].startswith(INSTALLED_UNITS) and ".slice" not in line.split()[0]
                     and not line.split()[0].endswith((".mount", ".device"))]
        self.check("units", "none" if not left else "fails", f"units left behind: {'; '.join(left)}" if left else "")

    def leave_mounted(self):
        self.found["daemon_group_left"] = [group_path(pid) for pid in daemons()]
        if "left_mounted" not in self.found:
            self.stop()

    def stop(self):
        done = self.snap("stop", "--force")
        deadline = time.monotonic() + 10
        while daemons() and time.monotonic() < deadline:
            time.sleep(0.1)
        if daemons():
            self.check("stop", False, f"cowfsd still runs after stop: status {done['status']} {done['err']}")
        if self.one.unit:
            self.run("systemctl", "--user", "stop", "snapcow.socket", "snapcow.service")
        self.check_groups("after-tree")
        if not self.one.container:
            self.check_units()
        self.run("rm", "-rf", self.found["project"])

    def after(self):
        path = self.found["left_mounted"]
        good = bool(daemons()) and self.readable(path)
        # Without a manager there is no other group that it could be in.
        result = good if good or self.one.manager else "ends"
        self.check("outlives", result, "" if good else f"cowfsd {'runs' if daemons() else 'is gone'}, '{path}' cannot "
                   f"be read; it was in {self.found.get('daemon_group_left')}")
        self.stop()


def run_test(name, out):
    """One test program; its TAP is counted."""
    test = json.loads(Path("/run/guest/test-command.json").read_text())
    begin = time.monotonic()
    done = subprocess.run(test["cmd"], env={**os.environ, **test["env"], "LC_ALL": "C.UTF-8"}, cwd="/tmp",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    lines = done.stdout.splitlines()
    skipped = [line for line in lines if re.match(r"(ok\b.*|1\.\.0 *)# *skip", line, re.I)]
    passed = [line for line in lines if line.startswith("ok") and line not in skipped]
    failed = [line for line in lines if line.startswith("not ok")]
    result = "fails" if failed or done.returncode not in (0, 77) else "passed" if passed else "skipped"
    why = "; ".join(failed) or (f"status {done.returncode}" if result == "fails" else "; ".join(skipped))
    found = {"name": name, "result": result, "why": why[:1000], "passed": len(passed), "failed": len(failed),
             "skipped": len(skipped), "seconds": round(time.monotonic() - begin),
             "output": done.stdout[-6000:] if result == "fails" else ""}
    part = Path(out).with_suffix(".part")
    part.write_text(json.dumps(found))
    part.rename(out)


def main():
    verb, name, out = sys.argv[1:]
    if verb == "test":
        run_test(name, out)
    else:
        probe = Probe(name, out)
        {"probe": probe.probe, "after": probe.after}[verb]()


if __name__ == "__main__":
    main()

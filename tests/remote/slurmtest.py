"""A Slurm for tests: a real one of a single node on loopback, and a stand-in for its three commands."""

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from servers import free_port
from snaptest import SNAP, Skip

# sbatch, squeue and scancel by the name that they are called by. A job is a directory in $FAKE_SLURM.
STAND_IN = r'''
import os, signal, subprocess, sys, time
top, me = os.environ["FAKE_SLURM"], os.path.basename(sys.argv[0])
options = dict(word[2:].split("=", 1) for word in sys.argv[1:] if "=" in word)

def say(*more):
    with open(top + "/calls", "a") as f:
        f.write(" ".join([me, *sys.argv[1:], *more]) + "\n")

def read(job, what):
    try:
        return open(f"{top}/{job}.{what}").read()
    except FileNotFoundError:
        return ""

def write(job, what, text):
    with open(f"{top}/{job}.{what}.new", "w") as f:
        f.write(text)
    os.rename(f"{top}/{job}.{what}.new", f"{top}/{job}.{what}")

def jobs():
    names = sorted(int(f[:-5]) for f in os.listdir(top) if f.endswith(".name"))
    return [n for n in names if read(n, "name") == options.get("name")]

if os.path.exists(top + "/away"):
    sys.exit(me + ": error: Unable to contact slurm controller (connect failure)")
if me == "sbatch":
    say()
    if os.path.exists(top + "/refuse"):
        sys.exit("sbatch: error: Batch job submission failed: Invalid account")
    script = sys.stdin.read()
    n = 1
    while True:  # others submit at the same time
        try:
            os.close(os.open(f"{top}/{n}.number", os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            n += 1
    write(n, "script", script)
    os.chmod(f"{top}/{n}.script", 0o700)
    write(n, "state", "PENDING")
    write(n, "name", options["job-name"])
    if os.fork() == 0:
        os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        while os.path.exists(top + "/hold") and read(n, "state") == "PENDING":
            time.sleep(0.05)
        if read(n, "state") == "PENDING":
            with open(options["output"], "ab") as log:
                p = subprocess.Popen([f"{top}/{n}.script"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     start_new_session=True)
            write(n, "pid", str(p.pid))
            write(n, "state", "RUNNING")
            code = p.wait()
            if read(n, "state") == "RUNNING":
                write(n, "state", "COMPLETED" if code == 0 else "FAILED")
        os._exit(0)
    print(n)
elif me == "squeue":
    for n in jobs():
        print(f"{n}|{read(n, 'state')}|None")
else:
    say()
    for n in jobs():
        pid = read(n, "pid")
        was = read(n, "state")
        if was not in ("PENDING", "RUNNING"):
            continue
        if pid:
            try:
                os.killpg(int(pid), signal.SIGTERM)
                for _ in range(200):
                    os.kill(int(pid), 0)
                    time.sleep(0.05)
                os.killpg(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass
        write(n, "state", "CANCELLED")
'''


class StandIn:
    """`env` is for commands; `calls` says what was asked of it."""

    kind = "stand-in"

    def __init__(self, w):
        self.top, commands = w.top / "slurm", w.top / "slurm-bin"
        self.top.mkdir()
        commands.mkdir()
        python = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
        for name in ("sbatch", "squeue", "scancel"):
            (commands / name).write_text(f"#!{python}\n{STAND_IN}")
            (commands / name).chmod(0o755)
        self.env = {"PATH": f"{commands}:{w.env['PATH']}", "FAKE_SLURM": str(self.top)}

    def set(self, what, on=True):
        (self.top / what).touch() if on else (self.top / what).unlink()

    def calls(self, name):
        lines = (self.top / "calls").read_text().splitlines() if (self.top / "calls").exists() else []
        return [line for line in lines if line.startswith(name + " ")]

    def states(self):
        return [p.read_text() for p in sorted(self.top.glob("*.state"))]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


CONFIG = """\
ClusterName=snaptest
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ctl}
SlurmdPort={port}
AuthType=auth/munge
AuthInfo=socket={top}/munge.socket
CredType=cred/munge
StateSaveLocation={top}/state
SlurmdSpoolDir={top}/spool
SlurmctldPidFile={top}/slurmctld.pid
SlurmdPidFile={top}/slurmd.pid
SlurmctldLogFile={top}/slurmctld.log
SlurmdLogFile={top}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
MinJobAge=300
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=2000 State=UNKNOWN
PartitionName=main Nodes=node1 Default=YES MaxTime=INFINITE State=UP
PartitionName=other Nodes=node1 MaxTime=INFINITE State=UP
"""


def find(name):
    return shutil.which(name) or next((p for p in (f"/usr/sbin/{name}", f"/sbin/{name}") if os.access(p, os.X_OK)), None)


class Slurm:
    """munged, slurmctld and slurmd in a directory of the test's."""

    kind = "real"

    def __init__(self, w):
        self.programs = {name: find(name) for name in ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel")}
        lacking = [name for name, path in self.programs.items() if not path]
        if lacking:
            raise Skip(f"'{lacking[0]}' is not installed (Debian: slurmctld, slurmd, slurm-client, munge)")
        self.top, self.processes = w.top / "slurm", []
        self.top.mkdir(mode=0o755)
        for name in ("state", "spool"):
            (self.top / name).mkdir(mode=0o755)
        key = self.top / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        self.ports = free_port(), free_port()
        (self.top / "slurm.conf").write_text(CONFIG.format(
            host=socket.gethostname().split(".")[0], user=pwd.getpwuid(os.geteuid()).pw_name, ctl=self.ports[0],
            port=self.ports[1], top=self.top))
        self.env = {"SLURM_CONF": str(self.top / "slurm.conf")}
        try:
            self.begin()
        except BaseException:
            self.__exit__()
            raise

    def begin(self):
        self.run("munged", "--foreground", "--force", f"--socket={self.top}/munge.socket", f"--key-file={self.top}/munge.key",
                 f"--pid-file={self.top}/munged.pid", f"--log-file={self.top}/munged.log", f"--seed-file={self.top}/munge.seed")
        self.wait(lambda: (self.top / "munge.socket").exists())
        self.run("slurmctld", "-D", "-f", str(self.top / "slurm.conf"))
        self.run("slurmd", "-D", "-N", "node1", "-f", str(self.top / "slurm.conf"))
        self.wait(lambda: b"idle" in subprocess.run(["sinfo", "-h", "-o", "%T"], env={**os.environ, **self.env},
                                                    capture_output=True, check=False).stdout)

    def run(self, name, *words):
        with open(self.top / f"{name}.out", "ab") as out:
            self.processes.append(subprocess.Popen([self.programs[name], *words], env={**os.environ, **self.env},
                                                   stdout=out, stderr=out, stdin=subprocess.DEVNULL))

    def wait(self, what):
        for _ in range(600):
            if what():
                return
            dead = [p for p in self.processes if p.poll() is not None]
            if dead:
                break
            time.sleep(0.1)
        logs = "".join(p.read_text(errors="replace")[-600:] for p in sorted(self.top.glob("*.out")) + sorted(self.top.glob("*.log")))
        raise RuntimeError(f"Slurm does not start: {logs}")

    def restart_controller(self):
        self.end(self.processes.pop(1))
        self.run("slurmctld", "-D", "-f", str(self.top / "slurm.conf"))
        self.processes.insert(1, self.processes.pop())

    def states(self):
        done = subprocess.run(["squeue", "-h", "-t", "all", "-o", "%T"], env={**os.environ, **self.env}, capture_output=True,
                              check=True)
        return done.stdout.decode().split()

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            self.end(process)


class Cluster:
    """What a user of either has: a directory that its nodes see, and stores of nodes."""

    def __init__(self, w, slurm):
        self.world, self.slurm = w, slurm
        self.dir, self.stores = w.top / "shared", w.top / "node"
        self.env = {**slurm.env, "SNAPCOW_SLURM_DIR": str(self.dir), "SNAPCOW_SLURM_STORE": str(self.stores),
                    "SNAPCOW_SLURM_PROGRAM": str(SNAP)}

    def words(self, *words, options=(), on="slurm"):
        return ["run", "--on", on, *options, "--", *words]

    def run(self, *words, options=(), on="slurm"):
        return self.world.snap(*self.words(*words, options=options, on=on), env=self.env)

    def start(self, *line):
        return subprocess.Popen([SNAP, *line], cwd=self.world.project, env={**self.world.env, **self.env},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)

    def runs(self):
        return sum(len(list(p.glob("runs/*.json"))) for p in self.stores.glob("[0-9]*") if p.is_dir())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for store in self.stores.glob("[0-9]*"):
            if store.is_dir() and store.name.isdigit():
                self.world.snap("-q", "stop", "--force", env={"SNAPCOW_STORE": str(store)})

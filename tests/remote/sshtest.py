"""An ssh for tests: a real sshd on loopback, and a stand-in that starts the far end here and fails on order."""

import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from servers import free_port
from snaptest import SNAP, Skip

SSHD = shutil.which("sshd") or ("/usr/sbin/sshd" if os.access("/usr/sbin/sshd", os.X_OK) else None)

# Takes ssh's arguments, drops its options, and runs the command. $FAULTS: a line for each connection, "-" or
# "in N" / "out N": it breaks after so many bytes to, or from, the far end; "say TEXT": a shell that greets;
# "stay TEXT": that, and then it does not end; "half": half of an answer, and no end; "tags N": a far end with so many tags, and no more than that.
STAND_IN = r'''
import os, signal, subprocess, sys, threading, time
words = sys.argv[1:]
host, command = words[words.index("--") + 1:][:2]
log, faults = os.environ["SSH_LOG"], os.environ["SSH_FAULTS"]
with open(log, "a") as f:
    f.write(host + " " + command + "\n")
lines = open(faults).read().splitlines() if os.path.exists(faults) else []
fault = (lines or ["-"])[0].split(" ", 1)
with open(faults, "w") as f:
    f.write("\n".join(lines[1:]))
if fault[0] == "say":
    os.write(1, fault[1].encode())
if fault[0] == "stay":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(1, fault[1].encode())
    time.sleep(150)
    sys.exit(0)
if fault[0] == "half":
    sys.stdout.buffer.write(b"SNAPDEP1")
    sys.stdout.buffer.flush()
    sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(4), "little"))
    sys.stdout.buffer.write(b"\xff\0\0\0\x22\1")
    sys.stdout.buffer.flush()
    open(log, "a").write("half an answer\n")
    time.sleep(150)
    sys.exit(0)
if fault[0] == "tags":
    def receive():
        return sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(4), "little"))
    sys.stdout.buffer.write(b"SNAPDEP1")
    sys.stdout.buffer.flush()
    receive()
    sys.stdout.buffer.write(b"\1\0\0\0\x40")
    sys.stdout.buffer.flush()
    receive()
    sys.stdout.buffer.write(b"\6\0\0\0\x21\1\0\0\0t" * int(fault[1]))
    sys.exit(0)
if fault[0] == "die":
    sys.stderr.write("ssh: connect to host " + host + " port 22: Connection refused\n")
    sys.exit(255)
if fault[0] not in ("in", "out"):
    os.execvp("sh", ["sh", "-c", command])
p = subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

def copy(a, b, left):
    total = 0
    while True:
        piece = os.read(a, 65536)
        total += len(piece)
        if left is not None and len(piece) >= left:
            os.write(b, piece[:left])
            p.kill()
            sys.stderr.write("client_loop: send disconnect: Broken pipe\n")
            sys.stderr.flush()
            os._exit(255)
        if not piece:
            break
        os.write(b, piece)
        left = None if left is None else left - len(piece)
    os.close(b)
    if b == 1 and os.environ.get("SSH_COUNT"):
        open(os.environ["SSH_COUNT"], "w").write(str(total))

limit = int(fault[1])
threading.Thread(target=copy, args=(0, p.stdin.fileno(), limit if fault[0] == "in" else None), daemon=True).start()
copy(p.stdout.fileno(), 1, limit if fault[0] == "out" else None)
sys.exit(p.wait())
'''


class StandIn:
    """`self.env` is for commands; `faults` are for the next connections; `calls` says what was started."""

    def __init__(self, w):
        script, self.log, self.file = w.top / "stand-in", w.top / "ssh-log", w.top / "ssh-faults"
        script.write_text(STAND_IN)
        # Where an ordinary user cannot start our interpreter, the system's does.
        python = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
        self.env = {"SNAPCOW_SSH": f"{python} {script}", "SNAPCOW_SSH_PROGRAM": str(SNAP),
                    "SSH_LOG": str(self.log), "SSH_FAULTS": str(self.file)}

    def faults(self, *lines):
        self.file.write_text("\n".join(lines))

    def calls(self):
        return self.log.read_text().splitlines() if self.log.exists() else []


class Sshd:
    """A server of our own: its keys and its list of those who may come lie in the test's directory."""

    def __init__(self, w, command=None):
        if not SSHD or not shutil.which("ssh-keygen"):
            raise Skip("there is no sshd")
        self.top = w.top / "sshd"
        self.top.mkdir(mode=0o700)
        for name in ("host", "user", "stranger"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.top / name], check=True)
        self.port, self.user = free_port(), pwd.getpwuid(os.geteuid()).pw_name
        limit = f'restrict,command="{command}" ' if command else ""
        (self.top / "may").write_text(limit + (self.top / "user.pub").read_text())
        (self.top / "known").write_text(f"[127.0.0.1]:{self.port} {(self.top / 'host.pub').read_text()}")
        (self.top / "config").write_text(
            f"ListenAddress 127.0.0.1\nPort {self.port}\nHostKey {self.top}/host\nPidFile none\n"
            f"AuthorizedKeysFile {self.top}/may\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
            "KbdInteractiveAuthentication no\nPermitRootLogin yes\nLogLevel ERROR\n")
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # Debian's sshd wants it
        self.process = subprocess.Popen([SSHD, "-D", "-e", "-f", self.top / "config"], stdin=subprocess.DEVNULL,
                                        stderr=open(self.top / "log", "wb"))
        for _ in range(2400):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                break
            except OSError:
                if self.process.poll() is not None:
                    raise Skip(f"sshd does not start: {(self.top / 'log').read_text()[-300:]}") from None
                time.sleep(0.05)
        else:
            raise RuntimeError("sshd does not answer")

    def env(self, key="user", known="known"):
        return {"SNAPCOW_SSH": f"ssh -F none -i {self.top}/{key} -oIdentitiesOnly=yes -oIdentityAgent=none "
                               f"-oUserKnownHostsFile={self.top}/{known} -oStrictHostKeyChecking=yes "
                               "-oBatchMode=yes",
                "SNAPCOW_SSH_PROGRAM": str(SNAP)}

    def url(self, path):
        return f"ssh://{self.user}@127.0.0.1:{self.port}{path}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def by_sshd(w, command=None):
    me = pwd.getpwuid(os.geteuid()) if os.geteuid() in (p.pw_uid for p in pwd.getpwall()) else None
    if not me or me.pw_shell.endswith(("nologin", "false")):
        raise Skip("this user cannot log in")
    return Sshd(w, command)

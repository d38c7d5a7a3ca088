"""Servers of our own on loopback, in a directory of the arena: docker-registry, nats-server and sshd."""

import contextlib
import os
import pwd
import shlex
import shutil
import socket
import subprocess
import time
from pathlib import Path

from arena import run

REGISTRY = """\
version: 0.1
log: {{level: error}}
storage:
  filesystem: {{rootdirectory: {root}}}
http: {{addr: "127.0.0.1:{port}"}}
"""
PATIENCE = 60  # seconds until a server answers


def find(name):
    """Debian keeps some servers out of an ordinary PATH."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def missing(*names):
    """Why servers and programs cannot be used, or None."""
    gone = [name for name in names if not find(name)]
    return f"{' and '.join(gone)} not installed" if gone else None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Daemon:
    """A process that listens on a port of loopback, and ends with the arena if nobody ends it before.

    A subclass has `name` and words(), its command line.
    """

    name = None

    def __init__(self, arena, top):
        self.top, self.port, self.process = Path(top), free_port(), None
        self.top.mkdir(mode=0o700)
        arena.undo.callback(self.end)

    def words(self):
        raise NotImplementedError

    def start(self):
        log = self.top / "log"
        with open(log, "ab") as to:
            self.process = subprocess.Popen(self.words(), stdin=subprocess.DEVNULL, stdout=to, stderr=to)
        until = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < until:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            time.sleep(0.02)
        self.end()
        raise SystemExit(f"error: {self.name} does not start: {log.read_text(errors='replace')[-500:]}")

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Registry(Daemon):
    """The distribution's docker-registry, with its blobs in files."""

    name = "docker-registry"

    def __init__(self, arena, top):
        super().__init__(arena, top)
        self.data, self.file = self.top / "data", self.top / "config.yml"
        self.file.write_text(REGISTRY.format(root=self.data, port=self.port))
        self.start()

    def words(self):
        return [find(self.name), "serve", self.file]

    def address(self, repository):
        """What snapcow calls a repository."""
        return f"oci://127.0.0.1:{self.port}/{repository}"

    def http(self, repository):
        return f"http://127.0.0.1:{self.port}/v2/{repository}"

    def size(self):
        """Bytes of all blobs; links to them are left out."""
        return sum(f.stat().st_size for f in self.data.glob("docker/registry/v2/blobs/**/data"))

    def wipe(self):
        """It keeps nothing in memory, so this is a new one."""
        shutil.rmtree(self.data, ignore_errors=True)


class Nats(Daemon):
    """nats-server with JetStream."""

    name = "nats-server"

    def __init__(self, arena, top):
        super().__init__(arena, top)
        self.url = f"nats://127.0.0.1:{self.port}"
        self.start()

    def words(self):
        return [find(self.name), "-js", "-sd", self.top, "-a", "127.0.0.1", "-p", str(self.port)]


class Sshd(Daemon):
    """sshd with keys of its own; `ssh` are the words of a client before the host."""

    name, needs = "sshd", ("sshd", "ssh", "ssh-keygen")

    def __init__(self, arena, top):
        super().__init__(arena, top)
        for name in ("host", "user"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.top / name)
        (self.top / "known").write_text(f"[127.0.0.1]:{self.port} {(self.top / 'host.pub').read_text()}")
        (self.top / "config").write_text(
            f"ListenAddress 127.0.0.1\nPort {self.port}\nHostKey {self.top}/host\nPidFile none\n"
            f"AuthorizedKeysFile {self.top}/user.pub\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
            "KbdInteractiveAuthentication no\nPermitRootLogin yes\nLogLevel ERROR\n")
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)  # Debian's sshd wants it
        self.host = f"{pwd.getpwuid(os.geteuid()).pw_name}@127.0.0.1"
        self.ssh = ["ssh", "-F", "none", "-i", str(self.top / "user"), "-p", str(self.port), "-oIdentitiesOnly=yes",
                    "-oIdentityAgent=none", f"-oUserKnownHostsFile={self.top}/known", "-oBatchMode=yes"]
        self.start()

    def words(self):
        return [find(self.name), "-D", "-e", "-f", self.top / "config"]

    def shell(self):
        """The client as one word, for `rsync -e`."""
        return shlex.join(self.ssh)

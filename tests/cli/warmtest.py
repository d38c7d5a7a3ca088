"""What tests of warm clones have in common."""

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

from snaptest import Skip, needs_fuse, test, until as wait_for


def needs_warm_clone():
    """Why there is no warm clone here, if so."""
    needs_fuse()
    try:
        subprocess.run(["unshare", "-Um", "true"], check=os.geteuid() != 0, stderr=subprocess.DEVNULL)
    except subprocess.CalledProcessError as e:
        raise Skip("without user namespaces only root has a warm clone") from e
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:") and int(line.split()[1]) < 600 << 10:
            raise Skip("there is too little memory for a warm clone")


def warm_test(fn):
    def run(w):
        needs_warm_clone()
        try:
            fn(w)
        finally:
            for pid in walkers(w):  # one that a test stopped and left
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    run.__name__ = fn.__name__
    return test(run)


def daemon(w):
    return w.ok("version", "--json").json("snap.version/1")["daemon"]


def ready(w):
    """Wait until there is a warm clone whose names are known."""
    wait_for(lambda: daemon(w)["spare"] in ("ready", "warm"))


def warm(w):
    """Wait until what is in its files is known too; its walker should wait for nobody."""
    wait_for(lambda: daemon(w)["spare"] == "warm")


def clone(w, *args, **more):
    """A clone; its path, and whether it was the warm clone."""
    before = daemon(w)
    got = w.ok("clone", "--json", *args, **more).json("snap.clone/1")
    taken = daemon(w)["spares_taken"] - (before["spares_taken"] if before else 0)
    return Path(got["path"]), taken


def walkers(w):
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"cowfsd-walk", os.fsencode(w.store)]:
            found.append(int(entry.name))
    return found


def aside(w):
    """Where warm clones of an ordinary user wait; those of root are nowhere."""
    return [m for m in w.mounts() if m.startswith(f"{w.store}/run/warm/")]


def processes_on(w):
    return walkers(w) + w.daemons()


def tree(path):
    """All that can be seen of it: names, types, modes, times, contents."""
    seen = {}
    for top, dirs, files in os.walk(path):
        for name in [*dirs, *files]:
            at = Path(top, name)
            st = at.lstat()
            data = at.read_bytes() if at.is_file() and not at.is_symlink() else None
            seen[str(at.relative_to(path))] = (st.st_mode, st.st_ino, st.st_mtime_ns,
                                               st.st_ctime_ns, st.st_size, data)
    return seen


def fill(w):
    (w.project / "src" / "deep" / "er").mkdir(parents=True)
    (w.project / "src" / "deep" / "er" / "f").write_text("deep")
    (w.project / "link").symlink_to("README.md")
    os.link(w.project / "README.md", w.project / "src" / "hard")
    for i in range(40):
        (w.project / f"dir{i}").mkdir()
        for k in range(25):
            (w.project / f"dir{i}" / f"f{k}").write_text(f"{i} {k}")


@contextlib.contextmanager
def stopped_walkers(w):
    """Every walker that the daemon starts stops before its first instruction: strace sees to it."""
    if not shutil.which("strace"):
        raise Skip("strace, which stops walkers, is not installed")
    if os.geteuid() != 0:
        raise Skip("a user's strace takes from fusermount3 the right to mount")
    w.ok("start")
    (pid,) = w.daemons()
    tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-p", str(pid),
                               "-e", "trace=execve", "-e", "inject=execve:signal=SIGSTOP"])
    try:
        wait_for(lambda: tracer.poll() is not None
                 or "TracerPid:\t0" not in Path(f"/proc/{pid}/status").read_text())
        assert tracer.poll() is None, "strace cannot trace cowfsd"
        yield
    finally:
        tracer.terminate()
        try:
            tracer.wait(20)
        except subprocess.TimeoutExpired:  # strace itself hangs now and then while it lets go
            tracer.kill()
            tracer.wait()


def stopped_walker(w):
    """Wait for the walker of a clone that is not warm yet; it is stopped."""
    wait_for(lambda: any(state(pid) in ("T", "t") for pid in walkers(w)))
    assert daemon(w)["spare"] == "warming", daemon(w)
    (pid,) = walkers(w)
    return pid


def state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


def announce(w, n, *args):
    return w.ok("experiment", "announce", "--json", str(n), *args).json("snap.experiment/1", "snapshot")["snapshot"]

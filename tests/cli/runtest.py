"""What the tests of runs share: a run and what --json says of it, clones, waiting."""

import ctypes
import os
import select
import shlex
import struct
import subprocess
from pathlib import Path

from snaptest import SNAP, until  # noqa: F401  (for the tests)

MIB = 1 << 20
# Of the kernel's headers; the same on x86_64 and aarch64.
CLONE3, LANDLOCK_CREATE_RULESET = 435, 444
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, MODE_FILTER = 22, 38, 2


def run(w, *args, status=0, **more):
    """What --json says of a run."""
    result = w.snap("run", "--json", *args, **more)
    return result.json(
        "snap.run/1", "run", "clone", "before", "exit_code", "signal", "timed_out", "oom_killed",
        "limit", "isolation", "duration_ms", "cpu_ms", "max_rss", "stdout", "stderr", "truncated",
        "changed", status=result.status if status is None else status)


def sh(w, script, *args, status=0, **more):
    return run(w, *args, "--", "sh", "-c", script, status=status, **more)


def clones(w):
    return [c["clone"] for c in w.ok("list", "--json", "--all").json("snap.list/1")["clones"]]


def clone(w, name="try", *args):
    return Path(w.ok("-q", "clone", "-n", name, *args).out.decode().strip())


def hint_words(line):
    """The words of a hint as a shell reads them, without the program's name."""
    assert line.startswith("hint: "), line
    return shlex.split(line.removeprefix("hint: "))[1:]


def maker(process):
    """What a cgroup's name says of its maker: a number alone is soon another process's."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return process.pid, int(fields[19])  # when it began, which is field 22 of all


def cgroups(makers):
    """Those that these processes made and that are still there."""
    found = [top for top, _, _ in os.walk("/sys/fs/cgroup") if "/snap-run-" in top]
    return [top for top in found if tuple(map(int, Path(top).name.split("-")[3:5])) in makers]


def start(w, *args, **more):
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL,
            "cwd": w.project, "env": w.env, **more}
    # Unbuffered: a line that was read ahead would not be waited for in vain.
    return subprocess.Popen([SNAP, "run", *args], bufsize=0, **more)


def line_of(process):
    """The next line it prints."""
    ready, _, _ = select.select([process.stdout], [], [], 60)
    assert ready, "it says nothing"
    return process.stdout.readline()


def alive(command):
    """Whether anything runs on this machine whose words begin so."""
    return subprocess.run(["pgrep", "-f", "^" + command], check=False,
                          stdout=subprocess.DEVNULL).returncode == 0


def lacking(number, errno):
    """For preexec_fn: that system call fails, as on a machine that has it not."""
    code = b"".join(struct.pack("HBBI", *i) for i in (
        (0x20, 0, 0, 0),                    # load the number
        (0x15, 0, 1, number),               # is it that one?
        (0x06, 0, 0, 0x00050000 | errno),   # then it fails
        (0x06, 0, 0, 0x7FFF0000)))          # all others pass
    held = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", 4, ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)

    def enter():
        assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        assert libc.prctl(PR_SET_SECCOMP, MODE_FILTER, program, 0, 0) == 0, held
    return enter


def without_warning(text):
    """What is on stderr but for the one line about memory, where no cgroup can be had."""
    return b"".join(line for line in text.splitlines(keepends=True)
                    if not line.startswith(b"warning: memory was limited for each process"))


def memory_of(pid):
    """What of a process can be read."""
    pieces = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            begin, end = (int(n, 16) for n in line.split()[0].split("-"))
            if "rw" not in line:
                continue
            try:
                mem.seek(begin)
                pieces.append(mem.read(end - begin))
            except (OSError, OverflowError, ValueError):
                pass
    return b"".join(pieces)


def below(pid):
    """Its children, and theirs."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(c) for c in children] + [d for c in children for d in below(int(c))]

"""docs/guide/day.md: each of its lines is typed into one shell, and what comes is what the page shows."""

import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import live_test  # noqa: E402
from snaptest import SNAP, Skip, needs_fuse  # noqa: E402

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "day.md"
MARK = "-- that was it --"
SECONDS = 60
# What differs from day to day: ids, times, sizes, processes, and how many files a git of this version writes.
VARY = ((r"\b[0-9a-f]{7,16}\b", "ID"), (r"\b\d+(\.\d+)?(ms|s)\b", "TIME"), (r"\d+ files, [\d.]+ KiB", "FILES"),
        (r"process \d+", "process N"), (r"\d+ added, \d+ modified", "COUNTS"), (r"with \d+ snapshots", "SNAPSHOTS"),
        (r"^ \.git .*", " .git"), (r"^( price\.js) +", r"\1 "), (r"^ \d+ files changed.*", " CHANGED"))


def steps(text):
    """Each command of the page, with the lines that it prints."""
    found = []
    for block in re.findall(r"^```\n(.*?)^```", text, re.S | re.M):
        lines = iter(block.splitlines())
        for line in lines:
            if not line.startswith("$ "):
                found[-1][1].append(line)
                continue
            command = [line[2:]]
            while "<<'EOF'" in command[0] and command[-1] != "EOF":
                command.append(next(lines))
            found.append(("\n".join(command), []))
    return found


def plain(lines):
    out = []
    for line in lines:
        for pattern, word in VARY:
            line = re.sub(pattern, word, line)
        # A machine without a cgroup for this user says so; the page does, too.
        if not line.startswith("warning: "):
            out.append(line)
    return sorted(out)  # two streams in one pipe have no order


class Shell:
    def __init__(self, env, cwd):
        self.process = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, env=env, cwd=cwd, text=True)

    def type(self, command):
        # A run would read the lines that follow.
        self.process.stdin.write(f"{{ {command}\n}} < /dev/null\necho '{MARK}'\n")
        self.process.stdin.flush()
        late, lines = threading.Timer(SECONDS, self.process.kill), []
        late.start()
        for line in self.process.stdout:
            if line == MARK + "\n":
                late.cancel()
                return lines
            lines.append(line.rstrip("\n"))
        raise AssertionError(f"the shell ended: {command}: {lines}")

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(60)


def do(shell, command, wanted):
    """A line that waits two seconds for the server waits here until the server has said it."""
    waits = command.startswith("sleep 2; ")
    until = time.monotonic() + SECONDS
    while True:
        got = plain(shell.type(command.removeprefix("sleep 2; ")))
        if got == wanted or not waits or time.monotonic() > until:
            return got
        time.sleep(0.1)


@live_test
def a_day_as_the_guide_has_it(w):
    needs_fuse()
    if not shutil.which("node") or not shutil.which("git"):
        raise Skip("node and git are not installed")
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout
    if tuple(map(int, re.findall(r"\d+", said)[:2])) < (20, 13):
        raise Skip(f"node --watch of {said.strip()} warns that it is experimental")
    top = str(w.top / "day")
    shell = Shell(w.env, w.top)
    shell.type(f"snap() {{ '{SNAP}' \"$@\"; }}; export HOME='{w.home}'")
    shell.type("git config --global user.name Somebody; git config --global user.email somebody@example.org; "
               "git config --global init.defaultBranch main; git config --global log.decorate short")
    found = steps(GUIDE.read_text().replace("/tmp/day", top))
    assert len(found) > 30, len(found)
    try:
        for command, wanted in found:
            wanted = plain(wanted)
            got = do(shell, command, wanted)
            assert got == wanted, f"$ {command}\n" + "\n".join(got) + "\n--- the page has\n" + "\n".join(wanted)
        assert not Path(top).exists(), "nothing is left"
    finally:
        shell.type("kill $(jobs -p) 2> /dev/null; snap stop --force > /dev/null 2>&1; cd /")
        shell.end()


if __name__ == "__main__":
    sys.exit(livetest.main())

"""Type the commands of a page of the guide into one shell, and compare what comes with what the page shows."""

import re
import subprocess
import threading
import time
from pathlib import Path

from snaptest import SNAP

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"
MARK = "-- that was it --"
SECONDS = 60
# What differs from day to day: what the program is called, ids, times, sizes, processes, and how many files a git of this version writes.
VARY = ((r"\bsnapcow ", "snap "), (r"\b[0-9a-f]{7,16}\b", "ID"), (r"\b\d+(\.\d+)?(ms|s)\b", "TIME"), (r"\d+ files, [\d.]+ KiB", "FILES"),
        (r"process \d+", "process N"), (r"\bjust now\b|\b\d+ seconds? ago\b", "AGO"), (r"AGO by \w+", "AGO by YOU"), (r"\d+ added, \d+ modified", "COUNTS"), (r"\d+( automatic)? snapshots", "SNAPSHOTS"),
        (r"^ \.git .*", " .git"), (r"^( price\.js) +", r"\1 "), (r"^ \d+ files changed.*", " CHANGED"),
        (r"\d+ paths", "PATHS"), (r"\d+ deleted", "DELETED"), (r"\d+ +[\d.]+ KiB", "SIZE"), (r"^its own .*", "its own"),
        (r"promotion of [a-z]+-[a-z]+", "promotion of NAME"))


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


def plain(lines, vary=()):
    """Without what differs; `vary` has more of that, and None instead of a word leaves out the line."""
    out = []
    for line in lines:
        if any(word is None and re.search(pattern, line) for pattern, word in vary):
            continue
        for pattern, word in (*VARY, *((p, word) for p, word in vary if word is not None)):
            line = re.sub(pattern, word, line)
        line = re.sub("(?<=[^ ])  +", "  ", line)  # columns are as wide as their texts
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
        self.process.stdin.write(f"{{ {command}\n}} < /dev/null\nlast=$?; echo '{MARK}'; (exit $last)\n")
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


def section_of(text, title):
    """What is under this heading, up to the next."""
    assert f"\n## {title}\n" in text, title
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0] + "\n"


def do(shell, command, wanted, vary):
    """A line that waits two seconds for the server waits here until the server has said it."""
    waits = command.startswith("sleep 2; ")
    until = time.monotonic() + SECONDS
    while True:
        got = plain(shell.type(command.removeprefix("sleep 2; ")), vary)
        if got == wanted or not waits or time.monotonic() > until:
            return got
        time.sleep(0.1)


def type_page(w, name, top, section=None, least=31, vary=(), instead=()):
    """Type every command of docs/guide/NAME.md, or of one section, which has at least so many; `top` is the
    directory that the page says to remove in the end.  `instead` has words of the page and what stands for them."""
    page, here = GUIDE / f"{name}.md", str(w.top / name)
    shell = Shell(w.env, w.top)
    shell.type(f"snap() {{ '{SNAP}' \"$@\"; }}; export HOME='{w.home}'")
    shell.type("git config --global user.name Somebody; git config --global user.email somebody@example.org; "
               "git config --global init.defaultBranch main; git config --global log.decorate short")
    text = page.read_text().replace(top, here)
    for word, other in instead:
        text = text.replace(word, other)
    found = steps(section_of(text, section) if section else text)
    assert len(found) >= least, len(found)
    try:
        for command, wanted in found:
            wanted = plain(wanted, vary)
            got = do(shell, command, wanted, vary)
            assert got == wanted, f"$ {command}\n" + "\n".join(got) + "\n--- the page has\n" + "\n".join(wanted)
        assert not Path(here).exists(), "nothing is left"
    finally:
        shell.type("kill $(jobs -p) 2> /dev/null; snap stop --force > /dev/null 2>&1; cd /")
        shell.end()

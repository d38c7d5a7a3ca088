#!/usr/bin/env python3
"""Run a short session of snap in a scratch project and draw it as a terminal, in SVG.

usage: tools/terminal-svg.py [--program FILE] OUT.svg

The commands are real and so is the output; only paths of the scratch folder are shortened to ~.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = {
    "greet.py": 'def greet(name):\n    return "Hello, " + name\n',
    "test_greet.py": "import unittest\nfrom greet import greet\n\n\nclass Greeting(unittest.TestCase):\n"
                     "    def test_name(self):\n        self.assertIn('Ada', greet('Ada'))\n",
    ".env": "TOKEN=secret\n",
}
SESSION = [
    "snap clone -n idea",
    'cd "$(snap mount idea)"; ls -A',
    "sed -i s/Hello/Bonjour/ greet.py; snap snapshot -m 'in French'",
    "snap run -- sh -c 'touch /usr/mine; rm -rf .git *; ls'",
    "snap rollback",
    "cd ~/greeter; snap promote --check 'python3 -m unittest' idea",
    "snap undo",
]
CELL, LINE, PAD, FONT = 8.4, 19, 16, 14
# Text that a screen reader and a search find; colours with enough contrast on the dark ground.
STYLE = "font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"


def record(program, home):
    """Yield (line, is a command) of the session, which runs in one shell with its own store."""
    bin_dir, project = home / "bin", home / "greeter"
    bin_dir.mkdir()
    project.mkdir()
    (bin_dir / "snap").symlink_to(program)
    for name, text in FILES.items():
        (project / name).write_text(text)
    env = {"PATH": f"{bin_dir}:{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8",
           "SNAPCOW_STORE": str(home / "store"), "NO_COLOR": "1"}
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first version"]):
        subprocess.run([*git, *words], cwd=project, env=env, check=True)
    cwd = project
    try:
        for command in SESSION:
            yield command, True
            done = subprocess.run(["bash", "-c", f"{command}\necho; pwd"], cwd=cwd, env=env, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=True)
            *lines, cwd = done.stdout.rstrip("\n").split("\n")
            if lines and not lines[-1]:
                lines.pop()
            for line in lines:
                yield line.replace(str(home), "~"), False
    finally:
        subprocess.run([program, "stop", "--force"], env=env, check=True, stdout=subprocess.DEVNULL)


def draw(lines):
    columns = max(len(line) + 2 * command for line, command in lines)
    width, height = columns * CELL + 2 * PAD, len(lines) * LINE + 2 * PAD
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
           f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="a session of snap">',
           f'<rect width="100%" height="100%" rx="8" fill="#1c2128"/><g style="{STYLE}" '
           f'fill="#adbac7" xml:space="preserve">']
    for n, (line, command) in enumerate(lines):
        y = PAD + n * LINE + FONT
        text = escape(line, quote=False)
        if command:
            text = f'<tspan fill="#6bc46d">$</tspan> <tspan fill="#f0f3f6">{text}</tspan>'
        out.append(f'<text x="{PAD}" y="{y}">{text}</text>')
    return "\n".join([*out, "</g></svg>", ""])


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[2].removeprefix("usage: "))
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "cli" / "snapcow")
    parser.add_argument("out", type=Path)
    opts = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="snap-session-"))
    try:
        opts.out.write_text(draw(list(record(opts.program.resolve(), home))))
    finally:
        shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())

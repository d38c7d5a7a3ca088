"""docs/guide/machine.md: each of its lines that needs no package, network or machine of its own is typed, in its order."""

import os
import re
import subprocess
import sys

from roottest import main, plant
from livetest import live_test
from pagetest import GUIDE
from snaptest import SNAP

TOP, CONFIG = "/srv/roots/bookworm", "/srv/new-config"
# Packages, mirrors, other systems' programs, settings of the real machine, and a clone of all of it.
ELSEWHERE = r"apt|dpkg|make install|debootstrap|nginx -t|initdb|usermod|\bnext\b"
OUTPUT = {"snap run --root box -- id": "uid=0(root) gid=0(root) groups=0(root)\n", "cat /etc/os-release": "ID=small\n",
          "echo gone'": "gone\n", "diff box --stat": "# configuration changed: etc/motd\n"}


def commands():
    """Root's lines begin with another sign."""
    blocks = re.findall(r"^```console\n(.*?)^```", (GUIDE / "machine.md").read_text(), re.S | re.M)
    lines = [line for block in blocks for line in block.splitlines()]
    signs = ("$ snap ", "# snap ") if os.geteuid() == 0 else ("$ snap ",)
    return [line[2:] for line in lines if line.startswith(signs) and not re.search(ELSEWHERE, line)]


@live_test
def the_lines_of_the_page_work(w):
    top = plant(w.top / "root")
    (top / "etc/nginx").mkdir()
    (w.top / "new-config").mkdir()
    for name, text in (("nginx/nginx.conf", "user web;\n"), ("motd", "welcome\n"), ("os-release", "ID=small\n")):
        (top / "etc" / name).write_text(text)
    typed = commands()
    assert len(typed) >= (12 if os.geteuid() == 0 else 9), typed
    for line in typed:
        if line.startswith("snap import alpine"):
            w.ok("export", "box", "--oci", "alpine", cwd=top)
        if "promote box" in line or "diff box" in line:
            # What a person changed in it meanwhile.
            w.ok("run", "--root", "--allow-missing", "pids", "box", "--", "sh", "-c",
                 "for f in motd nginx/nginx.conf; do echo more >> /etc/$f; done", cwd=top)
        here = line.replace(TOP, str(top)).replace(CONFIG, str(w.top / "new-config"))
        # The page speaks of the machine there, and this is a directory.
        here = here.replace("snap run --root", "snap run --allow-missing pids --root").replace("undo --root", "undo")
        got = subprocess.run(["bash", "-c", f"snap() {{ '{SNAP}' \"$@\"; }}; {here}"], cwd=top, env=w.env, check=False,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert got.returncode == 0, (here, got)
        for part, said in OUTPUT.items():
            assert part not in line or said in got.stdout, (line, got)
    assert (w.top / "new-config/nginx.conf").read_text().startswith("user web;\nmore\n")


if __name__ == "__main__":
    sys.exit(main())

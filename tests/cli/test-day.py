"""docs/guide/day.md: each of its lines is typed into one shell, and what comes is what the page shows."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import live_test  # noqa: E402
from pagetest import type_page  # noqa: E402
from snaptest import Skip, needs_fuse  # noqa: E402


@live_test
def a_day_as_the_guide_has_it(w):
    needs_fuse()
    if not shutil.which("node") or not shutil.which("git"):
        raise Skip("node and git are not installed")
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout
    if tuple(map(int, re.findall(r"\d+", said)[:2])) < (20, 13):
        raise Skip(f"node --watch of {said.strip()} warns that it is experimental")
    type_page(w, "day", "/tmp/day")


if __name__ == "__main__":
    sys.exit(livetest.main())

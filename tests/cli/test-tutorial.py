"""docs/guide/tutorial.md: each of its lines is typed into one shell, and what comes is what the page shows."""

import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import live_test  # noqa: E402
from pagetest import type_page  # noqa: E402
from snaptest import Skip, needs_fuse  # noqa: E402


@live_test
def the_tutorial_as_the_guide_has_it(w):
    needs_fuse()
    if not shutil.which("git"):
        raise Skip("git is not installed")
    type_page(w, "tutorial", "/tmp/tutorial")


if __name__ == "__main__":
    sys.exit(livetest.main())

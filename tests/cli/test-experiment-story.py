"""docs/guide/experiments.md: the story of three fixes is typed into one shell, and what comes is what the page shows."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import live_test  # noqa: E402
from pagetest import type_page  # noqa: E402
from snaptest import needs_fuse  # noqa: E402

# Lines that tell of the steps in a pipe, what a version of Python counts, and sizes in memory.
VARY = ((r"^\w+: (running|checking|passed after .*)$", None), (r"\b\d{2,}(e\+\d+)?(?=[ ,]|$)", "COUNT"),
        (r"\d+(\.\d+)? [KM]iB", "SIZE"), (r" #+", " BAR"))


@live_test
def three_fixes_as_the_guide_has_them(w):
    needs_fuse()
    type_page(w, "experiments", "/tmp/slug", section="Three fixes for one failing test", least=15, vary=VARY)


if __name__ == "__main__":
    sys.exit(livetest.main())

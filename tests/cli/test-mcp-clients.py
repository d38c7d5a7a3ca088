"""snap mcp with clients that others wrote: the SDK of the handshake, and the one of both eras.

They come from npm, pinned, into a directory of the build; where npm cannot bring them the test is
skipped.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from npmtest import npm_install
from snaptest import SNAP, main, needs_fuse, test

HERE = Path(__file__).resolve().parent / "mcp-clients"


def clients():
    """The directory with the clients in it."""
    at = npm_install(HERE / "package.json", "npm")
    shutil.copy(HERE / "story.mjs", at)
    return at


def tell_story(w, kind):
    needs_fuse()
    done = subprocess.run(["node", "story.mjs", SNAP, w.project, kind], cwd=clients(), env=w.env,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    assert "snap_promote" in steps[0]["names"], steps[0]
    failed = [s["step"] for s in steps if s.get("failed")]
    assert failed == ["snap_edit"], (failed, steps)
    assert [s["step"] for s in steps].count("asked") == 2, steps
    told = {s["step"]: s for s in steps}
    assert told["snap_read"]["got"]["content"] == f"{kind}\n", told["snap_read"]
    assert told["snap_undo"]["got"]["promotion"], told["snap_undo"]
    assert (w.project / "README.md").read_text() == "first\n"
    return steps[0]["version"]


@test
def the_sdk_of_the_handshake_tells_the_whole_story(w):
    tell_story(w, "v1")


@test
def the_sdk_of_both_eras_can_use_the_handshake(w):
    assert tell_story(w, "legacy") == "2025-11-25"


@test
def the_sdk_of_both_eras_finds_the_newer_one_by_itself(w):
    assert tell_story(w, "auto") == "2026-07-28"


@test
def the_sdk_of_both_eras_can_be_pinned_to_the_newer_one(w):
    assert tell_story(w, "pin") == "2026-07-28"


if __name__ == "__main__":
    sys.exit(main())

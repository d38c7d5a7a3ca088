"""The example of docs/guide/overnight.md: its files, a night, and what is there in the morning."""

import re
import sys
from pathlib import Path

from snaptest import World, main, needs_fuse, test
from watchtest import HOUR, MINUTE, Clock, config, firings, once, put, results, status

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "overnight.md"
TEST = "#!/bin/sh\n! grep -q broken notes.txt && ! grep -q 2.0 deps.lock && test ! -e sick\n"
LINT = "#!/bin/sh\nsed -i 's/ *$//' *.txt\n"


def night(w):
    """The files of the guide, for a project and a copy of it in this world."""
    needs_fuse()
    there = w.top / "staging"
    for top in (w.project, there):
        for name, text in (("test", TEST), ("lint", LINT)):
            put(top / name, text)
            (top / name).chmod(0o755)
        put(top / "deps.lock", "lib 1.0\n")
        put(top / "notes.txt", "fine\n")
        put(top / "README.md", "first\n")
    found = re.findall(r"```yaml\n# (\S+)\n(.*?)```", GUIDE.read_text(), re.S)
    assert {name for name, _ in found} == {"pipeline.yaml", "policy.yaml", "watch.yaml", "experiments/upgrade.yaml"}
    for name, text in found:
        text = text.replace("/home/alice/src/shop", str(w.project)).replace("/srv/staging/shop", str(there))
        (w.home / ".config" / "snapcow" / name).parent.mkdir(parents=True, exist_ok=True)
        if "/" in name:
            put(w.home / ".config" / "snapcow" / name, text)
        else:
            config(w, name, text)
    return there


@test
def a_night_as_the_guide_has_it(w: World):
    clock, there = Clock(w), night(w)
    once(w)
    put(w.project / "notes.txt", "fine, with blanks   \n")
    once(w)
    assert results(w, "lint") == ["shipped"] and (w.project / "notes.txt").read_text() == "fine, with blanks\n", firings(w)
    assert (there / "notes.txt").read_text() == "fine\n", "the rule stops at dev"
    clock.forward(10 * HOUR)
    once(w)
    assert results(w, "upgrade") == ["shipped"], firings(w, "upgrade")
    assert (w.project / "deps.lock").read_text() == (there / "deps.lock").read_text() == "lib 1.3\n", "2.0 fails its tests"
    soaking = next(c for c in status(w)["changes"] if c["who"] == "watch:upgrade")
    assert soaking["state"] == "soaking", soaking
    put(there / "sick")
    clock.forward(20 * MINUTE)
    once(w)
    got = w.ok("pipeline", "--all", "--json").json("snap.pipeline/1")["changes"]
    assert next(c for c in got if c["who"] == "watch:upgrade")["state"] == "sick", got
    assert (w.project / "deps.lock").read_text() == (there / "deps.lock").read_text() == "lib 1.0\n", "out of both"
    assert (w.project / "notes.txt").read_text() == "fine, with blanks\n"
    put(w.project / "notes.txt", "broken\n")
    clock.forward(HOUR)
    once(w)
    assert results(w, "flaky") == ["failed"], firings(w)
    w.ok("pipeline", "verify", "--all")


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Every row of the tables in docs/merge.md is a test of test-merge.c, and every test there is a row or no case."""

import re
import sys
from pathlib import Path

# Tests that are no case of a merge.
OTHER = {
    "what_two_sides_touch_is_told_with_whether_it_overlaps",
    "who_has_heard_enough_of_overlaps_ends_it",
}


def main():
    doc, test = (Path(name).read_text(encoding="utf-8") for name in sys.argv[1:3])
    rows = re.findall(r"^\|.*\| `(\w+)` \|$", doc, re.MULTILINE)
    tests = set(re.findall(r"^TEST\((\w+)\)", test, re.MULTILINE))
    wrong = [f"row '{r}' has no test" for r in rows if r not in tests]
    wrong += [f"row '{r}' stands twice" for r in sorted(set(rows)) if rows.count(r) > 1]
    wrong += [f"test '{t}' has no row" for t in sorted(tests - set(rows) - OTHER)]
    print("1..1")
    for line in wrong:
        print("#", line)
    print("not ok" if wrong else "ok", f"1 - each of {len(rows)} rows is a test")
    return bool(wrong)


sys.exit(main())

#!/usr/bin/env python3
"""Every row of the tables in docs/design/merge.md is a test of the files named after it, and every test there is a row."""

import re
import sys
from pathlib import Path


def main():
    doc, *files = (Path(name).read_text(encoding="utf-8") for name in sys.argv[1:])
    rows = re.findall(r"^\|.*\| `(\w+)` \|$", doc, re.MULTILINE)
    tests = {t for f in files for t in re.findall(r"^TEST\((\w+)\)", f, re.MULTILINE)}
    wrong = [f"row '{r}' has no test" for r in rows if r not in tests]
    wrong += [f"row '{r}' stands twice" for r in sorted(set(rows)) if rows.count(r) > 1]
    wrong += [f"test '{t}' has no row" for t in sorted(tests - set(rows))]
    print("1..1")
    for line in wrong:
        print("#", line)
    print("not ok" if wrong else "ok", f"1 - each of {len(rows)} rows is a test")
    return bool(wrong)


sys.exit(main())

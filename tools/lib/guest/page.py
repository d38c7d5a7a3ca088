"""The tables of results in a document: printed, read again, and brought up to date.

Results stay on the machine that found them, so the document is the record: a run replaces what it
found out itself, and every other cell stays.
"""

import re

import report
import sample
import situations

TESTS = len(report.COLUMNS)  # the cell of the test programs; that of the commit is after it
COST = "Milliseconds, {}, beside other work: the least and the median of those measured."


def row(words):
    return f"| {' | '.join(words)} |"


def render(one):
    """A section as Markdown."""
    lines = [f"### {one['guest']}: {one['system']}", "",
             row(["situation", *report.COLUMNS, "test programs", "commit"]), "|---" * (TESTS + 3) + "|"]
    known = [s.what for s in situations.ALL]
    lines += [row([what, *one["rows"][what]]) for what in known if what in one["rows"]]
    missing = [what for what in known if what not in one["rows"]]
    if missing:
        lines += ["", f"Not tried: {'; '.join(missing)}."]
    if one["failed"]:
        lines += ["", "Failed:", ""]
        lines += [f"- `{check}` ({', '.join(names)}): {why}" for check, names, why in one["failed"]]
    if one["costs"]:
        names = list(next(iter(one["costs"].values())))
        lines += ["", COST.format(one["how"]), "", row(["situation", *names]), "|---" * (len(names) + 1) + "|"]
        lines += [row([what, *one["costs"][what].values()]) for what in known if what in one["costs"]]
    return "\n".join(lines) + "\n"


def parse_tables(lines, one):
    names = []
    for cells in ([c.strip() for c in line.strip("|").split("|")] for line in lines if line.startswith("|")):
        if cells[0] == "situation":
            names = cells[1:]
        elif not cells[0].startswith("---") and len(names) == TESTS + 2:
            one["rows"][cells[0]] = cells[1:]
        elif not cells[0].startswith("---"):
            one["costs"][cells[0]] = dict(zip(names, cells[1:]))


def parse(text):
    """The sections of a document, by guest; the reverse of render()."""
    found = {}
    for part in re.split(r"(?m)^### ", text)[1:]:
        guest, system = part.split("\n", 1)[0].split(": ", 1)
        how = re.search(r"(?m)^Milliseconds, (.*?), beside", part)
        one = {"guest": guest, "system": system, "rows": {}, "failed": [], "costs": {},
               "how": how.group(1) if how else ""}
        parse_tables(part.splitlines(), one)
        for item in re.findall(r"(?m)^- (.*(?:\n  .*)*)", part):
            check, names, why = re.fullmatch(r"`(.*?)` \((.*?)\): (.*)", " ".join(item.split())).groups()
            one["failed"].append((check, names.split(", "), why))
        found[guest] = one
    return found


def update(old, new, found):
    """A section with what was found now. It may be only the tests of a situation, or all but them."""
    rows = {**old["rows"], **new["rows"]}
    for one in found.values():
        what = one["what"]
        before = old["rows"].get(what)
        if before and not one["checks"]:
            rows[what] = [*before[:TESTS], new["rows"][what][TESTS], before[TESTS + 1]]
        elif before and not one.get("tests"):
            rows[what][TESTS] = before[TESTS]

    def is_past(check, name):
        now = found.get(name)
        return now and (now.get("tests") if check in sample.SAMPLE else now["checks"])

    failed = [(check, [n for n in names if not is_past(check, n)], why) for check, names, why in old["failed"]]
    return {**new, "rows": rows, "failed": [f for f in failed if f[1]] + new["failed"],
            "costs": {**old["costs"], **new["costs"]}, "how": new["how"] or old["how"]}


def bring_up_to_date(text, guests):
    """What stands between the markers of a document, with the results of these guests."""
    sections = parse(text)
    for (suite, arch), found in guests.items():
        new = report.section(suite, arch, found)
        old = sections.get(new["guest"])
        sections[new["guest"]] = update(old, new, found) if old else new
    return "\n".join(map(render, sections.values()))

"""The one renderer: rows as Markdown and as JSON, with the machine in the head."""

import json

import machine
from row import MET, OURS, SHORT


def counted(number, noun):
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class Section:
    """What a group of parts came to."""

    def __init__(self, name, group, session):
        self.name, self.title, self.columns = name, group.title, group.columns
        self.rows, self.curves, self.skipped = session.rows, session.curves, session.skipped
        self.seconds = {}  # part: how long it took in all
        self.failed = {}  # part: why it was not finished

    def data(self):
        return {"name": self.name, "title": self.title,
                "rows": [row.data() for row in self.rows],
                "curves": [curve.data() for curve in self.curves],
                "skipped": self.skipped, "seconds": self.seconds, "failed": self.failed}


class Report:
    def __init__(self, opts, where):
        self.opts, self.machine = opts, machine.describe(where)
        self.sections = []
        self.interrupted = False

    def rows(self):
        return [row for section in self.sections for row in section.rows]

    def seconds(self):
        return sum(sum(section.seconds.values()) for section in self.sections)

    # --- Markdown -------------------------------------------------------------------------------

    def head(self):
        opts = self.opts
        lines = [f"{machine.sentence(self.machine)}.",
                 f"{opts.entries:,} entries, a large file of {opts.large >> 20:,} MiB, "
                 f"{counted(opts.rounds, 'round')} in turn after one to warm up; medians, the best "
                 "in brackets; a ratio is ours to the peer's, of medians and of the best. "
                 f"All of it took {self.seconds() / 60:.1f} minutes."]
        if opts.quick:
            lines.insert(0, "**Quick: few rounds and small trees, for a look; these are no figures "
                            "to keep.**")
        if self.interrupted:
            lines.insert(0, "**Interrupted: this is what was measured until then.**")
        return lines

    def table(self, section):
        columns = [c for c in section.columns if any(c in row.values for row in section.rows)]
        others = any(set(row.values) - {OURS, *columns} for row in section.rows)
        header = ["", *columns, *(["peer"] if others else []), OURS, "ratio", "of the best",
                  "target", "verdict"]
        lines = [header, ["---"] * len(header)]
        for row in section.rows:
            peers = [row.cell(who) for who in columns]
            if others:
                peers.append("<br>".join(f"{who}: {row.cell(who)}" for who in row.values
                                         if who not in (OURS, *columns)))
            first = [row.name, *peers, row.cell(OURS)]
            for at, target in enumerate(row.targets or [None]):
                lines.append([*(first if at == 0 else [""] * len(first)),
                              *self.judged(row, target)])
        return ["| " + " | ".join(line) + " |" for line in lines]

    @staticmethod
    def judged(row, target):
        if not target:
            return ["", "", "", ""]
        judged = row.judge(target)
        return [f"{judged[key]:.2f}" if judged[key] is not None else ""
                for key in ("ratio", "best_ratio")] + [target.text(row.unit), judged["verdict"]]

    @staticmethod
    def below(section):
        """What does not fit into the table."""
        notes = {}  # what is to be said: of which rows
        for row in section.rows:
            for note in dict.fromkeys(row.notes):
                notes.setdefault(note, []).append(row.name)
        lines = [f"{note}: {'; '.join(names)}" for note, names in notes.items()]
        lines += [f"skipped {peer}: {why}" for peer, why in section.skipped.items()]
        lines += [f"the part '{part}' failed: {why}" for part, why in section.failed.items()]
        return [f"- {line}" for line in lines]

    def summary(self):
        verdicts = [row.judge(target)["verdict"] for row in self.rows() for target in row.targets]
        met, short = verdicts.count(MET), verdicts.count(SHORT)
        lines = [f"{counted(len(verdicts), 'target')}: {met} met, {short} short, "
                 f"{len(verdicts) - met - short} skipped."]
        far = sorted((row for row in self.rows() if row.shortfall() > 1),
                     key=lambda row: -row.shortfall())
        if far:
            lines.append("Short, the farthest first: " + "; ".join(
                f"{row.name} (by {(row.shortfall() - 1) * 100:.0f} %)" for row in far) + ".")
        return lines

    def markdown(self):
        out = [*self.head(), ""]
        for section in self.sections:
            out += [f"## {section.title}", ""]
            if section.rows:
                out += [*self.table(section), ""]
            below = self.below(section)
            out += [*below, ""] if below else []
        return "\n".join([*out, *self.summary()]) + "\n"

    # --- JSON -----------------------------------------------------------------------------------

    def data(self):
        opts = self.opts
        return {"machine": self.machine, "interrupted": self.interrupted, "quick": opts.quick,
                "rounds": opts.rounds, "entries": opts.entries, "sizes": opts.sizes,
                "large_bytes": opts.large, "seconds": self.seconds(),
                "groups": [section.data() for section in self.sections]}

    def json(self):
        return json.dumps(self.data(), indent=1) + "\n"

"""A row of the table: what is measured, who took part, and what is asked of us.

Values are collected as they come and judged at the end. A ratio is ours to a peer's, of the
medians and of the best values (the least, or for a rate the greatest); of the two the worse one
counts, so luck in one round meets no target. Where a fixed figure is asked for the median counts.
"""

import statistics

OURS = "snap"
PRIVATE = "private clone"  # ours too, the fastest: what it needs is ours in a row of its own

MET, SHORT, SKIPPED = "met", "short", "skipped"


class Target:
    """At most, or at least, so many times what the peer has; or a figure in the row's unit."""

    def __init__(self, limit, peer=None, least=False):
        self.limit, self.peer, self.least = limit, peer, least

    def holds(self, *values):
        return min(values) >= self.limit if self.least else max(values) <= self.limit

    def text(self, unit):
        sign = ">=" if self.least else "<="
        if self.peer:
            return f"{sign} {self.limit:.2f}x {self.peer}"
        return f"{sign} {self.limit:g} {unit}"


def at_most(limit, peer=None):
    return Target(limit, peer)


def at_least(limit, peer=None):
    return Target(limit, peer, least=True)


class Row:
    """`unit` is of the values; with rate=True more of it is better."""

    def __init__(self, name, unit, *targets, rate=False):
        self.name, self.unit, self.targets, self.rate = name, unit, targets, rate
        self.values = {}  # contestant: what it needed, in the order of rounds
        self.absent = {}  # contestant: why it has no values
        self.notes = []

    def add(self, who, value):
        self.values.setdefault(who, []).append(value)

    def skip(self, why, who=OURS):
        self.absent[who] = why

    def counts(self):
        """How many values each has."""
        return {who: len(values) for who, values in self.values.items()}

    def go_back(self, counts, keep=()):
        """Forget what came since, to warm up; but of those in `keep` it is all there is."""
        for who in list(self.values):
            if who in keep:
                self.notes.append(f"{who} takes long and had one round")
                continue
            del self.values[who][counts.get(who, 0):]
            if not self.values[who]:
                del self.values[who]

    def peers(self):
        """Those that a target names: without them there is no verdict."""
        return {target.peer for target in self.targets if target.peer}

    def median(self, who):
        return statistics.median(self.values[who])

    def best(self, who):
        return max(self.values[who]) if self.rate else min(self.values[who])

    def cell(self, who):
        if who not in self.values:
            return ""
        median, best = self.median(who), self.best(who)
        if len(self.values[who]) == 1:
            return f"{figure(median)} {self.unit}"
        return f"{figure(median)} {self.unit} ({figure(best)})"

    def why_not(self, target):
        """Why that target cannot be judged, or None."""
        if OURS not in self.values:
            return self.absent.get(OURS, "not measured")
        if target.peer and target.peer not in self.values:
            return f"{target.peer}: {self.absent.get(target.peer, 'not measured')}"
        return None

    def judge(self, target):
        """What became of a target: ratio, best_ratio (None without a peer) and verdict."""
        why = self.why_not(target)
        if why:
            return {"ratio": None, "best_ratio": None, "verdict": f"{SKIPPED}: {why}"}
        if not target.peer:
            held = target.holds(self.median(OURS))
            return {"ratio": None, "best_ratio": None, "verdict": MET if held else SHORT}
        ratio = self.median(OURS) / self.median(target.peer)
        best = self.best(OURS) / self.best(target.peer)
        return {"ratio": ratio, "best_ratio": best,
                "verdict": MET if target.holds(ratio, best) else SHORT}

    def shortfall(self):
        """How many times its worst missed target we are away from; 1 or less: none missed."""
        worst = 0.0
        for target in self.targets:
            judged = self.judge(target)
            if judged["verdict"] != SHORT:
                continue
            got = [r for r in (judged["ratio"], judged["best_ratio"]) if r is not None]
            got = got or [self.median(OURS)]
            far = target.limit / min(got) if target.least else max(got) / target.limit
            worst = max(worst, far)
        return worst

    def data(self):
        """All of it, for JSON."""
        return {"name": self.name, "unit": self.unit, "more_is_better": self.rate,
                "contestants": {who: {"median": self.median(who), "best": self.best(who),
                                      "values": values} for who, values in self.values.items()},
                "absent": self.absent,
                "targets": [{"peer": t.peer, "limit": t.limit, "at_least": t.least,
                             **self.judge(t)} for t in self.targets],
                "notes": self.notes}


def figure(value):
    """Three digits that matter, no exponent."""
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"

"""A curve: what one thing takes as another grows."""

import statistics


class Curve:
    """`panel` says what grows, `label` what is timed, in milliseconds."""

    def __init__(self, panel, label):
        self.panel, self.label = panel, label
        self.points = {}  # how much: milliseconds

    def add(self, at, value):
        self.points.setdefault(at, []).append(value)

    def medians(self):
        return [(at, statistics.median(self.points[at])) for at in sorted(self.points)]

    def data(self):
        return {"panel": self.panel, "label": self.label, "unit": "ms",
                "points": [{"at": at, "median": statistics.median(values), "min": min(values),
                            "values": values} for at, values in sorted(self.points.items())]}

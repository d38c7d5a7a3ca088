"""Curves as an SVG: one panel for each thing that grows, both axes logarithmic."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 380, 320  # of a panel's square
LEFT, TOP, GAP, BELOW = 78, 62, 54, 62
KEY = 20  # a line of the legend
COLOURS = ["#1b6ca8", "#c8553d", "#2a9d5c", "#8e5aa8", "#b8860b", "#444444", "#d46a9f", "#17a2a2",
           "#7a5230"]
SHAPES = ["circle", "square", "diamond", "triangle", "cross", "ring"]


class Scale:
    """Whole decades around the values, onto pixels."""

    def __init__(self, values, start, end):
        self.first = math.floor(math.log10(min(values)) + 1e-9)
        self.last = max(math.ceil(math.log10(max(values)) - 1e-9), self.first + 1)
        self.start, self.end = start, end

    def at(self, value):
        part = (math.log10(value) - self.first) / (self.last - self.first)
        return self.start + part * (self.end - self.start)

    def decades(self):
        return [10.0 ** n for n in range(self.first, self.last + 1)]

    def between(self):
        return [base * n for base in self.decades()[:-1] for n in range(2, 10)]


def number(value):
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def three_digits(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def text(x, y, what, **style):
    words = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in style.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{words}>{escape(what)}</text>'


def line(x1, y1, x2, y2, colour):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def mark(shape, x, y, colour):
    """Told apart by shape as well as by colour."""
    points = {"square": [(-4, -4), (4, -4), (4, 4), (-4, 4)],
              "diamond": [(0, -5.5), (5.5, 0), (0, 5.5), (-5.5, 0)],
              "triangle": [(0, -5), (5, 4), (-5, 4)]}
    if shape in points:
        corners = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in points[shape])
        return f'<polygon points="{corners}" fill="{colour}"/>'
    if shape == "cross":
        return (f'<path d="M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8" stroke="{colour}" '
                'stroke-width="2" fill="none"/>')
    inside = "white" if shape == "ring" else colour
    return (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{inside}" stroke="{colour}" '
            'stroke-width="1.5"/>')


def axes(panel, x, y, with_labels):
    out = [f'<rect x="{x.start:.1f}" y="{y.end:.1f}" width="{WIDTH}" height="{HEIGHT}" '
           'fill="white" stroke="#888888"/>']
    for value in y.between():
        out.append(line(x.start, y.at(value), x.end, y.at(value), "#f3f3f3"))
    for value in y.decades():
        out.append(line(x.start, y.at(value), x.end, y.at(value), "#d5d5d5"))
        if with_labels:
            out.append(text(x.start - 8, y.at(value) + 4, number(value), text_anchor="end"))
    for value in x.decades():
        out.append(line(x.at(value), y.start, x.at(value), y.end, "#d5d5d5"))
        out.append(text(x.at(value), y.start + 20, number(value), text_anchor="middle"))
    middle = (x.start + x.end) / 2
    out.append(text(middle, y.start + 44, panel, text_anchor="middle", font_weight="bold"))
    return out


def draw(curve, look, x, y, below):
    """A curve, and its line of the legend, `below` the panel."""
    colour, shape = COLOURS[look % len(COLOURS)], SHAPES[look % len(SHAPES)]
    dots = [(x.at(a), y.at(b)) for a, b in curve.medians()]
    path = " ".join(f"{px:.1f},{py:.1f}" for px, py in dots)
    out = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>']
    out += [mark(shape, px, py, colour) for px, py in dots]
    last = curve.medians()[-1]
    words = f"{curve.label.replace('`', '')}: {three_digits(last[1])} ms at {number(last[0])}"
    out += [line(x.start, below, x.start + 26, below, colour),
            mark(shape, x.start + 13, below, colour), text(x.start + 34, below + 4, words)]
    return out


def svg(curves, title, below):
    """The whole picture; `below` says what machine it is of."""
    curves = [c for c in curves if c.points]
    panels = list(dict.fromkeys(c.panel for c in curves))
    labels = list(dict.fromkeys(c.label for c in curves))  # the same looks the same everywhere
    y = Scale([v for c in curves for _, v in c.medians()], TOP + HEIGHT, TOP)
    keys = max(sum(c.panel == panel for c in curves) for panel in panels)
    width = LEFT + len(panels) * (WIDTH + GAP)
    key = TOP + HEIGHT + BELOW + 10
    height = key + keys * KEY + 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" '
           'fill="#222222">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           text(LEFT, 26, title, font_size=16, font_weight="bold"), text(LEFT, 46, below),
           f'<text transform="translate(20 {TOP + HEIGHT / 2:.0f}) rotate(-90)" '
           'text-anchor="middle" font-weight="bold">milliseconds</text>']
    for column, panel in enumerate(panels):
        mine = [c for c in curves if c.panel == panel]
        start = LEFT + column * (WIDTH + GAP)
        x = Scale([at for c in mine for at in c.points], start, start + WIDTH)
        out += axes(panel, x, y, column == 0)
        for at, curve in enumerate(mine):
            out += draw(curve, labels.index(curve.label), x, y, key + at * KEY)
    return "\n".join([*out, "</svg>"]) + "\n"

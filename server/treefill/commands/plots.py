"""Plots as inline SVG: numbers in, text out. They need no script and no font, take their colours from the page, and
are as wide as it is, so that what is written in them keeps its size in a narrow window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

ROW_PX = 44
COLUMNS_PX = 140

STYLE = """
svg { display: block; width: 100%; }
svg text { fill: var(--ink); font: 14px system-ui, sans-serif; }
svg .value { text-anchor: end; font-variant-numeric: tabular-nums; fill: var(--quiet); }
svg .track { fill: var(--track); }
svg .bar { fill: var(--bar); }
svg .even { stroke: var(--ink); stroke-dasharray: 4 3; }
"""
"""What a page with plots says of them, beside the colours `--ink`, `--quiet`, `--track` and `--bar`."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a plot."""

    label: str
    value: float
    told: str
    """The value as people read it, with its unit."""


def bars(name: str, title: str, rows: Sequence[Bar]) -> str:
    """Values beneath each other, each as wide as its share of all. `name` is the plot's own in its page."""
    whole = sum(row.value for row in rows)
    drawn = "".join(_row(number * ROW_PX, row, whole) for number, row in enumerate(rows))
    told = "; ".join(f"{row.label}: {row.told}" for row in rows)
    return _svg(name, title, told, ROW_PX * len(rows), drawn)


def columns(name: str, title: str, values: Sequence[float], even: float | None = None) -> str:
    """Values beside each other, with a line where all would end that are `even`."""
    highest = max([*values, even or 0.0], default=0.0)
    drawn = "".join(_column(number, len(values), value, highest) for number, value in enumerate(values))
    told = f"{len(values)} values from {min(values, default=0):,.0f} to {max(values, default=0):,.0f}"
    if even is not None:
        y = _number(COLUMNS_PX - _of(even, highest, COLUMNS_PX))
        drawn += f'<line class="even" x1="0" x2="100%" y1="{y}" y2="{y}"/>'
        told += f"; {even:,.1f} each were they spread evenly"
    return _svg(name, title, told, COLUMNS_PX, drawn)


def _svg(name: str, title: str, told: str, height_px: int, drawn: str) -> str:
    own = escape(name)
    return (
        f'<svg role="img" aria-labelledby="{own}-title {own}-told" height="{height_px}">'
        f'<title id="{own}-title">{escape(title)}</title><desc id="{own}-told">{escape(told)}</desc>{drawn}</svg>'
    )


def _row(y: int, row: Bar, whole: float) -> str:
    return (
        f'<text x="0" y="{y + 16}">{escape(row.label)}</text>'
        f'<text class="value" x="100%" y="{y + 16}">{escape(row.told)}</text>'
        f'<rect class="track" x="0" y="{y + 23}" width="100%" height="10" rx="2"/>'
        f'<rect class="bar" x="0" y="{y + 23}" width="{_number(_of(row.value, whole, 100))}%" height="10" rx="2"/>'
    )


def _column(number: int, n: int, value: float, highest: float) -> str:
    height = _of(value, highest, COLUMNS_PX)
    return (
        f'<rect class="bar" x="{_number(100 * number / n)}%" y="{_number(COLUMNS_PX - height)}" '
        f'width="{_number(80 / n)}%" height="{_number(height)}"/>'
    )


def _of(value: float, largest: float, whole: float) -> float:
    return whole * value / largest if largest > 0 else 0.0


def _number(value: float) -> str:
    """Short, and never in the notation that has an exponent.

    >>> _number(12.5), _number(3.0), _number(1 / 3)
    ('12.5', '3', '0.333')
    """
    return f"{value:.3f}".rstrip("0").rstrip(".")

"""A new file's header: its first lines, each of which matches a pattern."""

from collections.abc import Sequence

from treefill.syntax.rules.form import Breach, Rule


def header_breach(
    before: str, text: str, after: str, rules: Sequence[Rule], is_growing: bool = False
) -> Breach | None:
    """What of a new file's header would be another one, with `text` between what is left and right of it."""
    for rule in rules:
        place = _place(rule, before, after)
        if place is None:
            continue
        lines = (before + text).split("\n")
        for number, pattern in enumerate(rule.header, start=place):
            if number < before.count("\n") or number >= len(lines):
                continue
            line, is_last = lines[number].rstrip("\r"), number == len(lines) - 1
            if is_last and is_growing and pattern.may_begin(line):
                continue
            if not pattern.fits(line) and (text or not is_last):
                at = sum(len(each) + 1 for each in lines[:number]) - len(before)
                return rule.breach(f"a header whose line {number + 1} is not as `{pattern.text}` says", at)
    return None


def headers_at(before: str, after: str, rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The rules whose header is being written at the place between the two."""
    return tuple(rule for rule in rules if _place(rule, before, after) is not None)


def open_header_line(before: str, text: str, after: str, rules: Sequence[Rule]) -> bytes:
    """What must come next in the header; nothing where there is a choice."""
    for rule in rules:
        place = _place(rule, before, after)
        lines = (before + text).split("\n")
        if place is not None and place <= len(lines) - 1 < place + len(rule.header):
            number, line = len(lines) - 1 - place, lines[-1]
            forced = rule.header[number].forced(line)
            is_next = number + 1 < len(rule.header) and rule.header[number].is_over(line + forced)
            return (forced + "\n" * is_next).encode()
    return b""


def _place(rule: Rule, before: str, after: str) -> int | None:
    """The header's first line, from 0, which is the second where the first says what runs the file; None where there is
    nothing of a header to be written here.
    """
    if not rule.header or after.strip() or before.count("\n") > len(rule.header):
        return None
    lines = before.split("\n")
    place = 1 if lines[0].startswith("#!") else 0
    above = lines[place:-1]
    if len(above) >= len(rule.header) or len(lines) - 1 < place:
        return None
    is_so_far = all(
        pattern.fits(line.rstrip("\r")) for line, pattern in zip(above, rule.header, strict=False)
    )
    return place if is_so_far and rule.header[len(above)].may_begin(lines[-1]) else None

"""How the last answer in a document came about, as a page to read: what `treefill.explain` tells, in Markdown."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

_N_SHOWN_LINES = 40
"""Of each text, the last so many: what stands right before the cursor matters most."""


def as_markdown(uri: str, told: Mapping[str, Any]) -> str:
    """A page of headings, each with what there is to tell of it; what there is not is left out."""
    sections = (
        _outcome(told),
        _timings(told),
        _parts(told),
        _filters(told),
        _syntax(told),
        _rules(told),
        _left_out(told),
    )
    return "\n".join((f"# The last completion in {_name(uri)}", "", *(line for s in sections for line in s)))


def _outcome(told: Mapping[str, Any]) -> Iterator[str]:
    if told.get("reason"):
        yield from (f"**Nothing was suggested:** {told.get('sentence', '')} (`{told['reason']}`)", "")
    elif told.get("sentence"):
        yield from (str(told["sentence"]), "")
    elif told.get("source"):
        name = f" ({_in_a_line(str(told['template']))})" if told.get("template") else ""
        yield from (f"Suggested; where it came from: **{told['source']}**{name}.", "")
    if told.get("is_in_step") is False:
        yield from ("The server has lost track of this document: close it and open it again.", "")


def _timings(told: Mapping[str, Any]) -> Iterator[str]:
    if "n_prompt_tokens" not in told:
        return
    yield from ("## Figures", "", "| | |", "|---|---:|")
    for label, name in (
        ("tokens of prompt", "n_prompt_tokens"),
        ("of these, reused from before", "n_reused_tokens"),
        ("evaluated before the first new one", "n_evaluated"),
        ("new tokens", "n_new_tokens"),
        ("milliseconds to the first", "ttft_ms"),
        ("milliseconds in all", "total_ms"),
    ):
        yield f"| {label} | {told.get(name, '')} |"
    yield f"| why the model stopped | {told.get('finish', '')} |"
    for name, ms in dict(told.get("timings_ms") or {}).items():
        yield f"| {name}, milliseconds | {ms} |"
    yield ""


def _parts(told: Mapping[str, Any]) -> Iterator[str]:
    if not told.get("parts"):
        return
    yield from (f"## Prompt: {told.get('layout', '')}, {told.get('mode', '')}", "")
    for name, text, n_tokens in told["parts"]:
        yield from (f"### {name} ({n_tokens} token{'' if n_tokens == 1 else 's'})", "")
        yield from (*_code(text), "") if text else ()
    if told.get("forced"):
        yield from ("### typed already, which the answer has to begin with", "", *_code(told["forced"]), "")


def _filters(told: Mapping[str, Any]) -> Iterator[str]:
    if not told.get("steps"):
        return
    heading = "## The text" if told.get("template") else "## What the model wrote"
    yield from (heading, "", *_code(told.get("raw_text") or ""), "")
    changed = [(name, after) for name, before, after in told["steps"] if before != after]
    same = [name for name, before, after in told["steps"] if before == after]
    for name, after in changed:
        yield from (f"### after {name}", "", *_code(after), "")
    yield from (f"Changed nothing: {', '.join(same) or 'none'}.", "")


def _syntax(told: Mapping[str, Any]) -> Iterator[str]:
    finding = told.get("syntax")
    guard = list(_guard(told))
    if finding or guard:
        yield from ("## Syntax", "", *guard)
    if not finding:
        return
    if finding.get("schema"):
        yield from (_in_a_line(finding["schema"]), "")
    if finding["unchecked"]:
        yield from (f"Not checked: {_in_a_line(finding['unchecked'])}", "")
        return
    before, after = finding["n_faults_before"], finding["n_faults_after"]
    yield from (f"By the grammar {finding['grammar']}: {before} faults before, {after} after.", "")
    if finding["note"]:
        yield from (_in_a_line(finding["note"]), "")
    if finding["complaint"]:
        yield from (f"What was wrong with the whole of it: {_in_a_line(finding['complaint'])}.", "")
    if finding["cut"]:
        yield from ("### cut off", "", *_code(finding["cut"]), "")


def _rules(told: Mapping[str, Any]) -> Iterator[str]:
    """What the rules had to say; nothing where none holds there."""
    finding = (told.get("syntax") or {}).get("rules")
    if not finding:
        return
    yield from ("## Rules", "")
    if finding["rules"]:
        yield from (f"Held to: {', '.join(map(_in_a_line, finding['rules']))}.", "")
    if finding["refused"]:
        yield from ("Refused while the model wrote:", "")
        yield from (f"- {_in_a_line(sentence)}" for sentence in finding["refused"])
        yield ""
    if finding["complaint"]:
        yield from (f"Against the whole of it: {_in_a_line(finding['complaint'])}", "")
    if finding["cut"]:
        yield from ("### cut off for a rule", "", *_code(finding["cut"]), "")
    if finding["note"]:
        yield from (_in_a_line(finding["note"]), "")


def _guard(told: Mapping[str, Any]) -> Iterator[str]:
    """How the grammar stood by while the model wrote; nothing where it was not to, or no token was chosen."""
    silence = _in_a_line((told.get("syntax") or {}).get("unguarded", ""))
    if told.get("n_guarded"):
        yield (
            f"Tokens that the grammar was asked about while the model wrote: {told['n_guarded']}; "
            f"first choices refused: {told['n_refused_first']}; taken back: {told['n_undone']}"
            + (f"; written without the model: {told['n_forced']}." if told.get("n_forced") else ".")
        )
        yield from (f"From somewhere on it did not decide: {silence}",) if silence else ()
    elif silence:
        yield f"While the model wrote, the grammar was not asked: {silence}"
    else:
        return
    yield ""


def _left_out(told: Mapping[str, Any]) -> Iterator[str]:
    if not told.get("refusals"):
        return
    yield from ("## Files that were not read", "")
    yield from (f"- {_in_a_line(path)}: {reason}" for path, reason in told["refusals"])
    yield ""


def _code(text: str) -> Iterator[str]:
    """A fence that no line of the text can end."""
    lines = text.split("\n")
    longest = max((len(line) - len(line.lstrip("`")) for line in map(str.lstrip, lines)), default=0)
    fence = "`" * max(3, longest + 1)
    yield fence
    if len(lines) > _N_SHOWN_LINES:
        yield f"… {len(lines) - _N_SHOWN_LINES} lines before"
    yield from lines[-_N_SHOWN_LINES:]
    yield fence


def _name(uri: str) -> str:
    return _in_a_line(unquote(uri.rsplit("/", 1)[-1])) or "an unnamed document"


def _in_a_line(name: str) -> str:
    """A file's name may hold line ends, which would begin a heading or a list of its own here."""
    return " ".join(name.split())

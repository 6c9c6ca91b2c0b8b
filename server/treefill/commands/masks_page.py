"""What `treefill masks doctor` found, as one page with plots that needs nothing from elsewhere and runs no script."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from html import escape
from typing import Any

from treefill import __version__
from treefill.commands.heap import Heap
from treefill.commands.masks import HOW_TO_PROFILE, file_json, memory_sentence, profile_title
from treefill.commands.plots import STYLE, Bar, bars, columns
from treefill.syntax.mask_file import FORMS, N_BUCKETS, MaskFile
from treefill.syntax.mask_profile import MaskProfile, Spent, percentiles

PAGE_STYLE = f"""
:root {{
  color-scheme: light dark;
  --ink: #1b1f24; --quiet: #57606a; --ground: #ffffff; --track: #eaeef2; --bar: #0969da; --rule: #d0d7de;
  --bad: #b3261e;
}}
@media (prefers-color-scheme: dark) {{
  :root {{
    --ink: #e6edf3; --quiet: #9aa4ae; --ground: #0d1117; --track: #21262d; --bar: #4493f8; --rule: #3d444d;
    --bad: #ff8f85;
  }}
}}
body {{
  margin: 0 auto; max-width: 64rem; padding: 1.5rem 1rem 3rem; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: break-word;
}}
h1 {{ font-size: 1.6rem; line-height: 1.2; }}
h2 {{ font-size: 1.25rem; margin-top: 2.5rem; border-top: 1px solid var(--rule); padding-top: 1.5rem; }}
figure {{ margin: 1.5rem 0; }}
figcaption {{ font-weight: 600; margin-bottom: .5rem; }}
svg {{ margin-bottom: 1rem; }}
@media (min-width: 56rem) {{
  figure {{
    display: grid; grid-template-columns: minmax(0, 5fr) minmax(0, 6fr); column-gap: 2.5rem; align-items: start;
  }}
  figcaption {{ grid-column: 1 / -1; }}
}}
.table {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .875rem; }}
th, td {{
  padding: .25rem 0 .25rem .75rem; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap;
}}
th:first-child, td:first-child {{ text-align: left; padding-left: 0; }}
th {{ font-weight: 600; }} tbody th {{ font-weight: 400; }}
.quiet {{ color: var(--quiet); }}
.complaints {{ color: var(--bad); }}
{STYLE}"""

FORM_NAMES = dict(
    zip(FORMS, ("the tokens that may come", "the tokens that may not", "a bit for each token"), strict=True)
)


def page(
    files: Sequence[MaskFile],
    profiles: Sequence[MaskProfile],
    complaints: Sequence[str],
    memory: Heap | None,
) -> str:
    """The page, as HTML. All that comes from outside is escaped."""
    title = "Masks that were made before"
    digest = b64encode(sha256(PAGE_STYLE.encode()).digest()).decode()
    body = [
        f"<h1>{title}</h1>",
        f'<p class="quiet">treefill masks doctor, version {escape(__version__)}. Times are processor time.</p>',
        _complaints(complaints),
        *(_profile(f"profile-{number}", profile) for number, profile in enumerate(profiles)),
        _memory(memory),
        "" if profiles else f"<p>{escape(HOW_TO_PROFILE)}</p>",
        *(_file(f"file-{number}", file) for number, file in enumerate(files)),
        "" if files else "<p>No masks are kept for the next process.</p>",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" '
        f"content=\"default-src 'none'; style-src 'sha256-{digest}'; img-src data:\">\n"
        '<link rel="icon" href="data:,">\n'
        f"<title>{title}</title>\n<style>{PAGE_STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in body if part)
        + "\n</main>\n</body>\n</html>\n"
    )


def sizes_by_step(sizes: Iterable[int]) -> list[tuple[str, int]]:
    """How many sizes there are up to each power of four, from the smallest that some are up to.

    >>> sizes_by_step([3, 16, 17, 300])
    [('up to 4 B', 1), ('up to 16 B', 1), ('up to 64 B', 1), ('up to 256 B', 0), ('up to 1 KiB', 1)]
    """
    steps = Counter((max(size - 1, 0).bit_length() + 1) // 2 for size in sizes)
    if not steps:
        return []
    return [(f"up to {_bytes(4**step)}", steps[step]) for step in range(min(steps), max(steps) + 1)]


def _complaints(complaints: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(complaint)}</li>" for complaint in complaints)
    return (
        f'<ul class="complaints">{items}</ul>' if items else "<p>All that is kept is as it was written.</p>"
    )


def _profile(name: str, profile: MaskProfile) -> str:
    made_p50, made_p99 = percentiles(profile.made_ms)
    made = f" Making one took {made_p50:.2f} ms, p99 {made_p99:.2f} ms." if profile.made_ms else ""
    gave_up = f" At {profile.n_gave_up:,} places the grammar did not decide." if profile.n_gave_up else ""
    tiers = [(str(tier), len(us), percentiles(us)) for tier, us in profile.tiers.items()]
    title = "Where masks were found"
    plot = bars(f"{name}-tiers", title, [Bar(tier, n, _share(n, profile.n)) for tier, n, _ in tiers])
    return "\n".join(
        (
            f"<h2>{escape(profile_title(profile))}</h2>",
            f"<p>{profile.hit_share:.1%} of the masks were known.{made}{gave_up}</p>",
            _figure(
                plot,
                title,
                ("found in", "places", "share", "look-up µs p50", "p99"),
                [(tier, f"{n:,}", _share(n, profile.n), *map(_tenth, us)) for tier, n, us in tiers],
            ),
            _time(f"{name}-causes", "Time of masks by what may come there", "what may come", profile.causes),
            _time(
                f"{name}-brackets", "Time of masks by the innermost open bracket", "within", profile.brackets
            ),
            f"<p>{escape(memory_sentence(profile))}</p>",
        )
    )


def _time(name: str, title: str, heading: str, spent: Mapping[Any, Spent]) -> str:
    whole = sum(each.ms for each in spent.values())
    return _figure(
        bars(name, title, [Bar(str(each), at.ms, _share(at.ms, whole)) for each, at in spent.items()]),
        title,
        (heading, "places", "made", "ms", "ms a place"),
        [
            (str(each), f"{at.n:,}", f"{at.n_made:,}", _tenth(at.ms), f"{at.ms / at.n:.3f}" if at.n else "–")
            for each, at in spent.items()
        ],
    )


def _memory(memory: Heap | None) -> str:
    if memory is None:
        return ""
    return (
        f"<p>The allocator of the process that read them holds {_bytes(memory.n_bytes)}, "
        f"{memory.idle_share:.0%} of it idle: between what is in use, or not given back yet.</p>"
    )


def _file(name: str, file: MaskFile) -> str:
    row = file_json(file)
    sizes = sizes_by_step(file.sizes)
    forms = [(FORM_NAMES[form], file.forms[form]) for form in FORMS]
    n_even = len(file.records) / N_BUCKETS
    spread = columns(f"{name}-hashes", f"Hashes in each of {N_BUCKETS} buckets", file.buckets, n_even)
    return "\n".join(
        (
            f"<h2>Kept for {escape(row['language'])}</h2>",
            f'<p class="quiet">{escape(row["file"])}</p>',
            f"<p>{row['keys']:,} keys ({row['deeper']:,} of them say that more of the stack is to be looked at) and "
            f"{row['masks']:,} masks in {_bytes(row['bytes'])}, {row['idle_bytes']:,} bytes of it idle.</p>",
            _figure(
                spread,
                f"Hashes in each of {N_BUCKETS} buckets",
                ("of the hashes", "is", "by chance"),
                [
                    ("chi-square", f"{row['chi_square']:.0f}", f"about {N_BUCKETS - 1}"),
                    ("fewest in a bucket", f"{min(file.buckets):,}", ""),
                    ("most in a bucket", f"{max(file.buckets):,}", ""),
                    ("of as many buckets as keys, in use", f"{row['occupancy']:.1%}", "63.2% of many"),
                    ("most in one of those", f"{row['fullest_bucket']:,}", ""),
                    ("keys that share a hash", f"{row['shared_hashes']:,}", "0"),
                ],
            ),
            _counted(f"{name}-forms", "How masks are written", "as", forms),
            _counted(f"{name}-sizes", "How large masks are", "size", sizes),
        )
    )


def _counted(name: str, title: str, heading: str, rows: Sequence[tuple[str, int]]) -> str:
    whole = sum(n for _, n in rows)
    return _figure(
        bars(name, title, [Bar(label, n, f"{n:,}") for label, n in rows]),
        title,
        (heading, "masks", "share"),
        [(label, f"{n:,}", _share(n, whole)) for label, n in rows],
    )


def _figure(plot: str, caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A plot, and beneath it the table of what it shows."""
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    return (
        f"<figure><figcaption>{escape(caption)}</figcaption>{plot}"
        f'<div class="table" tabindex="0" role="region" aria-label="{escape(caption)}, as a table">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></figure>"
    )


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else "–"


def _tenth(value: float) -> str:
    return f"{value:.1f}"


def _bytes(n: int) -> str:
    """A size in the unit that suits it.

    >>> _bytes(12), _bytes(4096), _bytes(3_000_000)
    ('12 B', '4 KiB', '2.9 MiB')
    """
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= factor:
            return f"{n / factor:.1f}".removesuffix(".0") + f" {unit}"
    return f"{n} B"

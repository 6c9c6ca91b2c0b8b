"""The page of `treefill masks doctor --html`, looked at in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect
from treefill.commands.heap import heap
from treefill.commands.masks_page import page, sizes_by_step
from treefill.syntax.mask_file import FORMS, N_BUCKETS, read_mask_file
from treefill.syntax.mask_profile import Cause, Tier

from tests.commands.test_masks import profiled
from tests.syntax.test_dictionary import trusted

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

COMPLAINT = "<b onclick=alert(1)>json</b>: 1 record is damaged."
EVIDENCE = Path(__file__).parents[2] / "build" / "e2e"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """The page, and how many bars each of its plots is to have."""
    folder = tmp_path_factory.mktemp("masks")
    for language in ("cpp", "json"):
        trusted(language, folder).save()
    files = [read_mask_file(file) for file in sorted(folder.glob("*.masks"))]
    profiles = [profiled("python"), profiled("cpp")]
    out = folder / "out.html"
    out.write_text(page(files, profiles, [COMPLAINT], heap()), "utf-8")
    of_profiles = [[len(Tier), len(Cause), len(profile.brackets)] for profile in profiles]
    of_files = [[N_BUCKETS, len(FORMS), len(sizes_by_step(file.sizes))] for file in files]
    return out, [n for each in [*of_profiles, *of_files] for n in each]


@pytest.fixture(params=[("light", 1200), ("dark", 1200), ("light", 360), ("dark", 360)])
def opened(
    request: pytest.FixtureRequest, browser: Browser, written: tuple[Path, list[int]]
) -> Iterator[Page]:
    """The page in a scheme of colours and a window of a width; nothing of it is refused or asked of elsewhere."""
    scheme: Literal["light", "dark"]
    scheme, width = request.param
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    opened = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("request", lambda each: asked.append(each.url))
    opened.goto(written[0].as_uri())
    yield opened
    EVIDENCE.mkdir(parents=True, exist_ok=True)
    opened.screenshot(path=EVIDENCE / f"masks-page-{scheme}-{width}.png", full_page=True)
    context.close()
    assert said == []
    assert [url for url in asked if not url.startswith("data:")] == [written[0].as_uri()]


def test_every_plot_is_seen_with_all_its_bars(opened: Page, written: tuple[Path, list[int]]) -> None:
    plots = opened.locator("svg[role=img]")
    expect(plots).to_have_count(len(written[1]))
    for number, n_bars in enumerate(written[1]):
        plot = plots.nth(number)
        expect(plot).to_be_visible()
        expect(plot.locator(".bar")).to_have_count(n_bars)
        box = plot.bounding_box()
        assert box is not None
        assert box["width"] > 250
        assert box["height"] > 30
        drawn = plot.locator(".bar").evaluate_all(
            "bars => bars.map(bar => bar.getBoundingClientRect()).filter(box => box.width > 0 && box.height > 0).length"
        )
        assert drawn > 0


def test_nothing_sticks_out(opened: Page) -> None:
    width = opened.evaluate("innerWidth")
    assert opened.evaluate("document.documentElement.scrollWidth") == width
    assert opened.locator("svg text").evaluate_all(
        "texts => Math.max(...texts.map(text => text.getBoundingClientRect().right))"
    ) <= float(width)
    overlapping = opened.locator("svg").evaluate_all(
        """plots => plots.flatMap(plot => {
            const labels = [...plot.querySelectorAll("text:not(.value)")].map(each => each.getBoundingClientRect());
            const values = [...plot.querySelectorAll("text.value")].map(each => each.getBoundingClientRect());
            return labels.filter((label, number) => label.right > values[number].left);
        }).length"""
    )
    assert overlapping == 0


def test_what_is_written_can_be_read_on_its_ground(opened: Page) -> None:
    for selector in ("p", "h2", "svg text", "td", ".quiet", ".complaints li"):
        contrast = opened.locator(selector).first.evaluate(
            """element => {
                const style = getComputedStyle(element);
                const light = text => text.match(/[0-9.]+/g).slice(0, 3).map(Number).map(value => value / 255)
                    .map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
                    .reduce((sum, value, number) => sum + value * [0.2126, 0.7152, 0.0722][number], 0);
                const own = light(element.closest("svg") ? style.fill : style.color);
                const ground = light(getComputedStyle(document.body).backgroundColor);
                return (Math.max(own, ground) + 0.05) / (Math.min(own, ground) + 0.05);
            }"""
        )
        assert contrast >= 4.5, selector


def test_what_comes_from_outside_is_text(opened: Page) -> None:
    expect(opened.get_by_text(COMPLAINT)).to_be_visible()
    expect(opened.locator("b")).to_have_count(0)


def test_a_screen_reader_is_told_of_each_plot(opened: Page) -> None:
    for name in ("Where masks were found", "Hashes in each of 256 buckets", "How large masks are"):
        expect(opened.get_by_role("img", name=name)).to_have_count(2)

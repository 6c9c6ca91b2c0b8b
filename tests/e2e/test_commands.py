"""Every command and menu that the extension contributes, as its user comes upon it."""

import pytest

from tests.e2e.conftest import STATUS, OpenWorkbench, wait_for_ready
from tests.e2e.workbench import Workbench

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

TEXT = "def rectangle_area(width, height):\n    return"
HERE = "treefill: Switch On or Off for This Language"
WORKSPACE = "treefill: Switch On or Off in This Workspace"


def expect_a_suggestion(editor: Workbench) -> None:
    editor.press("Control+End")
    editor.type(" ")
    editor.wait_for_ghost()
    editor.press("Escape")


def expect_nothing(editor: Workbench, label: str) -> None:
    editor.wait_until(
        lambda: label in editor.status_label(STATUS),
        f"the status to say {label!r}",
        instead=lambda: f"it was {editor.status_label(STATUS)!r}",
    )
    editor.press("Control+End")
    editor.type(" ")
    editor.assert_no_ghost_for(1.5)
    editor.press("Backspace")


def page(editor: Workbench) -> str:
    """What the open documents show, pages to read among them."""
    return "\n".join(editor.lines())


def test_a_language_and_a_workspace_are_switched_off_and_on(open_editor: OpenWorkbench) -> None:
    editor = open_editor({"area.py": TEXT})

    editor.run_command(HERE)
    expect_nothing(editor, "Switched off for python")
    editor.run_command("treefill: Explain the Last Completion")
    editor.wait_until(lambda: "disabled_languages" in page(editor), "the reason")
    editor.run_command(HERE)
    wait_for_ready(editor)
    expect_a_suggestion(editor)

    editor.run_command(WORKSPACE)
    expect_nothing(editor, "Switched off by the setting treefill.enabled")
    editor.run_command(WORKSPACE)
    wait_for_ready(editor)
    expect_a_suggestion(editor)


def test_snoozing_is_quiet_until_it_is_ended(open_editor: OpenWorkbench) -> None:
    editor = open_editor({"area.py": TEXT})

    editor.run_command("treefill: Snooze…")
    editor.pick("5 minutes")
    expect_nothing(editor, "Snoozed until")
    editor.run_command("treefill: Snooze…")
    editor.pick("Suggest again")

    wait_for_ready(editor)
    expect_a_suggestion(editor)


def test_the_last_completion_is_explained(open_editor: OpenWorkbench) -> None:
    editor = open_editor({"area.py": TEXT})
    expect_a_suggestion(editor)

    editor.run_command("treefill: Explain the Last Completion")

    editor.wait_until(lambda: "tokens of prompt" in page(editor), "the page")
    assert "# The last completion in area.py" in page(editor)
    editor.screenshot("explain")


def test_the_explanation_is_in_the_editors_own_menu(open_editor: OpenWorkbench) -> None:
    editor = open_editor({"area.py": TEXT})
    expect_a_suggestion(editor)

    editor.page.locator(".editor-instance .view-line").first.click(button="right")
    editor.page.get_by_role("menuitem", name="Explain the Last Completion").hover()
    editor.press("Enter")

    editor.wait_until(lambda: "# The last completion in area.py" in page(editor), "the page")


def test_statistics_have_a_page_with_a_plot(open_editor: OpenWorkbench) -> None:
    editor = open_editor({"area.py": TEXT})
    editor.press("Control+End")
    editor.type(" ")
    editor.wait_for_ghost()
    editor.press("Tab")

    editor.run_command("treefill: Show Statistics")

    frame = editor.page.frame_locator("iframe.webview.ready").frame_locator("#active-frame")
    frame.get_by_role("img", name="Suggestions offered and accepted by day").wait_for()
    assert "1 and 0 in part" in frame.locator("body").inner_text()
    editor.screenshot("statistics")


def test_the_doctor_tells_line_by_line(open_editor: OpenWorkbench) -> None:
    editor = open_editor({"area.py": TEXT})

    editor.run_command("treefill: Run the Doctor")

    editor.wait_until(
        lambda: "- OK model: qwen2.5-coder-0.5b" in page(editor), "the doctor's page", within_s=60
    )


def test_another_model_is_chosen_and_ready_without_reloading(open_editor: OpenWorkbench) -> None:
    editor = open_editor({"area.py": TEXT})

    editor.run_command("treefill: Choose Model…")
    editor.pick("smollm2-135m")

    editor.wait_until(
        lambda: "Ready: smollm2-135m" in editor.status_label(STATUS), "the other model", within_s=60
    )
    editor.run_command("treefill: Choose Model…")
    editor.pick("qwen2.5-coder-0.5b")
    editor.wait_until(lambda: "Ready: qwen" in editor.status_label(STATUS), "the first model", within_s=60)


def test_the_server_is_restarted(open_editor: OpenWorkbench) -> None:
    editor = open_editor({"area.py": TEXT})

    editor.run_command("treefill: Restart the Server")

    editor.wait_until(lambda: "Ready: " not in editor.status_label(STATUS), "the server to end")
    wait_for_ready(editor)
    expect_a_suggestion(editor)


def test_the_status_item_opens_a_menu_and_the_log_is_in_it(open_editor: OpenWorkbench) -> None:
    editor = open_editor({"area.py": TEXT})
    tooltip = editor.status_tooltip(STATUS)
    assert "Ready: qwen2.5-coder-0.5b." in tooltip
    editor.screenshot("status")

    editor.click_status(STATUS)
    editor.pick("Show the Log")

    editor.page.locator(".part.panel").filter(has_text="Server 0.1.0 in").wait_for()


def test_the_walkthrough_leads_to_a_suggestion(open_editor: OpenWorkbench) -> None:
    editor = open_editor({"area.py": TEXT})

    editor.run_command("Welcome: Open Walkthrough...")
    editor.pick("Code completion on your own machine")
    editor.page.get_by_text("See a completion", exact=True).first.click()
    editor.page.get_by_text("Show me", exact=True).first.click()

    assert "celsius" in editor.wait_for_ghost()


def test_an_editor_that_hides_suggestions_is_told_of(open_editor: OpenWorkbench) -> None:
    editor = open_editor({"area.py": TEXT}, settings={"editor.inlineSuggest.enabled": False})

    assert "switch on the setting editor.inlineSuggest.enabled" in editor.status_label(STATUS)
    editor.change_settings({"editor.inlineSuggest.enabled": True})
    editor.wait_until(
        lambda: "inlineSuggest" not in editor.status_label(STATUS), "the status to be well again"
    )

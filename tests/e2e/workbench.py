"""VS Code's workbench as its user has it: keys and clicks go in, and what stands on the screen and on disk comes out.

All that is known of the workbench's pages (selectors, keys, names of commands) is known here alone. Whatever is waited
for in vain is told in words, with a screenshot and the logs of that moment under `build/e2e`.
"""

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Browser, Locator
from playwright.sync_api import Error as PlaywrightError

from tests.e2e.code_server import CodeServer, command_line

BUILD = Path(__file__).resolve().parents[2] / "build" / "e2e"
SCREENSHOTS = BUILD / "screenshots"
FAILED = BUILD / "failed"

PATIENCE_S = 30
"""How long a state is waited for, on a busy machine."""

# Ghost text stands in spans among the line's own, and further lines in a box below, which is there but hidden without.
READ_GHOST = """() => {
  const text = (nodes) => [...nodes].map(node => node.textContent).join('').replace(/[\\u00a0\\u00b7]/g, ' ');
  const first = document.querySelectorAll('.editor-instance .view-lines .ghost-text-decoration');
  const further = [...document.querySelectorAll('.editor-instance .suggest-preview-text .view-line')]
    .filter(line => line.checkVisibility() && line.offsetHeight > 0)
    .sort((a, b) => parseFloat(a.style.top) - parseFloat(b.style.top));
  if (first.length === 0 && further.length === 0) return null;
  return [text(first), ...further.map(line => text(line.querySelectorAll('.ghost-text')))].join('\\n');
}"""

READ_LINES = """() => [...document.querySelectorAll('.editor-instance .view-lines > .view-line')]
  .sort((a, b) => parseFloat(a.style.top) - parseFloat(b.style.top))
  .map(line => [...line.querySelectorAll('span > span:not(.ghost-text-decoration)')]
    .map(span => span.textContent).join('').replace(/[\\u00a0\\u00b7]/g, ' '))"""

# The first ghost text that is seen within a time, or null; one that goes again at once is seen too.
SEE_GHOST = f"""(milliseconds) => new Promise(resolve => {{
  const read = {READ_GHOST};
  const end = (ghost) => {{ observer.disconnect(); clearTimeout(timer); resolve(ghost); }};
  const look = () => {{ const ghost = read(); if (ghost !== null) end(ghost); }};
  const observer = new MutationObserver(look);
  const timer = setTimeout(() => end(null), milliseconds);
  observer.observe(document.body, {{ childList: true, subtree: true, attributes: true, characterData: true }});
  look();
}})"""

Keybindings = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Notification:
    """A message in the corner of the window."""

    severity: str
    """`info`, `warning` or `error`."""
    message: str
    buttons: tuple[str, ...]


class Workbench:
    """One window with a folder and a file of it open, and the cursor in it. `close()` ends it."""

    def __init__(
        self,
        server: CodeServer,
        browser: Browser,
        folder: Path,
        file: str,
        *,
        settings: Mapping[str, Any] | None = None,
        keybindings: Keybindings = (),
        name: str = "workbench",
    ) -> None:
        self.server = server
        self.root = folder
        """The folder that the window has open."""
        self.folder = folder
        self.file = file
        self.name = name
        self.has_evidence = False
        """Whether a failure has been kept already: the first one tells most."""
        self._others = {process.pid for process in server.processes()}
        """What ran before the page was opened; of windows that are open together, the first one's counts."""
        self._settings = dict(settings or {})
        server.forget_backups()
        server.write_settings(self._settings, keybindings)
        self._context = browser.new_context(viewport={"width": 1280, "height": 800})
        self.page = self._context.new_page()
        self.page.set_default_timeout(PATIENCE_S * 1000)
        server.windows.append(self)
        try:
            with self._waiting_for(f"the workbench with {file}"):
                self.page.goto(server.url(folder, file), wait_until="domcontentloaded")
                self._wait_for_file(file)
        except AssertionError:
            self.close()
            raise

    # The editor.

    def enter(self, folder: Path, file: str) -> None:
        """Go on with a file of a folder within the one that is open; names of files are from there on told from it."""
        self.folder, self.file = folder, file
        self.open_file(file)

    def open_notebook(self, file: str) -> None:
        """A notebook of the folder, by Quick Open, with the cursor in its first cell."""
        with self._waiting_for(f"{file} to open"):
            self._fill_quick_input("Control+p", str(self.folder / file))
            self._rows().filter(has_text=self.folder.name).filter(has_text=file).first.click()
            self.page.locator(".notebookOverlay .cell .monaco-editor .view-line").first.click()
            self.page.locator(".notebookOverlay .cell .monaco-editor.focused").first.wait_for()

    def ghost_in_cell(self) -> str:
        """The ghost text of a line in a notebook's cell; empty where there is none."""
        found = self.page.locator(".notebookOverlay .ghost-text-decoration").all_inner_texts()
        return spaced("".join(found).replace("\u00b7", " "))

    def close_files(self, key: str) -> None:
        """Close all files by a key that is bound to that, and save none that has no name."""
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("Control+k")
        self.page.keyboard.press("s")
        self.page.keyboard.press(key)
        tabs = self.page.locator(".part.editor .tab")
        leave = self.page.get_by_role("button", name="Don't Save")

        def are_closed() -> bool:
            if leave.count():
                leave.first.click()
            return tabs.count() == 0

        self.wait_until(are_closed, "all files to be closed")

    def open_file(self, file: str) -> None:
        """Another file of the folder, by Quick Open."""
        with self._waiting_for(f"{file} to open"):
            self._fill_quick_input("Control+p", str(self.folder / file))
            rows = self._rows().filter(has_text=Path(file).name)
            # Files of the same name that were open before are offered, too.
            rows = rows if self.folder == self.root else rows.filter(has_text=self.folder.name)
            rows.first.click()
            self._wait_for_file(file)

    def type(self, text: str, *, key_ms: float = 0) -> None:
        """Type as fast as the browser takes it, or a key every `key_ms`."""
        self.page.keyboard.type(text, delay=key_ms)

    def press(self, *keys: str) -> None:
        """Press keys, one after the other: `Tab`, `Escape`, `Control+End`."""
        for key in keys:
            self.page.keyboard.press(key)

    def lines(self) -> list[str]:
        """The visible lines of the document, without ghost text."""
        lines: list[str] = self.page.evaluate(READ_LINES)
        return lines

    def ghost_text(self) -> str | None:
        """All of the ghost text that is shown, or None. Where all of it is below the line, it begins with a newline."""
        ghost: str | None = self.page.evaluate(READ_GHOST)
        return ghost

    def wait_for_ghost(self, text: str | None = None, *, within_s: float = PATIENCE_S) -> str:
        """Wait for this ghost text, or for any; what is shown."""

        def is_there() -> bool:
            ghost = self.ghost_text()
            return ghost is not None and text in (None, ghost)

        what = "ghost text" if text is None else f"the ghost text {text!r}"
        self.wait_until(
            is_there, what, within_s=within_s, instead=lambda: f"the ghost text was {self.ghost_text()!r}"
        )
        return self.ghost_text() or ""

    def wait_for_no_ghost(self, *, within_s: float = PATIENCE_S) -> None:
        """Wait until the ghost text is gone."""
        self.wait_until(lambda: self.ghost_text() is None, "the ghost text to go", within_s=within_s)

    def assert_no_ghost_for(self, seconds: float) -> None:
        """Watch for a while: there is no ghost text, not even for a moment."""
        ghost = self.page.evaluate(SEE_GHOST, seconds * 1000)
        assert ghost is None, f"the ghost text {ghost!r} came. {self.keep_evidence()}"

    def saved(self, file: str | None = None) -> bytes:
        """Save the file that is open, and read it from disk."""
        self.press("Control+s")
        self.wait_until(lambda: not self.is_dirty(), "the file to be saved")
        return (self.folder / (file or self.file)).read_bytes()

    def is_dirty(self) -> bool:
        """Whether the open file has changes that are not saved."""
        return self.page.locator(".tab.active.dirty").count() > 0

    # Everything around it.

    def run_command(self, title: str) -> None:
        """A command, by its whole title in the command palette: `Developer: Reload Window`."""
        with self._waiting_for(f"the command {title!r}"):
            self._fill_quick_input("F1", f">{title}")
            label = re.compile(rf"^{re.escape(title)}(,| \(|$)")
            # The list is filled as it is typed, so the first row is not yet what Enter would take.
            rows = self._rows()
            self.wait_until(
                lambda: rows.count() > 0 and bool(label.match(rows.first.get_attribute("aria-label") or "")),
                f"the palette to offer {title!r}",
            )
            self.page.keyboard.press("Enter")

    def change_settings(self, changes: Mapping[str, Any]) -> None:
        """Change some of the user's settings as the user does, in settings.json; then come back to the file."""
        before = self.server.settings_files(self._settings)
        self._settings |= changes
        for path, text in self.server.settings_files(self._settings).items():
            if text != before[path]:
                whose = "User" if path.parent.name == "User" else "Remote"
                self._type_settings(f"Preferences: Open {whose} Settings (JSON)", path, text)

    def _type_settings(self, command: str, path: Path, text: str) -> None:
        self.run_command(command)
        with self._waiting_for("settings.json"):
            self.page.locator(".monaco-modal-editor-block .monaco-editor.focused").wait_for()
        text = json.dumps(json.loads(text))  # in one line: new lines would be indented as they are typed
        self.press("Control+a")
        self.page.keyboard.insert_text(text)
        self.press("Control+Shift+End", "Delete")  # brackets and quotes that VS Code has closed on the way
        self.press("Control+s")
        self.wait_until(lambda: path.read_text() == text, "settings.json to be saved")
        self._close_modal()

    def status_text(self, item: str) -> str | None:
        """The text of a status bar item, by its id or a piece of its text; None where there is no such item."""
        found = self._status_item(item)
        return spaced(found.first.inner_text()) if found.count() else None

    def status_label(self, item: str) -> str:
        """What a screen reader says of a status bar item: its tooltip without a mouse. Empty where there is no item."""
        found = self._status_item(item).locator("[aria-label]")
        return spaced(found.first.get_attribute("aria-label") or "") if found.count() else ""

    def wait_for_status(self, item: str, text: str, *, within_s: float = PATIENCE_S) -> None:
        """Wait until a status bar item has this in its text."""
        self.wait_until(
            lambda: text in (self.status_text(item) or ""),
            f"{text!r} in the status bar item {item}",
            within_s=within_s,
            instead=lambda: f"it was {self.status_text(item)!r}, of {self.status_items()}",
        )

    def status_items(self) -> dict[str, str]:
        """All items of the status bar: id to text."""
        items = self.page.locator(".part.statusbar .statusbar-item").all()
        return {item.get_attribute("id") or "": spaced(item.inner_text()) for item in items}

    def status_tooltip(self, item: str) -> str:
        """What the mouse over a status bar item shows."""
        with self._waiting_for(f"the tooltip of the status bar item {item}"):
            self._status_item(item).first.hover()
            tooltip = self.page.locator(
                ".workbench-hover:visible, .monaco-hover.workbench-hover:visible"
            ).last
            tooltip.wait_for()
            text = tooltip.inner_text()
            self.page.mouse.move(640, 300)
        return spaced(text)

    def click_status(self, item: str) -> None:
        """Click a status bar item."""
        with self._waiting_for(f"the status bar item {item}"):
            self._status_item(item).first.click()

    def notifications(self) -> list[Notification]:
        """The messages that are shown in the corner."""
        return [
            read_notification(toast) for toast in self.page.locator(".notification-list-item:visible").all()
        ]

    def wait_for_notification(self, part: str, *, within_s: float = PATIENCE_S) -> Notification:
        """Wait for a message with this in its text."""

        def found() -> list[Notification]:
            return [notification for notification in self.notifications() if part in notification.message]

        self.wait_until(
            lambda: bool(found()),
            f"a message with {part!r}",
            within_s=within_s,
            instead=lambda: f"there were {[notification.message for notification in self.notifications()]}",
        )
        return found()[0]

    def dismiss_notifications(self) -> None:
        """Clear all messages."""
        self.run_command("Notifications: Clear All Notifications")
        self.wait_until(lambda: not self.notifications(), "the messages to go")

    def click_button(self, name: str) -> None:
        """A button of a message, a dialog or an editor page such as that of workspace trust."""
        with self._waiting_for(f"the button {name!r}"):
            self.page.get_by_role("button", name=name, exact=True).last.click()

    def dialog_text(self) -> str:
        """What the dialog over the window says, once there is one."""
        with self._waiting_for("a dialog"):
            return self.page.locator(".monaco-dialog-box .dialog-message-container").inner_text()

    def pick(self, label: str) -> None:
        """An entry of the list that is open at the top."""
        with self._waiting_for(f"the entry {label!r}"):
            self._rows().filter(has_text=label).first.click()

    def is_restricted(self) -> bool:
        """Whether the folder is open without being trusted."""
        return "Restricted Mode" in (self.status_text("status.workspaceTrust") or "")

    def trust_folder(self) -> None:
        """Say on the page of workspace trust that the folder is trusted, and come back to the file."""
        self.run_command("Workspaces: Manage Workspace Trust")
        self.click_button("Trust")
        self.wait_until(lambda: not self.is_restricted(), "the folder to be trusted")
        self._close_modal()

    def screenshot(self, name: str) -> Path:
        """The window as it is, in `build/e2e/screenshots`."""
        path = SCREENSHOTS / f"{name}.png"
        self.page.screenshot(path=path, timeout=PATIENCE_S * 1000)
        return path

    # Its life.

    def restart_extension_host(self) -> None:
        """End the window's extension host as a crash would; VS Code starts another one, with its extensions."""
        own = [process for process in self.server.extension_hosts() if process.pid not in self._others]
        assert len(own) == 1, f"one extension host is this window's, and {len(own)} were found"
        own[0].kill()
        self.wait_until(
            lambda: [process.pid for process in self.server.extension_hosts()] not in ([], [own[0].pid]),
            "another extension host",
        )

    def reload(self) -> None:
        """Reload the page, as `Developer: Reload Window` does."""
        with self._waiting_for("the page to be loaded again"):
            self.page.reload(wait_until="domcontentloaded")
            self._wait_for_file(self.file)

    def close(self) -> None:
        """Close the page, and wait until nothing runs any more that ran for it alone."""
        self._context.close()
        if self in self.server.windows:
            self.server.windows.remove(self)
        what = f"the processes of {self.name}'s closed window to end"
        self.wait_until(lambda: not self._orphans(), what, instead=self._told_orphans)

    def _orphans(self) -> list[psutil.Process]:
        """What no window needs; while others are open, only extension hosts are counted, which each has one of."""
        if self.server.windows:
            return self.server.extension_hosts()[len(self.server.windows) :]
        return [process for process in self.server.processes() if process.pid not in self._others]

    def _told_orphans(self) -> str:
        return f"They are {[' '.join(command_line(process)) for process in self._orphans()]}."

    def wait_until(
        self,
        condition: Callable[[], bool],
        what: str,
        *,
        within_s: float = PATIENCE_S,
        instead: Callable[[], str] = lambda: "",
    ) -> None:
        """Wait until a condition holds; where it does not come to pass, say what was waited for."""
        deadline = time.monotonic() + within_s
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"{within_s} s were not enough for {what}. {instead()} {self.keep_evidence()}"
                )
            time.sleep(0.02)

    def keep_evidence(self) -> str:
        """A screenshot and the logs of now; a sentence that says where they are."""
        logs = FAILED / self.name
        self.has_evidence = True
        self.server.keep_logs(logs)
        kept = f"Logs: {logs.relative_to(BUILD.parents[1])}"
        if self.page.is_closed():
            return kept
        try:
            return (
                f"{kept}, screenshot: {self.screenshot(f'failed-{self.name}').relative_to(BUILD.parents[1])}"
            )
        except PlaywrightError as error:
            return f"{kept}, no screenshot: {error}"

    @contextmanager
    def _waiting_for(self, what: str) -> Iterator[None]:
        try:
            yield
        except PlaywrightError as error:
            reason = str(error).splitlines()[0]
            raise AssertionError(f"Waited in vain for {what}: {reason} {self.keep_evidence()}") from error

    def _wait_for_file(self, file: str) -> None:
        name = Path(file).name
        self.page.locator(".tab.active").filter(has_text=name).first.wait_for()
        self.page.locator(".editor-instance .monaco-editor .view-lines .view-line").first.wait_for()
        self.page.locator(".editor-instance .monaco-editor.focused").first.wait_for()

    def _close_modal(self) -> None:
        """Close the editor that VS Code opens over the others, and put the cursor where it was."""
        with self._waiting_for(f"{self.file} to be in front again"):
            modal = self.page.locator(".monaco-modal-editor-block")
            # What was saved a moment ago may still count as changed: then VS Code asks.
            save = self.page.get_by_role("dialog").get_by_role("button", name="Save", exact=True)
            modal.get_by_role("button", name=re.compile("^Close")).click()

            def is_closed() -> bool:
                if save.is_visible():
                    save.click()
                return not modal.is_visible()

            self.wait_until(is_closed, "the settings to be closed")
            self.page.locator(".tab.active").click()
            self._wait_for_file(self.file)

    def _fill_quick_input(self, key: str, text: str) -> None:
        self.page.keyboard.press(key)
        box = self.page.locator(".quick-input-widget:visible .quick-input-box input")
        box.wait_for()
        box.fill(text)

    def _rows(self) -> Locator:
        return self.page.locator(".quick-input-widget:visible .quick-input-list .monaco-list-row")

    def _status_item(self, item: str) -> Locator:
        by_id = self.page.locator(f'.part.statusbar .statusbar-item[id="{item}"]')
        return by_id if by_id.count() else self.page.locator(".part.statusbar .statusbar-item", has_text=item)


def read_notification(toast: Locator) -> Notification:
    """One message as it is shown."""
    icon = toast.locator(".notification-list-item-icon").get_attribute("class") or ""
    severity = next((name for name in ("error", "warning", "info") if f"codicon-{name}" in icon), "")
    message = toast.locator(".notification-list-item-message").inner_text()
    buttons = toast.locator(
        ".notification-list-item-buttons-container .monaco-button:visible"
    ).all_inner_texts()
    return Notification(severity, spaced(message), tuple(spaced(button) for button in buttons))


def spaced(text: str) -> str:
    """Without the spaces that only look like ones, and none around."""
    return text.replace("\u00a0", " ").strip()


def forget_old_evidence() -> None:
    """What an earlier run has left."""
    for folder in (SCREENSHOTS, FAILED):
        shutil.rmtree(folder, ignore_errors=True)

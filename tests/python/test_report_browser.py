"""`ptwm report`: its page in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import NAMES, Browser, find_browser
from conftest import weights
from report_pages import NASTY, write_model

import ptwm
import ptwm.numpy
from ptwm.cli import main
from ptwm.sharding import Writer


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model.ptwm")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = find_browser()
    if program is None:
        pytest.skip(f"no browser is installed: none of {', '.join(NAMES)}")
    opened = Browser(program, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


def complaints(browser: Browser) -> list:
    """What the page's scripts, its security policy and the network had to say."""
    told = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Network.loadingFailed")
    return [event for event in browser.events if event[0] in told]


def test_in_a_browser(model: Path, tmp_path: Path, browser: Browser) -> None:
    nasty = tmp_path / "nasty.ptwm"
    with Writer(nasty, metadata={name: name for name in NASTY}) as writer:
        for i, name in enumerate(NASTY):
            writer.add(name, weights((16 + i, 64)).tobytes(), "F32", (16 + i, 64))
    for path in (model, nasty):
        assert main(["report", str(path)]) == 0
        page = path.with_suffix(".html")
        for width in (400, 1400):
            for dark in (False, True):
                browser.resize(width, dark=dark)
                browser.open(page)
                assert browser.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
                assert browser.evaluate("document.querySelectorAll('svg.bar').length") > 5
                heights = "[...document.querySelectorAll('#tensor-list tr')].map(row => row.offsetHeight)"
                assert path is nasty or browser.evaluate(f"Math.max(...{heights})") < 100
                colour = browser.evaluate("getComputedStyle(document.body).backgroundColor")
                assert colour == ("rgb(18, 23, 29)" if dark else "rgb(255, 255, 255)")
                assert browser.screenshot().startswith(b"\x89PNG")
                requests = [event["request"]["url"] for name, event in browser.events if name.endswith("WillBeSent")]
                assert requests == [page.as_uri()] and complaints(browser) == []
        # Each bar is drawn inside its place.
        assert browser.evaluate(
            "[...document.querySelectorAll('svg.bar rect')].every(r => r.x.baseVal.value + r.width.baseVal.value < 1000.1)"
        )


def rows(browser: Browser, column: int) -> list[str]:
    return browser.evaluate(
        "[...document.querySelectorAll('#tensor-list tbody tr')].filter(row => !row.hidden)"
        f".map(row => row.cells[{column}].textContent)"
    )


def test_the_table_sorts(model: Path, browser: Browser) -> None:
    assert main(["report", str(model)]) == 0
    browser.resize(1200)
    browser.open(model.with_suffix(".html"))
    with ptwm.TensorIndex(model) as index:
        entries = index.entries()
    assert rows(browser, 0) == [entry.name for entry in entries]

    def click(column: int) -> str:
        browser.evaluate(f"document.querySelectorAll('#tensor-list th button')[{column}].click()")
        return browser.evaluate(f"document.querySelectorAll('#tensor-list th')[{column}].getAttribute('aria-sort')")

    sizes = {entry.name: entry.nbytes for entry in entries}
    assert click(3) == "descending"
    shown = [sizes[name] for name in rows(browser, 0)]
    assert shown == sorted(shown, reverse=True)
    assert click(3) == "ascending"
    shown = [sizes[name] for name in rows(browser, 0)]
    assert shown == sorted(shown)
    assert click(0) == "ascending"
    names = rows(browser, 0)
    assert names.index("layers.2.norm") < names.index("layers.10.norm")  # by numbers, not by digits
    browser.evaluate("document.getElementById('filter-text').value = 'LAYERS.10'")
    browser.evaluate("document.getElementById('filter-text').dispatchEvent(new Event('input'))")
    assert sorted(rows(browser, 0)) == ["layers.10.attn.k.weight", "layers.10.attn.q.weight", "layers.10.norm"]
    assert browser.evaluate("document.getElementById('filter-count').textContent") == "3 shown"
    assert complaints(browser) == []


def test_without_scripts(model: Path, browser: Browser) -> None:
    assert main(["report", str(model)]) == 0
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(model.with_suffix(".html"))
        text = browser.evaluate("document.body.innerText")
    finally:
        browser.ask("Emulation.setScriptExecutionDisabled", value=False)
    assert "layers.10.attn.k.weight" in text and "Find tensors" not in text

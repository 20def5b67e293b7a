"""A lab on loopback, and Debian's Chromium to look at it with.

Skipped, with the reason, where there's no playwright or no Chromium ($MASKWRIGHT_CHROMIUM, else one on the PATH).
Playwright's own event loop runs in the thread that starts it for as long as the browser lives, and no other loop can
run there then. So the browser, and every test here, has a thread of its own, and asyncio's tests keep theirs.

Screenshots of every state go to tests/browser/screenshots, which git ignores.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from maskwright.registry.lab.server import Lab

SCREENSHOTS = Path(__file__).parent / "screenshots"
NAMES = ("chromium", "chromium-browser", "google-chrome")
START_MS = 240_000
"""The compiler's kernels may have to be built first."""


_browser_thread = ThreadPoolExecutor(1, "browser")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    """Runs a test in the browser's thread."""
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    _browser_thread.submit(pyfuncitem.obj, **arguments).result()
    return True


@pytest.fixture(scope="session")
def lab() -> Iterator[str]:
    """A running lab; its page's address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> tuple[Lab, str]:
        made = Lab("127.0.0.1:0")
        return made, await made.start()

    made, page = asyncio.run_coroutine_threadsafe(start(), loop).result(60)
    try:
        yield page
    finally:
        asyncio.run_coroutine_threadsafe(made.stop(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright isn't installed")
    path = os.environ.get("MASKWRIGHT_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium is here (apt-get install chromium, or set MASKWRIGHT_CHROMIUM)")
    started = _browser_thread.submit(lambda: playwright.sync_playwright().start()).result()
    # The sandbox needs user namespaces, which root in a container hasn't got; the page is our own.
    launch = {"executable_path": path, "args": ["--no-sandbox", "--disable-dev-shm-usage"]}
    browser = _browser_thread.submit(lambda: started.chromium.launch(**launch)).result()
    yield browser
    _browser_thread.submit(browser.close).result()
    _browser_thread.submit(started.stop).result()


@pytest.fixture
def open_lab(lab: str, chromium: Any) -> Iterator[Callable[..., Any]]:
    """Opens the lab at a link, ready; afterwards no page may have had anything to complain of."""
    contexts, complaints = [], list[str]()

    def opened(link: str = "", *, width: int = 1440, height: int = 1000, refused: bool = False, **settings: Any) -> Any:
        context = chromium.new_context(viewport={"width": width, "height": height}, **settings)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: complaints.append(f"failed: {request.url}"))
        page.goto(lab + link)
        page.wait_for_selector(f"#compile-status.{'refused' if refused else 'done'}", timeout=START_MS)
        page.wait_for_selector("body:not(.waiting)")
        if not refused:
            page.wait_for_selector("#tokens tbody tr")
        return page

    yield opened
    for context in contexts:
        _browser_thread.submit(context.close).result()
    # Chromium itself writes a line for these answers; the tests that bring them about look at what comes of it.
    assert [c for c in complaints if "status of 401" not in c and "status of 404" not in c] == []


@pytest.fixture
def keep() -> Callable[[Any, str], None]:
    """Keeps a screenshot of a state."""

    def taken(page: Any, name: str) -> None:
        SCREENSHOTS.mkdir(exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True, animations="disabled")

    return taken

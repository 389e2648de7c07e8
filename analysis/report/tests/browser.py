"""Debian's chromium, headless: what it shows, prints, logs and fetches."""

from __future__ import annotations

import base64
import json
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

if TYPE_CHECKING:
    from collections.abc import Iterator

CHROMIUM = Path("/usr/bin/chromium")
DRIVER = Path("/usr/bin/chromedriver")


class Browser:
    """A window of a headless chromium that has no access to the network."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        """Of a driver that is running."""
        self.driver = driver

    def show(self, page: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Loads a file in a window of that size, with that preference for colours."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        # Without motion a click lands where it was aimed at.
        preferences = {
            "prefers-color-scheme": "dark" if dark else "light",
            "prefers-reduced-motion": "reduce",
        }
        self.command(
            "Emulation.setEmulatedMedia",
            media="",
            features=[{"name": name, "value": value} for name, value in preferences.items()],
        )
        self.driver.get(page.as_uri())

    def command(self, name: str, **parameters: object) -> dict[str, Any]:
        """A command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, parameters)

    def run(self, script: str, *arguments: object) -> Any:  # noqa: ANN401 - what JavaScript has
        """What a script returns that runs in the page."""
        return self.driver.execute_script(script, *arguments)

    def screenshot(self, height: int, *, top: int = 0, scale: float = 1) -> bytes:
        """A strip of the page, ``height`` pixels from ``top`` on, as PNG."""
        width = int(self.run("return innerWidth"))
        clip = {"x": 0, "y": top, "width": width, "height": height, "scale": scale}
        answer = self.command("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        return base64.b64decode(answer["data"])

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(
            self.command("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"]
        )

    def _log(self, kind: str) -> list[dict[str, str]]:
        return self.driver.get_log(kind)  # type: ignore[no-untyped-call]

    def complaints(self) -> list[str]:
        """The console's errors and warnings since the last call."""
        return [entry["message"] for entry in self._log("browser")]

    def fetched(self) -> list[str]:
        """The addresses asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self._log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]


@contextmanager
def browser(home: Path) -> Iterator[Browser]:
    """A browser whose profile lies in ``home``; it is gone when the context ends."""
    options = Options()
    options.binary_location = str(CHROMIUM)
    for argument in (
        "--headless=new",
        "--no-sandbox",  # tests run as root, where chromium's own sandbox does not start
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--force-color-profile=srgb",
        "--hide-scrollbars",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={home / 'profile'}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # The launcher of Debian's package looks for its caches at home.
    service = Service(str(DRIVER), env={**os.environ, "HOME": str(home)})
    driver = webdriver.Chrome(options=options, service=service)
    try:
        yield Browser(driver)
    finally:
        driver.quit()

"""What the tests in a browser share: a headless Chromium that tells what it asked for and complained about, and a
dashboard to look at with it.
"""

import contextlib
import json
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from run_cases import PATIENCE_S, command_line, until

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)
DESKTOP, PHONE = (1200, 900), (360, 740)
# the finished campaign: 2 farms, 2 types, and a seed whose tasks fail
SEEDS, BAD_SEED = 14, 3
MESSAGE = "a_message_without_a_place_to_break_it_" * 6 + "<b>&amp;</b>"
TURBINES = [
    {"name": "generic 10 MW", "rated_power_mw": 10, "rotor_diameter_m": 195, "hub_height_m": 121},
    {
        "name": "a turbine with a rather long name, mark II",
        "rated_power_mw": 12,
        "rotor_diameter_m": 214,
        "hub_height_m": 133,
    },
]
SETTLED = "return document.readyState === 'complete' && !document.querySelector('[data-load] > .wait')"


def installed() -> tuple[str, str]:
    """The browser and its driver; without them the test is skipped. Nothing is ever downloaded."""
    pytest.importorskip("selenium", reason="selenium is not installed")
    names = (("chromium", "chromium-browser", "google-chrome"), ("chromedriver",))
    found = [next(filter(None, map(shutil.which, each)), None) for each in names]
    if None in found:
        pytest.skip("no Chromium with its driver here: apt-get install chromium chromium-driver")
    return str(found[0]), str(found[1])


class Browser:
    """One window. What it was told stays until it is closed: cookies, width, dark or light."""

    def __init__(self, folder: Path) -> None:
        program, driver = installed()
        from selenium.webdriver import Chrome, ChromeOptions
        from selenium.webdriver.chrome.service import Service

        self.downloads = folder / "downloads"
        self.downloads.mkdir(parents=True)
        options = ChromeOptions()
        for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}", "--window-size={},{}".format(*DESKTOP)):
            options.add_argument(flag)
        options.binary_location = program
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        options.add_experimental_option("prefs", {"download.default_directory": str(self.downloads)})
        self.driver = Chrome(options=options, service=Service(driver))
        self.driver.command_executor.client_config.timeout = PATIENCE_S + 60  # longer than the browser's own limits
        self.driver.set_page_load_timeout(PATIENCE_S)
        self.driver.set_script_timeout(PATIENCE_S)
        self.driver.get("about:blank")  # away from the browser's own first page, which asks for things of its own
        self.base = ""

    def close(self) -> None:
        self.driver.quit()

    # --- where it is ---

    def enter(self, address: str) -> None:
        """Through the printed address, token and all."""
        parts = urlsplit(address)
        self.base = f"{parts.scheme}://{parts.netloc}"
        self.driver.get(address)

    def open(self, path: str) -> None:
        """A page, with the parts of it that load by themselves."""
        self.driver.get(self.base + path)
        until(lambda: self.run(SETTLED), f"{path} is complete")

    @property
    def path(self) -> str:
        """With its query."""
        parts = urlsplit(self.driver.current_url)
        return f"{parts.path}?{parts.query}" if parts.query else parts.path

    def leave(self) -> None:
        """The page, before the dashboard ends: it would complain of that."""
        self.driver.get("about:blank")

    def arrives(self, path: str) -> None:
        """What a click began may take a moment."""
        until(lambda: self.path == path and self.run(SETTLED), f"{path} after {self.path}")

    def drawn(self) -> None:
        """What was set going is to be seen: two pictures later."""
        self.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")

    # --- what is there ---

    def run(self, script: str, *arguments):
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str) -> list:
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str):
        found = self.all(selector)
        assert len(found) == 1, f"{len(found)} of {selector} at {self.path}"
        return found[0]

    def text(self, selector: str = "main") -> str:
        """As it stands there at this moment: live parts may be exchanged between two looks."""
        return self.run("return document.querySelector(arguments[0])?.innerText || ''", selector)

    def texts(self, selector: str) -> list[str]:
        """Of all of them, at one moment."""
        return self.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText)", selector)

    def until_text(self, words: str, selector: str = "main") -> str:
        """The text with these words in it; a moment later another one may stand there."""

        def found() -> str:
            text = self.text(selector)
            return text if words in text else ""

        return until(found, f"{words!r} in {selector} at {self.path}")

    def click(self, selector: str) -> None:
        """On what is there; a live part may be exchanged between finding it and clicking.

        Between pressing and letting go as well: what comes of a click there is to be waited for, with `click_until`.
        """
        from selenium.common.exceptions import StaleElementReferenceException

        def clicked() -> bool:
            try:
                self.one(selector).click()
            except StaleElementReferenceException:
                return False
            return True

        until(clicked, f"a click on {selector}")

    def click_until(self, selector: str, script: str):
        """Clicks until the script returns something, which is returned."""

        def result():
            return self.run(script) or (self.click(selector), self.run(script))[1]

        return until(result, f"what a click on {selector} does")

    def press(self, *keys: str) -> None:
        """On the keyboard, wherever the focus is."""
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self) -> str:
        """A few words on what has the focus."""
        return self.run(
            "const e = document.activeElement; return `${e.localName} ${e.name || ''} ${e.innerText || ''}`.trim()"
        )

    # --- how it looks ---

    def looks(self, *, size: tuple[int, int] = DESKTOP, scheme: str = "light") -> None:
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def picture(self, path: Path) -> None:
        """Of the whole page."""
        size = self.run("return [innerWidth, document.documentElement.scrollHeight]")
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size[0] < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.save_screenshot(str(path))

    # --- what it says behind the scenes ---

    def complaints(self) -> list[str]:
        """What the console got since the last look: errors of scripts, refusals of the policy, missing files."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses that pages asked for since the last look."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return [request["request"]["url"] for request in sent]

    def download(self, link, name: str) -> str:
        """What is saved by a click."""
        target = self.downloads / name
        target.unlink(missing_ok=True)
        link.click()
        until(lambda: target.exists() and target.stat().st_size, f"{name} is saved")
        until(lambda: not list(self.downloads.glob("*.crdownload")), f"all of {name} is saved")
        return target.read_text()


@contextlib.contextmanager
def dashboard(path: str, cwd: Path, before: str = "") -> Iterator[tuple[subprocess.Popen, str]]:
    """Run the real command, and yield its process and the address it prints. before: statements for its process."""
    with tempfile.NamedTemporaryFile(dir=cwd, prefix="serve-", delete=False) as output:
        said = Path(output.name)
        served = subprocess.Popen(
            command_line("serve", path, "--port", "0", before=before), cwd=cwd, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        until(lambda: "Ctrl-C" in said.read_text() or served.poll() is not None, "it serves")
        found = re.search(r"http://\S+", said.read_text())
        assert found, said.read_text()
        yield served, found[0]
    finally:
        served.send_signal(signal.SIGINT)  # nothing, if it has ended
        served.wait(PATIENCE_S)
    assert "Traceback" not in said.read_text(), said.read_text()

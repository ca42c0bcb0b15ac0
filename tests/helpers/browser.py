"""Headless Chromium: start it, and read what it shows and what it loads."""

import base64
import io
import json
import shutil
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

_PROGRAMS = ("chromium", "chromedriver")
_FLAGS = ["headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run"]
_FLAGS += ["disable-background-networking", "disable-component-update", "disable-sync"]
_FLAGS += ["allow-file-access-from-files"]  # so that a canvas may read the video
# The contrast ratio of a text and its background, as WCAG 2.2 defines it.
_CONTRASTS = """
const rgba = (text) => text.match(/[\\d.]+/g).map(Number);
const light = (c) => c.slice(0, 3).map((v) => v / 255)
  .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const colour = rgba(getComputedStyle(e).backgroundColor);
    if (colour.length < 4 || colour[3] === 1) return colour;
  }
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const found = [];
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || !element.checkVisibility()) continue;
  if (["SCRIPT", "NOSCRIPT", "STYLE"].includes(element.tagName)) continue;
  const [a, b] = [rgba(getComputedStyle(element).color), behind(element)].map(light);
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  found.push([ratio, walker.currentNode.textContent.trim()]);
}
return found;
"""
_OVERPRINTED = """
return [...document.querySelectorAll(arguments[0])].flatMap((row) => {
  const range = document.createRange(), box = row.getBoundingClientRect();
  const texts = [...row.children].map((cell) => {
    range.selectNodeContents(cell);
    return [cell.textContent, range.getBoundingClientRect()];
  });
  const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.5;
  return texts.filter(([, a], place) => a.left < box.left || a.right > box.right
    || a.bottom > box.bottom + 1 || texts.slice(place + 1).some(([, b]) => over(a, b)))
    .map(([text]) => text);
});
"""


@contextmanager
def chromium(profile: Path):
    """Yield a selenium driver of a new Chromium, or skip the test if it is not installed."""
    programs = [shutil.which(name) for name in _PROGRAMS]
    if None in programs:
        pytest.skip(f"needs {' and '.join(_PROGRAMS)} (apt-get install chromium chromium-driver)")
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    for flag in [*_FLAGS, f"user-data-dir={profile}", "window-size=1280,900"]:
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(programs[1]))
    driver.set_script_timeout(60)
    try:
        yield driver
    finally:
        driver.quit()


def wait(driver, condition: str) -> None:
    """Wait until a condition, in JavaScript, holds."""
    end = time.monotonic() + 60
    while not driver.execute_script(f"return Boolean({condition})"):
        assert time.monotonic() < end, condition
        time.sleep(0.02)


def all_of(driver, selector: str) -> list:
    """Return the elements of a CSS selector."""
    return driver.find_elements("css selector", selector)


def one(driver, selector: str):
    """Return the one element of a CSS selector."""
    (element,) = all_of(driver, selector)
    return element


def screen(driver, width: int, height: int, scheme: str = "light") -> None:
    """Give the page a screen of this size and color scheme. Small screens are phones."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def requests(driver) -> set[str]:
    """Return the addresses that the pages have requested since the last call."""
    messages = (json.loads(entry["message"])["message"] for entry in driver.get_log("performance"))
    sent = (m["params"] for m in messages if m["method"] == "Network.requestWillBeSent")
    return {params["request"]["url"] for params in sent}


def picture(driver, video: str) -> np.ndarray:
    """Return the frame of a video element at its own size, (H, W, 3) uint8."""
    address = driver.execute_script(
        "const film = document.getElementById(arguments[0]);"
        "const canvas = document.createElement('canvas');"
        "[canvas.width, canvas.height] = [film.videoWidth, film.videoHeight];"
        "canvas.getContext('2d').drawImage(film, 0, 0);"
        "return canvas.toDataURL('image/png');",
        video,
    )
    return _pixels(address)


def play(driver, page: Path, video: Path) -> float:
    """Open a page of a video in an element `film`, play it, and return the time of its end."""
    page.write_text(f"<!DOCTYPE html><video id=film src={video} muted preload=auto></video>")
    driver.get(page.as_uri())
    return driver.execute_async_script(
        "const film = document.getElementById('film'), done = arguments[0];"
        "const play = () => film.play().catch((error) => done(String(error)));"
        "film.onended = () => done(film.currentTime);"
        "film.readyState < 3 ? film.oncanplay = play : play();"
    )


def sought(driver, seconds: float) -> np.ndarray:
    """Seek in the element `film` and return its frame."""
    driver.execute_async_script(
        "const film = document.getElementById('film'), done = arguments[1];"
        "film.onseeked = () => done(); film.currentTime = arguments[0];",
        seconds,
    )
    return picture(driver, "film")


def overprinted(driver, rows: str) -> list[str]:
    """Return the texts that exceed their row, a CSS selector, or overlap another text in it."""
    return driver.execute_script(_OVERPRINTED, rows)


def seeking(driver, action) -> None:
    """Call a function that seeks in the film, and wait until the film shows the new place."""
    driver.execute_script(
        "const film = document.getElementById('film');"
        "window.sought = new Promise((done) => film.addEventListener('seeked', done, {once: true}))"
    )
    action()
    driver.execute_async_script("window.sought.then(() => arguments[0]())")


def canvas(driver, element: str) -> np.ndarray:
    """Return the image of a canvas, (H, W, 3) uint8."""
    script = "return document.getElementById(arguments[0]).toDataURL('image/png')"
    return _pixels(driver.execute_script(script, element))


def _pixels(address: str) -> np.ndarray:
    with Image.open(io.BytesIO(base64.b64decode(address.split(",", 1)[1]))) as image:
        return np.asarray(image.convert("RGB"))


def contrasts(driver) -> list[tuple[float, str]]:
    """Return each visible text's contrast ratio, and the text."""
    return [(ratio, text) for ratio, text in driver.execute_script(_CONTRASTS)]

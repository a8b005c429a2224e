"""The documentation page in a real browser: a picture is chosen, posted, and its answer read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.support.ui import WebDriverWait

from cli.process import serving
from runtimes.archives import colours, jpeg

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
SWITCHES = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--window-size=1000,1100"),
)
EVIL = "def predict_fn(data, model):\n    return {'<img src=x onerror=alert(1)>': data}\n"

pytestmark = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="there is no chromium and chromedriver here")


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[WebDriver]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for switch in (*SWITCHES, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(switch)
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def test_a_picture_is_posted_and_its_answer_shown(browser: WebDriver, tmp_path: Path) -> None:
    colours(tmp_path / "colours.zip")
    (tmp_path / "hooks.py").write_text(EVIL)
    (tmp_path / "lime.jpg").write_bytes(jpeg("lime"))
    with serving("colours.zip", "hooks.py", "--api-title", "Colours & more", folder=tmp_path) as server:
        browser.get(f"{server.url}/docs")
        waiting = WebDriverWait(browser, 20)
        waiting.until(lambda page: len(page.find_elements(By.CSS_SELECTOR, "section")) == 2)
        assert browser.title == "Colours & more"
        picture, hooks = browser.find_elements(By.CSS_SELECTOR, "section")
        picture.find_element(By.CSS_SELECTOR, "input[type=file]").send_keys(str(tmp_path / "lime.jpg"))
        assert "-F 'data=@lime.jpg'" in picture.find_element(By.CSS_SELECTOR, "pre").text
        picture.find_element(By.CSS_SELECTOR, "form button").click()
        waiting.until(lambda _: picture.find_element(By.CSS_SELECTOR, ".status").text.startswith("200 in "))
        answer = json.loads(picture.find_elements(By.CSS_SELECTOR, "pre")[1].text)
        assert answer["prediction"][0][0]["class"] == "green"
        hooks.find_element(By.CSS_SELECTOR, "form button").click()
        waiting.until(lambda _: hooks.find_element(By.CSS_SELECTOR, ".status").text.startswith("200 in "))
        assert "<img src=x onerror=alert(1)>" in hooks.find_elements(By.CSS_SELECTOR, "pre")[1].text
        assert hooks.find_elements(By.CSS_SELECTOR, "pre img") == []
        assert browser.save_screenshot(str(tmp_path / "page.png"))
        assert (tmp_path / "page.png").stat().st_size > 10_000

"""The page in a real browser: what is drawn, what keys do, what hostile text can't do."""

from __future__ import annotations

import shutil

import pytest

from tests.replay.made_runs import batch, mixture, repeating, run, working
from tests.replay.test_report import SCRIPT, page_of

webdriver = pytest.importorskip("selenium.webdriver")
By = pytest.importorskip("selenium.webdriver.common.by").By
Keys = pytest.importorskip("selenium.webdriver.common.keys").Keys

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("chromedriver") is None, reason="needs Chromium"),
]


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.add_argument("--window-size=1400,1000")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options, service)
    driver.implicitly_wait(1)
    yield driver
    driver.quit()


@pytest.fixture
def show(browser, tmp_path):
    """Open the page of these runs; gives a function that finds what a selector names."""

    def opened(*runs, content=False, fragment=""):
        path = tmp_path / "page.html"
        path.write_text(page_of(runs, content=content).render())
        browser.get("about:blank")
        browser.get(f"file://{path}{fragment}")
        return lambda selector: browser.find_elements(By.CSS_SELECTOR, selector)

    return opened


def texts(found):
    return [one.text for one in found]


LOOPS = [repeating(9, name="nine"), repeating(30, name="thirty"), working(3, name="quiet")]


def test_a_thousand_runs_open_in_under_two_seconds(show, browser):
    find = show(*mixture(1000))
    wait = "return document.documentElement.dataset.ready"
    assert int(browser.execute_script(wait) or 2000) < 2000
    assert len(find(".run")) == 150
    assert len([one for one in find("canvas") if one.get_attribute("width") != "0"]) < 100


def test_nothing_is_complained_about(show, browser):
    find = show(*LOOPS)
    find(".run > summary")[0].click()
    assert [one for one in browser.get_log("browser") if one["level"] == "SEVERE"] == []


def test_hostile_text_is_only_text(show, browser):
    show(run(batch((SCRIPT, "a", SCRIPT)), name=SCRIPT, source=SCRIPT), content=True)
    assert browser.execute_script("return window.hurt") is None


def test_the_runs_with_the_most_calls_saved_come_first(show):
    assert texts(show(*LOOPS)(".who > bdi")) == ["thirty", "nine", "quiet"]


@pytest.mark.parametrize(
    ("fragment", "listed"),
    [
        pytest.param("#q=nine", ["nine"], id="search"),
        pytest.param("#q=repeat:", ["thirty", "nine"], id="rule"),
        pytest.param("#action=0", ["quiet"], id="guard"),
        pytest.param("#outcome=success", ["quiet"], id="outcome"),
        pytest.param("#sort=calls&order=1", ["quiet", "nine", "thirty"], id="order"),
        pytest.param("#sort=constructor&action=9&source=x", ["thirty", "nine", "quiet"], id="odd"),
    ],
)
def test_runs_are_filtered_and_sorted(show, fragment, listed):
    assert texts(show(*LOOPS, fragment=fragment)(".who > bdi")) == listed


def test_a_count_on_top_filters_and_clear_shows_all_again(show):
    find = show(*LOOPS)
    find('.tile[data-action="0"]')[0].click()
    assert texts(find(".who > bdi")) == ["quiet"]
    assert "1 run of 3" in find("#status")[0].text
    find('button[type="reset"]')[0].click()
    assert len(find(".run")) == 3


def test_each_row_says_why_and_the_legend_is_open(show):
    find = show(*LOOPS)
    assert find(".end")[0].text.startswith("repeat: search, 5 times")
    assert find("#legend")[0].get_attribute("open") is not None


def test_a_run_is_opened_and_walked_by_keyboard(show, browser):
    find = show(*LOOPS)
    head = find(".run > summary")
    head[0].send_keys(Keys.ARROW_DOWN)
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    calls = find(".run[open] .calls")[0]
    calls.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert (
        find(".c.here")[0].get_attribute("aria-label").startswith("Call 3: search A, made 9 times")
    )
    calls.send_keys(Keys.ESCAPE)
    assert find(".run[open]") == []
    browser.switch_to.active_element.send_keys("/")
    assert browser.switch_to.active_element.get_attribute("id") == "q"


def test_content_is_shown_when_it_is_in_the_page(show):
    find = show(run(batch(("look", "my argument", "my result"))), content=True)
    find(".run > summary")[0].click()
    find(".open .c")[0].click()
    assert texts(find("pre")) == ['{"value": "my argument"}', "my result"]


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_nothing_is_wider_than_the_window(show, browser, width):
    browser.set_window_size(max(width, 500), 900)
    find = show(*LOOPS, repeating(9, name="x" * 250, source="y" * 250))
    find(".run > summary")[0].click()
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert browser.execute_script(wide) <= 0

"""The report opens from disk and leads from every row to its picture, in a real browser."""

import json
import os
import shutil
import socket
import time
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from browser import canvas, chromium, contrasts, picture, requests, screen
from conftest import DISCRETE, HARSH, PUMP
from PIL import Image
from test_plots import draw

import goalreel
from goalreel.errors import GoalreelError
from goalreel.files import atomic
from goalreel.provenance.checksums import SUMS, write_sums
from goalreel.provenance.spec import parse_spec
from goalreel.report.page_rows import write_rows
from report import report as program

LONG = 100_000


def arguments_of(results: Path, plots: list, reaches: int = 8, **config) -> list[str]:
    """Return the arguments that the rule of the report gives, without its views and folder."""
    config = {"env": DISCRETE, "film.fps": 30, "unit": "reach", "policy": PUMP} | config
    shard = {"shards": 2, "reaches": reaches}
    files = {
        **{"film": "film.mp4", "episodes": "episodes.csv", "attempts": "attempts.csv"},
        **{"tables": "tables.json", "trajectories": "trajectories/00000.npz"},
        **{"frames": "frames/00000.npz", "segments": "segments/00000.mp4", "atlas": "atlas.npz"},
    }
    spec = json.dumps({"stage": "report", "config": config, "shard": shard})
    arguments = ["--plots", str(plots[0].parent) if plots else ".", "--spec", spec]
    for name, path in files.items():
        arguments += [f"--{name}", str(results / path)]
    return arguments


CARDS = 15  # frames of a title card


@pytest.fixture(scope="module")
def plots(filmed, tmp_path_factory) -> list:
    """Return the plots of the finished film."""
    return draw(filmed.folder / "results", tmp_path_factory.mktemp("plots"))


@pytest.fixture(scope="module")
def report(filmed, plots, tmp_path_factory) -> Path:
    """Return a report with views, moved to a folder of a harsh name, away from all else."""
    results, made = filmed.folder / "results", tmp_path_factory.mktemp("report")
    views = [made / "swarm.mp4", made / "grid.mp4"]
    for view in views:
        shutil.copyfile(results / "film.mp4", view)  # any video will do
    arguments = arguments_of(results, plots)
    program.main(
        [
            *arguments,
            "--swarm",
            str(views[0]),
            "--grid",
            str(views[1]),
            "--output",
            str(made / "report"),
        ]
    )
    return (made / "report").rename(tmp_path_factory.mktemp("moved") / HARSH.replace("/", ""))


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """Return a browser."""
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        driver.set_script_timeout(60)
        yield driver


@pytest.fixture
def page(driver, report):
    """Return the browser with the report freshly opened; the page may not complain of anything."""
    screen(driver, 1280, 900)
    driver.get("about:blank")
    requests(driver)
    driver.get((report / "index.html").as_uri())
    wait(driver, "document.getElementById('film').readyState >= 2")
    yield driver
    assert driver.get_log("browser") == []
    asked = {url for url in requests(driver) if not url.startswith("data:")}
    folder = report.as_uri() + "/"
    assert all(url.startswith(folder) for url in asked), asked
    for name in ("index.html", "report.css", "report.js", "data.js", "film.mp4", "states.svg"):
        assert any(url.startswith(folder + name) for url in asked), f"{name} was not asked for"


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


def seeking(driver, action) -> None:
    """Do something that moves the film, and wait until it shows the new place."""
    driver.execute_script(
        "const film = document.getElementById('film');"
        "window.sought = new Promise((done) => film.addEventListener('seeked', done, {once: true}))"
    )
    action()
    driver.execute_async_script("window.sought.then(() => arguments[0]())")


def assert_shows(driver, filmed, row: int, step: int) -> None:
    """Hold the film's picture against the frame caches: this episode and step, no neighbour."""
    results = filmed.folder / "results"
    table = pd.read_csv(results / "episodes.csv")
    caches = [goalreel.open_cache(results / "frames" / f"{n:05d}.npz") for n in range(2)]
    # Below the captions a card shows the empty track.
    film = [
        picture
        for cache in caches
        for episode in range(len(cache.offsets) - 1)
        for picture in [(cache, None)] * CARDS + [(cache, n) for n in cache.episode(episode)]
    ]
    frame = int(table["first_frame"][row]) + step
    around = range(max(frame - 2, 0), min(frame + 3, len(film)))
    pictures = {}
    for n in around:
        cache, number = film[n]
        pictures[n] = (cache.background if number is None else cache[number])[35:]
    seen = picture(driver, "film").astype(np.int16)[35:]
    near = {n: np.abs(pictures[n] - seen).mean() for n in around}
    assert near[frame] < 1, near
    for other, difference in near.items():
        same = np.array_equal(pictures[other], pictures[frame])  # a car that hardly moves
        assert difference > near[frame] or same, near
    assert np.ptp(list(near.values())) > 0, "no neighbour could have been taken for it"


@pytest.mark.slow
def test_a_click_seeks_to_the_very_frame_of_the_reset(page, filmed):
    for row in (5, 2, 0, 7):
        seeking(page, all_of(page, "[role=option]")[row].click)
        assert_shows(page, filmed, row, 0)
        assert one(page, "#now").text.startswith(f"Reach {row}: reached, ")
        shown = one(page, "[role=option][aria-selected=true]")
        assert shown.get_attribute("id") == f"episode-{row}"


@pytest.mark.slow
def test_enter_seeks_to_a_reach_found_by_filtering(page, filmed):
    from selenium.webdriver.common.keys import Keys

    table = pd.read_csv(filmed.folder / "results" / "episodes.csv")
    least = int(table["steps"].quantile(0.4, interpolation="higher"))
    wanted = table.index[table["steps"] >= least].tolist()
    assert 3 <= len(wanted) < 8
    one(page, "#steps-from").send_keys(str(least))
    assert one(page, "#count").text == f"{len(wanted)} of 8 episodes"
    listed = [option.get_attribute("id") for option in all_of(page, "[role=option]")]
    assert listed == [f"episode-{row}" for row in wanted]
    rows = one(page, "#episodes")
    seeking(page, lambda: rows.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER))
    assert_shows(page, filmed, wanted[2], 0)
    assert rows.get_attribute("aria-activedescendant") == f"episode-{wanted[2]}"
    assert page.switch_to.active_element == rows


@pytest.mark.slow
def test_the_film_plays_and_the_list_follows(page, filmed):
    from selenium.webdriver.common.keys import Keys

    starts = pd.read_csv(filmed.folder / "results" / "episodes.csv")["start_s"]
    card = CARDS / 30
    film = "document.getElementById('film')"
    seeking(page, lambda: page.execute_script(f"{film}.currentTime = {starts[3] - card - 0.2}"))
    assert one(page, "#now").text.startswith("Reach 2")
    one(page, "#episodes").send_keys(Keys.SPACE)
    wait(page, "document.getElementById('now').textContent.startsWith('Reach 3')")
    assert not page.execute_script(f"return {film}.paused")
    assert one(page, "[aria-selected=true]").get_attribute("id") == "episode-3"
    page.switch_to.active_element.send_keys(Keys.SPACE)
    wait(page, f"{film}.paused")
    # Any other step's picture stands at its time too.
    time_of = f"{film}.currentTime = {starts[6]} + 70.5 / 30"
    seeking(page, lambda: page.execute_script(time_of))
    assert_shows(page, filmed, 6, 70)


@pytest.mark.slow
def test_filters_are_those_of_the_table(page, filmed):
    from selenium.webdriver.support.select import Select

    table = pd.read_csv(filmed.folder / "results" / "episodes.csv", dtype={"seed": str})

    def listed():
        return [option.get_attribute("id") for option in all_of(page, "[role=option]")]

    def rows_of(chosen):
        return [f"episode-{row}" for row in table.index[chosen]]

    everything = listed()
    assert everything == rows_of(slice(None))
    one(page, "#steps-to").send_keys(str(table["steps"].median()))
    assert listed() == rows_of(table["steps"] <= table["steps"].median()) != everything
    one(page, "button[type=reset]").click()
    wait(page, "document.querySelectorAll('[role=option]').length === 8")
    low, high = sorted(table["return"])[2], sorted(table["return"])[5]
    one(page, "#return-from").send_keys(str(low))
    one(page, "#return-to").send_keys(str(high))
    assert listed() == rows_of(table["return"].between(low, high)) != everything
    one(page, "button[type=reset]").click()
    wait(page, "document.querySelectorAll('[role=option]').length === 8")
    part = table["seed"][4][5:9]
    one(page, "#seed").send_keys(part)
    assert listed() == rows_of(table["seed"].str.contains(part)) != everything
    one(page, "button[type=reset]").click()
    outcome = Select(one(page, "#outcome"))
    outcome.select_by_visible_text("failed")
    assert listed() == [] and "No episode passes" in one(page, "#episodes").text
    outcome.select_by_visible_text("reached")
    assert listed() == everything


@pytest.mark.slow
def test_a_click_on_a_columns_head_sorts_by_it(page, filmed):
    table = pd.read_csv(filmed.folder / "results" / "episodes.csv")
    heads = {head.text.split()[0].lower(): head for head in all_of(page, "#columns button")}
    assert list(heads) == ["reach", "outcome", "return", "steps", "seed", "time"]
    for column, key, ascending in (
        *(("return", "return", False), ("return", "return", True), ("steps", "steps", True)),
        *(("seed", "seed", True), ("time", "reach", True), ("reach", "reach", True)),
        *(("reach", "reach", False),),
    ):
        heads[column].click()
        values = table[key] if ascending else -table[key]
        expected = [f"episode-{row}" for row in np.argsort(values, kind="stable")]
        assert [option.get_attribute("id") for option in all_of(page, "[role=option]")] == expected
        assert heads[column].get_attribute("aria-pressed") == "true"
        assert len(all_of(page, "#columns [aria-pressed=true]")) == 1
    # The film finds its place in a sorted list too.
    row = int(table["reach"].iloc[-2])
    seeking(page, all_of(page, "[role=option]")[1].click)
    assert_shows(page, filmed, row, 0)


@pytest.mark.slow
def test_the_summary_tells_mean_and_median_and_leads_to_the_best_and_the_worst(page, filmed):
    table = pd.read_csv(filmed.folder / "results" / "episodes.csv")
    told = one(page, "[aria-label=Summary]").text.replace("−", "-")
    for name in ("return", "steps"):
        column = table[name]
        assert f"{column.mean():.1f} ± {column.std(ddof=0):.1f}" in told
        assert f"median\n{column.median():g}" in told
    links = {link.find_element("xpath", "../../dt").text: link for link in all_of(page, ".seek")}
    rows = {"best": table["return"].idxmax(), "worst": table["return"].idxmin()}
    rows |= {"fewest": table["steps"].idxmin(), "most": table["steps"].idxmax()}
    assert links.keys() == rows.keys()
    one(page, "#seed").send_keys(str(table["seed"][rows["best"]]))  # the others are filtered out
    for name in ("worst", "best"):
        seeking(page, lambda name=name: page.execute_script("arguments[0].click()", links[name]))
        assert_shows(page, filmed, rows[name], 0)


@pytest.mark.slow
def test_pointing_at_a_row_shows_pictures_of_its_episode(page, filmed):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    results = filmed.folder / "results"
    table = pd.read_csv(results / "episodes.csv")
    cache = goalreel.open_cache(results / "frames" / "00001.npz")
    ActionChains(page).move_to_element(all_of(page, "[role=option]")[5]).perform()
    wait(page, "document.getElementById('strip').dataset.episode === '5'")
    steps = [round(i * table["steps"][5] / 7) for i in range(8)]
    listed = ", ".join(map(str, steps))
    assert one(page, "#moments").text == f"Reach 5: steps {listed}"
    strip = canvas(page, "strip").astype(int)
    width, height = (strip.shape[1] - 3 * 4) // 4, (strip.shape[0] - 4) // 2
    for place, step in enumerate(steps):
        top, left = place // 4 * (height + 4), place % 4 * (width + 4)
        seen = strip[top : top + height, left : left + width]
        near = {}
        for other in steps:
            frame = cache[cache.episode(1)[other]]
            image = Image.fromarray(frame).resize((width, height), Image.Resampling.BOX)
            near[other] = np.abs(np.asarray(image, int) - seen)[height // 8 :].mean()
        assert min(near, key=near.get) == step, near
    # The keyboard's place has its pictures too, and the film stays where it is.
    one(page, "#episodes").send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    wait(page, "document.getElementById('strip').dataset.episode === '2'")
    assert page.execute_script("return document.getElementById('film').currentTime") < 0.1


def overprinted(driver) -> list[str]:
    """Return the texts of the list that reach beyond their cell, or over another."""
    return driver.execute_script("""
        const wrong = [];
        for (const row of document.querySelectorAll("#columns, #episodes .episode")) {
          const texts = [...row.children].map((cell) => {
            const range = document.createRange();
            range.selectNodeContents(cell);
            return [cell.textContent, range.getBoundingClientRect()];
          });
          const box = row.getBoundingClientRect();
          texts.forEach(([text, a], place) => {
            if (a.left < box.left || a.right > box.right || a.bottom > box.bottom + 1)
              wrong.push(`${text} reaches beyond its row`);
            for (const [other, b] of texts.slice(place + 1)) {
              const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
              const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
              if (across > 0.5 && down > 0.5) wrong.push(`${text} over ${other}`);
            }
          });
        }
        return wrong;
    """)


LARGE = {
    "reach": [2_000_000, 3, 7],
    "attempt": [0, 999, 5],
    "seed": [2**53 - 1, 10**15, 5],
    "steps": [1_000_000, 1, 27_000],
    "return": [-123456.789, 0.5, 98765.4321],
    "start_s": [0.0, 99_999.0, 100_000.0],
    "reached": [True, False, True],
}


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["reach", "episode"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_text_of_the_list_prints_over_another(driver, report, unit, scheme, tmp_path):
    shutil.copytree(report, tmp_path / "large", copy_function=os.link)
    rows = pd.DataFrame(LARGE).assign(
        terminated=[False, True, False], truncated=[True, False, False]
    )
    (tmp_path / "large" / "data.js").unlink()
    rows = rows.rename(columns={"reach": "episode"}) if unit == "episode" else rows
    write_rows(tmp_path / "large" / "data.js", rows, 30, unit)
    driver.get((tmp_path / "large" / "index.html").as_uri())
    for width in (375, 700, 1000, 1280, 1920):
        screen(driver, width, 900, scheme)
        assert len(all_of(driver, "[role=option]")) == 3
        wait(driver, "document.getElementById('columns').offsetWidth")
        assert overprinted(driver) == []
        for head in all_of(driver, "#columns button")[2:4]:
            driver.execute_script("arguments[0].click()", head)
        assert overprinted(driver) == []


@pytest.mark.slow
def test_a_page_of_episodes_says_so(driver, filmed, plots, tmp_path):
    results = filmed.folder / "results"
    table = pd.read_csv(results / "episodes.csv").rename(columns={"reach": "episode"})
    table = table.drop(columns=["attempt", "initial_position", "reached"])
    table.loc[[2, 5], ["terminated", "truncated"]] = [False, True]
    table.loc[7, ["terminated", "truncated"]] = [False, False]  # where a recording ends
    table["return"] = np.linspace(-1.23456, 9.87654, 8)
    table.to_csv(tmp_path / "episodes.csv", index=False)
    arguments = arguments_of(results, [plots[0]], env="LunarLander-v3", unit="episode")
    arguments[arguments.index("--episodes") + 1] = str(tmp_path / "episodes.csv")
    arguments.pop(arguments.index("--attempts") + 1)
    shutil.copytree(plots[0].parent, tmp_path / "plots")
    for name in ("reach_rate", "initial_position", "states", "steps", "return_by_episode"):
        (tmp_path / "plots" / f"{name}.svg").unlink()
    write_sums(tmp_path / "plots" / SUMS, [tmp_path / "plots" / "actions.svg"])
    arguments[arguments.index("--plots") + 1] = str(tmp_path / "plots")
    program.main([*arguments, "--output", str(tmp_path / "report")])
    screen(driver, 1280, 900)
    driver.get((tmp_path / "report" / "index.html").as_uri())
    assert driver.title.startswith("LunarLander-v3: 8 episodes")
    text = one(driver, "body").text
    assert "reach" not in text.lower().replace("without", ""), text
    assert "terminated\n5\ntruncated\n2\nstopped\n1" in text
    shown = {
        option.find_element("css selector", ".return").text
        for option in all_of(driver, "[role=option]")
    }
    assert shown == {f"{value:.3f}".replace("-", "−") for value in table["return"]}
    one(driver, "#outcome").send_keys("truncated")
    listed = [option.get_attribute("id") for option in all_of(driver, "[role=option]")]
    assert listed == ["episode-2", "episode-5"]
    assert one(driver, ".screen").text.count("Episode 0") and driver.get_log("browser") == []


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_and_nothing_reaches_beyond_a_phone(page, scheme):
    page.execute_script("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    all_of(page, "[role=option]")[1].click()
    for width, height in ((1920, 1080), (1280, 900), (1000, 700), (700, 900), (375, 812)):
        screen(page, width, height, scheme)
        told = contrasts(page)
        assert len(told) > 100
        assert min(told)[0] >= 4.5, sorted(told)[:3]
        wide = page.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1] == width
        rows = one(page, "#episodes")
        assert int(rows.get_property("scrollWidth")) <= int(rows.get_property("clientWidth"))
    dark = page.execute_script("return getComputedStyle(document.documentElement).backgroundColor")
    assert (dark == "rgb(255, 255, 255)") == (scheme == "light")


@pytest.mark.slow
def test_everything_has_a_name_for_those_who_do_not_see_it(page):
    """Chromium's own accessibility tree names whatever can be operated or played."""
    page.execute_cdp_cmd("Accessibility.enable", {})
    nodes = page.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    operated = {"button", "checkbox", "combobox", "image", "img", "link", "listbox", "option"}
    operated |= {"region", "searchbox", "spinbutton", "table", "Video", "video", "Image"}
    named = [n for n in nodes if not n["ignored"] and n["role"]["value"] in operated]
    roles = {node["role"]["value"] for node in named}
    assert {"listbox", "option", "spinbutton", "searchbox", "table", "link"} <= roles
    for node in named:
        assert node.get("name", {}).get("value"), node
    now = one(page, "#now")
    assert now.get_attribute("aria-live") == "polite" and now.text


@pytest.mark.slow
def test_a_long_film_keeps_the_page_small(driver, report, tmp_path, filmed):
    from selenium.webdriver.common.keys import Keys

    shutil.copytree(report, tmp_path / "long", copy_function=os.link)
    generator = np.random.default_rng(0)
    steps = generator.integers(90, 201, LONG)
    starts = np.cumsum(steps + 1) - steps - 1
    rows = pd.DataFrame({"reach": np.arange(LONG) // 2, "attempt": np.arange(LONG) % 2})
    rows["seed"] = generator.integers(2**53, size=LONG)
    rows["steps"], rows["return"], rows["start_s"] = steps, -steps.astype(float), starts / 30
    rows["reached"] = rows["attempt"] == 1
    (spec,) = [argument for argument in arguments_of(filmed.folder, []) if argument[0] == "{"]
    data = tmp_path / "long" / "data.js"
    data.unlink()
    fps = parse_spec(spec).config["film.fps"]
    write_rows(data, rows, fps, "reach")
    assert data.stat().st_size < 6e6
    driver.get_log("browser")
    screen(driver, 1280, 900)
    driver.get((tmp_path / "long" / "index.html").as_uri())
    assert one(driver, "#count").text == "100,000 of 100,000 episodes"
    elements = len(all_of(driver, "*"))
    assert elements < 1000
    one(driver, "#episodes").send_keys(Keys.END)
    last = all_of(driver, "[role=option]")[-1]
    assert last.get_attribute("aria-label").startswith("Reach 49999, attempt 1: reached, ")
    assert last.get_attribute("aria-posinset") == "100000"
    one(driver, "#outcome").send_keys("failed")
    rows_shown, failed = all_of(driver, "[role=option]"), all_of(driver, "[role=option] .failed")
    assert len(rows_shown) == len(failed) and {mark.text for mark in failed} == {"✗ failed"}
    one(driver, "#seed").send_keys(str(rows["seed"][77_776]))
    (found,) = all_of(driver, "[role=option]")
    assert found.get_attribute("aria-label").startswith("Reach 38888: failed, ")
    assert len(all_of(driver, "*")) <= elements
    assert driver.get_log("browser") == []


@pytest.mark.slow
def test_a_film_that_the_browser_cannot_play_is_said_to_be_so(driver, report, tmp_path):
    shutil.copytree(report, tmp_path / "broken", copy_function=os.link)
    (tmp_path / "broken" / "film.mp4").unlink()
    (tmp_path / "broken" / "film.mp4").write_bytes(b"no film")
    driver.get((tmp_path / "broken" / "index.html").as_uri())
    wait(driver, "document.getElementById('film').error")
    wait(driver, "document.getElementById('broken').checkVisibility()")
    assert "cannot play film.mp4" in one(driver, "#broken").text


def test_the_same_inputs_give_the_same_bytes_and_the_film_takes_no_room(filmed, plots, tmp_path):
    results, arguments = filmed.folder / "results", arguments_of(filmed.folder / "results", plots)
    for name in ("one", "two", "two"):
        program.main([*arguments, "--output", str(tmp_path / name)])
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "two").iterdir())
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert (tmp_path / "one" / "film.mp4").samefile(results / "film.mp4")
    assert "Views" not in (tmp_path / "one" / "index.html").read_text(encoding="utf-8")
    assert {path.name for path in tmp_path.iterdir()} == {"one", "two"}, "nothing is left over"


def test_where_no_link_can_be_the_film_is_copied(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", Mock(side_effect=OSError("Invalid cross-device link")))
    (tmp_path / "film").write_bytes(b"film")
    atomic.place(tmp_path / "film", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"film"
    assert not (tmp_path / "copy").samefile(tmp_path / "film")


def test_the_page_tells_every_spec_tool_and_stage(filmed, report):
    page = (report / "index.html").read_text(encoding="utf-8")
    stages = ("simulate", "atlas", "render", "encode", "concat", "episodes", "plots", "report")
    for stage in stages:
        assert f"<summary>{stage} <span>" in page, stage
    for stage in stages[:6]:
        assert f'<th scope="row">{stage}</th>' in page, f"seconds of {stage}"
    tables = json.loads((filmed.folder / "results" / "tables.json").read_text(encoding="utf-8"))
    assert tables["code"] in page
    assert f"<td>{tables['tools']['pandas']}</td><td>episodes</td>" in page
    encoded = (filmed.folder / "results" / "benchmarks" / "encode").glob("*.tsv")
    seconds = sum(pd.read_csv(path, sep="\t")["s"][0] for path in encoded)
    row = '<th scope="row">encode</th>\n<td class="number">2</td>\n<td class="number">'
    assert f"{row}{seconds:,.2f}" in page


HOSTILE = """</title></script><script>document.title = 'run'</script> "' {{ env }}"""
HOSTILE += """<img src=x onerror="document.title = 'run'">"""


@pytest.mark.slow
def test_names_of_any_kind_run_nothing_on_the_page(driver, filmed, plots, tmp_path):
    policy = {"name": "file", "file": HOSTILE}
    arguments = arguments_of(filmed.folder / "results", plots, env=HOSTILE, policy=policy)
    program.main([*arguments, "--output", str(tmp_path / "report")])
    driver.get((tmp_path / "report" / "index.html").as_uri())
    wait(driver, "document.getElementById('film').readyState >= 2")
    assert driver.get_log("browser") == []
    assert HOSTILE in driver.title and HOSTILE in one(driver, "h1").text
    assert f"policy file {HOSTILE}".casefold() in one(driver, "header p").text.casefold()


@pytest.mark.slow
def test_a_script_that_gets_into_the_page_does_not_run(driver, report, tmp_path):
    shutil.copytree(report, tmp_path / "report", copy_function=os.link)
    index = tmp_path / "report" / "index.html"
    text = index.read_text(encoding="utf-8")
    index.unlink()  # the original is another name of the same file
    script = "document.documentElement.dataset.ran = 1"
    ways = f"""<script>{script}</script><img src="no.png" onerror="{script}">
        <script src="data:text/javascript,{script}"></script><b style="color: red">bold</b>"""
    index.write_text(text.replace("<main>", f"<main>{ways}"), encoding="utf-8")
    driver.get(index.as_uri())
    wait(driver, "document.getElementById('film').readyState >= 2")
    assert driver.execute_script("return document.documentElement.dataset.ran") is None
    refused = [entry["message"] for entry in driver.get_log("browser")]
    assert sum("Content Security Policy" in message for message in refused) >= 4, refused
    made = "document.body.innerHTML = '<b>text as markup</b>'"
    assert driver.execute_script(f"try {{ {made} }} catch (error) {{ return error.name }}")


def test_files_of_another_run_are_refused_and_the_old_report_stays(filmed, plots, tmp_path):
    results, folder = filmed.folder / "results", tmp_path / "report"
    (
        tmp_path / f".report.goalreel-{socket.gethostname()}-99999999-killed"
    ).mkdir()  # left by a run that was killed
    program.main([*arguments_of(results, plots), "--output", str(folder)])
    with pytest.raises(GoalreelError, match="lists 8 reaches, not 9"):
        program.main([*arguments_of(results, plots, reaches=9), "--output", str(folder)])
    with pytest.raises(GoalreelError, match=r"film\.mp4: is of another run"):
        program.main([*arguments_of(results, plots, **{"film.fps": 25}), "--output", str(folder)])
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "steps.svg").write_text("<svg/>")
    write_sums(tmp_path / "bad" / SUMS, [tmp_path / "bad" / "steps.svg"])
    with pytest.raises(GoalreelError, match=r"steps\.svg.* not a plot"):
        program.main(
            [*arguments_of(results, [tmp_path / "bad" / "steps.svg"]), "--output", str(folder)]
        )
    shutil.rmtree(tmp_path / "bad")
    assert (folder / "index.html").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["report"]

"""In a real browser, the report opens from disk and each row leads to its frame."""

import base64
import io
import itertools
import json
import os
import shutil
import socket
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browser import (
    all_of,
    canvas,
    contrasts,
    one,
    overprinted,
    picture,
    requests,
    screen,
    seeking,
    wait,
)
from conftest import DISCRETE, HARSH, PUMP
from message_form import check_form
from PIL import Image
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from test_plots import draw

import goalreel
from goalreel.errors import GoalreelError
from goalreel.provenance.checksums import SUMS, write_sums
from goalreel.report import page as page_module
from goalreel.report.page_rows import write_rows
from goalreel.report.statistics import mean_interval
from report import report as program

CARDS = 15  # frames of a title card


def written(folder: Path, results: Path, plots: Path, files=(), **config) -> Path:
    """Write a report like its rule, with changed files and options, and return its folder."""
    config = {"env": DISCRETE, "film.fps": 30, "unit": "reach", "policy": PUMP} | config
    config = {"film.select": None, "report.embed": False} | config
    spec = {"stage": "report", "config": config, "shard": {"shards": 2, "reaches": 8}}
    paths = {
        **{name: results / f"{name}.csv" for name in ("episodes", "attempts")},
        **{"film": results / "film.mp4", "tables": results / "tables.json", "plots": plots},
        **{"summary": results / "summary.json"},
        **{"trajectories": results / "trajectories/00000.npz", "atlas": results / "atlas.npz"},
        **{"frames": results / "frames/00000.npz", "segments": results / "segments/00000.mp4"},
    }
    words = [f"--{name}={path}" for name, path in (paths | dict(files)).items() if path]
    program.main([*words, f"--spec={json.dumps(spec)}", f"--output={folder}"])
    return folder


@pytest.fixture(scope="module")
def plots(filmed, tmp_path_factory) -> Path:
    """Return the folder of the plots of the film."""
    return draw(filmed.folder / "results", tmp_path_factory.mktemp("plots"))[0].parent


@pytest.fixture(scope="module")
def table(filmed) -> pd.DataFrame:
    """Return the film's table of episodes."""
    return pd.read_csv(filmed.folder / "results" / "episodes.csv")


@pytest.fixture(scope="module")
def report(filmed, plots, tmp_path_factory) -> Path:
    """Return a report with views, moved to a folder with a difficult name."""
    results, made = filmed.folder / "results", tmp_path_factory.mktemp("report")
    film, names = results / "film.mp4", ("swarm", "grid")  # any video works
    views = {name: shutil.copyfile(film, made / f"{name}.mp4") for name in names}
    folder = written(made / "report", results, plots, views)
    return folder.rename(tmp_path_factory.mktemp("moved") / HARSH.replace("/", ""))


def altered(report: Path, folder: Path, name: str, content: bytes) -> str:
    """Copy a report, replace one file, and return the URL of its page."""
    shutil.copytree(report, folder, copy_function=os.link)
    (folder / name).unlink()  # it is a hard link to the original
    (folder / name).write_bytes(content)
    return (folder / "index.html").as_uri()


@pytest.fixture
def page(driver, report):
    """Return the browser with the report just opened. The page must not log anything."""
    screen(driver, 1280, 900)
    driver.get("about:blank")
    requests(driver)
    driver.get((report / "index.html").as_uri())
    wait(driver, "document.getElementById('film').readyState >= 1")
    yield driver
    assert driver.get_log("browser") == []
    asked = {url for url in requests(driver) if not url.startswith("data:")}
    names = {"index.html", "report.css", "report.js", "data.js", "film.mp4", "poster.png"}
    names |= {"colors.css", "states.svg"}
    assert {f"{report.as_uri()}/{name}" for name in names} <= asked
    assert all(url.startswith(report.as_uri()) for url in asked), asked


def listed(driver) -> list[int]:
    """Return the rows that the list shows."""
    return [int(o.get_attribute("id").split("-")[1]) for o in all_of(driver, "[role=option]")]


def assert_shows(driver, filmed, row: int, step: int) -> None:
    """Compare the film's frame with the cached frames of this step and its neighbors."""
    shard, number = divmod(row, 4)
    cache = goalreel.open_cache(filmed.folder / "results" / "frames" / f"{shard:05d}.npz")
    frames = cache.episode(number)
    around = range(max(step - 2, 0), min(step + 3, len(frames)))
    seen = picture(driver, "film").astype(np.int16)[35:]  # below the captions
    pictures = {n: cache[frames[n]][35:] for n in around}
    near = {n: np.abs(pictures[n] - seen).mean() for n in around}
    # A car that hardly moves may look the same in neighboring frames.
    others = [near[n] for n in around if (pictures[n] != pictures[step]).any()]
    assert near[step] < 1 and near[step] < min(others), near


@pytest.mark.slow
def test_click_or_enter_seeks_to_frame_of_reset(page, filmed, table):
    for row in (5, 2, 0, 7):
        seeking(page, all_of(page, "[role=option]")[row].click)
        assert_shows(page, filmed, row, 0)
        assert one(page, "#now").text.startswith(f"Reach {row}: reached, ")
        assert one(page, "[aria-selected=true]").get_attribute("id") == f"episode-{row}"
    least = int(table["steps"].quantile(0.4, interpolation="higher"))
    wanted = table.index[table["steps"] >= least].tolist()
    one(page, "#steps-from").send_keys(str(least))
    assert one(page, "#count").text == f"{len(wanted)} of 8 episodes"
    assert listed(page) == wanted
    rows = one(page, "#episodes")
    seeking(page, lambda: rows.send_keys(Keys.HOME, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER))
    assert_shows(page, filmed, wanted[2], 0)
    assert rows.get_attribute("aria-activedescendant") == f"episode-{wanted[2]}"
    assert page.switch_to.active_element == rows


@pytest.mark.slow
def test_list_follows_the_playing_film(page, filmed, table):
    film, starts = "document.getElementById('film')", table["start_s"]
    before = starts[3] - CARDS / 30 - 0.2
    seeking(page, lambda: page.execute_script(f"{film}.currentTime = {before}"))
    assert one(page, "#now").text.startswith("Reach 2")
    one(page, "#episodes").send_keys(Keys.SPACE)
    wait(page, "document.getElementById('now').textContent.startsWith('Reach 3')")
    assert not page.execute_script(f"return {film}.paused")
    assert one(page, "[aria-selected=true]").get_attribute("id") == "episode-3"
    page.switch_to.active_element.send_keys(Keys.SPACE)
    wait(page, f"{film}.paused")
    # Other steps are also at their exact time.
    seeking(page, lambda: page.execute_script(f"{film}.currentTime = {starts[6] + 70.5 / 30}"))
    assert_shows(page, filmed, 6, 70)


@pytest.mark.slow
def test_filters_match_the_table(page, table):
    def reset():
        one(page, "button[type=reset]").click()
        wait(page, "document.querySelectorAll('[role=option]').length === 8")

    seeds, median, returns = table["seed"].astype(str), table["steps"].median(), table["return"]
    low, high = sorted(returns)[2], sorted(returns)[5]
    part = seeds[4][5:9]
    for filters, chosen in (
        ({"steps-to": median}, table["steps"] <= median),
        ({"return-from": low, "return-to": high}, returns.between(low, high)),
        ({"seed": part}, seeds.str.contains(part)),
    ):
        reset()
        for name, value in filters.items():
            one(page, f"#{name}").send_keys(str(value))
        assert listed(page) == table.index[chosen].tolist() != list(range(8))
    one(page, "#outcome").send_keys("failed")
    assert listed(page) == [] and "No episode matches" in one(page, "#episodes").text


@pytest.mark.slow
def test_click_on_column_head_sorts_the_list(page, table):
    heads = {head.text.split()[0].lower(): head for head in all_of(page, "#columns button")}
    assert list(heads) == ["reach", "outcome", "return", "steps", "time", "seed"]
    orders = ("return", -1), ("return", 1), ("steps", 1), ("seed", 1), ("time", 1), ("reach", 1)
    for column, sign in orders:
        heads[column].click()
        values = sign * table["reach" if column == "time" else column]
        assert listed(page) == np.argsort(values, kind="stable").tolist()
        assert heads[column].get_attribute("aria-pressed") == "true"
        assert len(all_of(page, "#columns [aria-pressed=true]")) == 1


@pytest.mark.slow
def test_summary_links_best_and_worst_episodes(page, filmed, table):
    told = one(page, "[aria-label=Summary]").text.replace("−", "-")
    for name in ("return", "steps"):
        column = table[name]
        mean, std = mean_interval(column), column.std(ddof=0)
        interval = mean.text().replace(" (", "\n").rstrip(")").replace("−", "-")
        assert f"mean (95% interval)\n{interval}\nstd\n{std:.{mean.decimals}f}" in told
        assert f"median\n{column.median():g}" in told
    assert "of 8 attempts\n100.0%\n67.6% to 100.0%" in told
    links = {link.find_element("xpath", "../../dt").text: link for link in all_of(page, ".seek")}
    assert links.keys() == {"best", "worst", "fewest", "most"}
    best, worst = table["return"].idxmax(), table["return"].idxmin()
    one(page, "#seed").send_keys(str(table["seed"][best]))  # filters out the others
    seeking(page, lambda: page.execute_script("arguments[0].click()", links["worst"]))
    assert_shows(page, filmed, worst, 0)


@pytest.mark.slow
def test_link_opens_its_episode_and_follows_the_choice(page, report, filmed):
    address = (report / "index.html").as_uri()
    page.get("about:blank")
    page.get(f"{address}#reach=5")
    wait(page, "document.getElementById('now').textContent.startsWith('Reach 5')")
    assert_shows(page, filmed, 5, 0)
    assert one(page, "[aria-selected=true]").get_attribute("id") == "episode-5"
    wait(page, "document.getElementById('strip').dataset.episode === '5'")
    seeking(page, all_of(page, "[role=option]")[2].click)
    assert page.current_url == f"{address}#reach=2"
    seeking(page, lambda: page.execute_script("location.hash = '#episode=7'"))
    assert_shows(page, filmed, 7, 0)
    page.execute_script("location.hash = '#reach=8'")  # no such reach
    assert one(page, "#now").text.startswith("Reach 7")


@pytest.mark.slow
def test_single_file_report_needs_no_other_file(driver, filmed, plots, tmp_path):
    results, alone = filmed.folder / "results", tmp_path / "sent to you"
    written(tmp_path / "report", results, plots, **{"report.embed": True})
    files = {path.name for path in (tmp_path / "report").iterdir()}
    assert files == {"index.html", SUMS}
    alone.mkdir()
    (tmp_path / "report" / "index.html").rename(alone / "page.html")
    screen(driver, 1280, 900)
    requests(driver)
    driver.get_log("browser")
    driver.get(f"{(alone / 'page.html').as_uri()}#reach=5")
    wait(driver, "document.getElementById('strip').dataset.episode === '5'")
    assert_shows(driver, filmed, 5, 0)
    seeking(driver, all_of(driver, "[role=option]")[2].click)
    assert_shows(driver, filmed, 2, 0)
    images = "[...document.images].filter((image) => image.naturalWidth > 100).length"
    assert driver.execute_script(f"return {images}") == len(list(plots.glob("*.svg")))
    table = one(driver, "a[download='episodes.csv']").get_attribute("href").partition(",")[2]
    assert base64.b64decode(table) == (results / "episodes.csv").read_bytes()
    asked = {url for url in requests(driver) if not url.startswith("data:")}
    assert asked == {f"{(alone / 'page.html').as_uri()}#reach=5".partition("#")[0]}
    assert driver.get_log("browser") == []


def test_single_file_report_rejects_large_film(filmed, plots, tmp_path, monkeypatch):
    monkeypatch.setattr(page_module, "_MAX_EMBEDDED", 100_000)
    with pytest.raises(GoalreelError, match="a single page can hold 100 kB") as error:
        written(tmp_path / "r", filmed.folder / "results", plots, **{"report.embed": True})
    check_form(str(error.value))


@pytest.mark.slow
def test_hover_over_row_shows_frames_of_its_episode(page, filmed, table):
    cache = goalreel.open_cache(filmed.folder / "results" / "frames" / "00001.npz")
    wait(page, "document.getElementById('strip').dataset.episode === '0'")  # without a mouse
    ActionChains(page).move_to_element(all_of(page, "[role=option]")[5]).perform()
    wait(page, "document.getElementById('strip').dataset.episode === '5'")
    steps = [round(i * table["steps"][5] / 7) for i in range(8)]
    assert one(page, "#moments").text == f"Reach 5: steps {', '.join(map(str, steps))}"
    strip = canvas(page, "strip").astype(int)
    width, height = (strip.shape[1] - 3 * 4) // 4, (strip.shape[0] - 4) // 2
    for place, step in enumerate(steps):
        top, left = place // 4 * (height + 4), place % 4 * (width + 4)
        seen = strip[top : top + height, left : left + width]
        near = {}
        for other in steps:
            image = Image.fromarray(cache[cache.episode(1)[other]])
            small = np.asarray(image.resize((width, height), Image.Resampling.BOX), int)
            near[other] = np.abs(small - seen)[height // 8 :].mean()
        assert min(near, key=near.get) == step, near


LARGE = """reach,attempt,seed,steps,return,start_s,reached,terminated,truncated
2000000,0,9007199254740991,1000000,-123456.789,0,True,False,True
3,999,1000000000000000,1,0.5,99999,False,True,False
7,5,5,27000,98765.4321,100000,True,False,False
"""


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["reach", "episode"])
def test_texts_of_the_list_do_not_overlap(driver, report, unit, tmp_path):
    rows = pd.read_csv(io.StringIO(LARGE)).rename(columns={"reach": unit})
    write_rows(tmp_path / "data.js", rows, 30, unit)
    data = (tmp_path / "data.js").read_bytes()
    driver.get(altered(report, tmp_path / "large", "data.js", data))
    for scheme, width in itertools.product(("light", "dark"), (375, 700, 1000, 1280, 1920)):
        screen(driver, width, 900, scheme)
        assert len(listed(driver)) == 3
        wait(driver, "document.getElementById('columns').offsetWidth")
        for head in all_of(driver, "#columns button")[2:4]:
            assert overprinted(driver, "#columns, #episodes .episode") == []
            driver.execute_script("arguments[0].click()", head)


@pytest.mark.slow
@pytest.mark.parametrize("select", [None, {"worst": 8}])
def test_page_of_episodes_mentions_no_reaches(driver, filmed, plots, table, select, tmp_path):
    table = table.rename(columns={"reach": "episode"})
    table = table.drop(columns=["attempt", "initial_position", "reached"])
    table.loc[[2, 5], ["terminated", "truncated"]] = [False, True]
    table.loc[7, ["terminated", "truncated"]] = [False, False]  # a recording that ends early
    table["return"] = np.linspace(-1.23456, 9.87654, 8)
    table.to_csv(tmp_path / "episodes.csv", index=False)
    (tmp_path / "plots").mkdir()
    shutil.copy(plots / "actions.svg", tmp_path / "plots")
    write_sums(tmp_path / "plots" / SUMS, [tmp_path / "plots" / "actions.svg"])
    results, config = filmed.folder / "results", {"env": "LunarLander-v3", "unit": "episode"}
    files = {"episodes": tmp_path / "episodes.csv", "attempts": None}
    if select:  # the film shows 8 of 5,000 episodes, of each of which the share is known
        table["share"], config["film.select"] = np.linspace(0.0004, 0.0123, 8), select
        table["share_low"], table["share_high"] = table["share"] / 2, table["share"] * 2
        table.to_csv(tmp_path / "episodes.csv", index=False)
        values = json.loads((results / "summary.json").read_text()) | {"episodes": 5000}
        (tmp_path / "summary.json").write_text(json.dumps(values))
        files["summary"] = tmp_path / "summary.json"
    written(tmp_path / "report", results, tmp_path / "plots", files, **config)
    screen(driver, 1280, 900)
    driver.get((tmp_path / "report" / "index.html").as_uri())
    text = one(driver, "body").text
    assert "reach" not in f"{driver.title} {text}".lower().replace("without", ""), text
    assert "terminated\n5\ntruncated\n2\nstopped\n1" in text
    shown = {cell.text for cell in all_of(driver, "[role=option] .return")}
    assert shown == {f"{value:.3f}".replace("-", "−") for value in table["return"]}
    assert ("8 of 5,000 episodes" in text) == ("of 5,000" in text) == bool(select)
    if select:
        assert "share 0.04% (0.02% to 0.08%)" in one(driver, "#now").text
        one(driver, "[data-column=share]").click()
        assert all_of(driver, "[role=option] .share")[-1].text == "1.2%"
        assert listed(driver) == list(range(8)) and not overprinted(driver, "#episodes .episode")
    one(driver, "#outcome").send_keys("truncated")
    assert listed(driver) == [2, 5]
    assert one(driver, ".screen").text.count("Episode 0") and driver.get_log("browser") == []


@pytest.mark.slow
def test_page_has_contrast_and_fits_a_phone(page):
    page.execute_script("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    all_of(page, "[role=option]")[1].click()
    sizes = (1920, 1080), (1280, 900), (1000, 700), (700, 900), (375, 812)
    for scheme, size in itertools.product(("light", "dark"), sizes):
        screen(page, *size, scheme)
        told = contrasts(page)
        assert len(told) > 100
        assert min(told)[0] >= 4.5, sorted(told)[:3]
        wide = page.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1] == size[0]
        rows = one(page, "#episodes")
        assert int(rows.get_property("scrollWidth")) <= int(rows.get_property("clientWidth"))
    # Chromium's accessibility tree must name everything that can be operated or played.
    page.execute_cdp_cmd("Accessibility.enable", {})
    nodes = page.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    operated = {"listbox", "option", "spinbutton", "searchbox", "table", "link", "region"}
    may_be = {"button", "checkbox", "combobox", "image", "img", "Image", "Video", "video"}
    named = [n for n in nodes if not n["ignored"] and n["role"]["value"] in operated | may_be]
    assert operated - {"region"} <= {node["role"]["value"] for node in named}
    assert all(node.get("name", {}).get("value") for node in named), named
    assert one(page, "#now").get_attribute("aria-live") == "polite"


@pytest.mark.slow
def test_page_of_long_film_stays_small(driver, report, tmp_path):
    count, generator = 100_000, np.random.default_rng(0)
    steps = generator.integers(90, 201, count)
    numbers, starts = np.arange(count), np.cumsum(steps + 1) - steps - 1
    rows = {"reach": numbers // 2, "attempt": numbers % 2, "reached": numbers % 2 == 1}
    rows |= {"seed": generator.integers(2**53, size=count), "steps": steps}
    rows |= {"return": -steps.astype(float), "start_s": starts / 30}
    write_rows(tmp_path / "data.js", pd.DataFrame(rows), 30, "reach")
    data = (tmp_path / "data.js").read_bytes()
    assert len(data) < 6e6
    screen(driver, 1280, 900)
    driver.get_log("browser")
    driver.get(altered(report, tmp_path / "long", "data.js", data))
    assert one(driver, "#count").text == "100,000 of 100,000 episodes"
    one(driver, "#episodes").send_keys(Keys.END)
    last = all_of(driver, "[role=option]")[-1]
    assert last.get_attribute("aria-label").startswith("Reach 49999, attempt 1: reached, ")
    one(driver, "#outcome").send_keys("failed")
    one(driver, "#seed").send_keys(str(rows["seed"][77_776]))
    found = one(driver, "[role=option]")
    assert found.get_attribute("aria-label").startswith("Reach 38888: failed, ")
    assert len(all_of(driver, "*")) < 1000 and driver.get_log("browser") == []


@pytest.mark.slow
def test_page_reports_unplayable_film(driver, report, tmp_path):
    driver.get(altered(report, tmp_path / "broken", "film.mp4", b"no film"))
    wait(driver, "document.getElementById('broken').checkVisibility()")
    assert "cannot play film.mp4" in one(driver, "#broken").text


def test_report_is_reproducible_and_links_the_film(filmed, plots, tmp_path):
    results, kept = filmed.folder / "results", tmp_path / "two"
    killed = tmp_path / f".two.goalreel-{socket.gethostname()}-99999999-killed"
    killed.mkdir()  # left by a killed run
    for name in ("one", "two", "two"):
        written(tmp_path / name, results, plots)
    files = {path.name: path.read_bytes() for path in kept.iterdir()}
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert (kept / "film.mp4").samefile(results / "film.mp4")
    cache = goalreel.open_cache(results / "frames" / "00000.npz")
    middle = cache.episode(2)
    with Image.open(kept / "poster.png") as poster:
        assert np.array_equal(np.asarray(poster), cache[middle[len(middle) // 2]])
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "steps.svg").write_text("<svg/>")
    write_sums(tmp_path / "bad" / SUMS, [tmp_path / "bad" / "steps.svg"])
    with pytest.raises(GoalreelError, match=r"steps\.svg.* not a goalreel plot"):
        written(kept, results, tmp_path / "bad")
    assert files == {path.name: path.read_bytes() for path in kept.iterdir()}
    assert {path.name for path in tmp_path.iterdir()} == {"one", "two", "bad"}, "nothing is left"


def test_page_lists_spec_tools_and_stages(filmed, report):
    results, page = filmed.folder / "results", (report / "index.html").read_text(encoding="utf-8")
    stages = ("simulate", "atlas", "render", "encode", "concat", "episodes", "plots", "report")
    for stage in stages:
        assert f"<summary>{stage} <span>" in page, stage
    tables = json.loads((results / "tables.json").read_text(encoding="utf-8"))
    assert tables["code"] in page
    assert f"<td>{tables['tools']['pandas']}</td><td>episodes</td>" in page
    assert page.index('<details id="made"') < page.index('<h3 id="speed')
    encoded = (results / "benchmarks" / "encode").glob("*.tsv")
    seconds = sum(pd.read_csv(path, sep="\t")["s"][0] for path in encoded)
    row = '<th scope="row">encode</th>\n<td class="number">2</td>\n<td class="number">'
    assert f"{row}{seconds:,.2f}" in page


HOSTILE = """</title></script><script>document.title = 'run'</script> "' {{ env }}"""
HOSTILE += """<img src=x onerror="document.title = 'run'">"""


@pytest.mark.slow
@pytest.mark.parametrize("embed", [False, True])
def test_page_runs_no_script_from_names_or_texts(driver, filmed, plots, embed, tmp_path):
    config = {"env": HOSTILE, "policy": {"name": "python", "file": HOSTILE}, "report.embed": embed}
    folder = written(tmp_path / "report", filmed.folder / "results", plots, **config)
    driver.get_log("browser")
    driver.get((folder / "index.html").as_uri())
    wait(driver, "document.getElementById('film').readyState >= 1")
    assert driver.get_log("browser") == []
    assert HOSTILE in driver.title
    assert f"policy python {HOSTILE}" in one(driver, "h1").text
    script = "document.documentElement.dataset.ran = 1"
    ways = f"""<script>{script}</script><img src="no.png" onerror="{script}">
        <script src="data:text/javascript,{script}"></script><b style="color: red">bold</b>"""
    text = (folder / "index.html").read_text(encoding="utf-8").replace("<main>", f"<main>{ways}")
    driver.get(altered(folder, tmp_path / "altered", "index.html", text.encode()))
    wait(driver, "document.getElementById('film').readyState >= 1")
    assert driver.execute_script("return document.documentElement.dataset.ran") is None
    refused = [entry["message"] for entry in driver.get_log("browser")]
    assert sum("Content Security Policy" in message for message in refused) >= 4, refused
    made = "document.body.innerHTML = '<b>text as markup</b>'"
    assert driver.execute_script(f"try {{ {made} }} catch (error) {{ return error.name }}")

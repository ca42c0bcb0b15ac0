"""The page of a suite shows what its tables say, in a real browser."""

import csv
import json
import os

import av
import pandas as pd
import pytest
from browser import all_of, contrasts, one, requests, screen, wait
from conftest import HARSH
from PIL import Image
from selenium.webdriver.common.action_chains import ActionChains

from goalreel.cli import FAILURE
from goalreel.provenance.spec import NO_SPEC, common_digest
from goalreel.report.statistics import mean_interval, share_interval
from goalreel.report.suite_page import write_suite

ROWS = ["ALE/Pong-v5", "CartPole-v1", "<b>x</b>"]
COLUMNS = ["random", "ppo", "dqn", "late"]
# The returns of each run, from the first seed. None for a failed run, () for one not started.
RETURNS = {
    ("ALE/Pong-v5", "random"): range(0, 20),
    ("ALE/Pong-v5", "ppo"): range(50, 70),
    ("ALE/Pong-v5", "dqn"): [51, 49] * 10,
    ("ALE/Pong-v5", "late"): None,
    ("CartPole-v1", "random"): [20] * 20,
    ("CartPole-v1", "ppo"): [500] * 20,
    ("CartPole-v1", "dqn"): [499, 501] * 10,
    ("CartPole-v1", "late"): [],
    ("<b>x</b>", "random"): range(-500, -480),
    ("<b>x</b>", "ppo"): range(-400, -380),
}
TABLES = {"stage": "episodes"}
ERROR = "policy.file: The model takes a Box. Set env_wrappers as in its training."


def suite_run(name, row, column, training_seed=None):
    """Return a run as the rule of the page passes it."""
    run = {"run": name, "row": row, "column": column, "training_seed": training_seed}
    return run | {"digest": common_digest(TABLES)}


def write_run(folder, run, returns, seed: int = 1):
    """Write the files of a run that the page reads."""
    path = folder / run["run"]
    (path / "stills").mkdir(parents=True)
    (path / "logs/simulate").mkdir(parents=True)
    if returns is None:
        old = path / "summary.json"  # of an earlier policy, whose films are still there
        old.write_text('{"episodes": 9, "return": {"mean": 7, "low": 6, "high": 8, "std": 1}}')
        os.utime(old, (0, 0))
        error = f"{ERROR}\n  File x\n    y\n  ValueError: z"
        log = json.dumps({"error": error, "unusable": [], "stopped": False})
        (path / "logs/simulate/00000.log").write_text(f"playing\n{FAILURE}{log}\n")
    if not returns:
        return run
    x = pd.Series(list(returns), dtype=float)
    table = pd.DataFrame({"seed": range(seed, seed + len(x)), "return": x})
    table.to_csv(path / "episodes.csv", index=False)
    mean, share = mean_interval(x), share_interval(int((x > 60).sum()), len(x))
    summary = {"episodes": len(x)}
    summary["return"] = {"mean": mean.value, "low": mean.low, "high": mean.high, "std": x.std()}
    summary["success"] = {"share": share.value, "low": share.low, "high": share.high}
    (path / "summary.json").write_text(json.dumps(summary))
    (path / "tables.json").write_text(json.dumps(TABLES | {"sha256": {}}))
    (path / "report").mkdir()
    (path / "report/index.html").write_text("<!doctype html><link rel=icon href=data:,>")
    frames = [Image.new("RGB", (60, 40), color) for color in ("white", "gray")]
    frames[0].save(path / "stills/poster.png")
    frames[0].save(path / "stills/preview.webp", save_all=True, append_images=frames[1:])
    return run


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """Return a folder with the page of a suite, whose name is difficult."""
    folder = tmp_path_factory.mktemp("suite") / HARSH.replace("/", "")
    runs = [
        write_run(folder, suite_run(f"r{ROWS.index(row)} {column}", row, column), returns)
        for (row, column), returns in RETURNS.items()
    ]
    plots_log = folder / runs[0]["run"] / "logs/plots.log"
    plots_log.write_text(f'{FAILURE}{{"error": "no room", "unusable": [], "stopped": false}}\n')
    alone = suite_run("alone", "<b>x</b>", "dqn")
    write_run(folder, alone, range(-300, -290), seed=1000)
    assert write_suite(folder, [*runs, alone], False, NO_SPEC) == "11 runs, 2 without results"
    written = {path: path.read_bytes() for path in folder.glob("*.*")}
    write_suite(folder, [*runs, alone], False, NO_SPEC)
    assert {path: path.read_bytes() for path in written} == written and len(written) == 3
    return folder


@pytest.fixture
def page(driver, suite):
    """Return the browser with the page just opened. The page must not log or load anything else."""
    screen(driver, 1280, 900)
    driver.get("about:blank")
    requests(driver)
    driver.get((suite / "index.html").as_uri())
    yield driver
    assert driver.get_log("browser") == []
    asked = {url for url in requests(driver) if not url.startswith("data:")}
    assert all(url.startswith(suite.as_uri()) for url in asked), asked


def shown(driver, selector: str = ".mean a") -> list[list[str]]:
    """Return the texts of each row of the matrix, without its label."""
    return driver.execute_script(
        "return [...document.querySelector('table').tBodies[0].rows].map((row) =>"
        "  [...row.querySelectorAll(arguments[0])].map((element) => element.textContent));",
        selector,
    )


def test_suite_table_and_summary_are_those_of_the_page(page, suite):
    with (suite / "suite.csv").open() as stream:
        table = list(csv.DictReader(stream))
    summary = json.loads((suite / "summary.json").read_text())
    assert [row["run"] for row in table] == [run["run"] for run in summary["runs"]]
    for row, run in zip(table, summary["runs"], strict=True):
        assert (row["state"] == "finished") == bool(row["mean"])
        for name, text in row.items():
            value = run[name]
            assert text == ("" if value is None else str(value)), name
    means = [
        pytest.approx(
            [float(row["mean"]) for row in table if row["row"] == name and row["mean"]], abs=0.5
        )
        for name in ROWS
    ]
    assert [[float(text.replace("−", "-")) for text in texts] for texts in shown(page)] == means
    first = summary["pairs"][0]
    assert (first["row"], first["a"], first["b"], first["pairs"]) == (ROWS[0], "ppo", "dqn", 20)
    assert first["sentence"].startswith("ppo is better by 9.5 (95%: ")
    assert (first["wins"], first["ties"], first["losses"]) == (19, 0, 1)


def test_suite_marks_only_differences_that_exclude_zero(page, suite):
    marks = {
        (run["row"], run["column"]): run["mark"]
        for run in json.loads((suite / "summary.json").read_text())["runs"]
        if run["mark"]
    }
    assert marks == {
        (ROWS[0], "ppo"): "best",
        (ROWS[1], "ppo"): "among the best",
        (ROWS[1], "dqn"): "among the best",
        (ROWS[2], "random"): "not compared",
        (ROWS[2], "ppo"): "not compared",
    }
    assert shown(page, ".tag") == [["best"], ["among the best"] * 2, ["not compared"] * 2]
    assert "shares no seeds with the best" in one(page, ".legend").text
    colored = "return new Set([...document.querySelectorAll('.facts svg')].map((svg) =>"
    assert page.execute_script(f"{colored} getComputedStyle(svg).color)).size") == 3


def test_suite_says_which_runs_failed_and_why(page):
    cells = [cell.text for cell in all_of(page, "td") if "failed" in cell.text]
    assert len(cells) == 2 and f"simulate: {ERROR} ValueError: z" in cells[1]
    assert "plots: no room" in all_of(page, ".cell")[0].text  # a view, so the means are right
    log = all_of(page, "td .why a")[1]
    assert "failed" in one(page, "#unfinished + ul").text
    log.click()
    wait(page, "document.body.textContent.includes('playing')")


def test_suite_sorts_rows_by_a_column_and_columns_by_a_row(page):
    def press(place: int, name: str) -> list[str]:
        all_of(page, "th button")[place].click()
        return page.execute_script(
            f"return [...document.querySelectorAll('{name} th button')].map((b) => b.textContent)"
        )

    assert press(1, "tbody") == [ROWS[1], ROWS[0], ROWS[2]]
    assert press(1, "tbody") == [ROWS[2], ROWS[0], ROWS[1]]
    assert press(0, "tbody") == sorted(ROWS, key=str.lower)
    assert one(page, "thead [aria-sort]").get_attribute("aria-sort") == "ascending"
    cart_pole = 1 + len(COLUMNS) + sorted(ROWS, key=str.lower).index("CartPole-v1")
    assert press(cart_pole, "thead")[1:] == ["ppo", "dqn", "random", "late"]
    assert shown(page)[cart_pole - 1 - len(COLUMNS)][2] == "20"


def test_pointing_plays_the_preview_and_a_click_opens_the_run(page):
    playing = "[...document.querySelectorAll('.shot')].filter((i) => i.src.includes('preview'))"
    cells = all_of(page, ".cell")
    ActionChains(page).move_to_element(cells[1]).perform()
    wait(page, f"{playing}.length === 1 && {playing}[0].src.includes('r0%20ppo')")
    ActionChains(page).move_to_element(one(page, "h1")).perform()
    wait(page, f"{playing}.length === 0")
    page.execute_script("document.querySelector('.mean a').focus()")
    wait(page, f"{playing}.length === 1 && {playing}[0].src.includes('r0%20random')")
    cells[1].click()
    wait(page, "location.href.endsWith('r0%20ppo/report/index.html')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_suite_fits_screens_and_can_be_read(page, scheme):
    for width in (400, 900, 1600):
        screen(page, width, 900, scheme)
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
    assert min(contrasts(page))[0] >= 4.5
    unnamed = "[...document.querySelectorAll('a,button,video')].filter((e) => !(e.ariaLabel ||"
    assert page.execute_script(f"return {unnamed} e.textContent.trim())).length") == 0


def test_checkpoints_are_a_curve_with_its_band(driver, tmp_path):
    for steps in (5_000, 20_000, 100_000):
        run = suite_run(f"{steps:06d}", "CartPole-v1", f"{steps:06d}")
        write_run(tmp_path, run, [steps / 1000, steps / 500])
    runs = [suite_run(f"{s:06d}", "CartPole-v1", f"{s:06d}") for s in (20_000, 5_000, 100_000)]
    write_suite(tmp_path, runs, True, NO_SPEC)
    driver.get((tmp_path / "index.html").as_uri())
    titles = [point.get_attribute("textContent") for point in all_of(driver, ".curves title")]
    # Student's interval of two values: 7.5 ± 12.7 * 2.5, and so on.
    assert titles == ["5,000 steps: 8 (−24 to 39)", "20,000 steps: 30 (−97 to 157)"] + [
        "100,000 steps: 150 (−485 to 785)"
    ]
    assert "100,000 steps: 150" in one(driver, ".curves svg").get_attribute("aria-label")
    assert all_of(driver, ".band") and "checkpoint" in one(driver, ".legend").text


def test_results_of_an_older_environment_are_none(tmp_path):
    runs = [write_run(tmp_path, suite_run(name, "E", name), [5, 6]) for name in "ab"]
    write_suite(tmp_path, [runs[0], runs[1] | {"digest": "of another spec"}], False, NO_SPEC)
    table = pd.read_csv(tmp_path / "suite.csv")
    assert table["state"].tolist() == ["finished", "not finished"]


def test_trainings_of_a_cell_have_an_interval_over_their_seeds(driver, tmp_path):
    runs = [
        write_run(tmp_path, suite_run(f"{name}{seed}", "E", name, str(seed)), [mean + seed] * 4)
        for name, mean in (("a", 0), ("b", 50))
        for seed in (1, 2, 3)
    ]
    write_suite(tmp_path, runs, False, NO_SPEC)
    driver.get((tmp_path / "index.html").as_uri())
    # 2 ± t(0.975, 2) / sqrt(3)
    assert "−0.5 to 4.5" in all_of(driver, ".cell")[0].text
    assert [a.text for a in all_of(driver, ".cell .training")][:3] == ["seed 1", "seed 2", "seed 3"]
    assert "training seeds" in one(driver, "header").text
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["interval"] == "trainings" and summary["pairs"][0]["wins"] == 9


def test_chosen_episodes_are_compared_by_all_that_were_played(tmp_path):
    runs = [
        write_run(tmp_path, suite_run(name, "E", name), range(start, start + 30))
        for name, start in (("a", 0), ("b", 5))
    ]
    for run in runs:
        table = (tmp_path / run["run"] / "episodes.csv").rename(
            tmp_path / run["run"] / "played.csv"
        )
        pd.read_csv(table).head(3).to_csv(tmp_path / run["run"] / "episodes.csv", index=False)
    write_suite(tmp_path, runs, False, NO_SPEC)
    pair = json.loads((tmp_path / "summary.json").read_text())["pairs"][0]
    assert (pair["pairs"], pair["a_minus_b"], pair["wins"]) == (30, 5, 30)


def test_suite_shows_the_film_and_the_seeds_that_decide(driver, tmp_path):
    big = 2**53 + 1  # JavaScript would round it
    runs = [
        write_run(tmp_path, suite_run(name, "ALE/Pong-v5", name), range(start, start + 9))
        for name, start in (("a", 0), ("b", 5))
    ]
    compared = tmp_path / "compare" / "ALE-Pong-v5"
    compared.mkdir(parents=True)
    with av.open(str(compared / "compare.mp4"), "w") as film:
        stream = film.add_stream("libx264", rate=10, width=64, height=48, pix_fmt="yuv420p")
        for _ in range(30):
            film.mux(stream.encode(av.VideoFrame(64, 48, "yuv420p")))
        film.mux(stream.encode())
    columns = "seed,return_a,steps_a,return_b,steps_b,differs_b,start_s"
    rows = ["7,1.5,10,-2,20,3,1.9", "8,1,1,1,1,,", f"{big},1,10,,,,0.0"]
    (compared / "compare.csv").write_text("\n".join([columns, *rows, ""]))
    write_suite(tmp_path, runs, False, NO_SPEC)
    driver.get((tmp_path / "index.html").as_uri())
    table = one(driver, ".deciding table")
    assert table.text.splitlines() == ["Seed a b", f"{big} 1 –", "7 1.5 −2"]
    all_of(driver, ".seek")[1].click()
    wait(driver, "document.querySelector('video').currentTime >= 1.9")
    (tmp_path / "b" / "tables.json").unlink()
    write_suite(tmp_path, runs, False, NO_SPEC)  # the film is of an older run of b
    assert "compare.mp4" not in (tmp_path / "index.html").read_text()

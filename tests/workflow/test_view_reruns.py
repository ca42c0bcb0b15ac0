"""An edit reruns exactly the views that it changes. A table lists the edits and jobs."""

import re
import shutil
import zipfile
from pathlib import Path

import pytest
from conftest import TARGETS, VIEWED, VIEWS, hashes
from project import Project
from reruns import FILM
from trained_policies import random_policy
from trials import replaced

ALL = (*FILM, *VIEWS)
NOTHING = {}
ENCODE = {"encode": 2, "concat": 1}
TABLES = {"episodes": 1, "plots": 1}
VIDEOS = {"clips": 1, "grid": 1, "swarm": 1, "model_card": 1}
SIMULATE = {"simulate": 2, "render": 2, "stills": 1, "report": 1} | ENCODE | TABLES
SIMULATE |= {"clips": 1, "grid": 1, "swarm": 1, "figures": 1, "model_card": 1}
HUD = ENCODE | {"coded_atlas": 1}
DRAWN = {"atlas": 1, "coded_atlas": 1, "render": 2, "stills": 1, "report": 1} | ENCODE
DRAWN |= {"clips": 1, "grid": 1, "swarm": 1, "figures": 1, "model_card": 1}


@pytest.fixture
def done(viewed, tmp_path) -> Project:
    """Return a copy of it, with its time stamps."""
    return viewed.copied(tmp_path / "project")


def test_run_reports_every_view(viewed):
    for name in VIEWS:
        assert re.search(rf"^ *{name}  results/", viewed.output, re.M), viewed.output


def test_videos_start_with_their_index(viewed):
    """A browser can therefore play a video while it loads."""
    paths = sorted((viewed.folder / "results").rglob("*.mp4"))
    assert {"film.mp4", "grid.mp4", "swarm.mp4"} <= {path.name for path in paths}
    for path in paths:
        content = path.read_bytes()
        assert content.index(b"moov") < content.index(b"mdat"), path


def test_snakemake_report_holds_page_plots_and_tables(done):
    done.run("report", "--report", "report.zip", config=VIEWED)
    with zipfile.ZipFile(done.folder / "report.zip") as archive:
        held = {Path(name).name for name in archive.namelist()}
    expected = {"index.html", "film.mp4", "swarm.mp4", "grid.mp4", "report.js", "data.js"}
    expected |= {"steps.svg", "states.svg", "initial_position.svg"}
    assert expected | {"episodes.csv", "attempts.csv"} <= held


@pytest.mark.slow
def test_views_have_same_bytes_on_one_core_and_alone(viewed, done):
    def made(project: Project) -> dict[str, str]:
        """Return the hashes, except those of the page, which shows times, and Snakemake's files."""
        apart = ("report/index.html", "report/SHA256SUMS")
        found = hashes(project.folder / "results").items()
        return {n: h for n, h in found if n not in apart and "/.snakemake" not in n}

    shutil.rmtree(done.folder / "results")
    done.run("-j", "1", *TARGETS, config=VIEWED)
    assert made(done) == made(viewed)
    assert len(made(done)) > 20


@pytest.mark.parametrize("folder", ["report", pytest.param("clips", marks=pytest.mark.slow)])
def test_user_file_in_rebuilt_folder_is_named_and_kept(done, folder):
    mine = done.folder / "results" / folder / "notes" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    said = done.fail(folder, "--forcerun", folder, config=VIEWED)
    assert f"results/{folder}: Holds files that goalreel did not make" in said
    assert f"results/{folder}/notes/mine.txt" in said
    assert mine.read_text() == "mine"
    mine.rename(done.folder / "mine.txt")
    mine.parent.rmdir()
    done.run(folder, "--forcerun", folder, config=VIEWED)


@pytest.mark.parametrize(
    "name", ["plots/steps.svg", pytest.param("episodes.csv", marks=pytest.mark.slow)]
)
def test_damaged_sources_of_the_report_are_rebuilt(done, name):
    results = done.folder / "results"
    whole = (results / name).read_bytes()
    middle = len(whole) // 2
    damaged = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    replaced(results / name, damaged, keep_times=True)
    said = done.fail("report", "--forcerun", "report", config=VIEWED)
    assert f"{Path(name).name}" in said and "its sha256 is not the one in the list" in said
    done.run("report", config=VIEWED)
    page = results / "report" / Path(name).name
    assert page.read_bytes() == (results / name).read_bytes() == whole


CONFIG_EDITS = [
    ({"overlay": {"caption": "Seed {seed}"}}, ENCODE | {"clips": 1, "report": 1}),
    ({"overlay": {"hud": True}}, HUD | {"clips": 1, "report": 1}),
    ({"overlay": {"title_card": 0}}, ENCODE | TABLES | {"report": 1}),
    ({"clips": {"video_length": 9}}, {"clips": 1}),
    ({"stills": {"episode_trigger": [0]}}, {"stills": 1}),
    ({"figures": {"max_mb": 1}}, {"figures": 1}),
    ({"model_card": {"episode_trigger": [0]}}, {"model_card": 1}),
    ({"grid": {"columns": 2}}, {"grid": 1, "report": 1}),
    ({"encode": {"quality": "small"}}, HUD | VIDEOS | {"report": 1}),
    ({"encode": {"encoder": "x264"}}, ENCODE | {"report": 1}),  # the default of views
    ({"film": {"fps": 60}}, ENCODE | TABLES | VIDEOS | {"stills": 1, "figures": 1, "report": 1}),
    ({"policy": {"epsilon": 0.1}}, SIMULATE),
    ({"success": -120}, SIMULATE),
    ({"train": {"attempts": 2}}, NOTHING),
    # Title cards show the number of episodes.
    ({"reaches": 6}, SIMULATE | {"simulate": 1, "render": 1, "encode": 3}),
]

CODE_EDITS = {  # modules of each stage, and unrelated ones
    "goalreel/views/swarm.py": {"swarm": 1, "report": 1},
    "goalreel/views/grid.py": {"grid": 1, "report": 1},
    "goalreel/views/poster.py": {"stills": 1, "figures": 1},
    "goalreel/views/figures.py": {"figures": 1},
    "goalreel/views/clips.py": {"clips": 1},
    "goalreel/views/triggers.py": {"clips": 1, "stills": 1, "figures": 1, "model_card": 1},
    "goalreel/report/plots.py": {"plots": 1, "report": 1},
    "goalreel/report/model_card.py": {"model_card": 1},
    "goalreel/report/templates/colors.css": {"report": 1},
    "goalreel/environments/dimension_names.toml": {"plots": 1, "report": 1},
    "goalreel/report/compare.py": NOTHING,
    "goalreel/recorders/record_video.py": NOTHING,
    "goalreel/environments/drawing/frame_memo.py": NOTHING,
}


@pytest.mark.parametrize(("edit", "jobs"), [*CONFIG_EDITS, *CODE_EDITS.items()], ids=str)
def test_edit_changes_the_specs_of_its_jobs(sources, edit, jobs):
    assert sources.reruns(VIEWED, edit, ALL) == jobs


PLAYED = {"simulate": 1, "encode": 1, "concat": 1, "episodes": 1, "training_progress": 1}
LEARNER_EDITS = [
    ({"train": {"attempts": 2}}, {"training_progress": 1}),
    ({"seed": 7}, PLAYED),
    ({"overlay": {"caption": "{return:g}"}}, {"encode": 1, "concat": 1}),
    ({"render": {"scale": 1}}, {"encode": 1, "concat": 1, "training_progress": 1}),
    ({"policy": {"checkpoint": 0}}, PLAYED),
    ({"sticky_actions": 0.5}, PLAYED),
    ({"train": {"seed": 8}}, NOTHING),  # the file is of another training
    ("goalreel/policies/numpy_network.py", PLAYED),
    ("goalreel/views/learning_film.py", {"training_progress": 1}),
    ("goalreel/environments/drawing/frame_memo.py", PLAYED),
    ("goalreel/environments/classic_control.py", NOTHING),
]


@pytest.fixture(scope="module")
def game(tmp_path_factory) -> dict:
    """Return the options of a film of a kept policy that plays a game from pixels."""
    pytest.importorskip("ale_py")
    path = random_policy(tmp_path_factory.mktemp("kept") / "policy.npz", "ALE/Freeway-v5", 3)
    policy = {"name": "trained", "file": str(path)}
    return {"env": "ALE/Freeway-v5", "episodes": 2, "policy": policy}


@pytest.mark.parametrize(("edit", "jobs"), LEARNER_EDITS, ids=str)
def test_edit_of_trained_game_changes_the_specs_of_its_jobs(sources, game, edit, jobs):
    if isinstance(edit, dict):
        edit = edit | {"policy": game["policy"] | edit.get("policy", {})}
    assert sources.reruns(game, edit, (*FILM, "training_progress")) == jobs


def test_snakemake_reruns_the_views_of_changed_specs(viewed, sources):
    edit = {"clips": {"video_length": 9}, "grid": {"columns": 2}}
    planned = sources.reruns(VIEWED, edit, ALL)
    given = {"clips": "{video_length: 9}", "grid": "{columns: 2}"}
    assert viewed.jobs(*TARGETS, config=VIEWED) == NOTHING
    assert viewed.jobs(*TARGETS, config=VIEWED | given) == planned

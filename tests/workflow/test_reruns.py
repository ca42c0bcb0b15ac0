"""An edit reruns exactly the affected jobs, by a table of specs and dry runs that confirm it."""

import pytest
from conftest import SMALL
from project import SOURCES
from reruns import FILM, rerun
from trials import BY_X264

from goalreel.workflow import plan as planning

NOTHING = {}
END = {"concat": 1, "episodes": 1}
ENCODE = {"encode": 2, "concat": 1}
CODED = ENCODE | {"coded_atlas": 1}
RENDER = ENCODE | {"render": 2}
ALL = RENDER | {"simulate": 2, "episodes": 1}
DRAWN = {"atlas": 1, "coded_atlas": 1}
ONE_SHARD = {"simulate": 1, "render": 1, "encode": 1} | END


CONFIG_EDITS = [
    ({"encode": {"qp": 31}}, ENCODE),  # an option of x264, which `auto` takes then
    ({"encode": {"preset": "fast"}}, ENCODE),
    ({"overlay": {"title_card": 0.51}}, NOTHING),  # as many frames
    ({"film": {"show_failures": True}}, ALL),
    ({"seed": 7}, ALL),
    ({"check_determinism": False}, NOTHING),  # goalreel plays it
    ({"policy": {"name": "near_optimal"}}, ALL),
    ({"env": "MountainCarContinuous-v0"}, ALL | DRAWN),
    ({"max_attempts_per_reach": 200}, NOTHING),
    ({"max_step_seconds": 60, "max_memory_mb": 10_000}, NOTHING),
    ({"train": {"total_timesteps": 5000}}, NOTHING),  # this policy does not use it
    # Title cards name the total.
    ({"reaches": 12}, ONE_SHARD | {"encode": 3}),
    ({"reaches": 7}, ONE_SHARD | {"encode": 2}),
    ({"reaches": 4}, END | {"encode": 1}),
    ({"shard_size": 2}, {"simulate": 4, "render": 4, "encode": 4} | END),
]


GYMNASIUM = SMALL | {"env": "CartPole-v1", "policy": {"name": "random"}}
PLAYED = {"simulate": 2, "encode": 2, "clips": 1, "grid": 1} | END
GYMNASIUM_EDITS = [
    ({"render": {"scale": 2}}, ENCODE | {"clips": 1}),
    ({"film": {"fps": 30}}, ENCODE | {"episodes": 1, "clips": 1, "grid": 1}),
    ({"film": {"fps": 50}}, NOTHING),  # CartPole's own
    ({"env_wrappers": ["gymnasium.wrappers:OrderEnforcing"]}, PLAYED),
    ({"check_determinism": False}, PLAYED),
    ({"reaches": None, "episodes": 8}, PLAYED),  # whatever their outcome
    ({"reaches": None, "seeds": "0-7"}, PLAYED),
]


@pytest.mark.parametrize(("edit", "jobs"), GYMNASIUM_EDITS, ids=str)
def test_config_edit_of_a_film_rendered_by_gymnasium(sources, edit, jobs):
    assert sources.reruns(GYMNASIUM, edit, (*FILM, "clips", "grid")) == jobs


EPISODES = GYMNASIUM | {"reaches": None}
BARE = {"overlay": {"title_card": 0}}
EPISODE_EDITS = [
    ({"episodes": 8}, {"episodes": 12}, {"simulate": 1, "encode": 3} | END),
    ({"episodes": 6}, {"episodes": 11}, {"simulate": 2, "encode": 3} | END),  # one shard grows
    ({"episodes": 8} | BARE, {"episodes": 12}, {"simulate": 1, "encode": 1} | END),
    ({"episodes": 8} | BARE, {"episodes": 4}, END),
    ({"episodes": 8}, {"success": 100}, {"episodes": 1}),
    ({"seeds": "0-7"}, {"seeds": [0, 1, 2, 3, 4, 5, 6, 7]}, NOTHING),  # another spelling
    ({"seeds": "0-7"}, {"seeds": [0, 1, 2, 3, 4, 5, 6, 9]}, {"simulate": 1} | END),
]


@pytest.mark.parametrize(("before", "after", "jobs"), EPISODE_EDITS, ids=str)
def test_config_edit_of_a_film_of_episodes(sources, before, after, jobs):
    assert sources.reruns(EPISODES | before, after) == jobs


BLOCKS = EPISODES | {"episodes": 8}
PLAYED = ENCODE | {"simulate": 2, "episodes": 1}
BLOCK_EDITS = [
    ({"encode": {"encoder": "x264"}}, ENCODE),
    ({"encode": {"quality": "small"}}, ENCODE),
    ({"overlay": {"hud": True}}, ENCODE),
    ({"overlay": {"caption": "Seed {seed}"}}, ENCODE),
    ({"render": {"opengl": "llvmpipe"}}, PLAYED),
    ("goalreel/encoding/assembling/block_samples.py", ENCODE),
    ("goalreel/encoding/x264.py", ENCODE),
    ("goalreel/rendering/classic_control_scene.py", PLAYED),
    ("goalreel/rendering/blocks.py", PLAYED),
]


@pytest.mark.parametrize(("edit", "jobs"), BLOCK_EDITS, ids=str)
def test_edit_of_a_film_of_blocks(sources, edit, jobs):
    assert sources.reruns(BLOCKS, edit) == jobs


@pytest.mark.parametrize(("name", "jobs"), [("bipedal_walker", PLAYED), ("mujoco_scene", NOTHING)])
def test_edit_of_the_drawing_of_one_environment(sources, name, jobs):
    walker = EPISODES | {"env": "BipedalWalker-v3", "episodes": 8}
    assert sources.reruns(walker, f"goalreel/environments/drawing/{name}.py") == jobs


VIEWS = [{"camera": "track"}, {"width": 320, "height": 200}, {"opengl": "llvmpipe"}]


@pytest.mark.parametrize("view", [*VIEWS, {"quality": "draft"}], ids=str)
def test_another_view_of_mujoco_draws_again_without_simulating(sources, view):
    pytest.importorskip("mujoco")
    cheetah = EPISODES | {"env": "HalfCheetah-v5", "episodes": 8}
    drawn = ENCODE | {"render": 2} | ({"episodes": 1} if "quality" in view else {})
    assert sources.reruns(cheetah, {"render": view}) == drawn
    assert sources.reruns(cheetah | {"render": view}, {"render": {}}) == drawn


def test_edits_of_a_film_of_a_recording(sources, tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("episode,seed,action\n" + "".join(f"{n},{n},0\n" for n in range(12)))
    recorded = {"policy": {"name": "recording", "file": str(path)}, "episodes": 8}
    before = sources.specs(EPISODES | recorded)
    assert rerun({}, before) == PLAYED | {"import_recording": 1}
    after = sources.specs(EPISODES | recorded | {"episodes": 12})
    assert rerun(before, after) == {"simulate": 1, "encode": 3} | END
    imported = PLAYED | {"import_recording": 1}
    for module, jobs in (("recorded_episodes", PLAYED), ("recording_file", imported)):
        with sources.edited(f"goalreel/simulation/{module}.py"):
            assert rerun(before, sources.specs(EPISODES | recorded)) == jobs
    path.write_text(path.read_text().replace("9,9,0", "9,9,1"))
    assert rerun(before, sources.specs(EPISODES | recorded)) == PLAYED | {"import_recording": 1}


CODE_EDITS = {
    "simulate.py": ALL,
    "goalreel/environments/mountain_car.py": ALL,
    "goalreel/policies/policy.py": ALL,
    "goalreel/simulation/trajectories.py": ALL | {"coded_atlas": 1},
    "goalreel/rendering/gymnasium_style.py": RENDER | DRAWN,
    "goalreel/films/render.py": RENDER,
    "goalreel/encoding/x264.py": CODED,
    "goalreel/rendering/overlay.py": CODED,
    "goalreel/h264/cavlc.py": CODED,
    "goalreel/encoding/assembling/encode_atlas.py": CODED,
    "encode.py": ENCODE,
    "goalreel/encoding/assembling/hud_slices.py": ENCODE,
    "goalreel/mp4/box_writer.py": ENCODE,
    "goalreel/films/concatenate.py": {"concat": 1},
    "goalreel/films/tables.py": {"episodes": 1},
    "goalreel/report/statistics.py": {"episodes": 1},
    # Plumbing, training, and modules that only other runs use.
    "goalreel/encoding/assembling/block_samples.py": NOTHING,
    "goalreel/files/npz.py": NOTHING,
    "goalreel/workflow/job_events.py": NOTHING,
    "goalreel/verification/replay.py": NOTHING,
    "goalreel/policies/numpy_network.py": NOTHING,
    "goalreel/policies/stable_baselines3.py": NOTHING,
    "goalreel/policies/sb3_network.py": NOTHING,
    "goalreel/policies/onnx_policy.py": NOTHING,
    "goalreel/simulation/recording_file.py": NOTHING,
    "goalreel/rendering/frame_recorder.py": NOTHING,
    "goalreel/cli.py": NOTHING,
}


@pytest.mark.parametrize(("edit", "jobs"), [*CONFIG_EDITS, *CODE_EDITS.items()], ids=str)
def test_edit_of_a_mountain_car_film(sources, edit, jobs):
    assert sources.reruns(SMALL, edit) == jobs


@pytest.mark.parametrize(
    ("tool", "jobs"),
    [
        ("numpy", ALL | DRAWN),
        ("pygame-ce", RENDER | DRAWN),
        ("pandas", {"episodes": 1}),
        ("pillow", CODED),
        ("ffmpeg", CODED),
        ("matplotlib", NOTHING),
    ],
)
def test_new_tool_version_reruns_its_jobs(sources, monkeypatch, tool, jobs):
    before, version = sources.specs(SMALL), planning._version
    monkeypatch.setattr(planning, "_version", lambda name: "n99" if name == tool else version(name))
    assert rerun(before, sources.specs(SMALL)) == jobs


def test_config_edit_reruns_the_jobs_of_changed_specs(filmed, sources):
    edits = {"encode": "{qp: 31}", "overlay": "{title_card: 0}"}
    planned = sources.reruns(SMALL, {"encode": {"qp": 31}, "overlay": {"title_card": 0}})
    assert filmed.jobs(config=SMALL | edits) == planned == ENCODE | {"episodes": 1}


@pytest.mark.parametrize(
    ("name", "old", "new", "jobs"),
    [
        ("films/tables.py", "index=False", "index=True", {"episodes": 1}),
        # Code that runs while the workflow plans.
        ("encoding/encoder_selection.py", '"balanced": (34, 20)', '"balanced": (33, 20)', CODED),
        ("encoding/encoder_selection.py", "max(round(", "1 + max(round(", ENCODE | {"episodes": 1}),
        ("encoding/encoder_selection.py", "round(", "int(", NOTHING),  # as many frames
    ],
)
def test_snakemake_reruns_what_an_edited_module_affects(done, name, old, new, jobs):
    done.edit(f"scripts/goalreel/{name}", old, new)
    assert done.jobs(config=SMALL) == jobs


@pytest.mark.slow
def test_swapped_values_rerun(once):
    """Snakemake compares parameters as a set, which would hide the change."""
    encoded = once("encoded", lambda fresh: fresh.run("-j", "2", config=BY_X264))
    config = SMALL | {"encode": "{encoder: x264, qp: 30}", "film": "{fps: 23}"}
    assert encoded.jobs(config=config) == ENCODE | {"episodes": 1}


def test_edited_comments_docstrings_and_layout_rerun_nothing(done):
    for path in (done.folder / "scripts").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        place = text.index('"""') + 3
        text = text[:place] + "Edited. " + text[place:] + "\n\n# A comment at the end.\n"
        path.write_text(text, encoding="utf-8")
    done.edit("config.yaml", "# frames per second", "# pictures per second")
    done.edit("config/config.schema.yaml", "Frames per second", "Pictures per second")
    done.edit("Snakefile", '"""Make the film and', '"""Make the film, and')
    assert done.jobs(config=SMALL) == NOTHING


def test_fresh_checkout_reruns_nothing(done):
    """All its files have new time stamps."""
    for name in SOURCES:
        done.restore(name)
    assert done.jobs(config=SMALL) == NOTHING


@pytest.mark.slow
def test_growth_by_half_a_shard_remakes_the_last_shard(done):
    assert done.jobs(config=SMALL | {"reaches": 10}) == ONE_SHARD | {"encode": 3}
    done.run(config=SMALL | {"reaches": 10})
    assert done.jobs(config=SMALL | {"reaches": 10}) == NOTHING
    assert done.jobs(config=SMALL | {"reaches": 12}) == ONE_SHARD | {"encode": 3}
    done.run(config=SMALL | {"reaches": 12})
    assert done.jobs(config=SMALL | {"reaches": 12}) == NOTHING
    # Back to 8: the third shard stays, and is not rebuilt when it is needed again.
    done.run(config=SMALL)
    assert done.jobs(config=SMALL | {"reaches": 12}) == END | {"encode": 2}


def test_deleted_segment_is_rebuilt_only_for_a_new_film(done):
    (done.folder / "results" / "segments" / "00001.mp4").unlink()
    assert done.jobs(config=SMALL) == NOTHING
    assert done.jobs(config=SMALL | {"reaches": 4}) == END | {"encode": 1}
    (done.folder / "results" / "film.mp4").unlink()
    assert done.jobs(config=SMALL) == {"encode": 1, "concat": 1}


@pytest.mark.slow
def test_large_rebuilt_file_with_same_content_reruns_nothing(done):
    """Snakemake compares contents only up to 1 MB unless profiles/default raises the limit."""
    config = {"reaches": 160, "shard_size": 160}
    done.run(config=config)
    cache = done.folder / "results" / "frames" / "00000.npz"
    assert cache.stat().st_size > 1_000_000
    cache.unlink()
    done.run("results/frames/00000.npz", config=config)
    assert done.jobs(config=config) == NOTHING

"""Errors of environments and policies appear before the run, in few lines, without leftovers."""

import pytest
from hostile_env import ENV

POLICY = """import json
import os

import numpy as np

# As Snakemake sets it for a job of one core; NumPy, SciPy and PyTorch heed it.
assert os.environ["OMP_NUM_THREADS"] == os.environ["OPENBLAS_NUM_THREADS"] == "1"

with open("weights.json") as file:
    weights = np.array(json.load(file))


def act(observations):
    return (observations @ weights > 0).astype(int)
"""


def played(project, **options: object) -> dict:
    (project.folder / "hostile.py").write_text(ENV, encoding="ascii")
    return {"env": "hostile:Hostile-v0", "episodes": 3} | options


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("space: 1/0", "cannot be made with env_kwargs {'space': '1/0'}"),
        ("step: raise KeyError", "raised KeyError in step"),
        ("step: os.abort()", "crashed in its first steps (SIGABRT)"),
    ],
)
def test_failing_environment_is_rejected_before_run(project, fault, said):
    config = played(project, env_kwargs=f"{{{fault}}}")
    output = project.fail(config=config)
    message = output[output.index("goalreel:") :]
    assert said in message
    assert len(message.strip().splitlines()) <= 5, message
    assert not (project.folder / "results").exists()


def test_policy_with_wrong_actions_is_rejected_before_run(project):
    (project.folder / "agent.py").write_text("def act(obs):\n    return obs\n", encoding="ascii")
    output = project.fail(config=played(project, policy="agent.py"))
    assert "policy.function: agent.py: act" in output
    assert not (project.folder / "results").exists()
    output = project.fail(config=played(project, suite="{policy: [random, agent.py]}"))
    assert "goalreel: agent: policy.function: agent.py: act" in output


@pytest.mark.slow
def test_file_that_a_policy_opens_is_watched(project):
    (project.folder / "agent.py").write_text(POLICY, encoding="ascii")
    weights = project.folder / "weights.json"
    weights.write_text("[1, 1]", encoding="ascii")
    config = played(project, policy="agent.py")
    project.run(config=config)
    assert project.jobs(config=config) == {}
    assert project.jobs("--configfile", "results/config.yaml") == {}
    weights.write_text("[1, -1]", encoding="ascii")
    assert project.jobs(config=config)["simulate"] == 1


@pytest.mark.slow
def test_file_that_an_environment_opens_is_watched(project):
    level = project.folder / "level.json"
    level.write_text("1", encoding="ascii")
    config = played(project, env_kwargs="{reset: open('level.json').read()}")
    project.run(config=config)
    assert project.jobs(config=config) == {}
    level.write_text("2", encoding="ascii")
    assert project.jobs(config=config)["simulate"] == 1


@pytest.mark.slow
def test_shard_of_slow_episodes_takes_at_most_a_minute(project):
    config = played(project, env_kwargs="{render: time.sleep(0.2)}", max_episode_steps=1000)
    assert project.jobs(config=config)["simulate"] == 3
    assert project.jobs(config=config | {"shard_size": 2})["simulate"] == 2
    assert project.jobs(config=played(project))["simulate"] == 1


@pytest.mark.slow
def test_run_whose_rewards_are_no_numbers_ends_with_its_report(project):
    config = played(project, env_kwargs="{step: reward = np.nan}")
    output = project.run("all", "report", config=config)
    assert "3 episodes, return nan ± nan" in output
    assert "<dd>nan</dd>" in (project.folder / "results/report/index.html").read_text("utf-8")


@pytest.mark.slow
def test_another_opengl_renderer_renders_again(project):
    pytest.importorskip("mujoco")
    cheetah = {"env": "HalfCheetah-v5", "episodes": 2, "max_episode_steps": 3}
    narrow, wide = ({"LP_NATIVE_VECTOR_WIDTH": bits, "MUJOCO_GL": "egl"} for bits in ("128", "256"))
    if "MuJoCo needs the OpenGL" in (
        output := project.start(config=cheetah, **narrow).communicate()[0]
    ):
        pytest.skip("MuJoCo cannot draw with egl: needs Debian's libegl1 and libgl1-mesa-dri")
    results = project.folder / "results"
    record = results / "config.yaml"
    assert "128 bits" in record.read_text(encoding="utf-8"), output
    assert project.jobs(config=cheetah, **narrow) == {}
    jobs = project.jobs(config=cheetah, **wide)
    assert jobs["render"] == 1 and "simulate" not in jobs
    assert project.jobs("--configfile", str(record), **wide) == {}
    (results / "frames/00000.npz").unlink()
    output = project.fail("stills", "--configfile", str(record), **wide)
    assert "render 00000: render.opengl: This machine draws with 'llvmpipe" in output


@pytest.mark.slow
@pytest.mark.parametrize(("env", "jobs"), [("CarRacing-v3", 3), ("HalfCheetah-v5", 5)])
def test_shards_of_known_environments_ignore_speed(project, env, jobs):
    assert project.jobs(config={"env": env, "episodes": 10})["simulate"] == jobs
    assert (
        project.jobs(config={"env": env, "episodes": 10, "max_episode_steps": 9})["simulate"] == 2
    )

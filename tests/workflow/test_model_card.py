"""The model card holds the metadata that the Hugging Face Hub reads, and the run's results."""

import json

import numpy as np
import pandas as pd
import pytest
import yaml
from gymnasium_frames import played
from recordings import decoded_rgb

from goalreel.provenance.checksums import read_sums
from goalreel.report.model_card import evaluation, is_deterministic, page

CONFIG = {
    "env": "CartPole-v1",
    "env_kwargs": "{sutton_barto_reward: true}",
    "env_wrappers": "[gymnasium.wrappers:TimeAwareObservation]",
    "seeds": "3-7",
    "policy": "{name: random}",
    "shard_size": 3,
}


def metadata(readme: str) -> dict:
    """Return the page's front matter."""
    _, head, _ = readme.split("---\n", 2)
    return yaml.safe_load(head)


def options(readme: str) -> dict:
    """Return the options that the page shows."""
    return yaml.safe_load(readme.split("```yaml\n")[1].split("```")[0])


@pytest.mark.slow
def test_card_shows_mean_return_and_median_episode(project):
    said = project.run("-j", "2", "model_card", "all", config=CONFIG)
    assert "results/model_card/README.md" in said
    results = project.folder / "results"
    folder, table = results / "model_card", pd.read_csv(results / "episodes.csv")
    told = json.loads((folder / "results.json").read_text())
    readme = (folder / "README.md").read_text()
    assert told == {
        "env_id": "CartPole-v1",
        "mean_reward": pytest.approx(table["return"].mean()),
        "std_reward": pytest.approx(table["return"].std(ddof=0)),
        "is_deterministic": False,
        "n_eval_episodes": 5,
    }
    (model,) = metadata(readme)["model-index"]
    (entry,) = model["results"]
    assert entry["metrics"][0]["value"] == f"{told['mean_reward']:.2f} +/- {told['std_reward']:.2f}"
    assert "reinforcement-learning" in metadata(readme)["tags"]
    assert "derived" not in readme
    assert options(readme) == {
        "env": "CartPole-v1",
        "env_kwargs": {"sutton_barto_reward": True},
        "env_wrappers": [{"gymnasium.wrappers:TimeAwareObservation": {}}],
        "seeds": "3-7",
        "policy": {"name": "random"},
    }
    median = table.sort_values("return", kind="stable").iloc[2]
    assert f"seed {median['seed']}" in readme
    first = next(played("CartPole-v1", int(median["seed"]), []))
    shown = decoded_rgb(folder / "replay.mp4")
    assert len(shown) == median["steps"] + 1 + 50  # the last one is held for a second
    assert np.abs(shown[0].astype(int) - first).mean() < 1
    assert set(read_sums(folder / "SHA256SUMS")) == set(folder.iterdir()) - {folder / "SHA256SUMS"}
    config = CONFIG | {"model_card": "{episode_trigger: [0, 3]}"}
    project.run("-j", "2", "model_card", config=config)
    steps = table["steps"][[0, 3]].sum() + 2
    assert len(decoded_rgb(folder / "replay.mp4")) == steps + 50
    assert "ok" in project.run("-j", "2", "verify", config=config)
    said = project.fail("model_card", config=CONFIG | {"model_card": "{episode_trigger: [99]}"})
    assert "model_card.episode_trigger: No episode matches '[99]'" in said


@pytest.mark.slow
def test_card_shows_frames_of_odd_sides(project):
    code = (project.folder / "examples/own_environment.py").read_text(encoding="utf-8")
    (project.folder / "odd.py").write_text(code.replace("12, 9, 20", "13, 9, 7"), encoding="utf-8")
    project.run("model_card", config={"env": "odd:Catch-v0", "policy": "random", "episodes": 1})
    shown = decoded_rgb(project.folder / "results/model_card/replay.mp4")
    assert shown[0].shape == (9 * 7 + 1, 13 * 7 + 1, 3)


def test_card_policy_is_deterministic_only_if_known():
    assert not is_deterministic({"name": "near_optimal", "epsilon": 0.1})
    assert not is_deterministic({"name": "random", "epsilon": 0.0})
    assert is_deterministic({"name": "pump", "epsilon": 0.0})
    assert is_deterministic({"name": "sb3", "deterministic": True})
    for name in ("python", "minari"):
        assert is_deterministic({"name": name}) is None


def test_card_with_root_seed_says_that_seeds_are_derived():
    results = evaluation([1.0], "CartPole-v1", None)
    for made, is_told in ({"seed": 2025}, True), ({"seeds": [3]}, False), ({}, False):
        assert ("derived from the root seed" in page(results, "PPO", None, [], made)) == is_told


def test_huggingface_hub_reads_the_evaluation(tmp_path):
    hub = pytest.importorskip("huggingface_hub", reason="takes huggingface_hub")
    results = evaluation([10.0, 20.0], "Ant-v5", None)
    (tmp_path / "README.md").write_text(page(results, "SAC", "stable-baselines3", [], {}))
    card = hub.ModelCard.load(tmp_path / "README.md")
    assert card.data.library_name == "stable-baselines3"
    assert results["std_reward"] == 5
    (result,) = card.data.eval_results
    assert card.data.model_name == "SAC"
    assert (result.task_type, result.dataset_name) == ("reinforcement-learning", "Ant-v5")
    assert (result.metric_type, result.metric_value) == ("mean_reward", "15.00 +/- 5.00")
    assert hub.ModelCard(str(card)).data.to_dict() == card.data.to_dict()

"""Comparisons of two runs agree with the tables and frames of the runs."""

import av
import numpy as np
import pandas as pd
import pytest

import goalreel

CONFIG = {"shard_size": 3, "results": "a", "reaches": 5}
OTHER = CONFIG | {"results": "b", "policy": "{epsilon: 0.2}", "film": "{show_failures: true}"}
COMPARE = {"compare": "[a, b]"}


@pytest.fixture(scope="module")
def compared(once):
    """Return a read-only project with two runs and their comparison."""

    def make(fresh):
        fresh.run("-j", "2", config=CONFIG)
        fresh.run("-j", "2", config=OTHER)
        return fresh.run("compare", config=COMPARE)

    return once("compared", make)


def tables(project) -> list[pd.DataFrame]:
    return [pd.read_csv(project.folder / run / "episodes.csv") for run in "ab"]


def test_compare_table_lists_both_runs_of_each_shared_seed(compared):
    made = pd.read_csv(compared.folder / "results" / "compare" / "compare.csv")
    first, second = tables(compared)
    both = first.merge(second, on="seed", suffixes=("_a", "_b"))
    assert len(both) == len(made) == 5
    for column in ("seed", "return_a", "return_b", "steps_a", "steps_b"):
        assert made[column].tolist() == both[column].tolist()
    difference = both["return_b"] - both["return_a"]
    assert made["difference"].tolist() == difference.tolist()
    assert made["outcome_b"].tolist() == [
        "reached" if reached else "failed" for reached in both["reached_b"]
    ]
    told = f"5 seeds, the second returns {difference.mean():+.4g} on average"
    assert told in compared.output


def test_compare_halves_show_their_runs_and_hold_last_frame(compared):
    folder = compared.folder / "results" / "compare"
    made, runs = pd.read_csv(folder / "compare.csv"), tables(compared)
    with av.open(str(folder / "compare.mp4")) as video:
        frames = [frame.to_ndarray(format="rgb24") for frame in video.decode(video=0)]
    longest = made[["steps_a", "steps_b"]].max(axis=1) + 1
    assert len(frames) == longest.sum() + 5 * 15, "both hold for half a second"
    for pair, row in made.iterrows():
        start = round(row["start_s"] * 30)
        for run, table, left in (("a", runs[0], 0), ("b", runs[1], 604)):
            episode = table.index[table["seed"] == row["seed"]][0]
            shard = table["shard"][episode]
            cache = goalreel.open_cache(compared.folder / run / f"frames/{shard:05d}.npz")
            own = cache.episode(int((table["shard"][:episode] == shard).sum()))
            for step in {0, 40, own[-1] - own[0], longest[pair] + 14}:
                shown = frames[start + step][-400:, left : left + 600].astype(int)
                expected = cache[own[min(step, len(own) - 1)]]
                assert np.abs(shown - expected).mean() < 2, (pair, run, step)


def test_compare_rejects_unfit_runs_by_name(compared, tmp_path):
    assert "compare: 'c' holds no finished run" in compared.fail(
        "compare", config={"compare": "[a, c]"}
    )
    assert "snakemake compare --config 'compare=[results/a, results/b]'" in compared.fail("compare")
    project = compared.copied(tmp_path / "project")
    project.run(config=CONFIG | {"results": "c", "seed": 7})
    told = project.fail("compare", config={"compare": "[a, c]", "results": "d"})
    assert "compare: 'a' and 'c' share no seeds. Film both" in told


def test_compare_reruns_with_its_runs_and_leaves_them_alone(compared, tmp_path):
    project = compared.copied(tmp_path / "project")
    assert project.jobs("compare", config=COMPARE) == {}
    assert not (project.folder / "results" / "config.yaml").exists()
    project.run(config=OTHER | {"reaches": 6})
    assert project.jobs("compare", config=COMPARE) == {"compare": 1}
    # The comparison does not depend on the results of another run.
    assert project.jobs("compare", config=COMPARE | {"results": "b"}) == {"compare": 1}

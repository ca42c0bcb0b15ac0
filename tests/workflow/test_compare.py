"""Comparisons of runs agree with the tables, trajectories and frames of the runs."""

import itertools

import av
import numpy as np
import pandas as pd
import pytest
from message_form import check_form

import goalreel

CONFIG = {"shard_size": 3, "results": "a", "reaches": 5}
OTHER = CONFIG | {"results": "b", "policy": "{epsilon: 0.2}", "film": "{show_failures: true}"}
FEW = CONFIG | {"results": "c", "policy": "{epsilon: 0.5}", "reaches": 4}
COMPARE = {"compare": "{zero: a, more: b, few: c}"}
SIDES = {"zero": "a", "more": "b", "few": "c"}
FILM = "results/compare/compare.mp4"


@pytest.fixture(scope="module")
def compared(once):
    """Return a read-only project with three runs and their comparison."""

    def make(fresh):
        for config in (CONFIG, OTHER, FEW):
            frames = [f"{config['results']}/frames/{shard:05d}.npz" for shard in range(2)]
            fresh.run("-j", "2", "episodes", *frames, config=config)
        return fresh.run("compare", config=COMPARE)

    return once("compared", make)


@pytest.fixture(scope="module")
def episodes(compared) -> dict[str, pd.DataFrame]:
    """Return the first episode of each seed, by seed, of each run."""
    tables = {}
    for name, folder in SIDES.items():
        table = pd.read_csv(compared.folder / folder / "episodes.csv")
        table["place"] = table.groupby("shard").cumcount()
        tables[name] = table.drop_duplicates("seed").set_index("seed")
    return tables


@pytest.fixture(scope="module")
def seeds(compared) -> pd.DataFrame:
    return pd.read_csv(compared.folder / "results/compare/compare.csv", index_col="seed")


def steps_of(compared, folder: str, row: pd.Series) -> list[tuple]:
    """Return the bytes of the action before each state, and of the state."""
    path = compared.folder / folder / f"trajectories/{row['shard']:05d}.npz"
    with np.load(path) as arrays:
        start, end = arrays["offsets"][row["place"] :][:2]
        actions = arrays["actions"][start - row["place"] :][: end - start - 1]
        states = arrays["states"][start:end]
    return list(zip([b"", *map(bytes, actions)], map(bytes, states), strict=True))


def test_compare_table_has_results_and_first_difference(compared, episodes, seeds):
    counts = pd.concat([table["return"] for table in episodes.values()], axis=1).count(axis=1)
    assert sorted(seeds.index) == sorted(counts[counts > 1].index)
    for (name, folder), (seed, found) in itertools.product(SIDES.items(), seeds.iterrows()):
        if seed not in episodes[name].index:
            assert np.isnan(found[f"return_{name}"])
            continue
        row = episodes[name].loc[seed]
        assert found[f"return_{name}"] == row["return"]
        assert found[f"steps_{name}"] == row["steps"]
        assert found[f"outcome_{name}"] == ("reached" if row["reached"] else "failed")
        if name != "zero" and seed in episodes["zero"].index:
            first = steps_of(compared, "a", episodes["zero"].loc[seed])
            pairs = zip(first, steps_of(compared, folder, row), strict=False)
            differs = next(step for step, (mine, other) in enumerate(pairs) if mine != other)
            assert found[f"differs_{name}"] == differs > 0


def test_compare_pairs_count_common_seeds(compared, episodes):
    pairs = pd.read_csv(compared.folder / "results/compare/pairs.csv")
    assert list(zip(pairs["a"], pairs["b"], strict=True)) == list(itertools.combinations(SIDES, 2))
    for pair in pairs.itertuples():
        a, b = episodes[pair.a]["return"], episodes[pair.b]["return"]
        differences = (b - a).dropna()
        counts = (differences > 0).sum(), (differences == 0).sum(), (differences < 0).sum()
        assert (pair.wins, pair.ties, pair.losses) == counts
        assert pair.seeds == len(differences)
        assert pair.unpaired == len(a) + len(b) - 2 * len(differences)
        assert pair.mean == pytest.approx(differences.mean())
        assert f"{pair.a}, {pair.b}: {pair.sentence}" in compared.output


@pytest.mark.slow
def test_compare_film_shows_sides_in_step_and_marks_difference(compared, episodes, seeds):
    with av.open(str(compared.folder / FILM)) as video:
        frames = [frame.to_ndarray(format="rgb24") for frame in video.decode(video=0)]
    filmed = seeds.dropna(subset="start_s").sort_values("start_s")
    longest = filmed.filter(like="steps_").max(axis=1) + 1
    assert len(frames) == longest.sum() + len(filmed) * 15, "the last frames stay half a second"
    for seed, row in filmed.iterrows():
        start, length = round(row["start_s"] * 30), int(longest[seed])
        for (name, folder), (top, left) in zip(
            SIDES.items(), [(78, 0), (78, 602), (558, 0)], strict=True
        ):
            if seed not in episodes[name].index:
                assert (frames[start][top:, left : left + 600] < 60).all(), "an empty cell"
                continue
            episode = episodes[name].loc[seed]
            cache = goalreel.open_cache(
                compared.folder / folder / f"frames/{episode['shard']:05d}.npz"
            )
            own = cache.episode(int(episode["place"]))
            differs = row.get(f"differs_{name}", np.nan)
            for step in {0, 1, 2, 40, len(own) - 1, length + 14}:
                shown = frames[start + step][:, left : left + 600].astype(int)
                expected = cache[own[min(step, len(own) - 1)]].astype(int)
                if step >= len(own) and len(own) < length:
                    expected = (expected + (33, 37, 43)) // 2
                assert np.abs(shown[top : top + 400] - expected).mean() < 4, (seed, name, step)
                is_marked = np.abs(shown[top - 3] - (255, 176, 46)).mean() < 20
                assert is_marked == (step >= min(differs, len(own) - 1)), (seed, name, step)


@pytest.mark.slow
def test_compare_films_a_few_seeds_of_equal_runs(compared, tmp_path):
    project = compared.copied(tmp_path / "project")
    project.run("-j", "2", config=CONFIG | {"results": "same"})
    output = project.run("compare", config={"compare": "[a, same]"})
    assert "compare.mp4: 4 of 5 seeds\n  a, same: equal returns" in output


def rejection(project, **options) -> str:
    """Return the message of a comparison that fails."""
    output = project.fail("compare", config=options)
    message = output[output.rindex("compare: ") :].strip()
    is_of_job = "\n  log: " in message  # whose name comes first
    check_form(message.splitlines()[0].removeprefix("compare: " * is_of_job))
    return message


@pytest.mark.slow
def test_compare_rejects_unfit_options(compared):
    assert "'d' holds no finished run" in rejection(compared, compare="[a, d]")
    assert "snakemake compare --config 'compare=[results/a, results/b]'" in rejection(compared)
    assert "'a/' is listed twice" in rejection(compared, compare="[a, a/]")
    message = rejection(compared, compare="[a]")
    assert """'["a"]' is not allowed. Use two or more folders""" in message
    assert """'{"x": "a"}' is not allowed""" in rejection(compared, compare="{x: a}")


@pytest.mark.slow
def test_compare_rejects_unfit_runs_by_name(compared, tmp_path):
    project = compared.copied(tmp_path / "project")
    project.run(config=CONFIG | {"results": "d", "seed": 7, "reaches": 1})
    assert "seeds: The runs have none in common. Film" in rejection(project, compare="[a, d]")
    short = CONFIG | {"results": "e", "max_episode_steps": 190, "reaches": 1}
    project.run(config=short)
    told = rejection(project, compare="[a, e]")
    assert "The runs differ in max_episode_steps ('null' in a, '190' in e). To compare" in told
    project.run("compare", config={"compare": "[a, e]", "compare_different": "true"})
    chosen = {"results": "f", "episodes": 2, "film": "{select: {worst: 1}}"}
    project.run(config=chosen)
    told = rejection(project, compare="[f, a]", compare_different="true")
    assert "f: Has only the episodes that film.select chose." in told


@pytest.mark.slow
def test_compare_reruns_with_its_runs_and_leaves_them_alone(compared, tmp_path):
    project = compared.copied(tmp_path / "project")
    assert project.jobs("compare", config=COMPARE) == {}
    assert not (project.folder / "results" / "config.yaml").exists()
    project.run(config=OTHER | {"reaches": 6})
    assert project.jobs("compare", config=COMPARE) == {"compare": 1}
    # The comparison does not depend on the results of another run.
    assert project.jobs("compare", config=COMPARE | {"results": "b"}) == {"compare": 1}

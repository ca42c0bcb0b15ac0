"""Each file of examples/ films with fewer episodes, but otherwise unchanged."""

import ast
import json
import shlex
import subprocess
import sys

import av
import pandas as pd
import pytest
from project import REPOSITORY

EXAMPLES = {path.stem: path for path in sorted((REPOSITORY / "examples").glob("*.yaml"))}
# Packages that a file needs beyond those of the workflow.
PACKAGES = {
    "atari": ("ale_py", "cv2"),
    "cartpole_sb3": ("stable_baselines3",),
    "minigrid": ("minigrid",),
    "mujoco": ("mujoco",),
    "pong": ("ale_py",),
}
FEW = {
    "atari": {"max_episode_steps": 20},
    "mujoco": {"max_episode_steps": 10},
    "pong": {"max_episode_steps": 40},
}


def commands(name: str) -> list[str]:
    """Return the commands in a file's comments, except installations."""
    lines = EXAMPLES[name].read_text(encoding="utf-8").splitlines()
    found = [line.removeprefix("#").strip() for line in lines if line.startswith("#     ")]
    return [command for command in found if not command.startswith("pip install ")]


def test_examples_name_their_command():
    for name in EXAMPLES:
        assert commands(name)[-1] == f"snakemake --configfile examples/{name}.yaml"


@pytest.mark.parametrize(
    # The gate films own_environment as a block of README.md.
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n != "recordings")) for n in EXAMPLES],
)
def test_example_films_unchanged(name, project):
    for package in PACKAGES.get(name, ()):
        pytest.importorskip(package)
    for command in commands(name)[:-1]:
        program = [sys.executable, *shlex.split(command.replace("20_000", "256"))[1:]]
        subprocess.run(program, cwd=project.folder, check=True)
    config = {"episodes": 2} | FEW.get(name, {})
    project.run("-j", "2", "--configfile", f"examples/{name}.yaml", config=config)
    [results] = (project.folder / "results").iterdir()
    table = pd.read_csv(results / "episodes.csv")
    assert table["episode"].tolist() == [0, 1] and (table["steps"] > 0).all()
    with av.open(str(results / "film.mp4")) as film:
        shown = sum(1 for _ in film.decode(video=0))
    assert shown == table["frames"].sum() + table["card_frames"].sum()


@pytest.mark.slow
def test_notebook_runs_and_shows_its_films(tmp_path, monkeypatch):
    """Each cell runs as in a notebook, without Jupyter."""
    monkeypatch.chdir(tmp_path)
    cells = json.loads((REPOSITORY / "examples" / "film.ipynb").read_text())["cells"]
    names, shown = {}, []
    for cell in cells:
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            if isinstance(tree.body[-1], ast.Expr):
                shown.append(tree.body.pop().value)
            exec(compile(tree, "cell", "exec"), names)  # noqa: S102
            shown[-1] = eval(compile(ast.Expression(shown[-1]), "cell", "eval"), names)  # noqa: S307
    first, table, last = shown
    assert first.episodes == last.episodes == 5 and table.loc["count", "return"] == 5
    assert "<video" in first._repr_html_() and "data:image/gif" in last._repr_html_()

"""`snakemake check` passes or fails as the environment and the policy did or did not change."""

import re
import shutil

import pytest
from message_form import check_form
from project import REPOSITORY

from goalreel.mp4.reader import read_index
from goalreel.verification.lock_file import read_lock

MODULE = (REPOSITORY / "examples" / "own_environment.py").read_text(encoding="utf-8")
ACT = "def act(observations):\n    return [{}] * len(observations)\n"
RUN = {"env": "my_env:Catch-v0", "policy": "mine.py", "episodes": 4, "shard_size": 3}
PHYSICS = ("self.player + action - 1", "self.player + 2 * (action - 1)")
RENDERING = ("[24, 32, 48]", "[24, 32, 49]")


@pytest.mark.slow
def test_check_finds_edits_of_an_environment(project):
    def write(module: str = MODULE, action: int = 2) -> None:
        (project.folder / "my_env.py").write_text(module)
        (project.folder / "mine.py").write_text(ACT.format(action))

    results = project.folder / "results"
    write()
    project.run("lock", config=RUN)
    lock = read_lock(str(project.folder / "goalreel.lock"))
    text = (results / "goalreel.lock").read_text(encoding="utf-8")
    assert project.run("check").rstrip().endswith("4 of 4 episodes identical")
    assert len(list(results.glob("check/trajectories/*.npz"))), "the locked run's folder is kept"
    for edit, quantity in ((PHYSICS, "observation"), (RENDERING, "frame")):
        write(MODULE.replace(*edit))
        said = project.fail("check")
        first = re.search(rf"first differences: {quantity} in 4 \(seed (\d+) at step \d+\)", said)
        assert int(first[1]) in [episode.seed for episode in lock.episodes]
        head = "States equal, frames differ" if edit is RENDERING else "The behavior changed"
        assert f"check: goalreel.lock: {head} in 4 of 4 episodes. To accept it" in said
        assert "files: my_env " in said and "mine.py" not in said
        film = results / "check" / "before_after.mp4"
        assert f"film: {film.relative_to(project.folder)}" in said and read_index(film).frames
    assert (results / "goalreel.lock").read_text(encoding="utf-8") == text
    write(action=0)
    (project.folder / "idle.py").write_text(ACT.format(2))
    shutil.rmtree(results)
    said = project.fail("check")
    assert "action in 4" in said and "film:" not in said
    assert "4 of 4 episodes identical" in project.run("check", config={"policy": "idle.py"})


def test_check_of_a_suite_gives_one_message(project):
    said = project.fail("check", config={"suite": "{env: [CartPole-v1]}"})
    (line,) = (line for line in said.splitlines() if line.startswith("goalreel: "))
    check_form(line.removeprefix("goalreel: "))
    assert "snakemake check --configfile results/NAME/config.yaml" in line

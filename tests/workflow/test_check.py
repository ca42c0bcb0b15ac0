"""`snakemake check` passes or fails as the environment and the policy did or did not change."""

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


def steps(module: str, seed: int) -> list[tuple]:
    """Return what an environment gives at the reset and at each step of action 2."""
    names = {}
    exec(module.partition("gymnasium.register")[0], names)  # noqa: S102 - our own example
    env = names["Catch"](render_mode="rgb_array")
    given = [(env.reset(seed=seed)[0].tobytes(), None, False, env.render().tobytes())]
    while not given[-1][2]:
        observation, reward, is_over, _, _ = env.step(2)
        given.append((observation.tobytes(), reward, is_over, env.render().tobytes()))
    return given


def first_difference(edited: str, seed: int) -> tuple[str, int]:
    names = ("observation", "reward", "ending", "frame")
    old, new = steps(MODULE, seed), steps(edited, seed)
    order = [(name, step) for name in names[:3] for step in range(min(len(old), len(new)))]
    order.sort(key=lambda place: place[1])
    order += [("frame", step) for step in range(len(old))]
    return next(
        (name, step)
        for name, step in order
        if old[step][names.index(name)] != new[step][names.index(name)]
    )


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
    for edit in (PHYSICS, RENDERING):
        write(MODULE.replace(*edit))
        said = project.fail("check")
        found = [first_difference(MODULE.replace(*edit), e.seed) for e in lock.episodes]
        quantity, step = min(found, key=lambda place: place[1])
        seed = lock.episodes[found.index((quantity, step))].seed
        assert f"first differences: {quantity} in 4 (seed {seed} at step {step})" in said
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
    for target in ("lock", "check"):
        said = project.fail(target, config={"suite": "{env: [CartPole-v1]}"})
        (line,) = (line for line in said.splitlines() if line.startswith("goalreel: "))
        check_form(line.removeprefix("goalreel: "))
        assert f"snakemake {target} --configfile results/NAME/config.yaml" in line

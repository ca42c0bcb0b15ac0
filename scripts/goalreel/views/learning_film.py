"""The film of learning: a learner's first attempts at each checkpoint, title cards between them.

At every checkpoint the attempts start from the same resets, so that what differs is what was
learned.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from goalreel.encoding import ffmpeg
from goalreel.environments.physics import ENVIRONMENTS, MountainCar, probe
from goalreel.environments.seeding import episode_seeds
from goalreel.errors import GoalreelError
from goalreel.files.atomic import replacing
from goalreel.film.concatenate import Chapter, join
from goalreel.film.segment import encode_segment
from goalreel.pictures.atlas import Atlas
from goalreel.pictures.frame_cache import FrameCache
from goalreel.pictures.overlay import overlaid
from goalreel.pictures.render import render_states
from goalreel.pictures.styles import Style
from goalreel.policies.policy import RulePolicy
from goalreel.provenance.spec import NO_SPEC, Spec
from goalreel.simulation.episodes import simulate_episodes
from goalreel.simulation.trajectories import Attempts, Trajectories

Rule = Callable[[np.ndarray, MountainCar], np.ndarray]
_MOST = 5  # checkpoints of a network that are filmed


@dataclass(frozen=True)
class Learner:
    """What a learner does at each of its checkpoints."""

    unit: str  # what ages count: "episode" or "frame" of training
    ages: tuple[int, ...]  # of the checkpoints, increasing
    rules: tuple[Rule, ...]  # of each checkpoint, (observations, environment) -> actions
    spec: Spec  # how it was trained

    def label(self, age: int) -> str:
        """Return an age in words."""
        return f"{age:,} {self.unit}{'' if age == 1 else 's'}"


def read_learner(path: Path, checkpoint: str | int | None) -> Learner:
    """Read what a trainer saved: every checkpoint of SARSA, up to five of deep Q-learning.

    Args:
        path: the file.
        checkpoint: None for SARSA, else the network that is filmed last, `best`, `last` or an age;
            the others are spread evenly before it.

    Raises:
        GoalreelError: if the file cannot be used.
    """
    if checkpoint is None:
        from goalreel.policies.tile_policy import read_policies

        return of_sarsa(read_policies(path))
    from goalreel.policies.network_file import read_checkpoints

    saved = read_checkpoints(path)
    chosen = np.linspace(0, saved.choose(checkpoint), _MOST).round().astype(int)
    places = sorted(set(chosen.tolist()))
    networks = [saved.network(place) for place in places]
    rules = tuple(lambda obs, env, network=network: network.act(obs) for network in networks)
    return Learner("frame", tuple(saved.ages[place] for place in places), rules, saved.spec)


def of_sarsa(policies) -> Learner:
    """Return SARSA's policies (tile_policy.LearnedPolicies) as a learner."""
    from goalreel.policies.tile_policy import greedy

    rules = tuple(greedy(weights) for weights in policies.weights)
    return Learner("episode", tuple(policies.ages.tolist()), rules, policies.spec)


@dataclass(frozen=True)
class LearningFilm:
    """The film's frames and what is said of them."""

    cache: FrameCache  # each episode is a title card and then the attempt
    chapters: tuple[Chapter, ...]  # one per attempt, its card included
    # Columns of a row per attempt: age, attempt (from 1), seed, steps, return, reached,
    # first_frame (the one that shows the reset state), frames (steps + 1), card_frames (those of
    # the card, which end before first_frame).
    table: dict[str, list]


def make_film(
    learner: Learner,
    atlas: Atlas,
    style: Style,
    seed: int,
    attempts: int,
    card_frames: int,
    hud: bool,
    spec: Spec = NO_SPEC,
) -> LearningFilm:
    """Play and render `attempts` episodes at each checkpoint of a learner.

    Attempt k starts as the first attempt at reach k - 1 of a film of root seed `seed` does.

    hud: whether the frames show it. Raises GoalreelError if the learner or the atlas are of
    another environment than the style.
    """
    env = learner.spec.config.get("env", style.env)
    if env != style.env:
        raise GoalreelError(f"the policies are of {env}, not of {style.env}; delete them")
    played = play(learner, style.env, seed, attempts, spec)
    rows = [played.episodes.row(i) for i in range(len(played))]
    ages = np.repeat(learner.ages, attempts).tolist()
    numbers = [row["reach"] + 1 for row in rows]
    labels = [
        f"After {learner.label(age)} · attempt {number} of {attempts} · "
        f"{row['steps']} steps · {'reached' if row['reached'] else 'not reached'}"
        for age, number, row in zip(ages, numbers, rows, strict=True)
    ]
    cache = render_states(played, atlas, style, spec)
    cache = overlaid(cache, played, style.env, labels, hud, card_frames)
    starts, lengths = cache.offsets[:-1].tolist(), np.diff(cache.offsets).tolist()
    table = {
        **{"age": ages, "attempt": numbers},
        **{name: [row[name] for row in rows] for name in ("seed", "steps", "return")},
        "reached": [row["reached"] for row in rows],
        "first_frame": [start + card_frames for start in starts],
        "frames": [length - card_frames for length in lengths],
        "card_frames": [card_frames] * len(rows),
    }
    chapters = tuple(map(Chapter, starts, lengths, labels))
    return LearningFilm(cache, chapters, table)


def play(
    learner: Learner, env: str, seed: int, attempts: int, spec: Spec = NO_SPEC
) -> Trajectories:
    """Return the first attempt at each of `attempts` reaches, for each checkpoint.

    All are kept, whether they reach or not; a row's `reach` is the number of the attempt, from 0.
    """
    environment, reaches = ENVIRONMENTS[env], np.arange(attempts)
    seeds = episode_seeds(seed, reaches, 0)
    parts, rows = [], []
    for rule in learner.rules:
        e = simulate_episodes(seeds, environment, RulePolicy(rule, 0.0))
        for i, steps in enumerate(e.steps.tolist()):
            parts.append((e.states[i, : steps + 1], e.actions[i, :steps], e.rewards[i, :steps]))
        rows.append(
            Attempts(
                reach=reaches,
                attempt=np.zeros(attempts, np.int64),
                seed=seeds,
                initial_position=e.states[:, 0, 0],
                steps=e.steps,
                return_=e.returns,
                terminated=e.terminated,
                truncated=e.truncated,
                reached=e.terminated,
            )
        )
    states, actions, rewards = map(np.concatenate, zip(*parts, strict=True))
    columns = zip(*(vars(part).values() for part in rows), strict=True)
    episodes = Attempts(*map(np.concatenate, columns))
    offsets = np.concatenate([[0], np.cumsum(episodes.steps + 1)])
    return Trajectories(offsets, states, actions, rewards, episodes, episodes, probe(), spec)


def write_film(path: str | os.PathLike, film: LearningFilm, title: str, spec: Spec) -> None:
    """Encode the film to an MP4 file with a chapter and a keyframe for each attempt.

    spec: with film.fps and view_encoder; the file keeps it.
    """
    spec.check_tool("ffmpeg", ffmpeg.version())
    fps, comment = spec.config["film.fps"], spec.extended(source=film.cache.source).text
    with replacing(path) as temporary:
        segment = temporary.with_suffix(".segment.mp4")
        encode_segment(film.cache, segment, fps, spec.config["view_encoder"], comment)
        join([segment], temporary, fps, title, comment, film.chapters)


def write_table(path: str | os.PathLike, film: LearningFilm) -> None:
    """Write the film's table as CSV."""
    import pandas as pd

    with replacing(path) as temporary:
        pd.DataFrame(film.table).to_csv(temporary, index=False, lineterminator="\n")

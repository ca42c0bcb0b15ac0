"""The film of learning: a learner's first attempts at each of its ages, title cards between them.

At every age the attempts start from the same resets, so that what differs is what was learned. What
a learner does at an age stands in ages, how pictures are looked up in render, and how a file is
encoded in segment and film.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from goalreel.environments.physics import ENVIRONMENTS, probe
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
from goalreel.simulation.episodes import simulate_episodes
from goalreel.simulation.trajectories import Attempts, Trajectories
from goalreel.views.learner_checkpoints import Ages


@dataclass(frozen=True)
class LearningFilm:
    """The film's frames and what is told of them.

    cache: the frames; an episode of it is a title card and then the attempt
    chapters: one per attempt, its card included
    table: columns of a row per attempt: age, attempt (from 1), seed, steps, return, reached,
    first_frame (the one that shows the reset state), frames (steps + 1), card_frames (those of the
    card, which end before first_frame)
    """

    cache: FrameCache
    chapters: tuple[Chapter, ...]
    table: dict[str, list]


def make_film(
    learner: Ages,
    atlas: Atlas,
    style: Style,
    seed: int,
    attempts: int,
    card_frames: int,
    hud: bool,
    spec: str = "{}",
) -> LearningFilm:
    """Play and render `attempts` episodes at each age of a learner.

    Attempt k starts as the first attempt at reach k - 1 of a film of root seed `seed` does. Raises
    GoalreelError if the learner or the atlas are of another environment.
    """
    env = json.loads(learner.spec).get("config", {}).get("env", style.env)
    if env != style.env:
        raise GoalreelError(f"the policies are of {env}, not of {style.env}; delete them")
    played = play(learner, style.env, seed, attempts, spec)
    rows = [played.episodes.row(i) for i in range(len(played))]
    ages = np.repeat(learner.ages, attempts).tolist()
    numbers = [row["reach"] + 1 for row in rows]
    labels = [
        f"After {learner.told(age)} · attempt {number} of {attempts} · "
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


def play(learner: Ages, env: str, seed: int, attempts: int, spec: str = "{}") -> Trajectories:
    """Return the first attempt at each of `attempts` reaches, greedily, from age to age.

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


def write_film(
    path: str | os.PathLike, film: LearningFilm, title: str, fps: int, encode: Mapping, comment: str
) -> None:
    """Encode the film to `path`, an MP4 file with a chapter and a keyframe for each attempt.

    encode: see video.encode_video. Raises GoalreelError as encode_segment and join.
    """
    with replacing(path) as temporary:
        segment = temporary.with_suffix(".segment.mp4")
        encode_segment(film.cache, segment, fps, encode, comment)
        join([segment], temporary, fps, title, comment, film.chapters)


def write_table(path: str | os.PathLike, film: LearningFilm) -> None:
    """Write the film's table as CSV."""
    import pandas as pd

    with replacing(path) as temporary:
        pd.DataFrame(film.table).to_csv(temporary, index=False, lineterminator="\n")

"""The film of learning: the first attempts of a learner at each checkpoint, between title cards.

At every checkpoint the attempts start from the same resets, so that all differences come from
training.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from goalreel.encoding.encoder_selection import card_frames
from goalreel.environments.seeding import episode_seeds
from goalreel.errors import pluralize
from goalreel.files.atomic import replacing
from goalreel.films.concatenate import Chapter, join
from goalreel.films.scene import Scene, open_scene
from goalreel.films.segment import encode_segment
from goalreel.policies.network_file import read_checkpoints
from goalreel.policies.parameters import MAX_FILMED_CHECKPOINTS
from goalreel.policies.policy import Policy, make_policy
from goalreel.provenance.spec import Spec
from goalreel.rendering.atlas import Atlas
from goalreel.rendering.captions import caption
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.overlay import add_overlay
from goalreel.rendering.title_cards import title_cards
from goalreel.simulation.episodes import EpisodeRecorder, simulate_episodes
from goalreel.simulation.reaches import assemble, to_batch
from goalreel.simulation.trajectories import Trajectories
from goalreel.views.attempt_frames import play_and_render

# Functions that make a learner's policies, by their decisions of training, increasing.
Learner = Mapping[int, Callable[[], Policy]]


def read_learner(policy: Mapping, trained: Path | None) -> Learner:
    """Read up to five checkpoints, spaced evenly up to that of the section `policy`."""
    saved = read_checkpoints(policy.get("file") or trained)
    places = np.linspace(0, saved.choose(policy["checkpoint"]), MAX_FILMED_CHECKPOINTS)
    steps = [saved.checkpoint_steps[n] for n in np.unique(places.round().astype(int))]
    return {step: partial(make_policy, {**policy, "checkpoint": step}, trained) for step in steps}


@dataclass(frozen=True)
class LearningFilm:
    """The frames of the film, its chapters and its table."""

    cache: FrameCache  # of the attempts, with title cards
    chapters: tuple[Chapter, ...]  # one per attempt, with its card
    # One row per attempt: checkpoint_step, attempt (from 1), seed, steps, return, the outcome,
    # first_frame (of the reset state), frames (steps + 1), card_frames (before first_frame).
    table: pd.DataFrame


@contextlib.contextmanager
def learning_film(learner: Learner, atlas: Atlas | None, spec: Spec) -> Iterator[LearningFilm]:
    """Yield the film of `train.attempts` episodes at each checkpoint.

    Attempt k starts like the first attempt at reach k - 1 of a film with the same root seed. Raises
    GoalreelError if the learner belongs to another environment.
    """
    config, scene = spec.config, open_scene(spec.config)
    env = scene.env.id
    attempts, success = config["train.attempts"], config["success"]
    # An attempt's label ends with its outcome, or with its return.
    template = "{steps} steps · {outcome}" if isinstance(success, str) else "return {return:g}"
    endings = ("terminated", "truncated") if success is None else ("reached",)
    play = partial(play_attempts, learner, scene, spec)
    with play_and_render(play, scene, atlas, spec) as (played, cache):
        rows = [played.episodes.row(i) for i in range(len(played))]
        table = pd.DataFrame({"checkpoint_step": np.repeat(list(learner), attempts)})
        table["attempt"] = played.episodes.attempt + 1
        table = table.join(pd.DataFrame(rows)[["seed", "steps", "return", *endings]])
        labels, texts = [], []
        for step, number, row in zip(table["checkpoint_step"], table["attempt"], rows, strict=True):
            after, which = f"After {pluralize(step, 'decision')}", f"ttempt {number} of {attempts}"
            result = caption(template, row, env, config["unit"])
            labels.append(" · ".join([after, *([f"a{which}"] if attempts > 1 else ()), result]))
            texts.append((env, after, f"A{which}", f"seed {row['seed']}"))
        overlay = labels, config["overlay.hud"], False, config["render.scale"]
        cache = add_overlay(cache, played, env, *overlay)
        cards = card_frames(config["overlay.title_card"], config["film.fps"])
        if cards:
            cache = replace(cache, titles=title_cards(cache.background.shape[:2], texts, cards))
        lengths = np.diff(cache.offsets)
        starts = cache.offsets[:-1] + cards * np.arange(1, len(cache.offsets))
        table = table.assign(first_frame=starts, frames=lengths, card_frames=cards)
        chapters = map(Chapter, (lengths + cards).tolist(), labels)
        yield LearningFilm(cache, tuple(chapters), table)


def play_attempts(
    learner: Learner, scene: Scene, spec: Spec, recorder: EpisodeRecorder | None = None
) -> Trajectories:
    """Return the first attempt at each of `train.attempts` reaches, for each checkpoint.

    All attempts are kept. `reach` is the index of the checkpoint, `attempt` the number from 0 on.
    """
    slots, batches = np.arange(spec.config["train.attempts"]), []
    seeds = episode_seeds(spec.config["seed"], slots, 0)
    for place, make in enumerate(learner.values()):
        scene = scene.with_policy(make())
        scene.policy.check(scene.env)
        episodes = simulate_episodes(seeds, scene.env, scene.policy, recorder=recorder)
        reaches, success = np.full(len(slots), place), spec.config["success"]
        batches.append(to_batch(reaches, slots, seeds, episodes, scene.env, success))
    return assemble(batches, spec, recorder)


def write_film(path: str | os.PathLike, film: LearningFilm, title: str, spec: Spec) -> None:
    """Encode the film to an MP4 file with a chapter and a keyframe for each attempt."""
    fps, comment = spec.config["film.fps"], spec.extended(source=film.cache.source).text
    with replacing(path) as temporary:
        segment = temporary.with_suffix(".segment.mp4")
        encode_segment(film.cache, segment, fps, spec.config["view_encoder"], comment)
        join([(segment, film.chapters)], temporary, fps, title, comment)

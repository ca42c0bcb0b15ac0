"""The film of learning: a learner's first attempts at each checkpoint, title cards between them.

At every checkpoint the attempts start from the same resets, so that what differs is what was
learned.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from goalreel.encoding.encoder_selection import card_frames
from goalreel.environments.seeding import episode_seeds
from goalreel.errors import GoalreelError, pluralize
from goalreel.files.atomic import replacing
from goalreel.films.concatenate import Chapter, join
from goalreel.films.scene import Scene, open_scene
from goalreel.films.segment import encode_segment
from goalreel.policies.network_file import Checkpoints, PixelCheckpoints, read_checkpoints
from goalreel.policies.parameters import MAX_FILMED_CHECKPOINTS
from goalreel.policies.policy import Policy, make_policy
from goalreel.provenance.spec import Spec
from goalreel.rendering.atlas import Atlas
from goalreel.rendering.captions import caption
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.overlay import add_overlay
from goalreel.simulation.episodes import EpisodeRecorder, simulate_episodes
from goalreel.simulation.reaches import assemble, to_batch
from goalreel.simulation.trajectories import Trajectories
from goalreel.views.attempt_frames import drawn


@dataclass(frozen=True)
class CheckpointPolicies:
    """What a learner does at each of its checkpoints."""

    checkpoint_steps: tuple[int, ...]  # of the checkpoints, in decisions of training, increasing
    policy: Callable[[int], Policy]  # of a checkpoint, by its step
    spec: Spec  # how it was trained


def read_learner(policy: Mapping, trained: Path | None) -> CheckpointPolicies:
    """Read up to five checkpoints that a trainer saved.

    Args:
        policy: its name and the checkpoint that is filmed last: `best`, `last` or its step; the
            others are spread evenly before it.
        trained: the file, None where the policy names it.

    Raises:
        GoalreelError: if the file cannot be used.
    """
    kind = Checkpoints if policy["name"] == "dqn" else PixelCheckpoints
    saved = read_checkpoints(policy.get("file") or trained, kind)
    places = (
        np.linspace(0, saved.choose(policy["checkpoint"]), MAX_FILMED_CHECKPOINTS)
        .round()
        .astype(int)
    )
    steps = tuple(saved.checkpoint_steps[place] for place in np.unique(places))
    return CheckpointPolicies(
        steps, lambda step: make_policy({**policy, "checkpoint": step}, trained), saved.spec
    )


@dataclass(frozen=True)
class LearningFilm:
    """The film's frames and what is said of them."""

    cache: FrameCache  # each episode is a title card and then the attempt
    chapters: tuple[Chapter, ...]  # one per attempt, its card included
    # A row per attempt: checkpoint_step, attempt (from 1), seed, steps, return, how it
    # ended, first_frame (the one that shows the reset state), frames (steps + 1), card_frames
    # (those of the card, which end before first_frame).
    table: pd.DataFrame


@contextlib.contextmanager
def learning_film(
    learner: CheckpointPolicies, atlas: Atlas | None, spec: Spec
) -> Iterator[LearningFilm]:
    """Yield the film of `train.attempts` episodes at each checkpoint, played in the run's way.

    Attempt k starts as the first attempt at reach k - 1 of a film of the same root seed does.

    Args:
        learner: who plays.
        atlas: the pictures, where the environment has an atlas.
        spec: with what the stage `training_progress` has in the table of stages.

    Raises:
        GoalreelError: if the learner or the atlas are of another environment.
    """
    config, scene = spec.config, open_scene(spec.config)
    env = scene.env.id
    trained_in = learner.spec.config.get("env", env)
    if trained_in != env:
        raise GoalreelError(f"the policies are of {trained_in}, not of {env}")
    attempts, success = config["train.attempts"], config["success"]
    # What is said of an attempt: whether it got there, or what it was worth.
    template = "{steps} steps · {outcome}" if isinstance(success, str) else "return {return:g}"
    endings = ("terminated", "truncated") if success is None else ("reached",)
    game = partial(play, learner, scene, spec)
    with drawn(game, scene, config["render"], atlas, spec) as (played, cache):
        rows = [played.episodes.row(i) for i in range(len(played))]
        table = pd.DataFrame({"checkpoint_step": np.repeat(learner.checkpoint_steps, attempts)})
        table["attempt"] = played.episodes.attempt + 1
        table = table.join(pd.DataFrame(rows)[["seed", "steps", "return", *endings]])
        labels = []
        for step, number, row in zip(table["checkpoint_step"], table["attempt"], rows, strict=True):
            which = f" · attempt {number} of {attempts}" if attempts > 1 else ""
            result = caption(template, row, env, config["unit"])
            labels.append(f"After {pluralize(step, 'decision')}{which} · {result}")
        cards = card_frames(config["overlay.title_card"], config["film.fps"])
        seen = labels, config["overlay.hud"], cards, config["render"]["scale"]
        cache = add_overlay(cache, played, env, *seen)
        starts, lengths = cache.offsets[:-1], np.diff(cache.offsets)
        table = table.assign(first_frame=starts + cards, frames=lengths - cards, card_frames=cards)
        chapters = map(Chapter, lengths.tolist(), labels)
        yield LearningFilm(cache, tuple(chapters), table)


def play(
    learner: CheckpointPolicies, scene: Scene, spec: Spec, recorder: EpisodeRecorder | None = None
) -> Trajectories:
    """Return the first attempt at each of `train.attempts` reaches, for each checkpoint.

    All are kept; a row's `reach` is the checkpoint's place, and its `attempt` the number, from 0.
    """
    slots, batches = np.arange(spec.config["train.attempts"]), []
    seeds = episode_seeds(spec.config["seed"], slots, 0)
    for place, step in enumerate(learner.checkpoint_steps):
        scene = scene.with_policy(learner.policy(step))
        scene.policy.check(scene.env)
        episodes = simulate_episodes(seeds, scene.env, scene.policy, recorder=recorder)
        reaches, success = np.full(len(slots), place), spec.config["success"]
        batches.append(to_batch(reaches, slots, seeds, episodes, scene.env, success))
    return assemble(batches, spec, recorder)


def write_film(path: str | os.PathLike, film: LearningFilm, title: str, spec: Spec) -> None:
    """Encode the film to an MP4 file with a chapter and a keyframe for each attempt.

    spec: with film.fps and view_encoder; the file keeps it.
    """
    fps, comment = spec.config["film.fps"], spec.extended(source=film.cache.source).text
    with replacing(path) as temporary:
        segment = temporary.with_suffix(".segment.mp4")
        encode_segment(film.cache, segment, fps, spec.config["view_encoder"], comment)
        join([(segment, film.chapters)], temporary, fps, title, comment)

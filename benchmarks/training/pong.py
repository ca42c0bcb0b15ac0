"""Trainings on Pong as rows of a table: what all of them share, and those of goalreel."""

import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from unittest import mock

import yaml

from benchmarks.harness import ROOT, Stopwatch

GAME, STICKY = "ALE/Pong-v5", 0.25  # of all trainings on Pong
LATEST = 20  # games whose mean return is that of a training


def config_of(env: str, env_kwargs: Mapping, **options) -> dict:
    """Return the configuration of target `train`, with `options` of its section."""
    from goalreel.training.settings import with_defaults

    section = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))["train"]
    config = {"env": env, "env_kwargs": dict(env_kwargs), "env_wrappers": []}
    return config | {"max_episode_steps": None, "train": with_defaults(section | options, env)}


class _Stopped(Exception):  # noqa: N818
    """The training need not go on."""


def goalreel(clock: Stopwatch, **options) -> None:
    """Train on Pong as target `train` does, without its evaluations, as long as `clock.going`.

    It gets the decisions so far, the returns of the first process's latest games, and a function
    from stacks to actions. `options` are of the section `train`.
    """
    import torch

    from goalreel.training import session, training
    from goalreel.training.processes import Group

    def checked(kind: type) -> type:
        class Checked(kind):
            returns: tuple[float, ...] = ()

            @torch.no_grad()
            def act(self, stacks):
                stacks = torch.from_numpy(self._envs.sized(stacks))
                return self.network(stacks)[0].argmax(1).numpy()

            def iterate(self, done: int) -> list:
                if not clock.going(done, self.returns, self.act):
                    if torch.distributed.is_initialized():  # so that the other processes end
                        torch.distributed.destroy_process_group()
                    raise _Stopped
                games = super().iterate(done)
                self.returns = (*self.returns, *(game.return_ for game in games))[-LATEST:]
                return games

        return Checked

    def timed_sum(group: Group, values):
        began = time.perf_counter()
        values = group_sum(group, values)
        clock.waited += time.perf_counter() - began
        return values

    group_sum = Group.sum
    never = {"eval_freq": 10**9, "checkpoints": []}
    config = config_of(GAME, {"repeat_action_probability": STICKY}, **never | options)
    with (
        mock.patch.object(session, "Dqn", checked(session.Dqn)),
        mock.patch.object(session, "Ppo", checked(session.Ppo)),
        mock.patch.object(Group, "sum", timed_sum),
        tempfile.TemporaryDirectory() as folder,
        suppress(_Stopped),
    ):
        training.train(config, Path(folder, "checkpoint.pt"))

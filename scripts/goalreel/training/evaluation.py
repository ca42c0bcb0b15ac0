"""Evaluate a network in a training: greedy games from seeds that are the same each time."""

from dataclasses import dataclass

import numpy as np
import torch

from goalreel.policies.torch_network import TorchNetwork
from goalreel.training.envs import EndedGame, Task
from goalreel.training.processes import Group
from goalreel.training.settings import Settings
from goalreel.training.tasks import make_envs

_SEED = 10_000  # a training uses hashes of its own seed


@dataclass(frozen=True)
class Evaluation:
    """The greedy games with the weights of a checkpoint."""

    checkpoint_step: int  # decisions
    seconds: float  # of training before the checkpoint
    games: list[EndedGame]

    def mean(self, name: str) -> float:
        """Return the mean of an attribute of the games."""
        return sum(getattr(game, name) for game in self.games) / len(self.games)

    def means(self) -> dict[str, float]:
        """Return the means with Stable-Baselines3's names."""
        names = {"ep_rew_mean": "return_", "ep_len_mean": "steps"}
        names |= {"distance_mean": "distance", "success_rate": "success"}
        return {name: self.mean(own) for name, own in names.items()}


@torch.no_grad()
def evaluate(network: TorchNetwork, task: Task, settings: Settings, group: Group) -> list:
    """Return the finished games of an evaluation, the same for any number of processes.

    They start from the environment's reset. Each process plays its share of the games, one in each
    environment, and steps only those that have not ended.
    """
    settings = Settings(**vars(settings) | {"starts": "reset"})
    indices = group.share(settings.n_eval_episodes)
    playing = {n: make_envs(task, settings, _SEED, range(n, n + 1)) for n in indices}
    device, games = next(network.parameters()).device, {}
    while playing:
        obs = np.concatenate([envs.obs for envs in playing.values()])
        actions = network(torch.from_numpy(obs).to(device))[0].argmax(1).cpu().numpy()
        for number, action in zip(list(playing), actions[:, None], strict=True):
            step = playing[number].step(action)
            if step.ended:
                games[number] = step.ended[0]
                playing.pop(number).close()
    return [game for part in group.gather(games) for game in part.values()]

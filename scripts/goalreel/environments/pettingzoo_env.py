"""A PettingZoo environment as a Gymnasium environment that takes the actions of all agents."""

from importlib import import_module

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv
from pettingzoo.utils.conversions import aec_to_parallel, turn_based_aec_to_parallel


class PettingZooEnv(gymnasium.Env):
    """The environment that a function of a module returns, such as `parallel_env` or `env`.

    Observations are a dict by agent, with the last observation of an agent that has left. An action
    has a row for each of `possible_agents`. Only agents that have not left play theirs, and in a
    turn-based game only the agent whose turn it is. The reward is the sum of all agents' rewards,
    and `info["columns"]` has the return of each. An episode ends when all agents have left.
    """

    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, module: str, function: str, render_mode: str | None = None, **kwargs):
        game = getattr(import_module(module), function)(render_mode=render_mode, **kwargs)
        if isinstance(game, AECEnv):
            is_parallel = game.metadata.get("is_parallelizable")
            game = (aec_to_parallel if is_parallel else turn_based_aec_to_parallel)(game)
        self.game, self.metadata, self.render_mode = game, game.metadata, render_mode
        agents = game.possible_agents
        # Pairs, because Gymnasium sorts a dict.
        self.observation_space = spaces.Dict([(a, game.observation_space(a)) for a in agents])
        self.action_space = _joint_space([game.action_space(agent) for agent in agents])

    def reset(self, *, seed: int | None = None, options=None) -> tuple[dict, dict]:
        """Start an episode, and return the observations by agent."""
        self._observations, _ = self.game.reset(seed=seed, options=options)
        self._returns = {f"return_{agent}": 0.0 for agent in self.game.possible_agents}
        return self._observations, {}

    def step(self, action: np.ndarray) -> tuple[dict, float, bool, bool, dict]:
        """Play an action for each of `possible_agents`, in order."""
        pairs = zip(self.game.possible_agents, action, strict=True)
        played = {agent: chosen for agent, chosen in pairs if agent in self.game.agents}
        observations, rewards, *endings, _ = self.game.step(played)
        self._observations = self._observations | observations
        for agent, reward in rewards.items():
            self._returns[f"return_{agent}"] += float(reward)
        ended = [not self.game.agents and any(flags.values()) for flags in endings]
        return self._observations, sum(rewards.values()), *ended, {"columns": {**self._returns}}

    def render(self) -> np.ndarray:
        """Return the frame of the game."""
        return self.game.render()

    def close(self) -> None:
        """Close the game."""
        self.game.close()


def _joint_space(parts: list[spaces.Space]) -> spaces.Space:
    """Return a space with a row for each agent. Raises ValueError if their actions differ."""
    if all(isinstance(part, spaces.Discrete) for part in parts):
        return spaces.MultiDiscrete([p.n for p in parts], start=[p.start for p in parts])
    if all(isinstance(part, spaces.Box) and part.shape == parts[0].shape for part in parts):
        bounds = (np.stack([getattr(part, bound) for part in parts]) for bound in ("low", "high"))
        return spaces.Box(*bounds, dtype=np.result_type(*(part.dtype for part in parts)))
    raise ValueError(f"Agents need Discrete actions, or Box actions of one shape, not {parts}.")

"""The options of a training, and their presets by environment, without PyTorch."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import yaml


class Settings(SimpleNamespace):
    """The options of `configuration.options.Train`, which describes them, without `null`."""

    autocast = True  # whether to compute in bfloat16 where the processor or the GPU can

    @property
    def checkpoint_steps(self) -> list[int]:
        """The decisions after which the weights are evaluated, increasing."""
        every = range(self.eval_freq, self.total_timesteps, self.eval_freq)
        kept = (step for step in self.checkpoints if step < self.total_timesteps)
        return sorted({*every, *kept, self.total_timesteps})

    def epsilon(self, decisions: int) -> float:
        """Return the share of random actions after a number of decisions."""
        last = max(round(self.exploration_fraction * self.total_timesteps), 1)
        return 1.0 + min(decisions / last, 1.0) * (self.exploration_final_eps - 1.0)

    def remaining(self, decisions: int) -> float:
        """Return the factor of learning rate and entropy bonus: it falls from 1 to 0.02."""
        return max(1.0 - decisions / self.total_timesteps, 0.02)


@cache
def read_presets() -> dict:
    """Return presets.yaml."""
    return yaml.safe_load(Path(__file__).with_name("presets.yaml").read_bytes())


def with_defaults(section: Mapping, env: str) -> dict:
    """Return a section `train` with presets for `null`, except the other algorithm's options."""
    name, file = env.rpartition(":")[2], read_presets()
    presets = next(found for prefix, found in file["presets"].items() if name.startswith(prefix))
    first, *others = [file["mountain_car_from_frames"]] if section.get("pixels") else presets
    algorithm = section.get("algorithm") or first["algorithm"]
    preset = next((preset for preset in (first, *others) if preset["algorithm"] == algorithm), None)
    if preset is None:
        cores = first.get("processes", 1) * first.get("threads", 1)
        split = "processes" if algorithm == "ppo" else "threads"
        preset = {"frame_skip": first.get("frame_skip", 1), split: cores, "algorithm": algorithm}
    values = file["shared"] | file["defaults"][algorithm] | preset
    total = section.get("total_timesteps") or values["total_timesteps"]
    values["checkpoints"] = [0, total // 8, total // 4, total // 2]  # networks change early on
    return {n: values.get(n) if value is None else value for n, value in section.items()}

"""A run: its configuration and the values of stages. The Snakefile imports this: no NumPy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import getitem

from goalreel.encoding.encoder_selection import EncoderChoice, cards, choose, x264
from goalreel.environments.gymnasium_ids import is_mujoco
from goalreel.environments.registry import EnvTraits, describe
from goalreel.policies.parameters import policy_label

CHOICES = ("episodes", "reaches", "seeds")  # options that select what to play
# A shard of episodes that are played without frames holds so many times those of the film.
_PLAYED_FACTOR = 40
# Scopes of jobs: those of a shard, and those of all episodes that are played without frames.
SHARDED, PLAYED = ("shard", "played_shard"), ("played_shard", "played")
_MAX_SEEDS = 4000  # in the spec of a job; Linux limits an argument to 128 kB


@dataclass(eq=False)
class Run:
    """The view that the table of stages has of a configuration."""

    config: Mapping  # complete

    @property
    def unit(self) -> str:
        """The unit of the film: "reach" or "episode"."""
        return "reach" if self.config["reaches"] is not None else "episode"

    @cached_property
    def seeds(self) -> Sequence[int] | None:
        """The seeds that the user chose, None for seeds derived from the root seed."""
        chosen = self.config["seeds"]
        if isinstance(chosen, str):
            first, last = map(int, chosen.split("-"))
            return range(first, last + 1)
        return chosen

    @property
    def played(self) -> int:
        """The number of episodes, or of reaches, of which `film.select` chooses."""
        if self.seeds is not None:
            return len(self.seeds)
        return self.config["reaches" if self.unit == "reach" else "episodes"]

    @property
    def select(self) -> Sequence[int] | Mapping | None:
        """The selection of the episodes to film, None for all."""
        return self.config["film"]["select"]

    @property
    def count(self) -> int:
        """The number of episodes, or of reaches, in the film; the most if some may not exist."""
        if self.select is None:
            return self.played
        if not isinstance(self.select, Mapping):
            return len(self.select)
        if "every" in self.select:
            return -(-self.played // self.select["every"])
        return min(self.played, *(k for key, k in self.select.items() if key != "by"))

    def size(self, scope: str) -> int:
        """Return the number of episodes, or reaches, in a shard of a scope."""
        if scope not in PLAYED:
            # A shard has at least one episode, and of these kinds there may be only one.
            may_lack = isinstance(self.select, Mapping) and {"failed", "clusters"} & {*self.select}
            size = self.count if may_lack else self.config["shard_size"]
            return size if self.seeds is None or self.select else min(size, _MAX_SEEDS)
        size = self.config["shard_size"] * _PLAYED_FACTOR
        return size if self.seeds is None else min(size, _MAX_SEEDS)

    def total(self, scope: str) -> int:
        """Return the number of episodes, or reaches, of all jobs of a scope."""
        return self.played if scope in PLAYED else self.count

    def shards(self, scope: str = "shard") -> int:
        """Return the number of shards of a scope."""
        return -(-self.total(scope) // self.size(scope))

    @cached_property
    def env(self) -> EnvTraits:
        """The traits of the environment."""
        return describe(self.config["env"])

    @cached_property
    def encoder(self) -> EncoderChoice:
        """How the film is encoded."""
        return choose(self.config)

    @property
    def policy(self) -> str:
        """The name of the policy."""
        return self.config["policy"]["name"]

    @property
    def player(self) -> str:
        """The stage in which the policy plays."""
        return "simulate" if self.select is None else "play"

    def covered(self, scope: str) -> int:
        """Return the number of episodes, or reaches, that a job of a scope covers at most."""
        total = self.total(scope)
        return min(self.size(scope), total) if scope in SHARDED else total

    def value(self, key: str) -> object:
        """Return the value of a key: a dotted option, or a derived value."""
        if key in self._derived:
            return self._derived[key]
        return reduce(getitem, key.split("."), self.config)

    @property
    def has_poses(self) -> bool:
        """Whether trajectories hold what MuJoCo draws, so that frames need no step."""
        is_plain = not (self.env.computed or self.config["env_wrappers"])
        return is_plain and is_mujoco(self.config["env"])

    @cached_property
    def _derived(self) -> dict[str, object]:
        policy, frames = self.config["policy"], cards(self.config, self.encoder)
        card = frames - self.encoder.assembled  # without the empty track, see `cards`
        derived = {
            "film_encoder": self.encoder.settings,
            "view_encoder": x264(self.config),
            "card_frames": frames,
            # Without title cards, no segment depends on the number of episodes.
            "title_card": card
            and {"frames": card, "policy": policy_label(policy), "count": self.played},
            # Its film is not part of the training.
            "train": {k: v for k, v in self.config["train"].items() if k != "attempts"},
            "learner": {k: policy[k] for k in ("name", "checkpoint", "file") if k in policy},
            "unit": self.unit,
            "played_opengl": None if self.has_poses else self.config["render"]["opengl"],
            # Pairs, because JSON would sort the names.
            "compare": [list(side) for side in (self.config["compare"] or {}).items()],
        }
        success = self.config["success"]
        if success is None and (self.unit == "reach" or self.env.is_mountain_car):
            success = "terminated"
        derived["success"] = None if self.unit == "episode" else success
        derived["success_criterion"] = success
        if self.select is not None:
            chosen = {"select": self.select, "success": success, "played": self.played}
            derived["selection"] = chosen
        if self.env.computed:
            derived["check_determinism"] = True  # goalreel's own environments need no check
        return derived

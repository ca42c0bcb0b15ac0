"""A session of a training, in one of its processes, saved every `_SAVE_EVERY` seconds."""

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch

from goalreel.cli import say
from goalreel.errors import OptionError
from goalreel.policies.torch_network import TorchNetwork, weights_for_acting
from goalreel.training.checkpoint import FREE, read_checkpoint, write_checkpoint
from goalreel.training.dqn import Dqn
from goalreel.training.envs import EndedGame, Task
from goalreel.training.ppo import Ppo, initialize
from goalreel.training.processes import Group
from goalreel.training.progress import EVERY, Progress
from goalreel.training.settings import Settings
from goalreel.training.tasks import make_envs, make_task

_RECENT = 100  # finished games of a process whose means are shown
_SAVE_EVERY = 600.0  # seconds
_MAX_STEPS = 200_000  # of an episode, as in films
_EVALUATION_SEED = 10_000  # a training uses hashes of its own seed


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


@dataclass
class Record:
    """The progress of a training so far, equal in all processes but for `rows`."""

    decisions: int = 0
    seconds: float = 0.0  # with evaluations
    cpu_seconds: float = 0.0  # of all processes
    updates: int = 0
    sessions: int = 0
    evaluations: list[Evaluation] = field(default_factory=list)
    # Weights by decisions: of the chosen checkpoints, the best and the latest.
    kept: dict[int, Mapping[str, np.ndarray]] = field(default_factory=dict)
    rows: list[list] = field(default_factory=list)  # of the table, in the first process

    @property
    def best(self) -> Evaluation:
        """The evaluation with the highest mean return, the earliest of equal ones."""
        return max(self.evaluations, key=lambda evaluation: evaluation.mean("return_"))

    def state(self) -> dict:
        """Return plain values and tensors."""
        kept = {step: _changed(weights, torch.from_numpy) for step, weights in self.kept.items()}
        return asdict(self) | {"kept": kept}

    @classmethod
    def of(cls, state: Mapping) -> "Record":
        """Return the record of a state."""
        kept = {step: _changed(w, torch.Tensor.numpy) for step, w in state["kept"].items()}
        evaluations = [
            Evaluation(**values | {"games": [EndedGame(**game) for game in values["games"]]})
            for values in state["evaluations"]
        ]
        return cls(**state | {"kept": kept, "evaluations": evaluations})


def _changed(weights: Mapping, change) -> dict:
    return {name: change(array) for name, array in weights.items()}


class Session:
    """One session of a process, whose `run` is called once."""

    def __init__(self, group: Group, config: Mapping, saved: Path, code: Mapping[str, str]):
        """Make the task and the algorithm, and restore them if there is a checkpoint."""
        # Raises GoalreelError if the settings are wrong, or if the checkpoint is of others.
        self.settings = settings = Settings(**config["train"])
        self.task = task = make_task(config, settings)
        self._group, self._saved, self.record = group, saved, Record()
        self._identity = {k: v for k, v in config.items() if k != "train"} | dict(code)
        self._identity |= {f"train.{k}": v for k, v in vars(settings).items() if k not in FREE}
        state = None
        if saved.exists():
            state, parts = read_checkpoint(saved, self._identity)
            self.record = Record.of(state["record"])
            if group.rank == 0:
                say(f"{saved}: resumed after {self.record.decisions:,} decisions")
        self.record.sessions += 1
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.network = _network(task, settings).to(device)
        if not self.network.is_own:
            self.network.to(memory_format=torch.channels_last)
        half = settings.autocast and task.is_pixels and computes_in_half(device)
        # Others in each session, so that a resumed training does not play the same games.
        seeds = np.random.SeedSequence([settings.seed, self.record.sessions]).generate_state(2)
        self._envs = make_envs(task, settings, int(seeds[0]), group.share(settings.n_envs))
        self._algorithm = (Dqn if settings.algorithm == "dqn" else Ppo)(
            *(settings, self.network, self._envs, group, int(seeds[1]) + group.rank),
            torch.bfloat16 if half else torch.float32,
        )
        if state:
            self.network.load_state_dict(state["network"])
            self._algorithm.optimizer.load_state_dict(state["optimizer"])
            self._algorithm.load(parts[group.rank]["algorithm"])
            self._envs.load(parts[group.rank]["envs"])
        past = [evaluation.checkpoint_step for evaluation in self.record.evaluations]
        self._due = [s for s in settings.checkpoint_steps if s > max(past, default=-1)]
        self._games: list[EndedGame] = []  # the latest ones

    def run(self, asked: list[str]) -> bool:
        """Train to the end; return False if the first process's `asked` got a signal's name."""
        record, first = self.record, self._group.rank == 0
        self._began = time.monotonic() - record.seconds
        self._cpu = record.cpu_seconds / self._group.size - time.process_time()
        self._logged, written = (record.seconds, record.decisions), time.monotonic()
        total, table = self.settings.total_timesteps, self._saved.with_name("progress.csv")
        progress = Progress(record.rows, total, table) if first else None
        with closing(self._envs):
            self._evaluate(progress)
            while record.decisions < total and not self._is_solved():
                games = self._algorithm.iterate(record.decisions)
                self._games = [*self._games, *games][-_RECENT:]
                record.decisions += self._algorithm.decisions
                self._envs.exchange(self._group)
                now = time.monotonic()
                record.seconds = now - self._began
                # The first process decides for all.
                is_due = [record.seconds - self._logged[0] > EVERY, now - written > _SAVE_EVERY]
                flags = torch.tensor([bool(asked), *is_due], dtype=torch.float32) * first
                stop, log, save = self._group.sum(flags).tolist()
                if stop:
                    return False
                if not self._evaluate(progress) and log:
                    self._log(progress)
                if save:
                    if said := self.save():
                        say(said.strip())
                    written = now
        return True

    def _is_solved(self) -> bool:
        threshold, evaluations = self.settings.reward_threshold, self.record.evaluations
        is_known = threshold is not None and evaluations
        return bool(is_known) and evaluations[-1].mean("return_") >= threshold

    def _evaluate(self, progress: Progress | None) -> bool:
        """Evaluate the weights if a checkpoint is due, and keep them; return whether it was."""
        record, settings = self.record, self.settings
        passed = [step for step in self._due if step <= record.decisions]
        if not passed:
            return False
        self._due, last = self._due[len(passed) :], passed[-1]
        seconds, games = record.seconds, evaluate(self.network, self.task, settings, self._group)
        dueling = settings.algorithm == "dqn" and settings.dueling
        weights = weights_for_acting(self.network, dueling)
        # An iteration may pass several checkpoints.
        for step in {*passed} & {*settings.checkpoints, last}:
            record.evaluations.append(Evaluation(step, seconds, games))
            record.kept[step] = weights
        record.evaluations.sort(key=lambda evaluation: evaluation.checkpoint_step)
        needed = {*settings.checkpoints, record.best.checkpoint_step, last}
        record.kept = {step: weights for step, weights in record.kept.items() if step in needed}
        record.seconds = time.monotonic() - self._began
        self._log(progress, record.evaluations[-1])
        return True

    def _log(self, progress: Progress | None, evaluation: Evaluation | None = None) -> None:
        """Write a row of the table, with the means of all processes."""
        record, algorithm = self.record, self._algorithm
        cpu = torch.tensor([self._cpu + time.process_time()], dtype=torch.float64)
        record.cpu_seconds = self._group.sum(cpu).item()
        games = sum(self._group.gather(self._games), [])
        (seconds, decisions), record.updates = self._logged, algorithm.updates
        self._logged = record.seconds, record.decisions
        rate = (record.decisions - decisions) / max(record.seconds - seconds, 1e-9)
        figures = {
            **{"time/total_timesteps": record.decisions, "time/time_elapsed": record.seconds},
            **{"time/cpu_seconds": record.cpu_seconds, "time/fps": rate},
            "train/learning_rate": algorithm.optimizer.param_groups[0]["lr"],
            "train/n_updates": algorithm.updates,
            **{f"train/{name}": value for name, value in algorithm.figures.items()},
            **self._envs.figures(),
        }
        if games:
            latest = Evaluation(0, 0.0, games).means()
            figures |= {f"rollout/{name}": mean for name, mean in latest.items()}
        if evaluation:
            figures |= {f"eval/{name}": mean for name, mean in evaluation.means().items()}
        if self.settings.algorithm == "dqn":
            figures["rollout/exploration_rate"] = self.settings.epsilon(record.decisions)
        if progress:
            progress.take(figures)

    def save(self) -> str:
        """Save the training with all processes, and return the last line of a message."""
        record = self.record
        part = {"algorithm": self._algorithm.state(), "envs": self._envs.state()}
        parts = self._group.gather_to_first(part)
        if not (parts and record.decisions):
            return ""
        state = {"record": record.state(), "network": self.network.state_dict()}
        state |= {"optimizer": self._algorithm.optimizer.state_dict()}
        done = f"{record.decisions:,} of {self.settings.total_timesteps:,} decisions"
        try:
            write_checkpoint(self._saved, self._identity, state, parts)
        except OSError as error:  # what stopped the training matters more
            return f"\n  Not saved after {done}. {self._saved}: {error}"
        return f"\n  Saved after {done} in {self._saved}. Run the same command to resume."


@torch.no_grad()
def evaluate(network: TorchNetwork, task: Task, settings: Settings, group: Group) -> list:
    """Return the greedy games of an evaluation, the same for any number of processes."""
    # Each process plays its share of the games, from resets, one in each environment.
    settings = Settings(**vars(settings) | {"starts": "reset"})
    indices = group.share(settings.n_eval_episodes)
    playing = {n: make_envs(task, settings, _EVALUATION_SEED, range(n, n + 1)) for n in indices}
    device, games, steps = next(network.parameters()).device, {}, 0
    while playing:
        if (steps := steps + settings.frame_skip) > _MAX_STEPS:
            problem = f"An episode of an evaluation has not ended after {_MAX_STEPS:,} steps"
            raise OptionError("max_episode_steps", f"{problem}. Set it to limit their length.")
        obs = np.concatenate([envs.obs for envs in playing.values()])
        actions = network(torch.from_numpy(obs).to(device))[0].argmax(1).cpu().numpy()
        for number, action in zip(list(playing), actions[:, None], strict=True):
            step = playing[number].step(action)
            if step.ended:
                games[number] = step.ended[0]
                playing.pop(number).close()
    return [game for part in group.gather(games) for game in part.values()]


def _network(task: Task, settings: Settings) -> TorchNetwork:
    """Return a network with random weights, the same for the same seed."""
    network = settings.network or ("nature" if task.is_pixels else [64, 64])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        made = TorchNetwork(task.shape, task.num_actions, network, task.low, task.high)
        if settings.algorithm == "ppo":
            initialize(made)
    return made


def computes_in_half(device: torch.device) -> bool:
    """Return whether a device has instructions for half precision, instead of emulating it."""
    abilities = torch.cpu.get_capabilities()  # "avx512_bf16", "amx_bf16" and such
    return device.type != "cpu" or any(has for name, has in abilities.items() if "bf16" in name)

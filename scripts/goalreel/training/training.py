"""Train a policy: start or resume a training, evaluate it, save it if it stops, write its results.

Every `_SAVE_EVERY` seconds, and if SIGINT, SIGTERM or an error stops it, a training is saved. The
next training with the same settings and code resumes it.
"""

import os
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from goalreel.cli import say
from goalreel.errors import Stopped
from goalreel.files.atomic import write_text
from goalreel.policies.network_file import Checkpoints, write_checkpoints
from goalreel.policies.torch_network import TorchNetwork, weights_for_acting
from goalreel.provenance.spec import Spec
from goalreel.training import ppo
from goalreel.training.checkpoint import FREE, part_of, read_checkpoint, write_checkpoint
from goalreel.training.dqn import Dqn
from goalreel.training.envs import EndedGame, Task
from goalreel.training.evaluation import Evaluation, evaluate
from goalreel.training.processes import Group, interrupts, run_group
from goalreel.training.progress import EVERY, Progress, write_rows
from goalreel.training.settings import Settings
from goalreel.training.tasks import make_envs, make_task

_RECENT = 100  # finished games of a process whose means are shown
_SAVE_EVERY = 600.0  # seconds
_SAVED = ("decisions", "seconds", "cpu_seconds", "sessions", "waiting", "recent", "rows", "kept")


@dataclass(frozen=True)
class Trained:
    """The result of a training."""

    task: Task
    settings: Settings
    evaluations: list[Evaluation]
    best: Evaluation
    kept: Mapping[int, Mapping[str, np.ndarray]]  # weights by decisions
    rows: list[list]  # of the table
    figures: Mapping  # of metrics.json


def train(config: Mapping, saved: Path, code: str = "") -> Trained:
    """Train, or resume a training if its checkpoint exists.

    Args:
        config: env, env_kwargs, env_wrappers, max_episode_steps, and `train` without `null`.
        saved: the checkpoint of an unfinished training; its table and other parts are next to it.
        code: the fingerprint of the program, which a checkpoint must have.

    Raises:
        GoalreelError: the settings are wrong, the checkpoint does not match them, or a signal
            stopped the training. Other errors are raised after the training is saved.
    """
    size = config["train"]["processes"]
    with interrupts() as asked:
        # A list of names cannot be shared, and only the first process gets signals.
        return run_group(size, _train, dict(config), saved, code, asked)


def _train(group: Group, config: Mapping, saved: Path, code: str, asked: list) -> Trained:
    """Train as one process of a group."""
    torch.set_num_threads(1)  # the same weights for any number of cores
    session = _Session(group, config, saved, code)
    try:
        session.run(asked)
        if session.stopping:
            raise Stopped(f"Stopped by {asked[0] if asked else 'a signal'}.")
    except Stopped as stop:
        raise Stopped(f"{stop}{session.save()}") from None
    return session.result()


class _Session:
    """One session of a training, in one process of its group."""

    def __init__(self, group: Group, config: Mapping, saved: Path, code: str):
        self.settings = settings = Settings(**config["train"])
        self._group, self._saved = group, saved
        self._task = make_task(config, settings)
        self._identity = {k: v for k, v in config.items() if k != "train"} | {"code": code}
        self._identity |= {f"train.{k}": v for k, v in vars(settings).items() if k not in FREE}
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.manual_seed(settings.seed)
        task, network = self._task, settings.network
        if network is None:
            network = "nature" if task.is_pixels else [64, 64]
        values = task.shape, task.num_actions, network, task.low, task.high
        self._network = TorchNetwork(*values)
        if settings.algorithm == "ppo":
            ppo.initialize(self._network)
        self._network.to(device, memory_format=torch.channels_last)
        half = settings.autocast and task.is_pixels and computes_in_half(device)
        self.decisions, self.seconds, self.cpu_seconds, self.sessions = 0, 0.0, 0.0, 0
        self.evaluations: list[Evaluation] = []
        self.kept: dict[int, Mapping] = {}  # weights of the chosen checkpoints, best and latest
        self.recent: list[EndedGame] = []
        self.rows: list[list] = []
        self.stopping = False
        path, state = part_of(saved, group.rank), None
        if saved.exists():
            self.decisions, state = read_checkpoint(path, self._identity)
            for name in ("seconds", "cpu_seconds", "sessions", "rows"):
                setattr(self, name, state[name])
            self.kept = {step: _arrays(weights) for step, weights in state["kept"].items()}
            self.evaluations = [_evaluation(values) for values in state["evaluations"]]
            if group.rank == 0:
                say(f"{saved}: resumed after {self.decisions:,} decisions")
        self.sessions += 1
        # Another seed in each session, so that a resumed training does not play the same games.
        root = np.random.SeedSequence([settings.seed, self.sessions]).generate_state(2)
        self._envs = make_envs(task, settings, int(root[0]), group.share(settings.n_envs))
        kind = Dqn if settings.algorithm == "dqn" else ppo.Ppo
        seed = int(root[1]) + group.rank
        self._algorithm = kind(
            *(settings, self._network, self._envs, group, seed),
            torch.bfloat16 if half else torch.float32,
        )
        if state:
            self._network.load_state_dict(state["network"])
            self._algorithm.optimizer.load_state_dict(state["optimizer"])
            self._algorithm.load(state["algorithm"])
            if hasattr(self._envs, "load"):
                self._envs.load(state["envs"])
        self._due = [s for s in settings.checkpoint_steps if s > self._last_evaluated]

    @property
    def _last_evaluated(self) -> int:
        return self.evaluations[-1].checkpoint_step if self.evaluations else -1

    @property
    def best(self) -> Evaluation:
        """The evaluation with the highest score, the earliest of equal ones."""
        return max(self.evaluations, key=lambda evaluation: evaluation.score)

    def run(self, asked: list) -> None:
        """Train until the end, or until `asked` has the name of a signal in the first process."""
        self._began = self._logged = self._written = time.monotonic()
        self._before, self._cpu = self.seconds, self.cpu_seconds - _cpu_seconds()
        self._logged_decisions, first = self.decisions, self._group.rank == 0
        table, folder = self._saved.with_name("progress.csv"), self._saved.parent
        values = self.rows, self.settings.total_timesteps, table, folder
        progress = Progress(*values) if first else None
        with closing(self._envs):
            self._evaluate(progress)
            while self.decisions < self.settings.total_timesteps and not self._is_solved():
                games = self._algorithm.iterate(self.decisions)
                self.recent = [*self.recent, *games][-_RECENT:]
                self.decisions += self._algorithm.decisions
                if hasattr(self._envs, "exchange"):
                    self._envs.exchange(self._group)
                now = time.monotonic()
                self.seconds = self._before + now - self._began
                is_due = [now - self._logged > EVERY, now - self._written > _SAVE_EVERY]
                # The first process decides for all.
                flags = torch.tensor([bool(asked), *is_due], dtype=torch.float32) * first
                stop, log, save = self._group.sum(flags).tolist()
                evaluated = not stop and self._evaluate(progress)
                if log and not evaluated:
                    self._log(progress, now)
                if save and not stop:
                    self.save()
                    self._written = now
                if stop:
                    self.stopping = True
                    return

    def _is_solved(self) -> bool:
        threshold = self.settings.reward_threshold
        if threshold is None or not self.evaluations:
            return False
        return self.evaluations[-1].mean("return_") >= threshold

    def _evaluate(self, progress: Progress | None) -> bool:
        """Evaluate the weights if a checkpoint is due, and keep them; return whether it was."""
        passed = [step for step in self._due if step <= self.decisions]
        if not passed:
            return False
        self._due = self._due[len(passed) :]
        games = evaluate(self._network, self._task, self.settings, self._group)
        step = passed[-1]
        self.evaluations.append(Evaluation(step, self.seconds, games))
        dueling = self.settings.algorithm == "dqn" and self.settings.dueling
        self.kept[step] = weights_for_acting(self._network, dueling)
        needed = {*self.settings.checkpoints, self.best.checkpoint_step, step}
        self.kept = {step: weights for step, weights in self.kept.items() if step in needed}
        self._log(progress, time.monotonic())
        # The time of evaluations is part of the training's.
        return True

    def _log(self, progress: Progress | None, now: float) -> None:
        """Write a row of the table, with the means of all processes."""
        self.seconds = self._before + now - self._began
        cpu = torch.tensor([self._cpu + _cpu_seconds()], dtype=torch.float64)
        self.cpu_seconds = self._group.sum(cpu).item()
        recent = sum(self._group.gather(self.recent), [])
        means = Evaluation(0, 0.0, recent) if recent else None
        elapsed = max(now - self._logged, 1e-9)
        fps = (self.decisions - self._logged_decisions) / elapsed
        self._logged, self._logged_decisions = now, self.decisions
        figures = {"time/total_timesteps": self.decisions, "time/time_elapsed": self.seconds}
        figures |= {"time/cpu_seconds": self.cpu_seconds, "time/fps": fps}
        if means:
            names = {"return_": "ep_rew_mean", "steps": "ep_len_mean"}
            names |= {"distance": "distance_mean", "success": "success_rate"}
            figures |= {f"rollout/{own}": means.mean(name) for name, own in names.items()}
        if self.evaluations and self.evaluations[-1].checkpoint_step > self._shown_evaluation():
            latest = self.evaluations[-1]
            names = {"return_": "mean_reward", "distance": "mean_distance"}
            names |= {"success": "success_rate"}
            figures |= {f"eval/{own}": latest.mean(name) for name, own in names.items()}
            self._shown = latest.checkpoint_step
        rate = self._algorithm.optimizer.param_groups[0]["lr"]
        figures |= {"train/learning_rate": rate, "train/n_updates": self._algorithm.updates}
        figures |= {f"train/{name}": value for name, value in self._algorithm.figures.items()}
        if self.settings.algorithm == "dqn":
            figures |= {"rollout/exploration_rate": self.settings.epsilon(self.decisions)}
        figures |= getattr(self._envs, "figures", dict)()
        if progress:
            progress.take(figures)

    def _shown_evaluation(self) -> int:
        return getattr(self, "_shown", -1)

    def save(self) -> str:
        """Save this process's part, and return the last line of a message."""
        if not self.decisions:
            return ""
        state = {name: getattr(self, name) for name in ("seconds", "cpu_seconds", "sessions")}
        state |= {"rows": self.rows, "network": self._network.state_dict()}
        state |= {"optimizer": self._algorithm.optimizer.state_dict()}
        state |= {"algorithm": self._algorithm.state()}
        state |= {"kept": {step: _tensors(weights) for step, weights in self.kept.items()}}
        state |= {"evaluations": [asdict(evaluation) for evaluation in self.evaluations]}
        if hasattr(self._envs, "state"):
            state |= {"envs": self._envs.state()}
        path = part_of(self._saved, self._group.rank)
        done = f"{self.decisions:,} of {self.settings.total_timesteps:,} decisions"
        try:
            write_checkpoint(path, self._identity, self.decisions, state)
        except OSError as error:  # what stopped the training matters more
            return f"\n  Not saved after {done}. {path}: {error}"
        return f"\n  Saved after {done} in {self._saved}. Run the same command to resume."

    def result(self) -> Trained:
        """Return the result of a finished training."""
        best, decisions = self.best, self.decisions
        figures = {
            **{"decisions": decisions, "seconds": self.seconds, "cpu_seconds": self.cpu_seconds},
            **{"decisions_per_s": decisions / max(self.seconds, 1e-9)},
            **{"updates": self._algorithm.updates, "sessions": self.sessions},
            "best": best.checkpoint_step,
            "evaluations": [
                {
                    "decisions": evaluation.checkpoint_step,
                    "seconds": evaluation.seconds,
                    "returns": [game.return_ for game in evaluation.games],
                    "successes": _known(evaluation, "success"),
                    "distances": _known(evaluation, "distance"),
                }
                for evaluation in self.evaluations
            ],
        }
        values = self._task, self.settings, self.evaluations, best, self.kept, self.rows
        return Trained(*values, figures)


def _known(evaluation: Evaluation, name: str) -> list[float] | None:
    """Return an attribute of each game, None if the games do not tell it."""
    values = [getattr(game, name) for game in evaluation.games]
    return None if np.isnan(values).any() else values


def _arrays(weights: Mapping) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in weights.items()}


def _tensors(weights: Mapping) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in weights.items()}


def _evaluation(values: Mapping) -> Evaluation:
    games = [EndedGame(**game) for game in values["games"]]
    return Evaluation(values["checkpoint_step"], values["seconds"], games)


def computes_in_half(device: torch.device) -> bool:
    """Return whether a device has instructions for half precision, instead of emulating it."""
    abilities = torch.cpu.get_capabilities()  # "avx512_bf16", "amx_bf16" and such
    return device.type != "cpu" or any(has for name, has in abilities.items() if "bf16" in name)


def _cpu_seconds() -> float:
    return sum(os.times()[:2])


def write_results(policy: Path, table: Path, metrics: Path, trained: Trained, spec: Spec) -> str:
    """Write policy, table and metrics, and return a summary in a line."""
    task, settings, best = trained.task, trained.settings, trained.best
    means = {e.checkpoint_step: e.mean("return_") for e in trained.evaluations}
    steps, weights = zip(*sorted(trained.kept.items()), strict=True)
    own = {"env": task.config["env"], "actions": task.num_actions, "obs_shape": list(task.shape)}
    own |= {"frame_skip": settings.frame_skip, **task.preprocessing}
    is_own = isinstance(settings.network, str) and ":" in settings.network
    own |= {"module": settings.network if is_own else None}
    values = tuple(means[step] for step in steps)
    write_checkpoints(policy, Checkpoints(steps, values, weights, own, spec))
    write_rows(table, trained.rows)
    write_text(metrics, spec.extended(metrics=dict(trained.figures)).text + "\n")
    figures, successes = trained.figures, best.mean("success")
    success = "" if np.isnan(successes) else f", {successes:.0%} of them successes"
    return (
        f"{own['env']}: {figures['decisions']:,} decisions in {figures['seconds']:,.1f} s, "
        f"{figures['decisions_per_s']:,.0f}/s; best after {best.checkpoint_step:,} decisions and "
        f"{best.seconds:,.0f} s: mean return {best.mean('return_'):.1f} of {len(best.games)} greedy "
        f"games{success}"
    )


def remove_saved(saved: Path) -> None:
    """Delete the files of a finished training."""
    for path in (saved, *saved.parent.glob(f"{saved.stem}-*{saved.suffix}")):
        with suppress(FileNotFoundError):
            path.unlink()

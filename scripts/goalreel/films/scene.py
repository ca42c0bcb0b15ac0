"""Open the scene of a run, its environment and its policy, for every stage that plays."""

import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from goalreel.environments.drawing.mujoco_scene import renders_again
from goalreel.environments.environment import Environment, make_environment
from goalreel.environments.gymnasium_ids import environment_files
from goalreel.environments.wrappers import wrapper_modules
from goalreel.policies.parameters import RECORDED
from goalreel.policies.policy import Policy, RulePolicy, make_policy
from goalreel.policies.policy_dependencies import check_files, policy_files
from goalreel.provenance.spec import Spec
from goalreel.simulation.episodes import Episode, EpisodeRecorder
from goalreel.simulation.trajectories import Trajectories


@dataclass(frozen=True)
class Scene:
    """An environment and the policy that plays in it."""

    env: Environment  # with all wrappers
    policy: Policy | None  # None for recordings

    def with_policy(self, policy: Policy) -> "Scene":
        """Return the scene with this policy; in Mountain Car it may see frames."""
        if hasattr(self.env, "has_network"):
            self.env.has_network = not isinstance(policy, RulePolicy)
        if getattr(policy, "warp", None) is None:
            return Scene(self.env, policy)
        from goalreel.rendering.warped import with_network_view

        return Scene(with_network_view(self.env, policy.warp), policy)

    @renders_again
    def film(
        self,
        path: Path | None,
        play: Callable[[EpisodeRecorder | None], Trajectories],
        spec: Spec,
        success: str | float | None = None,
    ) -> Trajectories:
        """Play episodes, write the frames that Gymnasium renders, and return the trajectories.

        Without a path, `play` gets None instead of a recorder. With a `success` criterion, frames
        of failed episodes are not kept.
        """
        if path is None and not self.env.num_poses:
            return play(None)
        from goalreel.rendering.frame_recorder import check_first_episode, filming

        if path is None:
            played = play(None)
            rows = played.episodes
            ending = bool(rows.terminated[0]), bool(rows.truncated[0])
            episode = Episode(int(rows.seed[0]), *played.episode(0), *ending)
            if self.env.check:
                check_first_episode(self.env, episode, 0.0)
            return played

        with filming(path, self.env, success) as recorder:
            played = play(recorder)
            recorder.write(played.digest(), spec)
        return played


def open_scene(
    config: Mapping,
    policy: Path | Policy | None = None,
    max_step_seconds: int = 0,
    max_memory_mb: int = 0,
) -> Scene:
    """Return the scene of a configuration, without a policy if it has no section `policy`.

    `policy` is a policy file from another stage, or a policy to use instead of the section. The
    limits, 0 for none, are of a step, and of this process's data. Raises GoalreelError if the
    environment or the policy cannot be created.
    """
    if max_memory_mb:
        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (max_memory_mb * 10**6, most))
    scene, section = Scene(make_environment(config), None), config.get("policy")
    if hasattr(scene.env, "max_step_seconds"):  # Gymnasium steps it
        scene.env.max_step_seconds = max_step_seconds
    if section is None or section["name"] in RECORDED:
        return scene
    is_policy = policy is not None and not isinstance(policy, Path)
    return scene.with_policy(policy if is_policy else make_policy(section, policy))


def check_sources(spec: Spec, policy: Mapping) -> None:
    """Raise GoalreelError if a file of the section `policy`, or of the environment, changed."""
    # Recordings are skipped: a dataset is compared while it is played, a recording was imported.
    files = {} if policy["name"] in RECORDED else policy_files(policy)
    wrappers = wrapper_modules(spec.config.get("env_wrappers") or ())
    check_files(spec, files | environment_files(spec.config["env"], wrappers))

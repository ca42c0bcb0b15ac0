"""The scene: who plays, in what, seen by which recorder. Whatever plays episodes opens one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from goalreel.environments.environment import Environment, make_environment
from goalreel.environments.gymnasium_ids import environment_files
from goalreel.environments.wrappers import wrapper_modules
from goalreel.policies.parameters import RECORDED
from goalreel.policies.policy import Policy, make_policy
from goalreel.policies.policy_dependencies import check_files, policy_files
from goalreel.provenance.spec import Spec
from goalreel.simulation.episodes import EpisodeRecorder
from goalreel.simulation.trajectories import Trajectories


@dataclass(frozen=True)
class Scene:
    """An environment and the policy that plays in it."""

    env: Environment  # as the policy sees it
    policy: Policy | None  # None of a recording, which needs none

    def with_policy(self, policy: Policy) -> "Scene":
        """Return the scene with another policy. One of pixels sees them in a Mountain Car, too."""
        if not hasattr(policy, "warp"):
            return Scene(self.env, policy)
        from goalreel.rendering.warped import watched

        return Scene(watched(self.env, policy.warp), policy)

    def film(
        self,
        path: Path | None,
        play: Callable[[EpisodeRecorder | None], Trajectories],
        spec: Spec,
        success: str | float | None = None,
    ) -> Trajectories:
        """Play, and write the frames that Gymnasium draws meanwhile.

        Args:
            path: the frame cache to write, None to play without frames.
            play: plays the episodes, given what films them.
            spec: how the frames are made.
            success: what counts as reaching the goal, if other episodes are not kept.

        Returns:
            What `play` returns.
        """
        if path is None:
            return play(None)
        from goalreel.rendering.frame_recorder import filming

        with filming(path, self.env, success) as recorder:
            played = play(recorder)
            recorder.write(played.digest(), spec)
        return played


def open_scene(config: Mapping, given: Path | Policy | None = None) -> Scene:
    """Return the scene of a stage's configuration.

    Args:
        config: env, env_kwargs, env_wrappers, max_episode_steps and check, of which all but `env`
            may be missing, and the section `policy`; without it the scene has no policy yet.
        given: the file of a policy that a stage has made, or a policy to play in place of the
            section's.

    Raises:
        GoalreelError: the environment or the policy cannot be made.
    """
    scene, section = Scene(make_environment(config), None), config.get("policy")
    if section is None or section["name"] in RECORDED:
        return scene
    is_policy = given is not None and not isinstance(given, Path)
    return scene.with_policy(given if is_policy else make_policy(section, given))


def check_sources(spec: Spec, policy: Mapping) -> None:
    """Raise GoalreelError if a user's file is no longer what the workflow planned with.

    Args:
        spec: of a stage that plays.
        policy: the section of the policy that plays.
    """
    # What a dataset holds is compared with what is played, and a recording was read before.
    files = {} if policy["name"] in RECORDED else policy_files(policy)
    wrappers = wrapper_modules(spec.config.get("env_wrappers") or ())
    check_files(spec, files | environment_files(spec.config["env"], wrappers))

"""Simulate one shard: play its episodes, or those of its reaches, and write their trajectories.

What Gymnasium plays it also draws, into the shard's frame cache. --policy names what a stage made
of the policy: its network, the blocks of a recording.
"""

from goalreel.stage_program import stage


@stage
def simulate(spec, trajectories, frames=None, policy=None, max_attempts: int = 100):
    import contextlib

    from goalreel.environments.environment import make_environment
    from goalreel.environments.gymnasium_ids import environment_files
    from goalreel.environments.wrappers import wrapper_modules
    from goalreel.errors import counted
    from goalreel.policies.parameters import RECORDED
    from goalreel.policies.policy import make_policy
    from goalreel.policies.watched_files import check_files, policy_files
    from goalreel.simulation.minari_episodes import read_episodes
    from goalreel.simulation.reaches import simulate_reaches
    from goalreel.simulation.recorded_episodes import play_recording
    from goalreel.simulation.recording_blocks import read_blocks
    from goalreel.simulation.trajectories import write_trajectories

    first, count = spec.shard["first"], spec.shard["count"]
    reaches, environment = range(first, first + count), make_environment(spec.config)
    options, success = spec.config["policy"], spec.config.get("success", "terminated")
    recorded, show = options["name"] in RECORDED, spec.config["film.show"]
    wrappers = wrapper_modules(spec.config.get("env_wrappers") or ())
    # What a data set holds is compared with what is played, and a recording was read before.
    files = {} if recorded else policy_files(options)
    check_files(spec, files | environment_files(spec.config["env"], wrappers))
    film = contextlib.nullcontext()
    if frames:
        from goalreel.pictures.camera import filming

        everything = recorded or show == "attempts"
        film = filming(frames, environment, None if everything else success)
    with film as camera:
        if recorded:
            if options["name"] == "minari":
                recording = read_episodes(options["dataset"], reaches)
            else:
                recording = read_blocks(policy, reaches, f"policy.file: {options['file']}")
            played = play_recording(recording, reaches, environment, spec, success, camera)
        else:
            player = make_policy(options, policy)
            if options["name"] == "pixels":
                from goalreel.pictures.warped import watched

                environment = watched(environment, player.warp)
            how = environment, player, max_attempts, show, spec, success, camera
            seeds = spec.value.get("seeds")
            played = simulate_reaches(reaches, spec.config["seed"], *how, seeds)
        if camera is not None:
            camera.write(played.digest(), spec)
    write_trajectories(trajectories, played)
    reached = "" if success is None else f"{counted(count, 'reach')} in "
    episodes, steps = len(played.attempts.reach), len(played.states)
    return f"{reached}{counted(episodes, 'episode')}, {counted(steps, 'frame')}"

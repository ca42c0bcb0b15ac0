"""Simulate one shard: play its episodes or reaches, and write their trajectories.

Gymnasium also renders the episodes that it plays, into the shard's frame cache, except those of its
MuJoCo environments, whose poses it keeps. --policy names the result of another rule for the policy:
its network, or the blocks of a recording. --selection names the episodes that were chosen from all
played, which play again.
"""

from goalreel.stage_program import stage


@stage
def simulate(
    spec,
    trajectories,
    frames=None,
    policy=None,
    selection=None,
    max_attempts_per_reach: int = 100,
    max_step_seconds: int = 0,
    max_memory_mb: int = 0,
):
    from functools import partial

    from goalreel.errors import pluralize
    from goalreel.films.scene import check_sources, open_scene
    from goalreel.simulation.played_episodes import read_selection
    from goalreel.simulation.reaches import simulate_attempts, simulate_reaches
    from goalreel.simulation.recorded_episodes import play_recording, read_minari
    from goalreel.simulation.recording_file import read_blocks
    from goalreel.simulation.trajectories import write_trajectories

    config, first, count = spec.config, spec.shard["first"], spec.shard["count"]
    reaches, section = range(first, first + count), config["policy"]
    success = config.get("success", "terminated")
    check_sources(spec, section)
    scene = open_scene(config, policy, max_step_seconds, max_memory_mb)
    show_failures = bool(selection) or scene.policy is None or config["film.show_failures"]
    if selection:
        chosen = read_selection(selection).rows.take(slice(first, first + count))
        play = partial(simulate_attempts, chosen, scene.env, scene.policy, spec)
    elif scene.policy is None:
        if section["name"] == "minari":
            recorded = read_minari(section["dataset"], reaches)
        else:
            recorded = read_blocks(policy, reaches, f"policy.file: '{section['file']}'")
        play = partial(play_recording, recorded, scene.env, spec, success)
    else:
        rules = max_attempts_per_reach, show_failures, spec, success
        players = config["seed"], scene.env, scene.policy
        play = partial(simulate_reaches, reaches, *players, *rules, seeds=spec.value.get("seeds"))
    played = scene.film(frames, play, spec, None if show_failures else success)
    write_trajectories(trajectories, played)
    reached = "" if success is None else f"{pluralize(count, 'reach')} in "
    episodes, steps = len(played.attempts.reach), len(played.states)
    return f"{reached}{pluralize(episodes, 'episode')}, {pluralize(steps, 'frame')}"

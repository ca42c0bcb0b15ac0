"""Play a shard of all episodes without frames, and write their actions, returns and endings."""

from goalreel.stage_program import stage


@stage
def play(spec, output, policy=None):
    from functools import partial

    from goalreel.environments.registry import describe
    from goalreel.errors import pluralize
    from goalreel.films.scene import check_sources, open_scene
    from goalreel.rendering.frame_recorder import check_first_episode
    from goalreel.simulation.played_episodes import play_episodes, write_played

    config, first, count = spec.config, spec.shard["first"], spec.shard["count"]
    check_sources(spec, config["policy"])
    scene = open_scene(config, policy)
    computed = describe(config["env"]).computed  # by goalreel, which needs no check
    check = None if computed else partial(check_first_episode, scene.env)
    players = config["seed"], scene.env, scene.policy
    seeds = spec.value.get("seeds")
    played, actions = play_episodes(range(first, first + count), *players, seeds, check)
    write_played(output, played, actions, spec)
    return f"{pluralize(len(played), 'episode')}, {pluralize(len(actions), 'step')}"

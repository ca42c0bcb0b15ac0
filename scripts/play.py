"""Play a shard of all episodes without frames, and write their seeds, returns and endings."""

from goalreel.stage_program import stage


@stage
def play(spec, output, policy=None, max_step_seconds: int = 0, max_memory_mb: int = 0):
    from functools import partial

    from goalreel.environments.registry import describe
    from goalreel.errors import pluralize
    from goalreel.films.scene import check_sources, open_scene
    from goalreel.rendering.frame_recorder import check_first_episode
    from goalreel.simulation.played_episodes import play_episodes, write_played

    config, first, count = spec.config, spec.shard["first"], spec.shard["count"]
    check_sources(spec, config["policy"])
    scene = open_scene(config, policy, max_step_seconds, max_memory_mb)
    check = None
    if not describe(config["env"]).computed:  # goalreel's own environments need no check
        # Some environments step faster if they need not render. Some wrappers render.
        scene.env.observation_space  # noqa: B018 - makes an instance
        scene.env.render_mode = "rgb_array" if scene.env.is_wrapped else None
        check = partial(check_first_episode, scene.env)
    players = config["seed"], scene.env, scene.policy, spec.value.get("seeds")
    played = play_episodes(range(first, first + count), *players, check)
    write_played(output, played, spec)
    return f"{pluralize(len(played), 'episode')}, {pluralize(int(played.rows.steps.sum()), 'step')}"

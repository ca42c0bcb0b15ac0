"""Make a model card for the Hugging Face Hub, in a folder that you can push.

It shows the median episode, or the chosen episodes, and the mean return of all episodes.
"""

import json
from pathlib import Path

from goalreel.stage_program import Shards, stage

_OPTIONS = ("env_kwargs", "env_wrappers", "max_episode_steps", "seeds")  # shown if they are set
# Parameters of a policy that name packages and files of this machine.
_LOCAL = ("allow", "file", "extra_files", "vecnormalize")


@stage
def model_card(
    spec, frames: Shards, trajectories: Shards, readme, replay, results, sums, played=None
):
    import numpy as np

    from goalreel.errors import GoalreelError
    from goalreel.files.atomic import write_text
    from goalreel.policies.parameters import RECORDED
    from goalreel.provenance.checksums import write_sums
    from goalreel.rendering.captions import default_captions
    from goalreel.rendering.overlay import add_bands
    from goalreel.report.episode_table import read_table
    from goalreel.report.model_card import evaluation, is_deterministic, page
    from goalreel.views.filmed_episodes import read_filmed
    from goalreel.views.triggers import select_episodes
    from goalreel.views.view_files import write_video

    config, policy = spec.config, spec.config["policy"]
    filmed = read_filmed(trajectories, frames, config["env"], config["unit"])
    trigger = config["model_card"]["episode_trigger"]
    if trigger is None:
        chosen = [filmed.median()]
    else:
        chosen = list(filmed.episodes(select_episodes(trigger, filmed.rows).tolist()))
        if not chosen:
            raise GoalreelError(
                f"model_card.episode_trigger: No episode matches '{trigger}'. The film has the "
                f"episodes 0 to {len(filmed) - 1}."
            )
    template, _ = default_captions(filmed.unit)
    even = ((add_bands(episode.cache, 1)[0], episode.frames) for episode in chosen)
    images = (cache[frame] for cache, frames in even for frame in frames)
    written = write_video(replay, images, spec)
    returns = np.concatenate([summary.attempts.return_ for summary in filmed.summaries])
    if played:  # the film shows chosen ones
        returns = read_table(played, ("return",))["return"].to_numpy()
    metrics = evaluation(returns, config["env"], is_deterministic(policy))
    of_file = Path(policy["file"]).stem if policy["name"] == "python" else policy["name"]
    player = policy.get("algorithm") or of_file
    library = "stable-baselines3" if policy["name"] == "sb3" else None  # the Hub's name of it
    shown = [episode.caption(template) for episode in chosen]
    options = {key: config[key] for key in ("env", *_OPTIONS) if config.get(key)}
    if "seeds" not in options and policy["name"] not in RECORDED:
        options["seed"] = config["seed"]
    options["policy"] = {key: value for key, value in policy.items() if key not in _LOCAL}
    options |= {} if spec.reproducible else {"check_determinism": False}
    write_text(readme, page(metrics, player, library, shown, options))
    write_text(results, json.dumps(metrics, indent=2) + "\n")
    write_sums(sums, [readme, replay, results], spec)
    return f"{written} frames, mean return {metrics['mean_reward']:g} of {len(returns)} episodes"

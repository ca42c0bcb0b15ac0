"""Make a folder that can be pushed to Hugging Face's hub as a model card.

It shows the median episode, or those chosen, one after another, and the mean return of all episodes
of the run. By hand, for a run of two shards:

    python scripts/card.py --frames results/frames/00000.npz --spec '{
        "stage": "card",
        "config": {"env": "MountainCar-v0", "film.fps": 30, "unit": "reach", "seed": 2025,
            "policy": {"name": "pump", "epsilon": 0}, "card": {"episode_trigger": null},
            "view_encoder": {"encoder": "x264", "preset": "veryfast", "qp": 23}},
        "shard": {"shards": 2}
    }' --trajectories results/trajectories/00000.npz README.md replay.mp4 results.json SHA256SUMS
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser

_OPTIONS = ("env_kwargs", "env_wrappers", "max_steps", "seeds")  # shown if they are set
_LOCAL = ("allow", "file", "files", "normalize")  # of a policy, on the machine that filmed it


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "card")
    options.add_argument("--frames", type=Path, required=True, help="the frame cache of shard 0")
    options.add_argument("--trajectories", type=Path, required=True, help="the file of shard 0")
    options.add_argument("readme", type=Path, help="the card to write, README.md")
    options.add_argument("replay", type=Path, help="the video to write, .mp4")
    options.add_argument("results", type=Path, help="the evaluation to write, beside the card")
    options.add_argument("sums", type=Path, help="the checksums of the three to write")
    arguments = options.parse_args(argv)

    import numpy as np

    from goalreel.errors import GoalreelError
    from goalreel.pictures.captions import default_captions
    from goalreel.policies.parameters import RECORDED
    from goalreel.provenance.checksums import write_sums
    from goalreel.report.card import LIBRARIES, evaluation, is_deterministic, page, write_card
    from goalreel.views.filmed_episodes import read_filmed
    from goalreel.views.run_shards import shard_files, write_video

    spec = spec_of(arguments)
    config, files = spec.config, shard_files(spec, arguments.trajectories, arguments.frames)
    filmed, policy = read_filmed(*files, config["env"], config["unit"]), config["policy"]
    trigger = config["card"]["episode_trigger"]
    if trigger is None:
        chosen = [filmed.median()]
    else:
        chosen = list(filmed.episodes(filmed.chosen(trigger)))
        if not chosen:
            count = len(filmed.places)
            raise GoalreelError(
                f"card.episode_trigger: {trigger} selects none of the {count} episodes that are "
                f"filmed, 0 to {count - 1}"
            )
    template, _ = default_captions(filmed.unit)
    frames = (episode.cache[frame] for episode in chosen for frame in episode.frames)
    written = write_video(arguments.replay, frames, spec)
    returns = np.concatenate([summary.attempts.return_ for summary in filmed.summaries])
    results = evaluation(returns, config["env"], is_deterministic(policy))
    of_file = Path(policy["file"]).stem if policy["name"] == "file" else policy["name"]
    player, library = policy.get("algorithm") or of_file, LIBRARIES.get(policy["name"])
    shown = [episode.caption(template) for episode in chosen]
    made = {key: config[key] for key in ("env", *_OPTIONS) if config.get(key)}
    if "seeds" not in made and policy["name"] not in RECORDED:
        made["seed"] = config["seed"]
    made["policy"] = {key: value for key, value in policy.items() if key not in _LOCAL}
    made |= {} if spec.reproducible else {"check": False}
    write_card(arguments.readme.parent, page(results, player, library, shown, made), results)
    write_sums(arguments.sums, [arguments.readme, arguments.replay, arguments.results])
    cli.say(f"{written} frames, mean return {results['mean_reward']:g} of {len(returns)} episodes")


if __name__ == "__main__":
    cli.run(main)

"""Replay an episode in plain Gymnasium, and save its frames.

It resets Gymnasium's environment with the row's seed and plays the recorded actions. It compares
every state and reward with the recorded ones, bit for bit, and writes the frames to PNG files.

    python scripts/replay.py 17                        episode or reach 17
    python scripts/replay.py 17 --attempt 0            the first attempt at reach 17
"""

from pathlib import Path

from goalreel import cli


def main(argv: list[str] | None = None) -> None:
    """Replay the episode of a command line."""
    options = cli.parser(__doc__)
    options.add_argument("number", type=int, help="number of the episode or of the reach")
    options.add_argument("--attempt", type=int, help="attempt at the reach (default: the last)")
    options.add_argument("--results", type=Path, help="folder of the run (default: the last run's)")
    options.add_argument("--png", type=Path, help="folder for the PNG files")
    arguments = options.parse_args(argv)

    from goalreel.verification import replay

    results = arguments.results or replay.last_run(Path("results"))
    run = replay.read_run(results).config
    config, name, episode = replay.find_episode(results, arguments.number, arguments.attempt)
    frames = replay.replay(config, name, episode)
    default = results / "replay" / f"{run['unit']}-{arguments.number}-seed-{episode.seed}"
    target = arguments.png or default
    replay.save_pngs(target, frames)
    cli.say(
        f"{name}, seed {episode.seed}: "
        f"{len(episode.actions)} steps of {config['env']} equal Gymnasium's; "
        f"{len(frames)} frames in {target}"
    )


if __name__ == "__main__":
    cli.run(main)

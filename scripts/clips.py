"""Film clips: chosen episodes, and snippets that start at chosen steps, each as its own video.

By hand, for two shards, reach 0 and every 1,000th step:

    python scripts/clips.py clips --frames results/frames/00000.npz --atlas results/atlas.npz
        --trajectories results/trajectories/00000.npz --spec '{"stage": "clips", "config": {
        "env": "MountainCar-v0", "film.fps": 30, "unit": "reach",
        "overlay.caption": "", "overlay.hud": false,
        "render": {"style": "gymnasium", "scale": 1},
        "view_encoder": {"encoder": "x264", "preset": "veryfast", "qp": 23},
        "clips": {"episode_trigger": [0], "step_trigger": {"every": 1000}, "video_length": 100,
        "name_prefix": "rl-video"}}, "shard": {"shards": 2}}'
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "clips")
    options.add_argument("--trajectories", type=Path, required=True, help="the file of shard 0")
    options.add_argument("--frames", type=Path, required=True, help="the frame cache of shard 0")
    options.add_argument("--atlas", type=Path, nargs="?", help="atlas (Mountain Car)")
    options.add_argument("--policy", type=Path, nargs="?", help="a policy that was trained here")
    options.add_argument("--threads", type=int, default=1, help="videos encoded at the same time")
    options.add_argument("output", type=Path, help="the folder to write")
    arguments = options.parse_args(argv)

    from goalreel.files.atomic import replacing_folder
    from goalreel.provenance.checksums import write_folder_sums
    from goalreel.provenance.input_checks import check_inputs
    from goalreel.views.attempt_frames import RunAttempts
    from goalreel.views.clips import choose_clips, write_clips
    from goalreel.views.run_shards import shard_files

    spec, atlas, policy = spec_of(arguments), arguments.atlas, arguments.policy
    files = shard_files(spec, arguments.trajectories, arguments.frames)
    check_inputs(spec, atlas=atlas, train=policy, dqn=policy, pixels=policy)
    attempts = RunAttempts(*files, atlas, policy, spec.config)
    chosen = choose_clips(spec.config["clips"], attempts.rows)
    with replacing_folder(arguments.output) as folder:
        write_clips(folder, chosen, attempts, spec, arguments.threads)
        write_folder_sums(folder)
    episodes = len(attempts.rows.reach)
    if not chosen:
        cli.say(f"warning: {spec.config['clips']} selects none of {episodes} episodes")
    cli.say(f"{len(chosen)} clips of {episodes} episodes")


if __name__ == "__main__":
    cli.run(main)

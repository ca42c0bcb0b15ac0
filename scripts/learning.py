"""Film how a policy was learned: its first attempts at each checkpoint of its training.

By hand:

    python scripts/learning.py --policy policy.npz --atlas atlas.npz learning.mp4 learning.csv
        learning.sha256
        --spec '{"stage": "learning", "config": {"env": "MountainCar-v0", "seed": 2025,
        "learner": {"name": "sarsa"}, "success": "terminated", "unit": "reach",
        "film.fps": 30, "train.attempts": 4, "overlay.title_card": 0.5, "overlay.hud": false,
        "render": {"style": "gymnasium", "scale": 1},
        "view_encoder": {"encoder": "x264", "preset": "veryfast", "qp": 23}}}'
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "learning")
    options.add_argument("--policy", type=Path, nargs="?", help="a policy that was trained here")
    options.add_argument("--atlas", type=Path, nargs="?", help="atlas of all pictures")
    options.add_argument("film", type=Path, help="the film to write, .mp4")
    options.add_argument("table", type=Path, help="the table of filmed attempts to write, .csv")
    options.add_argument("sums", type=Path, help="the checksum of the table to write")
    arguments = options.parse_args(argv)

    from goalreel.environments.gymnasium_ids import environment_files
    from goalreel.environments.wrappers import wrapper_modules
    from goalreel.pictures.atlas import read_atlas
    from goalreel.policies.watched_files import check_files, policy_files
    from goalreel.provenance.checksums import write_sums
    from goalreel.provenance.input_checks import check_inputs
    from goalreel.views.learning_film import learning_film, read_learner, write_film, write_table

    spec = spec_of(arguments)
    trained, atlas = arguments.policy, arguments.atlas
    check_inputs(spec, train=trained, dqn=trained, pixels=trained, atlas=atlas)
    env, policy = spec.config["env"], spec.config["learner"]
    wrappers = wrapper_modules(spec.config.get("env_wrappers") or ())
    check_files(spec, policy_files(policy) | environment_files(env, wrappers))
    learner = read_learner(policy, trained)
    with learning_film(learner, read_atlas(atlas) if atlas else None, spec) as film:
        title = f"{env}: learned in {learner.label(learner.ages[-1])}"
        write_film(arguments.film, film, title, spec)
        write_table(arguments.table, film)
        frames = len(film.cache)
    write_sums(arguments.sums, [arguments.table])
    checkpoints = len(learner.ages)
    cli.say(f"{len(film.chapters)} attempts, {checkpoints} checkpoints, {frames} frames")


if __name__ == "__main__":
    cli.run(main)

"""Draw a run's stills: a poster, a contact sheet, and a short animated preview.

Poster and preview show the median episode, the contact sheet episodes from the least to the
greatest return (of reaches, from the shortest to the longest). By hand, for a run of two shards:

    python scripts/stills.py --frames results/frames/00000.npz --spec '{
        "stage": "stills",
        "config": {"env": "MountainCar-v0", "film.fps": 30, "unit": "reach",
            "stills": {"episode_trigger": null}},
        "shard": {"shards": 2}
    }' --trajectories results/trajectories/00000.npz poster.png contact_sheet.png preview.webp
        SHA256SUMS
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser

_ROWS, _MOST = 8, 20


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "stills")
    options.add_argument("--frames", type=Path, required=True, help="the frame cache of shard 0")
    options.add_argument("--trajectories", type=Path, required=True, help="the file of shard 0")
    options.add_argument("poster", type=Path, help="the poster to write, .png")
    options.add_argument("contact_sheet", type=Path, help="the contact sheet to write")
    options.add_argument("preview", type=Path, help="the preview to write, .webp")
    options.add_argument("sums", type=Path, help="the checksums of the three to write")
    arguments = options.parse_args(argv)

    from goalreel.provenance.checksums import write_sums
    from goalreel.views.filmed_episodes import read_filmed, spread
    from goalreel.views.run_shards import shard_files
    from goalreel.views.stills import save_contact_sheet, save_poster, save_preview

    spec = spec_of(arguments)
    files = shard_files(spec, arguments.trajectories, arguments.frames)
    filmed = read_filmed(*files, spec.config["env"], spec.config["unit"])
    save_poster(filmed, arguments.poster, spec.text)
    trigger = spec.config["stills"]["episode_trigger"]
    chosen = spread(filmed.ranked(), _ROWS) if trigger is None else filmed.chosen(trigger)
    if not chosen:
        cli.say(f"warning: stills.episode_trigger {trigger} selects no episode, so all are shown")
        chosen = filmed.places
    save_contact_sheet(filmed, arguments.contact_sheet, chosen[:_MOST], spec.text)
    summary = save_preview(filmed, arguments.preview, spec.config["film.fps"], spec.text)
    write_sums(arguments.sums, [arguments.poster, arguments.contact_sheet, arguments.preview])
    cli.say(f"poster, contact sheet; preview: {summary}")


if __name__ == "__main__":
    cli.run(main)

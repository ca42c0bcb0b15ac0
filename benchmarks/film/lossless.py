"""The frame cache against lossless video codecs: bytes of the same frames.

The frames of benchmarks.film.presets, in the cache and by ffmpeg's FFV1, PNG and lossless x264 in
RGB, one keyframe each. Printed, and written to lossless.csv and .md.

    python -m benchmarks.film.lossless                             some five minutes
    python -m benchmarks.film.lossless --envs CartPole-v1          a first try
"""

import tempfile
from pathlib import Path

from benchmarks.film.environments import FILMS
from benchmarks.film.presets import FRAMES, filmed, parse
from benchmarks.table import available_cores, csv_text, describe_machine, markdown

_X264 = ["-c:v", "libx264rgb", "-qp", "0", "-g", "1000", "-preset"]
CODECS = {
    "FFV1": ["-c:v", "ffv1", "-level", "3", "-g", "1000"],
    "PNG": ["-c:v", "png"],
    "x264 RGB, ultrafast": [*_X264, "ultrafast"],
    "x264 RGB, veryfast": [*_X264, "veryfast"],
}
HEADER = ("environment", "frame cache", *CODECS)


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    options = parse(argv, __doc__)
    rows = []
    for film in (film for film in FILMS if film.name in options.envs):
        with tempfile.TemporaryDirectory(prefix="goalreel-lossless-") as name:
            cache = filmed(film, Path(name))
            share = (Path(name) / "frames.npz").stat().st_size / len(cache)
            sizes = (coded(cache, codec, Path(name, "film.mkv")) for codec in CODECS.values())
            rows.append([film.name, *(f"{size:.0f}" for size in (share, *sizes))])
    machine = describe_machine(available_cores())
    notes = [
        f"Bytes a frame. The first {FRAMES} frames or more of each; random policies, CartPole "
        "balanced. A cache begins every episode, and every 256 frames, with a whole picture; the "
        "codecs but PNG have one in all."
    ]
    table = markdown(HEADER, rows, [*notes, f"Machine: {machine}."], 1)
    print(table)
    (options.output / "lossless.csv").write_text(csv_text(HEADER, rows, machine), encoding="utf-8")
    (options.output / "lossless.md").write_text(table, encoding="utf-8")


def coded(cache, codec: list[str], path: Path) -> float:
    """Return the bytes of a frame by a codec."""
    from goalreel.encoding import ffmpeg

    height, width = cache.background.shape[:2]
    raw = ["-f", "rawvideo", "-pixel_format", "rgb24", "-video_size", f"{width}x{height}"]
    frames = ffmpeg.run([*raw, "-i", "pipe:0", *codec, "-y", str(path)], cache)
    return path.stat().st_size / frames


if __name__ == "__main__":
    main()

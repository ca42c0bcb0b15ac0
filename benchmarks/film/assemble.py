"""What the encode stage costs: assembling films from coded pictures, and x264, on the same frames.

Each is given a shard's trajectories and frame caches, as files, and writes a segment: once doing
all that the stage does in its process, and once from the moment that what comes before is ready:

    stage    its files are read, the overlay is drawn, captions and HUD coded, the segment written
    alone    assembled: the samples are joined and written; x264: frames go in, a file comes out

CPU seconds, user and system, ffmpeg's included; imports do not count. They take turns, run by run,
so that a busy machine slows all of them alike. x264 encodes fewer episodes, the first, on which
luma's PSNR is taken for all, against the frame cache. Printed, and written to assemble.csv and
assemble.md; quality.md is a part of it.

    python -m benchmarks.film.assemble                                          about six minutes
    python -m benchmarks.film.assemble --reaches 50 --x264-reaches 3 --runs 1   a first try
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.film.encode_stage import (
    Shard,
    assembled,
    code,
    cpu_of,
    draw_atlas,
    encoded,
    luma_errors,
    make_shard,
    psnr,
    shown,
)
from benchmarks.sample import ENV, RESULTS
from benchmarks.table import available_cores, csv_text, describe_machine, markdown

CAPTION = "Reach {reach} · seed {seed} · {steps} steps"
QUALITIES = ("small", "balanced", "best")
OVERLAYS = {
    "none": (False, ""),
    "HUD": (True, ""),
    "captions": (False, CAPTION),
    "HUD and captions": (True, CAPTION),
}
PRESETS = ("ultrafast", "veryfast", "medium")
BASELINE = "veryfast"
HEADER = ("quality", "encoder", "overlay", "stage, µs/frame", "stage's ratio", "alone, µs/frame")
HEADER += ("alone's ratio", "bytes/frame", "bytes' ratio", "PSNR Y, dB", "worst frame, dB")
Key = tuple[str, str, str]  # quality, encoder, overlay


@dataclass
class Found:
    """What was measured of a contender.

    stage, alone: CPU seconds per frame, one for each run; size: bytes per frame; errors: the mean
    squared error of each frame's luma
    """

    stage: list[float]
    alone: list[float]
    size: float = 0
    errors: np.ndarray | None = None

    def cells(self, base: "Found") -> list[str]:
        """Return the cells of HEADER after the first three; ratios are the baseline's to these."""
        stage, alone = statistics.median(self.stage), statistics.median(self.alone)
        return [
            *(_digits(stage * 1e6), _digits(statistics.median(base.stage) / stage)),
            *(_digits(alone * 1e6), _digits(statistics.median(base.alone) / alone)),
            *(f"{self.size:.0f}", _digits(base.size / self.size)),
            *(f"{psnr(self.errors.mean()):.2f}", f"{psnr(self.errors.max()):.2f}"),
        ]


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    options = parse(argv)
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="goalreel-assemble-") as name:
        folder = Path(name)
        draw_atlas(folder)
        whole = make_shard(folder, "whole", options.reaches)
        few = make_shard(folder, "few", options.x264_reaches)
        found, coded_atlases = measure(folder, whole, few, options.runs)
    rows = [[*key, *found[key].cells(found[key[0], f"x264 {BASELINE}", "none"])] for key in found]
    machine = describe_machine(available_cores())
    table = markdown(HEADER, rows, notes(whole, few, options, coded_atlases, machine), words=3)
    print(table)
    Path(options.output, "assemble.csv").write_text(
        csv_text(HEADER, rows, machine), encoding="utf-8"
    )
    Path(options.output, "assemble.md").write_text(table, encoding="utf-8")
    Path(options.output, "quality.md").write_text(short_table(rows), encoding="utf-8")


def short_table(rows: list[list[str]]) -> str:
    """Return of each quality's film what the README shows: bytes and PSNR, and the speed."""
    shown = [row for row in rows if row[1] in ("assembled", f"x264 {BASELINE}")]
    columns = [HEADER.index(name) for name in HEADER[:3]]
    names = ("bytes/frame", "PSNR Y, dB", "worst frame, dB", "stage's ratio")
    columns += [HEADER.index(name) for name in names]
    header = [HEADER[column] for column in columns[:-1]] + ["speed of the stage"]
    return markdown(header, [[row[c] for c in columns] for row in shown], [], words=3)


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Return the options of a command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = options.add_argument
    add("--reaches", type=int, default=500, help="episodes of the assembled shard (500)")
    add("--x264-reaches", type=int, default=10, help="of them, encoded by x264 (10)")
    add("--runs", type=int, default=5, help="runs, of which the median is shown (5)")
    add("--output", type=Path, default=RESULTS, help="folder for the tables")
    arguments = options.parse_args(argv)
    if not 0 < arguments.x264_reaches <= arguments.reaches or arguments.runs < 1:
        options.error("allowed: at least one run, and 1 to --reaches episodes for x264")
    return arguments


def measure(
    folder: Path, whole: Shard, few: Shard, runs: int
) -> tuple[dict[Key, Found], dict[str, list[float]]]:
    """Let all contenders take turns; return their figures, and each coded atlas's CPU seconds."""
    from goalreel.encoding.choice import choose, x264
    from goalreel.encoding.yuv import Yuv420p

    encode = {"encoder": "auto", "preset": None, "qp": None, "crf": None}
    general = {"env": ENV, "max_steps": None, "film": {"fps": 30}}
    general["overlay"] = {"hud": False, "caption": CAPTION, "title_card": 0.5}
    general["render"] = {"style": "gymnasium", "width": 600, "height": 400, "palette": "light"}
    found: dict[Key, Found] = {}
    coded: dict[str, list[float]] = {}
    for run in range(runs + 1):  # the first, on few episodes, is not counted: it imports
        shard = whole if run else few
        for quality in QUALITIES:
            chosen = choose({**general, "encode": {**encode, "quality": quality}}).settings
            for hud in (False, True):
                path = folder / f"coded-{quality}-{hud}.npz"
                seconds = cpu_of(lambda c=chosen, h=hud, p=path: code(folder, c, h, p))[1]
                if run:
                    coded.setdefault(f"{quality}{', HUD' * hud}", []).append(seconds)
            contenders: dict[Key, Callable[[Shard, Path], list[float]]] = {}
            for name, (hud, caption) in OVERLAYS.items():
                coded_atlas = folder / f"coded-{quality}-{hud}.npz"
                contenders[quality, "assembled", name] = (
                    lambda s, p, d=coded_atlas, h=hud, c=caption: assembled(s, d, h, c, p)
                )
            for preset in PRESETS:
                asked = {**encode, "quality": quality, "preset": preset}
                settings = x264({"env": ENV, "encode": asked})
                contenders[quality, f"x264 {preset}", "none"] = lambda _, p, e=settings: encoded(
                    few, e, p
                )
            for key, work in contenders.items():
                path = folder / "segment.mp4"
                given = shard if key[1] == "assembled" else few
                stage, alone = (seconds / given.count for seconds in work(shard, path))
                result = found.setdefault(key, Found([], []))
                if run == 0:
                    wanted = Yuv420p(shown(few, *OVERLAYS[key[2]]))
                    result.errors = luma_errors(path, wanted.frames(), wanted.size)
                    continue
                result.stage.append(stage)
                result.alone.append(alone)
                result.size = path.stat().st_size / given.count
                said = f"run {run} of {runs}: {', '.join(key)}: {stage * 1e6:.4g} µs/frame"
                print(said, file=sys.stderr, flush=True)
    return found, coded


def notes(whole: Shard, few: Shard, options, coded_atlases: dict, machine: str) -> list[str]:
    """Return what a reader of the table should know."""
    times = f"Medians of {options.runs} runs" if options.runs > 1 else "One run"
    once = ", ".join(f"{name} {statistics.median(s):.2f} s" for name, s in coded_atlases.items())
    return [
        f"{times}, CPU time of all processes; ratios are x264 {BASELINE}'s figure, at the same "
        "quality, to the row's.",
        "stage: what the encode stage does in its process but for imports: files read, overlay "
        "drawn, captions and HUD coded, the segment written. alone: assembled, joining ready parts "
        "and writing the file; x264, encoding frames that are ready.",
        f"{ENV}, 600x400, each episode after one title card: {options.reaches:,} episodes, "
        f"{whole.count:,} frames assembled; the first {options.x264_reaches:,} of them, "
        f"{few.count:,} frames, by x264 at goalreel's own quantisers, and PSNR of all on these: of "
        "the mean squared error of all frames, and of the worst frame's.",
        f"Coding the pictures, once for all films of a quality, file written: {once}.",
        f"Machine: {machine}.",
    ]


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()

"""Bento4, which shares no code with FFmpeg, finds in each MP4 what the tables say is in it."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from trials import BY_X264, SMALL

MP4INFO = shutil.which("mp4info")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not MP4INFO, reason="needs mp4info, built of github.com/axiomatic-systems/Bento4"
    ),
]
BLOCKS = {"env": "CartPole-v1", "episodes": 6, "shard_size": 2, "policy": "{name: random}"}
RUNS = {
    "pictures": SMALL,
    "x264": BY_X264,
    "blocks": BLOCKS,
    "drawn, by x264": BLOCKS | {"env": "BipedalWalker-v3", "episodes": 2, "max_steps": 60},
    "captions, HUD, no cards": SMALL | {"overlay": "{hud: true, title_card: 0}"},
}
SAMPLE = re.compile(r"^\[01\.(\d+)\] size=\s*(\d+) duration=\s*(\d+) (\[S\])?\s*<(\w+)>", re.M)


def said(path: Path, *options: str) -> str:
    command = [MP4INFO, *options, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", RUNS)
def test_a_film_has_the_samples_the_times_and_the_keyframes_of_its_table(once, name):
    config = RUNS[name]
    made = once(
        f"bento4: {name}", lambda fresh: fresh.run("-j", "2", "all", "clips", config=config)
    )
    results = made.folder / "results"
    rows, film = pd.read_csv(results / "episodes.csv"), results / "film.mp4"
    found = json.loads(said(film, "--format", "json"))
    video, subtitles, chapters = found["tracks"]
    frames = int((rows["frames"] + rows["card_frames"]).sum())
    assert found["file"]["fast_start"] and not found["movie"]["fragments"]
    assert video["media"]["sample_count"] == frames
    assert subtitles["media"]["sample_count"] == chapters["media"]["sample_count"] == len(rows)
    (described,) = video["sample_descriptions"]
    assert (described["width"], described["height"]) == (
        round(video["display_width"]), round(video["display_height"])
    )  # fmt: skip
    samples = [match.groups() for match in SAMPLE.finditer(said(film, "--show-samples"))]
    assert [int(number) for number, *_ in samples] == list(range(1, frames + 1))
    assert len({duration for _, _, duration, *_ in samples}) == 1
    assert sum(int(size) for _, size, *_ in samples) < film.stat().st_size
    keyframes = [n for n, (*_, sync, kind) in enumerate(samples) if sync and kind == "I"]
    assert {kind for *_, kind in samples} <= {"I", "P"}
    starts = (rows["first_frame"] - rows["card_frames"]).tolist()
    assert set(starts) <= set(keyframes)
    for path in (results / "clips").glob("*.mp4"):
        assert json.loads(said(path, "--format", "json"))["file"]["fast_start"]

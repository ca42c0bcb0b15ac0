"""Values of a configuration reach shells and other programs unchanged."""

import json

import av
import pandas as pd
import pytest
import yaml

from goalreel.provenance.embedded_specs import read_spec

# Characters with a meaning in shells, Make, ffmpeg's metadata, Snakemake and Python's templates.
HARSH = """it's "a" $(touch ran) `touch ran` ;touch ran;|touch ran&><*?[x] é #=%\\ ~ 雪 --x"""
HARSH += "\nnext\tline"
CAPTION = """"{reach}" '$(touch ran)' `touch ran` ;=#\\ {{}} %{{n}} \\n: ' , [a]"""
PREFIX = """'"$(touch ran)`touch ran`;=#é 雪"""


@pytest.mark.slow
def test_harsh_values_pass_through_a_run_unchanged(project):
    text = "def act(seen):\n    return (seen[:, 1] >= 0) * 2\n"
    (project.folder / f"{HARSH}.py").write_text(text)
    config = {
        **{"results": HARSH, "reaches": 2, "policy": {"name": "python", "file": f"{HARSH}.py"}},
        **{"overlay": {"caption": CAPTION}, "encode": {"encoder": "x264", "preset": "ultrafast"}},
        **{"clips": {"name_prefix": PREFIX, "episode_trigger": [0]}},
    }
    (project.folder / "harsh.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    before = {path.name for path in project.folder.iterdir()}
    project.run("-j", "2", "--configfile", "harsh.yaml", "--", "all", "clips")
    results = project.folder / HARSH
    assert {path.name for path in project.folder.iterdir()} == before | {HARSH, ".snakemake"}
    assert not list(project.folder.rglob("ran*"))
    clip = results / "clips" / f"{PREFIX}-episode-0.mp4"
    assert pd.read_csv(results / "clips" / "clips.csv")["file"].tolist() == [clip.name]
    made = read_spec(results / "trajectories" / "00000.npz").config
    assert made["policy"]["file"] == f"{HARSH}.py"
    for video in (results / "segments" / "00000.mp4", clip):
        with av.open(str(video)) as container:  # an independent reader of ffmpeg's metadata
            spec = json.loads(container.metadata["comment"])
        assert spec["config"]["overlay.caption"] == CAPTION

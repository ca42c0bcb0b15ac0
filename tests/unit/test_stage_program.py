"""The decorator turns the signature of a stage's function into a command line."""

from pathlib import Path

import pytest

from goalreel.errors import GoalreelError
from goalreel.stage_program import Shards, stage


@stage
def paint(spec, frames: Shards, output, atlas=None, threads: int = 1):
    return f"{spec.config} {[*frames]} {output!r} {atlas} {threads}"


SPEC = '{"stage": "paint", "config": {"env": "A"}, "shard": {"shards": 2}}'
GIVEN = ["--frames", "f/00000.npz", "--output", "o.mp4"]


def test_options_reach_the_function_as_its_types(capsys):
    paint.main(["--spec", SPEC, *GIVEN, "--atlas", "--threads", "3"])
    shards = [Path("f/00000.npz"), Path("f/00001.npz")]
    assert capsys.readouterr().err == f"{{'env': 'A'}} {shards} {Path('o.mp4')!r} None 3\n"


def test_option_without_default_is_required(capsys):
    with pytest.raises(SystemExit):
        paint.main(["--spec", SPEC, *GIVEN[:2]])
    assert "required: --output" in capsys.readouterr().err


def test_spec_of_another_stage_is_rejected():
    with pytest.raises(GoalreelError, match="--spec: Is for the stage 'draw', not 'paint'"):
        paint.main(["--spec", SPEC.replace("paint", "draw"), *GIVEN])
    with pytest.raises(GoalreelError, match=r"numpy: Planned with version 0\.1, but"):
        paint.main(["--spec", SPEC.replace("{", '{"tools": {"numpy": "0.1"}, ', 1), *GIVEN])

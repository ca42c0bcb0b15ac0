"""Random damage of any file of a finished run, of which no time stamp tells: `verify` finds it all.

Of a Mountain Car with all its views, and of an environment that Gymnasium draws.
"""

from pathlib import Path

import pytest
import yaml
from conftest import VIEWED, VIEWS
from trials import generator, replaced, sampled, trials

from goalreel.provenance.spec import parse_spec
from goalreel.verification.run import Plan, verify
from goalreel.workflow.config import load_config
from goalreel.workflow.specs import Specs
from goalreel.workflow.stages import STAGES

OUTPUTS = {name: stage.paths for name, stage in STAGES.items()}
DRAWN = {"env": "FrozenLake-v1", "episodes": 6, "shard_size": 2, "policy": "{name: random}"}
DRAWN_VIEWS = ("clips", "grid", "stills", "card")
EACH = 25  # damages of a trial; each is undone
NOT_CHECKED = ("logs", "benchmarks", "config.yaml")  # no result hangs on them


@pytest.fixture(scope="module", params=sampled(["viewed", "drawn"]))
def finished(request, once, tmp_path_factory):
    """Return the results of a finished run, and the plan that `verify` holds them against."""
    if request.param == "viewed":
        made, config = request.getfixturevalue("viewed"), VIEWED
    else:
        make = lambda fresh: fresh.run("-j", "2", "all", *DRAWN_VIEWS, config=DRAWN)  # noqa: E731
        made, config = once("drawn with views", make), DRAWN
    given = {key: yaml.safe_load(str(value)) for key, value in config.items()}
    complete = load_config(given)
    spec = parse_spec(Specs(complete, made.folder / "scripts").spec("verify", {}))
    plan = Plan(OUTPUTS, spec)
    copy = made.copied(tmp_path_factory.mktemp("damaged") / "project")
    return copy.folder / "results", plan


def cut(content: bytes, rng) -> bytes:
    return content[: rng.randrange(len(content))]


def flipped(content: bytes, rng) -> bytes:
    place = rng.randrange(len(content))
    return content[:place] + bytes([content[place] ^ rng.randrange(1, 256)]) + content[place + 1 :]


def zeroed(content: bytes, rng) -> bytes:
    place = rng.randrange(len(content))
    length = min(rng.choice([1, 16, 4096]), len(content) - place)
    return content[:place] + bytes(length) + content[place + length :]


def longer(content: bytes, rng) -> bytes:
    return content + rng.randbytes(rng.choice([1, 16, 4096]))


def emptied(content: bytes, rng) -> bytes:
    return b""


DAMAGES = (cut, flipped, zeroed, longer, emptied)


def files_of(results: Path) -> list[Path]:
    """Return the files that a run has made, but those that no result hangs on."""
    return sorted(
        path
        for path in results.rglob("*")
        if path.is_file() and path.relative_to(results).parts[0] not in NOT_CHECKED
        if path.name != ".snakemake_timestamp"
    )


def found(results: Path, plan: Plan) -> set[Path]:
    """Return what `verify` has something to say of."""
    verdicts = verify(results, plan, 2)
    return {path for v in verdicts for path in (*v.errors, *v.unchecked, *v.missing)}


@trials(sample=1, count=20)
def test_no_random_damage_is_missed(finished, record_property, trial):
    results, plan = finished
    before = found(results, plan)  # what was not made
    files, rng = files_of(results), generator("any damage", trial)
    assert len(files) > 20 and {path.parts[-1] for path in files} & {"SHA256SUMS", "tables.json"}
    tried = 0
    while tried < EACH:
        swap = rng.randrange(6) == 0
        paths = rng.sample(files, 2) if swap else [rng.choice(files)]
        contents = [path.read_bytes() for path in paths]
        damage = rng.choice(DAMAGES)
        damaged = contents[::-1] if swap else [damage(contents[0], rng)]
        if damaged == contents:
            continue
        for path, content in zip(paths, damaged, strict=True):
            replaced(path, content, keep_times=True)
        named = found(results, plan) - before
        what = "two files swapped" if swap else damage.__name__
        assert named, (what, [str(path.relative_to(results)) for path in paths])
        for path, content in zip(paths, contents, strict=True):
            replaced(path, content, keep_times=True)
        tried += 1
    assert found(results, plan) == before
    record_property("fault", ("any file of a finished run damaged", "found by `verify`", tried))


def test_the_views_that_are_damaged_are_all_there_are():
    assert set(DRAWN_VIEWS) < set(VIEWS)

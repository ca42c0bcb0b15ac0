"""Films in parts: each is the film of its reaches alone, and the tables tell which is where."""

import csv
import json

import pytest
from assembling import packets_of
from conftest import hashes, shard
from test_film import join

from goalreel.errors import GoalreelError, Unusable
from goalreel.films.parts_index import write_index
from goalreel.mp4.reader import read_outline

SHARDS = {"reaches": 8, "shard_size": 2}
TWO = SHARDS | {"film": "{reaches_per_file: 4}"}


def rows(path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def parted(once):
    """Return a project whose film of 8 reaches is made in two parts; tests only read it."""
    return once("parted", lambda fresh: fresh.run("-j", "2", config=TWO))


def test_a_part_is_the_film_of_its_reaches_and_the_tables_tell_where_they_stand(parted, filmed):
    results = parted.folder / "results"
    parts = sorted((results / "films").iterdir())
    assert [part.name for part in parts] == ["00000.mp4", "00001.mp4"]
    assert not (results / "film.mp4").exists() and "films.csv, 2 videos" in parted.output
    whole = [bytes(p) for p in packets_of(filmed.folder / "results" / "film.mp4")]
    shown = [[bytes(p) for p in packets_of(part)] for part in parts]
    assert [sample for part in shown for sample in part] == whole
    for row, part, samples in zip(rows(results / "films.csv"), parts, shown, strict=True):
        assert row["file"] == f"films/{part.name}"
        assert (int(row["frames"]), int(row["bytes"])) == (len(samples), part.stat().st_size)
        assert float(row["seconds"]) == len(samples) / 30
    table = [(row["first_reach"], row["reaches"]) for row in rows(results / "films.csv")]
    assert table == [("0", "4"), ("4", "4")]
    together, apart = (rows(p.folder / "results" / "episodes.csv") for p in (filmed, parted))
    for one, other in zip(together, apart, strict=True):
        assert one["film"] == "film.mp4" and one["reach"] == other["reach"]
        part = int(one["reach"]) // 4
        assert other["film"] == f"films/{part:05d}.mp4"
        before = len(shown[0]) if part else 0
        assert int(one["first_frame"]) == before + int(other["first_frame"])


def test_growth_makes_only_the_new_and_the_last_part(parted):
    assert parted.jobs(config=TWO) == {}
    new = {"simulate": 1, "render": 1, "encode": 1, "part": 1, "films": 1, "episodes": 1}
    assert parted.jobs(config=TWO | {"reaches": 10}) == new
    assert parted.jobs(config=TWO | {"reaches": 7}) == new
    assert parted.jobs(config=TWO | {"reaches": 4}) == {"films": 1, "episodes": 1}
    assert parted.jobs(config=SHARDS) == {"concat": 1, "episodes": 1}
    smaller = SHARDS | {"film": "{reaches_per_file: 2}"}
    assert parted.jobs(config=smaller) == {"part": 4, "films": 1, "episodes": 1}


def test_a_part_of_another_run_is_no_part_and_a_report_says_that_it_plays_one_film(parted):
    before = hashes(parted.folder / "results")
    said = " ".join(parted.fail("--dry-run", "report", config=TWO).split())
    assert "the report plays one film, and film.reaches_per_file is 4" in said
    said = " ".join(parted.fail("--dry-run", "results/films/00000.mp4", config=SHARDS).split())
    assert "film.reaches_per_file is null, which makes one film" in said
    assert hashes(parted.folder / "results") == before


def test_an_index_is_of_parts_that_go_on_where_the_one_before_ends(atlases, tmp_path):
    made = []
    for number, (first, end) in enumerate([(0, 2), (2, 3)]):
        one = shard(tmp_path, atlases, number, range(first, end))
        made.append(tmp_path / f"part {number}.mp4")
        spec = {"shard": {"first": first, "shards": 1, "reaches": end}}
        join([one], made[-1], comment=json.dumps(spec))
    frames = write_index(made, tmp_path / "films.csv", 30, 3, "reach")
    assert frames == sum(read_outline(part).frames for part in made)
    before = (tmp_path / "films.csv").read_bytes()
    for parts, fps, reaches in ((made[::-1], 30, 3), (made, 25, 3), (made, 30, 4)):
        with pytest.raises(Unusable, match=r"part \d\.mp4"):
            write_index(parts, tmp_path / "films.csv", fps, reaches, "reach")
    one = shard(tmp_path, atlases, 0, range(1))
    join([one], made[0])
    with pytest.raises(GoalreelError, match="does not say what it covers"):
        write_index(made, tmp_path / "films.csv", 30, 3, "reach")
    assert (tmp_path / "films.csv").read_bytes() == before

"""The steps of docs/contributing.md add a working view."""

import re

import av
import pytest
from conftest import FEW
from project import REPOSITORY

TABLE = "scripts/goalreel/workflow/stages.py"


@pytest.fixture
def extended(project):
    """Return a copy of the project with the view of the page."""
    text = (REPOSITORY / "docs" / "contributing.md").read_text(encoding="utf-8")
    pieces = re.findall(r"`(scripts/\S+)`:\n\n```python\n(.*?)^```$", text, re.M | re.S)
    assert [path for path, _ in pieces][2:] == [TABLE]
    for path, code in pieces:
        if path == TABLE:
            project.edit(path, "_VIEWS = {\n", f"_VIEWS = {{\n{code}")
        else:
            with (project.folder / path).open("a", encoding="utf-8") as file:
                file.write(code)
    return project


@pytest.mark.slow
def test_view_of_the_page_is_made_and_reruns_after_its_edit(extended):
    message = extended.run("-j", "2", "mean", config=FEW)
    assert "mean.mp4" in message
    with av.open(str(extended.folder / "results" / "mean.mp4")) as video:
        first = next(video.decode(video=0)).to_ndarray(format="rgb24")
    assert first.shape == (400, 600, 3)
    assert extended.jobs("mean", config=FEW) == {}
    verdicts = extended.run("-j", "2", "verify", config=FEW).splitlines()
    assert any(re.match(r" *mean +1 file .* ok$", line) for line in verdicts)
    assert extended.jobs("mean", config=FEW | {"overlay": "{hud: true}"}) == {}
    extended.edit("scripts/goalreel/views/mean.py", "total // len", "total // 1 // len")
    assert extended.jobs("mean", config=FEW) == {"mean": 1}
    assert "mean" not in extended.jobs(config=FEW)

"""The check of words finds sentences that are hard to read, and none in this repository."""

import pytest
from project import REPOSITORY

from tests.prose import KINDS, findings, paths

LONG = " ".join(["word"] * 36)


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_a_kind_have_no_findings(kind, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    found = [finding for path in paths(kind) for finding in findings(path)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("The first.\nOf games that it has, it draws one anew.", [2, 2]),
        ("A tale,\na chapter, too. The frames\nlie beside it.", [1, 2]),
        ("The seed alone counts. What can it be? Of course.", [1]),
        (f"{LONG}.\n\n- {LONG}.\n| {LONG} |", [1, 3]),
        ("One; two; three.", [1]),
        ('# What to do if a file is missing\n\nIt stands alone. `beside` and "anew".', []),
        ("<!-- table: x -->\n; ; beside\n<!-- end -->\n```sh\n; ; beside\n```", []),
    ],
)
def test_page_yields_lines_of_findings(tmp_path, text, lines):
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    assert [int(found.split(":")[1]) for found in findings(page)] == lines


def test_program_yields_docstrings_comments_and_names(tmp_path):
    program = tmp_path / "program.py"
    comment = f"    # Draw\n    # anew.\n    'anew'  {'#'} drawn anew\n"
    docstring = '    """Draw.\n\n    Draw anew.\n\n        anew\n    """\n'
    name = "test_" + "x" * 56
    program.write_text(f'X = """\nanew\n"""\ndef {name}():\n{docstring}{comment}')
    found = [line.removeprefix(f"{program}:") for line in findings(program)]
    assert [line.split(":")[0] for line in found] == ["7", "11", "13", "4"]

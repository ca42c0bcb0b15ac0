"""README and docs/ say what is measured, run as they are written, and link to what exists."""

import re
import shlex
import subprocess

import pytest
import yaml
from project import REPOSITORY

from benchmarks.write_tables import PAGES, filled
from goalreel.environments import registry
from goalreel.workflow.config import load_config

NAMES = [str(page.relative_to(REPOSITORY)) for page in PAGES]
MKDOCS = REPOSITORY / ".venv-docs" / "bin" / "mkdocs"


def text_of(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    """Return the contents of a page's fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text_of(name), re.M | re.S)


@pytest.mark.parametrize("name", NAMES)
def test_tables_and_figures_are_those_that_were_measured(name):
    assert filled(text_of(name)) == text_of(name), "run: make tables"


@pytest.mark.parametrize("name", [*NAMES, ".github/SECURITY.md", "CHANGELOG.md"])
def test_links_lead_to_what_exists(name):
    text = text_of(name)
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    for link in links + re.findall(r' src="([^":]+)"', text):
        assert ((REPOSITORY / name).parent / link).exists(), link


def test_environments_page_agrees_with_the_registry():
    row = re.compile(r"^\| (.*?) \| (\w+) \| .+? \| (\w+) \| (\d+) \|$", re.M)
    rows = row.findall(text_of("docs/environments.md"))
    named = {env: row for row in rows for env in re.findall(r"`(.+?)`", row[0]) or ["Other-v0"]}
    for env, (_, stepped, film, size) in named.items():
        traits = registry.describe(env)
        own = traits.computed or env in registry.CLASSIC_CONTROL
        kind = "atlas" if traits.has_atlas else "blocks" if traits.few_blocks else "x264"
        assert (stepped == "goalreel", film, int(size)) == (own, kind, traits.shard_size), env


def test_the_readme_is_short():
    assert len(text_of("README.md").splitlines()) <= 170


def options_in_commands() -> list[tuple[str, dict]]:
    """Return the `--config` options of each command in the pages, by page."""
    found = []
    for name in NAMES:
        lines = [line for block in blocks(name, "sh") for line in block.splitlines()]
        # A file, which adds to the options, is read where the block runs.
        for line in filter(re.compile("snakemake (?!.*--configfile).*--config ").match, lines):
            words = shlex.split(line.partition("--config ")[2], comments=True)
            pairs = (word.partition("=") for word in words)
            options = {key: yaml.safe_load(value) for key, _, value in pairs}
            policy = options.get("policy", {})  # whose files would have to be there
            if "dataset" not in policy and ".zip" not in policy:
                found.append((name, options))
    return found


@pytest.mark.parametrize(("name", "options"), options_in_commands())
def test_options_in_commands_are_valid(name, options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for code in blocks("docs/environments.md", "python"):
        (tmp_path / code.split()[1]).write_text(code)  # the first line is # NAME.py
    load_config(options)


@pytest.mark.slow
@pytest.mark.skipif(not MKDOCS.exists(), reason="needs mkdocs: make docs")
def test_the_site_is_built_without_a_warning(tmp_path):
    command = [MKDOCS, "build", "-f", "docs/mkdocs.yml", "-d", tmp_path / "site"]
    subprocess.run(command, cwd=REPOSITORY, check=True)
    first = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert 'src="images/films.webp"' in first  # of README.md
    options = (tmp_path / "site" / "options" / "index.html").read_text(encoding="utf-8")
    api = (tmp_path / "site" / "python-api" / "index.html").read_text(encoding="utf-8")
    assert "max_attempts" in options and "goalreel.recorders.record_video.RecordVideo" in api

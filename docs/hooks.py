"""Hooks of mkdocs: insert generated parts into pages, and adapt links to sources.

The first page, index.md, is README.md. The generated parts are:

    <!-- api -->        the documentation of each public name of the package

A link out of docs/, which works on GitHub, becomes the plain path, which must exist.
"""

import logging
import posixpath
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
_LOG = logging.getLogger("mkdocs.hooks")  # a warning fails a strict build
_LINK = re.compile(r"\[([^\]]+)\]\((\.\./[^)#\s]+)(?:#[^)]*)?\)")


def on_config(config):
    """Add the package to the import path."""
    sys.path.insert(0, str(ROOT / "scripts"))
    return config


def on_page_markdown(markdown: str, page, config, files) -> str:
    """Return the page's Markdown with its generated parts."""
    if page.file.src_uri == "index.md":
        markdown = _relocate((ROOT / "README.md").read_text(encoding="utf-8"))
    if "<!-- api -->" in markdown:
        from goalreel import _HOME

        homes = [f"{module}.{name}" for name, module in _HOME.items()]
        homes += ["vector.RecordVideo", "vector.FinalFrame"]
        homes += ["recorders.video_writer.VideoOptions"]
        homes += ["sb3.VecVideoRecorder", "trackers"]
        entries = [f"::: goalreel.{home}" for home in homes]
        markdown = markdown.replace("<!-- api -->", "\n\n".join(entries))
    return _LINK.sub(lambda match: _source(match, page.file.src_uri), markdown)


def _relocate(markdown: str) -> str:
    """Return a page of the repository's top folder with links relative to docs/."""
    return re.sub(r'(\]\(|src=")(?!https?:)', r"\1../", markdown).replace("../docs/", "")


def _source(match: re.Match, page: str) -> str:
    """Return a link within docs/ unchanged, or the path in the repository for any other link."""
    path = posixpath.normpath(f"docs/{posixpath.dirname(page)}/{match[2]}")
    if path.startswith("docs/"):
        return match[0]
    if not (ROOT / path).exists():
        _LOG.warning("%s: a dead link: %s", page, match[2])
    return f"`{path}`" if match[1].strip("`") in path else f"{match[1]} (`{path}`)"

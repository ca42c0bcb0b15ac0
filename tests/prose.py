"""Print sentences that are hard to read, each with a better form: python tests/prose.py [FILES].

Reads pages, docstrings, comments and names of tests. Skips code, quotations and generated tables.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

KINDS = {
    "pages": ("*.md", ".github/**/*.md", "config/*.md", "docs/**/*.md"),
    "options": ("config.yaml", "envs/*.yaml", "examples/*.yaml", "profiles/**/*.yaml"),
    "package": ("Snakefile", "examples/*.py", "scripts/**/*.py"),
    "tests": ("benchmarks/**/*.py", "docs/*.py", "tests/**/*.py"),
}
BETTER = {
    r"^(Of(?! course)|Where|What|Whose) (?!.*\?\W*$)(?=.* .* )": "begin with the subject",
    r"\banew\b": "again, from scratch",
    r"\bbeside\b": "next to, in addition to",
    r"\b(?!(as|if|is|are|be|was|were|ends?|left|lets?|runs?|stands?) )\w+\W? alone\b": "only, before the noun",
    r", too(?=\W*$|[.,;:)]| and| but| if)": "also, before the verb",
    r"\bin place of\b": "instead of",
    r"\b[Dd]ata sets?\b": "dataset",
    r"\b[Ss]ome \d": "about",
    r"\b[Tt]ells? whether\b": "return whether, report whether",
    r"\b[Rr]efus(e|es|ed|ing)\b": "reject, do not accept",
    r"^[^|](\S* +){35}\S": "several sentences, of at most 35 words each",
}
_PAGE = r"(?ms)^ *```.*?^ *```$|<!-- table:.*?<!-- end -->|<!--.*?-->|<[^>]+>"
# One word each: targets of links, quotations, blocks of code in a docstring.
_QUOTED = r"""(?x) (?<=\]) \([^)\s]*\) | https?://\S+ | ([`"]) [^`"\n]+ (\n [^`"\n]+)? \1 | “[^”]+”
    | (?<=\n\n) \ {4} .+ (\n.+)*"""
_CUT = r"(?m)(?<=[.!?])[')*]*\s+(?=[^\sa-z]|goal|x264)|(?=\||^\s*($|[-*+>#]+\s|\d+\. |[\w*]+: ))"


def prose(path: Path) -> str:
    """Return a file's text with only the prose in its lines."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return re.sub(_PAGE, lambda m: "\n" * m[0].count("\n"), text)
    if path.suffix == ".yaml":  # a comment after a value is an item of a list
        return re.sub(
            r"(?m)^(?!.*# ).*$|^ *#  .*$|^ *# ", "", re.sub(r"(?m)^ *[^\s#].*# ", "# - ", text)
        )
    lines = [""] * (text.count("\n") + 1)
    for match in re.finditer(r'(?ms)(^ *)?"""(.*?)"""|(^ *|\S  )# ([^\n]*)', text):
        body = "" if match[1] is None else inspect.cleandoc(match[2])
        body = f"- {match[4]}." if (match[3] or "").strip() else match[4] or body
        for number, line in enumerate(body.split("\n"), text.count("\n", 0, match.start())):
            lines[number] = line
    return "\n".join(lines)


def findings(path: Path) -> Iterator[str]:
    """Yield `file:line: sentence Better: form.` for each finding in a file."""
    text = prose(path)
    masked = re.sub(_QUOTED, lambda m: "X" * len(m[0]), text)
    starts = [0, *(m.end() for m in re.finditer(_CUT, masked)), len(text)]
    for start, end in zip(starts, starts[1:], strict=False):
        sentence = " ".join(masked[start:end].split()).lstrip("-*+> ")
        for form in (form for wrong, form in BETTER.items() if re.search(wrong, sentence)):
            place = f"{path}:{1 + text.count(chr(10), 0, end - len(text[start:end].lstrip()))}"
            yield f"{place}: {' '.join(text[start:end].split())} Better: {form}."
    if path.suffix != ".yaml" and (n := masked.count(";")) > max(1, len(masked.split()) / 100):
        yield f"{path}:1: {n} semicolons. Better: a sentence each, at most 1 semicolon in 100 words."
    for line, code in enumerate(path.read_text("utf-8").split("\n"), 1):
        if name := re.match(r" *def (test_\w{56,})", code):
            yield f"{path}:{line}: {name[1]}. Better: at most 60 characters, test_<unit>_<condition>_<result>."


def paths(*kinds: str) -> list[Path]:
    """Return the files of some kinds, below the current folder."""
    return [path for k in kinds for glob in KINDS[k] for path in sorted(Path().glob(glob))]


if __name__ == "__main__":
    files = [*map(Path, sys.argv[1:])] or paths(*KINDS)
    sys.exit("\n".join(found for path in files for found in findings(path)) or 0)

"""Write the README's table of options anew from config.schema.yaml.

python scripts/options.py
"""

from pathlib import Path

from goalreel import cli

_ROOT = Path(__file__).parents[1]


def main(argv: list[str] | None = None) -> None:
    """Replace the table in README.md."""
    cli.parser(__doc__).parse_args(argv)

    from goalreel.files.atomic import replacing
    from goalreel.workflow.options_table import options_table, replace_table

    readme = _ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    with replacing(readme) as temporary:
        table = options_table(_ROOT / "config.schema.yaml")
        temporary.write_text(replace_table(text, table), encoding="utf-8")


if __name__ == "__main__":
    cli.run(main)

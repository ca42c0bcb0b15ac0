"""Print the tables of options, as Markdown, from config.schema.yaml.

python scripts/options.py
"""

from pathlib import Path

from goalreel import cli


def main(argv: list[str] | None = None) -> None:
    """Print the tables, section by section."""
    cli.parser(__doc__).parse_args(argv)

    from goalreel.workflow.options_table import options_page

    print(options_page(Path(__file__).parents[1] / "config.schema.yaml"), end="")


if __name__ == "__main__":
    cli.run(main)

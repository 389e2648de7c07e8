"""The pages' running text: `prose/NAME.md`, with `${figures}` for what is computed."""

from pathlib import Path
from string import Template

_DIRECTORY = Path(__file__).parent / "prose"


def prose(name: str, **values: str) -> list[str]:
    """The lines of a text; raises KeyError for a figure that is not among `values`."""
    text = (_DIRECTORY / f"{name}.md").read_text("utf-8")
    return Template(text).substitute(values).rstrip("\n").splitlines()

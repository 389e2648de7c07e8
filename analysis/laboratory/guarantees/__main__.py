"""Measures what the report promises of many studies, and prints it as Markdown.

    guarantees --sites | python -m guarantees

The studies come from the program ``guarantees`` of ``analysis/simulation``, which has the engine
judge them. ``make -C analysis report-guarantees`` calls both.
"""

from __future__ import annotations

import sys

from guarantees.sites import Claims, Totals, read


def main() -> int:
    """The command."""
    claims, totals = read(sys.stdin)
    print(_claims(claims), _totals(totals), sep="\n")
    return 0


def _claims(claims: Claims) -> str:
    return f"""
## Many studies at once

{claims.sites} sites of {claims.studies} studies of all ages, 17 % noise, 70 % of the studies \
without an effect, the others
between 5 and 50 %, half of them losses. Promised: of what is claimed, at most 5 % on average is
false.

| false among claims, on average | most at a site | effects claimed | claims a site |
| ---: | ---: | ---: | ---: |
| {claims.false:.2%} | {claims.most:.1%} | {claims.found:.0%} | {claims.a_site:.0f} |"""


def _totals(totals: dict[str, Totals]) -> str:
    sites = next(iter(totals.values())).sites
    rows = "\n".join(
        f"| {world} | {each.end:.1%} | {each.always:.1%} | {each.false:.1%} |"
        for world, each in totals.items()
    )
    return f"""
## Totals of sites

{sites} sites of 20 studies of unequal weight and age, looked at in twelve nights; in half of the
sites no study has an effect. Promised: the total's interval holds the truth in 95 % of sites, in
all nights together.

| world | hold the truth at the end | at each look | claimed falsely, ever |
| --- | ---: | ---: | ---: |
{rows}

A default with twice the noise is at the edge of the promise if all studies are so."""


if __name__ == "__main__":
    sys.exit(main())

"""The generated parts of README.md and of pages in docs/: their numbers come from the committed tables and from the recipes.

    python -m rtxstudy.readme

draws the README's drawing and writes what stands between ``<!-- begin: NAME -->`` and ``<!-- end -->`` on each page.
"""

from __future__ import annotations

import re

from rtxstudy.readme import findings_page as more
from rtxstudy.readme import front_page as front
from rtxstudy.readme import method_page as method

PAGES = ("README.md", "docs/findings.md", "docs/method.md")
BLOCK = re.compile(r"(?<=<!-- begin: )([\w -]+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
BLOCKS = {
    block.__name__.replace("_", " "): block
    for block in (
        *(front.drawing, front.findings, front.headline_table),
        *(more.models, more.replacement, more.depth, more.grid, more.counting_words, more.less_data, more.where_depth_pays),
        *(more.passes, more.early_exit, more.composed, more.growth, more.worth, more.carried, more.domains),
        *(more.pretraining, more.own_text, more.spam),
        method.recipes,
    )
}


def filled(page: str) -> str:
    """The text of a page with every block written anew."""
    return BLOCK.sub(lambda found: f"{found[1]}{found[2]}{BLOCKS[found[1]]()}\n", page)

"""The generated parts of README.md and of pages in docs/: their numbers come from the committed tables and from the recipes.

    python -m rtxstudy.readme

draws the README's drawing and writes what stands between ``<!-- begin: NAME -->`` and ``<!-- end -->`` on each page. A block
named "claims of QUESTION" prints the claims of that question (:mod:`rtxstudy.questions`) that are true.
"""

from __future__ import annotations

import re

from rtxstudy.readme import blocks, method_page, options_page

PAGES = ("README.md", "docs/findings.md", "docs/method.md", "docs/options.md")
BLOCK = re.compile(r"(?<=<!-- begin: )([\w -]+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
BLOCKS = {
    block.__name__.replace("_", " "): block
    for block in (
        *(blocks.drawing, blocks.what_we_found, blocks.main_figure, blocks.limits),
        *(blocks.tasks, blocks.verdicts, blocks.beside_words, blocks.same_tokens, blocks.models_on_sst2),
        *(blocks.comparisons, blocks.own_text, blocks.forms, blocks.grid, blocks.carried),
        blocks.parts_of_data,
        method_page.recipes,
        options_page.options,
    )
}
CLAIMS = "claims of "


def written(name: str) -> str:
    """What stands in a block."""
    return blocks.claims(name.removeprefix(CLAIMS).replace(" ", "_")) if name.startswith(CLAIMS) else BLOCKS[name]()


def filled(page: str) -> str:
    """The text of a page with every block written anew."""
    return BLOCK.sub(lambda match: f"{match[1]}{match[2]}{written(match[1])}\n", page)

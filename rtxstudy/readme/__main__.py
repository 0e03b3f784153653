"""``python -m rtxstudy.readme``: draw the README's drawing, and write the generated parts of the pages."""

from __future__ import annotations

from rtxlib.atomic import replacing
from rtxstudy.figures import architecture
from rtxstudy.figures.save import save
from rtxstudy.readme import PAGES, filled
from rtxstudy.readme.blocks import ROOT


def main() -> None:
    save(architecture.architecture(), "architecture", architecture.STACKS, ROOT / "figures", architecture.ALT)
    for name in PAGES:
        page = ROOT / name
        with replacing(page) as part:
            part.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()

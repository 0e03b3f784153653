"""``python -m rtxstudy.readme``: draw the README's drawing, and write the generated parts of the pages."""

from __future__ import annotations

from rtxlib.atomic import replacing
from rtxstudy.figures.save import save
from rtxstudy.questions.anatomy import architecture_figures
from rtxstudy.readme import PAGES, filled
from rtxstudy.readme.blocks import ROOT


def main() -> None:
    drawing = architecture_figures.architecture()
    save(drawing, "architecture", architecture_figures.STACKS, ROOT / "figures", architecture_figures.ALT)
    for name in PAGES:
        page = ROOT / name
        with replacing(page) as part:
            part.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()

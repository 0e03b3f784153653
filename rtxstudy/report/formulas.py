"""Formulas of a notebook as MathML."""

from __future__ import annotations

import html
import re
import sys

from latex2mathml.converter import convert


def mathml(formula: str, display: str, stem: str) -> str:
    """A LaTeX formula as MathML, ``display`` "inline" or "block".

    If the converter does not know a command, the result is the marked source, and stderr says so with the notebook's
    ``stem``.
    """
    body = re.sub(r"\\(begin|end)\{(aligned|align)\}", r"\\\1{align*}", formula.strip())  # the form the converter knows
    try:
        converted = convert(body, display=display)
    except Exception as error:  # the converter raises a dozen kinds, IndexError among them
        converted = f"\\{type(error).__name__}"
    if re.search(r"\\[A-Za-z]", converted):
        source = formula.strip()
        print(f"{stem}: the formula {source!r} cannot be set; its source is shown.", file=sys.stderr)
        return f'<code class="unset" title="This formula could not be set">{html.escape(source)}</code>'
    # \mathrm{softmax} is converted to seven identifiers, which a browser would set as seven variables side by side
    letters = r'(?:<mi mathvariant="normal">[^<]</mi>){2,}'
    joined = re.sub(letters, lambda run: f"<mi>{re.sub('<[^>]+>', '', run[0])}</mi>", converted)
    joined = re.sub(r"<mo>([A-Za-z]{2,})</mo>", r"<mi>\1</mi>", joined)  # no space between a name and its bracket
    return f'<div class="formula" tabindex="0">{joined}</div>' if display == "block" else joined

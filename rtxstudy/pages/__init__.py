"""Interactive pages: plain ES modules, and the hosts that show them in a browser, a report or a notebook.

A page is a folder here with ``core.js``, pure functions without a document, and ``view.js``, which exports

    mount(root, state, changed) → { set(state), destroy() }

``root``: the HTMLElement to draw in. ``state``: a plain JSON object; a field that it leaves out has the page's default.
``changed(patch)`` is called at every change by the user, with the changed fields; hosts gather these calls.
``set(state)`` gives the page a whole new state from its host. A page may also return ``state()``, its whole state now,
and ``numbers()``, what it computed.

Modules import each other by relative path, with ``import { … } from "…"`` or ``import * as name from "…"``, and export
functions, classes and constants where they are declared. :mod:`rtxstudy.pages.static` relies on these forms to join
them.

``transformer`` and ``swiglu`` are the pages, ``shared`` is what both use. ``static`` makes one HTML file of a page,
``widget`` shows it in a notebook, ``weights`` gives it the weights of a trained run. ``train_weights`` trains the models
with which the transformer page opens, and writes ``transformer/trained.js``.
"""

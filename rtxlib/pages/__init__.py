"""Interactive pages: plain ES modules, and the hosts that show them in a browser, a report or a notebook.

A page is a folder here with ``core.js``, pure functions that know no document, and ``view.js``, which exports

    mount(root, state, changed) → { set(state), destroy() }

root: the HTMLElement to draw in. state: a plain JSON object. changed(patch): called with what the user changed, as often as
it changes; hosts gather calls. set(patch) is the way back: a host hands in what changed elsewhere. Either module imports
from ``./core.js`` and ``../shared/*.js`` alone, with ``import { … } from "…"`` or ``import * as name from "…"``, and exports
functions, classes and constants where they are declared; :mod:`rtxlib.pages.static` joins them by these lines.
"""

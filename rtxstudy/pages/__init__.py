"""Interactive pages: plain ES modules, and the hosts that show them in a browser, a report or a notebook.

A page is a folder here with ``core.js``, pure functions that know no document, and ``view.js``, which exports

    mount(root, state, changed) → { set(state), destroy() }

root: the HTMLElement to draw in. state: a plain JSON object; what it leaves out is as the page begins. changed(patch): called
with what the user changed, as often as it changes; hosts gather calls. set(state) is the way back: a host hands in the whole
state when it changed elsewhere. A page that can tell has ``state()``, the whole state now, and ``numbers()``, what it computed.

Modules import each other by relative path, with ``import { … } from "…"`` or ``import * as name from "…"``, and export
functions, classes and constants where they are declared; :mod:`rtxstudy.pages.static` joins them by these lines.
"""

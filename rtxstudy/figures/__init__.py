"""The figures of the notebooks: one function per figure, from a tidy table to a matplotlib figure.

A module holds the figures of one subject: ``accuracy``, ``depth``, ``embeddings`` and so on. To add a figure, write a
function in the module of its subject, or in a new module. The function

1. is decorated with ``@styled`` (:mod:`rtxstudy.figures.style`), takes the table as its first argument and the
   title, which is a question, as its last,
2. checks the table with ``require`` and ``one_row_each`` (:mod:`rtxstudy.figures.checks`),
3. draws on the axes of ``canvas(title, note, height, …)`` and returns the figure.

``shared`` holds what the figures have in common: style, looks of the models, labels, lines, scales, notes and checks.
:mod:`rtxstudy.figures.save` writes a figure and its table to disk. Figures read tables and never a model, so importing
them does not load torch.
"""

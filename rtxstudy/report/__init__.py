"""The report: notebooks run through papermill, and their results as one HTML page.

``notebooks`` says which notebooks there are and runs them, each in a kernel of ``execution``; ``html`` makes the page.
This package knows no study: the sentences of a report are in :mod:`rtxstudy.questions`.
"""

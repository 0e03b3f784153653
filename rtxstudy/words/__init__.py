"""Sentences about somebody's own texts, which `rtx compare` and notebook 10 show. Those of the study are claims of a person
(:mod:`rtxstudy.questions`).
"""

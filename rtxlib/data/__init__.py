"""Data: from a source to token ids on disk.

spec                                 what is wanted
prepare                              all steps in order: read, clean, split, tokenise, audit, write; and how the files are opened
datasets                             where rows come from: the Hub (datasets), the user's file (files, separated), the generator
                                     (synthetic), pairs composed of phrases (compose)
rows                                 the table of rows, and the record of each step
clean, splits, tokenization          the steps
audit, containment                   duplicates, contradictory labels, leaks
corpus                               texts without labels, for pretraining
batching                             token ids in batches of like length
"""

"""Data: from a source to token ids on disk.

spec                                  what is wanted
prepare                               all steps in order: read, clean, split, tokenise, audit, write
sources, files, synthetic, lexicon    where rows come from: the Hub, the user's file, the generator and its words
rows                                  the table of rows, and the record of each step
clean, splits, tokenization           the steps
audit, containment                    duplicates, contradictory labels, leaks
prepared                              the files that are written, and how they are opened
batching                              token ids in batches of like length
"""

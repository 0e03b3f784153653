"""One module a question: the sentences that answer it, each with its condition (:mod:`rtxstudy.claims`)."""

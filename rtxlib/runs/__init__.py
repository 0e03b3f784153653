"""What a run is, where runs are kept, and the named studies."""

from transformers.utils import logging

# transformers draws a bar for each file it opens or saves; ours take milliseconds and would bury the training's progress.
logging.disable_progress_bar()

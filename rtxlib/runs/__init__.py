"""What a run is, how runs are trained, and where they are kept."""

from transformers.utils import logging

# transformers draws a progress bar for each file that it opens or saves. They would bury the progress of the training.
logging.disable_progress_bar()

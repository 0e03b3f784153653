"""How a model is trained and then applied to rows.

recipe       the settings of a training
trainer      the loss and the update, evaluation, and the best weights kept
step_rows    which rows a step holds
optimizer    AdamW and the learning rate of each step
checkpoint   files from which a training resumes
parallel     several processes train one model
device       the device and its number format
pretrainer   the training on hidden tokens, without labels
predict      the logits of many rows
"""

"""A folder of texts that is larger than memory, labelled or embedded shard by shard; a shard is a Parquet or JSONL file.

folder            which files are shards, and which of them are finished
parquet, jsonl    a shard of each kind, read and written a piece at a time
piece             how large a piece is
job               what is done with a folder: the model, the columns, the folder that is written
answers           the model of a job, opened once
worker            finishes one shard after another with one model
local, on_ray     many workers: processes of this machine, actors of a cluster
drive             the whole job

No module here loads torch before a model needs it: an exported folder is used without it.
"""

"""An encoder as a graph that other programs run: ONNX, in float32 or with eight-bit weights, in a folder that explains itself.

onnx_nodes   nodes, weights and loops of an ONNX graph, written down one by one
onnx_model   an encoder as a graph: attention, feed-forward, passes, pooling, head, with the formulas of rtxlib.models
quantize     the graph with eight-bit weights
check        what the graph answers, beside what the model answers
folder       the folder that ``rtx export`` writes
card         the README.md of the folder
bert         a classifier of BERT's shape in the names of transformers
standalone   the script that lies in the folder: needs onnxruntime, tokenizers and numpy alone
opened       an exported folder behind ``rtx predict`` and ``rtx embed``

``standalone`` and ``opened`` import neither torch nor transformers. The graph is written by hand, because torch's exporter copies
shared weights and unrolls loops (LOG.md).
"""

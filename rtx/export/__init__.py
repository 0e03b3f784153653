"""An encoder as a graph that other programs run: ONNX, in float32 or with eight-bit weights, in a folder that explains itself.

onnx_nodes   nodes, weights and loops of an ONNX graph, written down one by one
onnx_model   an encoder as a graph: attention, feed-forward, passes, pooling, head, with the formulas of rtxlib.models
quantize     the graph with eight-bit weights
check        what the graph answers, beside what the model answers
held_out     the texts on which both are compared
folder       the folder that ``rtx export`` writes
classifiers  the same of a model of ``rtx compare`` that is no network
beside       the graph that lies beside a run
card         the README.md of the folder
bert         a classifier of BERT's shape in the names of transformers
standalone, standalone_classifier   the scripts that lie in the folder: they need onnxruntime, tokenizers and numpy alone
opened       an exported folder behind ``rtx predict`` and ``rtx embed``

``standalone`` and ``opened`` import neither torch nor transformers. The graph is written by hand, because torch's exporter copies
shared weights and unrolls loops (LOG.md).
"""

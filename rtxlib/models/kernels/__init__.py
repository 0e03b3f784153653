"""Code that is there for speed. Each kernel stands beside the plain formula that tests/test_fast_paths.py holds it to.

============ =========================== ============================================================
module       kernel                      formula
============ =========================== ============================================================
linear       ``linear``, ``Linear``      x·Wᵀ + b (torch's ``F.linear``)
rms_norm     ``rms_norm``                w ⊙ x / √(mean(x²) + ε)
rotation     ``rotate``                  each pair of dimensions turned by the angle of its position
glu          ``glu``                     act(gate) ⊙ value
scores       ``attend``                  softmax(Q·Kᵀ / √D + mask)·V
dropout      ``dropout``, ``Dropout``    x ⊙ mask / (1 − p)
============ =========================== ============================================================

A model part calls the kernel by its name. The kernel decides from the device, the number format and whether gradients are
needed which code computes it. Most kernels are for CPUs; on a GPU torch's own operators run.
"""

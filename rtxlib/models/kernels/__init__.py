"""Code that is there for speed. tests/test_fast_paths.py compares each kernel with its formula.

``rms_norm``, ``rotate`` and ``glu`` have the formula beside them, as ``rms_norm_formula`` and so on. ``linear`` is
compared with torch's ``F.linear``. ``dropout`` is compared with its definition: the share of zeros, and the factor of the rest.

============ =========================== ============================================================
module       kernel                      formula
============ =========================== ============================================================
linear       ``linear``, ``Linear``      x·Wᵀ + b
elementwise  ``rms_norm``                w ⊙ x / √(mean(x²) + ε)
             ``rotate``                  each pair of dimensions turned by the angle of its position
             ``glu``                     act(gate) ⊙ value
             ``dropout``, ``Dropout``    x ⊙ mask / (1 − p)
============ =========================== ============================================================

A model part calls the kernel by its name. The kernel decides from the device, the number format and whether gradients are
needed which code computes it. Most kernels are for CPUs; on a GPU torch's own operators run.
"""

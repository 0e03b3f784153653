"""Classifiers of texts that answer alike: counted words, static word vectors, a frozen encoder, a trained network, a cascade.

Each takes cleaned texts and returns probabilities (texts, labels). Each is kept in a folder of JSON and safetensors, and
nothing is unpickled when it is opened. To add a kind, write a class with ``probabilities``, ``save`` and ``load`` and name it in
:data:`rtx.classifiers.folder.KINDS`.
"""

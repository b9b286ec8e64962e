"""The layers: products, convolutions, pooling, normalization, embeddings, recurrent cells, attention and others.

Each adds weights and calls a function of `nn.functional`, which computes.
"""

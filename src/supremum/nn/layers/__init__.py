"""Layers: products, convolutions, pooling, normalization, embeddings, recurrent cells, attention and the like."""

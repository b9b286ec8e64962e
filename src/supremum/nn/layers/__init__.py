"""The layers: products, convolutions, pooling, normalization, embeddings, recurrent cells, attention and others."""

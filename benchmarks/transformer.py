"""The transformer block of several benchmarks, and its sizes."""

import jax

from supremum import nn

WIDTH, HEADS, LENGTH = 64, 4, 32


class Block(nn.Layer):
    """A transformer block."""

    def __init__(self, **options):
        super().__init__(**options)
        self.norms = [nn.LayerNorm(), nn.LayerNorm()]
        self.attention = nn.MultiHeadAttention(HEADS, WIDTH // HEADS)
        self.up, self.down = nn.Dense(4 * WIDTH), nn.Dense(WIDTH)

    def call(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.down(jax.nn.gelu(self.up(self.norms[1](x))))

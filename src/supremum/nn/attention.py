"""Attention with learned projections, in several heads."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from supremum.errors import ArgumentError
from supremum.nn.functional.attention import dot_product_attention
from supremum.nn.functional.masks import combine_masks
from supremum.nn.functional.promotion import common_dtype, promote_dtype
from supremum.nn.initializers import LECUN_NORMAL, ZEROS, Initializer
from supremum.nn.input_spec import InputSpec
from supremum.nn.key_value_cache import KeyValueCache
from supremum.nn.layer import Layer
from supremum.nn.scopes import next_random_key

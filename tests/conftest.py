"""Compiled programs are kept between tests and workers: the same network is trained many times over.

They are compiled without LLVM's optimisations, which halves the time: most run once. XLA's own passes stay.
"""

import gc
import os
from pathlib import Path

import jax

# JAX makes many small objects that live on; looking for cycles among them is a seventh of the time of all tests.
gc.set_threshold(50_000, 20, 10)
os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0"  # read when first used
)
jax.config.update("jax_compilation_cache_dir", str(Path(__file__).parent.parent / ".pytest_cache/jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.03)

"""Compiled programs are kept between tests and workers: the same network is trained many times over."""

from pathlib import Path

import jax

jax.config.update("jax_compilation_cache_dir", str(Path(__file__).parent.parent / ".pytest_cache/jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)

"""A plain Python reference of the loss scale: updates as in the RFC, Megatron-LM's hysteresis, and retries.

A state is (scale, good steps, skipped steps, overflows, retries); settings are keyword arguments.
"""


def update(state, finite, *, period, multiplier, minimum, maximum, hysteresis):
    scale, good, skipped, overflows, retries = state
    if not finite:
        overflows = min(overflows + 1, hysteresis)
        good, skipped = 0, skipped + 1
        if overflows >= hysteresis:
            scale /= multiplier
    elif good < period - 1:
        good += 1
    else:
        scale, good, overflows = scale * multiplier, 0, 0
    return min(max(scale, minimum), maximum), good, skipped, overflows, retries


def retried_step(state, highest, max_retries, *, multiplier, minimum, **settings):
    """Return the state after a step with gradients that are finite at scales up to `highest`."""
    settings |= {"multiplier": multiplier, "minimum": minimum}
    scale, good, skipped, overflows, retries = state
    tries = 0
    while scale > highest and scale > minimum and tries < max_retries:
        scale, good, tries = max(scale / multiplier, minimum), 0, tries + 1
    if scale <= highest:
        return update((scale, good, skipped, overflows, retries + tries), True, **settings)
    return (*update(state, False, **settings)[:4], retries + tries)

"""Loss scales: settings, state, the pure step from one state to the next, and an optax wrapper."""

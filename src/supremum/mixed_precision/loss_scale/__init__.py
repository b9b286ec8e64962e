"""loss_scale."""

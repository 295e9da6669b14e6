"""What every request passes: tokens, limits, logs, context, health."""

"""Render frames faster than `env.render()`, as numbered blocks."""

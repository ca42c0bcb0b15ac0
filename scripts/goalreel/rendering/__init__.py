"""Turn recorded states, or `env.render()`, into frame caches with captions and a HUD."""

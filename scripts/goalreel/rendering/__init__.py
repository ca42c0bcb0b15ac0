"""States, or env.render(), into the frame cache: atlas, layers, captions and HUD."""

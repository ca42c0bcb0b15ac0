"""Games as a network sees them: environments given as pixels, and the wrappers between."""

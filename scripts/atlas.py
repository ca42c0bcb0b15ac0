"""Draw the atlas, every distinct frame of an environment, or take it from the user's cache."""

from goalreel.stage_program import stage


@stage
def atlas(spec, output):
    from goalreel.provenance.user_cache import from_cache
    from goalreel.rendering.atlas import draw_atlas, read_atlas, write_atlas

    def make() -> None:
        write_atlas(output, draw_atlas(spec.config["env"], spec))

    return from_cache(spec, output, read_atlas, make)

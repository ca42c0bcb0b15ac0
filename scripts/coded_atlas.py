"""Code every frame of an atlas once, or take the coded atlas from the user's cache."""

from goalreel.stage_program import stage


@stage
def coded_atlas(spec, atlas, output):
    from goalreel.encoding.assembling.coded_atlas import read_coded_atlas, write_coded_atlas
    from goalreel.encoding.assembling.encode_atlas import code_atlas
    from goalreel.provenance.user_cache import from_cache
    from goalreel.rendering.atlas import read_atlas
    from goalreel.rendering.overlay import empty_track

    config, encode = spec.config, spec.config["film_encoder"]

    def make() -> None:
        drawn = read_atlas(atlas)
        seen = drawn.background, config["env"], config["overlay.hud"]
        quantizers = encode["qp"], encode["card_qp"]
        write_coded_atlas(output, code_atlas(drawn, *empty_track(*seen), quantizers, spec))

    return from_cache(spec, output, read_coded_atlas, make)

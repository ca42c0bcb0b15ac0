"""Film the progress of a training: the first attempts of the policy at each checkpoint."""

from goalreel.stage_program import stage


@stage
def training_progress(spec, film, table, sums, policy=None, atlas=None):
    from goalreel.errors import pluralize
    from goalreel.files.atomic import write_text
    from goalreel.films.scene import check_sources
    from goalreel.provenance.checksums import write_sums
    from goalreel.rendering.atlas import read_atlas
    from goalreel.views.learning_film import learning_film, read_learner, write_film

    check_sources(spec, spec.config["learner"])
    learner = read_learner(spec.config["learner"], policy)
    with learning_film(learner, read_atlas(atlas) if atlas else None, spec) as filmed:
        title = f"{spec.config['env']}: learned in {pluralize(max(learner), 'decision')}"
        write_film(film, filmed, title, spec)
        write_text(table, filmed.table.to_csv(index=False, lineterminator="\n"))
        frames = sum(chapter.frames for chapter in filmed.chapters)
    write_sums(sums, [table], spec)
    return f"{len(filmed.chapters)} attempts, {len(learner)} checkpoints, {frames} frames"

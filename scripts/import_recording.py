"""Import a recording into a file of blocks, from which each shard reads only its own episodes."""

from goalreel.stage_program import stage


@stage
def import_recording(spec, output):
    from goalreel.errors import pluralize
    from goalreel.policies.policy_dependencies import check_files, policy_files
    from goalreel.simulation.recording_file import read_recording, write_blocks

    policy = spec.config["policy"]
    played = read_recording(policy["file"])
    check_files(spec, policy_files(policy))
    write_blocks(output, played, spec)
    return f"{pluralize(len(played), 'episode')} of {pluralize(int(played.offsets[-1]), 'row')}"

"""The episodes that Gymnasium films when it is told nothing else."""


def capped_cubic_video_schedule(episode_id: int) -> bool:
    """Return whether an episode is 0, 1, 8, 27, ..., 729 or one of 1000, 2000, 3000, ...

    Source: `capped_cubic_video_schedule` in gymnasium/utils/save_video.py (1.4.0).
    """
    if episode_id < 1000:
        return round(episode_id ** (1 / 3)) ** 3 == episode_id
    return episode_id % 1000 == 0

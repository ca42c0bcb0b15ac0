"""Gymnasium's default schedule of recorded episodes, without importing Gymnasium."""


def capped_cubic_video_schedule(episode_id: int) -> bool:
    """Return whether an episode is a cube (0, 1, 8, ... 729) or, from 1000 on, a multiple of 1000.

    Source: gymnasium.utils.save_video.capped_cubic_video_schedule.
    """
    if episode_id >= 1000:
        return episode_id % 1000 == 0
    return round(episode_id ** (1 / 3)) ** 3 == episode_id

"""Which episodes get a video where nobody says so: Gymnasium's schedule, without Gymnasium."""


def capped_cubic_video_schedule(episode_id: int) -> bool:
    """Return whether an episode is a cube (0, 1, 8, 27, ... 729) or, from 1000 on, a thousand.

    Source: gymnasium.utils.save_video.capped_cubic_video_schedule.
    """
    if episode_id >= 1000:
        return episode_id % 1000 == 0
    return round(episode_id ** (1 / 3)) ** 3 == episode_id

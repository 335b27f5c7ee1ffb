"""Whether tests talk to a real server. The suite stores its own answer in `is_live._cache`."""


def is_live():
    return bool(getattr(is_live, "_cache", True))

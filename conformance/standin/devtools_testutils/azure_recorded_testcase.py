"""Credentials for tests: the emulator key is used everywhere, so a token is never made."""


def get_credential(is_async=False, **_kwargs):
    raise RuntimeError(
        "the suite asked for an Entra credential: ACCOUNT_HOST must be exactly https://localhost:8081/"
    )

"""Tokens as an issuer would make them, but for the signature, which the server's development mode does not look at."""

import base64
import json
import time

from azure.core.credentials import AccessToken


def _token():
    expires = int(time.time()) + 600
    parts = [{"alg": "RS256", "typ": "JWT"}, {"oid": "an-application", "exp": expires}]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return AccessToken(".".join([*encoded, "c2lnbmF0dXJl"]), expires)


class DevelopmentCredential:
    def get_token(self, *_scopes, **_options):
        return _token()


class AsyncDevelopmentCredential:
    async def get_token(self, *_scopes, **_options):
        return _token()

"""Requests to the management API, which no SDK knows."""

import base64
import hashlib
import hmac
import os
from email.utils import formatdate
from urllib.parse import quote

import requests


def manage(verb, path, body=None):
    """Sends a signed request to a path under /_orrery/ and returns the JSON of a good answer."""
    link, date = f"_orrery/{path}", formatdate(usegmt=True)
    text = f"{verb.lower()}\norrery\n{link}\n{date.lower()}\n\n"
    digest = hmac.new(base64.b64decode(os.environ["ORRERY_KEY"]), text.encode(), hashlib.sha256).digest()
    signature = base64.b64encode(digest).decode()
    headers = {"x-ms-date": date, "authorization": quote(f"type=master&ver=1.0&sig={signature}", safe="")}
    url = os.environ["ORRERY_ENDPOINT"] + link
    answer = requests.request(verb, url, json=body, headers=headers, verify=False, timeout=30)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()

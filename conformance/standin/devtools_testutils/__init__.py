"""Stand-in for the unpublished test package that the azure-cosmos suite imports.

Only the two names that the suite really uses exist here, with the meaning they have when
tests run against a live server instead of recordings.
"""

from .azure_recorded_testcase import get_credential
from .helpers import is_live

__all__ = ["get_credential", "is_live"]

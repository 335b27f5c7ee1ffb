"""Stand-in for the unpublished test package that the suites of Azure's Python SDKs import.

Only the names that the suites really use exist here, with the meaning they have when
tests run against a live server instead of recordings.
"""

from .azure_recorded_testcase import AzureRecordedTestCase, get_credential
from .helpers import is_live
from .recordings import PowerShellPreparer, ResponseCallback, recorded_by_proxy, set_custom_default_matcher

__all__ = [
    "AzureRecordedTestCase",
    "PowerShellPreparer",
    "ResponseCallback",
    "get_credential",
    "is_live",
    "recorded_by_proxy",
    "set_custom_default_matcher",
]

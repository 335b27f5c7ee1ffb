"""The base class of tests, and credentials for them."""

import os
import zlib

from development_token import AsyncDevelopmentCredential, DevelopmentCredential


def get_credential(is_async=False, **_kwargs):
    """The suite of tables has tests with tokens; that of azure-cosmos uses the emulator's key everywhere."""
    if "TABLES_PORT" not in os.environ:
        raise RuntimeError(
            "the suite asked for an Entra credential: ACCOUNT_HOST must be exactly https://localhost:8081/"
        )
    return AsyncDevelopmentCredential() if is_async else DevelopmentCredential()


class AzureRecordedTestCase:
    is_live = True

    def get_resource_name(self, prefix):
        """A name that is the same within a test, whenever it is asked for, and another in the next."""
        test = os.environ["PYTEST_CURRENT_TEST"].partition(" ")[0]
        return f"{prefix}{zlib.crc32(test.encode()):08x}"

    def generate_sas(self, function, *arguments, **options):
        return function(*arguments, **options)

    def sleep(self, _seconds):
        """The cloud is given time to spread what was written; one server needs none."""

"""What has to do with recordings. There are none: tests get their account from the environment and run as they are.

The wrappers hide the signature of the test, so that pytest does not take its arguments for fixtures.
"""

import inspect
import os


def recorded_by_proxy(test):
    def run(*arguments, **options):
        return test(*arguments, **options)

    return run


def set_custom_default_matcher(**_settings):
    """Says how recordings are compared."""


class PowerShellPreparer:
    """Hands a test the settings that it names, from variables of the environment."""

    def __init__(self, _folder, **names):
        self._names = list(names)

    def __call__(self, test):
        given = {name: os.environ[name.upper()] for name in self._names if name.upper() in os.environ}
        if inspect.iscoroutinefunction(test):

            async def run_async(*arguments, **options):
                return await test(*arguments, **options, **given)

            return run_async

        def run(*arguments, **options):
            return test(*arguments, **options, **given)

        return run


class ResponseCallback:
    """A file that others import for its transports names it; no test that we run makes one."""

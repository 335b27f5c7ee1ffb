"""The asynchronous twin of `recorded_by_proxy`: nothing is recorded."""


def recorded_by_proxy_async(test):
    async def run(*arguments, **options):
        return await test(*arguments, **options)

    return run

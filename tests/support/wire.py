"""A transport of httpx for tests: what a function answers comes unread, as it does from a server."""

import httpx


class Wire(httpx.MockTransport):
    """A MockTransport whose replies are still to be read, piece by piece, whatever they were made of."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer by the function, with the body as a stream."""
        made = await super().handle_async_request(request)
        return httpx.Response(made.status_code, headers=made.headers, stream=made.stream)

"""Connections of the HTTP server whose requests have heads of a bounded size."""

from __future__ import annotations

from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["LARGEST_HEAD", "BoundedHttpProtocol"]

LARGEST_HEAD: Final = 64 * 1024
"""Bytes of the largest request line with headers; the limit of h11, which uvicorn uses without
httptools."""


class BoundedHttpProtocol(HttpToolsProtocol):
    """Refuses a request while its head is received, before it fills the memory."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._is_in_head = False
        self._received = 0

    def on_message_begin(self) -> None:
        """Begin to count."""
        self._is_in_head, self._received = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """End to count."""
        self._is_in_head = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Parse bytes of the client."""
        super().data_received(data)
        if self._is_in_head:
            self._received += len(data)
            if self._received > LARGEST_HEAD and not self.transport.is_closing():
                self.send_400_response("The headers of the request are too large.")

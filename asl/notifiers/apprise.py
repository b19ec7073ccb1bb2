"""`apprise:URL`: mail, chat, text messages and whatever else the library Apprise reaches."""

from asl.core.environment import require_extra
from asl.core.errors import AslError
from asl.core.values import Json
from asl.notifiers import Notify
from asl.notifiers.text import title, told

__all__ = ["channel"]


def channel(address: str) -> Notify:
    """Return what notifies the service at *address*, a URL of Apprise's."""
    require_extra("apprise", "apprise", "the channel apprise")
    from apprise import Apprise

    client = Apprise()
    if not client.add(address):
        service = address.partition("://")[0]
        raise AslError(f"Apprise cannot make out the address 'apprise:{service}://...'")

    async def tell(kind: str, request: dict[str, Json], details: dict[str, Json]) -> None:
        subject = title(kind, details)
        if not await client.async_notify(title=subject, body=told(request, details)):
            raise OSError("Apprise could not deliver the notification")

    return tell

"""Who is answered: the browser that traded the one-time token for a cookie, under the server's own names. Knows no HTTP library."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from typing import Final

ADDRESS: Final = "127.0.0.1"
_BYTES: Final = 32
"""Of randomness in the token and in the cookie: 256 bits each."""


class Access:
    """One token, then one session. Both live in this object only and end with the process."""

    def __init__(self, port: int) -> None:
        self.names = tuple(f"{name}:{port}" for name in (ADDRESS, "localhost"))
        """What a Host header may say. Any other name reached us by a resolver that a foreign page controls."""
        self.cookie = f"trainflow_{port}"
        """The cookie's name: a browser keeps one jar for all ports of a host, so two servers need two names."""
        self._token: str | None = secrets.token_urlsafe(_BYTES)
        self._session: str | None = None

    @property
    def first_url(self) -> str:
        """The address that works once. Empty after that."""
        return f"http://{self.names[0]}/?token={self._token}" if self._token else ""

    def is_our_host(self, hosts: Sequence[str]) -> bool:
        """Whether a request's Host headers are one, and one of our names."""
        return len(hosts) == 1 and hosts[0].lower() in self.names

    def is_our_origin(self, origins: Sequence[str], host: str) -> bool:
        """Whether a request was made by a page that came from the same name and port. None said is not enough."""
        return len(origins) == 1 and origins[0].lower() == f"http://{host.lower()}"

    def trade(self, token: str) -> str | None:
        """The session's secret for the token, once; None for a used or wrong one."""
        if self._token is None or not _same(token, self._token):
            return None
        self._token = None
        self._session = secrets.token_urlsafe(_BYTES)
        return self._session

    def is_in_session(self, cookie: str | None) -> bool:
        """Whether a request brings the session's secret."""
        return cookie is not None and self._session is not None and _same(cookie, self._session)


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), secret.encode())

"""Database URLs, which never show a password."""

from __future__ import annotations

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from weft.errors import UseError

HIDDEN = "***"
_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
_SECRET_WORDS = ("password", "secret", "token")


def read_url(text: str) -> URL:
    """The URL of a catalog, with the driver that Weft brings.

    Examples
    --------
    >>> shown(read_url("postgresql://ada:engine@db.local/weft"))
    'postgresql://ada:***@db.local/weft'
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # the text may hold a password, so the message does not repeat it
        raise UseError(
            "the catalog's URL cannot be read: write sqlite:///FILE or postgresql://USER@HOST:PORT/DATABASE"
        ) from None
    backend = url.get_backend_name()
    if backend not in _DRIVERS:
        raise UseError(f"no catalog in {backend}: write sqlite:///FILE or postgresql://USER@HOST:PORT/DATABASE")
    return url.set(drivername=_DRIVERS[backend])


def shown(url: URL) -> str:
    """The URL for people: no driver, no password, neither before the host nor among the options.

    Examples
    --------
    >>> shown(read_url("postgresql://ada@db.local/weft?sslpassword=engine&sslmode=require"))
    'postgresql://ada@db.local/weft?sslmode=require'
    """
    return _without_options(url).render_as_string(hide_password=True)


def without_secrets(url: URL) -> str:
    """The URL to keep beside a checkpoint: the password comes from the environment when it is used."""
    plain = _without_options(url)
    # set() takes None for "as it was"
    bare = URL.create(plain.drivername, plain.username, None, plain.host, plain.port, plain.database, plain.query)
    return bare.render_as_string(hide_password=False)


def _without_options(url: URL) -> URL:
    options = {key: value for key, value in url.query.items() if not _is_secret(key)}
    return url.set(drivername=url.get_backend_name(), query=options)


def secrets_of(url: URL) -> list[str]:
    """What must not be seen of a URL."""
    options = [str(value) for key, value in url.query.items() if _is_secret(key)]
    return [str(secret) for secret in (url.password, *options) if secret]


def _is_secret(key: str) -> bool:
    return any(word in key.lower() for word in _SECRET_WORDS)

"""A shaky line to a broker: the first batch of records that goes over it arrives spoilt, and is refused."""

from __future__ import annotations

import select
import socket
import struct
import threading
from contextlib import suppress

PRODUCE = 0
WAIT = 0.5
"""Seconds in which a client that does not wait for answers sends its next request."""


class ShakyLine:
    """Hands on what comes to port ``at`` to port ``to``, except one bit of the first request with records.

    The broker refuses these (their checksum is wrong), and the client has to send them again. If it does not wait for
    the answer but sends more, that reaches the broker in the meantime.
    """

    def __init__(self, at: int, to: int) -> None:
        self.spoilt = False
        self._to = to
        self._door = socket.create_server(("127.0.0.1", at))
        threading.Thread(target=self._connect, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._door.shutdown(socket.SHUT_RDWR)  # ends the wait for another one
        self._door.close()

    def _connect(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                broker = socket.create_connection(("127.0.0.1", self._to))
                threading.Thread(target=self._ask, args=(client, broker), daemon=True).start()
                threading.Thread(target=self._answer, args=(broker, client), daemon=True).start()

    def _ask(self, client: socket.socket, broker: socket.socket) -> None:
        with suppress(OSError), client, broker:
            while request := _request(client):
                if struct.unpack_from(">h", request, 4)[0] == PRODUCE and not self.spoilt:
                    self.spoilt = True
                    request[-8] ^= 1  # within the records: a few bytes of the request come after them
                    select.select([client], [], [], WAIT)
                broker.sendall(request)

    def _answer(self, broker: socket.socket, client: socket.socket) -> None:
        with suppress(OSError), client, broker:
            while some := broker.recv(65536):
                client.sendall(some)


def _request(client: socket.socket) -> bytearray:
    """The next request, its length before it; nothing when there are no more."""
    head = _exactly(client, 4)
    return head + _exactly(client, struct.unpack(">i", head)[0]) if head else head


def _exactly(client: socket.socket, count: int) -> bytearray:
    taken = bytearray()
    while len(taken) < count:
        some = client.recv(count - len(taken))
        if not some:
            return bytearray()
        taken += some
    return taken

"""The client of this process: one thread that makes requests, for all libraries with the core."""

from __future__ import annotations

import atexit
import os
import threading
from ctypes import byref
from typing import Any

from tfrfast import _native
from tfrfast.storage.remote import answers, interrupts, library, pace, stores
from tfrfast.storage.remote.request_thread import Client, in_the_table
from tfrfast.storage.remote.table import STARTER, ClientTable

_client: Client | None = None
#: Replaced clients, which may still be waiting.
_given_up: list[Client] = []
# A finaliser may need the client while its own thread is making a client.
_lock = threading.RLock()
#: The tables of the libraries that have requested a client.
_addresses: list[int] = []
#: Tables whose waits end at Ctrl-C, and the descriptor that reports Ctrl-C.
_interruptible: dict[int, int] = {}
#: Callbacks of libraries that may request a client later, by table.
_starters: dict[int, Any] = {}


def use_client(address: int | None = None) -> Client:
    """Returns the process's client, which serves the exchange of that table, by default the native
    module's.

    Raises ModuleNotFoundError without obstore.
    """
    global _client
    library.obstore()
    if address is None:
        address = _native.remote_client_table()
    with _lock:
        if _client is None or not _client.is_alive:
            if _client is not None:
                _client.wait_for_death()
            _client = _serving_all(Client(_replace))
        if address not in _addresses:
            _client.serve(address)
            _addresses.append(address)
        return _client


def _serving_all(client: Client) -> Client:
    for address in _addresses:
        client.serve(address)
    for address, descriptor in _interruptible.items():
        client.end_at_interrupts(address, descriptor)
    return client


def _replace(client: Client) -> None:
    """Replaces a client whose thread is waiting, perhaps for a request."""
    global _client
    with _lock:
        if _client is not client or not client.is_alive:
            return
        _client = Client(_replace)
        _given_up[:] = [each for each in _given_up if each.has_thread]
        _given_up.append(client)
        client.give_up()
        _serving_all(_client)


def end_waits_at_interrupts(address: int) -> None:
    """Lets Ctrl-C end waits of the library with that table, which never calls Python.

    Has an effect only in the main thread. Without a client, the next client takes over the table.
    """
    descriptor = interrupts.listen()
    if descriptor is not None and _interruptible.get(address) != descriptor:
        with _lock:
            _interruptible[address] = descriptor
            if _client is not None:
                _client.end_at_interrupts(address, descriptor)


def start_when_asked(address: int) -> None:
    """Gives the library with that table a client when it opens its first URL.

    A graph from another process may name the first URL.
    """

    def start() -> None:
        try:
            use_client(address)
        except BaseException as error:  # an exception cannot pass through the library
            ClientTable.from_address(address).end(f"{error}.".replace("..", ".").encode())

    _starters[address] = STARTER(start)
    ClientTable.from_address(address).start_with(_starters[address])


def expect_to_open(found: dict[str, answers.Facts], access: str) -> None:
    """Stores facts of URLs for the next opening, which then makes no request. A later change is
    noticed: every read requests that version.
    """
    tables = [ClientTable.from_address(each) for each in _addresses]
    for table in tables:
        table.forget_listed()
    for url, facts in found.items():
        names = (os.fsencode(url), access.encode())
        said, version = byref(in_the_table(facts)), facts.encode().encode()
        for table in tables:
            table.expect(*names, said, version)


def _begin_in_child() -> None:
    """Gives a forked child, which has none of the parent's threads, its own client at once, because
    the core cannot request a client.
    """
    global _client, _lock
    _lock = threading.RLock()
    for client in (*_given_up, _client):
        if client is not None:
            client.forget()
    _given_up.clear()
    _client = None
    library.renew_in_child()
    stores.forget_all()
    pace.forget_all()
    for address, starter in _starters.items():
        ClientTable.from_address(address).start_with(starter)
    interrupts.forget()
    for address in list(_interruptible):
        if (descriptor := interrupts.listen()) is None:
            del _interruptible[address]
        else:
            _interruptible[address] = descriptor
    if _addresses:
        _client = _serving_all(Client(_replace))


def _end() -> None:
    for address in _starters:
        ClientTable.from_address(address).start_with(STARTER())
    for client in (_client, *_given_up):
        if client is not None:
            client.end()


os.register_at_fork(after_in_child=_begin_in_child)
atexit.register(_end)

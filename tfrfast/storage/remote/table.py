"""The core's table of C functions for a client, as in csrc/core/storage/remote/remote_client.h."""

from __future__ import annotations

from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_char_p,
    c_int32,
    c_int64,
    c_uint64,
    c_void_p,
)

#: The callback by which the core gets a client, with the GIL.
STARTER = CFUNCTYPE(None)


class ClientRequest(Structure):
    _fields_ = (
        ("number", c_uint64),
        ("offset", c_uint64),
        ("bytes", c_uint64),
        ("url", c_char_p),
        ("access", c_char_p),
        ("version", c_char_p),
    )


class ClientFacts(Structure):
    _fields_ = (
        ("bytes", c_uint64),
        ("mtime_ns", c_int64),
        ("version", c_uint64 * 3),
        ("version_lasts", c_int32),
        ("zero", c_int32),
    )


class ClientTable(Structure):
    """Calls through ctypes release the GIL, and take it again only after the core has returned."""

    _fields_ = (
        ("begin", CFUNCTYPE(c_int32)),
        ("end", CFUNCTYPE(None, c_char_p)),
        ("acknowledge", CFUNCTYPE(None)),
        ("take", CFUNCTYPE(c_int32, POINTER(ClientRequest))),
        ("take_abandoned", CFUNCTYPE(c_uint64)),
        ("receive", CFUNCTYPE(None, c_uint64, c_uint64, c_void_p, c_uint64)),
        ("finish_facts", CFUNCTYPE(None, c_uint64, POINTER(ClientFacts), c_char_p)),
        ("fail", CFUNCTYPE(None, c_uint64, c_int32, c_int32, c_char_p)),
        ("start_with", CFUNCTYPE(None, STARTER)),
        ("expect", CFUNCTYPE(None, c_char_p, c_char_p, POINTER(ClientFacts), c_char_p)),
        ("forget_listed", CFUNCTYPE(None)),
    )

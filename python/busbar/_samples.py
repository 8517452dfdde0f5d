# SPDX-License-Identifier: BSD-2-Clause
"""Samples, and the two formats in which they go over WebSockets: villas.web and json. See
busbar-format-villas.web(7) and busbar-format-json(7)."""

from __future__ import annotations

import array
import json
import math
import struct
import sys
import time
from dataclasses import dataclass, field
from typing import Any, Callable, List, NamedTuple, Sequence, Union, cast

from ._errors import ProtocolError

#: Of one signal: real, integer, boolean or complex.
Value = Union[float, int, bool, complex]
_S = 1_000_000_000
_TYPES = ("float", "integer", "boolean", "complex")


@dataclass
class Sample:
    """Values of one moment. What a sample does not have is None."""

    values: List[Value] = field(default_factory=list)
    sequence: int | None = None
    origin_ns: int | None = None  # when it was made, nanoseconds since 1970
    received_ns: int | None = None  # when the gateway received it
    new_frame: bool = False
    new_simulation: bool = False

    @classmethod
    def now(cls, values: Sequence[Value], sequence: int | None = None) -> Sample:
        """Made now."""
        return cls(list(values), sequence, time.time_ns())


def check_types(types: Sequence[str] | None) -> tuple[str, ...]:
    out = tuple(types or ())
    for t in out:
        if t not in _TYPES:
            raise ValueError(f"the type {t!r}: expected {', '.join(_TYPES)}")
    return out


class Codec(NamedTuple):
    """A format. Types are those of the signals; what is beyond them is real."""

    binary: bool
    encode: Callable[[Sequence[Sample], Sequence[str]], bytes]
    decode: Callable[[bytes, Sequence[str]], List[Sample]]


# ---- villas.web ----

_HEAD = struct.Struct("<BBHIII")
_VERSION = 2 << 4
_KINDS = (_VERSION, _VERSION | 1 << 2, _VERSION | 2 << 2)  # data, start, stop


def _web_decode(data: bytes, types: Sequence[str]) -> list[Sample]:
    at, out = 0, []
    size = len(data)
    while at < size:
        if size - at < _HEAD.size:
            raise ProtocolError(f"villas.web: {size - at} bytes are left, a message has 16 or more")
        kind, _, length, sequence, seconds, nanoseconds = _HEAD.unpack_from(data, at)
        if kind not in _KINDS or nanoseconds >= _S:
            raise ProtocolError(f"villas.web: no message of version 2 at byte {at}")
        at += _HEAD.size
        if size - at < 4 * length:
            raise ProtocolError(f"villas.web: a message of {length} values ends behind "
                                f"{(size - at) // 4} of them")
        if kind == _VERSION:
            out.append(Sample(_web_values(data, at, length, types), sequence,
                              seconds * _S + nanoseconds or None))
        at += 4 * length
    return out


def _web_values(data: bytes, at: int, length: int, types: Sequence[str]) -> list[Value]:
    reals = array.array("f", data[at:at + 4 * length])
    if sys.byteorder == "big":
        reals.byteswap()
    values: list[Value] = reals.tolist()  # type: ignore[assignment]
    for i, t in enumerate(types[:length]):
        if t == "integer":
            values[i] = int.from_bytes(data[at + 4 * i:at + 4 * i + 4], "little", signed=True)
        elif t != "float":
            raise ProtocolError(f"villas.web: signal {i} is {t}, which the format cannot carry; "
                                "use json")
    return values


def _web_encode(samples: Sequence[Sample], types: Sequence[str]) -> bytes:
    parts = []
    for s in samples:
        if len(s.values) > 65535:
            raise ValueError(f"{len(s.values)} values; villas.web carries 65535")
        seconds, nanoseconds = divmod(s.origin_ns or 0, _S)
        parts.append(_HEAD.pack(_VERSION, 0, len(s.values), (s.sequence or 0) & 0xFFFFFFFF,
                                seconds & 0xFFFFFFFF, nanoseconds))
        parts.append(_web_payload(s.values, types))
    return b"".join(parts)


def _web_payload(values: Sequence[Value], types: Sequence[str]) -> bytes:
    kinds = types[:len(values)]
    try:
        if all(kind == "float" for kind in kinds):
            # What is too large becomes infinite, as in the gateway.
            reals = array.array("f", cast("Sequence[float]", values))
            if sys.byteorder == "big":
                reals.byteswap()
            return reals.tobytes()
        return b"".join(_web_value(v, kinds[i] if i < len(kinds) else "float")
                        for i, v in enumerate(values))
    except (TypeError, struct.error, OverflowError) as error:
        raise ValueError(f"villas.web carries reals and integers of 32 bits, no other values, "
                         f"which json does: {error}") from None


def _web_value(v: Value, kind: str) -> bytes:
    if kind == "integer":
        return struct.pack("<i", v)
    if kind != "float":
        raise TypeError(f"{v!r} of a signal that is {kind}")
    reals = array.array("f", [cast(float, v)])
    if sys.byteorder == "big":
        reals.byteswap()
    return reals.tobytes()


# ---- json ----


def _json_value(v: Any, kind: str) -> Value:
    if isinstance(v, str) and v in ("nan", "inf", "-inf"):
        return float(v)
    if v is None:
        return math.nan
    if isinstance(v, dict):
        real, imag = v.get("real"), v.get("imag")
        if isinstance(real, (int, float, str)) and isinstance(imag, (int, float, str)):
            return complex(float(real), float(imag))
    elif isinstance(v, bool) or kind == "boolean" and isinstance(v, (int, float)):
        return bool(v)
    elif isinstance(v, (int, float)):
        return float(v) if kind == "float" else int(v) if kind == "integer" else v
    raise ProtocolError(f"json: {v!r} is no value of a signal")


def _json_time(ts: Any, name: str) -> int | None:
    pair = ts.get(name) if isinstance(ts, dict) else None
    if pair is None:
        return None
    if not (isinstance(pair, list) and len(pair) == 2 and all(type(x) is int for x in pair)):
        raise ProtocolError(f"json: ts.{name} is not [seconds, nanoseconds]")
    return int(pair[0]) * _S + int(pair[1])


def _json_sample(o: Any, types: Sequence[str]) -> Sample:
    if not isinstance(o, dict):
        raise ProtocolError("json: a sample is no object")
    data, flags, sequence = o.get("data", []), o.get("flags", []), o.get("sequence")
    if not isinstance(data, list) or not isinstance(flags, list):
        raise ProtocolError("json: data or flags are no list")
    if sequence is not None and type(sequence) is not int:
        raise ProtocolError("json: the sequence is no integer")
    values = [_json_value(v, types[i] if i < len(types) else "") for i, v in enumerate(data)]
    return Sample(values, sequence, _json_time(o.get("ts"), "origin"),
                  _json_time(o.get("ts"), "received"), "new_frame" in flags,
                  "new_simulation" in flags)


def _json_decode(data: bytes, types: Sequence[str]) -> list[Sample]:
    try:
        o = json.loads(data)
        return [_json_sample(s, types) for s in (o if isinstance(o, list) else [o])]
    except ProtocolError:
        raise
    except (ValueError, OverflowError, RecursionError) as error:
        raise ProtocolError(f"json: {error}") from None


def _json_out(v: Value, kind: str) -> Any:
    if isinstance(v, complex):
        return {"real": _json_out(v.real, "float"), "imag": _json_out(v.imag, "float")}
    if isinstance(v, bool) or kind != "float" and isinstance(v, int):
        return v
    v = float(v)
    return v if math.isfinite(v) else str(v)


def _json_encode(samples: Sequence[Sample], types: Sequence[str]) -> bytes:
    out = []
    for s in samples:
        o: dict[str, Any] = {}
        ts = {name: list(divmod(ns, _S)) for name, ns in
              (("origin", s.origin_ns), ("received", s.received_ns)) if ns is not None}
        if ts:
            o["ts"] = ts
        flags = [n for n in ("new_frame", "new_simulation") if getattr(s, n)]
        if flags:
            o["flags"] = flags
        if s.sequence is not None:
            o["sequence"] = s.sequence
        o["data"] = [_json_out(v, types[i] if i < len(types) else "")
                     for i, v in enumerate(s.values)]
        out.append(o)
    return json.dumps(out, separators=(",", ":")).encode()


CODECS = {
    "villas.web": Codec(True, _web_encode, _web_decode),
    "json": Codec(False, _json_encode, _json_decode),
}


def find_codec(format: str) -> Codec:
    if format not in CODECS:
        raise ValueError(f"the format {format!r}: expected {' or '.join(CODECS)}")
    return CODECS[format]

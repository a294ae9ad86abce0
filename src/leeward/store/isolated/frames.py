"""Frames, the messages between the processes of the store: a JSON header and raw numbers."""

import json
import math
import os
import signal
import struct
import time
from collections.abc import Mapping
from typing import IO, Any, NamedTuple

import numpy as np

from leeward.store.format.kind import Array, Value

TOO_MUCH_MEMORY = 90  # exit code of a reader process

_PREFIX = struct.Struct("<4sIQ")  # the mark, the length of the header, the length of the numbers
_MARK = b"lwd1"
_REAL = struct.Struct("<d")
_LONGEST_HEADER = 1 << 28
_MOST_NUMBERS = 1 << 27  # bytes
_HEARTBEAT_S = 0.5

INVALID = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)  # raised by read_frame


class Frame(NamedTuple):
    """A message. header: any JSON values. attributes, datasets: of a group or a file."""

    header: dict[str, Any]
    attributes: dict[str, Value]
    datasets: dict[str, Array]


def encode(
    header: Mapping[str, Any],
    attributes: Mapping[str, Value] | None = None,
    datasets: Mapping[str, Array] | None = None,
) -> bytes:
    """Return a frame as bytes. Floats are sent as raw bytes, because a seal covers every bit, even of a NaN."""
    numbers = []
    plain: dict[str, Any] = {}
    for name, value in (attributes or {}).items():
        if isinstance(value, str | bool | int):
            plain[name] = value
        elif isinstance(value, np.ndarray):
            plain[name] = value.shape
            numbers.append(value.astype("<f8", copy=False).tobytes())
        else:
            plain[name] = ()
            numbers.append(_REAL.pack(value))
    shapes = {name: array.shape for name, array in (datasets or {}).items()}
    numbers += [array.astype("<f8", copy=False).tobytes() for array in (datasets or {}).values()]
    text = json.dumps({**header, "attributes": plain, "datasets": shapes} if plain or shapes else header).encode()
    body = b"".join(numbers)
    return b"".join((_PREFIX.pack(_MARK, len(text), len(body)), text, body))


def read_frame(stream: IO[bytes]) -> Frame:
    """Return the next frame of a stream. Raise EOFError if the sender ended, or one of INVALID for other bytes."""
    mark, header_length, numbers_length = _PREFIX.unpack(_exactly(stream, _PREFIX.size))
    if mark != _MARK or header_length > _LONGEST_HEADER or numbers_length > _MOST_NUMBERS:
        raise ValueError("no frame begins here")
    header = json.loads(_exactly(stream, header_length))
    numbers = np.frombuffer(_exactly(stream, numbers_length), dtype="<f8").astype(np.float64)
    attributes: dict[str, Value] = {}
    at = 0
    for name, value in header.pop("attributes", {}).items():
        if isinstance(value, list):
            end = at + math.prod(value)
            attributes[name] = numbers[at:end].reshape(value) if value else float(numbers[at])
            at = end
        else:
            attributes[name] = value
    datasets = {}
    for name, shape in header.pop("datasets", {}).items():
        end = at + math.prod(shape)
        datasets[name] = numbers[at:end].reshape(shape)
        at = end
    return Frame(header, attributes, datasets)


def _exactly(stream: IO[bytes], length: int) -> bytes:
    content = stream.read(length)
    if len(content) != length:
        raise EOFError("the sender has ended")
    return content


class Output:
    """A buffer of answers to the parent. It is sent before each step that may crash."""

    def __init__(self, handle: int, seconds: float) -> None:
        self._handle = handle
        self._seconds = seconds
        self._pending: list[bytes] = []
        self._last = 0.0  # time of the last message

    def add(self, header: dict[str, Any], *parts: Mapping[str, Any]) -> None:
        """Add a frame to the buffer. parts: attributes and datasets."""
        self._pending.append(encode(header, *parts))

    def announce(self, header: dict[str, Any], *parts: Mapping[str, Any]) -> None:
        """Add a frame, and send the whole buffer."""
        self.add(header, *parts)
        self._last = time.monotonic()
        left = memoryview(b"".join(self._pending))
        self._pending.clear()
        while left:
            left = left[os.write(self._handle, left) :]
        if self._seconds and hasattr(signal, "setitimer"):  # ends an infinite loop after the parent has ended
            signal.setitimer(signal.ITIMER_PROF, 2 * self._seconds + 10)

    def alive(self) -> None:
        """Send a heartbeat, at a limited rate."""
        if time.monotonic() - self._last > _HEARTBEAT_S:
            self.announce({"kind": "alive"})

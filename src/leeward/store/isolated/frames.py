"""Frames, the messages between the processes of the store: a JSON header and raw numbers."""

import json
import math
import os
import signal
import struct
import time
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from leeward.store.format.kind import Array, Value

TOO_MUCH_MEMORY = 90  # exit code of a reader process

_PREFIX = struct.Struct("<4sIQ")  # the mark, the length of the header, the length of the numbers
_MARK = b"lwd1"
_REAL = struct.Struct("<d")
_LONGEST_HEADER = 1 << 28
_MOST_NUMBERS = 1 << 27  # bytes
_HEARTBEAT_S = 0.5


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
    """Return a frame as bytes. Floats are sent as raw bytes, as a seal covers each bit, also of a NaN."""
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


def frame_length(content: bytes | bytearray) -> int | None:
    """Return the length of the frame that begins here; None if more bytes are needed. Raise ValueError if invalid."""
    if len(content) < _PREFIX.size:
        return None
    mark, header_length, numbers_length = _PREFIX.unpack_from(content)
    if mark != _MARK or header_length > _LONGEST_HEADER or numbers_length > _MOST_NUMBERS:
        raise ValueError("no frame begins here")
    return int(_PREFIX.size + header_length + numbers_length)


def decode(content: bytes) -> Frame:
    """Return a complete frame, decoded. Raise ValueError, KeyError, TypeError or AttributeError if it is invalid."""
    _, header_length, _ = _PREFIX.unpack_from(content)
    at = _PREFIX.size + header_length
    header = json.loads(content[_PREFIX.size : at])
    attributes: dict[str, Value] = {}
    for name, value in header.pop("attributes", {}).items():
        if not isinstance(value, list):
            attributes[name] = value
        else:
            array, at = _array(content, at, value)
            attributes[name] = array if value else float(array)
    datasets = {}
    for name, shape in header.pop("datasets", {}).items():
        datasets[name], at = _array(content, at, shape)
    return Frame(header, attributes, datasets)


def _array(content: bytes, at: int, shape: list[int]) -> tuple[Array, int]:
    count = math.prod(shape)
    array = np.frombuffer(content, dtype="<f8", count=count, offset=at).astype(np.float64).reshape(shape)
    return array, at + 8 * count


def read_frame(stream: BinaryIO) -> Frame:
    """Return the next frame of a stream. Raise EOFError if the sender is gone."""
    prefix = stream.read(_PREFIX.size)
    length = frame_length(prefix)
    content = b"" if length is None else prefix + stream.read(length - len(prefix))
    if length is None or len(content) != length:
        raise EOFError("the sender is gone")
    return decode(content)


class Output:
    """A buffer of answers to the parent, sent before the next step that may crash."""

    def __init__(self, handle: int, seconds: float) -> None:
        self._handle = handle
        self._seconds = seconds
        self._pending: list[bytes] = []
        self._last = 0.0  # time of the last message

    def add(self, header: dict[str, Any], *parts: Mapping[str, Any]) -> None:
        """Add a frame to the buffer. parts: attributes and datasets."""
        self._pending.append(encode(header, *parts))

    def announce(self, header: dict[str, Any], *parts: Mapping[str, Any]) -> None:
        """Add a frame, and send all."""
        self.add(header, *parts)
        self._last = time.monotonic()
        left = memoryview(b"".join(self._pending))
        self._pending.clear()
        while left:
            left = left[os.write(self._handle, left) :]
        if self._seconds and hasattr(signal, "setitimer"):  # an endless loop without a parent ends by itself
            signal.setitimer(signal.ITIMER_PROF, 2 * self._seconds + 10)

    def alive(self) -> None:
        """Send a heartbeat, at a limited rate."""
        if time.monotonic() - self._last > _HEARTBEAT_S:
            self.announce({"kind": "alive"})

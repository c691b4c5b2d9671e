"""Reads and writes safetensors files with numpy alone (Debian has no safetensors package).

A file is an 8-byte little-endian header length, a JSON header, and the tensors' bytes. The reader
is strict: what it returns is exactly what the header says, or it raises SafetensorsError.
"""

import json
import math
import os
import struct

import numpy

DTYPES = {"F32": numpy.dtype("<f4"), "F64": numpy.dtype("<f8"), "I32": numpy.dtype("<i4")}
HEADER_LIMIT = 100_000_000


class SafetensorsError(ValueError):
    pass


def _object_without_duplicates(pairs):
    result = dict(pairs)
    if len(result) != len(pairs):
        raise SafetensorsError("a key appears twice in the header")
    return result


def _is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _parse_header(data):
    if len(data) < 8:
        raise SafetensorsError(f"{len(data)} bytes are too few for a safetensors file")
    (length,) = struct.unpack("<Q", data[:8])
    if length > HEADER_LIMIT or length > len(data) - 8:
        raise SafetensorsError(f"header length {length} is beyond the limit or the file")
    try:
        header = json.loads(
            data[8 : 8 + length].decode("utf-8"), object_pairs_hook=_object_without_duplicates
        )
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise SafetensorsError(f"the header is not valid JSON: {error}") from error
    if not isinstance(header, dict) or data[8:9] != b"{":
        raise SafetensorsError("the header is not a JSON object")
    return header, data[8 + length :]


def _tensor(name, entry, payload):
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise SafetensorsError(f"tensor '{name}': expected dtype, shape and data_offsets")
    if entry["dtype"] not in DTYPES:
        known = ", ".join(DTYPES)
        raise SafetensorsError(f"tensor '{name}': dtype {entry['dtype']!r}, expected one of {known}")
    dtype, shape, offsets = DTYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
    if not isinstance(shape, list) or not all(map(_is_count, shape)):
        raise SafetensorsError(f"tensor '{name}': shape {shape!r} is not a list of sizes")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        raise SafetensorsError(f"tensor '{name}': data_offsets {offsets!r} are not two offsets")
    begin, end = offsets
    if begin > end or end > len(payload) or end - begin != math.prod(shape) * dtype.itemsize:
        raise SafetensorsError(f"tensor '{name}': data_offsets {offsets} do not fit shape {shape}")
    return numpy.frombuffer(payload[begin:end], dtype=dtype).reshape(shape).copy()


def read_safetensors(path):
    """Returns (dict of name -> numpy array, in the order of the data; dict of metadata). The
    checksum is not of what is written from them later, so it is left out."""
    with open(path, "rb") as file:
        header, payload = _parse_header(file.read())
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise SafetensorsError("__metadata__ does not map strings to strings")
    metadata.pop("posattn.checksum", None)
    tensors = {name: _tensor(name, entry, payload) for name, entry in header.items()}
    # In the order of the data, every tensor begins where the one before ended.
    position = 0
    names = sorted(header, key=lambda name: header[name]["data_offsets"])
    for name in names:
        begin, end = header[name]["data_offsets"]
        if begin != position:
            raise SafetensorsError(f"tensor '{name}' begins at {begin}, expected {position}")
        position = end
    if position != len(payload):
        raise SafetensorsError(f"the tensors cover {position} of {len(payload)} bytes of data")
    return {name: tensors[name] for name in names}, metadata


def write_atomically(path, parts):
    """Writes the parts to a temporary file next to `path` and renames it: all or nothing."""
    temporary = f"{path}.{os.getpid()}.partial"
    try:
        with open(temporary, "wb") as file:
            for part in parts:
                file.write(part)
        os.replace(temporary, path)
    except OSError as error:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_safetensors(path, tensors, metadata=None):
    """Writes name -> numpy array, in the given order, and metadata (strings to strings)."""
    header, position, payload = {}, 0, []
    if metadata:
        if not all(isinstance(k, str) and isinstance(v, str) for k, v in metadata.items()):
            raise SafetensorsError("metadata must map strings to strings")
        header["__metadata__"] = dict(metadata)
    for name, values in tensors.items():
        if name == "__metadata__":
            raise SafetensorsError("a tensor cannot be called __metadata__")
        # numpy.ascontiguousarray would turn a scalar into a vector.
        values = numpy.array(values, order="C", copy=False)
        code = next((c for c, dtype in DTYPES.items() if dtype == values.dtype), None)
        if code is None:
            known = ", ".join(DTYPES)
            raise SafetensorsError(f"tensor '{name}': {values.dtype}, expected one of {known}")
        end = position + values.nbytes
        header[name] = {"dtype": code, "shape": list(values.shape), "data_offsets": [position, end]}
        payload.append(values.tobytes())
        position = end
    text = json.dumps(header, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    write_atomically(path, [struct.pack("<Q", len(text)), text, *payload])

"""Arrays in the memory of a GPU: what ``__cuda_array_interface__`` and DLPack say of them, as ndarrays nobody reads.

    cupy.ndarray, numba.cuda, torch.Tensor  -->  OnDevice: address, dtype, shape, strides, device, stream

``borrowed`` lends them to the runtime of a library, which gives addresses of the host that stand for them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

LEGACY = 1
"""The handle of the legacy default stream, in CUDA, DLPack and the array interface."""
_GPU_DEVICES = (2, 13)  # kDLCUDA, kDLCUDAManaged
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
_READ_ONLY = 1
_POINTER, _IS_NAMED = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_IsValid
_POINTER.restype = ctypes.c_void_p
_POINTER.argtypes = _IS_NAMED.argtypes = (ctypes.py_object, ctypes.c_char_p)


class _Tensor(ctypes.Structure):
    """DLTensor of dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned of dlpack.h."""

    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


class OnDevice(np.ndarray[Any, Any]):
    """An ndarray whose address is the GPU's: it has a type and a shape, and no elements that can be read here."""

    number = -1
    """The number of the GPU; -1: not known."""
    stream: int | None = None
    """Where the last work on the array was begun; ``None``: not known."""


def on_device(value: Any, stream: int | None) -> OnDevice | None:
    """Return an array of a GPU that is about to be used on a stream; ``None`` where it is none.

    Raises whatever the library of the array raises.
    """
    exports = getattr(value, "__dlpack__", None)
    kind, number = value.__dlpack_device__() if exports is not None else (0, -1)
    if exports is not None and kind not in _GPU_DEVICES:
        return None
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None and (exports is None or interface["version"] >= 3):
        found = _over(interface, interface.get("stream"))
    elif exports is not None:
        found = _of_capsule(exports, stream or LEGACY)
    else:
        return None
    found.number = number
    return found


def handle_of(stream: Any) -> int:
    """Return the handle of a stream: a number, or an object of PyTorch, CuPy or the CUDA stream protocol."""
    if hasattr(stream, "__cuda_stream__"):
        said = stream.__cuda_stream__
        stream = (said() if callable(said) else said)[1]
    for name in ("cuda_stream", "ptr"):
        stream = getattr(stream, name, stream)
    if stream is not None and not isinstance(stream, int):
        raise TypeError(f"stream is {type(stream).__name__}; give a number, or a stream of CuPy, PyTorch or CUDA")
    return stream or LEGACY


def _over(interface: dict[str, Any], stream: int | None) -> OnDevice:
    """Return what an array interface describes."""
    dtype = np.dtype(interface["typestr"])
    if dtype.type is np.void and interface.get("descr"):
        dtype = np.lib.format.descr_to_dtype(interface["descr"])
    parts = {name: interface[name] for name in ("shape", "data")} | {"strides": interface.get("strides")}
    described = SimpleNamespace(__array_interface__={"version": 3, "typestr": f"|V{dtype.itemsize}", **parts})
    found: OnDevice = np.asarray(described).view(dtype).view(OnDevice)
    found.stream = stream
    return found


def _of_capsule(exports: Any, stream: int) -> OnDevice:
    """Return what DLPack says; whoever lends the array has its work come before that of the stream."""
    try:
        capsule = exports(stream=stream, max_version=(1, 0))
    except TypeError:  # it knows no versions
        capsule = exports(stream=stream)
    flags = 0
    if _IS_NAMED(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_POINTER(capsule, b"dltensor_versioned"))
        flags, tensor = versioned.flags, versioned.tensor
    else:
        tensor = _Tensor.from_address(_POINTER(capsule, b"dltensor"))
    if tensor.code not in _KINDS or tensor.bits % 8 or tensor.lanes != 1:
        raise TypeError(f"NumPy has no type of DLPack's code {tensor.code} with {tensor.bits} bits")
    size = tensor.bits // 8
    strides = tuple(size * tensor.strides[axis] for axis in range(tensor.rank)) if tensor.strides else None
    place = ((tensor.data or 0) + tensor.offset, bool(flags & _READ_ONLY))
    shape = tuple(tensor.shape[: tensor.rank])
    typestr = f"<{_KINDS[tensor.code]}{size}"
    return _over({"typestr": typestr, "shape": shape, "strides": strides, "data": place}, stream)


def streams_of(function: str, arrays: Mapping[str, OnDevice], stream: int | None) -> tuple[int, int]:
    """Return the device of arrays (-1: not known), and the stream to use: by default the first that an array names.

    Raises ``ValueError`` for arrays of several devices.
    """
    numbers = {name: one.number for name, one in arrays.items() if one.number >= 0}
    if len(set(numbers.values())) > 1:
        said = ", ".join(f"{name} on device {number}" for name, number in numbers.items())
        raise ValueError(f"{function}: its arrays are on several devices: {said}")
    handles = (stream, *(one.stream for one in arrays.values()), LEGACY)
    return next(iter(numbers.values()), -1), next(handle for handle in handles if handle)


@contextmanager
def borrowed(
    code: ctypes.CDLL, function: str, arrays: Mapping[str, OnDevice], stream: int | None
) -> Iterator[dict[str, int]]:
    """Lend arrays to the calling thread's runtime, and give the addresses that stand for them, by their names.

    Raises ``RuntimeError`` where the device fails, and what ``streams_of`` raises.
    """
    device, handle = streams_of(function, arrays, stream)
    pointers = ctypes.c_void_p * len(arrays)
    memory = pointers(*(one.ctypes.data for one in arrays.values()))
    sizes = (ctypes.c_longlong * len(arrays))(*(one.nbytes for one in arrays.values()))
    streams, hosts = pointers(*(one.stream or handle for one in arrays.values())), pointers()
    borrow, give_back = code.metafork_borrow, code.metafork_give_back
    borrow.restype = give_back.restype = ctypes.c_char_p
    _raised(function, borrow(device, ctypes.c_void_p(handle), len(arrays), memory, sizes, streams, hosts))
    try:
        yield dict(zip(arrays, hosts, strict=True))
    finally:
        fault = give_back()
    _raised(function, fault)


def _raised(function: str, fault: bytes | None) -> None:
    if fault is not None:
        raise RuntimeError(f"{function}: its arrays on the GPU cannot be used: {fault.decode()}")

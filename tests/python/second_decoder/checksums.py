"""CRC-32C and XXH3-64 (seed 0), plainly."""

import numpy as np


def _crc_table() -> list[int]:
    """The CRC of each byte value: polynomial 0x1EDC6F41, reflected."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    """The CRC-32C of data."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC_TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


_MASK = (1 << 64) - 1
_PRIME32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_PRIME64 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)


def xxh3_64(data: bytes) -> int:
    """The 64-bit XXH3 hash of data with seed 0."""
    nbytes = len(data)
    if nbytes == 0:
        return _avalanche64(_secret64(56) ^ _secret64(64))
    if nbytes <= 3:
        joined = data[0] << 16 | data[nbytes >> 1] << 24 | data[-1] | nbytes << 8
        return _avalanche64(joined ^ _secret64(0) & 0xFFFFFFFF ^ _secret64(0) >> 32)
    if nbytes <= 8:
        return _hash_4_to_8(data)
    if nbytes <= 16:
        low = _read64(data, 0) ^ _secret64(24) ^ _secret64(32)
        high = _read64(data, nbytes - 8) ^ _secret64(40) ^ _secret64(48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche3(nbytes + swapped + high + _multiply_fold(low, high))
    if nbytes <= 128:
        total = nbytes * _PRIME64[0]
        for i in range((nbytes - 1) // 32 + 1):
            total += _mix16(data, 16 * i, 32 * i) + _mix16(data, nbytes - 16 * (i + 1), 32 * i + 16)
        return _avalanche3(total)
    if nbytes <= 240:
        first = nbytes * _PRIME64[0] + sum(_mix16(data, 16 * i, 16 * i) for i in range(8))
        rest = sum(_mix16(data, 16 * i, 16 * (i - 8) + 3) for i in range(8, nbytes // 16))
        return _avalanche3(_avalanche3(first) + rest + _mix16(data, nbytes - 16, 136 - 17))
    return _hash_long(data)


def _read64(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 8], "little")


def _secret64(offset: int) -> int:
    return _read64(_SECRET, offset)


def _multiply_fold(a: int, b: int) -> int:
    product = a * b
    return product & _MASK ^ product >> 64


def _mix16(data: bytes, offset: int, secret: int) -> int:
    low, high = _read64(data, offset), _read64(data, offset + 8)
    return _multiply_fold(low ^ _secret64(secret), high ^ _secret64(secret + 8))


def _avalanche64(value: int) -> int:
    """The finish of XXH64, for the shortest inputs."""
    value = (value ^ value >> 33) * _PRIME64[1] & _MASK
    value = (value ^ value >> 29) * _PRIME64[2] & _MASK
    return value ^ value >> 32


def _avalanche3(value: int) -> int:
    value &= _MASK
    value = (value ^ value >> 37) * 0x165667919E3779F9 & _MASK
    return value ^ value >> 32


def _hash_4_to_8(data: bytes) -> int:
    first, last = int.from_bytes(data[:4], "little"), int.from_bytes(data[-4:], "little")
    value = (last + (first << 32)) ^ _secret64(8) ^ _secret64(16)
    value ^= (value << 49 | value >> 15) & _MASK ^ (value << 24 | value >> 40) & _MASK
    value = value * 0x9FB21C651E98DF25 & _MASK
    value = (value ^ (value >> 35) + len(data)) * 0x9FB21C651E98DF25 & _MASK
    return value ^ value >> 28


def _stripes(data: bytes, secret_step: int, secret: int) -> np.ndarray:
    """What stripes of 64 bytes add to the eight accumulators, one row a stripe.

    Stripe number s is keyed with the secret from secret + s * secret_step on.
    """
    words = np.frombuffer(data, "<u8").astype(np.uint64).reshape(-1, 8)
    keys = [np.frombuffer(_SECRET, "<u8", 8, secret + secret_step * s) for s in range(len(words))]
    keyed = words ^ np.array(keys, np.uint64).reshape(-1, 8)
    products = (keyed & np.uint64(0xFFFFFFFF)) * (keyed >> np.uint64(32))
    return products + words[:, [1, 0, 3, 2, 5, 4, 7, 6]]


def _hash_long(data: bytes) -> int:
    p32, p64 = _PRIME32, _PRIME64
    state = np.array([p32[2], p64[0], p64[1], p64[2], p64[3], p32[1], p64[4], p32[0]], np.uint64)
    scramble = np.frombuffer(_SECRET, "<u8", 8, 128).astype(np.uint64)
    n_blocks = (len(data) - 1) // 1024
    for block in range(n_blocks):
        state += _stripes(data[1024 * block : 1024 * block + 1024], 8, 0).sum(axis=0, dtype=np.uint64)
        state = (state ^ state >> np.uint64(47) ^ scramble) * np.uint64(p32[0])
    begin = 1024 * n_blocks
    whole = (len(data) - 1 - begin) // 64 * 64
    state += _stripes(data[begin : begin + whole], 8, 0).sum(axis=0, dtype=np.uint64)
    state += _stripes(data[-64:], 0, 128 - 7)[0]
    words = [int(word) for word in state]
    total = len(data) * p64[0]
    for i in range(4):
        total += _multiply_fold(words[2 * i] ^ _secret64(11 + 16 * i), words[2 * i + 1] ^ _secret64(19 + 16 * i))
    return _avalanche3(total)

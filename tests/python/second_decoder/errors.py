"""Why a file is refused."""


class Refused(ValueError):
    """The file, or a part of it that was asked for, is not what FORMAT.md describes."""


class NotPtwm(Refused):
    """The magic number is missing."""


class Unsupported(Refused):
    """A version or a required feature that FORMAT.md does not define."""


class Malformed(Refused):
    """The bytes break a rule of FORMAT.md."""


class Corrupt(Refused):
    """A CRC-32C or a payload hash does not match."""


def require(condition: bool, message: str) -> None:
    """Raises `Malformed` unless the condition holds."""
    if not condition:
        raise Malformed(message)

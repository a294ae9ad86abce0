"""What leeward raises. Every message says what was found, where, what was expected and what to do next."""


class LeewardError(Exception):
    """Base class: catch this one to catch all of them."""


class InputError(LeewardError, ValueError):
    """A number, name or file that a person gave cannot be used."""


class InfeasibleError(LeewardError):
    """No layout that satisfies all constraints; says by how much they are violated, or how much room there is."""


class NotANumberError(LeewardError):
    """A computation gave something that is not a finite number."""


class StorageError(LeewardError):
    """The disk would not take what was to be written; nothing half-written has a final name. Try again later."""


class HeldError(LeewardError):
    """Another process holds the run directory, or has taken it over."""


class BadSourceError(LeewardError):
    """Files or results that cannot be used stand in the way of what was asked for."""

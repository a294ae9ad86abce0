"""What leeward raises. Every message says what was found, where, what was expected and what to do next."""


class LeewardError(Exception):
    """Base class: catch this one to catch all of them."""


class InputError(LeewardError, ValueError):
    """A number, name or file that a person gave cannot be used."""

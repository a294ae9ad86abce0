"""What leeward raises. Every message says what was found, where, what was expected and what to do next."""


class LeewardError(Exception):
    """Base class: catch this one to catch all of them."""


class InputError(LeewardError, ValueError):
    """A number, name or file that a person gave cannot be used."""


class InfeasibleError(LeewardError):
    """No layout that satisfies all constraints; says by how much they are violated, or how much room there is."""


class NotANumberError(LeewardError):
    """A computation gave something that is not a finite number."""

"""Exit codes of all commands; DESIGN and docs/commands.md list them."""

from leeward.errors import InputError, StorageError, is_storage_error

EXIT_ERROR = 1
EXIT_WRONG_USE = 2
EXIT_STORAGE = 4


def exit_code(error: Exception) -> int:
    """Return the exit code of a command that ends with this error."""
    if isinstance(error, InputError):
        return EXIT_WRONG_USE
    if isinstance(error, StorageError) or (isinstance(error, OSError) and is_storage_error(error)):
        return EXIT_STORAGE
    return EXIT_ERROR

"""The campaign file that `leeward new` writes: it works as it is, and shows every key."""

from importlib.resources import files


def template_text() -> str:
    """Return a small campaign with comments; keys that are commented out show their defaults."""
    return (files("leeward.campaign") / "template.yaml").read_text(encoding="utf-8")

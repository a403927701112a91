"""What ends a start before anything is bound or loaded (12 §1.5, §1.7; 15 §1)."""

from __future__ import annotations


class UsageError(Exception):
    """A command line or environment that cannot be used; the text is what the person sees on stderr."""

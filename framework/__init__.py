"""Paddock: serve many GGUF models from one declarative file.

The packages are ordered and an import never points backwards; the contracts in pyproject.toml say how, and
framework/runtime/DESIGN.md tells the way from a saved file to a changed process.
"""

__version__ = "0.1.0"

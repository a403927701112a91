"""Paddock: serve many GGUF models from one declarative file.

The packages below are ordered; an import never points backwards (see DESIGN.md and the import contracts
in pyproject.toml): values, manifest, models, hardware, engines, planning, reconcile, runtime, proxy, api,
dashboard, app, commands.
"""

__version__ = "0.1.0"

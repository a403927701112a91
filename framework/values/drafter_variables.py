"""Environment variables by which llama-server builds of all eras are told a drafter. Pure.

Here, since neither the manifest nor the engines should need the other one for a name.
"""

from __future__ import annotations

# What builds call them since the renaming, and what they called them before (14 §2).
DRAFTER_FILE_VARIABLES = ("LLAMA_ARG_SPEC_DRAFT_MODEL", "LLAMA_ARG_MODEL_DRAFT")
DRAFTER_HUB_VARIABLES = ("LLAMA_ARG_SPEC_DRAFT_HF_REPO", "LLAMA_ARG_HFD_REPO")
DRAFTER_VARIABLES = (*DRAFTER_FILE_VARIABLES, *DRAFTER_HUB_VARIABLES)

"""What a decision about speculation is made of; the values themselves are shared by all of `framework`."""

from framework.values.speculation import NO_FACTS, DrafterKind, SpecFacts, SpecInputs

__all__ = ["NO_FACTS", "DrafterKind", "SpecFacts", "SpecInputs"]

"""Tests of framework.engines."""

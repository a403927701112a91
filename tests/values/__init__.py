"""Tests of framework.values."""

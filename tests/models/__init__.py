"""Tests of framework.models."""

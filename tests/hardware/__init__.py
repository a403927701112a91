"""Tests of framework.hardware."""

"""Tests of framework.telemetry."""

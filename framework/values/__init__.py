"""Frozen values that packages share (00 §3). Imports nothing of ours outside this package."""

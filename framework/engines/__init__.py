"""Engine binaries: find them, learn what they can do, spell their command line and environment (06 §2-7).

Starts nothing that serves. `process_output` runs a binary for an answer (`--help`), everything else is
a file test or pure. Called by planning, hardware, runtime and the commands.
"""

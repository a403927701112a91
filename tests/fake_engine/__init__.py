"""A scripted stand-in for llama-server, for faults that a healthy engine cannot be made to show.

Run as a program (`python -m tests.fake_engine`) by the manager under test, through the wrapper that the
`fake_engine_path` fixture writes. It parses the command line against the real help text of build b10068,
prints that build's start-up lines and answers its routes. What goes wrong is told by a `Script`.
Standard library only, so that it starts in some tens of milliseconds.
"""

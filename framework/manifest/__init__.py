"""`serve.toml` to values: read, validate, say everything that is wrong with its place (01).

Pure apart from reading the files that the manifest names. `load.py` is the way in.
"""

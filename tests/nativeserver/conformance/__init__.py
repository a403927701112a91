"""The same requests to the wheel's llama-server and to the native engine give the same answers (10, 12, 15).

Same libllama, same threads, same model, temperature 0. What differs on purpose is listed in docs/native.md.
"""

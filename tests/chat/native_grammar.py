"""Asks llama.cpp's own library whether a grammar is one, and whether a text fits it."""

from __future__ import annotations

import ctypes
from pathlib import Path


class _ModelParams(ctypes.Structure):
    """`llama_model_params`; what isn't named here keeps its default."""

    _fields_ = (
        ("devices", ctypes.c_void_p),
        ("buffer_overrides", ctypes.c_void_p),
        ("n_gpu_layers", ctypes.c_int32),
        ("split_mode", ctypes.c_int32),
        ("main_gpu", ctypes.c_int32),
        ("tensor_split", ctypes.c_void_p),
        ("progress_callback", ctypes.c_void_p),
        ("progress_data", ctypes.c_void_p),
        ("kv_overrides", ctypes.c_void_p),
        ("vocab_only", ctypes.c_bool),
        ("flags", ctypes.c_bool * 7),
    )


class _Candidate(ctypes.Structure):
    _fields_ = (("id", ctypes.c_int32), ("logit", ctypes.c_float), ("p", ctypes.c_float))


class _Candidates(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.POINTER(_Candidate)),
        ("size", ctypes.c_size_t),
        ("selected", ctypes.c_int64),
        ("sorted", ctypes.c_bool),
    )


class GrammarJudge:
    """The vocabulary of a model, and grammar samplers over it."""

    def __init__(self, folder: Path, model: Path) -> None:
        for name in ("libggml-base.so", "libggml-cpu.so", "libggml.so"):
            if (folder / name).exists():
                ctypes.CDLL(str(folder / name), mode=ctypes.RTLD_GLOBAL)
        self._lib = lib = ctypes.CDLL(str(folder / "libllama.so"))
        lib.llama_model_default_params.restype = _ModelParams
        lib.llama_model_load_from_file.argtypes = (ctypes.c_char_p, _ModelParams)
        for name in ("llama_model_load_from_file", "llama_model_get_vocab", "llama_sampler_init_grammar"):
            getattr(lib, name).restype = ctypes.c_void_p
        for name in ("llama_model_get_vocab", "llama_vocab_eos", "llama_sampler_free"):
            getattr(lib, name).argtypes = (ctypes.c_void_p,)
        lib.llama_sampler_init_grammar.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
        lib.llama_sampler_apply.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
        lib.llama_sampler_accept.argtypes = (ctypes.c_void_p, ctypes.c_int32)
        lib.llama_tokenize.argtypes = (
            *(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_void_p),
            *(ctypes.c_int32, ctypes.c_bool, ctypes.c_bool),
        )
        self._silence = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(
            lambda *_: None
        )
        lib.llama_log_set(self._silence, None)
        params = lib.llama_model_default_params()
        params.vocab_only = True
        self._vocab = lib.llama_model_get_vocab(lib.llama_model_load_from_file(str(model).encode(), params))
        self._end = lib.llama_vocab_eos(self._vocab)

    def takes(self, grammar: str) -> bool:
        """Whether the library can read the grammar."""
        sampler = self._lib.llama_sampler_init_grammar(self._vocab, grammar.encode(), b"root")
        if sampler:
            self._lib.llama_sampler_free(sampler)
        return bool(sampler)

    def fits(self, grammar: str, text: str) -> bool:
        """Whether the grammar allows exactly this text, end included."""
        sampler = self._lib.llama_sampler_init_grammar(self._vocab, grammar.encode(), b"root")
        assert sampler, f"not a grammar:\n{grammar}"
        try:
            for token in self._tokens(text):
                if not self._allows(sampler, token):
                    return False
                self._lib.llama_sampler_accept(sampler, token)
            return self._allows(sampler, self._end)
        finally:
            self._lib.llama_sampler_free(sampler)

    def _tokens(self, text: str) -> list[int]:
        data = text.encode()
        room = (ctypes.c_int32 * (len(data) + 8))()
        count = self._lib.llama_tokenize(self._vocab, data, len(data), room, len(room), False, True)
        return list(room[:count])

    def _allows(self, sampler: int, token: int) -> bool:
        one = _Candidate(token, 1.0, 0.0)
        candidates = _Candidates(ctypes.pointer(one), 1, -1, False)
        self._lib.llama_sampler_apply(sampler, ctypes.byref(candidates))
        return one.logit > float("-inf")

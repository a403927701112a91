// The public declarations of the model file reader that this engine uses, for builds without llama.cpp's own headers.
#pragma once

#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_context;

enum gguf_type {
    GGUF_TYPE_UINT8 = 0,
    GGUF_TYPE_INT8 = 1,
    GGUF_TYPE_UINT16 = 2,
    GGUF_TYPE_INT16 = 3,
    GGUF_TYPE_UINT32 = 4,
    GGUF_TYPE_INT32 = 5,
    GGUF_TYPE_FLOAT32 = 6,
    GGUF_TYPE_BOOL = 7,
    GGUF_TYPE_STRING = 8,
    GGUF_TYPE_ARRAY = 9,
    GGUF_TYPE_UINT64 = 10,
    GGUF_TYPE_INT64 = 11,
    GGUF_TYPE_FLOAT64 = 12,
};

struct gguf_init_params {
    bool no_alloc;
    struct ggml_context ** ctx;
};

struct gguf_context * gguf_init_from_file(const char * path, struct gguf_init_params params);
void gguf_free(struct gguf_context * file);

int64_t gguf_find_key(const struct gguf_context * file, const char * key);
enum gguf_type gguf_get_kv_type(const struct gguf_context * file, int64_t key);
enum gguf_type gguf_get_arr_type(const struct gguf_context * file, int64_t key);
size_t gguf_get_arr_n(const struct gguf_context * file, int64_t key);
const void * gguf_get_arr_data(const struct gguf_context * file, int64_t key);
uint16_t gguf_get_val_u16(const struct gguf_context * file, int64_t key);
uint32_t gguf_get_val_u32(const struct gguf_context * file, int64_t key);
int32_t gguf_get_val_i32(const struct gguf_context * file, int64_t key);
uint64_t gguf_get_val_u64(const struct gguf_context * file, int64_t key);
const char * gguf_get_val_str(const struct gguf_context * file, int64_t key);

int64_t gguf_get_n_tensors(const struct gguf_context * file);
const char * gguf_get_tensor_name(const struct gguf_context * file, int64_t tensor);
size_t gguf_get_tensor_size(const struct gguf_context * file, int64_t tensor);

#ifdef __cplusplus
}
#endif

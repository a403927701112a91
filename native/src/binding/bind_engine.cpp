// core/engine.h, with the facts of a model that it gives out
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string_view>

#include "binding/binding.h"
#include "binding/enum_names.h"
#include "binding/texts.h"
#include "core/engine.h"
#include "llama/host.h"

namespace nb = nanobind;

namespace paddock {
namespace {

/// Tokenising this much takes longer than a switch of threads (10 §1.4).
constexpr std::size_t max_bytes_with_gil = 4096;

using WithoutGil = nb::call_guard<nb::gil_scoped_release>;

/// The Python class of LoadError; set once, lives as long as the interpreter.
nb::handle load_error_type;

void bind_load_error(nb::module_& module) {
    load_error_type = PyErr_NewExceptionWithDoc("paddock_native.LoadError",
                                                "A stage of loading that failed; `code` names it.",
                                                PyExc_RuntimeError, nullptr);
    if (!load_error_type.is_valid()) throw nb::python_error();
    module.attr("LoadError") = load_error_type;
    nb::register_exception_translator([](const std::exception_ptr& pointer, void* /*payload*/) {
        try {
            std::rethrow_exception(pointer);
        } catch (const LoadError& error) {
            nb::object instance = load_error_type(as_text(error.what()));
            instance.attr("code") = as_text(error.code());
            PyErr_SetObject(load_error_type.ptr(), instance.ptr());
        }
    });
}

void bind_facts(nb::module_& module) {
    nb::class_<ContextFacts>(module, "ContextFacts", "Fixed facts of a context; sizes in tokens.")
        .def_ro("n_ctx", &ContextFacts::n_ctx)
        .def_ro("n_ctx_slot", &ContextFacts::n_ctx_slot)
        .def_ro("n_ctx_train", &ContextFacts::n_ctx_train)
        .def_ro("n_batch", &ContextFacts::n_batch)
        .def_ro("n_ubatch", &ContextFacts::n_ubatch)
        .def_ro("n_embd_out", &ContextFacts::n_embd_out)
        .def_ro("n_swa", &ContextFacts::n_swa)
        .def_ro("kv_unified", &ContextFacts::kv_unified)
        .def_ro("has_memory", &ContextFacts::has_memory)
        .def_ro("can_shift", &ContextFacts::can_shift)
        .def_ro("is_recurrent", &ContextFacts::is_recurrent)
        .def_ro("is_hybrid", &ContextFacts::is_hybrid)
        .def_ro("removal", &ContextFacts::removal)
        .def_ro("n_rs_seq", &ContextFacts::n_rs_seq)
        .def_ro("backend_sampler", &ContextFacts::backend_sampler)
        .def_ro("backend_multi_output", &ContextFacts::backend_multi_output)
        .def_ro("pooling", &ContextFacts::pooling)
        .def_ro("n_classes", &ContextFacts::n_classes);
}

void bind_meta(nb::module_& module) {
    nb::class_<ModelMeta> meta(module, "ModelMeta", "Facts of a model, readable while the engine sleeps.");
    text_property(meta, "chat_template", &ModelMeta::chat_template);
    text_property(meta, "chat_template_tool_use", &ModelMeta::chat_template_tool_use);
    text_property(meta, "rerank_template", &ModelMeta::rerank_template);
    text_property(meta, "bos_text", &ModelMeta::bos_text);
    text_property(meta, "eos_text", &ModelMeta::eos_text);
    text_property(meta, "file_type", &ModelMeta::file_type);
    text_property(meta, "description", &ModelMeta::description);
    text_property(meta, "library_version", &ModelMeta::library_version);
    meta.def_ro("bos", &ModelMeta::bos)
        .def_ro("eos", &ModelMeta::eos)
        .def_ro("sep", &ModelMeta::sep)
        .def_ro("fim_prefix", &ModelMeta::fim_prefix)
        .def_ro("fim_suffix", &ModelMeta::fim_suffix)
        .def_ro("fim_middle", &ModelMeta::fim_middle)
        .def_ro("fim_repository", &ModelMeta::fim_repository)
        .def_ro("fim_separator", &ModelMeta::fim_separator)
        .def_ro("adds_bos", &ModelMeta::adds_bos)
        .def_ro("adds_eos", &ModelMeta::adds_eos)
        .def_ro("adds_sep", &ModelMeta::adds_sep)
        .def_ro("vocab_type", &ModelMeta::vocab_type)
        .def_ro("n_vocab", &ModelMeta::n_vocab)
        .def_ro("n_ctx_train", &ModelMeta::n_ctx_train)
        .def_ro("n_embd", &ModelMeta::n_embd)
        .def_ro("n_params", &ModelMeta::n_params)
        .def_ro("size_bytes", &ModelMeta::size_bytes);
}

std::shared_ptr<const Vocabulary> vocabulary_of(const Engine& engine) {
    auto vocabulary = engine.vocabulary();
    if (vocabulary == nullptr)
        throw std::runtime_error("the engine has no model in memory; load() or wake() it");
    return vocabulary;
}

std::vector<Token> tokenize(const Engine& engine, const nb::bytes& text, bool add_special,
                            bool parse_special) {
    const auto vocabulary = vocabulary_of(engine);
    const std::string_view view(text.c_str(), text.size());
    if (view.size() <= max_bytes_with_gil) return vocabulary->tokenize(view, add_special, parse_special);
    const nb::gil_scoped_release unlocked;
    return vocabulary->tokenize(view, add_special, parse_special);
}

std::vector<Result> poll(Engine& engine, std::size_t max, bool wait) {
    if (!wait) return engine.poll(max, false);
    const nb::gil_scoped_release unlocked;
    return engine.poll(max, true);
}

}  // namespace

void bind_engine(nb::module_& module) {
    bind_load_error(module);
    bind_facts(module);
    bind_meta(module);
    nb::class_<Engine>(module, "Engine", "A model, its slots, and the thread that decodes for them.")
        .def(
            "__init__",
            [](Engine* self, const EngineParams& params) {
                new (self) Engine(params, std::make_unique<LlamaHost>());
            },
            nb::arg("params"))
        .def("load", &Engine::load, WithoutGil(), "Loads the model; raises LoadError.")
        .def("start", &Engine::start, WithoutGil(), "Starts the decode thread.")
        .def("submit", &Engine::submit, nb::arg("tasks"),
             "Takes the tasks of one request and gives them ids; never blocks.")
        .def("cancel", &Engine::cancel, nb::arg("ids"))
        .def("poll", &poll, nb::arg("max"), nb::arg("wait"),
             "Up to `max` results; with `wait` blocks until there is one or the engine stops.")
        .def("notify_fd", &Engine::notify_fd, "A descriptor that is readable while results wait.")
        .def("snapshot",
             [](const Engine& self) { return std::const_pointer_cast<Snapshot>(self.snapshot()); })
        .def("state", &Engine::state)
        .def("meta", &Engine::meta)
        .def("facts", &Engine::facts)
        .def("n_slots", &Engine::n_slots)
        .def("speculation", &Engine::speculation, "Drafters of the last load.")
        .def("sleep", &Engine::sleep, WithoutGil())
        .def("wake", &Engine::wake, WithoutGil(), "Whether it is ready afterwards.")
        .def("shutdown", &Engine::shutdown, nb::arg("timeout_ms"), WithoutGil())
        .def("tokenize", &tokenize, nb::arg("text"), nb::arg("add_special"), nb::arg("parse_special"))
        .def(
            "detokenize",
            [](const Engine& self, const std::vector<Token>& ids, bool special) {
                return as_bytes(vocabulary_of(self)->detokenize(ids, special));
            },
            nb::arg("ids"), nb::arg("special"))
        .def(
            "piece",
            [](const Engine& self, Token id, bool special) {
                return as_bytes(vocabulary_of(self)->piece(id, special));
            },
            nb::arg("id"), nb::arg("special"));
}

}  // namespace paddock

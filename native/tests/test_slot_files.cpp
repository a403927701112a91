// Slots in files.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "running_engine.h"

using namespace paddock;
using namespace paddock::testing;

namespace {

namespace fs = std::filesystem;

/// A folder of its own, gone with the object.
class Folder {
  public:
    Folder() : path_(fs::temp_directory_path() / ("paddock-core-test-" + std::to_string(now_us()))) {
        fs::create_directory(path_);
    }
    ~Folder() { fs::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    std::string file(const std::string& name) const { return (path_ / name).string(); }
    std::size_t n_files() const {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
    }

  private:
    fs::path path_;
};

Task action(TaskKind kind, SequenceId slot, std::string path) {
    Task task;
    task.kind = kind;
    task.id_slot = slot;
    task.file_path = std::move(path);
    return task;
}

Task on_slot(SequenceId slot, std::int32_t n_tokens) {
    Task task = completion(prompt_of(n_tokens), 1);
    task.id_slot = slot;
    return task;
}

EngineParams without_cache() {
    EngineParams params;
    params.cache_ram_mib = 0;
    return params;
}

}  // namespace

TEST_CASE("10 20: a slot comes back from its file, and an invalid file empties the slot") {
    const Folder folder;
    const std::string path = folder.file("slot.bin");
    RunningEngine running({}, without_cache());
    running.run_one(on_slot(0, 40));
    CHECK(running.run_one(action(TaskKind::slot_save, 0, path)).n_slot_tokens == 40);
    const Task restore = action(TaskKind::slot_restore, 2, path);
    CHECK(running.run_one(restore).n_slot_tokens == 40);
    CHECK(running.run_one(on_slot(2, 40)).n_prompt_cached == 39);
    std::filesystem::remove(path);
    CHECK(running.run_one(restore).error == ErrorKind::invalid_request);
    CHECK(running.run_one(on_slot(2, 40)).n_prompt_cached == 0);
}

TEST_CASE("10 20.2: a name as long as names can be is saved to") {
    const Folder folder;
    RunningEngine running({}, without_cache());
    running.run_one(on_slot(0, 12));
    const Result saved = running.run_one(action(TaskKind::slot_save, 0, folder.file(std::string(255, 'n'))));
    CHECK(saved.kind == ResultKind::slot_save);
    CHECK(folder.n_files() == 1);
}

TEST_CASE("10 20.2: a save that fails leaves no file") {
    const Folder folder;
    RunningEngine running({}, without_cache());
    running.run_one(on_slot(0, 12));
    const Result saved = running.run_one(action(TaskKind::slot_save, 0, folder.file(std::string(256, 'n'))));
    CHECK(saved.error == ErrorKind::server);
    CHECK(folder.n_files() == 0);
}

TEST_CASE("10 20.3: a file that is not sound is never loaded, and its slot goes on empty") {
    const Folder folder;
    const std::string path = folder.file("slot.bin");
    FakeHostOptions options;
    options.context.file_problem = "has 5 cells for 40 tokens";
    RunningEngine running(options, without_cache());
    running.run_one(on_slot(0, 40));
    running.run_one(action(TaskKind::slot_save, 0, path));
    const Result refused = running.run_one(action(TaskKind::slot_restore, 2, path));
    CHECK(refused.error == ErrorKind::invalid_request);
    CHECK(refused.text.find("has 5 cells for 40 tokens") != std::string::npos);
    CHECK(running.run_one(on_slot(2, 40)).n_prompt_cached == 0);
}

TEST_CASE("10 20.3: tokens that the model doesn't know, or at other positions than memory has, are refused") {
    const Folder folder;
    const std::string path = folder.file("slot.bin");
    RunningEngine running({}, without_cache());
    running.run_one(on_slot(0, 40));
    running.run_one(action(TaskKind::slot_save, 0, path));
    const auto restored_with = [&](std::streamoff at, std::int32_t number) {
        const std::string altered = folder.file("altered.bin");
        fs::copy_file(path, altered, fs::copy_options::overwrite_existing);
        {
            std::fstream file(altered, std::ios::binary | std::ios::in | std::ios::out);
            file.seekp(at);
            file.write(reinterpret_cast<const char*>(&number), sizeof number);
        }
        return running.run_one(action(TaskKind::slot_restore, 2, altered));
    };
    // The file of the fake context: a count of 64 bits, tokens, a head of 24 bytes, then cells of 16.
    constexpr std::streamoff first_token = 8;
    CHECK(restored_with(first_token, 64).error == ErrorKind::invalid_request);
    CHECK(restored_with(first_token, -1).error == ErrorKind::invalid_request);
    constexpr std::streamoff last_cell = first_token + 40 * 4 + 24 + 39 * 16;
    const Result moved = restored_with(last_cell, 2'000'000'000);
    CHECK(moved.error == ErrorKind::invalid_request);
    CHECK(moved.text.find("positions 0 to 2000000000") != std::string::npos);
    CHECK(running.run_one(on_slot(2, 40)).text == running.run_one(on_slot(1, 40)).text);
    CHECK(running.run_one(action(TaskKind::slot_restore, 2, path)).n_slot_tokens == 40);
}

#include "posattn/cli/playground_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/benchmark/peer.h"
#include "posattn/playground/playground.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t most_page_bytes = 16 << 20;
constexpr uint64_t most_model_bytes = 8 << 20;  // the page has a third more of them
constexpr int most_nodes = 64;                  // of a table and of maps that one can read

nlohmann::json last_answer() {
  return nlohmann::json::parse(std::string(play_text(), static_cast<size_t>(play_text_size())));
}

int32_t played(int32_t result) {
  if (result >= 0) return result;
  const nlohmann::json error = last_answer();
  throw Error(static_cast<ExitCode>(error["exit_code"].get<int>()), error["problem"],
              error["expected"], error["hint"]);
}

// A folder's name says more than that of the file in it.
std::string shown_name(const fs::path& file) {
  const fs::path folder = absolute_path(file).parent_path().filename();
  return file.filename() == "model.safetensors" ? folder.string() : file.filename().string();
}

// What the page is told of a model, once it has answered as it has to there.
nlohmann::json try_out(const PageModel& model, const std::string& path) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(model.bytes.data());
  const int32_t handle =
      played(play_load(bytes, static_cast<int32_t>(model.bytes.size()), path.c_str()));
  nlohmann::json about = last_answer();
  const auto refuse = [&](const std::string& what, const std::string& expected) {
    throw Error(ExitCode::data, fmt::format("'{}' in a playground: {}", path, what), expected);
  };
  const auto task = about["task"].get<std::string>();
  if (about["vocabulary"] > 0) refuse("a model of tokens", "a model of numbers");
  if (std::ranges::find(tasks(), task, &Task::name) == tasks().end()) {
    refuse(fmt::format("task '{}'", task), "a task of `posattn tasks`");
  }
  if (about["real_nodes"] > most_nodes) {
    refuse(fmt::format("{} nodes", about["real_nodes"].get<int>()),
           fmt::format("at most {}", most_nodes));
  }
  const int32_t count = played(play_sample(handle, 1, 0, 0));
  const std::vector<double> row(play_numbers(), play_numbers() + count);
  played(play_answer(handle, row.data(), count));
  played(play_attention(handle, row.data(), count));
  play_free_model(handle);
  return about;
}

}  // namespace

fs::path find_playground() {
  const fs::path folder = this_program().parent_path();
  // build/PRESET/posattn in a source tree; bin/posattn of an installation.
  for (const fs::path& place :
       {folder / "../../docs/playground/index.html", folder / "../share/posattn/playground.html"}) {
    if (path_exists(place)) return place.lexically_normal();
  }
  throw Error(ExitCode::data, fmt::format("no playground page for {}", this_program().string()),
              "docs/playground/index.html of the checkout it was built in, or "
              "share/posattn/playground.html of an installation",
              "name the page with --page");
}

std::vector<PageModel> page_models(const std::vector<fs::path>& files) {
  if (files.size() > 2) {
    throw Error(ExitCode::usage, fmt::format("{} models", files.size()), "one, or two to compare");
  }
  std::vector<PageModel> models;
  nlohmann::json first;
  for (const fs::path& file : files) {
    models.push_back({shown_name(file), read_file(file, most_model_bytes)});
    const nlohmann::json about = try_out(models.back(), file.string());
    if (first.is_null()) first = about;
    if (about["task"] == first["task"] && about["length"] == first["length"]) continue;
    throw Error(
        ExitCode::data,
        fmt::format("'{}' is for {} of length {}, '{}' for {} of length {}", files[0].string(),
                    first["task"].get<std::string>(), first["length"].get<int>(), file.string(),
                    about["task"].get<std::string>(), about["length"].get<int>()),
        "two models of one task and length");
  }
  return models;
}

std::string filled_playground(const fs::path& base, const PageContent& content) {
  return page_with(read_text_file(base, most_page_bytes), base.string(), content);
}

}  // namespace posattn

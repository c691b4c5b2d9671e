#include "posattn/tasks/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "posattn/base/error.h"

namespace posattn {

TaskShape Task::shape(int length) const { return {.real_nodes = length}; }

std::vector<TestAxis> Task::test_axes() const { return {{"c", "values in [-range c, range c]"}}; }

void Task::make_sample(RandomStream& random, const Sampling& sampling, int length,
                       const SampleRoom& room) const {
  draw(random, sampling.range, length, room.values);
  solve(length, room.values, room.targets);
}

void Task::make_samples(const SampleBlock& block) const {
  for (int64_t i = 0; i < block.samples; ++i) {
    const auto part = [&](auto values) {
      const size_t each = values.size() / static_cast<size_t>(block.samples);
      return values.subspan(static_cast<size_t>(i) * each, each);
    };
    RandomStream random(block.seed, block.purpose, block.variant,
                        block.first + static_cast<uint32_t>(i));
    Sampling sampling = block.sampling;
    if (sampling.listed >= 0) sampling.listed = block.first + i;
    make_sample(random, sampling, block.length,
                {.values = part(block.room.values),
                 .tokens = part(block.room.tokens),
                 .targets = part(block.room.targets),
                 .labels = part(block.room.labels),
                 .pairs = part(block.room.pairs),
                 .pair_classes = part(block.room.pair_classes)});
  }
}

void Task::draw(RandomStream& random, const ValueRange& range, int /*length*/,
                std::span<float> input) const {
  draw_values(random, range, input);
}

void Task::solve(int /*length*/, std::span<const float> /*input*/,
                 std::span<float> /*target*/) const {
  throw Error(ExitCode::configuration,
              fmt::format("the answer of task '{}' to given numbers", name()),
              "a task whose answer follows from numbers alone");
}

// The tasks of task_list.inc and those that programs register, by name.

#define POSATTN_TASK(name) const Task& name##_task();
#include "posattn/tasks/task_list.inc"
#undef POSATTN_TASK

namespace {

std::vector<const Task*>& list() {
#define POSATTN_TASK(name) &name##_task(),
  static std::vector<const Task*> all = {
#include "posattn/tasks/task_list.inc"
  };
#undef POSATTN_TASK
  return all;
}

}  // namespace

const std::vector<const Task*>& tasks() { return list(); }

void register_task(std::unique_ptr<const Task> task) {
  const std::string name(task->name());
  const bool spelled = !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
  if (!spelled) {
    throw Error(ExitCode::configuration, fmt::format("a task named '{}'", name),
                "a-z, 0-9 and hyphens: files and folders are named after it");
  }
  for (const Task* other : list()) {
    if (other->name() != name) continue;
    throw Error(ExitCode::configuration, fmt::format("a second task named '{}'", name),
                "a name of its own");
  }
  static std::vector<std::unique_ptr<const Task>> owned;  // for as long as the program runs
  list().push_back(task.get());
  owned.push_back(std::move(task));
}

const Task& find_task(std::string_view name, std::string_view set) {
  std::vector<std::string> known;
  for (const Task* task : tasks()) {
    if (task->name() == name) return variant_of(*task, set);
    known.emplace_back(task->name());
  }
  const Error unknown = unknown_name(ExitCode::usage, "task", name, known);
  if (!unknown.hint().empty()) throw unknown;
  throw Error(unknown.code(), unknown.problem(), unknown.expected(),
              "your own task is known to the program that makes it alone; in Python make its "
              "posattn.Task first");
}

const Task& task_named_in(const std::string& file, std::string_view name) {
  try {
    return find_task(name);
  } catch (const Error& error) {
    throw Error(ExitCode::data, fmt::format("{} in {}", error.problem(), file), error.expected(),
                error.hint());
  }
}

}  // namespace posattn

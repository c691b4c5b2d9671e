#include "posattn/tasks/task.h"

#include <fmt/format.h>

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
    make_sample(random, block.sampling, block.length,
                {.values = part(block.room.values),
                 .tokens = part(block.room.tokens),
                 .targets = part(block.room.targets),
                 .labels = part(block.room.labels)});
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

}  // namespace posattn

#include "posattn/tasks/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "posattn/base/error.h"
#include "posattn/base/parallel.h"
#include "posattn/tasks/pairs.h"

namespace posattn {
namespace {

constexpr int longest_length = 1 << 20;
constexpr int64_t most_samples = int64_t{1} << 32;  // a sample's index is a 32-bit word of the key
// 32 bits address fewer, and the largest set must still leave room for the rest.
constexpr double most_numbers = sizeof(size_t) > 4 ? 0x1p36 : 0x1p28;

// The third word of the random key: the bits of the scale as a float, plus the length times the odd
// number 0x9e3779b9, modulo 2^32. Being odd it maps lengths below 2^k to words that differ in their
// low k bits, and the bits of a scale with few digits (1..1000, halves, ...) end in 13 zeros: no
// two of the (scale, length) pairs people use share their samples.
// Another axis than "c" adds a word made of its name.
uint32_t key_variant(std::string_view axis, double scale, int length) {
  uint32_t word = 0;
  if (axis != "c") {
    for (const char c : axis) word = (word ^ static_cast<unsigned char>(c)) * 0x01000193u;
  }
  return std::bit_cast<uint32_t>(static_cast<float>(scale)) +
         static_cast<uint32_t>(length) * 0x9e3779b9u + word;
}

void check_length(const Task& task, int length) {
  if (length < task.shortest_length() || length > longest_length) {
    throw Error(ExitCode::configuration, fmt::format("length {} for task {}", length, task.name()),
                fmt::format("a length from {} to {}", task.shortest_length(), longest_length));
  }
}

}  // namespace

Dataset make_dataset(const DatasetRequest& request) {
  const Task& task = *request.task;
  check_length(task, request.length);
  Dataset set;
  set.length = request.length;
  set.shape = task.shape(request.length);
  set.samples = request.samples;
  const bool classes = task.loss() == Loss::cross_entropy;
  const int64_t inputs = set.shape.input_count();
  const int64_t targets = classes ? 0 : set.shape.target_count();
  const int64_t tokens = set.shape.vocabulary > 0 ? set.shape.real_nodes : 0;
  const int64_t labels = classes ? set.shape.real_nodes : 0;
  const int64_t pairs = set.shape.pair_number_count(), classes_of = set.shape.pair_class_count();
  const int64_t numbers = inputs + targets + tokens + labels + pairs + classes_of;
  if (set.samples < 0 || set.samples > most_samples ||
      static_cast<double>(set.samples) * static_cast<double>(numbers) > most_numbers) {
    throw Error(
        ExitCode::configuration,
        fmt::format("{} samples of task {} at length {}", set.samples, task.name(), request.length),
        fmt::format("at most {} numbers in all", static_cast<int64_t>(most_numbers)),
        "ask for fewer samples");
  }
  set.inputs.resize(set.samples * inputs);
  set.targets.resize(set.samples * targets);
  set.tokens.resize(set.samples * tokens);
  set.labels.resize(set.samples * labels);
  set.pairs.resize(set.samples * pairs);
  set.pair_classes.resize(set.samples * classes_of);
  const uint32_t variant = key_variant(request.axis, request.scale, request.length);
  const bool is_test =
      request.purpose == Purpose::test_data || request.purpose == Purpose::evaluation_data;
  const Sampling sampling{request.range, request.axis, request.scale, is_test,
                          request.listed ? 0 : -1};
  const int64_t block = task.block_samples();
  parallel_for((set.samples + block - 1) / block, std::max(1, request.threads), [&](int64_t b) {
    const int64_t first = b * block, count = std::min(set.samples - first, block);
    const auto part = [&](auto& values, int64_t each) {
      return std::span(values).subspan(first * each, count * each);
    };
    task.make_samples({.seed = request.seed,
                       .purpose = request.purpose,
                       .variant = variant,
                       .first = static_cast<uint32_t>(request.sets_before * set.samples + first),
                       .samples = count,
                       .length = request.length,
                       .sampling = sampling,
                       .room = {part(set.inputs, inputs), part(set.tokens, tokens),
                                part(set.targets, targets), part(set.labels, labels),
                                part(set.pairs, pairs), part(set.pair_classes, classes_of)}});
  });
  if (const auto fault = fault_of_pairs<float>(set.shape, set.pairs, set.pair_classes)) {
    throw Error(ExitCode::configuration, fmt::format("task {}: {}", task.name(), fault->problem),
                fault->expected);
  }
  return set;
}

std::vector<Dataset> make_variable_length(DatasetRequest request) {
  const Task& task = *request.task;
  if (!task.supports_variable_length()) {
    throw Error(ExitCode::configuration, fmt::format("variable length for task {}", task.name()),
                "a task whose samples of several lengths can share one model",
                "train this task with a fixed length");
  }
  check_length(task, request.length);
  const int shortest =
      request.shortest_length > 0 ? request.shortest_length : task.shortest_length();
  if (shortest < task.shortest_length() || shortest > request.length) {
    throw Error(ExitCode::configuration, fmt::format("the shortest length {}", shortest),
                fmt::format("{} to {}", task.shortest_length(), request.length));
  }
  const int lengths = request.length - shortest + 1;
  const int64_t share = request.samples / lengths;
  const int64_t remainder = request.samples % lengths;
  std::vector<Dataset> sets;
  sets.reserve(lengths);
  for (int i = 0; i < lengths; ++i) {
    request.length = shortest + i;
    request.samples = share + (i < remainder ? 1 : 0);
    sets.push_back(make_dataset(request));
  }
  return sets;
}

std::vector<uint8_t> loss_mask(const Task& task, int length) {
  const TaskShape shape = task.shape(length);
  std::vector<uint8_t> mask;
  mask.reserve(shape.target_count());
  for (int node = 0; node < shape.real_nodes; ++node) {
    for (int column = 0; column < shape.output_columns; ++column) {
      mask.push_back(shape.reads(node) && task.counts(length, node, column) ? 1 : 0);
    }
  }
  return mask;
}

}  // namespace posattn

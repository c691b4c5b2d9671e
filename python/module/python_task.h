// A task whose samples Python makes, many at a time.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "arrays.h"
#include "posattn/base/error.h"
#include "posattn/task.h"

namespace posattn::python {

// What Python gives: `solve(x)` and, if it is not None, `draw(random, samples, length, low, high)`,
// on arrays [samples, nodes] or [samples, nodes, columns]. `draw` may return (x, {"pairs": array,
// "pair_classes": array}), which `solve` then gets by keyword: [samples, nodes, nodes], with the
// numbers of a pair as a last axis. Errors of theirs become posattn::Error.
class PythonTask final : public Task {
 public:
  PythonTask(std::string name, std::string description, const py::object& solve,
             const py::object& draw, int pair_classes);

  // Another definition under the same name; not while runs read tasks.
  void redefine(std::string description, const py::object& solve, const py::object& draw,
                int pair_classes);

  std::string_view name() const override { return name_; }
  std::string_view description() const override { return description_; }
  TaskShape shape(int length) const override;
  void make_samples(const SampleBlock& block) const override;
  int64_t block_samples() const override { return 1024; }
  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override;
  void solve(int length, std::span<const float> input, std::span<float> target) const override;

  // A fleet records an exception as a failure of its run. What is no error of a function, such as
  // KeyboardInterrupt, is kept until somebody takes it to raise it again.
  static std::unique_ptr<py::error_already_set> take_interrupt();

 private:
  using Key = std::array<uint64_t, 4>;
  // Numbers [samples, nodes, columns] in double, checked, and the pairs, if there are any.
  struct Drawn {
    Doubles numbers, pairs;  // [samples, nodes, nodes, columns]
    Integers pair_classes;   // [samples, nodes, nodes]
  };
  Drawn drawn(const Key& key, int64_t samples, const ValueRange& range, int length) const;
  void add_pairs(const py::dict& given, int64_t samples, Drawn& drawn) const;
  Doubles solved(const Drawn& drawn) const;
  Doubles checked(const py::object& result, const char* function, int64_t samples) const;
  // The Error of an exception that `function` raised; throws again what is none.
  Error raised_by(const char* function, const py::error_already_set& error) const;

  std::string name_, description_;
  int pair_classes_;
  // What follows is touched with the interpreter's lock only, and never given up: tasks live longer
  // than the interpreter.
  py::handle solve_, draw_;
  mutable std::map<int, TaskShape> shapes_;  // by length
};

}  // namespace posattn::python

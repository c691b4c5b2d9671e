#include "python_task.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "task_guard.h"
#include "unlocked.h"

namespace posattn::python {
namespace {

void put(const Doubles& from, std::span<float> to) {
  std::transform(from.data(), from.data() + to.size(), to.begin(),
                 [](double value) { return static_cast<float>(value); });
}

// With the interpreter's lock only; the first that is not raised yet. Never freed at the end: the
// interpreter may be gone.
py::error_already_set* interrupt = nullptr;

}  // namespace

PythonTask::PythonTask(std::string name, std::string description, const py::object& solve,
                       const py::object& draw)
    : name_(std::move(name)), description_(std::move(description)) {
  solve_ = solve.inc_ref();
  draw_ = draw.inc_ref();
}

void PythonTask::redefine(std::string description, const py::object& solve,
                          const py::object& draw) {
  description_ = std::move(description);
  solve_.dec_ref();
  draw_.dec_ref();
  solve_ = solve.inc_ref();
  draw_ = draw.inc_ref();
  shapes_.clear();
}

Error PythonTask::raised_by(const char* function, const py::error_already_set& error) const {
  if (!error.matches(PyExc_Exception)) {
    if (interrupt == nullptr) interrupt = new py::error_already_set(error);
    throw;
  }
  return {ExitCode::configuration, "task " + name_ + ": " + function + " raised " + error.what()};
}

std::unique_ptr<py::error_already_set> PythonTask::take_interrupt() {
  return std::unique_ptr<py::error_already_set>(std::exchange(interrupt, nullptr));
}

Doubles PythonTask::checked(const py::object& result, const char* function, int64_t samples) const {
  const std::string what = "task " + name_ + ": what " + function + " returns";
  const Doubles array = doubles_of(result, what);
  if (array.ndim() < 2 || array.ndim() > 3 || array.shape(0) != samples || array.size() == 0) {
    throw Error(ExitCode::configuration, what + " has shape " + shape_text(array),
                "[" + std::to_string(samples) + ", nodes] or [" + std::to_string(samples) +
                    ", nodes, columns]: all samples at once");
  }
  for (const double value : numbers(array)) {
    if (!std::isfinite(value)) {
      throw Error(ExitCode::configuration, what + " holds " + std::to_string(value),
                  "finite numbers");
    }
  }
  if (array.ndim() == 3) return array;
  return Doubles(array.attr("reshape")(samples, array.shape(1), 1));
}

Doubles PythonTask::drawn(const Key& key, int64_t samples, const ValueRange& range,
                          int length) const {
  if (draw_.is_none()) {
    Doubles inputs({samples, int64_t{length}, int64_t{1}});
    std::vector<float> row(length);
    for (int64_t i = 0; i < samples; ++i) {
      RandomStream random(key[0], static_cast<Purpose>(key[1]), static_cast<uint32_t>(key[2]),
                          static_cast<uint32_t>(key[3] + static_cast<uint64_t>(i)));
      draw_values(random, range, row);
      std::ranges::copy(row, inputs.mutable_data(i));
    }
    return inputs;
  }
  try {
    const py::module_ numpy = py::module_::import("numpy.random");
    const py::object random = numpy.attr("Generator")(numpy.attr("Philox")(
        numpy.attr("SeedSequence")(py::cast(std::vector<uint64_t>(key.begin(), key.end())))));
    return checked(
        py::reinterpret_borrow<py::object>(draw_)(random, samples, length, range.low, range.high),
        "draw", samples);
  } catch (const py::error_already_set& error) {
    throw raised_by("draw", error);
  }
}

Doubles PythonTask::solved(const Doubles& inputs) const {
  try {
    // A copy: a function that sorts in place must not change the samples.
    py::object x = inputs.attr("copy")();
    if (inputs.shape(2) == 1) x = x.attr("reshape")(inputs.shape(0), inputs.shape(1));
    const Doubles answers =
        checked(py::reinterpret_borrow<py::object>(solve_)(x), "solve", inputs.shape(0));
    if (answers.shape(1) != inputs.shape(1)) {
      throw Error(ExitCode::configuration,
                  "task " + name_ + ": what solve returns has " + std::to_string(answers.shape(1)) +
                      " nodes",
                  std::to_string(inputs.shape(1)) + ", as its input has");
    }
    return answers;
  } catch (const py::error_already_set& error) {
    throw raised_by("solve", error);
  }
}

TaskShape PythonTask::shape(int length) const {
  const py::gil_scoped_acquire locked;
  const auto known = shapes_.find(length);
  if (known != shapes_.end()) return known->second;
  const Doubles inputs = drawn({0, 0, 0, 0}, 3, {}, length);
  const Doubles answers = solved(inputs);
  const TaskShape found{.real_nodes = static_cast<int>(inputs.shape(1)),
                        .data_columns = static_cast<int>(inputs.shape(2)),
                        .output_columns = static_cast<int>(answers.shape(2))};
  shapes_[length] = found;
  return found;
}

void PythonTask::make_samples(const SampleBlock& block) const {
  const py::gil_scoped_acquire locked;
  const TaskShape expected = shape(block.length);
  // A whole block always: its first samples do not depend on how many are wanted.
  const int64_t count = draw_.is_none() ? block.samples : block_samples();
  const Key key = {block.seed, static_cast<uint64_t>(block.purpose), block.variant, block.first};
  const Doubles inputs = drawn(key, count, block.sampling.range, block.length);
  const Doubles answers = solved(inputs);
  if (inputs.size() != count * expected.input_count() ||
      answers.size() != count * expected.target_count()) {
    throw Error(
        ExitCode::configuration,
        "task " + name_ + ": samples of different shapes at length " + std::to_string(block.length),
        "one shape for each length");
  }
  put(inputs, block.room.values);
  put(answers, block.room.targets);
}

void PythonTask::make_sample(RandomStream& random, const Sampling& sampling, int length,
                             const SampleRoom& room) const {
  const py::gil_scoped_acquire locked;
  put(drawn({random.next(), 0, 0, 0}, 1, sampling.range, length), room.values);
  solve(length, room.values, room.targets);
}

void PythonTask::solve(int length, std::span<const float> input, std::span<float> target) const {
  const py::gil_scoped_acquire locked;
  const TaskShape expected = shape(length);
  Doubles one({int64_t{1}, int64_t{expected.real_nodes}, int64_t{expected.data_columns}});
  std::ranges::copy(input, one.mutable_data());
  put(solved(one), target);
}

void add_tasks(py::module_& module) {
  module.def("tasks", [] {
    std::vector<std::pair<std::string, std::string>> list;
    for (const Task* task : tasks()) list.emplace_back(task->name(), task->description());
    return list;
  });
  module.def(
      "define_task",
      [](const std::string& name, const std::string& description, const py::object& solve,
         const py::object& draw) {
        if (TasksInUse::any()) {
          throw Error(ExitCode::usage, "task '" + name + "' is defined while runs train",
                      "a time when none does");
        }
        for (const Task* task : tasks()) {
          const auto* ours = dynamic_cast<const PythonTask*>(task);
          if (ours == nullptr || ours->name() != name) continue;
          const_cast<PythonTask*>(ours)->redefine(description, solve, draw);
          return;
        }
        register_task(std::make_unique<PythonTask>(name, description, solve, draw));
      },
      py::arg("name"), py::arg("description"), py::arg("solve"), py::arg("draw"));
  module.def(
      "samples",
      [](const std::string& task, int length, int64_t samples, double range, bool integers,
         double scale, uint64_t seed) {
        Dataset set;
        {
          const TasksInUse in_use;
          const Interruptible unlocked;
          const Task& found = find_task(task);
          if (found.loss() != Loss::squared_error || found.shape(length).vocabulary > 0) {
            throw Error(ExitCode::usage, "samples of task '" + task + "' as arrays",
                        "a task of numbers");
          }
          set = make_dataset({.task = &found,
                              .length = length,
                              .samples = samples,
                              .range = scale == 1 ? training_range(range, integers)
                                                  : test_range(range, scale, integers),
                              .seed = seed,
                              .purpose = Purpose::evaluation_data,
                              .scale = scale});
        }
        const auto as_array = [&](const Buffer<float>& values, int columns) {
          std::vector<int64_t> shape = {set.samples, set.shape.real_nodes};
          if (columns != 1) shape.push_back(columns);
          return array_of(shape, std::vector<float>(values.begin(), values.end()));
        };
        return py::make_tuple(as_array(set.inputs, set.shape.data_columns),
                              as_array(set.targets, set.shape.output_columns));
      },
      py::arg("task"), py::arg("length"), py::arg("samples"), py::arg("range"), py::arg("integers"),
      py::arg("scale"), py::arg("seed"));
}

}  // namespace posattn::python

#include "python_task.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "task_guard.h"
#include "unlocked.h"

namespace posattn::python {
namespace {

template <class Array, class T>
void put(const Array& from, std::span<T> to) {
  std::transform(from.data(), from.data() + to.size(), to.begin(),
                 [](auto value) { return static_cast<T>(value); });
}

// With the interpreter's lock only; the first that is not raised yet. Never freed at the end: the
// interpreter may be gone.
py::error_already_set* interrupt = nullptr;

}  // namespace

PythonTask::PythonTask(std::string name, std::string description, const py::object& solve,
                       const py::object& draw, int pair_classes)
    : name_(std::move(name)), description_(std::move(description)), pair_classes_(pair_classes) {
  solve_ = solve.inc_ref();
  draw_ = draw.inc_ref();
}

void PythonTask::redefine(std::string description, const py::object& solve, const py::object& draw,
                          int pair_classes) {
  description_ = std::move(description);
  pair_classes_ = pair_classes;
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

void PythonTask::add_pairs(const py::dict& given, int64_t samples, Drawn& drawn) const {
  const std::string what = "task " + name_ + ": what draw returns";
  const int64_t nodes = drawn.numbers.shape(1);
  const auto check = [&](const py::array& array, int axes, const std::string& name) {
    const bool fits = array.ndim() == axes && array.size() > 0 && array.shape(0) == samples &&
                      array.shape(1) == nodes && array.shape(2) == nodes;
    if (fits) return;
    throw Error(ExitCode::configuration, what + " as " + name + " has shape " + shape_text(array),
                "[" + std::to_string(samples) + ", " + std::to_string(nodes) + ", " +
                    std::to_string(nodes) + "]");
  };
  for (const auto& [key, value] : given) {
    const std::string name = py::str(key);
    const auto array = py::reinterpret_borrow<py::object>(value);
    if (name == "pairs") {
      drawn.pairs = doubles_of(array, what + " as pairs");
      if (drawn.pairs.ndim() == 3) {
        const auto* shape = drawn.pairs.shape();
        drawn.pairs = Doubles(drawn.pairs.attr("reshape")(shape[0], shape[1], shape[2], 1));
      }
      check(drawn.pairs, 4, name);
    } else if (name == "pair_classes") {
      drawn.pair_classes = integers_of(array, what + " as pair_classes");
      check(drawn.pair_classes, 3, name);
    } else {
      throw Error(ExitCode::configuration, what + ": '" + name + "'", "pairs and pair_classes");
    }
  }
}

PythonTask::Drawn PythonTask::drawn(const Key& key, int64_t samples, const ValueRange& range,
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
    return {.numbers = inputs, .pairs = {}, .pair_classes = {}};
  }
  try {
    const py::module_ numpy = py::module_::import("numpy.random");
    const py::object random = numpy.attr("Generator")(numpy.attr("Philox")(
        numpy.attr("SeedSequence")(py::cast(std::vector<uint64_t>(key.begin(), key.end())))));
    const py::object result =
        py::reinterpret_borrow<py::object>(draw_)(random, samples, length, range.low, range.high);
    const bool with_pairs = py::isinstance<py::tuple>(result) && py::len(result) == 2 &&
                            py::isinstance<py::dict>(py::tuple(result)[1]);
    Drawn drawn;
    drawn.numbers =
        checked(with_pairs ? py::object(py::tuple(result)[0]) : result, "draw", samples);
    if (with_pairs) add_pairs(py::tuple(result)[1], samples, drawn);
    if ((drawn.pair_classes.size() > 0) != (pair_classes_ > 0)) {
      throw Error(ExitCode::configuration,
                  "task " + name_ + " has " + std::to_string(pair_classes_) + " classes of pairs",
                  "Task(..., pair_classes=COUNT) where draw returns pair_classes, and only there");
    }
    return drawn;
  } catch (const py::error_already_set& error) {
    throw raised_by("draw", error);
  }
}

Doubles PythonTask::solved(const Drawn& drawn) const {
  const Doubles& inputs = drawn.numbers;
  try {
    // Copies: a function that sorts in place must not change the samples.
    py::object x = inputs.attr("copy")();
    if (inputs.shape(2) == 1) x = x.attr("reshape")(inputs.shape(0), inputs.shape(1));
    py::dict given;
    if (drawn.pairs.size() > 0) {
      given["pairs"] = drawn.pairs.attr("copy")();
      if (drawn.pairs.shape(3) == 1) given["pairs"] = given["pairs"].attr("squeeze")(3);
    }
    if (drawn.pair_classes.size() > 0) given["pair_classes"] = drawn.pair_classes.attr("copy")();
    const Doubles answers =
        checked(py::reinterpret_borrow<py::object>(solve_)(x, **given), "solve", inputs.shape(0));
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
  const Drawn first = drawn({0, 0, 0, 0}, 3, {}, length);
  const Doubles answers = solved(first);
  const auto columns = first.pairs.size() > 0 ? first.pairs.shape(3) : 0;
  const TaskShape found{.real_nodes = static_cast<int>(first.numbers.shape(1)),
                        .data_columns = static_cast<int>(first.numbers.shape(2)),
                        .output_columns = static_cast<int>(answers.shape(2)),
                        .pair_columns = static_cast<int>(columns),
                        .pair_classes = first.pair_classes.size() > 0 ? pair_classes_ : 0};
  shapes_[length] = found;
  return found;
}

void PythonTask::make_samples(const SampleBlock& block) const {
  const py::gil_scoped_acquire locked;
  const TaskShape expected = shape(block.length);
  // A whole block always: its first samples do not depend on how many are wanted.
  const int64_t count = draw_.is_none() ? block.samples : block_samples();
  const Key key = {block.seed, static_cast<uint64_t>(block.purpose), block.variant, block.first};
  const Drawn made = drawn(key, count, block.sampling.range, block.length);
  const Doubles answers = solved(made);
  if (made.numbers.size() != count * expected.input_count() ||
      answers.size() != count * expected.target_count() ||
      made.pairs.size() != count * expected.pair_number_count() ||
      made.pair_classes.size() != count * expected.pair_class_count()) {
    throw Error(
        ExitCode::configuration,
        "task " + name_ + ": samples of different shapes at length " + std::to_string(block.length),
        "one shape for each length");
  }
  put(made.numbers, block.room.values);
  put(answers, block.room.targets);
  put(made.pairs, block.room.pairs);
  put(made.pair_classes, block.room.pair_classes);
}

void PythonTask::make_sample(RandomStream& random, const Sampling& sampling, int length,
                             const SampleRoom& room) const {
  const py::gil_scoped_acquire locked;
  const Drawn made = drawn({random.next(), 0, 0, 0}, 1, sampling.range, length);
  put(made.numbers, room.values);
  put(made.pairs, room.pairs);
  put(made.pair_classes, room.pair_classes);
  put(solved(made), room.targets);
}

void PythonTask::solve(int length, std::span<const float> input, std::span<float> target) const {
  const py::gil_scoped_acquire locked;
  const TaskShape expected = shape(length);
  if (expected.has_pairs()) return Task::solve(length, input, target);  // which says why not
  Doubles one({int64_t{1}, int64_t{expected.real_nodes}, int64_t{expected.data_columns}});
  std::ranges::copy(input, one.mutable_data());
  put(solved({.numbers = one, .pairs = {}, .pair_classes = {}}), target);
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
         const py::object& draw, int pair_classes) {
        if (TasksInUse::any()) {
          throw Error(ExitCode::usage, "task '" + name + "' is defined while runs train",
                      "a time when none does");
        }
        for (const Task* task : tasks()) {
          const auto* ours = dynamic_cast<const PythonTask*>(task);
          if (ours == nullptr || ours->name() != name) continue;
          const_cast<PythonTask*>(ours)->redefine(description, solve, draw, pair_classes);
          return;
        }
        register_task(std::make_unique<PythonTask>(name, description, solve, draw, pair_classes));
      },
      py::arg("name"), py::arg("description"), py::arg("solve"), py::arg("draw"),
      py::arg("pair_classes"));
  module.def(
      "samples",
      [](const std::string& task, int length, int64_t samples, double range, bool integers,
         double scale, uint64_t seed, const std::string& task_set) {
        Dataset set;
        {
          const TasksInUse in_use;
          const Interruptible unlocked;
          const Task& found = find_task(task, task_set);
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
        const py::object x = as_array(set.inputs, set.shape.data_columns),
                         y = as_array(set.targets, set.shape.output_columns);
        if (!set.shape.has_pairs()) return py::make_tuple(x, y);
        py::dict pairs;
        std::vector<int64_t> square = {set.samples, set.shape.real_nodes, set.shape.real_nodes};
        if (set.shape.pair_classes > 0) {
          pairs["pair_classes"] = array_of(
              square, std::vector<int32_t>(set.pair_classes.begin(), set.pair_classes.end()));
        }
        if (set.shape.pair_columns > 1) square.push_back(set.shape.pair_columns);
        if (set.shape.pair_columns > 0) {
          pairs["pairs"] = array_of(square, std::vector<float>(set.pairs.begin(), set.pairs.end()));
        }
        return py::make_tuple(x, y, pairs);
      },
      py::arg("task"), py::arg("length"), py::arg("samples"), py::arg("range"), py::arg("integers"),
      py::arg("scale"), py::arg("seed"), py::arg("task_set"));
}

}  // namespace posattn::python

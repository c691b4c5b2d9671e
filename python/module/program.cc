#include "program.h"

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/draw.h"
#include "unlocked.h"

namespace posattn::python {
namespace {

constexpr int longest = 1 << 20;

int checked_length(int64_t length) {
  if (length < 1 || length > longest) {
    throw Error(ExitCode::usage, "length = " + std::to_string(length),
                "1 to " + std::to_string(longest));
  }
  return static_cast<int>(length);
}

std::unique_ptr<HeldProgram> read(const LibraryProgram& source, int64_t length,
                                  const Settings& settings) {
  const int n = checked_length(length);
  const Interruptible unlocked;
  return std::make_unique<HeldProgram>(
      compile_text(source.text, source.file, n, {.settings = settings}),
      compile_text(source.text, source.file, n, {.settings = settings, .whole = true}), source.text,
      settings);
}

PlanSizes sizes_of(const std::vector<int>& pad_to) {
  if (pad_to.empty()) return {};
  const auto sensible = [](int size) { return size >= 1 && size <= 1 << 16; };
  if (pad_to.size() != 4 || !std::ranges::all_of(pad_to, sensible)) {
    throw Error(ExitCode::usage, "pad_to of " + std::to_string(pad_to.size()) + " numbers",
                "width, heads, hidden and layers, as (64, 2, 64, 6)");
  }
  return {pad_to[0], pad_to[1], pad_to[2], pad_to[3]};
}

py::dict scale_facts(const ScaleVerification& scale) {
  py::dict facts;
  facts["c"] = scale.c;
  facts["samples"] = scale.samples;
  facts["mismatches"] = scale.mismatches;
  facts["largest_error"] = scale.largest_error;
  facts["rounding_bound"] = scale.largest_bound;
  facts["bound_share"] = scale.bound_share;
  facts["mse"] = scale.mse;
  return facts;
}

}  // namespace

HeldProgram::HeldProgram(StaticProgram program, StaticProgram whole, std::string text,
                         Settings settings)
    : program_(std::move(program)),
      whole_(std::move(whole)),
      text_(std::move(text)),
      settings_(std::move(settings)) {}

std::unique_ptr<HeldModel> HeldProgram::compiled(bool dense, double sharpness,
                                                 const std::string& routing,
                                                 const std::vector<int>& pad_to) const {
  if (!(sharpness > 0) || !std::isfinite(sharpness)) {
    throw Error(ExitCode::usage, "sharpness = " + std::to_string(sharpness), "a number above 0");
  }
  CompileOptions options;
  options.dense = dense;
  options.sharpness = sharpness;
  options.sizes = sizes_of(pad_to);
  options.program = text_;
  options.routing = parse_routing(routing);
  const Interruptible unlocked;
  Model model = compile(program_, options);
  if (!text_.empty() && text_name(text_, "text").empty()) {
    model.origin.notes["name"] = program_.name;
  }
  model.origin.notes["length"] = std::to_string(program_.length);
  if (!settings_.empty()) model.origin.notes["set"] = to_text(settings_);
  if (program_.sends()) model.origin.notes["routing"] = to_string(options.routing);
  return std::make_unique<HeldModel>(std::move(model));
}

std::pair<Doubles, SampleForm> HeldProgram::accepted(const py::object& x) const {
  Doubles numbers_given = doubles_of(x, "x");
  const auto columns = static_cast<int>(program_.inputs.size());
  const SampleForm form = form_of_numbers(numbers_given, columns, "x");
  if (form.nodes != program_.processors) {
    throw Error(ExitCode::data, "x of shape " + shape_text(numbers_given),
                std::to_string(program_.processors) + " processors");
  }
  const size_t each = static_cast<size_t>(form.nodes) * columns;
  for (int64_t i = 0; i < form.samples; ++i) {
    const std::span<const double> input = numbers(numbers_given).subspan(i * each, each);
    for (const double value : input) {
      if (!std::isfinite(value)) {
        throw Error(ExitCode::data, "x, sample " + std::to_string(i) + ": " + std::to_string(value),
                    "finite numbers");
      }
    }
    if (const std::optional<InputFault> fault = input_fault(program_, input)) {
      throw Error(ExitCode::data, "x, sample " + std::to_string(i) + ": " + fault->problem,
                  fault->expected);
    }
  }
  return {std::move(numbers_given), form};
}

py::array HeldProgram::run(const py::object& x, const std::string& level,
                           const std::string& routing, const HeldModel* model) const {
  const std::vector<std::string> levels = {"mpc", "static", "network"};
  if (std::ranges::find(levels, level) == levels.end()) {
    throw unknown_name(ExitCode::usage, "level", level, levels);
  }
  const Routing by = parse_routing(routing);
  const std::shared_ptr<Model> network = level == "network" ? model->shared() : nullptr;
  const auto [given, form] = accepted(x);
  const std::span<const double> inputs = numbers(given);
  std::vector<double> outputs;
  {
    const Interruptible unlocked;
    const int64_t samples = form.samples;
    // The interpreter refuses what the network could only guess.
    outputs = run_static<double>(program_, inputs, samples);
    if (level != "mpc") {
      const RoutedProgram routed = route_messages(program_, by);
      const std::vector<double> with_switches =
          routed_inputs<double>(program_, routed, inputs, samples);
      outputs = level == "static" ? run_static<double>(routed.program, with_switches, samples)
                                  : run_network(*network, routed.program, with_switches, samples);
    }
  }
  return array_of(form.answer_shape(static_cast<int>(program_.outputs.size())), std::move(outputs));
}

Doubles HeldProgram::one_accepted(const py::object& x) const {
  auto [given, form] = accepted(x);
  if (form.has_samples) {
    throw Error(ExitCode::data, "x of shape " + shape_text(given), "one sample");
  }
  return std::move(given);
}

std::string HeldProgram::steps(const py::object& x, const std::string& routing) const {
  const Doubles given = one_accepted(x);
  const RoutedProgram routed = route_messages(program_, parse_routing(routing));
  const std::vector<double> inputs = routed_inputs<double>(program_, routed, numbers(given), 1);
  Walk walk = program_walk(routed.program, text_, inputs);
  compare_with_network(compile(routed.program), routed.program, inputs, walk);
  return step_page(walk);
}

py::tuple HeldProgram::trace(const py::object& x) const {
  const Doubles given = one_accepted(x);
  std::vector<double> values = trace_static(whole_, numbers(given));
  py::list names, types;
  for (const Word& word : whole_.words) {
    names.append(word.name);
    types.append(to_string(word.type));
  }
  return py::make_tuple(names, types,
                        array_of({static_cast<int64_t>(whole_.rounds.size()) + 1, whole_.processors,
                                  static_cast<int64_t>(whole_.words.size())},
                                 std::move(values)));
}

py::dict HeldProgram::verified(const HeldModel& held, const std::vector<double>& scales,
                               int64_t samples, uint64_t seed, const std::string& routing,
                               bool in_double, bool any_weights, int threads) const {
  if (samples < 1 || samples > 100'000'000) {
    throw Error(ExitCode::usage, "samples = " + std::to_string(samples), "1 to 100000000");
  }
  for (const double scale : scales) {
    if (!(scale > 0) || !std::isfinite(scale)) {
      throw Error(ExitCode::usage, "scale " + std::to_string(scale), "a number above 0");
    }
  }
  const std::shared_ptr<Model> model = held.shared();
  Verification found;
  {
    const Routing by = parse_routing(routing);
    const Interruptible unlocked;
    found = verify({.model = model.get(),
                    .program = &program_,
                    .routing = by,
                    .scales = scales,
                    .samples = samples,
                    .seed = seed,
                    .threads = checked_threads(threads),
                    .in_double = in_double,
                    .any_weights = any_weights});
  }
  py::list rows;
  for (const ScaleVerification& scale : found.scales) rows.append(scale_facts(scale));
  py::dict facts;
  facts["holds"] = found.holds();
  facts["decided"] = found.is_decided();
  facts["inputs"] = found.inputs();
  facts["other_weights"] = found.other_weights;
  facts["scales"] = rows;
  facts["counter_example"] = py::none();
  if (const auto& example = found.counter_example) {
    py::dict parts;
    parts["against"] = example->against;
    parts["input"] = example->input;
    parts["expected"] = example->expected;
    parts["found"] = example->found;
    parts["bounds"] = example->bounds;
    facts["counter_example"] = parts;
  }
  return facts;
}

std::string HeldProgram::svg() const {
  return program_svg(route_messages(program_, Routing::automatic).program);
}

py::dict HeldProgram::facts() const {
  const auto names = [this](const std::vector<int>& words) {
    py::list list;
    for (const int word : words) list.append(program_.words[word].name);
    return list;
  };
  py::dict facts;
  facts["name"] = program_.name;
  facts["task"] = program_.task;
  facts["length"] = program_.length;
  facts["processors"] = program_.processors;
  facts["rounds"] = program_.rounds.size();
  facts["inputs"] = names(program_.inputs);
  facts["outputs"] = names(program_.outputs);
  facts["sends"] = program_.sends();
  return facts;
}

void add_programs(py::module_& module) {
  py::class_<HeldProgram>(module, "Program")
      .def("compiled", &HeldProgram::compiled, py::arg("dense"), py::arg("sharpness"),
           py::arg("routing"), py::arg("pad_to"))
      .def("run", &HeldProgram::run, py::arg("x"), py::arg("level"), py::arg("routing"),
           py::arg("model"))
      .def("trace", &HeldProgram::trace, py::arg("x"))
      .def("verify", &HeldProgram::verified, py::arg("model"), py::arg("scales"),
           py::arg("samples"), py::arg("seed"), py::arg("routing"), py::arg("in_double"),
           py::arg("any_weights"), py::arg("threads"))
      .def("steps", &HeldProgram::steps, py::arg("x"), py::arg("routing"))
      .def("svg", &HeldProgram::svg)
      .def("facts", &HeldProgram::facts)
      .def_property_readonly("text", &HeldProgram::text);
  module.def("programs", [] {
    std::vector<std::pair<std::string, std::string>> list;
    for (const LibraryProgram& program : library_programs()) {
      list.emplace_back(program.name, program.description);
    }
    return list;
  });
  module.def(
      "program",
      [](const std::string& name, int64_t length, const Settings& settings) {
        return read(find_program(name), length, settings);
      },
      py::arg("name"), py::arg("length"), py::arg("settings"));
  module.def(
      "program_from_text",
      [](const std::string& text, int64_t length, const Settings& settings) {
        return read({.name = "text", .description = "", .file = "text", .text = text}, length,
                    settings);
      },
      py::arg("text"), py::arg("length"), py::arg("settings"));
  add_builder(module);
}

}  // namespace posattn::python

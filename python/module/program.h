// A parallel program in Python: its static form, what it was read from, its network.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "arrays.h"
#include "model.h"
#include "posattn/program.h"

namespace posattn::python {

class HeldProgram {
 public:
  // `whole` has also what no output needs, for traces.
  HeldProgram(StaticProgram program, StaticProgram whole, std::string text, Settings settings);

  const StaticProgram& program() const { return program_; }
  const std::string& text() const { return text_; }

  std::unique_ptr<HeldModel> compiled(bool dense, double sharpness, const std::string& routing,
                                      const std::vector<int>& pad_to) const;
  // At a level: "mpc", "static", "network"; of the last the model, of the others none.
  py::array run(const py::object& x, const std::string& level, const std::string& routing,
                const HeldModel* model) const;
  // Names and types of the words, and their values [rounds + 1, processors, words].
  py::tuple trace(const py::object& x) const;
  py::dict verified(const HeldModel& model, const std::vector<double>& scales, int64_t samples,
                    uint64_t seed, const std::string& routing, bool in_double, bool any_weights,
                    int threads) const;
  // The page that steps through one input, with the program and its compiled network side by side.
  std::string steps(const py::object& x, const std::string& routing) const;
  std::string svg() const;
  py::dict facts() const;

 private:
  // Numbers [samples, processors, inputs] that the program accepts.
  std::pair<Doubles, SampleForm> accepted(const py::object& x) const;
  Doubles one_accepted(const py::object& x) const;

  StaticProgram program_, whole_;
  std::string text_;
  Settings settings_;
};

void add_builder(py::module_& module);

}  // namespace posattn::python

// A program as a task: what a model of it is measured against where no task says what is right.
// Inputs are of the program's types and keep its promises, answers are those of its interpreter.
#pragma once

#include "posattn/programs/messages/route_messages.h"
#include "posattn/tasks/task.h"

namespace posattn {

class ProgramTask final : public Task {
 public:
  // Both must outlive this. Of a routed program: inputs are the network's, with its switches.
  explicit ProgramTask(const StaticProgram& program, const RoutedProgram* routed = nullptr)
      : program_(program), routed_(routed) {}

  std::string_view name() const override { return program_.name; }
  std::string_view description() const override { return "what the program computes"; }
  TaskShape shape(int length) const override;
  bool supports_variable_length() const override { return false; }
  // Whole numbers are drawn from all of their type, whatever the range.
  void draw(RandomStream& random, const ValueRange& range, int length,
            std::span<float> input) const override;
  void solve(int length, std::span<const float> input, std::span<float> target) const override;

 private:
  const StaticProgram& program_;
  const RoutedProgram* routed_;
};

}  // namespace posattn

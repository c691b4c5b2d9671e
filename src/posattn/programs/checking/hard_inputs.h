// Inputs of a program on which wrong networks fail that are right on random ones: equal numbers,
// both ends of every range, sorted and nearly sorted orders, the program's own constants and their
// neighbours, special permutations, lists and graphs. All keep the program's types and promises.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "posattn/programs/form/static_program.h"
#include "posattn/tasks/task.h"

namespace posattn {

class HardInputs {
 public:
  // The program must outlive this.
  explicit HardInputs(const StaticProgram& program);

  // One input [processors, inputs]. Consecutive indices take turns among the patterns. Real numbers
  // lie in the range, whole numbers in all of their type.
  void draw(RandomStream& random, const ValueRange& range, int64_t index,
            std::span<float> input) const;

 private:
  // Input columns that belong together: those of an array, or those of one promise.
  struct Group {
    int first = 0, count = 1;
    const PromisedInputs* promised = nullptr;
  };

  std::vector<double> drawn_group(const Group& group, int64_t index, const ValueRange& range,
                                  RandomStream& random) const;

  const StaticProgram& program_;
  std::vector<Group> groups_;
  std::vector<double> constants_;  // what the program compares its inputs with, as far as one sees
};

}  // namespace posattn

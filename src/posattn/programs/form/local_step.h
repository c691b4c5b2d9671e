// The local function of a round on one processor, in T's arithmetic.
#pragma once

#include "posattn/programs/form/static_program.h"

namespace posattn {

template <class T>
class LocalStep {
 public:
  // Writes the words that the round updates to `out`, from the processor's own and what it
  // received.
  void run(const Round& round, const T* words, const T* received, T* out);

  // Throws Error(data) where the last run, on this processor in round `round`, gave no number, and
  // where a choice left out what the network could not shut out.
  void check(const StaticProgram& program, int round, int processor) const;

  // What each instruction gave in the last run.
  const std::vector<T>& results() const { return results_; }

 private:
  void check_left_out(const StaticProgram& program, int round, int processor) const;

  std::vector<T> results_;  // of the instructions
};

extern template class LocalStep<float>;
extern template class LocalStep<double>;

}  // namespace posattn

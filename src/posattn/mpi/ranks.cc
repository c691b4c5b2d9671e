#include "posattn/mpi/ranks.h"

#include <exception>

namespace posattn {
namespace {

Ranks* left_by_exception = nullptr;

}  // namespace

void LeaveRanks::operator()(Ranks* ranks) const noexcept {
  if (std::uncaught_exceptions() > 0) {
    left_by_exception = ranks;
  } else {
    delete ranks;
  }
}

void abandon_ranks(int exit_code) {
  if (left_by_exception != nullptr) left_by_exception->abort(exit_code);
}

}  // namespace posattn

// What can go wrong on one rank must be known to all: otherwise the others wait for it for ever.
#pragma once

#include <functional>
#include <optional>

#include "posattn/base/error.h"
#include "posattn/mpi/ranks.h"

namespace posattn {

// Collective: every rank does `action`. The error of the lowest rank that had one, on all of them.
std::optional<Error> first_problem(Ranks& ranks, const std::function<void()>& action);

}  // namespace posattn

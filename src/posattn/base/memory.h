// How much memory there is: what cannot fit is refused before any of it is taken.
#pragma once

#include <cstdint>
#include <string>

namespace posattn {

// Bytes that this process may have at most: the machine's, or those of a limit (ulimit -v, a
// container's).
uint64_t memory_limit();

// Throws Error(failed) where `what` needs more.
void require_memory(uint64_t bytes, const std::string& what, const std::string& hint = {});

}  // namespace posattn

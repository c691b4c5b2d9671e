// Memory in a browser, which does not say how much there is: no limit is known.
#include "posattn/base/memory.h"

namespace posattn {

uint64_t memory_limit() { return UINT64_MAX; }

void require_memory(uint64_t, const std::string&, const std::string&) {}

}  // namespace posattn

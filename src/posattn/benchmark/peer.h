// Finds the programs of a benchmark. The peer runs in a process of its own: its threads and its
// memory allocator are tuned by environment variables that are read at start-up.
#pragma once

#include <filesystem>

namespace posattn {

// bench/peer_torch.py, from the source tree or the installed data. Throws Error(data) with a hint
// where neither has it.
std::filesystem::path find_peer_script();

// This very program, for measuring a setting in a fresh process.
std::filesystem::path this_program();

}  // namespace posattn

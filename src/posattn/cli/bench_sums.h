// `posattn bench --sums` under mpirun: what it takes to add numbers up over the ranks, which every
// step of data-parallel training does with its gradient.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace posattn {

// The measurements on rank 0, nothing on the others. Throws Error(usage) in a process that is no
// rank.
std::optional<nlohmann::ordered_json> measure_sums(const std::vector<int64_t>& numbers,
                                                   double seconds);
std::string sums_text(const nlohmann::ordered_json& result);

}  // namespace posattn

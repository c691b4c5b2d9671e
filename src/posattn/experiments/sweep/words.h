// What the processes of a sweep (sweep.h) say to each other: JSON objects, one a line. Orders go
// from rank 0 to a rank and on to its child, reports the other way.
//
//   orders   {"order": 7, "results": "/DIR", "command_line": "...",
//             "runs": [{"key": "...", "config": TOML}]}           train these
//            {"stop": true}                                       save checkpoints, then report
//            {"end": true}                                        for the rank: the sweep is over
//   reports  {"ready": true}                                      the child has started
//            {"order": 7, "run": 0, "status": "running", "step": 20, "steps": 100}
//                 and of a run that ended by itself "manifest", the text of its manifest.json
//            {"order": 7, "outcomes": [{"status": "done", "message": ""}]}   all of it
//            {"error": {"code": 5, "problem": ..., "expected": ..., "hint": ...}}
//                                                 what would end a process that trains alone
//            {"notice": "..."}                                    a line for the user
//            {"lost": "was killed by signal 9 (Killed)", "orders": 3}     the rank has lost its
//            child,
//                                                 after it had heard so many orders
//            {"stop": true}                                       the rank was asked to stop
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "posattn/base/error.h"
#include "posattn/training/run_config.h"

namespace posattn {

struct TrainingOrder {
  int64_t number = 0;
  std::filesystem::path results;
  std::string command_line;  // for manifests
  std::vector<RunConfig> runs;
};
std::string to_json_line(const TrainingOrder& order);
// Throws Error(data) where a run is not the one that was meant: two versions of the program.
TrainingOrder training_order_from(const nlohmann::json& order);

std::string to_json_line(const nlohmann::json& object);
std::string to_json_line(const Error& error);
Error error_from(const nlohmann::json& error);  // what stands under "error"

// A line of either direction; throws Error(data) for anything but an object.
nlohmann::json sweep_words(std::string_view line);

}  // namespace posattn

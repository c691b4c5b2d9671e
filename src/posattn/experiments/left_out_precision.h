// What --precision means where it is left out. Results in fp32 lie in DIR/NAME, those in tf32 in
// DIR/NAME-tf32: runs of the two are never mixed.
#pragma once

#include <filesystem>
#include <string>

#include "posattn/experiments/experiment.h"

namespace posattn {

// Of runs to train: tf32 where each of them would be trained in it by `posattn train`; but results
// in fp32 that are there go on in fp32. Empty: as the file says.
std::string precision_to_train(const Experiment& experiment, const std::filesystem::path& results);

// Of results to read: tf32 where these alone are there. Empty: as the file says.
std::string precision_to_read(const Experiment& experiment, const std::filesystem::path& results);

}  // namespace posattn

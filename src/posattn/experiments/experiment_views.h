// The views of an experiment's file, each as the file that it stands for.
#pragma once

#include <string>
#include <vector>

#include "posattn/base/toml.h"
#include "posattn/experiments/experiment_reader.h"

namespace posattn {

// Throws Error(configuration) for two of one name and for names that no results folder can have.
std::vector<std::string> view_names(const ExperimentReader& reader, const toml::table& file);

// The experiment's file as one that shows what the view shows: without views, and with the view's
// keys in the place of its own. `view` is one of view_names.
toml::table view_table(const ExperimentReader& reader, toml::table file, const std::string& view);

}  // namespace posattn

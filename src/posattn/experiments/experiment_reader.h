// Reads the tables of an experiment's TOML file; every error names file and line.
#pragma once

#include "posattn/base/toml.h"
#include "posattn/experiments/experiment.h"

namespace posattn {

class ExperimentReader {
 public:
  explicit ExperimentReader(std::string name) : name_(std::move(name)) {}

  std::string where(const toml::node& node) const;

  void only(const toml::table& table, const std::vector<std::string>& known) const;

  [[noreturn]] void refuse(const toml::node& node, std::string_view key,
                           const std::string& expected) const;

  const toml::node& required(const toml::table& table, const char* key,
                             const std::string& expected) const;

  // Reads one line of text, or several where line breaks are just spaces.
  std::string text(const toml::table& table, const char* key, const std::string& otherwise,
                   bool several_lines = false) const;

  std::vector<std::string> texts(const toml::node& node, const char* key) const;

  // Above 0, or on an axis that tasks state, or that has 0, from 0 on.
  std::vector<double> numbers(const toml::node& node, const char* key,
                              const ExperimentAxis& axis) const;

  double number(const toml::node& node, std::string_view key) const;

  const toml::table* table(const toml::table& parent, const char* key) const;

  std::vector<uint64_t> seeds(const toml::node& node) const;

  // Settings of a run, without those that the grid decides; `others` are keys with other meanings.
  std::vector<std::pair<std::string, std::string>> settings(
      const toml::table& table, const ExperimentAxis& axis,
      const std::vector<std::string>& others = {}) const;

 private:
  std::string name_;
};

// The names of the views in an experiment's file. Throws Error(configuration) for two of one name
// and for names that no results folder can have.
std::vector<std::string> view_names(const ExperimentReader& reader, const toml::table& file);

// The experiment's file as one that shows what the view shows: without views, and with the view's
// keys in the place of its own. `view` is one of view_names.
toml::table view_table(const ExperimentReader& reader, toml::table file, const std::string& view);

}  // namespace posattn

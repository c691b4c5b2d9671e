// posattn train

#include <algorithm>

#include "posattn/base/command.h"
#include "posattn/base/text.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/model_paths.h"
#include "posattn/cli/progress.h"
#include "posattn/cli/usage_errors.h"
#include "posattn/evaluation/metrics/metric.h"
#include "posattn/evaluation/summary.h"
#include "posattn/model/file/gpt2_weights.h"
#include "posattn/report/page/page_parts.h"
#include "posattn/tasks/task.h"
#include "posattn/tasks/written_prompt.h"
#include "posattn/training/fleet.h"
#include "posattn/training/run_config.h"

namespace posattn {
namespace {

// What `posattn train` was asked to do: defaults, then --config, then flags, then --set.
struct TrainSettings {
  std::vector<std::pair<std::string, std::string>> flags;  // fields given on the command line
  std::vector<std::string> assignments;                    // --set key=value
  std::string config_file, seeds, out;
  int threads = 0;
  bool resume = false, dry_run = false, json = false;
};

// What the task suggests, where neither the command line nor the file says anything.
void suggest(const Task& task, const std::set<std::string>& given, ConfigFile& base) {
  if (base.complete) return;
  for (const auto& [key, value] : task.settings()) {
    if (!given.contains(key) && !base.named.contains(key)) set_field(base.config, key, value);
  }
}

// --from takes what `evaluate` and the others take: a model file, or the folder of a run; and the
// folder of a GPT-2.
void start_from(RunConfig& config, const std::set<std::string>& named) {
  std::error_code ignored;
  if (std::filesystem::is_directory(config.from, ignored) && !is_gpt2_folder(config.from)) {
    config.from = find_model(config.from).string();
  }
  take_start(config, named);
}

// One flag per field of RunConfig, in the groups of its sections; those given land in
// settings.flags.
void add_config_flags(CLI::App& command, TrainSettings& settings) {
  for (const FieldInfo& field : config_fields()) {
    const std::string name = "--" + field.name;
    const auto keep = [&settings, key = field.name](const std::string& value) {
      settings.flags.emplace_back(key, value);
    };
    const std::string help = field.accepts.empty() ? field.help : field.help + "; " + field.accepts;
    CLI::Option* option = nullptr;
    if (field.type == "flag") {
      option = command.add_flag(name, help)->each(keep);
    } else {
      option = command.add_option_function<std::string>(name, keep, help);
      std::string text = field.type == "text" ? "TEXT" : field.type == "integer" ? "INT" : "NUMBER";
      if (!field.default_value.empty()) text += " [" + field.default_value + "]";
      option->option_text(text);
    }
    option->group(capitalised(field.section));
  }
}

// One configuration per architecture and seed, in that order.
std::vector<RunConfig> collect_configs(const TrainSettings& settings) {
  ConfigFile base;
  if (!settings.config_file.empty()) base = read_config_file(settings.config_file);
  std::set<std::string> given;  // on the command line
  for (const auto& [key, value] : settings.flags) {
    set_field(base.config, key, value, fmt::format("in --{}", key), ExitCode::usage);
    given.insert(key);
  }
  for (const std::string& assignment : settings.assignments) {
    const size_t equals = assignment.find('=');
    if (equals == std::string::npos) {
      throw Error(ExitCode::usage, fmt::format("--set '{}' has no value", assignment),
                  "--set key=value", "posattn train --set lr=0.001");
    }
    const std::string key = assignment.substr(0, equals);
    set_field(base.config, key, assignment.substr(equals + 1), "in --set", ExitCode::usage);
    given.insert(key);
  }
  if (is_gpt2_folder(base.config.from)) {
    offer_gpt2_tasks(base.config.from);
    if (!given.contains("task") && !base.named.contains("task")) {
      base.config.task = "mixed-min-gpt2";
    }
  }
  if (!settings.config_file.empty() && !given.contains("task")) {
    task_named_in(settings.config_file, base.config.task);
  }
  suggest(task_of(base.config), given, base);
  const bool seed_given = given.contains("seed");
  if (seed_given && !settings.seeds.empty()) {
    throw Error(ExitCode::usage, "both --seed and --seeds are given", "one of them");
  }
  // What the command line says about seeds replaces what the file says, in either form.
  std::vector<uint64_t> seeds = {static_cast<uint64_t>(base.config.seed)};
  if (!settings.seeds.empty()) {
    seeds = parse_seeds(settings.seeds);
  } else if (!seed_given && base.seeds) {
    seeds = parse_seeds(*base.seeds);
  }
  // The hash in the configuration file belongs to its own `from`, not to another one.
  if (given.contains("from") && !given.contains("from-hash")) base.config.from_hash.clear();
  if (given.contains("hints") && !given.contains("hints-hash")) base.config.hints_hash.clear();
  base.named.merge(given);
  std::vector<RunConfig> configs;
  for (const std::string& architecture : split_architectures(base.config.architecture)) {
    RunConfig config = base.config;
    config.architecture = architecture;
    if (!config.from.empty()) start_from(config, base.named);
    take_hints(config);
    for (const uint64_t seed : seeds) {
      config.seed = static_cast<int64_t>(seed);
      configs.push_back(config);
    }
  }
  return configs;
}

// The configuration file that collect_configs reads back as these runs.
ConfigFile as_config_file(const std::vector<RunConfig>& configs) {
  const RunConfig& first = configs.front();
  ConfigFile file{first, {}};
  std::string seeds;
  for (const RunConfig& config : configs) {  // every architecture with every seed, in that order
    if (config.architecture == first.architecture) {
      seeds += fmt::format("{}{}", seeds.empty() ? "" : ",", config.seed);
    }
    if (config.seed == first.seed && config.architecture != first.architecture) {
      file.config.architecture += "," + config.architecture;
    }
  }
  if (seeds.find(',') != std::string::npos) file.seeds = seeds;
  return file;
}

// --out, or runs/TASK.
std::filesystem::path output_folder(const TrainSettings& settings,
                                    const std::vector<RunConfig>& configs) {
  if (is_standard_output(settings.out)) {
    throw Error(ExitCode::usage, "--out -", "a folder: runs are several files", "./- names one");
  }
  if (!settings.out.empty()) return settings.out;
  return std::filesystem::path("runs") / configs.front().task;
}

struct Measure {
  std::string name;  // "train loss", "c = 3"
  std::vector<double> values;
};

struct Architecture {
  std::string name;
  std::vector<Measure> measures;  // train and validation loss, then one per test scale
};

void add_value(Architecture& architecture, const std::string& name, double value) {
  auto measure = std::find_if(architecture.measures.begin(), architecture.measures.end(),
                              [&](const Measure& known) { return known.name == name; });
  if (measure == architecture.measures.end()) {
    measure = architecture.measures.insert(measure, Measure{name, {}});
  }
  measure->values.push_back(value);
}

// Final numbers by architecture, of the runs that finished; the others are named in the error that
// ends the program, and the column "runs" counts the runs of a number.
std::vector<Architecture> gather(const std::vector<RunOutcome>& outcomes) {
  std::vector<Architecture> architectures;
  for (const RunOutcome& outcome : outcomes) {
    if (outcome.status != RunStatus::done || !outcome.last) continue;
    const std::string& name = outcome.config.architecture;
    auto found = std::find_if(architectures.begin(), architectures.end(),
                              [&](const Architecture& known) { return known.name == name; });
    if (found == architectures.end()) found = architectures.insert(found, Architecture{name, {}});
    add_value(*found, "train loss", outcome.last->train_loss);
    if (outcome.last->validation_loss) {
      add_value(*found, "validation loss", *outcome.last->validation_loss);
    }
    for (const Measurement& test : outcome.last->tests) {
      const Metric* metric = known_metric(test.metric);
      if (metric == nullptr || !(metric->is_loss || metric->of_answers || metric->of_training))
        continue;
      add_value(*found, fmt::format("test {}, {} = {}", metric->heading, test.axis, test.x),
                test.value);
    }
  }
  return architectures;
}

Json spread_json(const std::vector<double>& values) {
  const Spread spread = spread_of(values);
  return {{"runs", spread.count},
          {"median", spread.median},
          {"min", spread.minimum},
          {"max", spread.maximum}};
}

// Per architecture, over the seeds: median, smallest and largest final train and validation loss
// and test error of every scale.
std::string outcome_table(const std::vector<RunOutcome>& outcomes) {
  const std::vector<Architecture> architectures = gather(outcomes);
  if (architectures.empty()) return "";
  TextTable table({"architecture", "", "runs", "median", "min", "max"}, 2);
  for (const Architecture& architecture : architectures) {
    std::string name = architecture.name;
    for (const Measure& measure : architecture.measures) {
      const Spread spread = spread_of(measure.values);
      table.add_row({name, measure.name, std::to_string(spread.count), short_number(spread.median),
                     short_number(spread.minimum), short_number(spread.maximum)});
      name.clear();
    }
  }
  return table.to_string();
}

std::string outcome_json(const std::filesystem::path& out,
                         const std::vector<RunOutcome>& outcomes) {
  Json runs = Json::array();
  for (const RunOutcome& outcome : outcomes) {
    runs.push_back({{"folder", outcome.folder.string()},
                    {"task", outcome.config.task},
                    {"architecture", outcome.config.architecture},
                    {"seed", outcome.config.seed},
                    {"status", to_string(outcome.status)},
                    {"message", outcome.message},
                    {"epoch", outcome.epoch},
                    {"last", outcome.last ? Json::parse(to_json(*outcome.last)) : Json(nullptr)}});
  }
  Json summary = Json::array();
  for (const Architecture& architecture : gather(outcomes)) {
    Json measures = Json::object();
    for (const Measure& measure : architecture.measures) {
      measures[measure.name] = spread_json(measure.values);
    }
    summary.push_back({{"architecture", architecture.name}, {"measures", measures}});
  }
  const Json document = {{"out", out.string()}, {"runs", runs}, {"summary", summary}};
  return json_text(document);
}

void print_dry_run(const std::vector<RunConfig>& configs, const std::filesystem::path& out,
                   bool json) {
  const ConfigFile file = as_config_file(configs);
  if (json) return write_output(to_json(file) + "\n");
  std::string text;
  for (const RunConfig& config : configs) {
    text += fmt::format("# would train {}\n", run_folder_path(out, config).string());
  }
  write_output(text + to_toml(file));
}

size_t count_status(const std::vector<RunOutcome>& outcomes, RunStatus status) {
  return static_cast<size_t>(
      std::count_if(outcomes.begin(), outcomes.end(),
                    [status](const RunOutcome& outcome) { return outcome.status == status; }));
}

// The runs that did not end well, one line each, as the hint of the error that ends the program.
std::string unfinished_runs(const std::vector<RunOutcome>& outcomes) {
  std::string text;
  for (const RunOutcome& outcome : outcomes) {
    if (outcome.status != RunStatus::diverged && outcome.status != RunStatus::failed) continue;
    text += fmt::format("{}{} {}: {}", text.empty() ? "" : "\n        ", outcome.folder.string(),
                        to_string(outcome.status), outcome.message);
  }
  return text;
}

// An error that names the runs that diverged or failed, if there are any.
std::optional<Error> unfinished_error(const std::vector<RunOutcome>& outcomes) {
  const size_t diverged = count_status(outcomes, RunStatus::diverged);
  const size_t failed = count_status(outcomes, RunStatus::failed);
  if (diverged + failed == 0) return std::nullopt;
  // Damaged files and nothing else: the documented code for these.
  const bool bad_files = std::ranges::all_of(outcomes, [](const RunOutcome& outcome) {
    return outcome.status == RunStatus::done ||
           (outcome.status == RunStatus::failed && outcome.failure == ExitCode::data);
  });
  return Error(bad_files ? ExitCode::data : ExitCode::failed,
               fmt::format("{} of {} runs did not finish ({} diverged, {} failed)",
                           diverged + failed, outcomes.size(), diverged, failed),
               "", unfinished_runs(outcomes));
}

// What samples are like: "k-hop, length 99, tokens of 16". Which numbers come with tokens is the
// task's own matter.
std::string samples_words(const RunConfig& config) {
  const TaskShape shape = task_of(config).shape(static_cast<int>(config.length));
  std::string words = fmt::format("{}, length {}", config.task, config.length);
  if (shape.vocabulary == 0) return words + fmt::format(", values in [-{0}, {0}]", config.range);
  words += fmt::format(", tokens of {}", shape.vocabulary);
  return shape.data_columns == 0
             ? words
             : words + fmt::format(" {} numbers, range {}", shape.tokens_and_values ? "and" : "or",
                                   config.range);
}

// What is to be trained, and how.
struct Training {
  std::vector<RunConfig> configs;
  FleetOptions options;
};

Training prepare(const TrainSettings& settings, const std::vector<std::string>& arguments) {
  Training training;
  training.configs = collect_configs(settings);
  for (const RunConfig& config : training.configs) validate(config);
  FleetOptions& options = training.options;
  options.threads = thread_count(settings.threads);
  options.out = output_folder(settings, training.configs);
  options.resume = settings.resume;
  options.command_line = shell_command(arguments);
  options.notice = write_notice;
  return training;
}

// The results, and what to do next; throws where runs did not finish.
ExitCode conclude(const TrainSettings& settings, const std::vector<std::string>& arguments,
                  const std::filesystem::path& out, const std::vector<RunOutcome>& outcomes) {
  if (settings.json) {
    write_output(outcome_json(out, outcomes));
  } else {
    write_output(outcome_table(outcomes));
  }
  const std::optional<Error> problem = unfinished_error(outcomes);
  if (problem) flush_output();
  if (count_status(outcomes, RunStatus::interrupted) > 0) {
    if (problem) print_error(*problem);
    write_notice(fmt::format("interrupted; the checkpoint is saved. To go on:\n  {}{}",
                             shell_command(arguments), settings.resume ? "" : " --resume"));
    return ExitCode::interrupted;
  }
  if (problem) throw *problem;
  if (!settings.json) {
    write_output(fmt::format("\nnext:  posattn evaluate {0}\n       posattn report {0}\n",
                             shell_command({out.string()})));
  }
  return ExitCode::done;
}

ExitCode train_models(const TrainSettings& settings, const CommandLine& line) {
  const std::vector<std::string>& arguments = line.arguments;
  Training training = prepare(settings, arguments);
  FleetOptions& options = training.options;
  if (settings.dry_run) {
    for (RunConfig& config : training.configs) {
      config.precision = precision_used(config);  // part of a result
    }
    print_dry_run(training.configs, options.out, settings.json);
    return ExitCode::done;
  }
  for (RunConfig& config : training.configs) config = with_device(config, options);
  const RunConfig& first = training.configs[0];
  write_notice(machine_line(find_machine(), options.threads, first.device));
  write_notice(fmt::format("{}: {} in {}", samples_words(first),
                           plural(training.configs.size(), "run"), options.out.string()));
  ProgressDisplay display(training.configs);
  options.stop = &catch_interrupts();
  options.progress = [&display](const RunProgress& progress) { display.update(progress); };
  const std::vector<RunOutcome> outcomes = train_fleet(training.configs, options);
  display.finish();
  return conclude(settings, arguments, options.out, outcomes);
}

void add_train_options(CLI::App& command, TrainSettings& settings) {
  option(command, "--seeds", settings.seeds, "LIST", "Several runs, as 0..9 or 1,5,7..9");
  option(command, "--config", settings.config_file, "FILE", "Settings from a TOML file");
  option(command, "--set", settings.assignments, "KEY=VALUE", "Change one setting; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_output_option(command, settings.out, "Folder of the run folders", "DIR [runs/TASK]");
  command.add_flag("--resume", settings.resume,
                   "Go on with what OUT already holds, also to more epochs");
  add_threads_option(command, settings.threads);
  command.add_flag("--dry-run", settings.dry_run,
                   "Print the configuration as TOML (with --json as JSON) and train nothing");
  add_json_flag(command, settings.json);
  add_config_flags(command, settings);
}

const Command registered_train(
    {.name = "train",
     .group = Group::train,
     .summary = "Train models: every architecture with every seed",
     .examples =
         {"posattn train --task cumulative-sum --architecture positional,standard --epochs 200",
          "posattn train --task sort --architecture positional --seeds 0..9 --length 16",
          "posattn train --task sort --seeds 0..99 --device cuda",
          "posattn train --config sweep.toml --set lr=0.001 --out runs/sweep",
          "posattn train --config runs/sort/positional-seed0/config.toml --out again",
          "posattn train --task sort --epochs 200 --dry-run > sort.toml",
          "posattn train --from runs/sort/positional-seed0 --from-noise 0.01 --seeds 0..2",
          "posattn train --task k-hop --architecture positional,standard --depth 4",
          "posattn train --task k-hop --dry-run"},
     .details =
         "Runs go to OUT/ARCHITECTURE-seedSEED, where OUT is --out or runs/TASK (docs/files.md). A "
         "setting comes from --set, else from its flag, else from --config, else from the task, "
         "else it has the default shown in brackets; --dry-run shows them all.\n\nCtrl-C saves a "
         "checkpoint and prints the command that goes on; --resume also goes on after a kill, to "
         "the same weights bit by bit. The result of a run does not depend on the threads or on "
         "other runs. A run whose loss is no longer finite gets the status 'diverged', and the "
         "exit code is 1. With --device cuda all runs of one shape train together on the GPU."},
    add_train_options, train_models);

}  // namespace

}  // namespace posattn

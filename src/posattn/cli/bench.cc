// posattn bench

#include "posattn/base/command.h"
#include "posattn/base/text.h"
#include "posattn/base/version.h"
#include "posattn/benchmark/steps.h"
#include "posattn/cli/bench_device.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/machine.h"
#include "posattn/report/page/page_parts.h"
#include "posattn/tasks/task.h"
#include "posattn/training/run_config.h"

namespace posattn {
namespace {

// What is timed: models of a task, by name.
struct BenchCases {
  std::string task = "cumulative-sum";
  std::vector<std::string> architectures;  // "standard", "standard:8"; empty: see architectures
  int length = 0;                          // 0: the task's own
  int64_t batch = 0;                       // 0: the task's own
  std::string path = "auto";
};

// Those named, or both of the paper; for k-hop at the depths that docs/performance.md compares.
std::vector<std::string> architectures(const BenchCases& cases) {
  if (!cases.architectures.empty()) return cases.architectures;
  if (cases.task == "k-hop") return {"standard:3", "positional:6", "standard:8"};
  return {"positional", "standard"};
}

// The runs whose steps are timed: what the task suggests, and these sizes. An architecture may have
// a depth behind a colon. In the order of architectures. Throws Error(usage or configuration).
std::vector<RunConfig> bench_configs(const BenchCases& cases) {
  RunConfig base;
  base.task = cases.task;
  for (const auto& [key, value] : find_task(cases.task).settings()) set_field(base, key, value);
  if (cases.length > 0) base.length = cases.length;
  if (cases.batch > 0) base.batch = cases.batch;
  base.path = cases.path;
  std::vector<RunConfig> configs;
  for (const std::string& name : architectures(cases)) {
    RunConfig config = base;
    const size_t colon = name.find(':');
    config.architecture = name.substr(0, colon);
    if (colon != std::string::npos) {
      set_field(config, "depth", name.substr(colon + 1), fmt::format("in --architecture {}", name),
                ExitCode::usage);
    }
    config.samples = std::max(config.samples, config.batch);
    validate(config);
    configs.push_back(std::move(config));
  }
  return configs;
}

struct BenchFlags {
  BenchCases cases;
  int threads = 0, tile = 0, repetitions = 15;
  double seconds = 1;
  std::string device = "cpu";
  std::vector<std::string> precisions = {"fp32", "tf32"};
  std::vector<int> runs = {1, 10, 50, 200};
  std::vector<int> growth, long_lengths, windows;
  std::string figure;
  bool peer = false, inference = false, operations = false, json = false;
};

Json step_json(const StepResult& step, double peak) {
  const RunConfig& config = step.request.config;
  return {
      {"task", config.task},
      {"architecture", config.architecture},
      {"length", config.length},
      {"layers", model_spec(config).depth},
      {"batch", config.batch},
      {"ms_per_step", four_digits(step.timing.median * 1e3)},
      {"ms_lower_quartile", four_digits(step.timing.lower_quartile * 1e3)},
      {"ms_upper_quartile", four_digits(step.timing.upper_quartile * 1e3)},
      {"repetitions", step.timing.repetitions},
      {"samples_per_second", four_digits(static_cast<double>(config.batch) / step.timing.median)},
      {"nominal_gflop", four_digits(step.nominal_flops / 1e9)},
      {"nominal_gflop_once_a_step", four_digits(step.per_step_flops / 1e9)},
      {"arithmetic_gflop", four_digits(step.arithmetic_flops / 1e9)},
      {"gflops", four_digits(step.gflops())},
      {"share_of_peak", four_digits(step.gflops() / peak)}};
}

StepRequest request(const BenchFlags& options, const RunConfig& config) {
  StepRequest r;
  r.config = config;
  r.threads = thread_count(options.threads);
  r.tile = options.tile;
  r.repetitions = options.repetitions;
  r.seconds = options.seconds;
  return r;
}

// Lengths at constant batch x length, each in a fresh process so that its peak memory is its own.
Json measure_growth(const BenchFlags& options, const std::vector<RunConfig>& configs) {
  Json rows = Json::array();
  const std::vector<std::string> names = architectures(options.cases);
  for (const int length : options.growth) {
    for (size_t i = 0; i < names.size(); ++i) {
      const RunConfig& config = configs[i];
      const int64_t batch = std::max<int64_t>(1, config.batch * config.length / length);
      const Json result = Json::parse(run_command(
          {this_program().string(), "bench", "--json", "--task", config.task, "--architecture",
           names[i], "--length", std::to_string(length), "--batch", std::to_string(batch),
           "--threads", std::to_string(thread_count(options.threads)), "--repetitions", "3",
           "--seconds", "0.5", "--path", config.path}));
      Json row = result["steps"][0];
      row["peak_memory_mb"] = result["peak_memory_mb"];
      rows.push_back(row);
    }
  }
  return rows;
}

Json measure_peers(const BenchFlags& options, const std::vector<RunConfig>& configs) {
  std::string architectures;
  for (const RunConfig& config : configs) {
    architectures += fmt::format("{}{}:{}", architectures.empty() ? "" : ",", config.architecture,
                                 model_spec(config).depth);
  }
  Json peers = Json::array();
  for (const char* setting : {"default", "best"}) {
    const std::string output = run_command(
        {"/usr/bin/python3", find_peer_script().string(), "--setting", setting, "--threads",
         std::to_string(thread_count(options.threads)), "--task", options.cases.task,
         "--architecture", architectures, "--mode", options.inference ? "train,inference" : "train",
         "--length", std::to_string(configs.front().length), "--batch",
         std::to_string(configs.front().batch), "--repetitions",
         std::to_string(options.repetitions)});
    for (const std::string_view line : split_lines(output)) peers.push_back(Json::parse(line));
  }
  return peers;
}

Json measure(const BenchFlags& options) {
  const int threads = thread_count(options.threads);
  const Machine machine = find_machine();
  const std::vector<RunConfig> configs = bench_configs(options.cases);
  double peak = measure_peak_gflops(threads, 0.5);
  std::vector<StepResult> steps, inference;
  for (const RunConfig& config : configs) {
    steps.push_back(measure_training_step(request(options, config)));
    if (!options.inference) continue;
    for (const int64_t batch : {int64_t{1000}, int64_t{250}}) {
      StepRequest wanted = request(options, config);
      wanted.config.batch = batch;
      inference.push_back(measure_inference(wanted));
    }
  }
  const double memory = peak_memory_bytes();
  Json result = {{"peak_gflops", 0.0}, {"threads", threads}, {"steps", Json::array()}};
  result["peers"] = options.peer ? measure_peers(options, configs) : Json::array();
  // Takes the larger of two measurements, before and after, since other programs may have used the
  // machine in between.
  peak = std::max(peak, measure_peak_gflops(threads, 0.5));
  result["peak_gflops"] = four_digits(peak);
  for (const StepResult& step : steps) result["steps"].push_back(step_json(step, peak));
  for (const StepResult& step : inference) result["inference"].push_back(step_json(step, peak));
  if (options.operations) {
    for (const OperationResult& row : measure_operations()) {
      result["operations"].push_back({{"name", row.name},
                                      {"direction", row.direction},
                                      {"microseconds", four_digits(row.microseconds)},
                                      {"gflops", four_digits(row.gflops)}});
    }
  }
  if (!options.growth.empty()) result["growth"] = measure_growth(options, configs);
  if (!options.long_lengths.empty()) {
    result["long"] = measure_long(options.long_lengths, threads, options.seconds);
  }
  if (!options.windows.empty())
    result["stream"] = measure_streams(options.windows, options.seconds);
  result["peak_memory_mb"] = four_digits(memory / 1e6);
  result["machine"] = {{"cpu", machine.cpu},           {"instruction_set", machine.instruction_set},
                       {"blas", machine.blas},         {"compiler", build_info().compiler},
                       {"flags", build_info().flags},  {"version", build_info().version},
                       {"commit", build_info().commit}};
  return result;
}

// Flags of one device have no meaning on the other.
void refuse_flags_of_other_device(const CLI::App& command, const std::string& device) {
  const std::vector<std::string> others =
      device == "cuda"
          ? std::vector<std::string>{"--peer",        "--inference", "--operations", "--growth",
                                     "--long",        "--out",       "--threads",    "--tile",
                                     "--repetitions", "--stream"}
          : std::vector<std::string>{"--runs", "--precision"};
  for (const std::string& flag : others) {
    if (command.count(flag) == 0) continue;
    throw Error(ExitCode::usage, fmt::format("{} with --device {}", flag, device),
                fmt::format("--device {}", device == "cuda" ? "cpu" : "cuda"),
                fmt::format("leave {} out, or name the other device", flag));
  }
}

std::string bench_text(const Json& result) {
  std::string text =
      fmt::format("{}, {}, peak {} GFLOP/s ({})\n\n", result["machine"]["cpu"].get<std::string>(),
                  plural(result["threads"], "thread"), four_digits_text(result["peak_gflops"]),
                  result["machine"]["instruction_set"].get<std::string>());
  Json rows = Json::array();
  const auto add = [&](const std::string& what, Json row) {
    row["what"] = what;
    row["of_peak"] =
        fmt::format("{:.2f}", row["gflops"].get<double>() / result["peak_gflops"].get<double>());
    rows.push_back(std::move(row));
  };
  for (const auto& [part, what] :
       {std::pair{"steps", "training step, "}, {"inference", "inference, "}}) {
    if (!result.contains(part)) continue;
    for (const Json& row : result[part]) add(what + row["architecture"].get<std::string>(), row);
  }
  for (const Json& row : result["peers"]) {
    add(fmt::format("{} {} ({}), {}", row["name"].get<std::string>(),
                    row["mode"].get<std::string>(), row["setting"].get<std::string>(),
                    row["architecture"].get<std::string>()),
        row);
  }
  text += json_table(rows, {{"what", "what"},
                            {"length", "length"},
                            {"layers", "layers"},
                            {"batch", "batch"},
                            {"ms", "ms_per_step"},
                            {"GFLOP/s", "gflops"},
                            {"of peak", "of_peak"}});
  const auto add_table = [&](const char* part, const std::vector<JsonColumn>& columns,
                             size_t left) {
    if (result.contains(part)) text += "\n" + json_table(result[part], columns, left);
  };
  add_table("growth",
            {{"architecture", "architecture"},
             {"length", "length"},
             {"batch", "batch"},
             {"ms", "ms_per_step"},
             {"nominal GFLOP", "nominal_gflop"},
             {"once a step", "nominal_gflop_once_a_step"},
             {"GFLOP/s", "gflops"},
             {"peak MB", "peak_memory_mb"}},
            3);
  add_table("long",
            {{"positions", "positions"},
             {"form", "form"},
             {"length", "length"},
             {"ms a sample", "ms_per_sample"},
             {"ms once", "ms_once"}},
            1);
  add_table("stream",
            {{"form", "form"},
             {"window", "window"},
             {"ns a node", "ns_per_node"},
             {"multiply-adds", "multiply_adds"},
             {"of attention", "attention_multiply_adds"}},
            1);
  add_table("operations",
            {{"operation", "name"},
             {"direction", "direction"},
             {"us", "microseconds"},
             {"GFLOP/s", "gflops"}},
            1);
  text += "\nGFLOP/s: nominal flops over the median time.";
  if (!result.contains("growth")) {  // whose rows have their own
    text += fmt::format(" Peak memory {} MB.", four_digits_text(result["peak_memory_mb"]));
  }
  return text + "\n";
}

ExitCode bench(const BenchFlags& options, const CommandLine& line) {
  refuse_flags_of_other_device(*line.app.get_subcommand("bench"), options.device);
  check_ending("--output", options.figure, ".svg");
  refuse_with_standard_output(options.figure, options.json, "--json");
  const bool on_device = options.device == "cuda";
  const Json result = on_device ? measure_device_steps({.configs = bench_configs(options.cases),
                                                        .precisions = options.precisions,
                                                        .runs = options.runs,
                                                        .seconds = options.seconds})
                                : measure(options);
  if (!is_standard_output(options.figure)) {
    write_output(options.json ? json_text(result)
                 : on_device  ? device_steps_text(result)
                              : bench_text(result));
  }
  if (!options.figure.empty()) write_result(options.figure, long_figure(result["long"]));
  if (!options.json) say_written("figure", options.figure);
  return ExitCode::done;
}

void add_bench_options(CLI::App& command, BenchFlags& options) {
  option(command, "--task", options.cases.task, "TEXT [cumulative-sum]",
         "Task whose models are timed, at the settings it suggests");
  option(command, "--architecture", options.cases.architectures, "LIST [positional,standard]",
         "Presets to measure, with a depth if it is to be another: standard:8")
      ->delimiter(',');
  option(command, "--length", options.cases.length, "INT [0]", "Length n; 0: the task's own")
      ->check(CLI::Range(0, 4096));
  option(command, "--batch", options.cases.batch, "INT [0]", "Samples of a step; 0: the task's own")
      ->check(CLI::Range(0, 1 << 24));
  add_threads_option(command, options.threads);
  option(command, "--path", options.cases.path, "auto|plain|folded [auto]",
         "Engine: the folded algebra, the plain one, or the cheaper")
      ->check(CLI::IsMember({"auto", "plain", "folded"}));
  option(command, "--tile", options.tile, "INT [0]", "Samples of a tile; 0: chosen")
      ->check(CLI::Range(0, 4096));
  option(command, "--repetitions", options.repetitions, "INT [15]", "At least so many measurements")
      ->check(CLI::Range(1, 100000));
  option(command, "--seconds", options.seconds, "NUMBER [1]",
         "At least so many seconds for each measurement")
      ->check(CLI::Range(0.0, 3600.0));
  option(command, "--growth", options.growth, "LIST",
         "Also a step at each of these lengths, at constant batch x length")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  CLI::Option* lengths =
      option(command, "--long", options.long_lengths, "LIST",
             "Also inference of one sample at each of these lengths, where attention need "
             "not be made as matrices")
          ->delimiter(',')
          ->check(CLI::Range(2, 1 << 17));
  add_output_option(command, options.figure, "A figure of --long", "FILE.svg").needs(lengths);
  option(command, "--stream", options.windows, "LIST",
         "Also a new node of a stream, one layer over the last n nodes, at each of these n")
      ->delimiter(',')
      ->check(CLI::Range(16, 1 << 16));
  option(command, "--device", options.device, "cpu|cuda [cpu]", "Where the steps are computed")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  option(command, "--runs", options.runs, "LIST [1,10,50,200]",
         "How many runs in lockstep, one by one (cuda only)")
      ->delimiter(',')
      ->check(CLI::Range(1, 65535));
  option(command, "--precision", options.precisions, "LIST [fp32,tf32]",
         "Precision of products (cuda only)")
      ->delimiter(',')
      ->check(CLI::IsMember({"fp32", "tf32"}));
  command.add_flag("--peer", options.peer, "Also PyTorch, in its default and its best setting");
  command.add_flag("--inference", options.inference, "Also inference, batches of 1000 and 250");
  command.add_flag("--operations", options.operations, "Also each row of the operations table");
  add_json_flag(command, options.json);
}

const Command registered_bench(
    {.name = "bench",
     .group = Group::machine,
     .summary =
         "Time training steps and the peak of this machine, compared with PyTorch on request",
     .examples = {"posattn bench", "posattn bench --peer --inference --json",
                  "posattn bench --task k-hop --peer",
                  "posattn bench --growth 8,16,32,64,128,256,512,1024",
                  "posattn bench --operations", "posattn bench --long 256,1024,4096 -o long.svg",
                  "posattn bench --stream 64,120,1000",
                  "posattn bench --device cuda --runs 1,100 --precision fp32"},
     .details =
         "GFLOP/s are nominal: they count the operations of the architecture as it is written. An "
         "algorithm that needs fewer can therefore pass the peak of the hardware. With --device "
         "cuda the steps are those of many runs trained together on the GPU."},
    add_bench_options, bench);

}  // namespace
}  // namespace posattn

// posattn bound

#include <algorithm>
#include <cmath>

#include "posattn/base/file.h"
#include "posattn/base/text.h"
#include "posattn/bounds/bound_report.h"
#include "posattn/bounds/crossing.h"
#include "posattn/bounds/experiment_bounds.h"
#include "posattn/bounds/network_norms.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/model_paths.h"
#include "posattn/report/experiment/figure.h"

namespace posattn {
namespace {

using bounds::BoundReport;
using bounds::to_log10;

// e^log with three digits, whatever its size: "0.0123", "4.56e+332748".
std::string number_of_log(double log) {
  constexpr double plain = 8;  // beyond, the exponent is written out
  const double log10 = to_log10(log);
  if (std::abs(log10) < plain || !std::isfinite(log10)) return short_number(std::exp(log));
  const double exponent = std::floor(log10);
  return fmt::format("{:.2f}e{:+.0f}", std::pow(10.0, log10 - exponent), exponent);
}

std::string log10_text(double log) { return fmt::format("{:.2f}", to_log10(log)); }

// How the value stands to b^2, which no gap exceeds.
std::string emptiness(const BoundReport& report, double log_gap) {
  const double orders = to_log10(log_gap - 2 * std::log(report.setting.clip));
  return orders < 0 ? "says something" : fmt::format("vacuous by {:.1f} orders", orders);
}

std::string ratio_text(const BoundReport& report, double log_bound) {
  const std::optional<bounds::RatioToGap> ratio = ratio_to_gap(report, log_bound);
  return ratio ? (ratio->at_least ? "> " : "") + number_of_log(ratio->log) : "";
}

std::string bound_heading(const BoundReport& report) {
  const ModelSpec& spec = report.spec;
  const bounds::BoundSetting& setting = report.setting;
  return fmt::format(
      "{}: {}{}, N = {} nodes, L = {} layers, H = {} heads, d = {}\n"
      "m = {} samples, |x| <= R = {}, loss min((f - y)^2, b^2) with b = {}, delta = {}\n",
      printable(report.name), preset_name(spec),
      report.origin.task.empty() ? "" : ", " + printable(report.origin.task), spec.nodes(),
      spec.depth, spec.heads, spec.width, std::llround(setting.samples), setting.range,
      setting.clip, setting.delta);
}

// Spectral norms as the paper's B_2 has them; (2,1) and Frobenius norms with --norms and --json.
std::string weights_table(const BoundReport& report) {
  std::vector<std::string> header = {"layer", "||V||", "||O||", "||W1||", "||W2||"};
  const bool scored = report.spec.has_query_key();
  for (int h = 0; scored && h < report.spec.heads; ++h) {
    header.push_back(fmt::format("||QK.{}||", h));
  }
  header.insert(header.end(), {"||W1|| ||W2||", "MLP on data"});
  TextTable table(header, 0);
  for (size_t l = 0; l < report.weights.size(); ++l) {
    const bounds::LayerWeightNorms& layer = report.weights[l];
    std::vector<std::string> row = {std::to_string(l)};
    for (const char* name : {"V", "O", "W1", "W2"}) {
      row.push_back(short_number(layer.at(name).spectral));
    }
    for (int h = 0; scored && h < report.spec.heads; ++h) {
      row.push_back(short_number(layer.at(fmt::format("QK.{}", h)).spectral));
    }
    row.push_back(short_number(layer.mlp_lipschitz));
    row.push_back(layer.mlp_jacobian ? short_number(*layer.mlp_jacobian) : "");
    table.add_row(row);
  }
  return "spectral norms of the model's own matrices:\n" + table.to_string();
}

std::string all_norms_table(const BoundReport& report) {
  TextTable table({"layer", "matrix", "spectral", "(2,1)", "Frobenius"}, 2);
  for (size_t l = 0; l < report.weights.size(); ++l) {
    for (const bounds::NamedNorms& matrix : report.weights[l].matrices) {
      table.add_row({std::to_string(l), matrix.name, short_number(matrix.norms.spectral),
                     short_number(matrix.norms.two_one), short_number(matrix.norms.frobenius)});
    }
  }
  return "all norms of the model's own matrices:\n" + table.to_string();
}

std::string factors_table(const BoundReport& report) {
  const bounds::NormBound& bound = report.by_norms;
  std::vector<std::string> header = {"layer", "||T_0||", "sum ||T_h||", "||t||", "||[T t]||_2,1"};
  const bool scored = !report.norms.positional;
  if (scored) header.insert(header.end(), {"max ||M_h||", "max ||mu_h||"});
  header.insert(header.end(), {"B before", "Lambda", "P", "P C"});
  TextTable table(header, 0);
  for (int l = 0; l < report.norms.depth(); ++l) {
    const bounds::LayerNorms& layer = report.norms.layers[l];
    const auto heads = std::span(layer.maps).subspan(1);
    std::vector<double> parts;
    for (const bounds::CoveredMatrix& matrix : bound.matrices) {
      if (matrix.layer == l) parts.push_back(matrix.log_sensitivity + matrix.log_size);
    }
    std::vector<double> logs = {layer.maps[0], bounds::log_sum(heads), layer.offset, layer.rows};
    if (scored) {
      logs.push_back(std::ranges::max(layer.scores));
      logs.push_back(std::ranges::max(layer.score_offsets));
    }
    logs.insert(logs.end(), {bound.propagation.state[l], bound.propagation.amplification[l],
                             bound.propagation.sensitivity[l], std::ranges::max(parts)});
    std::vector<std::string> row = {std::to_string(l)};
    for (const double log : logs) row.push_back(number_of_log(log));
    table.add_row(row);
  }
  return fmt::format(
      "factors of the collapsed network: how long states are (B), what a layer makes of an error\n"
      "(Lambda), the output of an error after it (P), what its costliest matrix contributes (P "
      "C):\n"
      "{}",
      table.to_string());
}

// (H L_sigma B_2)^{cL} B_{2,1} of Theorem 6.1, as far as a network tells.
std::string in_the_paper_s_terms(const BoundReport& report) {
  double spectral = 0, two_one = 0, query_key = 0;
  for (const bounds::LayerWeightNorms& layer : report.weights) {
    for (const bounds::NamedNorms& matrix : layer.matrices) {
      if (matrix.name.starts_with("QK")) {
        query_key = std::max(query_key, matrix.norms.spectral);
      } else {
        spectral = std::max(spectral, matrix.norms.spectral);
        two_one = std::max(two_one, matrix.norms.two_one);
      }
    }
  }
  double product = 0;
  for (const double log : report.by_norms.propagation.amplification) product += log;
  return fmt::format(
      "in the paper's terms: H = {}, L_sigma = 1, B_2 = {}, B_2,1 = {}{}; ours for (H B_2)^(cL) "
      "is\n"
      "the product of all Lambda, {}\n",
      report.spec.heads, short_number(spectral), short_number(two_one),
      query_key > 0 ? fmt::format(" (query-key norm {})", short_number(query_key)) : "",
      number_of_log(product));
}

std::string parts_text(const BoundReport& report) {
  const bounds::NormBound& bound = report.by_norms;
  return fmt::format(
      "by norms = 2 x {} (chain of {}) + {} (norm grid {:.0f} nats)\n"
      "  its entropy: matrices {}, rows {}{} nats\n"
      "by count: {} parameters, {:.0f} nats at radius {}, norm grid {:.0f} nats\n",
      number_of_log(bound.log_average), bound.links, number_of_log(bound.log_confidence),
      bound.grid_cost, number_of_log(bound.log_matrices), number_of_log(bound.log_profiles),
      report.norms.positional ? ", attention " + number_of_log(bound.log_attention) : "",
      report.by_count.parameters, report.by_count.entropy, short_number(report.by_count.radius),
      report.by_count.grid_cost);
}

std::string bounds_table(const BoundReport& report) {
  TextTable table(
      {"bound on |risk - training loss|", "log10", "value", "against b^2", "times the gap"});
  const auto add = [&](const std::string& name, double log) {
    table.add_row({name, log10_text(log), number_of_log(log), emptiness(report, log),
                   ratio_text(report, log)});
  };
  add(report.norms.positional ? "(a) by norms, no query-key norm"
                              : "(b) by norms, with query-key norms",
      report.by_norms.log_gap);
  add("(c) by the number of parameters", std::log(report.by_count.gap));
  return table.to_string();
}

std::string needed_text(const BoundReport& report) {
  if (!report.needed) return "";
  return fmt::format("samples that promise a gap of {}: {} by norms, {} by count\n",
                     short_number(report.needed->gap), number_of_log(report.needed->log_by_norms),
                     number_of_log(report.needed->log_by_count));
}

std::string measured_text(const BoundReport& report) {
  if (!report.measured) return "";
  const bounds::MeasuredGap& found = *report.measured;
  std::string text = fmt::format(
      "measured: training loss {} ({} samples), fresh loss {} ({} samples), gap {} +- {}\n",
      short_number(found.training.mean), found.training.samples, short_number(found.fresh.mean),
      found.fresh.samples, short_number(found.gap()), short_number(found.standard_error()));
  if (report.small_loss) {
    text += fmt::format(
        "bound on the risk from the small training loss, by (c): {}{}\n",
        short_number(*report.small_loss),
        *report.small_loss < report.setting.clip * report.setting.clip ? "" : " = b^2: vacuous");
  }
  return text;
}

// Losses, gap and bounds of a model as cells of a line; what was not measured is empty.
void add_numbers(const BoundReport& report, std::vector<std::string>& row) {
  const auto add = [&](bool there, double value) {
    row.push_back(there ? short_number(value) : "");
  };
  const bool there = report.measured.has_value();
  const bounds::MeasuredGap measured = report.measured.value_or(bounds::MeasuredGap{});
  add(there, measured.training.mean);
  add(there, measured.fresh.mean);
  add(there, measured.gap());
  row.push_back(log10_text(report.by_norms.log_gap));
  row.push_back(log10_text(std::log(report.by_count.gap)));
  add(report.small_loss.has_value(), report.small_loss.value_or(0));
}

// One model, factor by factor; with `all_norms` every matrix of the model too.
std::string bound_text(const BoundReport& report, bool all_norms) {
  std::string text = bound_heading(report) + "\n" + weights_table(report) + "\n";
  if (all_norms) text += all_norms_table(report) + "\n";
  return text + factors_table(report) + in_the_paper_s_terms(report) + "\n" + bounds_table(report) +
         parts_text(report) + needed_text(report) + measured_text(report);
}

// A line for each of several models.
std::string bound_table(const std::vector<BoundReport>& reports) {
  std::vector<std::string> header = {"model", "m",           "training loss", "fresh loss",
                                     "gap",   "log10 norms", "log10 count",   "risk by (c)"};
  const bool needed = std::ranges::any_of(
      reports, [](const BoundReport& report) { return report.needed.has_value(); });
  if (needed) header.insert(header.end(), {"m by norms", "m by count"});
  TextTable table(header);
  for (const BoundReport& report : reports) {
    std::vector<std::string> row = {printable(report.name),
                                    std::to_string(std::llround(report.setting.samples))};
    add_numbers(report, row);
    if (report.needed) {
      row.push_back(number_of_log(report.needed->log_by_norms));
      row.push_back(number_of_log(report.needed->log_by_count));
    }
    table.add_row(row);
  }
  return table.to_string();
}

// A line for each run of an experiment.
std::string experiment_bounds_text(const Experiment& experiment,
                                   const bounds::ExperimentBounds& found) {
  TextTable table({"task", "line", experiment.axis.label, "seed", "training loss", "fresh loss",
                   "gap", "log10 norms", "log10 count", "risk by (c)"},
                  2);
  for (const bounds::RunBounds& bound : found.runs) {
    std::vector<std::string> row = {bound.run.task, bound.run.line, short_number(*bound.run.x),
                                    std::to_string(bound.run.config.seed)};
    add_numbers(bound.report, row);
    table.add_row(row);
  }
  return table.to_string() +
         (found.missing > 0
              ? fmt::format("{} runs of the experiment have no weights here\n", found.missing)
              : "");
}

std::string crossing_text(const bounds::Crossing& crossing) {
  std::vector<std::string> header = {"k", "L_std"};
  for (const bounds::PositionalLevel& level : crossing.positional) {
    header.push_back(fmt::format("L_pos = {}", level.depth));
  }
  TextTable table(header, 0);
  auto point = crossing.points.begin();
  for (const bounds::StandardCurve& curve : crossing.standard) {
    std::vector<std::string> row = {std::to_string(curve.hops), std::to_string(curve.depth)};
    for (size_t p = 0; p < crossing.positional.size(); ++p, ++point) {
      row.push_back(point->log_norm ? number_of_log(*point->log_norm) : "none");
    }
    table.add_row(row);
  }
  return fmt::format(
      "the query-key norm from which on the standard network's bound (b) is the larger one; none:\n"
      "it is so without queries and keys (initial values have {})\n{}",
      number_of_log(crossing.log_initial_norm), table.to_string());
}

struct BoundFlags {
  std::vector<std::string> models;
  bounds::ReportRequest request;
  std::string experiment, results = "results";
  ExperimentChanges changes;
  std::vector<int> crossing, hops = {1, 4, 16};
  std::string figure;
  int threads = 0;
  bool norms = false, json = false;
  ModelHints hints;
};

std::vector<bounds::BoundReport> reports_of(const BoundFlags& flags) {
  std::vector<bounds::BoundReport> reports;
  for (const std::filesystem::path& path : find_named_models(flags.models)) {
    bounds::ReportRequest request = flags.request;
    request.run = settings_of_run(path);
    request.name = request.run ? path.parent_path().string() : path.string();
    request.threads = thread_count(flags.threads);
    const Model model = read_model(path, flags.hints);
    if (request.run) check_settings(path, *request.run, model);
    reports.push_back(bound_report(model, request));
  }
  return reports;
}

Json reports_json(const std::vector<bounds::BoundReport>& reports) {
  Json models = Json::array();
  for (const bounds::BoundReport& report : reports) {
    models.push_back(Json::parse(to_json(report)));
  }
  return {{"models", models}};
}

ExitCode print_bounds(const BoundFlags& flags) {
  const std::vector<bounds::BoundReport> reports = reports_of(flags);
  if (flags.json) {
    write_output(json_text(reports_json(reports)));
  } else if (reports.size() == 1 || flags.norms) {
    for (const bounds::BoundReport& report : reports) {
      write_output((&report == reports.data() ? "" : "\n") + bound_text(report, flags.norms));
    }
  } else {
    write_output(bound_table(reports));
  }
  return ExitCode::done;
}

// Table and figures go to the experiment's folder in the results.
ExitCode print_experiment_bounds(const BoundFlags& flags) {
  const Experiment experiment = load_experiment(flags.experiment, flags.changes);
  bounds::ReportRequest request = flags.request;
  request.threads = thread_count(flags.threads);
  const bounds::ExperimentBounds found = experiment_bounds(experiment, flags.results, request);
  const std::filesystem::path folder =
      std::filesystem::path(flags.results) / experiment.output_name;
  create_folder(folder);
  std::vector<std::filesystem::path> files = {folder / "bounds.csv"};
  write_file(files.front(), to_csv(found));
  for (const std::string& task : experiment.tasks) {
    const std::string svg = draw_bounds(experiment, found, task);
    if (svg.empty()) continue;
    files.push_back(folder / fmt::format("bounds-{}.svg", task));
    write_file(files.back(), svg);
  }
  if (flags.json) {
    std::vector<bounds::BoundReport> reports;
    for (const bounds::RunBounds& run : found.runs) reports.push_back(run.report);
    write_output(json_text(reports_json(reports)));
    return ExitCode::done;
  }
  write_output(experiment_bounds_text(experiment, found) + "\n");
  for (const std::filesystem::path& file : files) write_output(file.string() + "\n");
  return ExitCode::done;
}

ExitCode print_crossing(const BoundFlags& flags) {
  const bounds::ReportRequest& request = flags.request;
  bounds::CrossingRequest asked{.hops = flags.hops, .positional_depths = flags.crossing};
  asked.setting.samples = request.samples.value_or(asked.setting.samples);
  asked.setting.range = request.range.value_or(asked.setting.range);
  asked.setting.clip = request.clip;
  asked.setting.delta = request.delta;
  const bounds::Crossing crossing = find_crossing(asked);
  if (!flags.figure.empty()) write_result(flags.figure, draw_crossing(crossing));
  if (is_standard_output(flags.figure)) return ExitCode::done;
  write_output(flags.json ? Json::parse(to_json(crossing)).dump(2) + "\n"
                          : crossing_text(crossing));
  if (!flags.json) say_written("figure", flags.figure);
  return ExitCode::done;
}

ExitCode answer_bound(const BoundFlags& flags) {
  const int asked = (flags.models.empty() ? 0 : 1) + (flags.experiment.empty() ? 0 : 1) +
                    (flags.crossing.empty() ? 0 : 1);
  if (asked != 1) {
    throw Error(ExitCode::usage, asked == 0 ? "no MODEL" : "several questions at once",
                "one of MODEL..., --experiment NAME and --crossing LIST");
  }
  check_ending("--output", flags.figure, ".svg");
  refuse_with_standard_output(flags.figure, flags.json, "--json");
  if (!flags.experiment.empty()) return print_experiment_bounds(flags);
  return flags.crossing.empty() ? print_bounds(flags) : print_crossing(flags);
}

void add_bound_options(CLI::App& command, BoundFlags& flags) {
  bounds::ReportRequest& request = flags.request;
  argument(command, "MODEL", flags.models, "Model files, run folders, folders of runs");
  option(command, "--samples", request.samples, "INT", "Training samples m; of a run: its own");
  option(command, "--samples-for", request.samples_for, "NUMBER",
         "How many samples the bounds need to promise this gap");
  option(command, "--delta", request.delta, "NUMBER [0.05]",
         "Bounds hold with probability 1 - delta");
  option(command, "--clip", request.clip, "NUMBER [1]", "b: squared errors count up to b^2");
  option(command, "--range", request.range, "NUMBER", "R: inputs lie in [-R, R]; as trained");
  option(command, "--fresh-samples", request.fresh_samples, "INT [100000]", "For the measured gap");
  option(command, "--query-key-scale", request.query_key_scale, "NUMBER [1]",
         "Multiply W_Q and W_K by this first, in the bounds");
  CLI::Option* experiment = option(command, "--experiment", flags.experiment, "NAME",
                                   "The runs of an experiment instead");
  option(command, "--results", flags.results, "DIR [results]", "Where they are")->needs(experiment);
  command.add_flag("--quick", flags.changes.quick, "Those of reproduce --quick")->needs(experiment);
  option(command, "--epochs", flags.changes.epochs, "INT", "Those of reproduce --epochs")
      ->needs(experiment);
  option(command, "--precision", flags.changes.precision, "TEXT", "Those of reproduce --precision")
      ->needs(experiment);
  CLI::Option* crossing =
      option(command, "--crossing", flags.crossing, "LIST",
             "Where the bounds of positional networks of these depths and of standard "
             "ones for k hops cross")
          ->delimiter(',')
          ->allow_extra_args(false);
  option(command, "--hops", flags.hops, "LIST [1,4,16]", "k, for --crossing")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->needs(crossing);
  add_output_option(command, flags.figure, "The figure of --crossing; '-': standard output", "FILE")
      .needs(crossing);
  command.add_flag("--norms", flags.norms, "All norms of all matrices, too");
  add_threads_option(command, flags.threads);
  add_json_flag(command, flags.json);
  add_hint_flags(command, flags.hints);
}

const Command registered_bound(
    {.name = "bound",
     .group = Group::theory,
     .summary = "Compute generalisation bounds from a model's weights and compare them with the "
                "measured gap",
     .examples = {"posattn bound runs/sort/positional-seed0", "posattn bound runs/sort",
                  "posattn bound model.safetensors --samples 30000 --norms",
                  "posattn bound runs/sort --samples-for 0.1",
                  "posattn bound --experiment sample-count --results results",
                  "posattn bound --crossing 4,8,16 --hops 1,4,16 -o crossing.svg"},
     .details = "The bounds on |risk - training loss| follow from the norms of the weights and "
                "from the number of parameters (docs/bounds.md). For a run the gap is measured "
                "too, between its own training set and fresh samples. Several models give one line "
                "each.\n\n--experiment reads all runs whose weights are in DIR/runs, and writes a "
                "table and figures to DIR/EXPERIMENT. --crossing compares the bounds of positional "
                "and standard networks of several depths. Models that the bounds do not cover are "
                "refused with exit code 3 and the reason: tokens, routes, residuals, "
                "normalisation, RoPE on data, several numbers per node, several lengths."},
    add_bound_options, answer_bound);

}  // namespace

}  // namespace posattn

// posattn certify
#include "posattn/bounds/certificate/certify.h"

#include <cerrno>
#include <fstream>
#include <mutex>
#include <system_error>

#include "posattn/base/parallel.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/model_paths.h"
#include "posattn/cli/progress.h"

namespace posattn {
namespace {

using bounds::Certificate;
using bounds::CertifiedRun;
using bounds::CertifyOptions;
using bounds::DrawnNetwork;

struct CertifyFlags {
  std::vector<std::string> runs;
  CertifyOptions options;
  std::string rows;
  int threads = 0;
  bool json = false;
};

void check_flags(const CertifyFlags& flags) {
  const auto refuse = [](const char* flag, auto value, const char* expected) {
    throw Error(ExitCode::usage, fmt::format("{} {}", flag, value), expected);
  };
  const CertifyOptions& options = flags.options;
  constexpr int64_t most = 100'000'000;
  if (!(options.delta > 0 && options.delta < 1)) {
    refuse("--delta", options.delta, "above 0 and below 1, as 0.05");
  }
  if (!(options.clip >= 1e-6 && options.clip <= 1e6)) {  // b^2 is a float
    refuse("--clip", options.clip, "1e-6 to 1e6");
  }
  if (options.samples && *options.samples < 1) {
    refuse("--samples", *options.samples, "at least 1");
  }
  if (options.steps < 0 || options.steps > most) refuse("--steps", options.steps, "0 to 1e8");
  if (options.draws < 1 || options.draws > most) refuse("--draws", options.draws, "1 to 1e8");
}

CertifiedRun read_run(const std::filesystem::path& model) {
  const std::optional<RunConfig> settings = settings_of_run(model);
  if (!settings) {
    throw Error(ExitCode::data, fmt::format("'{}' is not of a run", model.string()),
                "the folder of a run: a certificate needs its training set and initial weights");
  }
  CertifiedRun run{model.parent_path().string(), *settings, load_model(model)};
  check_settings(model, run.config, run.model);
  return run;
}

std::vector<CertifiedRun> certified_runs(const CertifyFlags& flags) {
  std::vector<CertifiedRun> runs;
  for (const std::filesystem::path& model : find_named_models(flags.runs)) {
    runs.push_back(read_run(model));
    check_certifiable(runs.back(), flags.options);
  }
  return runs;
}

// The steps and draws of all runs as one line of progress; called from several threads.
class CertifyDisplay {
 public:
  CertifyDisplay(size_t runs, const CertifyOptions& options) : done_(runs), started_(Clock::now()) {
    progress_.runs = static_cast<int64_t>(runs);
    progress_.steps = progress_.runs * options.steps;
    draws_ = progress_.runs * all_draws(options);
  }
  void step(size_t run, int64_t step) {
    const std::lock_guard lock(mutex_);
    progress_.step += step - done_[run];
    done_[run] = step;
    if (seconds() > 0) {
      progress_.steps_per_second = static_cast<double>(progress_.step) / seconds();
    }
    update();
  }
  void draw(int64_t networks) {
    const std::lock_guard lock(mutex_);
    drawn_ += networks;
    update();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ++progress_.ended;
    update();
  }
  void finish() { display_.finish(); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int64_t draws_per_step = 8;  // that take as long

  double seconds() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }

  void update() {
    const auto work = static_cast<double>(draws_per_step * progress_.step + drawn_);
    progress_.fraction = work / static_cast<double>(draws_per_step * progress_.steps + draws_);
    progress_.seconds_left = seconds() * (1 - progress_.fraction) / progress_.fraction;
    display_.update(progress_);
  }

  std::mutex mutex_;
  GridDisplay display_;
  GridProgress progress_;
  std::vector<int64_t> done_;
  int64_t drawn_ = 0, draws_ = 0;
  Clock::time_point started_;
};

// Prints a line for each certificate as soon as it is computed.
class RowFile {
 public:
  explicit RowFile(const std::string& path) : path_(path) {
    if (!path.empty()) stream_.open(path, std::ios::app);
    check();
  }
  void write(const Json& row) {
    if (path_.empty()) return;
    stream_ << row.dump() + "\n" << std::flush;
    check();
  }

 private:
  void check() const {
    if (!path_.empty() && !stream_) {
      throw Error(ExitCode::failed, fmt::format("cannot write '{}': {}", path_,
                                                std::generic_category().message(errno)));
    }
  }

  std::string path_;
  std::ofstream stream_;
};

std::string certificate_text(const CertifiedRun& run, const CertifyOptions& options,
                             const Certificate& certificate) {
  const auto number = [](double value) { return fmt::format("{:.4f}", value); };
  std::string text = fmt::format(
      "{}\n{}, {}: m = {} training samples, {} numbers in the collapsed network\n"
      "clipped loss min(error^2, {}), confidence {}\n\n",
      run.name, run.config.task, run.config.architecture, certificate.samples,
      certificate.coordinates, short_number(options.clip * options.clip), 1 - options.delta);
  TextTable table({"network", "risk at most", "training loss", "fresh loss"});
  table.add_row({"randomised: new noise for each answer", number(certificate.bound),
                 number(certificate.loss), number(certificate.fresh_loss)});
  const auto add_drawn = [&](const std::string& name, const DrawnNetwork& network) {
    table.add_row(
        {name, number(network.bound), number(network.training_loss), number(network.fresh_loss)});
  };
  add_drawn("drawn once from the same noise", certificate.drawn);
  add_drawn("best of ten drawn", certificate.best_of_ten);
  table.add_row({"as trained: no certificate of this kind", "",
                 number(certificate.plain_training_loss), number(certificate.plain_fresh_loss)});
  text += table.to_string();
  text += fmt::format(
      "\nKL {:.0f} nats, and {:.0f} for the choice of the prior's scales. What is certified is the "
      "noisy network\n(or the drawn one), not the one that was trained.\n",
      certificate.divergence, certificate.cost);
  TextTable others({"for comparison, on fresh samples", "loss"});
  others.add_row({"best constant", number(certificate.simple.constant)});
  others.add_row({"best linear predictor", number(certificate.simple.linear)});
  others.add_row(
      {"as trained, bound from 1,000 held-out samples", number(certificate.hold_out_bound)});
  return text + "\n" + others.to_string();
}

ExitCode certify_runs(const CertifyFlags& flags) {
  check_flags(flags);
  const int threads = thread_count(flags.threads);
  const std::vector<CertifiedRun> runs = certified_runs(flags);
  RowFile rows(flags.rows);
  const std::atomic<bool>& stop = catch_interrupts();
  write_notice(machine_line(find_machine(), threads, "cpu"));
  CertifyDisplay display(runs.size(), flags.options);
  std::vector<std::optional<Certificate>> certificates(runs.size());
  std::vector<Json> documents(runs.size());
  std::mutex writing;
  // Whole runs per thread where there are enough of them.
  const int at_once = runs.size() >= static_cast<size_t>(threads) ? threads : 1;
  parallel_for(static_cast<int64_t>(runs.size()), at_once, [&](int64_t r) {
    if (stop) return;
    CertifyOptions options = flags.options;
    options.threads = threads / at_once;
    options.stop = &stop;
    options.progress = [&display, r](const bounds::PosteriorProgress& progress) {
      display.step(r, progress.step);
    };
    options.drawn = [&display](int64_t networks) { display.draw(networks); };
    const auto started = std::chrono::steady_clock::now();
    certificates[r] = certify(runs[r], options);
    if (!certificates[r]) return;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    documents[r] = Json::parse(to_json(runs[r], options, *certificates[r], took.count()));
    display.end();
    const std::lock_guard lock(writing);
    rows.write(documents[r]);
  });
  display.finish();
  Json there = Json::array();
  std::string text;
  for (size_t r = 0; r < runs.size(); ++r) {
    if (!certificates[r]) continue;
    there.push_back(documents[r]);
    text += (text.empty() ? "" : "\n") + certificate_text(runs[r], flags.options, *certificates[r]);
  }
  write_output(flags.json ? json_text({{"certificates", there}}) : text);
  if (there.size() == runs.size()) return ExitCode::done;  // an interrupt came too late to matter
  flush_output();
  write_notice(fmt::format("interrupted: {} of {} runs are certified", there.size(), runs.size()));
  return ExitCode::interrupted;
}

void add_certify_options(CLI::App& command, CertifyFlags& flags) {
  CertifyOptions& options = flags.options;
  argument(command, "RUN", flags.runs, "Folders of runs, or folders that hold some")->required();
  option(command, "--delta", options.delta, "NUMBER [0.05]", "Chance that the statement is wrong");
  option(command, "--clip", options.clip, "NUMBER [1]", "b: an output's loss is min(error^2, b^2)");
  option(command, "--samples", options.samples, "INT",
         "m, to be sure: another than the run's is refused");
  option(command, "--steps", options.steps, fmt::format("INT [{}]", options.steps),
         "In which noise and weights are chosen");
  option(command, "--draws", options.draws, fmt::format("INT [{}]", options.draws),
         "Noisy networks that the loss is measured on");
  option(command, "--rows", flags.rows, "FILE",
         "Also append one line of JSON for each run to this file");
  add_threads_option(command, flags.threads);
  add_json_flag(command, flags.json);
}

const Command registered_certify(
    {.name = "certify",
     .group = Group::theory,
     .summary = "Prove a bound on the risk of a trained network from its training set",
     .examples = {"posattn certify runs/cumulative-min/positional-seed0",
                  "posattn certify runs/cumulative-min --rows certificates.jsonl"},
     .details =
         "This is a PAC-Bayes bound (docs/bounds-certificate.md). With probability 1 - delta over "
         "the training set, the clipped loss on new samples is at most the printed number. The "
         "bound holds for the network with random noise on its weights, or for one drawn from that "
         "noise; it does not hold for the trained network itself. The prior is centred at the "
         "initial weights of the run, so a model file without its run is refused."},
    add_certify_options, certify_runs);

}  // namespace
}  // namespace posattn

#include "posattn/training/run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "posattn/base/json_fields.h"
#include "posattn/evaluation/measurement.h"
#include "posattn/evaluation/measurement_json.h"
#include "posattn/tasks/dataset.h"
#include "posattn/training/batches.h"
#include "posattn/training/run_parts.h"

namespace posattn {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

}  // namespace

std::string to_json(const EpochRecord& record) {
  Json line = {{"epoch", record.epoch},
               {"step", record.step},
               {"train_loss", json_number(record.train_loss)}};
  if (record.validation_loss) line["validation_loss"] = json_number(*record.validation_loss);
  const RowsAsJson written = rows_to_json(record.tests, true);
  if (!written.tests.empty()) line["tests"] = written.tests;
  if (!written.rows.empty()) line["rows"] = written.rows;
  line["lr"] = json_number(record.lr);
  line["seconds"] = record.seconds;
  return line.dump();
}

EpochRecord epoch_record_from_json(std::string_view line, const std::string& where) {
  const nlohmann::json json = parse_strict_json(line, where);
  const JsonFields fields(json, where);
  EpochRecord record;
  record.epoch = fields.integer("epoch");
  record.step = fields.integer("step");
  record.train_loss = fields.number("train_loss");
  record.lr = fields.number("lr");
  record.seconds = fields.number("seconds");
  if (fields.has("validation_loss")) record.validation_loss = fields.number("validation_loss");
  record.tests = rows_from_json(json, where);
  return record;
}

struct Run::Implementation {
  Implementation(const RunConfig& settings, int thread_count, RunState begin)
      : config(settings),
        spec(model_spec(settings)),
        threads(std::max(1, thread_count)),
        network(spec, {.path = network_path(settings), .threads = threads}),
        train(training_data(settings, begin.epoch + 1, threads)),
        train_epoch(begin.epoch + 1),
        steps_per_epoch(EpochBatches::count(train, settings.batch)),
        optimiser(optimiser_options(settings)),
        schedule(schedule_options(settings, steps_per_epoch)),
        state(std::move(begin)),
        gradient(state.parameters.shared_layout()),
        evaluation(settings, threads) {
    const Task& task = find_task(settings.task);
    for (const Dataset& set : train) masks.push_back(loss_mask(task, set.length));
  }

  // The steps of one epoch; false when stopped or diverged (`divergence` then says how).
  bool run_steps(const std::atomic<bool>* stop, EpochRecord& record) {
    if (config.fresh && train_epoch != state.epoch + 1) {
      train_epoch = state.epoch + 1;
      train = training_data(config, train_epoch, threads);
    }
    EpochBatches batches(train, config.batch, config.data_seed_used(), state.epoch + 1);
    double summed_loss = 0;
    for (int64_t b = 0; b < batches.count(); ++b) {
      if (stop != nullptr && stop->load(std::memory_order_relaxed)) return false;
      Batch batch = batches.gather(b);
      batch.context = {.seed = config.data_seed_used(),
                       .step = static_cast<uint32_t>(state.optimiser.step),
                       .training = true};
      const double loss =
          network.gradient(state.parameters, batch, masks[batches.set_of(b)], gradient);
      if (!std::isfinite(loss)) return diverge(NotFinite::loss, loss);
      if (config.clip > 0) clip_gradient(config.clip, gradient);
      record.lr = learning_rate(schedule, state.schedule, state.optimiser.step);
      optimiser_step(optimiser, record.lr, gradient, state.optimiser, state.parameters);
      summed_loss += loss;
    }
    if (!all_finite(state.parameters.values())) return diverge(NotFinite::weight);
    // The square of a huge gradient overflows first.
    if (!all_finite(state.optimiser.second_moment.values())) {
      return diverge(NotFinite::squared_gradient);
    }
    record.train_loss = summed_loss / static_cast<double>(batches.count());
    after_epoch(schedule, summed_loss, state.schedule);
    return true;
  }

  bool diverge(NotFinite what, double loss = 0) {
    divergence = divergence_message(what, loss, state.optimiser.step + 1, state.epoch + 1);
    return false;
  }

  RunConfig config;
  ModelSpec spec;
  int threads;
  Network network;
  std::vector<Dataset> train;               // one set per length
  int64_t train_epoch;                      // the epoch it was made for
  std::vector<std::vector<uint8_t>> masks;  // of each set
  int64_t steps_per_epoch;
  OptimiserOptions optimiser;
  ScheduleOptions schedule;
  RunState state;
  Parameters<float> gradient;
  RunEvaluation evaluation;
  std::string divergence;
};

Run::Run(const RunConfig& config, int threads) : Run(config, threads, initial_state(config)) {}
Run::Run(const RunConfig& config, int threads, RunState state)
    : implementation_(std::make_unique<Implementation>(config, threads, std::move(state))) {}
Run::~Run() = default;
Run::Run(Run&&) noexcept = default;

const RunConfig& Run::config() const { return implementation_->config; }
int64_t Run::steps_per_epoch() const { return implementation_->steps_per_epoch; }
const std::string& Run::divergence() const { return implementation_->divergence; }
const RunState& Run::state() const { return implementation_->state; }

bool Run::finished() const {
  return implementation_->state.epoch >= implementation_->config.epochs ||
         !implementation_->divergence.empty();
}

std::optional<EpochRecord> Run::advance_epoch(const std::atomic<bool>* stop) {
  Implementation& run = *implementation_;
  const Clock::time_point start = Clock::now();
  const RunState before = run.state;
  EpochRecord record;
  try {
    if (!run.run_steps(stop, record)) {
      run.state = before;
      return std::nullopt;
    }
    record.epoch = ++run.state.epoch;
    record.step = run.state.optimiser.step;
    run.evaluation.evaluate_when_due(run.network, run.threads, run.state, record);
  } catch (...) {  // the epoch is repeated by who goes on
    run.state = before;
    throw;
  }
  run.state.seconds += std::chrono::duration<double>(Clock::now() - start).count();
  record.seconds = run.state.seconds;
  return record;
}

void Run::set_threads(int threads) {
  Implementation& run = *implementation_;
  if (threads == run.threads) return;
  run.threads = threads;
  run.network = Network(run.spec, {.path = network_path(run.config), .threads = threads});
}

void Run::restore(RunState state) {
  implementation_->state = std::move(state);
  implementation_->divergence.clear();
}

Model Run::model() const { return trained_model(implementation_->config, implementation_->state); }

}  // namespace posattn

#include "posattn/experiments/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "posattn/experiments/experiment.h"
#include "posattn/experiments/finished_run.h"
#include "posattn/experiments/sweep/orders.h"
#include "posattn/experiments/sweep/words.h"

namespace posattn {
namespace {

constexpr int most_losses = 3;

Error cannot_start(int rank, const std::string& how) {
  return Error(
      ExitCode::failed,
      fmt::format("the training process of rank {} {} as soon as it was started", rank, how), "",
      "see what it wrote above; the same command goes on");
}

}  // namespace

Sweep::Sweep(Crew& crew, std::filesystem::path results, std::size_t most_together)
    : crew_(crew), results_(std::move(results)), most_together_(most_together) {}

std::vector<RunOutcome> Sweep::train(const std::vector<RunConfig>& configs,
                                     const FleetOptions& options) {
  configs_ = &configs;
  options_ = &options;
  outcomes_.assign(configs.size(), {});
  losses_.assign(configs.size(), 0);
  works_.assign(static_cast<std::size_t>(crew_.size()), std::nullopt);
  orders_.assign(works_.size(), 0);
  ready_.assign(works_.size(), false);
  for (Places& order : plan_orders(configs, crew_.size(), most_together_)) {
    waiting_.push_back(std::move(order));
  }
  for (;;) {
    if (!stopping_ && (stop_asked_ || *options.stop)) stop_all();
    hand_out();
    if (!anybody_works()) break;
    crew_.hear([this](int rank, const std::string& line) { hear(rank, sweep_words(line)); });
  }
  if (error_) throw *error_;
  return outcomes_;
}

RunResult Sweep::result(const std::filesystem::path& folder, const std::string& key) {
  const auto manifest = manifests_.find(key);
  return manifest == manifests_.end() ? read_result(folder, key)
                                      : result_of_manifest(manifest->second, folder, key);
}

void Sweep::hand_out() {
  for (int rank = 0; rank < crew_.size() && !waiting_.empty(); ++rank) {
    std::optional<Work>& work = works_[static_cast<std::size_t>(rank)];
    if (work) continue;
    work = Work{next_number_++, std::move(waiting_.front())};
    waiting_.pop_front();
    TrainingOrder order{work->number, results_, options_->command_line, {}};
    for (const std::size_t run : work->runs) order.runs.push_back((*configs_)[run]);
    ++orders_[static_cast<std::size_t>(rank)];
    crew_.order(rank, to_json_line(order));
  }
}

// Runs in hand are saved; their ranks report them as interrupted. That is said first: a launcher
// that ends the job may not wait until all are.
void Sweep::stop_all() {
  stopping_ = true;
  if (!error_)
    notice("stopping: checkpoints are being saved, and the same command goes on from them");
  for (const Places& runs : waiting_) {
    for (const std::size_t run : runs) end(run, RunStatus::interrupted);
  }
  waiting_.clear();
  for (int rank = 0; rank < crew_.size(); ++rank) crew_.stop(rank);
}

bool Sweep::anybody_works() const {
  return std::ranges::any_of(works_, [](const auto& work) { return work.has_value(); });
}

void Sweep::hear(int rank, const nlohmann::json& report) {
  std::optional<Work>& work = works_[static_cast<std::size_t>(rank)];
  if (report.contains("notice")) {
    notice(report.at("notice").get<std::string>());
  } else if (report.contains("stop")) {
    stop_asked_ = true;
  } else if (report.contains("lost")) {
    lose(rank, report.at("lost").get<std::string>(), report.at("orders").get<int64_t>());
  } else if (report.contains("ready")) {
    ready_[static_cast<std::size_t>(rank)] = true;
  } else if (!work) {
    return;
  } else if (report.contains("error")) {
    if (!error_) error_ = error_from(report.at("error"));
    stop_asked_ = true;
    for (const std::size_t run : work->runs) end(run, RunStatus::interrupted);
    work.reset();
  } else if (report.at("order").get<int64_t>() == work->number) {
    if (report.contains("outcomes")) {
      hear_outcomes(*work, report.at("outcomes"));
      work.reset();
    } else {
      hear_progress(*work, report);
    }
  }
}

void Sweep::hear_progress(const Work& work, const nlohmann::json& report) {
  RunProgress progress;
  progress.run = work.runs.at(report.at("run").get<std::size_t>());
  progress.step = report.at("step").get<int64_t>();
  progress.steps = report.at("steps").get<int64_t>();
  progress.status = run_status_from(report.at("status").get<std::string>());
  if (has_ended(progress.status)) {
    manifests_[run_key((*configs_)[progress.run])] = report.at("manifest").get<std::string>();
    end(progress.run, progress.status);
  }
  if (options_->progress) options_->progress(progress);
}

void Sweep::hear_outcomes(const Work& work, const nlohmann::json& outcomes) {
  for (std::size_t i = 0; i < work.runs.size(); ++i) {
    const nlohmann::json& outcome = outcomes.at(i);
    if (outcome.contains("manifest")) {
      manifests_[run_key((*configs_)[work.runs[i]])] = outcome.at("manifest").get<std::string>();
    }
    const RunStatus status = run_status_from(outcome.at("status").get<std::string>());
    end(work.runs[i], status, outcome.at("message").get<std::string>());
    if (status == RunStatus::interrupted) stop_asked_ = true;  // by a signal to the child
  }
}

void Sweep::lose(int rank, const std::string& how, int64_t orders) {
  std::optional<Work>& work = works_[static_cast<std::size_t>(rank)];
  const bool started = ready_[static_cast<std::size_t>(rank)];
  ready_[static_cast<std::size_t>(rank)] = false;
  // An order that was on its way is the next child's.
  if (!work || orders < orders_[static_cast<std::size_t>(rank)]) {
    if (!stopping_) notice(fmt::format("the idle training process of rank {} {}", rank, how));
    return;
  }
  Places lost;
  std::ranges::copy_if(work->runs, std::back_inserter(lost),
                       [this](std::size_t run) { return !has_ended(outcomes_[run].status); });
  work.reset();
  if (!started) {
    // Nor would the next one: no run is to blame.
    if (!error_) error_ = cannot_start(rank, how);
    stop_asked_ = true;
    for (const std::size_t run : lost) end(run, RunStatus::interrupted);
    return;
  }
  notice(fmt::format("the training process of rank {} {}; runs that {}: {}", rank, how,
                     stopping_ ? "go on from their checkpoints next time" : "are handed out again",
                     lost.size()));
  for (const std::size_t run : lost) lose_run(run, how);
}

void Sweep::lose_run(std::size_t run, const std::string& how) {
  if (stopping_) {
    end(run, RunStatus::interrupted);
  } else if (++losses_[run] < most_losses) {
    waiting_.push_front({run});  // alone, so that it takes no other with it
  } else {
    end(run, RunStatus::failed,
        fmt::format("{} processes died training it; the last {} (out of memory?)", most_losses,
                    how));
  }
}

void Sweep::end(std::size_t run, RunStatus status, const std::string& message) {
  outcomes_[run].config = (*configs_)[run];
  outcomes_[run].status = status;
  outcomes_[run].message = message;
}

void Sweep::notice(const std::string& line) const {
  if (options_->notice) options_->notice(line);
}

}  // namespace posattn

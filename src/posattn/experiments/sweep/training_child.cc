#include "posattn/experiments/sweep/training_child.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "posattn/base/line_reader.h"
#include "posattn/experiments/experiment.h"
#include "posattn/experiments/finished_run.h"
#include "posattn/experiments/sweep/words.h"
#include "posattn/training/fleet.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int look_interval = 20;                          // ms between looks at the signals' flag
constexpr std::chrono::milliseconds report_interval{200};  // of a run that goes on
constexpr std::chrono::seconds patience{30};               // network file systems show files late

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

// Rank 0 has made the folder and works in it.
void expect_folder(const fs::path& results) {
  const Clock::time_point until = Clock::now() + patience;
  while (!fs::exists(results / "lock")) {
    if (Clock::now() > until) {
      throw Error(
          ExitCode::failed,
          fmt::format("{} does not see the results folder '{}'", host_name(), results.string()), "",
          "choose --results in a file system that all machines share");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

class TrainingChild {
 public:
  TrainingChild(int orders, int reports, int threads, const std::atomic<bool>& interrupted)
      : orders_(orders), reports_(reports), threads_(threads), interrupted_(interrupted) {}

  void work() {
    const std::jthread listener([this](const std::stop_token& end) { listen(end); });
    report({{"ready", true}});
    while (const std::optional<std::string> line = next_order()) {
      try {
        carry_out(training_order_from(sweep_words(*line)));
      } catch (const Error& error) {
        write(to_json_line(error));
      } catch (const std::exception& error) {
        write(to_json_line(Error(ExitCode::failed, error.what())));
      }
    }
  }

 private:
  // Hears orders while others are carried out.
  void listen(const std::stop_token& end) {
    while (!end.stop_requested() && !orders_.ended()) {
      for (std::string& line : orders_.read(look_interval)) {
        const std::lock_guard lock(mutex_);
        if (line.starts_with("{\"stop\"")) {
          stop_ = true;
        } else {
          waiting_.push_back(std::move(line));
        }
      }
      if (interrupted_) stop_ = true;
      changed_.notify_one();
    }
    const std::lock_guard lock(mutex_);
    stop_ = true;  // whoever gave orders is gone
    closed_ = true;
    changed_.notify_one();
  }

  std::optional<std::string> next_order() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
    if (waiting_.empty()) return std::nullopt;
    std::string line = std::move(waiting_.front());
    waiting_.pop_front();
    return line;
  }

  void carry_out(const TrainingOrder& order) {
    expect_folder(order.results);
    const auto folder = [&](const RunConfig& config) {
      return order.results / "runs" / run_key(config);
    };
    std::vector<Clock::time_point> reported(order.runs.size());
    FleetOptions fleet;
    fleet.folder = folder;
    fleet.resume = true;
    fleet.threads = threads_;
    fleet.command_line = order.command_line;
    fleet.stop = &stop_;
    fleet.notice = [this](const std::string& line) { report({{"notice", line}}); };
    fleet.progress = [&](const RunProgress& progress) {
      const Clock::time_point now = Clock::now();
      const bool goes_on = progress.status == RunStatus::running && progress.epoch > 0;
      if (goes_on && now - reported[progress.run] < report_interval) return;
      reported[progress.run] = now;
      Json words = {{"order", order.number},
                    {"run", progress.run},
                    {"status", to_string(progress.status)},
                    {"step", progress.step},
                    {"steps", progress.steps}};
      if (has_ended(progress.status)) {
        words["manifest"] = read_manifest(folder(order.runs[progress.run]));
      }
      report(words);
    };
    Json outcomes = Json::array();
    for (const RunOutcome& outcome : train_fleet(order.runs, fleet)) {
      Json words = {{"status", to_string(outcome.status)}, {"message", outcome.message}};
      // Of one that had ended before no epoch was recorded here.
      if (outcome.already_done) words["manifest"] = read_manifest(outcome.folder);
      outcomes.push_back(words);
    }
    report({{"order", order.number}, {"outcomes", outcomes}});
  }

  void report(const Json& words) { write(to_json_line(words)); }
  void write(const std::string& line) {
    const std::lock_guard lock(writing_);
    if (!write_line(reports_, line)) stop_ = true;  // nobody listens: save and leave
  }

  LineReader orders_;
  int reports_, threads_;
  const std::atomic<bool>& interrupted_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_, writing_;
  std::condition_variable changed_;
  std::deque<std::string> waiting_;  // guarded by mutex_
  bool closed_ = false;              // likewise
};

}  // namespace

void train_by_orders(int orders, int reports, int threads, const std::atomic<bool>& interrupted) {
  TrainingChild(orders, reports, threads, interrupted).work();
}

}  // namespace posattn

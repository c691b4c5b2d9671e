#include "posattn/experiments/sweep/sweep.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "posattn/base/temporary_folder_test.h"
#include "posattn/experiments/experiment.h"
#include "posattn/experiments/runner.h"
#include "posattn/experiments/sweep/training_child.h"
#include "posattn/experiments/sweep/words.h"
#include "posattn/training/small_run_test.h"

namespace posattn {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

std::vector<RunConfig> sweep_configs(int64_t seeds) {
  std::vector<RunConfig> configs(static_cast<std::size_t>(seeds), small_run());
  for (int64_t seed = 0; seed < seeds; ++seed) {
    configs[static_cast<std::size_t>(seed)].seed = seed;
    configs[static_cast<std::size_t>(seed)].checkpoint_every = 30;
  }
  return configs;
}

// Ranks that only say what the test has them say.
class ScriptedCrew final : public Crew {
 public:
  using Answer = std::function<void(ScriptedCrew&, int rank, const Json& order)>;
  ScriptedCrew(int size, Answer answer) : size_(size), answer_(std::move(answer)) {}

  int size() const override { return size_; }
  void order(int rank, const std::string& line) override {
    const Json order = sweep_words(line);
    ++orders_[rank];
    for (const Json& run : order.at("runs")) given.push_back(run.at("key"));
    answer_(*this, rank, order);
  }
  void stop(int rank) override { stopped.push_back(rank); }
  void hear(const std::function<void(int, const std::string&)>& report) override {
    ASSERT_FALSE(said_.empty()) << "nobody would ever say anything more";
    const auto [rank, words] = said_.front();
    said_.pop_front();
    report(rank, to_json_line(words));
  }

  void say(int rank, const Json& words) { said_.emplace_back(rank, words); }
  void end(int rank, const Json& order, const std::string& status) {
    Json outcomes = Json::array();
    for (std::size_t i = 0; i < order.at("runs").size(); ++i) {
      outcomes.push_back({{"status", status}, {"message", ""}});
    }
    say(rank, {{"order", order.at("order")}, {"outcomes", outcomes}});
  }

  void lose(int rank, const std::string& how = "was killed by signal 9 (Killed)") {
    say(rank, {{"lost", how}, {"orders", orders_[rank]}});
  }

  std::vector<std::string> given;  // keys
  std::vector<int> stopped;

 private:
  int size_;
  Answer answer_;
  std::map<int, int64_t> orders_;  // by rank
  std::list<std::pair<int, Json>> said_;
};

class SweepTest : public testing::Test {
 protected:
  std::vector<RunOutcome> train(ScriptedCrew& crew, int64_t runs, std::size_t together = 1) {
    FleetOptions options;
    options.stop = &stop_;
    options.notice = [this](const std::string& line) { notices_.push_back(line); };
    options.progress = [this](const RunProgress& progress) { progress_.push_back(progress); };
    return Sweep(crew, "results", together).train(sweep_configs(runs), options);
  }
  static std::vector<RunStatus> statuses(const std::vector<RunOutcome>& outcomes) {
    std::vector<RunStatus> result;
    result.reserve(outcomes.size());
    for (const RunOutcome& outcome : outcomes) result.push_back(outcome.status);
    return result;
  }
  std::atomic<bool> stop_ = false;
  std::vector<std::string> notices_;
  std::vector<RunProgress> progress_;
};

TEST_F(SweepTest, ALostProcessGivesBackWhatHasNotEnded) {
  int orders = 0;
  ScriptedCrew crew(1, [&](ScriptedCrew& self, int rank, const Json& order) {
    self.say(rank, {{"ready", true}});
    if (++orders > 1) return self.end(rank, order, "done");
    self.say(rank, {{"order", 0},
                    {"run", 1},
                    {"status", "done"},
                    {"step", 9},
                    {"steps", 9},
                    {"manifest", "{}"}});
    self.lose(rank);
  });
  EXPECT_THAT(statuses(train(crew, 3, 3)), Each(RunStatus::done));
  EXPECT_EQ(crew.given.size(), 5U);  // three, then the two that had not ended, one by one
  EXPECT_EQ(orders, 3);
  EXPECT_EQ(std::ranges::count(crew.given, run_key(sweep_configs(2)[1])), 1);
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("rank 0 was killed by signal 9 (Killed)")));
}

TEST_F(SweepTest, ARunThatLosesItsProcessesFailsAndTheOthersGoOn) {
  const std::string poison = run_key(sweep_configs(1)[0]);
  ScriptedCrew crew(2, [&](ScriptedCrew& self, int rank, const Json& order) {
    self.say(rank, {{"ready", true}});
    if (order.at("runs")[0].at("key") != poison) return self.end(rank, order, "done");
    self.lose(rank);
  });
  const std::vector<RunOutcome> outcomes = train(crew, 3);
  EXPECT_THAT(statuses(outcomes), ElementsAre(RunStatus::failed, RunStatus::done, RunStatus::done));
  EXPECT_THAT(outcomes[0].message, HasSubstr("3 processes died training it; the last was killed"));
}

TEST_F(SweepTest, AProcessMayBeLostBeforeItSaysAnythingOfAnOrder) {
  int orders = 0;
  ScriptedCrew crew(1, [&](ScriptedCrew& self, int rank, const Json& order) {
    if (orders != 1) self.say(rank, {{"ready", true}});  // not before the second: it runs already
    if (++orders == 2) return self.lose(rank);
    self.end(rank, order, "done");
  });
  EXPECT_THAT(statuses(train(crew, 3)), Each(RunStatus::done));
  EXPECT_EQ(orders, 4);
}

TEST_F(SweepTest, ALossBeforeAnOrderWasHeardIsNotThatOrders) {
  int orders = 0;
  ScriptedCrew crew(1, [&](ScriptedCrew& self, int rank, const Json& order) {
    self.say(rank, {{"ready", true}});
    if (++orders == 2) self.say(rank, {{"lost", "was killed"}, {"orders", 1}});
    self.end(rank, order, "done");
  });
  EXPECT_THAT(statuses(train(crew, 3)), Each(RunStatus::done));
  EXPECT_EQ(orders, 3);
}

TEST_F(SweepTest, StoppingHandsOutNothingMore) {
  ScriptedCrew crew(2, [&](ScriptedCrew& self, int rank, const Json& order) {
    self.say(rank, {{"ready", true}});
    if (rank == 1) self.say(rank, {{"stop", true}});  // it heard a signal
    self.end(rank, order, "interrupted");
  });
  EXPECT_THAT(statuses(train(crew, 5)), Each(RunStatus::interrupted));
  EXPECT_LE(crew.given.size(), 3U);
  EXPECT_THAT(crew.stopped, ElementsAre(0, 1));
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("the same command goes on")));
}

TEST_F(SweepTest, AnErrorOfOneEndsAll) {
  ScriptedCrew crew(2, [&](ScriptedCrew& self, int rank, const Json& order) {
    if (rank == 1) return self.end(rank, order, "interrupted");
    self.say(rank, sweep_words(to_json_line(Error(ExitCode::device, "no GPU", "one", "buy one"))));
  });
  try {
    train(crew, 4);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::device);
    EXPECT_EQ(error.problem(), "no GPU");
    EXPECT_EQ(error.hint(), "buy one");
  }
}

TEST_F(SweepTest, AProcessThatNeverStartsIsAnError) {
  ScriptedCrew crew(1, [](ScriptedCrew& self, int rank, const Json&) {
    self.lose(rank, "ended with exit code 127");
  });
  EXPECT_THROW(train(crew, 2), Error);
}

// Ranks whose children are threads: the real words over real pipes.
class ThreadCrew final : public Crew {
 public:
  explicit ThreadCrew(std::size_t size) : children_(size) {}
  int size() const override { return static_cast<int>(children_.size()); }
  void order(int rank, const std::string& line) override { (void)write_line(at(rank).in[1], line); }
  void stop(int rank) override { order(rank, R"({"stop":true})"); }
  void hear(const std::function<void(int, const std::string&)>& report) override {
    for (int rank = 0; rank < size(); ++rank) {
      for (const std::string& line : at(rank).reports->read(2)) report(rank, line);
    }
  }

 private:
  struct Child {
    Child() {
      if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) std::abort();
      reports.emplace(out[0]);
      thread = std::thread([this] { train_by_orders(in[0], out[1], 2, interrupted); });
    }
    ~Child() {
      ::close(in[1]);
      thread.join();
      for (const int descriptor : {in[0], out[0], out[1]}) ::close(descriptor);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    std::atomic<bool> interrupted = false;
    std::optional<LineReader> reports;
    std::thread thread;
  };
  Child& at(int rank) { return children_[static_cast<std::size_t>(rank)]; }
  std::vector<Child> children_;
};

TEST(SweepOfChildrenTest, ResultsAreThoseOfOneProcess) {
  const TemporaryFolder folder;
  std::vector<ExperimentRun> runs;
  for (const RunConfig& config : sweep_configs(5)) {
    runs.push_back({config.task, config.architecture, std::nullopt, config, run_key(config)});
  }
  const auto recorded = [&](const char* name, Trainer* trainer) {
    RunnerOptions options;
    options.results = folder.path() / name;
    options.trainer = trainer;
    EXPECT_EQ(run_experiment(runs, options).done, 5);
    return ResultsDatabase(folder.path() / name, ResultsDatabase::Access::read).all();
  };
  ThreadCrew crew(2);
  Sweep sweep(crew, folder.path() / "ranks", 2);
  const std::vector<RunResult> in_ranks = recorded("ranks", &sweep),
                               alone = recorded("one", nullptr);
  ASSERT_EQ(in_ranks.size(), alone.size());
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(in_ranks[i].key, alone[i].key);
    EXPECT_EQ(in_ranks[i].configuration, alone[i].configuration);
    EXPECT_EQ(in_ranks[i].steps, alone[i].steps);
    EXPECT_EQ(in_ranks[i].measurements, alone[i].measurements);
  }
}

}  // namespace
}  // namespace posattn

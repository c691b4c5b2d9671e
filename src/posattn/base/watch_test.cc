#include "posattn/base/watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "posattn/base/parallel.h"

namespace posattn {
namespace {

struct Enough {};
void end_work() { throw Enough{}; }
void go_on() {}

void work_a_little() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

TEST(Watch, EndsALoopOnSeveralThreads) {
  const Watch watch(&end_work);
  std::atomic<int64_t> turns = 0;
  const auto body = [&](int64_t) {
    work_a_little();
    ++turns;
  };
  EXPECT_THROW(parallel_for(100'000, 2, body), Enough);
  EXPECT_LT(turns, 10'000);
}

TEST(Watch, IsNothingToOtherThreadsAndAfterItsEnd) {
  {
    const Watch watch(&end_work);
    std::thread([] {
      for (int i = 0; i < 150; ++i) {
        work_a_little();
        Watch::look();
      }
    }).join();
    const Watch inner(&go_on);
    work_a_little();
    Watch::look();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(101));
  Watch::look();
}

TEST(ParallelFor, DoesNotBeginWhatNobodyWaitsFor) {
  int turns = 0;
  EXPECT_THROW(parallel_for(1000, 1,
                            [&](int64_t) {
                              ++turns;
                              throw Enough{};
                            }),
               Enough);
  EXPECT_EQ(turns, 1);
}

}  // namespace
}  // namespace posattn

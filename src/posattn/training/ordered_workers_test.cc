#include "posattn/training/ordered_workers.h"

#include <gtest/gtest.h>

#include <atomic>

namespace posattn {
namespace {

TEST(OrderedWorkers, ALanesTasksAreDoneInOrderAndOneAtATime) {
  constexpr int lanes = 5, tasks = 200;
  std::vector<std::vector<int>> done(lanes);
  std::vector<std::atomic<int>> inside(lanes);
  std::atomic<bool> alone = true;
  {
    OrderedWorkers workers(3, lanes, 4);
    for (int task = 0; task < tasks; ++task) {
      for (int lane = 0; lane < lanes; ++lane) {
        workers.add(lane, [&, lane, task] {
          if (++inside[lane] > 1) alone = false;
          done[lane].push_back(task);
          --inside[lane];
        });
      }
    }
  }
  EXPECT_TRUE(alone);
  for (const std::vector<int>& lane : done) {
    ASSERT_EQ(lane.size(), std::size_t{tasks});
    for (int task = 0; task < tasks; ++task) EXPECT_EQ(lane[task], task);
  }
}

TEST(OrderedWorkers, TheQueueIsBounded) {
  std::atomic<int> started = 0, added = 0;
  std::atomic<bool> go = false;
  {
    OrderedWorkers workers(1, 1, 2);
    std::jthread adder([&] {
      for (int i = 0; i < 6; ++i, ++added) {
        workers.add(0, [&] {
          ++started;
          while (!go) std::this_thread::yield();
        });
      }
    });
    while (started == 0 || added < 3) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(added, 3);  // one under way, two waiting
    go = true;
    adder.join();
  }
  EXPECT_EQ(started, 6);
}

}  // namespace
}  // namespace posattn

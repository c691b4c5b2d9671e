// For tests: ranks that are threads of this process.
//   in_ranks(3, [](Ranks& ranks) { ... });
#pragma once

#include <barrier>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "posattn/mpi/ranks.h"

namespace posattn::testing {

struct ThreadJob {
  explicit ThreadJob(int ranks) : size(ranks), meeting(ranks), messages(ranks), parts(ranks) {}
  int size;
  std::barrier<> meeting;
  std::mutex mutex;
  std::condition_variable arrived;
  std::vector<std::deque<RankMessage>> messages;  // to each rank
  std::vector<std::string> parts;                 // of a collective operation
};

class ThreadRanks final : public Ranks {
 public:
  ThreadRanks(ThreadJob& job, int rank) : job_(job), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return job_.size; }
  int node_rank() const override { return rank_; }
  int node_size() const override { return job_.size; }

  void send(int to, int tag, std::string_view bytes) override {
    const std::lock_guard lock(job_.mutex);
    job_.messages[to].push_back({rank_, tag, std::string(bytes)});
    job_.arrived.notify_all();
  }
  std::optional<RankMessage> poll(int from, int tag) override {
    const std::lock_guard lock(job_.mutex);
    return take(from, tag);
  }
  RankMessage receive(int from, int tag) override {
    std::unique_lock lock(job_.mutex);
    std::optional<RankMessage> message;
    job_.arrived.wait(lock, [&] { return (message = take(from, tag)).has_value(); });
    return *message;
  }

  void barrier() override { job_.meeting.arrive_and_wait(); }
  std::string broadcast(std::string_view bytes, int root) override {
    return all_parts(bytes)[static_cast<std::size_t>(root)];
  }
  std::vector<std::string> gather(std::string_view bytes) override {
    std::vector<std::string> parts = all_parts(bytes);
    if (rank_ != 0) parts.clear();
    return parts;
  }
  void sum(std::span<float> values) override { sum_of(values); }
  void sum(std::span<double> values) override { sum_of(values); }
  [[noreturn]] void abort(int /*exit_code*/) override { throw std::runtime_error("aborted"); }

 private:
  std::optional<RankMessage> take(int from, int tag) {
    std::deque<RankMessage>& mine = job_.messages[rank_];
    for (auto message = mine.begin(); message != mine.end(); ++message) {
      if ((from != any && message->from != from) || (tag != any && message->tag != tag)) continue;
      std::optional<RankMessage> taken = std::move(*message);
      mine.erase(message);
      return taken;
    }
    return std::nullopt;
  }
  std::vector<std::string> all_parts(std::string_view bytes) {
    job_.parts[rank_] = bytes;
    barrier();
    std::vector<std::string> parts = job_.parts;
    barrier();
    return parts;
  }
  template <class Number>
  void sum_of(std::span<Number> values) {
    const std::vector<std::string> parts =
        all_parts({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = 0;
      for (const std::string& part : parts) {
        values[i] += reinterpret_cast<const Number*>(part.data())[i];
      }
    }
  }

  ThreadJob& job_;
  int rank_;
};

// Runs `work` in every rank. It must not throw where others wait.
inline void in_ranks(int size, const std::function<void(Ranks&)>& work) {
  ThreadJob job(size);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&job, &work, rank] {
      ThreadRanks ranks(job, rank);
      work(ranks);
    });
  }
}

}  // namespace posattn::testing

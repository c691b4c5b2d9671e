#include "posattn/experiments/sweep/crew.h"

#include <exception>

namespace posattn {
namespace {

constexpr int order_tag = 1, report_tag = 2;
constexpr int wait_interval = 5;  // ms; MPI's own waiting would take a core
constexpr const char* stop_order = R"({"stop":true})";
constexpr const char* end_order = R"({"end":true})";

}  // namespace

RankCrew::~RankCrew() {
  if (std::uncaught_exceptions() > 0) return;  // the job is about to be ended (abandon_ranks)
  for (int rank = 1; rank < ranks_.size(); ++rank) ranks_.send(rank, order_tag, end_order);
}

void RankCrew::order(int rank, const std::string& line) {
  if (rank == 0) {
    supervisor_.order(line);
  } else {
    ranks_.send(rank, order_tag, line);
  }
}

void RankCrew::stop(int rank) {
  if (rank == 0) {
    supervisor_.stop();
  } else {
    ranks_.send(rank, order_tag, stop_order);
  }
}

void RankCrew::hear(const std::function<void(int rank, const std::string& line)>& report) {
  while (const std::optional<RankMessage> message = ranks_.poll(Ranks::any, report_tag)) {
    report(message->from, message->bytes);
  }
  for (const std::string& line : supervisor_.reports(wait_interval)) report(0, line);
}

void serve_rank(Ranks& ranks, Supervisor& supervisor, const std::atomic<bool>& stop) {
  bool stopped = false;
  for (;;) {
    while (const std::optional<RankMessage> message = ranks.poll(0, order_tag)) {
      if (message->bytes == end_order) return;
      if (message->bytes == stop_order) {
        supervisor.stop();
      } else {
        supervisor.order(message->bytes);
      }
    }
    for (const std::string& line : supervisor.reports(wait_interval)) {
      ranks.send(0, report_tag, line);
    }
    if (stop && !stopped) {
      stopped = true;
      supervisor.stop();
      ranks.send(0, report_tag, stop_order);
    }
  }
}

}  // namespace posattn

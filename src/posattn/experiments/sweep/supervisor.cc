#include "posattn/experiments/sweep/supervisor.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "posattn/experiments/sweep/words.h"

namespace posattn {

void Supervisor::order(std::string_view line) {
  if (!child_) child_.emplace(arguments_, environment_);
  child_->write(line);
  ++orders_;
}

void Supervisor::stop() {
  if (child_) child_->write(to_json_line(nlohmann::json{{"stop", true}}));
}

std::vector<std::string> Supervisor::reports(int milliseconds) {
  if (!child_) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    return {};
  }
  std::vector<std::string> lines = child_->read(milliseconds);
  if (child_->closed()) {
    lines.push_back(to_json_line(nlohmann::json{{"lost", child_->wait()}, {"orders", orders_}}));
    child_.reset();
  }
  return lines;
}

}  // namespace posattn

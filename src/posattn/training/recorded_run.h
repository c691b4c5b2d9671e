// One run trained by the CPU engine in its folder.
#pragma once

#include <atomic>
#include <functional>

#include "posattn/training/recording.h"

namespace posattn {

struct RecordedRunOptions {
  RecordingOptions recording;
  const std::atomic<bool>* stop = nullptr;          // set: write a checkpoint and return
  std::function<int()> threads = [] { return 1; };  // asked before every epoch
};

// Never throws for what happens to the run itself: a failure (a full disk) is an outcome.
RunOutcome train_in_folder(const RunConfig& config, RunFolder& folder,
                           const RecordedRunOptions& options);

}  // namespace posattn

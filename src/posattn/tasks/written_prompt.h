// The prompts of mixed type written as text, for language models: "CatA, 001.20, ... Find min of
// categories CatB, CatA, CatV and CatD." on a line, then the answer, "000.77". A model learns to
// write both; its answer is what it writes behind the line.
//
// The built-in tasks mixed-min-written, mixed-sum-written and mixed-multitask-written have a token
// for each byte. With the vocabulary of a GPT-2 there are also mixed-min-gpt2, mixed-sum-gpt2 and
// mixed-multitask-gpt2: a model file that holds a vocabulary brings its task along, and training
// registers them.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "posattn/tasks/task.h"

namespace posattn {

// The task of this name in these tokens; null for any other name.
std::shared_ptr<const Task> gpt2_task(std::string_view name,
                                      std::shared_ptr<const Tokeniser> tokeniser);

// Registers the tasks, for training. Does nothing where they are there with the same vocabulary;
// throws Error(configuration) where they are there with another. Before other threads ask for
// tasks.
void offer_gpt2_tasks(std::shared_ptr<const Tokeniser> tokeniser);
// Registers them with vocab.json and merges.txt of this folder; Error(data) for files that cannot
// be read.
void offer_gpt2_tasks(const std::filesystem::path& folder);

}  // namespace posattn

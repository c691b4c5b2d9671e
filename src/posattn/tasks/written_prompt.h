// The prompts of mixed type written as text, for language models: "CatA, 001.20, ... Find min of
// categories CatB, CatA, CatV and CatD." on a line, then the answer, "000.77". A model learns to
// write both; its answer is what it writes behind the line.
//
// The built-in tasks mixed-min-written, mixed-sum-written and mixed-multitask-written have a token
// for each byte. With the tokeniser's files of a GPT-2 there are also mixed-min-gpt2,
// mixed-sum-gpt2 and mixed-multitask-gpt2.
#pragma once

#include <filesystem>

namespace posattn {

// Registers the tasks with the tokeniser of this folder (vocab.json, merges.txt). Does nothing
// where they are there with the same files; throws Error(configuration) where they are there with
// others, and Error(data) for files that cannot be read. Before other threads ask for tasks.
void offer_gpt2_tasks(const std::filesystem::path& folder);

}  // namespace posattn

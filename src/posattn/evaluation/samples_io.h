// Samples for a model: rows of a table, or for tasks that people write as text (tasks/task_text.h)
// lines of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posattn/evaluation/table.h"
#include "posattn/model/file/model_file.h"
#include "posattn/model/spec/batch.h"
#include "posattn/tasks/task_text.h"

namespace posattn {

struct ReadSamples {
  Table table;                      // by row_pattern of the model
  std::vector<std::string> lines;   // of text, one per row; none where it was a table
  std::optional<Table> pairs = {};  // by pair_pattern
};

// How people write samples of the model's task; null where they are numbers in a table, and for a
// model whose task is unknown or has other columns.
const TaskText* text_of(const Model& model);

// NPY, CSV or lines of text. The ending of the name (.txt, .csv, .npy) tells text from tables, else
// the content does: a table has numbers alone. All lines have the model's length, or, for one
// trained on several, that of the first line. Throws Error(data) that names the line; columns as in
// parse_table.
ReadSamples parse_samples(std::string_view bytes, std::string_view name, const Model& model,
                          int64_t expected_columns = 0);

// What the nodes of one sample hold, as the task writes them; a space shows as an open box.
std::vector<std::string> node_texts(const TaskText& text, const Batch& one_sample);

}  // namespace posattn

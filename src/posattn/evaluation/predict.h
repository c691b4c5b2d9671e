// A model's outputs for rows of numbers and tokens.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "posattn/evaluation/table.h"
#include "posattn/model/file/model_file.h"
#include "posattn/model/inference.h"

namespace posattn {

// How a sample is written as a row, node after node: its token, where the model has tokens
// (negative: the node holds numbers), then its numbers.
RowPattern row_pattern(const ModelSpec& spec);

// The real nodes of a row of `columns` numbers, tokens counted. A fixed-length model takes rows of
// its own length only; one trained on several lengths takes the rows of every length up to its own.
// Throws Error(data), saying what was expected; `name` is the table's.
int real_nodes_for(const Model& model, int64_t columns, std::string_view name = {});

// A table that was read by row_pattern as samples; the table must outlive them. Throws Error(data)
// as real_nodes_for does, for a token that the model does not have, with `name` of the table, row
// and column, and for a model that reads pairs.
Batch samples_of(const Model& model, const Table& table, std::string_view name);
// The same with pairs: a row for each sample, pair after pair, its class, where the model reads
// classes, then its numbers. Null where the model reads none.
Batch samples_of(const Model& model, const Table& table, const Table* pairs, std::string_view name);
RowPattern pair_pattern(const ModelSpec& spec);  // throws Error(data) for a model that reads none

// Outputs [samples, real_nodes, output_columns].
std::vector<float> predict(const Model& model, const Batch& samples, int threads = 1);

// For a model of numbers alone: rows [count, columns] of real_nodes_for(columns) nodes.
std::vector<float> predict_rows(const Model& model, std::span<const float> rows, int64_t count,
                                int threads = 1);

// Keeps the outputs that count: [samples, spec.nodes_read(real_nodes), output_columns].
std::vector<float> read_outputs(const ModelSpec& spec, std::vector<float> outputs, int real_nodes);

// The class of each node from scores [..., classes]; -1 where none is above all others.
std::vector<int32_t> decided_classes(std::span<const float> scores, int classes);

// The exact answer to one sample, as many numbers as outputs. Nothing where the model's task is not
// known or has no answer to numbers alone.
std::vector<float> exact_answer(const Model& model, const Batch& sample, size_t outputs);

}  // namespace posattn

#include "posattn/model/text_generator.h"

#include <fmt/format.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/base/parallel.h"

namespace posattn {
namespace {

// Texts that one thread reads together: their rows share the products with each weight.
constexpr int64_t group_size = 16;

const ModelSpec& checked(const ModelSpec& spec) {
  std::string problem =
      spec.causal ? CausalNetwork::refusal(spec) : "has nodes that attend to later ones";
  if (spec.vocabulary == 0 || spec.output_columns != spec.vocabulary || spec.data_columns > 0 ||
      spec.positions_in_input) {
    problem = "does not read and write tokens alone";
  }
  if (problem.empty()) return spec;
  throw Error(ExitCode::configuration,
              fmt::format("a model that {} cannot continue a text", problem),
              "a causal model of tokens", "train with --causal");
}

}  // namespace

TextGenerator::TextGenerator(const ModelSpec& spec, const Parameters<float>& parameters)
    : spec_(spec), network_(checked(spec_), parameters) {}

std::vector<TokenText> TextGenerator::continue_texts(std::span<const TokenText> texts,
                                                     const GenerationOptions& options) const {
  for (const TokenText& text : texts) check(text);
  const auto count = static_cast<int64_t>(texts.size());
  std::vector<TokenText> continuations(texts.size());
  parallel_for((count + group_size - 1) / group_size, std::max(1, options.threads),
               [&](int64_t group) {
                 const int64_t first = group * group_size;
                 const int64_t size = std::min(group_size, count - first);
                 continue_group(texts.subspan(first, size), options,
                                std::span(continuations).subspan(first, size));
               });
  return continuations;
}

void TextGenerator::check(const TokenText& text) const {
  if (text.empty() || static_cast<int64_t>(text.size()) > spec_.real_nodes) {
    throw Error(ExitCode::data, fmt::format("a text of {} tokens", text.size()),
                fmt::format("1 to {} tokens, the model's nodes", spec_.real_nodes));
  }
  for (const int32_t token : text) {
    if (token >= 0 && token < spec_.vocabulary) continue;
    throw Error(ExitCode::data, fmt::format("token {} in a text", token),
                fmt::format("0 to {}: the model's vocabulary", spec_.vocabulary - 1));
  }
}

void TextGenerator::continue_group(std::span<const TokenText> texts,
                                   const GenerationOptions& options,
                                   std::span<TokenText> continuations) const {
  const int64_t vocabulary = spec_.vocabulary;
  std::vector<CausalNetwork::Nodes> more(texts.size());
  for (size_t t = 0; t < texts.size(); ++t) more[t].tokens = texts[t];
  CausalNetwork::Memory memory = network_.memory(texts.size());
  for (int step = 0; step < options.most_tokens; ++step) {
    const std::vector<float> outputs = network_.read(more, memory);  // of the texts that go on
    int64_t row = 0;
    bool goes_on = false;
    for (size_t t = 0; t < texts.size(); ++t) {
      TokenText& tokens = more[t].tokens;
      if (tokens.empty()) continue;
      const float* output = &outputs[row++ * vocabulary];
      const auto best =
          static_cast<int32_t>(std::max_element(output, output + vocabulary) - output);
      tokens.clear();
      if (best == options.end) continue;
      continuations[t].push_back(best);
      if (memory.length[t] == spec_.real_nodes) continue;
      tokens = {best};
      goes_on = true;
    }
    if (!goes_on) return;
  }
}

}  // namespace posattn

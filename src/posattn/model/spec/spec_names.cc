// The names of a spec's choices, as files and the command line spell them.
#include <array>
#include <utility>

#include "posattn/base/error.h"
#include "posattn/model/spec/spec.h"

namespace posattn {
namespace {

template <class Enumeration>
struct Choices;  // what messages call them, and their names

template <>
struct Choices<AttentionSource> {
  static constexpr const char* kind = "attention source";
  static constexpr std::array names = {
      std::pair{AttentionSource::positions, "positions"}, std::pair{AttentionSource::data, "data"},
      std::pair{AttentionSource::data_and_positions, "data_and_positions"}};
};
template <>
struct Choices<SourceScale> {
  static constexpr const char* kind = "source scale";
  static constexpr std::array names = {std::pair{SourceScale::none, "none"},
                                       std::pair{SourceScale::sample, "sample"},
                                       std::pair{SourceScale::node, "node"}};
};
template <>
struct Choices<Scores> {
  static constexpr const char* kind = "scores";
  static constexpr std::array names = {
      std::pair{Scores::dot, "dot"},       std::pair{Scores::unit, "unit"},
      std::pair{Scores::direct, "direct"}, std::pair{Scores::distance, "distance"},
      std::pair{Scores::routes, "routes"}, std::pair{Scores::direction, "direction"},
      std::pair{Scores::signs, "signs"},   std::pair{Scores::tropical, "tropical"},
      std::pair{Scores::pairs, "pairs"},   std::pair{Scores::agreements, "agreements"}};
};
template <>
struct Choices<Rotation> {
  static constexpr const char* kind = "rotation";
  static constexpr std::array names = {std::pair{Rotation::none, "none"},
                                       std::pair{Rotation::rope, "rope"}};
};
template <>
struct Choices<ScoreBias> {
  static constexpr const char* kind = "score bias";
  static constexpr std::array names = {
      std::pair{ScoreBias::none, "none"},     std::pair{ScoreBias::positions, "positions"},
      std::pair{ScoreBias::direct, "direct"}, std::pair{ScoreBias::distance, "distance"},
      std::pair{ScoreBias::alibi, "alibi"},   std::pair{ScoreBias::kerple, "kerple"},
      std::pair{ScoreBias::fire, "fire"},     std::pair{ScoreBias::buckets, "buckets"},
      std::pair{ScoreBias::gray, "gray"},     std::pair{ScoreBias::log, "log"},
      std::pair{ScoreBias::window, "window"}, std::pair{ScoreBias::pairs, "pairs"}};
};
template <>
struct Choices<Weighting> {
  static constexpr const char* kind = "weighting";
  static constexpr std::array names = {
      std::pair{Weighting::softmax, "softmax"},  std::pair{Weighting::hard, "hard"},
      std::pair{Weighting::relu, "relu"},        std::pair{Weighting::relu_rows, "relu_rows"},
      std::pair{Weighting::sums, "sums"},        std::pair{Weighting::kernel, "kernel"},
      std::pair{Weighting::linear, "linear"},    std::pair{Weighting::low_rank, "low_rank"},
      std::pair{Weighting::max_plus, "max_plus"}};
};
template <>
struct Choices<PairMask> {
  static constexpr const char* kind = "pair mask";
  static constexpr std::array names = {std::pair{PairMask::none, "none"},
                                       std::pair{PairMask::edges, "edges"}};
};
template <>
struct Choices<Encoding> {
  static constexpr const char* kind = "encoding";
  static constexpr std::array names = {
      std::pair{Encoding::one_hot, "one_hot"}, std::pair{Encoding::binary, "binary"},
      std::pair{Encoding::sinusoidal, "sinusoidal"}, std::pair{Encoding::random, "random"},
      std::pair{Encoding::learned, "learned"}};
};
template <>
struct Choices<Biases> {
  static constexpr const char* kind = "biases";
  static constexpr std::array names = {std::pair{Biases::all, "all"},
                                       std::pair{Biases::none, "none"}};
};
template <>
struct Choices<Join> {
  static constexpr const char* kind = "join";
  static constexpr std::array names = {std::pair{Join::concatenate, "concatenate"},
                                       std::pair{Join::add, "add"}};
};
template <>
struct Choices<Normalisation> {
  static constexpr const char* kind = "normalisation";
  static constexpr std::array names = {std::pair{Normalisation::none, "none"},
                                       std::pair{Normalisation::before, "before"},
                                       std::pair{Normalisation::after, "after"}};
};
template <>
struct Choices<Activation> {
  static constexpr const char* kind = "activation";
  static constexpr std::array names = {std::pair{Activation::relu, "relu"},
                                       std::pair{Activation::gelu, "gelu"},
                                       std::pair{Activation::gelu_tanh, "gelu_tanh"}};
};
template <>
struct Choices<Wrap> {
  static constexpr const char* kind = "wrap";
  static constexpr std::array names = {std::pair{Wrap::none, "none"},
                                       std::pair{Wrap::scale, "scale"}};
};
template <>
struct Choices<ValueGates> {
  static constexpr const char* kind = "value gates";
  static constexpr std::array names = {std::pair{ValueGates::none, "none"},
                                       std::pair{ValueGates::mix, "mix"},
                                       std::pair{ValueGates::mix_and_hidden, "mix_and_hidden"}};
};
template <>
struct Choices<Loss> {
  static constexpr const char* kind = "loss";
  static constexpr std::array names = {std::pair{Loss::squared_error, "squared_error"},
                                       std::pair{Loss::cross_entropy, "cross_entropy"}};
};

template <class Enumeration>
std::string_view name_of(Enumeration value) {
  for (const auto& [known, name] : Choices<Enumeration>::names) {
    if (known == value) return name;
  }
  return "?";
}

}  // namespace

std::string_view to_string(AttentionSource source) { return name_of(source); }
std::string_view to_string(SourceScale scale) { return name_of(scale); }
std::string_view to_string(Scores scores) { return name_of(scores); }
std::string_view to_string(Rotation rotation) { return name_of(rotation); }
std::string_view to_string(ScoreBias bias) { return name_of(bias); }
std::string_view to_string(Weighting weighting) { return name_of(weighting); }
std::string_view to_string(PairMask mask) { return name_of(mask); }
std::string_view to_string(Encoding encoding) {
  return encoding == Encoding::automatic ? "" : name_of(encoding);
}
std::string_view to_string(Biases biases) { return name_of(biases); }
std::string_view to_string(Join join) { return name_of(join); }
std::string_view to_string(Normalisation normalisation) { return name_of(normalisation); }
std::string_view to_string(Activation activation) { return name_of(activation); }
std::string_view to_string(Wrap wrap) { return name_of(wrap); }
std::string_view to_string(ValueGates gates) { return name_of(gates); }
std::string_view to_string(Loss loss) { return name_of(loss); }

template <class Enumeration>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const auto& [value, name] : Choices<Enumeration>::names) names.emplace_back(name);
  return names;
}

template <class Enumeration>
Enumeration from_name(std::string_view name) {
  for (const auto& [value, its_name] : Choices<Enumeration>::names) {
    if (its_name == name) return value;
  }
  throw unknown_name(ExitCode::usage, Choices<Enumeration>::kind, name, names_of<Enumeration>());
}

template AttentionSource from_name(std::string_view);
template SourceScale from_name(std::string_view);
template Scores from_name(std::string_view);
template Rotation from_name(std::string_view);
template ScoreBias from_name(std::string_view);
template Weighting from_name(std::string_view);
template PairMask from_name(std::string_view);
template Encoding from_name(std::string_view);
template Biases from_name(std::string_view);
template Join from_name(std::string_view);
template Normalisation from_name(std::string_view);
template Activation from_name(std::string_view);
template Wrap from_name(std::string_view);
template ValueGates from_name(std::string_view);
template Loss from_name(std::string_view);
template std::vector<std::string> names_of<Encoding>();
template std::vector<std::string> names_of<Join>();
template std::vector<std::string> names_of<Normalisation>();
template std::vector<std::string> names_of<Activation>();
template std::vector<std::string> names_of<Wrap>();
template std::vector<std::string> names_of<ValueGates>();

}  // namespace posattn

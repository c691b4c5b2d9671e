#include "posattn/tasks/k_hop.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/tasks/task.h"

namespace posattn {

std::vector<int32_t> hop_places(std::span<const int32_t> word) {
  std::map<int32_t, int32_t> last;  // where each letter stood last
  std::vector<int32_t> places;
  for (size_t i = 0; i < word.size(); ++i) {
    const auto found = last.find(word[i]);
    places.push_back(found == last.end() ? -1 : found->second + 1);
    last[word[i]] = static_cast<int32_t>(i);
  }
  return places;
}

std::vector<int32_t> k_hop(std::span<const int32_t> word, int k) {
  const std::vector<int32_t> places = hop_places(word);
  std::vector<int32_t> letters;
  for (size_t i = 0; i < word.size(); ++i) {
    auto at = static_cast<int32_t>(i);
    for (int hop = 0; hop < k && at >= 0; ++hop) at = places[at];
    letters.push_back(at < 0 ? -1 : word[at]);
  }
  return letters;
}

// Learning k-hop induction heads: a sample is the number of hops k, then a word without equal
// neighbours; every letter's answer is hop_k there, or the sign for "undefined".

namespace {

// "2 abcab": k, then the letters; 'A' would be confused with 'a' on no axis, so there are 26.
class KHopText : public TaskText {
 public:
  explicit KHopText(const KHopSetting& setting) : setting_(setting) {}

  std::string_view form() const override { return "the number of hops and a word, as 2 abcab"; }

  int length_of(std::string_view line) const override {
    const size_t space = line.find(' ');
    return space == std::string_view::npos ? 0 : static_cast<int>(line.size() - space);
  }

  void read(std::string_view line, int length, const SampleRoom& room) const override {
    const size_t space = line.find(' ');
    const std::string_view hops = line.substr(0, space);
    const std::string_view word = space == std::string_view::npos ? "" : line.substr(space + 1);
    if (hops.empty() || word.empty() ||
        hops.find_first_not_of("0123456789") != std::string_view::npos) {
      throw Error(ExitCode::data, fmt::format("'{}'", shortened(line)), std::string(form()));
    }
    int k = -1;
    for (int known = 0; known <= setting_.most_hops; ++known) {
      if (hops == std::to_string(known)) k = known;
    }
    if (k < 0) {
      throw Error(ExitCode::data, fmt::format("{} hops", shortened(hops)),
                  fmt::format("0 to {}", setting_.most_hops));
    }
    for (size_t i = 0; i < word.size(); ++i) {
      const int index = word[i] - 'a';
      if (index < 0 || index >= 2 * setting_.letters) {
        throw Error(ExitCode::data, fmt::format("'{}' in a word", character_at(word, i)),
                    fmt::format("a letter from a to {}",
                                static_cast<char>('a' + 2 * setting_.letters - 1)));
      }
      if (static_cast<int>(i) < length - 1) room.tokens[i + 1] = setting_.letter(index, false);
    }
    if (static_cast<int>(word.size()) != length - 1) {
      throw Error(ExitCode::data,
                  fmt::format("a word of {} letter{}", word.size(), word.size() == 1 ? "" : "s"),
                  fmt::format("{}, as in training", length - 1));
    }
    room.tokens[0] = k;
  }

  std::string node(int32_t token, std::span<const float>) const override { return answer(token); }

  std::string answer(int32_t label) const override {
    if (label < 0 || label > setting_.undefined()) return "?";
    if (label <= setting_.most_hops) return std::to_string(label);
    if (label == setting_.undefined()) return "-";
    return std::string(1, static_cast<char>('a' + label - setting_.most_hops - 1));
  }

  // A character for each letter of the word, below which it may stand; '?' where the model answers
  // with no letter. The number of hops has no answer.
  std::string answers(std::span<const int32_t> labels) const override {
    std::string word;
    for (const int32_t label : labels.subspan(1)) {
      word += label <= setting_.most_hops ? "?" : answer(label);
    }
    return word;
  }

 private:
  static std::string shortened(std::string_view text) {
    size_t end = 24;
    if (text.size() <= end) return printable(text);
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    return printable(text.substr(0, end)) + "...";
  }
  static std::string character_at(std::string_view text, size_t at) {
    return printable(text.substr(at, std::max<size_t>(1, utf8_size(text.substr(at)))));
  }

  const KHopSetting& setting_;
};

class KHopTask : public Task {
 public:
  KHopTask(std::string name, std::string description, const KHopSetting& setting,
           std::vector<std::pair<std::string, std::string>> settings)
      : name_(std::move(name)),
        description_(std::move(description)),
        setting_(setting),
        text_(setting_),
        settings_(std::move(settings)) {}
  KHopTask(const KHopTask&) = delete;  // text_ looks at setting_

  std::string_view name() const override { return name_; }
  std::string_view description() const override { return description_; }
  TaskShape shape(int length) const override {
    return {.real_nodes = length,
            .data_columns = 0,
            .output_columns = setting_.vocabulary,
            .vocabulary = setting_.vocabulary};
  }
  int shortest_length() const override { return 2; }
  Loss loss() const override { return Loss::cross_entropy; }
  std::vector<std::pair<std::string, std::string>> settings() const override { return settings_; }
  const TaskText* text() const override { return &text_; }
  std::vector<TestAxis> test_axes() const override {
    return {{"k", "hops, asked where hop_k is defined", "number of hops k", true},
            {"k-unseen", "the same with letters that training never shows",
             "number of hops k, on unseen letters", true},
            {"letters", "0: those of training, 1: others; every k and place, as in training",
             "letters (0: of training, 1: unseen)", true}};
  }

  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    const bool by_k = sampling.axis == "k" || sampling.axis == "k-unseen";
    const bool unseen =
        sampling.axis == "k-unseen" || (sampling.axis == "letters" && sampling.x == 1);
    const auto choices = static_cast<uint32_t>(setting_.most_hops - setting_.least_hops + 1);
    const int k = by_k ? asked_hops(sampling.x)
                       : setting_.least_hops + static_cast<int>(random.below(choices));
    room.tokens[0] = k;
    int last = -1;  // of the letters but the last one
    for (int i = 1; i < length; ++i) {
      const int others = last < 0 ? setting_.letters : setting_.letters - 1;
      auto letter = static_cast<int>(random.below(static_cast<uint32_t>(others)));
      if (last >= 0 && letter >= last) ++letter;
      last = letter;
      room.tokens[i] = setting_.letter(letter, unseen);
    }
    const std::vector<int32_t> answers = k_hop(room.tokens.subspan(1), k);
    const int32_t undefined = by_k || !setting_.ask_always ? -1 : setting_.undefined();
    room.labels[0] = undefined;
    for (int i = 1; i < length; ++i) {
      room.labels[i] = answers[i - 1] < 0 ? undefined : answers[i - 1];
    }
  }

 private:
  int asked_hops(double x) const {
    const int k = static_cast<int>(x);
    if (k < 0 || k > setting_.most_hops || k != x) {
      throw Error(ExitCode::usage, fmt::format("k = {} for task {}", x, name_),
                  fmt::format("a whole number from 0 to {}", setting_.most_hops));
    }
    return k;
  }

  std::string name_, description_;
  KHopSetting setting_;
  KHopText text_;
  std::vector<std::pair<std::string, std::string>> settings_;
};

// What both settings share: a decoder as GPT's.
std::vector<std::pair<std::string, std::string>> decoder_settings(
    std::vector<std::pair<std::string, std::string>> own) {
  std::vector<std::pair<std::string, std::string>> all = {{"scratch-nodes", "0"},
                                                          {"encoding", "learned"},
                                                          {"causal", "true"},
                                                          {"split-heads", "true"},
                                                          {"join", "add"},
                                                          {"activation", "gelu-tanh"},
                                                          {"positions", "added"},
                                                          {"initial", "gpt"},
                                                          {"optimiser", "adamw"},
                                                          {"decay", "linear"},
                                                          {"test-axis", "k=0..3;letters=0,1"}};
  for (auto& setting : own) {
    const auto same =
        std::ranges::find(all, setting.first, &std::pair<std::string, std::string>::first);
    if (same == all.end()) {
      all.push_back(std::move(setting));
    } else {
      same->second = setting.second;
    }
  }
  return all;
}

// The setting of arXiv 2410.01686: hops 0 to 3, 5 letters and 5 others, a vocabulary of 16.
constexpr KHopSetting paper_setting = {
    .most_hops = 3, .letters = 5, .vocabulary = 16, .ask_always = true};
// The setting of arXiv 2402.09268: hops 0 to 16, 4 letters, fresh samples.
constexpr KHopSetting sanford_setting = {
    .most_hops = 16, .letters = 4, .vocabulary = 26, .ask_always = true};
// Induction alone: one hop among 16 letters.
constexpr KHopSetting one_hop_setting = {
    .most_hops = 1, .letters = 16, .vocabulary = 35, .ask_always = true, .least_hops = 1};

}  // namespace

const KHopSetting* k_hop_setting(std::string_view task) {
  if (task == "k-hop") return &paper_setting;
  if (task == "one-hop") return &one_hop_setting;
  return task == "k-hop-sanford" ? &sanford_setting : nullptr;
}

const Task& k_hop_task() {
  static const KHopTask task("k-hop", "the letter k hops back, for k = 0..3 (induction heads)",
                             paper_setting,
                             decoder_settings({{"length", "99"},
                                               {"width", "60"},
                                               {"heads", "3"},
                                               {"depth", "3"},
                                               {"mlp-width", "240"},
                                               {"encoding-size", "60"},
                                               {"samples", "50000"},
                                               {"epochs", "128"},
                                               {"batch", "64"},
                                               {"beta2", "0.95"},
                                               {"weight-decay", "0.1"},
                                               {"clip", "1"},
                                               {"schedule", "constant"}}));
  return task;
}

const Task& one_hop_task() {
  static const KHopTask task("one-hop", "the letter one hop back among 16 letters (induction)",
                             one_hop_setting,
                             decoder_settings({{"length", "32"},
                                               {"width", "64"},
                                               {"heads", "2"},
                                               {"depth", "1"},
                                               {"mlp-width", "128"},
                                               {"encoding", ""},
                                               {"initial", "paper"},
                                               {"samples", "6400"},
                                               {"fresh", "true"},
                                               {"epochs", "60"},
                                               {"batch", "64"},
                                               {"lr", "2e-3"},
                                               {"clip", "1"},
                                               {"test-axis", "k=1;letters=0,1"}}));
  return task;
}

const Task& k_hop_sanford_task() {
  static const KHopTask task("k-hop-sanford",
                             "the letter k hops back, for k = 0..16, in Sanford's setting",
                             sanford_setting,
                             decoder_settings({{"length", "100"},
                                               {"width", "128"},
                                               {"heads", "4"},
                                               {"depth", "4"},
                                               {"mlp-width", "512"},
                                               {"encoding-size", "128"},
                                               {"normalisation", "before"},
                                               {"tied-output", "true"},
                                               {"samples", "32000"},
                                               {"fresh", "true"},
                                               {"epochs", "100"},
                                               {"batch", "32"},
                                               {"lr", "1e-4"},
                                               {"weight-decay", "0.01"},
                                               {"schedule", "warmup-linear"},
                                               {"warmup-steps", "1000"},
                                               {"test-axis", "k=1,2,4,8,16;letters=0"}}));
  return task;
}

}  // namespace posattn

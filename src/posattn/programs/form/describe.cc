#include "posattn/programs/form/describe.h"

#include <fmt/format.h>

namespace posattn {
namespace {

using Kind = Expression::Kind;

// How tightly the outermost operation binds.
enum Binding { sum = 1, product = 2, closed = 3 };

struct Phrase {
  std::string text;
  Binding binding = closed;
};

std::string inside(const Phrase& phrase, Binding least) {
  return phrase.binding < least ? "(" + phrase.text + ")" : phrase.text;
}

class Describer {
 public:
  Describer(const StaticProgram& program, const Round& round, size_t longest)
      : program_(program), round_(round), longest_(longest) {
    for (const Instruction& instruction : round.instructions) {
      Phrase phrase = describe(instruction);
      // A shared part may be repeated without end.
      if (phrase.text.size() > 4 * longest_) phrase = {phrase.text.substr(0, longest_) + "…"};
      phrases_.push_back(std::move(phrase));
    }
  }

  std::string update(const Update& update) const {
    std::string text = program_.words[update.word].name + " = " + phrases_[update.instruction].text;
    if (text.size() > longest_) text = text.substr(0, longest_) + "…";
    return text;
  }

 private:
  Phrase describe(const Instruction& instruction) const {
    const auto operand = [&](int k) -> const Phrase& { return phrases_[instruction.operands[k]]; };
    const auto call = [&](const char* name) {
      std::string text = std::string(name) + "(";
      for (size_t k = 0; k < instruction.operands.size(); ++k) {
        text += (k == 0 ? "" : ", ") + operand(static_cast<int>(k)).text;
      }
      return Phrase{text + ")"};
    };
    switch (instruction.kind) {
      case Kind::word:
        return {program_.words[instruction.index].name};
      case Kind::received:
        return {heard(instruction.index)};
      case Kind::constant:
        return {fmt::format("{}", instruction.number)};
      case Kind::add: {
        const std::string second = inside(operand(1), sum);
        if (second.starts_with('-')) {
          return {inside(operand(0), sum) + " - " + second.substr(1), sum};
        }
        return {inside(operand(0), sum) + " + " + second, sum};
      }
      case Kind::scale:
        if (instruction.number == -1) return {"-" + inside(operand(0), product), product};
        return {fmt::format("{} {}", instruction.number, inside(operand(0), product)), product};
      case Kind::minimum:
        return call("min");
      case Kind::maximum:
        return call("max");
      case Kind::absolute:
        return call("abs");
      case Kind::relu:
        return call("relu");
      case Kind::at_least:
        return {"[" + operand(0).text + " >= " + operand(1).text + "]"};
      case Kind::select:
        return call("choose");
      case Kind::exchange:
        return {"min or max(" + operand(0).text + ", " + operand(1).text + ")"};
    }
    return {};
  }

  // Receives of one name that differ in their routes are told apart by a prime.
  std::string heard(int index) const {
    std::string name = round_.receives[index].name;
    for (int other = 0; other < index; ++other) {
      if (round_.receives[other].name == round_.receives[index].name) name += "'";
    }
    return name;
  }

  const StaticProgram& program_;
  const Round& round_;
  size_t longest_;
  std::vector<Phrase> phrases_;
};

}  // namespace

std::vector<std::string> describe_updates(const StaticProgram& program, const Round& round,
                                          size_t longest) {
  const Describer describer(program, round, longest);
  std::vector<std::string> lines;
  for (const Update& update : round.updates) lines.push_back(describer.update(update));
  return lines;
}

}  // namespace posattn

#include "posattn/programs/form/operation.h"
#include "posattn/programs/form/static_program.h"

namespace posattn {
namespace {

// At most so many bytes, and no part of a character.
std::string shortened(const std::string& text, size_t longest) {
  if (text.size() <= longest) return text;
  const auto continues = [&](size_t k) {
    return (static_cast<unsigned char>(text[k]) & 0xC0) == 0x80;
  };
  size_t end = longest;
  while (end > 0 && continues(end)) --end;
  return text.substr(0, end) + "…";
}

class Describer {
 public:
  Describer(const StaticProgram& program, const Round& round, size_t longest)
      : program_(program), round_(round), longest_(longest) {
    for (const Instruction& instruction : round.instructions) {
      Phrase phrase = describe(instruction);
      // A shared part may be repeated without end.
      if (phrase.text.size() > 4 * longest_) phrase = {shortened(phrase.text, longest_)};
      phrases_.push_back(std::move(phrase));
    }
  }

  std::string update(const Update& update) const {
    return shortened(program_.words[update.word].name + " = " + phrases_[update.instruction].text,
                     longest_);
  }

 private:
  Phrase describe(const Instruction& instruction) const {
    if (instruction.kind == Operator::Kind::word) return {program_.words[instruction.index].name};
    if (instruction.kind == Operator::Kind::received) return {receive_name(instruction.index)};
    std::vector<Phrase> operands;
    for (const int operand : instruction.operands) operands.push_back(phrases_[operand]);
    const Operation& row = operation(instruction.kind);
    if (row.text != nullptr) return row.text(instruction, operands.data());
    std::string text = std::string(row.name) + "(";
    for (const Phrase& operand : operands) {
      text += (&operand == operands.data() ? "" : ", ") + operand.text;
    }
    return {text + ")"};
  }

  // Receives of one name that differ in their routes are told apart by a prime.
  std::string receive_name(int index) const {
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

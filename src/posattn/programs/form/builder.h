// Builds static programs from C++, statement by statement, as a textbook writes them:
//
//   ProgramBuilder program("cumulative-sum", n);
//   const Variable x = program.input("x");
//   for (int d = 1; d < n; d *= 2) {
//     const Variable y = program.receive("y", x, [&](int i) { return i - d; });
//     program.set(x, add(program[x], program[y]));
//   }
//   StaticProgram scan = program.finish(x);
//
// Statements are gathered into rounds: a receive joins the current round unless what it reads has
// changed in it.
#pragma once

#include <functional>
#include <map>

#include "posattn/programs/form/static_program.h"

namespace posattn {

struct Variable {
  int word = -1;
};

// What a word becomes on some of the processors.
struct Piece {
  std::vector<bool> where;
  Value value;
};

class ProgramBuilder {
 public:
  // processors 0: as many as `length`
  explicit ProgramBuilder(std::string name, int length, int processors = 0);

  int length() const { return program_.length; }
  int processors() const { return program_.processors; }
  void set_task(std::string task) { program_.task = std::move(task); }

  Variable input(const std::string& name, const WordType& type = {});
  // Notes that the last `count` inputs keep a promise together. Throws Error(configuration) where
  // their number or type does not fit it.
  void promise(Promise promise, int count = 1);
  void keep_promises(std::vector<PromisedInputs> promises) {
    program_.promises = std::move(promises);
  }
  // A word that starts with these values by processor, or with zero where there are none.
  Variable word(const std::string& name, const WordType& type, std::vector<double> initial = {});

  // A word whose type follows from what it is set to, round by round: loops are unrolled, so an
  // integer's range is what it can be there. `whole`: it takes no reals.
  Variable inferred_word(const std::string& name, bool whole, std::vector<double> initial = {});

  int word_count() const { return static_cast<int>(program_.words.size()); }
  // The declared type, or for an inferred word the type of what it holds now.
  const WordType& type_of(Variable variable) const {
    return typing_[variable.word] == Typing::declared ? program_.words[variable.word].type
                                                      : current_[variable.word]->type;
  }
  Value operator[](Variable variable) const { return current_[variable.word]; }

  // A word of that name, made at its first receive, gets what each processor reads: the source's
  // word, or zero where the place is outside 0 .. processors - 1. Its type follows from that.
  using Place = std::function<int64_t(int processor)>;
  Variable receive(const std::string& name, Variable from, const Place& place, int line = 0);
  Variable receive(const std::string& name, Variable from, Route route, int line = 0);
  // Receives into a word that exists, which keeps its type.
  void receive(Variable into, Variable from, const Place& place, int line = 0);
  // What each processor receives, for words to be set to in this round.
  Value receive_value(const std::string& name, Variable from, Route route, int line = 0);
  // Puts a received value into the word of receive(name, ...).
  Variable keep(const std::string& name, const Value& received);
  // Sends messages: each processor sends its word to the one whose index its word `to`
  // holds, an integer; outside 0 .. processors - 1 nothing is sent. `permutation`: everybody sends
  // and receives, which routes in fewer layers. Messages by the same word share their way.
  Variable send(const std::string& name, Variable from, Variable to, bool permutation = false,
                int line = 0);

  // Throws Error(configuration) where the value does not fit the word's type.
  void check_fits(Variable variable, const Value& value) const;
  // Sets the word on all processors.
  void set(Variable variable, const Value& value, int line = 0);
  // Sets it by position: to `value` where `where` says so, to `otherwise` elsewhere. This becomes
  // routing: what a processor must not see, it does not read.
  void set(Variable variable, const std::vector<bool>& where, const Value& value,
           const Value& otherwise, int line = 0);
  // Sets it by position to one of several cases, which cover every processor once.
  void set(Variable variable, std::vector<Piece> pieces, int line = 0);

  // Notes that a line of the program's text belongs to the round being built.
  void note_line(int line);
  // Rounds from now on belong to this round of the program that is being lowered.
  void begin_origin(int round) { origin_ = round; }

  // A value means what it says in the round it was made in, no longer after this has grown.
  int rounds_ended() const { return static_cast<int>(program_.rounds.size()); }
  // Ends the round: what is set from now on belongs to the next one.
  void end_round() { close_round(); }
  // Ends the round if one of these words has changed, so that all can be read in one round.
  void end_round_if_changed(const std::vector<Variable>& words);

  // Removes what the outputs do not need.
  StaticProgram finish(Variable output) { return finish(std::vector<Variable>{output}); }
  // `whole`: with all words and rounds, as the program was built.
  StaticProgram finish(const std::vector<Variable>& outputs, bool whole = false);

 private:
  enum class Typing { declared, whole, free };
  Variable add_word(Word word, Typing typing);
  WordType received_type(int word, const Route& route) const;
  Route route_to(const Place& place) const;
  int add_receive(int word, Route route, const std::string& name);
  Value received(int index) const;
  bool reads_messages(const Value& value) const;
  void close_round();
  Value by_position(std::vector<Piece> pieces);
  bool is_partner(const Value& own, const Value& received) const;
  Value redirected(const Value& other, const std::vector<bool>& where);
  Value exchanged(const std::vector<bool>& where, const Value& value, const Value& otherwise);
  Value gated(const Value& value, const std::vector<bool>& where,
              std::map<const Expression*, Value>& done);
  Variable position_bit(const std::vector<bool>& where);

  StaticProgram program_;
  std::vector<Typing> typing_;   // of each word; the last two are inferred
  std::vector<WordType> types_;  // of each word at the start of the round
  std::vector<Value> current_;   // of each word, over the words at the start of the round
  std::map<std::string, int> received_words_;
  std::map<std::vector<bool>, int> position_bits_;
  Round round_;  // being built; its updates are what changed in current_
  int origin_ = -1;
  int64_t route_numbers_ = 0;
};

}  // namespace posattn

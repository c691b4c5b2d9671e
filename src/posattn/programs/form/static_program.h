// A parallel program in which who reads from whom is fixed (the paper's PCOC, parallel computation
// with oracle communication): n processors and a scratch processor that holds zeros, each with the
// same words. In a round every processor receives words from places that its index alone decides,
// then all apply the same local function.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "posattn/base/error.h"
#include "posattn/base/random.h"
#include "posattn/programs/form/expression.h"

namespace posattn {

// What a program may take for granted about an input beyond its type: `word d : ... = input
// permutation`. Who gives inputs is held to it; who draws them keeps it.

enum class Promise {
  same,         // the same number on every processor
  permutation,  // of 0 .. processors - 1
  list,         // each processor's successor in one list of all, -1 at its end
  symmetric,    // as many columns as processors: a symmetric matrix with a zero diagonal
};

// Some of a program's inputs, one after the other, that keep a promise together.
struct PromisedInputs {
  Promise promise = Promise::same;
  int first = 0, count = 1;
};

std::string_view to_string(Promise promise);
// Throws unknown_name(configuration).
Promise parse_promise(const std::string& name);

// 0 .. count - 1 in random order.
std::vector<int> random_order(int count, RandomStream& random);

// What is wrong with the columns [processors, count], or "".
std::string broken(Promise promise, std::span<const double> columns, int processors);

// Columns [processors, count] that keep it, of numbers of the type.
std::vector<double> drawn(Promise promise, const WordType& type, int processors, int count,
                          RandomStream& random);

// Where each processor reads: one place, a weighted sum of places, or whoever sent to it.
struct Route {
  // sources[i] of processor i; `processors` (the scratch processor): nothing, a zero
  std::vector<int32_t> sources;
  // Where this is not empty, processor i receives sum_k weight x word of processor and reads
  // nothing else.
  std::vector<std::vector<std::pair<int32_t, double>>> weighted;

  // Where this is not negative the route is a message: processor i receives from the one whose word
  // `destination` holds i when the round begins, and zero where nobody's does; a destination
  // outside 0 .. processors - 1 sends nothing.
  int destination = -1;
  bool permutation = false;  // of messages: everybody sends, to places that are all different
  // Words of a message that attention from the data carries (messages/by_attention.cc): the square
  // of the destination, the processor's index and its square. Empty for all other routes.
  std::vector<int> scored_by;

  bool is_weighted() const { return !weighted.empty(); }
  bool is_sent() const { return destination >= 0; }
  bool is_scored() const { return !scored_by.empty(); }
  // Words that decide who reads from whom; there are none where places are fixed.
  template <class Self, class Visitor>
  static void visit_words(Self& route, const Visitor& visit) {
    if (route.is_sent()) visit(route.destination);
    for (auto& word : route.scored_by) visit(word);
  }
  bool operator==(const Route&) const = default;
};

struct Receive {
  std::string name;
  int word = 0;  // read from the others as it was at the start of the round
  Route route;
  WordType type;
};

// A local function as a list of instructions, each after its operands.
struct Instruction : Operator {
  std::vector<int> operands;  // earlier instructions
  WordType type;
};

struct Update {
  int word = 0;
  int instruction = 0;
};

struct Round {
  std::vector<Receive> receives;
  std::vector<Instruction> instructions;
  std::vector<Update> updates;  // all at once; other words stay
  std::vector<int> lines;       // of the program's text, ascending
  int origin = -1;              // the round that this one helps to carry out, where there is one
};

struct Word {
  std::string name;  // one with a space is the builder's own, not the program's
  WordType type;
  std::vector<double> initial;  // by processor; empty: zero everywhere
};

struct StaticProgram {
  std::string name;
  std::string task;    // whose answer it computes, or ""
  int length = 0;      // the task's n
  int processors = 0;  // n, or as many as the program asks for; the scratch processor not counted
  std::vector<Word> words;
  std::vector<int> inputs, outputs;  // words: the columns of data and of the answer
  std::vector<PromisedInputs> promises;
  std::vector<Round> rounds;

  // Whether messages go where data says: an MPC program (massively parallel computation). It runs
  // in the interpreter, and becomes a network when its messages have been routed
  // (programs/messages).
  bool sends() const;

  // Whether all words stay zero where the input is zero: such programs need no constants.
  bool zero_stays_zero() const;
};

// "round 3 (line 12)"
std::string place_of(const StaticProgram& program, int round);

// The Error(data) for `count` messages to a word of `machine`, which holds one, or for a
// permutation that sends it none.
Error wrong_messages(const StaticProgram& program, int round, const Receive& receive, int machine,
                     int count);

// Throws std::logic_error for a program that no builder makes (an index out of range).
void check(const StaticProgram& program);

// What is wrong with one input [processors, inputs], as "7 of 'x' on processor 2" with what was
// expected, or nothing.
struct InputFault {
  std::string problem, expected;
};
std::optional<InputFault> input_fault(const StaticProgram& program, std::span<const double> input);

// What the program computes, in T's arithmetic, for inputs [samples, processors, inputs]: outputs
// [samples, processors, outputs]. Integers of 2^24 and more need double. Throws Error(data) where
// more than one message arrives at a word, or a permutation is none: a word holds one;
// and where an operation has no value (Operation::refusal).
template <class T>
std::vector<T> run_static(const StaticProgram& program, std::span<const T> inputs, int64_t samples);

// The words of every processor after each round (and before the first) for one input:
// [rounds + 1][processors][words].
std::vector<double> trace_static(const StaticProgram& program, std::span<const double> input);

// Instructions that compute the same become one; words, receives, instructions and rounds that do
// not reach the output go; the order of what stays is kept.
void simplify(StaticProgram& program);

// live[r]: the words that matter before round r; live[rounds]: after the last, the output alone.
std::vector<std::vector<bool>> live_words(const StaticProgram& program);

// What the round does to each word, as "x = x + relu(p - x)"; long ones are cut at `longest`
// characters.
std::vector<std::string> describe_updates(const StaticProgram& program, const Round& round,
                                          size_t longest = 60);

// Where one output's value came from: the word that carried it, round by round.
struct CarriedBy {
  int processor = 0, word = 0;
  bool operator==(const CarriedBy&) const = default;
};

// For one input: who carried output `output` of a processor before the first round, after it, and
// so on to the end. Through a minimum that is the smaller operand, through a choice the chosen one,
// through a sum the larger part. Nobody before the round in which the value was made of nothing
// that was received or held.
std::vector<std::optional<CarriedBy>> follow(const StaticProgram& program,
                                             std::span<const double> input, int processor,
                                             int output = 0);

}  // namespace posattn

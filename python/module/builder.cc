// Programs written as Python functions over words.
#include <cmath>
#include <memory>
#include <set>

#include "posattn/base/error.h"
#include "posattn/task.h"
#include "program.h"

namespace posattn::python {
namespace {

std::string shown(const py::object& value) {
  return py::str(py::module_::import("posattn.errors").attr("shown")(value));
}

// What a local function computes; a number stands for a constant. Words and received values are
// those of one round: after it the value would mean another.
struct Term {
  Value value = nullptr;
  std::shared_ptr<const ProgramBuilder> program = nullptr;  // none: a constant
  int round = 0;

  // Becomes a term of what the part is of.
  void join(const Term& part) {
    if (!part.program) return;
    if (program && program != part.program) {
      throw Error(ExitCode::configuration, "a term of another program", "words of this one");
    }
    program = part.program;
    round = part.round;
    const int now = program->rounds_ended();
    if (round == now) return;
    throw Error(ExitCode::configuration,
                "a term of round " + std::to_string(round) + " in round " + std::to_string(now),
                "terms of one round: reading a changed word from another processor ends it",
                "put the term into a word first: t = program.word('t'), then t.set(term)");
  }
};

Term term_of(double number) {
  if (!std::isfinite(number)) {
    throw Error(ExitCode::configuration, "the constant " + std::to_string(number),
                "a finite number");
  }
  return {constant_value(number)};
}

// f of terms that are all of one round.
template <class F, class... Terms>
Term made(const F& f, const Terms&... terms) {
  Term result;
  (result.join(terms), ...);
  result.value = f(terms.value...);
  return result;
}

// "real", "bit" or (low, high); None, for a word, is what it is set to.
WordType type_of(const py::object& type) {
  if (py::isinstance<py::str>(type)) {
    if (type.equal(py::str("real"))) return WordType::real();
    if (type.equal(py::str("bit"))) return WordType::bit();
  } else if (py::isinstance<py::tuple>(type)) {
    py::detail::make_caster<std::pair<int64_t, int64_t>> range;
    if (range.load(type, true)) {
      const auto [low, high] = py::detail::cast_op<std::pair<int64_t, int64_t>>(range);
      if (low <= high) return WordType::integer(low, high);
    }
  }
  throw Error(ExitCode::configuration, "a word of type " + shown(type),
              "'real', 'bit' or (low, high) for whole numbers");
}

// Once finished, a builder builds no more.
class Building {
 public:
  Building(std::string name, int length, int processors)
      : builder_(std::make_shared<ProgramBuilder>(std::move(name), length, processors)) {}

  ProgramBuilder& builder() {
    if (!builder_) throw Error(ExitCode::usage, "the program is finished", "a new builder");
    return *builder_;
  }
  Term value(int index) { return {builder()[word(index)], builder_, builder().rounds_ended()}; }
  // The term's value, for this round of this program.
  Value checked(const Term& term) {
    Term here{nullptr, builder_, builder().rounds_ended()};
    here.join(term);
    return term.value;
  }
  // A word of this builder.
  Variable word(int index) {
    if (index < 0 || index >= builder().word_count()) {
      throw Error(ExitCode::usage, "word " + std::to_string(index), "one of this program");
    }
    return {index};
  }
  std::vector<bool> where(const py::function& holds) {
    std::vector<bool> places;
    places.reserve(builder().processors());
    for (int i = 0; i < builder().processors(); ++i) places.push_back(py::bool_(holds(i)));
    return places;
  }

  int input(const std::string& name, const WordType& type) {
    if (!inputs_.insert(name).second) {
      throw Error(ExitCode::configuration, "two inputs '" + name + "'", "a name for each");
    }
    return builder().input(name, type).word;
  }

  int receive(const std::string& name, int from, const py::function& place) {
    check_new(name);
    std::vector<int64_t> places;
    places.reserve(builder().processors());
    for (int i = 0; i < builder().processors(); ++i) places.push_back(place_of(place, i));
    return builder().receive(name, word(from), [&](int i) { return places[i]; }).word;
  }
  int send(const std::string& name, int from, int to, bool permutation) {
    check_new(name);
    return builder().send(name, word(from), word(to), permutation).word;
  }

  std::unique_ptr<HeldProgram> finish(const std::vector<int>& outputs, const std::string& task) {
    if (outputs.empty()) throw Error(ExitCode::usage, "a program without outputs", "a word");
    std::vector<Variable> words;
    words.reserve(outputs.size());
    for (const int output : outputs) words.push_back(word(output));
    if (!task.empty()) find_task(task);  // refuses what is not there
    builder().set_task(task);
    ProgramBuilder whole = builder();
    auto held = std::make_unique<HeldProgram>(builder().finish(words), whole.finish(words, true),
                                              "", Settings{});
    builder_.reset();
    return held;
  }

 private:
  // To the builder a second receive of a name is the same word again.
  void check_new(const std::string& name) {
    if (received_.insert(name).second) return;
    throw Error(ExitCode::configuration, "two words '" + name + "' that are received",
                "a name for each, or none");
  }
  static int64_t place_of(const py::function& place, int processor) {
    const py::object found = place(processor);
    try {
      return found.cast<int64_t>();
    } catch (const py::cast_error&) {
      throw Error(ExitCode::configuration,
                  "place " + shown(found) + " for processor " + std::to_string(processor),
                  "a whole number of 64 bits, as i // 2");
    }
  }

  std::shared_ptr<ProgramBuilder> builder_;
  std::set<std::string> inputs_, received_;
};

}  // namespace

void add_builder(py::module_& module) {
  py::class_<Term>(module, "Term")
      .def(py::init(&term_of), py::arg("number"))
      .def("add", [](const Term& a, const Term& b) { return made(add, a, b); })
      .def("subtract", [](const Term& a, const Term& b) { return made(subtract, a, b); })
      .def("scale",
           [](const Term& a, double factor) {
             return made([&](const Value& value) { return scale(factor, value); }, a);
           })
      .def("minimum", [](const Term& a, const Term& b) { return made(minimum, a, b); })
      .def("maximum", [](const Term& a, const Term& b) { return made(maximum, a, b); })
      .def("absolute", [](const Term& a) { return made(absolute, a); })
      .def("relu", [](const Term& a) { return made(relu, a); })
      .def("at_least", [](const Term& a, const Term& b) { return made(at_least, a, b); })
      .def("equal", [](const Term& a, const Term& b) { return made(equal, a, b); })
      .def("negation", [](const Term& a) { return made(negation, a); })
      .def("select",
           [](const Term& condition, const Term& a, const Term& b) {
             const auto chosen = [](const Value& bit, const Value& x, const Value& y) {
               return select(bit, x, y);  // of the two of that name
             };
             return made(chosen, condition, a, b);
           })
      .def_property_readonly("type", [](const Term& a) { return to_string(a.value->type); });
  py::class_<Building>(module, "Builder")
      .def(py::init([](const std::string& name, int64_t length, int processors) {
             if (length < 1 || length > 1 << 20 || processors < 0 || processors > 1 << 20) {
               throw Error(ExitCode::usage, "length = " + std::to_string(length), "1 to 1048576");
             }
             return std::make_unique<Building>(name, static_cast<int>(length), processors);
           }),
           py::arg("name"), py::arg("length"), py::arg("processors"))
      .def_property_readonly("length", [](Building& self) { return self.builder().length(); })
      .def_property_readonly("processors",
                             [](Building& self) { return self.builder().processors(); })
      .def(
          "input",
          [](Building& self, const std::string& name, const py::object& type) {
            return self.input(name, type_of(type));
          },
          py::arg("name"), py::arg("type"))
      .def(
          "word",
          [](Building& self, const std::string& name, const py::object& type,
             const std::vector<double>& initial) {
            const auto wanted = static_cast<size_t>(self.builder().processors());
            if (!initial.empty() && initial.size() != wanted) {
              throw Error(ExitCode::configuration,
                          std::to_string(initial.size()) + " first values of word '" + name + "'",
                          std::to_string(wanted) + ", one for each processor");
            }
            return type.is_none() ? self.builder().inferred_word(name, false, initial).word
                                  : self.builder().word(name, type_of(type), initial).word;
          },
          py::arg("name"), py::arg("type"), py::arg("initial"))
      .def("value", &Building::value)
      .def("receive", &Building::receive, py::arg("name"), py::arg("source"), py::arg("place"))
      .def("send", &Building::send, py::arg("name"), py::arg("source"), py::arg("to"),
           py::arg("permutation"))
      .def("set",
           [](Building& self, int word, const Term& value) {
             self.builder().set(self.word(word), self.checked(value));
           })
      .def(
          "set_where",
          [](Building& self, int word, const py::function& where, const Term& value,
             const Term& otherwise) {
            const std::vector<bool> places = self.where(where);
            self.builder().set(self.word(word), places, self.checked(value),
                               self.checked(otherwise));
          },
          py::arg("word"), py::arg("where"), py::arg("value"), py::arg("otherwise"))
      .def("finish", &Building::finish, py::arg("outputs"), py::arg("task"));
}

}  // namespace posattn::python

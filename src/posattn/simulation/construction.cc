#include <algorithm>
#include <functional>

#include "posattn/model/spec/parameters.h"
#include "posattn/model/spec/tensor_names.h"
#include "posattn/simulation/simulate.h"

namespace posattn::simulation {
namespace {

using Form = std::vector<double>;  // over [own words | words of the node that is read]

Form operator+(Form left, const Form& right) {
  std::ranges::transform(left, right, left.begin(), std::plus<>());
  return left;
}

Form operator-(Form left, const Form& right) {
  std::ranges::transform(left, right, left.begin(), std::minus<>());
  return left;
}

// One layer of a positional network under construction: which node each one reads, and hidden units
// as linear forms over the words of both. Biases are zero; constants come from word 0, which is 1
// on every node but the last.
class LayerWriter {
 public:
  LayerWriter(int width, std::vector<int> places)
      : width_(width), places_(std::move(places)), constants_(width) {}

  Form own(int word, double factor = 1) const { return form_of(word, factor); }
  Form read(int word, double factor = 1) const { return form_of(width_ + word, factor); }

  // word += form
  void keep(const Form& form, int word);
  void keep_positive(const Form& form, int word) { add_target(add_unit(form, 1, 0), word, 1); }
  // word += factor table(form)
  void add_table(const FittedTable& table, const Form& form, int word, double factor = 1);
  // A hidden unit relu(form), and what a word gets of it.
  int add_relu(const Form& form) { return add_unit(form, 1, 0); }
  void add_target(int unit, int word, double factor) { targets_.push_back({unit, word, factor}); }
  void add_constant(int word, double constant) { constants_[word] += constant; }

  int units() const { return static_cast<int>(units_.size()) + 1; }  // with that of the constants
  void write(const ModelSpec& spec, Parameters<float>& parameters, int layer) const;

 private:
  // relu(direction (form - knot))
  struct Unit {
    int form;
    double direction, knot;
  };
  struct Target {
    int unit, word;
    double factor;
  };
  Form form_of(int place, double factor) const {
    Form form(int64_t{2} * width_);
    form[place] = factor;
    return form;
  }
  int add_unit(const Form& form, double direction, double knot) {
    if (forms_.empty() || forms_.back() != form) forms_.push_back(form);
    units_.push_back({static_cast<int>(forms_.size()) - 1, direction, knot});
    return static_cast<int>(units_.size()) - 1;
  }

  int width_;
  std::vector<int> places_;  // by node
  std::vector<Form> forms_;
  std::vector<Unit> units_;
  std::vector<Target> targets_;
  std::vector<double> constants_;  // of each word
};

void LayerWriter::keep(const Form& form, int word) {
  add_target(add_unit(form, 1, 0), word, 1);
  add_target(add_unit(form, -1, 0), word, -1);
}

void LayerWriter::add_table(const FittedTable& table, const Form& form, int word, double factor) {
  const HingeSum sum = table.hinges();
  add_constant(word, factor * sum.constant);
  for (const Hinge& hinge : sum.hinges) {
    add_target(add_unit(form, hinge.direction, hinge.knot), word, factor * hinge.slope);
  }
}

void LayerWriter::write(const ModelSpec& spec, Parameters<float>& parameters, int layer) const {
  const auto tensor = [&](const std::string& name) {
    return parameters[names::of_layer(layer, name)];
  };
  const auto first = tensor(names::weight(names::mlp_map(0))),
             second = tensor(names::weight(names::mlp_map(1))),
             value = tensor(names::weight(names::value)),
             out = tensor(names::weight(names::output));
  const int64_t in = spec.joined_size(), hidden = spec.mlp_width;
  const auto count = static_cast<int64_t>(units_.size());
  for (int64_t u = 0; u < count; ++u) {
    const Unit& unit = units_[u];
    const Form& form = forms_[unit.form];
    for (int64_t k = 0; k < in; ++k) {
      const double constant = k == 0 ? unit.knot : 0;
      first[u * in + k] = static_cast<float>(unit.direction * (form[k] - constant));
    }
  }
  for (const Target& target : targets_) {
    second[target.word * hidden + target.unit] += static_cast<float>(target.factor);
  }
  // The last unit is the word that is 1, and with it all constants.
  first[count * in] = 1;
  for (int w = 0; w < width_; ++w) {
    second[w * hidden + count] = static_cast<float>(constants_[w] + (w == 0 ? 1 : 0));
    // The head hands over, as they are, the words that a form asks for.
    const auto asks = [&](const Form& form) { return form[width_ + w] != 0; };
    if (std::ranges::any_of(forms_, asks)) {
      value[int64_t{w} * width_ + w] = out[int64_t{w} * width_ + w] = 1;
    }
  }
  std::ranges::copy(places_, tensor(std::string(names::routes)).begin());
}

class Construction {
 public:
  Construction(const StandardNetwork& network, const std::vector<FoldedLayer>& layers,
               const std::vector<std::vector<FittedTable>>& tables, const KeyPlan& plan)
      : network_(network), layers_(layers), tables_(tables), plan_(plan), heads_(network.heads()) {
    for (const FoldedLayer& layer : layers) {
      hidden_ = std::max(hidden_, layer.hidden());
      products_ = std::max(products_, layer.product_count());
      channels_ = std::max(channels_, layer.channel_count());
    }
    own_ = next_word(hidden_);
    if (plan.rotated) {
      input_ = next_word(std::ranges::max(layers, {}, &FoldedLayer::words).words());
    } else {
      query_ = next_word(products_);
      key_ = next_word(products_);
      linear_ = next_word(heads_);
    }
    value_ = next_word(channels_);
    place_ = next_word(heads_ * plan.steps());
    score_ = next_word(heads_);
    taken_ = next_word(channels_);
    denominator_ = next_word(heads_);
    numerator_ = next_word(channels_);
    for (int stage = 0; stage < plan.steps() + plan.rounds(); ++stage) {
      const bool some = stage >= plan.steps() || plan.misses_keys(stage);
      absent_.push_back(some ? next_word(1) : -1);
    }
  }

  Model run(const Model& original) {
    if (plan_.copies > 1) add_spread();
    for (size_t l = 0; l < layers_.size(); ++l) {
      for (int step = 0; step < plan_.steps(); ++step) add_step(l, step);
      if (plan_.steps() > 1) add_last_sum(l);
      for (int round = 0; round < plan_.rounds(); ++round) add_round(l, round);
      add_exponentials(l);
      add_mlp(l);
    }
    ModelSpec spec;
    spec.real_nodes = network_.real_nodes;
    spec.scratch_nodes = plan_.all_nodes() - network_.real_nodes;
    spec.data_columns = network_.data_columns;
    spec.output_columns = network_.decoder.weight.rows;
    spec.vocabulary = network_.vocabulary;
    spec.tokens_and_values = network_.tokens_and_values;
    spec.read_nodes = original.spec.read_nodes;
    spec.loss = original.spec.loss;
    // A token takes the place of joined positions.
    spec.positions_added = network_.vocabulary > 0;
    spec.positions_in_input = !spec.positions_added;
    spec.encoding = spec.positions_added ? Encoding::learned : Encoding::one_hot;
    spec.scores = Scores::routes;
    spec.width = width_;
    spec.heads = 1;
    spec.depth = static_cast<int>(written_.size());
    spec.mlp_width = std::ranges::max_element(written_, {}, &LayerWriter::units)->units();
    spec = resolve(spec);
    Model model{spec, Parameters<float>(spec), original.origin};
    write_ends(model);
    for (size_t l = 0; l < written_.size(); ++l) {
      written_[l].write(spec, model.parameters, static_cast<int>(l));
    }
    return model;
  }

 private:
  // The first of `count` words.
  int next_word(int count) {
    width_ += count;
    return width_ - count;
  }

  // A layer where copy c of node i reads read(i, c); below 0: the last node, which is zero.
  template <class Read>
  LayerWriter layer_that_reads(const Read& read) const {
    std::vector<int> places(plan_.all_nodes(), plan_.all_nodes() - 1);
    for (int i = 0; i < plan_.nodes; ++i) {
      for (int c = 0; c < plan_.copies; ++c) {
        const int place = read(i, c);
        if (place >= 0) places[plan_.node(i, c)] = place;
      }
    }
    LayerWriter layer(width_, std::move(places));
    for (const int word : absent_) {
      if (word >= 0) layer.keep_positive(layer.own(word), word);
    }
    return layer;
  }
  LayerWriter local_layer() const {
    return layer_that_reads([](int, int) { return -1; });
  }

  static void keep_own(LayerWriter& layer, int first, int count) {
    for (int k = first; k < first + count; ++k) layer.keep(layer.own(k), k);
  }

  // Takes so much off where a copy reads nothing in a stage that a softplus adds exactly nothing.
  Form less_absent(const LayerWriter& layer, Form form, int stage) const {
    const int word = absent_[stage];
    return word < 0 ? form : form - layer.own(word);
  }

  // Calls visit(word, form) for what a layer needs of a node: forms of the words before it.
  template <class Visit>
  void visit_needed(size_t l, const Visit& visit) const {
    const FoldedLayer& folded = layers_[l];
    for (int k = 0; k < folded.hidden(); ++k) {
      const double* row = folded.own.weight.row(k);
      visit(own_ + k, AffineForm{{row, row + folded.own.weight.columns}, folded.own.bias[k]});
    }
    for (int k = 0; plan_.rotated && k < folded.words(); ++k) {
      AffineForm word{std::vector<double>(folded.words())};
      word.weight[k] = 1;
      visit(input_ + k, word);
    }
    int product = 0, channel = 0;
    for (int h = 0; h < heads_; ++h) {
      const FoldedHead& head = folded.heads[h];
      if (!plan_.rotated) {
        const FoldedScores& scores = head.scores.front();
        visit(linear_ + h, scores.linear);
        for (const ScoreProduct& term : scores.products) {
          visit(query_ + product, term.query);
          visit(key_ + product++, term.key);
        }
      }
      for (const ValueChannel& term : head.channels) visit(value_ + channel++, term.value);
    }
  }

  // The input is known to copy 0 alone.
  void add_spread() {
    LayerWriter layer = layer_that_reads([&](int i, int) { return plan_.node(i, 0); });
    visit_needed(0, [&](int word, const AffineForm&) { layer.keep(layer.read(word), word); });
    for (int k = 0; k < heads_ * plan_.steps(); ++k) {
      layer.keep_positive(layer.own(place_ + k), place_ + k);
    }
    written_.push_back(std::move(layer));
  }

  void add_step(size_t l, int step) {
    const FoldedLayer& folded = layers_[l];
    const auto& tables = tables_[l];
    LayerWriter layer = layer_that_reads([&](int i, int c) {
      const int j = plan_.key(i, c, step);
      return j < 0 ? -1 : plan_.node(j, 0);
    });
    keep_own(layer, own_, folded.hidden());
    const bool more = step + 1 < plan_.steps();
    if (more) {
      if (plan_.rotated) {
        keep_own(layer, input_, folded.words());
      } else {
        keep_own(layer, query_, folded.product_count());
        keep_own(layer, key_, folded.product_count());
        keep_own(layer, linear_, heads_);
      }
      if (step > 0) keep_own(layer, value_, folded.channel_count());
    }
    for (int h = 0; l == 0 && h < heads_; ++h) {
      for (int later = step + 1; later < plan_.steps(); ++later) {
        layer.keep_positive(layer.own(place(h, later)), place(h, later));
      }
    }
    int product = 0, channel = 0;
    for (int h = 0; h < heads_; ++h) {
      const FoldedHead& head = folded.heads[h];
      const FoldedScores& scores = head.at(step);
      // With RoPE a node knows its words alone, of which each step takes other forms.
      Form rest = plan_.rotated ? of_input(scores.linear, true) + of_input(scores.own, false)
                                : layer.read(linear_ + h);
      if (l == 0) rest = rest + layer.own(place(h, step));
      layer.keep(less_absent(layer, rest, step), score_ + h);
      for (const ScoreProduct& term : scores.products) {
        const Form a = plan_.rotated ? of_input(term.query, false) : layer.own(query_ + product),
                   b = plan_.rotated ? of_input(term.key, true) : layer.read(key_ + product);
        layer.add_table(tables[term.of_sum], a + b, score_ + h, 0.25);
        layer.add_table(tables[term.of_difference], a - b, score_ + h, -0.25);
        ++product;
      }
      for (const ValueChannel& term : head.channels) {
        const int value = value_ + channel, taken = taken_ + channel;
        ++channel;
        if (step == 0) {
          layer.add_table(tables[term.logarithm], layer.read(value), value);
        } else {
          layer.keep(layer.read(value), taken);
        }
      }
    }
    if (step == 1) start(layer, l);
    if (step > 1) take_in(layer, l, step - 1);
    written_.push_back(std::move(layer));
  }

  // A form of the words before the layer, of the node itself or of the one that it reads.
  Form of_input(const AffineForm& form, bool read) const {
    Form result(int64_t{2} * width_);
    result[0] = form.constant;
    std::ranges::copy(form.weight, result.begin() + (read ? width_ : 0) + input_);
    return result;
  }

  int place(int head, int step) const { return place_ + head * plan_.steps() + step; }

  template <class Visit>
  void visit_channels(size_t l, const Visit& visit) const {
    int channel = 0;
    for (int h = 0; h < heads_; ++h) {
      for (const ValueChannel& term : layers_[l].heads[h].channels) visit(h, term, channel++);
    }
  }

  // Logarithms of denominators, by head, and of numerators, by channel.
  struct Sums {
    std::vector<Form> denominators, numerators;
  };
  // Those over one key, whose logarithms of values begin at word `values`.
  Sums of_one_key(const LayerWriter& layer, size_t l, int values, bool read = false) const {
    const auto word = [&](int w) { return read ? layer.read(w) : layer.own(w); };
    Sums sums;
    for (int h = 0; h < heads_; ++h) sums.denominators.push_back(word(score_ + h));
    visit_channels(l, [&](int h, const ValueChannel&, int c) {
      sums.numerators.push_back(word(score_ + h) + word(values + c));
    });
    return sums;
  }
  // Those that a node keeps. Where there is one step, it has one key before all rounds.
  Sums kept(const LayerWriter& layer, size_t l, int rounds = 0, bool read = false) const {
    if (plan_.steps() == 1 && rounds == 0) return of_one_key(layer, l, value_, read);
    const auto word = [&](int w) { return read ? layer.read(w) : layer.own(w); };
    Sums sums;
    for (int h = 0; h < heads_; ++h) sums.denominators.push_back(word(denominator_ + h));
    visit_channels(l, [&](int, const ValueChannel&, int c) {
      sums.numerators.push_back(word(numerator_ + c));
    });
    return sums;
  }

  void start(LayerWriter& layer, size_t l) const {
    const Sums first = of_one_key(layer, l, value_);
    for (int h = 0; h < heads_; ++h) layer.keep(first.denominators[h], denominator_ + h);
    visit_channels(l, [&](int, const ValueChannel&, int c) {
      layer.keep(first.numerators[c], numerator_ + c);
    });
  }

  // L + softplus(added - L), by the tables of the node's combination `index`.
  void combine(LayerWriter& layer, size_t l, int index, const Sums& sums, const Sums& added) const {
    const auto one = [&](const Form& old, const Form& other, int table, int word) {
      layer.keep(old, word);
      layer.add_table(tables_[l][table + index], other - old, word);
    };
    for (int h = 0; h < heads_; ++h) {
      one(sums.denominators[h], added.denominators[h], layers_[l].heads[h].combination,
          denominator_ + h);
    }
    visit_channels(l, [&](int, const ValueChannel& term, int c) {
      one(sums.numerators[c], added.numerators[c], term.combination, numerator_ + c);
    });
  }
  // Takes in the key that was read in `step`, a layer before this one.
  void take_in(LayerWriter& layer, size_t l, int step) const {
    combine(layer, l, step - 1, kept(layer, l), of_one_key(layer, l, taken_));
  }

  void add_last_sum(size_t l) {
    LayerWriter layer = local_layer();
    keep_own(layer, own_, layers_[l].hidden());
    take_in(layer, l, plan_.steps() - 1);
    written_.push_back(std::move(layer));
  }

  void add_round(size_t l, int round) {
    LayerWriter layer = layer_that_reads([&](int i, int c) {
      const int partner = plan_.partner(c, round);
      return partner < 0 ? -1 : plan_.node(i, partner);
    });
    keep_own(layer, own_, layers_[l].hidden());
    Sums added = kept(layer, l, round, true);
    for (std::vector<Form>* forms : {&added.denominators, &added.numerators}) {
      for (Form& form : *forms) form = less_absent(layer, form, plan_.steps() + round);
    }
    combine(layer, l, plan_.steps() - 1 + round, kept(layer, l, round), added);
    written_.push_back(std::move(layer));
  }

  void add_exponentials(size_t l) {
    LayerWriter layer = local_layer();
    keep_own(layer, own_, layers_[l].hidden());
    const Sums sums = kept(layer, l, plan_.rounds());
    visit_channels(l, [&](int h, const ValueChannel& term, int c) {
      layer.add_table(tables_[l][term.exponential], sums.numerators[c] - sums.denominators[h],
                      numerator_ + c);
    });
    written_.push_back(std::move(layer));
  }

  // The hidden units of the original, and what its next layer or its decoder needs of them.
  void add_mlp(size_t l) {
    LayerWriter layer = layer_that_reads([&](int i, int) { return plan_.node(i, 0); });
    std::vector<int> relu;
    for (int u = 0; u < layers_[l].hidden(); ++u) {
      Form sum = layer.own(own_ + u);
      visit_channels(l, [&](int, const ValueChannel& term, int c) {
        sum = sum + layer.read(numerator_ + c, term.to_hidden[u]);
      });
      relu.push_back(layer.add_relu(sum));
    }
    if (l + 1 == layers_.size()) {
      for (int u = 0; u < layers_[l].hidden(); ++u) layer.add_target(relu[u], own_ + u, 1);
    } else {
      visit_needed(l + 1, [&](int word, const AffineForm& form) {
        layer.add_constant(word, form.constant);
        for (int u = 0; u < layers_[l].hidden(); ++u) {
          layer.add_target(relu[u], word, form.weight[u]);
        }
      });
    }
    written_.push_back(std::move(layer));
  }

  // The input gives every node the constant and the scores of places, and copy 0 what the first
  // layer needs of the data. The decoder is the original's.
  void write_ends(Model& model) const {
    constexpr float far_below = 1 << 14;  // all sums
    const ModelSpec& spec = model.spec;
    const int64_t inputs = spec.input_size(), data = spec.data_columns;
    const auto tensor = [&](const std::string& name, bool exists) {
      return exists ? model.parameters[name] : std::span<float>();
    };
    const auto encoder = tensor(names::weight(names::encoding), inputs > 0),
               table = tensor(std::string(names::tokens), spec.vocabulary > 0),
               positions = tensor(std::string(names::positions), spec.positions_added);
    // What a node has of a word by its place.
    const auto at = [&](int w, int64_t node) -> float& {
      return spec.positions_added ? positions[node * width_ + w]
                                  : encoder[w * inputs + data + node];
    };
    visit_needed(0, [&](int word, const AffineForm& form) {
      for (int64_t c = 0; c < data; ++c) {
        encoder[word * inputs + c] = static_cast<float>(form.weight[c]);
      }
      for (int64_t token = 0; token < spec.vocabulary; ++token) {
        table[token * width_ + word] = static_cast<float>(form.weight[data + token]);
      }
      for (int i = 0; i < plan_.nodes; ++i) {
        at(word, plan_.node(i, 0)) =
            static_cast<float>(form.constant + form.weight[network_.place_words() + i]);
      }
    });
    for (int i = 0; i < plan_.nodes; ++i) {
      for (int c = 0; c < plan_.copies; ++c) {
        const int64_t node = plan_.node(i, c);
        at(0, node) = 1;
        for (int step = 0; step < plan_.steps(); ++step) {
          const int j = plan_.key(i, c, step);
          if (j < 0) {
            at(absent_[step], node) = far_below;
            continue;
          }
          for (int h = 0; h < heads_; ++h) {
            at(place(h, step), node) = static_cast<float>(layers_[0].heads[h].places(i, j));
          }
        }
        for (int round = 0; round < plan_.rounds(); ++round) {
          const bool absent = plan_.partner(c, round) < 0;
          at(absent_[plan_.steps() + round], node) = absent ? far_below : 0;
        }
      }
    }
    const auto decoder = model.parameters[names::weight(names::decoding)];
    for (int c = 0; c < model.spec.output_columns; ++c) {
      float* row = &decoder[int64_t{1} * c * width_];
      row[0] = static_cast<float>(network_.decoder.bias[c]);
      for (int k = 0; k < network_.decoder.weight.columns; ++k) {
        row[own_ + k] = static_cast<float>(network_.decoder.weight(c, k));
      }
    }
  }

  const StandardNetwork& network_;
  const std::vector<FoldedLayer>& layers_;
  const std::vector<std::vector<FittedTable>>& tables_;
  const KeyPlan plan_;
  int heads_, hidden_ = 0, products_ = 0, channels_ = 0;
  int width_ = 1;  // words: 1 | and what begins at these
  int own_ = 0, input_ = 0, query_ = 0, key_ = 0, linear_ = 0, value_ = 0, place_ = 0, score_ = 0,
      taken_ = 0, denominator_ = 0, numerator_ = 0;
  std::vector<int> absent_;  // a word for each step and round, or -1
  std::vector<LayerWriter> written_;
};

}  // namespace

Model construct(const StandardNetwork& network, const std::vector<FoldedLayer>& layers,
                const std::vector<std::vector<FittedTable>>& tables, const KeyPlan& plan,
                const Model& original) {
  return Construction(network, layers, tables, plan).run(original);
}

}  // namespace posattn::simulation

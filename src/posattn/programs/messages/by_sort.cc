// Messages sorted by destination: whom a network sorts by is data, what it compares is fixed.
//
// A full permutation of N messages is in its places when it is sorted. Whole numbers that fit ride
// in the key itself, destination * P + payload, one layer a stage; other words are moved by the bit
// that says whether the keys changed places, one layer behind them.
//
// Where some send nothing, their keys are the largest: sorted, the others stand close together at
// the beginning, in order. Then each has to move up by its destination less its place, and does so
// by the bits of that distance, the highest first. Nobody meets anybody on the way: of two messages
// the later one has at least as far to go, so what the earlier one has gone by the bits
// above some place is never more.

#include <algorithm>
#include <bit>

#include "posattn/programs/messages/message_group.h"

namespace posattn {
namespace {

// Sums of keys must stay exact in fp32; exchanges add up to three.
constexpr double largest_key = 1 << 22;

Value whole(double number) { return constant_value(number); }

// The messages of one group, moved stage by stage.
class Sorter {
 public:
  Sorter(ProgramBuilder& builder, const MessageGroup& group, Variable index)
      : builder_(builder),
        group_(group),
        index_(index),
        n_(builder.processors()),
        partial_(group.may_miss(builder)),
        arrived_(group.payloads.size()) {
    for (size_t k = 0; k < group_.payloads.size(); ++k) {
      const WordType& type = builder_.type_of(group_.payloads[k]);
      const double places = static_cast<double>(type.high - type.low) + 2;
      const bool fits = !type.is_real() && places * (n_ + 1) <= largest_key;
      (fits ? packed_ : apart_).push_back(k);
    }
    make_keys();
  }

  bool is_partial() const { return partial_; }

  // Compares keys with those of partners; the lower place keeps the minimum.
  void compare(const std::vector<int32_t>& partners) {
    std::vector<bool> lower(n_);
    for (int i = 0; i < n_; ++i) lower[i] = i < partners[i];
    for (const Key& key : keys_) {
      const Value own = builder_[key.word];
      const Value other = builder_[receive(key.word, partners)];
      if (key.payload == none) {
        // Keys are different, and equal to their own where there is no partner.
        builder_.set(moved_, lower, above(own, other), above(other, own));
        builder_.set(stayed_, negation(builder_[moved_]));
      }
      builder_.set(key.word, lower, minimum(own, other), maximum(own, other));
    }
  }

  // What is not in a key goes where its key went one stage before.
  void follow(const std::vector<int32_t>& partners) {
    for (const size_t k : apart_) {
      const Variable other = receive(arrived_[k], partners);
      builder_.set(arrived_[k], select(builder_[moved_], builder_[other], builder_[arrived_[k]],
                                       builder_[stayed_]));
    }
  }

  // Sorted, a key becomes the distance still to go, and nothing where nothing was sent.
  void begin_spread() {
    for (const Key& key : keys_) {
      const auto places = static_cast<double>(key.places);
      const Value own = builder_[key.word];
      const Value left = subtract(own, scale(places, builder_[index_]));
      const Value missing = at_least(own, whole(n_ * places));
      if (key.payload == none) {
        for (const size_t k : apart_) {
          builder_.set(arrived_[k], select(missing, whole(0), builder_[arrived_[k]]));
        }
      }
      const WordType type = WordType::integer(0, n_ * key.places - 1);
      builder_.set(key.word, with_type(select(missing, whole(0), left), type));
    }
  }

  // Moves messages up by `stride` that have as far to go.
  void spread(int stride) {
    std::vector<int32_t> before(n_);
    for (int i = 0; i < n_; ++i) before[i] = i < stride ? n_ : i - stride;
    for (const Key& key : keys_) {
      const double far = stride * static_cast<double>(key.places);
      // What is left is less than twice the stride.
      const WordType left = WordType::integer(0, std::min(2 * stride, n_) * key.places - 1);
      const Value own = with_type(builder_[key.word], left);
      const Value other = with_type(builder_[receive(key.word, before)], left);
      if (key.payload == none) move_apart(own, other, far, before);
      // 1 is added to what a message carries, so that a moving message is never 0.
      const Value stays = select(at_least(own, whole(far)), whole(0), own);
      const Value comes = relu(subtract(other, whole(far)));
      builder_.set(key.word, with_type(add(stays, comes), left));
    }
  }

  std::vector<Variable> unpack() {
    for (const Key& key : keys_) {
      if (key.payload == none) continue;
      const WordType type = with_zero(builder_.type_of(group_.payloads[key.payload]));
      const Value own = builder_[key.word];
      Value payload;
      if (partial_) {  // 0: nobody; else payload - low + 1
        const Value here = with_type(own, WordType::integer(0, key.places - 1));
        payload = add(relu(subtract(here, whole(1))),
                      scale(static_cast<double>(key.low), minimum(here, whole(1))));
      } else {
        payload = add(subtract(own, scale(static_cast<double>(key.places), builder_[index_])),
                      whole(static_cast<double>(key.low)));
      }
      arrived_[key.payload] = builder_.word(group_.names[key.payload], type);
      builder_.set(arrived_[key.payload], with_type(payload, type));
    }
    return arrived_;
  }

 private:
  // A key and what rides in it: destination * places + payload - low (+ 1 where messages may be
  // missing, so that 0 is none).
  struct Key {
    Variable word;
    size_t payload = 0;
    int64_t places = 1, low = 0;
  };

  // The destination, n where there is none.
  Value destination() const {
    Value to = builder_[group_.destination];
    if (to->type.high > n_) to = minimum(to, whole(n_));
    if (to->type.low < -1) to = maximum(to, whole(-1));
    if (to->type.low < 0) to = add(to, scale(n_ + 1, at_least(whole(-1), to)));
    return with_type(to, WordType::integer(0, partial_ ? n_ : n_ - 1));
  }

  void make_keys() {
    const Value to = destination();
    const auto add_key = [&](const std::string& name, Key key, const Value& rides) {
      const int64_t highest = (partial_ ? n_ + 1 : n_) * key.places - 1;
      const WordType type = WordType::integer(0, highest);
      key.word = builder_.word(name, type);
      builder_.set(key.word,
                   with_type(add(scale(static_cast<double>(key.places), to), rides), type));
      keys_.push_back(key);
    };
    for (const size_t k : packed_) {
      const WordType& type = builder_.type_of(group_.payloads[k]);
      const int64_t shift = (partial_ ? 1 : 0) - type.low;
      add_key(group_.names[k] + " with key",
              {{}, k, type.high - type.low + 1 + (partial_ ? 1 : 0), type.low},
              add(builder_[group_.payloads[k]], whole(static_cast<double>(shift))));
    }
    if (apart_.empty()) return;
    add_key("key", {{}, none, partial_ ? 2 : 1, 0}, whole(partial_ ? 1 : 0));
    for (const size_t k : apart_) {
      arrived_[k] = builder_.word(group_.names[k], with_zero(builder_.type_of(group_.payloads[k])));
      builder_.set(arrived_[k], builder_[group_.payloads[k]]);
    }
    moved_ = builder_.word("moved", WordType::bit());
    stayed_ = builder_.word("stayed", WordType::bit());
  }

  static Value above(const Value& a, const Value& b) { return at_least(a, add(b, whole(1))); }

  Variable receive(Variable word, const std::vector<int32_t>& partners) {
    Route route;
    route.sources = partners;
    return builder_.receive("other", word, std::move(route));
  }

  void move_apart(const Value& own, const Value& other, double far,
                  const std::vector<int32_t>& before) {
    const Value goes = at_least(own, whole(far)), comes = at_least(other, whole(far));
    for (const size_t k : apart_) {
      const Value message = builder_[receive(arrived_[k], before)];
      builder_.set(arrived_[k], with_type(add(select(comes, message, whole(0)),
                                              select(goes, whole(0), builder_[arrived_[k]])),
                                          builder_.type_of(arrived_[k])));
    }
  }

  static constexpr size_t none = static_cast<size_t>(-1);

  ProgramBuilder& builder_;
  const MessageGroup& group_;
  Variable index_;
  int n_;
  bool partial_;
  std::vector<size_t> packed_, apart_;  // payloads that ride in a key, and those that do not
  std::vector<Key> keys_;
  std::vector<Variable> arrived_;
  Variable moved_, stayed_;  // whether the key changed places in the stage before
};

}  // namespace

Arrivals deliver_by_sort(ProgramBuilder& builder, const std::vector<MessageGroup>& groups,
                         Variable index) {
  std::vector<Sorter> sorters;
  sorters.reserve(groups.size());
  for (const MessageGroup& group : groups) sorters.emplace_back(builder, group, index);
  const int n = builder.processors();
  const auto stages = sorting_partners(n);
  for (size_t s = 0; s <= stages.size(); ++s) {
    builder.end_round();
    for (Sorter& sorter : sorters) {
      if (s > 0) sorter.follow(stages[s - 1]);
      if (s < stages.size()) sorter.compare(stages[s]);
    }
  }
  if (std::ranges::any_of(sorters, &Sorter::is_partial)) {
    for (Sorter& sorter : sorters) {
      if (sorter.is_partial()) sorter.begin_spread();
    }
    const auto widest = std::bit_floor(static_cast<unsigned>(std::max(1, n - 1)));
    for (int stride = static_cast<int>(widest); stride >= 1; stride /= 2) {
      builder.end_round();
      for (Sorter& sorter : sorters) {
        if (sorter.is_partial()) sorter.spread(stride);
      }
    }
  }
  Arrivals arrived;
  for (Sorter& sorter : sorters) arrived.push_back(sorter.unpack());
  return arrived;
}

}  // namespace posattn

#include <bit>
#include <stdexcept>

#include "posattn/programs/messages/message_group.h"

namespace posattn {
namespace {

// Ports `first`, `first + stride`, ... are a network of `ports`, which has the stages from `stage`
// to the mirrored one from the end.
struct Part {
  int first, stride, ports;
  int stage;

  int32_t port(int index) const { return static_cast<int32_t>(first + index * stride); }
  Part even() const { return {first, 2 * stride, (ports + 1) / 2, stage + 1}; }
  Part odd() const { return {first + stride, 2 * stride, ports / 2, stage + 1}; }
};

// Calls visit(stage, port, partner) for every pair of the part's outer stages, then for its halves.
// Two ports meet once, in the middle stage.
template <class Visit>
void for_each_pair(const Part& part, int stages, const Visit& visit) {
  if (part.ports < 2) return;
  if (part.ports == 2) {
    visit(stages / 2, part.port(0), part.port(1));
    return;
  }
  for (int a = 0; a + 1 < part.ports; a += 2) {
    visit(part.stage, part.port(a), part.port(a + 1));
    visit(stages - 1 - part.stage, part.port(a), part.port(a + 1));
  }
  for_each_pair(part.even(), stages, visit);
  for_each_pair(part.odd(), stages, visit);
}

class Switches {
 public:
  explicit Switches(int ports)
      : stages_(benes_stages(ports)), bits_(stages_, std::vector<bool>(ports)) {}

  void set(const Part& part, std::vector<int32_t> to) {
    if (part.ports < 2) return;
    if (part.ports == 2) {
      swap_if(to[0] == 1, stages_ / 2, part, 0);
      return;
    }
    const std::vector<bool> through_odd = divide(to);
    for (int a = 0; a + 1 < part.ports; a += 2) {
      swap_if(through_odd[a], part.stage, part, a);
    }
    // What each half carries, in its own numbers: input a / 2 to output to / 2.
    std::vector<int32_t> even((part.ports + 1) / 2), odd(part.ports / 2);
    for (int a = 0; a < part.ports; ++a) {
      (through_odd[a] ? odd : even)[a / 2] = to[a] / 2;
      const bool crosses = (to[a] % 2 == 1) != through_odd[a];
      if (crosses) swap_if(true, stages_ - 1 - part.stage, part, to[a] / 2 * 2);
    }
    set(part.even(), std::move(even));
    set(part.odd(), std::move(odd));
  }

  std::vector<std::vector<bool>> take() { return std::move(bits_); }

 private:
  void swap_if(bool swaps, int stage, const Part& part, int index) {
    if (!swaps) return;
    bits_[stage][part.port(index)] = bits_[stage][part.port(index + 1)] = true;
  }

  // Which inputs go through the odd half: of two neighbours one, of two neighbouring outputs one,
  // and the last of an odd number goes through the even half.
  static std::vector<bool> divide(const std::vector<int32_t>& to) {
    const auto ports = static_cast<int>(to.size());
    std::vector<int> from(ports, -1);
    for (int a = 0; a < ports; ++a) from[to[a]] = a;
    std::vector<bool> known(ports), odd(ports);
    const auto follow = [&](int input) {  // `input` goes through the even half, and what follows
      while (!known[input]) {
        known[input] = true;
        const int other_output = to[input] ^ 1;
        if (other_output >= ports) return;  // the last output has no neighbour
        const int other = from[other_output];
        known[other] = odd[other] = true;
        const int neighbour = other ^ 1;
        if (neighbour >= ports) return;
        input = neighbour;
      }
    };
    if (ports % 2 == 1) follow(ports - 1);
    for (int a = 0; a < ports; ++a) follow(a);
    return odd;
  }

  int stages_;
  std::vector<std::vector<bool>> bits_;
};

}  // namespace

int benes_stages(int ports) {
  return ports < 2 ? 0 : 2 * static_cast<int>(std::bit_width(static_cast<unsigned>(ports - 1))) - 1;
}

std::vector<std::vector<int32_t>> benes_partners(int ports) {
  const int stages = benes_stages(ports);
  std::vector<int32_t> nobody(ports);
  for (int i = 0; i < ports; ++i) nobody[i] = i;
  std::vector<std::vector<int32_t>> partners(stages, nobody);
  for_each_pair({0, 1, ports, 0}, stages, [&](int stage, int32_t a, int32_t b) {
    partners[stage][a] = b;
    partners[stage][b] = a;
  });
  return partners;
}

std::vector<std::vector<bool>> benes_switches(std::span<const int32_t> permutation) {
  const auto ports = static_cast<int>(permutation.size());
  std::vector<bool> taken(ports);
  for (const int32_t to : permutation) {
    if (to < 0 || to >= ports || taken[to]) throw std::logic_error("no permutation");
    taken[to] = true;
  }
  Switches switches(ports);
  switches.set({0, 1, ports, 0}, {permutation.begin(), permutation.end()});
  return switches.take();
}

std::vector<std::vector<int32_t>> sorting_partners(int places) {
  std::vector<std::vector<int32_t>> stages;
  for (int block = 2; block < 2 * places; block *= 2) {
    for (int stride = block / 2; stride >= 1; stride /= 2) {
      std::vector<int32_t>& stage = stages.emplace_back(places);
      for (int i = 0; i < places; ++i) {
        const int partner = i ^ (stride == block / 2 ? block - 1 : stride);
        stage[i] = static_cast<int32_t>(partner < places ? partner : i);
      }
    }
  }
  return stages;
}

}  // namespace posattn

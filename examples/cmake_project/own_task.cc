// A task of your own: registered once, it works wherever a built-in one does. Here: the difference
// of each number and the first. A small fleet of one learns it, and is measured inside and outside
// the range that it was trained on.
#include <cstdio>
#include <exception>
#include <memory>
#include <span>

#include "posattn/evaluate.h"
#include "posattn/task.h"
#include "posattn/train.h"

namespace {

class FromFirst final : public posattn::Task {
 public:
  std::string_view name() const override { return "from-first"; }
  std::string_view description() const override { return "each number minus the first"; }
  void solve(int length, std::span<const float> input, std::span<float> target) const override {
    for (int i = 0; i < length; ++i) target[i] = input[i] - input[0];
  }
};

// The same keys as in the configuration files of `posattn train`.
constexpr const char* settings = R"toml(
task = "from-first"
architecture = "homogeneous"
length = 4
width = 16
mlp-width = 16
samples = 2000
batch = 50
epochs = 20
lr = 3e-3
test-every = 0
test-scales = "1,10"
device = "cpu"
)toml";

int train_and_measure() {
  posattn::register_task(std::make_unique<FromFirst>());
  posattn::Run run(posattn::read_config_text(settings, "settings").config, 1);
  double first = 0, last = 0;
  while (!run.finished()) {
    const auto epoch = run.advance_epoch();
    if (!epoch) return 1;
    if (epoch->epoch == 1) first = epoch->train_loss;
    last = epoch->train_loss;
  }
  const posattn::Model model = run.model();
  const posattn::Evaluation evaluation =
      posattn::evaluate({.model = &model,
                         .task = &posattn::find_task(model.origin.task),
                         .values = {1, 10},
                         .samples = 200});
  std::printf("from-first: loss %.4f after one epoch, %.6f at the end\n", first, last);
  for (const posattn::Measurement& row : evaluation.rows) {
    std::printf("%s %s = %g: %s %g\n", posattn::to_string(row.split).data(), row.axis.c_str(),
                row.x, row.metric.c_str(), row.value);
  }
  return last < first / 10 ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return train_and_measure();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}

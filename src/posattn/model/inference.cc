#include "posattn/model/inference.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "posattn/base/pool.h"
#include "posattn/model/spec/check_batch.h"

namespace posattn {

Path path_for(const Model& model) { return is_compiled(model) ? Path::plain : Path::automatic; }

// Networks of one model: those prepared for a length, which calls share and nobody changes, and
// those that a call borrows to itself.
class Inference::Networks {
 public:
  Networks(std::shared_ptr<const Model> model, int threads)
      : model_(std::move(model)), options_{.path = path_for(*model_), .threads = threads} {
    borrow();  // a model that no engine takes is refused here
  }

  const Model& model() const { return *model_; }

  Pool<Network>::Borrowed borrow() { return all_.borrow(model_->spec, options_); }

  std::shared_ptr<const Network> prepared(const Batch& batch) {
    if (auto known = find(batch.real_nodes)) return known;
    check_batch(model_->spec, batch);
    const Lock one_at_a_time(preparing_);  // those who wait may want the same length
    if (auto known = find(batch.real_nodes)) return known;
    const int64_t changes = changes_;
    Pool<Network>::Borrowed own = borrow();
    own->prepare(model_->parameters, batch.real_nodes);
    std::shared_ptr<const Network> network = std::move(own);
    const Lock lock(mutex_);
    if (changes != changes_) return network;  // of weights that may be old
    if (recent_.size() == most_lengths) recent_.pop_back();
    recent_.insert(recent_.begin(), {batch.real_nodes, network});
    return network;
  }

  void forget() {
    const Lock lock(mutex_);
    ++changes_;
    recent_.clear();
  }

 private:
  static constexpr std::size_t most_lengths = 4;
  struct Prepared {
    int real_nodes;
    // Goes back to the pool when the last call that uses it has ended.
    std::shared_ptr<const Network> network;
  };

  std::shared_ptr<const Network> find(int real_nodes) {
    const Lock lock(mutex_);
    const auto found = std::ranges::find(recent_, real_nodes, &Prepared::real_nodes);
    if (found == recent_.end()) return nullptr;
    std::rotate(recent_.begin(), found, found + 1);
    return recent_.front().network;
  }

  const std::shared_ptr<const Model> model_;
  const NetworkOptions options_;
  Pool<Network> all_;
  Mutex preparing_;
  std::atomic<int64_t> changes_ = 0;  // of the weights
  Mutex mutex_;                       // guards what follows
  std::vector<Prepared> recent_;      // the last used first
};

Inference::Inference(Model model, int threads)
    : Inference(std::make_shared<const Model>(std::move(model)), threads) {}
Inference::Inference(std::shared_ptr<const Model> model, int threads)
    : networks_(std::make_unique<Networks>(std::move(model), threads)) {}
Inference::~Inference() = default;
Inference::Inference(Inference&&) noexcept = default;
Inference& Inference::operator=(Inference&&) noexcept = default;

const Model& Inference::model() const { return networks_->model(); }

void Inference::run(const Batch& batch, std::span<float> outputs) const {
  networks_->prepared(batch)->run(batch, outputs);
}

std::vector<float> Inference::run(const Batch& batch) const {
  std::vector<float> outputs(batch.samples * batch.real_nodes * model().spec.output_columns);
  run(batch, outputs);
  return outputs;
}

std::vector<float> Inference::attention(const Batch& one_sample) const {
  return networks_->borrow()->attention(model().parameters, one_sample);
}

double Inference::gradient(const Batch& batch, std::span<const uint8_t> mask,
                           Parameters<float>& gradient) const {
  return networks_->borrow()->gradient(model().parameters, batch, mask, gradient);
}

void Inference::weights_changed() const { networks_->forget(); }

}  // namespace posattn

#include "posattn/model/attention/memory.h"

#include <algorithm>

#include "posattn/kernels/generic/product.h"

namespace posattn {
namespace {

// The keys and values of all nodes, or of the last ones.
template <class T>
class KeysAndValues final : public NodeMemory<T> {
 public:
  KeysAndValues(const MemoryShape<T>& shape, void (*weights)(int64_t, T*))
      : shape_(shape), weights_(weights) {}

  void read(const NewNodes<T>& nodes) override {
    const int64_t size = shape_.key_size, columns = shape_.head_size, count = nodes.count;
    const int64_t keys = shape_.heads * size, width = shape_.heads * columns;
    values_.insert(values_.end(), nodes.values, nodes.values + count * width);
    for (int64_t i = 0; nodes.query_key != nullptr && i < count * shape_.heads; ++i) {
      const T* key = nodes.query_key + (2 * i + 1) * size;
      keys_.insert(keys_.end(), key, key + size);
    }
    const auto kept = static_cast<int64_t>(values_.size()) / width;
    const int64_t used = shape_.window > 0 ? std::min(kept, shape_.window + count - 1) : kept;
    const int64_t start = kept - used, first = read_ + count - used;  // its place in the sample
    scores_.resize(count * used);
    for (int64_t h = 0; h < shape_.heads; ++h) {
      for (int64_t r = 0; r < count; ++r) add_positions(h, r, first, &scores_[r * used], used);
      if (nodes.query_key != nullptr) {
        generic::product(false, true, count, used, size, shape_.factor,
                         nodes.query_key + 2 * h * size, 2 * keys, &keys_[start * keys + h * size],
                         keys, true, scores_.data(), used);
      }
      for (int64_t r = 0; r < count; ++r) {
        T *row = &scores_[r * used], *begin = row + lowest(r) - first,
          *end = row + used - count + r;
        weights_(++end - begin, begin);
        std::fill(row, begin, T(0));
        std::fill(end, row + used, T(0));
      }
      generic::product(false, false, count, columns, used, T(1), scores_.data(), used,
                       &values_[start * width + h * columns], width, false,
                       nodes.mixed + h * columns, width);
    }
    read_ += count;
    if (shape_.window == 0 || kept < 2 * shape_.window) return;
    values_.erase(values_.begin(), values_.end() - shape_.window * width);
    keys_.erase(keys_.begin(), keys_.end() - (keys_.empty() ? 0 : shape_.window * keys));
  }

 private:
  // The earliest place that new node r attends to.
  int64_t lowest(int64_t r) const {
    return shape_.window > 0 ? std::max<int64_t>(0, read_ + r + 1 - shape_.window) : 0;
  }

  void add_positions(int64_t head, int64_t r, int64_t first, T* scores, int64_t used) const {
    std::fill_n(scores, used, T(0));
    if (shape_.positions == nullptr) return;
    const int64_t n = shape_.nodes, place = read_ + r;
    const T* row = shape_.positions + (head * n + std::min(place, n - 1)) * n;
    std::copy_n(row, place + 1 - lowest(r), scores + lowest(r) - first);
  }

  MemoryShape<T> shape_;
  void (*weights_)(int64_t, T*);
  std::vector<T> keys_, values_, scores_;  // [nodes at hand, heads, d_k], [.., d_v]
  int64_t read_ = 0;                       // nodes of the sample
};

}  // namespace

template <class T>
std::unique_ptr<NodeMemory<T>> make_memory(Weighting weighting, const MemoryShape<T>& shape) {
  const WeightingFunctions<T>& row = row_of(weighting).in<T>();
  if (row.memory != nullptr) return row.memory(shape);
  if (row.row_weights == nullptr) return nullptr;
  return std::make_unique<KeysAndValues<T>>(shape, row.row_weights);
}

template std::unique_ptr<NodeMemory<float>> make_memory(Weighting, const MemoryShape<float>&);
template std::unique_ptr<NodeMemory<double>> make_memory(Weighting, const MemoryShape<double>&);

}  // namespace posattn

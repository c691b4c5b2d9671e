// y = x W^T + b of the block executor and the reference, for the linear blocks of a plan.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "posattn/model/plan.h"
#include "posattn/model/spec/parameters.h"

namespace posattn {

template <class T>
class LinearMaps {
 public:
  explicit LinearMaps(const Plan& plan);
  // Of some maps of a plan with so many tensors.
  LinearMaps(std::vector<LinearBlock> maps, size_t tensors)
      : maps_(std::move(maps)), transposed_(tensors) {}

  // Once a step: the kernels for float read small weights transposed. Keeps a reference to the
  // parameters until the next call.
  void prepare(const Parameters<T>& parameters);

  void forward(const LinearBlock& map, int64_t rows, const T* x, T* y) const;
  // dx = or += dy W.
  void input_gradient(const LinearBlock& map, int64_t rows, const T* dy, bool accumulate,
                      T* dx) const;
  // sums, laid out as the parameters: dW += dy^T x, db += column sums of dy.
  void weight_gradient(const LinearBlock& map, int64_t rows, const T* x, const T* dy,
                       T* sums) const;
  // Both; dx may be null where it is not wanted.
  void backward(const LinearBlock& map, int64_t rows, const T* x, const T* dy, T* sums,
                bool accumulate, T* dx) const {
    weight_gradient(map, rows, x, dy, sums);
    if (dx) input_gradient(map, rows, dy, accumulate, dx);
  }

 private:
  const T* tensor(TensorId id) const {
    return parameters_->slice(parameters_->layout().tensors()[id]).data();
  }

  std::vector<LinearBlock> maps_;
  const Parameters<T>* parameters_ = nullptr;
  std::vector<std::vector<T>> transposed_;  // by tensor; empty where it is not wanted
};

}  // namespace posattn

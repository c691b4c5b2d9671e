// The tensors of a model: names, shapes, first values, and their places in one buffer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace posattn {

// How a tensor is drawn at the start of training (see initialise).
enum class Initial {
  zero,
  one,
  log_4,
  constant,
  positive_uniform,  // U(0, value)
  xavier_uniform,
  fan_in_uniform,
  uniform,  // U(-value, value)
  normal,
  unit_normal_rows
};

struct TensorInfo {
  std::string name;
  std::vector<int64_t> shape;
  int64_t offset = 0;  // in elements, into the buffer
  int64_t size = 0;    // product of the shape
  Initial initial = Initial::zero;
  double value = 0;          // for constant and the two uniforms of a value
  int64_t fan_in = 0;        // for fan_in_uniform (a bias uses its weight's fan-in)
  bool maps = false;         // the matrix of a linear map: neither bias, gain nor table
  bool ends_branch = false;  // of a map whose output is added to x
  bool trained = true;       // false for a fixed random encoding, for routes and for absent biases
  bool of_training = false;  // learned next to the model, no part of its file
  bool integers = false;     // whole numbers (below 2^24, so floats hold them); the file has I32
};

// One tensor after another, each starting at a multiple of 16 elements (a 64-byte line of floats).
class TensorList {
 public:
  // The new tensor's place in the list; offset and size are filled in.
  int add(TensorInfo tensor);

  const std::vector<TensorInfo>& all() const { return tensors_; }
  int64_t buffer_size() const { return buffer_size_; }

 private:
  std::vector<TensorInfo> tensors_;
  int64_t buffer_size_ = 0;
};

}  // namespace posattn

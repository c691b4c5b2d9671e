// Indices of a product's matrices without divisions, which are long code on the GPU.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "posattn/kernels/cuda/product.h"

namespace posattn::cuda {

// i / divisor for 0 <= i < 2^31; 0 for a divisor of 0. With 2^s >= divisor and shift = 31 + s,
// multiplier = ceil(2^shift / divisor) < 2^32 is less than 1 too large, so i multiplier / 2^shift
// is less than 2^31 / 2^shift <= 1 / divisor too large: too little to reach the next whole number.
struct Division {
  uint32_t multiplier = 0, shift = 0;
  uint32_t divisor = 0;

  Division() = default;
  explicit Division(int64_t divisor_) : divisor(static_cast<uint32_t>(divisor_)) {
    if (divisor == 0) return;
    while ((uint64_t{1} << shift) < divisor) ++shift;
    shift += 31;
    multiplier = static_cast<uint32_t>(((uint64_t{1} << shift) + divisor - 1) / divisor);
  }

  __device__ uint32_t quotient(uint32_t i) const {
    return static_cast<uint32_t>((static_cast<uint64_t>(i) * multiplier) >> shift);
  }
  // i becomes the quotient; returns the remainder.
  __device__ uint32_t take_remainder(uint32_t& i) const {
    const uint32_t before = i;
    i = quotient(i);
    return before - i * divisor;
  }
};

// Axis::offset.
struct AxisIndex {
  int64_t stride = 0, group_stride = 0;
  Division group;

  AxisIndex() = default;
  explicit AxisIndex(const Axis& axis)
      : stride(axis.stride), group_stride(axis.group_stride), group(axis.group) {}

  __device__ int64_t offset(uint32_t i) const {
    const uint32_t member = group.take_remainder(i);
    return i * group_stride + member * stride;
  }
};

}  // namespace posattn::cuda

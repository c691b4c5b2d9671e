// The emulator itself: what tests of kernels rely on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "emulator.h"
#include "posattn/base/error.h"
#include "posattn/kernels/cuda/primitives.cuh"
#include "posattn/kernels/cuda/runtime.h"
#include "posattn/kernels/cuda/sort.h"
#include "posattn/kernels/cuda/stream.h"

namespace posattn::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Sums 0 .. threads - 1 by halves in static shared memory, and marks where the thread was.
__global__ void sum_by_halves(int* sums, int* places) {
  __shared__ int values[256];
  const int block = static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x);
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const int threads = static_cast<int>(blockDim.x * blockDim.y);
  values[thread] = thread + 1000 * block;
  for (int half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) values[thread] += values[thread + half];
  }
  if (thread == 0) sums[block] = values[0];
  places[block * threads + thread] = 1;
}

TEST(Emulator, RunsBlocksWithBarriers) {
  DeviceBuffer<int> sums(6), places(6 * 256);
  launch(sum_by_halves, dim3(3, 2), dim3(64, 4), 0, nullptr, sums.data(), places.data());
  for (int block = 0; block < 6; ++block) {
    EXPECT_EQ(sums.download()[block], 255 * 128 + 256 * 1000 * block);
  }
  EXPECT_EQ(places.download(), std::vector<int>(6 * 256, 1));
}

__global__ void shuffles(float* xored, int* down, double* first, unsigned* up) {
  const int i = static_cast<int>(threadIdx.x), lane = i % 32;
  float sum = static_cast<float>(i);
  for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
  xored[i] = sum;
  down[i] = __shfl_down_sync(0xffffffffu, lane, 3);
  first[i] = __shfl_sync(0xffffffffu, i + 0.5, 0, 8);
  up[i] = __shfl_up_sync(0xffffffffu, static_cast<unsigned>(lane), 1);
}

TEST(Emulator, ShufflesWithinWarps) {
  DeviceBuffer<float> xored(64);
  DeviceBuffer<int> down(64);
  DeviceBuffer<double> first(64);
  DeviceBuffer<unsigned> up(64);
  launch(shuffles, dim3(1), dim3(64), 0, nullptr, xored.data(), down.data(), first.data(),
         up.data());
  for (int i = 0; i < 64; ++i) {
    const int lane = i % 32;
    EXPECT_EQ(xored.download()[i], i < 32 ? 496 : 496 + 1024);
    EXPECT_EQ(down.download()[i], lane < 29 ? lane + 3 : lane);
    EXPECT_EQ(first.download()[i], (i - i % 8) + 0.5);
    EXPECT_EQ(up.download()[i], static_cast<unsigned>(lane == 0 ? 0 : lane - 1));
  }
}

__global__ void one_product(const float* a, const float* b, float* c) {
  const int g = static_cast<int>(threadIdx.x) / 4, t = static_cast<int>(threadIdx.x) % 4;
  float sums[4] = {1, 2, 3, 4};
  mma_tf32(sums, a[g * 8 + t], a[(g + 8) * 8 + t], a[g * 8 + t + 4], a[(g + 8) * 8 + t + 4],
           b[t * 8 + g], b[(t + 4) * 8 + g]);
  c[g * 8 + 2 * t] = sums[0];
  c[g * 8 + 2 * t + 1] = sums[1];
  c[(g + 8) * 8 + 2 * t] = sums[2];
  c[(g + 8) * 8 + 2 * t + 1] = sums[3];
}

TEST(Emulator, MultipliesOnTheTensorCore) {
  std::vector<float> a(16 * 8), b(8 * 8);
  for (size_t i = 0; i < a.size(); ++i) a[i] = std::sin(1.0f + static_cast<float>(i));
  for (size_t i = 0; i < b.size(); ++i) b[i] = std::cos(2.0f + static_cast<float>(i));
  DeviceBuffer<float> device_a(a), device_b(b), device_c(16 * 8);
  launch(one_product, dim3(1), dim3(32), 0, nullptr, device_a.data(), device_b.data(),
         device_c.data());
  const std::vector<float> c = device_c.download();
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      double expected = 1 + j % 2 + (i < 8 ? 0 : 2);
      for (int k = 0; k < 8; ++k) {
        expected += double{tf32_part(a[i * 8 + k])} * double{tf32_part(b[k * 8 + j])};
      }
      EXPECT_NEAR(c[i * 8 + j], expected, 2e-6);
    }
  }
}

__global__ void transposed_halves(uint32_t* matrix) {
  matrix[threadIdx.x] = transpose_matrix(matrix[threadIdx.x]);
}

TEST(Emulator, TransposesHalves) {
  std::vector<uint32_t> matrix(32);
  const auto place = [&](int row, int column) {
    return reinterpret_cast<uint16_t*>(matrix.data()) + 8 * row + column;
  };
  for (int i = 0; i < 64; ++i) *place(i / 8, i % 8) = static_cast<uint16_t>(100 + i);
  DeviceBuffer<uint32_t> device(matrix);
  launch(transposed_halves, dim3(1), dim3(32), 0, nullptr, device.data());
  matrix = device.download();
  for (int i = 0; i < 64; ++i) EXPECT_EQ(*place(i % 8, i / 8), 100 + i);
}

// c = A B with A [16, 16] upright and B [16, 16] transposed in shared memory, as halves.
__global__ void product_of_halves(const float* a, const float* b, float* c, unsigned* largest) {
  auto* shared = reinterpret_cast<uint32_t*>(dynamic_shared());
  const int lane = static_cast<int>(threadIdx.x), g = lane / 4, t = lane % 4;
  for (int i = lane; i < 128; i += 32) {
    shared[i] = pack_halves(a[2 * i], a[2 * i + 1]);
    shared[128 + i] = pack_halves(b[2 * i], b[2 * i + 1]);
  }
  __syncthreads();
  const auto* halves = reinterpret_cast<const uint16_t*>(shared);
  const int row = lane % 16 * 16 + lane / 16 * 8;
  uint32_t x[4], y[4];
  load_matrices<false>(x, halves + row);
  load_matrices<true>(y, halves + 256 + row);
  for (int n = 0; n < 2; ++n) {
    float sums[4] = {};
    mma_f16(sums, x[0], x[1], x[2], x[3], y[2 * n], y[2 * n + 1]);
    for (int e = 0; e < 4; ++e) {
      c[(g + e / 2 * 8) * 16 + 8 * n + 2 * t + e % 2] = sums[e];
    }
  }
  largest[lane] = warp_maximum(static_cast<uint32_t>(lane * 7 % 32));
}

TEST(Emulator, MultipliesHalvesOnTheTensorCore) {
  std::vector<float> a(256), b(256);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = std::sin(1.0f + static_cast<float>(i));
    b[i] = std::cos(2.0f + static_cast<float>(i));
  }
  DeviceBuffer<float> device_a(a), device_b(b), device_c(256);
  DeviceBuffer<unsigned> largest(32);
  launch(product_of_halves, dim3(1), dim3(32), 1024, nullptr, device_a.data(), device_b.data(),
         device_c.data(), largest.data());
  EXPECT_EQ(largest.download(), std::vector<unsigned>(32, 31));
  const auto half = [](float x) { return double{unpack_halves(pack_halves(x, 0)).x}; };
  const std::vector<float> c = device_c.download();
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      double expected = 0;
      for (int k = 0; k < 16; ++k) expected += half(a[i * 16 + k]) * half(b[k * 16 + j]);
      EXPECT_NEAR(c[i * 16 + j], expected, 2e-6);
    }
  }
}

TEST(Emulator, RoundsToHalves) {
  const auto bits = [](float x) { return pack_halves(0, x) >> 16; };
  EXPECT_EQ(bits(1), 0x3c00u);
  EXPECT_EQ(bits(-2), 0xc000u);
  EXPECT_EQ(bits(1 + 0x1p-11F), 0x3c00u);  // ties to even
  EXPECT_EQ(bits(1 + 0x3p-11F), 0x3c02u);
  EXPECT_EQ(bits(65504), 0x7bffu);
  EXPECT_EQ(bits(65520), 0x7c00u);  // infinity
  EXPECT_EQ(bits(0x1p-24F), 1u);
  EXPECT_EQ(bits(0x1p-25F), 0u);
  EXPECT_EQ(bits(0x1.ffcp-15F), 0x0400u);  // rounds up to a number with all bits
  EXPECT_EQ(unpack_halves(0xfc000001u).x, 0x1p-24F);
  EXPECT_EQ(unpack_halves(0xfc000001u).y, -INFINITY);
  EXPECT_TRUE(std::isnan(unpack_halves(bits(NAN)).x));
}

__global__ void read_unwritten(float* out) {
  const auto* shared = reinterpret_cast<const float*>(dynamic_shared());
  out[threadIdx.x] = shared[threadIdx.x];
}

TEST(Emulator, UnwrittenMemoryIsNotANumber) {
  float* out = nullptr;
  ASSERT_EQ(cudaMalloc(&out, 32 * sizeof(float)), cudaSuccess);
  EXPECT_TRUE(std::isnan(out[5]));
  launch(read_unwritten, dim3(1), dim3(32), 32 * sizeof(float), nullptr, out);
  EXPECT_TRUE(std::isnan(out[31]));
  EXPECT_EQ(cudaFree(out), cudaSuccess);
}

// out: before the wait, after a wait that leaves the second group, after the last.
__global__ void copy_in_two_groups(const float* from, float* out) {
  auto* shared = reinterpret_cast<float*>(dynamic_shared());
  for (int i = 0; i < 8; ++i) shared[i] = -1;
  copy_async(shared, from);
  commit_copies();
  copy_async(shared + 4, from + 4);
  commit_copies();
  out[0] = shared[0];
  wait_copies<1>();
  out[1] = shared[0];
  out[2] = shared[4];
  wait_copies<0>();
  out[3] = shared[4];
}

TEST(Emulator, CopiesArriveWhenWaitedFor) {
  DeviceBuffer<float> from(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}), out(4);
  launch(copy_in_two_groups, dim3(1), dim3(1), 8 * sizeof(float), nullptr, from.data(), out.data());
  const std::vector<float> seen = out.download();
  EXPECT_TRUE(std::isnan(seen[0]));
  EXPECT_EQ(seen[1], 1);
  EXPECT_TRUE(std::isnan(seen[2]));
  EXPECT_EQ(seen[3], 5);
}

// Each thread of a pair writes and reads what the other writes, without a barrier between.
__global__ void forgets_a_barrier(int* out) {
  __shared__ int values[32];
  values[threadIdx.x] = 0;
  __syncthreads();
  values[threadIdx.x] = 1;
  out[32 * blockIdx.x + threadIdx.x] = values[threadIdx.x ^ 1];
}

TEST(Emulator, OddBlocksRunBackwards) {
  DeviceBuffer<int> out(64);
  launch(forgets_a_barrier, dim3(2), dim3(32), 0, nullptr, out.data());
  const std::vector<int> seen = out.download();
  EXPECT_THAT(std::vector<int>(seen.begin(), seen.begin() + 4), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(std::vector<int>(seen.begin() + 32, seen.begin() + 36), ElementsAre(1, 0, 1, 0));
}

__global__ void half_of_the_block_waits() {
  if (threadIdx.x < 32) __syncthreads();
}
__global__ void half_of_the_warp_shuffles(int* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0xffffffffu, 1, 0);
}
__global__ void lanes_disagree() {
  if (threadIdx.x < 16) {
    __syncwarp();
  } else {
    __shfl_sync(0xffffffffu, 1, 0);
  }
}

TEST(EmulatorDeathTest, NamesADivergentBarrier) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(launch(half_of_the_block_waits, dim3(1), dim3(64), 0, nullptr),
               "block \\(0, 0, 0\\) cannot go on: of 64 threads 32 wait in __syncthreads, 0 in a "
               "warp collective, 32 have ended");
  int out[32];
  EXPECT_DEATH(launch(half_of_the_warp_shuffles, dim3(1), dim3(32), 0, nullptr, out),
               "0 wait in __syncthreads, 16 in a warp collective, 16 have ended");
  EXPECT_DEATH(launch(lanes_disagree, dim3(1), dim3(32), 0, nullptr),
               "lanes of a warp meet in different collectives");
}

TEST(Emulator, KnowsTheDevicesLimits) {
  DeviceBuffer<float> out(32);
  EXPECT_THROW(launch(read_unwritten, dim3(1), dim3(2048), 0, nullptr, out.data()), Error);
  EXPECT_THROW(launch(read_unwritten, dim3(1), dim3(32), 64 << 10, nullptr, out.data()), Error);
  allow_shared_bytes(read_unwritten, 64 << 10);
  EXPECT_NO_THROW(launch(read_unwritten, dim3(1), dim3(32), 64 << 10, nullptr, out.data()));
  allow_shared_bytes(read_unwritten, 300 << 10);  // what the card has
  EXPECT_THROW(launch(read_unwritten, dim3(1), dim3(32), 300 << 10, nullptr, out.data()), Error);
}

TEST(Emulator, ChecksCopies) {
  DeviceBuffer<float> buffer(4);
  std::vector<float> host(8);
  EXPECT_THROW(buffer.upload(host.data(), 5), Error);
  EXPECT_EQ(cudaMemcpy(host.data(), host.data() + 4, 4, cudaMemcpyDeviceToHost),
            cudaErrorInvalidValue);
  try {
    DeviceBuffer<char> too_much(int64_t{3} << 30);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::device);
    EXPECT_THAT(error.problem(), HasSubstr("cudaMalloc"));
    EXPECT_THAT(error.hint(), HasSubstr("memory is full"));
  }
}

TEST(Emulator, SortsPairsByTheirLowBits) {
  const DeviceBuffer<uint64_t> keys(std::vector<uint64_t>{0x13, 0x02, 0x23, 0x01});
  const DeviceBuffer<uint32_t> values(std::vector<uint32_t>{0, 1, 2, 3});
  DeviceBuffer<uint64_t> sorted_keys(4);
  DeviceBuffer<uint32_t> sorted_values(4);
  PairSorter(4).sort(keys.data(), sorted_keys.data(), values.data(), sorted_values.data(), 4, 4,
                     nullptr);
  EXPECT_THAT(sorted_keys.download(), ElementsAre(0x01, 0x02, 0x13, 0x23));
  EXPECT_THAT(sorted_values.download(), ElementsAre(3, 1, 0, 2));
}

__global__ void add(int* to, int amount) { *to += amount; }

TEST(Emulator, GraphsKeepTheirArguments) {
  DeviceBuffer<int> value(1);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  int amount = 5;
  StepGraph graph(
      [&](cudaStream_t on) { launch(add, dim3(1), dim3(1), 0, on, value.data(), amount); }, stream);
  EXPECT_EQ(value.download()[0], 0);
  amount = 100;
  graph.launch(stream);
  graph.launch(stream);
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  EXPECT_EQ(value.download()[0], 10);
  EXPECT_THROW(StepGraph([&](cudaStream_t) { value.download(); }, stream), Error);
  EXPECT_THROW(StepGraph([&](cudaStream_t) { DeviceBuffer<int> more(1); }, stream), Error);
  cudaStreamDestroy(stream);
}

__global__ void copy(int* to, const int* from) { *to = *from; }

TEST(Emulator, AForkedStreamWorksAsLateAsItMay) {
  DeviceBuffer<int> value(1), seen(2);
  Stream stream(Stream::independent), fork(Stream::independent);
  Event begin, end;
  const auto seen_after = [&](bool waits) {
    StepGraph graph(
        [&](cudaStream_t on) {
          launch(add, dim3(1), dim3(1), 0, on, value.data(), 1);
          begin.record(on);
          fork.wait_for(begin);
          launch(copy, dim3(1), dim3(1), 0, fork.get(), seen.data(), value.data());
          end.record(fork.get());
          if (waits) stream.wait_for(end);
          launch(add, dim3(1), dim3(1), 0, on, value.data(), 10);
          stream.wait_for(end);
        },
        stream.get());
    value.upload(std::vector<int>{0}.data(), 1);
    graph.launch(stream.get());
    stream.wait();
    return seen.download()[0];
  };
  EXPECT_EQ(seen_after(true), 1);
  EXPECT_EQ(seen_after(false), 11);
  const auto unjoined = [&](cudaStream_t on) {
    begin.record(on);
    fork.wait_for(begin);
    launch(add, dim3(1), dim3(1), 0, fork.get(), value.data(), 1);
  };
  EXPECT_THROW(StepGraph(unjoined, stream.get()), Error);
}

}  // namespace
}  // namespace posattn::cuda

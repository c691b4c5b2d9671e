// What CUDA C++ has no function for: tensor-core products, asynchronous copies, dynamic shared
// memory. The emulator of the tests has a file of the same name that does the same on the host, so
// kernels written with these and plain CUDA C++ run there unchanged. No other file has assembly.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace posattn::cuda {

// Start of the block's dynamic shared memory, 16-byte aligned.
__device__ inline char* dynamic_shared() {
  extern __shared__ float4 posattn_dynamic_shared[];
  return reinterpret_cast<char*>(posattn_dynamic_shared);
}

// max(x, 0) that keeps a NaN, so that it reaches the loss and is seen; fmaxf would make it 0.
__device__ inline float relu(float x) {
  float y;
  asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(y) : "f"(x));
  return y;
}

// Rounds to nearest at tf32's ten bits (ties away); the tensor core ignores the bits below. A NaN
// stays one: that of the GPU, 0x7fffffff, would become -0 without the minimum.
__device__ inline float round_to_tf32(float x) {
  return __int_as_float(min(__float_as_int(x), 0x7fffefff) + 0x1000);
}
// x without the bits that tf32 ignores; x - tf32_part(x) is exact.
__device__ inline float tf32_part(float x) {
  return __uint_as_float(__float_as_uint(x) & 0xffffe000u);
}

// c += A B on the tensor core, A [16, 8], B [8, 8], all lanes of a warp together. With
// g = lane / 4 and t = lane % 4 a lane holds
//   a = A(g, t), A(g + 8, t), A(g, t + 4), A(g + 8, t + 4)      b = B(t, g), B(t + 4, g)
//   c = C(g, 2t), C(g, 2t + 1), C(g + 8, 2t), C(g + 8, 2t + 1)
// Operands count with ten bits of mantissa (the rest is ignored), sums are fp32.
__device__ inline void mma_tf32(float (&c)[4], float a0, float a1, float a2, float a3, float b0,
                                float b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)),
        "r"(__float_as_uint(a3)), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}

// Packs two halves (fp16) in one register, the first in the lower bits, rounded to nearest even.
__device__ inline uint32_t pack_halves(float first, float second) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}
__device__ inline float2 unpack_halves(uint32_t pair) {
  float2 out;
  asm("{.reg .f16 first, second;\n\tmov.b32 {first, second}, %2;\n\t"
      "cvt.f32.f16 %0, first;\n\tcvt.f32.f16 %1, second;}"
      : "=f"(out.x), "=f"(out.y)
      : "r"(pair));
  return out;
}

// c += A B on the tensor core with halves, A [16, 16], B [16, 8], sums in fp32. With g = lane / 4
// and t = lane % 4 a register of a lane holds two neighbours:
//   a = A(g, 2t..), A(g + 8, 2t..), A(g, 2t + 8..), A(g + 8, 2t + 8..)
//   b = B(2t.., g), B(2t + 8.., g)           c as in mma_tf32
__device__ inline void mma_f16(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                               uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Four matrices of 8 x 8 halves from shared memory: lanes 8 i .. 8 i + 7 name the rows (16 bytes,
// aligned) of matrix i, and register i of a lane gets its elements (g, 2t) and (g, 2t + 1), or,
// transposed, (2t, g) and (2t + 1, g).
template <bool transposed>
__device__ inline void load_matrices(uint32_t (&out)[4], const void* row) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address)
                 : "memory");
  }
}

// The transpose of a matrix of 8 x 8 halves, of which a lane holds (g, 2t) and (g, 2t + 1).
__device__ inline uint32_t transpose_matrix(uint32_t pair) {
  uint32_t out;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(pair));
  return out;
}

__device__ inline uint32_t warp_maximum(uint32_t x) { return __reduce_max_sync(0xffffffffu, x); }

// x, but the compiler does not know: what follows from it is computed here, where it would keep
// registers if it were computed ahead of a loop.
__device__ inline int computed_here(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

// Asks for a line of global memory that is needed soon.
__device__ inline void prefetch(const void* global) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(global));
}

// Starts a copy of 16 bytes from global to shared memory (both 16-byte aligned).
__device__ inline void copy_async(void* shared, const void* global) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global) : "memory");
}
// Starts a copy of the first `present` bytes of `size` (4 or 16, to which both sides are aligned);
// the rest becomes zero.
template <int size>
__device__ inline void copy_async_part(void* shared, const void* global, int present) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  if constexpr (size == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(global),
                 "r"(present)
                 : "memory");
  } else {
    static_assert(size == 4);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(global),
                 "r"(present)
                 : "memory");
  }
}
// Closes the group of copies this thread has started.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most `pending` of this thread's latest groups are unfinished. A barrier must
// follow before other threads read what was copied.
template <int pending>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

}  // namespace posattn::cuda

// Runs the tests of the CUDA engine, if there is a GPU to run them on. Ends with 77 if not:
// skipped, which is neither passed nor failed.
#include <gmock/gmock.h>

#include <cstdio>

#include "posattn/kernels/cuda/device_info.h"

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  const posattn::DeviceInfo device = posattn::device_info();
  if (!device.usable) {
    std::fprintf(stderr, "no usable CUDA device: %s\n", device.problem.c_str());
    return 77;
  }
  std::printf("on %s\n", device.name.c_str());
  return RUN_ALL_TESTS();
}

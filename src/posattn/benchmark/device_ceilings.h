// Measures the GPU's limits, with which a step's time is compared.
#pragma once

namespace posattn {

struct DeviceCeilings {
  double copy_bytes = 0;    // bytes read plus written per second, device memory to device memory
  double tensor_flops = 0;  // per second, tf32 products by mma.sync, nothing else running
  double fp32_flops = 0;    // per second, fused multiply-adds
};

// Throws Error(device) where there is no usable GPU.
DeviceCeilings measure_device_ceilings();

}  // namespace posattn

// The part of CUDA C++ and its runtime that the project uses, on the host (see ../emulator.h).
#pragma once

#include "cuda_runtime_api.h"
#include "device_functions.h"

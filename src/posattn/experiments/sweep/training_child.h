// The process that trains for a rank of a sweep (sweep.h): it knows nothing of MPI, reads orders
// from one pipe and writes reports to another (words.h). When its orders end, so does it.
#pragma once

#include <atomic>

namespace posattn {

// `interrupted`: as set by a signal; the runs in hand are then saved and reported as interrupted.
void train_by_orders(int orders, int reports, int threads, const std::atomic<bool>& interrupted);

}  // namespace posattn

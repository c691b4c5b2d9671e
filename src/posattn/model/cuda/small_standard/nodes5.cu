#include "posattn/model/cuda/small_standard/fixed_nodes_engine.cuh"

namespace posattn::cuda::standard {

template std::unique_ptr<StepEngine> make_engine<5>(const FleetShape&, const BlockTiles&);
template int64_t engine_bytes<5>(const FleetShape&, const BlockTiles&);
template int64_t engine_shared_bytes<5>();

}  // namespace posattn::cuda::standard

#include "posattn/model/network.h"

#include <fmt/format.h>

#include "posattn/base/error.h"
#include "posattn/model/spec/check_batch.h"
#include "posattn/model/spec/scale_wrap.h"
#include "posattn/model/tiles/tile_network.h"

namespace posattn {
namespace {

std::unique_ptr<engine::NetworkEngine> make_engine(const ModelSpec& spec,
                                                   const NetworkOptions& options) {
  if (spec.routed()) return engine::make_routed_engine(spec, options);
  if (engine::TileNetwork::supports(spec, options.path)) {
    return std::make_unique<engine::TileNetwork>(spec, options);
  }
  return engine::make_block_executor(spec, options);
}

}  // namespace

Network::Network(const ModelSpec& spec, NetworkOptions options)
    : spec_(resolve(spec)), engine_(make_engine(spec_, options)) {}
Network::~Network() = default;
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;

void Network::prepare(const Parameters<float>& parameters, int real_nodes) {
  engine_->prepare(parameters, real_nodes);
  prepared_nodes_ = real_nodes;
}

void Network::run(const Batch& batch, std::span<float> outputs) const {
  check_batch(spec_, batch);
  if (batch.real_nodes != prepared_nodes_) {
    throw Error(ExitCode::configuration,
                fmt::format("a batch of {} nodes for a network prepared for {}", batch.real_nodes,
                            prepared_nodes_),
                "the length that it was prepared for");
  }
  const int64_t count = batch.samples * batch.real_nodes * spec_.output_columns;
  if (static_cast<int64_t>(outputs.size()) != count) {
    throw Error(ExitCode::data, fmt::format("room for {} outputs", outputs.size()),
                fmt::format("{}: samples x nodes x columns", count));
  }
  const ScaledBatch<float> scaled(spec_, batch);
  engine_->run(scaled.batch(), outputs);
  scaled.multiply_back(outputs);
}

void Network::forward(const Parameters<float>& parameters, const Batch& batch,
                      std::span<float> outputs) {
  check_batch(spec_, batch);
  prepare(parameters, batch.real_nodes);
  run(batch, outputs);
}

double Network::gradient(const Parameters<float>& parameters, const Batch& batch,
                         std::span<const uint8_t> mask, Parameters<float>& gradient) {
  check_batch(spec_, batch);
  check_targets(spec_, batch);
  prepared_nodes_ = 0;  // the weights will change
  return engine_->gradient(parameters, ScaledBatch<float>(spec_, batch).batch(), mask, gradient);
}

std::vector<float> Network::attention(const Parameters<float>& parameters,
                                      const Batch& one_sample) {
  check_batch(spec_, one_sample);
  prepared_nodes_ = 0;
  return engine_->attention(parameters, ScaledBatch<float>(spec_, one_sample).batch());
}

Network::Work Network::work() const { return engine_->work(); }

}  // namespace posattn

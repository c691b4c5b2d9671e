// A certificate as JSON.
#include <nlohmann/json.hpp>

#include "posattn/bounds/certificate/certify.h"

namespace posattn::bounds {
namespace {

nlohmann::ordered_json drawn_json(const DrawnNetwork& network) {
  return {{"bound", network.bound},
          {"training_loss", network.training_loss},
          {"fresh_loss", network.fresh_loss},
          {"log_ratio", network.log_ratio}};
}

}  // namespace

std::string to_json(const CertifiedRun& run, const CertifyOptions& options,
                    const Certificate& certificate, double seconds) {
  const nlohmann::ordered_json document = {{"run", run.name},
                                           {"task", run.config.task},
                                           {"architecture", run.config.architecture},
                                           {"seed", run.config.seed},
                                           {"length", run.config.length},
                                           {"width", run.config.width},
                                           {"depth", run.model.spec.depth},
                                           {"samples", certificate.samples},
                                           {"delta", options.delta},
                                           {"clip", options.clip},
                                           {"steps", options.steps},
                                           {"draws", options.draws},
                                           {"coordinates", certificate.coordinates},
                                           {"divergence", certificate.divergence},
                                           {"cost", certificate.cost},
                                           {"randomised",
                                            {{"bound", certificate.bound},
                                             {"training_loss", certificate.loss},
                                             {"training_loss_bound", certificate.loss_bound},
                                             {"fresh_loss", certificate.fresh_loss}}},
                                           {"drawn", drawn_json(certificate.drawn)},
                                           {"best_of_ten", drawn_json(certificate.best_of_ten)},
                                           {"plain",
                                            {{"training_loss", certificate.plain_training_loss},
                                             {"fresh_loss", certificate.plain_fresh_loss},
                                             {"hold_out_bound", certificate.hold_out_bound}}},
                                           {"constant", certificate.simple.constant},
                                           {"linear", certificate.simple.linear},
                                           {"seconds", seconds}};
  return document.dump();
}

}  // namespace posattn::bounds

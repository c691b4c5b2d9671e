#include "posattn/cli/certify_output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "posattn/cli/text_table.h"

namespace posattn {
namespace {

using bounds::Certificate;
using bounds::CertifiedRun;
using bounds::CertifyOptions;
using bounds::DrawnNetwork;

nlohmann::ordered_json drawn_json(const DrawnNetwork& network) {
  return {{"bound", network.bound},
          {"training_loss", network.training_loss},
          {"fresh_loss", network.fresh_loss},
          {"log_ratio", network.log_ratio}};
}

}  // namespace

nlohmann::ordered_json certificate_json(const CertifiedRun& run, const CertifyOptions& options,
                                        const Certificate& certificate, double seconds) {
  return {{"run", run.name},
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
}

std::string certificate_text(const CertifiedRun& run, const CertifyOptions& options,
                             const Certificate& certificate) {
  const auto number = [](double value) { return fmt::format("{:.4f}", value); };
  std::string text = fmt::format(
      "{}\n{}, {}: m = {} training samples, {} numbers in the collapsed network\n"
      "clipped loss min(error^2, {}), confidence {}\n\n",
      run.name, run.config.task, run.config.architecture, certificate.samples,
      certificate.coordinates, short_number(options.clip * options.clip), 1 - options.delta);
  TextTable table({"network", "risk at most", "training loss", "fresh loss"});
  table.add_row({"randomised: new noise for each answer", number(certificate.bound),
                 number(certificate.loss), number(certificate.fresh_loss)});
  const auto add_drawn = [&](const std::string& name, const DrawnNetwork& network) {
    table.add_row(
        {name, number(network.bound), number(network.training_loss), number(network.fresh_loss)});
  };
  add_drawn("drawn once from the same noise", certificate.drawn);
  add_drawn("best of ten drawn", certificate.best_of_ten);
  table.add_row({"as trained: no certificate of this kind", "",
                 number(certificate.plain_training_loss), number(certificate.plain_fresh_loss)});
  text += table.to_string();
  text += fmt::format(
      "\nKL {:.0f} nats, and {:.0f} for the choice of the prior's scales. What is certified is the "
      "noisy network\n(or the drawn one), not the one that was trained.\n",
      certificate.divergence, certificate.cost);
  TextTable beside({"beside it, on fresh samples", "loss"});
  beside.add_row({"best constant", number(certificate.simple.constant)});
  beside.add_row({"best linear predictor", number(certificate.simple.linear)});
  beside.add_row(
      {"as trained, bound from 1,000 held-out samples", number(certificate.hold_out_bound)});
  return text + "\n" + beside.to_string();
}

}  // namespace posattn

#include "posattn/cli/certify_output.h"

#include <fmt/format.h>

#include "posattn/cli/text_table.h"

namespace posattn {
namespace {

using bounds::Certificate;
using bounds::CertifiedRun;
using bounds::CertifyOptions;
using bounds::DrawnNetwork;

}  // namespace

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

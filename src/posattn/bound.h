// What theory promises of a trained model: bounds, with the measured gap, and certificates.
//   posattn::bounds::BoundReport report = posattn::bounds::bound_report(model, {.samples = 30000});
// Threads: these functions only read the model, and keep nothing: several threads may ask about
// one. `drawn` is called from all threads of a certificate at once; any thread may set `stop`.
// One of the installed headers (docs/architecture.md, "The interface"). What they include comes
// along, and may change; what they name is meant to stay.
#pragma once

#include "posattn/bounds/bound_report.h"
#include "posattn/bounds/certificate/certify.h"

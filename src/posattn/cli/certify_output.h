// Certificates as text, JSON and rows.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "posattn/bounds/certificate/certify.h"

namespace posattn {

// `seconds`: what it took.
nlohmann::ordered_json certificate_json(const bounds::CertifiedRun& run,
                                        const bounds::CertifyOptions& options,
                                        const bounds::Certificate& certificate, double seconds);

std::string certificate_text(const bounds::CertifiedRun& run, const bounds::CertifyOptions& options,
                             const bounds::Certificate& certificate);

}  // namespace posattn

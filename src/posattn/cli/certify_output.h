// Certificates as text.
#pragma once

#include <string>

#include "posattn/bounds/certificate/certify.h"

namespace posattn {

std::string certificate_text(const bounds::CertifiedRun& run, const bounds::CertifyOptions& options,
                             const bounds::Certificate& certificate);

}  // namespace posattn

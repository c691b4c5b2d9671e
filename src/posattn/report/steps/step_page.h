// A walk as one page of HTML that needs nothing else: no network, no other file.
#pragma once

#include <string>

#include "posattn/report/steps/walk.h"

namespace posattn {

std::string step_page(const Walk& walk);

}  // namespace posattn

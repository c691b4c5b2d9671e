// What a spec must fulfil. Throws Error(configuration) where it does not.
#pragma once

#include <string>

#include "posattn/base/error.h"
#include "posattn/model/spec/spec.h"

namespace posattn {

Error impossible(std::string what, std::string expected, std::string hint = {});
void check_size(const char* name, int value, int low, int high);

// Bits that tell so many nodes, or steps, apart; at least one.
int bits_for(int nodes);

// The sizes that a user gives, on which the rest of `resolve` relies.
void check_sizes(const ModelSpec& spec);
// Loops and hints, once kinds and pairs are resolved.
void check_loops(const ModelSpec& spec);
void check_hints(const ModelSpec& spec);
// The choices of a resolved spec, layer by layer.
void check_resolved(const ModelSpec& spec);

}  // namespace posattn

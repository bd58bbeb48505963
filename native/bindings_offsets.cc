#include "bindings.h"

using namespace nb::literals;

void bind_offsets(nb::module_&) {}

#include "bindings.h"

using namespace nb::literals;

void bind_exact(nb::module_&) {}

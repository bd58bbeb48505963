#include "bindings.h"

using namespace nb::literals;

void bind_search(nb::module_&) {}

#include "bindings.h"

NB_MODULE(_native, module) {
  module.doc() = "Native kernel of regal: numbers in, numbers out.";
  bind_problem(module);
  bind_check(module);
  bind_search(module);
  bind_exact(module);
  bind_offsets(module);
  bind_devices(module);
  bind_device_heuristics(module);
  bind_device_anneal(module);
  bind_device_search(module);
  bind_fusion(module);
  bind_fingerprint(module);
}

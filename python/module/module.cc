#include "module.h"

PYBIND11_MODULE(_posattn, module) {
  module.doc() = "The compiled half of posattn; see the package.";
  module.attr("__version__") = POSATTN_VERSION;
  posattn::python::add_errors(module);
  posattn::python::add_ending(module);
  posattn::python::add_models(module);
  posattn::python::add_tasks(module);
  posattn::python::add_training(module);
  posattn::python::add_programs(module);
  posattn::python::add_experiments(module);
  posattn::python::add_bounds(module);
  posattn::python::add_drawings(module);
}

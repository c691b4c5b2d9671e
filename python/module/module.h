// The compiled half of the Python package: thin functions over the installed headers, on NumPy
// arrays. What people call, with its documentation, is in ../posattn/*.py.
//
// Long calls release the interpreter's lock; whoever then holds a lock of ours never waits for the
// interpreter's.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

namespace posattn::python {

namespace py = pybind11;

void add_errors(py::module_& module);
void add_models(py::module_& module);
void add_training(py::module_& module);
void add_tasks(py::module_& module);
void add_programs(py::module_& module);
void add_experiments(py::module_& module);
void add_drawings(py::module_& module);
void add_bounds(py::module_& module);

}  // namespace posattn::python

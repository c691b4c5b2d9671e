// The compiled half of the Python package: thin functions over the installed headers, on NumPy
// arrays. What people call, with its documentation, is in ../posattn/*.py.
//
// Long calls release the interpreter's lock (unlocked.h). They look at signals now and then, which
// takes it again: who holds it must not wait for a lock of ours.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <string_view>

namespace posattn::python {

namespace py = pybind11;

// Text of the library as Python's; bytes that are no UTF-8, as of a file's name, as \xff.
py::str text_of(std::string_view text);

// Throws Error(usage) unless it is 1 to 1024.
int checked_threads(int threads);

void add_errors(py::module_& module);
void add_ending(py::module_& module);
void add_models(py::module_& module);
void add_training(py::module_& module);
void add_tasks(py::module_& module);
void add_programs(py::module_& module);
void add_experiments(py::module_& module);
void add_drawings(py::module_& module);
void add_bounds(py::module_& module);

}  // namespace posattn::python

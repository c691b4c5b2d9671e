#include "arrays.h"

#include <limits>

#include "posattn/base/error.h"

namespace posattn::python {
namespace {

// What is wrong with an array of Python's objects, by its first one.
std::string hint_for_objects(const py::array& array) {
  if (array.size() == 0) return "";
  const py::object first = array.attr("flat")[py::int_(0)];
  if (py::isinstance<py::sequence>(first) || py::isinstance<py::array>(first)) {
    return "rows of different lengths make such an array";
  }
  if (py::isinstance<py::int_>(first)) return "are all whole numbers within 64 bits?";
  return "the first is of type " + std::string(py::str(py::type::of(first).attr("__name__")));
}

// NumPy's masked arrays say which numbers do not count; as plain arrays they would.
void check_mask(const py::object& object, const std::string& what) {
  if (Py_TYPE(object.ptr()) == py::detail::npy_api::get().PyArray_Type_) return;
  if (!py::isinstance<py::array>(object) || !py::hasattr(object, "mask")) return;
  const auto masked = py::module_::import("numpy.ma").attr("count_masked")(object).cast<int64_t>();
  if (masked == 0) return;
  throw Error(ExitCode::data,
              what + ": an array with " + std::to_string(masked) + " masked numbers",
              "an array without a mask", "array.filled(0) puts a number in place of each");
}

// An array of numbers, of whatever kind, as NumPy understands the object.
py::array array_from(const py::object& object, const std::string& what) {
  check_mask(object, what);
  const py::array array =
      object.is_none() ? py::reinterpret_steal<py::array>(py::handle()) : py::array::ensure(object);
  if (!array) {
    PyErr_Clear();
    throw Error(ExitCode::data,
                what + ": " + std::string(py::str(py::type::of(object).attr("__name__"))),
                "an array of numbers, as NumPy makes it");
  }
  const char kind = array.dtype().kind();
  if (std::string_view("biuf").find(kind) == std::string_view::npos) {
    throw Error(ExitCode::data, what + ": an array of " + std::string(py::str(array.dtype())),
                "real numbers", kind == 'O' ? hint_for_objects(array) : "");
  }
  return array;
}

template <class Array>
Array converted(const py::array& array, const std::string& what) {
  Array result = Array::ensure(array);
  if (!result) {
    PyErr_Clear();
    throw Error(ExitCode::data, what + ": " + shape_text(array), "an array that fits into memory");
  }
  return result;
}

}  // namespace

std::string shape_text(const py::array& array) { return py::str(array.attr("shape")); }

Floats floats_of(const py::object& object, const std::string& what) {
  return converted<Floats>(array_from(object, what), what);
}

Doubles doubles_of(const py::object& object, const std::string& what) {
  return converted<Doubles>(array_from(object, what), what);
}

Integers integers_of(const py::object& object, const std::string& what) {
  const py::array array = array_from(object, what);
  if (array.dtype().kind() == 'f') {
    throw Error(ExitCode::data, what + ": an array of " + std::string(py::str(array.dtype())),
                "whole numbers", "array.astype(numpy.int32)");
  }
  const auto wide =
      converted<py::array_t<int64_t, py::array::c_style | py::array::forcecast>>(array, what);
  for (const int64_t value : numbers(wide)) {
    if (value < std::numeric_limits<int32_t>::min() ||
        value > std::numeric_limits<int32_t>::max()) {
      throw Error(ExitCode::data, what + ": " + std::to_string(value),
                  "whole numbers from -2147483648 to 2147483647");
    }
  }
  return converted<Integers>(array, what);
}

std::vector<int64_t> SampleForm::answer_shape(int columns) const {
  std::vector<int64_t> shape;
  if (has_samples) shape.push_back(samples);
  shape.push_back(nodes);
  if (keeps_columns || columns != 1) shape.push_back(columns);
  return shape;
}

SampleForm form_of_numbers(const py::array& array, int columns, const std::string& what) {
  const auto axes = static_cast<int>(array.ndim());
  SampleForm form;
  const int fewest = columns == 1 ? 1 : 2;
  if (axes >= fewest && axes <= 3) {
    const bool has_columns = columns != 1 || axes == 3;
    form.keeps_columns = columns == 1 && has_columns;
    form.has_samples = axes - (has_columns ? 1 : 0) == 2;
    const int64_t nodes = array.shape(form.has_samples ? 1 : 0);
    if (nodes <= std::numeric_limits<int>::max() &&
        (!has_columns || array.shape(axes - 1) == columns)) {
      form.samples = form.has_samples ? array.shape(0) : 1;
      form.nodes = static_cast<int>(nodes);
      return form;
    }
  }
  const std::string count = std::to_string(columns);
  throw Error(ExitCode::data, what + " of shape " + shape_text(array),
              columns == 1 ? "[nodes], [samples, nodes] or [samples, nodes, 1]"
                           : "[nodes, " + count + "] or [samples, nodes, " + count + "]");
}

}  // namespace posattn::python

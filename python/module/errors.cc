// posattn::Error as posattn.Error of Python, with its parts.
#include "module.h"
#include "posattn/base/error.h"

namespace posattn::python {

void add_errors(py::module_& /*module*/) {
  // pybind11 wants a copy: NOLINTNEXTLINE(performance-unnecessary-value-param)
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const Error& error) {
      const py::object type = py::module_::import("posattn.errors").attr("Error");
      const py::object raised =
          type(error.problem(), error.expected(), error.hint(), static_cast<int>(error.code()));
      PyErr_SetObject(type.ptr(), raised.ptr());
    }
  });
}

}  // namespace posattn::python
